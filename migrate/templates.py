"""In: a row and the arguments of a call. Out: the parts of the new expression, or why none.

Templates and defaults are Python source; they are parsed here once, and arguments are put in as
pieces of the original text, never as text that is parsed again.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass

from migrate.outcomes import Piece
from migrate.substitution import Argument, Parts, Substitution, is_split, piece
from migrate.table import Param, Signature
from migrate.template_text import NO_VALUE, constant, dotted, parse


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
