"""In: a file whose training steps are Cells. Out: the same with its epochs run by Model.

What Model would do in another way stays a loop, and the reason is kept.
"""

from __future__ import annotations

import ast
from dataclasses import replace

from migrate.emit import emit
from migrate.outcomes import Edit, Span
from migrate.source import read
from migrate.training import callbacks
from migrate.training.epoch_loops import EpochLoop, Refused, epoch_loops
from migrate.training.marks import NAMES, Act
from migrate.training.staged import Staged


def run_by_model(staged: Staged, own: str) -> Staged:
    """The file with its epochs run by Model, and what is said of the loops that stay."""
    source = staged.source
    taken = {n.id for n in ast.walk(source.tree) if isinstance(n, ast.Name)}
    taken |= {n.name for n in ast.walk(source.tree) if isinstance(n, (ast.ClassDef, ast.alias))}
    edits: list[Edit] = []
    stays: list[tuple[int, str]] = []
    for found in epoch_loops(source, own, staged.single):
        if isinstance(found, EpochLoop):
            edits += callbacks.edits(source, found, own, taken)
        else:
            stays.append((_backward_of(staged, found), found.reason))
    emitted = emit(source, edits)
    starts = ((s, staged.offset(s.span.start)) for s in staged.done)
    return Staged(
        source,
        read(source.path, source.encode(emitted.data)),
        emitted,
        tuple(replace(s, span=Span(start, start)) for s, start in starts),
        staged.unclear,
        staged.cells,
        tuple(stays),
        before=staged,
    )


def _backward_of(staged: Staged, refused: Refused) -> int:
    """The line of the original where the backward of a step stood."""
    sites = [s for s in staged.done if s.name == NAMES[Act.BACKWARD]]
    lines = {s.line: staged.source.line_of(staged.offset(s.span.start)) for s in sites}
    return min(lines, key=lambda line: abs(lines[line] - refused.line), default=0)
