"""In: a function of the program. Out: the calls that mean it, and whether a forward gets there."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace

from migrate.analysis.program import File, Function
from migrate.analysis.types.inference import Inference
from migrate.analysis.types.kinds import BINARY, Atom
from migrate.sites.scene import Scene, once

CallSite = tuple[File, ast.Call, Function | None]


def scene_of(scene: Scene, file: File) -> Scene:
    """Return the same analysis, for another file of the program."""
    return scene if file is scene.file else replace(scene, file=file, _memo={})


def in_module_class(scene: Scene, function: Function | None) -> bool:
    owners = (f.owner for f in function.outwards) if function is not None else ()
    return any(owner is not None and scene.is_module_class(owner) for owner in owners)


def in_forward(
    scene: Scene, function: Function, seen: frozenset[str] = frozenset(), steps: int = 6
) -> bool:
    """Whether the forward of some Module calls the function: graph mode may compile it."""
    if function.name in ("forward", "__call__"):
        return True
    if function.name == "__init__" or function.key in seen or not steps:
        return False
    if function.parent is not None and in_forward(scene, function.parent, seen, steps - 1):
        return True
    seen = seen | {function.key}
    callers = {id(c): c for _, _, c in call_sites(scene, function) if c is not None}
    return any(in_forward(scene, c, seen, steps - 1) for c in callers.values())


def is_for_effect(scene: Scene, function: Function, seen: frozenset[str] = frozenset()) -> bool:
    """Whether some caller throws the result away, or hands it to one who does."""
    if function.key in seen:
        return False
    for file, call, caller in call_sites(scene, function):
        statement = file.parents.get(id(call))
        if isinstance(statement, ast.Expr):
            return True
        handed = isinstance(statement, ast.Return) and caller is not None
        if handed and caller is not None and is_for_effect(scene, caller, seen | {function.key}):
            return True
    return False


def call_sites(scene: Scene, function: Function) -> list[CallSite]:
    """Return the calls in the project that surely or possibly mean a function."""
    return sites_of(scene.inference, function)


def sites_of(inference: Inference, function: Function) -> list[CallSite]:
    """Return the calls in the project that surely or possibly mean a function."""
    return _all_sites(inference).get(function.key, [])


def passed(function: Function, call: ast.Call, name: str) -> ast.expr | None:
    """Return what a call passes for a parameter; None where it is left out or unpacked."""
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    places = [a.arg for a in (*function.node.args.posonlyargs, *function.node.args.args)]
    if function.owner is not None and not function.decorated("staticmethod"):
        places = places[1:]
    at = places.index(name) if name in places else len(call.args)
    before = call.args[: at + 1]
    unpacked = any(isinstance(a, ast.Starred) for a in before)
    return before[at] if at < len(before) and not unpacked else None


@once
def _all_sites(inference: Inference) -> dict[str, list[CallSite]]:
    found: dict[str, list[CallSite]] = {}
    forwards: dict[str, str] = {}
    for sites in inference.program.calls.values():
        for file, call, caller in sites:
            for atom in _reached(inference.kind(call.func)):
                key = atom.name
                if "::" not in key:
                    continue
                if atom.kind == "Module":
                    if key not in forwards:
                        members = inference.member(key, "forward")
                        forwards[key] = next((m.name for m in members), "")
                    key = forwards[key]
                elif atom.kind == "class":
                    owner = inference.class_of(key)
                    init = owner.methods.get("__init__") if owner is not None else None
                    key = init.key if init is not None else ""
                elif atom.kind not in ("function", "method"):
                    continue
                found.setdefault(key, []).append((file, call, caller))
    for ran in operators(inference).values():
        for file, call, function in ran:
            found.setdefault(function.key, []).append((file, call, file.function_at(call)))
    return found


@once
def operators(inference: Inference) -> dict[int, list[tuple[File, ast.Call, Function]]]:
    """Return the methods of classes of the program that operators, indices and ``with`` run.

    By the id of the node, each with a call that does the same.
    """
    found: dict[int, list[tuple[File, ast.Call, Function]]] = {}
    defined = {name for name in inference.program.holders if name.startswith("__")}
    classes = [c for c in _RUNNING if defined.intersection(_RUNNING[c])]
    for file in inference.program.files.values() if classes else ():
        for node in (n for c in classes for n in file.of(c)):
            for owner, name, given in _run_by(node, file):
                held = node if isinstance(node, ast.AugAssign) else owner  # before it is bound
                for key in _methods(inference, held, name) if name in defined else ():
                    function = inference.function_of(key)
                    if function is not None:
                        call = ast.Call(ast.Attribute(owner, name, ast.Load()), given, [])
                        ast.copy_location(call, owner)
                        file.parents[id(call)] = node
                        found.setdefault(id(node), []).append((file, call, function))
    return found


def _methods(inference: Inference, owner: ast.AST, name: str) -> list[str]:
    objects = [
        a for a in inference.kind(owner) if a.kind in ("Object", "Module") and "::" in a.name
    ]
    return sorted({m.name for a in objects for m in inference.member(a.name, name)})


_UNARY: dict[type[ast.unaryop], str] = {ast.USub: "neg", ast.UAdd: "pos", ast.Invert: "invert",
                                        ast.Not: "bool"}  # fmt: skip
_COMPARED: dict[type[ast.cmpop], str] = {
    ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge",
}  # fmt: skip
_ASKING = ("len", "str", "bool", "int", "float", "abs", "round", "iter", "next", "hash", "repr",
           "format", "reversed")  # fmt: skip
_RUNNING: dict[type[ast.AST], set[str]] = {
    ast.BinOp: {f"__{r}{n}__" for n in BINARY.values() for r in ("", "r")},
    ast.AugAssign: {f"__{i}{n}__" for n in BINARY.values() for i in ("", "i")},
    ast.UnaryOp: {f"__{n}__" for n in _UNARY.values()},
    ast.Compare: {"__contains__", *(f"__{n}__" for n in _COMPARED.values())},
    ast.Subscript: {"__getitem__", "__setitem__", "__delitem__"},
    ast.withitem: {"__enter__", "__exit__"},
    ast.Call: {f"__{n}__" for n in _ASKING},
}


def _run_by(node: ast.AST, file: File) -> Iterator[tuple[ast.expr, str, list[ast.expr]]]:
    """Yield the receivers, methods and arguments that a node stands for."""
    if isinstance(node, ast.BinOp):
        yield node.left, f"__{BINARY[type(node.op)]}__", [node.right]
        yield node.right, f"__r{BINARY[type(node.op)]}__", [node.left]
    elif isinstance(node, ast.AugAssign):
        yield node.target, f"__i{BINARY[type(node.op)]}__", [node.value]
        yield node.target, f"__{BINARY[type(node.op)]}__", [node.value]
    elif isinstance(node, ast.UnaryOp):
        yield node.operand, f"__{_UNARY[type(node.op)]}__", []
    elif isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
        for left, op, right in zip(sides, node.ops, sides[1:], strict=False):
            if isinstance(op, ast.In | ast.NotIn):
                yield right, "__contains__", [left]
            elif type(op) in _COMPARED:
                yield left, f"__{_COMPARED[type(op)]}__", [right]
    elif isinstance(node, ast.Call):
        name = getattr(node.func, "id", "")
        if name in _ASKING and node.args:
            yield node.args[0], f"__{name}__", []
    elif isinstance(node, ast.withitem):
        yield node.context_expr, "__enter__", []
        yield node.context_expr, "__exit__", []
    elif isinstance(node, ast.Subscript):
        if isinstance(node.ctx, ast.Load):
            yield node.value, "__getitem__", [node.slice]
            return
        item = file.parents.get(id(node))
        value = [item.value] if isinstance(item, ast.Assign) else []
        if isinstance(item, ast.AugAssign):
            yield node.value, "__getitem__", [node.slice]
        name = "__delitem__" if isinstance(node.ctx, ast.Del) else "__setitem__"
        yield node.value, name, [node.slice, *value]


def _reached(atoms: Iterable[Atom]) -> Iterator[Atom]:
    """Yield what a call runs: a Sequential runs its layers, a training step its network."""
    for atom in atoms:
        yield atom
        if atom.kind == "Step" or (atom.kind == "Module" and "::" not in atom.name):
            yield from _reached(a for kind in atom.items for a in kind)


def running(scene: Scene, keys: Collection[str]) -> Iterator[ast.AST]:
    """Yield the calls and reads of a file that by their kinds may run one of some functions."""
    known = [scene.inference.program.functions[key] for key in keys]
    for function in known:
        sites = sites_of(scene.inference, function)
        yield from (call for other, call, _ in sites if other is scene.file)
    properties = {f.name for f in known if f.decorated("property", "cached_property")}
    yield from (n for n in scene.file.of(ast.Attribute) if n.attr in properties)


def callers(inference: Inference, some: Iterable[str]) -> set[str]:
    """Return some functions, and those that call them, or what they override, or nest them."""
    program = inference.program
    above = _overridden(inference)
    found: set[str] = set()
    waiting = [key for key in some if key in program.functions]
    while waiting:
        key = waiting.pop()
        if key in found:
            continue
        found.add(key)
        function: Function = program.functions[key]
        waiting += above.get(key, ())
        waiting += [caller.key for _, _, caller in sites_of(inference, function) if caller]
    return found


def _overridden(inference: Inference) -> dict[str, list[str]]:
    """Return the methods that each method overrides."""
    found: dict[str, list[str]] = {}
    for owner in inference.program.classes.values():
        for method in owner.methods.values():
            for other in inference.summaries.graph.overriding(method):
                found.setdefault(other.key, []).append(method.key)
    return found
