"""In: a VerifyRequest. Out: pairs of workers, each with a scratch folder of its own."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from migrate.parity.request import VerifyRequest
from migrate.parity.session import Sides
from migrate.parity.worker import Worker, this_python

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
