"""In: compiled statements that graph mode refuses. Out: statements that do the same."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator

from migrate.layout import removed_span
from migrate.outcomes import Edit, Outcome, Removal, Site, Span
from migrate.rules import graph_scope
from migrate.rules.dedent import comments_left, dedented, first_start
from migrate.rules.graph_scope import Rewriting, begins_line, foreign
from migrate.scene import Scene


def rewrites(scene: Scene) -> Iterator[Rewriting]:
    """``del``, ``for ... else``, ``nullcontext()``, ``import``, ``match``."""
    for node in graph_scope.nodes(scene):
        made: tuple[Edit, ...] = ()
        if isinstance(node, ast.Delete):
            made = _delete(scene, node)
        elif isinstance(node, ast.For) and node.orelse:
            made = _for_else(scene, node)
        elif isinstance(node, ast.With):
            made = _without_effect(scene, node)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            made = _import(scene, node)
        elif sys.version_info >= (3, 10) and isinstance(node, ast.Match):
            made = _match(scene, node)
        if made:
            yield Rewriting(node, made)


def _delete(scene: Scene, node: ast.Delete) -> tuple[Edit, ...]:
    """``del y`` frees what nobody reads any more: a variable that graph mode drops by itself."""
    if not all(isinstance(t, ast.Name) for t in node.targets):
        return ()
    return (_removal(scene, node),)


def _removal(scene: Scene, node: ast.stmt) -> Edit:
    base = scene.site("graph form", node)
    place = Site(base.name, removed_span(scene.source, node), base.line, base.column)
    return Removal(place, Outcome.CONVERTED, ())


def _for_else(scene: Scene, node: ast.For) -> tuple[Edit, ...]:
    """Without a ``break``, what stands under ``else`` comes after the loop in any case."""
    if _breaks(node.body) or not begins_line(scene, node):
        return ()
    source = scene.source
    line = source.line_of(source.span(node.body[-1]).end) + 1
    while not source.data[source.line_start(line) :].lstrip(b" \t\f").startswith(b"else"):
        line += 1
    start, first = source.line_start(line), first_start(scene, node.orelse[0])
    last = source.line_of(first)
    if last == line or source.data[start : source.line_start(line + 1)].split() != [b"else:"]:
        return ()  # a comment beside the else, or its body on the same line
    edits = [graph_scope.edit(scene, node, Span(start, source.line_start(line + 1)))]
    moved = [*comments_left(scene, node, line + 1, last), *dedented(scene, node, node.orelse)]
    return tuple(edits + [graph_scope.edit(scene, node, span) for span in moved])


def _breaks(body: list[ast.stmt]) -> bool:
    """Whether a ``break`` leaves this loop, and not one inside it."""
    for statement in body:
        if isinstance(statement, ast.Break):
            return True
        if isinstance(statement, (ast.For, ast.While, ast.AsyncFor)):
            inner: list[ast.stmt] = statement.orelse
        elif isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
            inner = []
        else:
            inner = [s for s in ast.iter_child_nodes(statement) if isinstance(s, ast.stmt)]
            inner += [s for h in getattr(statement, "handlers", ()) for s in h.body]
            inner += [s for c in getattr(statement, "cases", ()) for s in c.body]
        if _breaks(inner):
            return True
    return False


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
