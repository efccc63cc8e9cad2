"""In: the shipped rows, cases, helpers and evidence. Out: whether every row was executed as it is.

No framework is needed: evidence carries a hash of what was executed.
"""

from __future__ import annotations

from pathlib import Path

from migrate.evidence import store
from migrate.mapping.table import load

RED = Path(__file__).parents[1] / "red_rows.txt"


def known_red() -> set[str]:
    lines = RED.read_text(encoding="utf-8").splitlines()
    return {line for line in lines if line and not line.startswith("#")}


def test_every_row_was_executed_as_it_stands() -> None:
    found = store.freshness(load())
    waiting = store.Freshness(found.missing, found.changed, ()).message
    assert not waiting, f"evidence is out of date\n{waiting}"


def test_no_row_is_red_but_those_that_are_known() -> None:
    """The list may only shrink: explain shows each of them as not passed, with the difference."""
    red = set(store.freshness(load()).red)
    assert red <= known_red(), f"newly red: {sorted(red - known_red())}"
