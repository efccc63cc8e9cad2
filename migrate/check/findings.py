"""Record one finding, tell which fail a run, and read the comments that silence them."""

from __future__ import annotations

import io
import tokenize
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from migrate.records.result import Frozen

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


MARK = "torch2ms: ignore"


@dataclass(frozen=True)
class Comment:
    """One comment. ``target`` is the line it speaks of: its own, or the next one with code."""

    line: int
    column: int
    target: int
    codes: tuple[str, ...]
    reason: str


def comments(data: bytes) -> tuple[Comment, ...]:
    """The comments of a module that parses; what looks like one in a string is none."""
    tokens = list(tokenize.tokenize(io.BytesIO(data).readline))
    blank = (tokenize.COMMENT, tokenize.NL, tokenize.ENCODING, tokenize.INDENT, tokenize.DEDENT)
    code = sorted({line for t in tokens if t.type not in blank
                   for line in range(t.start[0], t.end[0] + 1)})  # fmt: skip
    lines = frozenset(code)
    found = []
    for token in tokens:
        text = token.string.lstrip("#").strip()
        if token.type != tokenize.COMMENT or not text.startswith(MARK):
            continue
        row, column = token.start
        target = row if row in lines else next((line for line in code if line > row), 0)
        found.append(Comment(row, column + 1, target, *_parts(text.removeprefix(MARK))))
    return tuple(found)


def _parts(text: str) -> tuple[tuple[str, ...], str]:
    """Codes and reason of ``[API104, INP201] reason``; no codes where that is not its form."""
    inside, bracket, reason = text.strip().removeprefix("[").partition("]")
    if not text.strip().startswith("[") or not bracket:
        return (), ""
    codes = tuple(code.strip() for code in inside.split(",") if code.strip())
    return codes, reason.strip().lstrip(":-–— ").strip()


def applied(findings: Sequence[Finding], found: Sequence[Comment], file: str) -> Iterator[Finding]:
    """The findings of a file with those silenced that a comment with a reason speaks of."""
    valid = [comment for comment in found if comment.codes and comment.reason]
    for finding in findings:
        reasons = [c.reason for c in valid if c.target == finding.line and finding.code in c.codes]
        if reasons and finding.code != FAILED:
            update = {"state": "ignored", "justification": reasons[0]}
            finding = finding.model_copy(update=update)
        yield finding
    at = {(finding.line, finding.code) for finding in findings}
    for comment in found:
        for code, reason, step in _faults(comment, at):
            yield Finding(
                file=file, line=comment.line, column=comment.column, code=code, name=MARK,
                reason=reason, next_step=step,
            )  # fmt: skip


def _faults(comment: Comment, at: set[tuple[int, str]]) -> Iterator[tuple[str, str, str]]:
    """(code, reason, what to do) for what is wrong with a comment."""
    if not comment.codes:
        yield "SUP100", "it names no code in brackets", "write # torch2ms: ignore[CODE] reason"
        return
    if not comment.reason:
        yield "SUP101", "it gives no reason, so it silences nothing", "write why the line is right"
    for code in comment.codes:
        if (comment.target, code) not in at:
            yield "SUP102", f"{code} is not flagged in line {comment.target}", "take it out"
