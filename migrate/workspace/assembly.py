"""In: what became of each file. Out: the conversion as a whole: record, outputs, failures."""

from __future__ import annotations

import hashlib
import os
import posixpath
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from migrate import __version__
from migrate.codegen import helper_copy
from migrate.engine.rewrite import Rewritten
from migrate.mapping.table import Table
from migrate.records.outcomes import Outcome
from migrate.records.result import Along, Asked, FileResult, Ledger, Record
from migrate.vendoring.follow import Followed
from migrate.workspace import dependencies
from migrate.workspace.conversion import Conversion
from migrate.workspace.dependencies import Renewed, is_configuration, mentions
from migrate.workspace.notebook import Notebook, left_alone
from migrate.workspace.outputs import Output, mode_of
from migrate.workspace.tree import Failure, Found, Inputs, Tree


@dataclass(frozen=True)
class Parts:
    """What a conversion is put together from. ``tree.root`` is the folder that paths are below.

    ``inputs`` is what could be read; ``made``: the Python files and notebooks that were converted;
    ``module``: the path of the module of helpers; ``users``: the files that import from it.
    """

    source: Path
    output: Path
    target: Literal["portable", "mint"]
    tree: Tree
    inputs: Inputs
    made: Mapping[str, Rewritten]
    failures: tuple[Failure, ...]
    module: str
    users: frozenset[str]
    followed: Followed = field(default_factory=Followed)
    settings: Asked = field(default_factory=Asked)


@dataclass(frozen=True)
class _File:
    """The parts of one file: its result for the record and its output, when it has one."""

    result: FileResult
    output: Output | None = None


def assemble(parts: Parts, rows: Table) -> Conversion:
    """Put outputs and record together; nothing is written."""
    single = not parts.source.is_dir()
    root, record_name, names = parts.output, "torch2ms.json", {}
    if single and parts.output.suffix == parts.source.suffix:
        root = parts.output.parent
        names[parts.source.name] = parts.output.name
        record_name = f"{parts.output.stem}.torch2ms.json"
    helpers = _helper_module(parts)
    files = [
        _file(parts, found, names.get(found.path, found.path), rows) for found in parts.tree.files
    ]
    files += _followed(parts)
    if helpers:
        files = [file for file in files if file.result.source != parts.module] + [helpers]
    skipped = [
        FileResult(source=item.path, status="skipped", reason=item.reason)
        for item in parts.tree.skipped
    ]
    weights, layouts = _weights(parts, rows)
    record = Record(
        tool_version=__version__,
        facts={"torch": rows.torch.release, "mindspore": rows.mindspore.release},
        kind="file" if single else "folder",
        source_root=str(parts.source.resolve()),
        target=parts.target,
        asked=parts.settings,
        helpers="module" if helpers else "inline",
        files=(*(file.result for file in files), *skipped),
        along=_along(parts.followed),
        weights=weights,
        layouts=layouts,
    )
    originals = {path: parts.inputs.raw[path] for path in parts.made if path in parts.inputs.raw}
    outputs = tuple(file.output for file in files if file.output)
    return Conversion(
        record, root, record_name, outputs, parts.failures, originals, parts.inputs.notebooks,
        looked=parts.followed.looked,
    )  # fmt: skip


def _file(parts: Parts, found: Found, output: str, rows: Table) -> _File:
    path, place = found.path, parts.tree.root / found.path
    failure = next((item for item in parts.failures if item.path == path), None)
    if failure:
        reason = f"{failure.what}: {failure.why}"
        return _File(FileResult(source=path, status="failed", reason=reason))
    if path in parts.made:
        return _converted(parts, path, output)
    if found.kind == "link":
        text = _link_text(parts.source, place, parts.output)
        result = FileResult(source=path, output=output, status="copied", reason="a link")
        return _File(result, Output(output, link=text))
    return _copied(parts, found, output, rows)


def _copied(parts: Parts, found: Found, output: str, rows: Table) -> _File:
    """A file that is no Python: a list of dependencies is renewed, all others are copied."""
    path, place = found.path, parts.tree.root / found.path
    data = place.read_bytes()
    digest = hashlib.sha256(data).hexdigest()
    if dependencies.is_list(path):
        return _renewed(place, path, output, dependencies.renewed(path, data, rows), digest)
    named = mentions(path, data, rows) if is_configuration(path, data) else ()
    result = FileResult(
        source=path,
        output=output,
        status="copied",
        reason="helpers of an earlier conversion" if path in parts.inputs.sources else "",
        source_sha256=digest,
        output_sha256=digest,
        ledger=Ledger(total=len(named), flagged=len(named)),
        entries=named,
    )
    return _File(result, Output(output, source=place, mode=mode_of(place)))


def _renewed(place: Path, path: str, output: str, made: Renewed, digest: str) -> _File:
    flagged = sum(entry.outcome is Outcome.FLAGGED for entry in made.entries)
    new = hashlib.sha256(made.data).hexdigest()
    result = FileResult(
        source=path,
        output=output,
        status="copied",
        reason="" if new == digest else "its dependencies were renewed",
        source_sha256=digest,
        output_sha256=new,
        ledger=Ledger(
            total=len(made.entries), converted=len(made.entries) - flagged, flagged=flagged
        ),
        entries=made.entries,
    )
    return _File(result, Output(output, made.data, mode=mode_of(place)))


def _converted(parts: Parts, path: str, output: str) -> _File:
    made, place = parts.made[path], parts.tree.root / path
    original, source = parts.inputs.raw[path], parts.inputs.sources[path]
    unchanged = made.data == source.encode(source.data) and not made.ledger.flagged
    data = original if unchanged else made.data
    holder = parts.inputs.notebooks.get(path)
    if holder is not None and not unchanged:
        data = holder.put_back(made.data)
    alone = left_alone(holder) if isinstance(holder, Notebook) else ()
    result = FileResult(
        source=path,
        output=output,
        status="copied" if unchanged else "converted",
        reason="needs no change" if unchanged else "",
        lines=len(source.data.splitlines()),
        source_sha256=hashlib.sha256(original).hexdigest(),
        output_sha256=hashlib.sha256(data).hexdigest(),
        ledger=_with_flags(made.ledger, len(alone)),
        entries=(*made.entries, *alone),
        open=made.open,
        helpers=tuple(sorted(name.removeprefix("helpers.") for name in made.helpers)),
        cells=made.cells,
    )
    return _File(result, Output(output, data, mode=mode_of(place)))


def _followed(parts: Parts) -> list[_File]:
    """The files of packages that are converted along, and the licences that they come with."""
    followed = parts.followed
    files: list[_File] = []
    for path, origin in followed.origins.items():
        failure = next((item for item in parts.failures if item.path == path), None)
        package = followed.package_of(path)
        if failure:
            reason = f"{failure.what}: {failure.why}"
            files.append(
                _File(FileResult(source=origin, status="failed", reason=reason, package=package))
            )
            continue
        made, source = parts.made[path], followed.sources[path]
        result = FileResult(
            source=origin,
            output=path,
            reason="what is used of it",
            lines=len(source.data.splitlines()),
            source_sha256=hashlib.sha256(source.data).hexdigest(),
            output_sha256=hashlib.sha256(made.data).hexdigest(),
            ledger=made.ledger,
            entries=made.entries,
            open=made.open,
            helpers=tuple(sorted(name.removeprefix("helpers.") for name in made.helpers)),
            cells=made.cells,
            package=package,
        )
        files.append(_File(result, Output(path, made.data)))
    return files + _licences(followed)


def _licences(followed: Followed) -> list[_File]:
    files: list[_File] = []
    for package, found in followed.packages.items():
        for licence in found.licence_files:
            path = posixpath.join(followed.folder(package), licence.name)
            data = licence.read_bytes()
            digest = hashlib.sha256(data).hexdigest()
            result = FileResult(
                source=f"{package}/{licence.name}", output=path, status="copied",
                reason="its licence", source_sha256=digest, output_sha256=digest, package=package,
            )  # fmt: skip
            files.append(_File(result, Output(path, data)))
    return files


def _along(followed: Followed) -> tuple[Along, ...]:
    return tuple(
        Along(name=name, version=found.version, licence=found.licence, output=followed.folder(name))
        for name, found in followed.packages.items()
    )


def _with_flags(ledger: Ledger, more: int) -> Ledger:
    counts = {"total": ledger.total + more, "flagged": ledger.flagged + more}
    return ledger.model_copy(update=counts)


def _helper_module(parts: Parts) -> _File | None:
    """The module of helpers; together with those of an earlier conversion at the same place."""
    wanted = {name for path in parts.users for name in parts.made[path].helpers}
    if not wanted:
        return None
    if parts.module in parts.inputs.sources:
        wanted |= helper_copy.names_in(parts.inputs.sources[parts.module].data)
    data = helper_copy.module_text(wanted).encode("utf-8")
    result = FileResult(
        source="",
        output=parts.module,
        status="copied",
        reason="helpers that the converted files use",
        output_sha256=hashlib.sha256(data).hexdigest(),
    )
    return _File(result, Output(parts.module, data))


def _link_text(root: Path, link: Path, output: Path) -> str:
    """Where a link should point in the output: to the output's copy, or out of it as before."""
    text = os.readlink(link)
    inside = root.resolve()
    target = Path(os.path.normpath(link.parent.resolve() / text))
    if target != inside and inside not in target.parents:
        return str(target) if not os.path.isabs(text) else text
    return str(output.resolve() / target.relative_to(inside)) if os.path.isabs(text) else text


def _weights(
    parts: Parts, rows: Table
) -> tuple[dict[str, dict[str, str]], dict[str, dict[str, str]]]:
    """torch class -> {torch tensor: MindSpore name}, and the same for changes of shape."""
    weights: dict[str, dict[str, str]] = {}
    layouts: dict[str, dict[str, str]] = {}
    for key in sorted({key for made in parts.made.values() for key in made.weights}):
        name = key.partition(":")[0]
        for row in rows.rows(name):
            if row.key == key and row.weights:
                weights.setdefault(name, {}).update(row.weights)
            if row.key == key and row.layout:
                layouts.setdefault(name, {}).update(row.layout)
    return weights, layouts
