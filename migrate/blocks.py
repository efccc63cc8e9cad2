"""In: a file and its edits. Out: the edits, with ``pass`` where a block would be empty."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import replace

from migrate.outcomes import Edit, Removal, Span
from migrate.scene import Scene
from migrate.source import Source


def with_pass(scene: Scene, changes: list[Edit]) -> list[Edit]:
    """A block whose statements all go keeps ``pass``; a statement sharing its line becomes it."""
    gone = {(e.site.span.start, e.site.span.end): e for e in changes if isinstance(e, Removal)}
    if not gone:
        return changes
    source = scene.source
    found = list(changes)
    for node in scene.file.nodes:
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if not isinstance(block, list) or not block or isinstance(node, ast.Lambda):
                continue
            edits = [_removal(source, item, gone) for item in block]
            if edits and edits[0] is not None and _inside(source, node, edits[0].site.span):
                continue
            if all(edits) and edits[0] is not None and not isinstance(node, ast.Module):
                site = replace(edits[0].site, span=source.span(block[0]))
                found[found.index(edits[0])] = replace(edits[0], site=site, parts=("pass",))
    shared = [
        e
        for e in found
        if isinstance(e, Removal) and not e.parts and _shares_line(source, e.site.span)
    ]
    return [replace(e, parts=("pass",)) if e in shared else e for e in found]


def _inside(source: Source, node: ast.AST, span: Span) -> bool:
    """Whether the holder of a block goes as well."""
    if not isinstance(node, ast.stmt):
        return False
    own = source.span(node)
    return span.start <= own.start and own.end <= span.end


def _removal(source: Source, item: ast.stmt, gone: Mapping[tuple[int, int], Edit]) -> Edit | None:
    span = source.span(item)
    for (start, end), edit in gone.items():
        if start <= span.start and span.end <= end:
            return edit
    return None


def _shares_line(source: Source, span: Span) -> bool:
    return source.data[span.end - 1 : span.end] != b"\n" and span.end < len(source.data)
