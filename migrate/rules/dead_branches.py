"""Leave the branch that runs of a test that torch alone answers, and the body of a ``try``.

``torch.jit.is_scripting()`` and ``torch.compiler.is_compiling()`` are False wherever MindSpore runs
the code. A test made of them is decided when the file is converted: the dead branch goes, the other
one moves left; what stands in handlers, for older versions of torch, is never reached.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from migrate.records.outcomes import Edit, Outcome, Piece, Removal, Span
from migrate.rules.registry import rewrites
from migrate.sites.references import direct_name
from migrate.sites.scene import Scene, once_a_file
from migrate.syntax.lines import (
    is_elif,
    line_end,
    statements,
)

JIT = ("torch.jit.",)
COMPILER = ("torch.compiler.is_",)
MACHINE = ("torch.cuda.is_available", "torch.backends.mps.is_available", "torch.mps.is_available")


def torch_answer(scene: Scene, test: ast.expr, asked: tuple[str, ...] = JIT) -> bool | None:
    """What a test is worth, or None where more than torch has a say."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = torch_answer(scene, test.operand, asked)
        return None if inner is None else not inner
    if isinstance(test, ast.BoolOp):
        answers = [torch_answer(scene, value, asked) for value in test.values]
        decisive = isinstance(test.op, ast.Or)
        # what stands before a decisive operand is evaluated and may matter
        if answers[0] is decisive:
            return decisive
        return (not decisive) if all(a is (not decisive) for a in answers) else None
    if not isinstance(test, ast.Call):
        return None
    name = direct_name(scene, test.func)
    rows = scene.table.rows(name) if name and name.startswith(asked) else ()
    return {"False": False, "True": True}.get(rows[0].to) if rows else None


def handler_spans(scene: Scene) -> tuple[Span, ...]:
    """The handlers: what stands in them needs no decision."""
    return tuple(span for _, span in _safe(scene))


def goes(scene: Scene, node: ast.AST) -> bool:
    """Whether it is such a ``try``."""
    return isinstance(node, ast.Try) and any(node is t for t, _ in _safe(scene))


def handler_edits(scene: Scene) -> Iterator[Edit]:
    """What makes ``try`` and the handlers go."""
    for node, _ in _safe(scene):
        base = scene.site("try", node)
        yield Edit(base, Outcome.CONVERTED, (statements(scene.source, node.body),))


@once_a_file
def _safe(scene: Scene) -> list[tuple[ast.Try, Span]]:
    """Each such statement that is in no other, and what follows its body."""
    found: list[tuple[ast.Try, Span]] = []
    for node in scene.file.of(ast.Try) if b"is_" in scene.source.data else ():
        if _cannot_fail(scene, node):
            source, span = scene.source, scene.source.span(node)
            last = source.span(node.body[-1]).end
            end = line_end(source, last)
            if not any(s.start <= span.start < s.end for _, s in found) and end < span.end:
                found.append((node, Span(end, span.end)))
    return found


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
        if not is_elif(scene.source, node):
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
    return (*spans, *_simplified(scene), *handler_spans(scene))


@rewrites()
def edits(scene: Scene) -> Iterator[Edit]:
    """Remove branches that never run: scripting, tracing, other machines."""
    yield from handler_edits(scene)
    for span in _simplified(scene):
        site = scene.source.site_at("torch.jit.is_scripting", span)
        yield Edit(site, Outcome.CONVERTED, ())
    for choice, answer in _choices(scene):
        base = scene.site("conditional expression", choice)
        alive = scene.source.span(choice.body if answer else choice.orelse)
        yield Edit(base, Outcome.CONVERTED, (Piece(alive),))
    for fold in folds(scene):
        node = fold.node
        if not fold.alive:
            yield Removal(scene.site("torch.jit.is_scripting", node), Outcome.CONVERTED, ())
        else:
            parts = (statements(scene.source, fold.alive),)
            yield Edit(scene.site("torch.jit.is_scripting", node), Outcome.CONVERTED, parts)


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
    known = [value for value in test.values if torch_answer(scene, value) is neutral]
    return scene.source.span(known[0]) if len(known) == 1 else None


def _simplified(scene: Scene) -> Iterator[Span]:
    """The operands to take away in tests that are not known as a whole."""
    if b"jit" not in scene.source.data:
        return
    for node in scene.file.of(ast.If):
        if isinstance(node.test, ast.BoolOp):
            span = _without_operand(scene, node.test)
            if span is not None and torch_answer(scene, node.test) is None:
                yield span


def _may_go(statement: ast.stmt) -> bool:
    """Nothing in it tells Python what kind of function or name it is."""
    telling = (ast.Yield, ast.YieldFrom, ast.Await, ast.Global, ast.Nonlocal)
    return not any(isinstance(n, telling) for n in ast.walk(statement))


def _last_binding(fold: Fold) -> bool:
    """Whether a class or import of the dead branch is what the rest of the file refers to."""
    kinds = (ast.Import, ast.ImportFrom, ast.ClassDef, ast.FunctionDef)
    return any(isinstance(s, kinds) for s in fold.dead) and not fold.alive
