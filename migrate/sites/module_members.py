"""In: an attribute of a Module, or of ``super()`` in one. Out: the torch name it stands for."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from migrate.analysis.program import Class
from migrate.analysis.types.kinds import Atom, is_all, without_none
from migrate.analysis.types.own_names import chooses_modes
from migrate.sites.scene import Scene, once

# what some Cells call otherwise than their Modules: on an unknown Module nothing tells which
RENAMED = frozenset({"weight", "bias", "running_mean", "running_var", "num_batches_tracked"})

# settings that Cells name otherwise, and those that nothing but a layer has
SETTINGS = frozenset({"in_features", "out_features", "num_embeddings", "embedding_dim", "groups"})
_OF_LAYERS = frozenset({"in_features", "out_features", "in_channels", "out_channels"})

# by the builtin that asks for them, and its number of arguments
_ASKING = {
    ("hasattr", 2): "torch2ms.has_part",
    ("getattr", 2): "torch2ms.layer_part",
    ("getattr", 3): "torch2ms.part_of",
    ("setattr", 3): "torch2ms.give_part",
}
TRAIN = "torch.nn.Module.train"
EVAL = "torch.nn.Module.eval"
RESET = "torch.nn.Module.reset_parameters"
ENTRY = "torch.nn.ModuleDict.__getattr__"


def asking_for_part(scene: Scene, node: ast.Call) -> str:
    """``hasattr(m, "weight")`` of a layer that may call it otherwise: the name of a row for it.

    A name that is chosen while the program runs counts where the function names one of them.
    """
    row = _ASKING.get((getattr(node.func, "id", ""), len(node.args)), "")
    asked = _asked(scene, node.args[1]) if row else frozenset()
    if not asked:
        return ""
    atoms = without_none(scene.kind(node.args[0]))
    any_layer = ("", "torch.nn.Module")
    kinds = {atom.kind for atom in atoms}
    if "unknown" in kinds:
        layer = "Module" in kinds or kinds == {"unknown"}
        return row if layer and not _in_forward(scene, node) else ""
    layers = [a.name for a in atoms if a.kind == "Module"]
    weights = (r.weights for name in layers for r in scene.table.rows(name))
    renamed = any(asked & set(names) for names in weights)
    return row if any(name in any_layer for name in layers) or renamed else ""


def _asked(scene: Scene, name: ast.expr) -> frozenset[str]:
    """Return which of the names that Cells have otherwise an expression may be."""
    if isinstance(name, ast.Constant):
        return RENAMED & {name.value}
    function = scene.function(name)
    nodes = function.nodes if function is not None else scene.file.nodes
    return RENAMED & {n.value for n in nodes if isinstance(n, ast.Constant)}


def _in_forward(scene: Scene, node: ast.AST) -> bool:
    around = scene.holder(node, ast.FunctionDef)
    return getattr(around, "name", "") == "forward"


def of_super(scene: Scene, atom: Atom, attribute: str) -> str:
    """What ``super()`` gives is torch's where no base of the project defines it."""
    inference = scene.inference
    if attribute.startswith("__") or not inference.is_module(atom.name):
        return ""
    bases = (one for base in inference.bases(atom.name) for one in base)
    if any(one.kind == "class" and defined(scene, one.name, attribute) for one in bases):
        return TRAIN if attribute == "train" and bases_choose(scene, atom.name) else ""
    torchs = [Atom("Module", base) for base in inference.torch_bases(atom.name)]
    found = (of_module(scene, one, attribute) for one in torchs)
    return next((name for name in found if name), "")


@once
def has_own_modes(scene: Scene) -> bool:
    """Whether a Module of the program decides by itself what ``train`` does to it."""
    found = (c for c in scene.inference.program.classes.values() if chooses_modes(c))
    return any(scene.inference.is_module(c.key) for c in found)


def bases_choose(scene: Scene, key: str) -> bool:
    """Whether ``super().train`` in a class of the project is the project's own as well."""
    bases = (atom for base in scene.inference.bases(key) for atom in base)
    return any(atom.kind == "class" and chooses(scene, atom.name) for atom in bases)


def chooses(scene: Scene, key: str) -> bool:
    """Whether a class of the project, or one it derives from, has its own ``train(mode)``."""
    return defined(scene, key, "train") and any(
        chooses_modes(owner) for owner in family(scene, key)
    )


def of_module(scene: Scene, atom: Atom, attribute: str) -> str:
    """The row's name for ``module.attribute``, or "" for what the project defines itself."""
    table, inference = scene.table, scene.inference
    bases: tuple[str, ...] = (atom.name,) if atom.name else ()
    if "::" in atom.name:
        if attribute != "forward" and defined(scene, atom.name, attribute):
            if inherited := _written_over(scene, atom.name, attribute):
                return inherited
            return TRAIN if attribute == "train" and chooses(scene, atom.name) else ""
        bases = inference.torch_bases(atom.name)
    if atom.name == "torch.nn.ModuleDict" and attribute in atom.keys:
        return ENTRY
    for base in bases:
        for row in table.rows(base):
            if attribute in row.weights or attribute in row.attrs or attribute in row.layout:
                return f"{base}.{attribute}"
        if table.keys(f"{base}.{attribute}"):  # a pattern for the namespace is not meant
            return f"{base}.{attribute}"
    full = f"torch.nn.Module.{attribute}"
    if atom.name in ("", "torch.nn.Module") and attribute in RENAMED | SETTINGS:
        return full
    return (
        full
        if attribute == "forward"
        or table.kind(full) in ("method", "property")
        or (table.rows(full))
        else ""
    )


def _written_over(scene: Scene, key: str, attribute: str) -> str:
    """torch's name for ``self.weight = ...`` in a class derived from one of torch's layers.

    It is the layer's own attribute that is written, under the name that the Cell has for it:
    what the layer computes goes by that one.
    """
    if any(attribute in c.methods for c in family(scene, key)):
        return ""
    for base in scene.inference.torch_bases(key):
        for row in scene.table.rows(base):
            renamed = row.attrs.get(attribute, "").removeprefix("self.").isidentifier()
            if row.weights.get(attribute) or renamed:
                return f"{base}.{attribute}"
    return ""


def of_some_layer(scene: Scene, node: ast.Attribute, names: set[str]) -> str:
    """torch's name for ``m.weight = p`` where one of several layers is meant, or nobody knows
    which: MindSpore's norms and Embedding would keep p beside the Parameter they compute with."""
    statement = scene.statement(node)
    full = f"torch.nn.Module.{node.attr}"
    if node.attr not in RENAMED or not isinstance(statement, ast.Assign):
        return ""
    if len(names) > 1:
        return full
    if names or any(a.kind != "unknown" for a in scene.kind(node.value)):
        return ""
    given = statement.value
    passed_on = isinstance(given, ast.Attribute) and given.attr in RENAMED
    if isinstance(node.ctx, ast.Load):
        targets = [t for t in statement.targets if isinstance(t, ast.Attribute)]
        return full if node is given and any(t.attr == node.attr for t in targets) else ""
    return full if passed_on or is_all(scene.kind(given), "Tensor") else ""


def asks_layer(scene: Scene, node: ast.Attribute) -> bool:
    """Whether a setting that Cells name otherwise is asked of what is used as a layer, if nothing
    tells what it is: ``m.in_features``; ``m.groups`` beside ``m.in_channels``."""
    if not isinstance(node.ctx, ast.Load) or _in_forward(scene, node):
        return False
    if node.attr in _OF_LAYERS:
        return True
    function, held = scene.function(node), ast.unparse(node.value)
    near = function.nodes if function is not None else ()
    return any(
        isinstance(n, ast.Attribute) and n.attr in _OF_LAYERS and ast.unparse(n.value) == held
        for n in near
    )


def is_own(scene: Scene, node: ast.Attribute) -> bool:
    """Whether an attribute is surely that of a Module of the project."""
    atoms = without_none(scene.kind(node.value))
    kinds = ("Module", "super", "class")
    sure = all(a.kind in kinds and "::" in a.name for a in atoms)
    modules = all(scene.inference.is_module(a.name) for a in atoms) if sure else False
    return bool(atoms) and modules


def defined(scene: Scene, key: str, attribute: str) -> bool:
    """Whether a class of the project, or one it derives from, defines the attribute itself."""
    return any(attribute in c.methods or attribute in c.stores for c in family(scene, key))


def family(scene: Scene, key: str) -> Iterator[Class]:
    """A class of the project and those of the project it derives from."""
    inference, todo, seen = scene.inference, [key], {key}
    while todo:
        owner = inference.class_of(todo.pop())
        if owner is None:
            continue
        yield owner
        for base in inference.bases(owner.key):
            for atom in base:
                if atom.kind == "class" and atom.name not in seen:
                    seen.add(atom.name)
                    todo.append(atom.name)
