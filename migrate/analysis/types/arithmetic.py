"""In: an operator and the kinds of its operands. Out: the kind of the result."""

from __future__ import annotations

import ast

from migrate.analysis.types.kinds import (
    ARRAY,
    FLOAT,
    INT,
    SCALAR,
    SIZE,
    STR,
    TENSOR,
    UNKNOWN,
    Kind,
    is_all,
    join,
    sequence,
)

_NUMBERS = ("int", "float", "bool")


def binary(op: ast.operator, left: Kind, right: Kind) -> Kind:
    """The kind of ``left op right``."""
    both = left | right
    if is_all(left, "Tensor") or is_all(right, "Tensor"):
        return TENSOR
    if is_all(both, *_NUMBERS):
        if isinstance(op, ast.Div):
            return FLOAT
        if is_all(left, "float") or is_all(right, "float"):
            return FLOAT
        return join(INT, *(FLOAT for a in both if a.kind == "float"))
    if is_all(left, "str"):
        return STR
    if is_all(left, "Size", "tuple") and isinstance(op, ast.Add):
        if is_all(both, "Size", "tuple") and any(a.kind == "Size" for a in left):
            return SIZE
        return sequence("tuple", join(*(i for a in both for i in a.items)) or UNKNOWN)
    for many, other in ((left, right), (right, left)):
        fixed = any(a.fixed for a in many) and is_all(many, "tuple")
        if isinstance(op, ast.Mult) and fixed and is_all(other, "int", "bool", "unknown"):
            return sequence("tuple", join(*(i for a in many for i in a.items)))  # its length?
    if is_all(left, "list", "tuple") and isinstance(op, (ast.Add, ast.Mult)):
        return frozenset(a for a in join(left, right) if a.kind in ("list", "tuple"))
    if is_all(right, "list", "tuple") and isinstance(op, ast.Mult):
        return right
    if is_all(both, "instance", *_NUMBERS) and both >= ARRAY and _numeric(both):
        return ARRAY
    if is_all(both, "instance", *_NUMBERS) and both >= SCALAR and _numeric(both - SCALAR):
        return SCALAR
    if any(a.kind == "Tensor" for a in both) and is_all(both, "Tensor", *_NUMBERS):
        return both
    return UNKNOWN


def _numeric(both: Kind) -> bool:
    """Arrays of numbers and numbers, nothing else that some library gave."""
    return all(a.kind != "instance" or a in ARRAY for a in both)
