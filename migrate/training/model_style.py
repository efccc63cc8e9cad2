"""In: a file whose steps are Cells. Out: the same with epochs and evaluations run by Model.

What Model would do in another way stays a loop, and the reason is kept.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from migrate.codegen.rewriter import emit
from migrate.records.outcomes import Edit, Site, Span
from migrate.syntax.source import Source, read
from migrate.syntax.trees import all_names
from migrate.training import callbacks, metrics
from migrate.training.epoch_loops import EpochLoop, Refused, epoch_loops
from migrate.training.marks import NAMES, Act
from migrate.training.metric_loops import EvalRounds, Stays, eval_rounds
from migrate.training.metric_sums import Measured, measured
from migrate.training.staged import Staged


def run_by_model(staged: Staged, own: str) -> Staged:
    """The file with its epochs run by Model, and what is said of the loops that stay."""
    source = staged.source
    taken = _taken(source)
    edits: list[Edit] = []
    stays: list[tuple[int, str]] = []
    for found in epoch_loops(source, own, staged.single):
        if isinstance(found, EpochLoop):
            edits += callbacks.edits(source, found, own, taken)
        else:
            stays.append((_backward_of(staged, found), found.reason))
    return replace(_after(staged, edits), loops=tuple(stays))


def evaluated_by_model(staged: Staged, own: str, torch: str) -> Staged:
    """The file with its evaluation loops run by Model, and what is said of those that stay."""
    source = staged.source
    taken = _taken(source)
    edits: list[Edit] = []
    stays: list[tuple[int, int, str]] = []
    moves: list[Site] = []
    for found in eval_rounds(source, own):
        made = measured(source, found) if isinstance(found, EvalRounds) else found
        if isinstance(made, Measured):
            edits += metrics.edits(source, made, own, torch, taken)
            moves += [s for m in made.rounds.moves for s in _moved(staged, m)]
        else:
            reason = made.reason if isinstance(made, Stays) else made
            stays.append((*_lines_of(staged, found), reason))
    done = _after(staged, edits)
    return replace(done, done=(*done.done, *moves), evaluations=tuple(stays))


def _taken(source: Source) -> set[str]:
    taken = all_names(source.tree)
    return taken | {
        n.name for n in ast.walk(source.tree) if isinstance(n, (ast.ClassDef, ast.alias))
    }


def _after(staged: Staged, edits: list[Edit]) -> Staged:
    """The file after one more pass."""
    source = staged.source
    emitted = emit(source, edits)
    starts = ((s, staged.offset(s.span.start)) for s in staged.done)
    return Staged(
        source,
        read(source.path, source.encode(emitted.data)),
        emitted,
        tuple(replace(s, span=Span(start, start)) for s, start in starts),
        staged.unclear,
        staged.cells,
        before=staged,
        single=staged.single,
        evaluations=staged.evaluations,
    )


def _lines_of(staged: Staged, found: EvalRounds | Stays) -> tuple[int, int]:
    """The first and last line of the original where an evaluation loop stands."""
    body = [n for n in ast.walk(found.loop) if isinstance(n, ast.stmt)]
    lines = [staged.origin(n.lineno, n.col_offset + 1) for n in body]
    known = [line[0] for line in lines if line is not None]
    return (min(known), max(known)) if known else (0, 0)


def _moved(staged: Staged, item: ast.stmt) -> Iterator[Site]:
    """The references of a statement that brings a batch to a device."""
    for node in ast.walk(item):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            place = staged.origin(node.lineno, node.col_offset + 1)
            if place is not None:
                span = staged.source.span(node.func)
                yield Site(f"torch.Tensor.{node.func.attr}", span, *place)


def _backward_of(staged: Staged, refused: Refused) -> int:
    """The line of the original where the backward of a step stood."""
    sites = [s for s in staged.done if s.name == NAMES[Act.BACKWARD]]
    lines = {s.line: staged.source.line_of(staged.offset(s.span.start)) for s in sites}
    return min(lines, key=lambda line: abs(lines[line] - refused.line), default=0)
