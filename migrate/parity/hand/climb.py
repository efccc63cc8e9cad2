"""In: a pair of addresses. Out: its PairResult, rung by rung."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from migrate.outcomes import Verdict
from migrate.parity.blame import GUILTY
from migrate.parity.checks import FINE, MAGNITUDES, NO_FLOATS, NO_GRADIENT, Mode
from migrate.parity.climb import summed
from migrate.parity.compare import worst
from migrate.parity.hand.blame import first_guilty
from migrate.parity.hand.checks import UNCOUNTED, forward_checks, gradient_checks
from migrate.parity.hand.mapping import text as mapping_text
from migrate.parity.hand.parameters import parameter_checks, rate_checks, unmatched
from migrate.parity.hand.result import Blame, PairResult
from migrate.parity.hand.session import (
    HandSession,
    Pair,
    answers,
    open_mindspore,
    open_torch,
    pair_up,
    record,
    use_masks,
)
from migrate.parity.magnitudes import magnitude_checks
from migrate.parity.request import Size, VerifyRequest, has_floats
from migrate.parity.session import Sides
from migrate.parity.worker import Worker, WorkerError, WorkerLost, this_python
from migrate.result import Check, Rung

Progress = Callable[[str], None]
LOST = (WorkerError, WorkerLost)
WORKER_GIB = 4.0
EVEN_MASKS = "dropout lies in another order of axes: scaled by 1 + p instead of masked"
NO_TENSORS = "neither side has a tensor of its own"
NAMES = ("forward eval", "forward train", "gradients")


@dataclass
class Climb:
    """What was found so far."""

    rungs: list[Rung] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)
    raw: dict[str, list[dict[str, Any]]] = field(default_factory=dict)


def open_sides(request: VerifyRequest) -> Sides:
    """The two workers (started by their first request) and a scratch folder of their own."""
    scratch = Path(tempfile.mkdtemp(prefix="torch2ms_"))
    return Sides(
        Worker("hand.torch_side", request.torch_python or this_python(), scratch,
               memory=request.memory),
        Worker("hand.mindspore_side", this_python(), scratch, memory=request.memory), scratch,
    )  # fmt: skip


def verify_pair(pair: Pair, request: VerifyRequest, progress: Progress) -> tuple[PairResult, str]:
    """Build, pair and compare; answers the result and the text of the mapping file."""
    sides = open_sides(request)
    try:
        return verify_with(sides, pair, request, progress)
    finally:
        close_sides(sides)


def verify_with(
    sides: Sides, pair: Pair, request: VerifyRequest, progress: Progress
) -> tuple[PairResult, str]:
    """`verify_pair` with workers that outlive it."""
    folder = Path(tempfile.mkdtemp(prefix="pair", dir=sides.scratch))
    session = HandSession(pair, request, sides, folder)
    try:
        return _climb(session, progress)
    finally:
        if session.train == "even":
            with contextlib.suppress(*LOST):
                use_masks(session, even=False)
        shutil.rmtree(folder, ignore_errors=True)
        for worker in (sides.torch, sides.mindspore):
            worker.renew_if_large(WORKER_GIB)


def close_sides(sides: Sides) -> None:
    """End the workers and remove their folder."""
    sides.stop()
    shutil.rmtree(sides.scratch, ignore_errors=True)


def _next_step(error: str) -> str:
    """What to do about a torch side that does not run: a name is missing, or the input is wrong."""
    missing = ("NameError", "ImportError", "ModuleNotFoundError")
    if error.startswith(missing):
        return "check module and name, and that the module can be imported from this folder"
    return "give --input that runs in torch"


def _climb(session: HandSession, progress: Progress) -> tuple[PairResult, str]:
    pair, sides, timeout = session.pair, session.sides, session.request.timeout
    blank = PairResult(torch=pair.torch.text, mindspore=pair.mindspore.text)
    try:
        environment = {**sides.torch.call("hello", {}, max(timeout, 60.0))}
        progress(f"{pair.torch.text}: building it in torch")
        open_torch(session)
    except LOST as error:
        detail = f"{pair.torch.text} in torch: {error}. Next: {_next_step(str(error))}"
        return blank.model_copy(update={"detail": detail}), ""
    try:
        asked = {"device": session.request.device}
        environment |= sides.mindspore.call("hello", asked, max(timeout, 60.0))
        progress(f"{pair.mindspore.text}: building it in MindSpore, and pairing")
        open_mindspore(session)
        pair_up(session)
    except LOST as error:
        cause = f"{pair.mindspore.text} in MindSpore: {error}"
        blame = Blame(rung="import", mode="pynative", torch="", mindspore="", cause=cause,
                      mindspore_place=getattr(error, "place", ""))  # fmt: skip
        rung = Rung(name="import", mode="pynative", verdict=Verdict.BLOCKED, detail=cause)
        return blank.model_copy(update={
            "verdict": Verdict.BLOCKED, "guilty": blame, "rungs": (rung,), "detail": cause,
        }), ""  # fmt: skip
    found = _rungs(session, progress)
    matching = session.matching
    text = mapping_text(session.cells, session.parts, matching.ambiguous)
    return blank.model_copy(update={
        "inputs": tuple(session.torch["inputs"]), "environment": environment,
        "verdict": worst([rung.verdict for rung in found.rungs if _counts(rung)]),
        "guilty": first_guilty(session, found.checks, found.raw),
        "rungs": tuple(found.rungs), "checks": tuple(found.checks),
        "unmatched": unmatched(session), "cells": dict(session.cells),
        "ambiguous": tuple(f"{key}: or {', '.join(o)}" for key, o in matching.ambiguous),
    }), text  # fmt: skip


def _counts(rung: Rung) -> bool:
    """Whether a rung counts: a model without gradients or tensors has none to compare."""
    return rung.detail not in (NO_GRADIENT, NO_TENSORS, NO_FLOATS)


def _rungs(session: HandSession, progress: Progress) -> Climb:
    found = Climb()
    both = (
        f"{len(session.modules)} modules in torch, {len(session.own)} Cells in MindSpore, "
        f"{len(session.cells)} paired"
    )
    found.rungs.append(Rung(name="import", mode="pynative", verdict=Verdict.PASS, checks=1,
                            detail=both))  # fmt: skip
    held = session.torch["tensors"] or session.mindspore["tensors"]
    note = "" if held else NO_TENSORS
    _add(found, "parameters", "pynative", parameter_checks(session), 0.0, note)
    for mode in session.request.modes:
        for name in NAMES:
            began = time.monotonic()
            checks, note = _rung(session, found, name, mode)  # type: ignore[arg-type]
            _add(found, name, mode, checks, time.monotonic() - began, note)
            last = found.rungs[-1]
            progress(f"{name}, {mode}: {last.verdict.value}, {last.elements:,} numbers compared")
    if session.request.magnitudes and not _broken(found, "pynative"):
        began = time.monotonic()
        checks, note = _magnitudes(session)
        _add(found, MAGNITUDES, "pynative", checks, time.monotonic() - began, note)
    return found


def _add(
    found: Climb, name: str, mode: str, checks: Sequence[Check], seconds: float, note: str
) -> None:
    counted = [check for check in checks if check.detail not in UNCOUNTED]
    found.checks += checks
    found.rungs.append(summed(name, mode, counted, seconds, note))


def _rung(
    session: HandSession, found: Climb, name: str, mode: Mode
) -> tuple[tuple[Check, ...], str]:
    """The checks of one rung, or a note why there are none."""
    if name != "forward eval" and _broken(found, mode):
        return (), f"not tried: the whole model does not run in forward eval ({mode})"
    try:
        if name == "gradients":
            return _gradients(session, mode, _failed(found, mode)), ""
        training = name == "forward train"
        checks = _forward(session, found, name, mode)
        if training and mode == "pynative" and not _root_fine(checks) and not _failed(found, mode):
            return _even(session, found, checks)
        rates = rate_checks(session) if training and mode == "pynative" else ()
        return (*checks, *rates), EVEN_MASKS if training and session.train == "even" else ""
    except LOST as error:
        return (), f"could not run: {error}"


def _forward(session: HandSession, found: Climb, name: str, mode: Mode) -> tuple[Check, ...]:
    training = name == "forward train"
    record(session, training)
    raw = answers(session, "forward", mode, training)
    found.raw[f"{name} {mode}"] = raw
    return forward_checks(session, name, mode, raw, session.index(training))


def _magnitudes(session: HandSession) -> tuple[tuple[Check, ...], str]:
    """The whole model on inputs of other sizes, and all Cells where it fails."""
    if not has_floats(session.torch["inputs"]):
        return (), NO_FLOATS

    def climbed(size: Size) -> tuple[Check, ...]:
        record(session, False, size)
        raw = answers(session, "forward", "pynative", root_only=size.root_only,
                      folder=f"eval{size.suffix}")  # fmt: skip
        index = session.index(False, size)
        return forward_checks(session, MAGNITUDES, "pynative", raw, index)

    try:
        return magnitude_checks(session.request.magnitudes, climbed), ""
    except LOST as error:
        return (), f"could not run: {error}"


def _root_fine(checks: Sequence[Check]) -> bool:
    return all(check.verdict in FINE for check in checks if not check.torch_path)


def _failed(found: Climb, mode: Mode) -> bool:
    return any(check.mode == mode and check.verdict in GUILTY for check in found.checks)


def _even(
    session: HandSession, found: Climb, before: tuple[Check, ...]
) -> tuple[tuple[Check, ...], str]:
    """Right in eval mode, wrong in train mode: the masks may only lie in another order of axes.

    Then even masks agree, and stay for all that follows; else what failed is the answer.
    """
    name, raw = "forward train", found.raw["forward train pynative"]
    use_masks(session, even=True)
    checks = _forward(session, found, name, "pynative")
    if _root_fine(checks):
        unsure = {"verdict": Verdict.NONDET, "detail": EVEN_MASKS}
        checks = tuple(c if c.torch_path else c.model_copy(update=unsure) for c in checks)
        return (*checks, *rate_checks(session)), ""
    use_masks(session, even=False)
    found.raw[f"{name} pynative"] = raw
    return (*before, *rate_checks(session)), ""


def _broken(found: Climb, mode: Mode) -> bool:
    return any(
        (check.rung, check.mode, check.torch_path) == ("forward eval", mode, "")
        and (check.verdict is Verdict.BLOCKED or (check.verdict is Verdict.SHAPE
             and check.detail.startswith("its input"))) for check in found.checks
    )  # fmt: skip


def _gradients(session: HandSession, mode: Mode, blamed: bool) -> tuple[Check, ...]:
    """Of the whole model; where they fail in PyNative mode, of each Cell that torch calls alike.

    Where a forward rung failed already, its Cell is to blame and no search is needed.
    """
    record(session, True)
    order = {e["path"]: e["order"] for e in reversed(session.index(True)["calls"])}
    _record_gradients(session, "gradients", local=False)
    whole = answers(session, "gradients", mode, folder="gradients", cells={"": ""})
    checks = gradient_checks(session, mode, whole, (), order)
    if blamed or mode == "graph" or all(c.verdict in (*FINE, Verdict.NOT_RUN) for c in checks):
        return checks
    _record_gradients(session, "gradients_local", local=True)
    cells = {path: cell for path, cell in session.cells.items() if path}
    local = answers(session, "gradients", mode, folder="gradients_local", cells=cells)
    return gradient_checks(session, mode, whole, local, order)


def _record_gradients(session: HandSession, name: str, local: bool) -> None:
    folder = session.folder / name
    if not (folder / "index.json").exists():
        session.sides.torch.call(
            "gradients", {"folder": str(folder), "local": local}, session.request.timeout
        )
