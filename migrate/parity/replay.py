"""Run a Cell on what its torch partner received, and compare what it gives."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import mindspore as ms

from migrate.parity.cells import Net, Unknown, held_at, lend, put, restore, signature
from migrate.parity.channel import Emit, Payload, describe
from migrate.parity.compare import Measure, compare, merge
from migrate.parity.exchange import Array, ArrayStore, Spec, opaque_part, read_index
from migrate.parity.inner_calls import Seen, entry_of, watched
from migrate.parity.layout import apply_layout
from migrate.parity.ms_values import array, rebuild
from migrate.parity.ms_values import describe as describe_value
from migrate.parity.tolerance import Strictness
from migrate.records.outcomes import Verdict


@dataclass(frozen=True)
class Job:
    """One rung in one mode; ``paths`` gives the Cell's path for a module's path."""

    net: Net
    paths: dict[str, str]
    store: ArrayStore
    mode: str
    strictness: Strictness
    scratch: Path = Path()

    def values(self, entry: Spec) -> tuple[Any, Any]:
        """Return the arguments of a recorded call. Raises ValueError for an opaque part."""
        return rebuild(entry["args"], self.store), rebuild(entry["kwargs"], self.store)

    def compared(self, expected: Spec, value: Any, layout: str = "", flat: bool = False) -> Measure:
        """Compare a result with torch's, which lies in another layout; see `compare`."""
        actual, read = describe_value(value)
        if layout:
            expected = {**expected, "shape": actual["shape"]}

        def reference(spec: Spec) -> Array:
            return apply_layout(self.store.get(spec["key"]), layout)

        return compare(expected, actual, reference, read, self.strictness, flat)

    def statistics(self, entry: Spec, held: Callable[[str], str] = str) -> list[Measure]:
        """Compare the moving statistics of a Cell after its call, where they have a partner.

        ``held`` gives for a tensor's place where its numbers are: another Cell may have run for it.
        """
        measures = []
        for name, expected in entry["state"].items():
            part = self.net.part(key_of(entry, name))
            if part is not None:
                found = held_at(self.net, held(part["place"]))
                measure = self.compared(expected, found, part["layout"])
                detail = f"{name} after the run: {measure.detail}" if measure.detail else ""
                measures.append(replace(measure, detail=detail))
        return measures


def opened(net: Net, request: Payload) -> tuple[Spec, Job]:
    """Return the index of a recorded folder and the job to compare it, in its mode."""
    folder = Path(request["folder"])
    paths = {module: cell for module, cell in request["paths"].items() if cell in net.cells}
    strictness = Strictness(**request["strictness"])
    set_mode(request["mode"])
    job = Job(net, paths, ArrayStore(folder), request["mode"], strictness, Path(request["scratch"]))
    return read_index(folder), job


def key_of(entry: Spec, name: str) -> str:
    """Return the name in the whole model of a module's tensor."""
    return f"{entry['path']}.{name}" if entry["path"] else name


def set_mode(mode: str) -> None:
    """Set PyNative or Graph; STRICT, because LAX can give right values with zero gradients."""
    if mode == "graph":
        ms.set_context(mode=ms.GRAPH_MODE, jit_syntax_level=ms.STRICT)
    else:
        ms.set_context(mode=ms.PYNATIVE_MODE)


def replay(net: Net, request: Payload, emit: Emit) -> Payload:
    """Run all calls of a folder but those in ``done``; emits ``at`` before and ``check`` after."""
    index, job = opened(net, request)
    net.root.set_train(index["training"])
    done = {tuple(place) for place in request["done"]}
    whole: dict[tuple[str, int], Measure] = {}
    if job.mode == "pynative" and request["whole"]:
        emit({"at": ["", -1]})
        whole = _cumulative(job, index)
    groups: dict[Any, str] = {}
    for entry in index["calls"]:
        place = (entry["path"], entry["call"])
        if place in done or entry["path"] not in job.paths:
            continue
        if request["root_only"] and entry["path"]:
            continue
        emit({"at": list(place)})
        measure = local_measure(job, entry, groups)
        answer = {"path": entry["path"], "call": entry["call"], "local": measure.as_json()}
        if place in whole:
            answer["cumulative"] = whole[place].as_json()
        emit({"check": answer})
    return {}


def blocked(error: BaseException) -> Measure:
    """Return the measure of a Cell that raised."""
    answer = describe(error)
    return Measure(Verdict.BLOCKED, detail=f"{answer['type']}: {answer['message']}")


def _cumulative(job: Job, index: Spec) -> dict[tuple[str, int], Measure]:
    """Run the whole model; compare every call with torch's float64 run of the whole model."""
    expected = {(entry["path"], entry["call"]): entry["cumulative"] for entry in index["calls"]}
    found: dict[tuple[str, int], Measure] = {}
    counts: dict[str, int] = {}

    def hook(path: str) -> Callable[[Any, Any, Any], None]:
        def keep(cell: Any, inputs: Any, result: Any) -> None:
            place = (path, counts.get(path, 0))
            counts[path] = place[1] + 1
            if place in expected:
                found[place] = job.compared(expected[place], result)

        return keep

    handles = [
        job.net.cells[cell].register_forward_hook(hook(path)) for path, cell in job.paths.items()
    ]
    restore(job.net, "")
    try:
        args, kwargs = job.values(index)
        job.net.root(*args, **kwargs)
    except Exception as error:  # user code: the local checks say which Cell it was
        found.setdefault(("", 0), blocked(error))
    finally:
        for handle in handles:
            handle.remove()
        restore(job.net, "")
    return found


def local_measure(job: Job, entry: Spec, groups: dict[Any, str]) -> Measure:
    """Feed one Cell what its torch partner received; its result and its moving statistics."""
    path = job.paths[entry["path"]]
    why = opaque_part(entry["args"]) or opaque_part(entry["kwargs"])
    if why:
        return Measure(Verdict.NOT_RUN, detail=f"its input holds {why}")
    stand_in = _stand_in(job, path, entry, groups)
    restore(job.net, path)
    before = lend(job.net, path, stand_in) if stand_in != path else {}

    def held(place: str) -> str:
        return (stand_in + place.removeprefix(path)).lstrip(".")

    try:
        args, kwargs = job.values(entry)
        result = job.net.cells[stand_in](*args, **kwargs)
        own = job.compared(entry["local"], result, flat=job.mode == "graph")
        return merge([own, *job.statistics(entry, held)])
    except Exception as error:  # whatever user code raises is a finding about this Cell
        return blocked(error)
    finally:
        for place, numbers in before.items():
            put(job.net, place, numbers)
        restore(job.net, path)


def inner_calls(net: Net, request: Payload) -> Payload:
    """Run one Cell on torch's input (PyNative): the result of every call in its code."""
    entry, training = entry_of(request)
    store = ArrayStore(Path(request["folder"]))
    seen = Seen(ArrayStore(Path(request["into"])), _arrays)
    cell = net.cells[request["cell"]]
    set_mode("pynative")
    net.root.set_train(training)
    restore(net, "")
    try:
        args, kwargs = rebuild(entry["args"], store), rebuild(entry["kwargs"], store)
        with watched(Path(net.source), type(cell), seen.observe):
            cell(*args, **kwargs)
    finally:
        restore(net, "")
    return {"rows": seen.rows}


def _arrays(value: Any) -> list[Array]:
    items = value if isinstance(value, (tuple, list)) else (value,)
    return [array(item) for item in items if isinstance(item, ms.Tensor)]


def _stand_in(job: Job, path: str, entry: Spec, groups: dict[Any, str]) -> str:
    """Return, in graph mode, the first Cell of equal structure and input shapes: compiled once."""
    if job.mode != "graph" or not path:
        return path
    try:
        key = (signature(job.net.cells[path]), _shapes(entry["args"]), _shapes(entry["kwargs"]))
        return groups.setdefault(key, path)
    except Unknown:
        return path


def _shapes(spec: Spec) -> str:
    """Return the description without its keys: equal when the same graph serves."""
    if spec["t"] == "tensor":
        return f"{spec['dtype']}{spec['shape']}"
    if "items" in spec:
        return f"{spec['t']}{spec.get('keys')}({','.join(_shapes(i) for i in spec['items'])})"
    return json.dumps(spec, sort_keys=True)
