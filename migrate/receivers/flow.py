"""In: the body of a function or module. Out: the kinds of its variables, stores and results."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from migrate.receivers import moves
from migrate.receivers.annotations import annotated
from migrate.receivers.branches import Branches
from migrate.receivers.frame import Environment
from migrate.receivers.kinds import (
    NONE,
    NOTHING,
    TENSOR,
    UNKNOWN,
    Kind,
    indirect,
    join,
    kind,
    sequence,
)
from migrate.receivers.operators import binary


@dataclass
class Flow(Branches):
    """Walks statements in order; branches are joined, loops run twice.

    ``stores`` joins what the attributes of the first parameter (``self``) were bound to;
    ``result`` joins what is returned; ``before`` is the result of an earlier walk, which holds
    until this one is ``done``.
    """

    stores: Environment = field(default_factory=dict)
    result: Kind = NOTHING
    before: Kind = NOTHING
    done: bool = False

    # -- binding --------------------------------------------------------------------------------

    def bound(self, name: str, value: Kind) -> None:
        self.env[name] = value
        self.fresh.discard(name)
        self.variables[name] = join(self.variables.get(name, NOTHING), value)
        below = f"{name}."
        for path in [p for p in self.env if p.startswith(below)]:
            del self.env[path]

    def stored(self, target: ast.Attribute, value: Kind) -> None:
        if isinstance(target.value, ast.Name):
            self.env[f"{target.value.id}.{target.attr}"] = value
            if target.value.id == self.first_parameter:
                self.stores[target.attr] = join(self.stores.get(target.attr, NOTHING), value)

    @property
    def first_parameter(self) -> str:
        function = self.function
        while function is not None and function.owner is None:
            function = function.parent
        parameters = function.parameters if function is not None else []
        return parameters[0].arg if parameters else ""

    def _Assign(self, node: ast.Assign) -> None:
        value = self.kind(node.value)
        moved = moves.of_itself(node)
        before = {n: (n in self.fresh, self.origins.get(n)) for n in moved}
        for target in node.targets:
            self.bind(target, value)
        for name, (fresh, origin) in before.items():
            if self.env.get(name) != UNKNOWN:
                continue
            self.fresh |= {name} if fresh else set()
            self.origins.pop(name, None)
            if origin is not None:
                self.origins[name] = origin
            self.moved[name] = moved[name]
        for name, (origin, call) in moves.of_elements(node).items():
            unpacked = name in self.origins
            (self.origins if unpacked else self.elements)[name] = origin
            self.moved[name.removesuffix(moves.INSIDE)] = call

    def _AnnAssign(self, node: ast.AnnAssign) -> None:
        self.kind(node.annotation)
        written = annotated(node.annotation, self.world.kinds)
        if node.value is not None:
            value = self.kind(node.value)
            self.bind(node.target, value if written == UNKNOWN else _refine(written, value))
        elif not isinstance(node.target, ast.Attribute) or written != UNKNOWN:
            self.bind(node.target, written)

    def _AugAssign(self, node: ast.AugAssign) -> None:
        load = self.kind(node.target)
        other = self.kind(node.value)
        self.saw_beside(node.target, other)
        self.saw_beside(node.value, load)
        value = binary(node.op, load, other)
        self.world.kinds[id(node)] = load
        self.bind(node.target, value if value != UNKNOWN else load)

    def _Delete(self, node: ast.Delete) -> None:
        for target in node.targets:
            if isinstance(target, ast.Name):
                self.env.pop(target.id, None)
            else:
                self.kind(target)

    # -- definitions and imports ----------------------------------------------------------------

    def _FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        for decorator in node.decorator_list:
            self.kind(decorator)
        a = node.args
        for default in (*a.defaults, *a.kw_defaults):
            if default is not None:
                self.kind(default)
        for arg in (*a.posonlyargs, *a.args, *a.kwonlyargs, a.vararg, a.kwarg):
            if arg is not None and arg.annotation is not None:
                self.kind(arg.annotation)
        if node.returns is not None:
            self.kind(node.returns)
        file = self.world.program.files[self.path]
        function = file.functions[id(node)]
        if function.owner is None:
            self.bound(node.name, kind("function", function.key))

    _AsyncFunctionDef = _FunctionDef

    def _ClassDef(self, node: ast.ClassDef) -> None:
        for part in (*node.decorator_list, *node.bases, *(k.value for k in node.keywords)):
            self.kind(part)
        key = self.world.program.files[self.path].classes[id(node)].key
        self.bound(node.name, kind("class", key))
        outer_env, outer_variables = dict(self.env), self.variables
        self.variables = {}
        self.run(node.body)
        self.world.class_body(key, self.variables)
        self.env, self.variables = outer_env, outer_variables

    def _Import(self, node: ast.Import) -> None:
        for alias in node.names:
            whole = alias.name if alias.asname else alias.name.partition(".")[0]
            self.bound(alias.asname or whole, self.world.imported(self.path, whole, 0, None))

    def _ImportFrom(self, node: ast.ImportFrom) -> None:
        for alias in node.names:
            if alias.name == "*":
                self.variables.update(self.world.star(self.path, node.module or "", node.level))
                self.env.update(self.world.star(self.path, node.module or "", node.level))
                continue
            found = self.world.imported(self.path, node.module or "", node.level, alias.name)
            self.env[alias.asname or alias.name] = found
            self.bound(alias.asname or alias.name, found)
            self.env[alias.asname or alias.name] = found

    def _Return(self, node: ast.Return) -> bool:
        value = self.kind(node.value) if node.value is not None else NONE
        self.result = join(self.result, indirect(value))
        return False

    def _Assert(self, node: ast.Assert) -> None:
        self._plain(node)
        self.narrow(node.test, True)

    def _Expr(self, node: ast.Expr) -> None:
        self.kind(node.value)
        call = node.value
        if not isinstance(call, ast.Call):
            return
        name = (
            call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        )
        if name in ("register_buffer", "register_parameter", "add_module", "register_module"):
            self._registered(call, name, 0)
        elif name == "setattr":
            self._registered(call, name, 1)

    def _registered(self, call: ast.Call, name: str, at: int) -> None:
        """``self.register_buffer("mask", value)`` stores an attribute like an assignment."""
        if len(call.args) <= at:
            return
        key = call.args[at]
        if not isinstance(key, ast.Constant) or not isinstance(key.value, str):
            return
        value = TENSOR
        if name in ("add_module", "register_module", "setattr") and len(call.args) > at + 1:
            value = indirect(self.world.kinds.get(id(call.args[at + 1]), UNKNOWN))
        self.stores[key.value] = join(self.stores.get(key.value, NOTHING), value)

    def _Yield(self, node: ast.Yield) -> Kind:
        value = self.kind(node.value) if node.value else NONE
        self.result = join(self.result, sequence("iterator", indirect(value)))
        return UNKNOWN


def _refine(written: Kind, value: Kind) -> Kind:
    """The annotated kind, with the details that the value adds."""
    detail = frozenset(a for a in value if any(a.kind == w.kind for w in written))
    return detail or written
