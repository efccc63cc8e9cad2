"""Train a Cell as torch was trained, and measure each loss, move and moment."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

import mindspore as ms
import numpy as np

from migrate.parity.cells import Net, array, held_at, put, restore, tensor_of
from migrate.parity.compare import Measure
from migrate.parity.exchange import Array, Spec
from migrate.parity.messages import At, Emit, Payload, Ran, Trained
from migrate.parity.ms_gradients import compared_parts, flat, import_probe, own_heads
from migrate.parity.probe import probe_source
from migrate.parity.replay import Job, blocked, opened
from migrate.parity.weights import found_under, moment_of
from migrate.records.outcomes import Verdict, Why

STATE = "optimizer state"
Answers = list[tuple[str, str, Measure]]  # rung, weight of torch, what was found
Compare = Callable[[Spec, Array, str], Measure]  # torch's, MindSpore's, the weight


def state_measures(
    wanted: Mapping[str, Spec], optimizer: Any, partners: Mapping[str, Any], compare: Compare
) -> tuple[Answers, Why | None]:
    """Return a measure for each moment of each weight, or none and why.

    ``partners`` maps torch's weights to MindSpore's Parameters. State that only MindSpore keeps
    (a moment that is zero without momentum) is no fault.
    """
    keys = [key for key in wanted if moment_of(key)[0] in partners]
    if not keys:
        return [], Why.NO_STATE
    listed: Iterable[Any] = getattr(optimizer, "get_parameters", tuple)()
    held = {parameter.name: parameter for parameter in listed}
    places = {}
    for key in keys:
        weight, moment = moment_of(key)
        places[key] = found_under(moment, partners[weight].name, held)
    if not any(places.values()):
        return [], Why.UNKNOWN_STATE
    found: Answers = []
    for key, name in places.items():
        weight, moment = moment_of(key)
        if not name:
            lacks = f"MindSpore's optimizer keeps no {moment} of {weight}"
            found.append((STATE, weight, Measure(Verdict.UNMATCHED, detail=lacks)))
            continue
        measure = compare(wanted[key], array(held[name]), weight)
        told = f"{moment} of {weight}: {measure.detail}" if measure.detail else ""
        found.append((STATE, weight, replace(measure, detail=told)))
    return found, None


LOSS, STEP, STATE, CURVE = "loss", "optimizer step", "optimizer state", "steps"
RUNGS = (LOSS, STEP, STATE, CURVE)


def train(net: Net, names: Mapping[str, Any], request: Payload, emit: Emit) -> Payload:
    """Train as torch did; emits a ``check`` with its ``rung`` for each loss and each weight."""
    index, job = opened(net, request)
    emit(At("", 0))
    start = {place: array(held_at(net, place)).copy() for place in parameters_of(net)}
    try:
        found = [] if request["done"] else _answers(job, names, request, index, emit)
    except Exception as error:  # whatever user code raises is a finding about the model
        found = [(rung, "", blocked(error)) for rung in RUNGS]
    finally:
        for place, numbers in start.items():
            put(net, place, numbers)
        restore(net, "")
    for rung, name, measure in found:
        emit(Ran("", local=measure, name=name, rung=rung))
    return {}


def parameters_of(net: Net) -> list[str]:
    """Return the places of the Parameters that have a partner in torch."""
    places = dict.fromkeys(part["place"] for parts in net.parts.values() for part in parts)
    return [place for place in places if isinstance(held_at(net, place), ms.Parameter)]


def _answers(
    job: Job, names: Mapping[str, Any], request: Payload, index: Spec, emit: Emit
) -> Answers:
    if index["why"]:
        none = Measure(Verdict.NOT_RUN, detail=index["why"])
        return [(rung, "", none) for rung in RUNGS]
    heads = index["heads"]
    if job.net.port and not request["loss"]:
        heads = own_heads(job, job.net.root, index)
    source, inputs = probe_source(index["args"], index["kwargs"], heads, bool(request["loss"]))
    module = import_probe(job, source, f"training_{job.mode}")
    loss = eval(request["loss"], dict(names)) if request["loss"] else None
    probe = module.Probe(job.net.root, loss)
    probe.set_train(index["training"])
    given = [tensor_of(job.store.get(spec["key"]), _wanted(spec)) for spec in inputs]
    given += [tensor_of(job.store.get(s["key"]), _wanted(s)) for s in index["cotangents"]]
    places = dict.fromkeys(
        part["place"] for name in index["first"] for part in job.net.parts.get(name, ())
    )
    held = {place: held_at(job.net, place) for place in places}
    trained = {n: p for n, p in held.items() if isinstance(p, ms.Parameter) and p.requires_grad}
    weights = ms.ParameterTuple(list(trained.values()))
    optimizer = _optimizer(request, names, list(weights), index["rate"])
    gradient = ms.value_and_grad(probe, None, weights)
    step = module.compiled(gradient) if job.mode == "graph" else gradient
    restore(job.net, "")

    def stepped() -> Any:
        value, grads = step(*given)
        optimizer(tuple(leaf for leaf in flat(grads) if isinstance(leaf, ms.Tensor)))
        return value

    return _steps(job, index, stepped, optimizer, trained, emit)


def _steps(
    job: Job, index: Spec, stepped: Callable[[], Any], optimizer: Any,
    trained: Mapping[str, Any], emit: Emit,
) -> Answers:  # fmt: skip
    """Make the steps and compare after each; ``trained`` are the Parameters by place."""
    before = {place: array(weight).astype(np.float64) for place, weight in trained.items()}
    partners = {
        name: trained[part["place"]] for name in index["first"]
        if (part := _whole(job, name)) and part["place"] in trained
    }  # fmt: skip

    def same_as(expected: Spec, value: Any, weight: str) -> Measure:
        return _compare(job, expected, value, _layout(job, weight))

    found: Answers = []
    losses: list[float] = []
    why: Why | None = None
    for number in range(index["steps"]):
        value = stepped()
        losses.append(float(array(value)))
        rung = CURVE if number else LOSS
        found.append((rung, "", _compare(job, index["losses"][number], value, "")))
        if number == 0:
            found += _moved(job, index["first"], STEP, trained, before)
            state, why = state_measures(index["state"], optimizer, partners, same_as)
            found += state
        elif number == index["steps"] - 1:
            found += _moved(job, index["last"], CURVE, trained, before)
            found += _kept(index, optimizer, partners, same_as)
    plain, wide = (tuple(loss[side] for loss in index["losses"]) for side in ("plain", "wide"))
    emit(Trained(plain, wide, tuple(losses), why))
    return found


def _kept(index: Spec, optimizer: Any, partners: Mapping[str, Any], same_as: Compare) -> Answers:
    """Return the state after all steps, on the rung of the steps."""
    after = f"after {index['steps']} steps: "
    return [
        (CURVE, weight, replace(measure, detail=measure.detail and after + measure.detail))
        for _, weight, measure in state_measures(index["kept"], optimizer, partners, same_as)[0]
    ]


def _wanted(spec: Spec) -> str:
    """MindSpore's losses take labels in int32, torch's in int64."""
    return "int32" if spec.get("label") else str(spec["dtype"])


def _optimizer(request: Payload, names: Mapping[str, Any], params: list[Any], rate: float) -> Any:
    if request["optimizer"]:
        return eval(request["optimizer"], {**names, "mindspore": ms, "params": params})
    return ms.experimental.optim.SGD(params, rate, momentum=0.9)


def _moved(
    job: Job, wanted: Mapping[str, Spec], rung: str, trained: Mapping[str, Any],
    before: Mapping[str, Array],
) -> Answers:  # fmt: skip
    """Measure every weight that has a partner; the rung parameters lists the others."""
    found: Answers = []
    for name, expected in wanted.items():
        parts = job.net.parts.get(name, [])
        if not parts or any(part["place"] not in trained for part in parts):
            continue
        moves = [
            array(trained[part["place"]]).astype(np.float64) - before[part["place"]]
            for part in parts
        ]
        measure = compared_parts(job, expected, parts, moves)
        if not any(move.any() for move in moves) and measure.verdict is Verdict.DIVERGED:
            detail = "it does not move; " + measure.detail
            measure = Measure(measure.verdict, measure.elements, measure.error, measure.own,
                              measure.limit, detail)  # fmt: skip
        found.append((rung, name, measure))
    return found


def _whole(job: Job, weight: str) -> Spec | None:
    """Return the part of a weight that lies in one place as a whole."""
    parts = job.net.parts.get(weight, [])
    cut = any(part.get(name) is not None for part in parts for name in ("rows", "torch_rows"))
    return None if cut or not parts else parts[-1]


def _layout(job: Job, weight: str) -> str:
    part = _whole(job, weight)
    return part["layout"] if part else ""


def _compare(job: Job, expected: Spec, value: Any, layout: str) -> Measure:
    """Compare a Tensor, or an array in float64, whose dtype does not count."""
    if isinstance(value, ms.Tensor):
        return job.compared(expected, value, layout)
    return compared_parts(job, expected, [{"layout": layout}], [value])
