"""In: the class of a Module that an optimizer trains. Out: its members that no gradient reaches.

Torch leaves a parameter without a gradient alone; MindSpore's gradient of it is zero, and weight
decay still moves it. A member counts as untrained only where that is certain: nothing in the
program reads it, or everything that does lies under no_grad.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from migrate.module_members import RENAMED
from migrate.program import Class, File
from migrate.receivers.kinds import is_all, without_none
from migrate.rules.stopped import is_stopped, outwards
from migrate.scene import Scene
from migrate.sites import direct_name

# what reaches members without their names
_BLIND = (b"children(", b"_modules", b"get_submodule", b"get_parameter", b"__dict__", b"vars(")
_NUMBERS = frozenset({"item", "tolist", "detach", "numpy", "data", "shape"})
_DECAYING = ("torch.optim.AdamW", "torch.optim.Muon")


def members(scene: Scene, model: ast.expr, call: ast.Call) -> tuple[str, ...]:
    """The names of untrained members, where the optimizer of the call decays weights."""
    if not _decays(scene, call) or scene.mentions(*_BLIND):
        return ()
    found = {n for o in _classes(scene, model) for n in _held(scene, o) if _untrained(scene, o, n)}
    return tuple(sorted(found))


def _classes(scene: Scene, model: ast.expr) -> list[Class]:
    """The class of a Module; where nothing tells, every Module class of the program may be it.

    That is safe: a name counts only where one class alone has it, and what lacks it loses nothing.
    """
    atoms = [a for a in without_none(scene.kind(model)) if a.kind != "unknown"]
    names = {a.name for a in atoms} or {""}  # it has parameters()
    if len(names) != 1 or any(a.kind != "Module" for a in atoms):
        return []
    name = names.pop()
    files = scene.neighbours
    every = [o for f in files for o in f.classes.values() if _is_plain(scene, o)]
    near = [o for o in every if o.path == scene.file.path]
    known = [o for o in every if o.key == name]
    return known or (near or every if name in ("", "torch.nn.Module") else [])


def _is_plain(scene: Scene, owner: Class) -> bool:
    """Derived from torch's Module alone."""
    bases = [a for base in scene.inference.bases(owner.key) for a in base]
    return bool(bases) and all(a.kind == "ref" and a.name == "torch.nn.Module" for a in bases)


def _decays(scene: Scene, call: ast.Call) -> bool:
    given = next((k.value for k in call.keywords if k.arg == "weight_decay"), None)
    if given is None:
        built = {atom.name for atom in scene.kind(call.func)}
        spread = any(k.arg is None for k in call.keywords)
        return spread or not built.isdisjoint(_DECAYING) or len(call.args) > 2
    return not (isinstance(given, ast.Constant) and not given.value)


def _held(scene: Scene, owner: Class) -> Iterator[str]:
    """The members that hold parameters: Modules and nn.Parameters that __init__ assigns."""
    for node in ast.walk(owner.methods["__init__"].node) if "__init__" in owner.methods else ():
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            target, value = node.targets[0], node.value
            if not isinstance(target, ast.Attribute) or not isinstance(target.value, ast.Name):
                continue
            parameter = isinstance(value, ast.Call) and (
                direct_name(scene, value.func) == "torch.nn.Parameter"
            )
            if target.attr not in RENAMED and (parameter or is_all(scene.kind(value), "Module")):
                yield target.attr


def _untrained(scene: Scene, owner: Class, name: str) -> bool:
    stored = 0
    for file in scene.neighbours:
        for node in file.nodes:
            if isinstance(node, ast.Constant) and node.value == name:
                return False
            if isinstance(node, ast.Attribute) and node.attr == name:
                stored += isinstance(node.ctx, ast.Store)
                if isinstance(node.ctx, ast.Load) and not (
                    _only_looked_at(file, node) or _stopped(scene, file, owner, node)
                ):
                    return False
    return stored == 1


def _only_looked_at(file: File, node: ast.expr) -> bool:
    """``model.head.weight.sum().item()``: what comes out carries no gradient."""
    current: ast.AST | None = node
    while isinstance(current, (ast.Attribute, ast.Call, ast.Subscript)):
        if isinstance(current, ast.Attribute) and current.attr in _NUMBERS:
            return True
        child, current = current, file.parents.get(id(current))
        if isinstance(current, ast.Call) and current.func is not child:
            return False
        if isinstance(current, ast.Subscript) and current.value is not child:
            return False
    return False


def _stopped(scene: Scene, file: File, owner: Class, node: ast.Attribute) -> bool:
    """Whether the member is called under no_grad, in a method of its own class."""
    call = file.parents.get(id(node))
    called = isinstance(call, ast.Call) and call.func is node
    return called and is_stopped(scene, file, node) and owner.node in outwards(file, node)
