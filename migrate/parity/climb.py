"""In: one model and a pair of workers. Out: its ModelResult, rung by rung."""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from migrate.outcomes import Verdict
from migrate.parity.blame import GUILTY, first_guilty
from migrate.parity.checks import (
    NEVER,
    NO_GRADIENT,
    NOTHING,
    VAGUE,
    Mode,
    forward_checks,
    gradient_checks,
    never_ran,
    start_checks,
)
from migrate.parity.compare import worst
from migrate.parity.request import VerifyRequest
from migrate.parity.session import (
    Session,
    Sides,
    Target,
    forward,
    gradients,
    open_mindspore,
    open_torch,
)
from migrate.parity.worker import WorkerError, WorkerLost
from migrate.result import Check, ModelResult, Rung
from migrate.weights import Names

Progress = Callable[[str], None]
LOST = (WorkerError, WorkerLost)
WORKER_GIB = 4.0
LOOSE = 1e-3  # own error of a model's gradient above which every Cell is differentiated by itself


def failed_result(target: Target, detail: str, verdict: Verdict = Verdict.NOT_RUN) -> ModelResult:
    """The result of a model that did not get as far as a comparison."""
    return ModelResult(
        name=target.name, source=target.source, build=target.build, inputs=(), verdict=verdict,
        detail=detail,
    )  # fmt: skip


def climb(
    target: Target, request: VerifyRequest, names: Names, sides: Sides, progress: Progress
) -> ModelResult:
    """Verify one model on all rungs; never raises for what user code does."""
    start = time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix="model", dir=sides.scratch))
    session = Session(target, request, names, sides, folder)
    try:
        result = _climb(session, progress)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        for worker in (sides.torch, sides.mindspore):
            worker.renew_if_large(WORKER_GIB)
    return result.model_copy(update={"seconds": round(time.monotonic() - start, 2)})


def _climb(session: Session, progress: Progress) -> ModelResult:
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
    rungs = [
        _import_rung(session), _parameter_rung(session),
        *([summed("initial values", "pynative", starts, 0.0, "")] if starts else []),
    ]  # fmt: skip
    checks: list[Check] = list(starts)
    for mode in session.request.modes:
        for name in ("forward eval", "forward train", "gradients"):
            if name == "gradients" and not session.request.gradients:
                continue
            began = time.monotonic()
            found, note = _rung(session, name, mode, checks)  # type: ignore[arg-type]
            checks += found
            rungs.append(summed(name, mode, found, time.monotonic() - began, note))
            progress(f"{target.name}: {name}, {mode}: {_said(rungs[-1])}")
    return _result(session, rungs, checks)


def _said(rung: Rung) -> str:
    return f"{rung.verdict.value}, {rung.checks} Cells, {rung.elements:,} numbers compared"


def _stopped(name: str, mode: Mode, earlier: Sequence[Check]) -> str:
    """Why a later rung of a mode is not tried: the whole model did not run in its forward."""
    root = [c for c in earlier if (c.torch_path, c.mode, c.rung) == ("", mode, "forward eval")]
    if name == "forward eval" or not root or root[0].verdict is not Verdict.BLOCKED:
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
        training = name == "forward train"
        root_only = training and mode == "graph"
        answers = forward(session, training, mode, root_only)
    except LOST as error:
        return (), f"could not run: {error}"
    index = _index(session, "train" if training else "eval")
    checks = forward_checks(session, name, mode, answers, index)
    return (*checks, *(() if root_only else never_ran(session, name, mode, index))), ""


def _index(session: Session, folder: str) -> dict[str, Any]:
    path = session.folder / folder / "index.json"
    loaded: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return loaded


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
    if (session.folder / "train" / "index.json").exists():
        calls = _index(session, "train")["calls"]
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


def _import_rung(session: Session) -> Rung:
    both = len(session.modules), len(session.cells)
    detail = f"{both[0]} modules in torch, {both[1]} Cells in MindSpore"
    if session.mindspore["note"]:
        detail += f"; the package around this file cannot be imported: {session.mindspore['note']}"
    return Rung(name="import", mode="pynative", verdict=Verdict.PASS, checks=1, detail=detail)


def _parameter_rung(session: Session) -> Rung:
    pairing, failed = session.pairing, session.failed
    shapes = {row["key"]: row["shape"] for row in session.torch["tensors"]}
    bad = [f"{key}: {why}" for key, why in pairing.missing]
    bad += [f"{row['key']}: {row['why']}" for row in failed]
    bad += [f"{held.place}: only MindSpore has it" for held in pairing.extra if held.trained]
    copied = [pair.key for pair in pairing.pairs if pair.place]
    free = len(pairing.pairs) - len(copied)
    elements = sum(_size(shapes[key]) for key in copied)
    text = f"{len(copied)} of {pairing.total} tensors copied, hashes equal"
    text += f"; {free} have no partner by design" if free else ""
    verdict = Verdict.UNMATCHED if bad else Verdict.PASS
    return Rung(
        name="parameters", mode="pynative", verdict=verdict, checks=pairing.total,
        elements=elements, detail="; ".join(bad[:5]) or text,
    )  # fmt: skip


def _size(shape: Sequence[int]) -> int:
    size = 1
    for length in shape:
        size *= length
    return size


def _unmatched(session: Session) -> tuple[str, ...]:
    pairing = session.pairing
    lines = [f"torch {key}: {why}" for key, why in pairing.missing]
    lines += [f"torch {row['key']}: {row['why']}" for row in session.failed]
    lines += [f"MindSpore {held.place}: torch has no such tensor" for held in pairing.extra]
    partners = {session.cell_of(path) for path in session.modules}
    lines += [f"torch {path}: no such Cell" for path in session.modules
              if session.cell_of(path) not in session.cells]  # fmt: skip
    lines += [f"MindSpore {path}: no such module" for path in session.cells
              if path not in partners]  # fmt: skip
    return tuple(lines)


def _weight_names(session: Session) -> dict[str, str]:
    names = {row["place"]: row["name"] or row["place"] for row in session.mindspore["tensors"]}
    failed = {row["key"] for row in session.failed}
    rows = {row["key"]: row for row in session.torch["tensors"]}
    pairs = [p for p in session.pairing.pairs if p.key not in failed and rows[p.key]["saved"]]
    return {pair.key: names[pair.place] if pair.place else "" for pair in pairs}


def _parameters(session: Session) -> tuple[str, ...]:
    rows = session.torch["tensors"]
    return tuple(row["key"] for row in rows if row["kind"] == "parameter" and not row["tied"])


def _result(session: Session, rungs: Sequence[Rung], checks: Sequence[Check]) -> ModelResult:
    target, pairing = session.target, session.pairing
    guilty = first_guilty(session, checks)
    notes = [rung.detail for rung in rungs if rung.verdict is Verdict.NOT_RUN]
    if session.mindspore["note"]:
        notes.append(rungs[0].detail)
    counted = [rung.verdict for rung in rungs if rung.detail != NO_GRADIENT]
    return ModelResult(
        name=target.name, source=target.source, build=target.build,
        inputs=tuple(session.torch["inputs"]), verdict=worst(counted),
        guilty=guilty, rungs=tuple(rungs), checks=tuple(checks), unmatched=_unmatched(session),
        weight_names=_weight_names(session), parameters=_parameters(session),
        weight_layouts={pair.key: pair.layout for pair in pairing.pairs if pair.layout},
        weights_total=pairing.total, weights_matched=len(pairing.pairs) - len(session.failed),
        detail="; ".join(notes[:2]),
    )  # fmt: skip
