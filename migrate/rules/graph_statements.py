"""In: compiled statements that graph mode refuses. Out: statements that do the same."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import replace

from migrate.layout import removed_span
from migrate.outcomes import Edit, Outcome, Piece, Removal, Site, Span
from migrate.program import Function
from migrate.receivers.kinds import is_all
from migrate.rules import graph_scope
from migrate.rules.dedent import comments_left, dedented, first_start
from migrate.rules.graph_late import Asked
from migrate.rules.graph_scope import Rewriting, begins_line, foreign
from migrate.scene import Scene
from migrate.syntax import all_parameters

_REWRITTEN = (ast.Delete, ast.For, ast.While, ast.FunctionDef, ast.With, ast.Import,
              ast.ImportFrom, *([ast.Match] if sys.version_info >= (3, 10) else ()))  # fmt: skip


def rewrites(scene: Scene) -> Iterator[Rewriting]:
    """``del``, ``for ... else``, ``while a and b``, ``nullcontext()``, ``import``, ``match``."""
    for node in graph_scope.nodes(scene, *_REWRITTEN):
        made: tuple[Edit, ...] = ()
        if isinstance(node, ast.Delete):
            made = _delete(scene, node)
        elif isinstance(node, (ast.For, ast.While)):
            made = _loop_else(scene, node) if node.orelse else ()
            if isinstance(node, ast.While) and bool(made) == bool(node.orelse):
                made += _while_late(scene, node)
        elif isinstance(node, ast.FunctionDef):
            made = _inner_default(scene, node)
        elif isinstance(node, ast.With):
            made = _without_effect(scene, node)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            made = _import(scene, node)
        elif sys.version_info >= (3, 10) and isinstance(node, ast.Match):
            made = _match(scene, node)
        if made:
            yield Rewriting(node, made)
    for function in graph_scope.compiled_here(scene):
        if isinstance(function.node, ast.FunctionDef):
            yield from _outer_defaults(scene, function.node)


def _outer_defaults(scene: Scene, node: ast.FunctionDef) -> Iterator[Rewriting]:
    """``def f(x, k=SCALE)`` is ``f_k = SCALE`` and ``def f(x, k=f_k)``, where SCALE is bound anew.

    Graph mode asks for a default when it compiles.
    """
    top: ast.AST = node
    while isinstance(scene.parent(top), ast.ClassDef):
        top = scene.parent(top) or top
    if not isinstance(scene.parent(top), ast.Module) or not isinstance(top, ast.stmt):
        return
    args, source = node.args, scene.source
    plain = [*args.posonlyargs, *args.args]
    pairs = [*zip(plain[len(plain) - len(args.defaults) :], args.defaults, strict=True)]
    pairs += [(a, d) for a, d in zip(args.kwonlyargs, args.kw_defaults, strict=True) if d]
    names = {n.id for _, d in pairs for n in ast.walk(d) if isinstance(n, ast.Name)}
    anew = {n for n in names & scene.file.names if _is_bound_anew(scene, n)}
    late = [(a, d) for a, d in pairs
            if any(isinstance(n, ast.Name) and n.id in anew for n in ast.walk(d))]  # fmt: skip
    if not late:
        return
    start = first_start(scene, top)
    lines = [f"{node.name}_{a.arg} = {source.text_of(d)}" for a, d in late]
    head = source.newline.join((*lines, "", "", ""))
    edits = [graph_scope.edit(scene, node, source.span(d), f"{node.name}_{a.arg}") for a, d in late]
    yield Rewriting(node, (graph_scope.edit(scene, node, Span(start, start), head), *edits))


def _is_bound_anew(scene: Scene, name: str) -> bool:
    """Return whether a global of the file is bound more than once, or by a function."""
    if any(name in f.globals for f in scene.file.functions.values()):
        return True
    return len([n for n in scene.file.bound.get(name, ()) if scene.function(n) is None]) > 1


def _delete(scene: Scene, node: ast.Delete) -> tuple[Edit, ...]:
    """``del y`` frees what nobody reads any more: a variable that graph mode drops by itself."""
    if not all(isinstance(t, ast.Name) for t in node.targets):
        return ()
    return (_removal(scene, node),)


def _removal(scene: Scene, node: ast.stmt) -> Edit:
    base = scene.site("graph form", node)
    place = Site(base.name, removed_span(scene.source, node), base.line, base.column)
    return Removal(place, Outcome.CONVERTED, ())


def _loop_else(scene: Scene, node: ast.For | ast.While) -> tuple[Edit, ...]:
    """What stands under ``else`` comes after the loop: under a condition, where a ``break`` is."""
    if not begins_line(scene, node):
        return ()
    source = scene.source
    line = source.line_of(source.span(node.body[-1]).end) + 1
    while not source.data[source.line_start(line) :].lstrip(b" \t\f").startswith(b"else"):
        line += 1
    start, first = source.line_start(line), first_start(scene, node.orelse[0])
    last = source.line_of(first)
    if last == line or source.data[start : source.line_start(line + 1)].split() != [b"else:"]:
        return ()  # a comment beside the else, or its body on the same line
    breaks = _breaks(node.body)
    if not breaks:
        edits = [graph_scope.edit(scene, node, Span(start, source.line_start(line + 1)))]
        moved = [*comments_left(scene, node, line + 1, last), *dedented(scene, node, node.orelse)]
        return tuple(edits + [graph_scope.edit(scene, node, span) for span in moved])
    function = scene.function(node)
    if function is None:
        return ()
    name = graph_scope.free_local(scene, function, "broken")
    begin = source.span(node).start
    indent = Piece(Span(source.line_start(node.lineno), begin))
    word = source.data.index(b"else", start)
    return (
        graph_scope.edit(
            scene, node, Span(begin, begin), f"{name} = False{source.newline}", indent
        ),
        *(_marked(scene, b, name) for b in breaks),
        graph_scope.edit(scene, node, Span(word, word + 4), f"if not {name}"),
    )


def _marked(scene: Scene, node: ast.Break, name: str) -> Edit:
    """``broken = True`` in front of a ``break``."""
    source, span = scene.source, scene.source.span(node)
    place = Span(span.start, span.start)
    if not begins_line(scene, node):
        return graph_scope.edit(scene, node, place, f"{name} = True; ")
    indent = Piece(Span(source.line_start(node.lineno), span.start))
    return graph_scope.edit(scene, node, place, f"{name} = True{source.newline}", indent)


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
    test, source, asked = node.test, scene.source, Asked(scene)
    if not isinstance(test, ast.BoolOp) or not isinstance(test.op, ast.And):
        return ()
    tensors = [is_all(scene.kind(v), "Tensor") for v in test.values]
    if not any(asked.late(v) for v in test.values) or all(tensors):
        return ()
    begin, start = source.span(node).start, source.span(node.body[0]).start
    if b"#" in source.data[begin:start] or not begins_line(scene, node.body[0]):
        return ()
    colon = source.data.rindex(b":", source.span(test.values[-1]).end, start)
    indent = Piece(Span(source.line_start(node.body[0].lineno), start))
    step = "\t" if source.data[start - 1 : start] == b"\t" else "    "
    parts: list[str | Piece] = []
    for value in test.values[1:]:
        parts += ["if not (", Piece(source.span(value)), f"):{source.newline}", indent,
                  f"{step}break{source.newline}", indent]  # fmt: skip
    head = ("while ", Piece(source.span(test.values[0])))
    return (
        graph_scope.edit(scene, node, Span(begin, colon), *head),
        graph_scope.edit(scene, node, Span(start, start), *parts),
    )


def _inner_default(scene: Scene, node: ast.FunctionDef) -> tuple[Edit, ...]:
    """``def f(x, i=i)`` inside a function gets ``f = bound(f, i=i)`` behind it.

    Graph mode knows no variable of the outer function where it takes a default.
    """
    function = scene.file.functions.get(id(node))
    outer = function.parent if function is not None else None
    given, args = node.args.defaults, node.args
    if outer is None or not begins_line(scene, node) or node.decorator_list:
        return ()
    named = args.args[len(args.args) - len(given) :]
    pairs = list(zip(named, given, strict=True)) if not args.posonlyargs else []
    pairs += [(a, d) for a, d in zip(args.kwonlyargs, args.kw_defaults, strict=True) if d]
    seen = outer.locals | {a.arg for a in all_parameters(outer.node.args)}
    late = [(a, d) for a, d in pairs
            if any(isinstance(n, ast.Name) and n.id in seen for n in ast.walk(d))]  # fmt: skip
    if not late or _passed_by_place(scene, outer, node, len(args.args) - len(given)):
        return ()
    text, root = scene.spelling.local("helpers.bound")
    source = scene.source
    end = source.span(node).end
    indent = Piece(Span(source.line_start(node.lineno), source.span(node).start))
    parts: list[str | Piece] = []
    for argument, default in late:
        parts += [f", {argument.arg}=", Piece(source.span(default))]
    made = graph_scope.edit(
        scene, node, Span(end, end), source.newline, indent, f"{node.name} = {text}({node.name}",
        *parts, ")",
    )  # fmt: skip
    return (replace(made, outcome=Outcome.HELPER, needs=frozenset((root,))),)


def _passed_by_place(scene: Scene, outer: Function, node: ast.FunctionDef, places: int) -> bool:
    """Return whether a call may pass a value by place for a parameter with a default."""
    key = scene.file.functions[id(node)].key
    return any(
        isinstance(call, ast.Call) and len(call.args) > places
        and any(a.name == key or a.kind == "unknown" for a in scene.kind(call.func))
        for call in outer.nodes
    )  # fmt: skip


def _without_effect(scene: Scene, node: ast.With) -> tuple[Edit, ...]:
    """``with nullcontext():`` does nothing."""
    for item in node.items:
        call = item.context_expr
        if item.optional_vars is not None or not isinstance(call, ast.Call):
            return ()
        if call.args or call.keywords or not foreign(scene, call.func, "contextlib.nullcontext"):
            return ()
    start, first = scene.source.span(node).start, first_start(scene, node.body[0])
    if b"#" in scene.source.data[start:first]:
        return ()
    edits = [graph_scope.edit(scene, node, Span(start, first))]
    for span in dedented(scene, node, node.body):
        edits.append(graph_scope.edit(scene, node, span))
    return tuple(edits)


def _import(scene: Scene, node: ast.Import | ast.ImportFrom) -> tuple[Edit, ...]:
    """A module of Python's own is imported at the head of the file."""
    modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else [
        a.name for a in node.names
    ]  # fmt: skip
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
    at = scene.source.span(above[0]).start
    text = scene.source.text_of(node) + scene.source.newline
    return (_removal(scene, node), graph_scope.edit(scene, node, Span(at, at), text))


def _bound_elsewhere(
    scene: Scene, same: list[ast.Import | ast.ImportFrom], node: ast.Import | ast.ImportFrom
) -> bool:
    """Whether the file binds one of the names in any other way than by the same import.

    Of the same imports the first is moved: all have to be in code that is compiled.
    """
    names = {(a.asname or a.name).partition(".")[0] for a in node.names}
    inside = {id(n) for n in graph_scope.nodes(scene)}
    own = {id(a) for s in same for a in s.names}
    if not all(id(s) in inside for s in same):
        return True
    others = (n for n in scene.file.nodes if id(n) not in own)
    return any(graph_scope.bound_name(other) in names for other in others)


def _match(scene: Scene, node: ast.Match) -> tuple[Edit, ...]:
    """Cases that are values: ``case "a" | "b":`` is ``elif mode in ("a", "b"):``."""
    subject, source = node.subject, scene.source
    parts = list(ast.walk(subject))
    if not all(isinstance(p, (ast.Name, ast.Attribute, ast.expr_context)) for p in parts):
        return ()
    tests = [_test(scene, source.text_of(subject), case) for case in node.cases]
    if None in tests or not begins_line(scene, node) or "" in tests[:-1] or tests[0] == "":
        return ()
    heads: list[Edit] = []
    moved: list[Edit] = []
    start = source.span(node).start
    for number, (case, test) in enumerate(zip(node.cases, tests, strict=True)):
        first = first_start(scene, case.body[0])
        at = _place(scene, case.pattern).start
        colon = source.data.find(b":", _place(scene, case.pattern).end, first)
        line = source.line_start(source.line_of(at))
        column = source.span(node).start - source.line_start(node.lineno)
        word = "if" if not number else "elif"
        head = f"{word} {test}:" if test else "else:"
        begin = start if not number else line + column
        if b"#" in source.data[begin:colon] or source.line_of(first) == source.line_of(at):
            return ()
        heads.append(graph_scope.edit(scene, node, Span(begin, colon + 1), head))
        moved += [graph_scope.edit(scene, node, s) for s in _closer(scene, node, case)]
    return (*heads, *moved)


def _closer(scene: Scene, node: ast.Match, case: ast.match_case) -> list[Span]:
    """The bodies of the cases move left by as much as ``case`` stands right of ``match``."""
    source = scene.source
    at = _place(scene, case.pattern).start
    line = source.line_start(source.line_of(at))
    lead = len(source.data[line:at]) - len(source.data[line:at].lstrip())
    own = source.span(node).start - source.line_start(node.lineno)
    first = source.line_of(first_start(scene, case.body[0]))
    above = comments_left(scene, node, source.line_of(at) + 1, first)
    whole = [*above, *dedented(scene, node, case.body)]
    return [Span(s.start, s.start + lead - own) for s in whole]


def _place(scene: Scene, node: ast.pattern) -> Span:
    source = scene.source
    return Span(
        source.offset(node.lineno, node.col_offset),
        source.offset(node.end_lineno, node.end_col_offset),
    )


def _test(scene: Scene, subject: str, case: ast.match_case) -> str | None:
    """The condition of a case; "" for ``case _``, None for what is not a value."""
    pattern = case.pattern
    if case.guard is not None:
        return None
    if isinstance(pattern, ast.MatchAs):
        return "" if pattern.pattern is None and pattern.name is None else None
    if isinstance(pattern, ast.MatchSingleton):
        return f"{subject} is {pattern.value}"
    if isinstance(pattern, ast.MatchValue):
        return f"{subject} == {scene.source.text_of(pattern.value)}"
    if isinstance(pattern, ast.MatchOr):
        values = [p.value for p in pattern.patterns if isinstance(p, ast.MatchValue)]
        if len(values) == len(pattern.patterns):
            return f"{subject} in ({', '.join(scene.source.text_of(v) for v in values)})"
    return None
