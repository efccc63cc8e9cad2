"""In: a conversion, and what lies where it goes. Out: what to write, so that no hand edit is lost.

Three forms of each output are compared: what convert wrote last (kept beside the record, in
``torch2ms.base.zip``), the file as it lies, and the new conversion. What only one side changed is
taken over; what both changed stands in the file twice, marked as git marks it.
"""

from __future__ import annotations

import io
import json
import os
import symtable
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import Literal

from migrate.records.outcomes import Problem
from migrate.records.result import FileResult, Record
from migrate.workspace import notebook, notebook_merge, outputs, record, three_way
from migrate.workspace.conversion import Conversion
from migrate.workspace.outputs import Output, mode_of
from migrate.workspace.three_way import Merged

BASE = "torch2ms.base.zip"
_MANIFEST = "manifest.json"
_TEXT = 256 * 1024  # bytes up to which a text that is only copied is kept as a base
_LINK = "link:"


@dataclass(frozen=True)
class Change:
    """What became of a file that was there: its path below the root, and what to say of it.

    ``lines``: where an editor opens it. ``conflict``: a person has to look at it.
    """

    path: str
    what: Literal["kept", "merged", "conflict", "beside", "wrong", "replaced", "gone", "stays"]
    detail: str = ""
    lines: tuple[int, ...] = ()

    @property
    def conflict(self) -> bool:
        return self.what in ("conflict", "beside", "wrong")


@dataclass(frozen=True)
class Placed:
    """What to write below the root, in order, and which files to take away behind that."""

    conversion: Conversion
    files: tuple[Output, ...]
    removed: tuple[str, ...]
    changes: tuple[Change, ...]

    def write(self) -> None:
        """Write and remove; the record comes last: where it lies, all that it names lies as well.

        Raises:
            Problem: a file cannot be written.
        """
        root = self.conversion.root
        outputs.write(self.files, root)
        for path in self.removed:
            (root / path).unlink(missing_ok=True)
            for folder in PurePosixPath(path).parents:
                try:
                    (root / folder).rmdir() if folder.name else None
                except OSError:
                    break


@dataclass(frozen=True)
class _Earlier:
    """What convert wrote at this place last: digests by path, and the texts that were kept.

    ``bases`` is None where an edition wrote it that kept no texts.
    """

    digests: Mapping[str, str] = field(default_factory=dict)
    bases: Mapping[str, bytes] | None = field(default_factory=dict)
    files: tuple[FileResult, ...] = ()


def placed(conversion: Conversion, source: Path, force: bool = False) -> Placed:
    """Decide what is written over what lies in the output; nothing is written yet.

    Args:
        conversion: the new conversion; a record in its place tells what was written before.
        source: the input, which is never written.
        force: take the new conversion everywhere, and keep what was edited by hand beside it.

    Raises:
        Problem: files would be replaced that convert did not write, an earlier conversion is of
            another input or left conflicts that nobody has decided, or the input would be changed.
    """
    root = conversion.root
    earlier = _earlier(conversion, force)
    plain = [*conversion.outputs, Output(_base_name(conversion)), Output(conversion.record_name)]
    outputs.check(plain, root, source)
    now = {output.path: _digest(root / output.path) for output in conversion.outputs}
    new = {output.path: _new_digest(conversion, output) for output in conversion.outputs}
    edited = [
        output for output in conversion.outputs
        if now[output.path] is not None
        and now[output.path] not in (new[output.path], earlier.digests.get(output.path))
        and not _is_old_link(now[output.path], earlier, output.path)
    ]  # fmt: skip
    if not force:
        _refuse(conversion, earlier, edited, new)
    files: dict[str, Output] = {}
    changes: list[Change] = []
    for output in conversion.outputs:
        if output in edited:
            made = _forced(root, earlier, output) if force else _merged(root, earlier, output, new)
            files |= {one.path: one for one in made[1]}
            changes.append(made[0])
        elif now[output.path] != new[output.path] or _other_mode(root / output.path, output):
            files[output.path] = output
    left, gone, stay = _no_longer(conversion, source, earlier)
    changes += [*(Change(path, "gone") for path in gone), *(Change(path, "stays") for path in stay)]
    known = {**new, **{path: earlier.digests[path] for path in left}}
    texts = {o.path: text for o in conversion.outputs if (text := _text(o)) is not None}
    texts |= {path: (earlier.bases or {})[path] for path in left if path in (earlier.bases or {})}
    conflicts = tuple(change.path for change in changes if change.conflict)
    lying = _as_it_lies(conversion, files, edited)
    whole = replace(conversion, record=lying, conflicts=conflicts)
    last = (
        Output(_base_name(conversion), _packed(known, texts)),
        Output(conversion.record_name, record.text(whole.record)),
    )
    return Placed(whole, (*files.values(), *last), tuple(gone), tuple(changes))


# -- what was there ------------------------------------------------------------------------------


def _base_name(conversion: Conversion) -> str:
    return conversion.record_name.replace(record.NAME, BASE)


def _earlier(conversion: Conversion, force: bool) -> _Earlier:
    """Read the record and the bases of an earlier conversion in this place."""
    path = conversion.root / conversion.record_name
    if not path.is_file():
        return _Earlier()
    try:
        before = record.locate(path).record
    except Problem:
        if force:
            return _Earlier()
        raise
    if not force and not _is_same(before, conversion.record):
        raise Problem(
            str(path), "another input was converted to this place", before.source_root,
            "choose another output with -o, or give --force to replace what it wrote",
        )  # fmt: skip
    files = before.files if _is_same(before, conversion.record) else ()
    packed = _unpacked(conversion.root / _base_name(conversion))
    if packed is not None:
        return _Earlier(*packed, files)
    digests = {f.output: f.output_sha256 or _LINK for f in before.files if f.output}
    return _Earlier(digests, None, files)


def _is_same(before: Record, after: Record) -> bool:
    """Return whether two conversions are of one input, which may have been moved."""
    old, new = Path(before.source_root), Path(after.source_root)
    moved = old.name == new.name and not old.exists()
    return before.kind == after.kind and (old == new or moved)


def _unpacked(path: Path) -> tuple[dict[str, str], dict[str, bytes]] | None:
    try:
        with zipfile.ZipFile(path) as packed:
            digests = json.loads(packed.read(_MANIFEST))["files"]
            names = set(packed.namelist())
            return digests, {n: packed.read(f"files/{n}") for n in digests if f"files/{n}" in names}
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
        raise Problem(
            str(path), "cannot be read", f"{type(error).__name__}: {error}",
            "take it away, and convert again: files that were not edited by hand are replaced",
        ) from error  # fmt: skip


def _packed(digests: Mapping[str, str], texts: Mapping[str, bytes]) -> bytes:
    """Return bases as they lie on disk: the same bytes for the same conversion."""
    found = io.BytesIO()
    members = {f"files/{path}": text for path, text in sorted(texts.items())}
    manifest = {"files": dict(sorted(digests.items()))}
    members[_MANIFEST] = (json.dumps(manifest, indent=1) + "\n").encode("utf-8")
    with zipfile.ZipFile(found, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as packed:
        for name, data in members.items():
            packed.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED, 9)
    return found.getvalue()


def _digest(path: Path) -> str | None:
    """Return what tells whether a file is the one that was written; None: there is none."""
    if path.is_symlink():
        return _LINK + os.readlink(path)
    return sha256(path.read_bytes()).hexdigest() if path.is_file() else None


def _new_digest(conversion: Conversion, output: Output) -> str:
    if output.link is not None:
        return _LINK + output.link
    if output.content is not None:
        return sha256(output.content).hexdigest()
    assert output.source is not None
    return sha256(output.source.read_bytes()).hexdigest()


def _is_old_link(now: str | None, earlier: _Earlier, path: str) -> bool:
    """Return whether a link lies there that an edition wrote which noted none of them."""
    return earlier.digests.get(path) == _LINK and (now or "").startswith(_LINK)


def _other_mode(path: Path, output: Output) -> bool:
    return output.link is None and mode_of(path) != output.mode


def _text(output: Output) -> bytes | None:
    """Return the base that is kept of an output: data and large files are told by their digest."""
    if output.content is not None:
        return output.content
    if output.source is None or output.source.stat().st_size > _TEXT:
        return None
    data = output.source.read_bytes()
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return None
    return data


# -- what is refused ---------------------------------------------------------------------------


def _refuse(
    conversion: Conversion, earlier: _Earlier, edited: Sequence[Output], new: Mapping[str, str]
) -> None:
    """Raise Problem before anything is written."""
    root = conversion.root
    foreign = [o.path for o in edited if o.path not in earlier.digests]
    if foreign:
        raise Problem(
            str(root), f"{len(foreign)} files would be replaced", outputs.listed(root, foreign),
            "convert did not write them; choose another output with -o, or give --force: what is "
            "there is kept beside as FILE.orig",
        )  # fmt: skip
    both = [o.path for o in edited if earlier.digests[o.path] != new[o.path]]
    if both and earlier.bases is None:
        raise Problem(
            str(root), f"{len(both)} files were edited by hand", outputs.listed(root, both),
            "an edition wrote them that kept no base to merge with: convert to another folder and "
            "take your changes over, or give --force: yours are kept beside as FILE.orig",
        )  # fmt: skip
    marked = [path for path in earlier.digests if _is_marked(root / path)]
    if marked:
        raise Problem(
            str(root), f"{len(marked)} files hold conflicts of an earlier merge",
            outputs.listed(root, marked), "decide the places between <<<<<<< and >>>>>>> first",
        )  # fmt: skip


def _is_marked(path: Path) -> bool:
    if path.suffix not in (".py", ".pyw", ".ipynb") or not path.is_file():
        return False
    data = path.read_bytes()
    if path.suffix != ".ipynb" or b"<<<<<<<" not in data:
        return three_way.is_marked(data)
    try:
        cells = json.loads(data)["cells"]
        lines = "".join("".join(cell.get("source", "")) + "\n" for cell in cells)
    except (ValueError, KeyError, TypeError, AttributeError):
        return False
    return three_way.is_marked(lines.encode("utf-8"))


# -- one file ------------------------------------------------------------------------------------


def _merged(
    root: Path, earlier: _Earlier, output: Output, new: Mapping[str, str]
) -> tuple[Change, list[Output]]:
    """Merge a file that was edited by hand with its new conversion."""
    path = output.path
    if earlier.digests[path] == new[path]:
        return Change(path, "kept"), []
    base = (earlier.bases or {}).get(path)
    text, target = _text(output), root / path
    if base is None or text is None or target.is_symlink():
        return _beside(output, "it is no text that can be merged")
    mine = target.read_bytes()
    try:
        is_notebook = target.suffix == ".ipynb"
        done = (notebook_merge if is_notebook else three_way).merge(base, mine, text)
    except ValueError as error:
        return _beside(output, str(error))
    written = Output(path, done.data, mode=output.mode)
    if done.conflicts:
        what = "cell" if is_notebook else "line"
        places = ", ".join(map(str, done.conflicts))
        number = f"{what}s" if len(done.conflicts) > 1 else what
        lines = () if is_notebook else done.conflicts
        return Change(path, "conflict", f"{number} {places}", lines), [written]
    wrong = _wrong(path, done, (mine, text))
    if wrong:
        return Change(path, "wrong", wrong), [written]
    return Change(path, "merged"), [written]


def _beside(output: Output, why: str) -> tuple[Change, list[Output]]:
    name = PurePosixPath(output.path)
    other = str(name.with_name(f"{name.stem}.torch2ms-new{name.suffix}"))
    return Change(output.path, "beside", f"{why}; the new one is {other}"), [
        replace(output, path=other)
    ]


def _wrong(path: str, merged: Merged, sides: tuple[bytes, bytes]) -> str:
    """Check a merged module as outputs are checked: it compiles, and binds what both sides bind."""
    if path.endswith(".ipynb"):
        before = notebook.read(path, sides[0]).unread.values()
        new = [(n, why) for n, why in notebook.read(path, merged.data).unread.items()
               if why not in before]  # fmt: skip
        return f"cell {new[0][0] + 1} is not Python 3: {new[0][1]}" if new else ""
    if not path.endswith((".py", ".pyw")):
        return ""
    try:
        free = _free(merged.data)
    except (SyntaxError, ValueError) as error:
        return f"it does not compile: {error}"
    for side in sides:
        try:
            free -= _free(side)
        except (SyntaxError, ValueError):
            return ""
    return f"nothing binds {', '.join(sorted(free))}" if free else ""


def _free(data: bytes) -> set[str]:
    from migrate.engine.selfcheck import unbound  # with it comes the whole engine

    if b"import *" in data:
        return set()
    return unbound(symtable.symtable(data.decode("utf-8"), "merged", "exec"))


def _forced(root: Path, earlier: _Earlier, output: Output) -> tuple[Change, list[Output]]:
    """Take the new form of a file, and keep the one that lies there beside it."""
    target, name = root / output.path, f"{output.path}.orig"
    number = 1
    while os.path.lexists(root / name):
        name, number = f"{output.path}.orig.{number}", number + 1
    if target.is_symlink():
        return Change(output.path, "replaced", f"kept as {name}"), [
            Output(name, link=os.readlink(target)), output,
        ]  # fmt: skip
    base, mine = (earlier.bases or {}).get(output.path), target.read_bytes()
    lines = f"line {three_way.touched(base, mine)} " if base is not None else ""
    kept = Output(name, mine, mode=mode_of(target))
    return Change(output.path, "replaced", f"{lines}kept as {name}"), [kept, output]


# -- the rest ------------------------------------------------------------------------------------


def _no_longer(
    conversion: Conversion, source: Path, earlier: _Earlier
) -> tuple[list[str], list[str], list[str]]:
    """Return what is not written now but was: what failed this time, what goes, what was edited."""
    root = conversion.root
    written = {output.path for output in conversion.outputs}
    failed = {file.source for file in conversion.record.files if file.status == "failed"}
    kept = {file.output for file in earlier.files if file.source in failed}
    left, gone, stay = [], [], []
    for path, digest in earlier.digests.items() if earlier.files else ():
        now = _digest(root / path) if _is_inside(root, path, source) else None
        if path in written or now is None:
            continue
        if path in kept:
            left.append(path)
        elif now == digest or (digest == _LINK and now.startswith(_LINK)):
            gone.append(path)
        else:
            stay.append(path)
    return left, gone, stay


def _is_inside(root: Path, path: str, source: Path) -> bool:
    """Return whether a path of a manifest leads to a file of the output, and none of the input."""
    place = (root / path).parent.resolve() / PurePosixPath(path).name
    inside, input_ = root.resolve(), source.resolve()
    return inside in place.parents and place != input_ and input_ not in place.parents


def _as_it_lies(
    conversion: Conversion, files: Mapping[str, Output], edited: Sequence[Output]
) -> Record:
    """Return the record with the digests and lines of files that hold hand edits."""
    by_path = {output.path: output for output in edited}
    changed = []
    for file in conversion.record.files:
        output = by_path.get(file.output)
        if output is None or files.get(file.output) is output:
            changed.append(file)
            continue
        written = files.get(file.output)
        target = conversion.root / file.output
        data = written.content if written is not None else None
        if data is None and target.is_file():
            data = target.read_bytes()
        changed.append(_renewed(file, output, data or b""))
    return conversion.record.model_copy(update={"files": tuple(changed)})


def _renewed(file: FileResult, output: Output, data: bytes) -> FileResult:
    digest = sha256(data).hexdigest()
    if output.content is None or not output.path.endswith((".py", ".pyw")):
        return file.model_copy(update={"output_sha256": digest})
    at = three_way.moved(output.content, data)
    entries = tuple(
        entry.model_copy(update={"output_line": at.get(entry.output_line, 0)})
        for entry in file.entries
    )
    cells = tuple(
        cell.model_copy(update={
            "output_line": at.get(cell.output_line, cell.output_line),
            "output_end_line": at.get(cell.output_end_line, cell.output_end_line),
        })
        for cell in file.cells
    )  # fmt: skip
    return file.model_copy(update={"output_sha256": digest, "entries": entries, "cells": cells})


def said(changes: Sequence[Change], root: Path) -> Iterator[str]:
    """Yield what became of files that were there, for a terminal."""
    shown = {
        "kept": "Kept:       {0}: edited by hand, and converts as before",
        "merged": "Merged:     {0}: edited by hand, and converted anew",
        "conflict": "CONFLICT:   {0}: edited by hand and converted anew at the same place ({1})",
        "beside": "CONFLICT:   {0}: edited by hand, and its conversion is another: {1}",
        "wrong": "CONFLICT:   {0}: merged, but {1}",
        "replaced": "Replaced:   {0}: edited by hand, {1}",
        "gone": "Removed:    {0}: its source is gone, and nobody had edited it",
        "stays": "Stays:      {0}: its source is gone, but it was edited by hand",
    }
    for change in changes:
        path = str(root / change.path)
        place = f"{path}:{change.lines[0]}" if change.lines else path
        yield shown[change.what].format(place, change.detail)
