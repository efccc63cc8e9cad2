"""In: a top-level statement. Out: the names in it that stand for something of its module."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from migrate.syntax import FunctionNode, all_parameters, children

_COMPREHENSION = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def free_names(statement: ast.stmt) -> list[ast.Name]:
    """Every name but those of parameters and variables of its functions, classes and loops."""
    return list(_free(statement, frozenset()))


def _free(node: ast.AST, bound: frozenset[str]) -> Iterator[ast.Name]:
    if isinstance(node, ast.Name):
        if node.id not in bound:
            yield node
    elif isinstance(node, FunctionNode):
        body = [node.body] if isinstance(node, ast.Lambda) else node.body
        inner = bound - _declared(body) | _parameters(node) | (_stored(body) - _declared(body))
        yield from _each((child for child in _heads(node)), bound)
        yield from _each(body, inner)
    elif isinstance(node, ast.ClassDef):
        yield from _each((*node.decorator_list, *node.bases, *node.keywords), bound)
        own = bound | _stored(node.body)
        for part in node.body:
            # what a class binds is no variable of its methods
            yield from _free(part, bound if isinstance(part, FunctionNode) else own)
    elif isinstance(node, _COMPREHENSION):
        first = node.generators[0].iter
        inner = bound | _stored(g.target for g in node.generators)
        yield from _free(first, bound)
        for child in children(node):
            below = children(child) if isinstance(child, ast.comprehension) else [child]
            yield from _each((part for part in below if part is not first), inner)
    else:
        yield from _each(children(node), bound)


def _each(nodes: Iterable[ast.AST], bound: frozenset[str]) -> Iterator[ast.Name]:
    for node in nodes:
        yield from _free(node, bound)


def _parameters(node: FunctionNode) -> frozenset[str]:
    return frozenset(parameter.arg for parameter in all_parameters(node.args))


def _heads(node: FunctionNode) -> Iterator[ast.AST]:
    """What is evaluated outside the function: decorators, defaults, annotations."""
    yield from getattr(node, "decorator_list", ())
    yield from (d for d in (*node.args.defaults, *node.args.kw_defaults) if d is not None)
    yield from (p.annotation for p in all_parameters(node.args) if p.annotation is not None)
    returns: ast.expr | None = getattr(node, "returns", None)
    if returns is not None:
        yield returns


def _stored(nodes: Iterable[ast.AST]) -> frozenset[str]:
    """The names that statements bind in their own scope."""
    found: set[str] = set()
    pending = list(nodes)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
            continue
        if isinstance(node, ast.Lambda):
            continue
        if isinstance(node, _COMPREHENSION):
            # its variables are its own, but what := binds in it is not
            pending += [n.target for n in ast.walk(node) if isinstance(n, ast.NamedExpr)]
            continue
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            found.add(node.id)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            found |= {(a.asname or a.name).partition(".")[0] for a in node.names}
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
            found.add(node.name)
        elif isinstance(node, ast.MatchMapping) and node.rest:
            found.add(node.rest)
        pending += children(node)
    return frozenset(found)


def _declared(nodes: Iterable[ast.AST]) -> frozenset[str]:
    """The names that statements take from the module by ``global``."""
    return frozenset(
        name
        for top in nodes
        for node in ast.walk(top)
        if isinstance(node, ast.Global)
        for name in node.names
    )
