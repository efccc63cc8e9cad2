"""In: a ``try`` around what cannot fail any more. Out: edits that leave its body.

``torch.compiler.is_compiling()`` is False wherever MindSpore runs the code: what stands in the
handlers, for older versions of torch, is never reached.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from migrate.outcomes import Edit, Outcome, Site, Span
from migrate.rules.dedent import unwrapped
from migrate.rules.torch_answers import COMPILER, JIT, torch_answer
from migrate.scene import Scene


def dead_spans(scene: Scene) -> tuple[Span, ...]:
    """The handlers: what stands in them needs no decision."""
    return tuple(span for _, span in _safe(scene))


def goes(scene: Scene, node: ast.AST) -> bool:
    """Whether it is such a ``try``."""
    return isinstance(node, ast.Try) and any(node is t for t, _ in _safe(scene))


def edits(scene: Scene) -> Iterator[Edit]:
    """What makes ``try`` and the handlers go."""
    for node, _ in _safe(scene):
        base = scene.site("try", node)
        for span in unwrapped(scene, node, node.body):
            yield Edit(Site(base.name, span, base.line, base.column), Outcome.CONVERTED, ())


def _safe(scene: Scene) -> list[tuple[ast.Try, Span]]:
    """Each such statement that is in no other, and what follows its body."""
    if "safe tries" not in scene._memo:
        found: list[tuple[ast.Try, Span]] = []
        for node in scene.file.of(ast.Try) if b"is_" in scene.source.data else ():
            if _cannot_fail(scene, node):
                source, span = scene.source, scene.source.span(node)
                last = source.span(node.body[-1]).end
                end = last + len(source.data[last:].split(b"\n", 1)[0].rstrip(b"\r"))
                if not any(s.start <= span.start < s.end for _, s in found) and end < span.end:
                    found.append((node, Span(end, span.end)))
        scene._memo["safe tries"] = found
    safe = scene._memo["safe tries"]
    assert isinstance(safe, list)
    return safe


def _cannot_fail(scene: Scene, node: ast.Try) -> bool:
    """Nothing but answers of torch that are known, and constants."""
    if node.orelse or node.finalbody or not node.handlers:
        return False
    known = []
    for statement in node.body:
        if not isinstance(statement, (ast.Return, ast.Assign)) or statement.value is None:
            return False
        plain = isinstance(statement.value, ast.Constant)
        known.append(torch_answer(scene, statement.value, (*JIT, *COMPILER)) is not None)
        if not plain and not known[-1]:
            return False
    return any(known)
