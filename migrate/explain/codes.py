"""In: the code of a flag and docs/flags.md. Out: what it means, what to do, which rows carry it."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from migrate.errors import Problem
from migrate.table import Table, mappings_folder

_SHOWN = 12  # names that are listed


@dataclass(frozen=True)
class Flag:
    """One line of docs/flags.md."""

    code: str
    topic: str
    meaning: str
    todo: str


def is_code(name: str) -> bool:
    """Whether a text is spelled like a code: API104."""
    return len(name) == 6 and name[:3].isalpha() and name[3:].isdigit()


def page() -> Path:
    """docs/flags.md: part of the installed package, or beside the mappings in a checkout."""
    inside = mappings_folder() / "flags.md"
    return inside if inside.is_file() else mappings_folder().parent / "docs" / "flags.md"


def flags(path: Path) -> Mapping[str, Flag]:
    """Code -> what the page says of it."""
    head, _, codes = path.read_text(encoding="utf-8").partition("## Codes")
    topics = {letters: topic for letters, topic, _ in _cells(head, 3)}
    found: dict[str, Flag] = {}
    for listed, meaning, todo in _cells(codes, 3):
        for code in listed.split(", "):
            found[code] = Flag(code, topics.get(code[:3], ""), meaning, todo)
    return found


def _cells(text: str, columns: int) -> Iterator[tuple[str, ...]]:
    """The cells of the table rows that start with a code, backticks around codes removed."""
    for line in text.splitlines():
        if line.startswith("| `"):
            cells = [cell.strip() for cell in line.strip("| ").split(" | ")]
            if len(cells) == columns:
                yield (cells[0].replace("`", ""), *cells[1:])


def explain_code(code: str, rows: Table) -> Iterator[str]:
    """Meaning, next step, and the names that always get this flag.

    Raises:
        Problem: there is no such code, with a suggestion.
    """
    known = flags(page())
    flag = known.get(code.upper())
    if flag is None:
        near = difflib.get_close_matches(code.upper(), known, 1, 0.5)
        raise Problem(
            code, "unknown code", "docs/flags.md does not list it",
            f"did you mean {near[0]}?" if near else "codes look like API104",
        )  # fmt: skip
    yield f"{flag.code}  {flag.topic}"
    yield f"  means:     {flag.meaning}"
    yield f"  next:      {flag.todo}"
    yield f"  in output: # TODO(torch2ms {flag.code}): NAME: the reason; the next step"
    always = [key for key, values in rows.raw.items() if values.get("flag") == flag.code]
    if always:
        more = f", ... ({len(always)})" if len(always) > _SHOWN else ""
        yield f"  always on: {', '.join(sorted(always)[:_SHOWN])}{more}"
    else:
        yield "  always on: no name; it depends on the place"
