"""Find what graph mode compiles to something else without a word, and stop the compiler there.

A stop is ``assert is_pynative(), "torch2ms GRF612 ..."``: it raises when the statement is compiled,
and passes in PyNative, where the code is right. So it may be where nobody knows whether the code is
ever compiled. A call of a function that raises would be no stop: in a function that holds a lambda,
the compiler drops what is called for its effect alone.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from migrate.analysis.program import Function
from migrate.analysis.types.inference import Inference
from migrate.analysis.types.kinds import is_all, ordered
from migrate.records.outcomes import Edit, Outcome, Part
from migrate.rules import items
from migrate.rules.alias_walk import findings
from migrate.rules.called_from import callers, sites_of
from migrate.rules.callers import can_change_object, fate
from migrate.rules.graph import containers, control, late, methods, scope, single
from migrate.rules.graph.scope import Findings, Found, Silent
from migrate.rules.kept_memory import receives_buffer
from migrate.rules.torch_sharing import is_written
from migrate.rules.written import is_chain
from migrate.sites.scene import Scene, once
from migrate.syntax.lines import begins_line
from migrate.syntax.trees import all_names, all_parameters

CODES = frozenset(
    "GRF605 GRF608 GRF609 GRF610 GRF611 GRF612 GRF613 GRF614 GRF616 GRF617 GRF618 GRF619"
    " GRF620 GRF621 GRF622 GRF623".split()
)
_OF_LISTS = frozenset(("append", "appendleft", "extend", "insert"))
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_WITH_WEIGHTS = ("Linear", "Bilinear", "Conv", "Embedding", "RNN", "LSTM", "GRU", "Lazy",
                 "MultiheadAttention", "Transformer")  # fmt: skip
_DRAWN = ("random.", "numpy.random.", "secrets.", "uuid.", "time.time", "time.perf_counter",
          "time.monotonic", "time.process_time", "time.thread_time", "datetime.datetime.now",
          "datetime.datetime.utcnow", "datetime.date.today")  # fmt: skip


def flags(scene: Scene) -> Iterator[Silent]:
    """Yield what compiled code of the file says that graph mode passes over."""
    own = scope.nodes(scene)
    yield from _lent(scene)
    yield from _kept_results(scene)
    if not own:
        return
    yield from methods.silent(scene)
    yield from items.lost(scene, own)
    yield from items.masked(scene, own)
    yield from scope.found(scene, FINDINGS)
    yield from single.flags(scene)
    yield from _applied(scene)
    for _, inside in containers.own_nodes(scene):
        yield from _late(scene, inside)
    yield from containers.flags(scene)


def _applied(scene: Scene) -> Iterator[Silent]:
    """Yield calls of an autograd Function that stays one."""
    for call in scope.nodes(scene, ast.Call):
        assert isinstance(call, ast.Call)
        targets = (scene.inference.function_of(a.name) for a in scene.kind(call.func))
        if any(t and scope.stays_function(scene.inference, t, call) for t in targets):
            why = "graph mode has no Function with a ctx: it is PyNative's alone"
            step = "write a Cell with construct and bprop"
            yield Silent(call, ("GRF623", ast.unparse(call.func), why, step))


def _lent(scene: Scene) -> Iterator[Silent]:
    """Yield writes into what callers pass that are not seen: right for the object in PyNative."""
    for node in (*scene.file.of(ast.Call), *scene.file.of(ast.AugAssign)):
        above = scene.parent(scene.parent(node) or node)
        if isinstance(above, ast.Call) and is_chain(scene, above):
            continue  # one statement, which is said once
        if can_change_object(scene, node) and fate(scene, node).lent:
            why = "a graph changes a value of its own, and the caller's tensor stays as it was"
            text = ast.unparse(node.func if isinstance(node, ast.Call) else node)
            yield Silent(node, ("GRF622", text, why, "return the new tensor"))
    for place in scene.file.of(ast.Subscript):
        function, held = scene.function(place), place.value
        if not isinstance(place.ctx, ast.Store) or not isinstance(held, ast.Name):
            continue
        if function is None or held.id in function.stores:
            continue
        tensor = "Tensor" in scene.kind_names(held)
        if by := containers.read_by_caller(scene, function, held.id) if tensor else "":
            why = f"a graph sets the part in a value of its own, and {by} stays as it was"
            step = "return the tensor and bind it where the function is called"
            yield Silent(place, ("GRF622", ast.unparse(place), why, step))
        elif receives_buffer(scene, function, held.id):
            why = "a graph sets the part in a value of its own, and the buffer stays as it was"
            step = "set the part in the module that holds the buffer"
            yield Silent(place, ("GRF622", ast.unparse(place), why, step))


def _kept_results(scene: Scene) -> Iterator[Silent]:
    """Yield writes into what a function with ``lru_cache`` gave: a graph makes it anew."""
    keys = _remembering(scene.inference)
    for function in (f for f in _asking(scene.inference).get(scene.file.path, ()) if keys):
        found = findings(scene, function)
        writes = [by for path, some in found.outside.items() if path[0] in keys for by in some]
        for node in scene.file.nodes if writes else ():
            if id(node) in writes:
                why = "a graph calls the function anew, and what it gave stays as it was"
                step = "change a clone() of it"
                yield Silent(node, ("GRF622", ast.unparse(node), why, step))


@once
def _remembering(inference: Inference) -> frozenset[str]:
    """Return the keys of the functions with ``lru_cache``."""
    functions = inference.program.functions
    return frozenset(
        k for k, f in functions.items() if any(map(f.decorated, ("lru_cache", "cache")))
    )


@once
def _asking(inference: Inference) -> dict[str, list[Function | None]]:
    """Return by file who may hold what such functions gave: those that lead to a call of one."""
    found: dict[str, list[Function | None]] = {}
    functions = inference.program.functions
    for function in map(functions.__getitem__, sorted(callers(inference, _remembering(inference)))):
        found.setdefault(function.path, []).append(function)
        for file, _, caller in sites_of(inference, function):
            if caller is None and None not in found.setdefault(file.path, []):
                found[file.path].append(None)
    return found


def stop(scene: Scene, node: ast.AST, found: Found, before: ast.stmt | None) -> Iterator[Edit]:
    """Yield the edit that puts ``assert is_pynative(), ...`` before what must not be compiled."""
    code, name, reason, _ = found
    asked, root = scene.spelling.local("helpers.is_pynative")
    needs, message = {root}, f"torch2ms {code} {name}: {reason}"
    statement = scene.statement(node)
    trains = code == "GRF618" and late.asked_of(scene).trains(statement)
    unless = _not_reached(scene, node, statement) if before is None else ""
    check = f"assert {unless}{asked}(){' or not self.training' * trains}, {message!r}"
    around = scene.parent(node) if before is None else None
    while around is not None and not isinstance(around, _FUNCTIONS):
        around = scene.parent(around)
    if isinstance(around, ast.Lambda):
        refuse, other = scene.spelling.local("helpers.refuse")
        needs.add(other)
        otherwise = f") if {asked}() else {refuse}({message!r})"
        made: Edit = scope.around(scene, around.body, "(", otherwise)
    else:
        statement = before or scene.statement(node)
        while not begins_line(scene.source, statement):
            outer = scene.parent(statement)
            if not isinstance(outer, ast.If) or statement not in outer.orelse:
                break  # behind a colon or a semicolon
            statement = outer
        made = scope.part(scene, statement, Part.BEFORE, check)
    yield replace(made, outcome=Outcome.HELPER, needs=frozenset(needs))


def _not_reached(scene: Scene, node: ast.AST, statement: ast.stmt) -> str:
    """Return what is true where ``a if b else c`` does not evaluate a node: ``not b or ``.

    Only what a name or an attribute of one says, which is compiled as what it is.
    """
    found = ""
    while node is not statement:
        around = scene.parent(node)
        if around is None or isinstance(around, _FUNCTIONS):
            return ""
        if isinstance(around, ast.IfExp) and node is not around.test:
            test = around.test
            held = test.value if isinstance(test, ast.Attribute) else test
            stored = {n.id for n in ast.walk(statement) if isinstance(n, ast.Name)
                      and isinstance(n.ctx, ast.Store)}  # fmt: skip
            number = is_all(scene.kind(test), "bool", "int", "None", "str")
            if isinstance(held, ast.Name) and held.id not in stored and number:
                text = ast.unparse(test)
                found += f"{text} or " if node is around.orelse else f"not {text} or "
        node = around
    return found


# -- what is found out once, when it is compiled ------------------------------------------------


def _drawn(scene: Scene, node: ast.Call) -> Found | None:
    """Return what is said of random numbers and times of Python: graph mode asks for them once."""
    kind = scene.kind(node.func)
    drawn = [a for a in ordered(kind) if a.kind == "foreign" and a.name.startswith(_DRAWN)]
    if isinstance(node.func, ast.Attribute):  # a generator: RandomState(0), random.Random(0)
        held = ordered(scene.kind(node.func.value))
        drawn += [a for a in held if a.kind == "instance" and a.name.startswith(_DRAWN)]
    made = [a.name for a in scene.kind(node) if a.kind == "Module"]
    new = bool(made) and any(a.kind in ("class", "ref") for a in kind)
    if not (drawn or new) or scope.only_tells(scene, node):
        return None
    if drawn:
        why = "graph mode asks once, when it compiles, and goes on with that value"
        return "GRF613", drawn[0].name, why, "draw it with torch, or pass it in"
    if any(draws(scene, name, frozenset()) for name in made):
        why = "graph mode draws its weights once, torch at each call"
        return "GRF613", ast.unparse(node.func), why, "make it in __init__"
    return None


def draws(scene: Scene, name: str, seen: frozenset[str]) -> bool:
    """Return whether an object of a class begins with weights that are drawn at random."""
    if "::" not in name:
        last = name.rpartition(".")[2]
        return name.startswith("torch.nn.") and last.startswith(_WITH_WEIGHTS)
    if name in seen:
        return False
    inference, seen = scene.inference, seen | {name}
    made = inference.program.classes[name].methods.get("__init__")
    kinds = [inference.kind(n.func) for n in (made.nodes if made else ())
             if isinstance(n, ast.Call)]  # fmt: skip
    atoms = [a for kind in kinds for a in kind if a.kind in ("class", "ref")]
    drawn = ("torch.rand", "torch.normal", "torch.nn.init.")
    return any(a.name.startswith(drawn) or draws(scene, a.name, seen) for a in atoms) or any(
        draws(scene, base, seen) for base in inference.torch_bases(name)
    )


def _in_loop(scene: Scene, node: ast.Lambda) -> Silent | None:
    """Return what is said of a lambda in the body of a ``for``: graph mode takes what it returns
    for the end of the function, which then gives nothing. A ``def`` is compiled as it should be."""
    loop: ast.stmt | None = None
    child, around = node, scene.parent(node)
    while around is not None and not isinstance(around, (ast.FunctionDef, ast.Lambda)):
        if isinstance(around, ast.For) and child is not around.iter:
            loop = around
        child, around = around, scene.parent(around)  # type: ignore[assignment]
    if loop is None or _is_mapped(scene, node):
        return None
    why = "graph mode takes a lambda in a for loop for the end: the function gives nothing"
    return Silent(node, ("GRF614", "lambda", why, "write a def, or put it before it"), loop)


def _is_mapped(scene: Scene, node: ast.Lambda) -> bool:
    """Return whether the lambda becomes an element of a comprehension: ``map(lambda a: b, c)``."""
    call = scene.parent(node)
    return isinstance(call, ast.Call) and scope.builtin(scene, call.func, "map")


# -- functions that see a variable change -------------------------------------------------------


def _late(scene: Scene, own: list[ast.AST]) -> Iterator[Silent]:
    """Yield inner functions that read a variable which is bound anew before they are called."""
    inner = [n for n in own if isinstance(n, (*_FUNCTIONS, ast.GeneratorExp))]
    for node in inner:
        made = scene.file.functions.get(id(node))
        if isinstance(node, ast.GeneratorExp):  # what it goes through first is evaluated at once
            later = [node.elt, *node.generators[0].ifs, *node.generators[1:]]
            free = set().union(*map(all_names, later))
            free -= set().union(*(all_names(g.target) for g in node.generators))
        elif made is not None:
            mine = made.locals | made.inner | {a.arg for a in all_parameters(node.args)}
            body = node.body if isinstance(node, ast.Lambda) else node
            free = all_names(body) - mine - {made.name}
        else:
            continue
        looped = _of_comprehension(scene, node)
        late = sorted(free & looped)
        if not late:
            late = [v for v in sorted(free) if _bound_anew(scene, own, node, v)]
        if late:
            other = "generator" if isinstance(node, ast.GeneratorExp) else "lambda"
            name = getattr(node, "name", other)
            why = f"it reads {late[0]}, which is bound anew later: graph mode keeps the first value"
            yield Silent(node, ("GRF614", name, why, f"pass {late[0]} as an argument"))


def _of_comprehension(scene: Scene, node: ast.AST) -> set[str]:
    """Return the variables of comprehensions around a function that is kept, not called, there."""
    found: set[str] = set()
    around = scene.parent(node)
    if isinstance(around, ast.Call):
        return found  # called, or used by what is called
    while isinstance(around, ast.expr) and not isinstance(around, _FUNCTIONS):
        for part in getattr(around, "generators", ()):
            found |= all_names(part.target)
        around = scene.parent(around)
    return found


def _bound_anew(scene: Scene, own: list[ast.AST], node: ast.AST, variable: str) -> bool:
    """Return whether a variable may be bound anew between a definition and a use of it."""
    name = getattr(node, "name", "") or _target(scene, node)
    if not name and not _is_kept(scene, node):
        return False
    uses = [n for n in own if isinstance(n, ast.Name) and n.id == name
            and isinstance(n.ctx, ast.Load)]  # fmt: skip
    return any(
        isinstance(n, ast.Name)
        and n.id == variable
        and (not isinstance(n.ctx, ast.Load) or _is_changed(scene, n))
        and scene.facts.may_follow(node, n)
        and (not name or any(scene.facts.carries(name, n, use) for use in uses))
        for n in own
    )


def _is_changed(scene: Scene, node: ast.Name) -> bool:
    """``y`` of ``y.mul_(2)`` and ``y[i] = v``, for which a graph binds it anew."""
    parent = scene.parent(node)
    if isinstance(parent, ast.Subscript):
        return parent.value is node and not isinstance(parent.ctx, ast.Load)
    call = scene.parent(parent) if isinstance(parent, ast.Attribute) else None
    called = isinstance(call, ast.Call) and call.func is parent
    return called and isinstance(parent, ast.Attribute) and is_written(parent.attr)


def _target(scene: Scene, node: ast.AST) -> str:
    """``f`` of ``f = lambda: ...``"""
    parent = scene.parent(node)
    if isinstance(parent, ast.Assign) and parent.value is node and len(parent.targets) == 1:
        return getattr(parent.targets[0], "id", "")
    return ""


def _is_kept(scene: Scene, node: ast.AST) -> bool:
    """Return whether a lambda is put into a container or onto an object."""
    parent = scene.parent(node)
    if isinstance(parent, ast.Call):
        return getattr(parent.func, "attr", "") in _OF_LISTS
    return isinstance(parent, (ast.List, ast.Tuple, ast.Dict, ast.Assign))


_OWN: Findings = {ast.Call: (_drawn,), ast.Lambda: (_in_loop,)}
FINDINGS: Findings = scope.merged(_OWN, late.FINDINGS, containers.FINDINGS, control.FINDINGS)
