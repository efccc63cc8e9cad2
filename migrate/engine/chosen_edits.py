"""Apply what a person decided about flagged places, and tell what there is to decide.

A choice is an edit like that of a rule: the same writer puts it in, and the same check of the
output flags the statement again where it does not compile or reads a name that nothing binds.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from migrate.analysis.types.recorded import Place, Recorded, Seen, place_of
from migrate.codegen.emitted import Emitted
from migrate.engine.plan import Plan
from migrate.records.choices import Asked, Choice, Form, Key
from migrate.records.outcomes import (
    Decision,
    Edit,
    Lines,
    Outcome,
    Refusal,
    Removal,
    Span,
    last_place,
)
from migrate.records.result import SAID
from migrate.rules import own_rules
from migrate.sites.references import Reference
from migrate.sites.scene import Scene
from migrate.syntax.source import Source

RULE = "choice"
_SIMPLE = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr, ast.Return, ast.Assert, ast.Delete,
           ast.Raise)  # fmt: skip
_WHOLE = (Lines, Removal)
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


@dataclass(frozen=True)
class Applied:
    """A plan with choices in it, its references, and the keys of the choices that were used."""

    plan: Plan
    references: tuple[Reference, ...]
    used: frozenset[str] = frozenset()


def keys(scene: Scene, references: Sequence[Reference]) -> list[Key]:
    """Return what tells each reference of a file, in the order given."""
    counts: Counter[tuple[str, str, str]] = Counter()
    found = []
    for reference in references:
        statement = scene.statement(reference.node)
        within, text = _within(scene, statement), _text(scene.source, statement)
        counts[within, text, reference.name] += 1
        number = counts[within, text, reference.name]
        found.append(
            Key(file=scene.file.path, within=within, statement=text, name=reference.name,
                number=number)
        )  # fmt: skip
    return found


def _within(scene: Scene, statement: ast.stmt) -> str:
    around = [s for s in scene.around(statement) if isinstance(s, _SCOPES) and s is not statement]
    return ".".join(scope.name for scope in reversed(around))


def _text(source: Source, statement: ast.stmt) -> str:
    """Return a statement on one line; of a compound one its head."""
    span = source.span(statement)
    body = getattr(statement, "body", None) or getattr(statement, "cases", None)
    end = source.span(body[0]).start if body and hasattr(body[0], "lineno") else span.end
    if isinstance(statement, ast.Match):
        end = source.span(statement.subject).end
    return " ".join(source.data[span.start : end].decode("utf-8", "replace").split())


# -- what was decided ----------------------------------------------------------------------------


def applied(
    scene: Scene, references: Sequence[Reference], made: Plan, choices: Sequence[Choice]
) -> Applied:
    """Put the choices of a file in the place of what is flagged."""
    stopped = [reference for _, reference in made.stopped]
    known = keys(scene, [*references, *stopped])
    wanted = {choice.id: choice for choice in choices if choice.form != "receiver"}
    decisions, assumed = list(made.decisions), list(references)
    extra, gone, used = list(made.extra), set(), set()
    whole: list[Span] = []
    for place, key in enumerate(known):
        inside = place < len(decisions)
        old = decisions[place] if inside else made.stopped[place - len(decisions)][0]
        choice = wanted.get(key.id)
        if choice is None or not isinstance(old, Refusal):
            continue
        reference = assumed[place] if inside else stopped[place - len(decisions)]
        new = _decision(scene, reference, old, choice)
        used.add(choice.id)
        if isinstance(new, _WHOLE):
            whole.append(new.site.span)
        if inside:
            decisions[place] = new
            assumed[place] = replace(reference, assumption=_assumption(choice))
        elif isinstance(new, Edit):
            gone.add(place - len(decisions))
            extra.append(new)
    if not used:
        return Applied(made, tuple(references))
    left = [one for number, one in enumerate(made.stopped) if number not in gone]
    for place, reference in enumerate(references):
        decision = decisions[place]
        if not isinstance(decision, _WHOLE) and scene.source.span(reference.node).lies_in(whole):
            decisions[place] = Edit(decision.site, Outcome.CONVERTED, None, rule=RULE)
    plan = replace(
        made, decisions=tuple(decisions),
        extra=tuple(e for e in extra if e.rule == RULE or not e.site.span.lies_in(whole)),
        stopped=tuple(s for s in left if not scene.source.span(s[1].node).lies_in(whole)),
    )  # fmt: skip
    return Applied(plan, tuple(assumed), frozenset(used))


def _assumption(choice: Choice) -> str:
    return f"{SAID}: {choice.note or choice.form}"


def _decision(scene: Scene, reference: Reference, old: Refusal, choice: Choice) -> Decision:
    """Return the edit that a choice stands for; the refusal, with the reason, where it cannot."""
    node = reference.node
    try:
        if choice.form == "keep":
            return Edit(old.site, Outcome.KEPT, None, rule=RULE)
        if choice.form == "statement":
            statement = scene.statement(node)
            if not isinstance(statement, _SIMPLE):
                raise ValueError("a compound statement is not replaced as a whole")
            site = scene.site(reference.name, statement)
            if choice.becomes.strip() == "pass":  # the block keeps one where nothing else is left
                return Removal(site, Outcome.CONVERTED, (), rule=RULE)
            parts, needs = own_rules.statement(scene, choice.becomes)
            return Lines(site, Outcome.CONVERTED, parts, needs=needs, rule=RULE)
        whole = replaceable(scene, node)
        if whole is None:
            raise ValueError("it is no expression")
        made = own_rules.expression(scene, whole, reference.name, choice.becomes)
        return replace(made, rule=RULE)
    except Exception as error:
        reason = f"{old.reason}; what was chosen for it cannot be used: {last_place(error)}"
        return replace(old, reason=reason, next_step="torch2ms fix, or correct the choice")


def replaceable(scene: Scene, node: ast.AST) -> ast.expr | None:
    """Return the expression that a choice replaces: a reference, or the call of it."""
    parent = scene.parent(node)
    whole = parent if isinstance(parent, ast.Call) and parent.func is node else node
    loaded = isinstance(getattr(whole, "ctx", ast.Load()), ast.Load)
    return whole if isinstance(whole, ast.expr) and loaded else None


def receivers(source: Source, choices: Sequence[Choice]) -> dict[Place, Seen]:
    """Return what receivers of a file are said to be, by their places.

    A choice speaks of all equal receivers of that method in its statement.
    """
    wanted = [c for c in choices if c.form == "receiver" and c.file == source.path]
    found: dict[Place, Seen] = {}
    for within, statement, node in _attributes(source) if wanted else ():
        for choice in wanted:
            same = choice.within == within and choice.name.rpartition(".")[2] == node.attr
            same = same and source.text_of(node.value) == choice.was
            if same and _text(source, statement) == choice.statement:
                said = choice.becomes
                found[place_of(node.value)] = Seen(said, said, 1, SAID)
    return found


def _attributes(source: Source) -> Iterator[tuple[str, ast.stmt, ast.Attribute]]:
    """Yield the attributes of a file with where they stand."""
    todo: list[tuple[ast.AST, str, ast.stmt | None]] = [(source.tree, "", None)]
    while todo:
        node, within, statement = todo.pop()
        inner = within
        if isinstance(node, ast.stmt):
            statement = node
        if isinstance(node, _SCOPES):
            inner = f"{within}.{node.name}" if within else node.name
        if isinstance(node, ast.Attribute) and statement is not None:
            yield within, statement, node
        body = set(map(id, getattr(node, "body", ()))) if isinstance(node, _SCOPES) else set()
        for child in ast.iter_child_nodes(node):
            todo.append((child, inner if id(child) in body else within, statement))


def told(
    recorded: Recorded | None, sources: Mapping[str, Source], choices: Sequence[Choice]
) -> Recorded:
    """Return what is known of receivers, with what a person has said of them."""
    places = {path: dict(found) for path, found in (recorded or Recorded()).places.items()}
    for path, source in sources.items():
        if said := receivers(source, choices):
            places[path] = {**places.get(path, {}), **said}
    return Recorded(places)


# -- what there is to decide -----------------------------------------------------------------------


def asked(
    scene: Scene, references: Sequence[Reference], decisions: Sequence[Decision], emitted: Emitted
) -> tuple[Asked, ...]:
    """Return the flagged places of a file, in the order of the text."""
    lines = emitted.data.decode("utf-8", "replace").split("\n")
    found = []
    for key, reference, decision in zip(
        keys(scene, references), references, decisions, strict=True
    ):
        if isinstance(decision, Refusal):
            found.append(_asked(scene, key, reference, decision, emitted, lines))
    return tuple(sorted(found, key=lambda one: (one.line, one.column)))


def _asked(
    scene: Scene, key: Key, reference: Reference, refusal: Refusal, emitted: Emitted,
    lines: Sequence[str],
) -> Asked:  # fmt: skip
    node, source = reference.node, scene.source
    statement = scene.statement(node)
    site = scene.site(reference.name, node)
    whole = replaceable(scene, node)
    owner = node.value if isinstance(node, ast.Attribute) else None
    kinds = tuple(sorted(scene.kind_names(owner))) if owner is not None else ()
    if kinds == ("ref",):  # a module of torch
        owner, kinds = None, ()
    forms: list[Form] = ["expression"] if whole is not None else []
    forms += ["statement"] if isinstance(statement, _SIMPLE) else []
    forms += ["receiver"] if owner is not None and (not kinds or "unknown" in kinds) else []
    forms += ["keep"] if refusal.keep or refusal.guard or refusal.tensor is not None else []
    span = source.span(statement)
    body = getattr(statement, "body", None)
    end = source.span(body[0]).start if body else span.end
    first = emitted.line(span.start) or emitted.line(source.span(node).start)
    last = max(first, emitted.line(end - 1) if not body else first)
    top = first
    while top > 1 and lines[top - 2].lstrip().startswith("#"):
        top -= 1
    while 0 < last < len(lines) and lines[last - 1].lstrip().startswith("#"):
        last += 1  # the statement stands as a comment; what raises is behind it
    original = source.data[source.line_start(statement.lineno) : end].decode("utf-8", "replace")
    return Asked(
        key=key, line=site.line, column=site.column, code=refusal.code, reason=refusal.reason,
        next_step=refusal.next_step, original=original.rstrip(), output_line=first,
        output="\n".join(lines[top - 1 : last]) if first else "",
        expression=source.text_of(whole) if whole is not None else "",
        receiver=source.text_of(owner) if owner is not None else "", kinds=kinds,
        values=_values(scene, owner), forms=tuple(forms),
    )  # fmt: skip


def _values(scene: Scene, owner: ast.expr | None) -> tuple[str, ...]:
    if not isinstance(owner, ast.Name):
        return ()
    values = [value for value in scene.facts.values(owner) if value is not None]
    return tuple(
        f"line {value.lineno}: {' '.join(scene.source.text_of(value).split())[:80]}"
        for value in values[:4] if hasattr(value, "lineno")
    )  # fmt: skip
