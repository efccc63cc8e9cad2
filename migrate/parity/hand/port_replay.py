"""Run a port once on torch's inputs, and each of its Cells on what its torch partner received.

Three measures for each call: ``cumulative`` inside the whole model, ``local`` on torch's input
where the calls correspond, and ``fed``, how far the input inside the model is from torch's. A port
may call its Cells in another way (one argument where torch passes query, key and value), so the
call keeps MindSpore's form, and each tensor in it is replaced by the one that stands for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np

from migrate.parity.cells import Net, restore
from migrate.parity.channel import Emit, Payload
from migrate.parity.channel import describe as describe_error
from migrate.parity.compare import Measure, compare, merge
from migrate.parity.exchange import Array, ArrayStore, Spec, leaves, read_index
from migrate.parity.ms_values import array, describe, dtype_name, rebuild, tensor_of
from migrate.parity.replay import Job, blocked, opened, set_mode
from migrate.parity.tolerance import relative_error
from migrate.records.outcomes import Verdict, Why


@dataclass(frozen=True)
class Seen:
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

    calls: tuple[Seen, ...]
    error: str = ""
    inside: tuple[str, ...] = ()
    received: tuple[tuple[int, ...], ...] = ()

    def find(self, path: str, call: int) -> Seen | None:
        return next((seen for seen in self.calls if (seen.path, seen.call) == (path, call)), None)


def watch(net: Net, args: Any, kwargs: Any) -> Run:
    """Call the whole net and keep the calls of all its Cells; never raises for user code."""
    calls: list[Seen] = []
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
            calls.append(Seen(path, number, tuple(given), dict(named), result))

        return keep

    handles = [
        cell.register_forward_hook(hook(path), with_kwargs=True)
        for path, cell in net.cells.items()
    ]  # fmt: skip
    handles += [cell.register_forward_pre_hook(enter(path)) for path, cell in net.cells.items()]
    try:
        net.root(*args, **kwargs)
    except Exception as error:  # user code; what ran until then is known
        answer = describe_error(error)
        return Run(
            tuple(calls),
            f"{answer['type']}: {answer['message']}",
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


def feed(seen: Seen, entry: Spec, store: ArrayStore) -> Feed | None:
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
    """The axes that matter for which number is which: those longer than 1."""
    return [size for size in numbers.shape if size != 1]


def _as(tensor: Any, numbers: Array) -> Any:
    return tensor_of(numbers.reshape(tensor.shape), dtype_name(tensor.dtype))


def trace(net: Net, request: Payload, emit: Emit) -> Payload:
    """Run the net once in eval mode on torch's inputs: the order of its calls and their shapes."""
    index, store = read_index(Path(request["folder"])), ArrayStore(Path(request["folder"]))
    set_mode("pynative")
    net.root.set_train(False)
    emit({"at": ["", -1]})
    run = watch(net, rebuild(index["args"], store), rebuild(index["kwargs"], store))
    restore(net, "")
    calls = [{"path": seen.path, "shapes": _shapes(describe(seen.result)[0])} for seen in run.calls]
    return {"calls": calls, "error": run.error}


def replay_port(net: Net, request: Payload, emit: Emit) -> Payload:
    """Run all calls of a folder but those in ``done``; emits ``at`` before and ``check`` after."""
    index, job = opened(net, request)
    if not request["whole"]:
        return {}
    net.root.set_train(index["training"])
    restore(net, "")
    emit({"at": ["", -1]})
    root = next(entry for entry in index["calls"] if not entry["path"])
    if job.mode == "graph" or request["root_only"]:
        emit({"check": {"path": "", "call": 0, "local": _alone(job, index, root).as_json()}})
        return {}
    run = watch(net, *job.values(index))
    measures = [_raised(index, job, run)] if run.error else [
        _measure(job, root["local"], run.calls[-1].result), *job.statistics(root)
    ]  # fmt: skip
    restore(net, "")
    done = {tuple(place) for place in request["done"]}
    for entry in index["calls"]:
        place = (entry["path"], entry["call"])
        if entry["path"] and entry["path"] in job.paths and place not in done:
            emit({"at": list(place)})
            emit({"check": {"path": place[0], "call": place[1], **_both(job, entry, run)}})
    answer = {"path": "", "call": 0, "local": merge(measures).as_json()}
    emit({"check": {**answer, "inside_of": list(run.inside), "follows": _follows(run)}})
    return {}


def _raised(index: Spec, job: Job, run: Run) -> Measure:
    """Return SHAPE where the raising Cell got other input shapes than its partner, else BLOCKED."""
    innermost = run.inside[-1] if run.inside else ""
    for entry in index["calls"]:
        if innermost and job.paths.get(entry["path"]) == innermost:
            wanted = [tuple(shape) for shape in _shapes(entry["args"])]
            if run.received and wanted and run.received[0] != wanted[0]:
                given, other = list(run.received[0]), list(wanted[0])
                detail = f"its input has shape {given} instead of {other}: {run.error}"
                return Measure(Verdict.SHAPE, detail=detail, why=Why.STOPPED)
    return Measure(Verdict.BLOCKED, detail=run.error)


def _follows(run: Run) -> dict[str, list[str]]:
    """Which Cells gave what a Cell received."""
    givers: dict[int, list[str]] = {}
    for seen in run.calls:
        givers.setdefault(id(seen.result), []).append(seen.path)
    return {
        seen.path: [path for value in seen.args for path in givers.get(id(value), ())]
        for seen in run.calls
    }


def _shapes(spec: Spec) -> list[list[int]]:
    if "items" in spec:
        return [shape for item in spec["items"] for shape in _shapes(item)]
    return [spec["shape"]] if spec["t"] == "tensor" else []


def _alone(job: Job, index: Spec, root: Spec) -> Measure:
    """The whole model, without a look into it."""
    args, kwargs = job.values(index)
    try:
        result = job.net.root(*args, **kwargs)
        return merge([_measure(job, root["local"], result), *job.statistics(root)])
    except Exception as error:  # user code
        return blocked(error)
    finally:
        restore(job.net, "")


def _both(job: Job, entry: Spec, run: Run) -> dict[str, Any]:
    """What one call showed inside the model, and alone on torch's input."""
    seen = run.find(job.paths[entry["path"]], entry["call"])
    if seen is None:
        return {}
    inside = _measure(job, entry["cumulative"], _shaped(entry["cumulative"], seen.result))
    answer: dict[str, Any] = {"cumulative": inside.as_json()}
    given = feed(seen, entry, job.store)
    if given is None:
        return answer
    try:
        result = job.net.cells[seen.path](*given.args, **given.kwargs)
        shaped = _shaped(entry["local"], result)
        local = merge([_measure(job, entry["local"], shaped), *job.statistics(entry)])
    except Exception as error:  # user code
        local = blocked(error)
    finally:
        restore(job.net, seen.path)
    return {**answer, "fed": given.error, "local": local.as_json()}


def _shaped(expected: Spec, result: Any) -> Any:
    """A lone tensor with torch's axes of size 1: a Dense may stand for a convolution of 1 x 1."""
    shape = expected.get("shape")
    if shape is None or not isinstance(result, ms.Tensor) or list(result.shape) == shape:
        return result
    same = [n for n in result.shape if n != 1] == [n for n in shape if n != 1]
    return result.reshape(tuple(shape)) if same else result


def _measure(job: Job, expected: Spec, result: Any) -> Measure:
    actual, read = describe(result)
    actual = any_width(expected, actual)
    return compare(
        expected, actual, lambda leaf: job.store.get(leaf["key"]), read, job.strictness, flat=True
    )


def any_width(expected: Spec, actual: Spec) -> Spec:
    """Whole numbers count by value: ports keep them in int32, which many kernels want."""
    if "items" in actual and len(actual["items"]) == len(expected.get("items", ())):
        pairs = zip(expected["items"], actual["items"], strict=True)
        return {**actual, "items": [any_width(one, other) for one, other in pairs]}
    both = expected.get("dtype", ""), actual.get("dtype", "")
    if all(name.startswith(("int", "uint")) for name in both):
        return {**actual, "dtype": both[0]}
    return actual
