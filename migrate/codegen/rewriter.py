"""Write a file with edits: nodes of its LibCST tree are replaced by parsed templates.

The new text of an edit is parsed with names in the places of what it keeps of the source, which is
put in as nodes, with the edits inside it. Parentheses are set by precedence, blocks and their
indentation by LibCST. What has no edit is the same node as before, and so has the same text.
"""

from __future__ import annotations

import ast
import bisect
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import libcst as cst

from migrate.codegen import parts as node_parts
from migrate.codegen.blocks import Run, trailing, with_trailing
from migrate.codegen.composing import Composing, Content, Fill
from migrate.codegen.emitted import Emitted, emitted
from migrate.codegen.precedence import (
    Slot,
    bare,
    binds_like,
    in_parentheses,
    is_loose,
    needs_none,
    slot_of,
)
from migrate.codegen.templates import (
    Line,
    assembled,
    expression,
    filled,
    filled_lines,
    lines,
    listed,
    name_of,
)
from migrate.records.outcomes import Added, Edit, Lines, Part, Span, Wrap
from migrate.syntax.concrete import bytes_of, fields, generated
from migrate.syntax.source import Source

_OURS = ("import", "imports", "helpers")  # what edits of no statement are called


def emit(source: Source, edits: Sequence[Edit], idle: Collection[Span] = ()) -> Emitted:
    """Apply the edits; one inside the span of another counts only within its pieces.

    ``idle``: assignments that go if edits make their value what they bind it to.
    """
    if not any(e.parts is not None for e in edits):
        return emitted(source.data, ((0, 0),))
    return Rewriter(source, edits, idle).emitted()


class Rewriter(Composing):
    """Applies edits to the tree of one file."""

    def __init__(self, source: Source, edits: Sequence[Edit], idle: Collection[Span] = ()) -> None:
        super().__init__(source, edits)
        self.idle = idle
        self.olds: dict[int, tuple[Any, Span]] = {}  # where new nodes come from
        self.became: dict[int, Any] = {}  # statements that got other lines around them
        self.gone: list[Span] = []
        self.ours: list[tuple[Any, Any]] = []

    def _template(self, parts: Sequence[Content]) -> tuple[str, Puts]:
        texts: list[str] = []
        puts: list[Fill | Run] = []
        for part in parts:
            if isinstance(part, str):
                texts.append(part)
            else:
                texts.append(name_of(len(puts)))
                puts.append(part)
        return "".join(texts), Puts(self, puts)

    # -- expressions ----------------------------------------------------------------------------

    def rebuilt(self, node: Any) -> Any:
        """Return a node with the edits of it and in it."""
        if id(node) in self.own:
            return self.made(node, 0)
        return self.inner(node) if id(node) in self.dirty else node

    def made(self, node: Any, level: int) -> Any:
        """Return what the edits of an expression make of it, from the outermost on."""
        own = self.own.get(id(node), ())
        if level >= len(own):
            return self.inner(node)
        edit = own[level]
        last = level + 1 >= len(own) or isinstance(edit, Wrap)
        below = level if last else len(own) - 1  # what another edit owns as well is a fault
        return self._of_parts(node, self._expanded(edit, below), edit.site.span)

    def _of_parts(self, node: Any, parts: Sequence[Content], place: Span) -> Any:
        text, puts = self._template(parts)
        template = expression(text, self._indent(node), self.source.newline)
        if template is None:
            self._fail(place.start, f"no expression: {text}")
            return node
        held = "\n" in self.source.text(self.tree.span(node)) and self._is_split(node)
        if self.is_lone(node):  # to ast the parentheses of the call are its own
            template = template.with_changes(lpar=template.lpar[1:], rpar=template.rpar[:-1])
        found = filled(template, puts, held)
        own = isinstance(node, (cst.Tuple, cst.GeneratorExp, cst.NamedExpr, cst.Lambda))
        around = node.lpar[:-1] if own else node.lpar
        if around and not needs_none(found, node):
            behind = node.rpar[len(node.rpar) - len(around) :]
            found = found.with_changes(lpar=(*around, *found.lpar), rpar=(*found.rpar, *behind))
        self._is_from(found, place)
        return found

    def same(self, old: Any, new: Any) -> None:
        """Take note that a statement has become another object, of the same place."""
        self.became[id(old)] = new
        if id(old) in self.olds:
            self._is_from(new, self.olds[id(old)][1])
        elif id(old) in self.tree.spans:
            self._is_from(new, self.tree.span(old))

    def _ended(self, statement: Any, end: cst.TrailingWhitespace) -> Any:
        new = with_trailing(statement, end)
        self.same(statement, new)
        return new

    def _is_from(self, node: Any, span: Span) -> None:
        self.olds[id(node)] = (node, span)

    def _is_split(self, node: Any) -> bool:
        return _is_split(cst.Module([]).code_for_node(bare(node)))

    def put(self, fill: Fill, slot: Slot, inside: bool) -> Any:
        """Return an expression for a place in a template."""
        node = fill.node
        new = self.made(node, fill.level) if fill.level else self.rebuilt(node)
        new = bare(new)
        if new.lpar:
            return new
        loose = is_loose(slot, new)
        if not loose and not inside and "\n" in self.source.text(self.tree.span(node)):
            loose = self._is_split(new)
        return in_parentheses(new) if loose else new

    def inner(self, node: Any) -> Any:
        """Return a node with the edits below it."""
        if isinstance(node, cst.BooleanOperation) and self._loses_one(node):
            return self._other_operand(node)
        changes: dict[str, Any] = {}
        for name in fields(type(node)):
            value = getattr(node, name)
            if isinstance(value, cst.CSTNode):
                new = self._child(value, node, name)
                if new is not value:
                    changes[name] = new
            elif isinstance(value, (tuple, list)) and value:
                items = self._children(value, node, name)
                if items and id(value[-1]) in self.dropped and hasattr(items[-1], "comma"):
                    items[-1] = items[-1].with_changes(comma=value[-1].comma)
                if len(items) != len(value) or any(
                    a is not b for a, b in zip(items, value, strict=True)
                ):
                    changes[name] = tuple(items)
        if id(node) in self.above:
            changes |= self._topped(node)
        if id(node) in self.quoted:
            changes["value"] = self._requoted(node)
        made = node.with_changes(**changes) if changes else node
        if id(node) in self.moved:
            made = node_parts.put_last(made, node, self.moved[id(node)])
        for edit in self.added.get(id(node), ()):
            made = self._with_part(made, edit)
        if made is not node:
            self._is_from(made, self.tree.span(node))
        return made

    def _children(self, given: Sequence[Any], parent: Any, name: str) -> list[Any]:
        """Return what becomes of several children."""
        if not (self.dropped or self.handlers or self.items):
            return [self._child(v, parent, name) for v in given]
        kept = (v for v in given if id(v) not in self.dropped)
        both = ((self._handlers_before(v), self._item(v, parent, name)) for v in kept)
        return [new for handlers, items in both for new in (*handlers, *items)]

    def _requoted(self, node: cst.SimpleString) -> str:
        """Return a text in quotes with the edits in it."""
        found, place = "", self.tree.span(node)
        position = place.start
        for edit in self.quoted[id(node)]:
            if edit.site.span.start >= position:
                found += self.source.text(Span(position, edit.site.span.start))
                found, position = found + self._text_of(edit), edit.site.span.end
        return found + self.source.text(Span(position, place.end))

    def _with_part(self, node: Any, edit: Added) -> Any:
        """Return a node with another part."""
        text, puts = self._template(self._expanded(edit, 0))
        indent = self._indent(node)
        shape = node_parts.parsed(edit.part, text, indent, self.source.newline)
        if shape is None:
            self._fail(edit.site.span.start, f"not {edit.part.value}: {text}")
            return node
        return node_parts.changed(edit.part, node, filled(shape, puts))

    def _item(self, child: Any, parent: Any, name: str) -> Sequence[Any]:
        """Return what becomes of one of several children: of an argument, others."""
        edit = self.items.get(id(child))
        if edit is None:
            return (self._child(child, parent, name),)
        text, puts = self._template(self._expanded(edit, 0))
        shape: Any = expression(f"_({text})", self._indent(child), self.source.newline)
        if shape is None:
            self._fail(edit.site.span.start, f"no arguments: {text}")
            return (child,)
        found = list(filled(shape, puts).args)
        self._is_from(found[0], edit.site.span)
        return (*found[:-1], found[-1].with_changes(comma=child.comma))

    def _loses_one(self, node: cst.BooleanOperation) -> bool:
        return not self.dropped.isdisjoint((id(node.left), id(node.right)))

    def _other_operand(self, node: cst.BooleanOperation) -> Any:
        """Return what ``a and b`` is without one of them."""
        kept = self.rebuilt(node.right if id(node.left) in self.dropped else node.left)
        lpar, rpar = (*node.lpar, *kept.lpar), (*kept.rpar, *node.rpar)
        return kept.with_changes(lpar=lpar, rpar=rpar) if node.lpar else kept

    def _handlers_before(self, node: Any) -> list[Any]:
        """Return the handlers that edits put before one."""
        found: list[Any] = []
        for edit in self.handlers.get(id(node), ()):
            text, puts = self._template(self._expanded(edit, 0))
            newline = self.source.newline
            made = self._statements(edit, f"try:{newline}    pass{newline}{text}", puts)
            found += made[-1].handlers
        return found

    def _topped(self, node: Any) -> dict[str, Any]:
        """Return the lines above an elif, with those that edits put there."""
        lines_above: list[Line] = [*node.leading_lines]
        for edit in self.above[id(node)]:
            text, puts = self._template(self._expanded(edit, 0))
            lines_above += self._parsed(edit, text, puts, self._indent(node))
        return {"leading_lines": tuple(lines_above)}

    def _child(self, child: Any, parent: Any, name: str) -> Any:
        if not isinstance(child, cst.CSTNode):
            return child
        if isinstance(child, cst.IndentedBlock):
            return self.block(child) if id(child) in self.dirty else child
        if isinstance(child, cst.SimpleStatementSuite):
            return self._suite(child) if id(child) in self.dirty else child
        new = self.rebuilt(child)
        if new is child or not isinstance(new, cst.BaseExpression) or new.lpar:
            return new
        if isinstance(child, cst.BaseExpression) and not binds_like(child, new):
            slot = slot_of(parent, name)
            if is_loose(slot, new):
                return in_parentheses(new)
        return new

    # -- statements -----------------------------------------------------------------------------

    def block(self, block: Any) -> Any:
        """Return a block with the edits in it; one that loses all its statements has ``pass``."""
        found = self.range(Run(block, 0, len(block.body) - 1, 0), True)
        body, footer = assembled(found, self.same)
        made = block.with_changes(body=body, footer=footer)
        self._is_from(made, self.tree.span(block))
        return made

    def range(self, run: Run, footer: bool) -> list[Line]:
        """Return the lines of statements of a block, with the edits in them.

        ``footer``: they stay where they are; else they are put somewhere, and a whole block brings
        the comments of its header and its end along.
        """
        block = run.block
        if isinstance(block, cst.If):  # an elif
            return [*block.leading_lines, self.inner(block)]
        whole = run.first == 0 and run.last == len(block.body) - 1
        moved = not footer and whole and isinstance(block, cst.IndentedBlock)
        found: list[Line] = []
        if moved and block.header.comment is not None:
            found.append(cst.EmptyLine(comment=block.header.comment, newline=block.header.newline))
        index, place = run.first, 0
        while index <= run.last:
            edited = self.runs.get((id(block), index), ())
            own = next((r for r in edited if run.of is None or run.holds(r[1], self.rank)), None)
            found += self._lines_above(
                run, index, own[0].above if own is not None else None, footer
            )
            place = len(found) if index == run.first else place
            if own is not None:
                found += self._replaced(*own)
                index = own[0].last
            else:
                found += self.statement(block.body[index])
            self._put_behind(found, block, index)
            index += 1
        gone = all(isinstance(line, cst.EmptyLine) for line in found)
        if gone and footer and isinstance(block, cst.IndentedBlock):
            found.insert(place, cst.SimpleStatementLine((cst.Pass(),)))
        if run.without:
            found[-1] = found[-1].with_changes(**{run.without: None})
        if footer or moved:
            for k, line in enumerate(block.footer):
                found += [*self._inserted(block, len(block.body), k), line]
            found += self._inserted(block, len(block.body), len(block.footer))
            found += self._inserted(block, len(block.body), None)
        return found

    def _lines_above(self, run: Run, index: int, gone: int | None, footer: bool) -> list[Line]:
        """Return the lines above a statement; those from ``gone`` on go with it."""
        found: list[Line] = []
        above = run.above if index == run.first else 0
        if above is None:
            return found
        lines_above = run.block.body[index].leading_lines
        for k, line in enumerate(lines_above[above:], above):
            found += self._inserted(run.block, index, k)
            found += [line] if gone is None or k < gone else []
        found += self._inserted(run.block, index, len(lines_above))
        return found + self._inserted(run.block, index, None)

    def _put_behind(self, found: list[Line], block: Any, index: int) -> None:
        """Put what edits insert behind a statement in front of the empty lines that follow it."""
        behind = len(found)
        while behind and isinstance(found[behind - 1], cst.EmptyLine):
            behind -= 1
        for edit in self.after.get((id(block), index), ()):
            new = self._lines(edit, block)
            found[behind:behind] = new
            behind += len(new)

    def _inserted(self, block: Any, index: int, above: int | None) -> list[Line]:
        """Return what edits insert before a line above a statement, or (None) before that."""
        given = self.before.get((id(block), index), ())
        return [line for at, edit in given if at == above for line in self._lines(edit, block)]

    def _lines(self, edit: Edit, block: Any) -> list[Line]:
        """Return what an edit inserts into a block."""
        text, puts = self._template(self._expanded(edit, 0))
        if isinstance(edit, Added):
            return self._statements(edit, text, puts)
        return self._parsed(edit, text, puts, self.blocks.indents.get(id(block), ""))

    def _statements(self, edit: Edit, text: str, puts: Puts) -> list[Line]:
        """Return lines that have no indentation yet."""
        template = lines(text, "", self.source.newline)
        if template is None:
            self._fail(edit.site.span.start, f"no statements: {text}")
            return []
        found = filled_lines(template, puts)
        if found:  # a statement that goes leaves nothing where it is put
            self._is_from(found[0], edit.site.span)
        return found

    def _parsed(self, edit: Edit, text: str, puts: Puts, indent: str) -> list[Line]:
        newline = self.source.newline
        if text.endswith(indent) and text[: len(text) - len(indent)].endswith("\n"):
            text = text[: len(text) - len(indent)]
        text = text.removesuffix(newline) if text.endswith(newline) else text
        if (
            text.startswith(newline)
            and edit.site.span.start == edit.site.span.end
            and (self.blocks.ends.get(edit.site.span.start))
        ):
            text = text.removeprefix(newline)
        if not text.strip():
            return []
        if indent and not text.startswith((indent, newline)):
            text = indent + text
        template = lines(text, indent, newline)
        if template is None:
            self._fail(edit.site.span.start, f"no statements: {text}")
            return []
        found = filled_lines(template, puts)
        if found:
            self._is_from(found[0], edit.site.span)
            if edit.site.name in _OURS:
                self.ours.append((found[0], found[-1]))
        return found

    def _replaced(self, run: Run, edit: Edit) -> list[Line]:
        """Return what becomes of statements; a comment behind the last of them stays."""
        end = trailing(run.block.body[run.last])
        parts = self._expanded(edit, 0)
        indent = self.blocks.indents[id(run.block)]
        text, puts = self._template(parts)
        if isinstance(edit, (Lines, Wrap)):
            found = self._statements(edit, text, puts)
        else:
            found = self._parsed(edit, text, puts, indent)
        if run.tail:
            return found
        last = next((i for i, f in enumerate(found[::-1]) if not isinstance(f, cst.EmptyLine)), -1)
        if last >= 0:
            place = len(found) - 1 - last
            if end.comment is not None or trailing(found[place]).comment is None:
                found[place] = self._ended(found[place], end)
        else:
            self.gone.append(edit.site.span)
        if last < 0 and end.comment is not None:
            found.append(cst.EmptyLine(comment=end.comment, newline=end.newline))
        return found

    def statement(self, node: Any) -> list[Line]:
        """Return what becomes of one statement by the edits in it."""
        if isinstance(node, cst.SimpleStatementLine):
            return self._line(node)
        return [self.inner(node)] if id(node) in self.dirty else [node]

    def _line(self, node: Any) -> list[Line]:
        if id(node) not in self.dirty:
            return [node]
        body = self._smalls(node)
        if not body:
            return []
        made = node.with_changes(body=body)
        self._is_from(made, self.tree.span(node))
        return self._on_lines(made, node) if id(node) in self.split else [made]

    def _on_lines(self, made: Any, node: Any) -> list[Any]:
        """Return the statements of a line on lines of their own."""
        found = node_parts.split(made)
        for small, line in zip(made.body, found, strict=True):
            self.same(small, line.body[0])
        return found

    def _suite(self, node: Any) -> Any:
        made = node.with_changes(body=self._smalls(node))
        if id(node) in self.split:
            return cst.IndentedBlock(self._on_lines(made, node))
        return made

    def _smalls(self, node: Any) -> tuple[Any, ...]:
        """Return the statements of one line."""
        body: list[Any] = []
        for small in node.body:
            body += self._beside_small(small, Part.BEFORE)
            edit = self.small.get(id(small))
            if edit is None:
                new = self.rebuilt(small)
                if new is small or not self._is_idle(small, new):
                    body.append(new)
                body += self._beside_small(small, Part.BEHIND)
                continue
            text, puts = self._template(self._expanded(edit, 0))
            if not text.strip():
                continue
            template = lines(text, "", self.source.newline)
            if template is None or not all(
                isinstance(t, cst.SimpleStatementLine) for t in template
            ):
                self._fail(edit.site.span.start, f"no statement of a line: {text}")
                body.append(small)
                continue
            for line in filled_lines(template, puts):
                for one in line.body:
                    made = one.with_changes(semicolon=small.semicolon)
                    self._is_from(made, edit.site.span)
                    body.append(made)
        if body and node.body[-1].semicolon is cst.MaybeSentinel.DEFAULT:
            body[-1] = body[-1].with_changes(semicolon=cst.MaybeSentinel.DEFAULT)
        return tuple(body)

    def _beside_small(self, small: Any, part: Part) -> Iterator[Any]:
        """Yield the statements that edits put before one that shares its line, or behind it."""
        for edit in self.beside.get(id(small), ()):
            if edit.part is part:
                text, puts = self._template(self._expanded(edit, 0))
                for line in self._statements(edit, text, puts):
                    if isinstance(line, cst.SimpleStatementLine):
                        yield from line.body
                    else:
                        self._fail(edit.site.span.start, f"no statement of a line: {text}")

    def _is_idle(self, old: Any, new: Any) -> bool:
        """Return whether an assignment came to bind names to themselves."""
        if not isinstance(new, cst.Assign) or self.tree.span(old) not in self.idle:
            return False
        code = cst.Module([]).code_for_node
        value, target = code(bare(new.value)), code(bare(new.targets[0].target))
        return _tree(value.strip()) == _tree(target.strip())

    # -- the whole ------------------------------------------------------------------------------

    def emitted(self) -> Emitted:
        """Return the new text of the file."""
        module = self.tree.module
        header: list[Line] = []
        for k, line in enumerate(module.header):
            header += [*self._inserted(module, -1, k), line]
        new = self.block(module)
        if (id(module), -1) in self.before:
            body, footer = assembled([*header, *listed(new.body)], self.same)
            new = new.with_changes(header=(), body=body, footer=(*footer, *new.footer))
        state = generated(new, self.tree.folds)
        at = bytes_of(state.text)
        places = {
            key: Span(start, end) if at is None else Span(at[start], at[end])
            for key, (_, start, end) in state.places.items()
        }
        ours = [(id(self._latest(first)), id(self._latest(last))) for first, last in self.ours]
        inserted = [Span(places[a].start, places[b].end) for a, b in ours if a in places]
        text = state.text + self.tree.tail
        return emitted(
            text.encode(), tuple(self._marks(places)), inserted=tuple(inserted),
            failed=tuple(self.failed), lost=tuple(self._lost(Counter(state.comments))),
        )  # fmt: skip

    def _latest(self, node: Any) -> Any:
        while self.became.get(id(node), node) is not node:
            node = self.became[id(node)]
        return node

    def _lost(self, written: Counter[str]) -> Iterator[Span]:
        """Yield the comments of the source that are written less often."""
        for comment in self.tree.comments:
            if written[comment.value]:
                written[comment.value] -= 1
            else:
                yield self.tree.span(comment)

    def _marks(self, places: Mapping[int, Span]) -> list[tuple[int, int]]:
        """Return where offsets of the source went, in their order."""
        marks: list[tuple[int, int]] = []
        for key, place in places.items():
            if key in self.tree.spans:
                marks.append((self.tree.spans[key].start, place.start))
            elif key in self.olds:
                node, old = self.olds[key]
                marks.append((old.start, place.start))
                if isinstance(node, cst.BaseStatement) and old.end > old.start:
                    marks.append((old.end, place.end))
        marks.sort()
        below = [bisect.bisect_left(marks, (span.end, 0)) for span in self.gone]
        behind = zip(self.gone, below, strict=True)
        return sorted([*marks, *((s.start, marks[i][1]) for s, i in behind if i < len(marks))])


def _tree(text: str) -> str:
    try:
        return ast.dump(ast.parse(f"({text}\n)", mode="eval"))
    except SyntaxError:
        return ""


def _is_split(text: str) -> bool:
    """Return whether lines end in a text outside of any bracket of its own."""
    if "\n" not in text:
        return False
    try:
        ast.parse(text.strip())
    except SyntaxError:
        return True
    return False


@dataclass(frozen=True)
class Puts:
    """What the names of one template stand for."""

    writer: Rewriter
    given: Sequence[Fill | Run]

    def expression(self, place: int, slot: Slot, inside: bool) -> Any:
        given = self.given[place]
        if isinstance(given, Run):  # a statement that is an expression
            given = Fill(given.block.body[given.first].body[0].value)
        return self.writer.put(given, slot, inside)

    def same(self, old: Any, new: Any) -> None:
        self.writer.same(old, new)

    def small(self, place: int) -> Any:
        given = self.given[place]
        if isinstance(given, Fill) and isinstance(given.node, cst.BaseSmallStatement):
            return self.writer.rebuilt(given.node)
        return None

    def lines(self, place: int) -> Sequence[Line] | None:
        given = self.given[place]
        return self.writer.range(given, False) if isinstance(given, Run) else None
