"""Find the functions that graph mode compiles, and share what every rule for them needs."""

from __future__ import annotations

import ast
import keyword
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

from migrate.analysis.program import Function, method_of
from migrate.analysis.types.inference import Inference
from migrate.codegen.substitution import added, joined, piece
from migrate.records.outcomes import Edit, Lines, Outcome, Part, Piece, Span, Wrap
from migrate.rules import dead_branches, decorators
from migrate.rules.autograd_function import planned
from migrate.rules.dead_branches import dead_spans
from migrate.sites.forward_names import line
from migrate.sites.scene import Scene, once, once_a_file
from migrate.syntax.trees import ByClass, all_names, is_super, last_name, within

_ROOTS = {"mindspore", "ms", "nn", "ops", "mint", "np", "math"}  # what imports are going to bind
_TELLS = ("print", "warn", "warn_once", "debug", "info", "warning", "error")

Found = tuple[str, str, str, str]  # code, name, reason, next step
Text = str | Piece
Rule = TypeVar("Rule")


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


# A check of one node: its edits in the order of the text, or None where the node stays.
Made = Edit | tuple[Edit, ...] | Rewriting | None
Check = Callable[[Scene, Any], Made]
Checks = dict[type[ast.AST], tuple[Check, ...]]


def checked(scene: Scene, checks: Checks) -> Iterator[Rewriting]:
    """Yield what the first check of its class that has an answer makes of each compiled node."""
    for node in nodes(scene, *checks):
        for check in checks[type(node)]:
            made = check(scene, node)
            if made:
                edits = made if isinstance(made, (tuple, Rewriting)) else (made,)
                yield edits if isinstance(edits, Rewriting) else Rewriting(node, edits)
                break


# A check of one node that graph mode gets wrong, or refuses: what is said of it, or None.
Finding = Callable[[Scene, Any], Found | Silent | None]
Findings = dict[type[ast.AST], tuple[Finding, ...]]


def found(scene: Scene, findings: Findings) -> Iterator[Silent]:
    """Yield what the first check of its class that has an answer says of each compiled node."""
    for node in nodes(scene, *findings):
        for finding in findings[type(node)]:
            said = finding(scene, node)
            if said is not None:
                yield said if isinstance(said, Silent) else Silent(node, said)
                break


def merged(
    *tables: dict[type[ast.AST], tuple[Rule, ...]],
) -> dict[type[ast.AST], tuple[Rule, ...]]:
    """Return one table of several; checks of a class come in the order of the tables."""
    every: dict[type[ast.AST], tuple[Rule, ...]] = {}
    for table in tables:
        for kind, checks in table.items():
            every[kind] = every.get(kind, ()) + checks
    return every


def unless_told(*checks: Check) -> tuple[Check, ...]:
    """Return the checks without what is for a message alone."""

    def outside(check: Check, scene: Scene, node: ast.AST) -> Made:
        made = check(scene, node)
        return made if made and not only_tells(scene, node) else None

    return tuple(partial(outside, check) for check in checks)


# -- what is compiled ---------------------------------------------------------------------------


@once
def compiled(inference: Inference) -> dict[str, Function]:
    """Return ``forward`` of every Module, hooks, and what they call, as far as calls are known.

    A method that is called on what nobody knows is that of every Module that has it.
    """
    return _reached(inference, list(_surely_compiled(inference).values()), guess=True)


@once
def _surely_compiled(inference: Inference) -> dict[str, Function]:
    owners = inference.program.classes.values()
    found = [o.methods["forward"] for o in owners
             if "forward" in o.methods and inference.is_module(o.key)]  # fmt: skip
    return _reached(inference, found + _hooks(inference), guess=False)


@once
def _sure_nodes(inference: Inference) -> frozenset[int]:
    return frozenset(id(n) for f in _surely_compiled(inference).values() for n in f.nodes)


def is_sure(inference: Inference, node: ast.AST) -> bool:
    """Return whether compiled code holds a node, without a guess what a method belongs to."""
    return id(node) in _sure_nodes(inference)


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


@once
def _compiled_by_file(inference: Inference) -> dict[str, list[Function]]:
    by_file: dict[str, list[Function]] = {}
    for function in compiled(inference).values():
        by_file.setdefault(function.path, []).append(function)
    return by_file


def compiled_here(scene: Scene) -> tuple[Function, ...]:
    """Return those of the scene's file, in the same order."""
    return tuple(_compiled_by_file(scene.inference).get(scene.file.path, ()))


def stays_function(inference: Inference, function: Function, call: ast.Call) -> bool:
    """Return whether a call applies an autograd Function that does not become a Cell."""
    owner, applies = function.owner, getattr(call.func, "attr", "") == "apply"
    if not applies or owner is None or not inference.is_function(owner.key):
        return False
    return isinstance(planned(inference, owner), str)


def _called(inference: Inference, function: Function, guess: bool) -> list[Function]:
    program = inference.program
    called: list[Function] = []
    for node in function.of(ast.Call, ast.Attribute):
        if isinstance(node, ast.Call):
            kind = inference.kind(node.func)
            for atom in kind:
                if atom.kind in ("function", "method"):
                    target = program.functions.get(atom.name)
                    if target is not None and stays_function(inference, target, node):
                        continue
                    owner = target.owner if target is not None else None
                    called += [target] if target is not None else []
                    if owner is not None and target is not None:
                        called += _inherited(inference, owner.key, target.name)
            open_ = guess and all(a.kind == "unknown" for a in kind)
            if open_ and isinstance(node.func, ast.Attribute):
                called += _methods(inference).get(node.func.attr, [])
        elif isinstance(node, ast.Attribute) and node.attr in _properties(inference):
            keys = {a.name for a in inference.kind(node.value)}
            kin = {k for key in keys & program.classes.keys() for k in _family(inference, key)}
            called += [f for f in _properties(inference)[node.attr]
                       if f.owner is not None and f.owner.key in kin]  # fmt: skip
        if isinstance(node, ast.Attribute) and is_super(node.value):
            method = method_of(function)
            owner = method.owner if method is not None else None
            if owner is not None:  # a class between it and its base may stand in a subclass
                called += _inherited(inference, owner.key, node.attr)
    return called


@once
def _families(inference: Inference) -> dict[str, list[str]]:
    return {}


def _inherited(inference: Inference, key: str, name: str) -> list[Function]:
    """Return the methods of this name that an object of a class may have, or lead to."""
    classes = inference.program.classes
    family = _family(inference, key)
    return [classes[k].methods[name] for k in family if name in classes[k].methods]


def _family(inference: Inference, key: str) -> list[str]:
    """Return the classes above and below one, and those beside it that a subclass derives from."""
    classes, families = inference.program.classes, _families(inference)
    if key not in families:
        objects = [classes[key], *inference.summaries.graph.derived(classes[key])]
        families[key] = sorted({k for owner in objects for k in line(inference, owner.key)})
    return families[key]


@once
def _properties(inference: Inference) -> dict[str, list[Function]]:
    """Return the properties of the program's classes by their names."""
    found: dict[str, list[Function]] = {}
    for file in inference.program.files.values():
        for function in file.functions.values():  # a setter has the key of its property
            if function.owner is not None and function.decorated("property", "cached_property"):
                found.setdefault(function.name, []).append(function)
    return found


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
                for atom in inference.kind(given):
                    target = inference.program.functions.get(atom.name)
                    found += [target] if target is not None else []
    return found


@once
def _methods(inference: Inference) -> dict[str, list[Function]]:
    """Return the methods of Modules by their names, for calls on what nobody knows: what is a layer
    there may be one of them. Names that Python's own types have are left out."""
    found: dict[str, list[Function]] = {}
    for owner in inference.program.classes.values():
        for name, method in owner.methods.items():
            others = any(hasattr(t, name) for t in (dict, list, str, set, tuple))
            if not others and not name.startswith("__") and inference.is_module(owner.key):
                found.setdefault(name, []).append(method)
    return found


@once_a_file
def _by_class(scene: Scene) -> ByClass:
    return ByClass(_every(scene))


@once_a_file
def _every(scene: Scene) -> tuple[ast.AST, ...]:
    inside: set[int] = set()
    for function in compiled_here(scene):
        head = [function.node.args, *getattr(function.node, "decorator_list", ())]
        head += [r for r in [getattr(function.node, "returns", None)] if r is not None]
        apart = {id(function.node), *(id(n) for part in head for n in within(part))}
        inside |= {*map(id, function.nodes)} - apart
    if not inside:
        return ()
    dead = dead_spans(scene)
    found = (n for n in scene.file.nodes if id(n) in inside)
    return tuple(
        n for n in found if not _within(scene, n, dead) and not dead_branches.goes(scene, n)
    )


def nodes(scene: Scene, *kinds: type[ast.AST]) -> tuple[ast.AST, ...]:
    """Return the compiled nodes of a file, in the order of the file; those of some classes."""
    return _by_class(scene).of(*kinds) if kinds else _every(scene)


def _within(scene: Scene, node: ast.AST, spans: tuple[Span, ...]) -> bool:
    if not spans or not isinstance(node, (ast.expr, ast.stmt)):
        return False  # a handler or a pattern has no span of its own
    return scene.source.span(node).lies_in(spans)


# -- questions about a node ---------------------------------------------------------------------


def only_tells(scene: Scene, node: ast.AST) -> bool:
    """Return whether a value is for a message alone: of an error, an assertion or a log."""
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
    return last_name(call.func) in _TELLS


def foreign(scene: Scene, node: ast.AST, *names: str) -> bool:
    """Return whether an expression is surely one of these names of other libraries."""
    kind = scene.kind(node)
    return bool(kind) and all(a.kind == "foreign" and a.name in names for a in kind)


def builtin(scene: Scene, node: ast.AST, name: str) -> bool:
    """Return whether an expression is Python's own function of that name."""
    named = isinstance(node, ast.Name) and node.id == name
    return named and any(a.kind == "builtin" for a in scene.kind(node))


def statements_after(scene: Scene, statement: ast.stmt) -> list[ast.stmt]:
    """Return the statements that follow in the same block."""
    parent = scene.parent(statement)
    for name in ("body", "orelse", "finalbody"):
        block = getattr(parent, name, None)
        if isinstance(block, list) and any(s is statement for s in block):
            return block[[s is statement for s in block].index(True) + 1 :]
    return []


def holds(whole: ast.AST, node: ast.AST) -> bool:
    """Return whether a node is, or is inside of, another."""
    return any(n is node for n in within(whole))


def root(node: ast.expr) -> ast.expr:
    """Return what a chain of attributes and items begins with."""
    while isinstance(node, (ast.Subscript, ast.Attribute)):
        node = node.value
    return node


def free_local(scene: Scene, function: Function, member: str) -> str:
    """Return the name of a local variable that takes the place of a member."""
    local = member.lstrip("_") or member
    taken = all_names(function.node) | _ROOTS
    while local in function.locals | taken or local in scene.file.top or keyword.iskeyword(local):
        local += "_"
    return local


def bound_name(node: ast.AST) -> str:
    """Return what an import, a definition, a parameter or a variable binds; "" for all else."""
    if isinstance(node, ast.alias):
        return (node.asname or node.name).partition(".")[0]
    if isinstance(node, ast.Name):
        return "" if isinstance(node.ctx, ast.Load) else node.id
    if isinstance(node, ast.arg):
        return node.arg
    defined = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
    return node.name if defined else ""  # type: ignore[attr-defined]


# -- edits --------------------------------------------------------------------------------------


def edit(scene: Scene, node: ast.AST, span: Span, *parts: Text) -> Edit:
    """Return an edit that takes the place of a span; it counts as no reference of its own."""
    return Edit(scene.site("graph form", node).at(span), Outcome.CONVERTED, parts)


def whole(scene: Scene, node: ast.AST, *parts: Text) -> Edit:
    """Return an edit that takes the place of a node."""
    return edit(scene, node, scene.source.span(node), *parts)


def instead(scene: Scene, node: ast.stmt, *lines: Sequence[Text]) -> Lines:
    """Return an edit that puts lines in the place of a statement."""
    parts = joined(scene.source, lines)
    return Lines(scene.site("graph form", node), Outcome.CONVERTED, parts)


def around(scene: Scene, node: ast.expr, before: str, behind: str) -> Edit:
    """Return an edit that puts text around an expression, whatever becomes of that."""
    site = scene.site("graph form", node)
    return Wrap(site, Outcome.CONVERTED, (before, piece(scene.source, node), behind))


def part(scene: Scene, node: ast.AST, of: Part, *parts: Text) -> Edit:
    """Return an edit of a part of a node that the standard library's tree has no node for."""
    return added(scene.source, scene.site("graph form", node), node, of, *parts)


def helping(scene: Scene, helper: str, make: Callable[[str], Edit]) -> Edit:
    """Return the edit that is made of the name by which a file has a helper."""
    text, needed = scene.spelling.local(f"helpers.{helper}")
    return replace(make(text), outcome=Outcome.HELPER, needs=frozenset((needed,)))


def called(scene: Scene, node: ast.AST, helper: str, *given: Text | ast.expr) -> Edit:
    """Return an edit that puts the call of a helper in the place of a node.

    ``given``: its arguments, expressions and texts, with what separates them.
    """
    parts = [piece(scene.source, g) if isinstance(g, ast.expr) else g for g in given]
    return helping(scene, helper, lambda text: whole(scene, node, f"{text}(", *parts, ")"))


def helped(scene: Scene, node: ast.expr, helper: str) -> Edit:
    """Return an edit that puts the name of a helper in the place of a node."""
    return helping(scene, helper, lambda text: whole(scene, node, text))


def listed(values: Iterable[ast.expr | Text]) -> list[ast.expr | Text]:
    """Return some values with a comma before each: the further arguments of a call."""
    return [part for value in values for part in (", ", value)]
