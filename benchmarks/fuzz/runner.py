"""Convert folders of programs, run the output in MindSpore processes, and judge every program."""

from __future__ import annotations

import ast
import functools
import os
import pickle
import re
import select
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from programs import Program, apart, files_of
from torch_side import Oracle

from migrate.records.outcomes import Problem
from migrate.workspace import project

_loaded = functools.cache(project.load)  # the rows are the same for every folder

FLAG = re.compile(r"torch2ms [A-Z]{3}\d{3}")
ORDER = ("RIGHT", "FLAGGED", "LOUD", "INTERNAL", "RUNS_ON", "SILENT")
HANG = 60.0  # seconds that one program may take
AT_ONCE = 3  # folders that are under way: one is converted while the others run
AGAIN = 25  # programs that wait for a new process, in which they are run once more
LIFE = 1000  # programs of one process: graphs that were compiled are never given back


@dataclass(frozen=True)
class Verdict:
    """What became of one program in one mode; ``cause`` is the first thing that differs."""

    program: Program
    mode: str
    what: str
    cause: str = ""
    flags: tuple[str, ...] = ()


@dataclass(frozen=True)
class Converted:
    """A folder of output: ``flags`` by program; ``error`` where nothing came out."""

    folder: Path
    flags: Mapping[str, tuple[str, ...]]
    error: str = ""

    def remove(self) -> None:
        shutil.rmtree(self.folder.parent, ignore_errors=True)


def convert(programs: Sequence[Program], scratch: Path) -> Converted:
    """Write the folder of these programs and convert it."""
    source, output = scratch / "torch", scratch / "out"
    source.mkdir(parents=True)
    files = files_of(programs)
    for name, text in files.items():
        (source / name).write_text(text, encoding="utf-8")
    try:
        with mock.patch.object(project, "load", _loaded):
            done = project.convert(project.Request(source, output, jobs=1))
    except Problem as error:
        return Converted(output, {}, str(error))
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        return Converted(output, {}, f"{type(error).__name__}: {error} ({frames[-1].name})")
    failures = [f.why for f in done.failures if f.internal]
    output.mkdir(parents=True, exist_ok=True)
    for one in done.outputs:
        target = output / one.path
        target.parent.mkdir(parents=True, exist_ok=True)
        data = one.content if one.content is not None else one.source and one.source.read_bytes()
        if data is not None:
            target.write_bytes(data)
    if failures:
        return Converted(output, {}, "; ".join(failures))
    return Converted(output, _flags(output, programs))


def _flags(output: Path, programs: Sequence[Program]) -> dict[str, tuple[str, ...]]:
    """The codes in the definitions of each program.

    A definition belongs to the program whose number its name ends in, or else to those that name
    it: the class of a training step.
    """
    found: dict[str, list[str]] = {p.name: [] for p in programs}
    named: dict[str, set[str]] = {}
    loose: list[tuple[str, list[str]]] = []
    for path in output.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        try:
            tree = ast.parse(text)
        except SyntaxError:
            continue
        lines = text.split("\n")
        last = 0
        for node in tree.body:
            start, end = last, node.end_lineno or 0
            last = end
            # the comments in front of a definition are its own
            codes = [c.split()[1] for c in FLAG.findall("\n".join(lines[start:end]))]
            numbers = re.findall(r"\d+", _name(node) or path.stem)  # k4_838_class is of p838
            owner = f"p{numbers[-1]}" if numbers else ""
            if owner in found and not _made(_name(node)):
                found[owner] += codes
                for name in re.findall(r"\b[A-Z]\w+", "\n".join(lines[start:end])):
                    named.setdefault(name, set()).add(owner)
            elif codes and path.name not in ("torch_helpers.py",):
                loose.append((_name(node), codes))
    for name, codes in loose:
        for owner in named.get(name, found):
            found[owner] += codes
    return {name: tuple(codes) for name, codes in found.items()}


def _made(name: str) -> bool:
    """Whether the tool has made a class, whose number counts its own classes."""
    return re.fullmatch(r"\w*(WithLoss|OneStep|Step|Eval)\w*\d*", name) is not None


def _name(node: ast.stmt) -> str:
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return node.name
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
        return node.targets[0].id
    return ""


class Died(Exception):
    """The process is gone or hangs."""


class Worker:
    """A MindSpore process of one mode, started when it is first needed."""

    def __init__(self, mode: str) -> None:
        self.mode = mode
        self.process: subprocess.Popen[bytes] | None = None
        self.answered = 0

    def _started(self) -> subprocess.Popen[bytes]:
        if self.process is None:
            environment = dict(
                os.environ, ONEDNN_MAX_CPU_ISA="AVX2", GLOG_v="4", OMP_NUM_THREADS="1"
            )
            here = Path(__file__).parent
            self.log = open(os.devnull, "wb")  # noqa: SIM115
            self.process = subprocess.Popen(
                [sys.executable, str(here / "mindspore_side.py"), self.mode],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log,
                env=environment, cwd=tempfile.gettempdir(),
            )  # fmt: skip
            self.answered = 0
            self._answer(180.0)
        return self.process

    def _answer(self, seconds: float) -> Any:
        process = self.process
        assert process is not None and process.stdout is not None
        until = time.monotonic() + seconds
        size = int.from_bytes(self._bytes(8, until), "little")
        return pickle.loads(self._bytes(size, until))

    def _bytes(self, count: int, until: float) -> bytes:
        """That many bytes of the answer. Raises Died."""
        process = self.process
        assert process is not None and process.stdout is not None
        # read without a buffer of Python's: what it holds is nothing that select knows of
        handle, found = process.stdout.fileno(), b""
        while len(found) < count:
            left = until - time.monotonic()
            if left <= 0 or not select.select([handle], [], [], left)[0]:
                self.stop()
                raise Died("no answer in time")
            part = os.read(handle, count - len(found))
            if not part:
                code = process.wait()
                self.stop()
                raise Died(f"the process ended with {code}")
            found += part
        return found

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def run(
        self, folder: Path, programs: Sequence[Program], chosen: Mapping[str, Any]
    ) -> Iterator[tuple[Program, dict[str, Any] | str]]:
        """(program, what it gave or why nothing): a crash costs the program that was running."""
        waiting = list(programs)
        if self.answered > LIFE:
            self.stop()
        while waiting:
            try:
                process = self._started()
                assert process.stdin is not None
                bare = [_bare(p) for p in waiting]
                pickle.dump((str(folder), bare, chosen), process.stdin)
                process.stdin.flush()
                _, error = self._answer(HANG)
                if error:
                    yield from ((p, f"import: {error}") for p in waiting)
                    return
                while waiting:
                    _, found = self._answer(HANG)
                    self.answered += 1
                    yield waiting.pop(0), found
                self._answer(HANG)
            except (Died, BrokenPipeError) as error:
                self.stop()
                if waiting:
                    if os.environ.get("FUZZ_DEBUG"):
                        print("lost", waiting[0].name, error, file=sys.stderr, flush=True)
                    yield waiting.pop(0), f"crash: {error}"


def _bare(program: Program) -> Program:
    return replace(program, text="", features=frozenset(), others={})


Made = Sequence[tuple[Program, Oracle]]
Found = list[tuple[Program, "dict[str, Any] | str"]]


@dataclass(frozen=True)
class _Started:
    """A folder under way: what each mode is going to answer."""

    made: Made
    converted: Converted
    answers: Mapping[str, Future[Found]]


@dataclass(frozen=True)
class _Doubt:
    """A verdict that another program of the process may have spoiled."""

    verdict: Verdict
    oracle: Oracle
    converted: Converted


def judged(
    program: Program, oracle: Oracle, got: dict[str, Any] | str, mode: str, flags: tuple[str, ...]
) -> Verdict:
    """The verdict on one program: the worst of its runs."""
    if isinstance(got, str):
        what = "FLAGGED" if flags and FLAG.search(got) else "LOUD"
        return Verdict(program, mode, what, got, flags)
    stopped: set[str] = set()
    worst, cause = "RIGHT", ""
    for label, expected in oracle.found.items():
        number = label.split()[0]
        if number in stopped:
            continue
        mine = got.get(label)
        if mine is None or mine[0] == "raises":
            text = "did not run" if mine is None else mine[1]
            stopped.add(number)
            known = bool(flags) or bool(FLAG.search(text))
            what, text = "FLAGGED" if known else "LOUD", f"{label}: {text}"
        else:
            gradient = "gradient" in label
            found = _as_torchs(mine, expected) if gradient else mine
            if mode == "graph" and not gradient:
                expected, found = _without_keys(expected), _without_keys(found)
            text = apart(expected, found, label, _largest(expected) if gradient else 0.0)
            if not text:
                continue
            what = "RUNS_ON" if flags else "SILENT"
        if ORDER.index(what) > ORDER.index(worst):
            worst, cause = what, text
    if worst == "RIGHT" and flags:
        worst = "FLAGGED"
    return Verdict(program, mode, worst, cause[:600], flags)


def _without_keys(expected: Any) -> Any:
    """A result as a graph hands it to code that is no part of the program: docs/graph.md."""
    what, held = expected
    if what == "dict":
        return "tuple", [_without_keys(value) for _, value in held]
    if what in ("list", "tuple"):
        return what, [_without_keys(value) for value in held]
    return expected


def _largest(gradients: Any) -> float:
    """The largest of all gradients of a program: what is zero but for rounding is small beside it."""
    sizes = (np.abs(array).max() for _, (_, array) in gradients[1] if array.size)
    return float(max(sizes, default=0.0))


def _as_torchs(mine: Any, expected: Any) -> Any:
    """The gradients of weights in torch's order and shape: a Conv1d's has four dimensions here."""
    sizes, found = dict(expected[1]), dict(mine[1])
    if sizes.keys() != found.keys():
        return mine
    return (
        "dict",
        [
            (name, (found[name][0], found[name][1].reshape(array.shape)))
            if found[name][1].size == array.size
            else (name, found[name])
            for name, (_, array) in expected[1]
        ],
    )


class Bench:
    """Converts and runs folders of programs; ``close`` ends its processes."""

    def __init__(self, modes: Sequence[str] = ("pynative", "graph")) -> None:
        self.workers = {mode: Worker(mode) for mode in modes}
        self.threads = {mode: ThreadPoolExecutor(1) for mode in modes}
        self.scratch = Path(tempfile.mkdtemp(prefix="fuzz_"))
        self.folders = 0

    def close(self) -> None:
        for mode, worker in self.workers.items():
            self.threads[mode].shutdown(cancel_futures=True)
            worker.stop()
        shutil.rmtree(self.scratch, ignore_errors=True)

    def folder(self, made: Made) -> list[Verdict]:
        """The verdicts on the programs of one folder."""
        return list(self.stream([made]))

    def stream(self, folders: Iterable[Made]) -> Iterator[Verdict]:
        """The verdicts on the programs of many folders, which come as they are found.

        What is not right is run once more in a new process, many at a time: another program may
        have spoiled it.
        """
        under_way: list[_Started] = []
        doubts: list[_Doubt] = []
        for made in folders:
            under_way.append(self._start(made))
            if len(under_way) >= AT_ONCE:
                yield from self._finished(under_way.pop(0), doubts)
            if len(doubts) >= AGAIN:
                yield from self._again(doubts)
        for one in under_way:
            yield from self._finished(one, doubts)
        yield from self._again(doubts)

    def _start(self, made: Made) -> _Started:
        """Convert a folder, and hand it to the processes."""
        programs = [p for p, _ in made]
        self.folders += 1
        converted = convert(programs, self.scratch / str(self.folders))
        answers = {}
        for mode in self.workers if not converted.error else ():
            mine = [p for p in programs if mode != "graph" or p.kind == "model"]
            if mine:
                answers[mode] = self._asked(mode, converted, mine, made)
        return _Started(made, converted, answers)

    def _asked(
        self, mode: str, converted: Converted, programs: Sequence[Program], made: Made
    ) -> Future[Found]:
        chosen = {p.name: oracle.chosen for p, oracle in made}
        worker = self.workers[mode]
        return self.threads[mode].submit(
            lambda: list(worker.run(converted.folder, programs, chosen))
        )

    def _finished(self, one: _Started, doubts: list[_Doubt]) -> Iterator[Verdict]:
        """The verdicts on a folder that are certain; the others join the ``doubts``.

        Where it has no output, or none that can be imported, each program is tried alone.
        """
        made, converted = one.made, one.converted
        found = {mode: answer.result() for mode, answer in one.answers.items()}
        spoiled = any(
            isinstance(got, str) and got.startswith("import:")
            for answers in found.values()
            for _, got in answers
        )
        if len(made) > 1 and (converted.error or spoiled):
            converted.remove()
            middle = len(made) // 2
            for half in (made[:middle], made[middle:]):
                yield from self._finished(self._start(half), doubts)
            return
        if converted.error:
            converted.remove()
            yield Verdict(made[0][0], "convert", "INTERNAL", converted.error)
            return
        oracles = {p.name: oracle for p, oracle in made}
        certain = True
        for mode, answers in found.items():
            for program, got in answers:
                oracle = oracles[program.name]
                verdict = judged(program, oracle, got, mode, converted.flags.get(program.name, ()))
                if verdict.what in ("RIGHT", "FLAGGED"):
                    yield verdict
                else:
                    certain = False
                    doubts.append(_Doubt(verdict, oracle, converted))
        if certain:
            converted.remove()

    def _again(self, doubts: list[_Doubt]) -> Iterator[Verdict]:
        """The verdicts of new processes on what is in doubt, which is then settled."""
        for mode in dict.fromkeys(d.verdict.mode for d in doubts):
            self.threads[mode].submit(self.workers[mode].stop)
        asked = [
            self._asked(d.verdict.mode, d.converted, [d.verdict.program],
                        [(d.verdict.program, d.oracle)])
            for d in doubts
        ]  # fmt: skip
        for doubt, answer in zip(doubts, asked, strict=True):
            before = doubt.verdict
            for program, got in answer.result():
                yield judged(program, doubt.oracle, got, before.mode, before.flags)
        for doubt in doubts:
            doubt.converted.remove()
        doubts.clear()
