"""Find what a user asked for: the full torch name and its rows, or the meaning of a flag's code."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from migrate.mapping.names import canonical
from migrate.mapping.row import Row
from migrate.mapping.table import Table, mappings_folder
from migrate.records.outcomes import Problem, announced

_SPACES = (
    "torch.nn.", "torch.", "torch.nn.functional.", "torch.Tensor.", "torch.optim.",
    "torch.linalg.", "torch.nn.init.", "torch.utils.data.", "torch.nn.Module.",
)  # fmt: skip
_SHORT = {"nn": "torch.nn", "F": "torch.nn.functional", "Tensor": "torch.Tensor"}


def full_name(name: str, rows: Table) -> str:
    """The name with its namespace ("Conv2d", "nn.Conv2d", "F.relu").

    Raises:
        Problem: torch has no such name, with a suggestion.
    """
    root, _, rest = name.partition(".")
    longer: tuple[str, ...] = (f"{_SHORT[root]}.{rest}",) if rest and root in _SHORT else ()
    if rows.rows(name) or (name.startswith("torch") and rows.kind(name)):
        return name
    guesses: list[str] = [*longer, *(f"{space}{name}" for space in _SPACES)]
    for full in guesses:
        if rows.keys(full) or rows.kind(full):  # not a pattern: torch.optim.* fits any word
            return full
    owner = owner_of(name, rows)
    if owner and rows.rows(rows.member(owner, name.rpartition(".")[2])):
        return name  # the method of a base
    near = suggestions(name, rows)
    raise Problem(
        name, "unknown name", "neither torch nor the table has it",
        f"did you mean {' or '.join(near)}?" if near else "give the full name: torch.nn.Conv2d",
    )  # fmt: skip


def suggestions(name: str, rows: Table) -> tuple[str, ...]:
    """The nearest names: spelled nearly so, or with this last part in another namespace."""
    guesses = (rows.suggest(full) for full in (name, *(space + name for space in _SPACES)))
    found = [one for one in dict.fromkeys(guesses) if one and _alike(one, name)]
    folded = {one.lower(): one for one in rows.torch.names}
    for space in ("", *_SPACES):
        if exact := folded.get((space + name).lower()):
            found.insert(0, exact)
    if not found:
        last = name.rpartition(".")[2].lower()
        found = [folded[n] for n in difflib.get_close_matches(last, list(folded), 2, 0.7)]
    return tuple(dict.fromkeys(found))[:3]


def _alike(one: str, name: str) -> bool:
    """Whether the last parts are alike: long namespaces in common do not count."""
    a, b = (text.rpartition(".")[2].lower() for text in (one, name))
    return difflib.SequenceMatcher(None, a, b).ratio() > 0.6


def owner_of(name: str, rows: Table) -> str:
    """The class that a name is a member of, "" for a name of a module."""
    space = name.rpartition(".")[0]
    return space if rows.kind(space) == "class" else ""


def answering(name: str, rows: Table) -> tuple[tuple[Row, ...], str]:
    """The rows that decide a name, and why they do when they stand under another name."""
    if found := rows.rows(name):
        key = found[0].key
        if "*" in key:
            return found, f"{key} answers for all names like it"
        public = rows.torch.canonical(name)
        return found, f"another name of {public}" if public != name else ""
    public = _public(name, rows)
    if public != name:
        return answering(public, rows)[0], f"another name of {public}"
    return _member(name, rows)


def _public(name: str, rows: Table) -> str:
    """torch.Tensor for the copies of it that other modules import: torch.fft.Tensor."""
    owner = owner_of(name, rows)
    if owner:
        return f"{canonical(owner, rows)}.{name.rpartition('.')[2]}"
    return canonical(name, rows)


def _member(name: str, rows: Table) -> tuple[tuple[Row, ...], str]:
    owner, last = owner_of(name, rows), name.rpartition(".")[2]
    if not owner:
        return (), ""
    if owner == "torch.nn.Module" and last in ("__call__", "forward"):
        return rows.rows(owner), "calling a Cell calls construct, which forward becomes"
    if owner == "torch.Tensor" and last.endswith("_"):
        return rows.rows(name.rstrip("_")), (
            f"in place: the form of {last.rstrip('_')} is assigned, x = ...; flagged where another "
            "name of the same storage is read afterwards"
        )
    if owner in ("torch.Tensor", "torch.nn.Module"):
        return (), ""
    held = rows.member(owner, last)
    if found := rows.rows(held):
        return found, f"inherited from {held.rpartition('.')[0]}"
    return rows.rows(owner), f"a member of {owner}: what becomes of the class decides"


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
    yield f"  in output: # {announced(flag.code)}: NAME: the reason; the next step"
    always = [key for key, values in rows.raw.items() if values.get("flag") == flag.code]
    if always:
        more = f", ... ({len(always)})" if len(always) > _SHOWN else ""
        yield f"  always on: {', '.join(sorted(always)[:_SHOWN])}{more}"
    else:
        yield "  always on: no name; it depends on the place"
