"""Decide what of a file graph mode needs in another form, and flag what has none.

What has no other form stays as it is: it is right in PyNative, and graph mode refuses it by itself,
or is stopped before it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from migrate.analysis.program import Class
from migrate.analysis.types.kinds import is_all, ordered
from migrate.codegen.imports import Spelling
from migrate.records.outcomes import Edit, Outcome, Refusal, Span
from migrate.rules import compiled_operators, dense_layout, lambdas
from migrate.rules.dead_branches import dead_spans
from migrate.rules.graph import (
    containers,
    control,
    late,
    memo,
    methods,
    modes,
    objects,
    scope,
    sequences,
    silent,
    single,
    state,
    unbound,
    values,
)
from migrate.rules.graph.scope import Findings, Found, Rewriting, Silent
from migrate.rules.leaking import leaks
from migrate.rules.registry import EVERY, decides, rewrites
from migrate.rules.stopped import quiet, switches
from migrate.sites.buffer_gradients import is_buffer
from migrate.sites.references import Form, Reference
from migrate.sites.scene import Scene, once_a_file
from migrate.syntax.trees import last_name

_AROUND = (objects.renamed, objects.rewrites, methods.rewrites, objects.results, values.partials)
_CHECKS = scope.merged(control.CHECKS, sequences.CHECKS, values.CHECKS, methods.CHECKS, late.CHECKS)
_INSIDE = (
    lambda scene: scope.checked(scene, _CHECKS),
    control.outer_defaults,
    control.by_place,
    state.locals_of,
    memo.rewrites,
    state.passages,
    single.rewrites,
    control.tries,
    control.given,
    unbound.unbound,
)
_LIBRARY = ("functools.reduce", "itertools.", "collections.defaultdict", "collections.deque")
_MEMBERS = ("parameters", "named_parameters", "children", "named_children", "modules",
            "named_modules", "buffers", "named_buffers")  # fmt: skip
_PARAMETERS = ("torch.nn.Parameter", "torch.nn.Buffer", "torch.nn.parameter.Parameter")
_ABSENT = ("set", "frozenset", "vars", "complex", "setattr", "delattr", "bytes", "id")
_LISTS = {"torch.nn.ParameterList", "torch.nn.ParameterDict"}
_OBJECTS = {"Tensor", "Module", "Object", "unknown", "instance"}


def rewritings(scene: Scene) -> dict[int, Rewriting]:
    """Return everything that has another form, by the node that it takes away."""
    known = scene._memo.get("graph forms")
    if not isinstance(known, tuple) or not _spelled_alike(known[1], known[0], scene.spelling):
        rules = (*_AROUND, *(_INSIDE if scope.nodes(scene) else ()))
        made = {id(r.node): r for rule in rules for r in rule(scene)}
        known = scene._memo["graph forms"] = (scene.spelling, made)
    found: dict[int, Rewriting] = known[1]
    return found


def _spelled_alike(made: dict[int, Rewriting], one: Spelling, other: Spelling) -> bool:
    """References are found before it is known which names the file has for itself."""
    needs = {need for r in made.values() for e in r.edits for need in e.needs}
    return one is other or all(one.local(n) == other.local(n) for n in needs)


@rewrites()
def other_forms(scene: Scene) -> Iterator[Edit]:
    """Give compiled code another form where graph mode refuses what it has, or gets it wrong."""
    for made in rewritings(scene).values():
        if not made.note:
            yield from made.edits
    yield from modes.changes(scene, rewritings(scene))
    yield from modes.switched(scene)
    for said in _flagged(scene):
        if said.found[0] in silent.CODES:
            yield from silent.stop(scene, said.node, said.found, said.before)


def gone(scene: Scene) -> tuple[Span, ...]:
    """Return the handlers that go with their ``try``: nothing in them needs a decision."""
    tries = (r.node for r in rewritings(scene).values() if r.name == "try")
    span = scene.source.span
    return tuple(Span(span(t.body[-1]).end, span(t).end) for t in tries if isinstance(t, ast.Try))


@once_a_file
def _never_run(scene: Scene) -> tuple[Span, ...]:
    unused = compiled_operators.told_names(scene)
    return (*dead_spans(scene), *gone(scene), *unused, *dense_layout.spans(scene))


@decides(*Form, before=(EVERY,))
def never_run(scene: Scene, node: ast.AST, name: str) -> Edit | None:
    """Ask for no decision in a branch that is gone, or in what is left out."""
    dead = _never_run(scene)
    if not dead or isinstance(node, ast.alias):
        return None
    span = scene.source.span(node)
    if not span.lies_in(dead):
        return None
    note = "in code that never runs in MindSpore"
    return Edit(scene.site(name, node), Outcome.CONVERTED, None, note=note)


def references(scene: Scene) -> list[Reference]:
    """Return what is flagged, and what changes for those who use the code, as sites."""
    sites = [(r.node, r.name) for r in rewritings(scene).values() if r.note]
    sites += [(said.node, said.found[1]) for said in _flagged(scene)]
    return [Reference(node, name, Form.GRAPH) for node, name in sites]


@decides(Form.GRAPH)
def decide(scene: Scene, node: ast.AST, name: str) -> Edit | Refusal:
    """Flag what graph mode refuses, or give it another form with a note."""
    made = rewritings(scene).get(id(node))
    if made is not None:
        edit = made.edits[0]
        return replace(edit, site=replace(edit.site, name=name), note=made.note)
    code, _, reason, step = next(s.found for s in _flagged(scene) if s.node is node)
    return Refusal(scene.site(name, node), code, reason, step, keep=True)


@once_a_file
def _flagged(scene: Scene) -> list[Silent]:
    """Return what is flagged, once for a statement and name."""
    made = rewritings(scene)
    sure = scope.is_sure  # what the compiler refuses by itself needs no guess
    found = [
        said for said in _found(scene) if id(said.node) not in made
        and (said.found[0] in silent.CODES or sure(scene.inference, said.node))
    ]  # fmt: skip
    for said in silent.flags(scene):
        if not any(id(n) in made for n in _parts(said.node)):
            found.append(said)
    seen: dict[tuple[int, str], Silent] = {}
    for said in found:
        seen.setdefault((id(scene.statement(said.node)), said.found[1]), said)
    return list(seen.values())


def _parts(node: ast.AST) -> Iterator[ast.AST]:
    """Yield a node, and what a call's method or a subscript belongs to."""
    yield node
    held = node.func if isinstance(node, ast.Call) else node
    while isinstance(held, (ast.Attribute, ast.Subscript)):
        yield held
        held = held.value


def _found(scene: Scene) -> Iterator[Silent]:
    for said in scope.found(scene, _FINDINGS):
        if not scope.only_tells(scene, said.node):
            yield said
    yield from scope.found(scene, {ast.Subscript: (_kept_item,), ast.Assert: (_leaving,)})
    if scope.nodes(scene):
        yield from objects.flags(scene)
        yield from containers.shared(scene)
        yield from _unread(scene)
        for name, _, uses in state.kept(scene):
            for use in uses:
                if isinstance(use.ctx, ast.Store) and not state.is_parameter(scene, use):
                    passed_over = is_buffer(scene, use, persistent=False)
                    yield Silent(use, _state(name, "GRF616" if passed_over else "GRF604"))


def _unread(scene: Scene) -> Iterator[Silent]:
    """Yield the lambdas of host code that compiled code calls and graph mode cannot read."""
    inside = {id(n) for n in scope.nodes(scene)}
    for function in scope.compiled_here(scene):
        node = function.node
        if not isinstance(node, ast.Lambda) or id(node) in inside:
            continue
        if not lambdas.is_named(scene, node):
            why = "graph mode reads its line, and knows a lambda that is assigned alone"
            yield Silent(node.body, ("GRF606", "lambda", why, "write a def"))


# -- what graph mode refuses --------------------------------------------------------------------


def _imported(scene: Scene, node: ast.Import | ast.ImportFrom) -> Found | None:
    """Imports of torch, and of what needs it, are taken away or flagged as such."""
    origin = "" if isinstance(node, ast.Import) else f"{node.module or ''}."
    names = [origin + a.name for a in node.names]
    torchs = (n.partition(".")[0] in scene.inference.roots for n in names)
    if not getattr(node, "level", 0) and all(
        own or scene.table.needs_torch(n) for own, n in zip(torchs, names, strict=True)
    ):
        return None
    return "GRF601", "import", "graph mode does not import", "import it at the head"


def _leaving(scene: Scene, node: ast.Assert) -> Found | None:
    """Find the assertion of a training step that no dict leaves it (migrate/training/cells.py)."""
    said, asked = getattr(node.msg, "value", ""), getattr(node.test, "values", [node.test])[-1]
    dicts = [n for n in ast.walk(asked) if any(a.kind == "dict" for a in scene.kind(n))]
    if not str(said).startswith("torch2ms GRF615") or not dicts:
        return None
    return "GRF615", "dict", "a graph gives the tuple of its values", "return a tuple"


def _loop_else(scene: Scene, node: ast.For | ast.While) -> Found | None:
    why = "graph mode has no else of loops"
    return ("GRF601", "else of a loop", why, "move it after the loop") if node.orelse else None


def _text(scene: Scene, node: ast.JoinedStr) -> Found | None:
    """What follows ``!`` and ``:`` is ignored by graph mode, a bool has another text there."""
    values = [v for v in node.values if isinstance(v, ast.FormattedValue)]
    bools = any(is_all(scene.kind(v.value), "bool") for v in values)
    if not bools and not any(v.format_spec or v.conversion != -1 for v in values):
        return None
    return "GRF605", "f-string", "graph mode ignores its format: another text", "make it before"


def _comprehension(scene: Scene, node: ast.ListComp | ast.GeneratorExp) -> Found | None:
    several = len(node.generators) > 1
    found = ("GRF602", "for ... for", "graph mode takes one loop in it", "write the loops out")
    return found if several else None


def _spread(scene: Scene, node: ast.Dict) -> Found | None:
    found = ("GRF602", "**", "graph mode does not unpack into a dict", "use update()")
    return found if None in node.keys else None


def _joined(scene: Scene, node: ast.BinOp) -> Found | None:
    if not isinstance(node.op, ast.BitOr) or not is_all(scene.kind(node.left), "dict"):
        return None
    return "GRF602", "|", "graph mode does not join dicts with |", "use update()"


def _asked(scene: Scene, node: ast.Call | ast.Compare) -> Found | None:
    asked = objects.asks(scene, node)
    why = "graph mode takes its objects for plain ones: it is always False there"
    step = "find out in __init__ and keep the answer"
    return ("GRF608", asked, why, step) if asked else None


def _identity(scene: Scene, node: ast.Compare) -> Found | None:
    other = node.comparators[0]
    kinds = {a.kind for a in scene.kind(other)}
    if not isinstance(node.ops[0], (ast.Is, ast.IsNot)) or not kinds or not kinds <= _OBJECTS:
        return None
    if not isinstance(other, (ast.Name, ast.Attribute)):
        return None
    return "GRF602", "is", "graph mode has is for None, numbers and texts", "keep a flag"


def _record(scene: Scene, node: ast.Call) -> Found | None:
    """An object of a dataclass, a NamedTuple, or of any class that gets Tensors: as they are
    no Cells, graph mode makes none, or its members have no gradient."""
    why = "graph mode makes no objects of Tensors"
    for atom in ordered(scene.kind(node.func)):
        if atom.kind == "ref" and atom.name in _PARAMETERS:
            said = "graph mode makes no Parameters"
            return "GRF603", atom.name, said, "assign to one that __init__ makes"
        owner = scene.inference.program.classes.get(atom.name) if atom.kind == "class" else None
        if owner is not None and (_is_record(owner) or _gets_tensors(scene, owner, node)):
            return "GRF603", owner.name, why, "return a tuple or dict"
    if isinstance(node.func, ast.Name) and node.func.id in _namedtuples(scene):
        return "GRF603", node.func.id, why, "return a tuple or dict"
    return None


def _gets_tensors(scene: Scene, owner: Class, node: ast.Call) -> bool:
    """Return whether an object of a plain class is made of Tensors, or of lists of them."""
    given = [scene.kind(g) for g in (*node.args, *(k.value for k in node.keywords))]
    inner = [i for kind in given for atom in kind for i in atom.items]
    held = any(a.kind == "Tensor" for kind in (*given, *inner) for a in kind)
    return held and not scene.is_module_class(owner)


@once_a_file
def _namedtuples(scene: Scene) -> set[str]:
    """``Pair = namedtuple("Pair", "a b")`` at the head of the file."""
    return {
        target.id
        for s in scene.source.tree.body
        if isinstance(s, ast.Assign) and isinstance(s.value, ast.Call)
        and scope.foreign(scene, s.value.func, "collections.namedtuple")
        for target in s.targets
        if isinstance(target, ast.Name)
    }  # fmt: skip


def _is_record(owner: Class) -> bool:
    names = [last_name(b) for b in owner.node.bases]
    for item in owner.node.decorator_list:
        item = item.func if isinstance(item, ast.Call) else item
        names.append(last_name(item))
    return "NamedTuple" in names or "dataclass" in names


def _iterator(scene: Scene, node: ast.Call) -> Found | None:
    if scope.builtin(scene, node.func, "next"):
        return "GRF606", "next", "graph mode has no iterators", "index the list"
    if values.of_tensors(scene, node):
        why = "graph mode calls it for constants only"
        return "GRF606", ast.unparse(node.func), why, "write the conditions with and, or"
    for atom in ordered(scene.kind(node.func)):
        if atom.kind == "partial" and isinstance(node.func, ast.Attribute):
            return "GRF606", "partial", "graph mode calls none that is stored", "write a function"
        known = atom.kind == "foreign" and atom.name.startswith(_LIBRARY)
        if known and not sequences.over_numbers(scene, node):
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


def _recorded(scene: Scene, node: ast.Call) -> Found | None:
    """Find ``torch.is_grad_enabled()`` where the program switches gradients off."""
    if "torch.is_grad_enabled" not in {a.name for a in scene.kind(node.func)} or (
        not switches(scene)
    ):
        return None
    why = "graph mode knows no switch for gradients"
    return "GRF606", "torch.is_grad_enabled", why, "pass what it decides as an argument"


def _lacking(scene: Scene, node: ast.Call) -> Found | None:
    """Return what is said of functions of Python that graph mode does not have."""
    for name in _ABSENT:
        if scope.builtin(scene, node.func, name):
            return "GRF606", name, "graph mode has no such function", "do it in __init__"
    keys = {k.arg for k in node.keywords}
    for name in ("max", "min"):
        if keys and scope.builtin(scene, node.func, name):
            given = ", ".join(sorted(str(k) for k in keys))
            why = f"graph mode takes no {given} there"
            return "GRF606", name, why, "write the loop out"
    for name in ("sorted", "max", "min") if len(node.args) == 1 else ():
        if scope.builtin(scene, node.func, name) and _has_tensors(scene, node.args[0]):
            why = "graph mode orders what it knows when it compiles, no dict of Tensors"
            return "GRF606", name, why, "write the keys out"
    return None


def _has_tensors(scene: Scene, node: ast.expr) -> bool:
    """Return whether a dictionary, of which keys or items may be asked, holds Tensors."""
    func = node.func if isinstance(node, ast.Call) and not node.args else None
    if isinstance(func, ast.Attribute) and func.attr in ("keys", "items"):
        node = func.value
    kind = scene.kind(node)
    return is_all(kind, "dict") and any(
        a.kind == "Tensor" for d in kind for i in d.items for a in i
    )


def _parameters(scene: Scene, node: ast.Attribute) -> Found | None:
    """A list or dict of Parameters has no gradient in graph mode."""
    names = {a.name for a in scene.kind(node) if a.kind == "Module"}
    if not isinstance(node.ctx, ast.Load) or not names or not names <= _LISTS:
        return None
    why = "its Parameters have no gradient in graph mode"
    step = "keep them in a mindspore.ParameterTuple, or as members of their own"
    return "GRF606", ast.unparse(node), why, step


def _kept_item(scene: Scene, node: ast.Subscript) -> Found | None:
    held = node.value
    if not isinstance(node.ctx, ast.Store) or not isinstance(held, ast.Attribute):
        return None
    return _state(held.attr) if is_all(scene.kind(held), "dict", "list") else None


def _state(name: str, code: str = "GRF604") -> Found:
    """Return what is said of a store; of a buffer that is not saved (GRF616) no graph says it."""
    why = "graph mode keeps nothing but Parameters on self"
    return code, f"self.{name}", why, "return it beside the result"


def _context(scene: Scene, node: ast.With) -> Found | None:
    """Find a context that is entered when it runs: not one that is taken out."""
    items = [item.context_expr for item in node.items]
    if all(quiet(scene, one) for one in items) and not leaks(scene, node):
        return None
    if control.without_effect(scene, node):
        return None
    return "GRF601", "with", "graph mode enters no contexts", "call what it runs before and after"


def _always(code: str, name: str, why: str, step: str) -> tuple[scope.Finding, ...]:
    return (lambda scene, node: (code, name, why, step),)


_YIELD = _always("GRF602", "yield", "graph mode has no generators", "build and return a list")
_FINDINGS: Findings = {
    ast.Try: _always("GRF601", "try", "graph mode does not compile try", "check before the call"),
    ast.Nonlocal: _always("GRF601", "nonlocal", "graph mode has no nonlocal", "return the value"),
    ast.Delete: _always("GRF601", "del", "graph mode does not delete", "build what stays"),
    ast.With: (_context,),
    ast.Match: _always("GRF601", "match", "graph mode does not compile match", "write if and elif"),
    ast.NamedExpr: _always("GRF602", ":=", "graph mode has no :=", "assign in a statement before"),
    ast.Set: _always("GRF602", "set", "graph mode has no sets", "use a tuple"),
    ast.SetComp: _always("GRF602", "set", "graph mode has no sets", "use a list"),
    ast.Yield: _YIELD,
    ast.YieldFrom: _YIELD,
    ast.Import: (_imported,),
    ast.ImportFrom: (_imported,),
    ast.For: (_loop_else,),
    ast.While: (_loop_else,),
    ast.JoinedStr: (_text,),
    ast.ListComp: (_comprehension,),
    ast.GeneratorExp: (_comprehension,),
    ast.DictComp: (_comprehension,),
    ast.Dict: (_spread,),
    ast.BinOp: (_joined,),
    ast.Compare: (_asked, _identity),
    ast.Attribute: (_parameters,),
    ast.Call: (
        _asked,
        _record,
        _iterator,
        _method,
        _lacking,
        _recorded,
        methods.stays,
        methods.itself,
    ),
}
