"""In: the tape of a torch model. Out: references and own errors, local and cumulative.

Local: the module is called on what it received in the float32 run. Cumulative: its result inside
the float64 run of the whole model.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from migrate.parity.exchange import ArrayStore, Spec
from migrate.parity.masks import PATH_DROPPING
from migrate.parity.messages import At, Emit
from migrate.parity.noise import OperatorLog, coarse_runs, draws_for
from migrate.parity.request import PLAIN, Draw
from migrate.parity.torch_record import (
    Call,
    Errors,
    Tape,
    Twins,
    annotate,
    change,
    describe,
    error,
    errors_of,
    in_float64,
    nudger,
    restore,
    run,
    same,
    tape,
    tensors,
    watched,
    widen,
)

CONTAINERS = (torch.nn.ModuleList, torch.nn.ModuleDict, torch.nn.ParameterList)
Place = tuple[str, int]


@dataclass
class Whole:
    """Results of the whole-model runs at every call."""

    references: dict[Place, list[torch.Tensor]] = field(default_factory=dict)
    own: dict[Place, list[float]] = field(default_factory=dict)
    coarse: dict[Place, list[float]] = field(default_factory=dict)
    reduction: dict[Place, float] = field(default_factory=dict)
    random: set[Place] = field(default_factory=set)
    note: str = ""


def record(
    twins: Twins, training: bool, folder: Path, emit: Emit, draw: Draw = PLAIN
) -> dict[str, Any]:
    """Write index.json and arrays of one forward rung to a folder; return a short summary."""
    folder.mkdir(parents=True, exist_ok=True)
    twins = replace(twins, arguments=drawn(twins.arguments, draw))
    store = ArrayStore(folder)
    for model in twins.every():
        model.train(training)
    recorded = tape(twins)
    emit(At(""))
    with torch.no_grad():
        whole = _whole(twins, recorded)
        calls = []
        for order, call in enumerate(recorded.calls):
            if draw.root_only and call.path:
                continue
            emit(At(call.path, call.index))
            calls.append(_entry(twins, call, order, whole, store, training))
    never = [
        path for path, module in twins.plain.named_modules()
        if path not in recorded.counts and not isinstance(module, CONTAINERS)
    ]  # fmt: skip
    args, kwargs = twins.arguments
    index = {
        "args": describe(args, store), "kwargs": describe(kwargs, store), "calls": calls,
        "counts": recorded.counts, "never": never, "training": training, "note": whole.note,
    }  # fmt: skip
    (folder / "index.json").write_text(json.dumps(index), encoding="utf-8")
    return {"calls": len(calls), "never": never}


def drawn(arguments: Any, draw: Draw) -> Any:
    """Return the arguments as a draw changes them; see `Draw`."""

    def tensor(one: torch.Tensor) -> torch.Tensor:
        if not one.is_floating_point():
            held = draw.put is not None and one.dtype is not torch.bool and one.numel()
            return _put(one, draw.put) if held else one  # type: ignore[arg-type]
        one = one if draw.factor == 1.0 else one * draw.factor
        for axis in range(2, one.ndim) if draw.longer else ():
            size = one.shape[axis]
            last = one.narrow(axis, size - 1, 1)
            one = torch.cat([one, last], axis) if draw.longer > 0 else one.narrow(axis, 0, size - 1)
        return one

    return arguments if draw.is_plain else change(arguments, tensor)


def _put(numbers: torch.Tensor, constant: int) -> torch.Tensor:
    """Return whole numbers that end on a constant, as padded tokens do, where it is one of them."""
    if numbers.ndim == 0 or not 0 <= constant <= int(numbers.max()):
        return numbers
    changed = numbers.clone()
    changed[..., -max(numbers.shape[-1] // 4, 1) :] = constant
    return changed


def _whole(twins: Twins, recorded: Tape) -> Whole:
    whole = Whole()
    results = {(call.path, call.index): tensors(call.result) for call in recorded.calls}

    def keep(path: str, index: int, value: Any) -> None:
        if (path, index) in results:
            whole.references[path, index] = [widen(tensor) for tensor in tensors(value)]

    try:
        with in_float64(), watched(twins.double, keep):
            run(twins.double, twins, widen)
    except (RuntimeError, TypeError, ValueError) as problem:
        whole.note = f"no float64 reference for the whole model: {problem}"[:300]
    for place, values in results.items():
        known = whole.references.get(place, [])
        if len(known) != len(values):
            whole.references[place] = [widen(tensor) for tensor in values]
        whole.own[place] = [
            error(t, r) for t, r in zip(values, whole.references[place], strict=False)
        ]
    draws = draws_for(tensor for values in results.values() for tensor in values)
    log = _nudged(twins, whole, twins.seed)
    for number in range(1, draws):
        _nudged(twins, whole, twins.seed + number)
    coarse_runs(log, twins.seed, lambda: _coarse(twins, whole), draws)
    _find_random(twins, whole, results)
    return whole


def _errors_into(whole: Whole, target: dict[Place, list[float]]) -> Callable[[str, int, Any], None]:
    def keep(path: str, index: int, value: Any) -> None:
        references = whole.references.get((path, index))
        found = tensors(value)
        if references is None or len(found) != len(references):
            return
        fresh = [error(tensor, ref) for tensor, ref in zip(found, references, strict=False)]
        before = target.get((path, index), [0.0] * len(fresh))
        target[path, index] = [max(pair) for pair in zip(before, fresh, strict=False)]

    return keep


def _nudged(twins: Twins, whole: Whole, seed: int) -> OperatorLog:
    """Make a nudged run, and note how much was reduced up to each call."""
    log = OperatorLog(seed)
    store = _errors_into(whole, whole.own)

    def keep(path: str, index: int, value: Any) -> None:
        whole.reduction[path, index] = log.reduction
        if log.random:  # all that follows may depend on it
            whole.random.add((path, index))
        store(path, index, value)

    with log, watched(twins.nudged, keep):
        run(twins.nudged, twins, nudger(seed))
    return log


def _coarse(twins: Twins, whole: Whole) -> None:
    with watched(twins.plain, _errors_into(whole, whole.coarse)):
        run(twins.plain, twins, torch.clone)


def _find_random(twins: Twins, whole: Whole, results: dict[Place, list[torch.Tensor]]) -> None:
    def keep(path: str, index: int, value: Any) -> None:
        before = results.get((path, index))
        if before is None:
            return
        if not same(tensors(value), before):
            whole.random.add((path, index))

    args, kwargs = twins.arguments
    restore(twins, twins.plain, "")
    torch.manual_seed(twins.seed + 1)
    with watched(twins.plain, keep):
        twins.plain(*change(args, torch.clone), **change(kwargs, torch.clone))


def _entry(
    twins: Twins, call: Call, order: int, whole: Whole, store: ArrayStore, training: bool
) -> Spec:
    place = (call.path, call.index)
    entry = local_entry(twins, call, order, store, place in whole.random, training)
    count = len(whole.references[place])
    cumulative = Errors(
        whole.references[place], whole.own[place], whole.coarse.get(place, [0.0] * count),
        whole.reduction.get(place, 0.0), place in whole.random,
    )  # fmt: skip
    entry["cumulative"] = annotate(call.result, cumulative, store)
    return entry


def local_entry(
    twins: Twins, call: Call, order: int, store: ArrayStore, suspect: bool = False,
    training: bool = False,
) -> Spec:  # fmt: skip
    """Describe a call of one module by itself; ``suspect``: its numbers may be random."""
    local, state = _local(twins, call, suspect, training)
    return {
        "path": call.path, "call": call.index, "order": order,
        "args": describe(call.args, store), "kwargs": describe(call.kwargs, store),
        "local": annotate(call.result, local, store),
        "state": {name: annotate(value, errors, store) for name, (value, errors) in state.items()},
    }  # fmt: skip


State = dict[str, tuple[torch.Tensor, Errors]]
Outcome = tuple[list[torch.Tensor], dict[str, torch.Tensor]]


def _local(twins: Twins, call: Call, suspect: bool, training: bool) -> tuple[Errors, State]:
    """Run the module alone: float64, nudged, coarse; and float32 again for its statistics."""
    log = OperatorLog(twins.seed)
    plain, random = tensors(call.result), False
    after: dict[str, torch.Tensor] = {}
    if suspect or (training and _has_state(twins, call)):
        again, after = _alone(twins, twins.plain, call, torch.clone, twins.seed)
        random = suspect and not same(again, plain)
    try:
        with in_float64():
            wide = _alone(twins, twins.double, call, widen, twins.seed)
        if [t.shape for t in wide[0]] != [t.shape for t in plain]:
            raise ValueError("float64 changes the shape")
    except (RuntimeError, TypeError, ValueError):
        wide = [widen(t) for t in plain], {name: widen(t) for name, t in after.items()}
    with log:
        nudged = [_alone(twins, twins.nudged, call, nudger(twins.seed), twins.seed)]
    draws = draws_for(plain)
    for number in range(1, draws):
        with OperatorLog(twins.seed + number):
            change = nudger(twins.seed + number)
            nudged.append(_alone(twins, twins.nudged, call, change, twins.seed))
    coarse = coarse_runs(
        log, twins.seed, lambda: _alone(twins, twins.plain, call, torch.clone, twins.seed), draws
    )
    name = type(twins.plain.get_submodule(call.path)).__name__
    random = random or log.random or (training and name in PATH_DROPPING)
    moved, rough = ([run[0] for run in runs] for runs in (nudged, coarse))
    main = errors_of(wide[0], [plain, *moved], rough, log.reduction, random)
    state = {}
    for name, value in after.items() if training else ():
        moved, rough = ([[run[1][name]] for run in runs] for runs in (nudged, coarse))
        found = errors_of([wide[1][name]], [[value], *moved], rough, log.reduction, random)
        state[name] = (value, found)
    return main, state


def _has_state(twins: Twins, call: Call) -> bool:
    module = twins.plain.get_submodule(call.path)
    return next(module.named_buffers(recurse=call.path == ""), None) is not None


def _alone(
    twins: Twins, root: torch.nn.Module, call: Call, change_tensor: Callable[[Any], Any], seed: int
) -> Outcome:
    """Call one module on recorded inputs; its results, and its own floating buffers after it.

    The root answers the buffers of all modules, so that a whole run shows them too.
    """
    restore(twins, root, call.path)
    module = root.get_submodule(call.path)
    torch.manual_seed(seed + 7)
    result = module(*change(call.args, change_tensor), **change(call.kwargs, change_tensor))
    own = module.named_buffers(recurse=call.path == "")
    state = {name: t.detach().clone() for name, t in own if t.is_floating_point()}
    return [tensor.detach() for tensor in tensors(result)], state
