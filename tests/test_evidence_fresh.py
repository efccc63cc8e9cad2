"""In: the shipped rows, cases, helpers and evidence. Out: whether every row was executed as it is.

No framework is needed: evidence carries a hash of what was executed.
"""

from __future__ import annotations

from migrate.evidence import store
from migrate.table import load


def test_every_row_was_executed_as_it_stands_and_passed() -> None:
    message = store.freshness(load()).message
    assert not message, f"evidence is out of date\n{message}"
