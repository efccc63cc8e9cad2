"""In: a scene. Out: for every reference an Edit or a Refusal; pure, nothing is written."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from migrate import package_questions
from migrate.buffer_gradients import BUFFER
from migrate.late_settings import decide_late
from migrate.outcomes import Edit, Outcome, Refusal, Span
from migrate.rules import (
    autograd,
    autograd_function,
    bookkeeping,
    buffer_stores,
    buffers,
    cell_names,
    class_texts,
    classes,
    compiled_operators,
    dead_branches,
    each_module,
    empty_index,
    fields,
    first_mode,
    full_slices,
    global_settings,
    graph_flags,
    graph_forms,
    items,
    lambdas,
    launch,
    members,
    modules,
    operators,
    optimizers,
    references,
    shared_storage,
    strided,
)
from migrate.rules.along import advised, decide_along
from migrate.rules.imports import decide_import
from migrate.rules.inside_text import fitted
from migrate.scene import Scene
from migrate.sites import Form, Reference, find

Decision = Edit | Refusal


@dataclass(frozen=True)
class Plan:
    """The decisions of a file, one for each of ``total`` references, and edits beside them."""

    decisions: tuple[Decision, ...]
    extra: tuple[Edit, ...]
    total: int


def everything(scene: Scene) -> list[Reference]:
    """What comes from torch, and what graph mode will not compile, in the order of the text."""
    found = [*find(scene), *graph_flags.references(scene)]
    return sorted(found, key=lambda r: scene.source.span(r.node).start)


def plan(scene: Scene, found: Sequence[Reference]) -> Plan:
    """Decide every reference of a file."""
    unused = compiled_operators.told_names(scene)
    dead = (*dead_branches.dead_spans(scene), *graph_flags.gone(scene), *unused)
    made = (_dead(scene, r, dead) or _apart(scene, r) or decide(scene, r) for r in found)
    told = (advised(scene, decision) for decision in made)
    decisions = tuple(fitted(scene, r.node, d) for r, d in zip(found, told, strict=True))
    roots = first_mode.roots(scene)
    decisions = tuple(first_mode.set_train(roots, decision) for decision in decisions)
    extra = (*_beside(scene), *first_mode.beside(scene, roots, decisions))
    return Plan(decisions, extra, len(found))


def _dead(scene: Scene, reference: Reference, dead: Sequence[Span]) -> Edit | None:
    """A reference in a branch that is gone, or in what is left out, asks for no decision."""
    if not dead or isinstance(reference.node, ast.alias):
        return None
    span = scene.source.span(reference.node)
    if not any(d.start <= span.start and span.end <= d.end for d in dead):
        return None
    site = scene.site(reference.name, reference.node)
    return Edit(site, Outcome.CONVERTED, None, note="in code that never runs in MindSpore")


def _apart(scene: Scene, reference: Reference) -> Decision | None:
    """A package that is converted along, a setting that comes late, the text of a class's name,
    a matter of graph mode."""
    if reference.form is Form.FOLLOWED:
        return decide_along(scene, reference.node, reference.name)
    if reference.form is Form.PACKAGE:
        return package_questions.decide(scene, reference.node, reference.name)
    if reference.form is Form.LATE and reference.name == BUFFER:
        assert isinstance(reference.node, ast.Attribute)
        return buffer_stores.decide(scene, reference.node)
    if reference.form is Form.LATE:
        return decide_late(scene, reference.node, reference.name)
    if reference.form is Form.CLASS_TEXT:
        assert isinstance(reference.node, ast.Constant)
        return class_texts.decide(scene, reference.node, reference.name)
    if reference.form is Form.EVALUATED:
        return class_texts.evaluated(scene, reference.node, reference.name)
    if reference.form is not Form.GRAPH:
        return None
    return graph_flags.decide(scene, reference.node, reference.name)


def decide(scene: Scene, reference: Reference) -> Decision:
    """The decision for one reference."""
    node, name = reference.node, reference.name
    if reference.form is Form.IMPORT:
        assert isinstance(node, ast.alias)
        return decide_import(scene, node, name)
    if reference.form is Form.FORWARD:
        return classes.forward(scene, node)
    if reference.form is Form.INPLACE:
        assert isinstance(node, (ast.Call, ast.AugAssign, ast.Subscript))
        return shared_storage.decide(scene, node, name)
    if reference.form is Form.OWN:
        return cell_names.decide(scene, node, name)
    if reference.form is Form.OPERATOR:
        assert isinstance(node, ast.expr)
        return operators.decide(scene, node, name)
    if reference.form is Form.FIELD:
        assert isinstance(node, ast.Attribute)
        return fields.decide(scene, node, name)
    if autograd_function.applies(scene, node, name):
        assert isinstance(node, (ast.Name, ast.Attribute))
        return autograd_function.decide(scene, node, name)
    if reference.form is Form.NAME:
        assert isinstance(node, (ast.Name, ast.Attribute))
        return references.decide(scene, node, name)
    assert isinstance(node, ast.Attribute)
    if reference.form is Form.SETTING:
        return global_settings.decide(scene, node, name)
    if reference.form is Form.UNSURE:
        return members.unsure(scene, node, name)
    loop = each_module.decide(scene, node, name)
    if loop is not None:
        return loop
    if optimizers.applies(scene, node, name):
        return optimizers.decide(scene, node, name)
    if modules.applies(scene, node, name):
        return modules.decide(scene, node, name)
    return members.decide(scene, node, name)


def _beside(scene: Scene) -> Iterator[Edit]:
    """Edits that belong to no single reference: parameter names, gradient contexts."""
    yield from classes.first_parameters(scene)
    yield from autograd.contexts(scene)
    yield from autograd_function.bodies(scene)
    yield from graph_forms.rewrites(scene)
    yield from graph_flags.rewrites(scene)
    yield from bookkeeping.calls(scene)
    yield from dead_branches.edits(scene)
    yield from lambdas.named(scene)
    yield from launch.variables(scene)
    yield from strided.slices(scene)
    yield from full_slices.cuts(scene)
    yield from empty_index.guards(scene)
    yield from buffers.snapshots(scene)
    yield from buffers.items(scene)
    yield from items.loads(scene)


def ledger_outcome(decision: Decision) -> Outcome:
    """Under which heading a decision counts."""
    return Outcome.FLAGGED if isinstance(decision, Refusal) else decision.outcome
