"""Let what a flag raises through the handlers of a program that would catch it."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Collection, Iterator

from migrate.outcomes import Edit, Outcome, Site, Span
from migrate.scene import Scene

_UNITS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


def edits(scene: Scene, stopping: Collection[ast.AST]) -> Iterator[Edit]:
    """Yield ``except NotImplementedError: raise`` before handlers that would catch a flag.

    ``except Exception: y = x * 0`` around a flagged line would give another number without a word.
    A line is reached from a ``try`` of its function, and of the functions of its file that call it.
    What an import tries stays: there a handler is the way on without it.

    Args:
        stopping: the nodes that raise where they are reached.
    """
    if not stopping:
        return
    tries: list[ast.Try | ast.TryStar] = [*scene.file.of(ast.Try), *scene.file.of(ast.TryStar)]
    catching = {id(n): h for n in tries if (h := _catching(n)) is not None}
    if not catching:
        return
    reached = list(stopping)
    functions: set[int] = set()
    found: dict[int, ast.Try | ast.TryStar] = {}
    for node in reached:
        for statement in _tried(scene, node):
            if id(statement) in catching:
                found.setdefault(id(statement), statement)
        unit = scene.file.function_at(node)
        if unit is not None and id(unit.node) not in functions:
            functions.add(id(unit.node))
            reached += _calls(scene, unit.node)
    for key, statement in found.items():
        yield _passed_on(scene, statement, catching[key])


def fails_unseen(scene: Scene, node: ast.AST) -> bool:
    """Return whether a handler takes the AttributeError of a method that a Tensor has not."""
    return any(
        _takes(handler.type, AttributeError)
        for statement in _tried(scene, node)
        for handler in statement.handlers
    )


def _tried(scene: Scene, node: ast.AST) -> Iterator[ast.Try | ast.TryStar]:
    """Yield the ``try`` statements of the unit around a node whose bodies hold it."""
    holders: list[ast.Try | ast.TryStar] = []
    inner, outer = node, scene.parent(node)
    while outer is not None and not isinstance(outer, _UNITS):
        if isinstance(outer, (ast.Try, ast.TryStar)) and inner in outer.body:
            holders.append(outer)
        if isinstance(outer, ast.If) and _is_main(outer.test):
            yield from holders
            return
        inner, outer = outer, scene.parent(outer)
    if isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef)):
        yield from holders


def _is_main(test: ast.expr) -> bool:
    return isinstance(test, ast.Compare) and getattr(test.left, "id", "") == "__name__"


def _calls(scene: Scene, callee: ast.AST) -> list[ast.Call]:
    """Return the calls in the file that surely or possibly run a function of it."""
    found = []
    for call in scene.file.of(ast.Call):
        for atom in scene.kind(call.func):
            function = scene.inference.function_of(atom.name)
            if function is None and atom.kind in ("Module", "class", "Object"):
                owner = scene.inference.class_of(atom.name)
                name = {"Module": "forward", "class": "__init__"}.get(atom.kind, "__call__")
                function = owner.methods.get(name) if owner is not None else None
            if function is not None and function.node is callee:
                found.append(call)
    return found


def _catching(statement: ast.Try | ast.TryStar) -> ast.ExceptHandler | None:
    """Return the first handler that takes a NotImplementedError and goes on from there."""
    for handler in statement.handlers:
        if not _takes(handler.type, NotImplementedError):
            continue
        return None if isinstance(handler.body[-1], ast.Raise) else handler
    return None


def _takes(caught: ast.expr | None, error: type[Exception]) -> bool:
    if isinstance(caught, ast.Tuple):
        return any(_takes(one, error) for one in caught.elts)
    if caught is None:
        return True
    known = getattr(builtins, getattr(caught, "id", ""), None)
    return isinstance(known, type) and issubclass(error, known)


def _passed_on(scene: Scene, statement: ast.Try | ast.TryStar, handler: ast.ExceptHandler) -> Edit:
    source = scene.source
    start = source.offset(handler.lineno, handler.col_offset)
    line = source.line_start(handler.lineno)
    indent = source.data[line:start].decode("utf-8")
    word = "except*" if isinstance(statement, ast.TryStar) else "except"
    step = "\t" if indent.startswith("\t") else "    "
    lines = (f"{word} NotImplementedError:", f"{indent}{step}raise", indent)
    site = Site("except", Span(start, start), handler.lineno, handler.col_offset + 1)
    return Edit(site, Outcome.FLAGGED, (source.newline.join(lines),))
