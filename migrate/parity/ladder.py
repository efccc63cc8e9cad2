"""In: a VerifyRequest. Out: a Verification: every model climbs the rungs, worst verdict counts."""

from __future__ import annotations

import ast
import os
import queue
import shutil
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from migrate.outcomes import Verdict
from migrate.parity.climb import climb, failed_result
from migrate.parity.compare import worst
from migrate.parity.journal import Journal, open_journal
from migrate.parity.request import VerifyError, VerifyRequest, parse_input
from migrate.parity.session import Sides, Target, find, stateless
from migrate.parity.worker import Worker, WorkerError, WorkerLost, this_python
from migrate.result import FileResult, ModelResult, Record, Verification
from migrate.weights import Names

Progress = Callable[[str], None]
SCRATCH = "torch2ms_"
INTERRUPTED = "interrupted before its last rung. Next: run verify again, it goes on from there"
INSTALL = 'pip install "torch2mindspore[verify]"'


class Interrupted(Exception):
    """Ctrl-C: ``found`` says what was verified until then, and is marked as partial."""

    def __init__(self, found: Verification) -> None:
        super().__init__("interrupted")
        self.found = found


def verify(request: VerifyRequest, progress: Progress) -> Verification:
    """Build every model on both sides and compare them, Cell by Cell.

    ``progress`` is called with one line of text now and then, from several threads when jobs > 1.
    Raises VerifyError when nothing at all can be verified (no record, a framework is missing).
    """
    _sweep(Path(tempfile.gettempdir()))
    with tempfile.TemporaryDirectory(prefix=f"{SCRATCH}{os.getpid()}_") as folder:
        pool = tuple(
            open_sides(request, Path(folder), number) for number in range(max(1, request.jobs))
        )
        try:
            return verify_with(pool, request, progress)
        finally:
            for sides in pool:
                sides.close()


def _sweep(temporary: Path) -> None:
    """Remove what a run left behind that was killed."""
    for folder in temporary.glob(f"{SCRATCH}*_*"):
        number = folder.name.removeprefix(SCRATCH).partition("_")[0]
        if number.isdecimal() and not Path(f"/proc/{number}").exists() and Path("/proc").exists():
            shutil.rmtree(folder, ignore_errors=True)


def verify_with(pool: Sequence[Sides], request: VerifyRequest, progress: Progress) -> Verification:
    """`verify` with workers that outlive it, one pair for each model at a time.

    Raises Interrupted for Ctrl-C, with what is known until then; its workers are closed.
    """
    for text in (*request.inputs, *request.targets):
        _checked_input(text)
    record = _record(request.record)
    environment = _environment(pool[0], request)
    targets, refused = _targets(request, record, pool[0], progress)
    roots = (_source(record), request.output_root)
    journal = open_journal(request, record, roots, environment)
    models, whole = _climb_all(request, record, targets, pool, progress, journal)
    left = _not_covered(refused, models)
    every = tuple(sorted((*models, *left), key=lambda model: model.source))
    counted = [model.verdict for model in models] or [Verdict.NOT_RUN]
    found = Verification(
        tool_version=record.tool_version, verdict=worst(counted), environment=environment,
        models=every, partial=not whole,
    )  # fmt: skip
    if not whole:
        raise Interrupted(found)
    return found


def _not_covered(refused: list[ModelResult], models: list[ModelResult]) -> list[ModelResult]:
    """What could not be built by itself, without the classes that ran as part of a model."""
    ran = {
        (check.torch_class, model.source)
        for model in models for check in model.checks if check.elements
    }  # fmt: skip
    sources = {source for _, source in ran}
    return [
        model for model in refused
        if (model.name, model.source) not in ran
        and not (model.source in sources and model.name[:1].islower())
    ]  # fmt: skip


def _checked_input(text: str) -> None:
    try:
        parse_input(text)
    except ValueError as error:
        raise VerifyError("--input or --target", "cannot be read", str(error),
                          "write it as 2x3x64x64 or 2x16:int64<100") from error  # fmt: skip


def _record(path: Path) -> Record:
    try:
        return Record.model_validate_json(path.read_bytes())
    except FileNotFoundError as error:
        raise VerifyError(
            str(path), "the record of the conversion is missing", "convert writes it",
            "run torch2ms convert first, and verify its output folder",
        ) from error  # fmt: skip
    except (ValueError, OSError) as error:
        first = str(error).splitlines()[0]
        raise VerifyError(str(path), "this is no record of a conversion", first,
                          "run torch2ms convert again") from error  # fmt: skip


def open_sides(request: VerifyRequest, folder: Path, number: int) -> Sides:
    """A pair of workers (started by their first request) with a scratch folder of their own."""
    scratch = folder / f"job{number}"
    scratch.mkdir(parents=True)
    threads = max(1, (os.cpu_count() or 1) // max(1, request.jobs))
    python = request.torch_python or this_python()
    torch = Worker("torch_side", python, scratch, threads, memory=request.memory)
    mindspore = Worker("mindspore_side", this_python(), scratch, threads, memory=request.memory)
    return Sides(torch, mindspore, scratch)


def _environment(sides: Sides, request: VerifyRequest) -> dict[str, str]:
    """Versions on both sides, and that both frameworks can be imported at all."""
    found: dict[str, str] = {"ONEDNN_MAX_CPU_ISA": "AVX2"}
    for worker, name in ((sides.torch, "torch"), (sides.mindspore, "mindspore")):
        try:
            asked = {"device": request.device} if name == "mindspore" else {}
            found.update(stateless(worker, "hello", asked, max(request.timeout, 60.0)))
        except (WorkerLost, WorkerError) as error:
            why = error.why if isinstance(error, WorkerLost) else str(error)
            if name == "mindspore" and request.device != "CPU":
                raise VerifyError(
                    "--device", f"MindSpore cannot use {request.device}", why.splitlines()[0],
                    "leave it out for CPU, or run where this MindSpore has such a device",
                ) from error  # fmt: skip
            raise VerifyError(
                str(worker.python), f"{name} cannot be imported", why,
                f"{INSTALL} (Python 3.10 to 3.12, numpy below 2), or give --torch-python for "
                "torch in another environment; torch2ms doctor says more",
            ) from error  # fmt: skip
    return found


def _targets(
    request: VerifyRequest, record: Record, sides: Sides, progress: Progress
) -> tuple[list[Target], list[ModelResult]]:
    """The models to verify, and results for those that cannot be tried, with the reason."""
    files = [file for file in record.files if _wanted(file, request)]
    if request.file and not files:
        raise VerifyError(request.file, "no such file in the record", str(request.record),
                          f"one of {', '.join(f.source for f in record.files[:8])}")  # fmt: skip
    if request.builds:
        return _given(request, record, files)
    targets: list[Target] = []
    refused: list[ModelResult] = []
    for file in (file for file in files if file.cells):
        progress(f"{file.source}: looking for models")
        blank = _target(request, record, file, file.source, "")
        try:
            found = find(sides, blank, request.timeout)
        except (WorkerError, WorkerLost) as error:
            why = f"{file.source}: the torch source cannot be imported: {error}"
            refused.append(failed_result(blank, f"{why}. Next: verify it where it runs"))
            continue
        for row in found:
            target = _target(request, record, file, row["name"], row["build"])
            if row["reason"]:
                why = f"{file.source}: {row['name']} is not built by itself: {row['reason']}"
                refused.append(failed_result(target, f"{why}. Next: --build '{row['name']}(...)'"))
            else:
                targets.append(target)
    if not targets and not refused:
        raise VerifyError(
            str(request.record), "no model was found", "no converted file defines a Module class",
            "name one with --build 'Net(10)'",
        )  # fmt: skip
    return targets, refused


def _wanted(file: FileResult, request: VerifyRequest) -> bool:
    if request.file and request.file not in (file.source, file.output):
        return False
    return file.status == "converted" and file.output.endswith(".py") and not file.package


def _given(
    request: VerifyRequest, record: Record, files: Sequence[FileResult]
) -> tuple[list[Target], list[ModelResult]]:
    targets: list[Target] = []
    refused: list[ModelResult] = []
    for build in request.builds:
        homes = [file for file in files if _defines(_source(record) / file.source, build)]
        if not homes:
            file = files[0] if files else FileResult(source="")
            blank = _target(request, record, file, build, build)
            why = f"--build {build}: no converted file defines a name that it uses"
            refused.append(failed_result(blank, f"{why}. Next: check the spelling"))
        targets += [_target(request, record, file, build, build) for file in homes[:1]]
    return targets, refused


def _defines(path: Path, build: str) -> bool:
    try:
        tree = ast.parse(path.read_bytes())
        names = {n.id for n in ast.walk(ast.parse(build, mode="eval")) if isinstance(n, ast.Name)}
    except (SyntaxError, ValueError, OSError):
        return False
    kinds = (ast.ClassDef, ast.FunctionDef)
    return any(isinstance(node, kinds) and node.name in names for node in tree.body)


def _source(record: Record) -> Path:
    root = Path(record.source_root)
    return root if record.kind == "folder" else root.parent


def _target(
    request: VerifyRequest, record: Record, file: FileResult, name: str, build: str
) -> Target:
    source = _source(record).resolve()
    output = request.output_root.resolve()
    output = output.parent if output.is_file() else output
    package = package_of(source)
    ms_package = package if (output / "__init__.py").exists() else ""
    return Target(name, build, file.source, file.output, source, output, package, ms_package)


def package_of(root: Path) -> str:
    """The dotted name of a folder that is a package, from its outermost package on; else empty."""
    parts: list[str] = []
    while (root / "__init__.py").exists() and root.name:
        parts.insert(0, root.name if root.name.isidentifier() else root.name.replace("-", "_"))
        root = root.parent
    return ".".join(parts)


def _climb_all(
    request: VerifyRequest, record: Record, targets: Sequence[Target], pool: Sequence[Sides],
    progress: Progress, journal: Journal,
) -> tuple[list[ModelResult], bool]:  # fmt: skip
    """One result a model, and whether all were climbed to the end: not after Ctrl-C."""
    free: queue.Queue[Sides] = queue.Queue()
    for sides in pool:
        free.put(sides)
    names = Names(record.weights, record.layouts)

    def one(target: Target) -> ModelResult:
        sides = free.get()
        try:
            return climb(target, request, names, sides, progress, journal)
        finally:
            free.put(sides)

    threads = ThreadPoolExecutor(len(pool))
    running = [threads.submit(one, target) for target in targets]
    try:
        return [future.result() for future in running], True
    except KeyboardInterrupt:
        for sides in pool:
            sides.close()
        threads.shutdown(wait=True, cancel_futures=True)
        return [
            future.result() if _ended(future) else failed_result(target, INTERRUPTED)
            for target, future in zip(targets, running, strict=True)
        ], False  # fmt: skip
    finally:
        threads.shutdown(wait=True, cancel_futures=True)


def _ended(future: Future[ModelResult]) -> bool:
    return future.done() and not future.cancelled() and future.exception() is None
