"""In: the name of a side and its Python. Out: a process that answers requests, with time limits."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from migrate.parity.messages import At, Emit, Failed, read

Payload = dict[str, Any]
_LOOK = 0.5  # seconds between two looks at the memory of a process

# The worker sees this package's files but not the folder they lie in: the user's environment
# may hold other versions of what is installed beside this tool.
BOOT = """
import sys, types
for name, folder in (("migrate", sys.argv[1]), ("migrate.parity", sys.argv[1] + "/parity")):
    module = types.ModuleType(name)
    module.__path__ = [folder]
    sys.modules[name] = module
sys.modules["migrate"].parity = sys.modules["migrate.parity"]
import importlib
importlib.import_module("migrate.parity." + sys.argv[2]).main()
"""


class WorkerLost(Exception):
    """The worker died or went over its time; ``at`` is the last place it reported.

    ``killed``: someone else ended it (SIGKILL, SIGTERM), and not because memory ran out.
    """

    def __init__(self, why: str, at: At | None, killed: bool = False) -> None:
        super().__init__(why)
        self.why = why
        self.at = at
        self.killed = killed


class WorkerClosed(Exception):
    """The run ends: no worker is started again."""


class WorkerError(Exception):
    """The worker answered with an error; it lives on."""

    def __init__(self, failed: Failed) -> None:
        super().__init__(f"{failed.kind}: {failed.text}")
        self.failed = failed


@dataclass
class Worker:
    """One side's process. It is started by the first request and again after it was lost."""

    side: str
    python: Path
    scratch: Path
    threads: int = 0
    process: subprocess.Popen[bytes] | None = None
    pending: bytes = b""
    starts: int = 0
    log: Path = field(default_factory=Path)
    closed: bool = False
    ooms: int = 0
    memory: float = 0.0  # GiB that the process may use; 0: no limit

    def call(
        self,
        command: str,
        payload: Payload,
        timeout: float,
        on_event: Emit | None = None,
    ) -> Payload:
        """Send one request and wait for its answer; every event renews the time limit (seconds).

        Raises WorkerError for an exception in the worker, WorkerLost when it died or hung, also
        between two calls: what it held is lost.
        """
        process = self._running()
        assert process.stdin is not None
        at: At | None = None
        try:
            process.stdin.write(json.dumps({"command": command, **payload}).encode() + b"\n")
            process.stdin.flush()
            while True:
                line = self._line(process, timeout)
                if line["message"] == "Done":
                    answer: Payload = line["answer"]
                    return answer
                said = read(line)
                if isinstance(said, Failed):
                    raise WorkerError(said)
                at = said if isinstance(said, At) else at
                if on_event is not None:
                    on_event(said)
        except BrokenPipeError as error:
            raise self._lost(process, at) from error
        except _Silent as error:
            self.stop()
            raise WorkerLost(str(error), at) from error
        except _Ended as error:
            raise self._lost(process, at) from error

    def _lost(self, process: subprocess.Popen[bytes], at: At | None) -> WorkerLost:
        """Return what to raise for a process that ended; the next call starts another."""
        how = self._last_words(_how_it_ended(process))
        killed = process.poll() in (-signal.SIGKILL, -signal.SIGTERM) and _ooms() == self.ooms
        self.stop()
        return WorkerLost(how, at, killed)

    def _running(self) -> subprocess.Popen[bytes]:
        if self.closed:
            raise WorkerClosed(self.side)
        if self.process is not None:
            if self.process.poll() is not None:
                raise self._lost(self.process, None)
            return self.process
        self.starts += 1
        self.ooms = _ooms()
        self.log = self.scratch / f"{self.side}{self.starts}.log"
        folder = Path(tempfile.mkdtemp(prefix="cwd", dir=self.scratch))
        environment = {**os.environ, "ONEDNN_MAX_CPU_ISA": "AVX2", "GLOG_v": "3"}
        environment["PYTHONDONTWRITEBYTECODE"] = "1"
        if self.threads:
            environment["OMP_NUM_THREADS"] = str(self.threads)
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [str(self.python), "-c", BOOT, str(Path(__file__).parents[1]), self.side],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, cwd=folder,
                env=environment, start_new_session=True,
            )  # fmt: skip
        self.pending = b""
        return self.process

    def _line(self, process: subprocess.Popen[bytes], timeout: float) -> Payload:
        assert process.stdout is not None
        end = time.monotonic() + timeout
        while b"\n" not in self.pending:
            left = end - time.monotonic()
            if left <= 0:
                raise _Silent(f"no answer within {timeout:g} s")
            if self.memory and _resident_gib(process.pid) > self.memory:
                raise _Silent(f"it used more than the {self.memory:g} GiB of --memory")
            ready, _, _ = select.select([process.stdout], [], [], min(left, _LOOK))
            if not ready:
                continue
            chunk = os.read(process.stdout.fileno(), 1 << 16)
            if not chunk:
                raise _Ended
            self.pending += chunk
        line, _, self.pending = self.pending.partition(b"\n")
        answer: Payload = json.loads(line)
        return answer

    def _last_words(self, how: str) -> str:
        try:
            lines = self.log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        except OSError:
            lines = []
        said = [line.strip() for line in lines[-40:] if line.strip()]
        return f"the {self.side} process {how}" + (f": {said[-1][:200]}" if said else "")

    def renew_if_large(self, limit_gib: float) -> None:
        """End a worker that has grown (compiled graphs stay in memory); the next call restarts."""
        if self.process is None:
            return
        if _resident_gib(self.process.pid) > limit_gib:
            self.stop()

    def close(self) -> None:
        """Stop for good: a call that waits in another thread raises, and so do later ones."""
        self.closed = True
        self.stop()

    def stop(self) -> None:
        """End the process and everything it started."""
        process, self.process = self.process, None
        if process is None:
            return
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()


class _Silent(Exception):
    pass


class _Ended(Exception):
    pass


def _how_it_ended(process: subprocess.Popen[bytes]) -> str:
    try:
        code = process.wait(timeout=5)
    except subprocess.TimeoutExpired:
        return "closed its output"
    if code < 0:
        return f"was ended by {signal.Signals(-code).name}"
    return f"ended with exit status {code}"


def _resident_gib(pid: int) -> float:
    """Return the memory of a process; 0 where the system does not say."""
    try:
        pages = Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()
    except OSError:
        return 0.0
    return int(pages[1]) * os.sysconf("SC_PAGE_SIZE") / 2**30


def _ooms() -> int:
    """Return how many processes Linux has killed for want of memory; 0 where it does not say."""
    try:
        lines = Path("/proc/vmstat").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("oom_kill ")), 0)


def this_python() -> Path:
    return Path(sys.executable)
