"""In: one model and a pair of workers. Out: its ModelResult, rung by rung."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from migrate.outcomes import Verdict
from migrate.parity.blame import GUILTY, first_guilty
from migrate.parity.checks import (
    MAGNITUDES,
    NEVER,
    NO_GRADIENT,
    NOTHING,
    UNCOUNTED,
    VAGUE,
    Mode,
    curve_of,
    forward_checks,
    gradient_checks,
    never_ran,
    start_checks,
    training_checks,
)
from migrate.parity.compare import worst
from migrate.parity.exchange import read_index
from migrate.parity.journal import Journal, Kept, Page
from migrate.parity.magnitudes import magnitude_rung
from migrate.parity.opening import (
    import_rung,
    parameter_checks,
    parameter_rung,
    parameters,
    unmatched,
    weight_names,
)
from migrate.parity.request import VerifyRequest, arguments
from migrate.parity.round_trip import CHECKPOINT, checkpoint_rung
from migrate.parity.session import (
    Killed,
    Session,
    Sides,
    Target,
    forward,
    gradients,
    open_mindspore,
    open_torch,
    recorded,
    training,
)
from migrate.parity.worker import WorkerError, WorkerLost
from migrate.parity.written.pages import NotOurs, write_tests
from migrate.result import Check, ModelResult, Rung
from migrate.weights import Names

Progress = Callable[[str], None]
LOST = (WorkerError, WorkerLost)
WORKER_GIB = 4.0
TRAINING = ("loss", "optimizer step", "optimizer state", "steps")
LOOSE = 1e-3  # own error of a model's gradient above which every Cell is differentiated by itself


def failed_result(target: Target, detail: str, verdict: Verdict = Verdict.NOT_RUN) -> ModelResult:
    """The result of a model that did not get as far as a comparison."""
    return ModelResult(
        name=target.name, source=target.source, build=target.build, inputs=(), verdict=verdict,
        detail=detail,
    )  # fmt: skip


def climb(
    target: Target, request: VerifyRequest, names: Names, sides: Sides, progress: Progress,
    journal: Journal,
) -> ModelResult:  # fmt: skip
    """Verify one model on all rungs; never raises for what user code does."""
    page = journal.read(target)
    if page.result is not None and request.tests is None:
        progress(f"{target.name}: {page.result.verdict.value}, kept from the interrupted run")
        return page.result
    start, kills = time.monotonic(), 0
    try:
        while True:
            folder = Path(tempfile.mkdtemp(prefix="model", dir=sides.scratch))
            session = Session(target, request, names, sides, folder, kills=kills)
            try:
                result = _climb(session, progress, journal)
                break
            except Killed as killed:
                kills = session.kills
                progress(f"{target.name}: {killed}; on from the last rung")
            finally:
                shutil.rmtree(folder, ignore_errors=True)
    finally:
        for worker in (sides.torch, sides.mindspore):
            worker.renew_if_large(WORKER_GIB)
    result = result.model_copy(update={"seconds": round(time.monotonic() - start, 2)})
    journal.write(target, Page(result=result))
    return result


def _climb(session: Session, progress: Progress, journal: Journal) -> ModelResult:
    target = session.target
    progress(f"{target.name}: building it on both sides")
    try:
        open_torch(session)
    except LOST as error:
        why = f"{target.source}: {target.build} in torch: {error}"
        return failed_result(target, f"{why}. Next: give --build and --input that run in torch")
    try:
        open_mindspore(session)
    except LOST as error:
        why = f"{target.output}: {target.build} in MindSpore: {error}"
        place = getattr(error, "place", "")
        where = f" at {Path(place).name}" if place else ""
        detail = f"{why}{where}. Next: see the flags that convert left in this file"
        return failed_result(target, detail, Verdict.BLOCKED)
    starts = start_checks(session)
    tensors = parameter_checks(session)
    rungs = [
        import_rung(session), parameter_rung(session, tensors),
        *([summed("initial values", "pynative", starts, 0.0, "")] if starts else []),
    ]  # fmt: skip
    checks: list[Check] = [*tensors, *starts]
    page = journal.read(target)
    before = {(kept.rung.name, kept.rung.mode): kept for kept in page.kept}
    for name, mode in rungs_of(session.request):
        kept = before.get((name, mode)) or _timed(session, name, mode, checks)
        rungs.append(kept.rung)
        checks += kept.checks
        if (name, mode) not in before:
            page = Page(kept=(*page.kept, kept))
            journal.write(target, page)
            session.kills = 0 if journal.folder else session.kills
        progress(f"{target.name}: {name}, {mode}: {_said(kept.rung)}")
    if session.request.tests is not None:
        progress(f"{target.name}: {_tested(session, checks, session.request.tests)}")
    return _result(session, rungs, checks)


def _tested(session: Session, checks: Sequence[Check], folder: Path) -> str:
    """Write the tests of a model and say so, or why there are none."""
    try:
        return f"tests in {write_tests(session, checks, folder)}"
    except (*LOST, NotOurs, OSError) as error:
        return f"no tests are written: {error}"


def rungs_of(request: VerifyRequest) -> tuple[tuple[str, Mode], ...]:
    """The rungs that are climbed, mode by mode; steps are a rung from the second one on."""
    training = TRAINING[: -1 if request.steps == 1 else None] if request.steps else ()
    gradients = ("gradients",) if request.gradients else ()
    names = ("forward eval", "forward train", *gradients, *training)
    sizes: tuple[tuple[str, Mode], ...] = ((MAGNITUDES, "pynative"),) if request.magnitudes else ()
    modes: tuple[Mode, ...] = request.modes  # type: ignore[assignment]
    last: tuple[tuple[str, Mode], ...] = ((CHECKPOINT, "pynative"),) if modes else ()
    return (*((name, mode) for mode in modes for name in names), *sizes, *last)


def _timed(session: Session, name: str, mode: Mode, checks: Sequence[Check]) -> Kept:
    began = time.monotonic()
    found, note = _rung(session, name, mode, checks)
    rung = summed(name, mode, found, time.monotonic() - began, note)
    more: dict[str, Any] = {}
    if name == "loss" and mode in session.told:
        more["curve"] = curve_of(session.told[mode])
    elif name == CHECKPOINT and name in session.told:
        more = session.told[name]
    return Kept(rung=rung.model_copy(update=more), checks=found)


def _said(rung: Rung) -> str:
    return f"{rung.verdict.value}, {rung.checks} Cells, {rung.elements:,} numbers compared"


def _stopped(name: str, mode: Mode, earlier: Sequence[Check]) -> str:
    """Why a later rung of a mode is not tried: the whole model did not run in its forward."""
    root = [c for c in earlier if (c.torch_path, c.mode, c.rung) == ("", mode, "forward eval")]
    if name in ("forward eval", CHECKPOINT) or not root or root[0].verdict is not Verdict.BLOCKED:
        return ""
    return f"not tried: the whole model does not run in forward eval ({mode})"


def _rung(
    session: Session, name: str, mode: Mode, earlier: Sequence[Check]
) -> tuple[tuple[Check, ...], str]:
    """The checks of one rung, or a note why there are none."""
    stopped = _stopped(name, mode, earlier)
    if stopped:
        return (), stopped
    try:
        if name == "gradients":
            return _gradient_rung(session, mode, earlier), ""
        if name == CHECKPOINT:
            return checkpoint_rung(session)
        if name == MAGNITUDES:
            return magnitude_rung(session)
        if name in TRAINING:
            answers = training(session, mode)
            none = session.told.get(mode, {}).get("no state", "")
            note = none if name == "optimizer state" else ""
            return training_checks(session, name, mode, answers, earlier), note
        trains = name == "forward train"
        root_only = trains and mode == "graph"
        answers = forward(session, trains, mode, root_only)
    except LOST as error:
        return (), f"could not run: {error}"
    index = read_index(session.folder / ("train" if trains else "eval"))
    checks = forward_checks(session, name, mode, answers, index)
    return (*checks, *(() if root_only else never_ran(session, name, mode, index))), ""


def _gradient_rung(session: Session, mode: Mode, earlier: Sequence[Check]) -> tuple[Check, ...]:
    """Gradients of the whole model; where they fail, of every Cell by itself to find the one.

    So it is too where kinks leave the whole model's gradient uncertain (in PyNative mode).
    Where a forward rung of this mode failed, its Cells are to blame and no search is needed.
    """
    blamed = frozenset(
        check.torch_path for check in earlier if check.mode == mode and check.verdict in GUILTY
    )
    whole = gradients(session, mode, local=False)
    order: dict[str, int] = {}
    with contextlib.suppress(*LOST):  # a run that goes on after this rung has not recorded it
        recorded(session, training=True)
        calls = read_index(session.folder / "train")["calls"]
        order = {entry["path"]: entry["order"] for entry in reversed(calls)}
    checks = gradient_checks(session, mode, whole, (), order, blamed)
    fine = (Verdict.PASS, Verdict.KERNEL, Verdict.NONDET, Verdict.NOT_RUN)
    right = all(check.verdict in fine for check in checks)
    loose = mode == "pynative" and any((check.own or 0.0) > LOOSE for check in checks)
    if blamed or (right and not loose):
        return checks
    local = gradients(session, mode, local=True)
    return gradient_checks(session, mode, whole, local, order, blamed)


def counts(check: Check) -> bool:
    """Whether a check counts for the verdict of its rung."""
    if check.verdict is not Verdict.NOT_RUN or VAGUE in check.detail:
        return check.verdict is not Verdict.NOT_RUN
    return check.detail not in (NEVER, NOTHING, NO_GRADIENT)


def summed(name: str, mode: str, checks: Sequence[Check], seconds: float, note: str) -> Rung:
    """A rung's worst verdict; a rung that compared no number at all is NOT_RUN."""
    counted = [check for check in checks if counts(check)]
    elements = sum(check.elements for check in counted)
    verdict = worst([check.verdict for check in counted])
    verdict = Verdict.BLOCKED if note.startswith("not tried") else verdict
    if not elements and verdict is Verdict.PASS:
        verdict = Verdict.NOT_RUN
    if checks and all(check.detail == NO_GRADIENT for check in checks):
        note = NO_GRADIENT
    bad = [check for check in counted if check.verdict is verdict and verdict is not Verdict.PASS]
    unclear = [check for check in checks if check.verdict is Verdict.NOT_RUN]
    vague = [check for check in unclear if VAGUE in check.detail]
    if vague and not note:
        note = f"{len(vague)} Cells not compared, the first: {vague[0].detail}"
    first = f"{bad[0].torch_path or 'the whole model'}: {bad[0].detail}" if bad else ""
    return Rung(
        name=name, mode=mode, verdict=verdict, checks=len(counted), elements=elements,
        seconds=round(seconds, 2), detail="; ".join(text for text in (first, note) if text),
    )  # fmt: skip


def _result(session: Session, rungs: Sequence[Rung], checks: Sequence[Check]) -> ModelResult:
    target, pairing = session.target, session.pairing
    guilty = first_guilty(session, checks)
    notes = [r.detail for r in rungs if r.verdict is Verdict.NOT_RUN and r.detail not in UNCOUNTED]
    if session.mindspore["note"]:
        notes.append(rungs[0].detail)
    counted = [rung.verdict for rung in rungs if rung.detail not in UNCOUNTED]
    return ModelResult(
        name=target.name, source=target.source, build=target.build,
        inputs=tuple(session.torch["inputs"]), verdict=worst(counted),
        guilty=guilty, rungs=tuple(rungs), checks=tuple(checks), unmatched=unmatched(session),
        weight_names=weight_names(session), parameters=parameters(session),
        weight_layouts={pair.key: pair.layout for pair in pairing.pairs if pair.layout},
        weights_total=pairing.total, weights_matched=len(pairing.pairs) - len(session.failed),
        detail="; ".join(notes[:2]), options=arguments(session.request),
        weight_shapes={row["key"]: tuple(row["shape"]) for row in session.torch["tensors"]},
    )  # fmt: skip
