"""Put the new text of an edit together: text, and what of the source stands in it as nodes."""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace
from typing import Any

import libcst as cst

from migrate.codegen.blocks import Run
from migrate.codegen.targets import Targets
from migrate.records.outcomes import Edit, Piece, Span


@dataclass(frozen=True)
class Fill:
    """An expression that a name in a template stands for; ``level``: edits of it that are done."""

    node: Any
    level: int = 0


Content = str | Fill | Run


class Composing(Targets):
    """Gives the text and the nodes that the parts of an edit stand for."""

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
                text = self.source.text(part.span)
                made = self._contents(part.node) if text.strip() else [text]  # an indentation
                made = made or self._smalls_in(part.span)
                if not made:
                    self._fail(edit.site.span.start, f"no node: {text}")
                found += made
        return found

    def _contents(self, node: ast.AST | None) -> list[Content]:
        """Return what has no expression of its own in LibCST: ``*a``, and indexes ``a:b, c``."""
        if isinstance(node, ast.Starred):
            return ["*", *self._contents(node.value)]
        if isinstance(node, ast.Slice):
            held = self.tree.at.get(self.source.span(node), ())
            colons = (n.first_colon for n in held if isinstance(n, cst.Slice))
            colon = next(map(cst.Module([]).code_for_node, colons), ":")
            found = [*self._contents(node.lower), colon, *self._contents(node.upper)]
            return [*found, colon, *self._contents(node.step)] if node.step else found
        if isinstance(node, ast.expr):
            expression = self._expression_at(self.source.span(node))
            if expression is not None:
                return [Fill(expression)]
        items = node.elts if isinstance(node, ast.Tuple) else []
        return [part for item in items for part in (", ", *self._contents(item))][1:]

    def _smalls_in(self, span: Span) -> list[Content]:
        """Return the statements of one line in a span, which are no run of a block."""
        inside = [n for place, nodes in self.tree.at.items() for n in nodes
                  if isinstance(n, cst.BaseSmallStatement)
                  and span.start <= place.start and place.end <= span.end]  # fmt: skip
        inside.sort(key=lambda n: self.tree.span(n).start)
        found: list[Content] = []
        for small in inside:
            edit = self.small.get(id(small))
            made = [Fill(small)] if edit is None else self._expanded(edit, 0)
            if id(small) in self.beside:
                self._fail(span.start, "lines beside a statement that moves from a header's line")
            found += ["; ", *made] if made and made != [""] else []
        return found[1:]

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

    def is_lone(self, node: Any) -> bool:
        """Return whether a generator is all that a call is given."""
        if not isinstance(node, cst.GeneratorExp) or node.lpar:
            return False
        return isinstance(self.tree.parents.get(id(node)), cst.Arg)
