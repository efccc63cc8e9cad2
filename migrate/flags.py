"""In: refusals. Out: the edits that announce them: a TODO comment, and code that raises."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from migrate.layout import above
from migrate.outcomes import Edit, Outcome, Refusal, Site, Span
from migrate.rules import graph_unbound
from migrate.scene import Scene

_SIMPLE = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr, ast.Return, ast.Assert, ast.Delete)
MISSING = "helpers.Missing"


@dataclass(frozen=True)
class Binding(Edit):
    """The assignment that takes the place of an imported name."""

    alias: ast.alias | None = None


def edits(scene: Scene, refused: Sequence[tuple[Refusal, ast.AST]]) -> Iterator[Edit]:
    """One comment per statement and message; one raise per statement without a target."""
    comments: dict[int, list[Refusal]] = {}
    for refusal, node in refused:
        statement = scene.statement(node)
        comments.setdefault(_line_begin(scene, statement), []).append(refusal)
    for start, some in comments.items():
        yield _comment(scene, start, some)
    raised: set[int] = set()
    for refusal, node in refused:
        if refusal.keep:
            continue
        statement = scene.statement(node)
        if id(statement) in raised:
            continue
        if isinstance(node, ast.alias):
            yield from _import(scene, refusal, node, statement)
        elif _raisable(scene, node, statement):
            raised.add(id(statement))
            yield _raise(scene, refusal, statement)
        else:
            yield from _missing(scene, refusal, node)


def _line_begin(scene: Scene, statement: ast.stmt) -> int:
    """Where the comment goes: before the first text of the statement's line."""
    decorators = getattr(statement, "decorator_list", ())
    start = min(scene.source.span(n).start for n in (statement, *decorators))
    line = scene.source.line_start(scene.source.line_of(start))
    data = scene.source.data
    while data[line : line + 1] in (b" ", b"\t", b"\f"):
        line += 1
    return line


def _comment(scene: Scene, start: int, refusals: Sequence[Refusal]) -> Edit:
    lines: list[str] = []
    for refusal in refusals:
        text = f"# TODO(torch2ms {refusal.code}): {_one_line(_reason(refusal))}"
        if text not in lines:
            lines.append(text)
    site = Site(refusals[0].site.name, Span(start, start), scene.source.line_of(start), 1)
    return Edit(site, Outcome.FLAGGED, above(scene.source, start, lines))


def _reason(refusal: Refusal) -> str:
    tail = f"; {refusal.next_step}" if refusal.next_step else ""
    return f"{refusal.site.name}: {refusal.reason}{tail}"


def _one_line(text: str) -> str:
    return " ".join(text.split())


def message(refusal: Refusal) -> str:
    return _one_line(f"torch2ms {refusal.message}")


def _raisable(scene: Scene, node: ast.AST, statement: ast.stmt) -> bool:
    """Inside a function a simple statement can raise in place of its value."""
    if not isinstance(statement, _SIMPLE) or scene.function(statement) is None:
        return False
    current: ast.AST | None = node
    while current is not None and current is not statement:
        if isinstance(current, ast.Lambda):
            return False
        current = scene.parent(current)
    owner = scene.parent(statement)
    return not isinstance(owner, ast.ClassDef) or (
        scene.function(statement) is not None and (_function_is_nearest(scene, statement))
    )


def _function_is_nearest(scene: Scene, statement: ast.stmt) -> bool:
    current = scene.parent(statement)
    while current is not None:
        if isinstance(current, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return True
        if isinstance(current, ast.ClassDef):
            return False
        current = scene.parent(current)
    return False


def _raise(scene: Scene, refusal: Refusal, statement: ast.stmt) -> Edit:
    text = f"raise NotImplementedError({message(refusal)!r})"
    span = scene.source.span(statement)
    site = Site(refusal.site.name, span, refusal.site.line, refusal.site.column)
    return Edit(site, Outcome.FLAGGED, graph_unbound.raising(scene, statement, text))


def _missing(scene: Scene, refusal: Refusal, node: ast.AST) -> Iterator[Edit]:
    """An expression that raises on any use, where a statement cannot."""
    text, root = scene.spelling.local(MISSING)
    made = f"{text}({message(refusal)!r})"
    target = _eager(scene, node)
    parent = scene.parent(node)
    if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
        # nothing can be assigned to a call: a setting goes as a whole, others raise
        alone = isinstance(parent, ast.Assign) and parent.targets == [node]
        target, made = (parent, made) if alone and parent else (node, f"{made}.{node.attr}")
    called = isinstance(parent, ast.Call) and parent.func is node
    holder = scene.parent(parent) if called and parent is not None else parent
    whole = parent if called else node
    if isinstance(holder, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) and (
        whole in holder.decorator_list
    ):
        assert whole is not None
        target, made = whole, made + ".decorate"
    if isinstance(parent, (ast.MatchValue, ast.MatchClass)):
        # a pattern holds names and literals only
        pattern = "None" if isinstance(parent, ast.MatchValue) else "object"
        yield Edit(refusal.site, Outcome.FLAGGED, (pattern,))
        statement = scene.statement(node)
        assert isinstance(statement, ast.Match)
        target, made = statement.subject, f"{made}()"
    span = scene.source.span(target)
    site = Site(refusal.site.name, span, refusal.site.line, refusal.site.column)
    yield Edit(site, Outcome.FLAGGED, (made,), needs=frozenset((root,)))


def _eager(scene: Scene, node: ast.AST) -> ast.AST:
    """What is evaluated when the file is imported must not raise: the whole value goes then."""
    value, parent = node, scene.parent(node)
    while parent is not None and not isinstance(parent, ast.stmt):
        if isinstance(parent, ast.JoinedStr):
            node = parent  # a text cannot hold another text with any quotes in it
        if isinstance(parent, ast.arguments):
            return value if value in parent.defaults or value in parent.kw_defaults else node
        if isinstance(parent, ast.Lambda):
            return node
        value, parent = parent, scene.parent(parent)
    if isinstance(parent, (ast.Assign, ast.AnnAssign, ast.Expr, ast.AugAssign)):
        return value if getattr(parent, "value", None) is value else node
    return node


def _import(
    scene: Scene, refusal: Refusal, alias: ast.alias, statement: ast.stmt
) -> Iterator[Edit]:
    """``import lib`` of a library that needs torch: the name is bound to an object that raises."""
    if alias.name == "*":
        return
    text, root = scene.spelling.local(MISSING)
    bound = alias.asname or alias.name.partition(".")[0]
    site = scene.site(refusal.site.name, alias)
    parts = (f"{bound} = {text}({message(refusal)!r})",)
    yield Binding(site, Outcome.FLAGGED, parts, needs=frozenset((root,)), alias=alias)
