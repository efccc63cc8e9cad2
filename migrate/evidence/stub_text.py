"""In: a signature as a docstring states it. Out: the same as a Python ``def`` tree."""

from __future__ import annotations

import ast


def parse_def(stated: str) -> ast.FunctionDef | None:
    """``Tensor.max(dim, keepdim=False) -> tuple(Tensor)`` as a tree; None: it is not Python.

    Docstrings write ``tuple(Tensor)`` for ``tuple[Tensor]`` and ``2^63-1`` for a large number;
    a result that cannot be read is left out, the parameters are kept.
    """
    rest = stated.partition("(")[2]
    arguments, _, result = rest.rpartition("->") if "->" in rest else (rest, "", "")
    arguments = arguments.strip().removesuffix(":").rstrip()
    returns = (
        result.strip().removesuffix(":").replace("tuple(", "tuple[").replace("Tuple(", "tuple[")
    )
    if returns.startswith("tuple[") and returns.endswith(")"):
        returns = returns[:-1] + "]"
    for text in (f"def f({arguments} -> {returns}: pass", f"def f({arguments}: pass"):
        try:
            node = ast.parse(text).body[0]
        except SyntaxError:
            continue
        if isinstance(node, ast.FunctionDef):
            return node
    return None
