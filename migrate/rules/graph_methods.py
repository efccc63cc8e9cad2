"""In: class methods that compiled code calls. Out: static methods, where they use no class.

Graph mode gives a class method its arguments and no class, and says that one is missing.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from migrate.outcomes import Edit, Span
from migrate.program import Function
from migrate.rules import graph_scope
from migrate.rules.graph_scope import Rewriting
from migrate.scene import Scene


def rewrites(scene: Scene) -> Iterator[Rewriting]:
    """``@classmethod def scale(cls, x)`` is ``@staticmethod def scale(x)``."""
    for function in graph_scope.compiled_here(scene):
        mark = marked(function)
        if mark is not None and not _uses_class(function):
            edits = _static(scene, function, mark)
            if edits:
                yield Rewriting(mark, edits)


def marked(function: Function) -> ast.expr | None:
    """The ``classmethod`` above a method, if it is the only decorator."""
    if not isinstance(function.node, ast.FunctionDef) or len(function.node.decorator_list) != 1:
        return None
    (mark,) = function.node.decorator_list
    return mark if getattr(mark, "id", "") == "classmethod" else None


def _uses_class(function: Function) -> bool:
    assert isinstance(function.node, ast.FunctionDef)
    given = function.node.args.args
    own = given[0].arg if given else ""
    names = [n for s in function.node.body for n in ast.walk(s) if isinstance(n, ast.Name)]
    return not given or any(n.id in (own, "super", "__class__") for n in names)


def _static(scene: Scene, function: Function, mark: ast.expr) -> tuple[Edit, ...]:
    assert isinstance(function.node, ast.FunctionDef)
    arguments, source = function.node.args, scene.source
    if arguments.posonlyargs or arguments.args[0].annotation is not None:
        return ()
    first = source.span(arguments.args[0])
    end = first.end
    if len(arguments.args) > 1:
        end = source.span(arguments.args[1]).start
    elif arguments.vararg or arguments.kwonlyargs or arguments.kwarg:
        return ()
    if b"#" in source.data[first.start : end]:
        return ()
    word = graph_scope.edit(scene, mark, source.span(mark), "staticmethod")
    return (word, graph_scope.edit(scene, mark, Span(first.start, end)))
