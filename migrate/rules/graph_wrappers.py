"""Decorators of compiled functions, and ``__call__`` of Modules: graph mode passes over both.

Graph mode compiles what ``__wrapped__`` names, so a decorator that uses ``functools.wraps`` is
ignored; ``@wraps(fn)``, a helper that leaves ``__wrapped__`` away, makes it count. A wrapper whose
first parameter is ``*args`` gets no ``self`` there, so it gets one. What a decorator of another
library does is not known: the compiler is stopped.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace

from migrate.forward_names import calls_forward, line
from migrate.outcomes import Outcome, Piece, Span
from migrate.program import Class, Function
from migrate.receivers.inference import Inference
from migrate.rules import graph_scope
from migrate.rules.classes import name_span
from migrate.rules.decorators import DEFINITIONS, leaves, wrappers_of
from migrate.rules.dedent import first_start
from migrate.rules.graph_scope import Rewriting, Silent
from migrate.scene import Scene
from migrate.syntax import is_super
from migrate.templates import piece

CALLED = "construct now: graph mode passes over __call__ of a Cell"


@dataclass(frozen=True)
class Wrapper:
    """An inner function that a decorator returns in place of its argument.

    ``argument``: the parameter that holds the decorated function. ``on_methods`` and
    ``on_functions``: what it is put around in compiled code.
    """

    function: Function
    argument: str
    on_methods: bool
    on_functions: bool
    on_forward: bool


# -- decorators ---------------------------------------------------------------------------------


def flags(scene: Scene) -> Iterator[Silent]:
    """Yield decorators that graph mode ignores, or may, and ``__call__`` that stays."""
    for function in graph_scope.compiled_here(scene):
        if not isinstance(function.node, DEFINITIONS):
            continue
        local = _is_local(scene, function)
        for item in function.node.decorator_list:
            if leaves(scene.inference, item):
                continue
            if local or wrappers_of(scene.inference, function, item) is not None:
                continue
            why = "graph mode may compile the function without its decorator"
            name = f"@{ast.unparse(item.func if isinstance(item, ast.Call) else item)}"
            found = ("GRF610", name, why, "call it in the function")
            yield Silent(item, found, _first(function.node))
    for owner in scene.file.classes.values():
        yield from _calls(scene, owner)


def _is_local(scene: Scene, function: Function) -> bool:
    """Return whether a function is defined in compiled code."""
    inner = function.owner is None and function.parent is not None
    known = graph_scope.compiled(scene.inference)
    return inner and function.parent is not None and function.parent.key in known


def _first(node: ast.AST) -> ast.stmt:
    """Return the first statement of a function behind its docstring."""
    body: list[ast.stmt] = node.body  # type: ignore[attr-defined]
    text = isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant)
    return body[1] if text and len(body) > 1 else body[0]


def _wrappers(inference: Inference) -> dict[int, Wrapper]:
    """Return the wrappers of all compiled functions, by their nodes."""
    notes = inference.program.notes
    if "wrappers" not in notes:
        found: dict[int, Wrapper] = {}
        for function in graph_scope.compiled(inference).values():
            if not isinstance(function.node, DEFINITIONS):
                continue
            method = function.owner is not None and not function.decorated("staticmethod")
            forward = method and function.name == "forward"
            for item in function.node.decorator_list:
                for inner, argument in wrappers_of(inference, function, item) or ():
                    old = found.get(id(inner.node))
                    new = Wrapper(inner, argument, method, not method, forward)
                    if old is not None:
                        new = Wrapper(inner, argument, method or old.on_methods,
                                      not method or old.on_functions,
                                      forward or old.on_forward)  # fmt: skip
                    found[id(inner.node)] = new
        notes["wrappers"] = found
    known: dict[int, Wrapper] = notes["wrappers"]
    return known


def rewrites(scene: Scene) -> Iterator[Rewriting]:
    """Yield ``@wraps(fn)`` for ``@functools.wraps(fn)``, and ``self`` before ``*args``."""
    for wrapper in _wrappers(scene.inference).values():
        if wrapper.function.path == scene.file.path:
            yield from _counted(scene, wrapper)
            if wrapper.on_methods and not wrapper.function.parameters:
                yield from _with_self(scene, wrapper)
    for function in graph_scope.compiled_here(scene):
        if _is_local(scene, function) and isinstance(function.node, DEFINITIONS):
            yield from _called_after(scene, function.node)
    for owner in scene.file.classes.values():
        if calls_forward(scene, owner):
            yield from _construct(scene, owner)


def _called_after(
    scene: Scene, node: ast.FunctionDef | ast.AsyncFunctionDef
) -> Iterator[Rewriting]:
    """``@double`` above ``def inner`` is ``inner = double(inner)`` below it."""
    items = [d for d in node.decorator_list if not leaves(scene.inference, d)]
    if not items or len(items) < len(node.decorator_list):
        return
    source = scene.source
    start, body = first_start(scene, node), source.line_start(node.lineno)
    indent = Piece(Span(body, source.span(node).start))
    yield Rewriting(node, (graph_scope.edit(scene, node, Span(start, source.span(node).start)),))
    end = source.span(node).end
    end += len(source.data[end:].split(b"\n", 1)[0].rstrip(b"\r"))  # behind a comment
    parts: list[str | Piece] = []
    for item in reversed(items):
        parts += [source.newline, indent, f"{node.name} = ", piece(source, item, True)]
        parts.append(f"({node.name})")
    yield Rewriting(items[0], (graph_scope.edit(scene, node, Span(end, end), *parts),))


def _counted(scene: Scene, wrapper: Wrapper) -> Iterator[Rewriting]:
    node = wrapper.function.node
    assert isinstance(node, DEFINITIONS)
    text, root = scene.spelling.local("helpers.wraps")
    for item in node.decorator_list:
        assert isinstance(item, ast.Call)
        made = graph_scope.edit(scene, item.func, scene.source.span(item.func), text)
        made = replace(made, outcome=Outcome.HELPER, needs=frozenset((root,)))
        yield Rewriting(item.func, (made,))
    if wrapper.on_forward and not node.decorator_list and graph_scope.begins_line(scene, node):
        start = first_start(scene, node)
        indent = scene.source.data[scene.source.line_start(node.lineno) : start].decode()
        put = f"@{text}({wrapper.argument}){scene.source.newline}{indent}"
        made = graph_scope.edit(scene, node, Span(start, start), put)
        yield Rewriting(node, (replace(made, outcome=Outcome.HELPER, needs=frozenset((root,))),))


def _with_self(scene: Scene, wrapper: Wrapper) -> Iterator[Rewriting]:
    """``wrapper(*args)`` and ``fn(*args)`` are ``wrapper(self, *args)`` and ``fn(self, *args)``."""
    rest = wrapper.function.node.args.vararg
    assert rest is not None
    places = [(rest, scene.source.span(rest).start - 1)]
    for node in wrapper.function.nodes:
        if isinstance(node, ast.Starred) and getattr(node.value, "id", "") == rest.arg:
            places.append((node, scene.source.span(node).start))  # type: ignore[arg-type]
    for node, start in places:
        made = graph_scope.edit(scene, node, Span(start, start), "self, ")
        yield Rewriting(node, (made,))


# -- __call__ -----------------------------------------------------------------------------------


def _construct(scene: Scene, owner: Class) -> Iterator[Rewriting]:
    """``__call__`` is ``construct``, and ``super().__call__(x)`` in it is ``self.forward(x)``."""
    method = owner.methods["__call__"]
    assert isinstance(method.node, DEFINITIONS)
    made = graph_scope.edit(scene, method.node, name_span(scene, method.node), "construct")
    yield Rewriting(method.node, (made,), CALLED, "__call__")
    for node in method.nodes:
        if isinstance(node, ast.Attribute) and node.attr == "__call__" and is_super(node.value):
            own = "forward" in owner.methods
            text = f"{method.parameters[0].arg}.forward" if own else ""
            held = piece(scene.source, node.value, True)
            parts = (text,) if text else (held, ".construct")
            yield Rewriting(node, (graph_scope.edit(scene, node, scene.source.span(node), *parts),))


def _calls(scene: Scene, owner: Class) -> Iterator[Silent]:
    """Yield ``forward`` of a Module whose ``__call__``, its own or inherited, keeps its name."""
    forward = owner.methods.get("forward")
    if forward is None or not scene.is_module_class(owner):
        return
    if not isinstance(forward.node, DEFINITIONS):
        return
    for key in sorted(line(scene.inference, owner.key)):
        other = scene.inference.program.classes[key]
        if "__call__" in other.methods and not calls_forward(scene, other):
            why = "graph mode passes over it and calls construct"
            found = ("GRF611", f"{other.name}.__call__", why, "write what it does into forward")
            yield Silent(forward.node, found, _first(forward.node))
            return
