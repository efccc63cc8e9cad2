"""Find texts that name Modules or methods of theirs: class names, code, ``forward``.

``forward = other`` in a class and ``setattr(Net, "forward", f)`` bind it as ``def forward`` does; a
Cell that keeps the old name runs what its base class has under ``construct``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from migrate.analysis.program import Class
from migrate.analysis.types import class_texts
from migrate.analysis.types.inference import Inference
from migrate.analysis.types.kinds import is_all, may_be_any_module, without_none
from migrate.mapping.templates import parse
from migrate.sites import unknown_receivers
from migrate.sites.scene import Scene, once
from migrate.syntax.trees import defaults, dotted, is_super, last_name


def named_classes(scene: Scene) -> list[ast.Constant]:
    """Those of comparisons, and the names of layers that are called otherwise in MindSpore."""
    file = scene.file
    compared: list[ast.Constant] = []
    for node in (*file.of(ast.Compare), *file.of(ast.Call)):
        asked = class_texts.of_layers(node, scene.function(node), scene.table)
        compared += [one.text for one in asked]
    subjects = map(class_texts.is_taken, (*file.of(ast.Call), *file.of(ast.Attribute)))
    taken = any(s is not None and _may_be_layer(scene, s) for s in subjects)
    known = {id(text) for text in compared}
    others = _others(scene) if taken else []
    return compared + [t for t in others if id(t) not in known]


def _may_be_layer(scene: Scene, node: ast.expr) -> bool:
    kind = scene.kind(node)
    return may_be_any_module(kind) or is_all(kind, "Module")


def _others(scene: Scene) -> list[ast.Constant]:
    """Texts in tables and patterns that are the name of such a layer and nothing else."""
    own = {owner.name for owner in scene.inference.program.classes.values()}
    names = renamed(scene).keys() - own
    texts = scene.file.of(ast.Constant)
    return [n for n in texts if n.value in names and _is_listed(scene, n)]


def _is_listed(scene: Scene, node: ast.Constant) -> bool:
    """``{"Linear": 1}``, ``["Linear"]``, ``case "Linear":``; ``__all__`` is another matter."""
    parent = scene.parent(node)
    if isinstance(parent, ast.Dict):
        return any(key is node for key in parent.keys)
    if not isinstance(parent, (ast.List, ast.Tuple, ast.Set)):
        return type(parent).__name__ == "MatchValue"
    targets = getattr(scene.parent(parent), "targets", ())
    return not any(getattr(target, "id", "") == "__all__" for target in targets)


def evaluated(scene: Scene) -> list[ast.Call]:
    """``eval(m)`` in a file that imports of torch: a text of a configuration is code like this."""
    spaces = _imported(scene)
    calls = (c for c in scene.file.of(ast.Call) if getattr(c.func, "id", "") == "eval")
    return [c for c in calls if spaces and c.args and _may_name(c.args[0], spaces)]


def _imported(scene: Scene) -> frozenset[str]:
    """The names that the file's imports bind to torch and its modules: ``nn``, ``torch``, ``F``."""
    found: set[str] = set()
    for node in (*scene.file.of(ast.Import), *scene.file.of(ast.ImportFrom)):
        origin = getattr(node, "module", "") or ""
        for alias in getattr(node, "names", ()):
            full = f"{origin}.{alias.name}".lstrip(".")
            if full.partition(".")[0] == "torch" and not getattr(node, "level", 0):
                found.add(alias.asname or alias.name.partition(".")[0])
    return frozenset(found)


def _may_name(text: ast.expr, spaces: frozenset[str]) -> bool:
    """Whether the text is not known here, or names one of them."""
    if not isinstance(text, ast.Constant):
        return True
    node = parse(text.value) if isinstance(text.value, str) else None
    return node is not None and any(getattr(n, "id", "") in spaces for n in ast.walk(node))


@once
def renamed(scene: Scene) -> dict[object, str]:
    """The short names of torch's layers with those of the Cells, where these are others."""
    found: dict[object, str] = {}
    for short in class_texts.layers(scene.table):
        for row in scene.table.rows(f"torch.nn.{short}"):
            made = parse(row.to) if row.to else None
            target = dotted(made.func) if isinstance(made, ast.Call) else ""
            if target and not target.endswith(f".{short}"):
                found[short] = target.rpartition(".")[2]
    return found


NAME = "forward"
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
BY_TEXT = frozenset({"setattr", "getattr", "hasattr", "delattr"})


def in_class(scene: Scene, owner: ast.ClassDef) -> list[ast.AST]:
    """Definitions in a Module's class, under conditions as well, and the names that are read."""
    if not scene.is_module_class(scene.file.classes[id(owner)]):
        return []
    if calls_forward(scene, scene.file.classes[id(owner)]):
        return []
    return [n for statement in owner.body for n in _at_class_level(statement) if _is_forward(n)]


def calls_forward(scene: Scene, owner: Class) -> bool:
    """Return whether ``__call__`` of a Module is its ``construct``: graph mode passes over it.

    The class has a ``forward``, which keeps its name, and nothing but ``super().__call__(...)``
    calls it; or it has none but that of its bases, which nothing asks for either. No class that
    derives from it has one.
    """
    call, own = owner.methods.get("__call__"), owner.methods.get(NAME)
    if call is None or not call.parameters or not scene.is_module_class(owner):
        return False
    if any(getattr(m.node, "decorator_list", ()) for m in (call, own) if m is not None):
        return False
    inference = scene.inference
    kin = [c for c in inference.program.classes.values() if owner.key in line(inference, c.key)]
    if any(NAME in c.methods or "__call__" in c.methods for c in kin if c is not owner):
        return False
    above = line(inference, owner.key) - {owner.key}
    if any("__call__" in inference.program.classes[key].methods for key in above):
        return False
    bound = [n for s in owner.node.body for n in _at_class_level(s) if _is_forward(n)]
    if any(own is None or n is not own.node for n in bound):
        return False
    supers = [n for n in call.nodes if is_super(n)]
    through = [n for n in call.nodes if isinstance(n, ast.Attribute) and is_super(n.value)]
    if len(supers) != len(through) or any(n.attr != "__call__" for n in through):
        return False
    bases = set(inference.torch_bases(owner.key)) - {"torch.nn.Module"}
    if (
        own is None
        and not bases
        and not any(NAME in inference.program.classes[key].methods for key in above)
    ):
        return True
    called = own is None or bool(supers)
    return called and not _is_asked_for(inference, {c.key for c in kin})


def _is_asked_for(inference: Inference, classes: set[str]) -> bool:
    """Return whether ``forward`` of an object of these classes may be called by its name."""
    for file in inference.program.files.values():
        for node in file.of(ast.Attribute):
            if node.attr == NAME and not is_super(node.value):
                kind = inference.kind(node.value)
                if not kind or any(a.kind == "unknown" or a.name in classes for a in kind):
                    return True
    return False


def line(inference: Inference, key: str) -> set[str]:
    """Return the keys of a class of the project and of those that it inherits from."""
    found: set[str] = set()
    waiting = [key]
    while waiting:
        key = waiting.pop()
        if key not in found and key in inference.program.classes:
            found.add(key)
            waiting += [a.name for base in inference.bases(key) for a in base if a.kind == "class"]
    return found


def _is_forward(node: ast.AST) -> bool:
    return NAME in (getattr(node, "id", ""), getattr(node, "name", ""))


def _at_class_level(node: ast.AST) -> Iterator[ast.AST]:
    """What is run when the class is made: bodies of functions are not."""
    yield node
    if isinstance(node, (ast.ClassDef, ast.Lambda)):
        return
    parts: list[ast.AST] = list(ast.iter_child_nodes(node))
    if isinstance(node, FUNCTIONS):
        parts = [*node.decorator_list, *(default for _, default in defaults(node.args))]
    for part in parts:
        yield from _at_class_level(part)


def by_text(scene: Scene, node: ast.Call | ast.Compare) -> tuple[ast.Constant, str] | None:
    """Return ``"forward"`` of ``setattr(net, "forward", f)`` for a Module or its class, and what
    is assumed of the net; also of ``"forward" in net.__dict__``, ``vars(net)`` and ``dir(net)``.
    """
    asked = _asked_members(node) if isinstance(node, ast.Compare) else _asked_attribute(node)
    if asked is None or getattr(asked[1], "value", "") != NAME:
        return None
    subject, text = asked
    assert isinstance(text, ast.Constant)
    kind = scene.kind(subject)
    classes = all(
        atom.kind == "class" and scene.inference.is_module(atom.name) for atom in without_none(kind)
    )
    if is_all(kind, "Module") or (kind and classes):
        return text, ""
    name, assumed = unknown_receivers.forward(scene, subject)
    return (text, assumed) if name == unknown_receivers.FORWARD else None


def _asked_attribute(call: ast.Call) -> tuple[ast.expr, ast.expr] | None:
    """Return the object and the name of the attribute that a call asks for or sets."""
    static = last_name(call.func) == "getattr_static"
    if (getattr(call.func, "id", "") not in BY_TEXT and not static) or len(call.args) < 2:
        return None
    return call.args[0], call.args[1]


def _asked_members(test: ast.Compare) -> tuple[ast.expr, ast.expr] | None:
    """Return the object among whose members a test looks for a name, and the name."""
    members = test.comparators[0]
    if len(test.ops) != 1 or not isinstance(test.ops[0], (ast.In, ast.NotIn)):
        return None
    if isinstance(members, ast.Attribute) and members.attr == "__dict__":
        return members.value, test.left
    if not isinstance(members, ast.Call) or getattr(members.func, "id", "") not in ("vars", "dir"):
        return None
    return (members.args[0], test.left) if len(members.args) == 1 else None
