"""Put the new text of an edit together: text, and what of the source stands in it as nodes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import libcst as cst

from migrate.codegen.blocks import Run
from migrate.codegen.targets import Targets
from migrate.records.outcomes import Edit, Piece, Span
from migrate.syntax.concrete import fields


@dataclass(frozen=True)
class Fill:
    """An expression that a name in a template stands for; ``level``: edits of it that are done."""

    node: Any
    level: int = 0


Content = str | Fill | Run


class Composing(Targets):
    """Gives the parts of edits, and of what is lifted."""

    def _expanded(self, edit: Edit, level: int) -> list[Content]:
        """Return the parts of an edit: text, and what names stand for."""
        found: list[Content] = []
        for part in edit.parts or ():
            if isinstance(part, str):
                found.append(part)
                continue
            node, run = self._expression_at(part.span), self._run_of(part, edit)
            if run is not None and part.node is None and id(edit) not in self.target:
                inner = self._stripped(part.span)
                before, behind = Span(part.span.start, inner.start), Span(inner.end, part.span.end)
                found += [self.source.text(before), run, self.source.text(behind)]
            elif node is not None:
                done = level + 1 if part.span == edit.site.span else 0
                done = len(self.own.get(id(node), ())) if part.inside else done
                found.append(Fill(node, done))
            else:
                found += self._parts(part.span, edit)
        return found

    def _run_of(self, part: Piece, edit: Edit) -> Run | None:
        run = self.blocks.run(self._stripped(part.span))
        if run is None:
            found = self.tree.at.get(part.span, ())
            chained = next((n for n in found if isinstance(n, cst.If)), None)
            return None if chained is None else Run(chained, 0, 0)
        if run.first == 0 and run.last == len(run.block.body) - 1:
            whole = isinstance(run.block, cst.IndentedBlock)
            run = replace(run, above=0 if whole else run.above)
        return replace(run, without=part.without, of=edit, span=part.span)

    def _parts(
        self, span: Span, outer: Edit | None, node: Any = None, whole: bool = False
    ) -> list[Content]:
        """Return a part of the source with the edits inside it, ``outer`` apart.

        Expressions of ``node`` that lie between them are put in as nodes.
        """
        found: list[Content] = []
        position = span.start
        for edit in self._from(span.start, span.end):
            place = edit.site.span
            if edit is outer or place.end > span.end or place.start < position:
                continue
            border = place.start == place.end and place.start in (span.start, span.end)
            if border and (not whole or id(edit) in self.placed):
                continue
            if outer is not None and place == outer.site.span:
                continue
            found += self._between(Span(position, place.start), node)
            target = self.target.get(id(edit))
            found += [Fill(target)] if target is not None else self._expanded(edit, 0)
            position = place.end
        return found + self._between(Span(position, span.end), node)

    def _between(self, span: Span, node: Any) -> list[Content]:
        """Return a part of the source without edits: its text, and the expressions of a node."""
        found: list[Content] = []
        position = span.start
        inside = self._inside(node, span) if node is not None else ()
        for place, inner in sorted(inside, key=lambda one: one[0]):
            found += [self.source.text(Span(position, place.start)), Fill(inner)]
            position = place.end
        return [*found, self.source.text(Span(position, span.end))]

    def _inside(self, node: Any, span: Span) -> Iterator[tuple[Span, Any]]:
        """Yield the largest expressions and small statements in a node that lie in a span."""
        for name in fields(type(node)):
            value = getattr(node, name)
            for child in value if isinstance(value, (tuple, list)) else (value,):
                if not isinstance(child, cst.CSTNode) or id(child) not in self.tree.spans:
                    continue
                place = self.tree.wholes.get(id(child), self.tree.span(child))
                if place.end <= span.start or place.start >= span.end:
                    continue
                whole = span.start <= place.start and place.end <= span.end
                passed = isinstance(child, cst.Expr) or self.is_lone(child)
                kinds = (cst.BaseExpression, cst.BaseSmallStatement)
                if whole and isinstance(child, kinds) and not passed:
                    yield place, child
                else:
                    yield from self._inside(child, span)

    def is_lone(self, node: Any) -> bool:
        """Return whether a generator is all that a call is given."""
        if not isinstance(node, cst.GeneratorExp) or node.lpar:
            return False
        return isinstance(self.tree.parents.get(id(node)), cst.Arg)
