"""What of torch an attribute of something unknown may mean, and which binding would tell."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from migrate.analysis.program import Class, Function
from migrate.analysis.types.elimination import tensor_signatures
from migrate.analysis.types.kinds import Atom, is_all
from migrate.mapping import calls
from migrate.sites.operator_names import is_inplace
from migrate.sites.scene import Scene
from migrate.syntax.trees import all_names

_CONTAINER_KINDS = frozenset({"list", "tuple", "dict", "str", "int", "float", "bool", "Size",
                              "iterator", "foreign", "project", "class", "function", "builtin",
                              "device", "dtype", "Object", "None", "super", "method",
                              "text"})  # fmt: skip
# methods of Tensors that are called for what they do
_EFFECTS = frozenset({"backward", "register_hook", "register_post_accumulate_grad_hook",
                      "retain_grad", "resize"})  # fmt: skip


OF_OPTIMIZERS = {
    "param_groups": "torch.optim.Optimizer.param_groups",
    "get_last_lr": "torch.optim.lr_scheduler.LRScheduler.get_last_lr",
    "reset_parameters": "torch.nn.Module.reset_parameters",
}
# by the builtin that asks for it, and its number of arguments
_ASKING = {("hasattr", 2): "torch2ms.has_reset", ("getattr", 3): "torch2ms.reset_of"}


OF_MODULES = "torch.nn.Module."
_REGISTRIES = ("_modules", "_parameters")
FORWARD = "torch.nn.Module.forward"
SOME_FORWARD = "torch2ms.forward"  # of a Module, or of something else that has one

# what is converted already imports torch no longer
_IMPORTS = (b"import torch", b"from torch ", b"from torch.")


def of_training(scene: Scene, node: ast.Attribute) -> str:
    """The full name of what only optimizers and schedules have, or are given by Modules."""
    if node.attr in OF_OPTIMIZERS:
        ours = any(map(scene.inference.program.mentions, _IMPORTS))
        return OF_OPTIMIZERS[node.attr] if ours else ""
    if node.attr != "parameters":
        return ""
    around = scene.parent(node)
    if not isinstance(around, ast.Call) or around.func is not node or around.args:
        return ""
    while isinstance(around, (ast.expr, ast.keyword, ast.comprehension)):
        if isinstance(around, ast.Call) and is_all(scene.kind(around), "Optimizer"):
            return "torch.nn.Module.parameters"
        around = scene.parent(around)
    return ""


def forward(scene: Scene, holder: ast.expr) -> tuple[str, str]:
    """Return what ``forward`` of something unknown is, and what is assumed in it.

    A Module or its class, where no other class of the program has such a method; else a helper
    looks which of the two it is.
    """
    kinds = scene.kind_names(holder)
    if (kinds and "unknown" not in kinds) or not scene.inference.has_modules():
        return "", ""
    if not any(map(scene.inference.program.mentions, _IMPORTS)):
        return "", ""
    inference = scene.inference
    owners = inference.program.holders.get("forward", ())
    if all(inference.is_module(c.key) or inference.is_function(c.key) for c in owners):
        text = ast.unparse(holder)
        return FORWARD, f"{text} is taken for a Module: nothing else has forward"
    return SOME_FORWARD, ""


def asking_for_reset(scene: Scene, node: ast.Call) -> str:
    """``hasattr(m, "reset_parameters")``: torch's layers have it, MindSpore's have not."""
    name = _ASKING.get((getattr(node.func, "id", ""), len(node.args)), "")
    asked = node.args[1] if name else None
    if not isinstance(asked, ast.Constant) or asked.value != "reset_parameters":
        return ""
    kinds = scene.kind_names(node.args[0])
    ours = "unknown" in kinds and any(map(scene.inference.program.mentions, _IMPORTS))
    return name if ours or "Module" in kinds else ""


def method(scene: Scene, node: ast.Attribute, atoms: frozenset[Atom]) -> str:
    """The full name, where nothing rules a Tensor out."""
    kinds = frozenset(a.kind for a in atoms)
    if kinds & _CONTAINER_KINDS and "unknown" not in kinds:
        return ""
    call = scene.parent(node)
    full = f"torch.Tensor.{node.attr}"
    if not isinstance(call, ast.Call) or call.func is not node:
        named = isinstance(node.ctx, ast.Load) and scene.mentions(b"torch")
        return full if named and is_inplace(scene, node.attr) else ""
    if scene.table.kind(full) != "method" or node.attr.startswith("__"):
        return ""  # no property of a Tensor can be called
    if node.attr in ("values", "indices") and not scene.mentions(b"sparse"):
        return ""  # Tensors have them only where they are sparse
    return "" if _cannot_be_tensor(scene, call, node.attr) else full


def of_modules(scene: Scene, node: ast.Attribute, atoms: frozenset[Atom]) -> str:
    """Return the full name of what Modules have and Tensors have not: methods that are called.

    Only of what may be a Module: in a file with torch, where nothing at all is known.
    """
    full, call = f"{OF_MODULES}{node.attr}", scene.parent(node)
    called = isinstance(call, ast.Call) and call.func is node
    if not (called or node.attr in _REGISTRIES) or any(a.kind != "unknown" for a in atoms):
        return ""
    if scene.table.kind(full) != "method" * called or scene.table.kind(f"torch.Tensor.{node.attr}"):
        return ""
    here = any(name.partition(".")[0] == "torch" for name in scene.file.imported)
    return full if here and scene.inference.has_modules() and scene.table.rows(full) else ""


def _cannot_be_tensor(scene: Scene, call: ast.Call, name: str) -> bool:
    """Torch would refuse the arguments, or the call would do nothing at all."""
    idle = isinstance(scene.parent(call), ast.Expr)
    if idle and not name.endswith("_") and name not in _EFFECTS:
        return True
    signatures = tensor_signatures(scene.table, name)
    bound, why = calls.choose(call.args, call.keywords, signatures, scene.kind_names)
    if not signatures or bound or why.dynamic:
        return False
    # a Tensor of one number may stand for that number, but a text stands for nothing else
    texts = any(scene.kind_names(arg) == {"str"} for arg in call.args)
    return texts if why.of_kinds else True


# -- the binding that is unknown ------------------------------------------------------------------


@dataclass(frozen=True)
class Unknown:
    """A binding of which nothing is known, and the annotation that would settle it.

    ``given``: the function and the name, where it is a parameter.
    """

    what: str
    annotation: str
    given: tuple[Function, str] | None = None


def binding(scene: Scene, node: ast.expr, kind: str = "") -> Unknown:
    """Return what makes an expression unknown, and the annotation that makes it a Tensor.

    ``kind``: what the annotation has to say; a Tensor, as the file spells it, unless given.
    """
    kind = kind or _tensor(scene)
    if isinstance(node, ast.Name):
        return _of_name(scene, node, kind)
    if isinstance(node, ast.Attribute):
        return _of_attribute(scene, node, kind)
    if isinstance(node, ast.Call):
        return _of_call(scene, node, kind)
    if isinstance(node, ast.Subscript) and _may_hold_it(scene, node.value):
        return binding(scene, node.value, _container(node, kind))
    if isinstance(node, (ast.BinOp, ast.UnaryOp, ast.IfExp, ast.BoolOp, ast.NamedExpr)):
        for part in ast.iter_child_nodes(node):
            if isinstance(part, ast.expr) and not _is_known(scene, part):
                return binding(scene, part, kind)
    return _cast(node, kind)


def _is_known(scene: Scene, node: ast.expr) -> bool:
    return "unknown" not in scene.kind_names(node)


def _may_hold_it(scene: Scene, node: ast.expr) -> bool:
    """Whether an annotation of the value may say what it holds."""
    return bool({"unknown", "list", "tuple", "dict", "iterator"} & scene.kind_names(node))


def _tensor(scene: Scene) -> str:
    """Return how the file spells the class Tensor."""
    for node in scene.file.imports:
        for alias in node.names:
            if isinstance(node, ast.ImportFrom) and alias.name == "Tensor":
                return alias.asname or alias.name
    return "torch.Tensor"


def _container(node: ast.Subscript, kind: str) -> str:
    index = node.slice
    text = isinstance(index, ast.JoinedStr) or (
        isinstance(index, ast.Constant) and isinstance(index.value, str)
    )
    return f"dict[str, {kind}]" if text else f"list[{kind}]"


def _cast(node: ast.expr, kind: str) -> Unknown:
    text = _short(node)
    return Unknown(
        f"{text} (line {node.lineno})", f"give it a name with a type: y: {kind} = {text}"
    )


def _short(node: ast.AST) -> str:
    text = ast.unparse(node)
    return text if len(text) <= 40 else text[:37] + "..."


def _of_name(scene: Scene, node: ast.Name, kind: str) -> Unknown:
    name = node.id
    inner: ast.AST = node
    while (outer := scene.parent(inner)) is not None:
        clauses = getattr(outer, "generators", ())
        for clause in clauses:
            if name in all_names(clause.target):
                if isinstance(clause.target, ast.Name) and _may_hold_it(scene, clause.iter):
                    return binding(scene, clause.iter, f"list[{kind}]")
                return _cast(node, kind)
        if isinstance(outer, ast.Lambda) and name in {a.arg for a in outer.args.args}:
            what = f"parameter {name} of a lambda (line {outer.lineno})"
            return Unknown(what, f"make it a function with a parameter {name}: {kind}")
        if isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef)):
            function = scene.file.functions[id(outer)]
            if name in function.locals:
                return _of_variable(function, name, kind)
        inner = outer
    lines = _bound_on(scene.file.source.tree, name)
    if not lines:
        return _cast(node, kind)
    return Unknown(f"the global {name}, bound {lines}", f"{name}: {kind}")


def _of_variable(function: Function, name: str, kind: str) -> Unknown:
    arguments = function.node.args
    for arg in (*function.parameters, *arguments.kwonlyargs):
        if arg.arg == name:
            what = f"parameter {name} of {function.name} (line {arg.lineno})"
            return Unknown(what, f"{name}: {kind}", (function, name))
    if arguments.vararg is not None and arguments.vararg.arg == name:
        each = kind.removeprefix("list[").removesuffix("]")
        what = f"parameter *{name} of {function.name} (line {arguments.vararg.lineno})"
        return Unknown(what, f"*{name}: {each}")
    lines = _bound_on(function.node, name)
    what = f"variable {name} of {function.name}, bound {lines}"
    return Unknown(what, f"{name}: {kind}")


def _bound_on(unit: ast.AST, name: str) -> str:
    stores = (n for n in ast.walk(unit) if isinstance(n, ast.Name) and n.id == name)
    lines = sorted({n.lineno for n in stores if not isinstance(n.ctx, ast.Load)})
    if not lines:
        return ""
    shown = ", ".join(map(str, lines[:4])) + (", ..." if len(lines) > 4 else "")
    return f"on line{'s' * (len(lines) > 1)} {shown}"


def _of_attribute(scene: Scene, node: ast.Attribute, kind: str) -> Unknown:
    """An attribute: of a class of the project, of something unknown, or of a library."""
    owners = _owners(scene, node.value)
    if owners:
        (owner, *_) = owners
        lines = sorted({m.node.lineno for m in owner.stores.get(node.attr, ())})
        where = f", stored in {owner.stores[node.attr][0].name} (line {lines[0]})" if lines else ""
        what = f"attribute {node.attr} of {owner.name} (line {owner.node.lineno}){where}"
        return Unknown(what, f"{node.attr}: {kind} in the body of {owner.name}")
    if isinstance(node.value, ast.Name) and not _is_known(scene, node.value):
        found = _of_name(scene, node.value, "its class")
        return Unknown(
            found.what, f"{found.annotation}, which says what {node.attr} is", found.given
        )
    return _cast(node, kind)


def _owners(scene: Scene, holder: ast.expr) -> list[Class]:
    found = (scene.inference.class_of(a.name) for a in scene.kind(holder))
    return sorted((c for c in found if c is not None), key=lambda c: c.key)


def _of_call(scene: Scene, node: ast.Call, kind: str) -> Unknown:
    """What a call gives: of a function of the project, of a method of something unknown."""
    for atom in sorted(scene.kind(node.func), key=lambda a: a.name):
        function = scene.inference.function_of(atom.name)
        if function is None and atom.kind == "Module" and "::" in atom.name:
            owner = scene.inference.class_of(atom.name)
            function = owner.methods.get("forward") if owner is not None else None
        if function is not None and not isinstance(function.node, ast.Lambda):
            place = f"{function.path}, line {function.node.lineno}"
            return Unknown(f"the result of {function.name} ({place})", f"-> {kind}")
    func = node.func if isinstance(node.func, ast.Attribute) else None
    chained = func is not None and scene.table.kind(f"torch.Tensor.{func.attr}")
    if func is not None and chained and not _is_known(scene, func.value):
        return binding(scene, func.value)
    return _cast(node, kind)
