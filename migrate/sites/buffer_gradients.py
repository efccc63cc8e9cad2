"""Know the saved buffers of Modules, and which values a gradient goes through.

A buffer that is saved is a Parameter in MindSpore: it takes the numbers of what is assigned to it,
and no gradient goes back through it. In torch it is the very tensor.
"""

from __future__ import annotations

import ast

from migrate.analysis.types.kinds import is_all
from migrate.sites.module_members import family
from migrate.sites.scene import Scene, once
from migrate.syntax.trees import last_name

BUFFER = "torch.nn.Module.register_buffer"
_QUIET = ("no_grad", "inference_mode", "set_grad_enabled")
NUMBERS = ("int", "float", "bool", "str", "Size", "device", "dtype")
CUTTING = frozenset(
    """
    detach argmax argmin long int bool round floor ceil sign numel size zeros ones full empty
    arange eye linspace tensor zeros_like ones_like full_like empty_like rand randn randint
    rand_like randn_like multinomial bincount nonzero item tolist no_grad len range
    new_zeros new_ones new_full new_empty new_tensor
    """.split()
)


def stores_buffer(scene: Scene, node: ast.Attribute) -> bool:
    """Return whether ``m.name = value`` or ``m.name += value`` sets a buffer that is saved."""
    function = scene.function(node)
    built = function is not None and function.name == "__init__"
    alone = isinstance(scene.parent(node), (ast.Assign, ast.AugAssign))
    return alone and not built and is_buffer(scene, node)


def is_buffer(scene: Scene, node: ast.Attribute, persistent: bool = True) -> bool:
    """Return whether an attribute is a saved buffer, by the class of the object that has it."""
    classes = registered(scene, persistent).get(node.attr, frozenset())
    if not classes:
        return False
    keys = [a.name for a in scene.kind(node.value) if a.kind == "Module" and "::" in a.name]
    owner = scene.owner(node) if getattr(node.value, "id", "") == "self" else None
    while not keys and owner is not None:
        if any(one.key in classes for one in family(scene, owner.key)):
            return True
        owner = scene.owner(owner.node)
    return any(one.key in classes for key in keys for one in family(scene, key))


def is_parameter(scene: Scene, node: ast.Attribute) -> bool:
    """Return whether an attribute may be a Parameter in MindSpore, by its name."""
    return node.attr in registered(scene) or node.attr in parameters(scene)


@once
def parameters(scene: Scene) -> frozenset[str]:
    """Return the names of attributes that are set to Parameters, and those of torch's layers."""
    found = {"weight", "bias", "running_mean", "running_var"}
    for name in ("Parameter", "Buffer"):
        for file, call, _ in scene.inference.program.calls.get(name, ()):
            item = file.parents.get(id(call))
            targets = item.targets if isinstance(item, ast.Assign) else []
            found |= {t.attr for t in targets if isinstance(t, ast.Attribute)}
    for _, call, _ in scene.inference.program.calls.get("register_parameter", ()):
        first = call.args[0] if call.args else None
        if isinstance(first, ast.Constant):
            found.add(str(first.value))
    return frozenset(found)


def registered(scene: Scene, persistent: bool = True) -> dict[str, frozenset[str]]:
    """Return the classes that register a saved buffer under a literal name, by that name.

    ``persistent=False``: a buffer that is not saved, which is none of MindSpore's Parameters.
    """
    return _registered(scene)[persistent]


@once
def _registered(scene: Scene) -> dict[bool, dict[str, frozenset[str]]]:
    found: dict[bool, dict[str, frozenset[str]]] = {True: {}, False: {}}
    for file, call, _ in scene.inference.program.calls.get("register_buffer", ()):
        first = call.args[0] if call.args else None
        saved = len(call.args) < 3 and all(k.arg != "persistent" for k in call.keywords)
        owner = file.classes.get(id(file.holder(call, ast.ClassDef)))
        if owner is not None and isinstance(first, ast.Constant):
            keys = found[saved].get(str(first.value), frozenset())
            found[saved][str(first.value)] = keys | {owner.key}
    return found


def is_data(scene: Scene, node: ast.AST | None) -> bool:
    """Return whether a node is ``x.data`` of what may be a Tensor, not of an object of a class."""
    if not isinstance(node, ast.Attribute) or node.attr != "data":
        return False
    names = scene.kind_names(node.value)
    return not names or not names.isdisjoint(("Tensor", "unknown"))


def is_quiet(scene: Scene, node: ast.AST) -> bool:
    """Return whether no gradient is recorded around a node."""
    for current in scene.around(node, ast.ClassDef):
        contexts: list[ast.expr] = getattr(current, "decorator_list", [])
        if isinstance(current, ast.With):
            contexts = [item.context_expr for item in current.items]
        for context in contexts:
            func = context.func if isinstance(context, ast.Call) else context
            name = last_name(func)
            if name in _QUIET or name == "enable_grad":
                return name in _QUIET
    return False


def is_fresh(node: ast.expr) -> bool:
    """Return whether a call makes a Tensor that no gradient reaches."""
    func = node.func if isinstance(node, ast.Call) else None
    return last_name(func) in CUTTING


def carries(scene: Scene, node: ast.expr, inside: ast.AST, seen: frozenset[str]) -> bool:
    """Return whether a gradient may go through a value: none goes through what is cut."""
    number = is_all(scene.kind(node), *NUMBERS)
    if number or isinstance(node, (ast.Constant, ast.Compare, ast.BoolOp)):
        return False
    if isinstance(node, ast.Name):
        if node.id not in seen and _is_from_around(scene, node, inside):
            return True
        return node.id not in seen and _name_carries(scene, node.id, inside, seen | {node.id})
    if isinstance(node, ast.Attribute):
        return node.attr not in ("data", "shape", "ndim", "dtype") and (not is_buffer(scene, node))
    if isinstance(node, ast.Call):
        func = node.func
        if is_fresh(node):
            return False
        if any(a.kind == "function" and "<locals>" in a.name for a in scene.kind(func)):
            return True  # it may compute with the variables of the function around it
        given = [*node.args, *(k.value for k in node.keywords)]
        if isinstance(func, ast.Attribute) and not any(
            atom.kind in ("ref", "foreign", "function") for atom in scene.kind(func)
        ):
            given.append(func.value)
        return any(carries(scene, one, inside, seen) for one in given)
    parts = [n for n in ast.iter_child_nodes(node) if isinstance(n, ast.expr)]
    return any(carries(scene, one, inside, seen) for one in parts)


def _is_from_around(scene: Scene, node: ast.Name, inside: ast.AST) -> bool:
    """Return whether a variable that a block binds may hold here what it held before the block."""
    if not isinstance(inside, ast.With) or not isinstance(node.ctx, ast.Load) or node.id == "self":
        return False
    reach = scene.facts.reach(node)
    if reach.outside or not reach.bindings:
        return False  # by its name, as ever
    within = {id(n) for n in ast.walk(inside)}
    return any(id(b.place) not in within for b in reach.bindings)


def _name_carries(scene: Scene, name: str, inside: ast.AST, seen: frozenset[str]) -> bool:
    """Return the same for a variable, by what binds it; a parameter may carry one."""
    if name == "self":
        return False
    values = []
    plain, stored = 0, False
    for node in ast.walk(inside):
        if isinstance(node, ast.arg) and node.arg == name:
            return True
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store):
            item, stored = scene.parent(node), True
            if isinstance(item, (ast.Assign, ast.AugAssign, ast.NamedExpr)):
                values.append(item.value)
            elif not _is_of_batch(scene, node):
                plain += 1
    return (
        plain > 0
        or not stored
        or any(carries(scene, one, inside, seen) for one in values if not is_quiet(scene, one))
    )


def _is_of_batch(scene: Scene, node: ast.AST) -> bool:
    """Return whether a loop takes a variable from a DataLoader: a batch has no gradient."""
    around = scene.parent(node)
    while isinstance(around, (ast.Tuple, ast.List)):
        around = scene.parent(around)
    data = around.iter if isinstance(around, (ast.For, ast.comprehension)) else None
    while isinstance(data, ast.Call) and last_name(data.func) in ("enumerate", "tqdm", "iter"):
        data = next(iter(data.args), None)
    loaders = scene.kind(data) if data is not None else frozenset()
    return bool(loaders) and all(a.name == "torch.utils.data.DataLoader" for a in loaders)
