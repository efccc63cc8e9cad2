"""In: an array and a change of shape from the table ("unsqueeze(2)"). Out: the array changed."""

from __future__ import annotations

import ast

import numpy as np

from migrate.parity.exchange import Array


def apply_layout(array: Array, layout: str) -> Array:
    """Apply a chain of shape changes, written as torch methods, to an array.

    Raises ValueError for a method that is not one of unsqueeze, squeeze, reshape, transpose,
    permute, flatten and t.
    """
    if not layout:
        return array
    expression = layout.removeprefix("self").lstrip(".")
    result = array
    for name, numbers in _steps(ast.parse(f"array.{expression}", mode="eval").body, layout):
        result = _step(result, name, numbers, layout)
    return result


def undo_layout(array: Array, layout: str) -> Array:
    """The array that `apply_layout` changed. Raises ValueError where that cannot be known."""
    if not layout:
        return array
    expression = layout.removeprefix("self").lstrip(".")
    result = array
    for name, numbers in reversed(
        _steps(ast.parse(f"array.{expression}", mode="eval").body, layout)
    ):
        if name in ("unsqueeze", "transpose", "t"):
            inverse = "squeeze" if name == "unsqueeze" else name
            result = _step(result, inverse, numbers, layout)
        elif name == "permute":
            result = np.transpose(result, np.argsort(numbers))
        else:
            raise ValueError(f"layout {layout!r}: {name} cannot be undone")
    return result


def _steps(node: ast.expr, layout: str) -> list[tuple[str, tuple[int, ...]]]:
    if isinstance(node, ast.Name):
        return []
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        raise ValueError(f"layout {layout!r} is not a chain of method calls")
    values = [ast.literal_eval(arg) for arg in node.args]
    numbers = tuple(n for v in values for n in (v if isinstance(v, (tuple, list)) else (v,)))
    return [*_steps(node.func.value, layout), (node.func.attr, numbers)]


def _step(array: Array, name: str, numbers: tuple[int, ...], layout: str) -> Array:
    if name == "unsqueeze":
        return np.expand_dims(array, numbers)
    if name == "squeeze":
        return np.squeeze(array, numbers or None)
    if name in ("reshape", "view"):
        return array.reshape(numbers)
    if name == "permute":
        return np.transpose(array, numbers)
    if name == "transpose":
        return np.swapaxes(array, numbers[0], numbers[1])
    if name == "t":
        return array.T
    if name == "flatten":
        return array.reshape(-1)
    raise ValueError(f"layout {layout!r}: {name} is not a known change of shape")
