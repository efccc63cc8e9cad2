"""The output of a file is checked before anything is written: what is wrong with it, and where.

Checked is that the text compiles, that each global name it reads is bound (or was not bound in the
input either), that no name is imported as two things, that no torch is imported, and that no two
edits own the same text. A fault is an error of the converter: the statement of the input that it
comes from is flagged instead, and the rest of the file still has its output.
"""

from __future__ import annotations

import ast
import builtins
import re
import symtable
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from migrate.codegen.emitted import Emitted
from migrate.codegen.targets import in_order
from migrate.engine.import_edits import leading_end
from migrate.records.outcomes import FAULT, Edit, Piece, Refusal, Span
from migrate.rules.dead_branches import dead_spans
from migrate.rules.imports import left_out
from migrate.sites.references import Form, Reference
from migrate.sites.scene import Scene

CODE = FAULT
Stopped = tuple[Refusal, Reference]
_MODULE = frozenset(dir(builtins)) | {"__file__", "__path__", "__annotations__", "__builtins__"}
_IMPORT = re.compile(rb"^(?:import|from)[ \t].*", re.MULTILINE)


@dataclass(frozen=True)
class Fault:
    """What is wrong, and the offset in the input that it comes from."""

    what: str
    offset: int


def faults(scene: Scene, changes: Sequence[Edit], emitted: Emitted) -> list[Fault]:
    """Return what is wrong with the output of a file.

    What is wrong with the text of imports and helpers is put down to the first statement behind
    the imports: the file stops there.
    """
    found = list(_overlaps(changes)) or [Fault(what, at) for at, what in emitted.failed]
    if found:
        return found
    text = emitted.data.decode("utf-8")
    try:
        table = symtable.symtable(text, scene.file.path, "exec")
    except SyntaxError as error:
        return [_at(scene, emitted, error.lineno or 1, f"the output does not compile: {error.msg}")]
    found += _unbound(scene, changes, emitted, table)
    return found + list(_imports(scene, emitted))


def _at(scene: Scene, emitted: Emitted, line: int, what: str) -> Fault:
    begin = emitted.line_starts[min(line, len(emitted.line_starts)) - 1]
    text = emitted.data[begin:].split(b"\n", 1)[0]
    offset = emitted.origin(begin + len(text) - len(text.lstrip()))
    return Fault(what, leading_end(scene) if offset is None else offset)


# -- edits ------------------------------------------------------------------------------------


def _overlaps(changes: Sequence[Edit]) -> Iterator[Fault]:
    """Edits that own the same text: the same span, or a part of each other's."""
    order = [e for e in in_order(changes) if e.site.span.end > e.site.span.start]
    open_: list[Edit] = []
    for edit in order:
        span = edit.site.span
        while open_ and open_[-1].site.span.end <= span.start:
            open_.pop()
        outer = open_[-1] if open_ else None
        open_.append(edit)
        if outer is None:
            continue
        within = span.end <= outer.site.span.end
        if within and not _owns(outer, span):
            continue
        if span == outer.site.span and edit.parts == outer.parts:
            continue
        if not any(outer.parts or ()) and not any(edit.parts or ()):
            continue  # what both delete is gone
        names = [f"{e.site.name} by {e.rule or 'the engine'}" for e in (outer, edit)]
        what = f"two edits own one text: {' and '.join(names)}"
        yield Fault(what, span.start)


def _owns(outer: Edit, span: Span) -> bool:
    """Return whether an edit rewrites a part of a text inside it, and keeps another part.

    Text in none of its pieces is removed on purpose: arguments are dropped.
    """
    pieces = [part.span for part in outer.parts or () if isinstance(part, Piece)]
    if span.lies_in(pieces):
        return False
    return span == outer.site.span or any(p.start < span.end and span.start < p.end for p in pieces)


# -- names ------------------------------------------------------------------------------------


def _unbound(
    scene: Scene, changes: Sequence[Edit], emitted: Emitted, table: symtable.SymbolTable
) -> Iterator[Fault]:
    """Global names that the output reads and does not bind, and the input bound."""
    new = unbound(table)
    if not new or b"import *" in emitted.data:
        return
    source = scene.source
    old = unbound(symtable.symtable(source.data.decode("utf-8"), scene.file.path, "exec"))
    new -= old | _in_dead_code(scene) | _bound_by_flagged(scene, changes) | left_out(scene)
    for node in ast.walk(ast.parse(emitted.data)) if new else ():
        if isinstance(node, ast.Name) and node.id in new:
            yield _at(scene, emitted, node.lineno, f"nothing binds the name {node.id}")


def unbound(table: symtable.SymbolTable) -> set[str]:
    """Return the global names that a module reads and does not bind."""
    read: set[str] = set()
    bound: set[str] = set(_MODULE)
    for scope in _scopes(table):
        top = scope is table
        for symbol in scope.get_symbols():
            ours = top or symbol.is_global()
            if ours and (symbol.is_assigned() or symbol.is_imported()):
                bound.add(symbol.get_name())
            if ours and symbol.is_referenced():
                read.add(symbol.get_name())
    return {n for n in read - bound if not (n.startswith("__") and n.endswith("__"))}


def _scopes(table: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    yield table
    for child in table.get_children():
        yield from _scopes(child)


def _in_dead_code(scene: Scene) -> set[str]:
    """The names in branches that never run, which stay as they are."""
    never = {n.id for n in scene.file.of(ast.Name) if id(n) not in scene.inference.kinds}
    return never | _names_in(scene, dead_spans(scene), ast.Load)


def _bound_by_flagged(scene: Scene, changes: Sequence[Edit]) -> set[str]:
    """What only statements bind that raise instead."""
    spans = [e.site.span for e in changes if e.outcome.value == "flagged" and e.parts]
    return _names_in(scene, [s for s in spans if s.end > s.start], ast.Store)


def _names_in(scene: Scene, spans: Iterable[Span], context: type[ast.AST]) -> set[str]:
    found = set()
    wanted = list(spans)
    for node in scene.file.of(ast.Name) if wanted else ():
        start = scene.source.span(node).start
        if isinstance(node.ctx, context) and any(s.start <= start < s.end for s in wanted):
            found.add(node.id)
    return found


# -- imports ----------------------------------------------------------------------------------


def _imports(scene: Scene, emitted: Emitted) -> Iterator[Fault]:
    """Names that the file's own level imports as two things, one of MindSpore; torch."""
    bound: dict[str, str] = {}
    for match in _IMPORT.finditer(emitted.data):
        try:
            node = ast.parse(match.group().rstrip(b"(\\ \r")).body[0]
        except SyntaxError:
            continue  # over several lines: none of ours
        if not isinstance(node, (ast.Import, ast.ImportFrom)):
            continue
        line = emitted.data.count(b"\n", 0, match.start()) + 1
        module = getattr(node, "module", None) or ""
        for alias in node.names:
            full = f"{module}.{alias.name}" if module else alias.name
            name = alias.asname or alias.name.partition(".")[0]
            full = full if alias.asname or module else name
            other = bound.setdefault(name, full)
            if other != full and "mindspore" in (other.split(".")[0], full.split(".")[0]):
                yield _at(scene, emitted, line, f"{name} is imported as {other} and as {full}")


# -- what is flagged instead ------------------------------------------------------------------


def whole(scene: Scene, failed: Sequence[str]) -> list[Stopped]:
    """Return a refusal for every statement of a file in which a rule for whole files failed."""
    if not failed:
        return []
    body = [n for n in scene.source.tree.body if not isinstance(n, (ast.Import, ast.ImportFrom))]
    body = body[1:] if ast.get_docstring(scene.source.tree) is not None else body
    found = [Fault(failed[0], scene.source.span(n).start) for n in body]
    return refused(scene, found, [])


def refused(scene: Scene, found: Sequence[Fault], stopped: Sequence[Reference]) -> list[Stopped]:
    """Return a refusal for the statement of each fault; for one that is stopped, what holds it."""
    before = {id(r.node) for r in stopped}
    made: dict[int, Stopped] = {}
    for fault in found:
        statement = _statement(scene, fault.offset)
        while statement is not None and id(statement) in before:
            holder = scene.holder(statement, ast.stmt, ast.Module)
            statement = holder if isinstance(holder, ast.stmt) else None
        if statement is None:
            raise RuntimeError(f"{scene.file.path}: {fault.what}")
        line = scene.source.data[scene.source.line_start(statement.lineno) :].split(b"\n", 1)[0]
        name = " ".join(line.decode("utf-8", "replace").split())[:40]
        site = scene.site(name, statement)
        refusal = Refusal(site, CODE, fault.what, "report it with the file")
        made[id(statement)] = (refusal, Reference(statement, name, Form.STATEMENT))
    return list(made.values())


def _statement(scene: Scene, offset: int) -> ast.stmt | None:
    """The innermost statement at an offset; the next one, where none is there."""
    best: ast.stmt | None = None
    after: ast.stmt | None = None
    start = 0
    for node in scene.file.nodes:
        if not isinstance(node, ast.stmt):
            continue
        span = scene.source.span(node)
        if span.start <= offset < span.end:
            best = node  # nodes come from outer to inner ones
        elif span.start >= offset and (after is None or span.start < start):
            after, start = node, span.start
    return best if best is not None else after
