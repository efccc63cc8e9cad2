"""In: a node of a syntax tree. Out: the nodes right below it, the parameters of a function."""

from __future__ import annotations

import ast

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


def children(node: ast.AST) -> list[ast.AST]:
    """The nodes right below a node; contexts and operators, which have no place, are left out."""
    found: list[ast.AST] = []
    for name in node._fields:
        value = getattr(node, name, None)
        if isinstance(value, list):
            found += [v for v in value if isinstance(v, ast.AST) and v._fields]
        elif isinstance(value, ast.AST) and value._fields:
            found.append(value)
    return found


def all_parameters(arguments: ast.arguments) -> list[ast.arg]:
    """Every parameter: by place, by keyword, then *args and **kwargs."""
    found = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    return found + [a for a in (arguments.vararg, arguments.kwarg) if a is not None]


def is_super(node: ast.AST) -> bool:
    """``super()`` or ``super(Class, self)``"""
    return isinstance(node, ast.Call) and getattr(node.func, "id", "") == "super"
