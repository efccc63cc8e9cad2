"""Give each statement of a training loop a line of its own.

``opt.zero_grad(); loss.backward(); opt.step()`` is a step like any other; what takes steps apart
moves whole lines.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from migrate.codegen.rewriter import emit
from migrate.codegen.substitution import added
from migrate.records.outcomes import Edit, Outcome, Part, Piece, Span
from migrate.syntax.lines import shares_line
from migrate.syntax.source import Source, read
from migrate.training.effects import blocks
from migrate.training.staged import Staged

Parts = tuple[str | Piece, ...]


def edit(source: Source, span: Span, parts: Parts) -> Edit:
    """Return a change that a training step asks for."""
    return Edit(source.site_at("training", span), Outcome.CONVERTED, parts)


_WORD = b".backward("


def separated(sources: Mapping[str, Source]) -> dict[str, Staged]:
    """Return the files in which statements were put on lines of their own, by path."""
    found = {}
    for path, source in sources.items():
        changes = list(_edits(source)) if _WORD in source.data else []
        if changes:
            emitted = emit(source, changes)
            new = read(path, source.encode(emitted.data))
            found[path] = Staged(source, new, emitted, (), (), frozenset())
    return found


def _edits(source: Source) -> Iterator[Edit]:
    for block in _blocks(source.tree):
        for item in block:
            if shares_line(source, item):
                yield added(source, source.site("statement", item), item, Part.LINES)


def _blocks(tree: ast.Module) -> list[list[ast.stmt]]:
    """Return the blocks of statements around calls of ``backward``, but for the module itself."""
    parents = {id(child): node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    found: dict[int, list[ast.stmt]] = {}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or getattr(node.func, "attr", "") != "backward":
            continue
        around: ast.AST | None = node
        while around is not None and not isinstance(around, ast.ClassDef | ast.Module):
            for block in blocks(around):
                found[id(block)] = block
            around = parents.get(id(around))
    return list(found.values())
