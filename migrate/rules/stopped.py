"""Know where torch records no gradient, and which contexts say so."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from migrate.analysis.program import File
from migrate.sites.references import direct_name
from migrate.sites.scene import Scene

QUIET = ("torch.no_grad", "torch.inference_mode", "torch.autograd.no_grad",
         "torch.autograd.inference_mode", "torch.enable_grad", "torch.set_grad_enabled",
         "torch.autograd.enable_grad", "torch.autograd.set_grad_enabled",
         "torch.autocast", "torch.amp.autocast", "torch.cuda.amp.autocast",
         "torch.profiler.record_function", "torch.autograd.profiler.record_function",
         "torch.nn.attention.sdpa_kernel", "torch.backends.cuda.sdp_kernel")  # fmt: skip
STOPPING = QUIET[:4]
RECORDING = ("torch.enable_grad", "torch.autograd.enable_grad")


def switches(scene: Scene) -> bool:
    """Return whether the program may switch gradients off anywhere."""
    words = (b"no_grad", b"inference_mode", b"set_grad_enabled")
    return any(map(scene.inference.program.mentions, words))


def is_stopped(scene: Scene, file: File, node: ast.AST) -> bool:
    """Whether it lies in a ``with`` of no_grad, or in a function that is decorated with it."""
    for around in outwards(file, node):
        for context in _contexts(around):
            name = direct_name(scene, context.func if isinstance(context, ast.Call) else context)
            if name in STOPPING or name in RECORDING:
                return name in STOPPING
    return False


def outwards(file: File, node: ast.AST) -> Iterator[ast.AST]:
    """What stands around a node, nearest first."""
    return file.around(node)


def _contexts(node: ast.AST) -> list[ast.expr]:
    if isinstance(node, ast.With):
        return [item.context_expr for item in node.items]
    return getattr(node, "decorator_list", [])


# their rows take whatever is given, also by **: they only choose a kernel
_KERNELS = QUIET[-2:]


def lowers(call: ast.Call) -> bool:
    """``autocast("cpu")``: a lower precision on CPUs too, unless it is, or may be, switched off."""
    device, enabled = cast_settings(call)
    on = enabled is None or (isinstance(enabled, ast.Constant) and enabled.value is not False)
    return isinstance(device, ast.Constant) and device.value == "cpu" and on


def cast_settings(call: ast.Call) -> tuple[ast.expr | None, ast.expr | None]:
    """Return the device of torch.autocast, and whether it is enabled."""
    named = {k.arg: k.value for k in call.keywords}
    first, _, third = [*call.args, None, None, None][:3]
    return named.get("device_type", first), named.get("enabled", third)


def asks_device(name: str, call: ast.Call) -> bool:
    """Return whether it is found out when it runs whether torch lowers the precision on a CPU."""
    device, enabled = cast_settings(call)
    off = isinstance(enabled, ast.Constant) and enabled.value is False
    known = device is None or isinstance(device, ast.Constant)
    if isinstance(device, ast.Constant) and device.value == "cpu":
        known = enabled is None or isinstance(enabled, ast.Constant)
    return name.endswith("autocast") and "cuda" not in name and not known and not off


def _spreads(call: ast.Call) -> bool:
    """Arguments by * and **: no row takes them, so the context stays and is flagged."""
    starred = any(isinstance(a, ast.Starred) for a in call.args)
    return starred or any(k.arg is None for k in call.keywords)


def quiet(scene: Scene, node: ast.expr) -> str:
    if not isinstance(node, ast.Call):
        return ""
    name = direct_name(scene, node.func) or ""
    if _spreads(node) and name not in _KERNELS:
        return ""
    quiet = name in QUIET and scene.table.rows(name) and not lowers(node)
    quiet = quiet and not asks_device(name, node)
    return meant(name, node) if quiet else ""


def mode(call: ast.Call) -> ast.expr | None:
    return next(iter([*call.args, *(k.value for k in call.keywords if k.arg == "mode")]), None)


def meant(name: str, call: ast.Call) -> str:
    """The context that it comes to: ``set_grad_enabled(False)`` is ``no_grad()``."""
    asked = mode(call)
    if not (isinstance(asked, ast.Constant) and asked.value is False):
        return name
    last = name.rpartition(".")[2]
    return {"set_grad_enabled": "torch.no_grad", "inference_mode": "torch.enable_grad"}.get(
        last, name
    )
