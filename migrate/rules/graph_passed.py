"""In: what one method puts on ``self`` and another reads in the same pass. Out: a value passed on.

``self.block.build(x)`` and later ``self.block.look(y)`` become ``pyramid = self.block.build(x)``
and ``self.block.look(pyramid, y)``: graph mode keeps nothing on self.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from migrate.outcomes import Piece, Span
from migrate.program import Function
from migrate.rules import graph_scope, graph_state
from migrate.rules.called_from import call_sites
from migrate.rules.dedent import first_start
from migrate.rules.graph_scope import Rewriting, begins_line
from migrate.scene import Scene

NOTE = "returned and passed on now: graph mode keeps nothing on self, and no other code reads it"


@dataclass(frozen=True)
class Passage:
    """A member, its writer, the one call of that, and the readers with their calls."""

    member: str
    writer: Function
    uses: list[ast.Attribute]
    call: ast.Call
    caller: Function
    reads: list[tuple[Function, ast.Attribute]]
    calls: list[ast.Call]


def rewrites(scene: Scene) -> Iterator[Rewriting]:
    """Each member that a helper method writes, and whose readers all come later in one caller."""
    for member, writer, uses in graph_state.kept(scene):
        passage = _passage(scene, member, writer, uses)
        if passage is not None:
            yield from _written(scene, passage)
            yield _called(scene, passage)
            yield from _read(scene, passage)


def _passage(
    scene: Scene, member: str, writer: Function, uses: list[ast.Attribute]
) -> Passage | None:
    if not graph_state.starts_local(scene, writer, uses) or not _ends_plainly(scene, writer):
        return None
    calls = _only_calls(scene, writer)
    if calls is None or len(calls) != 1:
        return None
    call, caller = calls[0]
    statement = scene.parent(call)
    after = {id(n) for s in graph_scope.statements_after(scene, scene.statement(call))
             for n in ast.walk(s)}  # fmt: skip
    if not _is_bound_plainly(statement, call, writer) or not caller.parameters:
        return None
    places = _reads(scene, member, writer, uses)
    if not places:
        return None
    assert isinstance(call.func, ast.Attribute)
    on, further = ast.unparse(call.func.value), []
    for reader in {id(f): f for f, _ in places}.values():
        if reader is caller and on == caller.parameters[0].arg:
            if any(id(node) not in after for f, node in places if f is caller):
                return None
            continue
        more = _only_calls(scene, reader)
        if not more or not _takes_more(scene, reader):
            return None
        for one, where in more:
            same = isinstance(one.func, ast.Attribute) and ast.unparse(one.func.value) == on
            if where is not caller or id(one) not in after or not same or not _is_open(scene, one):
                return None
            further.append(one)
    steady = on == caller.parameters[0].arg or _is_steady(caller, call.func.value)
    return Passage(member, writer, uses, call, caller, places, further) if steady else None


def _ends_plainly(scene: Scene, writer: Function) -> bool:
    """One way out: the end of the body, or one ``return`` of a value there."""
    body = writer.node.body
    if not isinstance(body, list) or not _is_bare(writer):
        return False
    if writer.name.startswith("__") or writer.name == "forward" or not begins_line(scene, body[-1]):
        return False
    leaving = (ast.Return, ast.Yield, ast.YieldFrom)
    ways = [n for n in ast.walk(writer.node) if isinstance(n, leaving)]
    if not ways:
        return True
    last = ways[0]
    whole = isinstance(last, ast.Return) and not isinstance(last.value, (ast.Tuple, type(None)))
    return len(ways) == 1 and last is body[-1] and whole


def _only_calls(scene: Scene, method: Function) -> list[tuple[ast.Call, Function]] | None:
    """The calls of a method in this file; None where the program may know it in another way."""
    program = scene.inference.program
    same = [c for c in program.classes.values() if method.name in c.methods]
    if method.owner is None or same != [method.owner] or method.name in ("forward", "__init__"):
        return None
    found = []
    for file, call, caller in call_sites(scene, method):
        kinds = scene.inference.kinds.get(id(call.func), frozenset())
        if file is not scene.file or caller is None or any(a.kind == "class" for a in kinds):
            return None
        found.append((call, caller))
    known = {id(call.func) for call, _ in found}
    places = graph_state.known_places(program, method.name)
    return found if all(id(p) in known for p in places) else None


def _is_bound_plainly(statement: ast.AST | None, call: ast.Call, writer: Function) -> bool:
    """``block.build(x)`` or, where it returns something, ``y = block.build(x)``."""
    assert isinstance(writer.node.body, list)
    if not isinstance(writer.node.body[-1], ast.Return):
        return isinstance(statement, ast.Expr)
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return False
    return isinstance(statement.targets[0], ast.Name) and statement.value is call


def _reads(
    scene: Scene, member: str, writer: Function, uses: list[ast.Attribute]
) -> list[tuple[Function, ast.Attribute]]:
    """Where other methods of the class read the member; nothing, where it is seen elsewhere too."""
    found: list[tuple[Function, ast.Attribute]] = []
    assert writer.owner is not None

    def harmless(scene: Scene, node: ast.Attribute) -> bool:
        function = scene.function(node)
        if function is None or function.owner is not writer.owner:
            return False
        own = function.parameters[0].arg if function.parameters else ""
        if getattr(node.value, "id", "") != own:
            return False
        if isinstance(node.ctx, ast.Store):
            return function.name == "__init__"
        found.append((function, node))
        return not graph_state.changes(scene, node) and not graph_state.by_other_names(function)

    return found if graph_state.known_only(scene, writer, member, uses, harmless) else []


def _takes_more(scene: Scene, reader: Function) -> bool:
    return bool(reader.parameters) and _is_bare(reader)


def _is_bare(function: Function) -> bool:
    return isinstance(function.node, ast.FunctionDef) and not function.node.decorator_list


def _is_open(scene: Scene, call: ast.Call) -> bool:
    """Whether another argument can be put first."""
    end = scene.source.span(call.func).end
    alone = len(call.args) == 1 and isinstance(call.args[0], ast.GeneratorExp)
    return scene.source.data[end : end + 1] == b"(" and not alone


def _is_steady(caller: Function, receiver: ast.expr) -> bool:
    """Whether ``self.block`` is the same object for the whole pass."""
    if not isinstance(receiver, ast.Attribute) or caller.owner is None:
        return False
    mine = getattr(receiver.value, "id", "") == caller.parameters[0].arg
    return mine and [f.name for f in caller.owner.stores.get(receiver.attr, [])] == ["__init__"]


def _written(scene: Scene, passage: Passage) -> Iterator[Rewriting]:
    """The writer binds a local variable, and returns it as well."""
    writer, source = passage.writer, scene.source
    local = graph_scope.free_local(scene, writer, passage.member)
    for use in passage.uses:
        made = graph_scope.edit(scene, use, source.span(use), local)
        note = NOTE if use is passage.uses[0] else ""
        yield Rewriting(use, (made,), note, f"self.{passage.member}")
    assert isinstance(writer.node.body, list)
    last = writer.node.body[-1]
    if isinstance(last, ast.Return) and last.value is not None:
        end = source.span(last.value).end
        yield Rewriting(last, (graph_scope.edit(scene, last, Span(end, end), f", {local}"),))
        return
    start, end = source.span(last).start, source.span(last).end
    end += len(source.data[end:].split(b"\n", 1)[0].rstrip(b"\r"))  # behind a comment
    indent = Piece(Span(source.line_start(last.lineno), start))
    made = graph_scope.edit(scene, last, Span(end, end), source.newline, indent, f"return {local}")
    yield Rewriting(writer.node, (made,))


def _called(scene: Scene, passage: Passage) -> Rewriting:
    """The caller binds what comes back."""
    local = graph_scope.free_local(scene, passage.caller, passage.member)
    statement = scene.statement(passage.call)
    if isinstance(statement, ast.Assign):
        end = scene.source.span(statement.targets[0]).end
        made = graph_scope.edit(scene, statement, Span(end, end), f", {local}")
    else:
        start = first_start(scene, statement)
        made = graph_scope.edit(scene, statement, Span(start, start), f"{local} = ")
    return Rewriting(passage.call, (made,))


def _read(scene: Scene, passage: Passage) -> Iterator[Rewriting]:
    """The readers take it as their first argument."""
    here = graph_scope.free_local(scene, passage.caller, passage.member)
    for call in passage.calls:
        at = scene.source.span(call.func).end + 1
        text = f"{here}, " if call.args or call.keywords else here
        yield Rewriting(call, (graph_scope.edit(scene, call, Span(at, at), text),))
    taking: set[int] = set()
    for reader, node in passage.reads:
        local = graph_scope.free_local(scene, reader, passage.member)
        made = graph_scope.edit(scene, node, scene.source.span(node), local)
        yield Rewriting(node, (made,))
        if reader is not passage.caller and id(reader) not in taking:
            taking.add(id(reader))
            first = reader.parameters[0]
            end = scene.source.span(first).end
            made = graph_scope.edit(scene, first, Span(end, end), f", {local}")
            yield Rewriting(first, (made,))
