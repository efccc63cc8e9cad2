"""Refusals become edits: a comment that announces each, and code that stops where it is reached.

A flag marks the smallest expression that is not understood, and what is marked fails when it is
reached, in PyNative and in Graph mode. Three forms do that:

- In a function a statement raises. Behind a condition of its own, in a lambda and in the head of a
  compound statement the expression is a call that raises; graph mode compiles a call by what it
  calls, so there the flag stops a branch that is not taken as well.
- What an import evaluates and keeps (values of names, entries of displays, defaults, decorators,
  base classes) is ``Missing``, which fails on any use: importing the file has to go on where
  torch's program would.
  What it hands to a function of the program (``Norm.add(nn.SyncBatchNorm)``) is such a value too.
- Where only the receiver of a method is unknown the text stays. A Tensor of MindSpore that has no
  method of that name fails by itself; where it has one, the receiver is checked first, and raises.
- What an import does (``optimizer.step()``, a setting of torch) raises: nothing tells who needs it.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from itertools import pairwise

from migrate.analysis.types.kinds import is_all, without_none
from migrate.codegen.substitution import added, piece
from migrate.engine import caught
from migrate.records.outcomes import (
    Edit,
    Lines,
    Outcome,
    Part,
    Piece,
    Refusal,
    Site,
    Span,
    announced,
)
from migrate.rules.graph import unbound
from migrate.rules.inside_text import fitted
from migrate.rules.members import ASKED
from migrate.rules.torch_sharing import METADATA
from migrate.sites.references import Reference
from migrate.sites.scene import Scene
from migrate.syntax.lines import begins_line, comment_lines, ends_line, first_start, text_begin
from migrate.syntax.trees import last_name

MISSING = "helpers.Missing"
STOP = "helpers.unconverted"
GUARD = "helpers.not_tensor"

_SIMPLE = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr, ast.Return, ast.Assert, ast.Delete,
           ast.Raise)  # fmt: skip
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_LOOPS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_DISPLAYS = (ast.Dict, ast.List, ast.Tuple, ast.Set)
_KEEPING = ("dict", "OrderedDict", "partial", "wraps")  # calls that only keep their arguments
# calls that are made for what they do, whatever becomes of their value
_EFFECT = re.compile(
    r"([^_]_|backward|step|train|eval|apply|update|load_state_dict|zero_grad|seed)$"
    r"|^(set|register|init|enable|disable|use|manual|add)_"
)


class Form(Enum):
    """How a mark fails."""

    COMMENT = "the text as it stands is right, or fails by itself"
    GUARD = "the receiver raises where it turns out to be a Tensor"
    STATEMENT = "the statement raises"
    CALL = "the expression raises where it is evaluated"
    VALUE = "the expression is a value that fails on any use"
    ANNOTATION = "nobody evaluates it, or nobody acts on it"
    DECORATOR = "the decorated name is such a value"
    EXCEPTION = "the class of exceptions that nobody raises"
    NO_CLASS = "no object is of that class: isinstance is False"
    PATTERN = "the subject of the match raises"
    DEFINITION = "the name of a function or class is bound to such a value"
    NAME = "an imported name is bound to such a value"
    TENSOR = "the statement stays, and raises before it where something is a Tensor"


_STAYING = (Form.COMMENT, Form.GUARD)
_RAISING = (Form.GUARD, Form.STATEMENT, Form.CALL, Form.PATTERN, Form.TENSOR)


@dataclass(frozen=True)
class Mark:
    """A refusal with the node that it replaces."""

    refusal: Refusal
    node: ast.AST
    place: ast.AST
    form: Form


@dataclass(frozen=True)
class Binding(Edit):
    """The assignment that takes the place of an imported name."""

    alias: ast.alias | None = None


@dataclass(frozen=True)
class Stop(Lines):
    """A statement that raises; the comment above it has its text, with its comments."""


@dataclass(frozen=True)
class Guard(Edit):
    """A check around a receiver; what is inside it is edited as well."""


def edits(scene: Scene, refused: Sequence[tuple[Refusal, Reference]]) -> Iterator[Edit]:
    """Yield one comment for each statement, and what fails in the place of each mark."""
    marks = [_mark(scene, refusal, reference.node) for refusal, reference in refused]
    marks += _registering(scene, marks)
    marks += _derived(scene, marks)
    by_line: dict[int, list[Mark]] = {}
    for mark in marks:
        begin = text_begin(scene.source, first_start(scene.source, scene.statement(mark.node)))
        if not is_checked(scene, mark.refusal, mark.node):
            by_line.setdefault(begin, []).append(mark)
    for start, some in by_line.items():
        yield _comment(scene, start, some)
    stopping = list(_outermost(scene, marks))
    for mark in stopping:
        yield from _FORMS[mark.form](scene, mark)
    spans = [scene.source.span(mark.place) for mark in stopping]
    for mark in marks:
        if mark.form is Form.GUARD and not scene.source.span(mark.node).lies_in(spans):
            guard = _guard(scene, mark)
            assert isinstance(guard, Guard)  # its text holds one kind of quotes
            yield guard
    yield from caught.edits(scene, [m.node for m in marks if m.form in _RAISING])


def is_checked(scene: Scene, refusal: Refusal, node: ast.AST) -> bool:
    """Return whether the text stays behind a check for a Tensor: it is right for all else."""
    return refusal.tensor is not None and begins_line(scene.source, scene.statement(node))


def raising(scene: Scene, refused: Sequence[tuple[Refusal, Reference]]) -> frozenset[str]:
    """Return the functions of a file that hold a flag which raises where it is reached."""
    marks = [_mark(scene, refusal, reference.node) for refusal, reference in refused]
    return caught.functions(scene.file, [m.node for m in marks if m.form in _RAISING])


def _outermost(scene: Scene, marks: Sequence[Mark]) -> Iterator[Mark]:
    """Yield the first of the marks of each place, without those inside the place of another."""
    spans: dict[int, Span] = {}
    for mark in marks:
        if mark.form not in _STAYING:
            spans.setdefault(id(mark.place), scene.source.span(mark.place))
    places = sorted(spans.values(), key=lambda s: (s.start, -s.end))
    outer: list[Span] = []
    for span in places:
        if not outer or span.start >= outer[-1].end:
            outer.append(span)
    chosen = set(outer)
    for mark in marks:
        span = spans.get(id(mark.place), Span(0, 0))
        if mark.form not in _STAYING and span in chosen:
            chosen.remove(span)
            yield mark


# -- what is marked ---------------------------------------------------------------------------


def _mark(scene: Scene, refusal: Refusal, node: ast.AST) -> Mark:
    if refusal.keep or refusal.guard:
        asks = refusal.code == "API102" and isinstance(node, ast.Attribute)
        guard = refusal.guard or (asks and caught.fails_unseen(scene, node))
        return Mark(refusal, node, node, Form.GUARD if guard else Form.COMMENT)
    if isinstance(node, ast.alias):
        return Mark(refusal, node, node, Form.NAME)
    asked = refusal.tensor is not None or refusal.given or refusal.tensors
    if asked and begins_line(scene.source, scene.statement(node)):
        return Mark(refusal, node, node, Form.TENSOR)
    place = _whole(scene, node)
    if isinstance(place, ast.stmt):
        defines = isinstance(place, (*_FUNCTIONS, ast.ClassDef))
        return Mark(refusal, node, place, Form.DEFINITION if defines else Form.STATEMENT)
    holder = scene.parent(place)
    if isinstance(holder, (*_FUNCTIONS, ast.ClassDef)) and place in holder.decorator_list:
        return Mark(refusal, node, place, Form.DECORATOR)
    if isinstance(holder, (ast.MatchValue, ast.MatchClass)):
        return Mark(refusal, node, place, Form.PATTERN)
    if scene.in_annotation(place):
        return Mark(refusal, node, place, Form.ANNOTATION)
    if _catches(scene, place):
        return Mark(refusal, node, place, Form.EXCEPTION)
    if _tests_class(scene, place) and not _has_objects(scene, refusal.site.name):
        return Mark(refusal, node, place, Form.NO_CLASS)
    form, place = _evaluated(scene, refusal, place)
    return Mark(refusal, node, place, form)


def _registering(scene: Scene, marks: Sequence[Mark]) -> list[Mark]:
    """``@op.register_fake`` where a flagged decorator made ``op`` a value that is missing."""
    missing: dict[str, Refusal] = {}
    for mark in marks:
        holder = scene.parent(mark.place)
        if mark.form is Form.DECORATOR and scene.function(holder or mark.place) is None:
            missing[getattr(holder, "name", "")] = mark.refusal
    found = []
    for name, refusal in missing.items():
        for use in scene.file.loads.get(name, ()):
            node: ast.AST = use
            while isinstance(parent := scene.parent(node), (ast.Attribute, ast.Call)):
                node = parent
            holder = scene.parent(node)
            if node is not use and node in getattr(holder, "decorator_list", ()):
                found.append(Mark(refusal, node, node, Form.DECORATOR))
    return found


def _derived(scene: Scene, marks: Sequence[Mark]) -> list[Mark]:
    """Return marks for what an import computes from a value that is missing: it is missing too."""
    missing = {id(mark.place): mark.refusal for mark in marks if mark.form is Form.VALUE}
    found: list[Mark] = []
    todo = [mark.place for mark in marks if mark.form is Form.VALUE]
    for place in todo:
        statement = scene.parent(place)
        targets = statement.targets if isinstance(statement, ast.Assign) else ()
        for use in (u for t in targets for u in scene.file.loads.get(getattr(t, "id", ""), ())):
            if id(use) in missing or not isinstance(use, ast.Name):
                continue
            values = scene.facts.values(use)
            if not values or any(id(value) not in missing for value in values):
                continue
            around = scene.parent(use)
            if isinstance(around, ast.Compare) and isinstance(around.ops[0], (ast.Is, ast.IsNot)):
                continue
            mark = _mark(scene, missing[id(place)], use)
            if id(mark.place) in missing or mark.form not in (Form.VALUE, Form.DECORATOR):
                continue
            missing[id(mark.place)] = mark.refusal
            found += [mark] * (mark.place is not use)
            if mark.form is Form.VALUE:
                todo.append(mark.place)
    return found


def _whole(scene: Scene, node: ast.AST) -> ast.AST:
    """Return the smallest expression that is not understood: a call with its function."""
    parent = scene.parent(node)
    place = parent if isinstance(parent, ast.Call) and parent.func is node else node
    assert place is not None
    current = scene.parent(place)
    while isinstance(current, (ast.FormattedValue, ast.JoinedStr)):
        place = current  # a text cannot hold another text with any quotes in it
        current = scene.parent(place)
    return place


def _catches(scene: Scene, node: ast.AST) -> bool:
    holder = scene.parent(node)
    while isinstance(holder, ast.Tuple):
        node, holder = holder, scene.parent(holder)
    return isinstance(holder, ast.ExceptHandler) and holder.type is node


def _tests_class(scene: Scene, node: ast.AST) -> bool:
    """Return whether a node is a class in a test of ``isinstance`` or ``issubclass``."""
    holder = scene.parent(node)
    while isinstance(holder, ast.Tuple):
        node, holder = holder, scene.parent(holder)
    asks = isinstance(holder, ast.Call) and node in holder.args[1:]
    return asks and getattr(holder.func, "id", "") in ("isinstance", "issubclass")  # type: ignore[union-attr]


def _has_objects(scene: Scene, name: str) -> bool:
    """Return whether objects of a class without a counterpart may exist.

    A library that cannot be imported makes none.
    """
    if name.partition(".")[0] != "torch":
        return False
    inference = scene.inference
    derived = any(name in inference.torch_bases(key) for key in inference.program.classes)
    return derived or scene.table.has_objects(name)


def _evaluated(scene: Scene, refusal: Refusal, place: ast.AST) -> tuple[Form, ast.AST]:
    """Return the form of a mark by when its place is evaluated, and the place of that form."""
    path = [place]
    while not isinstance(path[-1], ast.stmt):
        parent = scene.parent(path[-1])
        assert parent is not None
        if isinstance(parent, (ast.arguments, ast.Lambda)):
            return _in_function(place, path, parent)
        path.append(parent)
    statement = path[-1]
    if isinstance(statement, (*_FUNCTIONS, ast.ClassDef)):
        kept = _kept(path[:-1])
        decorates = kept in statement.decorator_list
        return (Form.DECORATOR if decorates else Form.VALUE), kept
    value = getattr(statement, "value", None)
    assigned = isinstance(statement, (ast.Assign, ast.AnnAssign)) and value in path
    if assigned and not _when_called(scene, statement) and not _is_effect(refusal, place):
        return Form.VALUE, _kept(path[:-1])
    passed = isinstance(statement, ast.Expr) and _is_passed_on(scene, path[:-1])
    if passed and not _when_called(scene, statement) and not _is_effect(refusal, place):
        return Form.VALUE, _kept(path[:-2])
    if not isinstance(statement, _SIMPLE) or _conditional(path):
        return Form.CALL, place
    return Form.STATEMENT, statement


def _is_passed_on(scene: Scene, path: Sequence[ast.AST]) -> bool:
    """Return whether a call passes it to the program's own code, which keeps it or fails by its
    use.
    """
    call = path[-1]
    if not isinstance(call, ast.Call) or len(path) < 2 or path[-2] is call.func:
        return False
    targets = without_none(scene.kind(call.func))
    return bool(targets) and all("::" in a.name for a in targets)


def _in_function(place: ast.AST, path: list[ast.AST], parent: ast.AST) -> tuple[Form, ast.AST]:
    """A default is evaluated with the definition, the body of a lambda when it is called."""
    if isinstance(parent, ast.Lambda) and parent.body is path[-1]:
        return Form.CALL, place
    return Form.VALUE, _kept(path)


def _when_called(scene: Scene, statement: ast.stmt) -> bool:
    """Whether a statement runs when a function is called, not when the file is imported."""
    return any(isinstance(outer, _FUNCTIONS) for outer in scene.around(statement, ast.ClassDef))


def _conditional(path: Sequence[ast.AST]) -> bool:
    """Whether the statement may be executed without its first node being evaluated."""
    for child, parent in pairwise(path):
        if isinstance(parent, ast.IfExp) and child is not parent.test:
            return True
        if isinstance(parent, ast.BoolOp) and child is not parent.values[0]:
            return True
        if isinstance(parent, ast.Compare) and child in parent.comparators[1:]:
            return True
        if isinstance(parent, _LOOPS) and child is not parent.generators[0]:
            return True
        if isinstance(parent, ast.comprehension) and child is not parent.iter:
            return True
        if isinstance(parent, ast.Assert) and child is parent.msg:
            return True
    return False


def _kept(path: Sequence[ast.AST]) -> ast.AST:
    """Return the innermost node of a path that displays and the like keep without a look at it."""
    for child, parent in reversed(list(pairwise(path))):
        kept = isinstance(parent, (*_DISPLAYS, ast.keyword))
        if isinstance(parent, ast.Call):
            name = last_name(parent.func)
            kept = name in _KEEPING and child is not parent.func
        elif isinstance(parent, ast.IfExp):
            kept = child is not parent.test
        elif isinstance(parent, ast.BoolOp):
            kept = child is parent.values[-1]
        elif isinstance(child, ast.Starred):
            kept = False
        if not kept:
            return parent
    return path[0]


def _is_effect(refusal: Refusal, place: ast.AST) -> bool:
    """Whether the value is not all that is missing: a name may be left with what it had before."""
    name = refusal.site.name.partition("(")[0].rpartition(".")[2]
    told = any(k.arg == "out" for k in getattr(place, "keywords", ()))
    written = refusal.code.startswith("INP") or told
    return written or (isinstance(place, ast.Call) and _EFFECT.search(name) is not None)


# -- what becomes of it -----------------------------------------------------------------------


def message(refusal: Refusal) -> str:
    """Return what the exception says; the comment above has the reason."""
    return f"torch2ms {refusal.code} {_one_line(refusal.site.name)}"


def _guard(scene: Scene, mark: Mark) -> Edit | Refusal:
    """``x.std(1)`` becomes ``not_tensor(x, "...").std(1)``."""
    node = mark.node
    assert isinstance(node, ast.Attribute)
    made, root = scene.spelling.local(GUARD)
    receiver = piece(scene.source, node.value)
    parts = (f"{made}(", receiver, f", {message(mark.refusal)!r}).{node.attr}")
    site = _at(mark, scene.source.span(node))
    return fitted(scene, node, Guard(site, Outcome.FLAGGED, parts, needs=frozenset((root,))))


def _statement(scene: Scene, mark: Mark) -> Iterator[Edit]:
    statement = scene.statement(mark.place)
    text = f"raise NotImplementedError({message(mark.refusal)!r})"
    span = scene.source.span(statement)
    site = _at(mark, span)
    if begins_line(scene.source, statement) and ends_line(scene.source, statement):
        yield Stop(site, Outcome.FLAGGED, unbound.raising(scene, statement, text))
    else:
        made, root = _called(scene, STOP, mark)
        yield Stop(site, Outcome.FLAGGED, (made,), needs=frozenset((root,)))


def _tensor(scene: Scene, mark: Mark) -> Iterator[Edit]:
    """The statement stays behind a check: the comment comes before both."""
    source, statement = scene.source, scene.statement(mark.node)
    assert isinstance(statement, (ast.AugAssign, ast.Assign))
    put = partial(added, source, _at(mark, source.span(statement)), statement, Part.BEFORE)
    then = f":{source.newline}    raise NotImplementedError({message(mark.refusal)!r})"
    text, root = scene.spelling.local("mindspore.Tensor")
    asked = [f"{name} is not None" for name in mark.refusal.given]
    asked += [f"isinstance({name}, {text})" for name in mark.refusal.tensors]
    parts: tuple[str | Piece, ...] = (f"if {' or '.join(asked)}{then}",)
    if mark.refusal.tensor is not None:
        parts = ("if isinstance(", Piece(mark.refusal.tensor), f", {text}){then}")
    needs = frozenset((root,) if len(asked) > len(mark.refusal.given) or len(parts) > 1 else ())
    yield replace(put(*parts), outcome=Outcome.FLAGGED, needs=needs)


def _definition(scene: Scene, mark: Mark) -> Iterator[Edit]:
    node = mark.place
    assert isinstance(node, (*_FUNCTIONS, ast.ClassDef))
    made, root = _called(scene, MISSING, mark)
    span = Span(first_start(scene.source, node), scene.source.span(node).end)
    parts, needs = (f"{node.name} = {made}",), frozenset((root,))
    yield Stop(_at(mark, span), Outcome.FLAGGED, parts, needs=needs)


def _call(scene: Scene, mark: Mark) -> Iterator[Edit]:
    made, root = _called(scene, STOP, mark)
    place = mark.place
    if not isinstance(getattr(place, "ctx", ast.Load()), ast.Load):
        made += f".{getattr(place, 'attr', 'value')}"  # nothing can be assigned to a call
    around = scene.parent(place)
    if isinstance(around, ast.BoolOp) and _asked_first(scene, place):
        site, needs = _at(mark, scene.source.span(place)), frozenset((root,))
        last = added(scene.source, site, place, Part.OPERAND)
        yield from Guard(site, Outcome.FLAGGED, (made,), needs=needs, also=(last,)).each()
    else:
        yield _edit(scene, mark, place, made, root)


def _asked_first(scene: Scene, place: ast.AST) -> list[ast.expr]:
    """Return what is joined to a flag by ``and`` or ``or``, and can answer without it."""
    around = scene.parent(place)
    if not isinstance(around, ast.BoolOp):
        return []
    rest = around.values[[id(v) for v in around.values].index(id(place)) + 1 :]
    nodes = [n for v in rest for n in ast.walk(v)]
    calls = (n for n in nodes if not isinstance(n, ASKED))
    plain = all(isinstance(n, ast.Call) and last_name(n.func) in METADATA for n in calls)
    enclosed = any(scene.source.is_enclosed(v) for v in around.values)
    answers = all(is_all(scene.kind(v), "bool") for v in rest)
    return rest if plain and answers and not enclosed else []


def _value(scene: Scene, mark: Mark) -> Iterator[Edit]:
    made, root = _called(scene, MISSING, mark)
    statement = scene.statement(mark.place)
    if isinstance(statement, ast.Assign) and statement.value is mark.place:
        targets = [t.elts for t in statement.targets if isinstance(t, (ast.Tuple, ast.List))]
        if targets:  # each of the names is missing
            made = ", ".join([made] * len(targets[0]))
    yield _edit(scene, mark, mark.place, made, root)


def _annotation(scene: Scene, mark: Mark) -> Iterator[Edit]:
    yield _edit(scene, mark, mark.place, "object", "")


def _decorator(scene: Scene, mark: Mark) -> Iterator[Edit]:
    made, root = _called(scene, MISSING, mark)
    yield _edit(scene, mark, mark.place, f"{made}.decorate", root)


def _no_class(scene: Scene, mark: Mark) -> Iterator[Edit]:
    yield _edit(scene, mark, mark.place, "()", "")


def _exception(scene: Scene, mark: Mark) -> Iterator[Edit]:
    made, root = _called(scene, MISSING, mark)
    yield _edit(scene, mark, mark.place, f"{made}.error", root)


def _pattern(scene: Scene, mark: Mark) -> Iterator[Edit]:
    """A pattern holds names and literals only: the subject raises before it is compared."""
    statement = scene.statement(mark.node)
    assert isinstance(statement, ast.Match)
    made, root = _called(scene, STOP, mark)
    value = isinstance(scene.parent(mark.place), ast.MatchValue)
    yield _edit(scene, mark, mark.place, "None" if value else "object", "")
    yield _edit(scene, mark, statement.subject, made, root)


def _name(scene: Scene, mark: Mark) -> Iterator[Edit]:
    """``import lib`` of a library that needs torch binds the name to an object that raises."""
    alias = mark.node
    assert isinstance(alias, ast.alias)
    if alias.name == "*":
        return
    made, root = _called(scene, MISSING, mark)
    bound = alias.asname or alias.name.partition(".")[0]
    site = scene.site(mark.refusal.site.name, alias)
    needs = frozenset((root,))
    yield Binding(site, Outcome.FLAGGED, (f"{bound} = {made}",), needs=needs, alias=alias)
    for use in scene.file.loads.get(bound, ()):
        if scene.in_annotation(use):  # annotations decide nothing at run time
            named = [b.place for b in scene.facts.reach(use).bindings]
            if (named or _importing(scene, bound))[0] is alias:  # several imports may bind it
                yield _edit(scene, mark, _dotted(scene, use), "object", "")


def _importing(scene: Scene, bound: str) -> list[ast.AST]:
    """Return the imports of a file that bind a name."""
    names = [alias for node in scene.file.imports for alias in node.names]
    return [a for a in names if (a.asname or a.name.partition(".")[0]) == bound]


_FORMS = {
    Form.STATEMENT: _statement,
    Form.CALL: _call,
    Form.VALUE: _value,
    Form.ANNOTATION: _annotation,
    Form.DECORATOR: _decorator,
    Form.EXCEPTION: _exception,
    Form.NO_CLASS: _no_class,
    Form.PATTERN: _pattern,
    Form.DEFINITION: _definition,
    Form.NAME: _name,
    Form.TENSOR: _tensor,
}


def _dotted(scene: Scene, node: ast.AST) -> ast.AST:
    """Return the chain of attributes and the index that a name begins."""
    parent = scene.parent(node)
    while isinstance(parent, (ast.Attribute, ast.Subscript)) and parent.value is node:
        node, parent = parent, scene.parent(parent)
    return node


def _called(scene: Scene, helper: str, mark: Mark) -> tuple[str, str]:
    text, root = scene.spelling.local(helper)
    more = ""
    if mark.form is Form.NAME and not _has_objects(scene, mark.refusal.site.name):
        more = ", no_objects=True"
    return f"{text}({message(mark.refusal)!r}{more})", root


def _edit(scene: Scene, mark: Mark, node: ast.AST, text: str, root: str) -> Edit:
    needs = frozenset((root,)) if root else frozenset()
    return Edit(_at(mark, scene.source.span(node)), Outcome.FLAGGED, (text,), needs=needs)


def _at(mark: Mark, span: Span) -> Site:
    site = mark.refusal.site
    return Site(site.name, span, site.line, site.column)


# -- what announces it ------------------------------------------------------------------------


def _comment(scene: Scene, start: int, marks: Sequence[Mark]) -> Edit:
    """Each reason once, and below it the text that is gone."""
    lines: list[str] = []
    for mark in marks:
        refusal = mark.refusal
        tail = f"; {refusal.next_step}" if refusal.next_step else ""
        reason = _one_line(f"{refusal.site.name}: {refusal.reason}{tail}")
        text = f"# {announced(refusal.code)}: {reason}"
        if text not in lines:
            lines.append(text)
    for mark in marks:
        if mark.form not in (*_STAYING, Form.NAME, Form.TENSOR):
            lines += [line for line in _original(scene, mark.place) if line not in lines]
    span = Span(start, start)
    site = Site(marks[0].refusal.site.name, span, scene.source.line_of(start), 1)
    return Edit(site, Outcome.FLAGGED, comment_lines(scene.source, start, lines))


def _original(scene: Scene, node: ast.AST) -> list[str]:
    """The text of what is marked, as comments."""
    span = scene.source.span(node)
    column = span.start - scene.source.line_start(scene.source.line_of(span.start))
    text = textwrap.dedent(" " * column + scene.source.text(span))
    return [f"# {line}".rstrip() for line in text.splitlines()]


def _one_line(text: str) -> str:
    return " ".join(text.split())
