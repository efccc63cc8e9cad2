"""In: an expression and the kinds of the variables. Out: its kind, and that of every node in it."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable
from dataclasses import dataclass, field

from migrate import calls
from migrate.program import Function
from migrate.receivers import values
from migrate.receivers.kinds import (
    BOOL,
    FLOAT,
    INT,
    NONE,
    NOTHING,
    SIZE,
    STR,
    TENSOR,
    UNKNOWN,
    Atom,
    Kind,
    element,
    fixed_tuple,
    from_text,
    indirect,
    is_all,
    join,
    kind,
    place,
    sequence,
    without_none,
)
from migrate.receivers.world import World
from migrate.table import Signature, Table

_CONSTANTS = {bool: BOOL, int: INT, float: FLOAT, str: STR, type(None): NONE}
Environment = dict[str, Kind]


@dataclass
class Evaluator:
    """Evaluates expressions of one function (None: of a module's top level)."""

    world: World
    path: str
    function: Function | None
    env: Environment = field(default_factory=dict)
    evidence: dict[str, Kind] = field(default_factory=dict)

    def kind(self, node: ast.expr | None) -> Kind:
        """The kind of an expression; every expression inside it is evaluated as well."""
        if node is None:
            return NONE
        method: Callable[[ast.expr], Kind] | None = getattr(self, f"_{type(node).__name__}", None)
        found = method(node) if method else self._others(node)
        self.world.kinds[id(node)] = found
        return found

    def _others(self, node: ast.expr) -> Kind:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self.kind(child)
        return UNKNOWN

    # -- names and attributes -------------------------------------------------------------------

    def _Name(self, node: ast.Name) -> Kind:
        name = node.id
        if name in self.env:
            return self.env[name]
        if self.function is not None:
            if name in self.function.locals:
                return UNKNOWN
            found = self.world.outer_kind(self.function, name)
        else:
            found = self.world.global_kind(self.path, name)
        if found:
            return found
        return kind("builtin", name) if hasattr(builtins, name) else UNKNOWN

    def _Attribute(self, node: ast.Attribute) -> Kind:
        value = self.kind(node.value)
        stored = self.env.get(_path(node))
        if stored is not None:
            return stored
        return values.attribute(value, node.attr, self.world) if value else UNKNOWN

    def saw_tensor(self, node: ast.expr) -> None:
        """The program would fail here unless ``node`` were a Tensor."""
        if isinstance(node, ast.Name) and node.id in self.env:
            if without_none(self.env[node.id]) <= UNKNOWN:
                self.env[node.id] = self.evidence[node.id] = TENSOR
                self.world.kinds[id(node)] = TENSOR
        elif self.world.kinds.get(id(node), UNKNOWN) <= UNKNOWN:
            self.world.kinds[id(node)] = TENSOR

    # -- literals -------------------------------------------------------------------------------

    def _Constant(self, node: ast.Constant) -> Kind:
        return _CONSTANTS.get(type(node.value), UNKNOWN)

    def _JoinedStr(self, node: ast.JoinedStr) -> Kind:
        self._others(node)
        return STR

    def _Tuple(self, node: ast.Tuple) -> Kind:
        kinds = [self.kind(e) for e in node.elts]
        if any(isinstance(e, ast.Starred) for e in node.elts):
            parts = zip(node.elts, kinds, strict=True)
            return sequence(
                "tuple", join(*(element(k) if isinstance(e, ast.Starred) else k for e, k in parts))
            )
        return fixed_tuple(tuple(map(indirect, kinds)))

    def _List(self, node: ast.List) -> Kind:
        kinds = [
            element(self.kind(e)) if isinstance(e, ast.Starred) else self.kind(e) for e in node.elts
        ]
        return sequence("list", indirect(join(*kinds)))

    def _Set(self, node: ast.Set) -> Kind:
        return sequence("list", indirect(join(*map(self.kind, node.elts))))

    def _Dict(self, node: ast.Dict) -> Kind:
        kinds: list[Kind] = []
        keys: list[str] = []
        for key, value in zip(node.keys, node.values, strict=True):
            found = self.kind(value)
            if key is None:
                kinds.extend(i for a in found for i in a.items)
                continue
            self.kind(key)
            kinds.append(found)
            keys.append(str(key.value) if isinstance(key, ast.Constant) else "?")
        joined = indirect(join(*kinds))
        return frozenset((Atom("dict", items=(joined,) if kinds else (), keys=tuple(keys)),))

    def _Lambda(self, node: ast.Lambda) -> Kind:
        return kind("function", self._lambda_key(node))

    def _lambda_key(self, node: ast.Lambda) -> str:
        file = self.world.program.files[self.path]
        return file.functions[id(node)].key

    # -- comprehensions -------------------------------------------------------------------------

    def _comprehension(self, node: ast.expr, *parts: ast.expr) -> Kind:
        before = dict(self.env)
        for clause in getattr(node, "generators", ()):
            self.bind(clause.target, element(self.kind(clause.iter)))
            for test in clause.ifs:
                self.kind(test)
        found = [self.kind(part) for part in parts]
        self.env = before
        return indirect(found[-1])

    def _ListComp(self, node: ast.ListComp) -> Kind:
        return sequence("list", self._comprehension(node, node.elt))

    def _SetComp(self, node: ast.SetComp) -> Kind:
        return sequence("list", self._comprehension(node, node.elt))

    def _GeneratorExp(self, node: ast.GeneratorExp) -> Kind:
        return sequence("iterator", self._comprehension(node, node.elt))

    def _DictComp(self, node: ast.DictComp) -> Kind:
        return frozenset((Atom("dict", items=(self._comprehension(node, node.key, node.value),)),))

    # -- operators ------------------------------------------------------------------------------

    def _BinOp(self, node: ast.BinOp) -> Kind:
        left, right = self.kind(node.left), self.kind(node.right)
        return binary(node.op, left, right)

    def _UnaryOp(self, node: ast.UnaryOp) -> Kind:
        value = self.kind(node.operand)
        return BOOL if isinstance(node.op, ast.Not) else value

    def _Compare(self, node: ast.Compare) -> Kind:
        sides = [self.kind(node.left), *map(self.kind, node.comparators)]
        if any(isinstance(op, (ast.Is, ast.IsNot, ast.In, ast.NotIn)) for op in node.ops):
            return BOOL
        if any(is_all(s, "Tensor") for s in sides):
            return TENSOR
        unsure = any(a.kind in ("unknown", "Tensor", "instance") for s in sides for a in s)
        return UNKNOWN if unsure else BOOL

    def _BoolOp(self, node: ast.BoolOp) -> Kind:
        before = dict(self.env)
        found = []
        for value in node.values:
            found.append(self.kind(value))
            if isinstance(node.op, ast.And):
                self.narrow(value, True)
        self.env = {**self.env, **{k: v for k, v in before.items() if k in self.env}}
        if isinstance(node.op, ast.Or):
            found = [*(without_none(f) for f in found[:-1]), found[-1]]
        return join(*found) or UNKNOWN

    def _IfExp(self, node: ast.IfExp) -> Kind:
        self.kind(node.test)
        before = dict(self.env)
        self.narrow(node.test, True)
        first = self.kind(node.body)
        self.env = dict(before)
        self.narrow(node.test, False)
        second = self.kind(node.orelse)
        self.env = before
        return join(first, second)

    def _NamedExpr(self, node: ast.NamedExpr) -> Kind:
        found = self.kind(node.value)
        self.bind(node.target, found)
        return found

    def _Starred(self, node: ast.Starred) -> Kind:
        return self.kind(node.value)

    def _Subscript(self, node: ast.Subscript) -> Kind:
        value, index = self.kind(node.value), self.kind(node.slice)
        return values.subscript(value, node.slice, index)

    def _Slice(self, node: ast.Slice) -> Kind:
        self._others(node)
        return NONE

    # -- calls ----------------------------------------------------------------------------------

    def _Call(self, node: ast.Call) -> Kind:
        if _is_super(node):
            return self._super()
        callee = self.kind(node.func)
        if isinstance(node.func, ast.Attribute) and self._only_a_tensor(node, node.func):
            self.saw_tensor(node.func.value)
            callee = values.attribute(TENSOR, node.func.attr, self.world)
            self.world.kinds[id(node.func)] = callee
        args = tuple(self.kind(a) for a in node.args)
        for keyword in node.keywords:
            self.kind(keyword.value)
        found = [self._called(atom, node, args) for atom in callee if atom.kind != "None"]
        return join(*found) or UNKNOWN

    def _only_a_tensor(self, node: ast.Call, func: ast.Attribute) -> bool:
        """A call that nothing but a Tensor would take, on a receiver of unknown kind."""
        value = self.world.kinds.get(id(func.value), UNKNOWN)
        if not without_none(value) <= UNKNOWN or not self.world.only_tensors_have(func.attr):
            return False
        signatures = self.world.table.signatures(f"torch.Tensor.{func.attr}")
        return any(
            not isinstance(calls.bind(node.args, node.keywords, s), calls.Unbound)
            for s in signatures
        )

    def _super(self) -> Kind:
        function = self.function
        while function is not None and function.owner is None:
            function = function.parent
        return kind("super", function.owner.key) if function and function.owner else UNKNOWN

    def _called(self, atom: Atom, node: ast.Call, args: tuple[Kind, ...]) -> Kind:
        world = self.world
        if atom.kind == "ref":
            return self._torch_call(atom.name, node, args)
        if atom.kind == "method":
            function = world.function_of(atom.name)
            if function is not None:
                return world.returns(function, node)
            if atom.name.startswith("torch.Tensor."):
                return self._torch_call(atom.name, node, args)
            if atom.name.endswith((".append", ".extend", ".insert")):
                self._grow(node, args)
            return values.call_method(atom, args, world)
        if atom.kind == "function":
            function = world.function_of(atom.name)
            return world.returns(function, node) if function else UNKNOWN
        if atom.kind == "class":
            return values.instance_of(atom, args, world)
        if atom.kind == "Module":
            self._tensors_into(atom, node)
            self.world.note_call(atom.name, node)
            return values.call_module(frozenset((atom,)), world)
        if atom.kind == "Object":
            called = world.member(atom.name, "__call__")
            functions = [world.function_of(a.name) for a in called]
            return join(*(world.returns(f, node) for f in functions if f)) or UNKNOWN
        if atom.kind == "callable":
            return join(*atom.items)
        if atom.kind == "partial":
            return join(*(self._called(a, node, args) for i in atom.items for a in i)) or UNKNOWN
        if atom.kind == "builtin" and atom.name == "map":
            return self._mapped(node, args)
        if atom.kind == "builtin":
            return self._member_lookup(atom.name, node) or values.builtin(atom.name, args)
        if atom.kind == "foreign":
            return values.foreign(atom.name, args)
        return kind("instance") if atom.kind == "instance" else UNKNOWN

    def _member_lookup(self, name: str, node: ast.Call) -> Kind:
        """``getattr(x, "name")`` with a literal name."""
        if name != "getattr" or len(node.args) < 2 or not isinstance(node.args[1], ast.Constant):
            return NOTHING
        return values.attribute(
            self.world.kinds[id(node.args[0])], str(node.args[1].value), self.world
        )

    def _grow(self, node: ast.Call, args: tuple[Kind, ...]) -> None:
        """``layers.append(x)``: what is appended belongs to the elements from now on."""
        target = node.func.value if isinstance(node.func, ast.Attribute) else None
        if target is None or not args:
            return
        last = args[-1]
        added = element(last) if getattr(node.func, "attr", "") == "extend" else last
        value = self.world.kinds.get(id(target), UNKNOWN)
        grown = frozenset(
            Atom(a.kind, a.name, (join(*a.items, indirect(added)),), a.keys)
            if a.kind in ("list", "Module") and not a.fixed
            else a
            for a in value
        )
        if grown != value:
            self.bind(target, grown)

    def _torch_call(self, name: str, node: ast.Call, args: tuple[Kind, ...]) -> Kind:
        table = self.world.table
        if name in ("torch.jit.script", "torch.compile", "torch.jit.ignore", "torch.no_grad"):
            return args[0] if args else UNKNOWN
        if name in ("torch.utils.checkpoint.checkpoint", "torch.jit.annotate"):
            inner = [self._called(a, node, args[1:]) for a in (args[0] if args else ())]
            return join(*inner) or UNKNOWN
        if table.kind(name) == "class" and name.startswith("torch.nn."):
            made = values.instance_of(Atom("ref", name), args, self.world)
            return _inplace(made) if self._works_inplace(name, node, args) else made
        signatures = table.signatures(name)
        self._tensor_arguments(node, name)
        if len(signatures) == 1 and signatures[0].fields:
            return _result(signatures[0])
        if len(signatures) > 1:
            bound, _ = calls.choose(node.args, node.keywords, signatures, self.names_of)
            results = {_result(b.signature) for b in bound} if bound else set()
            written = any(row.result for row in table.rows(name))
            if len(results) == 1 and not written and (found := results.pop()) != UNKNOWN:
                return self.world.results.of_call(name) if found == TENSOR else found
        return self.world.results.of_call(name)

    def _works_inplace(self, name: str, node: ast.Call, args: tuple[Kind, ...]) -> bool:
        """``nn.ReLU(inplace=True)``, also as the first layer of a Sequential."""
        if name == "torch.nn.Sequential" and args:
            return any("inplace" in a.keys for a in args[0])
        return any(_is_true(v) for v in bound_to("inplace", node, self.world.table, name))

    def names_of(self, node: ast.expr) -> frozenset[str]:
        """The names of the alternatives of an expression that was evaluated before."""
        return frozenset(a.kind for a in self.world.kinds.get(id(node), UNKNOWN))

    def _tensor_arguments(self, node: ast.Call, name: str) -> None:
        """What goes where torch admits Tensors only is a Tensor."""
        if name.startswith("torch.Tensor.") or not node.args:
            return
        signatures = self.world.table.signatures(name)
        for index, arg in enumerate(node.args):
            types = {s.params[index].type for s in signatures if index < len(s.params)}
            if types == {"Tensor"}:
                self.saw_tensor(arg)

    def _tensors_into(self, atom: Atom, node: ast.Call) -> None:
        """Torch's own layers take Tensors."""
        if atom.name.startswith("torch.nn.") and atom.name not in (
            "torch.nn.Identity",
            "torch.nn.Sequential",
            "torch.nn.Module",
        ):
            for arg in node.args[:1]:
                self.saw_tensor(arg)

    def _mapped(self, node: ast.Call, args: tuple[Kind, ...]) -> Kind:
        """``map(f, items)``: an iterator over what ``f`` gives for an element."""
        each = tuple(element(a) for a in args[1:])
        found = []
        for atom in args[0] if args else ():
            function = self.world.function_of(atom.name) if atom.kind == "function" else None
            if function is not None and isinstance(function.node, ast.Lambda):
                given = {p.arg: k for p, k in zip(function.parameters, each, strict=False)}
                found.append(self.world.returns_with(function, given))
            else:
                found.append(self._called(atom, node, each))
        return sequence("iterator", join(*found) or UNKNOWN)

    # -- binding and narrowing ------------------------------------------------------------------

    def bind(self, target: ast.expr, value: Kind) -> None:
        """Assign a kind to a target: a name, an attribute, a tuple of targets."""
        self.world.kinds[id(target)] = value
        if isinstance(target, ast.Name):
            self.bound(target.id, indirect(value))
        elif isinstance(target, ast.Attribute):
            self.kind(target.value)
            self.stored(target, indirect(value))
        elif isinstance(target, (ast.Tuple, ast.List)):
            for index, item in enumerate(target.elts):
                if isinstance(item, ast.Starred):
                    self.bind(item.value, sequence("list", element(value)))
                else:
                    self.bind(item, place(value, index))
        elif isinstance(target, ast.Subscript):
            self.kind(target.value)
            self.kind(target.slice)

    def bound(self, name: str, value: Kind) -> None:
        self.env[name] = value

    def stored(self, target: ast.Attribute, value: Kind) -> None:
        """Overridden where attributes are collected."""

    def narrow(self, test: ast.expr, holds: bool) -> None:
        """Use what a test tells about names: isinstance, ``is None``, truth."""
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            self.narrow(test.operand, not holds)
        elif isinstance(test, ast.BoolOp):
            if isinstance(test.op, ast.And) == holds:
                for value in test.values:
                    self.narrow(value, holds)
        elif isinstance(test, ast.Compare) and len(test.ops) == 1:
            none = isinstance(test.comparators[0], ast.Constant) and (
                test.comparators[0].value is None
            )
            if none and isinstance(test.ops[0], (ast.Is, ast.IsNot)):
                self._narrow_none(test.left, isinstance(test.ops[0], ast.Is) == holds)
        elif isinstance(test, ast.Call) and holds:
            self._narrow_isinstance(test)
        elif isinstance(test, ast.Name) and holds:
            self._narrow_none(test, False)

    def _narrow_none(self, node: ast.expr, is_none: bool) -> None:
        if isinstance(node, ast.Name) and node.id in self.env:
            value = self.env[node.id]
            self.env[node.id] = NONE if is_none else without_none(value) or UNKNOWN

    def _narrow_isinstance(self, test: ast.Call) -> None:
        if getattr(test.func, "id", "") != "isinstance" or len(test.args) != 2:
            return
        subject, classes = test.args
        if not isinstance(subject, ast.Name) or subject.id not in self.env:
            return
        parts = classes.elts if isinstance(classes, ast.Tuple) else [classes]
        found = [self._instance_kind(self.kind(p)) for p in parts]
        if all(found):
            self.env[subject.id] = join(*found)

    def _instance_kind(self, value: Kind) -> Kind:
        found = []
        for atom in value:
            if atom.kind == "ref" and atom.name == "torch.Tensor":
                found.append(TENSOR)
            elif atom.kind in ("ref", "class"):
                found.append(values.instance_of(atom, (), self.world))
            elif atom.kind == "builtin":
                known = {"int": INT, "float": FLOAT, "str": STR, "bool": BOOL}
                plain = kind(atom.name) if atom.name in ("list", "tuple", "dict") else UNKNOWN
                found.append(known.get(atom.name, plain))
            elif atom.kind == "tuple":
                found.extend(self._instance_kind(i) for i in atom.items)
            else:
                return NOTHING
        return join(*found)


def bound_to(argument: str, node: ast.Call, table: Table, name: str) -> list[ast.expr]:
    """What a call passes for an argument, by keyword or by place."""
    found = [k.value for k in node.keywords if k.arg == argument]
    for signature in table.signatures(name):
        for index, param in enumerate(signature.params):
            if param.name == argument and param.kind == "any" and index < len(node.args):
                found.append(node.args[index])
    return found


def _is_true(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is True


def _inplace(value: Kind) -> Kind:
    return frozenset(Atom(a.kind, a.name, a.items, (*a.keys, "inplace")) for a in value)


def _is_super(node: ast.Call) -> bool:
    return isinstance(node.func, ast.Name) and node.func.id == "super"


def _path(node: ast.Attribute) -> str:
    """ "self.x" for an attribute of a plain name, else ""."""
    return f"{node.value.id}.{node.attr}" if isinstance(node.value, ast.Name) else ""


def _result(signature: Signature) -> Kind:
    found = from_text(signature.result)
    if signature.fields:
        return frozenset(
            Atom(a.kind, a.name, a.items, signature.fields, a.direct, a.fixed) for a in found
        )
    return found


_NUMBERS = ("int", "float", "bool")


def binary(op: ast.operator, left: Kind, right: Kind) -> Kind:
    """The kind of ``left op right``."""
    both = left | right
    if is_all(left, "Tensor") or is_all(right, "Tensor"):
        return TENSOR
    if is_all(both, *_NUMBERS):
        if isinstance(op, ast.Div):
            return FLOAT
        return FLOAT if any(a.kind == "float" for a in both) else INT
    if is_all(left, "str"):
        return STR
    if is_all(left, "Size", "tuple") and isinstance(op, ast.Add):
        if is_all(both, "Size", "tuple") and any(a.kind == "Size" for a in left):
            return SIZE
        return sequence("tuple", join(*(i for a in both for i in a.items)) or UNKNOWN)
    if is_all(left, "list", "tuple") and isinstance(op, (ast.Add, ast.Mult)):
        return frozenset(a for a in join(left, right) if a.kind in ("list", "tuple"))
    if is_all(right, "list", "tuple") and isinstance(op, ast.Mult):
        return right
    if any(a.kind == "Tensor" for a in both) and is_all(both, "Tensor", *_NUMBERS):
        return both
    return UNKNOWN
