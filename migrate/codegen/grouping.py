"""Decide where an expression needs parentheses; all that is written asks here."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from enum import Enum
from functools import lru_cache
from types import MappingProxyType

from migrate.records.outcomes import Piece
from migrate.syntax.source import Source

_ATOMS = (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.List, ast.Dict, ast.Set,
          ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.JoinedStr, ast.Constant,
          ast.Starred)  # fmt: skip
_OPERATORS = (ast.BinOp, ast.UnaryOp, ast.Compare, ast.Await, ast.Starred)
_TUPLES = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Return, ast.For, ast.AsyncFor, ast.Expr)


class Slot(Enum):
    """A place for an expression, by what it takes without parentheses."""

    FREE = "a statement or index: a tuple may be bare"
    OPEN = "an argument or element: anything but a bare tuple"
    TEXT = "the braces of an f-string: no brace and no colon may begin there"
    LOGIC = "an operand of and, or, not: a comparison as well"
    CHOICE = "a part of a conditional expression or comprehension"
    TIGHT = "an operand: only what binds tightest"
    OWNER = "the owner of an attribute: no number either"


def slot_of(parent: ast.AST | None, child: ast.AST) -> Slot:
    """Return what kind of place a node has in the node that holds it."""
    if isinstance(parent, ast.Attribute):
        return Slot.OWNER
    if isinstance(parent, ast.Subscript):
        return Slot.TIGHT if parent.value is child else Slot.FREE
    if isinstance(parent, ast.Call):
        return Slot.TIGHT if parent.func is child else Slot.OPEN
    negated = isinstance(parent, ast.UnaryOp) and isinstance(parent.op, ast.Not)
    if isinstance(parent, ast.BoolOp) or negated:
        return Slot.LOGIC
    if isinstance(parent, _OPERATORS) or (isinstance(parent, ast.keyword) and not parent.arg):
        return Slot.TIGHT
    if isinstance(parent, ast.FormattedValue):
        return Slot.TEXT
    if isinstance(parent, ast.IfExp):
        return Slot.OPEN if parent.orelse is child else Slot.CHOICE
    if isinstance(parent, ast.comprehension):
        return Slot.FREE if parent.target is child else Slot.CHOICE
    return Slot.FREE if parent is None or isinstance(parent, _TUPLES) else Slot.OPEN


def is_loose(slot: Slot, node: ast.AST) -> bool:
    """Return whether an expression of this class needs parentheses in a place."""
    if isinstance(node, (ast.NamedExpr, ast.Yield, ast.YieldFrom)):
        return True
    if slot is Slot.OWNER and isinstance(node, ast.Constant):
        return isinstance(node.value, (int, float)) and not isinstance(node.value, bool)
    if slot in (Slot.TIGHT, Slot.OWNER):
        return not isinstance(node, (*_ATOMS, ast.Tuple))
    if slot is Slot.LOGIC and isinstance(node, ast.BoolOp):
        return True
    if slot is Slot.TEXT:
        return isinstance(node, (ast.Lambda, ast.Set, ast.Dict, ast.SetComp, ast.DictComp))
    return slot in (Slot.CHOICE, Slot.LOGIC) and isinstance(node, (ast.IfExp, ast.Lambda))


def binds_like(node: ast.expr, other: ast.expr) -> bool:
    """Return whether two expressions need parentheses in the same places."""
    alike = type(node) is type(other)
    return alike and type(getattr(node, "op", None)) is type(getattr(other, "op", None))


def needs_parentheses(
    source: Source, slot: Slot, node: ast.expr, inside: bool, shape: ast.expr | None = None
) -> bool:
    """Return whether the text of a node needs parentheses.

    ``inside``: brackets hold its lines. ``shape``: what it becomes.
    """
    if isinstance(node, ast.Tuple) and shape is None:
        return slot is not Slot.FREE and _is_bare(source.text_of(node))
    return is_loose(slot, shape or node) or (not inside and is_split(source.text_of(node)))


def is_split(text: str) -> bool:
    """Return whether lines end in it outside of any bracket of its own: those around it held it."""
    return "\n" in text and not _statements(text, False).body


def _is_bare(text: str) -> bool:
    """Return whether a tuple has no parentheses: ``(a), (b)`` begins and ends with some."""
    return not text.startswith("(") or not isinstance(_parsed(f"f{text}"), ast.Call)


@lru_cache(maxsize=8192)
def _parsed(text: str) -> ast.expr | None:
    try:
        return ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError):
        return None


Parts = Sequence["str | Piece"]
NOTHING: Mapping[int, ast.expr] = MappingProxyType({})


def shape_of(source: Source, parts: Parts) -> ast.expr | int | None:
    """Return the expression that parts make, or the index of the piece that is all of it.

    None: they are no expression, or text that nothing can tear apart.
    """
    text = _marked(source, parts)
    if text.replace(".", "").isidentifier() and not text.startswith(_MARK):
        return None
    text, held = text.strip(), 0
    found = _parsed(text)
    if found is None:  # brackets around its place hold the lines
        found, held = _parsed(f"({text}\n)"), 1
    if found is not None and (found.lineno, found.col_offset) != (1, held):
        return None  # it has parentheses of its own
    whole = isinstance(found, ast.Name) and found.id.startswith(_MARK)
    return int(found.id.removeprefix(_MARK)) if whole else found  # type: ignore[union-attr]


def slots(source: Source, parts: Parts) -> dict[int, Slot]:
    """Return the places of the pieces among parts, by index, where these are Python."""
    return _slots(_marked(source, parts))


_MARK = "_torch2ms_piece_"


def _marked(source: Source, parts: Parts) -> str:
    """Return the parts as text with a name for each expression that is a piece."""
    texts = []
    for index, part in enumerate(parts):
        if isinstance(part, str):
            texts.append(part)
        else:
            texts.append(f"{_MARK}{index}" if part.node is not None else source.text(part.span))
    return "".join(texts)


@lru_cache(maxsize=8192)
def _slots(text: str) -> dict[int, Slot]:
    tree: ast.AST | None = _statements(text.strip())
    if not getattr(tree, "body", None):  # brackets around its place hold the lines
        tree = _parsed(f"({text.strip()}\n)")
    return {
        int(child.id.removeprefix(_MARK)): slot_of(node, child)
        for node in (ast.walk(tree) if tree is not None else ())
        for child in ast.iter_child_nodes(node)
        if isinstance(child, ast.Name) and child.id.startswith(_MARK)
    }


@lru_cache(maxsize=8192)
def _statements(text: str, indented: bool = True) -> ast.Module:
    """Return the statements of a text whose first line has lost its indentation."""
    last = text.rpartition("\n")[2]
    indent = last[: len(last) - len(last.lstrip())]
    for whole in (text, f"if 1:\n{indent or ' '}{text}") if indented else (text,):
        try:
            return ast.parse(whole)
        except (SyntaxError, ValueError):
            continue
    return ast.Module([], [])


def grouped(
    source: Source, parts: Parts, shapes: Mapping[int, ast.expr] = NOTHING, held: bool = False
) -> set[int]:
    """Return the indices of the pieces that need parentheses.

    ``shapes``: what the expressions of some pieces become by edits of their own. ``held``: the
    place has brackets around it that hold the lines.
    """
    found: set[int] = set()
    if not any(isinstance(p, Piece) and p.node is not None for p in parts):
        return found
    places, depth = slots(source, parts), 0
    for index, part in enumerate(parts):
        if isinstance(part, str):
            depth += part.count("(") + part.count("[") + part.count("{")
            depth -= part.count(")") + part.count("]") + part.count("}")
        elif part.node is not None and index in places:
            slot, shape = places[index], shapes.get(index)
            if slot not in (Slot.FREE, Slot.OPEN) and _is_wrapped(parts, index):
                continue
            wanted = needs_parentheses(source, slot, part.node, held or depth > 0, shape)
            found |= {index} if wanted else set()
    return found


def _is_wrapped(parts: Parts, index: int) -> bool:
    """Return whether the text around a piece has parentheses for it alone."""
    before, behind = parts[index - 1 : index], parts[index + 1 : index + 2]
    opens = bool(before) and str(before[0]).endswith("(")
    return opens and bool(behind) and str(behind[0]).startswith(")")


def shown(source: Source, parts: Parts) -> str:
    """Return the parts as text, without the edits inside pieces."""
    around = grouped(source, parts)
    texts = [p if isinstance(p, str) else source.text(p.span) for p in parts]
    return "".join(f"({t})" if i in around else t for i, t in enumerate(texts))
