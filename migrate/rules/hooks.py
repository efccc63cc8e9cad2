"""Find what hooks of Modules keep: a tensor that is changed in place behind that changes there too.

``feats["a"] = output`` in a forward hook holds the very output: a ReLU with ``inplace=True`` that
comes next overwrites it in torch. MindSpore's ReLU makes a new tensor.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from migrate.analysis.program import Function
from migrate.analysis.types.inference import Inference
from migrate.analysis.types.kinds import Atom, Kind, is_all, ordered
from migrate.records.outcomes import Refusal, Site
from migrate.rules.torch_sharing import METADATA, is_view_name, shares
from migrate.sites.scene import once
from migrate.syntax.trees import all_names, targets_of

REGISTERING = {"register_forward_hook": (1, 2), "register_forward_pre_hook": (1,),
               "register_module_forward_hook": (1, 2),
               "register_module_forward_pre_hook": (1,)}  # fmt: skip
_ANY = "*"
# the places of a hook's parameters behind the Module; the last is a result behind keywords
_INPUT, _OUTPUT, _LAST = 1, 2, 3


@dataclass(frozen=True)
class Kept:
    """The classes of Modules whose inputs, and whose results, a hook keeps, as far as known."""

    inputs: frozenset[str]
    outputs: frozenset[str]


def kept(inference: Inference) -> Kept:
    """Return what the hooks of a program keep."""
    notes = inference.program.notes
    if "hooks" not in notes:
        found: dict[int, set[str]] = {_INPUT: set(), _OUTPUT: set(), _LAST: set()}
        for name, places in REGISTERING.items():
            for _, call, _ in inference.program.calls.get(name, ()):
                for place in _kept_by(inference, call, places):
                    found[place] |= _modules(inference, call) - {_ANY}
        notes["hooks"] = Kept(frozenset(found[_INPUT]), frozenset(found[_OUTPUT] | found[_LAST]))
    known = notes["hooks"]
    assert isinstance(known, Kept)
    return known


def holds(classes: frozenset[str], atom: Atom) -> bool:
    """Return whether a call of a Module is one that a hook sees."""
    return atom.kind == "Module" and atom.name in classes


def may_have(inference: Inference, layers: Iterable[str]) -> bool:
    """Return whether Modules of some of these classes may have hooks."""
    hooked = _hooked(inference)
    return _ANY in hooked or not hooked.isdisjoint(layers)


@once
def _hooked(inference: Inference) -> frozenset[str]:
    """Return the classes that hooks are registered for."""
    calls = (c for name in REGISTERING for _, c, _ in inference.program.calls.get(name, ()))
    return frozenset(name for call in calls for name in _modules(inference, call))


def overwritten(inference: Inference, site: Site, call: ast.Call, name: str) -> Refusal | None:
    """Return the flag of a hook that keeps what a layer of a Sequential changes in place."""
    places = REGISTERING.get(name.rpartition(".")[2], ())
    hooked = _modules(inference, call) if _kept_by(inference, call, places) else set()
    if not hooked:
        return None
    step = "keep a clone() of it, or build the layers without inplace"
    if _ANY in hooked and _writes(inference):
        why = "nothing tells which Module it is: what it keeps may be changed in place behind that"
        return Refusal(site, "INP203", why, step)
    for _, made, _ in inference.program.calls.get("Sequential", ()):
        if any(_changes_behind(atom, hooked) for atom in inference.kinds.get(id(made), ())):
            why = f"a layer of nn.Sequential, line {made.lineno}, changes what it keeps in place"
            return Refusal(site, "INP203", why, step)
    return None


@once
def _writes(inference: Inference) -> bool:
    """Return whether a program makes layers that work in place, or adds to Tensors in place."""
    calls = (call for sites in inference.program.calls.values() for _, call, _ in sites)
    layers = any("inplace" in a.keys for c in calls for a in inference.kinds.get(id(c), ()))
    return layers or any(
        isinstance(n, ast.AugAssign)
        and is_all(inference.kinds.get(id(n.target), _NOTHING), "Tensor")
        for file in inference.program.files.values()
        for n in file.of(ast.AugAssign)
    )


_NOTHING: Kind = frozenset()


def _changes_behind(sequence: Atom, hooked: Iterable[str]) -> bool:
    """Return whether a layer that works in place may follow one that has such a hook."""
    layers = [ordered(kind) for kind in sequence.items]
    pairs = pairwise(layers) if len(layers) > 1 else ((each, each) for each in layers)
    return any(
        any("inplace" in b.keys for b in behind)
        and any(_ANY in hooked or a.name in hooked for a in first)
        for first, behind in pairs
    )


def _modules(inference: Inference, call: ast.Call) -> set[str]:
    """Return the classes of the Modules that a hook is registered for."""
    func = call.func
    kind: Kind = inference.kinds.get(id(func.value), frozenset()) if (
        isinstance(func, ast.Attribute)) else frozenset()  # fmt: skip
    if not kind or any(a.kind != "Module" or not a.name for a in kind if a.kind != "None"):
        return {_ANY}
    return {a.name for a in kind if a.kind == "Module"}


def _kept_by(inference: Inference, call: ast.Call, places: Iterable[int]) -> list[int]:
    """Return which of a hook's arguments it keeps; all of them if nothing tells what it is."""
    if any(k.arg == "with_kwargs" for k in call.keywords):
        places = (_INPUT, _OUTPUT, _LAST)
    hook = call.args[0] if call.args else next((k.value for k in call.keywords), None)
    kind = inference.kinds.get(id(hook), frozenset())
    functions = [inference.program.functions.get(a.name) for a in kind]
    return [
        p
        for p in places
        if not kind or any(f is None or _keeps(inference, f, p) for f in functions)
    ]


def _keeps(inference: Inference, function: Function, place: int) -> bool:
    """Return whether a hook holds an argument, or a part or view of it, behind its end."""
    place += function.owner is not None and not function.decorated("staticmethod")
    if place >= len(function.parameters):
        return function.node.args.vararg is not None
    names = {function.parameters[place].arg}
    for node in function.of(ast.Assign, ast.For):  # ``out = output[0]``, ``for x in inputs``
        if isinstance(node, ast.Assign) and all_names(node.value) & names:
            names |= {t.id for t in node.targets if isinstance(t, ast.Name)}
        elif isinstance(node, ast.For) and all_names(node.iter) & names:
            names |= all_names(node.target)
    return any(
        isinstance(n, ast.Name) and n.id in names and isinstance(n.ctx, ast.Load)
        and _is_held(inference, function, n)
        for n in function.nodes
    )  # fmt: skip


def _is_held(inference: Inference, function: Function, node: ast.AST) -> bool:
    """Return whether something that outlives a function gets a value, by where it stands."""
    parents = inference.program.files[function.path].parents
    user = parents.get(id(node))
    while user is not None:
        if isinstance(user, ast.Attribute):
            if user.attr in METADATA:
                return False
            called = parents.get(id(user))
            if isinstance(called, ast.Call) and called.func is user:
                if not shares(user.attr):
                    return False
                user = called
            elif not is_view_name(user.attr):
                return False
            node, user = user, parents.get(id(user))
        elif isinstance(user, (ast.Subscript, ast.Starred, ast.IfExp, ast.BoolOp, ast.keyword)):
            if isinstance(user, ast.Subscript) and user.slice is node:
                return False
            node, user = user, parents.get(id(user))
        else:
            break
    if isinstance(user, (ast.Assign, ast.AnnAssign)):
        targets = targets_of(user)
        return any(not isinstance(t, ast.Name) or t.id in function.globals for t in targets)
    if isinstance(user, ast.Call):  # of something that may keep it
        callee = inference.kinds.get(id(user.func), frozenset())
        return not callee or any(
            not (
                (a.kind == "builtin" and a.name != "setattr")
                or (a.name.startswith("torch.") and not shares(a.name))
            )
            for a in callee
        )
    return isinstance(user, (ast.List, ast.Tuple, ast.Dict, ast.Set))
