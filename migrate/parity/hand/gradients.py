"""In: torch's gradients for fixed cotangents. Out: one measure for each weight and input.

Like ms_gradients.py, but a torch tensor may lie in several places of the net or in part of one,
and the result may have another structure; then heads correspond by their order.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np

from migrate.outcomes import Verdict
from migrate.parity.cells import held_at, restore
from migrate.parity.channel import Emit, Payload
from migrate.parity.compare import Measure, compare, merge
from migrate.parity.exchange import ArrayStore, Spec, encode, leaves, read_index
from migrate.parity.hand.parts import own_part, torch_part
from migrate.parity.ms_gradients import FLOATING, Job, flat, import_probe
from migrate.parity.ms_values import array, rebuild, tensor_of
from migrate.parity.probe import probe_source
from migrate.parity.replay import blocked, known_paths, set_mode
from migrate.parity.tolerance import Strictness


@dataclass(frozen=True)
class Pieces:
    """The parts of each torch tensor, by its name."""

    by_key: dict[str, list[Spec]]

    def of(self, key: str) -> list[Spec]:
        return self.by_key.get(key, [])


def gradients(net: Any, request: Payload, emit: Emit) -> Payload:
    """Differentiate every case of a folder but those in ``done``; emits ``check`` events."""
    folder = Path(request["folder"])
    index = read_index(folder)
    paths = known_paths(net, request)
    strictness = Strictness(**request["strictness"])
    job = Job(net, paths, ArrayStore(folder), request["mode"], strictness, Path(request["scratch"]))
    by_key: dict[str, list[Spec]] = {}
    for part in request["parts"]:
        by_key.setdefault(part["key"], []).append(part)
    set_mode(job.mode)
    done = {tuple(place) for place in request["done"]}
    for entry in index["cases"]:
        if (entry["path"], entry["call"]) in done or entry["path"] not in paths:
            continue
        emit({"at": [entry["path"], entry["call"]]})
        net.root.set_train(entry["training"])
        for name, measure in _case(job, entry, Pieces(by_key)).items():
            emit({"check": {"path": entry["path"], "name": name, "local": measure.as_json()}})
    return {}


def _case(job: Job, entry: Spec, pieces: Pieces) -> dict[str, Measure]:
    if entry["why"]:
        return {"": Measure(Verdict.NOT_RUN, detail=entry["why"])}
    wanted = {name: [] if "input[" in name else pieces.of(_key(entry, name))
              for name in entry["wanted"]}  # fmt: skip
    try:
        found = _differentiate(job, entry, wanted)
    except Exception as error:  # whatever user code raises is a finding about this Cell
        return {"": blocked(error)}
    finally:
        restore(job.net, "")
    return {
        name: _compare(job, entry["wanted"][name],
                       [(part, found[place]) for part, place in _sources(name, parts)])
        for name, parts in wanted.items() if all(p in found for _, p in _sources(name, parts))
        and _sources(name, parts)
    }  # fmt: skip


def _key(entry: Spec, name: str) -> str:
    return f"{entry['path']}.{name}" if entry["path"] else name


def _sources(name: str, parts: list[Spec]) -> list[tuple[Spec | None, str]]:
    return [(None, name)] if "input[" in name else [(part, part["place"]) for part in parts]


def _differentiate(job: Job, entry: Spec, wanted: dict[str, list[Spec]]) -> dict[str, Any]:
    """Gradients by place, and of the inputs by torch's name for them."""
    cell = job.net.cells[job.paths[entry["path"]]]
    heads = _own_heads(job, cell, entry)
    source, inputs = probe_source(entry["args"], entry["kwargs"], heads)
    module = import_probe(job, source, f"hand{entry['order']}_{job.mode}")
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
    return {name: array(value) for name, value in zip(names, found, strict=True)}


def _own_heads(job: Job, cell: Any, entry: Spec) -> list[str]:
    """Places of the differentiated results in MindSpore's structure, by their order."""
    set_mode("pynative")
    names = iter(range(10_000))
    values = _values(job, entry)
    result = cell(*values[0], **values[1])
    restore(job.net, "")
    set_mode(job.mode)

    def tensor(item: Any) -> Spec | None:
        return {"t": "tensor", "number": next(names)} if isinstance(item, ms.Tensor) else None

    places = [place for place, leaf in leaves(encode(result, tensor)) if leaf["t"] == "tensor"]
    if len(places) != entry["results"]:
        raise RuntimeError(f"{len(places)} tensors come out, in torch {entry['results']}")
    return [places[number] for number in entry["head_numbers"]]


def _values(job: Job, entry: Spec) -> tuple[Any, Any]:
    return rebuild(entry["args"], job.store), rebuild(entry["kwargs"], job.store)


def _compare(job: Job, expected: Spec, pieces: list[tuple[Spec | None, Any]]) -> Measure:
    """A whole tensor at once: one of its pieces alone may have no gradient but rounding errors.

    Where torch's tensor lies twice in the net (it should be shared), each place counts by itself.
    """
    reference = job.store.get(expected["key"])
    if len(pieces) > 1 and all(part and part["torch_rows"] is None for part, _ in pieces):
        return merge([_compare(job, expected, [piece]) for piece in pieces])
    wanted = [reference if part is None else torch_part(reference, part) for part, _ in pieces]
    found = [value if part is None else own_part(value, part) for part, value in pieces]
    numbers, value = (np.concatenate([a.ravel() for a in arrays]) for arrays in (wanted, found))
    if [a.shape for a in wanted] == [a.shape for a in found] and len(pieces) == 1:
        numbers, value = wanted[0], found[0]
    actual = {"t": "tensor", "key": "", "dtype": str(value.dtype), "shape": list(value.shape)}
    expected = {**expected, "shape": list(numbers.shape)}
    return compare(expected, actual, lambda _: numbers, lambda _: value, job.strictness)
