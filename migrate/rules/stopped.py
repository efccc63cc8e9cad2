"""In: a place of a file. Out: whether torch records no gradient there."""

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
    current = file.parents.get(id(node))
    while current is not None:
        yield current
        current = file.parents.get(id(current))


def _contexts(node: ast.AST) -> list[ast.expr]:
    if isinstance(node, ast.With):
        return [item.context_expr for item in node.items]
    return getattr(node, "decorator_list", [])
