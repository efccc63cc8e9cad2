"""In: a session with both models. Out: the rung checkpoint: torch -> .ckpt -> Cell -> torch.

The way is that of users: torch.save, `weights convert`, load_param_into_net into a Cell whose
weights were cleared, save_checkpoint, and `weights convert` back. Every tensor of torch's state
dict has to come back bit by bit, but for those that MindSpore keeps no partner of.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from migrate.parity.checkpoint import Conversion, convert_with
from migrate.parity.checkpoint_plan import Account
from migrate.parity.checks import CHECKPOINT, check_of
from migrate.parity.compare import Measure
from migrate.parity.recorded import Recorded
from migrate.parity.request import VerifyError
from migrate.parity.session import LOST
from migrate.parity.worker import WorkerLost
from migrate.records.outcomes import Verdict, Why
from migrate.records.result import Check, ModelResult

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
    except VerifyError as error:
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
    """One Check for each module that has tensors in torch's state dict."""
    owners: dict[str, list[str]] = {}
    for key in dict.fromkeys((*trip.elements, *trip.faults)):
        owners.setdefault(_owner(key, session.modules), []).append(key)
    order = {path: number for number, path in enumerate(session.modules)}
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
    session.told[CHECKPOINT] = {"faults": dict(trip.faults)}
    return trip_checks(session, trip), trip.note
