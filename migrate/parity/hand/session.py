"""In: a pair of addresses and two workers. Out: both models, paired and loaded; raw answers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from migrate.outcomes import Verdict
from migrate.parity.checks import FINE
from migrate.parity.exchange import ArrayStore
from migrate.parity.hand.cells import pair_cells
from migrate.parity.hand.fusing import Part
from migrate.parity.hand.inventory import Side, mindspore_side, torch_side
from migrate.parity.hand.mapping import Fixed
from migrate.parity.hand.matching import Matching, match, with_choice, with_sums
from migrate.parity.request import PLAIN, Address, Size, VerifyRequest
from migrate.parity.session import Sides
from migrate.parity.worker import Payload, WorkerLost

TRIES = 24
BETTER = 0.5  # another choice must at least halve the error to be taken while something is wrong
RESTARTS = 4


@dataclass(frozen=True)
class Pair:
    """What is compared: the addresses, where modules are looked for, and what is known already."""

    torch: Address
    mindspore: Address
    folders: tuple[str, ...]
    fixed: Fixed = field(default_factory=lambda: Fixed({}, ()))


@dataclass
class HandSession:
    """What both sides said when they were built, and how they correspond."""

    pair: Pair
    request: VerifyRequest
    sides: Sides
    folder: Path
    torch: Payload = field(default_factory=dict)
    mindspore: Payload = field(default_factory=dict)
    trace: Payload = field(default_factory=lambda: {"calls": [], "error": ""})
    matching: Matching = field(default_factory=lambda: Matching(()))
    parts: tuple[Part, ...] = ()
    cells: dict[str, str] = field(default_factory=dict)
    failed: list[Payload] = field(default_factory=list)
    constants: tuple[str, ...] = ()
    train: str = "train"  # the folder of what torch records in train mode; "even": see use_masks

    @property
    def modules(self) -> dict[str, Payload]:
        return {row["path"]: row for row in self.torch["modules"]}

    @property
    def own(self) -> dict[str, Payload]:
        return {row["path"]: row for row in self.mindspore["cells"]}

    def index(self, training: bool, size: Size = PLAIN) -> dict[str, Any]:
        name = f"{self.train if training else 'eval'}{size.suffix}"
        path = self.folder / name / "index.json"
        loaded: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return loaded


def open_torch(session: HandSession) -> None:
    """Build the torch model and record its eval forward. Raises WorkerError, WorkerLost."""
    pair, request = session.pair, session.request
    session.torch = session.sides.torch.call("build", {
        "module": pair.torch.module, "build": pair.torch.build, "folders": list(pair.folders),
        "inputs": list(request.inputs), "seed": request.seed,
        "folder": str(session.folder / "weights"), "runs": True, "half": True,
    }, request.timeout)  # fmt: skip
    record(session, training=False)


def record(session: HandSession, training: bool, size: Size = PLAIN) -> None:
    """What torch's modules receive and return, written once."""
    folder = session.folder / f"{session.train if training else 'eval'}{size.suffix}"
    if not (folder / "index.json").exists():
        asked = {"training": training, "folder": str(folder), **asdict(size)}
        session.sides.torch.call("record", asked, session.request.timeout)


def use_masks(session: HandSession, even: bool) -> None:
    """Dropout masks that drop, or even ones, which do not ask in which order the axes lie."""
    session.train = "even" if even else "train"
    for worker in (session.sides.torch, session.sides.mindspore):
        worker.call("masks", {"even": even}, session.request.timeout)


def open_mindspore(session: HandSession) -> None:
    """Build the net; also after the worker was lost, then with the weights found before."""
    pair, request = session.pair, session.request
    session.mindspore = session.sides.mindspore.call("build", {
        "module": pair.mindspore.module, "build": pair.mindspore.build,
        "folders": list(pair.folders), "seed": request.seed, "device": request.device,
        "folder": str(session.folder / "own"),
    }, request.timeout)  # fmt: skip
    if session.parts:
        session.failed = load(session, session.parts)


def pair_up(session: HandSession) -> None:
    """Find the partners, trying where nothing else decides, and load torch's weights."""
    index = session.index(False)
    try:
        session.trace = session.sides.mindspore.call(
            "trace", {"folder": str(session.folder / "eval")}, session.request.timeout
        )
    except WorkerLost as lost:
        session.trace = {"calls": [], "error": lost.why}
        open_mindspore(session)
    torch = torch_side(session.torch, index)
    mindspore = mindspore_side(session.mindspore, session.trace)
    fixed = session.pair.fixed
    matching = with_sums(match(torch, mindspore, fixed.parts), torch)
    session.matching = _with_ties(session, matching, torch, mindspore)
    session.constants = constants(session, session.matching.parts)
    session.parts = _tried(session)
    session.cells = pair_cells(torch, mindspore, session.parts, fixed.cells)


def _with_ties(session: HandSession, matching: Matching, torch: Side, mindspore: Side) -> Matching:
    """Give tensors that torch shares, and MindSpore keeps twice, the shared numbers."""
    left = list(matching.mindspore_left)
    added: list[Part] = []
    for row in session.torch["tensors"]:
        fitting = [w for w in left if w.parameter and w.shape == tuple(row["shape"])]
        if row["tied"] and fitting:
            added.append(Part(row["tied"], fitting[0].place))
            left.remove(fitting[0])
    return replace(matching, parts=(*matching.parts, *added), mindspore_left=tuple(left))


def constants(session: HandSession, parts: Sequence[Part]) -> tuple[str, ...]:
    """Torch's tables (no draw, not trained) whose partners hold numbers of their own already.

    They are part of the port, so they are left as they are: copying would hide a wrong table.
    """
    rows = {row["key"]: row for row in session.torch["tensors"]}
    own = {row["place"]: row for row in session.mindspore["tensors"]}
    torch, mindspore = ArrayStore(session.folder / "weights"), ArrayStore(session.folder / "own")
    found = []
    for part in parts:
        row, start = rows[part.key], own.get(part.place, {}).get("start", "")
        if row["trained"] or not row["start"] or not start:
            continue
        kept = np.array_equal(torch.get(row["start"]), torch.get(row["array"]))
        if kept and _speaks(torch.get(row["start"])) and _speaks(mindspore.get(start)):
            found.append(part.key)
    return tuple(found)


def _speaks(numbers: Any) -> bool:
    """Whether a tensor is more than one number all over, which may be a place to load into."""
    return bool(numbers.size and (numbers != numbers.flat[0]).any())


def load(session: HandSession, parts: Sequence[Part]) -> list[Payload]:
    """Copy torch's numbers into the net; answers what did not fit."""
    arrays = {row["key"]: row["array"] for row in session.torch["tensors"]}
    rows = [{**asdict(part), "array": arrays[part.key]} for part in parts
            if part.key not in session.constants]  # fmt: skip
    answer = session.sides.mindspore.call(
        "load", {"parts": rows, "folder": str(session.folder / "weights")}, session.request.timeout
    )
    failed: list[Payload] = answer["failed"]
    return failed


def _tried(session: HandSession) -> tuple[Part, ...]:
    """The parts under which the whole model agrees, or comes nearest."""
    matching = session.matching
    best, choices = matching.parts, list(matching.choices)
    session.failed = load(session, best)
    if session.trace["error"] or not choices:
        return best
    error = _error(session)
    for change in choices[:TRIES]:
        if error == 0.0:
            break
        parts = with_choice(replace(matching, parts=best), change)
        load(session, parts)
        now = _error(session)
        if now < BETTER * error:
            best, error = parts, now
    session.failed = load(session, best)
    return best


def _error(session: HandSession) -> float:
    """The error of the whole model in eval mode: 0 when it agrees, infinite when it breaks off."""
    for check in answers(session, "forward", "pynative", training=False, root_only=True):
        measure = check["local"]
        if Verdict(measure["verdict"]) in FINE:
            return 0.0
        return float(measure["error"]) if measure["error"] is not None else float("inf")
    return float("inf")


def answers(
    session: HandSession, command: str, mode: str, training: bool = False,
    root_only: bool = False, folder: str = "", cells: Mapping[str, str] | None = None,
) -> list[Payload]:  # fmt: skip
    """Checks of one rung; a Cell that ends or hangs the worker costs itself only."""
    request = session.request
    checks: list[Payload] = []
    done: list[Any] = []
    payload = {
        "folder": str(session.folder / (folder or (session.train if training else "eval"))),
        "mode": mode, "root_only": root_only, "scratch": str(session.folder / "probes"),
        "strictness": {"k": request.k, "rtol": request.rtol, "atol": request.atol},
        "cells": session.cells, "paths": dict(session.cells if cells is None else cells),
        "parts": [asdict(part) for part in session.parts],
    }  # fmt: skip

    def keep(event: Payload) -> None:
        if "check" in event:
            checks.append(event["check"])
            done.append([event["check"]["path"], event["check"].get("call", 0)])

    for _ in range(RESTARTS):
        try:
            session.sides.mindspore.call(command, {**payload, "done": done}, request.timeout, keep)
            return checks
        except WorkerLost as lost:
            at = lost.at or ["", -1]
            open_mindspore(session)
            lost_check = {
                "path": at[0],
                "call": max(at[1], 0),
                "name": "",
                "local": _lost(lost.why),
            }
            checks.append(lost_check)
            done.append(at)
            if not at[0]:
                return checks
    return checks


def _lost(why: str) -> Payload:
    return {"verdict": Verdict.BLOCKED.value, "elements": 0, "error": None, "own": None,
            "limit": None, "detail": why}  # fmt: skip
