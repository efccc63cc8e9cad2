"""In: a program and the table. Out: the kind of every expression of every file."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from migrate.names import canonical, covered_roots, root_of
from migrate.program import Class, File, Function, Program
from migrate.receivers import values
from migrate.receivers.annotations import annotated
from migrate.receivers.flow import Flow
from migrate.receivers.kinds import (
    MODULE,
    NONE,
    NOTHING,
    STR,
    TENSOR,
    UNKNOWN,
    Atom,
    Kind,
    indirect,
    join,
    kind,
    sequence,
    without_none,
)
from migrate.receivers.results import Results
from migrate.table import Table

MODULE_ROOT = "torch.nn.Module"
MAX_CALL_SITES = 40


@dataclass(eq=False)
class Inference:
    """Answers questions about kinds across files; every function is walked when first asked for.

    ``kinds`` maps the id of an expression node to its kind.
    """

    program: Program
    table: Table
    kinds: dict[int, Kind] = field(default_factory=dict)
    _flows: dict[int, Flow] = field(default_factory=dict)
    _modules: dict[str, Flow] = field(default_factory=dict)
    _bodies: dict[str, dict[str, Kind]] = field(default_factory=dict)
    _members: dict[tuple[str, str], Kind] = field(default_factory=dict)
    _bases: dict[str, list[Kind]] = field(default_factory=dict)
    _module_calls: dict[str, list[ast.Call]] = field(default_factory=dict)
    _given: dict[int, dict[str, Kind]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.results = Results(self.table)
        self.roots = covered_roots(self.table)
        self.has_torch = any(_imports(file, self.roots) for file in self.program.files.values())
        self._tensor_only = _exclusive(self.table, self.program)

    def note_call(self, key: str, call: ast.Call) -> None:
        """An instance of the class is called here: its forward gets these arguments."""
        if "::" in key and call not in self._module_calls.setdefault(key, []):
            self._module_calls[key].append(call)

    def everything(self) -> None:
        """Walk the whole program, so that no answer depends on what is asked first."""
        for path in self.program.files:
            self.file(path)

    # -- files ----------------------------------------------------------------------------------

    def file(self, path: str) -> None:
        """Walk everything in a file."""
        self.module(path)
        for function in self.program.files[path].functions.values():
            self.flow(function)

    def module(self, path: str) -> Flow:
        """The walk of a file's top level."""
        if path not in self._modules:
            file = self.program.files[path]
            flow = self._modules[path] = Flow(self, path, None)
            self._hoist(file, flow)
            flow.run(file.source.tree.body)
        return self._modules[path]

    def _hoist(self, file: File, flow: Flow) -> None:
        """Definitions and imports are known before the walk, for functions it meets early."""
        for node in file.imports:
            top = node in file.source.tree.body
            if isinstance(node, ast.Import) and top:
                flow._Import(node)
            elif isinstance(node, ast.ImportFrom) and top and node.names[0].name != "*":
                flow._ImportFrom(node)
        for name, item in file.top.items():
            what = "class" if isinstance(item, Class) else "function"
            flow.variables.setdefault(name, kind(what, item.key))

    def global_kind(self, path: str, name: str) -> Kind:
        if name == "__name__":
            return STR
        return self.module(path).variables.get(name, NOTHING)

    def imported(self, path: str, module: str, level: int, name: str | None) -> Kind:
        """The kind of an imported module, or of a name from it."""
        target = self.program.find_module(path, module, level)
        if target is not None:
            if name is None:
                return kind("project", target)
            found = self.global_kind(target, name) if target != path else NOTHING
            if found:
                return found
            inner = self.program.submodule(target, name)
            return kind("project", inner) if inner else UNKNOWN
        if level and name is not None:
            folder = self.program.find_module(path, f"{module}.{name}".strip("."), level)
            return kind("project", folder) if folder else UNKNOWN
        full = f"{module}.{name}" if name else module
        if root_of(full) in self.roots:
            return values.torch_name(full, self, direct=True)
        return kind("foreign", full)

    def star(self, path: str, module: str, level: int) -> dict[str, Kind]:
        target = self.program.find_module(path, module, level)
        if target is None or target == path:
            return {}
        found = self.module(target).variables
        return {n: v for n, v in found.items() if not n.startswith("_")}

    # -- functions ------------------------------------------------------------------------------

    def function_of(self, key: str) -> Function | None:
        return self.program.functions.get(key)

    def class_of(self, key: str) -> Class | None:
        return self.program.classes.get(key)

    def flow(self, function: Function) -> Flow:
        """The walk of a function; while it runs, what is known so far."""
        found = self._flows.get(id(function))
        if found is not None:
            return found
        self.module(function.path)
        if function.parent is not None:
            self.flow(function.parent)
            found = self._flows.get(id(function))
            if found is not None:
                return found
        self._flows[id(function)] = Flow(self, function.path, function)
        return self._walk(function, self.parameters(function))

    def _walk(self, function: Function, given: dict[str, Kind]) -> Flow:
        flow = Flow(self, function.path, function, dict(given))
        flow.variables = dict(given)
        self._flows[id(function)] = flow
        body = function.node.body
        if isinstance(body, list):
            flow.run(body)
        else:
            flow.result = indirect(flow.kind(body))
        proved = {
            n: k
            for n, k in flow.evidence.items()
            if n in given and without_none(given[n]) <= UNKNOWN
        }
        if proved:
            return self._walk(function, {**given, **proved})
        return flow

    def returns(self, function: Function, call: ast.Call | None = None) -> Kind:
        """What calling a function of the project gives."""
        node = function.node
        flow = self.flow(function)
        written = UNKNOWN
        if not isinstance(node, ast.Lambda) and node.returns is not None:
            written = self._resolved(annotated(node.returns, self.kinds))
        if function.decorated("property", "contextmanager", "lru_cache"):
            return flow.result or written
        if written != UNKNOWN and not any(a.kind == "Module" and not a.name for a in written):
            return written
        return flow.result or (NONE if isinstance(node, ast.FunctionDef) else UNKNOWN)

    def returns_with(self, function: Function, given: dict[str, Kind]) -> Kind:
        """Walk a lambda with known parameters."""
        known = self._given.setdefault(id(function), {})
        for name, value in given.items():
            known[name] = join(known.get(name, NOTHING), value)
        self._flows.pop(id(function), None)
        return self.flow(function).result

    def outer_kind(self, function: Function, name: str) -> Kind:
        """A name that is not local: from the enclosing functions, then the module."""
        parent = function.parent
        while parent is not None:
            if name in parent.locals:
                flow = self._flows.get(id(parent)) or self.flow(parent)
                return flow.variables.get(name, UNKNOWN)
            parent = parent.parent
        return self.global_kind(function.path, name)

    # -- parameters -----------------------------------------------------------------------------

    def parameters(self, function: Function) -> dict[str, Kind]:
        """The kinds of the parameters: annotation, call sites, default, or what forward takes."""
        arguments = function.node.args
        found: dict[str, Kind] = {}
        positional = function.parameters
        defaults = dict(
            zip([a.arg for a in positional][::-1], arguments.defaults[::-1], strict=False)
        )
        for arg, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
            if default is not None:
                defaults[arg.arg] = default
        for index, arg in enumerate((*positional, *arguments.kwonlyargs)):
            if index == 0 and function.owner is not None and not function.decorated("staticmethod"):
                found[arg.arg] = self._self(function)
            else:
                found[arg.arg] = self._parameter(function, arg, index, defaults.get(arg.arg))
        if arguments.vararg is not None:
            each = self._resolved(annotated(arguments.vararg.annotation, self.kinds))
            found[arguments.vararg.arg] = sequence("tuple", each)
        if arguments.kwarg is not None:
            found[arguments.kwarg.arg] = kind("dict", "", UNKNOWN)
        return found

    def _self(self, function: Function) -> Kind:
        assert function.owner is not None
        if function.decorated("classmethod"):
            return kind("class", function.owner.key)
        return values.instance_of(Atom("class", function.owner.key), (), self)

    def _parameter(
        self, function: Function, arg: ast.arg, index: int, default: ast.expr | None
    ) -> Kind:
        known = self._given.get(id(function), {}).get(arg.arg)
        if known is not None:
            return known
        if arg.annotation is not None:
            if id(arg.annotation) not in self.kinds and function.parent is None:
                self.module(function.path)
            written = self._resolved(annotated(arg.annotation, self.kinds))
            if written != UNKNOWN and not any(a.kind in ("callable", "Module") for a in written):
                return written
        else:
            written = UNKNOWN
        value = indirect(self.kinds.get(id(default), UNKNOWN)) if default is not None else NOTHING
        called = self._from_calls(function, arg.arg, index)
        joined = join(called, value)
        if without_none(joined) and UNKNOWN.isdisjoint(joined):
            return joined
        if written != UNKNOWN:
            return join(written, without_none(joined - UNKNOWN))
        if index == 0 and default is None and self._is_applied(function):
            return MODULE
        if self._is_forward(function) and without_none(joined) <= UNKNOWN:
            return TENSOR if default is None else join(TENSOR, value - UNKNOWN)
        return joined or UNKNOWN

    def _is_forward(self, function: Function) -> bool:
        return (
            function.name == "forward"
            and function.owner is not None
            and self.is_module(function.owner.key)
        )

    def _is_applied(self, function: Function) -> bool:
        """Whether a function is given to ``module.apply``."""
        for _, call, _ in self.program.calls.get("apply", ()):
            last = call.args[0] if len(call.args) == 1 else None
            name = last.attr if isinstance(last, ast.Attribute) else getattr(last, "id", "")
            if name == function.name:
                return True
        return False

    def _from_calls(self, function: Function, name: str, index: int) -> Kind:
        """What the calls in the project pass for a parameter."""
        called_as = function.name
        shift = 0
        if function.owner is not None and not function.decorated("staticmethod"):
            shift = 1
            if called_as == "__init__":
                called_as = function.owner.name
            elif called_as in ("forward", "__call__"):
                self._walk_holders(function.owner)
                calls = self._module_calls.get(function.owner.key, ())[:MAX_CALL_SITES]
                return join(*(self._passed(call, name, index - shift) for call in calls))
        found: list[Kind] = []
        for file, call, caller in self.program.calls.get(called_as, ())[:MAX_CALL_SITES]:
            if self._means(file, call, caller, function):
                found.append(self._passed(call, name, index - shift))
        return join(*found)

    def _walk_holders(self, owner: Class) -> None:
        """The forwards of the classes that build this one: they call its instances."""
        for _, _, caller in self.program.calls.get(owner.name, ())[:MAX_CALL_SITES]:
            holder = caller.owner if caller is not None else None
            forward = holder.methods.get("forward") if holder is not None else None
            if forward is not None and holder is not owner:
                self.flow(forward)

    def _means(
        self, file: File, call: ast.Call, caller: Function | None, function: Function
    ) -> bool:
        """Whether a call is one of this very function."""
        if caller is not None:
            self.flow(caller)
        else:
            self.module(file.path)
        keys = {a.name for a in self.kinds.get(id(call.func), NOTHING)}
        owner = function.owner.key if function.owner is not None else ""
        return function.key in keys or (function.name == "__init__" and owner in keys)

    def _passed(self, call: ast.Call, name: str, index: int) -> Kind:
        if any(isinstance(a, ast.Starred) for a in call.args[: index + 1]):
            return UNKNOWN
        for keyword in call.keywords:
            if keyword.arg == name:
                return indirect(self.kinds.get(id(keyword.value), NOTHING))
        if 0 <= index < len(call.args):
            return indirect(self.kinds.get(id(call.args[index]), NOTHING))
        return UNKNOWN if any(k.arg is None for k in call.keywords) else NOTHING

    def _resolved(self, value: Kind) -> Kind:
        """Annotated classes become instances."""
        if not any(a.kind == "annotated" or a.items for a in value):
            return value
        found = []
        for atom in value:
            if atom.kind == "annotated":
                found.append(values.instance_of(Atom("class", atom.name), (), self))
            else:
                items = tuple(map(self._resolved, atom.items))
                found.append(
                    frozenset((Atom(atom.kind, atom.name, items, atom.keys, False, atom.fixed),))
                )
        return join(*found)

    # -- classes --------------------------------------------------------------------------------

    def class_body(self, key: str, variables: dict[str, Kind]) -> None:
        self._bodies[key] = variables

    def bases(self, key: str) -> list[Kind]:
        """The kinds of the base classes as written."""
        if key not in self._bases:
            owner = self.program.classes[key]
            self._bases[key] = []
            if owner.parent is not None:
                self.flow(owner.parent)
            else:
                self.module(owner.path)
            self._bases[key] = [self._base(owner, b) for b in owner.node.bases]
        return self._bases[key]

    def _base(self, owner: Class, node: ast.expr) -> Kind:
        known = self.kinds.get(id(node))
        if known is None:  # asked for while the module is still being walked
            known = Flow(self, owner.path, owner.parent).kind(node)
        return known

    def torch_bases(self, key: str) -> tuple[str, ...]:
        """The torch classes that a class of the project is derived from, nearest first."""
        found: list[str] = []
        for base in self._ancestors(key):
            for atom in base:
                if atom.kind == "ref" and atom.name not in found:
                    found.append(atom.name)
        return tuple(found)

    def _ancestors(self, key: str) -> list[Kind]:
        seen, todo, found = {key}, [key], []
        while todo:
            for base in self.bases(todo.pop(0)):
                found.append(base)
                for atom in base:
                    if atom.kind == "class" and atom.name not in seen:
                        seen.add(atom.name)
                        todo.append(atom.name)
        return found

    def is_module(self, key: str) -> bool:
        """Whether a class of the project is a torch Module."""
        return any(
            name.startswith(("torch.nn.", "einops.layers", "torchvision.ops"))
            and self.table.kind(name) in ("class", "")
            for name in self.torch_bases(key)
        )

    def member(self, key: str, name: str) -> Kind:
        """``instance.name`` for an instance of a class of the project."""
        place = (key, name)
        if place in self._members:
            return self._members[place]
        self._members[place] = NOTHING
        found = self._own_member(key, name) or self.inherited(key, name)
        self._members[place] = found
        return found

    def _own_member(self, key: str, name: str) -> Kind:
        owner = self.program.classes[key]
        method = owner.methods.get(name)
        if method is not None:
            if method.decorated("property", "cached_property"):
                return self.returns(method)
            return kind("method", method.key)
        self.module(owner.path)
        found = [self._bodies.get(key, {}).get(name, NOTHING)]
        storing = owner.stores.get(name, [])
        registered = [
            m for m in owner.methods.values() if m.name == "__init__" and m not in storing
        ]
        for function in (*storing, *registered):
            found.append(self.flow(function).stores.get(name, NOTHING))
        joined = join(*found)
        return without_none(joined) | (joined & NONE) if joined else NOTHING

    def inherited(self, key: str, name: str) -> Kind:
        """``super().name``: what the bases give."""
        found: list[Kind] = []
        for base in self.bases(key):
            for atom in base:
                if atom.kind == "class":
                    found.append(self.member(atom.name, name))
                elif atom.kind == "ref":
                    instance = values.instance_of(atom, (), self)
                    found.append(values.attribute(instance, name, self))
        known = [f for f in found if f and f != UNKNOWN]
        return join(*known[:1]) if known else (UNKNOWN if found else NOTHING)

    def only_tensors_have(self, attribute: str) -> bool:
        """Whether no class of the project, of Python or of numpy has such an attribute."""
        return attribute in self._tensor_only


def _imports(file: File, roots: frozenset[str]) -> bool:
    """Whether a file imports anything that is ours to decide."""
    for node in file.imports:
        names = (
            [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else [a.name for a in node.names]
        )
        if any(root_of(n) in roots for n in names) and not getattr(node, "level", 0):
            return True
    return False


def _exclusive(table: Table, program: Program) -> frozenset[str]:
    """Attributes that only Tensors have: by elimination, not by spelling."""
    names = {n.rpartition(".")[2] for n in table.torch.names if n.startswith("torch.Tensor.")}
    others: set[str] = set()
    for owner in (str, list, dict, tuple, set, int, float, complex, bytes, slice, range):
        others.update(dir(owner))
    others.update(_NUMPY)
    others.update(
        n.rpartition(".")[2]
        for n in table.torch.names
        if n.startswith(("torch.nn.Module.", "torch.optim."))
    )
    for owned in program.classes.values():
        others.update(owned.methods)
        others.update(owned.stores)
    return frozenset(n for n in names if n not in others and not n.startswith("_"))


# what numpy arrays, paths, images, configurations and files have as well
_NUMPY = (
    "T all any argmax argmin argpartition argsort astype base byteswap choose clip compress conj "
    "conjugate copy ctypes cumprod cumsum data diagonal dot dtype dump dumps fill flags flat "
    "flatten getfield imag item itemset itemsize mT max mean min nbytes ndim newbyteorder nonzero "
    "partition prod ptp put ravel real repeat reshape resize round searchsorted setfield setflags "
    "shape size sort squeeze std strides sum swapaxes take tobytes tofile tolist tostring trace "
    "transpose var view name names type is_sparse grad device layout where add sub mul div eq ne "
    "lt gt le ge index_add abs pow log exp sqrt map apply_ split rename stem expand join numpy "
    "square sin cos tan rotate crop filter convert load save show close read write seek tell "
    "requires_grad is_cuda set_ type_as to cpu cuda float half double int long bool normal_ mode "
    "storage share_memory_ histogram quantile unique values indices rank select narrow is_leaf "
    "sign floor ceil and_ or_ not_ xor matmul inverse det rad2deg deg2rad isin corr cov sum_to_size"
).split()


def canonical_name(name: str, table: Table) -> str:
    return canonical(name, table)
