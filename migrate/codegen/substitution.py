"""Build the new expression of a call from its row: a template with the arguments put in.

Arguments are put in as pieces of the original text, never as text that is parsed again.
"""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from migrate.codegen.imports import Spelling
from migrate.codegen.precedence import Slot
from migrate.mapping.calls import BoundCall
from migrate.mapping.table import Param, Signature, Table
from migrate.mapping.templates import LIBRARIES, NO_VALUE, constant, names_in, parse
from migrate.records.outcomes import Added, Outcome, Part, Piece, Site, Span
from migrate.syntax.source import Source
from migrate.syntax.trees import dotted, is_super

Parts = list["str | Piece"]
_MARK = "_torch2ms_below_"


@dataclass(frozen=True)
class Argument:
    """One argument of the new call: its parts, its keyword, and the old argument it comes from."""

    parts: tuple[str | Piece, ...]
    keyword: str = ""
    origin: ast.expr | None = None


def piece(source: Source, node: ast.expr) -> Piece:
    """Return an expression as a piece of the text, in parentheses where its place needs them."""
    return Piece(source.span(node), node)


def added(source: Source, site: Site, node: ast.AST, part: Part, *parts: str | Piece) -> Added:
    """Return an edit of a part of a call, a statement or a definition."""
    place = source.span(node)
    # the end of a call is its own, as is the beginning of a statement
    at = place.end if isinstance(node, ast.Call) else place.start
    return Added(site.at(Span(at, at)), Outcome.CONVERTED, parts, part=part, node=place)


def joined(source: Source, lines: Iterable[Sequence[str | Piece]]) -> tuple[str | Piece, ...]:
    """Return lines, each of some parts, as the parts of one text."""
    return tuple(part for line in lines for part in (source.newline, *line))[1:]


def inside(source: Source, call: ast.Call) -> list[str | Piece]:
    """Return the arguments of a call, with commas between them."""
    given: list[ast.expr | ast.keyword] = [*call.args, *call.keywords]
    parts: list[str | Piece] = []
    for one in sorted(given, key=lambda g: source.span(g).start):
        value = one.value if isinstance(one, ast.keyword) else one
        name = one.arg if isinstance(one, ast.keyword) else ""
        word = f"{name}=" if name else "**" if name is None else ""
        parts += [*([", "] if parts else []), *([word] if word else []), piece(source, value)]
    return parts


@lru_cache(maxsize=16384)
def _skeleton(node: ast.expr) -> tuple[tuple[str, ...], tuple[tuple[ast.expr, Slot], ...]]:
    """Return the text of a part of a template around what is right below it, and that."""
    below: list[tuple[ast.expr, Slot]] = []

    def marked(held: ast.AST, holder: ast.AST) -> ast.AST:
        bare = isinstance(holder, ast.Subscript) and isinstance(held, ast.Tuple)
        if not isinstance(held, ast.expr) or isinstance(held, ast.Slice) or bare:
            return folded(held)
        below.append((held, _slot_of(holder, held)))
        return ast.Name(f"{_MARK}{len(below) - 1}_", ast.Load())

    def folded(holder: ast.AST) -> ast.AST:
        made = copy.copy(holder)
        for name, value in ast.iter_fields(holder):
            if isinstance(value, ast.AST):
                setattr(made, name, marked(value, holder))
            elif isinstance(value, list):
                items = [marked(v, holder) if isinstance(v, ast.AST) else v for v in value]
                setattr(made, name, items)
        return made

    texts = re.split(_MARK + r"(\d+)_", ast.unparse(folded(node)))
    return tuple(texts[::2]), tuple(below[int(place)] for place in texts[1::2])


@dataclass(frozen=True)
class Rendering:
    """A new expression: callee and arguments where it is one call, else only ``parts``."""

    parts: tuple[str | Piece, ...]
    needs: frozenset[str]
    callee: tuple[str | Piece, ...] | None = None
    arguments: tuple[Argument, ...] = ()


class Renderer:
    """Puts the arguments of one call into a template.

    ``needs`` collects the import roots of the names that were written.
    """

    def __init__(
        self,
        source: Source,
        spelling: Spelling,
        table: Table,
        bound: BoundCall | None,
        receiver: ast.expr | None = None,
    ) -> None:
        self.source, self.spelling, self.table = source, spelling, table
        self.bound, self.receiver = bound, receiver
        self.params = {p.name: p for p in bound.signature.params} if bound is not None else {}
        self.needs: set[str] = set()
        self.numbers: frozenset[int] = frozenset()  # the arguments that are Tensors for ints
        self.counted: frozenset[int] = frozenset()  # those that are lists of such
        self.taken_as: dict[int, str] = {}  # the types that torch takes others for

    def _piece(self, node: ast.expr) -> Parts:
        """Return an argument; ``int(x)`` of a Tensor that is passed for a number, ``bool(x)`` or
        ``float(x)`` of what MindSpore does not take for one."""
        held = piece(self.source, node)
        if (kind := self.taken_as.get(id(node))) is not None:
            if isinstance(node, ast.Constant):
                return [repr(bool(node.value) if kind == "bool" else float(node.value))]  # type: ignore[arg-type]
            return [f"{kind}(", held, ")"]
        if id(node) in self.counted:
            return ["[int(n) for n in ", held, "]"]
        return ["int(", held, ")"] if id(node) in self.numbers else [held]

    def expression(self, node: ast.expr, slot: Slot = Slot.OPEN) -> Parts:
        """The parts of a template expression for a place."""
        name = dotted(node)
        if name.partition(".")[0] in ("mindspore", "helpers", *LIBRARIES):
            text, root = self.spelling.local(name)
            self.needs.add(root)
            return [text]
        if isinstance(node, ast.Name):
            return self._name(node, slot)
        if isinstance(node, ast.Call):
            return [*self.expression(node.func, Slot.TIGHT), "(", *self._items(node), ")"]
        if isinstance(node, (ast.List, ast.Tuple)):
            opening, end = "[]" if isinstance(node, ast.List) else "()"
            alone = end == ")" and len(self._each(node)) == 1
            return [opening, *self._items(node), f",{end}" if alone else end]
        texts, below = _skeleton(node)
        parts: Parts = [texts[0]]
        for text, (inner, place) in zip(texts[1:], below, strict=True):
            parts += [*self.expression(inner, place), text]
        parts = [p for p in parts if p]
        return ["(", *parts, ")"] if _is_loose(slot, node) else parts

    def _name(self, node: ast.Name, slot: Slot) -> Parts:
        if node.id == "self" and self.receiver is not None:
            if is_super(self.receiver) and slot is not Slot.OWNER:
                return ["self"]  # super() is no value
            return [piece(self.source, self.receiver)]
        given = self._given(node.id)
        shown = given.elts if isinstance(given, (ast.Tuple, ast.List)) else ()
        if any(id(item) in self.numbers for item in shown):
            given = tuple(shown)
        if isinstance(given, tuple):
            parts: Parts = ["("]
            for item in given:
                parts += [*self._piece(item), ", "]
            return [*parts[:-1], ",)" if len(given) == 1 else ")"]
        param = self.params.get(node.id)
        if given is not None:
            return self._piece(given)
        if param is None:
            return [node.id]
        if param.kind in ("args", "kwargs"):
            return ["()"]
        default = param.default or "None"
        return [f"({default})" if _is_loose(slot, parse(default)) else default]

    def _given(self, name: str) -> ast.expr | tuple[ast.expr, ...] | None:
        return self.bound.values.get(name) if self.bound is not None else None

    def _starred(self, value: ast.Starred) -> list[Argument]:
        """``*size`` stands for all of a variadic argument."""
        if isinstance(value.value, ast.Name):
            given = self._given(value.value.id)
            if isinstance(given, tuple):
                return [self._plain(item) for item in given]
            if given is None and value.value.id in self.params:
                return []
        return [Argument(("*", *self.expression(value.value, Slot.TIGHT)))]

    def _plain(self, item: ast.expr) -> Argument:
        return Argument(tuple(self._piece(item)), origin=item)

    def _items(self, node: ast.Call | ast.List | ast.Tuple) -> Parts:
        """The arguments or elements, with commas between them."""
        parts: Parts = []
        for index, one in enumerate(self._each(node)):
            parts += [", ", *one] if index else one
        return parts

    def _each(self, node: ast.Call | ast.List | ast.Tuple) -> list[Parts]:
        items: list[Parts] = []
        for value in node.args if isinstance(node, ast.Call) else node.elts:
            if isinstance(value, ast.Starred):
                items += [list(a.parts) for a in self._starred(value)]
            else:
                items.append(self.expression(value))
        for item in node.keywords if isinstance(node, ast.Call) else ():
            prefix = f"{item.arg}=" if item.arg else "**"
            items.append([prefix, *self.expression(item.value, _slot_of(item, item.value))])
        return items

    def render(self, template: str) -> Rendering:
        """The whole template."""
        node = parse(template)
        if isinstance(node, ast.Call):
            return self._call(node)
        parts = self.expression(node, Slot.FREE)
        return Rendering(tuple(parts), frozenset(self.needs))

    # -- one call -------------------------------------------------------------------------------

    def _call(self, node: ast.Call) -> Rendering:
        callee = self.expression(node.func, Slot.TIGHT)
        target = self._target(node)
        arguments = self._arguments(node, target)
        parts: Parts = [*callee, "("]
        for index, argument in enumerate(arguments):
            parts += [", "] if index else []
            parts += [f"{argument.keyword}="] if argument.keyword else []
            parts += argument.parts
        parts.append(")")
        return Rendering(tuple(parts), frozenset(self.needs), tuple(callee), tuple(arguments))

    def _target(self, node: ast.Call) -> Signature | None:
        """The target's signature: of several the first that knows every argument."""
        name = dotted(node.func)
        root = name.partition(".")[0]
        if root not in ("mindspore", "helpers") and isinstance(node.func, ast.Attribute):
            name = f"mindspore.Tensor.{node.func.attr}"
        found = self.table.target_signatures(name) if name else ()
        keywords = {k.arg for k in node.keywords if k.arg}
        for signature in found:
            names = [p.name for p in signature.params if p.kind in ("pos", "any")]
            spread = any(p.kind == "args" for p in signature.params)
            if keywords <= {p.name for p in signature.params} and (
                spread or len(node.args) <= len(names)
            ):
                return signature
        return next(iter(found), self._mirrored(node))

    def _mirrored(self, node: ast.Call) -> Signature | None:
        """torch's own signature, for a method of a class of another package that stands for it."""
        if self.bound is None or not isinstance(node.func, ast.Attribute) or node.keywords:
            return None
        known = self.table.of_libraries
        mine = [known[name]] if (name := dotted(node.func)) in known else []
        mine += [f"{owner}.{node.func.attr}" for owner in known.values()]
        rows = (row for name in mine for row in self.table.rows(name))
        if not any(self.bound.signature in row.signatures for row in rows):
            return None
        names = [p.name for p in self.bound.signature.params]
        order = [self._names(value) for value in node.args]
        return self.bound.signature if order == [[n] for n in names[: len(order)]] else None

    def _arguments(self, node: ast.Call, target: Signature | None) -> list[Argument]:
        found: list[Argument] = []
        gap = False
        positional = [p for p in target.params if p.kind in ("pos", "any")] if target else []
        spread = self.bound.spread if self.bound is not None else ()
        for index, value in enumerate(node.args):
            if isinstance(value, ast.Starred):
                found += self._starred(value)
                continue
            if isinstance(value, ast.Name) and value.id in spread[1:]:
                continue  # the first stands for all of them
            slot = positional[index] if index < len(positional) else None
            if self._omitted(value) and slot is not None and self._same_default(value, slot):
                gap = True
                continue
            keyword = self._asked_by_keyword(value)
            named = slot is not None and slot.kind == "any" and (gap or keyword)
            assert not gap or named, f"{ast.unparse(node)}: no keyword for argument {index}"
            gap = gap or bool(named)
            found.append(self._argument(value, slot.name if slot is not None and named else ""))
        by_name = {p.name: p for p in target.params} if target else {}
        for item in node.keywords:
            if item.arg is None:
                found += self._spread(item.value)
                continue
            slot = by_name.get(item.arg)
            if self._omitted(item.value) and slot and self._same_default(item.value, slot):
                continue
            found.append(self._argument(item.value, item.arg))
        return found

    def _argument(self, value: ast.expr, keyword: str) -> Argument:
        origins = [o for n in self._names(value) if (o := self._given(n)) is not None]
        origin = origins[0] if len(origins) == 1 and isinstance(origins[0], ast.expr) else None
        return Argument(tuple(self.expression(value)), keyword, origin)

    def _spread(self, value: ast.expr) -> list[Argument]:
        """``**axes`` stands for all extra keyword arguments, as they were written."""
        assert isinstance(value, ast.Name) and self.bound is not None
        given = self._given(value.id)
        if not isinstance(given, tuple):
            return []
        found = []
        for item in given:
            name = self.keyword_names.get(id(item), "")
            stars = () if name else ("**",)
            found.append(Argument((*stars, piece(self.source, item)), name, item))
        return found

    keyword_names: Mapping[int, str] = {}

    # -- omitted arguments ----------------------------------------------------------------------

    def _names(self, value: ast.expr) -> list[str]:
        return [name for name in names_in(value) if name in self.params]

    def _omitted(self, value: ast.expr) -> bool:
        names = self._names(value)
        return bool(names) and all(self._given(n) is None for n in names)

    def _asked_by_keyword(self, value: ast.expr) -> bool:
        if self.bound is None:
            return False
        names = self._names(value)
        return bool(names) and all(n in self.bound.keywords for n in names)

    def _same_default(self, value: ast.expr, slot: Param) -> bool:
        """Whether the target's default is what torch's defaults make of the value."""
        if slot.default is None:
            return False
        mine = constant(value, {n: self.params[n].default for n in self._names(value)})
        theirs = constant(ast.parse(slot.default, mode="eval").body, {})
        if mine is NO_VALUE or theirs is NO_VALUE:
            return False
        plain = not isinstance(mine, bool) and not isinstance(theirs, bool)
        if plain and isinstance(mine, (int, float)) and isinstance(theirs, (int, float)):
            return abs(mine - theirs) <= 1e-12 * max(1.0, abs(mine))
        return type(mine) is type(theirs) and mine == theirs


# -- parentheses inside templates ----------------------------------------------------------------

_ATOMS = (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.List, ast.Dict, ast.Set,
          ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.JoinedStr, ast.Constant,
          ast.Starred)  # fmt: skip
_OPERATORS = (ast.BinOp, ast.UnaryOp, ast.Compare, ast.Await, ast.Starred)
_TUPLES = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Return, ast.For, ast.AsyncFor, ast.Expr)


def _slot_of(parent: ast.AST | None, child: ast.AST) -> Slot:
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


def _is_loose(slot: Slot, node: ast.AST) -> bool:
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


def shown(source: Source, parts: Sequence[str | Piece]) -> str:
    """Return the parts as text without any parentheses, to compare them."""
    texts = (p if isinstance(p, str) else source.text(p.span) for p in parts)
    return without_parentheses("".join(texts))


def without_parentheses(text: str) -> str:
    """Return a text that is compared with others up to parentheses."""
    return text.replace("(", "").replace(")", "")
