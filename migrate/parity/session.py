"""Build one model on both sides and ask its workers, crash by crash."""

from __future__ import annotations

import os
import shutil
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

from migrate.parity.compare import Measure
from migrate.parity.messages import At, Emit, Event, Ran, Trained
from migrate.parity.request import PLAIN, Draw, VerifyRequest
from migrate.parity.worker import Payload, Worker, WorkerError, WorkerLost, this_python
from migrate.records.outcomes import Verdict
from migrate.records.result import Check, Rung

Mode = Literal["pynative", "graph"]
Result = TypeVar("Result")
LOST = (WorkerError, WorkerLost)
RESTARTS = 6
KILLS = 8  # in one rung: then it is at fault itself
SCRATCH = "torch2ms_"


class Killed(Exception):
    """Someone else ended a worker: nothing about the model, so the rung is climbed again."""


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


def open_sides(request: VerifyRequest, folder: Path, number: int) -> Sides:
    """Return a pair of workers (started by their first request) with a scratch folder."""
    scratch = folder / f"job{number}"
    scratch.mkdir(parents=True)
    threads = max(1, (os.cpu_count() or 1) // max(1, request.jobs))
    python = request.torch_python or this_python()
    torch = Worker("torch_side", python, scratch, threads, memory=request.memory)
    mindspore = Worker("mindspore_side", this_python(), scratch, threads, memory=request.memory)
    return Sides(torch, mindspore, scratch)


@contextmanager
def opened_sides(request: VerifyRequest, jobs: int = 1) -> Iterator[tuple[Sides, ...]]:
    """Open a pair of workers for each job, in a folder that is removed at the end."""
    sweep(Path(tempfile.gettempdir()))
    with tempfile.TemporaryDirectory(prefix=f"{SCRATCH}{os.getpid()}_") as folder:
        pool = tuple(open_sides(request, Path(folder), number) for number in range(jobs))
        try:
            yield pool
        finally:
            for sides in pool:
                sides.close()


def sweep(temporary: Path) -> None:
    """Remove what a run left behind that was killed."""
    for folder in temporary.glob(f"{SCRATCH}*_*"):
        number = folder.name.removeprefix(SCRATCH).partition("_")[0]
        if number.isdecimal() and not Path(f"/proc/{number}").exists() and Path("/proc").exists():
            shutil.rmtree(folder, ignore_errors=True)


def stateless(worker: Worker, command: str, payload: Payload, timeout: float) -> Payload:
    """Send a request that needs nothing of earlier ones, again when someone killed the worker."""
    for _ in range(KILLS):
        try:
            return worker.call(command, payload, timeout)
        except WorkerLost as lost:
            if not lost.killed:
                raise
    return worker.call(command, payload, timeout)


@dataclass(kw_only=True)
class Session(ABC, Generic[Result]):
    """What both sides said about one model when they built it, and what they are asked.

    How partners are paired is up to the two kinds: `Recorded` and `Port`. ``key`` tells a model
    from others in a journal; ``noted`` is what a rung keeps beside its checks; ``train`` is the
    folder of what torch records in train mode.
    """

    request: VerifyRequest
    sides: Sides
    folder: Path
    torch: Payload = field(default_factory=dict)
    mindspore: Payload = field(default_factory=dict)
    failed: list[Payload] = field(default_factory=list)
    kills: int = 0
    trains: dict[str, list[Ran]] = field(default_factory=dict)
    trained: dict[str, Trained] = field(default_factory=dict)
    noted: dict[str, dict[str, Any]] = field(default_factory=dict)
    train: str = "train"
    name: str = ""
    key: str = ""

    @abstractmethod
    def open_torch(self) -> None:
        """Build the torch model and write its weights. Raises WorkerError, WorkerLost."""

    @abstractmethod
    def open_mindspore(self) -> None:
        """Build the net with torch's weights in it; also after the worker was lost."""

    @abstractmethod
    def partner(self, path: str) -> str | None:
        """Return the Cell's path for a module's path; None where it is not known."""

    @property
    @abstractmethod
    def paths(self) -> dict[str, str]:
        """Return the Cell's path for each module that may have one."""

    @abstractmethod
    def opening(self) -> tuple[list[Rung], list[Check]]:
        """Return the rungs before the first run (import, parameters) and their checks."""

    @abstractmethod
    def judged(
        self, rung: str, mode: Mode, answers: Sequence[Ran], index: Mapping[str, Any]
    ) -> tuple[Check, ...]:
        """Return a Check for each Cell that ran forward."""

    @abstractmethod
    def forward_rung(
        self, rung: str, mode: Mode, earlier: Sequence[Check]
    ) -> tuple[tuple[Check, ...], str]:
        """Return the checks of a forward rung, and a note."""

    @abstractmethod
    def gradient_checks(
        self, mode: Mode, whole: Sequence[Ran], local: Sequence[Ran],
        order: Mapping[str, int], blamed: frozenset[str],
    ) -> tuple[Check, ...]:  # fmt: skip
        """Return a Check for each module with weights, and one for the inputs (the root)."""

    @abstractmethod
    def counts_alone(self, path: str, measure: Measure) -> bool:
        """Return whether a Cell counts on inputs that the whole model does not give it."""

    @abstractmethod
    def is_searched(self, mode: Mode, checks: Sequence[Check]) -> bool:
        """Return whether every Cell is differentiated by itself, after the whole model was."""

    def is_broken(self, mode: Mode, earlier: Sequence[Check]) -> bool:
        """Return whether the whole model does not run: later rungs of the mode are not tried."""
        root = [c for c in earlier if (c.torch_path, c.mode, c.rung) == ("", mode, "forward eval")]
        return bool(root) and root[0].verdict is Verdict.BLOCKED

    @abstractmethod
    def result(self, rungs: Sequence[Rung], checks: Sequence[Check], seconds: float) -> Result:
        """Return what the ladder found."""

    @abstractmethod
    def refused(self, error: Exception, side: Literal["torch", "MindSpore"]) -> Result:
        """Return the result of a model that one side cannot build."""

    def close(self) -> None:
        """Leave both workers as they were found."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def ask(
        self, worker: Worker, command: str, payload: Payload,
        on_event: Emit | None = None,
    ) -> Payload:  # fmt: skip
        """Send one request. Raises WorkerError, WorkerLost, and Killed for the first few times."""
        try:
            return worker.call(command, payload, self.request.timeout, on_event)
        except WorkerLost as lost:
            ended = self.what_ended(lost)
            if ended is lost:
                raise
            raise ended from lost

    def what_ended(self, lost: WorkerLost) -> Killed | WorkerLost:
        """Return what to raise for a lost worker: Killed, the first times that someone ended it."""
        if not lost.killed or self.kills >= KILLS:
            return lost
        self.kills += 1
        return Killed(lost.why)

    @property
    def modules(self) -> dict[str, Payload]:
        return {row["path"]: row for row in self.torch["modules"]}

    @property
    def positions(self) -> dict[str, int]:
        """Return the place of each module in the order of registration."""
        return {path: number for number, path in enumerate(self.modules)}

    @property
    def cells(self) -> dict[str, Payload]:
        return {row["path"]: row for row in self.mindspore["cells"]}

    @property
    def strictness(self) -> Payload:
        return {"k": self.request.k, "rtol": self.request.rtol, "atol": self.request.atol}

    def recorded(self, training: bool, draw: Draw = PLAIN) -> Path:
        """Return the folder with what torch's modules received and returned; made when missing."""
        folder = self.folder / f"{self.train if training else 'eval'}{draw.suffix}"
        return self._made(folder, "record", {"training": training, "draw": asdict(draw)})

    def differentiated(self, local: bool, draw: Draw = PLAIN) -> Path:
        """Return the folder with torch's gradients."""
        folder = self.folder / f"gradients{'_local' if local else ''}{draw.suffix}"
        return self._made(folder, "gradients", {"local": local, "draw": asdict(draw)})

    def regimes(self) -> Path:
        """Return the folder with calls that reach further pieces of torch's operators."""
        return self._made(self.folder / "regimes", "regimes", {})

    def alone(self, folder: Path) -> list[Ran]:
        """Return the answers for recorded calls of modules by themselves (PyNative)."""
        given = {"whole": False, "root_only": False, "alone": True}
        return self._replayed("forward", folder, given, "pynative")

    def training_folder(self) -> Path:
        """Return the folder with torch's losses and moves."""
        request = self.request
        return self._made(self.folder / "training", "training", {
            "targets": list(request.targets), "steps": request.steps,
            "loss": _pair(request.loss)[0], "optimizer": _pair(request.optimizer)[0],
        })  # fmt: skip

    def _made(self, folder: Path, command: str, payload: Payload) -> Path:
        if not (folder / "index.json").exists():
            self.ask(self.sides.torch, command, {"folder": str(folder), **payload})
        return folder

    def forward(self, training: bool, mode: str, root_only: bool, draw: Draw = PLAIN) -> list[Ran]:
        """Return the answers of one forward rung; torch's part is recorded once for all modes."""
        folder = self.recorded(training, draw)
        return self._replayed("forward", folder, {"whole": True, "root_only": root_only}, mode)

    def gradients(self, mode: str, local: bool, draw: Draw = PLAIN) -> list[Ran]:
        """Return the gradients of the whole model, or of every Cell by itself."""
        return self._replayed("gradients", self.differentiated(local, draw), {}, mode)

    def training(self, mode: str) -> list[Ran]:
        """Return the answers of the rungs that train the whole model; made once for each mode."""
        if mode not in self.trains:
            given = {"loss": _pair(self.request.loss)[1],
                     "optimizer": _pair(self.request.optimizer)[1]}  # fmt: skip
            self.trains[mode] = self._replayed("training", self.training_folder(), given, mode)
        return self.trains[mode]

    def _replayed(self, command: str, folder: Path, payload: Payload, mode: str) -> list[Ran]:
        """Return checks of all Cells; one that ends or hangs the worker costs itself only."""
        checks: list[Ran] = []
        done: list[tuple[str, int]] = []
        asked = {
            "folder": str(folder), "scratch": str(self.folder / "probes"), "mode": mode,
            "paths": self.paths, "strictness": self.strictness, "done": done, **payload,
        }  # fmt: skip

        def keep(event: Event) -> None:
            if isinstance(event, Ran):
                checks.append(event)
                done.append((event.path, event.call))
            elif isinstance(event, Trained):
                self.trained[mode] = event

        for _ in range(RESTARTS):
            try:
                self.ask(self.sides.mindspore, command, asked, keep)
                return checks
            except WorkerLost as lost:
                at = lost.at or At("", 0)
                checks.append(_lost(at, lost.why))
                done.append((at.path, at.call))
                if at.call == -1:
                    asked["whole"] = False
                self.open_mindspore()
        why = f"the MindSpore process was lost {RESTARTS} times; the remaining Cells were left out"
        return [*checks, _lost(At("", 0), why)]


def _pair(expressions: Sequence[str]) -> tuple[str, str]:
    """Return what torch and MindSpore evaluate; one expression serves both."""
    return (expressions[0], expressions[-1]) if expressions else ("", "")


def _lost(at: At, why: str) -> Ran:
    blocked = Measure(Verdict.BLOCKED, detail=why)
    if at.call == -1:
        return Ran(at.path, cumulative=blocked)
    return Ran(at.path, at.call, blocked)
