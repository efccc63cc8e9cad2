"""In: all checks of a pair. Out: the first guilty Cell on both sides, with a cause."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from migrate.outcomes import Verdict
from migrate.parity.blame import GUILTY, RUNGS, setting_differences
from migrate.parity.hand.checks import MEANT
from migrate.parity.hand.cures import examined
from migrate.parity.hand.inventory import kind_of
from migrate.parity.hand.parameters import RUNG
from migrate.parity.hand.result import Blame
from migrate.parity.hand.session import HandSession
from migrate.result import Check


def first_guilty(
    session: HandSession, checks: Sequence[Check], raw: Mapping[str, Sequence[Mapping[str, Any]]]
) -> Blame | None:
    """The deepest Cell that fails first, rung by rung; tensors that are unlike come before all."""
    parameters = [check for check in checks if check.rung == RUNG]
    unlike = [check for check in parameters if check.verdict in GUILTY]
    if unlike:
        return _blame(session, unlike[0])
    for rung, mode in RUNGS:
        failing = [check for check in checks if (check.rung, check.mode) == (rung, mode)
                   and check.verdict in GUILTY]  # fmt: skip
        if failing:
            first = min(failing, key=lambda check: check.order)
            return _narrowed(session, first, raw.get(f"{rung} {mode}", ()))
    missing = [check for check in parameters if check.verdict is Verdict.UNMATCHED]
    return _blame(session, missing[0]) if missing else None


def _narrowed(session: HandSession, check: Check, raw: Sequence[Mapping[str, Any]]) -> Blame:
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
    right = {session.cells[a["path"]] for a in raw if a["path"] and _state(a)}
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
        cell = session.own[other[0]]
        cause = f"{cause}; MindSpore runs {other[0]} ({cell['class']}) there"
        blame = blame.model_copy(update={
            "mindspore": other[0], "mindspore_place": _place(cell),
            "call": _line(session, cell),
        })  # fmt: skip
    return _cured(session, check, blame.model_copy(update={"cause": cause}))


def _cured(session: HandSession, check: Check, blame: Blame) -> Blame:
    """With the calls where the code parts, and what cures it in front of the other causes."""
    pair = (blame.torch, blame.mindspore)
    if session.cells.get(pair[0]) != pair[1]:
        pair = (check.torch_path, check.mindspore_path)
    inner, cure = examined(session, check, *pair)
    told = f"MindSpore's numbers are {inner.relation}" if inner.relation else ""
    passes = f"it passes with {cure}" if cure else ""
    return blame.model_copy(update={
        "cause": "; ".join(text for text in (passes, told, blame.cause) if text),
        "torch_call": inner.torch, "mindspore_call": inner.mindspore,
    })  # fmt: skip


def _first_input(session: HandSession, raw: Sequence[Mapping[str, Any]]) -> str:
    """The first Cell that is right by itself and receives something else than in torch."""
    for answer in raw:
        if answer["path"] and "fed" in answer:
            if answer["fed"] > MEANT:
                cell = session.cells[answer["path"]]
                return f"the first input that differs is that of {answer['path']} -> {cell}"
            if answer["local"]["verdict"] not in ("PASS", "KERNEL", "NONDET"):
                return ""
    return ""


def _missing(session: HandSession, path: str) -> str:
    prefix = f"{path}." if path else ""
    left = [w.place for w in session.matching.torch_left
            if w.parameter and w.place.startswith(prefix)]  # fmt: skip
    if not path:
        left += [f"{w.place} (MindSpore)" for w in session.matching.mindspore_left if w.trained]
    return f"without partner: {', '.join(left[:3])}" if left else ""


def _stopped(session: HandSession, check: Check, cell: str) -> Blame:
    """The whole model raised: the innermost Cell that was running."""
    back = {own: path for path, own in session.cells.items()}
    row = session.own.get(cell, {})
    return Blame(
        rung=check.rung, mode=check.mode, torch=back.get(cell, ""), mindspore=cell,
        call=_line(session, row), cause=check.detail, mindspore_place=_place(row),
        torch_place=_place(session.modules.get(back.get(cell, ""), {})),
    )  # fmt: skip


def _between(
    session: HandSession, holder: str, raw: Sequence[Mapping[str, Any]], training: bool
) -> tuple[list[str], list[str]]:
    """Leaves without partner that run, on each side, where the numbers begin to differ."""
    state = {answer["path"]: _state(answer) for answer in raw if answer["path"]
             and answer.get("call", 0) == 0}  # fmt: skip
    torch = [entry["path"] for entry in session.index(training)["calls"]]
    mindspore = [call["path"] for call in session.trace["calls"]]
    leaves = [path for path in torch if state.get(path) is not None and _below(path, holder)]
    wrong = next((path for path in leaves if state[path] is False), None)
    if wrong is None:
        after, before = leaves[-1] if leaves else None, None
    else:
        rights = leaves[: leaves.index(wrong)]
        after, before = (rights[-1] if rights else None), wrong
    own = session.cells
    held = {row["key"].rpartition(".")[0] for row in session.torch["tensors"]}
    kept = {row["place"].rpartition(".")[0] for row in session.mindspore["tensors"]}
    one = _stretch(torch, after, before, lambda p: p not in own and _below(p, holder)
                   and p not in held and not _has_inner(session.modules, p))  # fmt: skip
    partners = set(own.values())
    two = _stretch(
        mindspore, own[after] if after else None, own[before] if before else None,
        lambda p: p not in partners and _below(p, own[holder]) and p not in kept
        and not _has_inner(session.own, p),
    )  # fmt: skip
    return one, two


def _state(answer: Mapping[str, Any]) -> bool | None:
    """True: right inside the model; False: wrong; None: unknown."""
    if "fed" in answer and answer["fed"] > MEANT:
        return False
    if "inside" not in answer:
        return None
    return answer["inside"]["verdict"] in ("PASS", "KERNEL", "NONDET")


def _stretch(calls: Sequence[str], after: str | None, before: str | None, wanted: Any) -> list[str]:
    start = calls.index(after) + 1 if after in calls else 0
    end = calls.index(before) if before in calls else len(calls)
    return list(dict.fromkeys(path for path in calls[start:end] if wanted(path)))


def _below(path: str, holder: str) -> bool:
    return path != holder and (not holder or path.startswith(f"{holder}."))


def _has_inner(rows: Mapping[str, Any], path: str) -> bool:
    return any(other.startswith(f"{path}.") for other in rows)


def _blame(session: HandSession, check: Check) -> Blame:
    module = session.modules.get(check.torch_path, {})
    cell = session.own.get(check.mindspore_path, {})
    cause = "; ".join([*differences(module, cell, check.rung), check.detail])
    return Blame(
        rung=check.rung, mode=check.mode, torch=check.torch_path, mindspore=check.mindspore_path,
        call=_line(session, cell), cause=cause, torch_place=_place(module),
        mindspore_place=_place(cell),
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


def _place(row: Mapping[str, Any]) -> str:
    return f"{row['file']}:{row['line']}" if row.get("file") else ""


def _line(session: HandSession, row: Mapping[str, Any]) -> str:
    """The line of source that made a Cell."""
    if not row.get("file"):
        return ""
    for folder in session.pair.folders:
        path = Path(folder) / row["file"]
        if path.is_file():
            lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
            number = int(row["line"])
            return lines[number - 1].strip() if 0 < number <= len(lines) else ""
    return ""
