"""What ``forward`` puts on ``self``: a local variable where it is for itself, else ``keep(...)``.

What no code of the program reads is for the eye, feature maps and attention weights: PyNative goes
on keeping it; graph mode, which cannot, computes without it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from migrate.forward_names import line
from migrate.outcomes import Outcome
from migrate.program import Class, Function, Program
from migrate.receivers.kinds import is_all
from migrate.rules import graph_scope
from migrate.rules.graph_scope import Rewriting, compiled_here
from migrate.scene import Scene
from migrate.syntax import within
from migrate.templates import piece

NOTE = "a local variable now: graph mode keeps no Tensors on self, and no code reads it there"
_LOOKS_ON = frozenset({"__setattr__", "__getattr__", "__getattribute__", "__delattr__"})


def rewrites(scene: Scene) -> Iterator[Rewriting]:
    """``self.h = f(x)``, ``g(self.h)`` is ``h = f(x)``, ``g(h)`` where nobody else looks at it."""
    for name, function, uses in kept(scene):
        if _is_local(scene, function, name, uses):
            local = graph_scope.free_local(scene, function, name)
            for use in uses:
                made = graph_scope.edit(scene, use, scene.source.span(use), local)
                note = NOTE if use is uses[0] else ""
                yield Rewriting(use, (made,), note, f"self.{name}")
    yield from _keeping(scene)


def kept(scene: Scene) -> Iterator[tuple[str, Function, list[ast.Attribute]]]:
    """Each attribute that a compiled method binds anew, with its uses there in text order."""
    for function in compiled_here(scene):
        owner = function.owner
        if owner is None or not scene.is_module_class(owner):
            continue
        first = function.parameters[0].arg if function.parameters else ""
        found: dict[str, list[ast.Attribute]] = {}
        for node in function.of(ast.Attribute) if first else ():
            if isinstance(node, ast.Attribute) and getattr(node.value, "id", "") == first:
                found.setdefault(node.attr, []).append(node)
        for name, uses in found.items():
            if any(isinstance(u.ctx, ast.Store) and not _only_moves(scene, u) for u in uses):
                yield name, function, sorted(uses, key=lambda u: scene.source.span(u).start)


def _only_moves(scene: Scene, use: ast.Attribute) -> bool:
    """``self.eps = self.eps.to(x.device)``: a statement that goes, as there is one device."""
    statement = scene.parent(use)
    value = statement.value if isinstance(statement, ast.Assign) else None
    func = value.func if isinstance(value, ast.Call) else None
    if not isinstance(value, ast.Call) or not isinstance(func, ast.Attribute):
        return False
    given = [*value.args, *(k.value for k in value.keywords if k.arg == "device")]
    if ast.unparse(func.value) != ast.unparse(use) or len(given) > 1:
        return False
    if len(given) < len(value.args) + len(value.keywords):
        return False
    if not given:
        return func.attr in ("cuda", "cpu")
    named = isinstance(given[0], ast.Attribute) and given[0].attr == "device"
    return func.attr in ("to", "cuda") and (named or is_all(scene.kind(given[0]), "device", "str"))


def is_parameter(scene: Scene, use: ast.Attribute) -> bool:
    """Buffers and Parameters are Parameters of the Cell: graph mode assigns to them."""
    owner = scene.owner(use)
    if owner is None:
        return False
    return any(use.attr in _declared(node) for node in ast.walk(owner.node))


def _declared(node: ast.AST) -> list[str]:
    """The members that a statement makes buffers or Parameters."""
    if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
        registers = getattr(node.func, "attr", "") in ("register_buffer", "register_parameter")
        return [str(node.args[0].value)] if registers else []
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
        made = node.value.func
        if getattr(made, "attr", getattr(made, "id", "")) == "Parameter":
            return [getattr(t, "attr", "") for t in node.targets]
    return []


def _is_local(scene: Scene, function: Function, name: str, uses: list[ast.Attribute]) -> bool:
    """Bound and read here, and no other place knows the name.

    What the constructor sets to None is no reader; a buffer or child is bound there otherwise.
    """
    if not starts_local(scene, function, uses):
        return False
    if not any(isinstance(u.ctx, ast.Load) for u in uses):
        return False
    return known_only(scene, function, name, uses, partial(is_empty_start, function=function))


def starts_local(scene: Scene, function: Function, uses: list[ast.Attribute]) -> bool:
    """First a plain assignment that always runs, then nothing but reads."""
    body, first = function.node.body, scene.statement(uses[0])
    if not isinstance(body, list) or not any(s is first for s in body):
        return False
    if not isinstance(first, ast.Assign) or first.targets != [uses[0]]:
        return False
    if len([u for u in uses if scene.statement(u) is first]) > 1 or by_other_names(function):
        return False
    return not any(scene.function(u) is not function or changes(scene, u) for u in uses)


def known_only(
    scene: Scene,
    function: Function,
    name: str,
    uses: Sequence[ast.AST],
    harmless: Callable[[Scene, ast.Attribute], bool],
) -> bool:
    """Whether no place of the program but these uses, and harmless ones, knows the member."""
    assert function.owner is not None
    mine = {id(u) for u in uses}
    kin = family(scene, function.owner.key)
    if any(answers(scene.inference.program.classes[key], name) for key in kin):
        return False
    for place in known_places(scene.inference.program, name):
        if id(place) in mine or _is_others(scene, kin, place):
            continue
        if not isinstance(place, ast.Attribute) or not harmless(scene, place):
            return False
    return True


def family(scene: Scene, key: str) -> frozenset[str]:
    """The classes whose objects may be of this class too: below it, and above those."""
    lines = (line(scene.inference, other) for other in scene.inference.program.classes)
    return frozenset(name for above in lines if key in above for name in above)


def answers(owner: Class, name: str) -> bool:
    """Whether a class has code that runs where a member is bound or read: a property, mostly."""
    if name in owner.methods or not _LOOKS_ON.isdisjoint(owner.methods):
        return True
    made = (s for s in owner.node.body if isinstance(s, ast.Assign))
    return any(
        isinstance(s.value, ast.Call) and any(getattr(t, "id", "") == name for t in s.targets)
        for s in made
    )


def _is_others(scene: Scene, family: frozenset[str], node: ast.AST) -> bool:
    """A member of what is surely no object of the class."""
    if not isinstance(node, ast.Attribute):
        return False
    kind = scene.inference.kinds.get(id(node.value), frozenset())
    return bool(kind) and all(
        a.kind == "Tensor"
        or (a.kind in ("Module", "Object") and "::" in a.name and a.name not in family)
        for a in kind
    )


def changes(scene: Scene, use: ast.expr) -> bool:
    """In-place changes have rules of their own, which write the attribute out."""
    parent = scene.parent(use)
    if isinstance(parent, ast.Subscript):
        return not isinstance(parent.ctx, ast.Load)
    in_place = isinstance(parent, ast.Attribute) and parent.attr.endswith("_")
    return in_place or isinstance(parent, (ast.AugAssign, ast.Delete))


def by_other_names(function: Function) -> bool:
    """Whether the class reads its members by names that it makes up."""
    owner = function.owner
    for node in within(owner.node) if owner else ():
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("getattr", "vars"):
            if len(node.args) < 2 or not isinstance(node.args[1], ast.Constant):
                return True
        elif isinstance(node, ast.Attribute) and node.attr == "__dict__":
            return True
    return False


def is_empty_start(scene: Scene, node: ast.Attribute, function: Function) -> bool:
    """``self.name = None`` in the constructor of the same class."""
    start = function.owner.methods.get("__init__") if function.owner else None
    if start is None or start.path != scene.file.path:
        return False
    parent = scene.parent(node)
    empty = isinstance(parent, ast.Assign) and parent.targets == [node]
    value = parent.value if isinstance(parent, ast.Assign) else None
    nothing = isinstance(value, ast.Constant) and value.value is None
    return empty and nothing and scene.function(node) is start


def known_places(program: Program, name: str) -> list[ast.AST]:
    """Every attribute and every text of the program of that name: who may know a member."""
    if "attributes" not in program.notes:
        found: dict[str, list[ast.AST]] = {}
        for file in program.files.values():
            for node in file.of(ast.Attribute):
                found.setdefault(node.attr, []).append(node)
            for text in file.of(ast.Constant):
                if isinstance(text.value, str):
                    found.setdefault(text.value, []).append(text)
        program.notes["attributes"] = found
    known: dict[str, list[ast.AST]] = program.notes["attributes"]
    return known.get(name, [])


# -- what is kept for others --------------------------------------------------------------------

KEPT = "kept in PyNative only, where no code of the program reads it; graph mode cannot"


def _keeping(scene: Scene) -> Iterator[Rewriting]:
    """``self.last = y`` is ``keep(self, "last", y)``."""
    for name, function, uses in kept(scene):
        statements = [_plain(scene, use) for use in uses]
        if None in statements or by_other_names(function):
            continue
        if any(scene.function(use) is not function for use in uses):
            continue
        empty = partial(is_empty_start, function=function)
        if not known_only(scene, function, name, uses, empty):
            continue
        helper, root = scene.spelling.local("helpers.keep")
        own = function.parameters[0].arg
        for use, value in zip(uses, statements, strict=True):
            assert value is not None
            head = f'{helper}({own}, "{name}", '
            span = scene.source.span(scene.statement(use))
            made = graph_scope.edit(scene, use, span, head, piece(scene.source, value, False), ")")
            made = replace(made, outcome=Outcome.HELPER, needs=frozenset((root,)))
            yield Rewriting(use, (made,), KEPT, f"self.{name}")


def _plain(scene: Scene, use: ast.Attribute) -> ast.expr | None:
    """The value of ``self.name = value``; none that binds something anew, as ``y.add_(1)`` does."""
    statement = scene.parent(use)
    if not isinstance(statement, ast.Assign) or statement.targets != [use]:
        return None
    for node in ast.walk(statement.value):
        if isinstance(node, ast.Attribute) and node.attr.endswith("_"):
            return None
    return statement.value
