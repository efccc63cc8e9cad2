"""In: raw answers about the calls of a pair's Cells. Out: Check records, Cell by Cell.

A port may divide the work differently, so a Cell that stands alone proves nothing against a whole
model that agrees; only layers of the frameworks themselves count then. Where the whole differs, a
Cell counts when its input inside the model is torch's, or when it is such a layer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from migrate.outcomes import Verdict
from migrate.parity.checks import FINE, Mode, measure_of
from migrate.parity.compare import Measure, merge
from migrate.parity.hand.inventory import kind_of
from migrate.parity.hand.session import HandSession
from migrate.result import Check

MEANT = 1e-3  # inputs nearer than this are the same input
ELSEWHERE = "this Cell divides the work differently"
OTHER_INPUT = "its input corresponds to torch's only in shape, or what is before it differs"
NOT_ALIKE = "it is called with other tensors than its torch partner"
NOT_CALLED = "it is never called here"
UNCOUNTED = (ELSEWHERE, OTHER_INPUT, NOT_ALIKE, NOT_CALLED)


def forward_checks(
    session: HandSession, rung: str, mode: Mode, answers: Sequence[Mapping[str, Any]],
    index: Mapping[str, Any],
) -> tuple[Check, ...]:  # fmt: skip
    """One Check a paired Cell, in the order in which torch's calls ended; the root is the last."""
    by_path: dict[str, list[Mapping[str, Any]]] = {}
    for answer in answers:
        by_path.setdefault(answer["path"], []).append(answer)
    order = {entry["path"]: entry["order"] for entry in reversed(index["calls"])}
    roots = [measure_of(answer["local"]) for answer in by_path.get("", [])]
    root = merge(roots)
    checks = []
    for path in sorted(by_path, key=lambda p: order.get(p, 0)):
        measure = root if not path else _decide(session, path, by_path[path], root.verdict)
        checks.append(
            check(
                session,
                rung,
                mode,
                path,
                order.get(path, 0),
                measure,
                _worst(by_path[path], "local"),
                _worst(by_path[path], "inside"),
            )
        )
    return tuple(checks)


def _worst(answers: Sequence[Mapping[str, Any]], name: str) -> float | None:
    found = [measure_of(answer[name]) for answer in answers if name in answer]
    return merge(found).error if found else None


def native(session: HandSession, path: str) -> bool:
    """Whether both partners are one and the same layer of the frameworks."""
    module, cell = session.modules[path], session.own[session.cells[path]]
    left = kind_of(module["class"], module["classes"][0])
    return bool(left) and left == kind_of(cell["class"], cell["module"])


def _decide(
    session: HandSession, path: str, answers: Sequence[Mapping[str, Any]], root: Verdict
) -> Measure:
    agrees = root in FINE
    inside = [measure_of(answer["inside"]) for answer in answers if "inside" in answer]
    local = [measure_of(answer["local"]) for answer in answers if "local" in answer]
    fed = max((answer["fed"] for answer in answers if "fed" in answer), default=0.0)
    if not inside and not local:
        return Measure(Verdict.NOT_RUN, detail=NOT_CALLED)
    whole = merge(inside) if inside else None
    if not local:
        fine = whole is not None and whole.verdict in FINE
        return whole if fine and whole else Measure(Verdict.NOT_RUN, detail=NOT_ALIKE)
    alone = merge(local)
    if alone.verdict is Verdict.BLOCKED and whole is not None:  # it did run inside the model
        alone = whole
    if alone.verdict in FINE:
        if agrees or whole is None or whole.verdict in FINE:
            return alone
        detail = f"right on torch's input; inside the model {whole.detail}"
        return Measure(Verdict.PROPAGATED, alone.elements, alone.error, alone.own, alone.limit,
                       detail)  # fmt: skip
    if agrees:
        counted = native(session, path) and alone.verdict is not Verdict.SHAPE
        return alone if counted else Measure(Verdict.NOT_RUN, detail=ELSEWHERE)
    alike = native(session, path)
    fits = alone.verdict is Verdict.SHAPE and root is Verdict.DIVERGED  # the model's shape does
    if fits and (not alike or fed > MEANT):
        return Measure(Verdict.NOT_RUN, detail=ELSEWHERE)
    if fed <= MEANT or alike:
        return alone
    return Measure(Verdict.NOT_RUN, detail=OTHER_INPUT)


def gradient_checks(
    session: HandSession, mode: Mode, whole: Sequence[Mapping[str, Any]],
    local: Sequence[Mapping[str, Any]], order: Mapping[str, int],
) -> tuple[Check, ...]:  # fmt: skip
    """The whole model's gradients at the root; each Cell's own where the whole is wrong.

    A Cell whose gradient is right by itself and wrong inside the model has inherited that.
    """
    outer: dict[str, list[Measure]] = {}
    for answer in whole:
        measure = measure_of(answer["local"])
        named = Measure(measure.verdict, measure.elements, measure.error, measure.own,
                        measure.limit, f"{answer['name']}: {measure.detail}"
                        if measure.detail and answer["name"] else measure.detail)  # fmt: skip
        outer.setdefault(_owner(answer["name"]), []).append(named)
    root = merge([measure for measures in outer.values() for measure in measures])
    inner: dict[str, list[Measure]] = {}
    for answer in local:
        inner.setdefault(answer["path"], []).append(measure_of(answer["local"]))
    checks = []
    for path in sorted((set(outer) | set(inner)) - {""}, key=lambda p: order.get(p, 0)):
        one, other = merge(inner.get(path, [])), merge(outer.get(path, []))
        chosen = one if path in inner and one.verdict not in FINE else other
        if one.verdict is Verdict.BLOCKED or one.verdict is Verdict.NOT_RUN:
            chosen = other
        inherited = chosen is other and other.verdict is Verdict.DIVERGED
        if inherited:
            chosen = Measure(Verdict.PROPAGATED, other.elements, other.error, other.own,
                             other.limit, other.detail)  # fmt: skip
        if path in outer or chosen is one:
            checks.append(check(session, "gradients", mode, path, order.get(path, 0), chosen,
                                one.error, other.error))  # fmt: skip
    last = max(order.values(), default=0) + 1
    checks.append(check(session, "gradients", mode, "", last, root, root.error, None))
    return tuple(checks)


def _owner(name: str) -> str:
    return "" if name.startswith("input[") else name.rpartition(".")[0]


def check(
    session: HandSession, rung: str, mode: Mode, path: str, order: int, measure: Measure,
    local: float | None, cumulative: float | None, cell_path: str | None = None,
) -> Check:  # fmt: skip
    """A Check record with places and classes of both partners."""
    cell_path = session.cells.get(path, "") if cell_path is None else cell_path
    module, cell = session.modules.get(path, {}), session.own.get(cell_path, {})
    return Check(
        rung=rung, mode=mode, torch_path=path, mindspore_path=cell_path,
        torch_class=module.get("class", ""), mindspore_class=cell.get("class", ""),
        torch_line=module.get("line", 0), mindspore_line=cell.get("line", 0),
        source=module.get("file", ""), order=order, verdict=measure.verdict,
        elements=measure.elements, local=_finite(local), cumulative=_finite(cumulative),
        own=_finite(measure.own), limit=_finite(measure.limit), detail=measure.detail,
    )  # fmt: skip


def _finite(value: float | None) -> float | None:
    return None if value is None or value != value else min(value, 1.7e308)
