"""In: a guilty Cell of a port. Out: where its code parts from torch's, and what cures it."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

from migrate.parity.exchange import ArrayStore, Spec
from migrate.parity.first_call import LEAST, FirstCall, parting
from migrate.parity.hand.session import HandSession
from migrate.parity.worker import WorkerError, WorkerLost
from migrate.result import Check

FORWARD = ("forward eval", "forward train")


def examined(session: HandSession, check: Check, path: str, cell: str) -> tuple[FirstCall, str]:
    """The first call that differs, on both sides, and the change with which the Cell passes.

    Both are empty where nothing is learnt: gradients, graph mode, a Cell that lost its worker.
    """
    inner = FirstCall()
    if check.rung not in FORWARD or check.mode != "pynative":
        return inner, ""
    folder = session.folder / (session.train if check.rung == FORWARD[1] else "eval")
    asked = {"folder": str(folder), "path": path, "call": 0, "cell": cell}
    with contextlib.suppress(WorkerError, WorkerLost):
        inner = _first_call(session, asked, check.limit or 0.0) or inner
        return inner, _cure(session, asked, inner)
    return inner, ""


def _first_call(session: HandSession, asked: Mapping[str, Any], limit: float) -> FirstCall | None:
    rows: list[list[Spec]] = []
    stores: list[ArrayStore] = []
    for worker, name in ((session.sides.torch, "torch"), (session.sides.mindspore, "mindspore")):
        into = session.folder / f"calls_{name}"
        into.mkdir(exist_ok=True)
        answer = worker.call("inner_calls", {**asked, "into": str(into)}, session.request.timeout)
        rows.append(answer["rows"])
        stores.append(ArrayStore(into))
    apart = max(4 * limit, LEAST)
    return parting(rows[0], rows[1], stores[0], stores[1], apart, rewritten=True)


def _cure(session: HandSession, asked: Mapping[str, Any], inner: FirstCall) -> str:
    request = session.request
    answer = session.sides.mindspore.call("remedy", {
        **asked, "torch": inner.torch, "mindspore": inner.mindspore,
        "settings": session.modules[asked["path"]]["settings"],
        "strictness": {"k": request.k, "rtol": request.rtol, "atol": request.atol},
    }, request.timeout)  # fmt: skip
    return str(answer["text"])
