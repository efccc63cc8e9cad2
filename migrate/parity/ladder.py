"""In: a VerifyRequest. Out: a Verification: every model climbs the rungs, worst verdict counts."""

from __future__ import annotations

import ast
import queue
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from migrate.parity.climb import Journal, Page, Progress, climb, open_journal
from migrate.parity.compare import worst
from migrate.parity.recorded import Recorded, Target, find
from migrate.parity.request import VerifyRequest, parse_input, to_install
from migrate.parity.script import script_of, verify_script
from migrate.parity.session import Sides, opened_sides, stateless
from migrate.parity.weights import Names
from migrate.parity.worker import WorkerError, WorkerLost
from migrate.records.outcomes import Problem, Verdict
from migrate.records.result import FileResult, ModelResult, Record, Verification
from migrate.syntax.trees import all_names


def targets_of(
    request: VerifyRequest, record: Record, sides: Sides, progress: Progress
) -> tuple[list[Target], list[ModelResult]]:
    """Return the models to verify, and results for those that cannot be tried, with the reason."""
    files = [file for file in record.files if _wanted(file, request)]
    if request.file and not files:
        raise Problem(request.file, "no such file in the record", str(request.record),
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
            step = to_install(str(error), blank.torch_root, request.torch_python)
            step = step or "verify it where it runs"
            refused.append(blank.failed(f"{why}. Next: {step}"))
            continue
        for row in found:
            target = _target(request, record, file, row["name"], row["build"])
            if row["reason"]:
                why = f"{file.source}: {row['name']} is not built by itself: {row['reason']}"
                refused.append(target.failed(f"{why}. Next: --build '{row['name']}(...)'"))
            else:
                targets.append(target)
    if not targets and not refused:
        raise Problem(
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
        homes = [file for file in files if _defines(source_of(record) / file.source, build)]
        if not homes:
            file = files[0] if files else FileResult(source="")
            blank = _target(request, record, file, build, build)
            why = f"--build {build}: no converted file defines a name that it uses"
            refused.append(blank.failed(f"{why}. Next: check the spelling"))
        targets += [_target(request, record, file, build, build) for file in homes[:1]]
    return targets, refused


def _defines(path: Path, build: str) -> bool:
    try:
        tree = ast.parse(path.read_bytes())
        names = all_names(ast.parse(build, mode="eval"))
    except (SyntaxError, ValueError, OSError):
        return False
    kinds = (ast.ClassDef, ast.FunctionDef)
    return any(isinstance(node, kinds) and node.name in names for node in tree.body)


def source_of(record: Record) -> Path:
    root = Path(record.source_root)
    return root if record.kind == "folder" else root.parent


def _target(
    request: VerifyRequest, record: Record, file: FileResult, name: str, build: str
) -> Target:
    source = source_of(record).resolve()
    output = request.output_root.resolve()
    output = output.parent if output.is_file() else output
    package = package_of(source)
    ms_package = package if (output / "__init__.py").exists() else ""
    where = (file.source, file.output, source, output, package, ms_package)
    return Target(name, build, *where, request.inputs)


def package_of(root: Path) -> str:
    """The dotted name of a folder that is a package, from its outermost package on; else empty."""
    parts: list[str] = []
    while (root / "__init__.py").exists() and root.name:
        parts.insert(0, root.name if root.name.isidentifier() else root.name.replace("-", "_"))
        root = root.parent
    return ".".join(parts)


INTERRUPTED = "interrupted before its last rung. Next: run verify again, it goes on from there"
INSTALL = 'pip install "torch2mindspore[verify]"'


class Interrupted(Exception):
    """Ctrl-C: ``found`` says what was verified until then, and is marked as partial."""

    def __init__(self, found: Verification) -> None:
        super().__init__("interrupted")
        self.found = found


def verify(request: VerifyRequest, progress: Progress, *more: VerifyRequest) -> Verification:
    """Build every model on both sides and compare them, Cell by Cell.

    ``more`` asks for other models of the same record: it differs in builds, inputs and file only.
    ``progress`` is called with one line of text now and then, from several threads when jobs > 1.
    Raises Problem when nothing at all can be verified (no record, a framework is missing).
    """
    with opened_sides(request, 1 if request.cluster else max(1, request.jobs)) as pool:
        return verify_with(pool, request, progress, *more)


def verify_with(
    pool: Sequence[Sides], request: VerifyRequest, progress: Progress, *more: VerifyRequest
) -> Verification:
    """Do as `verify` with workers that outlive it, one pair for each model at a time.

    Raises Interrupted for Ctrl-C, with what is known until then; its workers are closed.
    """
    requests = (request, *more)
    for text in (*(text for one in requests for text in one.inputs), *request.targets):
        _checked_input(text)
    record = _record(request.record)
    environment = _environment(pool[0], request)
    if request.scripts:
        return _run_scripts(pool[0], request, record, environment, progress)
    found = [targets_of(one, record, pool[0], progress) for one in requests]
    roots = (source_of(record), request.output_root)
    journal = open_journal(request, record, roots, environment)
    work = Work(request, Names(record.weights, record.layouts), journal)
    with _bench(work, pool, progress) as bench:
        models, whole = _climb_all([t for targets, _ in found for t in targets], bench)
    left = _not_covered([model for _, refused in found for model in refused], models)
    every = tuple(sorted((*models, *left), key=lambda model: model.source))
    counted = [model.verdict for model in models] or [Verdict.NOT_RUN]
    result = Verification(
        tool_version=record.tool_version, verdict=worst(counted), environment=environment,
        models=every, partial=not whole,
    )  # fmt: skip
    if not whole:
        raise Interrupted(result)
    return result


def _run_scripts(
    sides: Sides, request: VerifyRequest, record: Record, environment: dict[str, str],
    progress: Progress,
) -> Verification:  # fmt: skip
    source = source_of(record)
    scripts = [script_of(command, record, request, source) for command in request.scripts]
    results = [verify_script(sides, one, record, request, progress) for one in scripts]
    return Verification(
        tool_version=record.tool_version, verdict=worst([one.verdict for one in results]),
        environment=environment, models=tuple(results),
    )  # fmt: skip


def _not_covered(refused: list[ModelResult], models: list[ModelResult]) -> list[ModelResult]:
    """Return what could not be built by itself, without the classes that ran as part of a model."""
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
        raise Problem("--input or --target", "cannot be read", str(error),
                          "write it as 2x3x64x64 or 2x16:int64<100") from error  # fmt: skip


def _record(path: Path) -> Record:
    try:
        return Record.model_validate_json(path.read_bytes())
    except FileNotFoundError as error:
        raise Problem(
            str(path), "the record of the conversion is missing", "convert writes it",
            "run torch2ms convert first, and verify its output folder",
        ) from error  # fmt: skip
    except (ValueError, OSError) as error:
        first = str(error).splitlines()[0]
        raise Problem(str(path), "this is no record of a conversion", first,
                          "run torch2ms convert again") from error  # fmt: skip


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
                raise Problem(
                    "--device", f"MindSpore cannot use {request.device}", why.splitlines()[0],
                    "leave it out for CPU, or run where this MindSpore has such a device",
                ) from error  # fmt: skip
            raise Problem(
                str(worker.python), f"{name} cannot be imported", why,
                f"{INSTALL} (Python 3.10 to 3.12, numpy below 2), or give --torch-python for "
                "torch in another environment; torch2ms doctor says more",
            ) from error  # fmt: skip
    return found


@dataclass(frozen=True)
class Work:
    """What is the same for every model of a run."""

    request: VerifyRequest
    names: Names
    journal: Journal

    def climb(self, target: Target, sides: Sides, progress: Progress) -> ModelResult:
        """Return the result of one model, from the journal where it is there."""
        page = self.journal.read(target.key)
        if page.result is not None and self.request.tests is None:
            progress(f"{target.name}: {page.result.verdict.value}, kept from the interrupted run")
            return page.result

        def opened(folder: Path) -> Recorded:
            return Recorded(request=self.request, sides=sides, folder=folder, target=target,
                            names=self.names)  # fmt: skip

        result = climb(opened, sides, progress, self.journal)
        self.journal.write(target.key, Page(result=result))
        return result


class Bench(Protocol):
    """Where models are climbed."""

    def submit(self, target: Target) -> Future[ModelResult]:
        """Climb a model as soon as there is room."""

    def stop(self) -> None:
        """End at once what is climbed now; what waits is cancelled."""

    def close(self) -> None:
        """Release everything, after the last result or after `stop`."""


class Here:
    """Pairs of workers on this machine; they outlive it."""

    def __init__(self, work: Work, pool: Sequence[Sides], progress: Progress) -> None:
        self._work, self._pool, self._progress = work, pool, progress
        self._threads = ThreadPoolExecutor(len(pool))
        self._free: queue.Queue[Sides] = queue.Queue()
        for sides in pool:
            self._free.put(sides)

    def submit(self, target: Target) -> Future[ModelResult]:
        return self._threads.submit(self._climb, target)

    def _climb(self, target: Target) -> ModelResult:
        sides = self._free.get()
        try:
            return self._work.climb(target, sides, self._progress)
        finally:
            self._free.put(sides)

    def stop(self) -> None:
        for sides in self._pool:
            sides.close()

    def close(self) -> None:
        self._threads.shutdown(wait=True, cancel_futures=True)


@contextmanager
def _bench(work: Work, pool: Sequence[Sides], progress: Progress) -> Iterator[Bench]:
    """Where the models are climbed: here, or on the cluster of the request."""
    if not work.request.cluster:
        with closing(Here(work, pool, progress)) as here:
            yield here
        return
    from migrate.parity.cluster import There, open_cluster

    for sides in pool:
        sides.stop()  # the processes of the cluster have their own
    with open_cluster(work.request) as (client, request):
        there = There(client, replace(work, request=request), progress)
        with closing(there):
            yield there


def _climb_all(targets: Sequence[Target], bench: Bench) -> tuple[list[ModelResult], bool]:
    """Return one result a model, and whether all were climbed to the end: not after Ctrl-C."""
    running = [bench.submit(target) for target in targets]
    try:
        return [future.result() for future in running], True
    except KeyboardInterrupt:
        bench.stop()
        return [
            future.result() if _ended(future) else target.failed(INTERRUPTED)
            for target, future in zip(targets, running, strict=True)
        ], False  # fmt: skip


def _ended(future: Future[ModelResult]) -> bool:
    return future.done() and not future.cancelled() and future.exception() is None
