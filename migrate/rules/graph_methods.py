"""Give compiled methods the class that they mean: ``super()``, class methods, truth of Modules.

Graph mode takes ``super()`` for ``super(type(self), self)``: in a method that a subclass inherits
it leads to the class itself, without a word or without end. A class method gets no class there.
A Cell is true, whatever its ``__len__`` says; an empty SequentialCell is true in graph mode.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from migrate.outcomes import Edit, Outcome, Span
from migrate.program import Class, Function
from migrate.receivers.kinds import without_none
from migrate.rules import graph_scope
from migrate.rules.graph_scope import Found, Rewriting, Silent
from migrate.scene import Scene
from migrate.syntax import is_super, within
from migrate.templates import piece

_DEFINED = (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef, ast.If, ast.Try)
_NAMED = (ast.Name, ast.Attribute, ast.Subscript)
_LISTED = ("torch.nn.Sequential", "torch.nn.ModuleDict")
_WHY = "graph mode takes super() for that of the object's class: another method runs"


def rewrites(scene: Scene) -> Iterator[Rewriting]:
    """Yield ``super(Net, self)``, static methods, and ``is_full(self.layers)``."""
    for node in graph_scope.nodes(scene, ast.Call):
        if is_super(node):
            yield from _super(scene, node)
    for node in scene.file.nodes:
        if isinstance(node, _NAMED) and _is_asked(scene, node) and _may_be_empty(scene, node):
            yield _truth(scene, node)
    for function in graph_scope.compiled_here(scene):
        mark = marked(function)
        if mark is not None:
            edits = _static(scene, function, mark)
            if edits:
                yield Rewriting(mark, edits)


def flags(scene: Scene) -> Iterator[Silent]:
    """Yield each ``super()`` that means another class in graph mode, and cannot name its own."""
    for node in graph_scope.nodes(scene, ast.Call):
        if is_super(node) and _differs(scene, node) and not _spelled(scene, node):
            yield Silent(node, ("GRF620", "super()", _WHY, "define the class at the head"))


def stays(scene: Scene, node: ast.Call) -> Found | None:
    """Return the finding for a call of a class method that keeps its class."""
    for atom in scene.kind(node.func):
        function = scene.inference.program.functions.get(atom.name)
        if function is None or atom.kind not in ("method", "function"):
            continue
        mark = marked(function)
        known = scene if function.path == scene.file.path else None
        if mark is not None and (known is None or not _static(known, function, mark)):
            why = "graph mode passes a class method no class"
            return "GRF606", f"classmethod {function.name}", why, "write a static method"
    return None


# -- super() ------------------------------------------------------------------------------------


def _method(scene: Scene, node: ast.AST) -> Function | None:
    """Return the method that holds a node, functions inside of it left out."""
    function = scene.function(node)
    while function is not None and function.owner is None:
        function = function.parent
    return function


def _differs(scene: Scene, node: ast.AST) -> bool:
    """Return whether objects of subclasses get another method from ``super()`` in graph mode."""
    method, asked = _method(scene, node), scene.parent(node)
    if method is None or method.owner is None or getattr(node, "args", None):
        return False
    if isinstance(asked, ast.Attribute) and asked.attr in (method.name, "__call__"):
        return _has_subclass(scene, method.owner)  # without one it calls itself, which stops
    return True


def _has_subclass(scene: Scene, owner: Class) -> bool:
    return bool(scene.inference.summaries.graph.derived(owner))


def _spelled(scene: Scene, node: ast.AST) -> str:
    """Return the name by which a method reaches its own class; "" where there is none."""
    method = _method(scene, node)
    if method is None or method.owner is None or not method.parameters:
        return ""
    owner = method.owner.node
    bound = [n for n in scene.file.nodes if graph_scope.bound_name(n) == owner.name]
    if not isinstance(scene.parent(owner), _DEFINED) or owner.decorator_list or len(bound) > 1:
        return ""
    return owner.name if method.parameters[0].arg == "self" else ""


def _super(scene: Scene, node: ast.AST) -> Iterator[Rewriting]:
    name, asked = _spelled(scene, node), scene.parent(node)
    held = _property(scene, asked) if isinstance(asked, ast.Attribute) else ""
    if not name or getattr(asked, "attr", "") == "__call__":
        return
    if not held and not _differs(scene, node):
        return
    if held and isinstance(asked, ast.Attribute):
        node, text = asked, f"{held}.{asked.attr}.fget(self)"
    else:
        text = f"super({name}, self)"
    yield Rewriting(node, (graph_scope.edit(scene, node, scene.source.span(node), text),))


def _property(scene: Scene, asked: ast.Attribute) -> str:
    """Return the base that defines the property of ``super().gain``, where it has one base."""
    method = _method(scene, asked)
    if method is None or method.owner is None or len(method.owner.node.bases) != 1:
        return ""
    base = method.owner.node.bases[0]
    for atom in scene.kind(base):
        owner = scene.inference.program.classes.get(atom.name)
        found = owner.methods.get(asked.attr) if owner is not None else None
        if found is not None and found.decorated("property") and isinstance(base, ast.Name):
            return base.id
    return ""


# -- class methods ------------------------------------------------------------------------------


def marked(function: Function) -> ast.expr | None:
    """Return the ``classmethod`` above a method, if it is the only decorator."""
    if not isinstance(function.node, ast.FunctionDef) or len(function.node.decorator_list) != 1:
        return None
    (mark,) = function.node.decorator_list
    return mark if getattr(mark, "id", "") == "classmethod" else None


def _static(scene: Scene, function: Function, mark: ast.expr) -> tuple[Edit, ...]:
    """``@classmethod def scale(cls, x)`` is ``@staticmethod def scale(x)``, ``cls`` is ``Net``.

    A class method that uses its class stays one where a subclass may call it.
    """
    assert isinstance(function.node, ast.FunctionDef)
    arguments, source, owner = function.node.args, scene.source, function.owner
    if arguments.posonlyargs or not arguments.args or arguments.args[0].annotation is not None:
        return ()
    own = arguments.args[0].arg
    names = [n for s in function.node.body for n in within(s) if isinstance(n, ast.Name)]
    if any(n.id in ("super", "__class__") for n in names) or owner is None:
        return ()
    uses = [n for n in names if n.id == own]
    if uses and (_has_subclass(scene, owner) or owner.node.decorator_list):
        return ()
    if any(not isinstance(n.ctx, ast.Load) for n in uses):
        return ()
    reached = isinstance(scene.parent(owner.node), ast.Module)
    if uses and (not reached or owner.name in function.locals):
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
    gone = graph_scope.edit(scene, mark, Span(first.start, end))
    return (word, gone, *(graph_scope.edit(scene, n, source.span(n), owner.name) for n in uses))


# -- truth --------------------------------------------------------------------------------------


def _is_asked(scene: Scene, node: ast.expr) -> bool:
    """Return whether nothing but the truth of an expression is used."""
    child: ast.AST = node
    parent = scene.parent(node)
    while isinstance(parent, ast.BoolOp):
        child, parent = parent, scene.parent(parent)
    if isinstance(parent, ast.UnaryOp):
        return isinstance(parent.op, ast.Not)
    return getattr(parent, "test", None) is child


def _may_be_empty(scene: Scene, node: ast.expr) -> bool:
    """Return whether a Module has a length, and may have none in it."""
    kinds = without_none(scene.kind(node))
    if not kinds or not all(a.kind == "Module" for a in kinds):
        return False
    return any(
        ("::" in a.name and bool(scene.inference.member(a.name, "__len__")))
        or (a.name in _LISTED and not _is_filled(scene, node))
        for a in kinds
    )


def _is_filled(scene: Scene, node: ast.expr) -> bool:
    """Return whether a member is made with layers that are written: ``Sequential(conv, norm)``."""
    owner = scene.owner(node)
    if owner is None or not isinstance(node, ast.Attribute):
        return False
    if node.attr not in owner.stores or getattr(node.value, "id", "") != "self":
        return False
    made = [n for f in owner.stores[node.attr] for n in f.nodes if isinstance(n, ast.Assign)
            and any(getattr(t, "attr", "") == node.attr for t in n.targets)]  # fmt: skip
    return bool(made) and all(_has_layers(n.value) for n in made)


def _has_layers(value: ast.expr) -> bool:
    if isinstance(value, ast.IfExp):
        return _has_layers(value.body) and _has_layers(value.orelse)
    if isinstance(value, ast.Constant):
        return value.value is None
    given = value.args if isinstance(value, ast.Call) else []
    return any(not isinstance(a, ast.Starred) and not isinstance(a, ast.Name) for a in given)


def _truth(scene: Scene, node: ast.expr) -> Rewriting:
    text, root = scene.spelling.local("helpers.is_full")
    span = scene.source.span(node)
    made = graph_scope.edit(scene, node, span, f"{text}(", piece(scene.source, node, False), ")")
    return Rewriting(node, (replace(made, outcome=Outcome.HELPER, needs=frozenset((root,))),))
