"""In: a file of choices (torch2ms-choices.toml), or the source of a project. Out: it read, written.

The file lies beside the project's pyproject.toml, and its paths start there, so it serves every
folder of the project that is converted, and every checkout.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import tomlkit
from pydantic import ValidationError

from migrate.records.choices import RECEIVERS, Choice
from migrate.records.outcomes import Problem
from migrate.workspace.outputs import write_atomically

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

NAME = "torch2ms-choices.toml"
_HEAD = (
    "What becomes of places that torch2ms flags: `torch2ms fix` writes this file,",
    "`torch2ms convert` applies it. A choice is found by what is written at its place.",
)
_ENDS = ("pyproject.toml", ".git")


def place(source: Path) -> Path:
    """Return the file of choices that concerns a source: the nearest one, or where it belongs."""
    start = source.resolve() if source.is_dir() else source.resolve().parent
    for folder in (start, *start.parents):
        if (folder / NAME).is_file():
            return folder / NAME
        if any((folder / end).exists() for end in _ENDS):
            return folder / NAME
    return start / NAME


def read(path: Path) -> tuple[Choice, ...]:
    """Read a file of choices; none where it is not there. A JSON file may hold them as well.

    Raises:
        Problem: it cannot be read, or holds something else.
    """
    return tuple(made(row, str(path)) for row in rows(path)) if path.is_file() else ()


def rows(path: Path) -> list[dict[str, Any]]:
    """Read the choices of a file as they are written: some may name their place by its id alone.

    Raises:
        Problem: it cannot be read.
    """
    try:
        text = path.read_text(encoding="utf-8")
        content = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
        found = content if isinstance(content, list) else content.get("choice", [])
        if not all(isinstance(row, dict) for row in found):
            raise ValueError("a choice is a table of keys and values")
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise Problem(
            str(path), "choices cannot be read", str(error), "correct that file"
        ) from error
    return list(found)


def made(row: Mapping[str, Any], where: str) -> Choice:
    """Return a choice that was read.

    Raises:
        Problem: a key is missing or not known, or its value is none that can be chosen.
    """
    try:
        return _choice(row)
    except (ValueError, TypeError) as error:
        raise Problem(where, "not a choice", _why(error), "correct that file") from error


def of(source: Path, path: Path | None = None) -> tuple[Choice, ...]:
    """Read the choices that concern a source, from a file or from that of its project.

    Raises:
        Problem: the file cannot be read, or the one that was named is not there.
    """
    if path is not None and not path.is_file():
        raise Problem(str(path), "not found", "there is no such file of choices", "check the path")
    path = path or place(source)
    return below(read(path), path, source)


def _choice(row: Mapping[str, Any]) -> Choice:
    known = {key: value for key, value in row.items() if key in Choice.model_fields}
    other = sorted(set(row) - set(known) - {"id"})
    if other:
        raise ValueError(f"{other[0]} is no key of a choice")
    found = Choice.model_validate(known)
    if found.form == "receiver" and found.becomes not in RECEIVERS:
        raise ValueError(f"a receiver is one of {', '.join(RECEIVERS)}, not {found.becomes!r}")
    if found.form in ("expression", "statement") and not found.becomes.strip():
        raise ValueError(f"{found.name}: becomes is empty")
    return found


def _why(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    return str(error)


def below(found: Iterable[Choice], path: Path, source: Path) -> tuple[Choice, ...]:
    """Return the choices that concern a source, their paths as its conversion has them."""
    base = path.parent.resolve()
    root = source.resolve() if source.is_dir() else source.resolve().parent
    inside = []
    for choice in found:
        file = (base / choice.file).resolve()
        if file.is_relative_to(root) and (source.is_dir() or file == source.resolve()):
            inside.append(choice.model_copy(update={"file": file.relative_to(root).as_posix()}))
    return tuple(inside)


def above(choice: Choice, path: Path, source: Path) -> Choice:
    """Return a choice as the file of choices has it."""
    root = source.resolve() if source.is_dir() else source.resolve().parent
    file = Path(os.path.relpath(root / choice.file, path.parent.resolve()))
    return choice.model_copy(update={"file": file.as_posix()})


def text(choices: Sequence[Choice]) -> str:
    """Return a file of choices, sorted by place; several lines stay several lines."""
    document = tomlkit.document()
    for line in _HEAD:
        document.add(tomlkit.comment(line))
    every = tomlkit.aot()
    for choice in sorted(choices, key=lambda c: (c.file, c.within, c.statement, c.name, c.number)):
        row = tomlkit.table()
        for key, value in choice.model_dump().items():
            if value == Choice.model_fields[key].default:
                continue
            many = isinstance(value, str) and "\n" in value
            row.add(key, tomlkit.string(value, multiline=many) if many else value)
        every.append(row)
    document.add("choice", every)
    return tomlkit.dumps(document)


def write(path: Path, choices: Sequence[Choice]) -> None:
    """Write a file of choices; a later choice about a place takes the place of an earlier one.

    Raises:
        Problem: it cannot be written.
    """
    last = {choice.id: choice for choice in choices}
    data = text(tuple(last.values()))
    try:
        write_atomically(path, lambda new: new.write_text(data, encoding="utf-8"))
    except OSError as error:
        raise Problem(
            str(path), "cannot be written", error.strerror or str(error),
            "name another file with --choices",
        ) from error  # fmt: skip
