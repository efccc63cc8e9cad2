"""In: statements. Out: whether they compute the same when they run once more, and nothing else."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from migrate.analysis.types.kinds import is_all
from migrate.rules.torch_sharing import is_written
from migrate.sites.references import direct_name, draws
from migrate.sites.scene import Scene
from migrate.syntax.trees import last_name, loaded_names, within


def is_repeatable(scene: Scene, inside: Sequence[ast.stmt], between: Sequence[ast.stmt]) -> bool:
    """Return whether statements compute the same when they run once more, and nothing else."""
    read = {name for item in inside for name in loaded_names(item)}
    stored = {name for item in (*inside, *between) for name in stores(item)}
    counts = [sum(name in stores(item) for item in (*inside, *between)) for name in stored & read]
    if any(count > 1 for count in counts):
        return False
    calls = [n for item in inside for n in within(item) if isinstance(n, ast.Call)]
    acting = [c for c in calls if acts(scene, c) and not differentiates(scene, c)]
    summaries = scene.inference.summaries
    for call in acting:
        targets = summaries.graph.targets(scene.file, call, scene.function(call))
        module = is_all(scene.kind(call.func), "Module")
        if targets.unseen and not targets.functions and not module:
            return False
        if module and not targets.functions:
            if _stores_when_called(scene):
                return False
        elif summaries.bound(call, targets).attributes:
            return False
    return not acting or (_has_modules(scene) and not _keeps_or_draws(scene, acting))


def _has_modules(scene: Scene) -> bool:
    """Return whether the program defines Modules: of unknown class is then one of these."""
    return any(
        scene.inference.is_module(c.key) for f in scene.neighbours for c in f.classes.values()
    )


def _stores_when_called(scene: Scene) -> bool:
    """Return whether a Module of the program binds attributes but where it is made."""
    modules = [
        c for f in scene.neighbours for c in f.classes.values() if scene.inference.is_module(c.key)
    ]
    methods = [m for c in modules for name, m in c.methods.items() if name != "__init__"]
    return any(_keeps(n) for m in methods for n in m.nodes)


def _keeps(node: ast.AST) -> bool:
    """Return whether a node binds an attribute, or changes what an attribute holds."""
    if isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load):
        return isinstance(node, ast.Attribute) or isinstance(node.value, ast.Attribute)
    func = node.func if isinstance(node, ast.Call) else None
    held = isinstance(func, ast.Attribute) and isinstance(func.value, ast.Attribute)
    return held and (func.attr in _PUTTING or is_written(func.attr))  # type: ignore[union-attr]


_PUTTING = frozenset(
    "append extend insert add update pop popleft appendleft clear setdefault".split()
)
_CHANGING = ("dropout", "rrelu", "batchnorm", "batch_norm", "running_stats", "spectral_norm",
             "bernoulli", "gumbel")  # fmt: skip


def _keeps_or_draws(scene: Scene, calls: Sequence[ast.Call]) -> bool:
    """Return whether what is called may draw random numbers or move statistics: its own classes
    and what they name, where these get nothing but settings, else any Module of the program."""
    inner = {id(n) for f in scene.neighbours for c in f.classes.values() for n in ast.walk(c.node)}
    nodes = _called(scene, calls) or [n for f in scene.neighbours for n in f.nodes]
    for node in nodes:
        text = node.value if isinstance(node, ast.Constant) else last_name(node)
        name = text.lower() if isinstance(text, str) else ""
        if any(word in name for word in _CHANGING) or (draws(node) and id(node) in inner):
            return True
    return False


_PLAIN = frozenset(("int", "float", "bool", "str", "None", "Tensor"))


def _called(scene: Scene, calls: Sequence[ast.Call]) -> list[ast.AST]:
    """Return the nodes of all that calls may run; [] where that may be given from elsewhere."""
    units: dict[str, list[ast.AST]] = {}
    for file in scene.neighbours:
        functions = (f for f in file.functions.values() if f.owner is None and f.parent is None)
        for node in (*(c.node for c in file.classes.values()), *(f.node for f in functions)):
            units.setdefault(getattr(node, "name", ""), []).append(node)
    atoms = [a for call in calls for a in scene.kind(call.func)]
    if any(a.kind not in ("Module", "function") or "::" not in a.name for a in atoms) or not atoms:
        return []
    todo = [n for a in atoms for n in units.get(a.name.replace("::", ".").rpartition(".")[2], ())]
    found: dict[int, ast.AST] = {}
    while todo:
        unit = todo.pop()
        if id(unit) in found:
            continue
        if not _gets_settings(scene, unit):
            return []
        found[id(unit)] = unit
        todo += [n for name in map(last_name, ast.walk(unit)) for n in units.get(name, ())]
    return [n for unit in found.values() for n in ast.walk(unit)]


def _gets_settings(scene: Scene, unit: ast.AST) -> bool:
    """Return whether a function, or what makes an object, gets no Module and no function."""
    made = [n for n in getattr(unit, "body", ()) if getattr(n, "name", "") == "__init__"]
    if isinstance(unit, ast.ClassDef) and not made:
        return True
    arguments: ast.arguments = (made[0] if made else unit).args  # type: ignore[union-attr]
    given = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    given = given[1:] if given and given[0].arg == "self" else given
    names = {a.arg for a in given}
    reads = (n for n in ast.walk(made[0] if made else unit) if isinstance(n, ast.Name))
    settings = (scene.kind_names(n) <= _PLAIN for n in reads if n.id in names)
    return not (arguments.vararg or arguments.kwarg) and all(settings)


def stores(node: ast.AST) -> set[str]:
    names = (n for n in within(node) if isinstance(n, ast.Name))
    return {n.id for n in names if not isinstance(n.ctx, ast.Load)}


def acts(scene: Scene, call: ast.Call) -> bool:
    """Return whether a call may do anything but compute from what it is given."""
    atoms = scene.kind(call.func)
    known = bool(atoms) and all(a.kind in ("ref", "method", "dtype") for a in atoms)
    return not known or any("::" in a.name or a.name.startswith("torch.optim") for a in atoms)


def differentiates(scene: Scene, node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and direct_name(scene, node.func) == "torch.autograd.grad"
