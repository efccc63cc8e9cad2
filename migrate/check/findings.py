"""In: nothing. Out: the record of one finding, and which findings fail a run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from migrate.result import Frozen

FAILED = "FAILED"
ANY, NONE = "any", "none"


class Finding(Frozen):
    """One thing that a person has to look at.

    ``file`` starts from the working folder; in a notebook ``cell`` counts from 1 and ``line`` in
    it. ``text`` is the line of code: with file, code and name it is what a baseline knows a finding
    by. ``state``: "known" findings stand in the baseline, "ignored" ones are silenced by a comment
    with ``justification``; only "new" ones fail a run.
    """

    file: str
    line: int = 0
    column: int = 0
    cell: int = 0
    code: str
    name: str = ""
    reason: str
    next_step: str = ""
    text: str = ""
    state: Literal["new", "known", "ignored"] = "new"
    justification: str = ""

    @property
    def place(self) -> str:
        """As a terminal links it."""
        inner = f"cell {self.cell}:" if self.cell else ""
        return f"{self.file}:{inner}{self.line}:{self.column}" if self.line else self.file


def fails(finding: Finding, fail_on: Sequence[str]) -> bool:
    """Whether a finding fails the run; ``fail_on`` holds codes, topics (API), "any" or "none".

    A file that cannot be read always does, and so does a comment that silences nothing.
    """
    if finding.state != "new":
        return False
    if finding.code == FAILED:
        return True
    if NONE in fail_on:
        return False
    topic = finding.code.rstrip("0123456789")
    return ANY in fail_on or finding.code in fail_on or topic in (*fail_on, "SUP")
