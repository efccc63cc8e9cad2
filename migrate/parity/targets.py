"""In: a VerifyRequest and the record. Out: the models to verify, and why others cannot be tried."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from pathlib import Path

from migrate.parity.recorded import Target, find
from migrate.parity.request import VerifyRequest
from migrate.parity.session import Sides
from migrate.parity.worker import WorkerError, WorkerLost
from migrate.records.errors import Problem
from migrate.records.result import FileResult, ModelResult, Record

Progress = Callable[[str], None]


def targets_of(
    request: VerifyRequest, record: Record, sides: Sides, progress: Progress
) -> tuple[list[Target], list[ModelResult]]:
    """The models to verify, and results for those that cannot be tried, with the reason."""
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
            refused.append(blank.failed(f"{why}. Next: verify it where it runs"))
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
        names = {n.id for n in ast.walk(ast.parse(build, mode="eval")) if isinstance(n, ast.Name)}
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
