"""Build one model on both sides and ask its workers, crash by crash."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from migrate.outcomes import Verdict
from migrate.parity.request import PLAIN, Size, VerifyRequest
from migrate.parity.worker import Payload, Worker, WorkerError, WorkerLost, this_python
from migrate.weights import Held, Names, Pairing, cell_path, pair_all

RESTARTS = 6
KILLS = 8  # in one rung: then it is at fault itself


class Killed(Exception):
    """Someone else ended a worker: nothing about the model, so the rung is climbed again."""


@dataclass(frozen=True)
class Target:
    """One model: the expression that builds it, and its file on both sides (relative).

    ``inputs`` are as in a VerifyRequest.
    """

    name: str
    build: str
    source: str
    output: str
    torch_root: Path
    ms_root: Path
    package: str = ""
    ms_package: str = ""
    inputs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Sides:
    """The two workers, and the folder they may write to."""

    torch: Worker
    mindspore: Worker
    scratch: Path

    def stop(self) -> None:
        self.torch.stop()
        self.mindspore.stop()

    def close(self) -> None:
        """Stop for good: what still waits for an answer ends with an exception."""
        self.torch.close()
        self.mindspore.close()


@dataclass
class Session:
    """What both sides said about one model when they built it."""

    target: Target
    request: VerifyRequest
    names: Names
    sides: Sides
    folder: Path
    torch: Payload = field(default_factory=dict)
    mindspore: Payload = field(default_factory=dict)
    pairing: Pairing = field(default_factory=lambda: Pairing((), (), ()))
    failed: list[Payload] = field(default_factory=list)
    starts: list[Payload] = field(default_factory=list)
    kills: int = 0
    trained: dict[str, list[Payload]] = field(default_factory=dict)
    told: dict[str, Payload] = field(default_factory=dict)

    def ask(
        self, worker: Worker, command: str, payload: Payload,
        on_event: Callable[[Payload], None] | None = None,
    ) -> Payload:  # fmt: skip
        """One request. Raises WorkerError, WorkerLost, and Killed for the first few times."""
        try:
            return worker.call(command, payload, self.request.timeout, on_event)
        except WorkerLost as lost:
            ended = self.what_ended(lost)
            if ended is lost:
                raise
            raise ended from lost

    def what_ended(self, lost: WorkerLost) -> Killed | WorkerLost:
        """What to raise for a lost worker: Killed, the first few times that someone ended it."""
        if not lost.killed or self.kills >= KILLS:
            return lost
        self.kills += 1
        return Killed(lost.why)

    @property
    def modules(self) -> dict[str, Payload]:
        return {row["path"]: row for row in self.torch["modules"]}

    @property
    def cells(self) -> dict[str, Payload]:
        return {row["path"]: row for row in self.mindspore["cells"]}

    def cell_of(self, path: str) -> str:
        """The Cell's path for a module's path."""
        return cell_path(path, self.classes, self.names)

    @property
    def classes(self) -> Mapping[str, tuple[str, ...]]:
        return {row["path"]: tuple(row["classes"]) for row in self.torch["modules"]}


def _place(target: Target, torch: bool) -> Payload:
    return {
        "root": str(target.torch_root if torch else target.ms_root),
        "package": target.package if torch else target.ms_package,
        "file": target.source if torch else target.output,
    }


def stateless(worker: Worker, command: str, payload: Payload, timeout: float) -> Payload:
    """A request that needs nothing of earlier ones: sent again when someone killed the worker."""
    for _ in range(KILLS):
        try:
            return worker.call(command, payload, timeout)
        except WorkerLost as lost:
            if not lost.killed:
                raise
    return worker.call(command, payload, timeout)


def find(sides: Sides, target: Target, timeout: float) -> list[Payload]:
    """The models of a source file: ``[{name, build, reason}]``."""
    answer = stateless(sides.torch, "find", _place(target, True), timeout)
    found: list[Payload] = answer["found"]
    return found


def open_torch(session: Session) -> None:
    """Build the torch model, find inputs, write its weights. Raises WorkerError, WorkerLost."""
    session.torch = session.ask(
        session.sides.torch, "build",
        {
            **_place(session.target, True), "build": session.target.build,
            "inputs": list(session.target.inputs), "seed": session.request.seed,
            "folder": str(session.folder / "weights"), "runs": bool(session.request.modes),
        },
    )  # fmt: skip


def open_mindspore(session: Session) -> None:
    """Build the net and copy the weights into it; also after the worker was lost."""
    worker = session.sides.mindspore
    session.mindspore = session.ask(
        worker, "build",
        {**_place(session.target, False), "build": session.target.build,
         "seed": session.request.seed, "device": session.request.device},
    )  # fmt: skip
    held = [
        Held(row["place"], row["name"], row["same"], row["trained"], row["parameter"])
        for row in session.mindspore["tensors"]
    ]
    rows = {row["key"]: row for row in session.torch["tensors"]}
    tied = {key: row["tied"] for key, row in rows.items()}
    session.pairing = pair_all(tied, session.classes, held, session.names)
    pairs = [
        {"key": pair.key, "place": pair.place, "layout": pair.layout,
         "array": rows[pair.key]["array"], "start": rows[pair.key]["start"],
         "spread": rows[pair.key]["spread"]}
        for pair in session.pairing.pairs if pair.place
    ]  # fmt: skip
    weights = str(session.folder / "weights")
    answer = session.ask(worker, "load", {"pairs": pairs, "folder": weights})
    session.failed = answer["failed"]
    session.starts = session.starts or answer["starts"]


def forward(
    session: Session, training: bool, mode: str, root_only: bool, size: Size = PLAIN
) -> list[Payload]:
    """The checks of one forward rung; torch's part is recorded once for all modes."""
    folder = recorded(session, training, size)
    payload = {"folder": str(folder), "whole": True, "root_only": root_only}
    return _replayed(session, "replay", payload, mode)


def recorded(session: Session, training: bool, size: Size = PLAIN) -> Path:
    """The folder with what torch's modules received and returned; recorded by the first use."""
    folder = session.folder / f"{'train' if training else 'eval'}{size.suffix}"
    if not (folder / "index.json").exists():
        payload = {"training": training, "folder": str(folder), **asdict(size)}
        session.ask(session.sides.torch, "record", payload)
    return folder


def gradients(session: Session, mode: str, local: bool) -> list[Payload]:
    """The checks of the gradient rung: of the whole model, or of every Cell by itself."""
    folder = differentiated(session, local)
    payload = {"folder": str(folder), "scratch": str(session.folder / "probes")}
    return _replayed(session, "gradients", payload, mode)


def differentiated(session: Session, local: bool) -> Path:
    """The folder with torch's gradients; made by the first use."""
    folder = session.folder / ("gradients_local" if local else "gradients")
    if not (folder / "index.json").exists():
        asked = {"folder": str(folder), "local": local}
        session.ask(session.sides.torch, "gradients", asked)
    return folder


def training(session: Session, mode: str) -> list[Payload]:
    """The checks of the rungs that train the whole model; made once for each mode."""
    if mode in session.trained:
        return session.trained[mode]
    request = session.request
    payload = {"folder": str(trained(session)), "scratch": str(session.folder / "probes"),
               "loss": _pair(request.loss)[1],
               "optimizer": _pair(request.optimizer)[1]}  # fmt: skip
    session.trained[mode] = _replayed(session, "training", payload, mode)
    return session.trained[mode]


def trained(session: Session) -> Path:
    """The folder with torch's losses and moves; made by the first use."""
    request, folder = session.request, session.folder / "training"
    if not (folder / "index.json").exists():
        asked = {"folder": str(folder), "targets": list(request.targets), "steps": request.steps,
                 "loss": _pair(request.loss)[0],
                 "optimizer": _pair(request.optimizer)[0]}  # fmt: skip
        session.ask(session.sides.torch, "training", asked)
    return folder


def _pair(expressions: Sequence[str]) -> tuple[str, str]:
    """What torch and MindSpore evaluate; one expression serves both."""
    return (expressions[0], expressions[-1]) if expressions else ("", "")


def _replayed(session: Session, command: str, payload: Payload, mode: str) -> list[Payload]:
    """Checks of all Cells; a Cell that ends or hangs the worker costs itself only."""
    request = session.request
    strictness = {"k": request.k, "rtol": request.rtol, "atol": request.atol}
    checks: list[Payload] = []
    done: list[Any] = []
    paths = {path: session.cell_of(path) for path in session.modules}
    mapped = {"mode": mode, "paths": paths, "strictness": strictness, **payload}

    def keep(event: Payload) -> None:
        if "check" in event:
            checks.append(event["check"])
            done.append([event["check"]["path"], event["check"].get("call", 0)])
        session.told |= {mode: event["told"]} if "told" in event else {}

    for _ in range(RESTARTS):
        try:
            session.ask(session.sides.mindspore, command, {**mapped, "done": done}, keep)
            return checks
        except WorkerLost as lost:
            at = lost.at or ["", 0]
            checks.append(_lost(at, lost.why))
            done.append(at)
            mapped["whole"] = False
            open_mindspore(session)
    why = f"the MindSpore process was lost {RESTARTS} times; the remaining Cells were left out"
    checks.append(_lost(["", 0], why))
    return checks


def _lost(at: list[Any], why: str) -> Payload:
    measure = {"verdict": Verdict.BLOCKED.value, "elements": 0, "error": None, "own": None,
               "limit": None, "detail": why}  # fmt: skip
    kind = "cumulative" if at[1] == -1 else "local"
    return {"path": at[0], "call": max(at[1], 0), "name": "", kind: measure}


__all__ = [
    "Killed",
    "Session",
    "Sides",
    "Target",
    "WorkerError",
    "WorkerLost",
    "differentiated",
    "find",
    "forward",
    "gradients",
    "open_mindspore",
    "open_torch",
    "recorded",
    "trained",
    "training",
]  # fmt: skip


SCRATCH = "torch2ms_"


def open_sides(request: VerifyRequest, folder: Path, number: int) -> Sides:
    """A pair of workers (started by their first request) with a scratch folder of their own."""
    scratch = folder / f"job{number}"
    scratch.mkdir(parents=True)
    threads = max(1, (os.cpu_count() or 1) // max(1, request.jobs))
    python = request.torch_python or this_python()
    torch = Worker("torch_side", python, scratch, threads, memory=request.memory)
    mindspore = Worker("mindspore_side", this_python(), scratch, threads, memory=request.memory)
    return Sides(torch, mindspore, scratch)


def sweep(temporary: Path) -> None:
    """Remove what a run left behind that was killed."""
    for folder in temporary.glob(f"{SCRATCH}*_*"):
        number = folder.name.removeprefix(SCRATCH).partition("_")[0]
        if number.isdecimal() and not Path(f"/proc/{number}").exists() and Path("/proc").exists():
            shutil.rmtree(folder, ignore_errors=True)
