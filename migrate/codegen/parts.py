"""Change parts of a node that Python's own tree has no node for: bases, arguments, targets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import libcst as cst

from migrate.codegen.precedence import in_parentheses
from migrate.codegen.templates import expression, lines
from migrate.records.outcomes import Part

_DEFAULT = cst.MaybeSentinel.DEFAULT


BESIDE = (Part.BEFORE, Part.BEHIND)


def holds(part: Part, node: Any, parents: Mapping[int, Any]) -> bool:
    """Return whether a node is of a class that has such a part."""
    if part is Part.OPERAND:
        return isinstance(parents.get(id(node)), cst.BooleanOperation)
    if part in BESIDE:
        return isinstance(node, (cst.BaseStatement, cst.BaseSmallStatement))
    if part is Part.LINES:
        return isinstance(node, cst.BaseSmallStatement)
    if part is Part.HANDLER:
        return isinstance(node, (cst.ExceptHandler, cst.ExceptStarHandler))
    if part is Part.DECORATOR:
        return isinstance(node, (cst.FunctionDef, cst.ClassDef))
    if part is Part.BASE:
        return isinstance(node, cst.ClassDef)
    if part is Part.MODULE:
        return isinstance(node, cst.ImportFrom)
    if part is Part.TARGET:
        return isinstance(node, (cst.Expr, cst.Assign))
    if part in (Part.FIRST, Part.LAST):
        return isinstance(node, cst.Call)
    return isinstance(node, (cst.FunctionDef, cst.Lambda))


def parsed(part: Part, text: str, indent: str, newline: str) -> Any:
    """Return the new text of a part as LibCST has it; None where it is no such part."""
    if part is Part.TARGET:
        return expression(text, indent, newline)
    if part is Part.MODULE:
        found = lines(f"from {text} import _", "", newline)
        return found[0].body[0] if found else None
    if part is Part.DECORATOR:
        found = lines(f"@{text}\ndef _(): pass", "", newline)
        return found[0] if found else None
    if part in (Part.PARAMETERS, Part.PARAMETER, Part.SECOND, Part.SLASH):
        found = lines(f"def _({text}): pass", "", newline)
        return found[0].params if found else None
    return expression(f"_({text})", indent, newline)


def changed(part: Part, node: Any, new: Any) -> Any:
    """Return a node with another part; ``new`` is what ``parsed`` gave, filled."""
    if part is Part.TARGET:
        return _bound(node, new)
    if part is Part.MODULE:
        return node.with_changes(module=new.module, relative=new.relative)
    if part is Part.DECORATOR:
        return node.with_changes(decorators=(*new.decorators, *node.decorators))
    if part is Part.PARAMETERS:
        return node.with_changes(params=new)
    if part in (Part.PARAMETER, Part.SECOND):
        return node.with_changes(params=_with_parameter(node.params, new, part is Part.SECOND))
    if part is Part.SLASH:
        return node.with_changes(params=_by_name(node.params))
    if part is Part.BASE:
        return node.with_changes(bases=_joined(node.bases, new.args))
    args = [a.with_changes(value=_alone(a.value)) for a in node.args]
    if part is Part.FIRST:
        return node.with_changes(args=(*new.args, *args))
    return node.with_changes(args=_joined(args, new.args, node.whitespace_before_args))


def split(node: cst.SimpleStatementLine | cst.SimpleStatementSuite) -> list[Any]:
    """Return the statements of one line, each on a line of its own."""
    bodies = [small.with_changes(semicolon=_DEFAULT) for small in node.body]
    made = [cst.SimpleStatementLine((small,)) for small in bodies]
    above = getattr(node, "leading_lines", ())
    made[0] = made[0].with_changes(leading_lines=above)
    made[-1] = made[-1].with_changes(trailing_whitespace=node.trailing_whitespace)
    return made


def chain(operand: Any, parents: Mapping[int, Any]) -> Any:
    """Return all of ``a and b and c``, which LibCST has as one operation in another."""
    top = parents[id(operand)]
    kind = type(top.operator)
    while not top.lpar and isinstance(above := parents.get(id(top)), cst.BooleanOperation):
        if above.left is not top or type(above.operator) is not kind:
            break
        top = above
    return top


def operands(top: cst.BooleanOperation) -> list[cst.BooleanOperation]:
    """Return the operations of a chain, from the outermost on."""
    found, below = [top], top.left
    while isinstance(below, cst.BooleanOperation) and not below.lpar:
        if type(below.operator) is not type(top.operator):
            break
        found.append(below)
        below = below.left
    return found


def put_last(top: Any, old: Any, moved: Sequence[Any]) -> Any:
    """Return a chain with operands, ``moved`` of the ``old`` chain, behind the others."""
    before, now = operands(old), operands(top)
    names = [before[-1].left, *(o.right for o in reversed(before))]
    values = [now[-1].left, *(o.right for o in reversed(now))]
    last = [id(m) for m in moved]
    pairs = sorted(zip(names, values, strict=True), key=lambda pair: id(pair[0]) in last)
    made = pairs[0][1]
    for operation, (_, value) in zip(reversed(now), pairs[1:], strict=True):
        made = operation.with_changes(left=made, right=value)
    return made


def _bound(node: cst.Expr | cst.Assign, target: Any) -> cst.Assign:
    """Return ``target = value`` for a value, and ``a = target = value`` for an assignment."""
    new = cst.AssignTarget(target)
    if isinstance(node, cst.Assign):
        return node.with_changes(targets=(*node.targets, new))
    return cst.Assign((new,), node.value, node.semicolon)


def _with_parameter(old: cst.Parameters, new: cst.Parameters, place: int) -> cst.Parameters:
    """Return parameters with another one at a place."""
    name = "posonly_params" if old.posonly_params else "params"
    held = getattr(old, name)
    changed = (*held[:place], *new.params, *held[place:])
    return old.with_changes(**{name: changed})


def _by_name(params: cst.Parameters) -> cst.Parameters:
    """Return parameters without the slash behind those that are only given by position."""
    behind = params.params or params.kwonly_params or params.star_kwarg
    last = params.posonly_params[-1]
    if not behind and not isinstance(params.star_arg, (cst.Param, cst.ParamStar)):
        last = last.with_changes(comma=_DEFAULT)
    both = (*params.posonly_params[:-1], last, *params.params)
    return params.with_changes(posonly_params=(), posonly_ind=_DEFAULT, params=both)


def _alone(value: cst.BaseExpression) -> cst.BaseExpression:
    """Return an argument that need not be the only one: a generator has parentheses."""
    bare = isinstance(value, cst.GeneratorExp) and not value.lpar
    return in_parentheses(value) if bare else value


def _joined(
    old: Sequence[cst.Arg], new: Sequence[cst.Arg], before: Any = None
) -> tuple[cst.Arg, ...]:
    """Return arguments with others behind them, on lines of their own where the old ones are."""
    if not old or old[-1].comma is _DEFAULT:
        return (*old, *new)
    end = old[-1].comma
    split = isinstance(before, cst.ParenthesizedWhitespace)
    comma = cst.Comma(whitespace_after=before) if split else _DEFAULT
    return (
        *old[:-1],
        old[-1].with_changes(comma=comma),
        *new[:-1],
        new[-1].with_changes(comma=end),
    )
