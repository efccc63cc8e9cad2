"""Decide which nodes of the LibCST tree the edits of a file change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import libcst as cst

from migrate.codegen import parts
from migrate.codegen.blocks import CLAUSE, Blocks, Run
from migrate.codegen.precedence import Slot, slot_of
from migrate.codegen.templates import expression, name_of
from migrate.records.outcomes import Added, Edit, Part, Piece, Span, Wrap
from migrate.syntax.concrete import Concrete, fields
from migrate.syntax.source import Source

_BLOCKS = (cst.Module, cst.IndentedBlock)
_ITEMS = (cst.Decorator, cst.Arg, cst.Param, cst.Element, cst.SubscriptElement)


def in_order(edits: Sequence[Edit]) -> list[Edit]:
    """Those that change text, from first to last, an outer one before those inside it."""

    def key(edit: Edit) -> tuple[int, bool, int, bool]:
        start, end = edit.site.span
        return start, end > start, -end, not isinstance(edit, Wrap)

    return sorted((e for e in edits if e.parts is not None), key=key)


def touched(edits: Sequence[Edit]) -> list[Span]:
    """Return the parts of a source that edits change, and what they put somewhere."""
    found = [e.site.span for e in edits if e.parts is not None]
    pieces = (p.span for e in edits for p in e.parts or () if isinstance(p, Piece))
    return [*found, *pieces]


class Targets:
    """The edits of one file, by the node that each changes.

    An edit of an expression or of whole statements replaces these; one of a part (a base, a
    parameter, lines beside a statement) names the node that has it. All else is a fault.
    """

    def __init__(self, source: Source, edits: Sequence[Edit]) -> None:
        self.source, self.tree = source, Concrete(source, touched(edits))
        self.order = in_order(edits)
        self.starts = [e.site.span.start for e in self.order]
        self.rank = {id(e): rank for rank, e in enumerate(self.order)}
        self.blocks = Blocks(self.tree)
        self.own: dict[int, list[Edit]] = {}  # edits of expressions
        self.small: dict[int, Edit] = {}  # edits of statements that share their line
        self.runs: dict[tuple[int, int], list[tuple[Run, Edit]]] = {}
        self.before: dict[tuple[int, int], list[tuple[int | None, Edit]]] = {}
        self.after: dict[tuple[int, int], list[Edit]] = {}
        self.above: dict[int, list[Edit]] = {}  # lines before an elif
        self.dropped: set[int] = set()  # items of lists, and operands of and and or
        self.added: dict[int, list[Added]] = {}  # edits of parts, by the node that has them
        self.split: set[int] = set()  # lines of several statements
        self.handlers: dict[int, list[Added]] = {}  # handlers before one
        self.moved: dict[int, list[Any]] = {}  # operands that go behind the others
        self.beside: dict[int, list[Added]] = {}  # statements on the line of a small one
        self.items: dict[int, Edit] = {}  # arguments that become others
        self.quoted: dict[int, list[Edit]] = {}  # edits in texts: annotations in quotes
        self.target: dict[int, Any] = {}  # by edit: the expression that it replaces
        self.dirty: set[int] = set()
        self.failed: list[tuple[int, str]] = []
        for edit in self.order:
            self._assign(edit)

    # -- which node an edit changes -------------------------------------------------------------

    def _assign(self, edit: Edit) -> None:
        span = edit.site.span
        if isinstance(edit, Added):
            self._part(edit)
            return
        if span.start == span.end:
            self._insertion(edit)
            return
        found = self.tree.at.get(span, ())
        node = next((n for n in found if isinstance(n, cst.BaseExpression)), None)
        if node is not None and self._is_expression(edit, node):
            self.own.setdefault(id(node), []).append(edit)
            self.target[id(edit)] = node
            self._touch(node)
            return
        inner = self._stripped(span)
        item = self._item_at(inner) if not any(edit.parts or ()) else None
        if item is not None:
            self.dropped.add(id(item))
            self._touch(item)
            return
        run = self.blocks.run(inner)
        if run is not None:
            run = replace(run, above=self._above(run, span.start))
            self.runs.setdefault((id(run.block), run.first), []).append((run, edit))
            self._touch(run.block, True)
            return
        small = next((n for n in found if isinstance(n, cst.BaseSmallStatement)), None)
        if small is not None:
            self.small.setdefault(id(small), edit)
            self._touch(small)
            return
        argument = next((n for n in found if isinstance(n, cst.Arg)), None)
        if argument is not None:
            self.items.setdefault(id(argument), edit)
            self._touch(argument)
            return
        text = self._text_around(span)
        if text is not None:
            self.quoted.setdefault(id(text), []).append(edit)
            self._touch(text, True)
            return
        self._fail(span.start, f"an edit of no node: {self._text_of(edit)}")

    def _part(self, edit: Added) -> None:
        """Take note of an edit of a part of a node."""
        found = self.tree.at.get(edit.node, ())
        held = (n for n in found if parts.holds(edit.part, n, self.tree.parents))
        node = next(held, None)
        if node is None:
            self._fail(edit.site.span.start, f"no node has {edit.part.value}")
            return
        if edit.part is Part.LINES:
            self.split.add(id(self.tree.parents[id(node)]))
            self._touch(node)
            return
        if edit.part in parts.BESIDE:
            self._beside(edit, node)
            return
        if edit.part is Part.HANDLER:
            self.handlers.setdefault(id(node), []).append(edit)
            self._touch(node)
            return
        if edit.part is Part.OPERAND:
            top = parts.chain(node, self.tree.parents)
            self.moved.setdefault(id(top), []).append(node)
            self._touch(top, True)
            return
        self.added.setdefault(id(node), []).append(edit)
        self._touch(node, True)

    def _beside(self, edit: Added, node: Any) -> None:
        """Take note of lines next to a statement, or on its line where it shares that."""
        parents = self.tree.parents
        line = parents[id(node)] if isinstance(node, cst.BaseSmallStatement) else node
        edge = 0 if edit.part is Part.BEFORE else -1
        alone = isinstance(line, cst.SimpleStatementLine) and line.body[edge] is node
        if line is not node and not alone:
            self.beside.setdefault(id(node), []).append(edit)
            self._touch(node)
            return
        block: Any = parents[id(line)]
        if not isinstance(block, _BLOCKS):
            self._fail(edit.site.span.start, "lines beside an elif")
            return
        index = next(i for i, statement in enumerate(block.body) if statement is line)
        if edit.part is Part.BEFORE:
            self.before.setdefault((id(block), index), []).append((None, edit))
        else:
            self.after.setdefault((id(block), index), []).append(edit)
        self._touch(block, True)

    def _text_around(self, span: Span) -> Any:
        """Return the text in quotes, in one piece, that a span lies in."""
        texts = ((place, n) for place, nodes in self.tree.at.items() for n in nodes
                 if isinstance(n, cst.SimpleString))  # fmt: skip
        return next(
            (n for place, n in texts if place.start < span.start < span.end < place.end), None
        )

    def _item_at(self, span: Span) -> Any:
        """Return what can be taken away as it is: with a comma, or with the word before it."""
        found = self.tree.at.get(span, ())
        parents = self.tree.parents
        for node in found:
            if isinstance(parents.get(id(node)), cst.Decorator):
                return parents[id(node)]
        logic = (n for n in found if isinstance(parents.get(id(n)), cst.BooleanOperation))
        operand = next((n for n in logic if isinstance(n, cst.BaseExpression)), None)
        return next((n for n in found if isinstance(n, _ITEMS)), operand)

    def _above(self, run: Run, start: int) -> int | None:
        """Return from which of the lines above the first statement on a span has them."""
        above = run.block.body[run.first].leading_lines
        begins = (k for k, line in enumerate(above) if self.tree.span(line).start >= start)
        return next(begins, run.above)

    def _stripped(self, span: Span) -> Span:
        text = self.source.data[span.start : span.end]
        end = span.end - len(text) + len(text.rstrip())
        return Span(span.start + len(text) - len(text.lstrip()), max(end, span.start))

    def _touch(self, node: Any, itself: bool = False) -> None:
        if itself:
            self.dirty.add(id(node))
        self.dirty.update(id(n) for n in self.tree.ancestors(node))

    def _plain(self, edit: Edit) -> str:
        """Return the text of an edit, with names for its pieces."""
        texts = []
        for place, part in enumerate(edit.parts or ()):
            if isinstance(part, str):
                texts.append(part)
            elif part.node is not None or self._expression_at(part.span) is not None:
                texts.append(name_of(place))
            else:
                texts.append(self.source.text(part.span))
        return "".join(texts)

    def _is_expression(self, edit: Edit, node: Any) -> bool:
        shape = expression(self._plain(edit), self._indent(node), self.source.newline)
        if shape is None:
            return False
        parent = self.tree.parents[id(node)]
        if isinstance(parent, (cst.ImportFrom, cst.ImportAlias, cst.FunctionDef, cst.ClassDef)):
            return isinstance(shape, (cst.Name, cst.Attribute))
        tuple_ = isinstance(shape, cst.Tuple) and not shape.lpar
        if not tuple_:
            return True
        return slot_of(parent, self._field(parent, node)) is Slot.FREE

    def _field(self, parent: Any, node: Any) -> str:
        return next((f for f in fields(type(parent)) if getattr(parent, f) is node), "")

    def _expression_at(self, span: Span) -> Any:
        found = self.tree.at.get(span, ())
        return next((n for n in found if isinstance(n, cst.BaseExpression)), None)

    def _insertion(self, edit: Edit) -> None:
        text, offset = self._text_of(edit), edit.site.span.start
        if text.rstrip(" \t").endswith("\n"):
            found = self._line_for(text, offset)
            if found is not None and found[1] == CLAUSE:
                self.above.setdefault(id(found[0]), []).append(edit)
                self._touch(found[0], True)
                return
            if found is not None:
                block, index, above = found
                self.before.setdefault((id(block), index), []).append((above, edit))
                self._touch(block, True)
                return
        elif text.startswith(("\n", "\r\n")):
            own = text.lstrip("\r\n")
            indent = own[: len(own) - len(own.lstrip())]
            for block, index, _ in self.blocks.ends.get(offset, ()):
                if self.blocks.indents[id(block)] == indent:
                    self.after.setdefault((id(block), index), []).append(edit)
                    self._touch(block, True)
                    return
        self._fail(offset, f"lines at no statement: {text}")

    def _line_for(self, text: str, offset: int) -> tuple[Any, int, int | None] | None:
        """Return the block, the statement and the line above it before which lines are put."""
        found = self.blocks.starts.get(offset)
        if found is not None:
            return found
        line = next((t for t in text.splitlines() if t.strip()), "")
        indent = line[: len(line) - len(line.lstrip())]
        found = self.blocks.lines.get(offset)
        if found is None or self.blocks.indents.get(id(found[0]), "") == indent:
            return found
        last = offset
        while last and self.source.data[last - 1 : last] in (b"\n", b"\r"):
            last -= 1
        for block, index, _ in self.blocks.ends.get(last, ()):
            if self.blocks.indents[id(block)] == indent:
                return block, index + 1, 0 if index + 1 < len(block.body) or block.footer else None
        return found

    def _text_of(self, edit: Edit) -> str:
        parts = edit.parts or ()
        return "".join(p if isinstance(p, str) else self.source.text(p.span) for p in parts)

    def _fail(self, offset: int, what: str) -> None:
        what = " ".join(what.split())[:80]
        self.failed.append((offset, f"the output does not compile: {what}"))

    def _indent(self, node: Any) -> str:
        for holder in self.tree.ancestors(node):
            if isinstance(holder, _BLOCKS):
                return self.blocks.indents.get(id(holder), "")
        return ""
