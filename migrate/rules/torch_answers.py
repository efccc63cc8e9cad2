"""In: a test of a program. Out: what it is worth, where torch alone answers it."""

from __future__ import annotations

import ast

from migrate.scene import Scene
from migrate.sites import direct_name

JIT = ("torch.jit.",)
COMPILER = ("torch.compiler.is_",)
MACHINE = ("torch.cuda.is_available", "torch.backends.mps.is_available", "torch.mps.is_available")


def torch_answer(scene: Scene, test: ast.expr, asked: tuple[str, ...] = JIT) -> bool | None:
    """What a test is worth, or None where more than torch has a say."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = torch_answer(scene, test.operand, asked)
        return None if inner is None else not inner
    if isinstance(test, ast.BoolOp):
        answers = [torch_answer(scene, value, asked) for value in test.values]
        decisive = isinstance(test.op, ast.Or)
        # what stands before a decisive operand is evaluated and may matter
        if answers[0] is decisive:
            return decisive
        return (not decisive) if all(a is (not decisive) for a in answers) else None
    if not isinstance(test, ast.Call):
        return None
    name = direct_name(scene, test.func)
    rows = scene.table.rows(name) if name and name.startswith(asked) else ()
    return {"False": False, "True": True}.get(rows[0].to) if rows else None
