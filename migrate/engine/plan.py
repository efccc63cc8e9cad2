"""In: a scene. Out: for every reference an Edit or a Refusal; pure, nothing is written."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from migrate.records.errors import last_place
from migrate.records.outcomes import Edit, Outcome, Refusal, Span
from migrate.rules import (
    autograd,
    autograd_function,
    bookkeeping,
    buffers,
    by_text,
    classes,
    compiled_operators,
    dead_branches,
    dense_layout,
    first_mode,
    indexing,
    integers,
    items,
    lambdas,
    members,
    modules,
    numpy_results,
    operators,
    optimizers,
    references,
    settings,
    shared_storage,
    type_names,
)
from migrate.rules.graph import flags as graph_flags
from migrate.rules.graph import sequences
from migrate.rules.imports import advised, decide_along, decide_import
from migrate.rules.inside_text import beside, fitted
from migrate.sites import packages
from migrate.sites.buffer_gradients import BUFFER
from migrate.sites.late_writes import decide_late
from migrate.sites.references import Form, Reference, find
from migrate.sites.scene import Scene

Decision = Edit | Refusal


@dataclass(frozen=True)
class Plan:
    """The decisions of a file, one for each of ``total`` references, and edits beside them.

    ``failed``: the errors of rules that look at a whole file.
    """

    decisions: tuple[Decision, ...]
    extra: tuple[Edit, ...]
    total: int
    failed: tuple[str, ...] = ()


def everything(scene: Scene) -> list[Reference]:
    """What comes from torch, and what graph mode will not compile, in the order of the text."""
    found = [*find(scene), *graph_flags.references(scene)]
    known = {id(r.node) for r in found}
    found += [
        Reference(node, "torch.Tensor.__iadd__", Form.INPLACE)
        for node in shared_storage.unsure(scene)
        if id(node) not in known
    ]
    return sorted(found, key=lambda r: scene.source.span(r.node).start)


def plan(scene: Scene, found: Sequence[Reference]) -> Plan:
    """Decide every reference of a file."""
    unused = compiled_operators.told_names(scene)
    answered = dense_layout.spans(scene)
    dead = (*dead_branches.dead_spans(scene), *graph_flags.gone(scene), *unused, *answered)
    decisions = tuple(_decided(scene, r, dead) for r in found)
    roots = first_mode.roots(scene)
    decisions = tuple(first_mode.set_train(scene, roots, decision) for decision in decisions)
    extra: list[Edit] = []
    failed: list[str] = []
    for rule in _BESIDE:
        try:
            extra += [fit for edit in rule(scene) for fit in beside(scene, edit)]
        except Exception as error:  # nobody knows which places it would have changed
            failed.append(last_place(error))
    extra += first_mode.beside(scene, roots, decisions)
    return Plan(decisions, tuple(extra), len(found), tuple(failed))


def _decided(scene: Scene, reference: Reference, dead: Sequence[Span]) -> Decision:
    """Return the decision for one reference; a rule that raises costs this place alone."""
    try:
        made = _dead(scene, reference, dead) or _apart(scene, reference)
        told = advised(scene, made or decide(scene, reference))
        if isinstance(told, Edit):
            told = integers.cut(scene, reference.node, integers.cast(scene, reference.node, told))
            told = integers.kept(scene, reference.node, told)
        return fitted(scene, reference.node, told)
    except Exception as error:
        site = scene.site(reference.name, reference.node)
        return Refusal(site, "INT901", last_place(error), "report it with the file")


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
        return packages.decide(scene, reference.node, reference.name)
    if reference.form is Form.LATE and reference.name == BUFFER:
        assert isinstance(reference.node, (ast.Attribute, ast.Call))
        return shared_storage.buffer_store(scene, reference.node)
    if reference.form is Form.LATE:
        return decide_late(scene, reference.node, reference.name)
    if reference.form is Form.CLASS_TEXT:
        assert isinstance(reference.node, ast.Constant)
        return by_text.class_text(scene, reference.node, reference.name)
    if reference.form is Form.EVALUATED:
        return by_text.evaluated(scene, reference.node, reference.name)
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
        return classes.own_name(scene, node, name)
    if reference.form is Form.OPERATOR:
        assert isinstance(node, ast.expr)
        return operators.decide(scene, node, name)
    if reference.form is Form.FIELD:
        assert isinstance(node, ast.Attribute)
        return members.field(scene, node, name)
    if autograd_function.applies(scene, node, name):
        assert isinstance(node, (ast.Name, ast.Attribute))
        return autograd_function.decide(scene, node, name)
    if reference.form is Form.NAME:
        assert isinstance(node, (ast.Name, ast.Attribute))
        return references.decide(scene, node, name)
    assert isinstance(node, ast.Attribute)
    if reference.form is Form.SETTING:
        return settings.decide(scene, node, name)
    if reference.form is Form.UNSURE:
        return members.unsure(scene, node, name)
    loop = modules.over_modules(scene, node, name)
    if loop is not None:
        return loop
    if optimizers.applies(scene, node, name):
        return optimizers.decide(scene, node, name)
    if modules.applies(scene, node, name):
        return modules.decide(scene, node, name)
    return members.decide(scene, node, name)


# Edits that belong to no single reference: parameter names, gradient contexts.
_BESIDE: tuple[Callable[[Scene], Iterable[Edit]], ...] = (
    classes.first_parameters,
    classes.delegates,
    autograd.contexts,
    autograd_function.bodies,
    sequences.forms,
    graph_flags.rewrites,
    integers.written,
    compiled_operators.asked,
    dense_layout.answers,
    bookkeeping.calls,
    dead_branches.edits,
    lambdas.named,
    settings.variables,
    indexing.slices,
    indexing.cuts,
    indexing.guards,
    buffers.snapshots,
    numpy_results.wrapped,
    type_names.texts,
    buffers.unsaved,
    buffers.items,
    items.loads,
    shared_storage.repairs,
    shared_storage.kept_parameters,
)
