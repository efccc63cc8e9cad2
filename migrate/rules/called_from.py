"""In: a function of the program. Out: the calls that mean it, and whether a forward gets there."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace

from migrate.analysis.callgraph import CONSTRUCTORS
from migrate.analysis.program import File, Function
from migrate.analysis.types.inference import Inference
from migrate.analysis.types.kinds import BINARY, Atom
from migrate.rules.torch_sharing import is_written
from migrate.sites.scene import Scene, once

CallSite = tuple[File, ast.Call, Function | None]


def scene_of(scene: Scene, file: File) -> Scene:
    """Return the same analysis, for another file of the program."""
    return scene if file is scene.file else replace(scene, file=file, _memo={})


def in_module_class(scene: Scene, function: Function | None) -> bool:
    owners = (f.owner for f in function.outwards) if function is not None else ()
    return any(owner is not None and scene.is_module_class(owner) for owner in owners)


def in_forward(scene: Scene, function: Function) -> bool:
    """Whether the forward of some Module calls the function: graph mode may compile it."""
    known = _in_forward(scene.inference)
    if function.key not in known:
        known[function.key] = _is_in_forward(scene, function)
    return known[function.key]


@once
def _in_forward(_inference: Inference) -> dict[str, bool]:
    return {}  # what was found out of a function, by its key


def _is_in_forward(scene: Scene, function: Function, steps: int = 6) -> bool:
    around, seen = [function], {function.key}
    for left in range(steps, -1, -1):
        if any(one.name in ("forward", "__call__") for one in around):
            return True
        if not left:
            break
        inner = [one for one in around if one.name != "__init__"]
        found = [one.parent for one in inner]
        found += [caller for one in inner for _, _, caller in call_sites(scene, one)]
        outer = {one.key: one for one in found if one is not None and one.key not in seen}
        around = list(outer.values())
        seen |= outer.keys()
    return False


def may_be_compiled(scene: Scene, function: Function) -> bool:
    """Whether graph mode may compile a function: a forward calls it, or nothing shows who does."""
    if in_forward(scene, function):
        return True
    todo, seen = [function], {function.key}
    while todo:
        one = todo.pop()
        callers = [caller for _, _, caller in call_sites(scene, one)]
        if one.parent is None and one.owner is None and not callers:
            return True
        around = [f for f in (one.parent, *callers) if f is not None and f.key not in seen]
        todo += around
        seen |= {f.key for f in around}
    return False


def is_for_effect(scene: Scene, function: Function) -> bool:
    """Whether some caller throws the result away, or hands it to one who does."""
    todo = [function]
    for one in todo:
        for file, call, caller in call_sites(scene, one):
            statement = file.parents.get(id(call))
            if isinstance(statement, ast.Expr):
                return True
            if isinstance(statement, ast.Return) and caller is not None and caller not in todo:
                todo.append(caller)
    return False


def call_sites(scene: Scene, function: Function) -> list[CallSite]:
    """Return the calls in the project that surely or possibly mean a function."""
    return sites_of(scene.inference, function)


def sites_of(inference: Inference, function: Function) -> list[CallSite]:
    """Return the calls in the project that surely or possibly mean a function."""
    return _all_sites(inference)[0].get(function.key, [])


def passed(function: Function, call: ast.Call, name: str) -> ast.expr | None:
    """Return what a call passes for a parameter; None where it is left out or unpacked."""
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    places = [a.arg for a in (*function.node.args.posonlyargs, *function.node.args.args)]
    if getattr(call.func, "attr", "") == "apply" and function.name == "forward":
        places = places[function.context + 1 :]
    elif function.owner is not None and not function.decorated("staticmethod"):
        places = places[1:]
    at = places.index(name) if name in places else len(call.args)
    before = call.args[: at + 1]
    unpacked = any(isinstance(a, ast.Starred) for a in before)
    return before[at] if at < len(before) and not unpacked else None


def handed_sites(inference: Inference, function: Function) -> list[CallSite]:
    """Return the calls that have another function call this one, with whatever it is given."""
    return _all_sites(inference)[1].get(function.key, [])


@once
def _all_sites(inference: Inference) -> tuple[dict[str, list[CallSite]], dict[str, list[CallSite]]]:
    """Return the calls of each function by its key, and those that hand it to a function."""
    found: dict[str, list[CallSite]] = {}
    handed: dict[str, list[CallSite]] = {}
    for sites in inference.program.calls.values():
        for file, call, caller in sites:
            exact = is_exact(inference, call)
            for atom in _reached(inference.kind(call.func)):
                for function in functions_of(inference, atom, exact):
                    derived = atom.kind == "partial" or function.name == "__post_init__"
                    sites_by_key = handed if derived else found
                    sites_by_key.setdefault(function.key, []).append((file, call, caller))
            for function in handed_to(inference, call):
                handed.setdefault(function.key, []).append((file, call, caller))
    for ran in operators(inference).values():
        for file, call, function in ran:
            found.setdefault(function.key, []).append((file, call, file.function_at(call)))
    return found, handed


def is_exact(inference: Inference, call: ast.Call) -> bool:
    """Return whether a method is named by its class: no class derived from it has another."""
    of = inference.kind(call.func.value) if isinstance(call.func, ast.Attribute) else frozenset()
    return bool(of) and all(a.kind in ("class", "super") for a in of)


def functions_of(inference: Inference, atom: Atom, exact: bool = False) -> tuple[Function, ...]:
    """Return the functions of the program that a call of one alternative may run."""
    known: dict[tuple[Atom, bool], tuple[Function, ...]]
    known = inference.program.notes.setdefault("functions of", {})
    found = known.get((atom, exact))
    if found is None:
        found = known[atom, exact] = _functions_of(inference, atom, exact)
    return found


def _functions_of(inference: Inference, atom: Atom, exact: bool) -> tuple[Function, ...]:
    graph = inference.summaries.graph
    if atom.kind in ("function", "method"):
        function = inference.function_of(atom.name)
        if function is None:
            return ()
        return (function,) if exact else graph.overriding(function)
    if atom.kind == "partial":
        inner = (f for i in atom.items for a in i for f in functions_of(inference, a))
        return tuple(dict.fromkeys(inner))
    names: tuple[str, ...] = ()
    if "::" in atom.name:
        called = ("__call__", "forward")
        names = {"class": CONSTRUCTORS, "Module": called, "Object": called[:1]}.get(atom.kind, ())
    found: dict[Function, None] = {}
    for name in names:
        members = (inference.function_of(m.name) for m in inference.member(atom.name, name))
        known = [f for f in members if f is not None]
        own = [f for f in known if f.owner is not None] or known  # not what is put on any Module
        for function in own:
            more = (function,) if name in CONSTRUCTORS else graph.overriding(function)
            found |= dict.fromkeys(more)
    return tuple(found)


def handed_to(inference: Inference, call: ast.Call) -> tuple[Function, ...]:
    """Return the functions of the program that a call hands to what is not of the program.

    It may call them, now or later: ``map(f, xs)``, ``sorted(xs, key=f)``, ``reduce(f, xs)``.
    """
    given = [*call.args, *(k.value for k in call.keywords)]
    atoms = [a for g in given if type(g) in _HANDED for a in inference.kind(g)]
    calling = [a for a in atoms if a.kind in _CALLABLE]
    if not calling or any(map(_keeps, inference.kind(call.func))):
        return ()
    found = (f for a in calling for f in functions_of(inference, a))
    return tuple(dict.fromkeys(found))


def _keeps(atom: Atom) -> bool:
    """Return whether a function that is called shows by itself what it does with another."""
    return "::" in atom.name or atom.kind in ("partial", "Module") or atom.name in _LEAVING


_HANDED = frozenset((ast.Name, ast.Attribute, ast.Lambda))
_CALLABLE = frozenset(("function", "method", "partial"))
_LEAVING = frozenset("functools.partial isinstance callable id print type hasattr getattr setattr "
                     "repr str".split())  # fmt: skip


@once
def operators(inference: Inference) -> dict[int, list[tuple[File, ast.Call, Function]]]:
    """Return the methods of classes of the program that no call names: of operators, indices,
    ``with`` and ``for``, and of properties.

    By the id of the node, each with a call that does the same.
    """
    found: dict[int, list[tuple[File, ast.Call, Function]]] = {}
    defined = {name for name in inference.program.holders if name.startswith("__")}
    classes = [c for c in _RUNNING if defined.intersection(_RUNNING[c])]
    for file in inference.program.files.values() if classes else ():
        for node in (n for c in classes for n in file.of(c)):
            for owner, name, given in _run_by(node, file):
                if name == "__getattr__" and _has(inference, owner, getattr(node, "attr", "")):
                    continue
                held = node if isinstance(node, ast.AugAssign) else owner  # before it is bound
                for key in _methods(inference, held, name) if name in defined else ():
                    function = inference.function_of(key)
                    if function is not None and _is_method(function, len(given)):
                        run = _run(file, node, owner, function, given)
                        found.setdefault(id(node), []).append(run)
    for file, node, function, given in _properties(inference):
        run = _run(file, node, node.value, function, given)
        found.setdefault(id(node), []).append(run)
    return found


def _is_method(function: Function, given: int) -> bool:
    """Return whether Python can run a function for an operator, with so many arguments.

    A function that is put on something unknown takes the object as well, if that is a class: the
    ``__getattr__`` of a module takes a name alone.
    """
    arguments = function.node.args
    decorated = getattr(function.node, "decorator_list", [])
    if function.owner is not None or decorated or arguments.vararg is not None:
        return True
    places = len(arguments.posonlyargs) + len(arguments.args)
    return places - len(arguments.defaults) <= given + 1 <= places


def _run(
    file: File, node: ast.AST, owner: ast.expr, function: Function, given: list[ast.expr]
) -> tuple[File, ast.Call, Function]:
    """Return a method that a node runs, with a call that does the same."""
    call = ast.Call(ast.Attribute(owner, function.name, ast.Load()), given, [])
    ast.copy_location(call, owner)
    file.parents[id(call)] = node
    return file, call, function


def _properties(
    inference: Inference,
) -> Iterator[tuple[File, ast.Attribute, Function, list[ast.expr]]]:
    """Yield the reads and bindings of properties of the program, with what runs."""
    of_class: dict[tuple[str, str], list[Function]] = {}
    for file in inference.program.files.values():
        for function in file.functions.values():
            if function.owner is not None and function.decorated(*_ACCESS):
                of_class.setdefault((function.owner.key, function.name), []).append(function)
    names = {name for _, name in of_class}
    graph = inference.summaries.graph
    for file in inference.program.files.values() if names else ():
        for node in file.of(ast.Attribute):
            if node.attr not in names:
                continue
            item = file.parents.get(id(node))
            both = isinstance(item, ast.AugAssign)
            load = isinstance(node.ctx, ast.Load)
            ways = {"setter"} if not load else {"property", "cached_property"}
            ways |= {"property", "cached_property"} if both else set()
            given = [item.value] if isinstance(item, (ast.Assign, ast.AugAssign)) else []
            classes = [inference.class_of(a.name) for a in _objects(inference, node.value)]
            near = {c.key for owner in classes if owner is not None for c in graph.family(owner)}
            for key in sorted(near):
                for function in of_class.get((key, node.attr), ()):
                    if function.decorated(*ways):
                        yield file, node, function, [] if load else given


_ACCESS = ("property", "cached_property", "setter")


def _methods(inference: Inference, owner: ast.AST, name: str) -> list[str]:
    objects = _objects(inference, owner)
    return sorted({m.name for a in objects for m in inference.member(a.name, name)})


def _has(inference: Inference, owner: ast.AST, name: str) -> bool:
    """Return whether an attribute is defined for all that a value may be."""
    owners = [inference.class_of(a.name) for a in _objects(inference, owner)]
    graph = inference.summaries.graph
    return all(
        any(name in c.methods or name in c.stores for c in graph.family(one))
        for one in owners
        if one is not None
    )


def _objects(inference: Inference, node: ast.AST) -> list[Atom]:
    """Return the classes of the program that a value may be of."""
    kinds = inference.kind(node)
    return [a for a in kinds if a.kind in ("Object", "Module") and "::" in a.name]


_UNARY: dict[type[ast.unaryop], str] = {ast.USub: "neg", ast.UAdd: "pos", ast.Invert: "invert",
                                        ast.Not: "bool"}  # fmt: skip
_COMPARED: dict[type[ast.cmpop], str] = {
    ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge",
}  # fmt: skip
_ASKING = ("len", "str", "bool", "int", "float", "abs", "round", "iter", "next", "hash", "repr",
           "format", "reversed")  # fmt: skip
_GOING_THROUGH = ("iter", "next")
_SEQUENCES = frozenset("list tuple set frozenset sorted sum min max any all zip enumerate map "
                       "filter dict".split())  # fmt: skip
_RUNNING: dict[type[ast.AST], set[str]] = {
    ast.BinOp: {f"__{r}{n}__" for n in BINARY.values() for r in ("", "r")},
    ast.AugAssign: {f"__{i}{n}__" for n in BINARY.values() for i in ("", "i")},
    ast.UnaryOp: {f"__{n}__" for n in _UNARY.values()},
    ast.Compare: {"__contains__", *(f"__{n}__" for n in _COMPARED.values())},
    ast.Subscript: {"__getitem__", "__setitem__", "__delitem__"},
    ast.withitem: {"__enter__", "__exit__"},
    ast.Call: {f"__{n}__" for n in (*_ASKING, *_GOING_THROUGH)},
    ast.Attribute: {"__getattr__", "__setattr__"},
    ast.For: {f"__{n}__" for n in _GOING_THROUGH},
    ast.comprehension: {f"__{n}__" for n in _GOING_THROUGH},
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
        elif name in _SEQUENCES:
            yield from ((a, f"__{n}__", []) for a in node.args for n in _GOING_THROUGH)
    elif isinstance(node, ast.Attribute):
        item, name = file.parents.get(id(node)), ast.Constant(node.attr)
        if isinstance(node.ctx, ast.Load) or isinstance(item, ast.AugAssign):
            yield node.value, "__getattr__", [name]
        if isinstance(node.ctx, ast.Store):
            value = getattr(item, "value", None)
            given = [value] if isinstance(value, ast.expr) and value is not node else []
            yield node.value, "__setattr__", [name, *given]
    elif isinstance(node, ast.For | ast.comprehension):
        yield from ((node.iter, f"__{n}__", []) for n in _GOING_THROUGH)
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


def may_write(inference: Inference, call: ast.Call, makers: Collection[Function]) -> bool:
    """Return whether making an object may change a Tensor that was there before it."""
    given = (*call.args, *(k.value for k in call.keywords))
    kinds = ({a.kind for a in inference.kind(g)} for g in given)
    if any(not names or not names <= _HOLDING_NONE for names in kinds):
        return True
    return any(maker.key in _outside_writers(inference) for maker in makers)


def makes_anew(scene: Scene, func: ast.expr) -> bool:
    """Return whether a method is torch's, gives a new tensor, and no class in sight has it."""
    name = func.attr if isinstance(func, ast.Attribute) else ""
    if not scene.table.rows(f"torch.Tensor.{name}"):
        return False
    program = scene.inference.program
    if not (owners := program.holders.get(name, ())):
        return True
    near = {file.path for file in program.in_sight(scene.file.path)}
    return not any(owner.path in near for owner in owners)


def is_told(inference: Inference, key: str, makers: Collection[Function]) -> bool:
    """Return whether what an object of a class holds at first is what its ``__init__`` puts there:
    no class above it has code that is not seen."""
    todo = [key]
    for one in todo:
        if one not in inference.program.classes:
            return False
        above = [base for kind in inference.bases(one) for base in kind]
        todo += [a.name for a in above if a.kind == "class" and a.name not in todo]
        if any(a.kind != "class" and a.name not in _PLAIN_BASES for a in above):
            return False
        if not inference.program.classes[one].methods.keys().isdisjoint(_BUILDING):
            return False
    return bool(makers) and all(maker.name == "__init__" for maker in makers)


_PLAIN_BASES = frozenset(("torch.nn.Module", "object", "abc.ABC"))
_BUILDING = frozenset(("__new__", "__init_subclass__", "__setattr__", "__getattribute__"))
_HOLDING_NONE = frozenset("int float bool str Size dtype device torch class function ref builtin "
                          "None foreign project".split())  # fmt: skip


@once
def _outside_writers(inference: Inference) -> frozenset[str]:
    """Return the functions that may change a variable of outside in place, or call one that does.

    By their text: what is written is reached from a name that is not bound in the function.
    """
    found: set[str] = set()
    for file in inference.program.files.values():
        for place in _written_places(file):
            while isinstance(place, ast.Attribute | ast.Subscript | ast.Call):
                place = place.func if isinstance(place, ast.Call) else place.value
            function = file.function_at(place)
            if function is not None and getattr(place, "id", "") not in function.locals:
                found.add(function.key)
    return frozenset(callers(inference, found))


def _written_places(file: File) -> Iterator[ast.AST]:
    """Yield what may be changed in place in a file, by its text."""
    for call in file.of(ast.Call):
        if isinstance(call.func, ast.Attribute) and is_written(call.func.attr):
            yield call.func.value
            yield from call.args[:1]
    yield from (a.target for a in file.of(ast.AugAssign) if not isinstance(a.target, ast.Name))
    yield from (s.value for s in file.of(ast.Subscript) if isinstance(s.ctx, ast.Store))
