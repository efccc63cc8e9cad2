"""In: a configuration file that is copied. Out: a flag for every torch name that stands in it."""

from __future__ import annotations

import re

import yaml

from migrate.outcomes import Outcome
from migrate.result import Entry
from migrate.table import Table

CODE = "ENV510"
SIZE_LIMIT = 1024 * 1024  # bytes; what is larger is data
_SUFFIXES = (".yaml", ".yml", ".json", ".toml", ".cfg", ".ini", ".gin")
# Configuration, not source code: there is no syntax tree that all of these have in common.
_NAME = re.compile(r"(?<![\w./-])torch(?:\.[A-Za-z_]\w*)+")


def is_configuration(path: str, size: int) -> bool:
    """Whether a file is one whose text may name what a program builds (``_target_: torch...``)."""
    return path.endswith(_SUFFIXES) and size <= SIZE_LIMIT


def named(line: str) -> tuple[tuple[str, int], ...]:
    """The (dotted torch name, column from 1) in a line that is no Python."""
    found = [(match.group(), match.start() + 1) for match in _NAME.finditer(line)]
    words = line.split()
    if not found and words[:1] in (["import"], ["from"]) and words[1:2] == ["torch"]:
        found.append(("torch", line.index("torch") + 1))
    return tuple(found)


def mentions(path: str, data: bytes, table: Table) -> tuple[Entry, ...]:
    """Every dotted torch name in a configuration, with what takes its place."""
    text = data.decode("utf-8", "replace")
    found = _yaml_names(text) if path.endswith((".yaml", ".yml")) else None
    return tuple(_entry(*item, table) for item in (_names(text) if found is None else found))


def _names(text: str) -> list[tuple[str, int, int]]:
    """(name, line, column), both from 1; lines that are comments are left out."""
    return [
        (name, number, column)
        for number, line in enumerate(text.splitlines(), 1)
        if not line.lstrip().startswith(("#", ";"))
        for name, column in ((m.group(), m.start() + 1) for m in _NAME.finditer(line))
    ]


def _yaml_names(text: str) -> list[tuple[str, int, int]] | None:
    """The names in keys and values of YAML, not those in comments; None: it is no plain YAML."""
    if not _NAME.search(text):
        return []
    try:
        tokens = list(yaml.scan(text, Loader=yaml.SafeLoader))
    except yaml.YAMLError:
        return None
    spans = [
        (token.start_mark.index, token.end_mark.index)
        for token in tokens
        if isinstance(token, (yaml.ScalarToken, yaml.TagToken))
    ]
    inside = [
        match for match in _NAME.finditer(text)
        if any(start <= match.start() < end for start, end in spans)
    ]  # fmt: skip
    return [(m.group(), *_position(text, m.start())) for m in inside]


def _position(text: str, offset: int) -> tuple[int, int]:
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)


def _entry(name: str, line: int, column: int, table: Table) -> Entry:
    reason, step = "a configuration names it; its text is copied as it is", ""
    row = next(iter(table.rows(name)), None)
    if row is not None and row.flag:
        reason, step = row.reason, row.next_step
    elif row is not None and row.to:
        own = row.to.startswith("helpers.")
        kind = "the helper " if own else ""
        step = f"write {kind}{row.to.removeprefix('helpers.')}"
    return Entry(
        name=name,
        outcome=Outcome.FLAGGED,
        line=line,
        column=column,
        output_line=line,
        code=CODE,
        reason=reason,
        next_step=step or "write the MindSpore name that the converted code uses",
    )
