"""Differentiate Cells for torch's cotangents, and measure each gradient of a weight or input."""

from __future__ import annotations

import importlib.util
import sys
from typing import Any

import mindspore as ms
import numpy as np

from migrate.parity.cells import (
    Net,
    array,
    dtype_name,
    held_at,
    own_part,
    restore,
    tensor_of,
    torch_part,
)
from migrate.parity.compare import Measure, compare, merge
from migrate.parity.exchange import Array, Spec, encode, leaves
from migrate.parity.messages import At, Emit, Payload, Ran
from migrate.parity.probe import probe_source
from migrate.parity.replay import Job, blocked, key_of, opened, set_mode
from migrate.records.outcomes import Verdict, Why

FLOATING = ("float16", "bfloat16", "float32", "float64")


def gradients(net: Net, request: Payload, emit: Emit) -> Payload:
    """Differentiate every case of a folder but those in ``done``; emits ``check`` events."""
    index, job = opened(net, request)
    done = {tuple(place) for place in request["done"]}
    for entry in index["cases"]:
        place = (entry["path"], entry["call"])
        if place in done or entry["path"] not in job.paths:
            continue
        emit(At(*place))
        net.root.set_train(entry["training"])
        for name, measure in _case(job, entry).items():
            emit(Ran(entry["path"], local=measure, name=name))
    return {}


def _case(job: Job, entry: Spec) -> dict[str, Measure]:
    if entry["why"]:
        why = Why.NO_GRADIENT if entry.get("free") else None
        return {"": Measure(Verdict.NOT_RUN, detail=entry["why"], why=why)}
    wanted = {
        name: [] if "input[" in name else job.net.parts.get(key_of(entry, name), [])
        for name in entry["wanted"]
    }
    try:
        found = _differentiate(job, entry, wanted)
    except Exception as error:  # whatever user code raises is a finding about this Cell
        return {"": blocked(error)}
    finally:
        restore(job.net, "")
    measures: dict[str, Measure] = {}
    for name, parts in wanted.items():
        expected, places = entry["wanted"][name], [part["place"] for part in parts] or [name]
        if all(place in found for place in places):
            values = [found[place] for place in places]
            arrays, dtype = [array(value) for value in values], dtype_name(values[0].dtype)
            measures[name] = compared_parts(job, expected, parts or [{"layout": ""}], arrays, dtype)
    return measures


def _differentiate(job: Job, entry: Spec, wanted: dict[str, list[Spec]]) -> dict[str, Any]:
    """Return gradients by place, and those of the inputs by torch's name for them."""
    cell = job.net.cells[job.paths[entry["path"]]]
    heads = own_heads(job, cell, entry) if job.net.port else entry["heads"]
    source, inputs = probe_source(entry["args"], entry["kwargs"], heads)
    module = import_probe(job, source, f"{entry['order']}_{job.mode}")
    probe = module.Probe(cell)
    probe.set_train(entry["training"])
    places = dict.fromkeys(part["place"] for parts in wanted.values() for part in parts)
    held = {place: held_at(job.net, place) for place in places}
    held = {place: value for place, value in held.items() if isinstance(value, ms.Parameter)}
    floating = [i for i, spec in enumerate(inputs) if spec["dtype"] in FLOATING]
    values = [tensor_of(job.store.get(spec["key"]), spec["dtype"])
              for spec in (*inputs, *entry["cotangents"])]  # fmt: skip
    weights = ms.ParameterTuple(list(held.values())) if held else None
    gradient = ms.grad(probe, tuple(floating) if floating else None, weights)
    step = module.compiled(gradient) if job.mode == "graph" else gradient
    restore(job.net, "")
    found = [leaf for leaf in flat(step(*values)) if isinstance(leaf, ms.Tensor)]
    names = [f"input[{i}]" for i in floating] + list(held)
    if len(found) != len(names):
        raise RuntimeError(f"ms.grad gives {len(found)} gradients where {len(names)} were asked")
    return dict(zip(names, found, strict=True))


def own_heads(job: Job, cell: Any, entry: Spec) -> list[str]:
    """Return the places of the differentiated results in MindSpore's structure, by their order."""
    set_mode("pynative")
    args, kwargs = job.values(entry)
    result = cell(*args, **kwargs)
    restore(job.net, "")
    set_mode(job.mode)

    def tensor(item: Any) -> Spec | None:
        return {"t": "tensor"} if isinstance(item, ms.Tensor) else None

    places = [place for place, leaf in leaves(encode(result, tensor)) if leaf["t"] == "tensor"]
    if len(places) != entry["results"]:
        raise RuntimeError(f"{len(places)} tensors come out, in torch {entry['results']}")
    return [places[number] for number in entry["head_numbers"]]


def compared_parts(
    job: Job, expected: Spec, parts: list[Spec], values: list[Array], dtype: str = ""
) -> Measure:
    """Compare a whole tensor at once: a part of it alone may have nothing but rounding errors.

    Where torch's tensor lies twice in the net (it should be shared), each place counts by itself.
    """
    cut = any(part.get("torch_rows") is not None for part in parts)
    if len(parts) > 1 and not cut:
        pairs = zip(parts, values, strict=True)
        return merge([compared_parts(job, expected, [part], [value], dtype)
                      for part, value in pairs])  # fmt: skip
    reference = job.store.get(expected["key"])
    wanted = [torch_part(reference, part) for part in parts]
    found = [own_part(value, part) for part, value in zip(parts, values, strict=True)]
    one, other = wanted[0], found[0]
    if len(parts) > 1:
        one = np.concatenate([numbers.ravel() for numbers in wanted])
        other = np.concatenate([numbers.ravel() for numbers in found])
    actual = {**expected, "dtype": dtype or expected["dtype"], "shape": list(other.shape)}
    expected = {**expected, "shape": list(one.shape)}
    return compare(expected, actual, lambda _: one, lambda _: other, job.strictness)


def import_probe(job: Job, source: str, label: str) -> Any:
    """Import the source of a probe from a file of its own, which graph mode asks for."""
    job.scratch.mkdir(parents=True, exist_ok=True)
    path = job.scratch / f"probe_{label}.py"
    number = 0
    while path.exists():  # a file that was compiled once keeps its text
        number += 1
        path = job.scratch / f"probe_{label}_{number}.py"
    path.write_text(source, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(f"{job.scratch.parent.name}_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[module.__name__] = module
    spec.loader.exec_module(module)
    return module


def flat(value: Any) -> list[Any]:
    if isinstance(value, (tuple, list)):
        return [leaf for item in value for leaf in flat(item)]
    return [value]
