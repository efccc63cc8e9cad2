"""Name the first guilty Cell of a port, and the call between the last right and the first wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from migrate.parity.checks import FINE, PARAMETERS
from migrate.parity.diagnose import (
    cause_of,
    examined,
    first_failing,
    line_of,
    place_of,
    setting_differences,
)
from migrate.parity.exchange import read_index
from migrate.parity.hand.inventory import kind_of
from migrate.parity.worker import Payload
from migrate.records.outcomes import Verdict
from migrate.records.result import Check, Guilty

if TYPE_CHECKING:
    from migrate.parity.hand.port import Port

MEANT = 1e-3  # inputs nearer than this are the same input


def first_guilty(session: Port, checks: Sequence[Check]) -> Guilty | None:
    """Return the deepest Cell that fails first, by rung; unlike tensors come before all."""
    check = first_failing(checks)
    if check is None:
        lacking = [c for c in checks if (c.rung, c.verdict) == (PARAMETERS, Verdict.UNMATCHED)]
        return _blame(session, lacking[0]) if lacking else None
    if check.rung == PARAMETERS:
        return _blame(session, check)
    return _narrowed(session, check, session.raw.get((check.rung, check.mode), ()))


def _narrowed(session: Port, check: Check, raw: Sequence[Payload]) -> Guilty:
    """Inside a guilty Cell, what lies between the last right and the first wrong call."""
    blame = _blame(session, check)
    broken = [answer["inside_of"] for answer in raw if answer.get("inside_of")]
    if broken and not check.torch_path:
        return _stopped(session, check, broken[0][-1])
    if check.rung == "gradients" or not raw:
        return blame
    first = _first_input(session, raw)
    one, other = _between(session, check.torch_path, raw, check.rung == "forward train")
    follows: Mapping[str, list[str]] = next(
        (answer["follows"] for answer in raw if "follows" in answer), {}
    )
    right = {session.pairs[a["path"]] for a in raw if a["path"] and _state(a)}
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


def _first_input(session: Port, raw: Sequence[Payload]) -> str:
    """The first Cell that is right by itself and receives something else than in torch."""
    for answer in raw:
        if answer["path"] and "fed" in answer:
            if answer["fed"] > MEANT:
                cell = session.pairs[answer["path"]]
                return f"the first input that differs is that of {answer['path']} -> {cell}"
            if Verdict(answer["local"]["verdict"]) not in FINE:
                return ""
    return ""


def _missing(session: Port, path: str) -> str:
    prefix = f"{path}." if path else ""
    left = [w.place for w in session.matching.torch_left
            if w.parameter and w.place.startswith(prefix)]  # fmt: skip
    if not path:
        left += [f"{w.place} (MindSpore)" for w in session.matching.mindspore_left if w.trained]
    return f"without partner: {', '.join(left[:3])}" if left else ""


def _stopped(session: Port, check: Check, cell: str) -> Guilty:
    """The whole model raised: the innermost Cell that was running."""
    back = {own: path for path, own in session.pairs.items()}
    row = session.cells.get(cell, {})
    return Guilty(
        rung=check.rung, mode=check.mode, torch=back.get(cell, ""), mindspore=cell,
        call=line_of(session.pair.folders, row), cause=check.detail, mindspore_place=place_of(row),
        torch_place=place_of(session.modules.get(back.get(cell, ""), {})),
    )  # fmt: skip


def _between(
    session: Port, holder: str, raw: Sequence[Payload], training: bool
) -> tuple[list[str], list[str]]:
    """Leaves without partner that run, on each side, where the numbers begin to differ."""
    state = {answer["path"]: _state(answer) for answer in raw if answer["path"]
             and answer.get("call", 0) == 0}  # fmt: skip
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


def _state(answer: Mapping[str, Any]) -> bool | None:
    """True: right inside the model; False: wrong; None: unknown."""
    if "fed" in answer and answer["fed"] > MEANT:
        return False
    if "cumulative" not in answer:
        return None
    return Verdict(answer["cumulative"]["verdict"]) in FINE


def _stretch(calls: Sequence[str], after: str | None, before: str | None, wanted: Any) -> list[str]:
    start = calls.index(after) + 1 if after in calls else 0
    end = calls.index(before) if before in calls else len(calls)
    return list(dict.fromkeys(path for path in calls[start:end] if wanted(path)))


def _below(path: str, holder: str) -> bool:
    return path != holder and (not holder or path.startswith(f"{holder}."))


def _has_inner(rows: Mapping[str, Any], path: str) -> bool:
    return any(other.startswith(f"{path}.") for other in rows)


def _blame(session: Port, check: Check) -> Guilty:
    module = session.modules.get(check.torch_path, {})
    cell = session.cells.get(check.mindspore_path, {})
    cause = "; ".join([*differences(module, cell, check.rung), check.detail])
    return Guilty(
        rung=check.rung, mode=check.mode, torch=check.torch_path, mindspore=check.mindspore_path,
        call=line_of(session.pair.folders, cell), cause=cause, torch_place=place_of(module),
        mindspore_place=place_of(cell),
    )  # fmt: skip


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
