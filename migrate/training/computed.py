"""Find values that a step reads and that carry a gradient from outside of it.

What a Module computed in front of the step, in another function, for a list or for an attribute
enters the step as a constant: the weights behind it would not be trained, without a word. The
search follows values backwards, through variables, arguments, results, attributes and containers;
it knows no order of attributes and containers, so it finds more rather than less.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field

from migrate.analysis.program import File, Function
from migrate.analysis.types.inference import Inference
from migrate.analysis.types.kinds import without_none
from migrate.rules.called_from import passed, sites_of
from migrate.syntax.trees import FUNCTIONS, children, dotted, last_name, targets_of
from migrate.training.detached import is_cut, is_own
from migrate.training.effects import filling, uses
from migrate.training.groups import Group, models_of
from migrate.training.marks import PARAMETERS, View
from migrate.training.modules import models, quiet, run_by_calls

# attributes, methods and functions that give a value without a gradient
_CUT = frozenset(
    "detach data item numpy tolist shape dtype device size dim ndim numel indices argmax argmin "
    "argsort nonzero bincount long int bool sample multinomial bernoulli eq ne lt le gt ge sign "
    "round floor ceil isnan isfinite tensor array asarray zeros_like ones_like rand_like "
    "randn_like full_like empty_like len range str parameters named_parameters "
    "state_dict get_lr get_last_lr param_groups keys".split()
)
_Origin = tuple[Function | None, str]


def outside(
    view: View,
    group: Group,
    nodes: Iterable[ast.AST],
    free: Collection[str],
    function: Function | None,
    own: str,
) -> str:
    """Return what a step reads of the names in ``free`` that carries such a gradient; "" if none.

    What Modules of the function computed that the optimizer does not update is a constant.
    """
    nodes = list(nodes)
    updated = {m for o in group.optimizers for m in models_of(view, o)}
    inside = frozenset(id(n) for item in nodes for n in ast.walk(item))
    around: list[Function | None] = [function]
    while (last := around[-1]) is not None:
        around.append(last.parent)
    search = Search(view.inference, inside, run_by_calls(view))
    for use, top in ((u, n) for n in nodes for u in uses(n, own)):
        if use.name in free and not use.stored and not is_cut(view, use, top):
            read = _whole(view, use.node)
            for scope, module in search.origins(view.file, read) if read is not None else ():
                if not (updated and scope in around and module not in updated):
                    return ast.unparse(read)  # type: ignore[arg-type]
    return ""


def _whole(view: View, node: ast.expr) -> ast.expr | None:
    """Return ``state.outputs["loss"]`` for its ``state``; None where no gradient goes on."""
    while True:
        around = view.file.parents.get(id(node))
        if isinstance(around, ast.Call) and around.func is node:
            return node.value if isinstance(node, ast.Attribute) else None
        if not isinstance(around, ast.Attribute | ast.Subscript) or around.value is not node:
            return node
        if isinstance(around, ast.Attribute) and _cuts(view, around):
            return None
        node = around


def is_computed(view: View, node: ast.expr, seen: frozenset[int] = frozenset()) -> bool:
    """Return whether a value is what a Module or an operator gives: no weight."""
    if id(node) in seen or view.atoms(node) == {"Object"}:  # its data are no Tensor's
        return True
    seen |= {id(node)}
    if isinstance(node, ast.Call):
        return bool(models(view, [node.func], "self"))
    if isinstance(node, ast.Attribute) and view.atoms(node.value) == {"Object"}:
        kept = Search(view.inference, frozenset(), ()).kept(node.attr)
        return bool(kept) and all(is_computed(View(f, view.inference), v, seen) for f, v in kept)
    if not isinstance(node, ast.Name):
        return isinstance(node, ast.BinOp)
    facts, inference = view.inference.facts(view.file.path), view.inference
    reach, values = facts.reach(node), facts.values(node)
    given = [b.place for b in reach.bindings if isinstance(b.place, ast.arg)]
    function = view.file.function_at(given[0]) if given else None
    loops = [view.file.parents.get(id(b.place)) for b in reach.bindings]
    if any(isinstance(loop, ast.For) for loop in loops):
        known = len(loops) == 1 and not reach.outside and isinstance(loops[0], ast.For)
        return known and is_computed(view, loops[0].iter, seen)  # type: ignore[union-attr]
    if reach.outside or (function is None and None in values):
        return False
    if not all(is_computed(view, v, seen) for v in values if v is not None):
        return False
    if function is None:
        return True
    sites = sites_of(inference, function) if len(given) == len(reach.bindings) else []
    passing = [(View(file, inference), passed(function, call, node.id)) for file, call, _ in sites]
    return bool(passing) and all(v is not None and is_computed(w, v, seen) for w, v in passing)


@dataclass
class Search:
    """A search of what computed a value; ``inside`` are the nodes of the step itself.

    ``run`` are functions that calls of Modules run: what these keep belongs to the call.
    """

    inference: Inference
    inside: frozenset[int]
    run: Collection[Function]
    _views: dict[str, View] = field(default_factory=dict)

    def origins(self, file: File, node: ast.expr) -> set[_Origin]:
        """Return the Modules behind a value, each with the function that calls it."""
        found: set[_Origin] = set()
        todo, seen = [(file, node)], set()
        while todo:
            file, node = todo.pop()
            if id(node) not in seen:
                seen.add(id(node))
                todo += self._behind(self._view(file), node, found)
        return found

    def _view(self, file: File) -> View:
        if file.path not in self._views:
            self._views[file.path] = View(file, self.inference)
        return self._views[file.path]

    def _behind(
        self, view: View, node: ast.expr, found: set[_Origin]
    ) -> Iterator[tuple[File, ast.expr]]:
        """Yield the values that a value is made of; what a Module computes is put into found."""
        if _is_cut(view, node) or view.atoms(node) in ({"Module"}, {"int"}, {"float"}, {"str"}):
            return
        if isinstance(node, ast.Name):
            yield from self._bound(view, node)
            yield from self._filled(view, node)
        elif isinstance(node, ast.Attribute):
            yield from self._kept(node.attr)
            yield from self._filled(view, node)
            yield view.file, node.value
        elif isinstance(node, ast.Call):
            yield from self._called(view, node, found)
        else:
            for part in children(node):
                if isinstance(part, ast.expr):
                    yield view.file, part

    def _called(
        self, view: View, call: ast.Call, found: set[_Origin]
    ) -> Iterator[tuple[File, ast.expr]]:
        func, program = call.func, self.inference.program
        if view.torch_names(func) & PARAMETERS:
            return  # a weight: no gradient goes on to what its numbers were made of
        functions = [
            f
            for a in without_none(view.kind(func))
            if a.kind in ("function", "method") and "::" in a.name
            and (f := self.inference.function_of(a.name)) is not None
        ]  # fmt: skip
        named = func if isinstance(func, ast.Name) or _is_part(func) else None
        unknown = not view.atoms(func) and bool(call.args)  # a Module that the program is given
        if unknown and isinstance(func, ast.Name) and self._transforms(view, func):
            return  # of images, which have no gradient
        if not functions and named is not None and (models(view, [named], "self") or unknown):
            found.add((view.file.function_at(call), dotted(named)))
            return
        if not functions and _computes_by(view, call):
            found.add((view.file.function_at(call), ast.unparse(func.value)))  # type: ignore[attr-defined]
            return
        for function in functions:
            body = function.node
            own = (n for n in function.nodes if id(n) in function.own)
            given = (n.value for n in own if isinstance(n, ast.Return | ast.Yield | ast.YieldFrom))
            values = [body.body] if isinstance(body, ast.Lambda) else [v for v in given if v]
            yield from ((program.files[function.path], v) for v in values)
        if not functions:
            passed = [*call.args, *(k.value for k in call.keywords)]
            receiver = [func.value] if isinstance(func, ast.Attribute) else []
            yield from ((view.file, v) for v in (*passed, *receiver))

    def _transforms(self, view: View, name: ast.Name) -> bool:
        """Return whether all that a variable may be is made by torchvision's transforms."""
        todo, seen, made = list(self._bound(view, name)), set(), False
        while todo:
            file, value = todo.pop()
            there = self._view(file)
            if id(value) in seen:
                continue
            seen.add(id(value))
            if isinstance(value, ast.Name):
                more = list(self._bound(there, value))
                if not more:
                    return False
                todo += more
            elif isinstance(value, ast.Call) and (names := there.kind(value.func)):
                if not all(a.name.startswith("torchvision.transforms.") for a in names):
                    return False
                made = True
            elif not (isinstance(value, ast.Constant) and value.value is None):
                return False
        return made

    def _bound(self, view: View, name: ast.Name) -> Iterator[tuple[File, ast.expr]]:
        """Yield what a variable was bound to, wherever that was."""
        facts, parents = self.inference.facts(view.file.path), view.file.parents
        for value in facts.values(name, parts=True):
            if value is not None and id(value) not in self.inside:
                yield view.file, value
        for binding in facts.reach(name).bindings:
            place = binding.place
            if isinstance(place, ast.arg):
                yield from self._passed(view.file, place)
                continue
            around = parents.get(id(place))
            while isinstance(around, ast.Tuple | ast.List | ast.Starred):
                around = parents.get(id(around))
            if isinstance(around, ast.For | ast.AsyncFor | ast.comprehension):
                yield view.file, around.iter
            elif isinstance(around, ast.withitem):
                yield view.file, around.context_expr

    def _passed(self, file: File, place: ast.arg) -> Iterator[tuple[File, ast.expr]]:
        """Yield what calls pass for a parameter, and for all of them where that is not seen."""
        function = file.function_at(place)
        if function is None:
            return
        arguments = function.node.args
        places = [*arguments.posonlyargs, *arguments.args]
        bound = function.owner is not None and not function.decorated("staticmethod")
        if bound and places and place is places[0]:
            return
        at = places.index(place) - bound if place in places else None
        for there, call, _ in sites_of(self.inference, function):
            named = [k.value for k in call.keywords if k.arg in (place.arg, None)]
            plain = at is not None and not any(isinstance(a, ast.Starred) for a in call.args)
            values = call.args[at : at + 1] if plain and at is not None else call.args
            yield from ((there, v) for v in (*values, *named))

    def kept(self, attribute: str) -> list[tuple[File, ast.expr]]:
        """Return what any object of the program may have at an attribute; nothing if not known."""
        if any(len(c.args) < 2 or not isinstance(c.args[1], ast.Constant)
               for f in self.inference.program.files.values()
               for c, _ in f.calls.get("setattr", ())):  # fmt: skip
            return []
        return list(self._kept(attribute))

    def _kept(self, attribute: str) -> Iterator[tuple[File, ast.expr]]:
        """Yield what any object of the program may have at an attribute."""
        for file, function, value in self._index()[0].get(attribute, ()):
            if function not in self.run and id(value) not in self.inside:
                yield file, value

    def _filled(self, view: View, node: ast.expr) -> Iterator[tuple[File, ast.expr]]:
        """Yield what is put into containers that an expression may be."""
        sites = {s for a in view.kind(node) for s in a.sites}
        fills = [f for s in sites for f in self._index()[1].get(s, ())]
        named = self._index()[2].get(_place(view.file, node), ())
        for file, function, value in (*fills, *named):
            if function not in self.run and id(value) not in self.inside:
                yield file, value

    def _index(self) -> tuple[dict[object, list[tuple[File, Function | None, ast.expr]]], ...]:
        """Return what is stored: by attribute; and what is put in: by site and by last name."""
        notes = self.inference.program.notes
        if "stores of values" not in notes:
            stores: tuple[dict[object, list[tuple[File, Function | None, ast.expr]]], ...]
            stores = ({}, {}, {})
            for file in self.inference.program.files.values():
                for item in file.nodes:
                    if isinstance(item, ast.Expr | ast.Assign | ast.AnnAssign | ast.AugAssign):
                        self._put(file, item, stores)
            notes["stores of values"] = stores
        return notes["stores of values"]  # type: ignore[no-any-return]

    def _put(
        self,
        file: File,
        item: ast.Expr | ast.Assign | ast.AnnAssign | ast.AugAssign,
        stores: tuple[dict[object, list[tuple[File, Function | None, ast.expr]]], ...],
    ) -> None:
        value, function = item.value, file.function_at(item)
        if value is None or (isinstance(item, ast.Expr) and not isinstance(value, ast.Call)):
            return
        given = [*value.args, *(k.value for k in value.keywords)] if isinstance(
            item, ast.Expr) and isinstance(value, ast.Call) else [value]  # fmt: skip
        new = [(file, function, v) for v in given]
        if isinstance(value, ast.Call) and getattr(value.func, "id", "") == "setattr":
            name = value.args[1] if len(value.args) == 3 else None
            if isinstance(name, ast.Constant):
                stores[0].setdefault(name.value, []).append((file, function, value.args[2]))
        if not isinstance(item, ast.Expr):
            for node in (n for t in targets_of(item) for n in ast.walk(t)):
                if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                    stores[0].setdefault(node.attr, []).extend(new)
        for held in filling(item):
            while isinstance(held, ast.Subscript):
                held = held.value
            sites = {s for a in self.inference.kinds.get(id(held), ()) for s in a.sites}
            for site in sites:
                stores[1].setdefault(site, []).extend(new)
            if not sites or isinstance(held, ast.Attribute):
                stores[2].setdefault(_place(file, held), []).extend(new)


def _computes_by(view: View, call: ast.Call) -> bool:
    """Return whether a method of a Module is called that nobody sees: ``model.train_step(x)``."""
    func = call.func
    if not isinstance(func, ast.Attribute) or func.attr.startswith("init") or not call.args:
        return False
    known = view.torch_names(func) or view.inference.table.kind(f"torch.nn.Module.{func.attr}")
    return not known and view.atoms(func.value) == {"Module"}


def _place(file: File, node: ast.expr) -> object:
    """Return what tells a container of unknown site: an attribute's name, or the variable."""
    if not isinstance(node, ast.Name):
        return last_name(node)
    function = file.function_at(node)
    while function is not None and node.id not in function.locals:
        function = function.parent
    return (node.id, file.path if function is None else function.key)


def _cuts(view: View, node: ast.Attribute) -> bool:
    """Return whether an attribute gives no gradient; an object of the program gives what it has."""
    return node.attr in _CUT and not is_own(view, node.value)


def _is_part(node: ast.expr) -> bool:
    """Return whether an expression is ``self.net``: what is called is the object itself."""
    return isinstance(node, ast.Attribute) and getattr(node.value, "id", "") == "self"


def _is_of_python(view: View, func: ast.expr) -> bool:
    """Return whether a name comes by ``from random import *``: no Module, and no gradient."""
    stars = [n for n in view.file.imports if n.names[0].name == "*"]
    if not stars or not isinstance(func, ast.Name) or func.id in view.file.names:
        return False
    modules = [
        n.module or "" if isinstance(n, ast.ImportFrom) and not n.level else "" for n in stars
    ]
    return all(m.partition(".")[0] in sys.stdlib_module_names for m in modules)


def _is_cut(view: View, node: ast.expr) -> bool:
    """Return whether no gradient goes through a value: it is cut off, or nothing is recorded."""
    named = node.func if isinstance(node, ast.Call) else node
    program = view.inference.program
    own = isinstance(node, ast.Call) and any(
        a.name in program.functions or a.name in program.classes for a in view.kind(node.func)
    )
    part = isinstance(named, ast.Attribute) and dotted(named.value) != "self"
    if part and not own and _cuts(view, named):  # type: ignore[arg-type]
        return True
    if not own and isinstance(node, ast.Call) and last_name(node.func) in _CUT:
        return True
    if isinstance(node, ast.Call) and _is_of_python(view, node.func):
        return True
    if isinstance(node, (*FUNCTIONS, ast.Constant, ast.Compare, ast.JoinedStr)):
        return True
    around = view.file.parents.get(id(node))
    while around is not None and not isinstance(around, (*FUNCTIONS, ast.ClassDef)):
        if isinstance(around, ast.With) and quiet(view, around):
            return True
        around = view.file.parents.get(id(around))
    decorated = getattr(around, "decorator_list", [])
    return any("no_grad" in ast.unparse(d) or "inference_mode" in ast.unparse(d) for d in decorated)
