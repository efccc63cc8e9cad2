"""In: a configuration file that is copied. Out: a flag for every torch name that stands in it."""

from __future__ import annotations

import re

from migrate.outcomes import Outcome
from migrate.result import Entry

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


def mentions(data: bytes) -> tuple[Entry, ...]:
    """Every dotted torch name in a text; lines and columns count from 1."""
    found = []
    for number, line in enumerate(data.decode("utf-8", "replace").splitlines(), 1):
        for match in _NAME.finditer(line):
            found.append(
                Entry(
                    name=match.group(),
                    outcome=Outcome.FLAGGED,
                    line=number,
                    column=match.start() + 1,
                    output_line=number,
                    code=CODE,
                    reason="a configuration names it; its text is copied as it is",
                    next_step="write the MindSpore name that the converted code uses",
                )
            )
    return tuple(found)
