"""Find what graph mode compiles to something else without a word, and stop the compiler there.

A stop is ``assert is_pynative(), "torch2ms GRF612 ..."``: it raises when the statement is compiled,
and passes in PyNative, where the code is right. So it may stand where nobody knows whether the code
is ever compiled. A call of a function that raises would be no stop: in a function that holds a
lambda, the compiler drops what is called for its effect alone.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from migrate.outcomes import Edit, Outcome, Span
from migrate.program import Function
from migrate.receivers.kinds import ordered
from migrate.rules import (
    graph_late,
    graph_methods,
    graph_scope,
    graph_single,
    graph_wrappers,
    items,
)
from migrate.rules.dedent import first_start
from migrate.rules.graph_scope import Found, Silent
from migrate.scene import Scene
from migrate.syntax import all_parameters, within

CODES = frozenset(
    "GRF605 GRF608 GRF609 GRF610 GRF611 GRF612 GRF613 GRF614 GRF616 GRF617 GRF618 GRF619"
    " GRF620".split()
)
_CHANGING = frozenset(
    "append appendleft extend insert pop popitem remove clear reverse sort update setdefault add"
    " discard".split()
)
_OF_LISTS = frozenset(("append", "appendleft", "extend", "insert"))
_SIZING = _OF_LISTS | {"pop", "remove", "clear"}
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_DISPLAYS = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)
_MAKERS = frozenset("list dict set defaultdict OrderedDict deque Counter".split())
_WITH_WEIGHTS = ("Linear", "Bilinear", "Conv", "Embedding", "RNN", "LSTM", "GRU", "Lazy",
                 "MultiheadAttention", "Transformer")  # fmt: skip
_DRAWN = ("random.", "numpy.random.", "secrets.", "uuid.", "time.time", "time.perf_counter",
          "time.monotonic", "time.process_time", "time.thread_time", "datetime.datetime.now",
          "datetime.datetime.utcnow", "datetime.date.today")  # fmt: skip


def flags(scene: Scene) -> Iterator[Silent]:
    """Yield what compiled code of the file says that graph mode passes over."""
    own = graph_scope.nodes(scene)
    if not own:
        return
    yield from graph_wrappers.flags(scene)
    yield from graph_methods.flags(scene)
    yield from _drawn(scene, own)
    yield from items.lost(scene, own)
    yield from items.masked(scene, own)
    yield from graph_late.flags(scene, own)
    yield from graph_single.flags(scene)
    yield from _in_loops(scene, own)
    alive = {id(n) for n in own}
    for function in graph_scope.compiled_here(scene):
        inside = [n for n in _own(scene, function) if id(n) in alive]
        yield from _outer(scene, function, inside)
        yield from _late(scene, function, inside)


def _own(scene: Scene, function: Function) -> list[ast.AST]:
    """Return the nodes of a function without those of the functions in it."""
    return [n for n in function.nodes if id(n) in function.own]


def _around(scene: Scene, node: ast.AST) -> ast.AST | None:
    around = scene.parent(node)
    while around is not None and not isinstance(around, _FUNCTIONS):
        around = scene.parent(around)
    return around


# -- where the compiler stops -------------------------------------------------------------------


def stop(scene: Scene, node: ast.AST, found: Found, before: ast.stmt | None) -> Iterator[Edit]:
    """Yield the edit that puts ``assert is_pynative(), ...`` before what must not be compiled."""
    code, name, reason, _ = found
    asked, root = scene.spelling.local("helpers.is_pynative")
    needs, message = {root}, f"torch2ms {code} {name}: {reason}"
    check = f"assert {asked}(), {message!r}"
    around = _around(scene, node) if before is None else None
    source = scene.source
    if isinstance(around, ast.Lambda):
        span = source.span(around.body)
        refuse, other = scene.spelling.local("helpers.refuse")
        needs.add(other)
        behind = f") if {asked}() else {refuse}({message!r})"
        parts: tuple[tuple[int, str], ...] = ((span.start, "("), (span.end, behind))
    else:
        statement = before or scene.statement(node)
        while not graph_scope.begins_line(scene, statement):
            outer = scene.parent(statement)
            if not isinstance(outer, ast.If) or statement not in outer.orelse:
                break  # behind a colon or a semicolon
            statement = outer
        start = first_start(scene, statement)
        if graph_scope.begins_line(scene, statement):
            line = source.line_start(source.line_of(start))
            indent = source.data[line:start].decode()
            parts = ((start, f"{check}{source.newline}{indent}"),)
        else:
            parts = ((start, f"{check}; "),)
    for place, put in parts:
        made = graph_scope.edit(scene, node, Span(place, place), put)
        yield replace(made, outcome=Outcome.HELPER, needs=frozenset(needs))


# -- what lives longer than a call --------------------------------------------------------------


def _outer(scene: Scene, function: Function, own: list[ast.AST]) -> Iterator[Silent]:
    """Yield changes of what is there before and after the call: graph mode keeps none of them."""
    defaults = _mutable_defaults(function)
    for node in own:
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            if node.id in function.globals and _is_global(function, node.id):
                why = "graph mode does not bind it: code outside keeps the old value"
                yield Silent(node, ("GRF612", f"global {node.id}", why, "return the value"))
            continue
        held = changed(scene, node)
        if held is None:
            continue
        base = root(held)
        if isinstance(base, ast.Name):
            if base.id in defaults and held is base:
                why = "graph mode makes the default anew at each call"
                yield Silent(node, ("GRF612", base.id, why, "keep it where it is made"))
            elif _is_global(function, base.id) and _contains(scene, node, held):
                why = "graph mode changes a copy: code outside keeps the old contents"
                yield Silent(node, ("GRF612", base.id, why, "return what is new"))
            elif _member(held) is not None and _contains(scene, node, held):
                yield from _of_object(scene, node, held)
            elif _contains(scene, node, held):
                if _is_looped(scene, node, base.id):
                    why = "graph mode goes over what it held before the loop"
                    yield Silent(node, ("GRF609", f"{base.id} is changed", why, "build another"))
                owner = _alias(scene, function, own, base.id)
                if owner:
                    why = f"graph mode changes a copy: {owner} keeps the old contents"
                    yield Silent(node, ("GRF612", base.id, why, "return what is new"))
        elif _contains(scene, node, held):
            yield from _of_object(scene, node, held)


def _of_object(scene: Scene, node: ast.AST, held: ast.expr) -> Iterator[Silent]:
    """``self.losses.append(x)``; what is stored under a key of it is refused by the compiler."""
    if not isinstance(node, ast.Call):
        return
    why = "graph mode changes a copy: the object keeps the old contents"
    yield Silent(node, ("GRF612", ast.unparse(held), why, "return it beside the result"))


def _is_looped(scene: Scene, node: ast.AST, name: str) -> bool:
    """Return whether a list grows or shrinks in a loop over itself."""
    sized = isinstance(node, ast.Call) and getattr(node.func, "attr", "") in _SIZING
    around = scene.parent(node) if sized else None
    while around is not None and not isinstance(around, _FUNCTIONS):
        if isinstance(around, ast.For) and getattr(around.iter, "id", "") == name:
            return True
        around = scene.parent(around)
    return False


def _alias(scene: Scene, function: Function, own: list[ast.AST], name: str) -> str:
    """Return what outlives the call and is bound to a local variable: ``items = self.items``."""
    for bound in own:
        if not isinstance(bound, ast.Name) or bound.id != name or isinstance(bound.ctx, ast.Load):
            continue
        parent = scene.parent(bound)
        value: ast.expr | None = None
        if isinstance(parent, (ast.Assign, ast.AnnAssign)):
            value = parent.value
        elif isinstance(parent, ast.For):
            value = parent.iter
        while isinstance(value, ast.Subscript):
            value = value.value
        outer = isinstance(value, ast.Name) and _is_global(function, value.id)
        if value is not None and (outer or isinstance(value, ast.Attribute)):
            return ast.unparse(value)
    return ""


def _mutable_defaults(function: Function) -> set[str]:
    """Return the parameters whose default is a list, dict or set."""
    args = function.node.args
    plain = [*args.posonlyargs, *args.args]
    pairs: list[tuple[ast.arg, ast.expr | None]] = []
    pairs += zip(plain[len(plain) - len(args.defaults) :], args.defaults, strict=True)
    pairs += zip(args.kwonlyargs, args.kw_defaults, strict=True)
    return {a.arg for a, d in pairs if isinstance(d, _DISPLAYS) or _makes(d)}


def _makes(node: ast.expr | None) -> bool:
    func = node.func if isinstance(node, ast.Call) else None
    return getattr(func, "attr", getattr(func, "id", "")) in _MAKERS


def changed(scene: Scene, node: ast.AST) -> ast.expr | None:
    """Return the expression whose contents a node changes."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.value if node.func.attr in _CHANGING else None
    if isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
        return node.value
    if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Attribute):
        return None  # an attribute that is bound anew is refused
    return None


def root(node: ast.expr) -> ast.expr:
    """Return what a chain of attributes and items begins with."""
    while isinstance(node, (ast.Subscript, ast.Attribute)):
        node = node.value
    return node


def _member(node: ast.expr) -> ast.Attribute | None:
    while isinstance(node, ast.Subscript):
        node = node.value
    return node if isinstance(node, ast.Attribute) else None


def _is_global(function: Function, name: str) -> bool:
    around: Function | None = function
    while around is not None:
        if name in around.globals and around.parent is None:
            return True
        given = {a.arg for a in all_parameters(around.node.args)}
        if name in (around.locals | given | around.inner) - around.globals:
            return False
        around = around.parent
    return True


def _contains(scene: Scene, node: ast.AST, held: ast.expr) -> bool:
    """Return whether it may be a list, dict or set of Python and, as far as is known, no more."""
    kinds = {atom.kind for atom in scene.kind(held)} - {"None"}
    if kinds <= {"unknown"}:
        return isinstance(node, ast.Call) and getattr(node.func, "attr", "") in _OF_LISTS
    return kinds <= {"list", "dict", "set", "unknown"}


# -- what is found out once, when it is compiled ------------------------------------------------


def _drawn(scene: Scene, own: tuple[ast.AST, ...]) -> Iterator[Silent]:
    """Yield random numbers and times of Python: graph mode asks for them once."""
    for node in own:
        if not isinstance(node, ast.Call) or graph_scope.only_tells(scene, node):
            continue
        kind = scene.kind(node.func)
        for atom in ordered(kind):
            if atom.kind == "foreign" and atom.name.startswith(_DRAWN):
                why = "graph mode asks once, when it compiles, and goes on with that value"
                yield Silent(node, ("GRF613", atom.name, why, "draw it with torch, or pass it in"))
                break
        made = [a.name for a in scene.kind(node) if a.kind == "Module"]
        new = any(a.kind in ("class", "ref") for a in kind)
        if new and any(draws(scene, name, frozenset()) for name in made):
            why = "graph mode draws its weights once, torch at each call"
            yield Silent(node, ("GRF613", ast.unparse(node.func), why, "make it in __init__"))


def draws(scene: Scene, name: str, seen: frozenset[str]) -> bool:
    """Return whether an object of a class begins with weights that are drawn at random."""
    if "::" not in name:
        last = name.rpartition(".")[2]
        return name.startswith("torch.nn.") and last.startswith(_WITH_WEIGHTS)
    if name in seen:
        return False
    inference, seen = scene.inference, seen | {name}
    made = inference.program.classes[name].methods.get("__init__")
    kinds = [inference.kinds.get(id(n.func), frozenset()) for n in (made.nodes if made else ())
             if isinstance(n, ast.Call)]  # fmt: skip
    atoms = [a for kind in kinds for a in kind if a.kind in ("class", "ref")]
    drawn = ("torch.rand", "torch.normal", "torch.nn.init.")
    return any(a.name.startswith(drawn) or draws(scene, a.name, seen) for a in atoms) or any(
        draws(scene, base, seen) for base in inference.torch_bases(name)
    )


def _in_loops(scene: Scene, own: tuple[ast.AST, ...]) -> Iterator[Silent]:
    """Yield the lambdas in the body of a ``for``: graph mode takes what they return for the end of
    the function, which then gives nothing. A ``def`` is compiled as it should be."""
    for node in own:
        if not isinstance(node, ast.Lambda) or _is_mapped(scene, node):
            continue
        loop: ast.stmt | None = None
        child, around = node, scene.parent(node)
        while around is not None and not isinstance(around, (ast.FunctionDef, ast.Lambda)):
            if isinstance(around, ast.For) and child is not around.iter:
                loop = around
            child, around = around, scene.parent(around)  # type: ignore[assignment]
        if loop is not None:
            why = "graph mode takes a lambda in a for loop for the end: the function gives nothing"
            yield Silent(node, ("GRF614", "lambda", why, "write a def, or put it before it"), loop)


def _is_mapped(scene: Scene, node: ast.Lambda) -> bool:
    """Return whether the lambda becomes an element of a comprehension: ``map(lambda a: b, c)``."""
    call = scene.parent(node)
    return isinstance(call, ast.Call) and graph_scope.builtin(scene, call.func, "map")


# -- functions that see a variable change -------------------------------------------------------


def _late(scene: Scene, function: Function, own: list[ast.AST]) -> Iterator[Silent]:
    """Yield inner functions that read a variable which is bound anew before they are called."""
    inner = [n for n in own if isinstance(n, _FUNCTIONS)]
    for node in inner:
        made = scene.file.functions.get(id(node))
        if made is None:
            continue
        mine = made.locals | made.inner | {a.arg for a in all_parameters(node.args)}
        free = {n.id for n in within(node.body if isinstance(node, ast.Lambda) else node)
                if isinstance(n, ast.Name)} - mine - {made.name}  # fmt: skip
        looped = _of_comprehension(scene, node)
        late = sorted(free & looped)
        if not late:
            late = [v for v in sorted(free) if _bound_anew(scene, own, node, v)]
        if late:
            name = getattr(node, "name", "lambda")
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
            found |= {n.id for n in within(part.target) if isinstance(n, ast.Name)}
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
        and not isinstance(n.ctx, ast.Load)
        and scene.facts.may_follow(node, n)
        and (not name or any(scene.facts.carries(name, n, use) for use in uses))
        for n in own
    )


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
