"""In: a paired session. Out: Check records about its tensors: missing, unlike, frozen, tied."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from migrate.outcomes import Verdict
from migrate.parity.compare import Measure
from migrate.parity.hand.checks import check
from migrate.parity.hand.fusing import Part
from migrate.parity.hand.session import HandSession
from migrate.result import Check

RUNG = "parameters"
RATE = 1e-6


def parameter_checks(session: HandSession) -> tuple[Check, ...]:
    """One Check for all that was copied, and one for each fault."""
    copied = [part for part in session.parts if part.key not in session.constants]
    shapes = {row["key"]: row["shape"] for row in session.torch["tensors"]}
    elements = sum(math.prod(shapes[key]) for key in {part.key for part in copied})
    text = f"{len({part.key for part in copied})} tensors copied and read back"
    good = check(session, RUNG, "pynative", "", 0, Measure(Verdict.PASS, elements, detail=text),
                 None, None)  # fmt: skip
    return (good, *_faults(session))


def _faults(session: HandSession) -> Iterator[Check]:
    matching = session.matching
    trained = {row["key"]: row["trained"] for row in session.torch["tensors"]}
    for weight in matching.torch_left:
        if weight.parameter and trained[weight.place]:
            yield _fault(session, Verdict.UNMATCHED, weight.place, "",
                         "the port has no such parameter")  # fmt: skip
    for weight in matching.mindspore_left:
        if weight.parameter and weight.trained:
            yield _fault(session, Verdict.UNMATCHED, "", weight.place,
                         "torch has no such parameter")  # fmt: skip
    for one, other in matching.unlike:
        why = f"shape {list(other.shape)} in MindSpore, {list(one.shape)} in torch"
        yield _fault(session, Verdict.SHAPE, one.place, other.place, why)
    for row in session.failed:
        yield _fault(session, Verdict.SHAPE, row["key"], row["place"], row["why"])
    yield from _training(session)
    yield from _ties(session)


def _training(session: HandSession) -> Iterator[Check]:
    """What one side trains and the other does not."""
    torch = {row["key"]: row for row in session.torch["tensors"]}
    own = {row["place"]: row for row in session.mindspore["tensors"]}
    for part in session.parts:
        one, other = torch[part.key], own[part.place]
        if one["trained"] == other["trained"]:
            continue
        if one["trained"]:
            state = "has requires_grad=False" if other["parameter"] else "is no Parameter"
            why = f"torch trains it, here it {state}"
        else:
            frozen = "is frozen" if one["kind"] == "parameter" else "is a buffer"
            why = f"in torch it {frozen}, here it is trained"
        yield _fault(session, Verdict.DIVERGED, part.key, part.place, why)


def _ties(session: HandSession) -> Iterator[Check]:
    """Tensors that torch keeps once and the port twice drift apart when they are trained."""
    whole: dict[str, list[Part]] = {}
    for part in session.parts:
        if part.torch_rows is None and part.rows is None:
            whole.setdefault(part.key, []).append(part)
    for key, parts in whole.items():
        for part in parts[1:]:
            why = f"torch shares one tensor, here {parts[0].place} is another"
            yield _fault(session, Verdict.DIVERGED, key, part.place, why)


def _fault(session: HandSession, verdict: Verdict, key: str, place: str, why: str) -> Check:
    cell = place.rpartition(".")[0] if place else session.cells.get(key.rpartition(".")[0], "")
    path = key.rpartition(".")[0] if key else _back(session).get(cell, "")
    name = key.rpartition(".")[2] or place.rpartition(".")[2]
    measure = Measure(verdict, detail=f"{name}: {why}")
    return check(session, RUNG, "pynative", path, 0, measure, None, None, cell)


def _back(session: HandSession) -> Mapping[str, str]:
    return {cell: path for path, cell in session.cells.items()}


def rate_checks(session: HandSession) -> tuple[Check, ...]:
    """Dropout between recurrent layers: no mask can be shared, so the rates are compared."""
    found = []
    own: Mapping[str, Any] = session.mindspore["rates"]
    for path, rate in session.torch["rates"].items():
        cell = session.cells.get(path)
        if cell is None or cell not in own:
            continue
        same = abs(own[cell] - rate) < RATE
        detail = "" if same else f"dropout between the layers is {own[cell]:g}, in torch {rate:g}"
        measure = Measure(Verdict.PASS if same else Verdict.DIVERGED, 1, detail=detail)
        found.append(check(session, "forward train", "pynative", path, 0, measure, None, None))
    return tuple(found)


def unmatched(session: HandSession) -> tuple[str, ...]:
    """Tensors and Cells that one side has alone."""
    matching, partners = session.matching, set(session.cells.values())
    lines = [f"torch {weight.place}: no such tensor" for weight in matching.torch_left]
    lines += [f"MindSpore {weight.place}: torch has no such tensor"
              for weight in matching.mindspore_left if weight.parameter]  # fmt: skip
    lines += [f"torch {path} ({row['class']}): no such Cell"
              for path, row in session.modules.items()
              if path not in session.cells and not row["container"]]  # fmt: skip
    lines += [f"MindSpore {path} ({row['class']}): no such module"
              for path, row in session.own.items()
              if path not in partners and row["class"] not in ("CellList", "CellDict")]  # fmt: skip
    return tuple(lines)
