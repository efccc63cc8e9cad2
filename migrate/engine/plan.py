"""Let every registered rule decide its places of a file; nothing is written here."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, replace

from migrate.records.outcomes import Decision, Edit, Refusal, last_place
from migrate.rules import shared_storage
from migrate.rules.graph import flags as graph_flags
from migrate.rules.inside_text import beside
from migrate.rules.registry import Registered, Registry, Stage, claimed
from migrate.sites.references import Form, Reference, find, in_place
from migrate.sites.scene import Scene


@dataclass(frozen=True)
class Plan:
    """The decisions of a file, one for each of ``total`` references, and edits beside them.

    ``stopped``: what rules refuse that look at a whole file; ``failed``: the errors of such.
    """

    decisions: tuple[Decision, ...]
    extra: tuple[Edit, ...]
    total: int
    failed: tuple[str, ...] = ()
    stopped: tuple[tuple[Refusal, Reference], ...] = ()


def _changing(scene: Scene, node: ast.AST) -> str:
    """Return the name of a write; a call that stops instead of one has that of what it calls."""
    if isinstance(node, ast.Call):
        return in_place(scene, node) or ast.unparse(node.func).partition("(")[0]
    return "torch.Tensor.__setitem__" if isinstance(node, ast.Subscript) else _ADDED


_ADDED = "torch.Tensor.__iadd__"


def everything(scene: Scene) -> list[Reference]:
    """What comes from torch, and what graph mode will not compile, in the order of the text."""
    found = [*find(scene), *graph_flags.references(scene)]
    known = {id(r.node) for r in found}
    found += [
        Reference(node, _changing(scene, node), Form.INPLACE)
        for node in shared_storage.unsure(scene)
        if id(node) not in known
    ]
    return sorted(found, key=lambda r: scene.source.span(r.node).start)


def plan(scene: Scene, found: Sequence[Reference], rules: Registry) -> Plan:
    """Decide every reference of a file."""
    decisions = tuple(_decided(scene, reference, rules) for reference in found)
    extra: list[Edit] = []
    failed: list[str] = []
    stopped: list[tuple[Refusal, Reference]] = []
    for rule in rules.of(Stage.REWRITES):
        try:
            made = list(rule.run(scene))
            edits = [fit for e in made if isinstance(e, Edit) for fit in beside(scene, e)]
        except Exception as error:  # the places that it would have changed are unknown
            failed.append(_raised(rule, error))
        else:
            extra += [claimed(edit, rule) for edit in edits]
            stopped += [one for one in made if not isinstance(one, Edit)]
    return Plan(decisions, tuple(extra), len(found), tuple(failed), tuple(stopped))


def _decided(scene: Scene, reference: Reference, rules: Registry) -> Decision:
    """Return the decision for one reference; if a rule raises, that place alone is flagged.

    The first rule decides that returns an edit or a refusal. Our refusals may be overruled by rules
    of the user that are declared behind ours.
    """
    node, name = reference.node, reference.name
    made: Decision | None = None
    for rule in rules.deciding(reference.form, name):
        if made is None or (isinstance(made, Refusal) and rule.file):
            try:
                found = rule.run(scene, node, name)
            except Exception as error:
                found = _stopped(scene, reference, rule, error)
            if made is None or isinstance(found, Edit):
                made = claimed(found, rule)
    assert made is not None, f"no rule decides {reference.form.value}: {name}"
    for rule in rules.of(Stage.REVISES):
        try:
            revised = rule.run(scene, node, made)
        except Exception as error:
            return _stopped(scene, reference, rule, error)
        if revised is not made:
            made = replace(revised, rule=f"{made.rule}, {rule.name}")
    return made


def _stopped(scene: Scene, at: Reference, rule: Registered, error: Exception) -> Refusal:
    step = f"correct {rule.file}" if rule.file else "report it with the file"
    return Refusal(scene.site(at.name, at.node), "INT901", _raised(rule, error), step)


def _raised(rule: Registered, error: Exception) -> str:
    return f"the rule {rule.name} raised {last_place(error)}"
