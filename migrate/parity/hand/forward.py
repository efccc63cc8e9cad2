"""In: what torch's modules received and returned. Out: measures for the Cells of a net by hand.

Three for each call: ``inside`` the whole model, ``local`` on torch's input where the calls
correspond, and ``fed``, how far the input inside the model is from torch's.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mindspore as ms

from migrate.outcomes import Verdict
from migrate.parity.cells import Net, restore
from migrate.parity.channel import Emit, Payload
from migrate.parity.compare import Measure, compare, merge
from migrate.parity.exchange import ArrayStore, Spec, read_index
from migrate.parity.hand.feeding import feed
from migrate.parity.hand.watching import Run, watch
from migrate.parity.ms_values import describe, rebuild
from migrate.parity.replay import blocked, set_mode, statistics
from migrate.parity.tolerance import Strictness

WHOLE = "iu"


@dataclass(frozen=True)
class Job:
    """One forward rung; ``cells`` gives the Cell's path for a module's path."""

    net: Net
    cells: dict[str, str]
    store: ArrayStore
    strictness: Strictness


def trace(net: Net, request: Payload, emit: Emit) -> Payload:
    """Run the net once in eval mode on torch's inputs: the order of its calls and their shapes."""
    index, job = _opened(net, request)
    set_mode("pynative")
    net.root.set_train(False)
    emit({"at": ["", -1]})
    run = watch(net, *_inputs(index, job))
    restore(net, "")
    calls = [{"path": seen.path, "shapes": _shapes(describe(seen.result)[0])} for seen in run.calls]
    return {"calls": calls, "error": run.error}


def forward(net: Net, request: Payload, emit: Emit) -> Payload:
    """All calls of a folder but those in ``done``; emits ``at`` before and ``check`` after each."""
    index, job = _opened(net, request)
    set_mode(request["mode"])
    net.root.set_train(index["training"])
    restore(net, "")
    emit({"at": ["", -1]})
    root = next(entry for entry in index["calls"] if not entry["path"])
    if request["mode"] == "graph" or request["root_only"]:
        emit({"check": {"path": "", "call": 0, "local": _alone(job, index, root).as_json()}})
        return {}
    run = watch(net, *_inputs(index, job))
    measures = [_raised(index, job, run)] if run.error else [
        _measure(job, root["local"], run.calls[-1].result), *_state(job, root)
    ]  # fmt: skip
    restore(net, "")
    done = {tuple(place) for place in request["done"]}
    for entry in index["calls"]:
        place = (entry["path"], entry["call"])
        if entry["path"] and entry["path"] in job.cells and place not in done:
            emit({"at": list(place)})
            emit({"check": {"path": place[0], "call": place[1], **_both(job, entry, run)}})
    answer = {"path": "", "call": 0, "local": merge(measures).as_json()}
    emit({"check": {**answer, "inside_of": list(run.inside), "follows": _follows(run)}})
    return {}


def _raised(index: Spec, job: Job, run: Run) -> Measure:
    """SHAPE where the Cell that raised was given another shape than its partner, else BLOCKED."""
    innermost = run.inside[-1] if run.inside else ""
    for entry in index["calls"]:
        if innermost and job.cells.get(entry["path"]) == innermost:
            wanted = [tuple(shape) for shape in _shapes(entry["args"])]
            if run.received and wanted and run.received[0] != wanted[0]:
                given, other = list(run.received[0]), list(wanted[0])
                detail = f"its input has shape {given} instead of {other}: {run.error}"
                return Measure(Verdict.SHAPE, detail=detail)
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


def _opened(net: Net, request: Payload) -> tuple[Spec, Job]:
    folder = Path(request["folder"])
    index = read_index(folder)
    cells = {m: c for m, c in request.get("cells", {}).items() if c in net.cells}
    strictness = Strictness(**request.get("strictness", {}))
    return index, Job(net, cells, ArrayStore(folder), strictness)


def _inputs(index: Spec, job: Job) -> tuple[Any, Any]:
    return rebuild(index["args"], job.store), rebuild(index["kwargs"], job.store)


def _shapes(spec: Spec) -> list[list[int]]:
    if "items" in spec:
        return [shape for item in spec["items"] for shape in _shapes(item)]
    return [spec["shape"]] if spec["t"] == "tensor" else []


def _alone(job: Job, index: Spec, root: Spec) -> Measure:
    """The whole model, without a look into it."""
    args, kwargs = _inputs(index, job)
    try:
        result = job.net.root(*args, **kwargs)
        return merge([_measure(job, root["local"], result), *_state(job, root)])
    except Exception as error:  # user code
        return blocked(error)
    finally:
        restore(job.net, "")


def _both(job: Job, entry: Spec, run: Run) -> dict[str, Any]:
    """What one call showed inside the model, and alone on torch's input."""
    seen = run.find(job.cells[entry["path"]], entry["call"])
    if seen is None:
        return {}
    inside = _measure(job, entry["cumulative"], _shaped(entry["cumulative"], seen.result))
    answer: dict[str, Any] = {"inside": inside.as_json()}
    given = feed(seen, entry, job.store)
    if given is None:
        return answer
    try:
        result = job.net.cells[seen.path](*given.args, **given.kwargs)
        shaped = _shaped(entry["local"], result)
        local = merge([_measure(job, entry["local"], shaped), *_state(job, entry)])
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


def _state(job: Job, entry: Spec) -> list[Measure]:
    return statistics(job.net, job.store, job.strictness, entry)
