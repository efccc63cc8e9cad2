"""Decide which writes of compiled code into fields of records are seen by all that hold them.

Graph mode binds the variable anew where ``out["logits"] = y`` is written: another name for the same
record keeps what it had. So a variable must have got its record from a call, and whoever was handed
the record before it is written is flagged.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from migrate.analysis.program import Function
from migrate.analysis.types.inference import Inference
from migrate.analysis.types.kinds import Atom, Kind

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_THROUGH = (ast.Tuple, ast.keyword, ast.BoolOp, ast.IfExp)
_HELD = (ast.Attribute, ast.Subscript)
_ASKING = (ast.Attribute, ast.Compare, ast.UnaryOp, ast.If, ast.IfExp, ast.While, ast.Assert)


def is_own(inference: Inference, function: Function, node: ast.Attribute) -> bool:
    """``out.logits = y`` of a variable that holds nothing but what calls gave it."""
    name = node.value
    if not isinstance(name, ast.Name) or name.id not in function.locals:
        return False
    if name.id in {p.arg for p in function.parameters}:
        return False
    bound = [n for n in ast.walk(function.node) if _binds(n, name.id)]
    plain = [s for s in ast.walk(function.node) if isinstance(s, ast.Assign)]
    given = [s for s in plain if any(t is b for b in bound for t in _flat(s.targets))]
    found = {id(t) for s in given for t in _flat(s.targets)}
    written = any(t is node for s in plain for t in s.targets)
    inner = [n for n in ast.walk(function.node) if isinstance(n, _FUNCTIONS)]
    closed = any(part is node for n in inner if n is not function.node for part in ast.walk(n))
    known = any(a.kind == "Object" for a in _kind(inference, name))
    made = all(_is_made(inference, s, known) for s in given)
    return written and not closed and made and all(id(b) in found for b in bound)


def handed_on(
    inference: Inference, function: Function, is_record: Callable[[ast.AST], bool]
) -> Iterator[ast.expr]:
    """Where a record goes that is written below, in the same loop, or by those who call."""
    for part in _returned(function):
        held = isinstance(part, _HELD)
        if held and is_record(part):
            yield part
    writes = [n for n in function.nodes if _stores(n) and is_record(n.value)]  # type: ignore[attr-defined]
    names = {n.value.id for n in writes if isinstance(n.value, ast.Name)}  # type: ignore[attr-defined]
    given = {p.arg for p in function.parameters}
    returned = {n.id for n in _returned(function) if isinstance(n, ast.Name)}
    for node, parent in _leaving(inference, function):
        if not is_record(node):
            continue
        if isinstance(parent, ast.Return):
            if node.id in given:
                yield node
        elif (
            node.id in returned
            or node.id in given
            or (node.id in names and _before(inference, function, node, writes))
        ):
            yield node


def _binds(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name and not isinstance(node.ctx, ast.Load)


def _flat(targets: list[ast.expr]) -> list[ast.expr]:
    found: list[ast.expr] = []
    for target in targets:
        found += _flat(target.elts) if isinstance(target, (ast.Tuple, ast.List)) else [target]
    return found


def _is_made(inference: Inference, statement: ast.Assign, known: bool) -> bool:
    """What a function gives, a new object, or nothing: no other name for what is there already."""
    value = statement.value
    if len(statement.targets) != 1 or not isinstance(value, (ast.Call, ast.Constant)):
        return False
    if isinstance(value, ast.Constant) or (known and _is_known(inference, value)):
        return True
    return all(_gives_new(inference, value.func, atom) for atom in _kind(inference, value.func))


def _gives_new(inference: Inference, func: ast.expr, atom: Atom) -> bool:
    """A class does, and what is called without being known, if it takes nothing out of a list or
    dict; of a function of the project it is looked at what it returns."""
    program = inference.program
    if atom.kind in ("class", "partial"):
        return True
    if atom.kind == "unknown":
        name = getattr(func, "attr", "")
        return not any(hasattr(t, name) for t in (list, dict, set, tuple))
    owner = program.classes.get(atom.name) if atom.kind == "Module" else None
    target = owner.methods.get("forward") if owner else program.functions.get(atom.name)
    if atom.kind not in ("Module", "function", "method") or (atom.kind != "Module" and not target):
        return False
    given = {p.arg for p in target.parameters} if target else set()
    held = [p for p in (_returned(target) if target else ()) if isinstance(p, _HELD)
            or getattr(p, "id", "") in given]  # fmt: skip
    return not any(a.kind == "unknown" for p in held for a in _kind(inference, p))


def _stores(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)


def _returned(function: Function) -> Iterator[ast.expr]:
    for node in function.nodes:
        if isinstance(node, ast.Return) and node.value is not None:
            yield from _flat([node.value])


def _leaving(inference: Inference, function: Function) -> Iterator[tuple[ast.Name, ast.AST]]:
    """The uses of a variable that take the record itself: no field of it, no test, and no call
    whose function is looked at for itself."""
    parents = {id(c): n for n in ast.walk(function.node) for c in ast.iter_child_nodes(n)}
    for node in function.nodes:
        if not isinstance(node, ast.Name) or not isinstance(node.ctx, ast.Load):
            continue
        child: ast.AST = node
        parent = parents.get(id(node), function.node)
        while isinstance(parent, _THROUGH) and getattr(parent, "test", None) is not child:
            child, parent = parent, parents[id(parent)]
        known = isinstance(parent, ast.Call) and _is_known(inference, parent)
        if not known and not isinstance(parent, _ASKING):
            yield node, parent


def _is_known(inference: Inference, call: ast.Call) -> bool:
    kind = _kind(inference, call.func)
    return bool(kind) and all(
        a.kind == "Module" or (a.kind in ("function", "method") and a.name in
                               inference.program.functions)
        for a in kind
    )  # fmt: skip


def _before(
    inference: Inference, function: Function, node: ast.Name, writes: list[ast.AST]
) -> bool:
    """Return whether the record may be written after it was handed on."""
    facts = inference.facts(function.path)
    own = [w for w in writes if getattr(w.value, "id", "") == node.id]  # type: ignore[attr-defined]
    return any(facts.carries(node.id, node, w) for w in own)


def _kind(inference: Inference, node: ast.AST) -> Kind:
    return inference.kinds.get(id(node), frozenset())
