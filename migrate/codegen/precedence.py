"""Decide where an expression needs parentheses, by its class and its place in the tree."""

from __future__ import annotations

from enum import Enum

import libcst as cst

_ATOMS = (
    cst.Name, cst.Attribute, cst.Call, cst.Subscript, cst.List, cst.Dict, cst.Set, cst.ListComp,
    cst.SetComp, cst.DictComp, cst.GeneratorExp, cst.BaseString, cst.BaseNumber, cst.Ellipsis,
)  # fmt: skip
_OPERATORS = (cst.BinaryOperation, cst.Comparison, cst.ComparisonTarget, cst.Await,
              cst.StarredElement)  # fmt: skip
_TUPLES = (
    cst.Assign, cst.AssignTarget, cst.AugAssign, cst.AnnAssign, cst.Return, cst.For, cst.Expr,
    cst.Index,
)  # fmt: skip


class Slot(Enum):
    """A place for an expression, by what it takes without parentheses."""

    FREE = "a statement or index: a tuple may be bare"
    OPEN = "an argument or element: anything but a bare tuple"
    TEXT = "the braces of an f-string: no brace and no colon may begin there"
    LOGIC = "an operand of and, or, not: a comparison as well"
    CHOICE = "a part of a conditional expression or comprehension"
    TIGHT = "an operand: only what binds tightest"
    OWNER = "the owner of an attribute: no number either"


def slot_of(parent: cst.CSTNode | None, field: str) -> Slot:
    """Return what kind of place a field of a node is."""
    if isinstance(parent, cst.Attribute):
        return Slot.OWNER
    if isinstance(parent, (cst.Subscript, cst.Call)):
        return Slot.TIGHT
    if isinstance(parent, cst.Arg):
        return Slot.TIGHT if parent.star else Slot.OPEN
    negated = isinstance(parent, cst.UnaryOperation) and isinstance(parent.operator, cst.Not)
    if isinstance(parent, cst.BooleanOperation) or negated:
        return Slot.LOGIC
    if isinstance(parent, (*_OPERATORS, cst.UnaryOperation)):
        return Slot.TIGHT
    if isinstance(parent, cst.FormattedStringExpression):
        return Slot.TEXT
    if isinstance(parent, cst.IfExp):
        return Slot.OPEN if field == "orelse" else Slot.CHOICE
    if isinstance(parent, cst.For) and field == "target":
        return Slot.FREE
    if isinstance(parent, cst.CompFor):
        return Slot.FREE if field == "target" else Slot.CHOICE
    if isinstance(parent, cst.CompIf):
        return Slot.CHOICE
    return Slot.FREE if parent is None or isinstance(parent, _TUPLES) else Slot.OPEN


def is_loose(slot: Slot, node: cst.BaseExpression) -> bool:
    """Return whether an expression without parentheses needs some in a place."""
    if isinstance(node, (cst.NamedExpr, cst.Yield, cst.GeneratorExp)):
        return True
    if isinstance(node, cst.Tuple):
        return slot is not Slot.FREE
    if slot is Slot.OWNER and isinstance(node, (cst.Integer, cst.Float)):
        return True
    if slot in (Slot.TIGHT, Slot.OWNER):
        return not isinstance(node, _ATOMS)
    if slot is Slot.LOGIC and isinstance(node, cst.BooleanOperation):
        return True
    if slot is Slot.TEXT:
        return isinstance(node, (cst.Lambda, cst.Set, cst.Dict, cst.SetComp, cst.DictComp))
    return slot in (Slot.CHOICE, Slot.LOGIC) and isinstance(node, (cst.IfExp, cst.Lambda))


def binds_like(node: cst.BaseExpression, other: cst.BaseExpression) -> bool:
    """Return whether two expressions need parentheses in the same places."""
    one, two = (type(getattr(n, "operator", None)) for n in (node, other))
    return type(node) is type(other) and one is two


def needs_none(new: cst.BaseExpression, old: cst.BaseExpression) -> bool:
    """Return whether parentheses that an old expression needed are superfluous around a new one."""
    return isinstance(new, _ATOMS) and not isinstance(old, _ATOMS)


def in_parentheses(node: cst.BaseExpression) -> cst.BaseExpression:
    """Return an expression with one more pair of parentheses."""
    lpar, rpar = (cst.LeftParen(), *node.lpar), (*node.rpar, cst.RightParen())
    return node.with_changes(lpar=lpar, rpar=rpar)


def bare(node: cst.BaseExpression) -> cst.BaseExpression:
    """Return an expression without the parentheses that only group it.

    Those of a tuple or generator are a part of it.
    """
    if not node.lpar:
        return node
    if isinstance(node, (cst.Tuple, cst.GeneratorExp)):
        return node.with_changes(lpar=node.lpar[-1:], rpar=node.rpar[:1])
    return node.with_changes(lpar=(), rpar=())
