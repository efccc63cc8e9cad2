"""Host code that changes what compiled code has read: graph mode has to compile anew.

An attribute, a global or the contents of a list is a constant of the graph: what is bound after the
first call changes nothing, without a word. ``compile_anew()`` behind the change throws the graphs
away. It is left out where no call can have come before: in constructors, and behind the binding of
a new object.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import replace

from migrate.outcomes import Edit, Outcome, Piece, Span
from migrate.program import File, Function
from migrate.receivers import contents
from migrate.receivers.contents import Sites
from migrate.receivers.kinds import ARRAY, Site
from migrate.rules import graph_scope, graph_silent, graph_state
from migrate.rules.called_from import call_sites, passed
from migrate.rules.graph_memo import constructing
from migrate.scene import Scene
from migrate.syntax import all_parameters, within

_SIMPLE = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr, ast.Delete)
_CHANGING = (ast.Attribute, ast.Name, ast.Subscript, ast.Call)
_GROWS = frozenset(("append", "extend", "insert", "pop", "add_module", "register_module"))
_APART = frozenset(("data", "grad", "requires_grad", "training"))  # they have rules of their own
_ANY = "?"
_ENVIRONMENT = "os.environ"
_OPEN = ("unknown", "project", "instance")  # what nobody knows, and objects of other libraries
# methods of a Module that run no forward
_QUIET = frozenset(
    "to cuda cpu half float double bfloat16 train eval parameters named_parameters modules children"
    " named_modules named_children buffers named_buffers state_dict load_state_dict apply"
    " requires_grad_ zero_grad add_module register_buffer register_parameter share_memory".split()
)


def edits(scene: Scene, made: Mapping[int, object]) -> Iterator[Edit]:
    """Yield ``compile_anew()`` behind the statements of host code that change such a constant.

    ``made``: the nodes of compiled code that get another form; they read no member any more.
    """
    reads = _reads(scene) if graph_scope.compiled(scene.inference) else frozenset()
    if not reads:
        return
    inside = [n for f in graph_scope.compiled_here(scene) for n in f.nodes]
    local = {n.attr for n in inside if isinstance(n, ast.Attribute) and id(n) in made}
    local -= {n.attr for n in inside if isinstance(n, ast.Attribute) and id(n) not in made}
    reads = frozenset(read for read in reads if read[0] not in local)
    apart = constructing(scene) | {id(n) for n in inside}
    found: dict[int, ast.stmt] = {}
    for node in scene.file.nodes if reads else ():
        if id(node) in apart or not isinstance(node, _CHANGING):
            continue
        if _changes_constant(scene, node, reads):
            statement = scene.statement(node)
            if isinstance(statement, _SIMPLE):
                found[id(statement)] = statement
    for statement in found.values():
        following = graph_scope.statements_after(scene, statement)
        if not following or id(following[0]) not in found:
            yield behind(scene, statement)


def behind(scene: Scene, statement: ast.stmt, whole: ast.expr | None = None) -> Edit:
    """Return the call behind a statement that lets graph mode compile again.

    ``whole``: the Cell whose modes are looked at first; None where it has to be done anyway.
    """
    helper = "helpers.modes_are_set" if whole is not None else "helpers.compile_anew"
    text, root = scene.spelling.local(helper)
    source = scene.source
    call = (f"{text}(", *((Piece(source.span(whole)),) if whole is not None else ()), ")")
    span = source.span(statement)
    rest = source.data[span.end :].split(b"\n", 1)[0].rstrip(b"\r")
    alone = graph_scope.begins_line(scene, statement) and not rest.lstrip().startswith(b";")
    if alone:
        indent = Piece(Span(source.line_start(statement.lineno), span.start))
        end = span.end + len(rest)  # behind a comment
        made = graph_scope.edit(scene, statement, Span(end, end), source.newline, indent, *call)
    else:
        made = graph_scope.edit(scene, statement, Span(span.end, span.end), f"; {text}()")
    return replace(made, outcome=Outcome.HELPER, needs=frozenset((root,)))


# -- what compiled code reads -------------------------------------------------------------------


def _reads(scene: Scene) -> frozenset[tuple[str, str]]:
    """Return the members that compiled code reads, and their classes; globals, and their paths.

    Found once for a program. The class is ``?`` where nobody knows it.
    """
    inference = scene.inference
    notes = inference.program.notes
    if "compiled reads" not in notes:
        found: set[tuple[str, str]] = set()
        for function in graph_scope.compiled(inference).values():
            own = function.parameters[0].arg if function.parameters else ""
            for node in function.nodes:
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                    found.add((node.id, _scope(function, node.id)))
                elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                    if getattr(node.value, "id", "") == own and function.owner is not None:
                        found.add((node.attr, function.owner.key))
                        continue
                    held = _instance(node.value)
                    atoms = inference.kinds.get(id(held), ())
                    keys = {a.name for a in atoms if "::" in a.name} or {
                        _ANY for a in atoms if a.kind in _OPEN
                    }
                    found |= {(node.attr, key) for key in keys}
                    if any(a.kind == "foreign" and a.name == "os" for a in atoms):
                        found.add((_ENVIRONMENT, ""))
        notes["compiled reads"] = frozenset(found)
    known: frozenset[tuple[str, str]] = notes["compiled reads"]
    return known


def _sites(scene: Scene) -> Sites:
    """Return the sites of the containers that compiled code finds: on objects, and outside."""
    inference = scene.inference
    notes = inference.program.notes
    if "compiled sites" not in notes:
        found: set[Site] = set()
        made: set[int] = set()
        for function in graph_scope.compiled(inference).values():
            made |= {id(n) for n in function.nodes}
            own = function.locals | {a.arg for a in all_parameters(function.node.args)}
            for node in function.nodes:
                outer = isinstance(node, ast.Attribute) or (
                    isinstance(node, ast.Name) and node.id not in own - function.globals
                )
                if outer and isinstance(node.ctx, ast.Load):  # type: ignore[attr-defined]
                    found |= contents.all_sites(inference.kinds.get(id(node), frozenset()))
        found |= _stored(scene, {s.rstrip("[]") for s in found if isinstance(s, str)})
        notes["compiled sites"] = frozenset(s for s in found if s not in made)
    sites: Sites = notes["compiled sites"]
    return sites


def _stored(scene: Scene, names: set[str]) -> Sites:
    """Return the sites of what is stored under ``=name`` of a file, or ``.name`` of an object."""
    waiting: list[tuple[File, ast.expr]] = []
    for file in scene.inference.program.files.values():
        for bound in file.of(ast.Assign):
            texts = {f"={t.id}" for t in bound.targets if isinstance(t, ast.Name)}
            texts |= {f".{t.attr}" for t in bound.targets if isinstance(t, ast.Attribute)}
            waiting += [(file, bound.value)] if texts & names else []
    return _made(scene, waiting)


def _made(scene: Scene, waiting: list[tuple[File, ast.expr]]) -> Sites:
    """Return the sites that may have made the containers in some values, through parameters."""
    found: set[Site] = set()
    for file, value in waiting:
        sites = contents.all_sites(scene.inference.kinds.get(id(value), frozenset()))
        found |= {s for s in sites if not isinstance(s, tuple)}
        function = file.function_at(value)
        given = {s[0][0] for s in sites if isinstance(s, tuple) and isinstance(s[0], tuple)}
        for name in given if function is not None else ():
            for other, call, _ in call_sites(scene, function):  # type: ignore[arg-type]
                argument = passed(function, call, str(name))  # type: ignore[arg-type]
                if argument is not None and all(argument is not v for _, v in waiting):
                    waiting.append((other, argument))
    return frozenset(found)


def _instance(node: ast.expr) -> ast.expr:
    """Return ``self`` of ``type(self)`` and ``self.__class__``."""
    if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "type" and node.args:
        return node.args[0]
    return node.value if isinstance(node, ast.Attribute) and node.attr == "__class__" else node


def _scope(function: Function, name: str) -> str:
    """Return the function, or the file, whose variable a name in a function means."""
    around: Function | None = function
    while around is not None:
        given = {a.arg for a in all_parameters(around.node.args)}
        if name in (around.locals | given) - around.globals:
            return around.key
        around = around.parent
    return function.path


def _changes_constant(scene: Scene, node: ast.expr, reads: frozenset[tuple[str, str]]) -> bool:
    """Return whether a node of host code changes what a graph has for a constant."""
    if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
        return _is_read(scene, node, reads) and called_before(scene, node, node.value)
    if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
        return _global_bound(scene, node, reads)
    if isinstance(node, ast.Call) and _is_hook(scene, node):
        assert isinstance(node.func, ast.Attribute)
        return called_before(scene, node, node.func.value)
    if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "setattr":
        return _set(scene, node, reads)
    held = graph_silent.changed(scene, node)
    if (_ENVIRONMENT, "") in reads and _sets_environment(scene, node, held):
        return called_before(scene, node, None)
    grows = (
        isinstance(node, ast.Subscript) or getattr(getattr(node, "func", 0), "attr", "") in _GROWS
    )
    if held is None:
        return False
    inside = _members(node, held)
    if inside is not None:
        return called_before(scene, node, inside)
    known = scene.kind(held)
    shared = _made(scene, [(scene.file, held)]) & _sites(scene) if known else ()
    if any(not (isinstance(s, str) and s[0] == ".") for s in shared):
        return called_before(scene, node, None)
    if isinstance(node, ast.Subscript) and known == ARRAY and isinstance(held, ast.Name):
        return _is_global(scene, held, reads) and called_before(scene, node, None)
    kinds = {atom.kind for atom in known} - {"None"}
    if not kinds or not kinds <= {"list", "dict", "set", *(["Module"] * grows)}:
        return False
    while isinstance(held, ast.Subscript):
        held = held.value
    if isinstance(held, ast.Attribute):
        return _is_read(scene, held, reads) and called_before(scene, node, held.value)
    if kinds == {"Module"}:
        return called_before(scene, node, held)
    return (
        isinstance(held, ast.Name)
        and _is_global(scene, held, reads)
        and called_before(scene, node, None)
    )


def _members(node: ast.AST, held: ast.expr) -> ast.expr | None:
    """Return ``net`` of ``net.__dict__["depth"] = 1`` and ``vars(net)["depth"] = 1``."""
    if isinstance(held, ast.Attribute) and held.attr == "__dict__":
        return held.value
    called = isinstance(held, ast.Call) and getattr(held.func, "id", "") == "vars"
    return held.args[0] if called and held.args else None  # type: ignore[attr-defined]


def _sets_environment(scene: Scene, node: ast.AST, held: ast.expr | None) -> bool:
    """``os.environ["FAST"] = "1"``, ``os.putenv("FAST", "1")``"""
    named = held if held is not None else getattr(node, "func", None)
    return named is not None and graph_scope.foreign(scene, named, "os.environ", "os.putenv")


def _set(scene: Scene, node: ast.Call, reads: frozenset[tuple[str, str]]) -> bool:
    """``setattr(net, "scale", 2.0)``"""
    if len(node.args) != 3:
        return False
    holder, name = node.args[:2]
    named = name.value if isinstance(name, ast.Constant) else None
    if named is not None and named not in {read for read, _ in reads}:
        return False
    known = scene.kind(holder)
    module = any(a.kind in ("Module", "unknown") for a in known)
    return module and called_before(scene, node, holder)


def _is_read(scene: Scene, node: ast.Attribute, reads: frozenset[tuple[str, str]]) -> bool:
    """Return whether compiled code reads the member of an object that may be this one."""
    if node.attr in _APART:
        return False
    classes = {key for name, key in reads if name == node.attr}
    if not classes:
        return False
    function, owner = scene.function(node), scene.owner(node)
    own = function.parameters[0].arg if function is not None and function.parameters else ""
    if owner is not None and isinstance(node.value, ast.Name) and node.value.id == own:
        family = graph_state.family(scene, owner.key)
        return bool(classes & family) or (_ANY in classes and scene.is_module_class(owner))
    for atom in scene.kind(node.value):
        if atom.kind in _OPEN:
            return True
        known = "::" in atom.name and atom.kind in ("Module", "Object", "class")
        if known and (_ANY in classes or classes & graph_state.family(scene, atom.name)):
            return True
    return False


def _global_bound(scene: Scene, node: ast.Name, reads: frozenset[tuple[str, str]]) -> bool:
    function = scene.function(node)
    if function is not None:
        return node.id in function.globals and (node.id, _scope(function, node.id)) in reads
    if not _is_global(scene, node, reads):
        return False
    again = [n for n in scene.file.nodes if isinstance(n, ast.Name) and n.id == node.id
             and not isinstance(n.ctx, ast.Load) and scene.function(n) is None]  # fmt: skip
    return len(again) > 1 and called_before(scene, node, None)


def _is_global(scene: Scene, node: ast.Name, reads: frozenset[tuple[str, str]]) -> bool:
    function: Function | None = scene.function(node)
    while function is not None:
        if node.id in function.locals - function.globals:
            return False
        function = function.parent
    return (node.id, scene.file.path) in reads and scene.owner(node) is None


def _is_hook(scene: Scene, node: ast.Call) -> bool:
    """``net.register_forward_hook(f)``, ``handle.remove()``"""
    if not isinstance(node.func, ast.Attribute):
        return False
    name = node.func.attr
    if name.startswith("register_") and name.endswith("hook"):
        return any(a.kind in ("Module", "unknown") for a in scene.kind(node.func.value))
    hooks = (n for n in scene.inference.program.calls if n.startswith("register_"))
    given = node.args or node.keywords
    return name == "remove" and not given and any(n.endswith("hook") for n in hooks)


# -- whether something may have been compiled before --------------------------------------------


def called_before(scene: Scene, node: ast.AST, receiver: ast.expr | None) -> bool:
    """Return whether a call of a Module may come before a change.

    ``receiver``: the object that is changed; where it is a new object of a local variable, only
    what is done with that counts. None for globals.
    """
    unit: ast.AST = scene.source.tree
    around = scene.parent(node)
    while around is not None:
        if isinstance(around, (ast.FunctionDef, ast.AsyncFunctionDef)):
            unit = around
            break
        around = scene.parent(around)
    root = graph_silent.root(receiver) if receiver is not None else None
    name = root.id if isinstance(root, ast.Name) else ""
    local = False
    if not isinstance(unit, ast.Module):
        function = scene.file.functions[id(unit)]
        local = name in function.locals - {p.arg for p in all_parameters(function.node.args)}
        if not local:
            return True
    fresh = bool(name) and _is_made(scene, node, name)
    facts = scene.facts
    return any(
        (facts.carries(name, call, node) if fresh else facts.may_follow(call, node))
        for call in running(scene, unit, name if local else "")
    )


def _is_made(scene: Scene, node: ast.AST, name: str) -> bool:
    """Return whether a variable has nothing at a place but what a call has made: ``net = Net()``"""
    reach = scene.facts.reach_before(name, node)
    places = [scene.parent(b.place) for b in reach.bindings]
    return bool(places) and not reach.outside and all(
        isinstance(p, ast.Assign) and isinstance(p.value, ast.Call) for p in places
    )  # fmt: skip


def running(scene: Scene, unit: ast.AST, name: str) -> Iterator[ast.Call]:
    """Yield the calls of a unit that may run a Module: the one of this name, or any."""
    for node in within(unit):
        if not isinstance(node, ast.Call):
            continue
        func = node.func
        if isinstance(func, ast.Attribute) and func.attr in _QUIET:
            continue
        kinds = scene.kind(func)
        if kinds and all(
            a.kind in ("builtin", "class", "foreign", "ref")
            or (a.kind == "method" and "::" not in a.name)
            for a in kinds
        ):
            continue
        if not name or any(isinstance(n, ast.Name) and n.id == name for n in within(node)):
            point = scene.facts.point(node)
            if point is not None and point[0].scope.unit is unit:
                yield node
