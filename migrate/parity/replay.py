"""In: what torch's modules received and returned. Out: one measure for each call of each Cell."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import mindspore as ms

from migrate.outcomes import Verdict
from migrate.parity.cells import Net, Unknown, held_at, lend, put, restore, signature
from migrate.parity.channel import Emit, Payload, describe
from migrate.parity.compare import Measure, compare, merge
from migrate.parity.exchange import Array, ArrayStore, Spec, opaque_part, read_index
from migrate.parity.inner_calls import Seen, entry_of, watched
from migrate.parity.layout import apply_layout
from migrate.parity.ms_values import array, rebuild
from migrate.parity.ms_values import describe as describe_value
from migrate.parity.tolerance import Strictness

MODES = {"pynative": ms.PYNATIVE_MODE, "graph": ms.GRAPH_MODE}


@dataclass(frozen=True)
class Replay:
    """One forward rung in one mode; ``paths`` gives the Cell's path for a module's path."""

    net: Net
    paths: dict[str, str]
    store: ArrayStore
    mode: str
    training: bool
    strictness: Strictness


def set_mode(mode: str) -> None:
    """PyNative or Graph; STRICT, because LAX can give right values with zero gradients."""
    if mode == "graph":
        ms.set_context(mode=ms.GRAPH_MODE, jit_syntax_level=ms.STRICT)
    else:
        ms.set_context(mode=ms.PYNATIVE_MODE)


def replay(net: Net, request: Payload, emit: Emit) -> Payload:
    """Run all calls of a folder but those in ``done``; emits ``at`` before and ``check`` after."""
    folder = Path(request["folder"])
    index = read_index(folder)
    job = Replay(
        net, known_paths(net, request), ArrayStore(folder), request["mode"], index["training"],
        Strictness(**request["strictness"]),
    )  # fmt: skip
    set_mode(job.mode)
    net.root.set_train(job.training)
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
        measures = local_measure(job, entry, groups)
        answer = {"path": entry["path"], "call": entry["call"], "local": measures.as_json()}
        if place in whole:
            answer["cumulative"] = whole[place].as_json()
        emit({"check": answer})
    return {}


def known_paths(net: Net, request: Payload) -> dict[str, str]:
    """Module path -> Cell path, for the Cells that exist."""
    return {module: cell for module, cell in request["paths"].items() if cell in net.cells}


def blocked(error: BaseException) -> Measure:
    """The measure of a Cell that raised."""

    answer = describe(error)
    return Measure(Verdict.BLOCKED, detail=f"{answer['type']}: {answer['message']}")


def _cumulative(job: Replay, index: Spec) -> dict[tuple[str, int], Measure]:
    """Run the whole model; compare every call with torch's float64 run of the whole model."""
    expected = {(entry["path"], entry["call"]): entry["cumulative"] for entry in index["calls"]}
    found: dict[tuple[str, int], Measure] = {}
    counts: dict[str, int] = {}
    handles = [
        job.net.cells[cell].register_forward_hook(_hook(path, counts, expected, found, job))
        for path, cell in job.paths.items()
    ]
    restore(job.net, "")
    try:
        args, kwargs = rebuild(index["args"], job.store), rebuild(index["kwargs"], job.store)
        job.net.root(*args, **kwargs)
    except Exception as error:  # user code: the local checks say which Cell it was
        found.setdefault(("", 0), blocked(error))
    finally:
        for handle in handles:
            handle.remove()
        restore(job.net, "")
    return found


def _hook(
    path: str,
    counts: dict[str, int],
    expected: dict[tuple[str, int], Spec],
    found: dict[tuple[str, int], Measure],
    job: Replay,
) -> Callable[[Any, Any, Any], None]:
    def keep(cell: Any, inputs: Any, result: Any) -> None:
        place = (path, counts.get(path, 0))
        counts[path] = place[1] + 1
        if place in expected:
            found[place] = _compare(job, expected[place], result)

    return keep


def _compare(job: Replay, expected: Spec, result: Any) -> Measure:
    actual, read = describe_value(result)
    flat = job.mode == "graph"
    return compare(expected, actual, lambda s: job.store.get(s["key"]), read, job.strictness, flat)


def local_measure(job: Replay, entry: Spec, groups: dict[Any, str]) -> Measure:
    """Feed one Cell what its torch partner received; its result and its moving statistics."""
    path = job.paths[entry["path"]]
    why = opaque_part(entry["args"]) or opaque_part(entry["kwargs"])
    if why:
        return Measure(Verdict.NOT_RUN, detail=f"its input holds {why}")
    stand_in = _stand_in(job, path, entry, groups)
    restore(job.net, path)
    before = lend(job.net, path, stand_in) if stand_in != path else {}
    try:
        args, kwargs = rebuild(entry["args"], job.store), rebuild(entry["kwargs"], job.store)
        result = job.net.cells[stand_in](*args, **kwargs)
        own = [_compare(job, entry["local"], result)]

        def held(place: str) -> str:
            return (stand_in + place.removeprefix(path)).lstrip(".")

        return merge(own + statistics(job.net, job.store, job.strictness, entry, held))
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


def _stand_in(job: Replay, path: str, entry: Spec, groups: dict[Any, str]) -> str:
    """In graph mode, the first Cell of equal structure and input shapes: compiled once."""
    if job.mode != "graph" or not path:
        return path
    try:
        key = (signature(job.net.cells[path]), _shapes(entry["args"]), _shapes(entry["kwargs"]))
        return groups.setdefault(key, path)
    except Unknown:
        return path


def _shapes(spec: Spec) -> str:
    """The description without its keys: equal when the same graph serves."""
    if spec["t"] == "tensor":
        return f"{spec['dtype']}{spec['shape']}"
    if "items" in spec:
        return f"{spec['t']}{spec.get('keys')}({','.join(_shapes(i) for i in spec['items'])})"
    return json.dumps(spec, sort_keys=True)


def statistics(
    net: Net, store: ArrayStore, strictness: Strictness, entry: Spec,
    held: Callable[[str], str] = str,
) -> list[Measure]:  # fmt: skip
    """The moving statistics of a Cell after its call, where they have a partner.

    ``held`` says for a tensor's place where its numbers are now: another Cell may have run for it.
    """
    measures = []
    for name, expected in entry["state"].items():
        key = f"{entry['path']}.{name}" if entry["path"] else name
        place = net.places.get(key)
        if place is None:
            continue
        layout = net.layouts[key]
        actual, read = describe_value(held_at(net, held(place)))
        expected = {**expected, "shape": list(actual["shape"]) if layout else expected["shape"]}

        def reference(spec: Spec, layout: str = layout) -> Array:
            return apply_layout(store.get(spec["key"]), layout)

        found = compare(expected, actual, reference, read, strictness)
        detail = f"{name} after the run: {found.detail}" if found.detail else ""
        measures.append(replace(found, detail=detail))
    return measures
