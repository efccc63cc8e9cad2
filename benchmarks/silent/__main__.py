"""Run small hostile programs in torch and, converted, in MindSpore, and class what differs.

    python benchmarks/silent [FOLDER...] [--only REGEX] [--out DIR] [--allow LOUD]

A program is ``NAME.py`` or ``NAME/main.py``. Its comment lines say what is run:
``#: model BUILD <- ARGUMENTS`` builds a Module and calls it twice in train mode, once in eval mode,
``#: call FUNCTION(ARGUMENTS)`` calls a function, ``#: script`` runs the file. ``A P I B N C`` make
arrays (``side.py``); ``#: model[nograd]`` leaves gradients out. Outputs, gradients of inputs and
weights, buffers and every printed number are compared, in PyNative and in Graph mode (STRICT).

Classes, worst first: TOOL_ERROR (no output), SILENT (other numbers, no flag), RUNS_ON (flagged, yet
other numbers come out), LOUD (raises without a flag), FLAGGED (stops where it is flagged, right
elsewhere), RIGHT. Exit status 1 for the first four, but for those that ``--allow`` names.
Programs share processes, two of which run at a time: torch's first, then one for PyNative and
two for Graph mode, which takes four times as long. One that dies costs its own program.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import pickle
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from migrate.cli import app as cli

HERE = Path(__file__).resolve().parent
PROGRAMS = HERE.parents[1] / "tests" / "silent_programs"
CLASSES = ("TOOL_ERROR", "SILENT", "RUNS_ON", "LOUD", "FLAGGED", "RIGHT")
MODES = ("pynative", "graph")
FLAG = re.compile(r"torch2ms [A-Z]{3}\d{3}")
NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+|nan|inf)(?![\w])")
Answers = Mapping[str, tuple[str, Any]]


@dataclass
class Program:
    """One program: its file, its converted file, and what the conversion said."""

    name: str
    source: Path
    target: Path
    flagged: bool = False
    trouble: str = ""


@dataclass
class Row:
    """The class of a program, the number of comparisons, and what differed."""

    name: str
    verdict: str
    checks: int = 0
    found: list[str] = field(default_factory=list)


def difference(expected: object, found: object) -> str:
    """Return what differs between two leaves: 1e-4 of the largest number, integers exactly."""
    if isinstance(expected, str) or isinstance(found, str):
        return "" if expected == found else f"{expected!r} / {found!r}"
    a, b = np.asarray(expected), np.asarray(found)
    if a.shape != b.shape:
        return f"shape {a.shape} / {b.shape}"
    if a.dtype.kind in "biu" and b.dtype.kind in "biu":
        return "" if np.array_equal(a, b) else f"{a.ravel()[:6]} / {b.ravel()[:6]}"
    wide = np.complex128 if "c" in a.dtype.kind + b.dtype.kind else np.float64
    a, b = a.astype(wide), b.astype(wide)
    finite = np.isfinite(a) & np.isfinite(b)
    scale = float(np.abs(a[finite]).max(initial=0.0))
    if np.allclose(a, b, rtol=0.0, atol=3e-6 + 1e-4 * scale, equal_nan=True):
        return ""
    return f"{a.ravel()[:5]} / {b.ravel()[:5]}"


def printed(expected: str, found: str) -> str:
    """Return the first printed number that differs by more than 2e-4 of itself, or ""."""
    mine, theirs = ([float(n) for n in NUMBER.findall(text)] for text in (expected, found))
    if len(mine) != len(theirs):
        return f"{len(mine)} numbers / {len(theirs)}"
    for a, b in zip(mine, theirs, strict=True):
        if not (a == b or (a != a and b != b) or abs(a - b) <= 2e-6 + 2e-4 * abs(a)):
            return f"printed {a} / {b}"
    return ""


def compared(what: str, expected: Any, found: Any) -> str:
    """Return what differs between two answers to one question."""
    if what == "script":
        return printed(expected, found)
    if what.endswith(" buffers"):
        there = dict(found)
        pairs = [(n, v, there[n]) for n, v in expected if n in there]
    elif expected is None or found is None:
        return "" if expected is found else f"{expected} / {found}"
    elif len(expected) != len(found):
        return f"{len(expected)} results / {len(found)}"
    else:
        pairs = [(n, v, w) for (n, v), (_, w) in zip(expected, found, strict=True)]
    texts = (f"{n}: {text}" for n, v, w in pairs if (text := difference(v, w)))
    return "; ".join(texts)[:300]


def judged(program: Program, expected: Answers, modes: Mapping[str, Answers]) -> Row:
    """Return the row of a program: the worst that any check of any mode found."""
    if program.trouble:
        return Row(program.name, "TOOL_ERROR", found=[program.trouble])
    row = Row(program.name, "FLAGGED" if program.flagged else "RIGHT")
    for mode, answers in modes.items():
        fell: set[str] = set()  # what comes after an error of the same model says nothing
        for what, (state, answer) in expected.items():
            model = what.rpartition(" ")[0]
            if state != "ok" or model in fell:
                continue
            row.checks += 1
            got, mine = answers.get(what, ("error", _why(answers)))
            if got == "ok":
                text, kind = (
                    compared(what, answer, mine),
                    "RUNS_ON" if program.flagged else "SILENT",
                )
            else:
                fell.add(model)
                text = str(mine)
                kind = "FLAGGED" if program.flagged or FLAG.search(text) else "LOUD"
            if text:
                row.found.append(f"{mode} {what}: {text[:300]}")
                row.verdict = min(row.verdict, kind, key=CLASSES.index)
    if not row.checks:
        row.verdict = "TOOL_ERROR"
        row.found = row.found or [f"nothing to compare: {_why(expected)}"]
    return row


def _why(answers: Answers) -> str:
    """Return the first error of a side, for a check that did not run."""
    return next((str(a) for state, a in answers.values() if state != "ok"), "did not run")


def converted(source: Path, folder: Path) -> Program:
    """Convert one program with the command line, in this process."""
    main = source if source.is_file() else source / "main.py"
    target = folder / source.stem
    program = Program(source.stem, main, target / main.name)
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        status = cli.main(["convert", str(source), "-o", str(target), "--force"])
    if status > 1 or not program.target.exists():
        program.trouble = f"exit status {status}: {said.getvalue()[-400:]}"
    texts = (p.read_text(encoding="utf-8") for p in target.rglob("*.py"))
    program.flagged = any(FLAG.search(text) for text in texts)
    return program


def answers(side: str, programs: Sequence[Program], folder: Path, seconds: float) -> dict[str, Any]:
    """Run programs on one side; a process that dies is begun anew behind its program."""
    found: dict[str, Any] = {}
    todo = [p for p in programs if not p.trouble]
    listed = folder / f"{todo[0].name}.{side}_jobs" if todo else folder
    while todo:
        jobs = [
            (p.name, str(p.source), str(p.source if side == "torch" else p.target)) for p in todo
        ]
        listed.write_bytes(pickle.dumps(jobs))
        for program in todo:
            (folder / f"{program.name}.{side}").unlink(missing_ok=True)
        trouble = _run(side, listed, folder, seconds)
        rest = list(todo)
        for program in todo:
            answer = folder / f"{program.name}.{side}"
            if not answer.exists():
                break
            found[program.name], done = pickle.loads(answer.read_bytes())
            rest.remove(program)
            if not done:
                found[program.name]["process"] = ("error", trouble)
                break
        if len(rest) == len(todo):  # it died before its first answer
            found[rest[0].name] = {"process": ("error", trouble)}
            rest = rest[1:]
        todo = rest
    return found


def _run(side: str, listed: Path, folder: Path, seconds: float) -> str:
    """Run the worker until it ends, or until one program takes too long; return why it died."""
    env = {**os.environ, "ONEDNN_MAX_CPU_ISA": "AVX2", "GLOG_v": "4", "OMP_NUM_THREADS": "1"}
    log = listed.with_suffix(f".{side}_log")
    with log.open("wb") as out:
        worker = subprocess.Popen(
            [sys.executable, str(HERE / "side.py"), side, str(listed), str(folder)],
            env=env, stdout=out, stderr=subprocess.STDOUT,
        )  # fmt: skip
        last = time.monotonic()
        mine = [folder / f"{name}.{side}" for name, _, _ in pickle.loads(listed.read_bytes())]
        newest = 0
        while worker.poll() is None:
            time.sleep(0.2)
            done = sum(answer.exists() for answer in mine)
            if done != newest:
                newest, last = done, time.monotonic()
            if time.monotonic() - last > seconds:
                worker.kill()
                worker.wait()
                return f"more than {seconds:.0f} s"
    text = log.read_text(encoding="utf-8", errors="replace")[-300:]
    return f"exit status {worker.returncode}: {text}"


def rows_of(sources: Sequence[Path], folder: Path, seconds: float = 180.0) -> list[Row]:
    """Convert and run the programs, two processes at a time, and class each."""
    programs = [converted(source, folder / "converted") for source in sources]
    work = folder / "answers"
    work.mkdir(parents=True, exist_ok=True)
    expected = answers("torch", programs, work, seconds)
    pynative, graph = MODES
    parts = [(graph, programs[::2]), (pynative, programs), (graph, programs[1::2])]
    sides: dict[str, dict[str, Any]] = {mode: {} for mode in MODES}
    with ThreadPoolExecutor(2) as pool:
        ran = pool.map(lambda part: (part[0], answers(*part, work, seconds)), parts)
        for mode, found in ran:
            sides[mode].update(found)
    return [
        judged(p, expected.get(p.name, {}), {m: sides[m].get(p.name, {}) for m in MODES})
        for p in programs
    ]


def found_in(folders: Sequence[Path], only: str) -> list[Path]:
    """Return the programs of the folders whose names match."""
    inside = [p for folder in folders for p in sorted(folder.resolve().iterdir())]
    programs = [p for p in inside if p.suffix == ".py" or (p / "main.py").is_file()]
    return [p for p in programs if re.search(only, p.stem)]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", type=Path, nargs="*", default=[PROGRAMS])
    parser.add_argument("--only", default="", help="a regular expression on the name")
    parser.add_argument("--out", type=Path, help="keep converted files and answers there")
    parser.add_argument("--seconds", type=float, default=180.0, help="for one program on one side")
    parser.add_argument("--allow", action="append", default=[], help="a class that is no failure")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.out.resolve() if given.out else Path(temporary)
        rows = rows_of(found_in(given.folders, given.only), folder, given.seconds)
    for row in rows:
        print(f"{row.verdict:10} {row.name:34} {row.found[0][:150] if row.found else ''}")
    counts = Counter(row.verdict for row in rows)
    if given.out:
        summary = {"classes": counts, "rows": [asdict(row) for row in rows]}
        (folder / "summary.json").write_text(json.dumps(summary, indent=1), encoding="utf-8")
    print(f"{len(rows)} programs, {sum(r.checks for r in rows)} comparisons: {dict(counts)}")
    return any(counts[c] for c in CLASSES[:4] if c not in given.allow)


if __name__ == "__main__":
    sys.exit(main())
