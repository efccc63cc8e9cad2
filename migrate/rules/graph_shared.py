"""Find the lists and dicts that compiled code changes under one name and reads by another.

Graph mode has values, no objects: ``b = a; b.append(x)`` makes a new list that ``b`` alone has, and
``a`` stays as it was, without a word. The same holds for a list of the caller, of a function
around, in another list or dict, and for the variable of a loop over lists.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from migrate.program import Function
from migrate.rules.called_from import call_sites, passed
from migrate.rules.graph_scope import compiled_here, nodes
from migrate.scene import Scene
from migrate.syntax import all_parameters

Found = tuple[str, str, str, str]
_CHANGING = frozenset(
    "append extend insert pop remove clear reverse sort update setdefault".split()
)
_OF_LISTS = frozenset(("append", "extend", "insert"))


def flags(scene: Scene) -> Iterator[tuple[ast.AST, Found]]:
    """The changes that somebody misses."""
    if not nodes(scene):
        return
    alive = {id(n) for n in nodes(scene)}
    for function in compiled_here(scene):
        own = [n for n in function.nodes if id(n) in alive and id(n) in function.own]
        for node, name in _changes(scene, own):
            by = _missed_by(scene, function, own, node, name)
            if by:
                why = f"{by} keeps the old one: graph mode changes a copy, without a word"
                yield node, ("GRF609", f"{name.id} is changed", why, "return it and bind it anew")


# -- changes ------------------------------------------------------------------------------------


def _changes(scene: Scene, own: list[ast.AST]) -> Iterator[tuple[ast.AST, ast.Name]]:
    """What changes a container, and the variable that it is reached by."""
    for node in own:
        held: ast.expr | None = None
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr in _CHANGING and _contains(scene, node.func.value, node.func.attr):
                held = node.func.value
        elif isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
            held = node.value if _contains(scene, node.value) else None
        elif isinstance(node, ast.AugAssign) and _contains(scene, node.target):
            held = node.target
        name = _root(held) if held is not None else None
        if name is not None:
            yield node, name


def _contains(scene: Scene, node: ast.expr, method: str = "") -> bool:
    """Whether it may be a list or dict and, as far as is known, nothing else."""
    kinds = {atom.kind for atom in scene.kind(node)} - {"None"}
    if kinds <= {"unknown"}:
        return method in _OF_LISTS
    return kinds <= {"list", "dict", "unknown"}


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
            made = {id(b.place): b.place for b in scene.facts.reach(source).bindings}
            now = scene.facts.reach_before(source.id, change).bindings
            if any(id(b.place) in made for b in now):
                found.add(source.id)
            waiting += [place for key, place in made.items() if key not in seen]
            seen |= made.keys()
    return found


def _sources(scene: Scene, bound: ast.AST) -> Iterator[ast.Name]:
    """The variables that a binding takes the container from: ``b = a``, ``for r in rows``."""
    around = scene.parent(bound)
    while isinstance(around, (ast.Tuple, ast.List, ast.Starred)):
        around = scene.parent(around)
    values: list[ast.expr] = []
    if isinstance(around, ast.Assign):
        values = [around.value]
    elif isinstance(around, (ast.For, ast.comprehension)) and isinstance(bound, ast.Name):
        values = _gone_through(around, bound)
    yield from (root for value in values if (root := _root(value)) is not None)


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
    """``M`` of ``M = name``, ``M = [name]``, ``M["k"] = name`` and ``M.append(name)``."""
    around = scene.parent(read)
    while isinstance(around, (ast.List, ast.Tuple, ast.Dict)):
        around = scene.parent(around)
    if isinstance(around, ast.Assign) and not isinstance(read.ctx, ast.Store):
        root = _root(around.targets[0])
        return root.id if root is not None and root is not read else ""
    if isinstance(around, ast.Call) and isinstance(around.func, ast.Attribute):
        root = _root(around.func.value) if around.func.attr in _OF_LISTS else None
        return root.id if root is not None and root is not read else ""
    return ""


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
        there = replace(scene, file=file, _memo={})
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
    around: ast.AST | None = node
    while around is not None and around is not whole:
        around = scene.parent(around)
    return around is whole
