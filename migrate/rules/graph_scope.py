"""In: a program. Out: the functions that graph mode compiles, and the nodes in them, by file."""

from __future__ import annotations

import ast
import keyword
from dataclasses import dataclass

from migrate.forward_names import line
from migrate.outcomes import Edit, Outcome, Site, Span
from migrate.program import Function
from migrate.receivers.inference import Inference
from migrate.rules import dead_branches, decorators
from migrate.rules.dead_branches import dead_spans
from migrate.scene import Scene
from migrate.syntax import ByClass, is_super, within

_ROOTS = {"mindspore", "ms", "nn", "ops", "mint", "np", "math"}  # what imports are going to bind
_TELLS = ("print", "warn", "warn_once", "debug", "info", "warning", "error")


Found = tuple[str, str, str, str]  # code, name, reason, next step


@dataclass(frozen=True)
class Rewriting:
    """The node that graph mode does not take, and the edits that give it another form.

    ``note`` tells what a user of the code may have to know; it makes the node a site, of this
    ``name``, with one edit.
    """

    node: ast.AST
    edits: tuple[Edit, ...]
    note: str = ""
    name: str = ""


@dataclass(frozen=True)
class Silent:
    """A node that graph mode gets wrong; ``before``: the statement that must not be compiled."""

    node: ast.AST
    found: Found
    before: ast.stmt | None = None


def compiled(inference: Inference) -> dict[str, Function]:
    """Return ``forward`` of every Module, hooks, and what they call, as far as calls are known.

    A method that is called on what nobody knows is that of every Module that has it.
    """
    notes = inference.program.notes
    if "compiled" not in notes:
        sure = _reached(inference, _roots(inference), guess=False)
        notes["surely compiled"] = frozenset(id(n) for f in sure.values() for n in f.nodes)
        notes["compiled"] = _reached(inference, list(sure.values()), guess=True)
    known: dict[str, Function] = notes["compiled"]
    return known


def is_sure(inference: Inference, node: ast.AST) -> bool:
    """Return whether compiled code holds a node, without a guess what a method belongs to."""
    compiled(inference)
    sure: frozenset[int] = inference.program.notes["surely compiled"]
    return id(node) in sure


def _roots(inference: Inference) -> list[Function]:
    found = [
        owner.methods["forward"]
        for owner in inference.program.classes.values()
        if "forward" in owner.methods and inference.is_module(owner.key)
    ]
    return found + _hooks(inference)


def _reached(inference: Inference, roots: list[Function], guess: bool) -> dict[str, Function]:
    found: dict[str, Function] = {}
    waiting = roots
    while waiting:
        function = waiting.pop()
        if function.key not in found:
            found[function.key] = function
            waiting += _called(inference, function, guess)
            waiting += decorators.around(inference, function)
    return found


def compiled_here(scene: Scene) -> tuple[Function, ...]:
    """Those of the scene's file, in the same order."""
    notes = scene.inference.program.notes
    if "compiled by file" not in notes:
        by_file: dict[str, list[Function]] = {}
        for function in compiled(scene.inference).values():
            by_file.setdefault(function.path, []).append(function)
        notes["compiled by file"] = by_file
    found: dict[str, list[Function]] = notes["compiled by file"]
    return tuple(found.get(scene.file.path, ()))


def _called(inference: Inference, function: Function, guess: bool) -> list[Function]:
    program = inference.program
    called: list[Function] = []
    for node in function.of(ast.Call, ast.Attribute):
        if isinstance(node, ast.Call):
            kind = inference.kinds.get(id(node.func), ())
            for atom in kind:
                if atom.kind in ("function", "method"):
                    target = program.functions.get(atom.name)
                    owner = target.owner if target is not None else None
                    called += [target] if target is not None else []
                    if owner is not None and target is not None:
                        called += _inherited(inference, owner.key, target.name)
            open_ = guess and all(a.kind == "unknown" for a in kind)
            if open_ and isinstance(node.func, ast.Attribute):
                called += _methods(inference).get(node.func.attr, [])
        elif isinstance(node, ast.Attribute) and node.attr in _properties(inference):
            keys = {a.name for a in inference.kinds.get(id(node.value), ())}
            called += [f for key in keys & program.classes.keys()
                       for f in _inherited(inference, key, node.attr)
                       if f in _properties(inference)[node.attr]]  # fmt: skip
        if isinstance(node, ast.Attribute) and is_super(node.value):
            method: Function | None = function
            while method is not None and method.owner is None:
                method = method.parent
            owner = method.owner if method is not None else None
            if owner is not None:  # a class between it and its base may stand in a subclass
                called += _inherited(inference, owner.key, node.attr)
    return called


def _inherited(inference: Inference, key: str, name: str) -> list[Function]:
    """Return the methods of this name that an object of a class may have, or lead to: also of
    classes beside it that a subclass derives from."""
    classes, notes = inference.program.classes, inference.program.notes
    families: dict[str, list[str]] = notes.setdefault("families", {})
    if key not in families:
        objects = [classes[key], *inference.summaries.graph.derived(classes[key])]
        families[key] = sorted({k for owner in objects for k in line(inference, owner.key)})
    return [classes[k].methods[name] for k in families[key] if name in classes[k].methods]


def _properties(inference: Inference) -> dict[str, list[Function]]:
    """Return the properties of the program's classes by their names."""
    notes = inference.program.notes
    if "properties" not in notes:
        found: dict[str, list[Function]] = {}
        for owner in inference.program.classes.values():
            for name, method in owner.methods.items():
                if method.decorated("property", "cached_property"):
                    found.setdefault(name, []).append(method)
        notes["properties"] = found
    properties: dict[str, list[Function]] = notes["properties"]
    return properties


def _hooks(inference: Inference) -> list[Function]:
    """Return the functions that are registered as hooks: graph mode compiles them as well."""
    found = []
    for name, sites in inference.program.calls.items():
        if not (name.startswith("register_") and name.endswith("hook")):
            continue
        for file, call, _ in sites:
            for given in (*call.args, *(k.value for k in call.keywords)):
                if isinstance(given, ast.Lambda):
                    found.append(file.functions[id(given)])
                for atom in inference.kinds.get(id(given), ()):
                    target = inference.program.functions.get(atom.name)
                    found += [target] if target is not None else []
    return found


def _methods(inference: Inference) -> dict[str, list[Function]]:
    """The methods of Modules by their names, for calls on what nobody knows: what is a layer there
    may be one of them. Names that Python's own types have are left out."""
    notes = inference.program.notes
    if "methods of modules" not in notes:
        found: dict[str, list[Function]] = {}
        for owner in inference.program.classes.values():
            for name, method in owner.methods.items():
                others = any(hasattr(t, name) for t in (dict, list, str, set, tuple))
                if not others and not name.startswith("__") and inference.is_module(owner.key):
                    found.setdefault(name, []).append(method)
        notes["methods of modules"] = found
    methods: dict[str, list[Function]] = notes["methods of modules"]
    return methods


def nodes(scene: Scene, *kinds: type[ast.AST]) -> tuple[ast.AST, ...]:
    """The nodes of a file that are compiled, in the order of the file; those of some classes."""
    if kinds:
        if "graph nodes by class" not in scene._memo:
            scene._memo["graph nodes by class"] = ByClass(nodes(scene))
        by_class = scene._memo["graph nodes by class"]
        assert isinstance(by_class, ByClass)
        return by_class.of(*kinds)
    if "graph nodes" not in scene._memo:
        inside: set[int] = set()
        for function in compiled_here(scene):
            head = [function.node.args, *getattr(function.node, "decorator_list", ())]
            head += [r for r in [getattr(function.node, "returns", None)] if r is not None]
            apart = {id(function.node), *(id(n) for part in head for n in within(part))}
            inside |= {*map(id, function.nodes)} - apart
        dead = dead_spans(scene) if inside else ()
        found = [n for n in scene.file.nodes if id(n) in inside]
        scene._memo["graph nodes"] = tuple(
            n for n in found if not _within(scene, n, dead) and not dead_branches.goes(scene, n)
        )
    every = scene._memo["graph nodes"]
    assert isinstance(every, tuple)
    return every


def _within(scene: Scene, node: ast.AST, spans: tuple[Span, ...]) -> bool:
    if not spans or not isinstance(node, (ast.expr, ast.stmt)):
        return False  # a handler or a pattern has no span of its own
    own = scene.source.span(node)
    return any(s.start <= own.start and own.end <= s.end for s in spans)


def only_tells(scene: Scene, node: ast.AST) -> bool:
    """Whether a value goes into a message: of an error, an assertion or a log."""
    current: ast.AST | None = node
    while current is not None and not isinstance(current, (ast.Raise, ast.Assert)):
        if isinstance(current, ast.Call) and is_message(current):
            return True
        if isinstance(current, ast.stmt):
            return False
        current = scene.parent(current)
    return current is not None


def is_message(call: ast.Call) -> bool:
    """``print(...)``, ``logger.warning(...)``."""
    return getattr(call.func, "attr", getattr(call.func, "id", "")) in _TELLS


def edit(scene: Scene, node: ast.AST, span: Span, *parts: object) -> Edit:
    """An edit that takes the place of a span; it counts as no reference of its own."""
    base = scene.site("graph form", node)
    return Edit(Site(base.name, span, base.line, base.column), Outcome.CONVERTED, parts)  # type: ignore[arg-type]


def foreign(scene: Scene, node: ast.AST, *names: str) -> bool:
    """Whether an expression is surely one of these names of other libraries."""
    kind = scene.kind(node)
    return bool(kind) and all(a.kind == "foreign" and a.name in names for a in kind)


def builtin(scene: Scene, node: ast.AST, name: str) -> bool:
    """Whether an expression is Python's own function of that name."""
    named = isinstance(node, ast.Name) and node.id == name
    return named and any(a.kind == "builtin" for a in scene.kind(node))


def begins_line(scene: Scene, statement: ast.stmt) -> bool:
    """Whether something can be put before the statement: it begins its line and is no elif."""
    source, start = scene.source, scene.source.span(statement).start
    alone = not source.data[source.line_start(statement.lineno) : start].strip()
    return alone and source.data[start : start + 4] != b"elif"


def statements_after(scene: Scene, statement: ast.stmt) -> list[ast.stmt]:
    """The statements that follow in the same block."""
    parent = scene.parent(statement)
    for name in ("body", "orelse", "finalbody"):
        block = getattr(parent, name, None)
        if isinstance(block, list) and any(s is statement for s in block):
            return block[[s is statement for s in block].index(True) + 1 :]
    return []


def free_local(scene: Scene, function: Function, member: str) -> str:
    """The name of a local variable that takes the place of a member."""
    local = member.lstrip("_") or member
    taken = {n.id for n in ast.walk(function.node) if isinstance(n, ast.Name)} | _ROOTS
    while local in function.locals | taken or local in scene.file.top or keyword.iskeyword(local):
        local += "_"
    return local


def taken_hold(scene: Scene, node: ast.expr) -> bool:
    """Whether the place takes hold of a part of a comparison; ``and`` and ``not`` do not."""
    parent = scene.parent(node)
    loose = isinstance(parent, ast.BoolOp) or (
        isinstance(parent, ast.UnaryOp) and isinstance(parent.op, ast.Not)
    )
    return scene.is_tight(node) and not loose


def bound_name(node: ast.AST) -> str:
    """The name that an import, a definition, a parameter or a variable binds; "" for all else."""
    if isinstance(node, ast.alias):
        return (node.asname or node.name).partition(".")[0]
    if isinstance(node, ast.Name):
        return "" if isinstance(node.ctx, ast.Load) else node.id
    if isinstance(node, ast.arg):
        return node.arg
    defined = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
    return node.name if defined else ""  # type: ignore[attr-defined]
