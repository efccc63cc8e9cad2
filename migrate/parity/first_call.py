"""In: a guilty Cell. Out: the first call in its code whose result is not torch's, on both sides."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass

from migrate.parity.exchange import Array, ArrayStore, Spec
from migrate.parity.relation import relation
from migrate.parity.session import Session, recorded
from migrate.parity.tolerance import relative_error
from migrate.parity.worker import WorkerError, WorkerLost
from migrate.result import Check

LEAST = 2e-6


@dataclass(frozen=True)
class FirstCall:
    """Where the two part: ``net.py:12: x.var(1)`` on each side, and how the numbers relate."""

    torch: str = ""
    mindspore: str = ""
    relation: str = ""


def first_call(session: Session, check: Check) -> FirstCall | None:
    """Watch the Cell of a failing forward check on both sides; None where nothing is learnt."""
    if not check.rung.startswith("forward"):
        return None
    rows: list[list[Spec]] = []
    with contextlib.suppress(WorkerError, WorkerLost):
        folder = recorded(session, check.rung == "forward train")
        asked = {"folder": str(folder), "path": check.torch_path, "call": 0,
                 "cell": check.mindspore_path}  # fmt: skip
        for worker in (session.sides.torch, session.sides.mindspore):
            into = session.folder / f"calls_{worker.side}"
            into.mkdir(exist_ok=True)
            answer = session.ask(worker, "inner_calls", {**asked, "into": str(into)})
            rows.append(answer["rows"])
    if len(rows) < 2:
        return None
    stores = [ArrayStore(session.folder / f"calls_{side}") for side in
              (session.sides.torch.side, session.sides.mindspore.side)]  # fmt: skip
    limit = max(4 * (check.limit or 0.0), LEAST)
    return parting(rows[0], rows[1], stores[0], stores[1], limit)


def parting(
    torch: Sequence[Spec], mindspore: Sequence[Spec], one: ArrayStore, other: ArrayStore,
    limit: float,
) -> FirstCall | None:  # fmt: skip
    """The first result of torch that MindSpore lacks, and what stands there; None: it has all.

    A result that is only part of an expression whose value is right was computed in another way.
    """
    partner: list[int] = []
    start = 0
    for row in torch:
        wanted = one.get(row["key"])
        places = range(start, len(mindspore))
        found = (n for n in places if _same(wanted, other.get(mindspore[n]["key"]), limit))
        partner.append(next(found, -1))
        start = max(start, partner[-1])
    right = [row["place"] for row, at in zip(torch, partner, strict=True) if at >= 0]
    wrong = next(
        (n for n, at in enumerate(partner) if at < 0 and not _within(torch[n]["place"], right)), -1
    )
    if wrong < 0:
        return None
    after = max(partner[:wrong], default=-1) + 1
    left = [row for n, row in enumerate(mindspore) if n >= after and n not in partner]
    place = torch[wrong]["place"]
    mine = _counterpart(torch[wrong], left)
    if mine is None:
        return FirstCall(place)
    return FirstCall(place, mine["place"], relation(
        one.get(torch[wrong]["key"]), other.get(mine["key"]), place
    ))  # fmt: skip


def _within(place: str, right: Sequence[str]) -> bool:
    """Whether a call is part of a larger expression in its line that is right."""
    head, _, text = place.partition(": ")
    return any(one != place and one.startswith(f"{head}: ") and text in one for one in right)


def _counterpart(wrong: Spec, left: Sequence[Spec]) -> Spec | None:
    """What MindSpore computes instead: in the same function, of the same shape, if there is one."""
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
