"""In: the imports of a file and what its new text needs. Out: the edits of its imports."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from migrate.codegen.substitution import added
from migrate.mapping.names import root_of
from migrate.records.outcomes import Edit, Outcome, Part, Removal, Span
from migrate.rules.imports import along_name
from migrate.sites.references import Form, Reference
from migrate.sites.scene import Scene
from migrate.syntax.lines import before, first_start, line_begin, next_line


def edits(
    scene: Scene,
    references: Sequence[Reference],
    bindings: dict[int, str],
    block: str,
    limit: int | None = None,
) -> list[Edit]:
    """Replace torch imports by ``block`` at the first of them; ``bindings`` replace flagged names.

    ``bindings`` maps the id of a flagged alias to the assignment that takes its place. ``limit``:
    where something needs the block first.
    """
    gone = {id(r.node) for r in references if r.form is Form.IMPORT} | reexported(scene)
    gone |= bindings.keys()
    along = {id(r.node) for r in references if r.form is Form.FOLLOWED} - gone
    statements = [n for n in scene.file.imports if _changes(n, gone, along)]
    anchor = _anchor(scene, statements)
    if limit is not None and anchor is not None and scene.source.span(anchor).start > limit:
        anchor = None
    found: list[Edit] = []
    placed = not block
    for statement in statements:
        lines = [bindings[id(a)] for a in statement.names if id(a) in bindings]
        lines = [line for line in dict.fromkeys(lines) if line]  # one raise for all its names
        kept = [a for a in statement.names if id(a) not in gone | along]
        renamed = [a for a in statement.names if id(a) in along]
        if not placed and statement is anchor:
            lines.insert(0, block)
            placed = True
        if kept:
            lines.append(_with_names(scene, statement, kept))
        if renamed and isinstance(statement, ast.ImportFrom):
            names = ", ".join(scene.source.text_of(a) for a in renamed)
            lines.append(f"from {along_name(scene, statement.module or '')} import {names}")
        found.append(_replace(scene, statement, lines))
    if not placed:
        found.append(_insert(scene, block))
    return found + _renamed(scene, along, statements)


def _changes(node: ast.Import | ast.ImportFrom, gone: set[int], along: set[int]) -> bool:
    """Return whether a statement is rewritten: a name in it is removed, or imported otherwise."""
    names = {id(alias) for alias in node.names}
    return bool(names & gone) or (bool(names & along) and not names <= along)


def _renamed(scene: Scene, along: set[int], replaced: Sequence[ast.stmt]) -> list[Edit]:
    """``from torchvision.models import resnet18`` names the package as it is called here."""
    found: list[Edit] = []
    for node in scene.file.imports:
        ours = any(id(alias) in along for alias in node.names)
        if ours and isinstance(node, ast.ImportFrom) and node not in replaced:
            site, name = scene.site("import", node), along_name(scene, node.module or "")
            found.append(added(scene.source, site, node, Part.MODULE, name))
    return found


def reexported(scene: Scene) -> set[int]:
    """Names imported from a file of the project that are torch's own."""
    found = set()
    for node in scene.file.imports:
        if not isinstance(node, ast.ImportFrom) or root_of(node.module or "") in ("torch",):
            continue
        for alias in node.names:
            kind = scene.inference.imported(
                scene.file.path, node.module or "", node.level, alias.name
            )
            if kind and all(a.direct for a in kind) and alias.name != "*":
                found.add(id(alias))
    return found


def _anchor(
    scene: Scene, statements: Sequence[ast.Import | ast.ImportFrom]
) -> ast.Import | ast.ImportFrom | None:
    """The first torch import at the top of the file: the new imports go there."""
    tops = [s for s in statements if scene.parent(s) is scene.source.tree]
    first_use = next(
        (
            n
            for n in scene.source.tree.body
            if not isinstance(n, (ast.Import, ast.ImportFrom)) and not _is_docstring(n)
        ),
        None,
    )
    if not tops:
        return None
    late = first_use is not None and tops[0].lineno > first_use.lineno
    nested = [s for s in statements if s.lineno < tops[0].lineno]
    return None if late and nested else tops[0]


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _with_names(
    scene: Scene, statement: ast.Import | ast.ImportFrom, kept: Sequence[ast.alias]
) -> str:
    names = ", ".join(scene.source.text_of(a) for a in kept)
    if isinstance(statement, ast.Import):
        return f"import {names}"
    return f"from {'.' * statement.level}{statement.module or ''} import {names}"


def _replace(scene: Scene, statement: ast.stmt, lines: list[str]) -> Edit:
    """Return the edit that replaces a statement by lines; without lines it is removed."""
    source = scene.source
    span = source.span(statement)
    indent = before(source, span.start)
    site = source.site_at("import", span)
    if lines:
        text = (source.newline + indent).join("\n".join(lines).split("\n"))
        return Edit(site, Outcome.CONVERTED, (text,))
    return Removal(site, Outcome.CONVERTED, ())


def leading(scene: Scene) -> dict[str, str]:
    """What the imports at the top of the file bind: names with what they stand for."""
    found: dict[str, str] = {}
    for node in scene.source.tree.body:
        if isinstance(node, ast.Import):
            found |= {a.asname or a.name: a.name for a in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found |= {a.asname or a.name: f"{node.module}.{a.name}" for a in node.names}
        elif not _is_docstring(node) and not _guarded(node):
            break
    return found


def leading_end(scene: Scene) -> int:
    """The offset behind the docstring and imports at the top of the file (start of a line)."""
    last: ast.stmt | None = None
    for node in scene.source.tree.body:
        if isinstance(node, (ast.Import, ast.ImportFrom)) or _is_docstring(node) or _guarded(node):
            last = node
            continue
        break
    if last is None:
        return _after_header_comments(scene)
    return next_line(scene.source, scene.source.span(last).end)


def helpers_at(scene: Scene, bindings: Mapping[int, Edit]) -> int:
    """Return where helpers are needed: behind the imports that begin the file, or before that.

    An import that becomes an assignment of a helper needs it there.
    """
    end = leading_end(scene)
    for node in scene.source.tree.body:
        if scene.source.span(node).start >= end:
            break
        inside = (bindings.get(id(a)) for a in ast.walk(node) if isinstance(a, ast.alias))
        needs = {n for e in inside if e is not None and any(e.parts or ()) for n in e.needs}
        if any(n.startswith("helpers.") for n in needs):
            return scene.source.line_start(node.lineno)
    return end


def _guarded(node: ast.stmt) -> bool:
    """``try: import x`` and ``if TYPE_CHECKING: import x`` at the top of a file."""
    if not isinstance(node, (ast.Try, ast.If)):
        return False
    return all(isinstance(s, (ast.Import, ast.ImportFrom)) for s in node.body)


def _after_header_comments(scene: Scene) -> int:
    body = scene.source.tree.body
    if not body:
        return len(scene.source.data)
    return line_begin(scene.source, first_start(scene.source, body[0]))


def _insert(scene: Scene, block: str) -> Edit:
    """No torch import at the top: after the docstring and ``__future__``, before all else."""
    last: ast.stmt | None = None
    for node in scene.source.tree.body:
        future = isinstance(node, ast.ImportFrom) and node.module == "__future__"
        if future or (_is_docstring(node) and last is None):
            last = node
            continue
        break
    source = scene.source
    if last is None:
        place = _after_header_comments(scene)
    else:
        place = next_line(source, source.span(last).end)
    site = source.site_at("import", Span(place, place))
    text = block.replace("\n", source.newline) + source.newline
    return Edit(site, Outcome.CONVERTED, (text,))
