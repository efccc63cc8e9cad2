"""In: a call of a method on something unknown. Out: why only a Tensor can be meant, or "".

The rules of evidence, all of which must hold:
1. Tensors have the method, and torch's signature admits the arguments, their kinds included.
2. No class of the project has a method of that name that takes them, nor holds something to call
   under it; what its own methods never call, and what is not known to be callable, is data.
3. No object of Python does: a list's sort() gives None, a string is split at a string.
4. No object of a library that some file of the project imports does: where none imports numpy,
   pandas or anything unknown or calls ``x.numpy()``, no arrays and frames are around; where numpy
   is, ``dim=`` still tells, as its methods say ``axis``, and ``x.size(0)``, as theirs is none.
5. Modules have it neither (``float``, ``to``), or the project builds and imports none, or a
   Module is called with it.
6. What is combined with a Tensor by an operator is no array (mixing them fails on most devices).
7. What is a Tensor wherever it is known is no object of a library elsewhere.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from migrate.analysis.program import Class, File, Function, Program, method_of
from migrate.analysis.types import rivals
from migrate.mapping import calls
from migrate.mapping.signatures import signature_of
from migrate.mapping.table import Signature, Table

if TYPE_CHECKING:
    from migrate.analysis.types.inference import Inference

KindsOf = Callable[[ast.expr], frozenset[str]]
Methods = Mapping[str, tuple[Signature, ...]]


@dataclass(frozen=True)
class Question:
    """A call ``x.name(...)`` on an unknown ``x``.

    ``used``: its result is used; ``beside``: x is an operand beside a Tensor; ``given``: it is an
    argument of a Module; ``chained``: its result is taken for a Tensor, so that the receiver is a
    Tensor or an object of the project; ``partly``: some alternatives of x are Tensors.
    """

    name: str
    call: ast.Call
    used: bool
    beside: bool
    kinds_of: KindsOf
    given: bool = False
    chained: bool = False
    partly: bool = False


@dataclass(eq=False)
class Elimination:
    """Index of the classes of a program by the methods they define."""

    world: Inference
    _memo: dict[str, tuple[Function, ...]] = field(default_factory=dict)
    _unlike: dict[Function, frozenset[str]] = field(default_factory=dict)

    @property
    def table(self) -> Table:
        return self.world.table

    @property
    def program(self) -> Program:
        return self.world.program

    def why(self, asked: Question) -> str:
        """The reason to take the receiver for a Tensor; "" where something else may be meant."""
        if not self._tensor_takes(asked):
            return ""
        if (
            asked.name in self._registered
            or self.world.holds_callable(asked.name)
            or self._owned(asked)
        ):
            return ""
        if asked.chained:
            return f"what {asked.name} gives is taken for one"
        if asked.partly and not _admits(rivals.python(), asked):
            return "where it is known what it is, it is one"
        module = asked.name in self._module_methods and self.world.has_modules() and not asked.given
        if _admits(rivals.python(), asked) or module:
            return ""
        others = [root for root, methods in self.libraries if _admits(methods, asked)]
        if others and not (asked.beside and set(others) <= {"numpy"}):
            return ""
        if others:
            return f"it is combined with a Tensor, so that {asked.name} is not that of an array"
        brings = [root for root, methods in self.libraries if asked.name in methods]
        if asked.given:
            return "a Module is called with it"
        if brings:
            return f"{asked.name} of {', '.join(brings)} does not take these arguments"
        return f"nothing else in the files converted has a method {asked.name}"

    def _tensor_takes(self, asked: Question) -> bool:
        if asked.name.startswith("__") or asked.name not in self._tensor_names:
            return False
        signatures = tensor_signatures(self.table, asked.name)
        call = asked.call
        return bool(calls.choose(call.args, call.keywords, signatures, asked.kinds_of)[0])

    @cached_property
    def _tensor_names(self) -> frozenset[str]:
        names = (n for n in self.table.torch.names if n.startswith("torch.Tensor."))
        return frozenset(n.rpartition(".")[2] for n in names)

    def unlike_tensors(self, function: Function) -> frozenset[str]:
        """Return the names that a function uses in a way that no Tensor can be used.

        ``x["key"]``, ``"key" in x``, ``x == "text"``, ``x.items()``; or a method of its own class,
        or a function of its file, that it is passed to.
        """
        if function not in self._unlike:
            found = (_used_otherwise(node, self._tensor_names) for node in function.nodes)
            self._unlike[function] = frozenset(found) - {""}  # for what calls it in turn
            self._unlike[function] |= frozenset(self._passed_otherwise(function))
        return self._unlike[function]

    def _passed_otherwise(self, function: Function) -> Iterator[str]:
        """Yield the variables that are passed to what uses them as no Tensor can be used."""
        top = self.program.files[function.path].top
        for call in function.of(ast.Call):
            assert isinstance(call, ast.Call)
            called: Function | Class | None = None
            if isinstance(call.func, ast.Name):
                called = top.get(call.func.id)
            elif isinstance(call.func, ast.Attribute) and _of_self(call.func, function):
                owner = method_of(function)
                methods = owner.owner.methods if owner is not None and owner.owner else {}
                called = methods.get(call.func.attr)
            if not isinstance(called, Function) or called is function:
                continue
            bound = called.owner is not None and not called.decorated("staticmethod")
            names = [p.arg for p in called.parameters][bound:]
            given = [*zip(names, call.args, strict=False)]
            given += [(k.arg, k.value) for k in call.keywords if k.arg]
            unlike = self.unlike_tensors(called)
            yield from (v.id for n, v in given if n in unlike and isinstance(v, ast.Name))

    @cached_property
    def _module_methods(self) -> frozenset[str]:
        owners = ("torch.nn.Module.", "torch.optim.")
        names = (n for n in self.table.torch.names if n.startswith(owners))
        return frozenset(n.rpartition(".")[2] for n in names)

    # -- the project ----------------------------------------------------------------------------

    def _owned(self, asked: Question) -> bool:
        """Whether a method of a class of the project takes the arguments."""
        if asked.name not in self._memo:
            owners = self.program.holders.get(asked.name, ())
            found = (o.methods.get(asked.name) for o in owners)
            self._memo[asked.name] = tuple(f for f in found if f is not None)
        return any(
            isinstance(f.node, ast.FunctionDef)
            and _binds((signature_of(f.node, not f.decorated("staticmethod")),), asked)
            for f in self._memo[asked.name]
        )

    def holds_callable(self, name: str) -> bool:
        """Return whether instances of the project's classes hold something to call by this name."""
        owners = self._holding.get(name, [])
        kinds = frozenset(a.kind for o in owners for a in self.world.member(o.key, name))
        called = bool(owners) and any(
            _of_self(call.func, caller) for _, call, caller in self.program.calls.get(name, ())
        )
        return called or not kinds.isdisjoint(_CALLABLE)

    @cached_property
    def _holding(self) -> dict[str, list[Class]]:
        """The classes whose methods or bodies bind a name."""
        found: dict[str, list[Class]] = {}
        for owner in self.program.classes.values():
            for name in owner.stores | _fields(owner):
                found.setdefault(name, []).append(owner)
        return found

    @cached_property
    def _registered(self) -> frozenset[str]:
        """Names under which something is put into an object."""
        found: set[str] = set()
        for name, at in (("add_module", 0), ("register_module", 0), ("setattr", 1)):
            for _, call, _ in self.program.calls.get(name, ()):
                text = call.args[at] if len(call.args) > at else None
                if isinstance(text, ast.Constant) and isinstance(text.value, str):
                    found.add(text.value)
        return frozenset(found)

    @property
    def rivals(self) -> tuple[object, ...]:
        """Return the facts of the whole program that an answer of `why` depends on."""
        return self.libraries, self.multiplied, self._registered

    # -- what is imported -----------------------------------------------------------------------

    @cached_property
    def libraries(self) -> tuple[tuple[str, Methods], ...]:
        """The imported packages that are not the project's, with the methods they bring."""
        roots = {root for file in self.program.files.values() for root in _foreign(self, file)}
        if "numpy" in self.program.calls:  # ``x.numpy()`` makes arrays without an import
            roots.add("numpy")
        found = []
        for root in sorted(roots):
            methods = rivals.of_library(root, root in sys.stdlib_module_names)
            if methods:
                found.append((root, methods))
        return tuple(found)

    @cached_property
    def multiplied(self) -> bool:
        """Whether ``a @ b`` can only be of Tensors: nothing else here defines that operator."""
        own = any(
            name in owner.methods
            for owner in self.program.classes.values()
            for name in ("__matmul__", "__rmatmul__")
        )
        return not own and all(root in sys.stdlib_module_names for root, _ in self.libraries)

    def has_modules(self) -> bool:
        """Return whether Modules are around: classes of the project, or of a library."""
        if any(self.world.is_module(key) for key in self.program.classes):
            return True
        return self._uses_modules

    @cached_property
    def _uses_modules(self) -> bool:
        return any(map(_uses_modules, self.program.files.values()))


def tensor_signatures(table: Table, name: str) -> tuple[Signature, ...]:
    """What a method of Tensors takes, by the facts and by the rows."""
    full = f"torch.Tensor.{name}"
    return (*table.signatures(full), *(s for row in table.rows(full) for s in row.signatures))


def _foreign(known: Elimination, file: File) -> Iterator[str]:
    for name in file.imported:
        root = name.partition(".")[0]
        ours = known.program.find_module(file.path, root) is not None
        if not ours and root != "torch" and not known.table.needs_torch(name):
            yield root


def _uses_modules(file: File) -> bool:
    """Anything of torch but its functions: Modules come from torch.nn, hub, jit, load, ..."""
    for name in file.imported:
        root, _, rest = name.partition(".")
        if root == "torch" and rest not in ("", "nn.functional", "Tensor", "utils", "linalg"):
            return True
        if root not in ("torch", "typing", "__future__") and root not in sys.stdlib_module_names:
            return True
    makers = (n for n in file.of(ast.Attribute) if n.attr in _MAKERS)
    return any(
        not isinstance(file.parents[id(n)], ast.Attribute)
        or getattr(file.parents[id(n)], "attr", "") != "functional"
        for n in makers
    )


_CALLABLE = frozenset({"Module", "Object", "function", "class", "ref", "method", "partial",
                       "callable", "builtin", "foreign", "project"})  # fmt: skip
# torch.nn.Linear, torch.hub.load, torch.load, torch.jit.load, model.parameters()
_MAKERS = frozenset({"nn", "hub", "jit", "load", "parameters", "modules", "state_dict", "fx"})


def _fields(owner: Class) -> dict[str, list[Function]]:
    """Names that the body of a class binds."""
    found: dict[str, list[Function]] = {}
    for item in owner.node.body:
        targets: Iterable[ast.expr] = ()
        if isinstance(item, ast.Assign):
            targets = item.targets
        elif isinstance(item, ast.AnnAssign):
            targets = (item.target,)
        found.update({t.id: [] for t in targets if isinstance(t, ast.Name)})
    return found


def _of_self(func: ast.expr, caller: Function | None) -> bool:
    """``self.name(...)`` in a method."""
    method = method_of(caller)
    first = method.parameters[0].arg if method is not None and method.parameters else ""
    holder = func.value if isinstance(func, ast.Attribute) else None
    return bool(first) and isinstance(holder, ast.Name) and holder.id == first


def _used_otherwise(node: ast.AST, tensor_names: frozenset[str]) -> str:
    """Return the variable that a node uses as no Tensor can be used; "" for none."""
    used: ast.expr | None = None
    if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
        used = None if node.attr in tensor_names or node.attr.startswith("__") else node.value
    elif isinstance(node, ast.Subscript) and _is_text(node.slice):
        used = node.value
    elif isinstance(node, ast.Compare) and (
        _is_text(node.left) or any(map(_is_text, node.comparators))
    ):
        used = next((n for n in (node.left, *node.comparators) if isinstance(n, ast.Name)), None)
    return used.id if isinstance(used, ast.Name) else ""


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _admits(methods: Methods, asked: Question) -> bool:
    return _binds(methods.get(asked.name, ()), asked)


def _binds(signatures: tuple[Signature, ...], asked: Question) -> bool:
    """Whether one of the signatures can take the call."""
    keywords = [k.arg for k in asked.call.keywords if k.arg]
    for one in signatures:
        if one.result == "None" and asked.used:
            continue
        bound, why = calls.choose(asked.call.args, asked.call.keywords, (one,), asked.kinds_of)
        if (bound or why.dynamic) and all(rivals.takes(one, k) for k in keywords):
            return True
    return False
