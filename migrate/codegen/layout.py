"""Keep the layout of a call whose callee and arguments are new, by LibCST.

What stays of the old call is folded into names: LibCST reads a short text, once for every shape.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from migrate.codegen.substitution import Argument, Rendering
from migrate.records.outcomes import Piece, Span
from migrate.syntax.source import Source

if TYPE_CHECKING:
    import libcst

Parts = list["str | Piece"]


def call(source: Source, node: ast.Call, rendering: Rendering) -> tuple[str | Piece, ...]:
    """The new call with the line breaks and comments between the old arguments where they were."""
    values = _values(source, node)
    text = _folded(source, node, values)
    shape = None if text == _plain(node, values) else _shape(text, source.newline)
    if shape is None:
        return rendering.parts
    if rendering.callee is None:
        return _chained(source, node, shape, rendering.parts)
    callee = _chained(source, node, shape, rendering.callee)
    if not rendering.arguments:
        return (*callee, "()")
    order = [_index_of(a, values) for a in rendering.arguments]
    known = [o for o in order if o is not None]
    if known != sorted(set(known)) or not values:
        return (*callee, *rendering.parts[len(rendering.callee) :])
    parts: Parts = [*callee, shape.opening if known else "("]
    for place, (argument, index) in enumerate(zip(rendering.arguments, order, strict=True)):
        if place:
            parts.append(shape.gaps[index - 1] if index else shape.between)
        parts += [f"{argument.keyword}="] if argument.keyword else []
        parts += argument.parts
    return (*parts, shape.end if "\n" in shape.end or "#" in shape.end else ")")


def _chained(
    source: Source, node: ast.Call, shape: Shape, parts: tuple[str | Piece, ...]
) -> tuple[str | Piece, ...]:
    """Keep the text between a receiver and its method: a line break of a chain, a comment."""
    first, second = parts[0], parts[1] if len(parts) > 1 else None
    if not isinstance(first, Piece) or not isinstance(second, str) or not second.startswith("."):
        return parts
    owner = node.func.value if isinstance(node.func, ast.Attribute) else None
    if owner is None or first.span != source.span(owner):
        return parts
    return (first, shape.dot + second[1:], *parts[2:])


def _values(source: Source, node: ast.Call) -> list[ast.expr]:
    """The arguments in the order of the text."""
    values = [*node.args, *(k.value for k in node.keywords)]
    return sorted(values, key=lambda value: source.span(value).start)


def _index_of(argument: Argument, values: list[ast.expr]) -> int | None:
    return next((i for i, value in enumerate(values) if value is argument.origin), None)


# -- the shape of a call ------------------------------------------------------------------------


@dataclass(frozen=True)
class Shape:
    """The text of a call between what is folded: ``gaps`` lie between the arguments."""

    dot: str
    opening: str
    gaps: tuple[str, ...]
    end: str

    @property
    def between(self) -> str:
        """A comma for a new argument, and a line break where each has its own line."""
        if self.gaps and all("\n" in gap for gap in self.gaps):
            return ",\n" + self.gaps[-1].rpartition("\n")[2]
        return ", "


def _folded(source: Source, node: ast.Call, values: list[ast.expr]) -> str:
    """Return the text of a call with names for the callee, or its owner, and the arguments."""
    owner = node.func.value if isinstance(node.func, ast.Attribute) else node.func
    whole, texts = source.span(node), ["("]
    position = whole.start
    for index, span in enumerate(source.span(value) for value in (owner, *values)):
        texts += [source.text(Span(position, span.start)), f"_{index}_"]
        position = span.end
    return "".join((*texts, source.text(Span(position, whole.end)), ")"))


def _plain(node: ast.Call, values: list[ast.expr]) -> str:
    """Return the folded text of a call without a layout of its own."""
    names = {id(k.value): f"{k.arg}=" if k.arg else "**" for k in node.keywords}
    given = [f"{names.get(id(v), '')}_{i}_" for i, v in enumerate(values, 1)]
    member = f".{node.func.attr}" if isinstance(node.func, ast.Attribute) else ""
    return f"(_0_{member}({', '.join(given)}))"


@lru_cache(maxsize=4096)
def _shape(text: str, newline: str) -> Shape | None:
    """Return the shape of a folded call; None where it is no call: ``f(x for x in y)``."""
    import libcst  # a sixth of a second, that a file of plain calls need not wait

    try:
        found = libcst.parse_expression(text)
    except libcst.ParserSyntaxError:
        return None
    if not isinstance(found, libcst.Call):
        return None
    module = libcst.Module([], default_newline=newline)

    def code(*nodes: libcst.CSTNode | libcst.MaybeSentinel) -> str:
        return "".join(module.code_for_node(n) for n in nodes if isinstance(n, libcst.CSTNode))

    last = found.args[-1:]
    return Shape(
        code(found.func.dot) if isinstance(found.func, libcst.Attribute) else "",
        code(found.whitespace_after_func) + "(" + code(found.whitespace_before_args),
        tuple(code(argument.comma) for argument in found.args[:-1]),
        "".join(code(a.comma, a.whitespace_after_arg) for a in last) + ")",
    )
