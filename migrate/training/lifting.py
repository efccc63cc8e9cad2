"""In: a program. Out: edits that bring a backward() in front of the calls of its function.

``loss_scaler(loss, optimizer, ...)`` holds the ``backward()`` of a loss that another file computes,
and clips and steps behind it. What a function does up to a ``backward()`` of its own argument is
done in front of each of its calls; the rest of the function stays, with gradients that stay with
the weights (by_hand.py).
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from migrate.analysis.program import Function
from migrate.analysis.types.inference import Inference
from migrate.analysis.types.kinds import without_none
from migrate.records.outcomes import Edit, Span
from migrate.syntax.lines import above, indent_of, shares_line, whole
from migrate.syntax.trees import dotted
from migrate.training.effects import uses
from migrate.training.inlining import is_alone, mentions
from migrate.training.lines import edit
from migrate.training.marks import Act, Mark, View, marks


@dataclass(frozen=True)
class _Site:
    """A call that stands as a statement; ``receiver``: of what it is a method."""

    view: View
    statement: ast.stmt
    call: ast.Call
    receiver: str


def lifted(inference: Inference) -> dict[str, list[Edit]]:
    """Return the edits of each file; a function of which some call is not seen stays as it is."""
    views = {p: View(f, inference) for p, f in inference.program.files.items()}
    found: dict[str, list[Edit]] = {}
    for path, view in views.items():
        if b".backward(" not in view.file.source.data:
            continue
        for function in view.file.functions.values():
            mark = _of_argument(view, function)
            sites = _sites(views, view, function) if mark is not None else []
            texts = [_text(view, function, mark, site) for site in sites] if mark else []
            if mark is None or not texts or not all(texts):
                continue
            found.setdefault(path, []).append(_left(view, function, mark))
            for site, text in zip(sites, texts, strict=True):
                source = site.view.file.source
                place = above(source, site.statement)
                line = f"{indent_of(source, site.statement)}{text}\n"
                found.setdefault(site.view.file.path, []).append(
                    edit(source, Span(place, place), (line,))
                )
    return found


def _of_argument(view: View, function: Function) -> Mark | None:
    """Return the backward() of an argument that a function begins with, and that nothing of the
    function could differentiate: it calls no Module on the way to it."""
    body = function.node.body
    decorated = getattr(function.node, "decorator_list", ())
    if not isinstance(body, list) or function.parent is not None or decorated:
        return None
    first = next((s for s in body if not _is_text(s)), body[0])
    mark = next((m for m in marks(view, body) if m.act is Act.BACKWARD), None)
    if mark is None or mark.statement is not first or shares_line(view.file.source, first):
        return None
    given = [p.arg for p in function.parameters[1 if function.owner else 0 :]]
    own = _own(function)
    plain = all(u.name.partition(".")[0] in {*given, own} for u in uses(mark.statement, own))
    return mark if plain and isinstance(mark.loss, ast.Name) and mark.loss.id in given else None


def _is_text(item: ast.stmt) -> bool:
    return isinstance(item, ast.Expr) and isinstance(item.value, ast.Constant)


def _own(function: Function) -> str:
    return function.parameters[0].arg if function.owner and function.parameters else "-"


def _sites(views: dict[str, View], view: View, function: Function) -> list[_Site]:
    """Return all calls of a function; [] where it is used otherwise, or a call may be unseen."""
    if function.owner is not None and not is_alone(view, function):
        return []
    found: list[_Site | None] = []
    if function.name == "__call__":
        if any(_may_call(v, call) for v in views.values() for call in v.file.of(ast.Call)):
            return []
        for other in views.values():
            for one in other.file.of(ast.Call):
                if any(_is_object(function, a.kind, a.name) for a in other.kind(one.func)):
                    found.append(_site(other, one, dotted(one.func)))
    else:
        for other, node in mentions(views, view, function):
            call = other.file.parents.get(id(node))
            receiver = dotted(node.value) if isinstance(node, ast.Attribute) else ""
            known = node is not None and {a.name for a in other.kind(node)} == {function.key}
            called = isinstance(call, ast.Call) and call.func is node
            good = called and known and bool(receiver or function.owner is None)
            found.append(_site(other, call, receiver) if good else None)  # type: ignore[arg-type]
    return [s for s in found if s is not None] if all(found) else []


def _is_object(function: Function, kind: str, name: str) -> bool:
    return kind == "Object" and function.owner is not None and name == function.owner.key


def _may_call(view: View, call: ast.Call) -> bool:
    """Return whether a call of nobody knows what is handed an optimizer."""
    known = [a for a in without_none(view.kind(call.func)) if a.kind != "unknown"]
    return not known and any(
        view.is_optimizer(a) for a in (*call.args, *(k.value for k in call.keywords))
    )


def _site(view: View, call: ast.Call, receiver: str) -> _Site | None:
    statement = view.file.parents.get(id(call))
    plain = isinstance(statement, ast.Expr | ast.Assign) and statement.value is call
    if not plain or len(without_none(view.kind(call.func))) != 1:
        return None
    assert isinstance(statement, ast.stmt)
    return (
        None if shares_line(view.file.source, statement) else _Site(view, statement, call, receiver)
    )


def _text(view: View, function: Function, mark: Mark, site: _Site) -> str:
    """Return the backward() with what a call passes; "" where that is not plain."""
    call, source = site.call, site.view.file.source
    if any(isinstance(a, ast.Starred) for a in call.args) or any(not k.arg for k in call.keywords):
        return ""
    places = [p.arg for p in function.parameters[1 if function.owner else 0 :]]
    values = dict(zip(places, call.args, strict=False)) | {k.arg: k.value for k in call.keywords}
    if any(not _is_quiet(site.view, v) for v in values.values()):
        return ""  # it may look at gradients before there are any
    text, start = view.file.source.text_of(mark.statement), view.file.source.span(mark.statement)
    own = _own(function)
    changes: list[tuple[int, int, str]] = []
    for use in uses(mark.statement, own):
        root, _, rest = use.name.partition(".")
        span = view.file.source.span(use.node)
        if root == own:
            new = f"{site.receiver}.{rest}"
        else:
            value = values.get(root) or function.defaults.get(root)
            if value is None or (root not in values and not isinstance(value, ast.Constant)):
                return ""
            held = source if root in values else view.file.source
            new = held.text_of(value)
            new = new if dotted(value) or isinstance(value, ast.Constant) else f"({new})"
        changes.append((span.start - start.start, span.end - start.start, new))
    data = text.encode()
    for begin, end, new in sorted(changes, reverse=True):
        data = data[:begin] + new.encode() + data[end:]
    made = data.decode()
    return made if site.receiver or own == "-" else ""


def _is_quiet(view: View, node: ast.expr) -> bool:
    """Return whether evaluating an argument runs nothing but ``list(net.parameters())``."""
    for one in ast.walk(node):
        if isinstance(one, ast.NamedExpr | ast.Await | ast.Yield | ast.YieldFrom):
            return False
        if isinstance(one, ast.Call):
            known = [a.kind for a in view.kind(one.func)] == ["builtin"]
            plain = known and getattr(one.func, "id", "") in ("list", "tuple", "len")
            if not plain and not dotted(one.func).endswith(".parameters"):
                return False
    return True


def _left(view: View, function: Function, mark: Mark) -> Edit:
    source, body = view.file.source, function.node.body
    assert isinstance(body, list)
    span = whole(source, mark.statement)
    if len(body) == 1:
        return edit(source, span, (f"{indent_of(source, mark.statement)}pass",))
    return edit(source, Span(span.start, min(span.end + 1, len(source.data))), ())
