"""In: a row and the arguments of a call. Out: the parts of the new expression, or why none.

Templates and defaults are Python source; they are parsed here once, and arguments are put in as
pieces of the original text, never as text that is parsed again.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from migrate.calls import BoundCall
from migrate.imports import Spelling
from migrate.outcomes import Piece
from migrate.source import Source
from migrate.table import Param, Signature, Table

Parts = list["str | Piece"]
_ATOMS = (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.List, ast.Dict, ast.Set,
          ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.JoinedStr)  # fmt: skip


@dataclass(frozen=True)
class Argument:
    """One argument of the new call: its parts, its keyword, and the old argument it comes from."""

    parts: tuple[str | Piece, ...]
    keyword: str = ""
    origin: ast.expr | None = None


@dataclass(frozen=True)
class Rendering:
    """A new expression: callee and arguments where it is one call, else only ``parts``."""

    parts: tuple[str | Piece, ...]
    needs: frozenset[str]
    callee: tuple[str | Piece, ...] | None = None
    arguments: tuple[Argument, ...] = ()


@lru_cache(maxsize=4096)
def parse(template: str) -> ast.expr:
    """A template as an expression. Raises SyntaxError."""
    return ast.parse(template.strip(), mode="eval").body


def piece(source: Source, node: ast.expr, tight: bool) -> Piece:
    """An argument as a piece of the text, in parentheses where the place binds tighter."""
    if isinstance(node, (ast.NamedExpr, ast.Yield, ast.YieldFrom, ast.Await)):
        return Piece(source.span(node), True)
    if isinstance(node, ast.Constant):
        number = isinstance(node.value, (int, float, complex)) and not isinstance(node.value, bool)
        return Piece(source.span(node), tight and number)
    if isinstance(node, ast.Tuple):
        bare = source.data[source.span(node).start : source.span(node).start + 1] != b"("
        return Piece(source.span(node), bare)
    return Piece(source.span(node), tight and not isinstance(node, _ATOMS))


class Renderer:
    """Renders one template for one call."""

    def __init__(
        self,
        source: Source,
        spelling: Spelling,
        table: Table,
        bound: BoundCall | None,
        receiver: ast.expr | None = None,
        names: Mapping[str, Param] | None = None,
    ) -> None:
        self.source, self.spelling, self.table = source, spelling, table
        self.bound, self.receiver = bound, receiver
        self.params = dict(names or {})
        if bound is not None:
            self.params.update({p.name: p for p in bound.signature.params})
        self.needs: set[str] = set()

    def render(self, template: str) -> Rendering:
        """The whole template."""
        node = parse(template)
        if isinstance(node, ast.Call):
            return self._call(node)
        parts = self.expression(node, False)
        return Rendering(tuple(parts), frozenset(self.needs))

    # -- one call -------------------------------------------------------------------------------

    def _call(self, node: ast.Call) -> Rendering:
        callee = self.expression(node.func, True)
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
        root = name.partition(".")[0] if name else ""
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
        return next(iter(found), None)

    def _arguments(self, node: ast.Call, target: Signature | None) -> list[Argument]:
        found: list[Argument] = []
        gap = False
        positional = [p for p in target.params if p.kind in ("pos", "any")] if target else []
        for index, value in enumerate(node.args):
            if isinstance(value, ast.Starred):
                found += self._starred(value)
                continue
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
        return Argument(tuple(self.expression(value, False)), keyword, origin)

    def _starred(self, value: ast.Starred) -> list[Argument]:
        """``*size`` stands for all of a variadic argument."""
        if isinstance(value.value, ast.Name):
            given = self._given(value.value.id)
            if isinstance(given, tuple):
                return [self._plain(item) for item in given]
            if given is None and value.value.id in self.params:
                return []
        return [Argument(("*", *self.expression(value.value, True)))]

    def _plain(self, item: ast.expr) -> Argument:
        if isinstance(item, ast.Starred):
            return Argument((Piece(self.source.span(item)),), origin=item)
        return Argument((piece(self.source, item, False),), origin=item)

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
            found.append(Argument((*stars, piece(self.source, item, not name)), name, item))
        return found

    keyword_names: Mapping[int, str] = {}

    # -- omitted arguments ----------------------------------------------------------------------

    def _names(self, value: ast.expr) -> list[str]:
        return [n.id for n in ast.walk(value) if isinstance(n, ast.Name) and n.id in self.params]

    def _given(self, name: str) -> ast.expr | tuple[ast.expr, ...] | None:
        return self.bound.values.get(name) if self.bound is not None else None

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
        if mine is _UNKNOWN or theirs is _UNKNOWN:
            return False
        if isinstance(mine, float) and isinstance(theirs, (int, float)):
            return abs(mine - theirs) <= 1e-12 * max(1.0, abs(mine)) and theirs is not True
        return type(mine) is type(theirs) and mine == theirs

    # -- expressions ----------------------------------------------------------------------------

    def expression(self, node: ast.expr, tight: bool) -> Parts:
        """The parts of a template expression; ``tight``: an operator or attribute follows."""
        name = dotted(node)
        if name is not None and name.partition(".")[0] in ("mindspore", "helpers"):
            text, root = self.spelling.local(name)
            self.needs.add(root)
            return [text]
        if isinstance(node, ast.Name):
            return self._name(node, tight)
        method = getattr(self, f"_{type(node).__name__}", None)
        if method is None:
            return [ast.unparse(node)]
        found: Parts = method(node)
        return ["(", *found, ")"] if tight and not isinstance(node, _ATOMS) else found

    def _name(self, node: ast.Name, tight: bool) -> Parts:
        if node.id == "self" and self.receiver is not None:
            return [piece(self.source, self.receiver, True)]
        given = self._given(node.id)
        if isinstance(given, tuple):
            parts: Parts = ["("]
            for item in given:
                parts += [piece(self.source, item, False), ", "]
            return [*parts[: -1 if len(given) > 1 else None], ")"]
        if given is not None:
            return [piece(self.source, given, tight)]
        param = self.params.get(node.id)
        if param is None:
            return [node.id]
        if param.kind in ("args", "kwargs"):
            return ["()"]
        default = param.default or "None"
        return [f"({default})" if tight and default.startswith("-") else default]

    def _Attribute(self, node: ast.Attribute) -> Parts:
        return [*self.expression(node.value, True), f".{node.attr}"]

    def _Subscript(self, node: ast.Subscript) -> Parts:
        inner = node.slice
        index = (
            self._items(inner.elts)
            if isinstance(inner, ast.Tuple)
            else self.expression(inner, False)
        )
        return [*self.expression(node.value, True), "[", *index, "]"]

    def _Slice(self, node: ast.Slice) -> Parts:
        parts: Parts = self.expression(node.lower, False) if node.lower else []
        parts.append(":")
        parts += self.expression(node.upper, False) if node.upper else []
        return parts + ([":", *self.expression(node.step, False)] if node.step else [])

    def _Call(self, node: ast.Call) -> Parts:
        parts: Parts = [*self.expression(node.func, True), "("]
        items: list[Parts] = []
        for value in node.args:
            if isinstance(value, ast.Starred):
                items += [list(a.parts) for a in self._starred(value)]
            else:
                items.append(self.expression(value, False))
        for item in node.keywords:
            prefix = f"{item.arg}=" if item.arg else "**"
            items.append([prefix, *self.expression(item.value, not item.arg)])
        for index, one in enumerate(items):
            parts += [", ", *one] if index else one
        return [*parts, ")"]

    def _items(self, nodes: list[ast.expr]) -> Parts:
        items: list[Parts] = []
        for node in nodes:
            if isinstance(node, ast.Starred):
                items += [list(a.parts) for a in self._starred(node)]
            else:
                items.append(self.expression(node, False))
        parts: Parts = []
        for index, one in enumerate(items):
            parts += [", ", *one] if index else one
        return parts

    def _Tuple(self, node: ast.Tuple) -> Parts:
        return ["(", *self._items(node.elts), ",)" if len(node.elts) == 1 else ")"]

    def _List(self, node: ast.List) -> Parts:
        return ["[", *self._items(node.elts), "]"]

    def _BinOp(self, node: ast.BinOp) -> Parts:
        symbol = _OPERATORS[type(node.op)]
        left, right = self.expression(node.left, True), self.expression(node.right, True)
        return [*left, f" {symbol} ", *right]

    def _UnaryOp(self, node: ast.UnaryOp) -> Parts:
        symbol = {ast.USub: "-", ast.Not: "not ", ast.Invert: "~", ast.UAdd: "+"}[type(node.op)]
        return [symbol, *self.expression(node.operand, True)]

    def _Compare(self, node: ast.Compare) -> Parts:
        parts = self.expression(node.left, True)
        for op, other in zip(node.ops, node.comparators, strict=True):
            parts += [f" {_COMPARISONS[type(op)]} ", *self.expression(other, True)]
        return parts

    def _BoolOp(self, node: ast.BoolOp) -> Parts:
        word = " and " if isinstance(node.op, ast.And) else " or "
        parts: Parts = []
        for index, value in enumerate(node.values):
            parts += [word] if index else []
            parts += self.expression(value, True)
        return parts

    def _IfExp(self, node: ast.IfExp) -> Parts:
        return [
            *self.expression(node.body, True),
            " if ",
            *self.expression(node.test, True),
            " else ",
            *self.expression(node.orelse, True),
        ]


_OPERATORS: Mapping[type, str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%",
    ast.Pow: "**", ast.MatMult: "@", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^",
    ast.LShift: "<<", ast.RShift: ">>",
}  # fmt: skip
_COMPARISONS: Mapping[type, str] = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
    ast.Is: "is", ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in",
}  # fmt: skip
_UNKNOWN = object()


def constant(node: ast.expr, defaults: Mapping[str, str | None]) -> object:
    """The value of a constant expression over parameter defaults; a marker where it has none."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name):
        text = defaults.get(node.id)
        return _UNKNOWN if text is None else constant(ast.parse(text, mode="eval").body, {})
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.Not)):
        value = constant(node.operand, defaults)
        if value is _UNKNOWN:
            return value
        if isinstance(node.op, ast.Not):
            return not value
        return -value if isinstance(value, (int, float)) else _UNKNOWN
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
        left, right = constant(node.left, defaults), constant(node.right, defaults)
        if isinstance(left, (int, float)) and isinstance(right, (int, float)):
            return left + right if isinstance(node.op, ast.Add) else left - right
    if isinstance(node, ast.Tuple):
        items = [constant(e, defaults) for e in node.elts]
        return _UNKNOWN if _UNKNOWN in items else tuple(items)
    return _UNKNOWN


def dotted(node: ast.expr) -> str | None:
    """ "mindspore.nn.ReLU" for such a chain of names, else None."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    return ".".join([node.id, *reversed(parts)])
