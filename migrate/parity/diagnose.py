"""Name the first guilty Cell of a model, the first wrong call in it, a cause, and what cures it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from migrate.parity.checks import (
    CHECKPOINT,
    FINE,
    FORWARD,
    GUILTY,
    MAGNITUDES,
    PARAMETERS,
    REGIMES,
    START,
    TRAINING,
)
from migrate.parity.compare import relative_error
from migrate.parity.exchange import Array, ArrayStore, Spec, read_index
from migrate.parity.hand.inventory import kind_of
from migrate.parity.hand.partners import NO, aligned
from migrate.parity.messages import Ran
from migrate.parity.reproduction import write_reproduction
from migrate.parity.session import Session
from migrate.parity.worker import Payload, WorkerError, WorkerLost
from migrate.records.outcomes import Verdict
from migrate.records.result import Check, Guilty

CLOSE = 1e-5
SIZES = 4096  # a number of values that a variance may be over


def relation(torch: Array, mindspore: Array, call: str = "") -> str:
    """Return the first known relation that holds, or ""; ``call`` is the text of torch's call."""
    if min(torch.size, mindspore.size) < 2 or torch.dtype.kind not in "f":
        return ""
    wanted, found = torch.astype(np.float64), mindspore.astype(np.float64)
    if not (np.isfinite(wanted).all() and np.isfinite(found).all()):
        return ""
    return next(
        (text for text, value in _known(wanted, found, call) if _equal_arrays(value, found)), ""
    )


def _equal_arrays(value: Array, found: Array) -> bool:
    return value.shape == found.shape and relative_error(value, found) <= CLOSE


def _known(wanted: Array, found: Array, call: str) -> Iterator[tuple[str, Array]]:
    if wanted.shape != found.shape:
        if sorted(wanted.shape) == sorted(found.shape) and wanted.ndim == 2:
            yield "torch's, transposed", wanted.T
        elif wanted.size == found.size:
            yield "torch's in another shape", wanted.reshape(found.shape)
        return
    if wanted.ndim > 1 and wanted.shape[-1] == wanted.shape[-2]:
        yield "torch's with its last two axes exchanged", np.swapaxes(wanted, -1, -2)
    norm = float(np.vdot(wanted, wanted))
    factor = float(np.vdot(wanted, found)) / norm if norm else 0.0
    yield _factor(factor, call), wanted * factor
    yield "torch's plus a constant", wanted + (found - wanted).mean()
    for axis in range(wanted.ndim):
        yield f"torch's in the opposite order along axis {axis}", np.flip(wanted, axis)


def _factor(factor: float, call: str) -> str:
    """Return what a constant factor says: n / (n - 1) is the other kind of variance."""
    for name, root in (("variance", 1), ("std, the standard deviation", 2)):
        if name[:3] not in call:
            continue
        for ratio, which in ((factor**root, "without"), (factor**-root if factor else 0.0, "with")):
            size = round(1 / (1 - ratio)) if 0 < ratio < 1 else 0
            if 1 < size <= SIZES and abs(ratio - (size - 1) / size) < CLOSE / size:
                sense = f"the {name} {which} Bessel's correction (ddof) over {size} values"
                return f"torch's times {factor:.6g}: {sense}"
    return f"torch's times {factor:.6g}"


LEAST = 2e-6


@dataclass(frozen=True)
class FirstCall:
    """Where the two part: ``net.py:12: x.var(1)`` on each side, and how the numbers relate."""

    torch: str = ""
    mindspore: str = ""
    relation: str = ""

    @property
    def told(self) -> str:
        return f"MindSpore's numbers are {self.relation}" if self.relation else ""


def examined(
    session: Session[Any], check: Check, pair: tuple[str, str] | None = None,
    rewritten: bool = False,
) -> tuple[FirstCall, str]:  # fmt: skip
    """Watch a failing forward check on both sides: the first call that differs, and what cures it.

    Both are empty where nothing is learnt: other rungs, a worker that was lost. ``pair`` is the
    Module and its Cell, if not those of the check; ``rewritten``: see `parting`.
    """
    path, cell = pair or (check.torch_path, check.mindspore_path)
    inner = FirstCall()
    if not check.rung.startswith("forward"):
        return inner, ""
    with contextlib.suppress(WorkerError, WorkerLost):
        folder = session.recorded(check.rung == "forward train")
        asked = {"folder": str(folder), "path": path, "call": 0, "cell": cell}
        with contextlib.suppress(WorkerError):
            inner = _first_call(session, asked, check.limit or 0.0, rewritten) or inner
        if check.mode == "pynative":
            return inner, _cure(session, asked, inner)
    return inner, ""


def _first_call(
    session: Session[Any], asked: Spec, limit: float, rewritten: bool
) -> FirstCall | None:
    rows: list[list[Spec]] = []
    stores: list[ArrayStore] = []
    for worker in (session.sides.torch, session.sides.mindspore):
        into = session.folder / f"calls_{worker.side}"
        into.mkdir(exist_ok=True)
        rows.append(session.ask(worker, "inner_calls", {**asked, "into": str(into)})["rows"])
        stores.append(ArrayStore(into))
    return parting(rows[0], rows[1], stores[0], stores[1], max(4 * limit, LEAST), rewritten)


def _cure(session: Session[Any], asked: Spec, inner: FirstCall) -> str:
    """Return the change with which the guilty Cell passes; "" where none is known."""
    module = session.modules.get(asked["path"], {})
    answer = session.ask(session.sides.mindspore, "remedy", {
        **asked, "torch": inner.torch, "mindspore": inner.mindspore,
        "settings": module.get("settings", {}), "strictness": session.strictness,
    })  # fmt: skip
    return str(answer["text"])


def parting(
    torch: Sequence[Spec], mindspore: Sequence[Spec], one: ArrayStore, other: ArrayStore,
    limit: float, rewritten: bool = False,
) -> FirstCall | None:  # fmt: skip
    """The first result of torch that MindSpore lacks, and what stands there; None: it has all.

    A result that is only part of an expression whose value is right was computed in another way.
    ``rewritten``: so was all that comes before a right one, as the code is another.
    """
    wanted = [one.get(row["key"]) for row in torch]
    found = [other.get(row["key"]) for row in mindspore]
    same = [[_same(value, mine, limit) for mine in found] for value in wanted]
    partner = _aligned(same)
    right = [row["place"] for row, at in zip(torch, partner, strict=True) if at >= 0]
    start = max((n for n, at in enumerate(partner) if at >= 0), default=-1) if rewritten else -1
    wrong = next(
        (n for n, at in enumerate(partner)
         if n > start and at < 0 and not _within(torch[n]["place"], right)), -1
    )  # fmt: skip
    if wrong < 0:
        return None
    after = max(partner[:wrong], default=-1) + 1
    known = {n for line, at in zip(same, partner, strict=True) if at >= 0
             for n, equal in enumerate(line) if equal}  # fmt: skip
    left = [row for n, row in enumerate(mindspore) if n >= after and n not in known
            and not (rewritten and _is_one_number(found[n]))]  # fmt: skip
    place = torch[wrong]["place"]
    mine = _counterpart(torch[wrong], left)
    if mine is None:
        return FirstCall(place)
    return FirstCall(place, mine["place"], relation(
        wanted[wrong], other.get(mine["key"]), place
    ))  # fmt: skip


def _aligned(same: Sequence[Sequence[bool]]) -> list[int]:
    """For each result of torch its partner among MindSpore's, -1 for none, in the same order.

    Of equal numbers those pair that lie equally far in the code.
    A result without a partner of its own, like that of a dropout in eval mode, shares one.
    """
    rows, columns = len(same), len(same[0]) if same else 0
    scores = [
        [3 - abs(i / rows - j / columns) if equal else NO for j, equal in enumerate(line)]
        for i, line in enumerate(same)
    ]
    partner = aligned(scores)
    for i, at in enumerate(partner):
        if at < 0:
            first = max(partner[:i], default=-1)
            last = min((n for n in partner[i + 1 :] if n >= 0), default=columns - 1)
            shared = (n for n in range(max(first, 0), last + 1) if same[i][n])
            partner[i] = next(shared, -1)
    return partner


def _within(place: str, right: Sequence[str]) -> bool:
    """Return whether a call is part of a larger expression in its line that is right."""
    head, _, text = place.partition(": ")
    return any(one != place and one.startswith(f"{head}: ") and text in one for one in right)


def _is_one_number(value: Array) -> bool:
    """Zeros to start from, as a loop has them that stands for a layer, are no counterpart."""
    return bool(value.size and (value == value.flat[0]).all())


def _counterpart(wrong: Spec, left: Sequence[Spec]) -> Spec | None:
    """Return what MindSpore computes instead: in the same function, of the same shape, if any."""
    name = "construct" if wrong["within"] == "forward" else wrong["within"]
    own = [row for row in left if row["within"] == name]
    shaped = [row for row in own if row["shape"] == wrong["shape"]]
    return next(iter(shaped or own or left), None)


def _same(wanted: Array, value: Array, limit: float) -> bool:
    if wanted.size != value.size or wanted.dtype.kind == "c":
        return False
    value = value.reshape(wanted.shape)
    if wanted.dtype.kind in "biu":
        return bool((wanted == value).all())
    return relative_error(value.astype("float64"), wanted) <= limit


if TYPE_CHECKING:
    from migrate.parity.hand.port import Port
    from migrate.parity.recorded import Recorded

_MODES = ("pynative", "graph")
_RUNGS = (*FORWARD, "gradients")
RUNGS = (
    (PARAMETERS, "pynative"), *((rung, "pynative") for rung in _RUNGS),
    (MAGNITUDES, "pynative"), (REGIMES, "pynative"),
    *((rung, "graph") for rung in _RUNGS), *((rung, mode) for mode in _MODES for rung in TRAINING),
    (CHECKPOINT, "pynative"), (START, "pynative"),
)  # fmt: skip

# torch's name of a setting -> MindSpore's names for the same thing
SAME = {
    "groups": ("group", "groups"), "p": ("p",), "negative_slope": ("alpha", "negative_slope"),
    "normalized_shape": ("normalized_shape",), "momentum": ("momentum",), "eps": ("eps",
    "epsilon"), "num_embeddings": ("vocab_size",), "embedding_dim": ("embedding_size",),
    "dim": ("axis", "dim"), "in_features": ("in_channels",), "out_features": ("out_channels",),
}  # fmt: skip
SKIPPED = ("training", "padding_mode", "padding", "inplace", "dtype", "device")


def first_failing(checks: Sequence[Check]) -> Check | None:
    """Return the check of the first Cell, by rung and execution order, whose own check fails.

    All checks of the rung of the parameters are faults, or say that there are none.
    """
    for rung, mode in RUNGS:
        failing = [
            check for check in checks
            if (check.rung, check.mode) == (rung, mode) and check.verdict in GUILTY
        ]  # fmt: skip
        if failing:
            return min(failing, key=lambda check: check.order)
    return None


def first_guilty(session: Recorded, checks: Sequence[Check]) -> Guilty | None:
    """Return the first Cell, by execution order and deepest, whose own check fails."""
    faults = [check for check in checks if check.rung == PARAMETERS]
    check = min(faults, key=lambda check: check.order) if faults else first_failing(checks)
    if check is None:
        return None
    module = session.modules.get(check.torch_path, {})
    cell = session.cells.get(check.mindspore_path, {})
    differences = setting_differences(module.get("settings", {}), cell.get("settings", {}))
    inner, cure = examined(session, check)
    return _blame(session, check, [session.target.ms_root]).model_copy(update={
        "torch": f"{check.torch_path or 'the whole model'} ({check.torch_class})",
        "mindspore": f"{check.mindspore_path or 'the whole model'} ({check.mindspore_class})",
        "cause": cause_of(cure, *differences, inner.told, check.detail),
        "torch_call": inner.torch, "mindspore_call": inner.mindspore,
        "reproduction": write_reproduction(session, check),
    })  # fmt: skip


def _blame(session: Session[Any], check: Check, folders: Sequence[str | Path]) -> Guilty:
    """Return what a check says by itself: its Cells, where they were made, and its detail."""
    module = session.modules.get(check.torch_path, {})
    cell = session.cells.get(check.mindspore_path, {})
    return Guilty(
        rung=check.rung, mode=check.mode, torch=check.torch_path, mindspore=check.mindspore_path,
        call=line_of(folders, cell), cause=check.detail, torch_place=place_of(module),
        mindspore_place=place_of(cell),
    )  # fmt: skip


def cause_of(cure: str, *causes: str) -> str:
    """Return all that is known of a cause, what cures it first."""
    passes = f"it passes with {cure}" if cure else ""
    return "; ".join(text for text in (passes, *causes) if text)


def place_of(row: Payload) -> str:
    """Return where a Module or Cell was made: file and line."""
    return f"{row['file']}:{row['line']}" if row.get("file") else ""


def line_of(folders: Sequence[str | Path], row: Payload) -> str:
    """Return the line of source that made a Cell."""
    files = [Path(folder) / row["file"] for folder in folders] if row.get("file") else []
    for path in files:
        if path.is_file():
            lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
            number = int(row["line"])
            return lines[number - 1].strip() if 0 < number <= len(lines) else ""
    return ""


def setting_differences(torch: Mapping[str, Any], mindspore: Mapping[str, Any]) -> list[str]:
    """Settings that both sides have under a known name, with different values."""
    found = []
    for name, value in torch.items():
        if name in SKIPPED:
            continue
        for other in SAME.get(name, (name,)):
            if other in mindspore and not _equal(value, mindspore[other]):
                found.append(f"{other} is {mindspore[other]!r} where torch has {name}={value!r}")
    return found


def _equal(torch: Any, mindspore: Any) -> bool:
    one, other = _plain(torch), _plain(mindspore)
    if isinstance(one, (int, float)) and isinstance(other, (int, float)):
        return abs(one - other) <= 1e-6 * max(abs(one), 1e-30)
    return bool(one == other)


def _plain(value: Any) -> Any:
    """(2, 2) and 2 are the same kernel size, and so are lists and tuples."""
    if isinstance(value, (list, tuple)):
        items = tuple(value)
        return items[0] if items and all(item == items[0] for item in items) else items
    return value


if TYPE_CHECKING:
    from migrate.parity.recorded import Recorded

MEANT = 1e-3  # inputs nearer than this are the same input


def first_guilty_of_port(session: Port, checks: Sequence[Check]) -> Guilty | None:
    """Return the deepest Cell that fails first, by rung; unlike tensors come before all."""
    check = first_failing(checks)
    if check is None:
        lacking = [c for c in checks if (c.rung, c.verdict) == (PARAMETERS, Verdict.UNMATCHED)]
        return _blamed(session, lacking[0]) if lacking else None
    if check.rung == PARAMETERS:
        return _blamed(session, check)
    return _narrowed(session, check, session.raw.get((check.rung, check.mode), ()))


def _narrowed(session: Port, check: Check, raw: Sequence[Ran]) -> Guilty:
    """Inside a guilty Cell, what lies between the last right and the first wrong call."""
    blame = _blamed(session, check)
    broken = [answer.inside_of for answer in raw if answer.inside_of]
    if broken and not check.torch_path:
        back = {own: path for path, own in session.pairs.items()}
        running = broken[0][-1]  # the innermost Cell
        inner = {"torch_path": back.get(running, ""), "mindspore_path": running}
        return _blame(session, check.model_copy(update=inner), session.pair.folders)
    if check.rung == "gradients" or not raw:
        return blame
    first = _first_input(session, raw)
    one, other = _between(session, check.torch_path, raw, check.rung == "forward train")
    follows = next((answer.follows for answer in raw if answer.follows), {})
    right = {session.pairs[a.path] for a in raw if a.path and _state(a)}
    other = [cell for cell in other if right & set(follows.get(cell, ()))]
    missing = _missing(session, check.torch_path)
    cause = "; ".join(text for text in (blame.cause, missing, first) if text)
    if len(one) == 1 and len(other) <= 1:
        module = session.modules[one[0]]
        cause = (
            f"{cause}; between the last right and the first wrong call torch runs {one[0]}"
            f" ({module['class']})"
        )
        blame = blame.model_copy(update={"torch": one[0]})
    if len(other) == 1 and len(one) <= 1:
        cell = session.cells[other[0]]
        cause = f"{cause}; MindSpore runs {other[0]} ({cell['class']}) there"
        blame = blame.model_copy(update={
            "mindspore": other[0], "mindspore_place": place_of(cell),
            "call": line_of(session.pair.folders, cell),
        })  # fmt: skip
    return _cured(session, check, blame.model_copy(update={"cause": cause}))


def _cured(session: Port, check: Check, blame: Guilty) -> Guilty:
    """Add the calls where the code parts, and what cures it in front of the other causes."""
    pair = (blame.torch, blame.mindspore)
    if session.pairs.get(pair[0]) != pair[1]:
        pair = (check.torch_path, check.mindspore_path)
    inner, cure = examined(session, check, pair, rewritten=True)
    return blame.model_copy(update={
        "cause": cause_of(cure, inner.told, blame.cause),
        "torch_call": inner.torch, "mindspore_call": inner.mindspore,
    })  # fmt: skip


def _first_input(session: Port, raw: Sequence[Ran]) -> str:
    """Return the first Cell that is right by itself and receives something else than in torch."""
    for answer in raw:
        if answer.path and answer.fed is not None:
            if answer.fed > MEANT:
                cell = session.pairs[answer.path]
                return f"the first input that differs is that of {answer.path} -> {cell}"
            if answer.measure.verdict not in FINE:
                return ""
    return ""


def _missing(session: Port, path: str) -> str:
    prefix = f"{path}." if path else ""
    left = [w.place for w in session.matching.torch_left
            if w.parameter and w.place.startswith(prefix)]  # fmt: skip
    if not path:
        left += [f"{w.place} (MindSpore)" for w in session.matching.mindspore_left if w.trained]
    return f"without partner: {', '.join(left[:3])}" if left else ""


def _between(
    session: Port, holder: str, raw: Sequence[Ran], training: bool
) -> tuple[list[str], list[str]]:
    """Leaves without partner that run, on each side, where the numbers begin to differ."""
    state = {answer.path: _state(answer) for answer in raw if answer.path and not answer.call}
    torch = [entry["path"] for entry in read_index(session.recorded(training))["calls"]]
    mindspore = [call["path"] for call in session.trace["calls"]]
    leaves = [path for path in torch if state.get(path) is not None and _below(path, holder)]
    wrong = next((path for path in leaves if state[path] is False), None)
    if wrong is None:
        after, before = leaves[-1] if leaves else None, None
    else:
        rights = leaves[: leaves.index(wrong)]
        after, before = (rights[-1] if rights else None), wrong
    own = session.pairs
    held = {row["key"].rpartition(".")[0] for row in session.torch["tensors"]}
    kept = {row["place"].rpartition(".")[0] for row in session.mindspore["tensors"]}
    one = _stretch(torch, after, before, lambda p: p not in own and _below(p, holder)
                   and p not in held and not _has_inner(session.modules, p))  # fmt: skip
    partners = set(own.values())
    two = _stretch(
        mindspore, own[after] if after else None, own[before] if before else None,
        lambda p: p not in partners and _below(p, own[holder]) and p not in kept
        and not _has_inner(session.cells, p),
    )  # fmt: skip
    return one, two


def _state(answer: Ran) -> bool | None:
    """Return whether a call is right inside the model; None where that is not known."""
    if (answer.fed or 0.0) > MEANT:
        return False
    return None if answer.cumulative is None else answer.cumulative.verdict in FINE


def _stretch(calls: Sequence[str], after: str | None, before: str | None, wanted: Any) -> list[str]:
    start = calls.index(after) + 1 if after in calls else 0
    end = calls.index(before) if before in calls else len(calls)
    return list(dict.fromkeys(path for path in calls[start:end] if wanted(path)))


def _below(path: str, holder: str) -> bool:
    return path != holder and (not holder or path.startswith(f"{holder}."))


def _has_inner(rows: Mapping[str, Any], path: str) -> bool:
    return any(other.startswith(f"{path}.") for other in rows)


def _blamed(session: Port, check: Check) -> Guilty:
    """Return what a check says, after the settings that differ."""
    module = session.modules.get(check.torch_path, {})
    cell = session.cells.get(check.mindspore_path, {})
    cause = "; ".join([*differences(module, cell, check.rung), check.detail])
    found = _blame(session, check, session.pair.folders)
    return found.model_copy(update={"cause": cause})


def differences(module: Mapping[str, Any], cell: Mapping[str, Any], rung: str) -> list[str]:
    """Settings that differ between partners of one kind, in words."""
    if not module or not cell:
        return []
    torch = {name: v for name, v in module["settings"].items() if name != "dropout"}  # silenced
    mindspore = cell["settings"]
    kind = kind_of(module["class"], module["classes"][0])
    if not kind or kind != kind_of(cell["class"], cell["module"]):
        return []
    if kind == "embedding" and rung == "gradients" and "padding_idx" in torch:
        row = torch["padding_idx"]
        return [f"torch never trains row {row} (padding_idx), MindSpore's Embedding does"]
    if mindspore.get("pad_mode") in ("same", "SAME"):
        return [*setting_differences(torch, mindspore), "pad_mode is 'same', torch pads by number"]
    return setting_differences(torch, mindspore)
