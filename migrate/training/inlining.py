"""In: an analysed file. Out: edits that bring a training step which functions share into one.

``self.optimize(loss)`` or ``self.backward_D()`` holds the backward() of a loss, or the step() after
it, and its caller the rest. Where every call of such a function is a statement of the same file,
its statements take the place of the call, and the function goes. So do those of a method that
leaves what a Module computes on self (``self.forward()``); it stays where it is.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from migrate.analysis.program import File, Function
from migrate.analysis.types.inference import Inference
from migrate.records.outcomes import Edit, Piece, Span
from migrate.sites.scene import once
from migrate.syntax.lines import above, before, behind_text, indent_of, moved, shares_line, whole
from migrate.syntax.trees import all_names, dotted, last_name
from migrate.training.effects import binds, blocks, free, leaves, reads, uses
from migrate.training.groups import Group, Unclear, groups
from migrate.training.lines import edit
from migrate.training.marks import Act, View, marks
from migrate.training.modules import models
from migrate.training.slices import NOTHING, Region, region

_ODD = (ast.Yield, ast.YieldFrom, ast.Await, ast.Global, ast.Nonlocal, ast.FunctionDef, ast.Try)


@dataclass(frozen=True)
class _Call:
    """A call that stands as a statement of ``caller``; ``receiver`` is what it is a method of."""

    statement: ast.stmt
    call: ast.Call
    caller: Function
    receiver: str


def inlined(view: View, others: Sequence[Edit] = ()) -> list[Edit]:
    """The edits; none where every step stands in one function.

    What calls of one function call by different names is copied, alone: ``others`` are edits made
    at the same time.
    """
    functions = [f for f in view.file.functions.values() if isinstance(f.node.body, list)]
    torn = [f for f in functions if _is_torn(view, f)]
    holding = [f for f in torn if Act.BACKWARD in _acts(view, f)]
    more = list(dict.fromkeys(_clearing(view, functions)))
    more += [f for f in functions if f not in torn and _differentiates(view, f)]
    torn += more
    found: list[Edit] = []
    copies: list[Edit] = []
    callers: set[str] = set()
    for function in torn if holding or more else ():
        if any(_calls(function, h) for h in holding if h is not function):
            continue
        calls = _call_sites(view, function)
        if calls is None or _is_odd(view, function):
            continue
        if not _is_for_update(view, function, calls):
            continue  # nothing would become one step, and the name would be gone
        made = [_in_place(view, function, c) for c in calls]
        if not made or any(m is None for m in made):
            continue
        if not _agree(made):
            copied = [_copied(view, m or []) for m in made[1:]]
            if not copies and all(c is not None for c in copied):
                copies = [*(made[0] or ()), *(c for c in copied if c), _gone(view, function)]
            continue
        if made:
            found += [e for m in made for e in m or ()]
            found.append(_gone(view, function))
            callers |= {c.caller.key for c in calls}
    found += _forward(view, functions, callers, {f.key for f in torn}, holding)
    return found or ([] if others else copies)


def _copied(view: View, made: Sequence[Edit]) -> Edit | None:
    """Return an edit of one call that has the function's statements as text, with its names."""
    source, (whole_call, *renamed) = view.file.source, made
    texts = []
    for part in whole_call.parts or ():
        if isinstance(part, str):
            texts.append(part)
            continue
        start, text = part.span.start, source.data[part.span.start : part.span.end]
        if any(b"\n" in source.data[source.span(n).start : source.span(n).end]
               for n in view.file.of(ast.Constant) if isinstance(n.value, str)
               and start <= source.span(n).start < part.span.end):  # fmt: skip
            return None  # its lines are no lines of code
        for change in sorted(renamed, key=lambda e: e.site.span.start, reverse=True):
            span = change.site.span
            if start <= span.start < part.span.end:
                new = "".join(p for p in change.parts or () if isinstance(p, str)).encode()
                text = text[: span.start - start] + new + text[span.end - start :]
        old = before(source, start)
        indent = texts[-1] if texts and not texts[-1].strip() else ""
        texts.append(text.decode().replace(f"\n{old}", f"\n{indent}"))
    return edit(source, whole_call.site.span, ("".join(texts),))


def _agree(made: Sequence[list[Edit] | None]) -> bool:
    """Return whether no place of a function's statements would be written in two ways."""
    texts: dict[Span, object] = {}
    return all(texts.setdefault(e.site.span, e.parts) == e.parts for m in made for e in m or ())


def _forward(
    view: View,
    functions: Sequence[Function],
    callers: set[str],
    torn: set[str],
    holding: Sequence[Function],
) -> Iterator[Edit]:
    """Methods that only leave results of Modules on self, called where a step now stands."""
    for function in functions:
        if function.key in torn or function.owner is None or _is_odd(view, function):
            continue
        if any(_calls(function, h) for h in holding):  # it is torn itself, once they are gone
            continue
        own = function.parameters[0].arg if function.parameters else "-"
        body = _body(function)
        kept = any(n.startswith(f"{own}.") for n in binds(body, own))
        if not kept or not models(view, body, own) or any(_returns(s) for s in body):
            continue
        for call in _call_sites(view, function) or ():
            if call.caller.key in callers:
                yield from _in_place(view, function, call) or ()


def _is_for_update(view: View, function: Function, calls: Sequence[_Call]) -> bool:
    """Return whether a function changes weights, a caller of it does, or a caller of these."""
    waiting, seen = [function, *(c.caller for c in calls)], {function.key}
    while waiting:
        one = waiting.pop()
        if _updates(view, one):
            return True
        if one.key not in seen:
            seen.add(one.key)
            waiting += [c.caller for c in _call_sites(view, one) or ()]
    return False


def _updates(view: View, function: Function) -> bool:
    """Return whether a function changes weights: by an optimizer, or by the gradients it reads."""
    if _acts(view, function) & {Act.STEP, Act.UPDATE}:
        return True
    reads = any(getattr(n, "attr", "") == "grad" for n in function.of(ast.Attribute))
    return reads and Act.BACKWARD not in _acts(view, function)


def _acts(view: View, function: Function) -> set[Act]:
    body = function.node.body
    return {m.act for m in marks(view, body)} if isinstance(body, list) else set()


def _is_torn(view: View, function: Function) -> bool:
    """Whether a function holds a part of a step only."""
    body = function.node.body
    every = marks(view, body) if isinstance(body, list) else []
    if not any(m.act is Act.BACKWARD for m in every):
        return any(m.act is not Act.ZERO for m in every)
    own = function.parameters[0].arg if function.owner and function.parameters else "-"
    given = {p.arg for p in function.parameters}
    for group in groups(view, every):
        if not isinstance(group, Group):
            loss = [group.mark.loss] if group.mark.loss is not None else []
            handed = reads(loss) & given and not models(view, function.node.body, own)  # type: ignore[arg-type]
            if handed or not any(m.act is Act.STEP for m in every):
                return True
            continue
        made = region(view, group, every, own)
        losses = [m.loss for m in group.backwards if m.loss is not None]
        if not isinstance(made, Region) and made.reason == NOTHING and reads(losses) & given:
            return True
    return False


def _clearing(view: View, functions: Sequence[Function]) -> Iterator[Function]:
    """Yield functions that clear gradients and do no more, for steps that lack just that."""
    clearing = [f for f in functions if _acts(view, f) == {Act.ZERO}]
    for function in functions if clearing else ():
        every = marks(view, function.node.body)  # type: ignore[arg-type]
        if {Act.BACKWARD, Act.STEP} <= {m.act for m in every} and any(
            isinstance(made, Unclear) for made in groups(view, every)
        ):
            yield from (f for f in clearing if _calls(function, f))


def _differentiates(view: View, function: Function) -> bool:
    """Return whether a function is given values, and differentiates one for another of these."""
    given = {p.arg for p in function.parameters}
    for call in function.of(ast.Call):
        assert isinstance(call, ast.Call)
        if view.torch_names(call.func) != {"torch.autograd.grad"}:
            continue
        named = {k.arg: k.value for k in call.keywords}
        asked = [*call.args[:2], named.get("outputs"), named.get("inputs")]
        names = [_only(a) for a in asked if a is not None]
        if len(names) == 2 and all(isinstance(n, ast.Name) and n.id in given for n in names):
            return True
    return False


def _only(node: ast.expr) -> ast.expr:
    alone = isinstance(node, ast.List | ast.Tuple) and len(node.elts) == 1
    return node.elts[0] if alone else node  # type: ignore[attr-defined]


def _calls(function: Function, other: Function) -> bool:
    nodes = (n for n in ast.walk(function.node) if isinstance(n, ast.Call))
    return any(dotted(n.func).rpartition(".")[2] == other.name for n in nodes)


def _returns(item: ast.stmt) -> bool:
    return any(isinstance(n, ast.Return) for n in ast.walk(item))


def _body(function: Function) -> list[ast.stmt]:
    """The statements of a function, its docstring apart."""
    body = function.node.body
    assert isinstance(body, list)
    first = body[0]
    documented = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    return body[1:] if documented else body


def _is_odd(view: View, function: Function) -> bool:
    """Whether its statements would mean something else elsewhere."""
    node, body = function.node, _body(function)
    arguments = node.args
    plain = not (arguments.vararg or arguments.kwarg)
    if (
        not plain
        or not body
        or getattr(node, "decorator_list", None)
        or function.parent is not None
    ):
        return True
    inner = [n for s in body for n in ast.walk(s)]
    ends = [s for s in body[:-1] if leaves(s)] or (
        leaves(body[-1]) and not isinstance(body[-1], ast.Return)
    )
    shared = any(shares_line(view.file.source, s) for s in body)
    return bool(ends) or shared or any(isinstance(n, _ODD) for n in inner)


def _call_sites(view: View, function: Function) -> list[_Call] | None:
    """The statements that call a function; None if it is mentioned in any other way."""
    found = []
    named = _named(view.inference).get(function.name, ())
    for file, node in _objects_called(view, function) if function.name == "__call__" else named:
        called = function.name == "__call__"
        if not called and not _mentions(view, function, node, file is view.file):
            continue
        site = _site(view, function, node) if isinstance(node, ast.expr) else None
        if site is None or file is not view.file:
            return None
        found.append(site)
    return found


def _objects_called(view: View, function: Function) -> Iterator[tuple[File, ast.AST]]:
    """Yield what is called that is known to be an object of the class of a ``__call__``."""
    owner = function.owner
    for file in view.inference.program.files.values() if owner is not None else ():
        for call in file.of(ast.Call):
            if any(
                a.kind == "Object" and owner and a.name == owner.key for a in view.kind(call.func)
            ):
                yield file, call.func


@once
def _named(inference: Inference) -> dict[str, list[tuple[File, ast.AST]]]:
    """The names, attributes and imported names of a program, by the last name."""
    found: dict[str, list[tuple[File, ast.AST]]] = {}
    for file in inference.program.files.values():
        for node in file.nodes:
            if isinstance(node, (ast.Name, ast.Attribute, ast.alias)):
                name = node.name if isinstance(node, ast.alias) else last_name(node)
                found.setdefault(name, []).append((file, node))
    return found


def mentions(
    views: dict[str, View], view: View, function: Function
) -> Iterator[tuple[View, ast.expr | None]]:
    """Yield the places that may mean a function, each in the view of its file; None for what is no
    expression."""
    for file, node in _named(view.inference).get(function.name, ()):
        if _mentions(views[file.path], function, node, file is view.file):
            if isinstance(node, ast.alias) and node.asname is None:
                continue  # the name that it binds is found as well
            yield views[file.path], node if isinstance(node, ast.expr) else None


def _mentions(view: View, function: Function, node: ast.AST, here: bool) -> bool:
    """Whether a node may mean the function: by what it is known to be, else by its name."""
    if isinstance(node, ast.alias):
        return not here and node.name == function.name and function.owner is None
    named = last_name(node)
    if named != function.name or not isinstance(node, (ast.Attribute, ast.Name)):
        return False
    known = {a.name for a in view.kind(node) if a.kind in ("function", "method")}
    if known or isinstance(node, ast.Name):
        return function.key in known or (here and not known and function.owner is None)
    return function.owner is not None


def _site(view: View, function: Function, node: ast.expr) -> _Call | None:
    call = view.file.parents.get(id(node))
    statement = view.file.parents.get(id(call))
    if not isinstance(call, ast.Call) or call.func is not node:
        return None
    if not isinstance(statement, ast.Expr | ast.Assign) or statement.value is not call:
        return None
    caller = view.file.function_at(call)
    if caller is None or caller is function or shares_line(view.file.source, statement):
        return None
    own = caller.parameters[0].arg if caller.owner and caller.parameters else ""
    if function.owner is not None and caller.owner is not function.owner and not is_alone(
            view, function):  # fmt: skip
        return None
    if function.name == "__call__":
        receiver = dotted(node) if len(view.kind(node)) == 1 else ""
    elif function.owner is None:
        return _Call(statement, call, caller, "")
    else:
        receiver = dotted(node.value) if isinstance(node, ast.Attribute) else ""
        known = {a.name for a in view.kind(node)} == {function.key}
        if not known and (receiver != own or caller.owner is not function.owner):
            return None
    return _Call(statement, call, caller, receiver) if receiver else None


def is_alone(view: View, function: Function) -> bool:
    """Return whether only calls that are seen run a method of another object."""
    owner, program = function.owner, view.inference.program
    if owner is None or view.inference.summaries.graph.derived(owner) or owner.node.bases:
        return False
    near = program.in_sight(function.path)
    asked = (c for f in near for c, _ in f.calls.get("getattr", ()))
    if all(len(c.args) > 1 and isinstance(c.args[1], ast.Constant) for c in asked):
        return True
    texts = {n.value for f in near for n in f.of(ast.Constant) if isinstance(n.value, str)}
    special = any(text.endswith("__") for text in texts - {"__main__"})  # part of a name, maybe
    return function.name.endswith("__") and not special


@dataclass(frozen=True)
class _Passed:
    """What a call passes: ``names`` by which parameters are called in the caller, the ``texts`` of
    others, and those that are ``bound`` in front; ``values`` are all of them."""

    names: dict[str, str]
    texts: dict[str, str]
    bound: list[tuple[str, ast.expr]]
    values: list[tuple[str, ast.expr]]


def _passed(view: View, function: Function, site: _Call) -> _Passed | None:
    """Return how a call fills the parameters; None where that is not plain."""
    places = [a.arg for a in function.parameters[1 if function.owner else 0 :]]
    only = [a.arg for a in function.node.args.kwonlyargs]
    plain = [*function.node.args.posonlyargs, *function.node.args.args]
    late = [
        (a.arg, d) for a, d in zip(plain[::-1], function.node.args.defaults[::-1], strict=False)
    ]
    late += [(n, d) for n, d in zip(only, function.node.args.kw_defaults, strict=True) if d]
    if not all(isinstance(d, ast.Constant) for _, d in late):
        return None  # a default is what it was at the definition
    values: dict[str, ast.expr] = dict(late)
    own = {*places, *only} - set(values)
    if len(site.call.args) > len(places) or any(k.arg is None for k in site.call.keywords):
        return None
    if any(isinstance(a, ast.Starred) for a in site.call.args):
        return None
    values |= dict(zip(places, site.call.args, strict=False))
    values |= {k.arg: k.value for k in site.call.keywords if k.arg is not None}
    if not own <= values.keys() or not values.keys() <= {*places, *only}:
        return None
    found, source = _Passed({}, {}, [], [*values.items()]), view.file.source
    for name, value in values.items():
        asked = value.func if isinstance(value, ast.Call) and not value.args else None
        again = asked is not None and dotted(asked).endswith(".parameters")  # as often as wanted
        setting = isinstance(value, ast.Constant) and _is_setting(view, function, name)
        if dotted(value):
            found.names[name] = dotted(value)
        elif again or setting:
            found.texts[name] = source.text_of(value)
        else:
            found.bound.append((name, value))
    if any(isinstance(n, _ORDERED) for _, v in found.bound for n in ast.walk(v)):
        return None  # what is bound in front of the loss is evaluated before it
    read_late = {n.rpartition(".")[2] for n in found.names.values() if "." in n}
    stored = {n.attr for f in view.inference.program.files.values() for n in f.of(ast.Attribute)
              if not isinstance(n.ctx, ast.Load) and not _constructs(f, n)}  # fmt: skip
    summaries = view.inference.summaries
    effects = summaries.of(function)
    running = effects.written | (summaries.unseen.written if effects.unknown else frozenset())
    return None if read_late & stored & running else found


_ORDERED = (ast.Call, ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)


def _constructs(file: File, node: ast.AST) -> bool:
    """Return whether a node lies in a constructor."""
    function = file.function_at(node)
    return function is not None and function.name == "__init__"


def _is_setting(view: View, function: Function, name: str) -> bool:
    """Return whether a parameter is only handed on by name: ``backward(create_graph=graph)``."""
    reads = [n for n in function.of(ast.Name) if getattr(n, "id", "") == name]
    return all(isinstance(view.file.parents.get(id(n)), ast.keyword) for n in reads)


def _in_place(view: View, function: Function, site: _Call) -> list[Edit] | None:
    """The statements in place of one call; None where names would get in each other's way."""
    passed = _passed(view, function, site)
    own = [function.parameters[0].arg] if function.owner else []
    if passed is None:
        return None
    body, last = _body(function), None
    if isinstance(body[-1], ast.Return):
        body, last = body[:-1], getattr(body[-1], "value", None)
    results = _elements(last)
    item = site.statement
    targets = _elements(item.targets[0]) if isinstance(item, ast.Assign) else []
    new = dict(passed.names)
    end: tuple[str | Piece, ...] = ()
    if targets and len(targets) == 1 and not all(results) and last is not None:
        end = (f"{targets[0]} = ", Piece(view.file.source.span(last)))
    elif (len(results) != len(targets) and targets) or not all(results[: len(targets)]):
        return None
    else:
        new |= {r: t for r, t in zip(results, targets, strict=False) if r not in new and t}
        if any(new.get(r, r) != t for r, t in zip(results, targets, strict=False)):
            return None
    taken = {*site.caller.locals, *function.locals, *view.file.names}
    for name in sorted({*passed.names, *passed.texts} & binds(body)):  # a variable of its own
        value = next(v for n, v in passed.values if n == name)
        new[name] = free(name, taken)
        passed.texts.pop(name, None)
        passed.bound.append((new[name], value))
    kept = {*own, *new, *passed.texts, *(n for n, _ in passed.bound)}
    ending = [last] if end and last is not None else []
    read = {n for s in (*body, *ending) for n in all_names(s)}
    around = {n.id for n in site.caller.of(ast.Name) if isinstance(n, ast.Name)}
    bound = {n for n, _ in passed.bound} | (function.locals - kept)
    if (read - function.locals - kept) & site.caller.locals:
        return None  # a name of the module would be the caller's variable
    if bound & (around - site.caller.locals):
        return None  # a name of the module that the caller reads would be a variable
    for name in sorted((function.locals - kept) & site.caller.locals):
        new[name] = free(name, taken)
    for index, (name, value) in enumerate(passed.bound):
        if name in site.caller.locals and name not in new.values():
            new[name] = free(name, taken)
            passed.bound[index] = (new[name], value)
    new = {k: v for k, v in {**new, **passed.texts}.items() if k != v}
    new |= {own[0]: site.receiver} if own and own[0] != site.receiver else {}
    return list(_edits(view, body, ending, site, new, passed.bound, end))


def _elements(node: ast.expr | None) -> list[str]:
    """The dotted names of a result or target; "" for what is none."""
    if node is None:
        return []
    items = node.elts if isinstance(node, ast.Tuple) else [node]
    return [dotted(i) for i in items]


def _edits(
    view: View,
    body: list[ast.stmt],
    ending: list[ast.expr],
    site: _Call,
    new: dict[str, str],
    bound: list[tuple[str, ast.expr]],
    end: tuple[str | Piece, ...],
) -> Iterator[Edit]:
    source, indent = view.file.source, indent_of(view.file.source, site.statement)
    parts: list[str | Piece] = []
    for name, value in bound:
        parts += [f"{indent}{name} = ", Piece(source.span(value)), "\n"]
    for item in body:
        start, first = above(source, item), source.line_start(item.lineno)
        notes = source.text(Span(start, first)).strip().split("\n") if first > start else []
        parts += [f"{indent}{note.strip()}\n" for note in notes]
        parts += moved(source, item, indent)
    parts += [indent, *end, "\n"] if end else []
    yield edit(
        view.file.source, whole(source, site.statement), (*parts[:-1],) if parts else ("pass",)
    )
    for use in (u for s in (*body, *ending) for u in uses(s, "-")):
        if use.name in new:
            yield edit(source, source.span(use.node), (new[use.name],))


def _gone(view: View, function: Function) -> Edit:
    source, node = view.file.source, function.node
    assert isinstance(node, ast.FunctionDef)
    block = next(b for b in blocks(view.file.parents[id(node)]) if node in b)
    span = whole(source, node)
    if len(block) == 1:
        return edit(source, span, (f"{indent_of(source, node)}pass",))
    start = above(source, node)
    start = behind_text(source, start)
    return edit(source, Span(start, min(span.end + 1, len(source.data))), ())
