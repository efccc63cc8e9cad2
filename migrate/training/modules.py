"""In: statements. Out: the Modules that they call, by kind or by what is called on them."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass

from migrate.analysis.program import Function
from migrate.analysis.types.kinds import holds_no_tensor, without_none
from migrate.rules.stopped import asks_device
from migrate.syntax.trees import dotted, last_name
from migrate.training.effects import filling, uses
from migrate.training.marks import PARAMETERS, View

QUIET = ("torch.no_grad", "torch.inference_mode", "torch.autograd.no_grad")
AUTOCAST = ("torch.autocast", "torch.amp.autocast", "torch.cuda.amp.autocast")
_TELLING = ("parameters", "named_parameters", "train", "eval", "state_dict", "load_state_dict")


def models(view: View, nodes: Iterable[ast.AST], own: str) -> set[str]:
    """The names under ``nodes`` that are Modules: by kind, or by the methods called on them."""
    found: set[str] = set()
    for use in (u for n in nodes for u in uses(n, own)):
        atoms = view.atoms(use.node)
        if "Module" in atoms:
            atoms -= {"instance"}  # what a library made of it: ``apex.convert_syncbn_model(net)``
        known = atoms == {"Module"} and not _weightless(view, use.node)
        known = known or (not use.stored and view.is_leaf(use.node))
        told = not atoms and (use.name in _told(view) or _is_called(view, use.node))
        if (known or told or computes(view, use.node)) and not _asks_only(view, use.node):
            found.add(use.name)
    return found


def _asks_only(view: View, node: ast.AST) -> bool:
    """Return whether a Module is asked for numbers that it holds: ``net.output_shape``."""
    asked = view.file.parents.get(id(node))
    reads = isinstance(asked, ast.Attribute) and isinstance(asked.ctx, ast.Load)
    return reads and holds_no_tensor(view.kind(asked))  # type: ignore[arg-type]


def _is_called(view: View, node: ast.AST) -> bool:
    """Return whether a View that assumes so takes what is called here for a Module."""
    call = view.file.parents.get(id(node)) if view.assuming else None
    return isinstance(call, ast.Call) and call.func is node


def computes(view: View, node: ast.AST) -> bool:
    """Whether a function is called that gives back what Modules of its own compute.

    Modules that it is given stand among the arguments of the call.
    """
    call = view.file.parents.get(id(node))
    if not isinstance(call, ast.Call) or call.func is not node:
        return False
    atoms = [a for a in without_none(view.kind(node)) if a.kind in ("method", "function")]
    functions = (view.inference.function_of(a.name) for a in atoms if "::" in a.name)
    return any(_gives_computed(view, f) for f in functions if f is not None)


def _gives_computed(view: View, function: Function) -> bool:
    known = view.functions
    if function.key in known:
        return known[function.key]
    known[function.key] = False  # what calls itself does not compute by that
    body = function.node.body
    if isinstance(body, list) and any(_gives(s) for s in body):
        file = view.inference.program.files[function.path]
        own = function.parameters[0].arg if function.owner and function.parameters else "-"
        given = {p.arg for p in function.parameters}
        there = view if file is view.file else View(file, view.inference, functions=known)
        known[function.key] = bool(models(there, body, own) - given)
    return known[function.key]


def _gives(item: ast.stmt) -> bool:
    return any(isinstance(n, ast.Return) and n.value is not None for n in ast.walk(item))


def _weightless(view: View, node: ast.AST) -> bool:
    """Torch's own losses compute from what they are given alone."""
    names = [a.name for a in without_none(view.kind(node))]
    return all(n.startswith("torch.nn.") and n.endswith("Loss") for n in names)


def _told(view: View) -> set[str]:
    """Names of unknown kind of which a method is called that only Modules have."""
    if "told" not in view._memo:
        found: set[str] = set()
        for method in _TELLING:
            for call, _ in view.file.calls.get(method, ()):
                if isinstance(call.func, ast.Attribute) and not view.is_optimizer(call.func.value):
                    found |= {dotted(call.func.value), _root(call.func.value)}
        view._memo["told"] = found - {""}
    return view._memo["told"]


def _root(node: ast.expr) -> str:
    """``net`` of ``net[0].head``, ``self.net`` of ``self.net.head``.

    A part that is a Module belongs to one; self is no Module.
    """
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        if dotted(node.value) == "self":
            return dotted(node)
        node = node.value
    return node.id if isinstance(node, ast.Name) and node.id != "self" else ""


@dataclass(frozen=True)
class Kept:
    """What running Modules leaves behind: attributes, and variables whose containers it fills."""

    attributes: frozenset[str]
    variables: frozenset[str]

    def read_by(self, node: ast.AST) -> bool:
        """Return whether some of it is read under a node."""
        return any(
            n.attr in self.attributes if isinstance(n, ast.Attribute) else n.id in self.variables
            for n in ast.walk(node)
            if isinstance(n, (ast.Attribute, ast.Name)) and isinstance(n.ctx, ast.Load)
        )


def kept(view: View) -> Kept:
    """Return what forwards and hooks in the files around keep: ``self.loss = ...`` in a forward."""
    known: dict[str, Kept] = view.inference.program.notes.setdefault("kept by Modules", {})
    if view.file.path not in known:
        stores = [n for f in run_by_calls(view) for n in f.nodes]
        filled_ones = [u for n in stores if isinstance(n, ast.stmt) for u in filling(n)]
        bound = {n.attr for n in stores if isinstance(n, ast.Attribute) and not _is_load(n)}
        known[view.file.path] = Kept(
            frozenset(bound | {n.attr for n in filled_ones if isinstance(n, ast.Attribute)}),
            frozenset(n.id for n in filled_ones if isinstance(n, ast.Name)),
        )
    return known[view.file.path]


def _is_load(node: ast.Attribute) -> bool:
    return isinstance(node.ctx, ast.Load)


def run_by_calls(view: View) -> set[Function]:
    """Return the functions in the files around that a call of a Module may run."""
    functions: dict[str, list[Function]] = {}
    for function in (f for file in view.neighbours for f in file.functions.values()):
        functions.setdefault(function.name, []).append(function)
    is_module = view.inference.is_module
    todo = [
        f
        for name in ("forward", "__call__")
        for f in functions.get(name, ())
        if f.owner is not None and is_module(f.owner.key)
    ]
    for file in view.neighbours:
        for name, calls in file.calls.items():
            if name.startswith("register_") and name.endswith("_hook"):
                hooks = [n for call, _ in calls for a in call.args for n in ast.walk(a)]
                todo += [f for n in hooks for f in functions.get(last_name(n), ())]
    found: set[Function] = set()
    while todo:
        function = todo.pop()
        if function not in found:
            found.add(function)
            called = [n.func for n in function.nodes if isinstance(n, ast.Call)]
            inner = [n for n in function.nodes[1:] if isinstance(n, ast.FunctionDef)]
            names = {last_name(n) for n in called} | {n.name for n in inner}
            todo += [f for name in names - {"__init__"} for f in functions.get(name, ())]
    return found


def is_copy(view: View, function: Function, name: str) -> bool:
    """Return whether all that a function binds to a name are copies: ``copy.deepcopy(model)``.

    So is the object that a constructor makes, where it gets no Module from elsewhere.
    """
    own = function.parameters[0].arg if function.owner is not None and function.parameters else ""
    if function.name == "__init__" and own and name.partition(".")[0] == own:
        return _makes_all(view, function, own)
    named = (n for n in function.nodes if isinstance(n, (ast.Name, ast.Attribute)))
    stores = [n for n in named if isinstance(n.ctx, ast.Store) and dotted(n) == name]
    items = (view.file.parents.get(id(n)) for n in stores)
    values = [item.value for item in items if isinstance(item, ast.Assign)]
    made = [view.kind(v.func) for v in values if isinstance(v, ast.Call)]
    copied = all(atoms and all(a.name == "copy.deepcopy" for a in atoms) for atoms in made)
    return bool(made) and len(made) == len(stores) and copied


_SETTINGS = frozenset("int float bool str None dtype device Size".split())


def _makes_all(view: View, function: Function, own: str) -> bool:
    """Return whether a constructor reads nothing but settings, what it makes, and libraries.

    Of the program it calls classes alone: a function may give a Module that is used elsewhere.
    """
    given = {p.arg for p in function.parameters} - {own}
    for node in function.nodes:
        if isinstance(node, ast.Call) and any(
            a.kind in ("function", "method") and "::" in a.name for a in view.kind(node.func)
        ):
            return False
        if not isinstance(node, ast.Name) or not isinstance(node.ctx, ast.Load) or node.id == own:
            continue
        kinds = {a.kind for a in view.kind(node)}
        outer = node.id not in function.locals or node.id in given
        builtin = node.id not in given and node.id not in view.file.names
        if outer and not builtin and not (kinds and kinds <= _SETTINGS | {"ref", "foreign"}):
            around = view.file.parents.get(id(node))
            called = isinstance(around, ast.Call) and (
                around.func is node or getattr(around.func, "id", "") == "super"
            )
            if node.id not in view.file.top or not called:
                return False
    return True


def differentiates(view: View, node: ast.AST, depth: int = 4) -> bool:
    """Whether a function of the program is called that holds a ``backward()`` of its own."""
    for call in (n for n in ast.walk(node) if isinstance(n, ast.Call) and depth):
        for atom in without_none(view.kind(call.func)):
            known = atom.kind in ("function", "method") and "::" in atom.name
            function = view.inference.function_of(atom.name) if known else None
            if function is None:
                continue
            inner = (n for n in ast.walk(function.node) if isinstance(n, ast.Attribute))
            if any(n.attr == "backward" for n in inner):
                return True
            if differentiates(view, function.node, depth - 1):
                return True
    return False


def quiet(view: View, item: ast.stmt) -> bool:
    """Whether no gradient goes through what a statement computes."""
    if differentiates(view, item):
        return True  # its graph is used up
    if isinstance(item, ast.Assign) and isinstance(item.value, ast.Call):
        return _gives_constants(view, item.value)
    return isinstance(item, ast.With) and _is_call_of(view, item.items[0].context_expr, QUIET)


def _gives_constants(view: View, call: ast.Call) -> bool:
    """Return whether a function of the program gives nothing but what it has detached."""
    atoms = [a for a in without_none(view.kind(call.func)) if a.kind in ("function", "method")]
    functions = [view.inference.function_of(a.name) for a in atoms if "::" in a.name]
    if not functions or len(functions) < len(view.kind(call.func)):
        return False
    for function in functions:
        if function is None or not isinstance(function.node.body, list):
            return False
        own = [n for n in function.nodes if id(n) in function.own]
        if any(isinstance(n, ast.Yield | ast.YieldFrom) for n in own):
            return False
        values = [n.value for n in own if isinstance(n, ast.Return)]
        if not values or not all(v is not None and _is_detached(v) for v in values):
            return False
    return True


def _is_detached(value: ast.expr) -> bool:
    """Return whether an expression is ``x.detach()``, or a tuple of such."""
    if isinstance(value, ast.Tuple):
        return all(map(_is_detached, value.elts))
    func = value.func if isinstance(value, ast.Call) else None
    return isinstance(func, ast.Attribute) and func.attr == "detach"


def builds_optimizer(view: View, item: ast.stmt) -> bool:
    """Return whether a statement binds an optimizer or a schedule: it computes nothing."""
    value = item.value if isinstance(item, ast.Assign) else None
    names = view.torch_names(value.func) if isinstance(value, ast.Call) else set()
    return bool(names) and all(n.startswith("torch.optim.") for n in names)


def gives_weight(view: View, item: ast.stmt) -> bool:
    """Return whether a statement gives a Module a weight that functions of torch make."""
    value = item.value if isinstance(item, ast.Assign) else None
    if not isinstance(value, ast.Call) or not view.torch_names(value.func):
        return False
    calls = [n for n in ast.walk(value) if isinstance(n, ast.Call)]
    made = view.torch_names(value.func) <= PARAMETERS
    return made and all(view.torch_names(call.func) for call in calls)


def removed(view: View, context: ast.expr) -> bool:
    """Whether the converted code has no such context, so that nothing reads what is in it."""
    if not isinstance(context, ast.Call) or not _is_call_of(view, context, (*QUIET, *AUTOCAST)):
        return False
    return not any(asks_device(name, context) for name in view.torch_names(context.func))


def _is_call_of(view: View, node: ast.expr, wanted: tuple[str, ...]) -> bool:
    names = view.torch_names(node.func) if isinstance(node, ast.Call) else set()
    return bool(names) and names <= set(wanted)
