"""In: a function of the program. Out: the calls that mean it, and whether a forward gets there."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import replace

from migrate.analysis.program import File, Function
from migrate.analysis.types.inference import Inference
from migrate.analysis.types.kinds import Atom
from migrate.sites.scene import Scene, once

CallSite = tuple[File, ast.Call, Function | None]


def scene_of(scene: Scene, file: File) -> Scene:
    """Return the same analysis, for another file of the program."""
    return scene if file is scene.file else replace(scene, file=file, _memo={})


def in_module_class(scene: Scene, function: Function | None) -> bool:
    owners = (f.owner for f in function.outwards) if function is not None else ()
    return any(owner is not None and scene.is_module_class(owner) for owner in owners)


def in_forward(
    scene: Scene, function: Function, seen: frozenset[str] = frozenset(), steps: int = 6
) -> bool:
    """Whether the forward of some Module calls the function: graph mode may compile it."""
    if function.name in ("forward", "__call__"):
        return True
    if function.name == "__init__" or function.key in seen or not steps:
        return False
    if function.parent is not None and in_forward(scene, function.parent, seen, steps - 1):
        return True
    seen = seen | {function.key}
    callers = {id(c): c for _, _, c in call_sites(scene, function) if c is not None}
    return any(in_forward(scene, c, seen, steps - 1) for c in callers.values())


def is_for_effect(scene: Scene, function: Function, seen: frozenset[str] = frozenset()) -> bool:
    """Whether some caller throws the result away, or hands it to one who does."""
    if function.key in seen:
        return False
    for file, call, caller in call_sites(scene, function):
        statement = file.parents.get(id(call))
        if isinstance(statement, ast.Expr):
            return True
        handed = isinstance(statement, ast.Return) and caller is not None
        if handed and caller is not None and is_for_effect(scene, caller, seen | {function.key}):
            return True
    return False


def call_sites(scene: Scene, function: Function) -> list[CallSite]:
    """Return the calls in the project that surely or possibly mean a function."""
    return sites_of(scene.inference, function)


def sites_of(inference: Inference, function: Function) -> list[CallSite]:
    """Return the calls in the project that surely or possibly mean a function."""
    return _all_sites(inference).get(function.key, [])


def passed(function: Function, call: ast.Call, name: str) -> ast.expr | None:
    """Return what a call passes for a parameter; None where it is left out or unpacked."""
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    places = [a.arg for a in (*function.node.args.posonlyargs, *function.node.args.args)]
    if function.owner is not None and not function.decorated("staticmethod"):
        places = places[1:]
    at = places.index(name) if name in places else len(call.args)
    before = call.args[: at + 1]
    unpacked = any(isinstance(a, ast.Starred) for a in before)
    return before[at] if at < len(before) and not unpacked else None


@once
def _all_sites(inference: Inference) -> dict[str, list[CallSite]]:
    found: dict[str, list[CallSite]] = {}
    forwards: dict[str, str] = {}
    for sites in inference.program.calls.values():
        for file, call, caller in sites:
            for atom in _reached(inference.kind(call.func)):
                key = atom.name
                if "::" not in key:
                    continue
                if atom.kind == "Module":
                    if key not in forwards:
                        members = inference.member(key, "forward")
                        forwards[key] = next((m.name for m in members), "")
                    key = forwards[key]
                elif atom.kind == "class":
                    owner = inference.class_of(key)
                    init = owner.methods.get("__init__") if owner is not None else None
                    key = init.key if init is not None else ""
                elif atom.kind not in ("function", "method"):
                    continue
                found.setdefault(key, []).append((file, call, caller))
    return found


def _reached(atoms: Iterable[Atom]) -> Iterator[Atom]:
    """Yield what a call runs: a Sequential runs its layers, a training step its network."""
    for atom in atoms:
        yield atom
        if atom.kind == "Step" or (atom.kind == "Module" and "::" not in atom.name):
            yield from _reached(a for kind in atom.items for a in kind)
