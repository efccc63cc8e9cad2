"""Give statements of compiled code a form that graph mode has: loops, ``match``, ``try``, imports.

Graph mode has no ``del``, no ``else`` of loops, no ``match``, no ``try`` and no imports. A missing
key or member is asked for before; what is under ``else`` comes after the loop.
"""

from __future__ import annotations

import ast
import builtins
import functools
import itertools
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace

from migrate.analysis.program import Function
from migrate.analysis.types.inference import Inference
from migrate.analysis.types.kinds import is_all
from migrate.codegen.substitution import piece
from migrate.records.outcomes import Edit, Outcome, Part, Piece, Removal
from migrate.rules.graph import methods, scope
from migrate.rules.graph.late import asked_of
from migrate.rules.graph.scope import Checks, Findings, Found, Rewriting, Text, foreign
from migrate.rules.graph.unbound import own_error
from migrate.sites.scene import Scene, once
from migrate.syntax.lines import (
    begins_line,
    may_hold_comment,
    statements,
)
from migrate.syntax.trees import all_names, all_parameters, children, defaults, last_name

NOTE = "its handlers only raised another error: what goes wrong is raised as it is"
_QUIET = (ast.Name, ast.Constant, ast.Attribute, ast.Tuple, ast.List, ast.UnaryOp, ast.USub,
          ast.expr_context)  # fmt: skip


def _delete(scene: Scene, node: ast.Delete) -> Edit | None:
    """``del y`` frees what nobody reads any more: a variable that graph mode drops by itself."""
    return _removal(scene, node) if all(isinstance(t, ast.Name) for t in node.targets) else None


def _removal(scene: Scene, node: ast.stmt) -> Edit:
    place = scene.site("graph form", node)
    return Removal(place, Outcome.CONVERTED, ())


_IDLE = "contextlib.nullcontext", "warnings.catch_warnings"
_FILTERS = "warnings.simplefilter", "warnings.filterwarnings", "warnings.resetwarnings"


def without_effect(scene: Scene, node: ast.With) -> tuple[Edit, ...]:
    """``with nullcontext():`` does nothing; ``with catch_warnings():`` that ignores them, nothing
    that a number depends on."""
    for item in node.items:
        call = item.context_expr
        if item.optional_vars is not None or not isinstance(call, ast.Call):
            return ()
        if call.args or call.keywords or not foreign(scene, call.func, *_IDLE):
            return ()
    body = list(itertools.dropwhile(functools.partial(_ignores, scene), node.body))
    if not body or any(_sets_filter(scene, n) for one in body for n in ast.walk(one)):
        return ()
    return (scope.whole(scene, node, statements(scene.source, body)),)


def _sets_filter(scene: Scene, node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and foreign(scene, node.func, *_FILTERS)


def _ignores(scene: Scene, node: ast.stmt) -> bool:
    """``warnings.simplefilter("ignore")``"""
    call = node.value if isinstance(node, ast.Expr) else None
    return (
        isinstance(call, ast.Call)
        and _sets_filter(scene, call)
        and bool(call.args)
        and ast.unparse(call.args[0]) == "'ignore'"
    )


# -- loops --------------------------------------------------------------------------------------


def _loop(scene: Scene, node: ast.For | ast.While) -> tuple[Edit, ...]:
    made = _loop_else(scene, node) if node.orelse else ()
    if isinstance(node, ast.While) and bool(made) == bool(node.orelse):
        made += _while_late(scene, node)
    return made


def _loop_else(scene: Scene, node: ast.For | ast.While) -> tuple[Edit, ...]:
    """What is under ``else`` comes after the loop: under a condition, where a ``break`` is."""
    if not begins_line(scene.source, node):
        return ()
    source = scene.source
    loop = Piece(source.span(node), without="orelse")
    after = (statements(source, node.orelse),)
    breaks = _breaks(node.body)
    if not breaks:
        return (scope.instead(scene, node, (loop,), after),)
    function = scene.function(node)
    if function is None:
        return ()
    name = scope.free_local(scene, function, "broken")
    lines = ((f"{name} = False",), (loop,), (f"if not {name}:",), ("    ", *after))
    return (
        scope.instead(scene, node, *lines),
        *(_marked(scene, b, name) for b in breaks),
    )


def _marked(scene: Scene, node: ast.Break, name: str) -> Edit:
    """``broken = True`` in front of a ``break``."""
    return scope.part(scene, node, Part.BEFORE, f"{name} = True")


def _breaks(body: list[ast.stmt]) -> list[ast.Break]:
    """Return each ``break`` that leaves this loop, and not one inside it."""
    found: list[ast.Break] = []
    for statement in body:
        if isinstance(statement, ast.Break):
            found.append(statement)
        if isinstance(statement, (ast.For, ast.While, ast.AsyncFor)):
            inner: list[ast.stmt] = statement.orelse
        elif isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
            inner = []
        else:
            inner = [s for s in ast.iter_child_nodes(statement) if isinstance(s, ast.stmt)]
            inner += [s for h in getattr(statement, "handlers", ()) for s in h.body]
            inner += [s for c in getattr(statement, "cases", ()) for s in c.body]
        found += _breaks(inner)
    return found


def _while_late(scene: Scene, node: ast.While) -> tuple[Edit, ...]:
    """``while i < n and x.sum() < 1:`` has what follows ``and`` as a ``break`` in its body.

    Graph mode joins no number that it knows with one that the data decide.
    """
    test, source, asked = node.test, scene.source, asked_of(scene)
    if not isinstance(test, ast.BoolOp) or not isinstance(test.op, ast.And):
        return ()
    tensors = [is_all(scene.kind(v), "Tensor") for v in test.values]
    if not any(asked.late(v) for v in test.values) or all(tensors):
        return ()
    first = node.body[0]
    if not begins_line(scene.source, first):
        return ()
    end = f"):{source.newline}    break"
    asking = [("if not (", piece(source, value), end) for value in test.values[1:]]
    return (
        scope.whole(scene, test, piece(source, test.values[0])),
        *(scope.part(scene, first, Part.BEFORE, *parts) for parts in asking),
    )


# -- conditions ---------------------------------------------------------------------------------


def _known_first(scene: Scene, node: ast.BoolOp) -> Edit | None:
    """``if x.any() and self.training:`` is ``if self.training and x.any():``.

    Behind a condition that the data decide, graph mode takes no other kind of condition. What is
    moved only looks: it does not call, and cannot fail where the data would have kept it away.
    """
    late = [asked_of(scene).late(v) for v in node.values]
    moved = [v for v, waits in zip(node.values, late, strict=True) if not waits]
    if (
        not moved
        or True not in late
        or late.index(True) > len(node.values) - 1 - late[::-1].index(False)
    ):
        return None
    span = scene.source.span(node)
    if not methods.is_asked(scene, node) or may_hold_comment(scene.source, span.start, span.end):
        return None
    if isinstance(scene.parent(node), ast.While) or not all(_only_looks(v) for v in moved):
        return None
    word = " and " if isinstance(node.op, ast.And) else " or "
    parts: list[Text] = []
    for value in (*moved, *(v for v in node.values if v not in moved)):
        parts += [word if parts else "", piece(scene.source, value)]
    return scope.edit(scene, node, span, *parts[1:])


def _only_looks(node: ast.AST) -> bool:
    """Return whether an expression reads members, shapes and numbers, and compares them."""
    if isinstance(node, ast.Subscript):
        shape = isinstance(node.value, ast.Attribute) and node.value.attr == "shape"
        return shape and _only_looks(node.value) and _only_looks(node.slice)
    if isinstance(node, ast.Attribute) and not isinstance(node.value, (ast.Name, ast.Attribute)):
        return False
    kinds = (ast.Name, ast.Attribute, ast.Constant, ast.Compare, ast.UnaryOp, ast.BoolOp)
    return isinstance(node, kinds) and all(_only_looks(n) for n in children(node))


def given(scene: Scene) -> Iterator[Rewriting]:
    """A method that branches on data and returns nothing returns a Tensor.

    Measured: where such a branch writes into a Parameter, graph mode fails to build a function
    without a result ("output index [0] large than the output size [0] of node"), and loses the
    gradient of what comes behind the call where the result is a number.
    """
    used = _used(scene.inference)
    for function in scope.compiled_here(scene):
        node = function.node
        if isinstance(node, ast.Lambda) or node.body[0].lineno == node.lineno or node.name in used:
            continue
        if any(function.of(ast.Yield, ast.YieldFrom)) or any(v for v in function.returned):
            continue
        if not writes_by_data(scene, function):
            continue
        text, root = scene.spelling.local("mindspore.Tensor")
        result = f"return {text}(0)"
        said = f"{result}  # graph mode: a branch needs a result"
        bare = [n for n in function.of(ast.Return) if isinstance(n, ast.Return)]
        edits = [scope.part(scene, node.body[-1], Part.BEHIND, said)]
        edits += [scope.whole(scene, n, result) for n in bare if n.value is None]
        yield Rewriting(node, tuple(replace(e, needs=frozenset((root,))) for e in edits))


def writes_by_data(scene: Scene, function: Function) -> bool:
    """Return whether a branch that the data decide writes into what lives longer than the call."""
    branches = [n for n in function.of(ast.If) if isinstance(n, ast.If)]
    return any(
        asked_of(scene).late(branch.test) and any(map(_writes, ast.walk(branch)))
        for branch in branches
    )


def _writes(node: ast.AST) -> bool:
    if isinstance(node, (ast.Attribute, ast.Subscript)):
        return not isinstance(node.ctx, ast.Load)
    if isinstance(node, ast.Expr):  # a call for what it does
        return isinstance(node.value, ast.Call)
    return False


def _numbered(scene: Scene, node: ast.Return) -> Found | None:
    """``if x.any(): self.n += 1`` in a function that returns a number."""
    function = scene.function(node)
    if node.value is None or function is None or not is_all(scene.kind(node.value), *_NUMBERS):
        return None
    if function.name == "forward" or not writes_by_data(scene, function):
        return None
    why = "a branch that the data decide writes: graph mode loses the gradient behind this call"
    return "GRF618", function.name, why, "return a Tensor"


_NUMBERS = ("int", "float", "bool", "str", "None")


@once
def _used(inference: Inference) -> frozenset[str]:
    """Return the names of functions whose results somebody may take, or that are values."""
    found = {"forward", "__call__"}
    for file in inference.program.files.values():
        for node in (*file.of(ast.Name), *file.of(ast.Attribute)):
            call = file.parents.get(id(node))
            alone = isinstance(call, ast.Call) and call.func is node
            if not alone or not isinstance(file.parents.get(id(call)), ast.Expr):
                found.add(getattr(node, "attr", getattr(node, "id", "")))
    return frozenset(found)


# -- defaults -----------------------------------------------------------------------------------


def outer_defaults(scene: Scene) -> Iterator[Rewriting]:
    """``def f(x, k=SCALE)`` is ``f_k = SCALE`` and ``def f(x, k=f_k)``, where SCALE is bound anew.

    Graph mode asks for a default when it compiles.
    """
    for function in scope.compiled_here(scene):
        node, source = function.node, scene.source
        late = _late_defaults(scene, node) if isinstance(node, ast.FunctionDef) else []
        top: ast.AST = node
        while isinstance(scene.parent(top), ast.ClassDef):
            top = scene.parent(top) or top
        if not late or not isinstance(scene.parent(top), ast.Module):
            continue
        assert isinstance(node, ast.FunctionDef) and isinstance(top, ast.stmt)
        lines = [f"{node.name}_{a.arg} = {source.text_of(d)}" for a, d in late]
        head = source.newline.join((*lines, "", ""))
        edits = [scope.edit(scene, node, source.span(d), f"{node.name}_{a.arg}") for a, d in late]
        yield Rewriting(node, (scope.part(scene, top, Part.BEFORE, head), *edits))


def _late_defaults(scene: Scene, node: ast.FunctionDef) -> list[tuple[ast.arg, ast.expr]]:
    pairs = [(a, d, [n.id for n in ast.walk(d) if isinstance(n, ast.Name)])
             for a, d in defaults(node.args)]  # fmt: skip
    return [(a, d) for a, d, names in pairs
            if any(n in scene.file.names and _is_bound_anew(scene, n) for n in names)]  # fmt: skip


def _is_bound_anew(scene: Scene, name: str) -> bool:
    """Return whether a global of the file is bound more than once, or by a function."""
    if any(name in f.globals for f in scene.file.functions.values()):
        return True
    return len([n for n in scene.file.bound.get(name, ()) if scene.function(n) is None]) > 1


def by_place(scene: Scene) -> Iterator[Rewriting]:
    """``def forward(self, x, /, y)`` is ``def forward(self, x, y)``: graph mode knows no ``x``."""
    for function in scope.compiled_here(scene):
        node = function.node
        args = node.args
        if args.posonlyargs and args.kwarg is None:  # else another x may come by name
            yield Rewriting(args, (scope.part(scene, node, Part.SLASH),))


def _inner_default(scene: Scene, node: ast.FunctionDef) -> Edit | None:
    """``def f(x, i=i)`` inside a function gets ``f = bound(f, i=i)`` behind it.

    Graph mode knows no variable of the outer function where it takes a default.
    """
    function = scene.file.functions.get(id(node))
    outer, args = function.parent if function is not None else None, node.args
    if outer is None or not begins_line(scene.source, node) or node.decorator_list:
        return None
    named = {a.arg for a in (*([] if args.posonlyargs else args.args), *args.kwonlyargs)}
    seen = outer.locals | {a.arg for a in all_parameters(outer.node.args)}
    late = [(a, d) for a, d in defaults(args) if a.arg in named
            and not all_names(d).isdisjoint(seen)]  # fmt: skip
    places = len(args.args) - len(args.defaults)
    if not late or _passed_by_place(scene, outer, node, places):
        return None
    parts = [p for a, d in late for p in (f", {a.arg}=", piece(scene.source, d))]

    def behind(helper: str) -> Edit:
        head = f"{node.name} = {helper}({node.name}"
        return scope.part(scene, node, Part.BEHIND, head, *parts, ")")

    return scope.helping(scene, "bound", behind)


def _passed_by_place(scene: Scene, outer: Function, node: ast.FunctionDef, places: int) -> bool:
    """Return whether a call may pass a value by place for a parameter with a default."""
    key = scene.file.functions[id(node)].key
    return any(
        isinstance(call, ast.Call) and len(call.args) > places
        and any(a.name == key or a.kind == "unknown" for a in scene.kind(call.func))
        for call in outer.nodes
    )  # fmt: skip


# -- imports ------------------------------------------------------------------------------------


def _import(scene: Scene, node: ast.Import | ast.ImportFrom) -> tuple[Edit, ...]:
    """A module of Python's own is imported at the head of the file."""
    modules = [a.name for a in node.names]
    if isinstance(node, ast.ImportFrom):
        modules = [node.module or ""]
    if getattr(node, "level", 0) or any(a.name == "*" for a in node.names):
        return ()
    if not all(m.partition(".")[0] in sys.stdlib_module_names for m in modules):
        return ()
    tree = scene.source.tree
    above = [s for s in tree.body if isinstance(s, (ast.Import, ast.ImportFrom))]
    above = [s for s in above if getattr(s, "module", "") != "__future__"]
    same = [s for s in scene.file.imports if ast.dump(s) == ast.dump(node)]
    if any(s in above for s in same):
        return (_removal(scene, node),)
    if not above or _bound_elsewhere(scene, same, node):
        return ()
    if node is not min(same, key=lambda s: s.lineno):
        return (_removal(scene, node),)
    text = scene.source.text_of(node)
    return (_removal(scene, node), scope.part(scene, above[0], Part.BEFORE, text))


def _bound_elsewhere(
    scene: Scene, same: list[ast.Import | ast.ImportFrom], node: ast.Import | ast.ImportFrom
) -> bool:
    """Return whether the file binds one of the names in any other way than by the same import.

    Of the same imports the first is moved: all have to be in code that is compiled.
    """
    names = {(a.asname or a.name).partition(".")[0] for a in node.names}
    inside = {id(n) for n in scope.nodes(scene)}
    own = {id(a) for s in same for a in s.names}
    if not all(id(s) in inside for s in same):
        return True
    others = (n for n in scene.file.nodes if id(n) not in own)
    return any(scope.bound_name(other) in names for other in others)


# -- match --------------------------------------------------------------------------------------


def _match(scene: Scene, node: ast.Match) -> tuple[Edit, ...]:
    """Cases that are values: ``case "a" | "b":`` is ``elif mode in ("a", "b"):``."""
    subject, source = node.subject, scene.source
    parts = list(ast.walk(subject))
    if not all(isinstance(p, (ast.Name, ast.Attribute, ast.expr_context)) for p in parts):
        return ()
    tests = [_test(scene, source.text_of(subject), case) for case in node.cases]
    if None in tests or not begins_line(scene.source, node) or "" in tests[:-1] or tests[0] == "":
        return ()
    lines: list[Sequence[Text]] = []
    for number, (case, test) in enumerate(zip(node.cases, tests, strict=True)):
        head = f"{'elif' if number else 'if'} {test}:" if test else "else:"
        lines += [(head,), ("    ", statements(source, case.body))]
    return (scope.instead(scene, node, *lines),)


def _test(scene: Scene, subject: str, case: ast.match_case) -> str | None:
    """Return the condition of a case; "" for ``case _``, None for what is not a value."""
    pattern, text = case.pattern, scene.source.text_of
    if case.guard is not None:
        return None
    if isinstance(pattern, ast.MatchAs):
        return "" if pattern.pattern is None and pattern.name is None else None
    if isinstance(pattern, ast.MatchSingleton):
        return f"{subject} is {pattern.value}"
    if isinstance(pattern, ast.MatchValue):
        return f"{subject} == {text(pattern.value)}"
    if isinstance(pattern, ast.MatchOr):
        values = [p.value for p in pattern.patterns if isinstance(p, ast.MatchValue)]
        if len(values) == len(pattern.patterns):
            return f"{subject} in ({', '.join(map(text, values))})"
    return None


# -- try ----------------------------------------------------------------------------------------


def tries(scene: Scene) -> Iterator[Rewriting]:
    """``try: s = d[k]`` with ``except KeyError: s = 1`` is ``s = d[k] if k in d else 1``.

    Handlers that only raise another error are taken away: an error is raised all the same.
    """
    for node in scope.nodes(scene, ast.Try):
        assert isinstance(node, ast.Try)
        if node.orelse or node.finalbody or not begins_line(scene.source, node):
            continue
        asked = _asked(scene, node)
        if asked is not None:
            yield Rewriting(node, (asked,))
        elif all(_only_raises(scene, handler) for handler in node.handlers):
            made = scope.whole(scene, node, statements(scene.source, node.body))
            yield Rewriting(node, (made,), NOTE, "try")


def _asked(scene: Scene, node: ast.Try) -> Edit | None:
    """Return the statement that asks first, where both ways bind or return the same thing."""
    if len(node.body) != 1 or len(node.handlers) != 1 or len(node.handlers[0].body) != 1:
        return None
    handler, ours, other = node.handlers[0], node.body[0], node.handlers[0].body[0]
    source, span = scene.source, scene.source.span(node)
    if handler.name or not isinstance(handler.type, ast.Name):
        return None
    if may_hold_comment(scene.source, span.start, span.end):
        return None
    both = isinstance(ours, ast.Return) and isinstance(other, ast.Return)
    if isinstance(ours, ast.Assign) and isinstance(other, ast.Assign):
        both = len(ours.targets) == 1 and isinstance(ours.targets[0], ast.Name)
        both = both and [ast.dump(t) for t in ours.targets] == [ast.dump(t) for t in other.targets]
    if not both or not isinstance(ours, (ast.Return, ast.Assign)):
        return None
    value, default = ours.value, other.value  # type: ignore[attr-defined]
    if value is None or default is None:
        return None
    question = _question(scene, handler.type.id, value)
    if not question:
        return None
    target = "" if isinstance(ours, ast.Return) else source.text_of(ours.targets[0])
    text = f"{target} = " if target else "return "
    asked = (text, piece(source, value), f" if {question} else ")
    otherwise = piece(source, default)
    return scope.edit(scene, node, span, *asked, otherwise)


def _question(scene: Scene, error: str, value: ast.expr) -> str:
    """``k in d`` for the KeyError of ``d[k]``, ``hasattr(m, "a")`` for the other of ``m.a``."""
    if not all(isinstance(n, (*_QUIET, ast.Subscript)) for n in ast.walk(value)):
        return ""
    text = scene.source.text_of
    if error == "KeyError" and isinstance(value, ast.Subscript):
        plain = not any(isinstance(n, ast.Subscript) for n in ast.walk(value.value))
        known = plain and is_all(scene.kind(value.value), "dict")
        return f"{text(value.slice)} in {text(value.value)}" if known else ""
    if error == "AttributeError" and isinstance(value, ast.Attribute):
        known = isinstance(value.value, ast.Name) and is_all(scene.kind(value.value), "Module")
        return f'hasattr({text(value.value)}, "{value.attr}")' if known else ""
    return ""


def _only_raises(scene: Scene, handler: ast.ExceptHandler) -> bool:
    """Return whether a handler prints at most, and raises an error of Python's own.

    It must be one that no code of the program waits for by its name.
    """
    last = handler.body[-1]
    if not isinstance(last, ast.Raise):
        return False
    error = last.exc.func if isinstance(last.exc, ast.Call) else last.exc
    name = getattr(error, "id", "")
    own = error is None or name in (handler.name, *dir(builtins))
    if own and not _kinds(name).isdisjoint(_awaited(scene.inference)):
        return False
    calls = [getattr(s, "value", None) for s in handler.body[:-1] if isinstance(s, ast.Expr)]
    tells = all(isinstance(call, ast.Call) and scope.is_message(call) for call in calls)
    return own and tells and len(calls) == len(handler.body) - 1


def _kinds(error: str) -> frozenset[str]:
    """Return the errors that an error of Python's own is, but for those that all are."""
    known = getattr(builtins, error, None)
    names = {k.__name__ for k in known.__mro__} if isinstance(known, type) else set()
    return frozenset(names - {"Exception", "BaseException", "object"})


@once
def _awaited(inference: Inference) -> frozenset[str]:
    """Return the last names of all errors that some handler of the program is for."""
    handlers = [h for f in inference.program.files.values() for h in f.of(ast.ExceptHandler)]
    types = [h.type for h in handlers if h.type is not None]
    return frozenset(last_name(n) for t in types for n in ast.walk(t))


CHECKS: Checks = {
    ast.BoolOp: (_known_first,),
    ast.Delete: (_delete,),
    ast.For: (_loop,),
    ast.While: (_loop,),
    ast.FunctionDef: (_inner_default,),
    ast.With: (without_effect,),
    ast.Import: (_import,),
    ast.ImportFrom: (_import,),
    ast.Match: (_match,),
    ast.Raise: (own_error,),
}
FINDINGS: Findings = {ast.Return: (_numbered,)}
