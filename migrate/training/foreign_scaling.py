"""Put a step behind the branch in which apex scales its loss: ``if fp16: ... else: ...``.

apex runs on torch alone, so its branch is flagged and stops where it is reached. What the other
branch does is then done wherever the program comes to, and is the step.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from migrate.records.outcomes import Edit, Outcome, Site, Span
from migrate.syntax.lines import above, indent_of, is_elif, shares_line
from migrate.syntax.source import Source
from migrate.syntax.trees import last_name

_OF_APEX = ("scale_loss", "master_params")


def behind_apex(source: Source, taken: Iterable[Span]) -> list[Edit]:
    """Return the edits of branches that no other edit touches."""
    if b"scale_loss" not in source.data:
        return []
    taken = list(taken)
    found: list[Edit] = []
    for node in ast.walk(source.tree):
        if isinstance(node, ast.If) and node.orelse and stops(node.body):
            span = source.span(node)
            lost = any(t.start < span.end and span.start < t.end for t in taken)
            shared = any(shares_line(source, s) for s in (node, *node.body, *node.orelse))
            chained = is_elif(source, node) or is_elif(source, node.orelse[0])
            lines = any("\n" in n.value for s in node.orelse for n in ast.walk(s)
                        if isinstance(n, ast.Constant) and isinstance(n.value, str))  # fmt: skip
            if not lost and not shared and not chained and not lines:
                found.append(_apart(source, node))
    return found


def stops(body: Iterable[ast.stmt]) -> bool:
    """Return whether statements are a part of a step with apex, which is flagged."""
    for item in body:
        for node in ast.walk(item):
            if isinstance(node, ast.Call) and is_of_apex(node):
                return True
    return False


def is_of_apex(call: ast.Call) -> bool:
    """Return whether ``amp.scale_loss(loss, optimizer)`` is called, or clips what apex holds."""
    inner = (n for part in (call.func, *call.args) for n in ast.walk(part))
    names = {last_name(n) for n in inner if isinstance(n, ast.Attribute)}
    return not names.isdisjoint(_OF_APEX)


def _apart(source: Source, branch: ast.If) -> Edit:
    """Return the edit that leaves the first branch, and puts the other behind it."""
    span, indent = source.span(branch), indent_of(source, branch)
    inner = indent_of(source, branch.orelse[0])
    first = source.text(Span(span.start, source.span(branch.body[-1]).end))
    begin = above(source, branch.orelse[0])
    lines = source.text(Span(begin, span.end)).split("\n")
    moved = [indent + line.removeprefix(inner) if line.strip() else line for line in lines]
    site = Site("apex", span, branch.lineno, branch.col_offset + 1)
    return Edit(site, Outcome.KEPT, (first, "\n", "\n".join(moved)))
