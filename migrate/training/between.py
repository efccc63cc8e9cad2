"""Tell whether statements between a loss and its update may change places with the loss.

A step runs its loss, its backward and often its update in one call, so what lies between them runs
before or behind all three. A write is seen by its place (attributes by name, containers by site, a
Tensor unless nothing but the statement knows it), also inside of the functions that are run.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from migrate.analysis.program import File, Function
from migrate.analysis.summaries import MUTATING
from migrate.analysis.types.kinds import without_none
from migrate.rules.torch_sharing import METADATA, NOT_WRITING, shares
from migrate.syntax.trees import dotted, last_name
from migrate.training import freezing
from migrate.training.computed import Search
from migrate.training.effects import binds, reads, uses
from migrate.training.leaves import is_fresh
from migrate.training.marks import View
from migrate.training.modules import models, run_by_calls

_PLAIN = frozenset("int float bool str None dtype device Size ref function class foreign".split())
_ALIASES = (ast.Name, ast.Attribute, ast.Subscript, ast.IfExp, ast.Tuple, ast.List, ast.Dict)
_UNCHANGED = _PLAIN - {"foreign"} | {"Tensor", "Module", "Optimizer"}
# what may bind or change a variable that no name shows, or the numbers drawn next
_ANY_NAME = frozenset("globals locals vars exec eval setattr delattr".split())
_SEEDING = frozenset("seed manual_seed manual_seed_all set_rng_state setstate set_state".split())
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_COMPUTING = (ast.BinOp, ast.Compare, ast.UnaryOp, ast.FormattedValue, ast.If, ast.While)
_PASSING = (ast.Attribute, ast.Subscript, ast.Starred, ast.Tuple, ast.List, ast.keyword, ast.IfExp)
_HOLDERS = frozenset("list dict set tuple".split())
_SETTING = frozenset(("train", "eval", "requires_grad_", "load_state_dict"))
_FRESH = ("detach", "clone", "item", "numpy", "tolist", "cpu", "norm")
_WEIGHTS = frozenset(
    "parameters named_parameters buffers named_buffers state_dict get_parameter".split()
)


@dataclass(frozen=True)
class Between:
    """What statements read, to be compared with what others write."""

    view: View
    nodes: tuple[ast.AST, ...]
    own: str

    @cached_property
    def _names(self) -> set[str]:
        return reads(self.nodes, self.own)

    @cached_property
    def _reached(self) -> list[tuple[View, ast.AST]]:
        """The nodes, and those of all functions that they run."""
        found = _run(self.view, self.nodes)
        if models(self.view, self.nodes, self.own):
            files = self.view.inference.program.files
            forwards = {f.key: f for f in run_by_calls(self.view)}
            known = {id(n) for _, n in found}
            for function in forwards.values():
                there = View(files[function.path], self.view.inference)
                found += [(there, n) for n in function.nodes if id(n) not in known]
        return found

    @cached_property
    def _outer(self) -> set[tuple[str, int]]:
        """The variables of others that the functions read which are run, each with its scope."""
        found: set[tuple[str, int]] = set()
        for view, node in self._reached:
            if isinstance(node, ast.Name):
                scope, function = _scope(view, node), view.file.function_at(node)
                outer = scope is view.file or isinstance(scope, Function)
                if function is not None and outer and scope is not function:
                    found.add((node.id, id(scope)))
        return found

    @cached_property
    def _attributes(self) -> set[str]:
        return {
            n.attr
            for view, n in self._reached
            if isinstance(n, ast.Attribute)
            and view.atoms(n.value) not in ({"Tensor"}, {"ref"})
        }  # fmt: skip

    @cached_property
    def _sites(self) -> set[object]:
        return {s for view, n in self._reached for a in view.kind(n) for s in a.sites}

    def changed_by(self, item: ast.stmt) -> bool:
        """Return whether a statement, or what it runs, may write something that is read here.

        Which weights are frozen counts for the Modules that are called here.
        """
        called = models(self.view, self.nodes, self.own)
        if called and freezing.of(self.view).switches_some(self.view, item, called):
            return True
        return any(self._is_write(view, node) for view, node in _run(self.view, (item,)))

    def _is_write(self, view: View, node: ast.AST) -> bool:
        """Return whether a node binds an attribute or global that is read, or changes contents."""
        if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
            bound = node.attr in self._attributes and not _is_made(view, node)
            return bound or any(self._may_see(view, h, k) for h, k in _changed(view, node))
        if isinstance(node, ast.Name):
            return self._is_outer(view, node)
        if isinstance(node, ast.Call) and (
            _switches(view, node) or last_name(node.func) in _SEEDING
        ):
            return True
        return any(self._may_see(view, held, keyed) for held, keyed in _changed(view, node))

    def _is_outer(self, view: View, name: ast.Name) -> bool:
        """Return whether a name binds, or hands to unknown code, what functions read from outside.

        A number that is read cannot change; Tensors and Modules are compared by what is written.
        """
        if name.id in _ANY_NAME:
            return True
        function = view.file.function_at(name)
        outer = (name.id, id(_scope(view, name))) in self._outer
        if not isinstance(name.ctx, ast.Load):
            shared = function is not None and name.id in function.globals
            return outer or (shared and name.id in self._names)
        if not outer or name.id in binds(view.file.imports):
            return False
        atoms = {a.kind for a in view.kind(name)}
        return (not atoms or not atoms <= _UNCHANGED) and _gets_out(view, name)

    def _may_see(self, view: View, held: ast.expr, keyed: bool = False) -> bool:
        """Return whether the contents of a value may be read; ``keyed``: it is no Tensor."""
        if _is_plain(view, held):
            return False
        kind = view.kind(held)
        sites = {s for a in kind for s in a.sites}
        if sites and all(a.kind in _HOLDERS for a in without_none(kind)):
            return bool(sites & self._sites)
        if keyed and "Tensor" not in view.atoms(held):
            inner = {n.attr for n in ast.walk(held) if isinstance(n, ast.Attribute)}
            return bool(inner & self._attributes) or self._is_named(view, held)
        return not self._is_own(view, held)

    def _is_named(self, view: View, held: ast.expr) -> bool:
        """Return whether a variable that is read here has a value, or may have it."""
        todo, seen = [held], set()
        while todo:
            for use in uses(todo.pop(), self.own if view is self.view else "-"):
                if view.file is self.view.file and use.name in self._names:
                    return True
                if isinstance(use.node, ast.Name) and id(use.node) not in seen:
                    seen.add(id(use.node))
                    facts = self.view.inference.facts(view.file.path)
                    values = facts.values(use.node, parts=True)
                    todo += [v for v in values if isinstance(v, _ALIASES)]
        return False

    def _is_own(self, view: View, held: ast.expr) -> bool:
        """Return whether nothing but statements behind a fresh value knows the Tensor."""
        while isinstance(held, ast.Subscript) or (
            isinstance(held, ast.Attribute) and held.attr in ("data", "T")
        ):
            held = held.value
        if isinstance(held, ast.Attribute):
            return _keeps_to_itself(view, held)
        if not isinstance(held, ast.Name) or held.id in self._names:
            return not isinstance(held, ast.Name) and is_fresh(view, held)
        facts, parents = self.view.inference.facts(view.file.path), view.file.parents
        places = [b.place for b in facts.reach(held).bindings]
        # ``x += y`` binds what x has, or a new value where that is a number
        added = [isinstance(parents.get(id(p)), ast.AugAssign) for p in places]
        values = [v for i, v in enumerate(facts.values(held)) if not any(added[i : i + 1])]
        if not values or not all(v is not None and _is_new(view, v) for v in values):
            return False
        function = view.file.function_at(held)
        inner = function is not None and held.id in function.locals - function.globals
        if inner and function is not self.view.file.function_at(self.nodes[0]):
            return True  # made by the call itself: what was computed before does not know it
        nodes = function.nodes if function is not None else view.file.nodes
        return not any(
            isinstance(n, ast.Name) and n.id == held.id and _is_handed_on(view, n) for n in nodes
        )


def _keeps_to_itself(view: View, held: ast.Attribute) -> bool:
    """Return whether what attributes of a name hold is known to nothing else: ``self.sum``.

    All that is put there is made for it, and all that reads it computes with it.
    """
    if view.atoms(held.value) <= {"Tensor"}:
        return is_fresh(view, held)
    for file in view.neighbours:
        there = View(file, view.inference)
        for node in (n for n in file.of(ast.Attribute) if n.attr == held.attr):
            around = file.parents.get(id(node))
            if there.atoms(node.value) == {"Tensor"} or isinstance(around, ast.AugAssign):
                continue
            if isinstance(node.ctx, ast.Load):
                if _is_handed_on(there, node) and not _is_copied(there, node):
                    return False
                continue
            while isinstance(around, ast.Tuple):
                around = file.parents.get(id(around))
            value = around.value if isinstance(around, ast.Assign) else None
            if value is None or not (_is_plain(there, node) or _is_new(there, value)):
                return False
        blind = (c for n in ("setattr", "vars", "__setattr__") for c, _ in file.calls.get(n, ()))
        if any(c.args and there.atoms(c.args[0]) != {"Module"} for c in blind):
            return False
    return True


def _changed(view: View, node: ast.AST) -> Iterator[tuple[ast.expr, bool]]:
    """Yield the values whose contents a node changes, and whether these are no Tensors."""
    if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
        written = view.atoms(node.value) == {"Tensor"} and node.attr != "requires_grad"
        if node.attr in ("data", "grad") or written:
            yield node.value, False
    elif isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
        yield node.value, isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str)
    elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name | ast.Attribute):
        if not _is_plain(view, node.target):
            yield node.target, False
    elif isinstance(node, ast.Call):
        func, name = node.func, last_name(node.func)
        yield from ((k.value, False) for k in node.keywords if k.arg == "out")
        inplace = name.endswith("_") and not name.endswith("__") and name not in NOT_WRITING
        if name == "setattr" or name.endswith("_to_parameters"):
            yield from ((a, False) for a in node.args)
        elif inplace and isinstance(func, ast.Attribute) and not view.torch_names(func):
            yield func.value, False
        elif inplace:
            yield from ((a, False) for a in node.args[:1])
        elif isinstance(func, ast.Attribute) and name in MUTATING:
            yield func.value, True


def _switches(view: View, call: ast.Call) -> bool:
    """Return whether a call updates weights, or sets the mode or the weights of a Module."""
    func = call.func
    if not isinstance(func, ast.Attribute):
        return False
    if func.attr == "step" and view.is_optimizer(func.value):
        return True
    return func.attr in _SETTING and view.atoms(func.value) in (set(), {"Module"})


def at_weights(view: View, item: ast.stmt, writing: bool = False) -> bool:
    """Return whether a statement, or what it runs, may read or write weights or gradients.

    Those that a variable, an attribute or a container has count as well. ``writing``: only what
    it changes is looked at.
    """
    search = _Weights(view.inference, frozenset(), ())
    for there, node in _run(view, (item,)):
        if isinstance(node, ast.Call) and _switches(there, node):
            return True
        if writing:
            held = [h for h, keyed in _changed(there, node) if not keyed]
        else:
            reading = isinstance(node, ast.Name | ast.Attribute | ast.Call)
            held = [node] if reading and not _is_measured(there, node) else []  # type: ignore[list-item]
        if any(not _is_plain(there, h) and search.origins(there.file, h) for h in held):
            return True
    return False


@dataclass
class _Weights(Search):
    """A search of weights or gradients that a value may be, hold or be part of."""

    def _behind(
        self, view: View, node: ast.expr, found: set[tuple[Function | None, str]]
    ) -> Iterator[tuple[File, ast.expr]]:
        if _is_plain(view, node):
            return
        if isinstance(node, ast.Name):
            yield from self._bound(view, node)
            yield from self._filled(view, node)
        elif isinstance(node, ast.Attribute):
            inside = view.atoms(node.value) == {"Module"} and view.atoms(node) == {"Tensor"}
            if node.attr in ("grad", "param_groups") or inside:
                found.add((None, node.attr))
            elif node.attr == "data":
                yield view.file, node.value
            elif view.atoms(node.value) == {"Tensor"}:
                if node.attr not in METADATA and shares(node.attr):
                    yield view.file, node.value
            else:
                yield from self._kept(node.attr)
                yield from self._filled(view, node)
        elif isinstance(node, ast.Call):
            yield from self._from_call(view, node, found)
        elif isinstance(node, ast.Subscript | ast.Starred):
            yield view.file, node.value
        elif isinstance(node, ast.IfExp):
            yield from ((view.file, v) for v in (node.body, node.orelse))
        elif isinstance(node, ast.BoolOp):
            yield from ((view.file, v) for v in node.values)
        elif isinstance(node, ast.Tuple | ast.List | ast.Set):
            yield from ((view.file, v) for v in node.elts)
        elif isinstance(node, ast.Dict):
            yield from ((view.file, v) for v in node.values)
        elif isinstance(node, ast.ListComp | ast.SetComp | ast.GeneratorExp):
            yield view.file, node.elt
        elif isinstance(node, ast.DictComp):
            yield view.file, node.value

    def _from_call(
        self, view: View, call: ast.Call, found: set[tuple[Function | None, str]]
    ) -> Iterator[tuple[File, ast.expr]]:
        func, name = call.func, last_name(call.func)
        kind = view.kind(func)
        if any(a.kind in ("function", "method") and "::" in a.name for a in kind):
            yield from self._called(view, call, set())
        elif isinstance(func, ast.Attribute) and name in _WEIGHTS:
            found.add((None, name))
        elif isinstance(func, ast.Attribute) and view.atoms(func.value) == {"Tensor"}:
            if shares(name) and name not in _FRESH:
                yield view.file, func.value
        elif view.atoms(func) == {"ref"}:
            if any(map(shares, view.torch_names(func))):
                yield from ((view.file, v) for v in call.args)
        elif not models(view, [func], "self"):
            receiver = [func.value] if isinstance(func, ast.Attribute) else []
            yield from ((view.file, v) for v in (*call.args, *receiver))


def _run(view: View, items: Iterable[ast.AST]) -> list[tuple[View, ast.AST]]:
    """Return the nodes of statements and of all functions that they run, each with its file."""
    found = [(view, n) for item in items for n in ast.walk(item)]
    known = freezing.of(view)
    waiting: list[freezing.Body] = []
    for item in items:
        if isinstance(item, ast.Name):
            continue  # runs nothing, and may stand for a loss, of no file
        body = known.body_of(view, item)
        whole = isinstance(item, ast.stmt) and id(item) in body.graph.spans
        at = body.graph.at(item, view.file.parents)
        nodes = body.graph.inside(item) if whole else (at,)  # type: ignore[arg-type]
        waiting += [b for n in nodes if n is not None for _, b in body.calls.get(n.index, ())]
    seen: set[int] = set()
    while waiting:
        body = waiting.pop()
        if id(body) not in seen:
            seen.add(id(body))
            there = View(body.file, view.inference)
            found += [(there, n) for n in (body.function or body.file).nodes]
            waiting += [b for some in body.calls.values() for _, b in some]
    return found


def _scope(view: View, name: ast.Name) -> object:
    """Return what a variable belongs to: a comprehension, a function, the file; None: a builtin."""
    node: ast.AST | None = view.file.parents.get(id(name))
    while node is not None:
        if isinstance(node, _COMPREHENSIONS):
            targets = (n for g in node.generators for n in ast.walk(g.target))
            if any(isinstance(n, ast.Name) and n.id == name.id for n in targets):
                return node
        function = view.file.functions.get(id(node))
        if function is not None and name.id in function.locals - function.globals:
            return function
        node = view.file.parents.get(id(node))
    builtin = name.id not in view.file.names and hasattr(builtins, name.id)
    return None if builtin else view.file


def _gets_out(view: View, name: ast.Name) -> bool:
    """Return whether unknown code, or another variable, may get what a variable holds.

    Not where it is computed with, and where torch or a generator of numpy is given it: ``opt`` in
    ``np.random.normal(0, 1, (n, opt.latent_dim))``.
    """
    node: ast.AST = name
    around = view.file.parents.get(id(node))
    while isinstance(around, _PASSING):
        if isinstance(around, ast.Subscript | ast.Attribute) and not isinstance(
            around.ctx, ast.Load
        ):
            return True
        node, around = around, view.file.parents.get(id(around))
    if isinstance(around, ast.Call):
        if around.func is node:
            return True
        known = {a.name for a in view.kind(around.func) if a.kind == "foreign"}
        drawn = bool(known) and all(n.startswith("numpy.random.") for n in known)
        return not drawn and view.atoms(around.func) != {"ref"}
    return not isinstance(around, _COMPUTING)


def _is_plain(view: View, node: ast.AST) -> bool:
    """Return whether a value has no contents: a number, a text, a name of torch."""
    atoms = {a.kind for a in view.kind(node)}
    return bool(atoms) and atoms <= _PLAIN


def _is_made(view: View, node: ast.Attribute) -> bool:
    """Return whether a constructor sets an attribute of the object that it makes."""
    function = view.file.function_at(node)
    if function is None or function.name != "__init__" or not function.parameters:
        return False
    return dotted(node.value) == function.parameters[0].arg


def _is_new(view: View, node: ast.expr) -> bool:
    """Return whether an expression makes its value: ``x.sum(0)`` shares no storage with ``x``."""
    func = node.func if isinstance(node, ast.Call) else None
    if isinstance(func, ast.Attribute) and func.attr == "tolist":
        return True
    if isinstance(func, ast.Attribute) and view.atoms(func.value) == {"Tensor"}:
        return not shares(func.attr) and not func.attr.endswith("_")
    return isinstance(node, ast.Constant) or is_fresh(view, node)


def _is_handed_on(view: View, name: ast.Name | ast.Attribute) -> bool:
    """Return whether another variable, object or function may get a value where it is read."""
    around = view.file.parents.get(id(name))
    if isinstance(name.ctx, ast.Store) or isinstance(around, ast.BinOp | ast.Compare | ast.Return):
        return False
    if isinstance(around, ast.AugAssign) and around.target is name:
        return False
    if isinstance(around, ast.Subscript) and around.value is name:
        return isinstance(around.ctx, ast.Load) and not _is_asked(view, around)
    return not _is_asked(view, name)


def _is_copied(view: View, node: ast.AST) -> bool:
    """Return whether a value is only given to what makes a Tensor of its numbers."""
    around = view.file.parents.get(id(node))
    while isinstance(around, ast.List | ast.Tuple):
        around = view.file.parents.get(id(around))
    return isinstance(around, ast.Call) and view.torch_names(around.func) == {"torch.tensor"}


def _is_asked(view: View, node: ast.AST) -> bool:
    """Return whether only the shape or the like of a value is read, or a new value is made."""
    around = view.file.parents.get(id(node))
    made = isinstance(around, ast.Attribute) and around.value is node and not shares(around.attr)
    return made or _is_measured(view, node)


def _is_measured(view: View, node: ast.AST) -> bool:
    """Return whether a value is called, or asked for its shape or the like alone."""
    around = view.file.parents.get(id(node))
    if isinstance(around, ast.Call):
        return around.func is node
    return isinstance(around, ast.Attribute) and around.value is node and around.attr in METADATA
