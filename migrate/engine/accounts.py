"""In: the decisions of a file and its new text. Out: its ledger, entries, Cells, weight rows."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from migrate.analysis.types.kinds import NOTHING
from migrate.codegen.emitted import Emitted
from migrate.engine import flags
from migrate.records.outcomes import Decision, Edit, Outcome, Refusal, Site
from migrate.records.result import CHECKED, CellPlace, Entry
from migrate.sites.references import Reference
from migrate.sites.scene import Scene


def entries(
    scene: Scene,
    references: Sequence[Reference],
    decisions: Sequence[Decision],
    emitted: Emitted,
) -> tuple[Entry, ...]:
    """What became of every reference, with its line before and after."""
    found = []
    assumed = scene.inference.assumptions(scene.file.path)
    for reference, decision in zip(references, decisions, strict=True):
        own = scene.site(reference.name, reference.node)
        site = Site(decision.site.name, decision.site.span, own.line, own.column)
        line = emitted.line(own.span.start)
        if isinstance(decision, Refusal) and flags.is_checked(scene, decision, reference.node):
            found.append(_checked(site, line, decision))
        elif isinstance(decision, Refusal):
            found.append(_flagged(site, line, decision))
        else:
            found.append(
                Entry(
                    name=site.name,
                    outcome=decision.outcome,
                    line=site.line,
                    column=site.column,
                    output_line=line,
                    row=decision.row,
                    note=decision.note,
                    target=_target(decision),
                    assumption=assumed.get(id(reference.node), reference.assumption),
                )
            )
    return tuple(found)


def _checked(site: Site, line: int, refusal: Refusal) -> Entry:
    return Entry(
        name=site.name,
        outcome=Outcome.KEPT,
        line=site.line,
        column=site.column,
        output_line=line,
        assumption=f"{CHECKED} ({refusal.code}): if it is one, {refusal.reason}; "
        f"{refusal.next_step}",
    )


def _flagged(site: Site, line: int, refusal: Refusal) -> Entry:
    return Entry(
        name=site.name,
        outcome=Outcome.FLAGGED,
        line=site.line,
        column=site.column,
        output_line=line,
        code=refusal.code,
        reason=refusal.reason,
        next_step=refusal.next_step,
    )


def _target(edit: Edit) -> str:
    """The first words of the new text, for the report."""
    if edit.parts is None or not any(isinstance(p, str) or p.node for p in edit.parts):
        return ""
    text = "".join(p if isinstance(p, str) else "..." for p in edit.parts)
    return " ".join(text.partition("(")[0].split())[:80]


def cells(scene: Scene, emitted: Emitted) -> tuple[CellPlace, ...]:
    """Where the file's Modules stand, and the Cells they became."""
    found = []
    for owner in scene.file.classes.values():
        if scene.is_module_class(owner):
            span = scene.source.span(owner.node)
            found.append(
                CellPlace(
                    name=owner.key.partition("::")[2],
                    line=owner.node.lineno,
                    end_line=owner.node.end_lineno or owner.node.lineno,
                    output_line=emitted.line(span.start),
                    output_end_line=emitted.line(span.end - 1),
                )
            )
    return tuple(found)


def weights(scene: Scene) -> frozenset[str]:
    """The class rows whose weights have other names or layouts, of everything this file builds."""
    nodes = scene.file.nodes
    kinds = set(map(scene.inference.kinds.get, map(id, nodes), itertools.repeat(NOTHING)))
    atoms = frozenset().union(*kinds)
    names = {a.name for a in atoms if a.kind in ("ref", "Module") and "::" not in a.name}
    names |= {held for name in names for row in scene.table.rows(name) for held in row.holds}
    return frozenset(
        row.key for name in names for row in scene.table.rows(name) if row.weights or row.layout
    )
