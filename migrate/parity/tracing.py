"""In: expressions that run the torch program. Out: the types its receivers had, from a process."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from migrate.analysis.types.recorded import Recorded, Seen, merged
from migrate.parity.ladder import package_of
from migrate.parity.request import parse_input
from migrate.parity.worker import Worker, WorkerError, WorkerLost, this_python
from migrate.records.outcomes import Problem

_TIMEOUT = 600.0  # seconds


@dataclass(frozen=True)
class Runs:
    """What to run: ``builds`` are expressions, evaluated in the module of the file (in a folder:
    "pkg/net.py:Net()"); ``inputs`` describe what the models get (as verify's --input)."""

    builds: tuple[str, ...]
    inputs: tuple[str, ...] = ()
    torch_python: Path | None = None


def traced(source: Path, runs: Runs) -> Recorded:
    """Run the torch code of a file or folder, each expression in a process of its own.

    Raises:
        Problem: an expression or input cannot be read, or its run fails.
    """
    for text in runs.inputs:
        try:
            parse_input(text)
        except ValueError as error:
            raise Problem("--input", "cannot be read", str(error), "write 2x3x64x64") from error
    root = (source if source.is_dir() else source.parent).resolve()
    return merged([_traced(root, *_split(source, build), runs) for build in runs.builds])


def _split(source: Path, build: str) -> tuple[str, str]:
    """(file below the root, expression)"""
    if source.is_dir():
        file, mark, expression = build.partition(".py:")
        if not mark or not (source / f"{file}.py").is_file():
            raise Problem(
                "--trace", "names no file of the folder", build,
                "write FILE.py:EXPRESSION, with the file's path in the folder",
            )  # fmt: skip
        return f"{file}.py", expression
    if source.suffix == ".ipynb":
        raise Problem("--trace", "a notebook cannot be run", build, "trace the .py files it uses")
    return source.name, build


def _traced(root: Path, file: str, build: str, runs: Runs) -> Recorded:
    with tempfile.TemporaryDirectory(prefix="torch2ms_") as scratch:
        worker = Worker("torch_trace", runs.torch_python or this_python(), Path(scratch))
        request = {
            "root": str(root), "package": package_of(root), "file": file, "build": build,
            "inputs": list(runs.inputs), "seed": 0,
        }  # fmt: skip
        try:
            answer = worker.call("trace", request, _TIMEOUT)
        except (WorkerError, WorkerLost) as error:
            place = f" ({error.failed.place})" if isinstance(error, WorkerError) else ""
            raise Problem(
                f"--trace {build}", "the torch code does not run", f"{error}{place}",
                "correct the expression, give --input, or convert without --trace",
            ) from error  # fmt: skip
        finally:
            worker.stop()
    return merged([_row(row, build) for row in answer["found"]])


def _row(row: dict[str, Any], build: str) -> Recorded:
    seen = Seen(row["what"], row["name"], row["times"], build)
    first, column, last, end = row["place"]
    return Recorded({row["file"]: {(first, column, last, end): seen}})
