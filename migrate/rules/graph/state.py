"""Keep on ``self`` nothing that compiled code binds: a local variable, a value passed on, ``keep``.

What one method binds and reads for itself becomes a local variable. What a helper method binds and
others read later in the same pass is returned, and passed on. What no code of the program reads is
for the eye, feature maps and attention weights: PyNative keeps it, graph mode computes without it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from migrate.analysis.program import Class, Function
from migrate.analysis.types.inference import Inference
from migrate.analysis.types.kinds import is_all
from migrate.records.outcomes import Part
from migrate.rules.called_from import call_sites
from migrate.rules.graph import scope
from migrate.rules.graph.scope import Rewriting, compiled_here
from migrate.sites import module_members
from migrate.sites.forward_names import line
from migrate.sites.scene import Scene, once, once_a_file
from migrate.syntax.lines import begins_line
from migrate.syntax.trees import is_none, last_name, within

NOTE = "a local variable now: graph mode keeps no Tensors on self, and no code reads it there"
_LOOKS_ON = frozenset({"__setattr__", "__getattr__", "__getattribute__", "__delattr__"})


def locals_of(scene: Scene) -> Iterator[Rewriting]:
    """``self.h = f(x)``, ``g(self.h)`` is ``h = f(x)``, ``g(h)`` where nobody else looks at it."""
    for name, function, uses in kept(scene):
        if _is_local(scene, function, name, uses):
            local = scope.free_local(scene, function, name)
            for use in uses:
                made = scope.whole(scene, use, local)
                note = NOTE if use is uses[0] else ""
                yield Rewriting(use, (made,), note, f"self.{name}")
    yield from _keeping(scene)


Kept = tuple[str, Function, list[ast.Attribute]]


@once_a_file
def kept(scene: Scene) -> list[Kept]:
    """Return each attribute that a compiled method binds anew, with its uses there in order."""
    return list(_kept(scene))


def _kept(scene: Scene) -> Iterator[Kept]:
    for function in compiled_here(scene):
        owner = function.owner
        if owner is None or not scene.is_module_class(owner):
            continue
        first = function.parameters[0].arg if function.parameters else ""
        found: dict[str, list[ast.Attribute]] = {}
        for node in function.of(ast.Attribute) if first else ():
            if isinstance(node, ast.Attribute) and getattr(node.value, "id", "") == first:
                found.setdefault(node.attr, []).append(node)
        for name, uses in found.items():
            if any(isinstance(u.ctx, ast.Store) and not _only_moves(scene, u) for u in uses):
                yield name, function, sorted(uses, key=lambda u: scene.source.span(u).start)


def _only_moves(scene: Scene, use: ast.Attribute) -> bool:
    """``self.eps = self.eps.to(x.device)``: a statement that goes, as there is one device."""
    statement = scene.parent(use)
    value = statement.value if isinstance(statement, ast.Assign) else None
    func = value.func if isinstance(value, ast.Call) else None
    if not isinstance(value, ast.Call) or not isinstance(func, ast.Attribute):
        return False
    given = [*value.args, *(k.value for k in value.keywords if k.arg == "device")]
    if ast.unparse(func.value) != ast.unparse(use) or len(given) > 1:
        return False
    if len(given) < len(value.args) + len(value.keywords):
        return False
    if not given:
        return func.attr in ("cuda", "cpu")
    named = isinstance(given[0], ast.Attribute) and given[0].attr == "device"
    return func.attr in ("to", "cuda") and (named or is_all(scene.kind(given[0]), "device", "str"))


def is_parameter(scene: Scene, use: ast.Attribute) -> bool:
    """Return whether a member is a buffer or Parameter: graph mode assigns to those."""
    owner = scene.owner(use)
    bases = module_members.family(scene, owner.key) if owner is not None else ()
    return any(is_declared(one, use.attr) for one in bases)


def is_parameter_of(scene: Scene, name: str, classes: frozenset[str]) -> bool:
    """Return whether every class of some (by key) makes a member a buffer or Parameter."""
    return bool(classes) and all(
        any(is_declared(one, name) for one in module_members.family(scene, key)) for key in classes
    )


def is_declared(owner: Class, name: str) -> bool:
    """Return whether a class makes a member a buffer or Parameter."""
    return any(name in _declared(node) for node in within(owner.node))


def _declared(node: ast.AST) -> list[str]:
    """The members that a statement makes buffers or Parameters."""
    if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
        registers = getattr(node.func, "attr", "") in ("register_buffer", "register_parameter")
        saved = [*node.args[2:], *(k.value for k in node.keywords if k.arg == "persistent")]
        if any(isinstance(s, ast.Constant) and s.value is False for s in saved):
            return []  # no Parameter: graph mode does not assign to it
        return [str(node.args[0].value)] if registers else []
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
        made = node.value.func
        if last_name(made) == "Parameter":
            return [getattr(t, "attr", "") for t in node.targets]
    return []


def _is_local(scene: Scene, function: Function, name: str, uses: list[ast.Attribute]) -> bool:
    """Bound and read here, and no other place knows the name.

    What the constructor sets to None is no reader; a buffer or child is bound there otherwise.
    """
    if not starts_local(scene, function, uses):
        return False
    if not any(isinstance(u.ctx, ast.Load) for u in uses):
        return False
    return known_only(scene, function, name, uses, partial(is_empty_start, function=function))


def starts_local(scene: Scene, function: Function, uses: list[ast.Attribute]) -> bool:
    """First a plain assignment that always runs, then nothing but reads."""
    body, first = function.node.body, scene.statement(uses[0])
    if not isinstance(body, list) or not any(s is first for s in body):
        return False
    if not isinstance(first, ast.Assign) or first.targets != [uses[0]]:
        return False
    if len([u for u in uses if scene.statement(u) is first]) > 1 or by_other_names(function):
        return False
    return not any(scene.function(u) is not function or changes(scene, u) for u in uses)


def known_only(
    scene: Scene,
    function: Function,
    name: str,
    uses: Sequence[ast.AST],
    harmless: Callable[[Scene, ast.Attribute], bool],
) -> bool:
    """Whether no place of the program but these uses, and harmless ones, knows the member."""
    assert function.owner is not None
    mine = {id(u) for u in uses}
    kin = family(scene, function.owner.key)
    if any(answers(scene.inference.program.classes[key], name) for key in kin):
        return False
    for place in known_places(scene.inference).get(name, []):
        if id(place) in mine or _is_others(scene, kin, place):
            continue
        if not isinstance(place, ast.Attribute) or not harmless(scene, place):
            return False
    return True


def family(scene: Scene, key: str) -> frozenset[str]:
    """The classes whose objects may be of this class too: below it, and above those."""
    return _families(scene.inference).get(key, frozenset())


@once
def _families(inference: Inference) -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for other in inference.program.classes:
        above = line(inference, other)
        for key in above:
            found.setdefault(key, set()).update(above)
    return {key: frozenset(names) for key, names in found.items()}


def answers(owner: Class, name: str) -> bool:
    """Whether a class has code that runs where a member is bound or read: a property, mostly."""
    if name in owner.methods or not _LOOKS_ON.isdisjoint(owner.methods):
        return True
    made = (s for s in owner.node.body if isinstance(s, ast.Assign))
    return any(
        isinstance(s.value, ast.Call) and any(getattr(t, "id", "") == name for t in s.targets)
        for s in made
    )


def _is_others(scene: Scene, family: frozenset[str], node: ast.AST) -> bool:
    """A member of what is surely no object of the class."""
    if not isinstance(node, ast.Attribute):
        return False
    kind = scene.inference.kind(node.value)
    return bool(kind) and all(
        a.kind == "Tensor"
        or (a.kind in ("Module", "Object") and "::" in a.name and a.name not in family)
        for a in kind
    )


def changes(scene: Scene, use: ast.expr) -> bool:
    """In-place changes have rules of their own, which write the attribute out."""
    parent = scene.parent(use)
    if isinstance(parent, ast.Subscript):
        return not isinstance(parent.ctx, ast.Load)
    in_place = isinstance(parent, ast.Attribute) and parent.attr.endswith("_")
    return in_place or isinstance(parent, (ast.AugAssign, ast.Delete))


def by_other_names(function: Function) -> bool:
    """Whether the class reads its members by names that it makes up."""
    owner = function.owner
    for node in within(owner.node) if owner else ():
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("getattr", "vars"):
            if len(node.args) < 2 or not isinstance(node.args[1], ast.Constant):
                return True
        elif isinstance(node, ast.Attribute) and node.attr == "__dict__":
            return True
    return False


def is_empty_start(scene: Scene, node: ast.Attribute, function: Function) -> bool:
    """``self.name = None`` in the constructor of the same class."""
    start = function.owner.methods.get("__init__") if function.owner else None
    if start is None or start.path != scene.file.path:
        return False
    parent = scene.parent(node)
    empty = isinstance(parent, ast.Assign) and parent.targets == [node]
    value = parent.value if isinstance(parent, ast.Assign) else None
    return empty and is_none(value) and scene.function(node) is start


@once
def known_places(inference: Inference) -> dict[str, list[ast.AST]]:
    """Return every attribute and text of the program by its name: what may know a member."""
    found: dict[str, list[ast.AST]] = {}
    for file in inference.program.files.values():
        for node in file.of(ast.Attribute):
            found.setdefault(node.attr, []).append(node)
        for text in file.of(ast.Constant):
            if isinstance(text.value, str):
                found.setdefault(text.value, []).append(text)
    return found


# -- what is kept for others --------------------------------------------------------------------

KEPT = "kept in PyNative only, where no code of the program reads it; graph mode cannot"


def _keeping(scene: Scene) -> Iterator[Rewriting]:
    """``self.last = y`` is ``keep(self, "last", y)``."""
    for name, function, uses in kept(scene):
        statements = [_plain(scene, use) for use in uses]
        if None in statements or by_other_names(function):
            continue
        if any(scene.function(use) is not function for use in uses):
            continue
        empty = partial(is_empty_start, function=function)
        if not known_only(scene, function, name, uses, empty):
            continue
        own = function.parameters[0].arg
        for use, value in zip(uses, statements, strict=True):
            assert value is not None
            given = (f'{own}, "{name}", ', value)
            made = scope.called(scene, scene.statement(use), "keep", *given)
            site = replace(made.site, line=use.lineno, column=use.col_offset + 1)
            yield Rewriting(use, (replace(made, site=site),), KEPT, f"self.{name}")


def _plain(scene: Scene, use: ast.Attribute) -> ast.expr | None:
    """The value of ``self.name = value``; none that binds something anew, as ``y.add_(1)`` does."""
    statement = scene.parent(use)
    if not isinstance(statement, ast.Assign) or statement.targets != [use]:
        return None
    for node in ast.walk(statement.value):
        if isinstance(node, ast.Attribute) and node.attr.endswith("_"):
            return None
    return statement.value


# -- what is passed on ------------------------------------------------------------


PASSED = "returned and passed on now: graph mode keeps nothing on self, and no other code reads it"


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


def passages(scene: Scene) -> Iterator[Rewriting]:
    """Each member that a helper method writes, and whose readers all come later in one caller."""
    for member, writer, uses in kept(scene):
        passage = _passage(scene, member, writer, uses)
        if passage is not None:
            yield from _written(scene, passage)
            yield _called(scene, passage)
            yield from _read(scene, passage)


def _passage(
    scene: Scene, member: str, writer: Function, uses: list[ast.Attribute]
) -> Passage | None:
    if not starts_local(scene, writer, uses) or not _ends_plainly(scene, writer):
        return None
    calls = _only_calls(scene, writer)
    if calls is None or len(calls) != 1:
        return None
    call, caller = calls[0]
    statement = scene.parent(call)
    after = {id(n) for s in scope.statements_after(scene, scene.statement(call))
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
        if not more or not _takes_more(reader):
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
    if (
        writer.name.startswith("__")
        or writer.name == "forward"
        or not begins_line(scene.source, body[-1])
    ):
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
        kinds = scene.inference.kind(call.func)
        if file is not scene.file or caller is None or any(a.kind == "class" for a in kinds):
            return None
        found.append((call, caller))
    known = {id(call.func) for call, _ in found}
    places = known_places(scene.inference).get(method.name, [])
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
        return not changes(scene, node) and not by_other_names(function)

    return found if known_only(scene, writer, member, uses, harmless) else []


def _takes_more(reader: Function) -> bool:
    return bool(reader.parameters) and _is_bare(reader)


def _is_bare(function: Function) -> bool:
    return isinstance(function.node, ast.FunctionDef) and not function.node.decorator_list


def _is_open(scene: Scene, call: ast.Call) -> bool:
    """Whether another argument can be put first."""
    alone = len(call.args) == 1 and isinstance(call.args[0], ast.GeneratorExp)
    return not alone


def _is_steady(caller: Function, receiver: ast.expr) -> bool:
    """Whether ``self.block`` is the same object for the whole pass."""
    if not isinstance(receiver, ast.Attribute) or caller.owner is None:
        return False
    mine = getattr(receiver.value, "id", "") == caller.parameters[0].arg
    return mine and [f.name for f in caller.owner.stores.get(receiver.attr, [])] == ["__init__"]


def _written(scene: Scene, passage: Passage) -> Iterator[Rewriting]:
    """The writer binds a local variable, and returns it as well."""
    writer = passage.writer
    local = scope.free_local(scene, writer, passage.member)
    for use in passage.uses:
        made = scope.whole(scene, use, local)
        note = PASSED if use is passage.uses[0] else ""
        yield Rewriting(use, (made,), note, f"self.{passage.member}")
    assert isinstance(writer.node.body, list)
    last = writer.node.body[-1]
    if isinstance(last, ast.Return) and last.value is not None:
        yield Rewriting(last, (scope.around(scene, last.value, "", f", {local}"),))
        return
    result = scope.part(scene, last, Part.BEHIND, f"return {local}")
    yield Rewriting(writer.node, (result,))


def _called(scene: Scene, passage: Passage) -> Rewriting:
    """The caller binds what comes back."""
    local = scope.free_local(scene, passage.caller, passage.member)
    statement = scene.statement(passage.call)
    if isinstance(statement, ast.Assign):
        made = scope.around(scene, statement.targets[0], "", f", {local}")
    else:
        made = scope.part(scene, statement, Part.TARGET, local)
    return Rewriting(passage.call, (made,))


def _read(scene: Scene, passage: Passage) -> Iterator[Rewriting]:
    """The readers take it as their first argument."""
    here = scope.free_local(scene, passage.caller, passage.member)
    for call in passage.calls:
        yield Rewriting(call, (scope.part(scene, call, Part.FIRST, here),))
    taking: set[int] = set()
    for reader, node in passage.reads:
        local = scope.free_local(scene, reader, passage.member)
        made = scope.whole(scene, node, local)
        yield Rewriting(node, (made,))
        if reader is not passage.caller and id(reader) not in taking:
            taking.add(id(reader))
            first = reader.parameters[0]
            made = scope.part(scene, reader.node, Part.SECOND, local)
            yield Rewriting(first, (made,))
