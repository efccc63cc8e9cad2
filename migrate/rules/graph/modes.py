"""Make graph mode compile anew where host code changes what a graph has for a constant.

An attribute, a global, the contents of a list, the mode of a Cell inside another are constants of
the graph: what is set after the first call changes nothing, without a word. ``compile_anew()``
behind the change throws the graphs away; for modes, where the whole is known,
``modes_are_set(whole)`` compares them with those that were seen. Nothing is added where no call can
have come before: in constructors, and behind the binding of a new object.
"""

from __future__ import annotations

import ast
from collections.abc import Container, Iterator, Mapping
from functools import partial

from migrate.analysis.program import File, Function
from migrate.analysis.types import contents
from migrate.analysis.types.contents import Sites
from migrate.analysis.types.inference import Inference
from migrate.analysis.types.kinds import ARRAY, CONTEXT, Site
from migrate.codegen.substitution import piece
from migrate.records.outcomes import Edit, Part
from migrate.rules.called_from import passed, sites_of
from migrate.rules.graph import containers, scope, state
from migrate.rules.graph.memo import constructing
from migrate.rules.inplace import changes as changes_values
from migrate.sites.scene import Scene, once, once_a_file
from migrate.syntax.trees import all_names, all_parameters, within

_SETTERS = frozenset(("train", "eval"))
_PARTS = frozenset(("modules", "children", "named_modules", "named_children", "values", "items"))
_DEPTH = 4  # callers of callers: beyond that it is not known what a parameter is
Reads = Mapping[str, frozenset[str]]
Switch = tuple[ast.AST, ast.expr]  # the call or store, and the Module whose mode it sets


def switched(scene: Scene) -> Iterator[Edit]:
    """Yield what stands behind the statements that set modes, in programs that set those of parts.

    Nothing is added where no call of a Module can have come before.
    """
    if not _sets_parts(scene.inference):
        return
    done: set[tuple[int, str]] = set()
    switches = list(_switches(scene.inference, scene.file))
    setting = {id(node) for node, _ in switches}
    for node, held in switches:
        if not _is_host(scene, node) or not called_before(scene, node, held):
            continue
        whole = _whole(scene.inference, scene.file, held)
        text = ast.unparse(whole) if whole is not None else ""
        statement = scene.statement(node) if whole is None else _last(scene, node, setting)
        if (id(statement), text) in done or isinstance(statement, ast.Return):
            continue
        done.add((id(statement), text))
        yield behind(scene, statement, whole)


@once
def _sets_parts(inference: Inference) -> bool:
    """Return whether host code of the program sets the mode of a Module inside another."""
    return any(
        _is_part(inference, file, held)
        for file in inference.program.files.values()
        for _, held in _switches(inference, file)
    )


def _switches(inference: Inference, file: File) -> Iterator[Switch]:
    """Yield ``m.train()``, ``m.eval()`` and ``m.training = ...`` of what may be a Module."""
    for name in _SETTERS:
        for call, _ in file.calls.get(name, ()):
            method, count = call.func, len(call.args) + len(call.keywords)
            if not isinstance(method, ast.Attribute) or count > 1:
                continue
            if _may_be_module(inference, method.value, name == "eval"):
                yield call, method.value
    for node in file.of(ast.Attribute):
        stored = node.attr == "training" and isinstance(node.ctx, ast.Store)
        if stored and _may_be_module(inference, node.value, True):
            yield node, node.value


def _may_be_module(inference: Inference, node: ast.expr, unknown: bool) -> bool:
    kinds = {a.kind for a in inference.kind(node)}
    return "Module" in kinds or (unknown and "unknown" in kinds)


def _is_module(inference: Inference, node: ast.AST) -> bool:
    kind = inference.kind(node)
    return bool(kind) and all(a.kind in ("Module", "None") for a in kind)


def _whole(inference: Inference, file: File, node: ast.expr, depth: int = 0) -> ast.expr | None:
    """Return the Module that an expression is a part of, as far as it shows; None: not known.

    ``net.body[0]`` is a part of ``net``, and so is what a loop over ``net.modules()`` gives.
    """
    while True:
        chain = [node]
        while isinstance(chain[-1], (ast.Attribute, ast.Subscript)):
            chain.append(chain[-1].value)
        base = chain[-1]
        if not isinstance(base, ast.Name):
            return node if _builds(inference, base) else None
        whole = next((one for one in reversed(chain) if _is_module(inference, one)), node)
        if whole is not base:
            return whole
        over = _iterated(inference, file, base)
        if over is None:
            return None if _is_given_part(inference, file, base, depth) else base
        node = over


def _builds(inference: Inference, node: ast.expr) -> bool:
    """Return whether an expression makes a new object: ``Net().eval()``."""
    kind = inference.kind(node.func) if isinstance(node, ast.Call) else ()
    return bool(kind) and all(a.kind in ("class", "ref", "foreign") for a in kind)


def _iterated(inference: Inference, file: File, name: ast.Name) -> ast.expr | None:
    """Return the Module over whose parts the loop goes that binds a name, if that is what does."""
    reach = inference.facts(file.path).reach(name)
    loops = set()
    for binding in reach.bindings:
        around: ast.AST | None = file.parents.get(id(binding.place))
        while isinstance(around, (ast.Tuple, ast.List)):
            around = file.parents.get(id(around))
        loops.add(around)
    loop = loops.pop() if len(loops) == 1 else None
    if not isinstance(loop, (ast.For, ast.comprehension)):
        return None
    over = loop.iter
    if isinstance(over, ast.Call) and isinstance(over.func, ast.Name) and len(over.args) == 1:
        over = over.args[0]  # list(...), enumerate(...), reversed(...)
    if isinstance(over, ast.Call) and isinstance(over.func, ast.Attribute):
        return over.func.value if over.func.attr in _PARTS and not over.args else None
    return over if _is_module(inference, over) else None


def _is_part(inference: Inference, file: File, node: ast.expr, depth: int = 0) -> bool:
    whole = _whole(inference, file, node, depth)
    return whole is None or ast.dump(whole) != ast.dump(node)


def _is_given_part(inference: Inference, file: File, name: ast.Name, depth: int) -> bool:
    """Return whether a name is a parameter that a caller gives a part of a Module, or may."""
    facts = inference.facts(file.path)
    places = [b.place for b in facts.reach(name).bindings]
    if not any(isinstance(place, ast.arg) for place in places):
        return False
    function, given = file.function_at(name), [""]
    while function is not None:
        given = [a.arg for a in all_parameters(function.node.args)]
        if name.id in given:
            break
        function = function.parent
    if function is None or depth > _DEPTH or function.name == "<lambda>":
        return True
    if function.owner is not None and name.id == given[0] and function.name in _SETTERS:
        return False  # what is switched as a whole is asked by what it is in
    at = given.index(name.id) - (function.owner is not None)
    calls = inference.program.calls.get(function.name, ())
    if not calls:
        return _is_passed(inference, function)
    for other, call, _ in calls:
        value: ast.expr | None = next((k.value for k in call.keywords if k.arg == name.id), None)
        if at < 0:
            value = call.func.value if isinstance(call.func, ast.Attribute) else None
        elif value is None and at < len(call.args):
            value = call.args[at]
        if value is None:
            continue
        if not isinstance(value, ast.Name):
            if not isinstance(value, ast.Call) and _is_part(inference, other, value, depth + 1):
                return True
        elif _is_part(inference, other, value, depth + 1) or _is_given_part(
            inference, other, value, depth + 1
        ):
            return True
    return _is_passed(inference, function)


def _is_passed(inference: Inference, function: Function) -> bool:
    """Return whether a function is handed on as a value: ``net.apply(f)``."""
    for file in inference.program.files.values():
        for name in file.loads.get(function.name, ()):
            parent = file.parents.get(id(name))
            if not (isinstance(parent, ast.Call) and parent.func is name):
                return True
    return False


def _last(scene: Scene, node: ast.AST, setting: Container[int]) -> ast.stmt:
    """Return the last of the statements that set modes before anything can run.

    ``net.train()`` and the loop behind it that sets some parts back are one setting of modes.
    ``setting``: the ids of the nodes that set one.
    """
    statement = scene.statement(node)
    parent = scene.parent(statement)
    while isinstance(parent, (ast.For, ast.If, ast.With)) and not _runs(scene, parent):
        statement, parent = parent, scene.parent(parent)
    for following in scope.statements_after(scene, statement):
        if _runs(scene, following) or not any(id(n) in setting for n in within(following)):
            break
        statement = following
    return statement


def _runs(scene: Scene, statement: ast.stmt) -> bool:
    """Return whether a statement may call a Module."""
    function = (ast.FunctionDef, ast.AsyncFunctionDef)
    unit = statement if isinstance(statement, function) else scene.holder(statement, *function)
    inside = {id(n) for n in within(statement)}
    calls = running(scene, unit or scene.source.tree, "")
    return any(id(call) in inside for call in calls)


# -- constants of the graph ------------------------------------------------------------


_SIMPLE = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr, ast.Delete)
_CHANGING = (ast.Attribute, ast.Name, ast.Subscript, ast.Call)
_GROWS = frozenset(("append", "extend", "insert", "pop", "add_module", "register_module"))
_APART = frozenset(("data", "grad", "requires_grad", "training"))  # they have rules of their own
_ANY = "?"
_ENVIRONMENT = "os.environ"
_OPEN = ("unknown", "project", "instance")  # what nobody knows, and objects of other libraries
# methods of a Module that run no forward
_QUIET = frozenset(
    "to cuda cpu half float double bfloat16 train eval parameters named_parameters modules children"
    " named_modules named_children buffers named_buffers state_dict load_state_dict apply"
    " requires_grad_ zero_grad add_module register_buffer register_parameter share_memory".split()
)


@once_a_file
def _compiled(scene: Scene) -> frozenset[int]:
    """Return the nodes of compiled code."""
    return frozenset(id(n) for f in scope.compiled_here(scene) for n in f.nodes)


def _is_host(scene: Scene, node: ast.AST) -> bool:
    """Return whether a node is neither in compiled code nor in a constructor."""
    return id(node) not in _compiled(scene) and id(node) not in constructing(scene)


def changes(scene: Scene, made: Mapping[int, object]) -> Iterator[Edit]:
    """Yield ``compile_anew()`` behind the statements of host code that change such a constant.

    ``made``: the nodes of compiled code that get another form; they read no member any more.
    """
    reads = _reads(scene.inference)
    if not reads:
        return
    inside = _compiled(scene)
    members = [n for n in scene.file.of(ast.Attribute) if id(n) in inside]
    gone = {n.attr for n in members if id(n) in made}
    gone -= {n.attr for n in members if id(n) not in made}
    reads = {name: keys for name, keys in reads.items() if name not in gone} if gone else reads
    found: dict[int, ast.stmt] = {}
    for node in (n for kind in _CHANGING for n in scene.file.of(kind)):
        if (
            id(node) not in inside
            and _is_host(scene, node)
            and _changes_constant(scene, node, reads)
        ):
            statement = scene.statement(node)
            if isinstance(statement, _SIMPLE):
                found[id(statement)] = statement
    for statement in found.values():
        following = scope.statements_after(scene, statement)
        if not following or id(following[0]) not in found:
            yield behind(scene, statement)


def behind(scene: Scene, statement: ast.stmt, whole: ast.expr | None = None) -> Edit:
    """Return the call behind a statement that lets graph mode compile again.

    ``whole``: the Cell whose modes are looked at first; None where it has to be done anyway.
    """
    helper = "modes_are_set" if whole is not None else "compile_anew"
    given = (piece(scene.source, whole),) if whole is not None else ()
    made = partial(scope.part, scene, statement, Part.BEHIND)
    return scope.helping(scene, helper, lambda text: made(f"{text}(", *given, ")"))


# -- what compiled code reads -------------------------------------------------------------------


@once
def _reads(inference: Inference) -> Reads:
    """Return the members that compiled code reads, with their classes; globals, with their paths.

    The class is ``?`` where nobody knows it.
    """
    found: dict[str, set[str]] = {}
    for function in scope.compiled(inference).values():
        own = function.parameters[0].arg if function.parameters else ""
        for node in function.of(ast.Name, ast.Attribute):
            if not isinstance(node.ctx, ast.Load):  # type: ignore[attr-defined]
                continue
            if isinstance(node, ast.Name):
                found.setdefault(node.id, set()).add(_scope(function, node.id))
            elif isinstance(node, ast.Attribute):
                keys = found.setdefault(node.attr, set())
                if getattr(node.value, "id", "") == own and function.owner is not None:
                    keys.add(function.owner.key)
                    continue
                atoms = inference.kind(_instance(node.value))
                keys |= {a.name for a in atoms if "::" in a.name} or {
                    _ANY for a in atoms if a.kind in _OPEN
                }
                if any(a.kind == "foreign" and a.name == "os" for a in atoms):
                    found[_ENVIRONMENT] = {""}
    return {name: frozenset(keys) for name, keys in found.items() if keys}


@once
def _sites(inference: Inference) -> Sites:
    """Return the sites of the containers that compiled code finds: on objects, and outside."""
    found: set[Site] = set()
    made: set[int] = set()
    for function in scope.compiled(inference).values():
        made |= {id(n) for n in function.nodes}
        own = function.locals | {a.arg for a in all_parameters(function.node.args)}
        for node in function.of(ast.Name, ast.Attribute):
            outer = isinstance(node, ast.Attribute) or (
                isinstance(node, ast.Name) and node.id not in own - function.globals
            )
            if outer and isinstance(node.ctx, ast.Load):  # type: ignore[attr-defined]
                found |= contents.all_sites(inference.kind(node))
    found |= _stored(inference, {s.rstrip("[]") for s in found if isinstance(s, str)})
    return frozenset(s for s in found if s not in made)


def _stored(inference: Inference, names: set[str]) -> Sites:
    """Return the sites of what is stored under ``=name`` of a file, or ``.name`` of an object."""
    waiting: list[tuple[File, ast.expr]] = []
    for file in inference.program.files.values():
        for bound in file.of(ast.Assign):
            texts = {f"={t.id}" for t in bound.targets if isinstance(t, ast.Name)}
            texts |= {f".{t.attr}" for t in bound.targets if isinstance(t, ast.Attribute)}
            waiting += [(file, bound.value)] if texts & names else []
    return _made(inference, waiting)


def _made(inference: Inference, waiting: list[tuple[File, ast.expr]]) -> Sites:
    """Return the sites that may have made the containers in some values, through parameters."""
    found: set[Site] = set()
    for file, value in waiting:
        sites = contents.all_sites(inference.kind(value))
        found |= {s for s in sites if not isinstance(s, tuple)}
        function = file.function_at(value)
        given = {s[0][0] for s in sites if isinstance(s, tuple) and isinstance(s[0], tuple)}
        for name in given if function is not None else ():
            for other, call, _ in sites_of(inference, function):  # type: ignore[arg-type]
                argument = passed(function, call, str(name))  # type: ignore[arg-type]
                if argument is not None and all(argument is not v for _, v in waiting):
                    waiting.append((other, argument))
    return frozenset(found)


def _instance(node: ast.expr) -> ast.expr:
    """Return ``self`` of ``type(self)`` and ``self.__class__``."""
    if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "type" and node.args:
        return node.args[0]
    return node.value if isinstance(node, ast.Attribute) and node.attr == "__class__" else node


def _scope(function: Function, name: str) -> str:
    """Return the function, or the file, whose variable a name in a function means."""
    for around in function.outwards:
        given = {a.arg for a in all_parameters(around.node.args)}
        if name in (around.locals | given) - around.globals:
            return around.key
    return function.path


def _changes_constant(scene: Scene, node: ast.expr, reads: Reads) -> bool:
    """Return whether a node of host code changes what a graph has for a constant."""
    if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
        if scene.kind(node.value) == CONTEXT:
            return False  # each call has a ctx of its own
        return _is_read(scene, node, reads) and called_before(scene, node, node.value)
    if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
        return _global_bound(scene, node, reads)
    if isinstance(node, ast.Call) and _is_hook(scene, node):
        assert isinstance(node.func, ast.Attribute)
        return called_before(scene, node, node.func.value)
    if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "setattr":
        return _set(scene, node, reads)
    written = _written(scene, node)
    if written is not None:
        return _holds_constant(scene, node, written, reads)
    held = containers.changed(scene, node)
    if _ENVIRONMENT in reads and _sets_environment(scene, node, held):
        return called_before(scene, node, None)
    grows = (
        isinstance(node, ast.Subscript) or getattr(getattr(node, "func", 0), "attr", "") in _GROWS
    )
    if held is None:
        return False
    inside = _members(held)
    if inside is not None:
        return called_before(scene, node, inside)
    known = scene.kind(held)
    shared = _made(scene.inference, [(scene.file, held)]) & _sites(scene.inference) if known else ()
    if any(not (isinstance(s, str) and s[0] == ".") for s in shared):
        return called_before(scene, node, None)
    if isinstance(node, ast.Subscript) and known == ARRAY and isinstance(held, ast.Name):
        return _is_global(scene, held, reads) and called_before(scene, node, None)
    kinds = {atom.kind for atom in known} - {"None"}
    if not kinds or not kinds <= {"list", "dict", "set", *(["Module"] * grows)}:
        return False
    while isinstance(held, ast.Subscript):
        held = held.value
    if isinstance(held, ast.Attribute):
        return _is_read(scene, held, reads) and called_before(scene, node, held.value)
    if kinds == {"Module"}:
        return called_before(scene, node, held)
    return _is_global_before(scene, node, held, reads)


def _is_global_before(scene: Scene, node: ast.expr, held: ast.expr, reads: Reads) -> bool:
    """Return whether compiled code may have read a global before a place of host code."""
    is_name = isinstance(held, ast.Name) and _is_global(scene, held, reads)
    return is_name and called_before(scene, node, None)


def _written(scene: Scene, node: ast.expr) -> ast.expr | None:
    """Return the Tensor that a store or a method writes into: ``SCALE`` of ``SCALE[0].zero_()``.

    The output may change the Tensor itself or bind its name anew: the graph keeps the old numbers.
    """
    held: ast.expr | None = None
    if isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
        held = node.value
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        held = node.func.value if changes_values(f"torch.Tensor.{node.func.attr}") else None
    if held is None or not any(atom.kind == "Tensor" for atom in scene.kind(held)):
        return None
    while isinstance(held, ast.Subscript):
        held = held.value
    return held


def _holds_constant(scene: Scene, node: ast.expr, held: ast.expr, reads: Reads) -> bool:
    """Return whether compiled code may have read a Tensor that is no Parameter before a write."""
    if isinstance(held, ast.Attribute):
        live = state.is_parameter_of(scene, held.attr, reads.get(held.attr, frozenset()))
        return not live and _is_read(scene, held, reads) and called_before(scene, node, held.value)
    return _is_global_before(scene, node, held, reads)


def _members(held: ast.expr) -> ast.expr | None:
    """Return ``net`` of ``net.__dict__["depth"] = 1`` and ``vars(net)["depth"] = 1``."""
    if isinstance(held, ast.Attribute) and held.attr == "__dict__":
        return held.value
    called = isinstance(held, ast.Call) and getattr(held.func, "id", "") == "vars"
    return held.args[0] if called and held.args else None  # type: ignore[attr-defined]


def _sets_environment(scene: Scene, node: ast.AST, held: ast.expr | None) -> bool:
    """``os.environ["FAST"] = "1"``, ``os.putenv("FAST", "1")``"""
    named = held if held is not None else getattr(node, "func", None)
    return named is not None and scope.foreign(scene, named, "os.environ", "os.putenv")


def _set(scene: Scene, node: ast.Call, reads: Reads) -> bool:
    """``setattr(net, "scale", 2.0)``"""
    if len(node.args) != 3:
        return False
    holder, name = node.args[:2]
    named = name.value if isinstance(name, ast.Constant) else None
    if named is not None and named not in reads:
        return False
    known = scene.kind(holder)
    module = any(a.kind in ("Module", "unknown") for a in known)
    return module and called_before(scene, node, holder)


def _is_read(scene: Scene, node: ast.Attribute, reads: Reads) -> bool:
    """Return whether compiled code reads the member of an object that may be this one."""
    if node.attr in _APART:
        return False
    classes = reads.get(node.attr, frozenset())
    if not classes:
        return False
    function, owner = scene.function(node), scene.owner(node)
    own = function.parameters[0].arg if function is not None and function.parameters else ""
    if owner is not None and isinstance(node.value, ast.Name) and node.value.id == own:
        family = state.family(scene, owner.key)
        return bool(classes & family) or (_ANY in classes and scene.is_module_class(owner))
    for atom in scene.kind(node.value):
        if atom.kind in _OPEN:
            return True
        known = "::" in atom.name and atom.kind in ("Module", "Object", "class")
        if known and (_ANY in classes or classes & state.family(scene, atom.name)):
            return True
    return False


def _global_bound(scene: Scene, node: ast.Name, reads: Reads) -> bool:
    function = scene.function(node)
    if function is not None:
        return node.id in function.globals and _scope(function, node.id) in reads.get(node.id, ())
    if not _is_global(scene, node, reads):
        return False
    again = [n for n in scene.file.nodes if isinstance(n, ast.Name) and n.id == node.id
             and not isinstance(n.ctx, ast.Load) and scene.function(n) is None]  # fmt: skip
    return len(again) > 1 and called_before(scene, node, None)


def _is_global(scene: Scene, node: ast.Name, reads: Reads) -> bool:
    function = scene.function(node)
    if function and any(node.id in f.locals - f.globals for f in function.outwards):
        return False
    return scene.file.path in reads.get(node.id, ()) and scene.owner(node) is None


def _is_hook(scene: Scene, node: ast.Call) -> bool:
    """``net.register_forward_hook(f)``, ``handle.remove()``"""
    if not isinstance(node.func, ast.Attribute):
        return False
    name = node.func.attr
    if name.startswith("register_") and name.endswith("hook"):
        return any(a.kind in ("Module", "unknown") for a in scene.kind(node.func.value))
    hooks = (n for n in scene.inference.program.calls if n.startswith("register_"))
    given = node.args or node.keywords
    return name == "remove" and not given and any(n.endswith("hook") for n in hooks)


# -- whether something may have been compiled before --------------------------------------------


def called_before(scene: Scene, node: ast.AST, receiver: ast.expr | None) -> bool:
    """Return whether a call of a Module may come before a change.

    ``receiver``: the object that is changed; where it is a new object of a local variable, only
    what is done with that counts. None for globals.
    """
    unit = scene.holder(node, ast.FunctionDef, ast.AsyncFunctionDef) or scene.source.tree
    root = scope.root(receiver) if receiver is not None else None
    name = root.id if isinstance(root, ast.Name) else ""
    local = False
    if not isinstance(unit, ast.Module):
        function = scene.file.functions[id(unit)]
        local = name in function.locals - {p.arg for p in all_parameters(function.node.args)}
        if not local:
            return True
    fresh = bool(name) and _is_made(scene, node, name)
    facts = scene.facts
    return any(
        (facts.carries(name, call, node) if fresh else facts.may_follow(call, node))
        for call in running(scene, unit, name if local else "")
    )


def _is_made(scene: Scene, node: ast.AST, name: str) -> bool:
    """Return whether a variable has nothing at a place but what a call has made: ``net = Net()``"""
    reach = scene.facts.reach_before(name, node)
    places = [scene.parent(b.place) for b in reach.bindings]
    return bool(places) and not reach.outside and all(
        isinstance(p, ast.Assign) and isinstance(p.value, ast.Call) for p in places
    )  # fmt: skip


def running(scene: Scene, unit: ast.AST, name: str) -> Iterator[ast.Call]:
    """Yield the calls of a unit that may run a Module: the one of this name, or any."""
    for node in within(unit):
        if not isinstance(node, ast.Call):
            continue
        func = node.func
        if isinstance(func, ast.Attribute) and func.attr in _QUIET:
            continue
        kinds = scene.kind(func)
        if kinds and all(
            a.kind in ("builtin", "class", "foreign", "ref")
            or (a.kind == "method" and "::" not in a.name)
            for a in kinds
        ):
            continue
        if not name or name in all_names(node):
            point = scene.facts.point(node)
            if point is not None and point[0].scope.unit is unit:
                yield node
