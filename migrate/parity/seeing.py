"""In: the text of a Python file. Out: its code with every receiver shown to an observer as it runs.

Receivers are what attributes are asked of: ``x`` in ``x.view(2)``. Places are as ast counts them:
(first line, column in bytes, last line, column).
"""

from __future__ import annotations

import ast
from types import CodeType

OBSERVER = "__torch2ms_seen__"  # among the builtins of the process

Place = tuple[int, int, int, int]


class Observed(ast.NodeTransformer):
    """``x.view(2)`` becomes ``__torch2ms_seen__(17, x).view(2)``; ``places[17]`` is that of x."""

    def __init__(self, start: int) -> None:
        self.start = start
        self.places: list[Place] = []

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        value = node.value
        place = (value.lineno, value.col_offset, value.end_lineno or 0, value.end_col_offset or 0)
        self.generic_visit(node)
        if (
            not isinstance(node.ctx, ast.Load)
            or isinstance(value, ast.Constant)
            or _is_super(value)
        ):
            return node
        number = self.start + len(self.places)
        self.places.append(place)
        args: list[ast.expr] = [ast.Constant(number), node.value]
        call = ast.Call(ast.Name(OBSERVER, ast.Load()), args, [])
        node.value = ast.copy_location(call, value)
        ast.copy_location(call.func, value)
        ast.copy_location(args[0], value)
        return node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        return node  # before Python 3.12 the places in it are not those in the file

    def visit_MatchValue(self, node: ast.AST) -> ast.AST:
        return node  # a pattern admits no call

    visit_MatchClass = visit_MatchMapping = visit_MatchValue

    # Annotations are read by others (dataclasses, torch.jit), not run for what they do.
    def visit_arg(self, node: ast.arg) -> ast.AST:
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        if node.value is not None:
            node.value = self.visit(node.value)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        returns, node.returns = node.returns, None
        self.generic_visit(node)
        node.returns = returns
        return node


def _is_super(node: ast.expr) -> bool:
    return (
        isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super"
    )


def compiled(data: bytes, path: str, start: int) -> tuple[CodeType, list[Place]]:
    """The code of a file, observed; its places are numbered from ``start``."""
    tree = ast.parse(data, path)
    observed = Observed(start)
    code = compile(observed.visit(tree), path, "exec", dont_inherit=True)
    return code, observed.places
