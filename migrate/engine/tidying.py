"""Tidy what edits leave: blocks keep ``pass``, comments come back, idle assignments go.

``data, target = data.to(device), target.to(device)`` comes to ``data, target = data, target``: the
statement goes. A block whose last statement goes gets ``pass`` in its place.
"""

from __future__ import annotations

import ast
import bisect
import tokenize
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from migrate.codegen.emit import Writer
from migrate.codegen.layout import above
from migrate.records.outcomes import Edit, Outcome, Removal, Span
from migrate.rules.graph.state import answers
from migrate.sites.scene import Scene
from migrate.syntax.lines import first_start, removed_span, text_begin
from migrate.syntax.source import Source


def without_idle(scene: Scene, changes: list[Edit]) -> list[Edit]:
    """The edits, and a removal for every statement that they make idle."""
    writer = Writer(scene.source, changes)
    return changes + [_removal(scene, node) for node in _idle(scene, writer)]


def _idle(scene: Scene, writer: Writer) -> Iterator[ast.Assign]:
    for node in scene.file.of(ast.Assign):
        if len(node.targets) != 1:
            continue
        names = _names(scene, node.targets[0])
        if not names or names != [_root(item, names) for item in _items(node.value)]:
            continue
        span = scene.source.span(node.value)
        same = writer.changes(span) and _same(node.targets[0], writer.within(span))
        if same and _bound_before(scene, node.targets[0], node):
            yield node


def _bound_before(scene: Scene, target: ast.expr, node: ast.Assign) -> bool:
    """Return whether the unit itself has the names: ``x = x`` in a class takes x from outside."""
    names = [i.id for i in _items(target) if isinstance(i, ast.Name)]
    owner = scene.parent(node)
    return not isinstance(owner, ast.ClassDef) or all(scene.facts.is_bound(n, node) for n in names)


def _items(node: ast.expr) -> list[ast.expr]:
    return node.elts if isinstance(node, ast.Tuple) else [node]


def _names(scene: Scene, target: ast.expr) -> list[str]:
    """The variables and members bound; none where more may happen than the text says."""
    items = _items(target)
    plain = [i for i in items if isinstance(i, ast.Name) or _is_member(scene, i)]
    return [ast.unparse(i) for i in plain] if len(plain) == len(items) else []


def _is_member(scene: Scene, target: ast.expr) -> bool:
    """``self.eps`` of a Module without code that runs where it is bound."""
    owner, function = scene.owner(target), scene.function(target)
    if not isinstance(target, ast.Attribute) or owner is None or function is None:
        return False
    own = function.parameters[0].arg if function.parameters else ""
    mine = isinstance(target.value, ast.Name) and target.value.id == own
    return mine and scene.is_module_class(owner) and not answers(owner, target.attr)


def _root(node: ast.expr, names: list[str]) -> str:
    """The variable or member that a chain of calls and attributes starts with."""
    while isinstance(node, (ast.Call, ast.Attribute)):
        if isinstance(node, ast.Attribute) and ast.unparse(node) in names:
            return ast.unparse(node)
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def _same(target: ast.expr, value: str) -> bool:
    try:
        read = ast.parse(value.strip(), mode="eval").body
    except SyntaxError:
        return False
    return ast.dump(read) == ast.dump(ast.parse(ast.unparse(target), mode="eval").body)


def _removal(scene: Scene, node: ast.Assign) -> Edit:
    site = scene.site("idle", node).at(removed_span(scene.source, node))
    return Removal(site, Outcome.CONVERTED, ())


def with_pass(scene: Scene, changes: list[Edit]) -> list[Edit]:
    """Return the edits with ``pass`` where all statements of a block go.

    A removed statement that shares its line with others goes with the semicolon behind it.
    """
    gone = _Gone(scene.source, changes)
    if not gone.edits:
        return changes
    other: dict[int, Edit] = {}
    for node in scene.file.holding_blocks:
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if not block:
                continue
            edits = [gone.around(item) for item in block]
            if not any(edits) or gone.around(node) is not None:
                continue
            if all(edits) and not isinstance(node, ast.Module):
                other |= _kept(scene.source, block, edits)
                continue
            for item, edit, behind in zip(block, edits, (*block[1:], None), strict=True):
                if edit is not None and _shares_line(scene.source, edit.site.span):
                    other[id(edit)] = _cut(scene.source, edit, item, behind)
    return _whole_lines(scene.source, [other.get(id(e), e) for e in changes])


def _whole_lines(source: Source, changes: list[Edit]) -> list[Edit]:
    """A header that goes up to its first statement goes with its line, if that goes as well."""
    lines = {
        e.site.span.start: e.site.span.end
        for e in changes
        if isinstance(e, Removal) and not e.parts
    }
    found = []
    for edit in changes:
        span = edit.site.span
        if not any(edit.parts or ()) and source.data[span.start : span.end].count(b"\n"):
            begin = source.line_start(source.line_of(span.end))
            before = source.line_start(source.line_of(span.start))
            blank = not source.data[before : span.start].strip()
            if blank and span.start < begin < span.end and begin in lines:
                edit = replace(edit, site=replace(edit.site, span=Span(before, begin)))
        found.append(edit)
    return found


class _Gone:
    """The removals among some edits, by place."""

    def __init__(self, source: Source, changes: Sequence[Edit]) -> None:
        self.source = source
        found = [e for e in changes if isinstance(e, Removal) and not e.parts]
        self.edits = sorted(found, key=lambda e: (e.site.span.start, -e.site.span.end))
        self.starts = [e.site.span.start for e in self.edits]

    def around(self, node: ast.AST) -> Edit | None:
        """Return the removal that takes the whole of a statement away."""
        if not isinstance(node, ast.stmt):
            return None
        span = self.source.span(node)
        for at in range(bisect.bisect_right(self.starts, span.start) - 1, -1, -1):
            if self.edits[at].site.span.end >= span.end:
                return self.edits[at]
            if self.starts[at] < self.source.line_start(node.lineno):
                return None
        return None


def _kept(source: Source, block: list[ast.stmt], edits: Sequence[Edit | None]) -> dict[int, Edit]:
    """``pass`` for the first statement of a block; what shares its line becomes ``pass`` too."""
    found = {}
    for item, edit in zip(block, edits, strict=True):
        assert edit is not None
        if item is block[0] or _shares_line(source, edit.site.span):
            site = replace(edit.site, span=source.span(item))
            found[id(edit)] = replace(edit, site=site, parts=("pass",))
    return found


def _cut(source: Source, edit: Edit, item: ast.stmt, behind: ast.stmt | None) -> Edit:
    """The removal of a statement that shares its line, with the semicolon behind it."""
    span = source.span(item)
    follows = source.span(behind).start if behind is not None else 0
    if follows and not source.data[span.end : follows].strip(b"; \t"):
        return replace(edit, site=replace(edit.site, span=Span(span.start, follows)))
    return replace(edit, site=replace(edit.site, span=span), parts=("pass",))


def _shares_line(source: Source, span: Span) -> bool:
    return source.data[span.end - 1 : span.end] != b"\n" and span.end < len(source.data)


def rescued(scene: Scene, data: bytes, shown: Sequence[Span] = ()) -> list[Edit]:
    """One edit for every comment of the source that ``data``, the new text, has fewer of.

    ``shown`` are the spans of statements that stand as comments, with their own comments.
    """
    lost = [
        (start, end)
        for start, end in _lost(scene.source, data)
        if not any(s.start <= start and end <= s.end for s in shown)
    ]
    statements = _statements(scene) if lost else []
    return [_rescued(scene, statements, start, end) for start, end in lost]


def _lost(source: Source, data: bytes) -> list[tuple[int, int]]:
    """The comments of the source that the new text has fewer of."""
    new = Source("", data, source.tree, _starts=_starts(data))
    have = Counter(data[a:b].strip() for kind, a, b in new.tokens if kind == tokenize.COMMENT)
    lost = []
    for kind, start, end in source.tokens:
        if kind == tokenize.COMMENT:
            text = source.data[start:end].strip()
            if have[text]:
                have[text] -= 1
            else:
                lost.append((start, end))
    return lost


def _starts(data: bytes) -> tuple[int, ...]:
    found, position = [0], data.find(b"\n")
    while position >= 0:
        found.append(position + 1)
        position = data.find(b"\n", position + 1)
    return tuple(found)


def _statements(scene: Scene) -> list[tuple[int, int]]:
    """Start and end of every statement, by their start."""
    source, nodes = scene.source, (n for n in scene.file.nodes if isinstance(n, ast.stmt))
    return sorted((first_start(source, n), source.span(n).end) for n in nodes)


def _rescued(scene: Scene, statements: list[tuple[int, int]], start: int, end: int) -> Edit:
    """A lost comment, on a line of its own above its statement."""
    source = scene.source
    place = source.line_of(start)
    before = bisect.bisect_right(statements, (start, len(source.data)))
    inner = (
        first
        for first, last in reversed(statements[:before])
        if start < last or source.line_of(last) == place
    )
    line = text_begin(source, next(inner, start))
    parts = above(source, line, [source.text(Span(start, end))])
    return Edit(source.site_at("comment", Span(line, line)), Outcome.KEPT, parts)
