"""In: a decision in an f-string. Out: the same, with quotes in its new text that do not end it.

Before Python 3.12 the quotes of an f-string may not stand in it: ``f'{x.device.type}'`` becomes
``f'{"cpu"}'``.
"""

from __future__ import annotations

import ast
import tokenize
from collections.abc import Iterator
from dataclasses import replace

from migrate.records.outcomes import Decision, Edit, Refusal, Span
from migrate.rules.registry import revises
from migrate.sites.scene import Scene

_QUOTES = {"'": '"', '"': "'"}


@revises(after=("imports.advised", "integers"))
def fitted(scene: Scene, node: ast.AST, decision: Decision) -> Decision:
    """Change quotes of new text inside an f-string; flag what has both kinds."""
    if not isinstance(decision, Edit) or not decision.parts or not _inside(scene, node):
        return decision
    return _requoted(scene, decision)


def beside(scene: Scene, edit: Edit) -> Iterator[Edit]:
    """Fit an edit that belongs to no reference; it is left out where that cannot be done."""
    place = edit.site.span.start
    if edit.parts and any(isinstance(p, str) and ("'" in p or '"' in p) for p in edit.parts):
        spans = map(scene.source.span, scene.file.of(ast.JoinedStr))
        if any(span.start < place < span.end for span in spans):
            found = _requoted(scene, edit)
            if isinstance(found, Edit):
                yield found
            return
    yield edit


def _requoted(scene: Scene, edit: Edit) -> Edit | Refusal:
    """Return an edit inside an f-string with quotes that do not end it."""
    assert edit.parts is not None
    quote = _quote(scene, edit.site.span.start)
    texts = [part for part in edit.parts if isinstance(part, str) and quote in part]
    if not quote or not texts:
        return edit
    other = _QUOTES[quote]
    if any(other in text or "\\" in text for text in texts):
        why = "its new text has both kinds of quotes, which no f-string takes before Python 3.12"
        return Refusal(edit.site, "API104", why, "bind it to a name before")
    parts = tuple(p.replace(quote, other) if isinstance(p, str) else p for p in edit.parts)
    return replace(edit, parts=parts)


def _inside(scene: Scene, node: ast.AST) -> bool:
    current: ast.AST | None = node
    while current is not None and not isinstance(current, ast.stmt):
        if isinstance(current, ast.FormattedValue):
            return True
        current = scene.parent(current)
    return False


def _quote(scene: Scene, place: int) -> str:
    """The quote of the f-string around a place; "" where three of them end it."""
    for kind, start, end in scene.source.tokens:
        if kind == tokenize.STRING and start <= place < end:
            text = scene.source.text(Span(start, end)).lstrip("rRfF")
            return "" if text[:3] == text[0] * 3 else text[0]
    return ""
