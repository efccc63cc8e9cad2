"""Know the functions that run only where no gradient is recorded, and what the others keep."""

from __future__ import annotations

import ast

from migrate.analysis.callgraph import CONSTRUCTORS
from migrate.analysis.program import Function
from migrate.analysis.types.inference import Inference
from migrate.rules.called_from import (
    CallSite,
    call_sites,
    functions_of,
    handed_sites,
    scene_of,
)
from migrate.rules.own_values import is_computed, is_weight, written_values
from migrate.rules.stopped import is_stopped, switches
from migrate.rules.written import written_by
from migrate.sites.buffer_gradients import carries
from migrate.sites.scene import Scene, once


@once
def _always_stopped(inference: Inference) -> dict[str, bool]:
    return {}  # what was found out of a function, by its key


def is_always_stopped(scene: Scene, function: Function) -> bool:
    """Return whether all that calls a function, at least one call, records no gradient there.

    A caller may be such a function itself: then all that calls it is asked as well.
    """
    known = _always_stopped(scene.inference)
    if function.key not in known:
        known[function.key] = switches(scene) and _is_stopped_by_all(scene, function)
    return known[function.key]


def _is_stopped_by_all(scene: Scene, function: Function) -> bool:
    taken = scene.inference.summaries.graph.indirect
    waiting = [function]
    for one in waiting:
        sites = [*call_sites(scene, one), *handed_sites(scene.inference, one)]
        if one.name.startswith("__") or one.name == "forward" or one in taken or not sites:
            return False
        sites += _unseen_sites(scene, one, {id(call) for _, call, _ in sites})
        for file, call, caller in sites:
            if is_stopped(scene_of(scene, file), file, call):
                continue
            if caller is None:
                return False
            if caller not in waiting:
                waiting.append(caller)
    return True


def _unseen_sites(scene: Scene, function: Function, seen: set[int]) -> list[CallSite]:
    """Return the calls of the same name, of what nobody knows."""
    named = scene.inference.program.calls.get(function.name, ())
    rest = (site for site in named if id(site[1]) not in seen)
    return [s for s in rest if {"unknown"} >= {a.kind for a in scene.inference.kind(s[1].func)}]


def keeps_recorded(scene: Scene, call: ast.Call, seen: set[str]) -> bool:
    """Return whether a function of the program that a call runs writes into an object what it
    computes; not where it never records a gradient, since it is cut off in the function then.
    """
    for atom in scene.kind(call.func):
        for function in functions_of(scene.inference, atom):
            constructs = function.name in CONSTRUCTORS  # an object of its own
            if function.key in seen or constructs or is_always_stopped(scene, function):
                continue
            seen.add(function.key)
            there = scene_of(scene, scene.inference.program.files[function.path])
            for node in function.nodes:
                if is_stopped(there, there.file, node):
                    continue
                if any(carries(there, v, function.node, frozenset())
                       for v in _kept_outside(there, function, node)):  # fmt: skip
                    return True
                if isinstance(node, ast.Call) and keeps_recorded(there, node, seen):
                    return True
    return False


def _kept_outside(scene: Scene, function: Function, node: ast.AST) -> list[ast.expr]:
    """Return what a statement writes into an object that the function did not make."""
    places: list[ast.expr] = []
    if isinstance(node, ast.Assign):
        places = [t for t in node.targets if isinstance(t, (ast.Attribute, ast.Subscript))]
    elif isinstance(node, ast.AugAssign):
        places = [node.target]
    elif isinstance(node, ast.Call) and (place := written_by(scene, node)) is not None:
        places = [place]
    own = function.locals - {a.arg for a in function.parameters}
    places = [p for p in places if not is_weight(scene, p) and _root(p) not in own]
    if not places:
        return []
    values = written_values(scene, node)
    if isinstance(node, ast.Assign) and is_computed(scene, node.value, function.node):
        values = [node.value]  # what is handed on keeps its gradient
    return values


def _root(place: ast.expr) -> str:
    """Return the variable that an attribute, an element or a view is of."""
    while isinstance(place, (ast.Attribute, ast.Subscript, ast.Call)):
        place = place.func if isinstance(place, ast.Call) else place.value
    return place.id if isinstance(place, ast.Name) else ""
