"""In: an ``if`` whose test torch alone answers. Out: edits that leave the branch that runs.

``torch.jit.is_scripting()`` is False wherever MindSpore runs the code. A test made of it is
decided when the file is converted: the dead branch goes, the other one moves left.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from migrate.layout import removed_span
from migrate.outcomes import Edit, Outcome, Piece, Removal, Site, Span
from migrate.rules import dead_handlers
from migrate.rules.dedent import dedented, first_start
from migrate.rules.torch_answers import JIT, MACHINE, torch_answer
from migrate.scene import Scene


@dataclass(frozen=True)
class Fold:
    """An ``if`` with a known test: what stays of it, and what is dead."""

    node: ast.If
    answer: bool

    @property
    def alive(self) -> list[ast.stmt]:
        return self.node.body if self.answer else self.node.orelse

    @property
    def dead(self) -> list[ast.stmt]:
        return self.node.orelse if self.answer else self.node.body


def folds(scene: Scene) -> tuple[Fold, ...]:
    """The statements that are decided now."""
    found: list[Fold] = []
    if b"jit" not in scene.source.data:
        return ()
    for node in scene.file.of(ast.If):
        if not _is_elif(scene, node):
            answer = torch_answer(scene, node.test)
            if answer is not None:
                fold = Fold(node, answer)
                if all(map(_may_go, fold.dead)) and not _last_binding(fold):
                    found.append(fold)
    return tuple(found)


def dead_spans(scene: Scene) -> tuple[Span, ...]:
    """The tests and statements that are gone: what stands in them needs no decision."""
    spans = []
    for fold in folds(scene):
        spans.append(scene.source.span(fold.node.test))
        spans += [scene.source.span(s) for s in fold.dead]
    for choice, answer in _choices(scene):
        spans.append(scene.source.span(choice.test))
        spans.append(scene.source.span(choice.orelse if answer else choice.body))
    return (*spans, *_simplified(scene), *dead_handlers.dead_spans(scene))


def edits(scene: Scene) -> Iterator[Edit]:
    """What makes the branches go."""
    yield from dead_handlers.edits(scene)
    for span in _simplified(scene):
        site = Site("torch.jit.is_scripting", span, scene.source.line_of(span.start), 1)
        yield Edit(site, Outcome.CONVERTED, ())
    for choice, answer in _choices(scene):
        base = scene.site("conditional expression", choice)
        alive = scene.source.span(choice.body if answer else choice.orelse)
        yield Edit(base, Outcome.CONVERTED, (Piece(alive),))
    for fold in folds(scene):
        node = fold.node
        if not fold.alive:
            yield Removal(
                _site(scene, node, removed_span(scene.source, node)), Outcome.CONVERTED, ()
            )
        elif not fold.answer and _is_elif(scene, node.orelse[0]):
            inner = node.orelse[0]
            span = Span(scene.source.span(node).start, scene.source.span(inner).start)
            # the span of an inner ``if`` that is written elif begins at that word
            yield _silent(scene, node, Span(span.start, span.end + len("el")), ())
        else:
            yield from _kept(scene, fold)


def _kept(scene: Scene, fold: Fold) -> Iterator[Edit]:
    source = scene.source
    node, alive = fold.node, fold.alive
    start, end = source.span(node).start, source.span(node).end
    yield _silent(scene, node, Span(start, first_start(scene, alive[0])), ())
    if fold.answer and fold.dead:
        yield _silent(scene, node, Span(_before_else(scene, fold), end), ())
    for span in dedented(scene, node, alive):
        yield _silent(scene, node, span, ())


def _before_else(scene: Scene, fold: Fold) -> int:
    """The end of the line before ``else`` or ``elif``."""
    source = scene.source
    line = source.line_of(source.span(fold.alive[-1]).end)
    while True:
        line += 1
        start = source.line_start(line)
        if source.data[start:].lstrip(b" \t\f").startswith((b"else", b"elif")):
            return start - len(source.newline)


def _choices(scene: Scene) -> Iterator[tuple[ast.IfExp, bool]]:
    """``"cuda" if torch.cuda.is_available() else "cpu"``: here a look at the machine counts too."""
    if b"is_available" not in scene.source.data and b"jit" not in scene.source.data:
        return
    for node in scene.file.of(ast.IfExp):
        answer = torch_answer(scene, node.test, (*JIT, *MACHINE))
        if answer is not None:
            yield node, answer


def _without_operand(scene: Scene, test: ast.BoolOp) -> Span | None:
    """``not torch.jit.is_scripting() and x`` is ``x``: the operand that says nothing goes."""
    neutral = isinstance(test.op, ast.And)
    word = b"and" if neutral else b"or"
    known = [torch_answer(scene, value) is neutral for value in test.values]
    if known.count(True) != 1:
        return None
    index = known.index(True)
    spans = [scene.source.span(v) for v in test.values]
    if index:
        span, gap = Span(spans[index - 1].end, spans[index].end), spans[index].start
        between = scene.source.data[span.start : gap]
    else:
        span = Span(spans[0].start, spans[1].start)
        between = scene.source.data[spans[0].end : spans[1].start]
    return span if between.strip() == word else None


def _simplified(scene: Scene) -> Iterator[Span]:
    """The operands to take away in tests that are not known as a whole."""
    if b"jit" not in scene.source.data:
        return
    for node in scene.file.of(ast.If):
        if isinstance(node.test, ast.BoolOp):
            span = _without_operand(scene, node.test)
            if span is not None and torch_answer(scene, node.test) is None:
                yield span


def _is_elif(scene: Scene, node: ast.stmt) -> bool:
    parent = scene.parent(node)
    if not isinstance(node, ast.If) or not isinstance(parent, ast.If):
        return False
    start = scene.source.span(node).start
    return parent.orelse == [node] and scene.source.data[start : start + 4] == b"elif"


def _may_go(statement: ast.stmt) -> bool:
    """Nothing in it tells Python what kind of function or name it is."""
    telling = (ast.Yield, ast.YieldFrom, ast.Await, ast.Global, ast.Nonlocal)
    return not any(isinstance(n, telling) for n in ast.walk(statement))


def _last_binding(fold: Fold) -> bool:
    """Whether a class or import of the dead branch is what the rest of the file refers to."""
    kinds = (ast.Import, ast.ImportFrom, ast.ClassDef, ast.FunctionDef)
    return any(isinstance(s, kinds) for s in fold.dead) and not fold.alive


def _site(scene: Scene, node: ast.stmt, span: Span) -> Site:
    base = scene.site("torch.jit.is_scripting", node)
    return Site(base.name, span, base.line, base.column)


def _silent(scene: Scene, node: ast.stmt, span: Span, parts: tuple[str | Piece, ...]) -> Edit:
    return Edit(_site(scene, node, span), Outcome.CONVERTED, parts)
