"""In: every flag code in the program and the table. Out: whether docs/flags.md explains it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from migrate.mapping import table
from migrate.report.ledger import TOPICS, topic

ROOT = Path(__file__).parents[2]


def is_code(text: object) -> bool:
    return isinstance(text, str) and len(text) == 6 and text[:3] in TOPICS and text[3:].isdigit()


def codes_of_program() -> set[str]:
    found: set[str] = set()
    for path in (ROOT / "migrate").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and is_code(node.value):
                found.add(node.value)
    return found


def codes_of_table() -> set[str]:
    loaded = table.load()
    rows = [row for name in loaded.names for row in loaded.rows(name)]
    return {row.flag for row in rows if row.flag}


def documented() -> dict[str, str]:
    """Code -> meaning, from the last table of docs/flags.md."""
    text = (ROOT / "docs" / "flags.md").read_text(encoding="utf-8").partition("## Codes")[2]
    cells = [line.split("|") for line in text.splitlines() if line.startswith("| `")]
    return {row[1].strip().strip("`"): row[2].strip() for row in cells}


def test_every_code_that_is_used_is_documented() -> None:
    used = codes_of_program() | codes_of_table()
    assert len(used) > 10
    assert used <= documented().keys()
    assert list(documented()) == sorted(documented(), key=lambda c: (list(TOPICS).index(c[:3]), c))


def test_every_topic_is_documented() -> None:
    text = (ROOT / "docs" / "flags.md").read_text(encoding="utf-8").partition("## Codes")[0]
    assert [line[3:6] for line in text.splitlines() if line.startswith("| `")] == list(TOPICS)


@pytest.mark.parametrize(("code", "name"), [("API104", "API missing"), ("XYZ1", "other")])
def test_topic_of_a_code(code: str, name: str) -> None:
    assert topic(code) == name
