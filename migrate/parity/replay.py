"""Run Cells on what their torch partners received, and compare what they give.

Converted code is called as torch was. A port may call its Cells in another way (one argument where
torch passes query, key and value), so there the call keeps MindSpore's form, and each tensor in it
is replaced by the one that stands for it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np

from migrate.parity.cells import (
    Net,
    Unknown,
    array,
    dtype_name,
    held_at,
    lend,
    put,
    rebuild,
    restore,
    signature,
    tensor_of,
)
from migrate.parity.cells import describe as describe_value
from migrate.parity.compare import Measure, Strictness, compare, merge, relative_error
from migrate.parity.exchange import (
    Array,
    ArrayStore,
    Spec,
    apply_layout,
    leaves,
    opaque_part,
    read_index,
)
from migrate.parity.inner_calls import Seen, entry_of, watched
from migrate.parity.messages import At, Emit, Payload, Ran, describe
from migrate.records.outcomes import Verdict, Why


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
        if self.net.port:
            actual, flat = any_width(expected, actual), True
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
        emit(At(""))
        whole = _cumulative(job, index)
    groups: dict[Any, str] = {}
    for entry in index["calls"]:
        place = (entry["path"], entry["call"])
        if place in done or entry["path"] not in job.paths:
            continue
        if request["root_only"] and entry["path"]:
            continue
        emit(At(*place))
        emit(Ran(*place, local_measure(job, entry, groups), whole.get(place)))
    return {}


def blocked(error: BaseException) -> Measure:
    """Return the measure of a Cell that raised."""
    failed = describe(error)
    return Measure(Verdict.BLOCKED, detail=f"{failed.kind}: {failed.text}")


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


@dataclass(frozen=True)
class CellCall:
    """One call of one Cell, nested values as they were."""

    path: str
    call: int
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    result: Any


@dataclass(frozen=True)
class Run:
    """All calls in the order in which they ended.

    ``error`` is what broke the run off, ``inside`` the Cells that ran then, innermost last, and
    ``received`` the input shapes of the innermost Cell.
    """

    calls: tuple[CellCall, ...]
    error: str = ""
    inside: tuple[str, ...] = ()
    received: tuple[tuple[int, ...], ...] = ()

    def find(self, path: str, call: int) -> CellCall | None:
        return next((seen for seen in self.calls if (seen.path, seen.call) == (path, call)), None)


def watch(net: Net, args: Any, kwargs: Any) -> Run:
    """Call the whole net and keep the calls of all its Cells; never raises for user code."""
    calls: list[CellCall] = []
    counts: dict[str, int] = {}
    inside: list[tuple[str, Any]] = []

    def enter(path: str) -> Callable[..., None]:
        def note(cell: Any, given: Any) -> None:
            inside.append((path, given))

        return note

    def hook(path: str) -> Callable[..., None]:
        def keep(cell: Any, given: Any, named: Any, result: Any) -> None:
            inside.pop()
            number = counts.get(path, 0)
            counts[path] = number + 1
            calls.append(CellCall(path, number, tuple(given), dict(named), result))

        return keep

    handles = [
        cell.register_forward_hook(hook(path), with_kwargs=True)
        for path, cell in net.cells.items()
    ]  # fmt: skip
    handles += [cell.register_forward_pre_hook(enter(path)) for path, cell in net.cells.items()]
    try:
        net.root(*args, **kwargs)
    except Exception as error:  # user code; what ran until then is known
        failed = describe(error)
        return Run(
            tuple(calls),
            f"{failed.kind}: {failed.text}",
            tuple(path for path, _ in inside),
            _shapes_of(inside[-1][1] if inside else ()),
        )
    finally:
        for handle in handles:
            handle.remove()
    return Run(tuple(calls))


def _shapes_of(given: Any) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(value.shape) for value in given if isinstance(value, ms.Tensor))


@dataclass(frozen=True)
class Feed:
    """Arguments that hold torch's numbers; ``error`` is how far the net's own were from them."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    error: float


def feed(seen: CellCall, entry: Spec, store: ArrayStore) -> Feed | None:
    """None where the tensors of the two calls do not correspond one to one."""
    wanted = _distinct(
        [store.get(leaf["key"]) for part in ("args", "kwargs")
         for _, leaf in leaves(entry[part]) if leaf["t"] == "tensor"]
    )  # fmt: skip
    mine = list(_tensors((seen.args, seen.kwargs)))
    own = _distinct([array(tensor) for tensor in mine])
    if len(wanted) != len(own) or not own:
        return None
    if any(not _alike(a, b) for a, b in zip(wanted, own, strict=True)):
        return None
    replaced = {id(tensor): _as(tensor, wanted[_index(own, array(tensor))]) for tensor in mine}
    error = max(_error(a, b.reshape(a.shape)) for a, b in zip(wanted, own, strict=True))
    return Feed(_with(seen.args, replaced), _with(seen.kwargs, replaced), error)


def _error(torch: Array, mindspore: Array) -> float:
    if torch.dtype.kind == "f":
        return relative_error(mindspore, torch)
    return 0.0 if np.array_equal(torch, mindspore) else float(np.finfo(np.float32).max)


def _tensors(value: Any) -> Iterator[Any]:
    if isinstance(value, ms.Tensor):
        yield value
    elif isinstance(value, dict):
        yield from _tensors(tuple(value.values()))
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from _tensors(item)


def _with(value: Any, replaced: dict[int, Any]) -> Any:
    if isinstance(value, ms.Tensor):
        return replaced[id(value)]
    if isinstance(value, dict):
        return {key: _with(item, replaced) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return type(value)(_with(item, replaced) for item in value)
    return value


def _distinct(arrays: list[Array]) -> list[Array]:
    found: list[Array] = []
    for item in arrays:
        if not any(np.array_equal(item, other) for other in found):
            found.append(item)
    return found


def _index(arrays: list[Array], wanted: Array) -> int:
    return next(i for i, item in enumerate(arrays) if np.array_equal(item, wanted))


def _alike(torch: Array, mindspore: Array) -> bool:
    whole = "iu"
    kinds = torch.dtype.kind, mindspore.dtype.kind
    same = kinds[0] == kinds[1] or all(kind in whole for kind in kinds)
    return same and _long(torch) == _long(mindspore)


def _long(numbers: Array) -> list[int]:
    """Return the axes that matter for which number is which: those longer than 1."""
    return [size for size in numbers.shape if size != 1]


def _as(tensor: Any, numbers: Array) -> Any:
    return tensor_of(numbers.reshape(tensor.shape), dtype_name(tensor.dtype))


def trace(net: Net, request: Payload, emit: Emit) -> Payload:
    """Run the net once in eval mode on torch's inputs: the order of its calls and their shapes."""
    index, store = read_index(Path(request["folder"])), ArrayStore(Path(request["folder"]))
    set_mode("pynative")
    net.root.set_train(False)
    emit(At(""))
    run = watch(net, rebuild(index["args"], store), rebuild(index["kwargs"], store))
    restore(net, "")
    calls = [
        {"path": seen.path, "shapes": _sizes(describe_value(seen.result)[0])} for seen in run.calls
    ]
    return {"calls": calls, "error": run.error}


NEAR = 1e-3  # inputs nearer than this are the same input


def fits(net: Net, request: Payload, emit: Emit) -> Payload:
    """Run the net once in eval mode; answer which torch modules receive what each Cell receives.

    ``{"fits": {Cell: [paths]}, "local": measure of the whole}``. In which order the axes lie does
    not matter: the numbers are compared sorted.
    """
    index, job = opened(net, request)
    net.root.set_train(False)
    restore(net, "")
    emit(At(""))
    run = watch(net, *job.values(index))
    restore(net, "")
    root = next(entry for entry in index["calls"] if not entry["path"])
    whole = _raised(index, job, run)
    if not run.error:
        whole = job.compared(root["local"], run.calls[-1].result)
    wanted = [
        (entry["path"], _sorted(store_first(entry, job.store)))
        for entry in index["calls"] if entry["path"] and not entry["call"]
    ]  # fmt: skip
    found: dict[str, list[str]] = {}
    for seen in run.calls:
        mine = _sorted([array(tensor) for tensor in _tensors((seen.args, seen.kwargs))][:1])
        if seen.path and not seen.call and mine is not None:
            found[seen.path] = [path for path, other in wanted if _is_near(mine, other)]
    return {"fits": found, "local": whole.as_json()}


def store_first(entry: Spec, store: ArrayStore) -> list[Array]:
    """Return the first tensor that a recorded call received."""
    found = [leaf for part in ("args", "kwargs") for _, leaf in leaves(entry[part])]
    return [store.get(leaf["key"]) for leaf in found if leaf["t"] == "tensor"][:1]


def _sorted(arrays: list[Array]) -> Array | None:
    return np.sort(arrays[0], axis=None) if arrays and arrays[0].dtype.kind in "fiu" else None


def _is_near(one: Array, other: Array | None) -> bool:
    if other is None or one.size != other.size or (one.dtype.kind == "f") != (
        other.dtype.kind == "f"
    ):  # fmt: skip
        return False
    return _error(other, one) <= NEAR


def replay_port(net: Net, request: Payload, emit: Emit) -> Payload:
    """Run all calls of a folder but those in ``done``; emits ``at`` before and ``check`` after."""
    if request.get("alone"):
        return replay(net, request, emit)
    index, job = opened(net, request)
    if not request["whole"]:
        return {}
    net.root.set_train(index["training"])
    restore(net, "")
    emit(At(""))
    root = next(entry for entry in index["calls"] if not entry["path"])
    if job.mode == "graph" or request["root_only"]:
        emit(Ran("", local=_alone(job, index, root)))
        return {}
    run = watch(net, *job.values(index))
    measures = [_raised(index, job, run)] if run.error else [
        job.compared(root["local"], run.calls[-1].result), *job.statistics(root)
    ]  # fmt: skip
    restore(net, "")
    done = {tuple(place) for place in request["done"]}
    for entry in index["calls"]:
        place = (entry["path"], entry["call"])
        if entry["path"] and entry["path"] in job.paths and place not in done:
            emit(At(*place))
            emit(_both(job, entry, run))
    emit(Ran("", local=merge(measures), inside_of=run.inside, follows=_follows(run)))
    return {}


def _raised(index: Spec, job: Job, run: Run) -> Measure:
    """Return SHAPE where the raising Cell got other input shapes than its partner, else BLOCKED."""
    innermost = run.inside[-1] if run.inside else ""
    for entry in index["calls"]:
        if innermost and job.paths.get(entry["path"]) == innermost:
            wanted = [tuple(shape) for shape in _sizes(entry["args"])]
            if run.received and wanted and run.received[0] != wanted[0]:
                given, other = list(run.received[0]), list(wanted[0])
                detail = f"its input has shape {given} instead of {other}: {run.error}"
                return Measure(Verdict.SHAPE, detail=detail, why=Why.STOPPED)
    return Measure(Verdict.BLOCKED, detail=run.error)


def _follows(run: Run) -> dict[str, tuple[str, ...]]:
    """Return which Cells gave what a Cell received."""
    givers: dict[int, list[str]] = {}
    for seen in run.calls:
        givers.setdefault(id(seen.result), []).append(seen.path)
    return {
        seen.path: tuple(path for value in seen.args for path in givers.get(id(value), ()))
        for seen in run.calls
    }


def _sizes(spec: Spec) -> list[list[int]]:
    if "items" in spec:
        return [shape for item in spec["items"] for shape in _sizes(item)]
    return [spec["shape"]] if spec["t"] == "tensor" else []


def _alone(job: Job, index: Spec, root: Spec) -> Measure:
    """Measure the whole model, without a look into it."""
    args, kwargs = job.values(index)
    try:
        result = job.net.root(*args, **kwargs)
        return merge([job.compared(root["local"], result), *job.statistics(root)])
    except Exception as error:  # user code
        return blocked(error)
    finally:
        restore(job.net, "")


def _both(job: Job, entry: Spec, run: Run) -> Ran:
    """Return what one call showed inside the model, and alone on torch's input."""
    place = entry["path"], entry["call"]
    seen = run.find(job.paths[entry["path"]], entry["call"])
    if seen is None:
        return Ran(*place)
    inside = job.compared(entry["cumulative"], _shaped(entry["cumulative"], seen.result))
    given = feed(seen, entry, job.store)
    if given is None:
        return Ran(*place, cumulative=inside)
    try:
        result = job.net.cells[seen.path](*given.args, **given.kwargs)
        shaped = _shaped(entry["local"], result)
        local = merge([job.compared(entry["local"], shaped), *job.statistics(entry)])
    except Exception as error:  # user code
        local = blocked(error)
    finally:
        restore(job.net, seen.path)
    return Ran(*place, local, inside, fed=given.error)


def _shaped(expected: Spec, result: Any) -> Any:
    """A lone tensor with torch's axes of size 1: a Dense may stand for a convolution of 1 x 1."""
    shape = expected.get("shape")
    if shape is None or not isinstance(result, ms.Tensor) or list(result.shape) == shape:
        return result
    same = [n for n in result.shape if n != 1] == [n for n in shape if n != 1]
    return result.reshape(tuple(shape)) if same else result


def any_width(expected: Spec, actual: Spec) -> Spec:
    """Whole numbers count by value: ports keep them in int32, which many kernels want."""
    if "items" in actual and len(actual["items"]) == len(expected.get("items", ())):
        pairs = zip(expected["items"], actual["items"], strict=True)
        return {**actual, "items": [any_width(one, other) for one, other in pairs]}
    both = expected.get("dtype", ""), actual.get("dtype", "")
    if all(name.startswith(("int", "uint")) for name in both):
        return {**actual, "dtype": both[0]}
    return actual
