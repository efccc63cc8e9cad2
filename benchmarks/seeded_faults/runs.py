"""In: jobs with names. Out: a row for each; what an earlier run has finished is not made again.

Rows lie in rows.jsonl, one a line, under a digest of all code that they depend on.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import queue
import random
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from judges import Heard
from remembered import Remembering

import migrate
from migrate.parity.request import VerifyRequest
from migrate.parity.session import Sides, open_sides

ROOT = Path(__file__).resolve().parents[2]
TOOL = Path(migrate.__file__).parents[1]
CODE = (
    (TOOL, "migrate"), (TOOL, "mappings"), (ROOT, "benchmarks/seeded_faults"), (ROOT, "samples"),
    (ROOT, "tests/hand_ports"),
)  # fmt: skip
LARGE = 3.0  # GiB: compiled graphs stay in memory, so a worker that has grown is renewed


@dataclass(frozen=True)
class Job:
    """One model to verify: ``name`` says which fault or seed, and is unique."""

    name: str
    run: Callable[[Sides], dict[str, Any]]


@dataclass
class Rows:
    """What is known so far; a row is kept as soon as it is there."""

    file: Path
    digest: str
    known: dict[str, dict[str, Any]] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def keep(self, name: str, row: dict[str, Any]) -> None:
        with self.lock:
            self.known[name] = row
            with self.file.open("a", encoding="utf-8") as file:
                line = json.dumps({"digest": self.digest, "job": name, "row": row})
                file.write(f"\n{line}")  # what stands there may be half a line


def open_rows(folder: Path) -> Rows:
    """The rows that an earlier run of exactly this code has left in a folder."""
    rows = Rows(folder / "rows.jsonl", _digest())
    lines = rows.file.read_text(encoding="utf-8").splitlines() if rows.file.exists() else []
    for line in lines:
        with contextlib.suppress(ValueError):  # a run that was killed leaves half a line
            kept = json.loads(line)
            if kept["digest"] == rows.digest:
                rows.known[kept["job"]] = kept["row"]
    return rows


def _digest() -> str:
    digest = hashlib.sha256()
    for root, name in CODE:
        for file in sorted((root / name).rglob("*")):
            kept = file.suffix in (".py", ".toml", ".json") and "evidence" not in file.parts
            if kept and file.is_file():
                digest.update(f"{file.relative_to(root)}\n".encode() + file.read_bytes())
    return digest.hexdigest()[:16]


def part_of(jobs: Sequence[Job], number: int, of: int, draw: int) -> list[Job]:
    """The ``number``-th of ``of`` equal parts (from 1), dealt at random but always the same."""
    dealt = sorted(jobs, key=lambda job: job.name)
    random.Random(draw).shuffle(dealt)
    chosen = {job.name for job in dealt[number - 1 :: of]}
    return [job for job in jobs if job.name in chosen]


def all_done(jobs: Sequence[Job], rows: Rows, workers: int, scratch: Path) -> list[str]:
    """Run every job that has no row yet; answers what was raised (those are tried again)."""
    left = [job for job in jobs if job.name not in rows.known]
    free: queue.Queue[Sides] = queue.Queue()
    pool = [_sides(workers, scratch, number) for number in range(workers)]
    for sides in pool:
        free.put(sides)

    def one(job: Job) -> str:
        sides = free.get()
        began, cpu = time.monotonic(), _cpu(sides)
        try:
            row = job.run(sides)
            spent = [round(max(0.0, b - a), 2) for a, b in zip(cpu, _cpu(sides), strict=True)]
            rows.keep(job.name, {**row, "wall": round(time.monotonic() - began, 2), "cpu": spent})
            return ""
        except Exception:  # one line of the table, not the end of the run
            return f"{job.name}\n{traceback.format_exc()}"
        finally:
            sides.mindspore.renew_if_large(LARGE)
            free.put(sides)

    threads = ThreadPoolExecutor(workers)
    try:
        return [error for error in threads.map(one, left) if error]
    finally:  # also after Ctrl-C: what runs then ends with its workers
        threads.shutdown(wait=False, cancel_futures=True)
        for sides in pool:
            sides.close()


def _sides(workers: int, scratch: Path, number: int) -> Sides:
    """A pair of workers: one remembers, the other is listened to."""
    sides = open_sides(VerifyRequest(scratch, scratch, jobs=workers), scratch, number)
    memory = scratch / "remembered"
    memory.mkdir(exist_ok=True)
    torch, plain = sides.torch, sides.mindspore
    return Sides(
        Remembering(torch.side, torch.python, torch.scratch, torch.threads, memory_folder=memory),
        Heard(plain.side, plain.python, plain.scratch, plain.threads), sides.scratch,
    )  # fmt: skip


def _cpu(sides: Sides) -> tuple[float, float]:
    """Seconds that the two processes have computed so far; 0 where the system does not say."""
    return _seconds(sides.torch.process), _seconds(sides.mindspore.process)


def _seconds(process: Any) -> float:
    try:
        words = Path(f"/proc/{process.pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1]
    except (AttributeError, OSError):
        return 0.0
    return (int(words.split()[11]) + int(words.split()[12])) / 100.0
