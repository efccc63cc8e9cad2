"""In: an attribute of something unknown. Out: what of torch it may mean, or surely means."""

from __future__ import annotations

import ast

from migrate import calls
from migrate.neighbours import mentions
from migrate.receivers.elimination import tensor_signatures
from migrate.receivers.kinds import Atom, is_all
from migrate.scene import Scene

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
        return ""
    if not scene.table.kind(full) or node.attr.startswith("__"):
        return ""
    if node.attr in ("values", "indices") and not mentions(scene, b"sparse"):
        return ""  # Tensors have them only where they are sparse
    return "" if _cannot_be_tensor(scene, call, node.attr) else full


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
