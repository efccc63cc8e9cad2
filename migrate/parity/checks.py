"""In: raw answers about the calls of every Cell. Out: Check records, one for each Cell and rung."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from migrate.outcomes import Verdict
from migrate.parity.compare import ORDER, Measure, merge
from migrate.parity.moments import NO_STATE, UNKNOWN_STATE
from migrate.parity.session import Session
from migrate.result import Check, Curve, Spread

Mode = Literal["pynative", "graph"]
FINE = (Verdict.PASS, Verdict.KERNEL, Verdict.NONDET)
NUMERIC = (Verdict.DIVERGED, Verdict.SHAPE, Verdict.DTYPE)
NEVER = "its forward never ran with these inputs"
NOTHING = "it returns nothing that can be compared"
VAGUE = "not compared: torch's own rounding"
NO_GRADIENT = "no floating result depends on a parameter or input"
NO_TENSOR = "no tensor of the model is saved in both frameworks"
MAGNITUDES = "magnitudes"
NO_FLOATS = "no input is a tensor of floating numbers"
UNCOUNTED = (
    NO_GRADIENT,
    NO_TENSOR,
    NO_FLOATS,
    NO_STATE,
    UNKNOWN_STATE,
)  # rungs that have nothing to compare


def measure_of(answer: Mapping[str, Any]) -> Measure:
    return Measure(**{**answer, "verdict": Verdict(answer["verdict"])})


def forward_checks(
    session: Session, rung: str, mode: Mode, answers: Sequence[Mapping[str, Any]],
    index: Mapping[str, Any],
) -> tuple[Check, ...]:  # fmt: skip
    """One Check a module, in the order in which the calls ended, then those that never ran."""
    local: dict[str, list[Measure]] = {}
    cumulative: dict[str, list[Measure]] = {}
    for answer in answers:
        for kind, target in (("local", local), ("cumulative", cumulative)):
            if kind in answer:
                target.setdefault(answer["path"], []).append(measure_of(answer[kind]))
    order = {entry["path"]: entry["order"] for entry in reversed(index["calls"])}
    checks: list[Check] = []
    failed = False
    for path in sorted(set(local) | set(cumulative), key=lambda p: order.get(p, 0)):
        one, other = local.get(path), cumulative.get(path)
        verdict, chosen = _decide(one, other, failed)
        failed = failed or verdict not in FINE
        calls = index["counts"].get(path, 0)
        notes = [chosen.detail, f"{calls} calls" if calls > 1 else "", index["note"]]
        checks.append(check_of(
            session, rung, mode, path, order.get(path, 0), verdict, chosen,
            merge(one).error if one else None, *_inside(other or []),
            "; ".join(note for note in notes if note),
        ))  # fmt: skip
    return tuple(checks)


def start_checks(session: Session) -> tuple[Check, ...]:
    """One Check a module for the values that its tensors have when they are built."""
    found: dict[str, list[Measure]] = {}
    for row in session.starts:
        path, _, name = row["key"].rpartition(".")
        detail = f"{name} {row['detail']}" if row["detail"] else ""
        verdict = Verdict.DIVERGED if detail else Verdict.PASS
        measure = Measure(verdict, row["elements"], row["error"], 0.0, row["limit"], detail)
        if row["elements"]:
            found.setdefault(path, []).append(measure)
    order = {path: number for number, path in enumerate(session.modules)}
    return tuple(
        check_of(session, "initial values", "pynative", path, order.get(path, 0),
               merge(measures).verdict, merge(measures), merge(measures).error, None, None,
               merge(measures).detail)
        for path, measures in found.items()
    )  # fmt: skip


def never_ran(
    session: Session, rung: str, mode: Mode, index: Mapping[str, Any]
) -> tuple[Check, ...]:
    """Checks for modules whose forward did not run: listed, but they fail nothing."""
    start = len(index["calls"])
    return tuple(
        check_of(session, rung, mode, path, start + number, Verdict.NOT_RUN,
               Measure(Verdict.NOT_RUN), None, None, None, NEVER)
        for number, path in enumerate(index["never"])
    )  # fmt: skip


def _decide(
    local: list[Measure] | None, cumulative: list[Measure] | None, failed: bool
) -> tuple[Verdict, Measure]:
    """The verdict of a module: its local check counts; a cumulative failure alone is inherited."""
    one = merge(local) if local else None
    other = merge(cumulative) if cumulative else None
    if one is None and other is not None and VAGUE in other.detail and not other.elements:
        return Verdict.NOT_RUN, other
    if one is None or (one.verdict is Verdict.NOT_RUN and other is not None):
        assert other is not None
        inherited = failed and other.verdict in NUMERIC
        return (Verdict.PROPAGATED if inherited else other.verdict), other
    if one.verdict in FINE and one.elements == 0:
        empty = Measure(Verdict.NOT_RUN, detail=one.detail or NOTHING)
        return Verdict.NOT_RUN, empty
    if one.verdict not in FINE or other is None or other.verdict in FINE:
        known = other is not None and other.verdict is not Verdict.NONDET
        worst = max((one.verdict, other.verdict if other and known else one.verdict),
                    key=ORDER.index)  # fmt: skip
        return (worst if one.verdict in FINE else one.verdict), one
    return Verdict.PROPAGATED, Measure(
        Verdict.PROPAGATED, one.elements, one.error, one.own, one.limit,
        f"right on torch's input; inside the model {other.detail}", spread=one.spread,
    )  # fmt: skip


def gradient_checks(
    session: Session, mode: Mode, whole: Sequence[Mapping[str, Any]],
    local: Sequence[Mapping[str, Any]], order: Mapping[str, int], blamed: frozenset[str],
) -> tuple[Check, ...]:  # fmt: skip
    """One Check a module with weights, and one for the model's inputs (the root).

    ``blamed`` are modules whose forward already fails; a wrong gradient elsewhere follows.
    """
    outer: dict[str, list[Measure]] = {}
    inner: dict[str, list[Measure]] = {}
    for answer in whole:
        path = "" if answer["name"].startswith("input[") else answer["name"].rpartition(".")[0]
        outer.setdefault(path, []).append(measure_of(answer["local"]))
    for answer in local:
        inner.setdefault(answer["path"], []).append(measure_of(answer["local"]))
    checks = []
    for path in sorted(set(outer) | set(inner), key=lambda p: order.get(p, len(order))):
        one, other = inner.get(path), outer.get(path)
        if other is None and merge(one or []).verdict in FINE:
            continue
        verdict, chosen = _decide(one, other, bool(local) or bool(blamed - {path}))
        verdict = chosen.verdict if one is None and path in blamed else verdict
        checks.append(check_of(
            session, "gradients", mode, path, order.get(path, len(order)), verdict, chosen,
            merge(one).error if one else None, *_inside(other or []), chosen.detail,
        ))  # fmt: skip
    return tuple(checks)


def training_checks(
    session: Session, rung: str, mode: Mode, answers: Sequence[Mapping[str, Any]],
    earlier: Sequence[Check],
) -> tuple[Check, ...]:  # fmt: skip
    """One Check a module with weights that move, and one for the losses (the root).

    Where the gradients of a module fail already, what its weights do follows from that.
    """
    found: dict[str, list[Measure]] = {}
    for answer in answers:
        if answer.get("rung", rung) == rung:
            path = answer["name"].rpartition(".")[0]
            found.setdefault(path, []).append(measure_of(answer["local"]))
    failed = any(check.verdict in NUMERIC and check.mode == mode for check in earlier)
    order = {path: number for number, path in enumerate(session.modules)}
    checks = []
    for path, measures in found.items():
        chosen = merge(measures)
        verdict = chosen.verdict
        if verdict in FINE and not chosen.elements:
            verdict = Verdict.NOT_RUN
        verdict = Verdict.PROPAGATED if failed and verdict in NUMERIC else verdict
        checks.append(check_of(session, rung, mode, path, order.get(path, 0), verdict, chosen,
                             None, chosen.error, chosen.limit, chosen.detail))  # fmt: skip
    return tuple(checks)


def _inside(measures: list[Measure]) -> tuple[float | None, float | None]:
    """Error and limit inside the model; none where torch's own rounding leaves nothing to compare.

    That is so too where an in-place call has overwritten what the module returned.
    """
    found = merge(measures)
    if not measures or (VAGUE in found.detail and not found.elements):
        return None, None
    return found.error, found.limit


def curve_of(told: Mapping[str, Any]) -> Curve | None:
    """The losses that were met; None where one is no number, which JSON does not know."""
    sides = {
        "torch": tuple(loss["plain"] for loss in told["torch"]),
        "reference": tuple(loss["wide"] for loss in told["torch"]),
        "mindspore": tuple(told["losses"]),
    }
    finite = all(math.isfinite(value) for side in sides.values() for value in side)
    return Curve(**sides) if finite else None


def check_of(
    session: Session, rung: str, mode: Mode, path: str, order: int, verdict: Verdict,
    chosen: Measure, local: float | None, cumulative: float | None, inside: float | None,
    detail: str,
) -> Check:  # fmt: skip
    cell_path = session.cell_of(path)
    module, cell = session.modules.get(path, {}), session.cells.get(cell_path, {})
    return Check(
        rung=rung, mode=mode, torch_path=path, mindspore_path=cell_path if cell else "",
        torch_class=module.get("class", ""), mindspore_class=cell.get("class", ""),
        torch_line=module.get("line", 0), mindspore_line=cell.get("line", 0),
        source=module.get("file", ""), order=order, verdict=verdict, elements=chosen.elements,
        local=_finite(local), cumulative=_finite(cumulative), own=_finite(chosen.own),
        limit=_finite(chosen.limit), cumulative_limit=_finite(inside), detail=detail,
        spread=Spread.model_validate(chosen.spread) if chosen.spread else None,
    )  # fmt: skip


def _finite(value: float | None) -> float | None:
    """JSON has no infinity; an error beyond all numbers becomes the largest one."""
    if value is None or value != value:
        return None
    return min(value, 1.7e308)
