"""In: the body of a function or module. Out: the kinds of its variables, stores and results."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from migrate.receivers.annotations import annotated
from migrate.receivers.expressions import Evaluator
from migrate.receivers.frame import Environment
from migrate.receivers.kinds import (
    NONE,
    NOTHING,
    TENSOR,
    UNKNOWN,
    Kind,
    element,
    indirect,
    join,
    kind,
    sequence,
)
from migrate.receivers.operators import binary


@dataclass
class Flow(Evaluator):
    """Walks statements in order; branches are joined, loops run twice.

    ``variables`` joins all that a name was ever bound to, ``stores`` the same for attributes of
    the first parameter (``self``); ``result`` joins what is returned; ``before`` is
    the result of an earlier walk, which holds until this one is ``done``.
    """

    variables: Environment = field(default_factory=dict)
    stores: Environment = field(default_factory=dict)
    result: Kind = NOTHING
    before: Kind = NOTHING
    done: bool = False

    def run(self, body: list[ast.stmt]) -> bool:
        """Walk statements; False when the end is not reached."""
        for statement in body:
            method = getattr(self, f"_{type(statement).__name__}", None)
            if method is None:
                self._plain(statement)
            elif method(statement) is False:
                return False
        return True

    def _plain(self, node: ast.stmt) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self.kind(child)

    # -- binding --------------------------------------------------------------------------------

    def bound(self, name: str, value: Kind) -> None:
        self.env[name] = value
        self.variables[name] = join(self.variables.get(name, NOTHING), value)
        for path in [p for p in self.env if p.startswith(name + ".")]:
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
        for target in node.targets:
            self.bind(target, value)

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
        value = binary(node.op, load, self.kind(node.value))
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

    # -- control flow ---------------------------------------------------------------------------

    def _If(self, node: ast.If) -> bool:
        self.kind(node.test)
        before = dict(self.env)
        self.narrow(node.test, True)
        alive = self.run(node.body)
        first, self.env = self.env, before
        self.narrow(node.test, False)
        other = self.run(node.orelse)
        if alive and other:
            self.env = merged(first, self.env)
        elif alive:
            self.env = first
        return alive or other

    def _For(self, node: ast.For | ast.AsyncFor) -> None:
        each = element(self.kind(node.iter))
        for _ in range(2):
            before = dict(self.env)
            self.bind(node.target, each)
            self.run(node.body)
            self.env = merged(before, self.env)
        self.run(node.orelse)

    _AsyncFor = _For

    def _While(self, node: ast.While) -> None:
        for _ in range(2):
            before = dict(self.env)
            self.kind(node.test)
            self.narrow(node.test, True)
            self.run(node.body)
            self.env = merged(before, self.env)
        self.run(node.orelse)

    def _With(self, node: ast.With | ast.AsyncWith) -> bool:
        for item in node.items:
            value = self.kind(item.context_expr)
            if item.optional_vars is not None:
                self.bind(item.optional_vars, value)
        return self.run(node.body)

    _AsyncWith = _With

    def _Try(self, node: ast.Try) -> bool:
        before = dict(self.env)
        alive = self.run(node.body) and self.run(node.orelse)
        ends = [self.env] if alive else []
        for handler in node.handlers:
            self.env = merged(before, ends[0]) if ends else dict(before)
            if handler.type is not None:
                self.kind(handler.type)
            if handler.name:
                self.bound(handler.name, kind("instance", "exception"))
            if self.run(handler.body):
                ends.append(self.env)
        if ends:
            self.env = merged(*ends)
        return self.run(node.finalbody) and bool(ends)

    _TryStar = _Try

    def _Match(self, node: ast.Match) -> bool:
        self.kind(node.subject)
        before, ends = dict(self.env), [dict(self.env)]
        for case in node.cases:
            self.env = dict(before)
            for part in ast.walk(case.pattern):
                name = getattr(part, "name", None) or getattr(part, "rest", None)
                if isinstance(name, str):
                    self.bound(name, UNKNOWN)
            if self.run(case.body):
                ends.append(self.env)
        self.env = merged(*ends)
        return True

    def _Return(self, node: ast.Return) -> bool:
        value = self.kind(node.value) if node.value is not None else NONE
        self.result = join(self.result, indirect(value))
        return False

    def _Raise(self, node: ast.Raise) -> bool:
        self._plain(node)
        return False

    def _Continue(self, node: ast.Continue) -> bool:
        return False

    _Break = _Continue

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


def merged(*environments: Environment) -> Environment:
    """What holds after any of several branches."""
    first, *rest = environments
    found = dict(first)
    for other in rest:
        for name, value in other.items():
            mine = found.get(name)
            if mine is None:
                if "." not in name:
                    found[name] = value
            elif mine is not value:
                found[name] = join(mine, value)
        for name in [n for n in found if "." in n and n not in other]:
            del found[name]
    return found


def _refine(written: Kind, value: Kind) -> Kind:
    """The annotated kind, with the details that the value adds."""
    detail = frozenset(a for a in value if any(a.kind == w.kind for w in written))
    return detail or written
