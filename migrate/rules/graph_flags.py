"""In: a scene. Out: what graph mode refuses in compiled code, and has no other form: flags.

The code stays as it is: it is right in PyNative, and graph mode says so where it fails.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace

from migrate.imports import Spelling
from migrate.outcomes import Edit, Refusal, Span
from migrate.program import Class
from migrate.receivers.kinds import is_all, ordered
from migrate.rules import (
    graph_anew,
    graph_calls,
    graph_checks,
    graph_dicts,
    graph_expressions,
    graph_hoist,
    graph_iterators,
    graph_members,
    graph_memo,
    graph_methods,
    graph_modes,
    graph_objects,
    graph_passed,
    graph_products,
    graph_records,
    graph_results,
    graph_scope,
    graph_shapes,
    graph_shared,
    graph_silent,
    graph_single,
    graph_state,
    graph_statements,
    graph_try,
    graph_unbound,
    graph_wrappers,
)
from migrate.rules.graph_scope import Rewriting
from migrate.scene import Scene
from migrate.sites import Form, Reference
from migrate.syntax import LEAVES

Found = tuple[str, str, str, str]  # code, name, reason, next step
_RULES = (
    graph_hoist,
    graph_expressions,
    graph_calls,
    graph_dicts,
    graph_iterators,
    graph_checks,
    graph_statements,
    graph_state,
    graph_members,
    graph_memo,
    graph_passed,
    graph_products,
    graph_shapes,
    graph_single,
    graph_try,
    graph_unbound,
)

_STATEMENTS: dict[type[ast.AST], Found] = {
    ast.Try: ("GRF601", "try", "graph mode does not compile try", "check before the call"),
    ast.Nonlocal: ("GRF601", "nonlocal", "graph mode has no nonlocal", "return the value"),
    ast.Delete: ("GRF601", "del", "graph mode does not delete", "build what stays"),
    ast.Import: ("GRF601", "import", "graph mode does not import", "import it at the head"),
    ast.ImportFrom: ("GRF601", "import", "graph mode does not import", "import it at the head"),
    ast.NamedExpr: ("GRF602", ":=", "graph mode has no :=", "assign in a statement before"),
    ast.Yield: ("GRF602", "yield", "graph mode has no generators", "build and return a list"),
    ast.YieldFrom: ("GRF602", "yield", "graph mode has no generators", "build and return a list"),
    ast.Set: ("GRF602", "set", "graph mode has no sets", "use a tuple"),
    ast.SetComp: ("GRF602", "set", "graph mode has no sets", "use a list"),
}
_LIBRARY = ("functools.reduce", "itertools.", "collections.defaultdict", "collections.deque")
_MEMBERS = ("parameters", "named_parameters", "children", "named_children", "modules",
            "named_modules", "buffers", "named_buffers")  # fmt: skip

_PARAMETERS = ("torch.nn.Parameter", "torch.nn.Buffer", "torch.nn.parameter.Parameter")


def rewritings(scene: Scene) -> dict[int, Rewriting]:
    """Everything that has another form, by the node that it takes away."""
    known = scene._memo.get("graph forms")
    if not isinstance(known, tuple) or not _spelled_alike(known[1], known[0], scene.spelling):
        known = scene._memo["graph forms"] = (scene.spelling, _made(scene))
    made: dict[int, Rewriting] = known[1]
    return made


def _spelled_alike(made: dict[int, Rewriting], one: Spelling, other: Spelling) -> bool:
    """References are found before it is known which names the file has for itself."""
    needs = {need for r in made.values() for e in r.edits for need in e.needs}
    return one is other or all(one.local(n) == other.local(n) for n in needs)


def _made(scene: Scene) -> dict[int, Rewriting]:
    made = {id(r.node): r for r in graph_records.rewrites(scene)}
    for rule in (graph_objects, graph_methods, graph_wrappers, graph_results):
        made |= {id(r.node): r for r in rule.rewrites(scene)}
    if graph_scope.nodes(scene):
        for rule in _RULES:
            made |= {id(r.node): r for r in rule.rewrites(scene)}
    return made


def rewrites(scene: Scene) -> Iterator[Edit]:
    """The edits of those that are no sites of their own."""
    for made in rewritings(scene).values():
        if not made.note:
            yield from made.edits
    yield from graph_anew.edits(scene, rewritings(scene))
    yield from graph_modes.edits(scene)
    for node, found, before in _all(scene):
        if found[0] in graph_silent.CODES:
            yield from graph_silent.stop(scene, node, found, before)


def gone(scene: Scene) -> tuple[Span, ...]:
    """The handlers that go with their ``try``: what stands in them needs no decision."""
    made = [r for r in rewritings(scene).values() if isinstance(r.node, ast.ExceptHandler)]
    return tuple(e.site.span for r in made for e in r.edits)


def references(scene: Scene) -> list[Reference]:
    """What is flagged, and what changes for those who use the code, as sites of the ledger."""
    sites = [(r.node, r.name) for r in rewritings(scene).values() if r.note]
    sites += [(node, found[1]) for node, found, _ in _all(scene)]
    return [Reference(node, name, Form.GRAPH) for node, name in sites]


def decide(scene: Scene, node: ast.AST, name: str) -> Edit | Refusal:
    """The flag of one of them, or its edit with the note."""
    made = rewritings(scene).get(id(node))
    if made is not None:
        edit = made.edits[0]
        return replace(edit, site=replace(edit.site, name=name), note=made.note)
    code, _, reason, step = next(f for n, f, _ in _all(scene) if n is node)
    return Refusal(scene.site(name, node), code, reason, step, keep=True)


def _all(scene: Scene) -> list[tuple[ast.AST, Found, ast.stmt | None]]:
    """Return what is flagged, and before which statement the compiler has to stop for it."""
    if "graph flags" not in scene._memo:
        made = rewritings(scene)
        found: list[tuple[ast.AST, Found, ast.stmt | None]]
        found = [(n, f, None) for n, f in _found(scene) if id(n) not in made]
        sure = graph_scope.is_sure  # what the compiler refuses by itself needs no guess
        found = [f for f in found if f[1][0] in graph_silent.CODES or sure(scene.inference, f[0])]
        found += [(s.node, s.found, s.before) for s in graph_silent.flags(scene)
                  if not any(id(n) in made for n in _parts(s.node))]  # fmt: skip
        seen: dict[tuple[int, str], tuple[ast.AST, Found, ast.stmt | None]] = {}
        for node, flag, before in found:
            seen.setdefault((id(scene.statement(node)), flag[1]), (node, flag, before))
        scene._memo["graph flags"] = list(seen.values())
    flags = scene._memo["graph flags"]
    assert isinstance(flags, list)
    return flags


def _parts(node: ast.AST) -> Iterator[ast.AST]:
    """Yield a node, and what a call's method or a subscript belongs to."""
    yield node
    held = node.func if isinstance(node, ast.Call) else node
    while isinstance(held, (ast.Attribute, ast.Subscript)):
        yield held
        held = held.value


def _found(scene: Scene) -> Iterator[tuple[ast.AST, Found]]:
    nodes = graph_scope.nodes(scene)
    for node in nodes:
        flag = _STATEMENTS.get(type(node)) or _special(scene, node)
        if isinstance(node, (ast.Import, ast.ImportFrom)) and _goes(scene, node):
            continue
        if flag and not graph_scope.only_tells(scene, node):
            yield node, flag
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
            held = node.value
            if isinstance(held, ast.Attribute) and is_all(scene.kind(held), "dict", "list"):
                yield node, _state(held.attr)
    yield from graph_objects.flags(scene) if nodes else ()
    yield from graph_shared.flags(scene)
    for name, _, uses in graph_state.kept(scene) if nodes else ():
        for use in uses:
            if isinstance(use.ctx, ast.Store) and not graph_state.is_parameter(scene, use):
                yield use, _state(name)


def _goes(scene: Scene, node: ast.Import | ast.ImportFrom) -> bool:
    """Imports of torch, and of what needs it, are taken away or flagged as such."""
    origin = "" if isinstance(node, ast.Import) else f"{node.module or ''}."
    names = [origin + a.name for a in node.names]
    torchs = (n.partition(".")[0] in scene.inference.roots for n in names)
    return not getattr(node, "level", 0) and all(
        own or scene.table.needs_torch(n) for own, n in zip(torchs, names, strict=True)
    )


_PLAIN = (*LEAVES, ast.Attribute, ast.Assign, ast.Expr, ast.keyword, ast.Return, ast.Tuple,
          ast.arg, ast.arguments)  # fmt: skip


def _special(scene: Scene, node: ast.AST) -> Found | None:
    if type(node) in _PLAIN:
        return None
    if isinstance(node, (ast.For, ast.While)) and node.orelse:
        return (
            "GRF601",
            "else of a loop",
            "graph mode has no else of loops",
            "move it after the loop",
        )
    if sys.version_info >= (3, 10) and isinstance(node, ast.Match):
        return "GRF601", "match", "graph mode does not compile match", "write if and elif"
    if isinstance(node, ast.JoinedStr):
        return _text(scene, node)
    if len(getattr(node, "generators", ())) > 1:
        return "GRF602", "for ... for", "graph mode takes one loop in it", "write the loops out"
    if isinstance(node, ast.Dict) and None in node.keys:
        return "GRF602", "**", "graph mode does not unpack into a dict", "use update()"
    if (
        isinstance(node, ast.BinOp)
        and isinstance(node.op, ast.BitOr)
        and is_all(scene.kind(node.left), "dict")
    ):
        return "GRF602", "|", "graph mode does not join dicts with |", "use update()"
    asked = graph_records.asks(scene, node)
    if asked:
        why = "graph mode takes its objects for plain ones: it is always False there"
        return "GRF608", asked, why, "find out in __init__ and keep the answer"
    if isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.Is, ast.IsNot)):
        kinds = {a.kind for a in scene.kind(node.comparators[0])}
        named = isinstance(node.comparators[0], (ast.Name, ast.Attribute))
        if named and kinds and kinds <= {"Tensor", "Module", "Object", "unknown", "instance"}:
            return "GRF602", "is", "graph mode has is for None, numbers and texts", "keep a flag"
    if isinstance(node, ast.Call):
        ways: tuple[Callable[[Scene, ast.Call], Found | None], ...]
        ways = (_record, _iterator, _method, graph_methods.stays)
        return next((f for f in (way(scene, node) for way in ways) if f), None)
    return None


def _text(scene: Scene, node: ast.JoinedStr) -> Found | None:
    """What follows ``!`` and ``:`` is ignored by graph mode, a bool has another text there."""
    values = [v for v in node.values if isinstance(v, ast.FormattedValue)]
    bools = any(is_all(scene.kind(v.value), "bool") for v in values)
    if not bools and not any(v.format_spec or v.conversion != -1 for v in values):
        return None
    return "GRF605", "f-string", "graph mode ignores its format: another text", "make it before"


def _record(scene: Scene, node: ast.Call) -> Found | None:
    """An object of a dataclass, a NamedTuple, or of any class that gets Tensors: as they are
    no Cells, graph mode makes none, or its members have no gradient."""
    for atom in ordered(scene.kind(node.func)):
        if atom.kind == "ref" and atom.name in _PARAMETERS:
            why = "graph mode makes no Parameters"
            return "GRF603", atom.name, why, "assign to one that __init__ makes"
        owner = scene.inference.program.classes.get(atom.name) if atom.kind == "class" else None
        if owner is not None and (_is_record(owner) or _gets_tensors(scene, owner, node)):
            why = "graph mode makes no objects of Tensors"
            return "GRF603", owner.name, why, "return a tuple or dict"
    if isinstance(node.func, ast.Name) and node.func.id in _namedtuples(scene):
        why = "graph mode makes no objects of Tensors"
        return "GRF603", node.func.id, why, "return a tuple or dict"
    return None


def _gets_tensors(scene: Scene, owner: Class, node: ast.Call) -> bool:
    """Whether an object of a plain class is made of Tensors, or of lists of them."""
    given = [scene.kind(g) for g in (*node.args, *(k.value for k in node.keywords))]
    inner = [i for kind in given for atom in kind for i in atom.items]
    held = any(a.kind == "Tensor" for kind in (*given, *inner) for a in kind)
    return held and not scene.is_module_class(owner)


def _namedtuples(scene: Scene) -> set[str]:
    """``Pair = namedtuple("Pair", "a b")`` at the head of the file."""
    if "namedtuples" not in scene._memo:
        scene._memo["namedtuples"] = {
            target.id
            for s in scene.source.tree.body
            if isinstance(s, ast.Assign) and isinstance(s.value, ast.Call)
            and graph_scope.foreign(scene, s.value.func, "collections.namedtuple")
            for target in s.targets
            if isinstance(target, ast.Name)
        }  # fmt: skip
    names = scene._memo["namedtuples"]
    assert isinstance(names, set)
    return names


def _is_record(owner: Class) -> bool:
    names = [getattr(b, "attr", getattr(b, "id", "")) for b in owner.node.bases]
    for item in owner.node.decorator_list:
        item = item.func if isinstance(item, ast.Call) else item
        names.append(getattr(item, "attr", getattr(item, "id", "")))
    return "NamedTuple" in names or "dataclass" in names


def _iterator(scene: Scene, node: ast.Call) -> Found | None:
    if graph_scope.builtin(scene, node.func, "next"):
        return "GRF606", "next", "graph mode has no iterators", "index the list"
    if graph_checks.stays(scene, node):
        why = "graph mode calls it for constants only"
        return "GRF606", ast.unparse(node.func), why, "write the conditions with and, or"
    for atom in ordered(scene.kind(node.func)):
        if atom.kind == "partial" and isinstance(node.func, ast.Attribute):
            return "GRF606", "partial", "graph mode calls none that is stored", "write a function"
        known = atom.kind == "foreign" and atom.name.startswith(_LIBRARY)
        if known and not graph_products.over_numbers(scene, node):
            return "GRF606", atom.name, "graph mode does not compile it", "write the loop out"
    return None


def _method(scene: Scene, node: ast.Call) -> Found | None:
    func = node.func
    if not isinstance(func, ast.Attribute):
        return None
    kind = scene.kind(func.value)
    if func.attr in ("numpy", "tolist") and is_all(kind, "Tensor"):
        why = "the numbers leave the graph, and graph mode has none while it compiles"
        return "GRF607", f"torch.Tensor.{func.attr}", why, "compute with Tensors"
    if func.attr in _MEMBERS and is_all(kind, "Module"):
        why = "graph mode does not go through the members of a Cell"
        return "GRF606", f"torch.nn.Module.{func.attr}", why, "list them in __init__"
    if func.attr in ("pop", "setdefault", "popitem") and is_all(kind, "dict"):
        return "GRF606", f"dict.{func.attr}", "graph mode has no such method", "write d[key]"
    return None


def _state(name: str) -> Found:
    why = "graph mode keeps nothing but Parameters on self"
    return "GRF604", f"self.{name}", why, "return it beside the result"
