"""Find the lists and dicts that somebody else reads after compiled code has changed them.

Graph mode has values, no objects: ``b = a; b.append(x)`` makes a new list that ``b`` alone has, and
``a`` stays as it was, without a word. The same holds for a list of the caller, of a function
around, of the module or of an object, for mutable defaults, and for the variable of a loop.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from migrate.analysis.program import Function
from migrate.analysis.types.kinds import ARRAY, CONTEXT
from migrate.rules.called_from import call_sites, passed, scene_of
from migrate.rules.graph import scope, state
from migrate.rules.graph.scope import Findings, Found, Silent, compiled_here, nodes
from migrate.rules.record_classes import records
from migrate.sites import module_members
from migrate.sites.scene import Scene
from migrate.syntax.trees import all_names, all_parameters, defaults, last_name

_CHANGING = frozenset(
    "append appendleft extend insert pop popitem remove clear reverse sort update setdefault add"
    " discard".split()
)
_OF_LISTS = frozenset(("append", "appendleft", "extend", "insert"))
_SIZING = _OF_LISTS | {"pop", "remove", "clear"}
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_DISPLAYS = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)
_CONTAINERS = {"list", "dict", "set"}
_HOLDING = (ast.List, ast.Tuple, ast.Dict, ast.Set, ast.BoolOp, ast.Starred, ast.NamedExpr)
_ITERATORS = ("zip", "map", "filter", "enumerate", "reversed", "iter")
_APART = frozenset(("data", "grad", "requires_grad", "training"))  # they have rules of their own
_MAKERS = frozenset("list dict set defaultdict OrderedDict deque Counter".split())


def own_nodes(scene: Scene) -> Iterator[tuple[Function, list[ast.AST]]]:
    """Yield the compiled functions of a file with the living nodes that are no inner function's."""
    alive = {id(n) for n in nodes(scene)}
    for function in compiled_here(scene) if alive else ():
        yield function, [n for n in function.nodes if id(n) in function.own and id(n) in alive]


def flags(scene: Scene) -> Iterator[Silent]:
    """Yield the changes of what is there before and after the call, or has another name."""
    for function, own in own_nodes(scene):
        yield from _outer(scene, function, own)


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
        base = scope.root(held)
        if isinstance(base, ast.Name):
            if base.id in defaults and held is base:
                why = "graph mode makes the default anew at each call"
                yield Silent(node, ("GRF612", base.id, why, "keep it where it is made"))
            elif _is_global(function, base.id) and _contains(scene, node, held):
                why = "graph mode changes a copy: code outside keeps the old contents"
                yield Silent(node, ("GRF612", base.id, why, "return what is new"))
            elif _member(held) is not None and _contains(scene, node, held):
                yield from _of_object(node, held)
            elif _contains(scene, node, held):
                if _is_looped(scene, node, base.id):
                    why = "graph mode goes over what it held before the loop"
                    yield Silent(node, ("GRF609", f"{base.id} is changed", why, "build another"))
                owner = _alias(scene, function, own, base.id)
                if owner:
                    why = f"graph mode changes a copy: {owner} keeps the old contents"
                    yield Silent(node, ("GRF612", base.id, why, "return what is new"))
        elif _contains(scene, node, held):
            yield from _of_object(node, held)


def members(scene: Scene, node: ast.Attribute) -> Silent | None:
    """``self.config.steps += 1``, ``Net.total = 0``: what others have is not bound in a graph."""
    if isinstance(node.ctx, ast.Load) or node.attr in _APART:
        return None
    function, kinds = scene.function(node), scene.kind(node.value)
    if kinds == CONTEXT:
        return None  # a Cell has it as a variable, and a Function that stays is in no graph
    if not kinds or not all(a.kind in ("Object", "Module", "class", "instance") for a in kinds):
        return None
    first = function.parameters[0].arg if function is not None and function.parameters else ""
    own = function.owner if function is not None else None
    if own is not None and getattr(node.value, "id", "") == first and scene.is_module_class(own):
        return None  # state.kept
    known = records(scene.inference)
    if any(a.name in known or _registers(scene, a.name, node.attr) for a in kinds):
        return None
    why = "graph mode does not bind it: code outside keeps the old value"
    return Silent(node, ("GRF612", ast.unparse(node), why, "return the value"))


def _registers(scene: Scene, key: str, name: str) -> bool:
    """Return whether a class has a Parameter or buffer of a name."""
    owner = scene.inference.program.classes.get(key)
    bases = module_members.family(scene, owner.key) if owner is not None else ()
    return any(state.is_declared(one, name) for one in bases)


def used_up(scene: Scene, node: ast.Assign) -> Silent | None:
    """``pairs = zip(a, b)`` that is gone through twice: in graph mode it is a list."""
    value, target = node.value, node.targets[0]
    made = isinstance(value, ast.GeneratorExp) or (
        isinstance(value, ast.Call)
        and any(scope.builtin(scene, value.func, name) for name in _ITERATORS)
    )
    function = scene.function(node)
    if not made or not isinstance(target, ast.Name) or function is None:
        return None
    uses = [n for n in function.of(ast.Name) if n.id == target.id  # type: ignore[attr-defined]
            and any(b.place is target for b in scene.facts.reach(n).bindings)]  # type: ignore[arg-type]  # fmt: skip
    facts = scene.facts
    parents = [scene.parent(n) for n in uses]
    if any(isinstance(p, ast.Call) and scope.builtin(scene, p.func, "next") for p in parents):
        return None  # graph mode has no next
    if not any(
        facts.carries(target.id, one, other)
        or (one is not other and facts.point(one) == facts.point(other))
        for one in uses for other in uses
    ):  # fmt: skip
        return None
    why = "graph mode has a list there, which is not used up by the first who goes through it"
    return Silent(value, ("GRF621", target.id, why, "make it anew, or a list"), node)


def one_item(scene: Scene, node: ast.Assign) -> Silent | None:
    """``rows = [[]] * n``: its items are one list, and n lists in a graph once one is changed."""
    value, target, function = node.value, node.targets[0], scene.function(node)
    if not isinstance(value, ast.BinOp) or not isinstance(value.op, ast.Mult) or function is None:
        return None
    sides = [s for s in (value.left, value.right) if isinstance(s, ast.List)]
    if not any(isinstance(e, _DISPLAYS) for s in sides for e in s.elts):
        return None
    held = [changed(scene, n) for n in function.of(ast.Call, ast.Subscript)]
    name = getattr(target, "id", "")
    if not any(isinstance(h, ast.Subscript) and name in all_names(h) for h in held):
        return None
    why = "its items are one object: graph mode changes one of them alone"
    return Silent(value, ("GRF609", ast.unparse(value), why, "write a comprehension"), node)


def _of_object(node: ast.AST, held: ast.expr) -> Iterator[Silent]:
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
    pairs = defaults(function.node.args)
    return {a.arg for a, d in pairs if isinstance(d, _DISPLAYS) or _makes(d)}


def _makes(node: ast.expr | None) -> bool:
    func = node.func if isinstance(node, ast.Call) else None
    return last_name(func) in _MAKERS


def changed(scene: Scene, node: ast.AST) -> ast.expr | None:
    """Return the expression whose contents a node changes."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.value if node.func.attr in _CHANGING else None
    if isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
        return node.value
    return None


def _member(node: ast.expr) -> ast.Attribute | None:
    while isinstance(node, ast.Subscript):
        node = node.value
    return node if isinstance(node, ast.Attribute) else None


def _is_global(function: Function, name: str) -> bool:
    for around in function.outwards:
        if name in around.globals and around.parent is None:
            return True
        given = {a.arg for a in all_parameters(around.node.args)}
        if name in (around.locals | given | around.inner) - around.globals:
            return False
    return True


def _contains(scene: Scene, node: ast.AST, held: ast.expr) -> bool:
    """Return whether it may be a list, dict or set of Python and, as far as is known, no more."""
    kinds = {atom.kind for atom in scene.kind(held)} - {"None"}
    if kinds <= {"unknown"}:
        return isinstance(node, ast.Call) and getattr(node.func, "attr", "") in _OF_LISTS
    return kinds <= {"list", "dict", "set", "unknown"}


# -- other names --------------------------------------------------------------------------------


def shared(scene: Scene) -> Iterator[Silent]:
    """Yield the changes of a container that is read by another name."""
    for function, own in own_nodes(scene):
        for node, name in _changes(scene, own):
            by = _missed_by(scene, function, own, node, name)
            if by:
                why = f"{by} keeps the old one: graph mode changes a copy, without a word"
                found = ("GRF609", f"{name.id} is changed", why, "return it and bind it anew")
                yield Silent(node, found)


def _changes(scene: Scene, own: list[ast.AST]) -> Iterator[tuple[ast.AST, ast.Name]]:
    """What changes a container, and the variable that it is reached by."""
    for node in own:
        held = node.target if isinstance(node, ast.AugAssign) else changed(scene, node)
        name = _root(held) if held is not None and _contains(scene, node, held) else None
        if name is not None:
            yield node, name


def _root(node: ast.expr) -> ast.Name | None:
    while isinstance(node, ast.Subscript):
        node = node.value
    return node if isinstance(node, ast.Name) else None


# -- who misses them ----------------------------------------------------------------------------


def _missed_by(
    scene: Scene, function: Function, own: list[ast.AST], node: ast.AST, name: ast.Name
) -> str:
    """Who reads the container by another name after the change; "" for nobody."""
    reach = scene.facts.reach(name)
    parameters = [a.arg for a in all_parameters(function.node.args)]
    places = [b.place for b in reach.bindings]
    if name.id in parameters and any(isinstance(p, ast.arg) for p in places):
        by = _caller(scene, function, name.id, _adds(node), frozenset())
        if by:
            return by
    if reach.outside or not any(id(p) in function.own for p in places):
        outer = function.parent is not None and name.id in function.parent.locals
        return f"{function.parent.name}()" if outer and function.parent is not None else ""
    shared = _aliased(scene, places, node) | _holders(scene, own, node, name)
    names = [n for n in own if isinstance(n, ast.Name)]
    for other in sorted(shared - {name.id}):
        if any(n.id == other and _is_later(scene, n, node) for n in names):
            return other
    return ""


def _adds(change: ast.AST) -> bool:
    """Whether a change puts something at the end: what stands in front stays as it was."""
    method = getattr(getattr(change, "func", None), "attr", "")
    return method in ("append", "extend") or isinstance(change, ast.AugAssign)


def _in_front(scene: Scene, read: ast.Name) -> bool:
    """``items[0]``"""
    around = scene.parent(read)
    index = around.slice if isinstance(around, ast.Subscript) and around.value is read else None
    return isinstance(index, ast.Constant) and isinstance(index.value, int)


def _is_later(scene: Scene, read: ast.Name, change: ast.AST) -> bool:
    """Return whether a variable may be read after a change, before it is bound anew."""
    if not isinstance(read.ctx, ast.Load):
        return False
    if scene.facts.point(read) == scene.facts.point(change):  # one after the other, or not at all
        return _place(read) > _place(change) or scene.facts.carries(read.id, change, read)
    return scene.facts.carries(read.id, change, read)


def _aliased(scene: Scene, places: list[ast.AST], change: ast.AST) -> set[str]:
    """Return the variables that the container was taken from and that still have it at a change."""
    found: set[str] = set()
    waiting, seen = list(places), set(map(id, places))
    while waiting:
        for source in _sources(scene, waiting.pop()):
            stored = isinstance(source.ctx, ast.Store)
            bound = [source] if stored else [b.place for b in scene.facts.reach(source).bindings]
            made = {id(place): place for place in bound}
            now = scene.facts.reach_before(source.id, change).bindings
            if any(id(b.place) in made for b in now):
                found.add(source.id)
            waiting += [place for key, place in made.items() if key not in seen]
            seen |= made.keys()
    return found


def _sources(scene: Scene, bound: ast.AST) -> Iterator[ast.Name]:
    """The variables that a binding shares the container with: ``b = a``, ``a = b = []``, loops."""
    around = scene.parent(bound)
    while isinstance(around, (ast.Tuple, ast.List, ast.Starred)):
        around = scene.parent(around)
    values: list[ast.expr] = []
    if isinstance(around, ast.Assign):
        plain = bound in around.targets  # ``a = b = []``; of ``a, b = ...`` each has its own
        values = [around.value, *(t for t in around.targets if plain and t is not bound)]
    elif isinstance(around, (ast.For, ast.comprehension)) and isinstance(bound, ast.Name):
        values = _gone_through(around, bound)
    looped = isinstance(around, (ast.For, ast.comprehension))
    yield from (root for value in values for root in _taken(scene, value, looped))


def _taken(scene: Scene, value: ast.expr, items: bool) -> Iterator[ast.Name]:
    """The variables whose container an expression may be, or hold.

    ``items``: what a display holds is asked for whatever it is, else where it is a container.
    """
    parts: list[ast.expr] = []
    if isinstance(value, ast.Name):
        yield value
    elif isinstance(value, (ast.List, ast.Tuple, ast.Set)):
        parts = [e for e in value.elts if items or scene.kind_names(e) & _CONTAINERS]
    elif isinstance(value, ast.Dict):
        pairs = zip(value.keys, value.values, strict=True)
        parts = [v for k, v in pairs if k and (items or scene.kind_names(v) & _CONTAINERS)]
    elif isinstance(value, ast.IfExp):
        parts = [value.body, value.orelse]
    elif isinstance(value, ast.BoolOp):
        parts = value.values
    elif isinstance(value, (ast.Starred, ast.NamedExpr, ast.Subscript)):
        copied = isinstance(value, ast.Subscript) and isinstance(value.slice, ast.Slice)
        parts = [] if copied else [value.value]
    for part in parts:
        yield from _taken(scene, part, items)


def _gone_through(loop: ast.For | ast.comprehension, bound: ast.Name) -> list[ast.expr]:
    """``rows`` of ``for r in rows``, ``enumerate(rows)``, ``zip(xs, rows)``, ``rows.values()``."""
    over, target = loop.iter, loop.target
    if not isinstance(over, ast.Call):
        return [over]
    if isinstance(over.func, ast.Attribute):
        return [over.func.value, *over.args]
    paired = isinstance(target, ast.Tuple) and len(target.elts) == len(over.args)
    if getattr(over.func, "id", "") == "zip" and paired and bound in target.elts:  # type: ignore[attr-defined]
        return [over.args[target.elts.index(bound)]]  # type: ignore[attr-defined]
    return list(over.args)


def _holders(scene: Scene, own: list[ast.AST], node: ast.AST, name: ast.Name) -> set[str]:
    """The variables that the container was put under, or into, before the change."""
    found = set()
    for read in own:
        if isinstance(read, ast.Name) and read.id == name.id and not _inside(scene, read, node):
            holder = _holder(scene, read)
            if holder and scene.facts.carries(name.id, read, node):
                found.add(holder)
    return found


def _holder(scene: Scene, read: ast.Name) -> str:
    """``M`` of ``M = name``, ``M = [name]``, ``M["k"] = name``, ``M.append(name)``, and of what
    goes over it later, which graph mode does at once: ``M = map(f, name)``."""
    child: ast.AST | None = read
    around = scene.parent(read)
    while around is not None and (
        isinstance(around, (*_HOLDING, ast.GeneratorExp))
        or (isinstance(around, ast.IfExp) and child is not around.test)
        or (isinstance(around, ast.comprehension) and child is around.iter)
        or _goes_over(scene, around, child)
    ):
        child, around = around, scene.parent(around)
    if isinstance(around, ast.Assign) and not isinstance(read.ctx, ast.Store):
        root = _root(around.targets[0])
        return root.id if root is not None and root is not read else ""
    if isinstance(around, ast.Call) and isinstance(around.func, ast.Attribute):
        root = _root(around.func.value) if around.func.attr in _OF_LISTS else None
        return root.id if root is not None and root is not read else ""
    return ""


def _goes_over(scene: Scene, around: ast.AST, child: ast.AST | None) -> bool:
    """Return whether a call makes an iterator over an argument: ``zip(names, child)``."""
    return (
        isinstance(around, ast.Call)
        and child in around.args
        and any(scope.builtin(scene, around.func, name) for name in _ITERATORS)
    )


def read_by_caller(scene: Scene, function: Function, name: str) -> str:
    """Return which variable of a caller is read behind a call that changes it, or ""."""
    if name not in [a.arg for a in all_parameters(function.node.args)]:
        return ""
    return _caller(scene, function, name, False, frozenset())


def _caller(scene: Scene, function: Function, name: str, adds: bool, seen: frozenset[str]) -> str:
    """Whether a caller reads the container that it has passed; who does."""
    if function.key in seen:
        return ""
    for file, call, caller in call_sites(scene, function):
        given = passed(function, call, name)
        if isinstance(given, ast.Attribute):
            return ast.unparse(given)
        root = _root(given) if given is not None else None
        if root is None:
            continue
        there = scene_of(scene, file)
        if caller is None:
            if _read_at_head(there, call, root.id, adds and given is root):
                return f"{root.id} of the module"
            continue
        statement = file.parents.get(id(call))
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        if any(isinstance(n, ast.Name) and n.id == root.id for t in targets for n in ast.walk(t)):
            continue
        if _reads_after(there, caller, call, root.id, adds and given is root):
            return f"{root.id} of {caller.name}()"
        if root.id in [a.arg for a in all_parameters(caller.node.args)]:
            more = _caller(scene, caller, root.id, adds, seen | {function.key})
            if more:
                return more
    return ""


def _read_at_head(there: Scene, call: ast.Call, name: str, adds: bool) -> bool:
    """Return whether the code of a module reads a container after a call."""
    reads = [n for n in there.file.of(ast.Name) if n.id == name and there.function(n) is None]
    return any(
        not _inside(there, n, call) and _is_later(there, n, call)
        and not (adds and _in_front(there, n))
        for n in reads
    )  # fmt: skip


def _reads_after(there: Scene, caller: Function, call: ast.Call, name: str, adds: bool) -> bool:
    return any(
        isinstance(n, ast.Name)
        and n.id == name
        and not _inside(there, n, call)
        and _is_later(there, n, call)
        and not (adds and _in_front(there, n))
        for n in caller.nodes
    )


# -- places -------------------------------------------------------------------------------------


def _place(node: ast.AST) -> tuple[int, int]:
    return getattr(node, "lineno", 0), getattr(node, "col_offset", 0)


def _inside(scene: Scene, node: ast.AST, whole: ast.AST) -> bool:
    return node is whole or whole in scene.around(node)


def array(scene: Scene, node: ast.AugAssign) -> Found | None:
    """``n *= 4`` of an array of NumPy: graph mode binds the name anew, and what else holds the
    array keeps the old numbers."""
    held = node.target.value if isinstance(node.target, ast.Subscript) else node.target
    if not isinstance(held, ast.Name) or scene.kind(held) != ARRAY:
        return None
    why = "graph mode binds the array anew: another name and a Tensor of it keep the old numbers"
    return "GRF609", held.id, why, "compute with Tensors"


FINDINGS: Findings = {
    ast.Attribute: (members,), ast.Assign: (used_up, one_item), ast.AugAssign: (array,),
}  # fmt: skip
