"""Give compiled methods the meaning that Python gives them: decorators, classes, members.

Graph mode passes over ``__call__`` of a Cell, and over a decorator with ``functools.wraps``: it
compiles what ``__wrapped__`` names. It takes ``super()`` for ``super(type(self), self)``: in a
method that a subclass inherits it leads to the class itself, without a word or without end. A class
method gets no class there, and ``self`` cannot be called. A Cell is true, whatever its ``__len__``
says. A CellList is a tuple.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from migrate.analysis.program import Class, Function, method_of
from migrate.analysis.types.inference import Inference
from migrate.analysis.types.kinds import holds_no_tensor, is_all, without_none
from migrate.codegen.substitution import piece
from migrate.records.outcomes import Edit, Part
from migrate.rules import hooks
from migrate.rules.called_from import sites_of
from migrate.rules.decorators import DEFINITIONS, leaves, wrappers_of
from migrate.rules.graph import scope, state
from migrate.rules.graph.scope import Checks, Found, Rewriting, Silent
from migrate.rules.record_classes import asked_of, members
from migrate.sites.forward_names import calls_forward, line
from migrate.sites.scene import Scene, once
from migrate.syntax.lines import begins_line
from migrate.syntax.trees import is_super, within

_DEFINED = (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef, ast.If, ast.Try)
_NAMED = (ast.Name, ast.Attribute, ast.Subscript)
_LISTED = ("torch.nn.Sequential", "torch.nn.ModuleDict")
_WHY = "graph mode takes super() for that of the object's class: another method runs"


def rewrites(scene: Scene) -> Iterator[Rewriting]:
    """Yield ``super(Net, self)``, static methods, ``is_full(layers)``, and what counts around."""
    yield from scope.checked(scene, {ast.Call: (_super, _called_itself)})
    for node in (n for kind in _NAMED for n in scene.file.of(kind)):
        if is_asked(scene, node) and _may_be_empty(scene, node):
            yield Rewriting(node, (scope.called(scene, node, "is_full", node),))
    for function in scope.compiled_here(scene):
        mark = marked(function)
        edits = _static(scene, function, mark) if mark is not None else ()
        if mark is not None and edits:
            yield Rewriting(mark, edits)
    yield from _wrapped(scene)


def silent(scene: Scene) -> Iterator[Silent]:
    """Yield what graph mode ignores: decorators, ``__call__``; and calls that are others there."""
    yield from _ignored(scene)
    for node in scope.nodes(scene, ast.Call):
        if is_super(node) and _differs(scene, node) and not _spelled(scene, node):
            yield Silent(node, ("GRF620", "super()", _WHY, "define the class at the head"))
        yield from _by_name(scene, node)


def _by_name(scene: Scene, node: ast.AST) -> Iterator[Silent]:
    """Yield ``layer.forward(x)`` of what may have hooks: a graph runs them there, too, if it calls
    the layer itself anywhere."""
    func = node.func if isinstance(node, ast.Call) else None
    if not isinstance(func, ast.Attribute) or func.attr != "forward":
        return
    layers = {a.name for a in scene.kind(func.value) if a.kind == "Module"}
    if layers and hooks.may_have(scene.inference, layers):
        why = "graph mode runs the hooks of a Cell whose construct is called by name"
        yield Silent(node, ("GRF611", ast.unparse(func), why, "call the module itself"))


def stays(scene: Scene, node: ast.Call) -> Found | None:
    """Return the finding for a call of a class method that keeps its class."""
    for atom in scene.kind(node.func):
        function = scene.inference.program.functions.get(atom.name)
        if function is None or atom.kind not in ("method", "function"):
            continue
        if scope.stays_function(scene.inference, function, node):
            continue  # it stops there anyway
        mark = marked(function)
        known = scene if function.path == scene.file.path else None
        if mark is not None and (known is None or not _static(known, function, mark)):
            why = "graph mode passes a class method no class"
            return "GRF606", f"classmethod {function.name}", why, "write a static method"
    return None


# -- super() ------------------------------------------------------------------------------------


def _method(scene: Scene, node: ast.AST) -> Function | None:
    """Return the method that holds a node, functions inside of it left out."""
    return method_of(scene.function(node))


def _differs(scene: Scene, node: ast.AST) -> bool:
    """Return whether objects of subclasses get another method from ``super()`` in graph mode."""
    method, asked = _method(scene, node), scene.parent(node)
    if method is None or method.owner is None or getattr(node, "args", None):
        return False
    if isinstance(asked, ast.Attribute) and asked.attr in (method.name, "__call__"):
        return _has_subclass(scene, method.owner)  # without one it calls itself, which stops
    return True


def _has_subclass(scene: Scene, owner: Class) -> bool:
    return bool(scene.inference.summaries.graph.derived(owner))


def _spelled(scene: Scene, node: ast.AST) -> str:
    """Return the name by which a method reaches its own class; "" where there is none."""
    method = _method(scene, node)
    if method is None or method.owner is None or not method.parameters:
        return ""
    owner = method.owner.node
    bound = [n for n in scene.file.nodes if scope.bound_name(n) == owner.name]
    if not isinstance(scene.parent(owner), _DEFINED) or owner.decorator_list or len(bound) > 1:
        return ""
    return owner.name if method.parameters[0].arg == "self" else ""


def _super(scene: Scene, node: ast.Call) -> Edit | Rewriting | None:
    name, asked = _spelled(scene, node) if is_super(node) else "", scene.parent(node)
    if not name or getattr(asked, "attr", "") == "__call__":
        return None
    held = _property(scene, asked) if isinstance(asked, ast.Attribute) else ""
    if held and isinstance(asked, ast.Attribute):
        made = scope.whole(scene, asked, f"{held}.{asked.attr}.fget(self)")
        return Rewriting(asked, (made,))
    return scope.whole(scene, node, f"super({name}, self)") if _differs(scene, node) else None


def _called_itself(scene: Scene, node: ast.Call) -> Edit | None:
    """Return ``self.construct(x)`` for ``self(x)``, which is no call of a Cell in graph mode."""
    method, graph = _method(scene, node), scene.inference.summaries.graph
    if method is None or method is not scene.function(node) or method.owner is None:
        return None
    own = method.parameters[0].arg if method.parameters else ""
    if own != "self" or getattr(node.func, "id", "") != own:
        return None
    near = scene.inference.program.joined(scene.file.path)
    kin = {method.owner.key, *(c.key for c in graph.derived(method.owner))}
    kin |= {key for one in kin for key in line(scene.inference, one)}
    if any(b"_hook(" in file.source.data for file in near) or any(
        "__call__" in scene.inference.program.classes[key].methods for key in kin
    ):
        return None  # these are run by a call alone
    if not scene.inference.member(method.owner.key, "forward"):
        return None
    return scope.whole(scene, node.func, "self.construct")


def itself(scene: Scene, node: ast.Call) -> Found | None:
    """Return the finding for ``self(x)`` that stays."""
    method = _method(scene, node)
    own = method.parameters[0].arg if method is not None and method.parameters else ""
    called = getattr(node.func, "id", "") == own and is_all(scene.kind(node.func), "Module")
    if not own or not called or _called_itself(scene, node) is not None:
        return None
    return "GRF606", "self()", "graph mode does not call self", "call self.forward"


def _property(scene: Scene, asked: ast.Attribute) -> str:
    """Return the base that defines the property of ``super().gain``, where it has one base."""
    method = _method(scene, asked)
    if method is None or method.owner is None or len(method.owner.node.bases) != 1:
        return ""
    base = method.owner.node.bases[0]
    for atom in scene.kind(base):
        owner = scene.inference.program.classes.get(atom.name)
        found = owner.methods.get(asked.attr) if owner is not None else None
        if found is not None and found.decorated("property") and isinstance(base, ast.Name):
            return base.id
    return ""


# -- class methods ------------------------------------------------------------------------------


def marked(function: Function) -> ast.expr | None:
    """Return the ``classmethod`` above a method, if it is the only decorator."""
    if not isinstance(function.node, ast.FunctionDef) or len(function.node.decorator_list) != 1:
        return None
    (mark,) = function.node.decorator_list
    return mark if getattr(mark, "id", "") == "classmethod" else None


def _static(scene: Scene, function: Function, mark: ast.expr) -> tuple[Edit, ...]:
    """``@classmethod def scale(cls, x)`` is ``@staticmethod def scale(x)``, ``cls`` is ``Net``.

    A class method that uses its class stays one where a subclass may call it.
    """
    assert isinstance(function.node, ast.FunctionDef)
    arguments, source, owner = function.node.args, scene.source, function.owner
    if arguments.posonlyargs or not arguments.args or arguments.args[0].annotation is not None:
        return ()
    own = arguments.args[0].arg
    names = [n for s in function.node.body for n in within(s) if isinstance(n, ast.Name)]
    if any(n.id in ("super", "__class__") for n in names) or owner is None:
        return ()
    uses = [n for n in names if n.id == own]
    if uses and (_has_subclass(scene, owner) or owner.node.decorator_list):
        return ()
    if any(not isinstance(n.ctx, ast.Load) for n in uses):
        return ()
    reached = isinstance(scene.parent(owner.node), ast.Module)
    if uses and (not reached or owner.name in function.locals):
        return ()
    word = scope.edit(scene, mark, source.span(mark), "staticmethod")
    gone = scope.edit(scene, mark, source.span(arguments.args[0]))
    return (word, gone, *(scope.edit(scene, n, source.span(n), owner.name) for n in uses))


# -- truth --------------------------------------------------------------------------------------


def is_asked(scene: Scene, node: ast.expr) -> bool:
    """Return whether nothing but the truth of an expression is used."""
    child: ast.AST = node
    parent = scene.parent(node)
    while isinstance(parent, ast.BoolOp):
        child, parent = parent, scene.parent(parent)
    if isinstance(parent, ast.UnaryOp):
        return isinstance(parent.op, ast.Not)
    return getattr(parent, "test", None) is child


def _may_be_empty(scene: Scene, node: ast.expr) -> bool:
    """Return whether a Module has a length, and may have none in it."""
    kinds = without_none(scene.kind(node))
    if not kinds or not all(a.kind == "Module" for a in kinds):
        return False
    return any(
        ("::" in a.name and bool(scene.inference.member(a.name, "__len__")))
        or (a.name in _LISTED and not _is_filled(scene, node))
        for a in kinds
    )


def _is_filled(scene: Scene, node: ast.expr) -> bool:
    """Return whether a member is made with layers that are written: ``Sequential(conv, norm)``."""
    owner = scene.owner(node)
    if owner is None or not isinstance(node, ast.Attribute):
        return False
    if node.attr not in owner.stores or getattr(node.value, "id", "") != "self":
        return False
    made = [n for f in owner.stores[node.attr] for n in f.nodes if isinstance(n, ast.Assign)
            and any(getattr(t, "attr", "") == node.attr for t in n.targets)]  # fmt: skip
    return bool(made) and all(_has_layers(n.value) for n in made)


def _has_layers(value: ast.expr) -> bool:
    if isinstance(value, ast.IfExp):
        return _has_layers(value.body) and _has_layers(value.orelse)
    if isinstance(value, ast.Constant):
        return value.value is None
    given = value.args if isinstance(value, ast.Call) else []
    return any(not isinstance(a, ast.Starred) and not isinstance(a, ast.Name) for a in given)


# -- decorators and __call__ ------------------------------------------------------------


CALLED = "construct now: graph mode passes over __call__ of a Cell"


@dataclass(frozen=True)
class Wrapper:
    """An inner function that a decorator returns in place of its argument.

    ``argument``: the parameter that holds the decorated function. ``on_methods`` and
    ``on_forward``: what it is put around in compiled code.
    """

    function: Function
    argument: str
    on_methods: bool
    on_forward: bool


# -- decorators ---------------------------------------------------------------------------------


def _ignored(scene: Scene) -> Iterator[Silent]:
    """Yield decorators that graph mode ignores, or may, and ``__call__`` that stays."""
    for function in scope.compiled_here(scene):
        if not isinstance(function.node, DEFINITIONS):
            continue
        local = _is_local(scene, function)
        for item in function.node.decorator_list:
            if leaves(scene.inference, item):
                continue
            if wrappers_of(scene.inference, function, item) is not None:
                continue
            called = item.func if isinstance(item, ast.Call) else item
            if local and not is_all(scene.kind(called), "foreign"):
                continue  # the compiler runs it
            why = "graph mode may compile the function without its decorator"
            name = f"@{ast.unparse(item.func if isinstance(item, ast.Call) else item)}"
            found = ("GRF610", name, why, "call it in the function")
            yield Silent(item, found, _first(function.node))
    for owner in scene.file.classes.values():
        yield from _calls(scene, owner)
    for owner in scene.inference.program.classes.values():
        method = owner.methods.get("__call__")
        if method is None or "forward" in owner.methods or not scene.is_module_class(owner):
            continue  # else its forward says so
        for file, call, caller in sites_of(scene.inference, method):
            known = scope.compiled(scene.inference)
            here = file is scene.file and caller is not None and caller.key in known
            if here and not calls_forward(scene, owner):
                yield Silent(call, _passed_over(owner), scene.statement(call))


def _passed_over(owner: Class) -> Found:
    """Return what is said of a ``__call__`` that graph mode does not run."""
    why = "graph mode passes over it and calls construct"
    return "GRF611", f"{owner.name}.__call__", why, "write what it does into forward"


def _is_local(scene: Scene, function: Function) -> bool:
    """Return whether a function is defined in compiled code."""
    inner = function.owner is None and function.parent is not None
    known = scope.compiled(scene.inference)
    return inner and function.parent is not None and function.parent.key in known


def _first(node: ast.AST) -> ast.stmt:
    """Return the first statement of a function behind its docstring."""
    body: list[ast.stmt] = node.body  # type: ignore[attr-defined]
    text = isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant)
    return body[1] if text and len(body) > 1 else body[0]


@once
def _wrappers(inference: Inference) -> dict[int, Wrapper]:
    """Return the wrappers of all compiled functions, by their nodes.

    Any other function may be compiled by who imports it: there it counts what a wrapper does to
    values.
    """
    found: dict[int, Wrapper] = {}
    compiled = scope.compiled(inference)
    for function in inference.program.functions.values():
        if not isinstance(function.node, DEFINITIONS):
            continue
        given = [inference.kind(value) for value in function.returned if value is not None]
        known = function.key in compiled
        if not known and all(map(holds_no_tensor, given)):
            continue
        method = function.owner is not None and not function.decorated("staticmethod")
        forward = method and function.name == "forward"
        for item in function.node.decorator_list:
            for inner, argument in wrappers_of(inference, function, item) or ():
                if not known and _hands_on(inner, argument):
                    continue
                old = found.get(id(inner.node), Wrapper(inner, argument, False, False))
                found[id(inner.node)] = Wrapper(
                    inner, argument, method or old.on_methods, forward or old.on_forward
                )
    return found


def _hands_on(wrapper: Function, argument: str) -> bool:
    """Return whether a wrapper passes on what it is given, and gives what the function gives."""
    rest = (wrapper.node.args.vararg, wrapper.node.args.kwarg)
    names = {a.arg for a in rest if a is not None}
    spread = (ast.Starred, ast.keyword)
    uses = [n for n in wrapper.of(ast.Name) if isinstance(n, ast.Name) and n.id in names]
    parents = {id(n.value) for n in wrapper.nodes if isinstance(n, spread)}

    def gives(value: ast.expr | None) -> bool:
        if isinstance(value, ast.Name):
            bound = wrapper.assigned.get(value.id, ())
            once = len(wrapper.stores.get(value.id, ())) == len(bound)
            return bool(bound) and once and all(gives(b.value) for b in bound)
        return value is None or getattr(getattr(value, "func", None), "id", "") == argument

    alone = not wrapper.parameters and all(id(n) in parents for n in uses)
    return alone and all(map(gives, wrapper.returned))


def _wrapped(scene: Scene) -> Iterator[Rewriting]:
    """Yield ``@wraps(fn)`` for ``@functools.wraps(fn)``, and ``self`` before ``*args``."""
    for wrapper in _wrappers(scene.inference).values():
        if wrapper.function.path == scene.file.path:
            yield from _counted(scene, wrapper)
            if wrapper.on_methods and not wrapper.function.parameters:
                yield from _with_self(scene, wrapper)
    for function in scope.compiled_here(scene):
        if _is_local(scene, function) and isinstance(function.node, DEFINITIONS):
            yield from _called_after(scene, function.node)
    for owner in scene.file.classes.values():
        if calls_forward(scene, owner):
            yield from _construct(scene, owner)


def _called_after(
    scene: Scene, node: ast.FunctionDef | ast.AsyncFunctionDef
) -> Iterator[Rewriting]:
    """``@double`` above ``def inner`` is ``inner = double(inner)`` below it."""
    items = [d for d in node.decorator_list if not leaves(scene.inference, d)]
    if not items or len(items) < len(node.decorator_list):
        return
    yield Rewriting(node, tuple(scope.whole(scene, item) for item in items))
    for item in reversed(items):
        parts = (f"{node.name} = ", piece(scene.source, item), f"({node.name})")
        yield Rewriting(item, (scope.part(scene, node, Part.BEHIND, *parts),))


def _counted(scene: Scene, wrapper: Wrapper) -> Iterator[Rewriting]:
    node = wrapper.function.node
    assert isinstance(node, DEFINITIONS)
    for item in node.decorator_list:
        assert isinstance(item, ast.Call)
        yield Rewriting(item.func, (scope.helped(scene, item.func, "wraps"),))
    if wrapper.on_forward and not node.decorator_list and begins_line(scene.source, node):
        above = partial(scope.part, scene, node, Part.DECORATOR)
        made = scope.helping(scene, "wraps", lambda text: above(f"{text}({wrapper.argument})"))
        yield Rewriting(node, (made,))


def _with_self(scene: Scene, wrapper: Wrapper) -> Iterator[Rewriting]:
    """``wrapper(*args)`` and ``fn(*args)`` are ``wrapper(self, *args)`` and ``fn(self, *args)``."""
    rest = wrapper.function.node.args.vararg
    assert rest is not None
    yield Rewriting(rest, (scope.part(scene, wrapper.function.node, Part.PARAMETER, "self"),))
    for node in wrapper.function.nodes:
        if isinstance(node, ast.Starred) and getattr(node.value, "id", "") == rest.arg:
            parts = ("self, *", piece(scene.source, node.value))
            yield Rewriting(node, (scope.whole(scene, node, *parts),))


# -- __call__ -----------------------------------------------------------------------------------


def _construct(scene: Scene, owner: Class) -> Iterator[Rewriting]:
    """``__call__`` is ``construct``, and ``super().__call__(x)`` in it is ``self.forward(x)``."""
    method = owner.methods["__call__"]
    assert isinstance(method.node, DEFINITIONS)
    made = scope.edit(scene, method.node, scene.source.name_span(method.node), "construct")
    yield Rewriting(method.node, (made,), CALLED, "__call__")
    for node in method.nodes:
        if isinstance(node, ast.Attribute) and node.attr == "__call__" and is_super(node.value):
            own = "forward" in owner.methods
            text = f"{method.parameters[0].arg}.forward" if own else ""
            held = piece(scene.source, node.value)
            parts = (text,) if text else (held, ".construct")
            yield Rewriting(node, (scope.whole(scene, node, *parts),))


def _calls(scene: Scene, owner: Class) -> Iterator[Silent]:
    """Yield ``forward`` of a Module whose ``__call__``, its own or inherited, keeps its name."""
    forward = owner.methods.get("forward")
    if forward is None or not scene.is_module_class(owner):
        return
    if not isinstance(forward.node, DEFINITIONS):
        return
    for key in sorted(line(scene.inference, owner.key)):
        other = scene.inference.program.classes[key]
        if "__call__" in other.methods and not calls_forward(scene, other):
            yield Silent(forward.node, _passed_over(other), _first(forward.node))
            return


# -- members ------------------------------------------------------------


_LIST = "torch.nn.ModuleList"


def _child(scene: Scene, node: ast.Attribute) -> Edit | None:
    """``self.path.conv`` of a ModuleList is ``self.path[1]``: a CellList is a tuple there.

    The constructor has to name all children, one after another.
    """
    held = node.value
    if not isinstance(held, ast.Attribute) or not isinstance(node.ctx, ast.Load):
        return None
    if set(scene.module_classes(held)) != {_LIST}:
        return None
    names = _named(scene, held)
    if names.count(node.attr) != 1:
        return None
    return scope.whole(scene, node, piece(scene.source, held), f"[{names.index(node.attr)}]")


def _named(scene: Scene, held: ast.Attribute) -> list[str]:
    """The names of the children in their order; nothing, where something else may add some."""
    owner = scene.owner(held)
    start = owner.methods.get("__init__") if owner is not None else None
    if start is None or not isinstance(start.node.body, list) or not start.parameters:
        return []
    member = f"{start.parameters[0].arg}.{held.attr}"
    names: list[str] = []
    made = 0
    for statement in start.node.body:
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == member:
            empty = isinstance(statement.value, ast.Call) and not statement.value.args
            made += 1 if empty and not names else 2
        elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            names += _added(statement.value, member)
    uses = [
        n
        for n in ast.walk(start.owner.node if start.owner else start.node)
        if isinstance(n, ast.Attribute) and ast.unparse(n) == member
    ]
    if not state.known_only(scene, start, held.attr, uses, lambda scene, node: False):
        return []
    asked = [n for n in uses if isinstance(scene.parent(n), ast.Attribute)]
    adding = [n for n in asked if getattr(scene.parent(n), "attr", "") not in names]
    plain = made == 1 and len(adding) == len(names) and len(uses) == len(asked) + 1
    return names if plain else []


def _added(call: ast.Call, member: str) -> list[str]:
    """``self.path.add_module("conv", ...)``: its name."""
    func = call.func
    if not isinstance(func, ast.Attribute) or func.attr not in ("add_module", "register_module"):
        return []
    if ast.unparse(func.value) != member or len(call.args) != 2:
        return []
    name = call.args[0]
    return [name.value] if isinstance(name, ast.Constant) and isinstance(name.value, str) else []


def _device(scene: Scene, node: ast.Attribute) -> Edit | None:
    """``h, device = t.shape[1], t.device`` is ``h, device = t.shape[1], None``.

    Only a Tensor can be meant where no class of the project has all that the function asks of the
    variable. Where the device is asked for something, it stays.
    """
    function = scene.function(node) if node.attr == "device" else None
    meant = function is not None and _is_tensors(scene, function, node)
    return scope.whole(scene, node, "None") if meant else None


def _is_tensors(scene: Scene, function: Function, node: ast.Attribute) -> bool:
    if not isinstance(node.ctx, ast.Load) or not isinstance(node.value, ast.Name):
        return False
    if not is_all(scene.kind(node.value), "unknown") or not _is_passed(scene, function, node):
        return False
    asked = asked_of(scene.inference, function, node)
    known = scene.table.torch.names
    if not all(f"torch.Tensor.{name}" in known for name in asked):
        return False
    return not any(asked <= names for names in members(scene.inference).values())


def _is_passed(scene: Scene, function: Function, node: ast.Attribute) -> bool:
    """Whether it is given to a variable that is only passed on."""
    name = _given_to(scene, node)
    if not name:
        return False
    used = (n for n in function.nodes if isinstance(n, ast.Name) and n.id == name)
    read = [n for n in used if isinstance(n.ctx, ast.Load)]
    return all(_passes(scene.parent(n), n) for n in read)


def _passes(parent: ast.AST | None, name: ast.Name) -> bool:
    called = isinstance(parent, ast.Call) and parent.func is not name
    return called or isinstance(parent, ast.keyword)


def _given_to(scene: Scene, node: ast.Attribute) -> str:
    """``device`` in ``device = t.device`` and ``*shape, device = *t.shape, t.device``."""
    parent = scene.parent(node)
    values = parent.elts if isinstance(parent, ast.Tuple) else [node]
    statement = scene.parent(parent) if isinstance(parent, ast.Tuple) else parent
    if not isinstance(statement, ast.Assign) or len(statement.targets) > 1:
        return ""
    target = statement.targets[0]
    targets = target.elts if isinstance(target, ast.Tuple) else [target]
    behind = len(values) - next(i for i, v in enumerate(values) if v is node)
    starred = any(isinstance(v, ast.Starred) for v in (*values[-behind:], *targets[-behind:]))
    if starred or behind > len(targets):
        return ""
    return getattr(targets[-behind], "id", "")


CHECKS: Checks = {ast.Attribute: (_device, _child)}
