"""Build the new expression of a call from its row: a template with the arguments put in.

Arguments are put in as pieces of the original text, never as text that is parsed again.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass

from migrate.codegen.imports import Spelling
from migrate.mapping.calls import BoundCall
from migrate.mapping.table import Param, Signature, Table
from migrate.mapping.templates import NO_VALUE, constant, names_in, parse
from migrate.records.outcomes import Piece
from migrate.syntax.source import Source
from migrate.syntax.trees import dotted, is_super

Parts = list["str | Piece"]
_ATOMS = (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.List, ast.Dict, ast.Set,
          ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.JoinedStr)  # fmt: skip
_OPERATORS: Mapping[type, str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%",
    ast.Pow: "**", ast.MatMult: "@", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^",
    ast.LShift: "<<", ast.RShift: ">>",
}  # fmt: skip
_COMPARISONS: Mapping[type, str] = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
    ast.Is: "is", ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in",
}  # fmt: skip


@dataclass(frozen=True)
class Argument:
    """One argument of the new call: its parts, its keyword, and the old argument it comes from."""

    parts: tuple[str | Piece, ...]
    keyword: str = ""
    origin: ast.expr | None = None


def piece(source: Source, node: ast.expr, tight: bool) -> Piece:
    """An argument as a piece of the text, in parentheses where the place binds tighter."""
    if isinstance(node, (ast.NamedExpr, ast.Yield, ast.YieldFrom, ast.Await)):
        return Piece(source.span(node), True)
    if isinstance(node, ast.Constant):
        return Piece(source.span(node))
    if isinstance(node, ast.Tuple):
        bare = source.data[source.span(node).start : source.span(node).start + 1] != b"("
        return Piece(source.span(node), bare)
    loose = not isinstance(node, _ATOMS) or is_split(source, node)
    return Piece(source.span(node), tight and loose)


def is_split(source: Source, node: ast.expr) -> bool:
    """Whether lines end in it outside of any bracket of its own: those around it held it."""
    text = source.text(source.span(node))
    if "\n" not in text:
        return False
    try:
        ast.parse(text, mode="eval")
    except SyntaxError:
        return True
    return False


class Substitution:
    """Puts the arguments of one call into the expressions of a template.

    ``needs`` collects the import roots of the names that were written.
    """

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

    def expression(self, node: ast.expr, tight: bool) -> Parts:
        """The parts of a template expression; ``tight``: an operator or attribute follows."""
        name = dotted(node)
        if name.partition(".")[0] in ("mindspore", "helpers"):
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
            if is_super(self.receiver):
                return ["self"]  # super() is no value
            return [piece(self.source, self.receiver, True)]
        given = self._given(node.id)
        if isinstance(given, tuple):
            parts: Parts = ["("]
            for item in given:
                parts += [piece(self.source, item, False), ", "]
            return [*parts[:-1], ",)" if len(given) == 1 else ")"]
        param = self.params.get(node.id)
        meant = param is not None and param.type == "bool"
        if meant and isinstance(given, ast.Constant) and type(given.value) is int:
            return [str(bool(given.value))]  # torch takes 1 for True, MindSpore does not
        if given is not None:
            return [piece(self.source, given, tight)]
        if param is None:
            return [node.id]
        if param.kind in ("args", "kwargs"):
            return ["()"]
        default = param.default or "None"
        return [f"({default})" if tight and default.startswith("-") else default]

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
        return [Argument(("*", *self.expression(value.value, True)))]

    def _plain(self, item: ast.expr) -> Argument:
        if isinstance(item, ast.Starred):
            return Argument((Piece(self.source.span(item)),), origin=item)
        return Argument((piece(self.source, item, False),), origin=item)

    def _owner(self, node: ast.expr) -> Parts:
        """What an attribute is taken of."""
        of_receiver = isinstance(node, ast.Name) and node.id == "self"
        if of_receiver and self.receiver is not None:
            return [piece(self.source, self.receiver, True)]
        return self.expression(node, True)

    def _Attribute(self, node: ast.Attribute) -> Parts:
        parts = self._owner(node.value)
        if len(parts) == 1 and isinstance(parts[0], Piece) and self._is_number(parts[0]):
            parts = [Piece(parts[0].span, True)]  # 2.real is no Python
        return [*parts, f".{node.attr}"]

    def _is_number(self, part: Piece) -> bool:
        return self.source.data[part.span.start : part.span.start + 1].isdigit()

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

    def _each(self, nodes: list[ast.expr]) -> list[Parts]:
        items: list[Parts] = []
        for node in nodes:
            if isinstance(node, ast.Starred):
                items += [list(a.parts) for a in self._starred(node)]
            else:
                items.append(self.expression(node, False))
        return items

    def _items(self, nodes: list[ast.expr]) -> Parts:
        parts: Parts = []
        for index, one in enumerate(self._each(nodes)):
            parts += [", ", *one] if index else one
        return parts

    def _Tuple(self, node: ast.Tuple) -> Parts:
        alone = len(self._each(node.elts)) == 1
        return ["(", *self._items(node.elts), ",)" if alone else ")"]

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


@dataclass(frozen=True)
class Rendering:
    """A new expression: callee and arguments where it is one call, else only ``parts``."""

    parts: tuple[str | Piece, ...]
    needs: frozenset[str]
    callee: tuple[str | Piece, ...] | None = None
    arguments: tuple[Argument, ...] = ()


class Renderer(Substitution):
    """Renders one template for one call."""

    def render(self, template: str, tight: bool = False) -> Rendering:
        """The whole template; ``tight``: what surrounds it binds tighter than an operator."""
        node = parse(template)
        if isinstance(node, ast.Call):
            return self._call(node)
        given = self._given(node.id) if isinstance(node, ast.Name) else None
        split = isinstance(given, ast.expr) and is_split(self.source, given)
        parts = self.expression(node, tight or split)
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
