"""Climb the ladder: one model, rung by rung, in both modes.

A model is a `Session` of either kind: paired by the record of its conversion, or, where it was
written by hand, by what both sides look like. Rungs, journal, verdicts and what happens when a
worker is killed are the same. The rung checkpoint takes the way of users: torch.save, `weights
convert`, load_param_into_net into a Cell whose weights were cleared, save_checkpoint, and `weights
convert` back. Every tensor of torch's state dict has to come back bit by bit, but for those that
MindSpore keeps no partner of.

In the journal a model has one file, replaced as a whole after each of its rungs. The folder of a
run is named by everything that its numbers depend on, so what was kept of other code or options is
never used.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from migrate.parity.checkpoint import Account, Conversion, convert_with
from migrate.parity.checks import (
    CHECKPOINT,
    FORWARD,
    GUILTY,
    MAGNITUDES,
    REGIMES,
    TRAINING,
    check_of,
    curve_of,
    order_of,
    summed,
    training_checks,
)
from migrate.parity.compare import Measure
from migrate.parity.exchange import read_index
from migrate.parity.recorded import Recorded
from migrate.parity.request import Draw, VerifyRequest, has_floats
from migrate.parity.session import LOST, Killed, Mode, Session, Sides
from migrate.parity.worker import WorkerLost
from migrate.parity.written.pages import NotOurs, write_tests
from migrate.records.outcomes import Problem, Verdict, Why
from migrate.records.result import Check, Frozen, ModelResult, Record, Rung


class Kept(Frozen):
    """One finished rung with its checks."""

    rung: Rung
    checks: tuple[Check, ...] = ()


class Page(Frozen):
    """What is known of one model: its finished rungs, and in the end its result."""

    kept: tuple[Kept, ...] = ()
    result: ModelResult | None = None


@dataclass(frozen=True)
class Journal:
    """The pages of one run; without a folder nothing outlives the process."""

    folder: Path | None = None

    def _file(self, key: str) -> Path | None:
        name = hashlib.sha256(key.encode()).hexdigest()[:24]
        return self.folder / f"{name}.json" if self.folder else None

    def read(self, key: str) -> Page:
        """Return the page of a model; an empty one where there is none that can be read."""
        file = self._file(key)
        try:
            return Page.model_validate_json(file.read_bytes()) if file else Page()
        except (OSError, ValidationError):
            return Page()

    def write(self, key: str, page: Page) -> None:
        """Replace the page of a model as a whole."""
        file = self._file(key)
        if file is not None:
            whole = file.with_suffix(".new")
            whole.write_text(page.model_dump_json(), encoding="utf-8")
            os.replace(whole, file)


def open_journal(
    request: VerifyRequest, record: Record, roots: Sequence[Path], environment: Mapping[str, str]
) -> Journal:
    """Return the journal of exactly this run; ``roots`` are the folders of sources and outputs."""
    if request.journal is None:
        return Journal()
    folder = request.journal / _fingerprint(request, record, roots, environment)
    folder.mkdir(parents=True, exist_ok=True)
    return Journal(folder)


def close_journal(request: VerifyRequest) -> None:
    """Remove what was kept, after the result has been written."""
    if request.journal is not None:
        shutil.rmtree(request.journal, ignore_errors=True)


def _fingerprint(
    request: VerifyRequest, record: Record, roots: Sequence[Path], environment: Mapping[str, str]
) -> str:
    # how the models are spread, and which of them are asked for, changes none of their numbers
    spread = replace(request, jobs=1, cluster="", builds=(), inputs=(), file="")
    asked = repr(replace(spread, journal=None, reproductions=None, tests=None))
    digest = hashlib.sha256(asked.encode())
    digest.update(record.model_dump_json().encode())
    digest.update(json.dumps(dict(environment), sort_keys=True).encode())
    for root in roots:
        for path in sorted(root.rglob("*.py") if root.is_dir() else (root,)):
            if {request.reproductions, request.tests} & set(path.parents):
                continue  # written by this very run
            digest.update(f"{path}\n".encode())
            digest.update(path.read_bytes() if path.is_file() else b"")
    return digest.hexdigest()[:24]


Progress = Callable[[str], None]
Result = TypeVar("Result")
Found = tuple[tuple[Check, ...], str]  # the checks of a rung, and a note
WORKER_GIB = 4.0


def climb(
    opened: Callable[[Path], Session[Result]], sides: Sides, progress: Progress, journal: Journal
) -> Result:
    """Verify one model on all rungs; never raises for what user code does.

    ``opened`` makes its session in an empty folder, again after someone killed a worker.
    """
    start, kills = time.monotonic(), 0
    try:
        while True:
            session = opened(Path(tempfile.mkdtemp(prefix="model", dir=sides.scratch)))
            session.kills = kills
            try:
                return _climb(session, progress, journal, start)
            except Killed as killed:
                kills = session.kills
                progress(f"{session.name}: {killed}; on from the last rung")
            finally:
                session.close()
    finally:
        for worker in (sides.torch, sides.mindspore):
            worker.renew_if_large(WORKER_GIB)


def _climb(session: Session[Result], progress: Progress, journal: Journal, start: float) -> Result:
    progress(f"{session.name}: building it on both sides")
    try:
        session.open_torch()
    except LOST as error:
        return session.refused(error, "torch")
    try:
        session.open_mindspore()
        rungs, checks = session.opening()
    except LOST as error:
        return session.refused(error, "MindSpore")
    page = journal.read(session.key)
    before = {(kept.rung.name, kept.rung.mode): kept for kept in page.kept}
    for name, mode in _rungs_of(session):
        kept = before.get((name, mode)) or _timed(session, name, mode, checks)
        rungs.append(kept.rung)
        checks += kept.checks
        if (name, mode) not in before:
            page = Page(kept=(*page.kept, kept))
            journal.write(session.key, page)
            session.kills = 0 if journal.folder else session.kills
        progress(f"{session.name}: {name}, {mode}: {_said(kept.rung)}")
    if session.request.tests is not None and isinstance(session, Recorded):
        progress(f"{session.name}: {_tested(session, checks, session.request.tests)}")
    return session.result(rungs, checks, time.monotonic() - start)


def _tested(session: Recorded, checks: Sequence[Check], folder: Path) -> str:
    """Write the tests of a model and say so, or why there are none."""
    try:
        return f"tests in {write_tests(session, checks, folder)}"
    except (*LOST, NotOurs, OSError) as error:
        return f"no tests are written: {error}"


def _rungs_of(session: Session[Any]) -> list[tuple[str, Mode]]:
    """Return the rungs to climb, mode by mode; steps are a rung from the second one on."""
    request: VerifyRequest = session.request
    modes: tuple[Mode, ...] = request.modes  # type: ignore[assignment]
    names = [*FORWARD, *(("gradients",) if request.gradients else ())]
    names += TRAINING[: -1 if request.steps == 1 else None] if request.steps else ()
    found = [(name, mode) for mode in modes for name in names]
    found += [(MAGNITUDES, "pynative")] if request.magnitudes else []
    found += [(REGIMES, "pynative")] if modes else []
    found += [(CHECKPOINT, "pynative")] if modes and isinstance(session, Recorded) else []
    return found


def _timed(session: Session[Any], name: str, mode: Mode, checks: Sequence[Check]) -> Kept:
    if name not in ("forward eval", CHECKPOINT) and session.is_broken(mode, checks):
        why = f"not tried: the whole model does not run in forward eval ({mode})"
        return Kept(rung=Rung(name=name, mode=mode, verdict=Verdict.BLOCKED, detail=why))
    began = time.monotonic()
    found, note = _rung(session, name, mode, checks)
    rung = summed(name, mode, found, time.monotonic() - began, note)
    more: dict[str, Any] = {}
    if name == "loss" and mode in session.trained:
        more["curve"] = curve_of(session.trained[mode])
    elif name in session.noted:
        more = session.noted[name]
    return Kept(rung=rung.model_copy(update=more), checks=found)


def _said(rung: Rung) -> str:
    return f"{rung.verdict.value}, {rung.checks} Cells, {rung.elements:,} numbers compared"


def _rung(session: Session[Any], name: str, mode: Mode, earlier: Sequence[Check]) -> Found:
    """Return the checks of one rung, or a note why there are none."""
    try:
        if name == "gradients":
            return _gradient_rung(session, mode, earlier), ""
        if isinstance(session, Recorded) and name == CHECKPOINT:
            return checkpoint_rung(session)
        if name == MAGNITUDES:
            return _magnitude_rung(session)
        if name == REGIMES:
            return _regime_rung(session)
        if name in TRAINING:
            answers = session.training(mode)
            told = session.trained.get(mode)
            note: str | Why = ""
            if told is not None and name == "optimizer state":
                note = told.no_state or ""
            return training_checks(session, name, mode, answers, earlier), note
        return session.forward_rung(name, mode, earlier)
    except LOST as error:
        return (), f"could not run: {error}"


def _gradient_rung(
    session: Session[Any], mode: Mode, earlier: Sequence[Check]
) -> tuple[Check, ...]:
    """Compare the gradients of the whole model; where they fail, those of every Cell by itself.

    Where a forward rung of this mode failed, its Cells are to blame and no search is needed.
    """
    blamed = frozenset(
        check.torch_path for check in earlier if check.mode == mode and check.verdict in GUILTY
    )
    whole = session.gradients(mode, local=False)
    order: dict[str, int] = {}
    with contextlib.suppress(*LOST):  # a run that goes on after this rung has not recorded it
        order = order_of(read_index(session.recorded(training=True)))
    checks = session.gradient_checks(mode, whole, (), order, blamed)
    if blamed or not session.is_searched(mode, checks):
        return checks
    local = session.gradients(mode, local=True)
    return session.gradient_checks(mode, whole, local, order, blamed)


def _magnitude_rung(session: Session[Any]) -> Found:
    """Run the whole model on inputs of other sizes: an eps or a limit may not show near one."""
    if not has_floats(session.torch["inputs"]):
        return (), Why.NO_FLOATS
    draws = [Draw(factor=factor) for factor in session.request.magnitudes]
    return draw_checks(draws, lambda draw: _drawn(session, MAGNITUDES, draw)), ""


def _drawn(session: Session[Any], rung: str, draw: Draw) -> tuple[Check, ...]:
    answers = session.forward(False, "pynative", draw.root_only, draw)
    return session.judged(rung, "pynative", answers, read_index(session.recorded(False, draw)))


def draw_checks(
    draws: Sequence[Draw], climbed: Callable[[Draw], tuple[Check, ...]]
) -> tuple[Check, ...]:
    """Run the whole model for each draw; where it fails, every Cell as well."""
    found: list[Check] = []
    for draw in draws:
        checks = climbed(replace(draw, root_only=True))
        if any(check.verdict in GUILTY for check in checks):
            checks = climbed(draw)
        found += _noted(checks, draw.text)
    return tuple(found)


def _noted(checks: Sequence[Check], note: str) -> list[Check]:
    return [
        check.model_copy(update={"detail": f"{note}: {check.detail}" if check.detail else note})
        for check in checks
    ]


def _regime_rung(session: Session[Any]) -> Found:
    """Reach what the inputs do not: the whole model on other inputs, then modules by themselves.

    Where whole numbers are put into the inputs (a padded token), the gradients count too.
    """
    folder = session.regimes()
    told = json.loads((folder / "found.json").read_text(encoding="utf-8"))
    unreached = list(told["unreached"])
    draws = [Draw(**row) for row in told["draws"]]
    found = list(draw_checks(draws, lambda draw: _drawn(session, REGIMES, draw)))
    for draw in draws if session.request.gradients else ():
        if draw.put is not None:
            whole = session.gradients("pynative", False, draw)
            checks = session.gradient_checks("pynative", whole, (), {}, frozenset())
            again = [check.model_copy(update={"rung": REGIMES}) for check in checks]
            found += _noted(again, f"gradients, {draw.text}")
    index = read_index(folder)
    order = session.positions
    for answer in session.alone(folder):
        path, measure, text = answer.path, answer.measure, index["texts"][answer.call]
        if not session.counts_alone(path, measure):
            unreached.append(f"{path}: {text}: {Why.ELSEWHERE.value}")
            continue
        check = check_of(session, REGIMES, "pynative", path, order.get(path, 0), measure,
                         local=measure.error)  # fmt: skip
        found += _noted([check], text)
    session.noted[REGIMES] = {"unreached": tuple(unreached)}
    left = f"; {len(unreached)} are reached by no input" if unreached else ""
    if not found:
        return (), Why.UNREACHED if left else Why.REACHED
    return tuple(found), f"{told['pieces']} pieces of operators{left}"


ABSENT = "is not in the file"


@dataclass(frozen=True)
class Trip:
    """What came back: reasons by torch's names, numbers compared by name, or why none."""

    faults: Mapping[str, str] = field(default_factory=dict)
    elements: Mapping[str, int] = field(default_factory=dict)
    note: str = ""


def round_trip(session: Recorded) -> Trip:
    """Send the weights there and back. Raises WorkerError, WorkerLost, and Killed."""
    folder = session.folder / CHECKPOINT
    folder.mkdir(exist_ok=True)
    sides, first = session.sides, folder / "torch.pt"
    session.ask(sides.torch, "save_state", {"file": str(first)})
    target = session.target
    model = ModelResult(
        name=target.name, source=target.source, build=target.build, inputs=(),
        verdict=Verdict.PASS, **session.weights(),
    )  # fmt: skip
    free = [key for key, name in model.weight_names.items() if not name]
    if len(free) == len(model.weight_names):
        return Trip(note=Why.NO_TENSOR)
    try:
        there = _converted(session, model, first, folder / "there.ckpt")
        paths = {"file": str(folder / "there.ckpt"), "to": str(folder / "saved.ckpt")}
        loaded = session.ask(sides.mindspore, "reload", paths)
        home = _converted(session, model, folder / "saved.ckpt", folder / "back.pt")
    except Problem as error:
        if isinstance(error.__cause__, WorkerLost):  # with all that it held: the files say nothing
            raise session.what_ended(error.__cause__) from error
        return Trip(note=f"{error.what}: {error.why}")
    asked = {"file": str(folder / "back.pt"), "free": free}
    found = session.ask(sides.torch, "compare_state", asked)
    # what only the Cell keeps (a buffer that torch does not save) is no fault
    back = {name: key for key, name in model.weight_names.items() if name}
    taken = {back.get(name, name): "the Cell does not take it" for name in loaded["unused"]}
    given = {back[name]: "the file does not give it" for name in loaded["left"] if name in back}
    lost = {**there.unknown, **dict.fromkeys((*there.absent, *home.absent), ABSENT)}
    return Trip({**found["faults"], **given, **taken, **lost}, found["elements"])


def _converted(session: Recorded, model: ModelResult, source: Path, target: Path) -> Account:
    """Convert a file, whatever has no partner; what became of its tensors."""
    limit = max(session.request.timeout, 60.0)
    asked = Conversion(source, target, model, partial=True, timeout=limit)
    return convert_with(session.sides, asked, target.parent).account


def trip_checks(session: Recorded, trip: Trip) -> tuple[Check, ...]:
    """Return one Check for each module that has tensors in torch's state dict."""
    owners: dict[str, list[str]] = {}
    for key in dict.fromkeys((*trip.elements, *trip.faults)):
        owners.setdefault(_owner(key, session.modules), []).append(key)
    order = session.positions
    paired = {pair.key for pair in session.pairing.pairs} - {row["key"] for row in session.failed}
    checks = []
    for path, keys in owners.items():
        bad = {key: trip.faults[key] for key in keys if key in trip.faults}
        without = Verdict.DIVERGED if bad.keys() & paired else Verdict.UNMATCHED
        detail = "; ".join(f"{key}: {why}" for key, why in list(bad.items())[:4])
        elements = sum(trip.elements.get(key, 0) for key in keys)
        measure = Measure(without if bad else Verdict.PASS, elements, detail=detail)
        checks.append(check_of(session, CHECKPOINT, "pynative", path, order.get(path, 0), measure))
    return tuple(checks)


def _owner(key: str, modules: Collection[str]) -> str:
    """Return the module that a tensor belongs to; the whole model where none has such a path."""
    path = key.rpartition(".")[0]
    return path if path in modules else ""


def checkpoint_rung(session: Recorded) -> tuple[tuple[Check, ...], str]:
    """Return the checks of the rung, or a note; faults by tensor are kept aside."""
    try:
        trip = round_trip(session)
    except LOST as error:
        if isinstance(error, WorkerLost):
            session.open_mindspore()
        blocked = Measure(Verdict.BLOCKED, detail=f"the checkpoint cannot be loaded: {error}")
        return (check_of(session, CHECKPOINT, "pynative", "", 0, blocked),), ""
    session.noted[CHECKPOINT] = {"faults": dict(trip.faults)}
    return trip_checks(session, trip), trip.note
