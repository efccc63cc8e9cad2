"""New code as text with names for the nodes that are put in, parsed by LibCST once for a text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Protocol

import libcst as cst

from migrate.codegen.precedence import Slot, bare, slot_of
from migrate.syntax.concrete import fields

MARK = "_torch2ms_put_"
_BEGIN, _END = "_torch2ms_begin_", "_torch2ms_end_"
Line = Any  # an EmptyLine, or a statement: BaseStatement has no leading_lines


def name_of(place: int) -> str:
    """Return the name that stands for a node in a template."""
    return f"{MARK}{place}_"


def place_of(name: str) -> int | None:
    """Return which node a name stands for; None for any other name."""
    return int(name[len(MARK) : -1]) if name.startswith(MARK) else None


@lru_cache(maxsize=4096)
def expression(text: str, indent: str, newline: str) -> cst.BaseExpression | None:
    """Return a text as an expression, whose further lines are below a line with ``indent``."""
    end = "\n)" if "#" in text else ")"
    try:
        if indent and "\n" in text:
            module: Any = _module(f"if 1:\n{indent}({text}{end}\n", newline)
            found: Any = module.body[0].body.body[0].body[0].value
        else:
            config = cst.PartialParserConfig(default_newline=newline)
            found = cst.parse_expression(f"({text}{end}", config)
    except (cst.ParserSyntaxError, AttributeError):
        return None
    if not isinstance(found, cst.BaseExpression) or not found.lpar:
        return None  # ``a) + (b``, or nothing
    if not found.lpar[1:] and isinstance(found, cst.Tuple) and not found.elements:
        return None
    return found.with_changes(lpar=found.lpar[1:], rpar=found.rpar[:-1])


@lru_cache(maxsize=1024)
def lines(text: str, indent: str, newline: str) -> tuple[Line, ...] | None:
    """Return a text as statements and empty lines of a block with an indentation."""
    whole = f"{indent}{_BEGIN}{newline}{text}{newline}{indent}{_END}{newline}"
    whole = f"if 1:{newline}{whole}" if indent else whole
    try:
        module = _module(whole, newline)
    except cst.ParserSyntaxError:
        return None
    block: Any = module.body[0].body if indent else module
    if len(module.body) > 1 and indent:
        return None
    begin, *between, end = block.body
    return (*begin.leading_lines, *listed(between), *end.leading_lines)


def _module(text: str, newline: str) -> cst.Module:
    config = cst.PartialParserConfig(default_newline=newline, default_indent="    ")
    return cst.parse_module(text, config)


class Putting(Protocol):
    """What the names in a template stand for."""

    def expression(self, place: int, slot: Slot, inside: bool) -> cst.BaseExpression:
        """Return an expression for a slot; ``inside``: brackets hold its lines."""

    def small(self, place: int) -> Any:
        """Return a small statement; None where the name stands for something else."""

    def lines(self, place: int) -> Sequence[Line] | None:
        """Return statements; None where the name stands for an expression."""

    def same(self, old: Any, new: Any) -> None:
        """Take note that a statement got other lines above it."""


_HOLDING = (cst.Arg, cst.SubscriptElement, cst.List, cst.Set, cst.Dict, cst.ListComp, cst.SetComp,
            cst.DictComp, cst.FormattedStringExpression)  # fmt: skip


def filled(
    node: Any, put: Putting, inside: bool = False, parent: Any = None, field: str = ""
) -> Any:
    """Return a parsed text with the nodes in the places of their names."""
    if isinstance(node, cst.Name):
        place = place_of(node.value)
        if place is None:
            return node
        found = put.expression(place, slot_of(parent, field), inside or bool(node.lpar))
        if node.lpar:
            kept = found if isinstance(found, (cst.Tuple, cst.GeneratorExp)) else bare(found)
            lpar, rpar = (*node.lpar, *kept.lpar), (*kept.rpar, *node.rpar)
            return kept.with_changes(lpar=lpar, rpar=rpar)
        return found
    if isinstance(node, cst.IndentedBlock):
        return _block(node, put)
    if isinstance(node, cst.Expr) and isinstance(node.value, cst.Name):
        place = place_of(node.value.value)
        small = put.small(place) if place is not None else None
        if small is not None:
            return small.with_changes(semicolon=node.semicolon)
    inside = inside or isinstance(node, _HOLDING) or bool(getattr(node, "lpar", ()))
    changes: dict[str, Any] = {}
    for name in fields(type(node)):
        value = getattr(node, name)
        if isinstance(value, cst.CSTNode):
            new = filled(value, put, inside, node, name)
            if new is not value:
                changes[name] = new
        elif isinstance(value, (tuple, list)):
            items = [
                filled(v, put, inside, node, name) if isinstance(v, cst.CSTNode) else v
                for v in value
            ]
            if any(a is not b for a, b in zip(items, value, strict=True)):
                changes[name] = tuple(items)
    return node.with_changes(**changes) if changes else node


def _block(node: cst.IndentedBlock, put: Putting) -> cst.IndentedBlock:
    found = filled_lines([*listed(node.body), *node.footer], put)
    body, footer = assembled(found, put.same)
    same = len(body) == len(node.body) and all(a is b for a, b in zip(body, node.body, strict=True))
    return node if same else node.with_changes(body=body, footer=footer)


def filled_lines(given: Sequence[Line], put: Putting) -> list[Line]:
    """Return lines of a template with nodes and statements in the places of their names."""
    found: list[Line] = []
    for line in given:
        if isinstance(line, cst.EmptyLine):
            found.append(line)
            continue
        lines_put = _stands_for(line, put)
        found += [filled(line, put)] if lines_put is None else lines_put
    return found


def _stands_for(node: Line, put: Putting) -> Sequence[Line] | None:
    if not isinstance(node, cst.SimpleStatementLine) or len(node.body) != 1:
        return None
    only = node.body[0]
    if not isinstance(only, cst.Expr) or not isinstance(only.value, cst.Name):
        return None
    place = place_of(only.value.value)
    return None if place is None else put.lines(place)


def listed(body: Sequence[Any]) -> list[Line]:
    """Return statements with the empty lines and comments above them as lines of their own."""
    return [line for s in body for line in (*s.leading_lines, s)]


def assembled(
    given: Sequence[Line], same: Callable[[Any, Any], None]
) -> tuple[tuple[Any, ...], tuple[cst.EmptyLine, ...]]:
    """Return statements that have the lines above them, and the lines behind the last.

    ``same`` is called with each statement that changes and the node that replaces it.
    """
    body: list[Any] = []
    above: list[cst.EmptyLine] = []
    for line in given:
        if isinstance(line, cst.EmptyLine):
            above.append(line)
            continue
        own = line.leading_lines
        if len(own) != len(above) or any(a is not b for a, b in zip(own, above, strict=True)):
            new = line.with_changes(leading_lines=tuple(above))
            same(line, new)
            line = new
        body.append(line)
        above = []
    return tuple(body), tuple(above)
