"""In: ``try`` in compiled code. Out: the question that it stands for, or its body alone.

Graph mode compiles no ``try``. A missing key or member is asked for before; handlers that only
raise another error go, since an error is raised all the same.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator

from migrate.outcomes import Edit, Span
from migrate.receivers.kinds import is_all
from migrate.rules import graph_scope
from migrate.rules.dedent import unwrapped
from migrate.rules.graph_scope import Rewriting, begins_line
from migrate.scene import Scene
from migrate.templates import piece

NOTE = "its handlers only raised another error: what goes wrong is raised as it is"
_QUIET = (ast.Name, ast.Constant, ast.Attribute, ast.Tuple, ast.List, ast.UnaryOp, ast.USub,
          ast.expr_context)  # fmt: skip


def rewrites(scene: Scene) -> Iterator[Rewriting]:
    """``try: s = d[k]`` with ``except KeyError: s = 1`` is ``s = d[k] if k in d else 1``."""
    for node in graph_scope.nodes(scene, ast.Try):
        if not isinstance(node, ast.Try) or node.orelse or node.finalbody:
            continue
        if not begins_line(scene, node):
            continue
        asked = _asked(scene, node)
        if asked is not None:
            yield Rewriting(node, (asked,))
        elif all(_only_raises(scene, handler) for handler in node.handlers):
            spans = unwrapped(scene, node, node.body)
            gone = tuple(graph_scope.edit(scene, node, span) for span in spans)
            yield Rewriting(node, gone[:1], NOTE, "try")
            yield Rewriting(node.handlers[0], gone[1:])


def _asked(scene: Scene, node: ast.Try) -> Edit | None:
    """The statement that asks first, where both ways bind or return the same thing."""
    if len(node.body) != 1 or len(node.handlers) != 1 or len(node.handlers[0].body) != 1:
        return None
    handler, ours, other = node.handlers[0], node.body[0], node.handlers[0].body[0]
    if handler.name or not isinstance(handler.type, ast.Name) or _comment(scene, node):
        return None
    both = isinstance(ours, ast.Return) and isinstance(other, ast.Return)
    if isinstance(ours, ast.Assign) and isinstance(other, ast.Assign):
        both = len(ours.targets) == 1 and isinstance(ours.targets[0], ast.Name)
        both = both and [ast.dump(t) for t in ours.targets] == [ast.dump(t) for t in other.targets]
    if not both or not isinstance(ours, (ast.Return, ast.Assign)):
        return None
    value, default = ours.value, other.value  # type: ignore[attr-defined]
    if value is None or default is None:
        return None
    question = _question(scene, handler.type.id, value)
    if not question:
        return None
    source = scene.source
    head = Span(source.span(ours).start, source.span(value).start)
    text = source.data[head.start : head.end].decode()
    return graph_scope.edit(
        scene, node, source.span(node), text, piece(source, value, True), f" if {question} else ",
        piece(source, default, isinstance(default, ast.Lambda)),
    )  # fmt: skip


def _question(scene: Scene, error: str, value: ast.expr) -> str:
    """``k in d`` for the KeyError of ``d[k]``, ``hasattr(m, "a")`` for the other of ``m.a``."""
    quiet = all(isinstance(n, (*_QUIET, ast.Subscript)) for n in ast.walk(value))
    if not quiet:
        return ""
    text = scene.source.text_of
    if error == "KeyError" and isinstance(value, ast.Subscript):
        plain = not any(isinstance(n, ast.Subscript) for n in ast.walk(value.value))
        known = plain and is_all(scene.kind(value.value), "dict")
        return f"{text(value.slice)} in {text(value.value)}" if known else ""
    if error == "AttributeError" and isinstance(value, ast.Attribute):
        known = isinstance(value.value, ast.Name) and is_all(scene.kind(value.value), "Module")
        return f'hasattr({text(value.value)}, "{value.attr}")' if known else ""
    return ""


def _comment(scene: Scene, node: ast.stmt) -> bool:
    span = scene.source.span(node)
    return b"#" in scene.source.data[span.start : span.end]


def _only_raises(scene: Scene, handler: ast.ExceptHandler) -> bool:
    """A handler that tells about it at most, and raises an error of Python's own.

    It must be one that no code of the program waits for by its name.
    """
    last = handler.body[-1]
    if not isinstance(last, ast.Raise):
        return False
    error = last.exc.func if isinstance(last.exc, ast.Call) else last.exc
    name = getattr(error, "id", "")
    own = error is None or name in (handler.name, *dir(builtins))
    if own and not _kinds(name).isdisjoint(_awaited(scene)):
        return False
    for statement in handler.body[:-1]:
        call = statement.value if isinstance(statement, ast.Expr) else None
        if not isinstance(call, ast.Call) or not graph_scope.is_message(call):
            return False
    return own


def _kinds(error: str) -> frozenset[str]:
    """The errors that an error of Python's own is, but for those that all are."""
    known = getattr(builtins, error, None)
    names = {k.__name__ for k in known.__mro__} if isinstance(known, type) else set()
    return frozenset(names - {"Exception", "BaseException", "object"})


def _awaited(scene: Scene) -> frozenset[str]:
    """The last names of all errors that some handler of the program is for."""
    program = scene.inference.program
    if "errors awaited" not in program.notes:
        nodes = (n for file in program.files.values() for n in file.nodes)
        types = (h.type for h in nodes if isinstance(h, ast.ExceptHandler) and h.type is not None)
        program.notes["errors awaited"] = frozenset(
            getattr(n, "attr", getattr(n, "id", "")) for t in types for n in ast.walk(t)
        )
    found: frozenset[str] = program.notes["errors awaited"]
    return found
