"""In: torch's gradients for fixed cotangents. Out: one measure for each weight and input."""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mindspore as ms

from migrate.outcomes import Verdict
from migrate.parity.cells import Net, held_at, restore
from migrate.parity.channel import Emit, Payload
from migrate.parity.compare import Measure, compare
from migrate.parity.exchange import Array, ArrayStore, Spec, read_index
from migrate.parity.layout import apply_layout
from migrate.parity.ms_values import describe as describe_value
from migrate.parity.ms_values import tensor_of
from migrate.parity.probe import probe_source
from migrate.parity.replay import blocked, known_paths, set_mode
from migrate.parity.tolerance import Strictness


@dataclass(frozen=True)
class Job:
    """All cases of one folder in one mode."""

    net: Net
    paths: dict[str, str]
    store: ArrayStore
    mode: str
    strictness: Strictness
    scratch: Path


def replay_gradients(net: Net, request: Payload, emit: Emit) -> Payload:
    """Differentiate every case of a folder but those in ``done``; emits ``check`` events."""
    folder = Path(request["folder"])
    index = read_index(folder)
    strictness = Strictness(**request["strictness"])
    paths, scratch = known_paths(net, request), Path(request["scratch"])
    job = Job(net, paths, ArrayStore(folder), request["mode"], strictness, scratch)
    set_mode(job.mode)
    done = {tuple(place) for place in request["done"]}
    for entry in index["cases"]:
        place = (entry["path"], entry["call"])
        if place in done or entry["path"] not in paths:
            continue
        emit({"at": list(place)})
        net.root.set_train(entry["training"])
        for name, measure in _case(job, entry).items():
            emit({"check": {"path": entry["path"], "name": name, "local": measure.as_json()}})
    return {}


def _case(job: Job, entry: Spec) -> dict[str, Measure]:
    if entry["why"]:
        return {"": Measure(Verdict.NOT_RUN, detail=entry["why"])}
    try:
        found = _differentiate(job, entry)
    except Exception as error:  # whatever user code raises is a finding about this Cell
        return {"": blocked(error)}
    finally:
        restore(job.net, "")
    return {name: _compare(job, entry, name, value) for name, value in found.items()}


def _differentiate(job: Job, entry: Spec) -> dict[str, Any]:
    """Gradients by torch's names, for those that have a partner."""
    source, inputs = probe_source(entry["args"], entry["kwargs"], entry["heads"])
    module = import_probe(job, source, f"{entry['order']}_{job.mode}")
    probe = module.Probe(job.net.cells[job.paths[entry["path"]]])
    probe.set_train(entry["training"])
    wanted = {name: _place(job, entry, name) for name in entry["wanted"] if "input[" not in name}
    partners = {name: held_at(job.net, p) for name, p in wanted.items() if p is not None}
    partners = {n: p for n, p in partners.items() if isinstance(p, ms.Parameter)}
    floating = [i for i, spec in enumerate(inputs) if spec["dtype"] in FLOATING]
    values = [tensor_of(job.store.get(spec["key"]), spec["dtype"]) for spec in inputs]
    for spec in entry["cotangents"]:
        values.append(tensor_of(job.store.get(spec["key"]), spec["dtype"]))
    weights = ms.ParameterTuple(list(partners.values())) if partners else None
    gradient = ms.grad(probe, tuple(floating) if floating else None, weights)
    step = module.compiled(gradient) if job.mode == "graph" else gradient
    restore(job.net, "")
    found = [leaf for leaf in flat(step(*values)) if isinstance(leaf, ms.Tensor)]
    names = [f"input[{i}]" for i in floating] + list(partners)
    if len(found) != len(names):
        raise RuntimeError(f"ms.grad gives {len(found)} gradients where {len(names)} were asked")
    return dict(zip(names, found, strict=False))


FLOATING = ("float16", "bfloat16", "float32", "float64")


def import_probe(job: Job, source: str, label: str) -> Any:
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


def _place(job: Job, entry: Spec, name: str) -> str | None:
    return job.net.places.get(f"{entry['path']}.{name}" if entry["path"] else name)


def _compare(job: Job, entry: Spec, name: str, value: Any) -> Measure:
    expected = entry["wanted"][name]
    key = f"{entry['path']}.{name}" if entry["path"] else name
    layout = "" if "input[" in name else job.net.layouts.get(key, "")
    actual, read = describe_value(value)
    if layout:
        expected = {**expected, "shape": actual["shape"]}

    def reference(spec: Spec) -> Array:
        return apply_layout(job.store.get(spec["key"]), layout)

    return compare(expected, actual, reference, read, job.strictness)
