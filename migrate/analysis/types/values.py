"""In: the kind of an object. Out: the kinds of its attributes, and of the result of calling it."""

from __future__ import annotations

import ast

from migrate.analysis.types import options
from migrate.analysis.types.kinds import (
    BOOL,
    BY_NAME,
    CONTEXT,
    FLOAT,
    INT,
    MODULE,
    NOTHING,
    SIZE,
    STR,
    TENSOR,
    UNKNOWN,
    Atom,
    Kind,
    alike,
    element,
    is_all,
    join,
    kind,
    may_have,
    ordered,
    sequence,
    unknown_but_for,
)
from migrate.analysis.types.outside import followed_kind
from migrate.analysis.types.python_results import (
    METHOD_RESULTS,
    dict_method,
    hands_on,
    pair_values,
)
from migrate.analysis.types.world import World
from migrate.mapping.names import canonical

_MODULE_TENSORS = ("weight", "bias", "running_mean", "running_var", "in_proj_weight",
                   "in_proj_bias", "num_batches_tracked", "alpha")  # fmt: skip
_REGISTRIES = {"_modules": MODULE, "_parameters": TENSOR, "_buffers": TENSOR}
# Modules around another one, which they call with their own arguments.
_WRAPPERS = ("torch.nn.DataParallel", "torch.nn.parallel.DistributedDataParallel")
_CONTAINERS = ("torch.nn.Sequential", "torch.nn.ModuleList", "torch.nn.ModuleDict",
               "torch.nn.ParameterList", "torch.nn.ParameterDict")  # fmt: skip
_CONTAINED = ("append", "extend", "insert", "keys", "items", "values", "update", "pop", "clear")


def torch_name(name: str, world: World, direct: bool) -> Kind:
    """The kind of a reference to the torch (or otherwise covered) name."""
    name = canonical(name, world.table)
    constant = world.table.kind(name) == "constant" or not world.table.signatures(name)
    if constant:
        rows = world.table.rows(name)
        if any(row.result == "dtype" or row.to in _DTYPES for row in rows) or name in _DTYPES:
            return frozenset((Atom("dtype", name, direct=direct),))
        written = next((row.result for row in rows if row.result in _VALUES), "")
        if written:
            return frozenset((Atom(written, name, direct=direct),))
    return frozenset((Atom("ref", name, direct=direct),))


_VALUES = ("str", "int", "bool", "float")


_DTYPES = frozenset(
    f"{root}.{name}"
    for root in ("torch", "mindspore")
    for name in (
        "float32 float float64 double float16 half bfloat16 int64 long int32 int int16 short int8 "
        "uint8 bool complex64 complex128 cfloat cdouble"
    ).split()
    if (root, name) not in (("mindspore", "float"), ("mindspore", "int"), ("mindspore", "bool"))
) | {"mindspore.bool_"}


_CONSTANTS = frozenset(f"{m}.{n}" for m in ("math", "numpy") for n in ("pi", "e", "inf", "nan"))
_NAMESPACE = "argparse.Namespace"  # one that a program makes holds what it likes


def attribute(value: Kind, name: str, world: World) -> Kind:
    """The kind of ``value.name``."""
    if name in ("__module__", "__name__", "__qualname__") and value == UNKNOWN:
        return STR
    if name == "saved_tensors" and value == UNKNOWN:
        return sequence("tuple", TENSOR)  # of the ctx of a torch.autograd.Function
    if value == CONTEXT:  # it holds what the forward puts there
        return {"saved_tensors": sequence("tuple", TENSOR),
                "needs_input_grad": sequence("tuple", BOOL)}.get(name, UNKNOWN)  # fmt: skip
    found = [_attribute(a, name, world) for a in ordered(value) if may_have(a, name)]
    return join(*found) if found or not value else UNKNOWN


def _attribute(atom: Atom, name: str, world: World) -> Kind:
    what = atom.kind
    if what == "ref":
        return _of_ref(atom, name, world)
    if what == "Tensor":
        return _of_tensor(name, world)
    if what in ("Module", "Object"):
        return _of_instance(atom, name, world)
    if what == "class":
        found = world.member(atom.name, name)
        is_apply = name == "apply" and world.is_function(atom.name)
        return world.member(atom.name, "forward") if is_apply else found
    if what == "super":
        return world.inherited(atom.name, name)
    if what == "project":
        found = world.global_kind(atom.name, name)
        path = world.program.submodule(atom.name, name)
        return found or (kind("project", path) if path else UNKNOWN)
    if what == "foreign" and atom.name.startswith("."):
        return UNKNOWN  # of the package itself, which may well give Tensors
    if what == "foreign" and f"{atom.name}.{name}" in _CONSTANTS:
        return FLOAT
    if what == "foreign":
        return followed_kind(full := f"{atom.name}.{name}", world) or kind("foreign", full)
    if what == "torch" and world.table.keys(full := world.table.member(atom.name, name)):
        is_method = world.table.kind(full) == "method"
        return kind("method", full) if is_method else world.results.of_call(full)
    if what == "instance" and atom.name == options.NAMESPACE:
        return options.option(world.program, name)
    if what == "instance" and atom.name and (hands_on(atom.name) or atom.name == _NAMESPACE):
        return UNKNOWN  # it may hold something of torch's
    if what in ("instance", "torch", "Optimizer"):
        return kind("instance", f"{atom.name}.{name}" if atom.name else "")
    if what == "partial" and name == "func":
        return join(*atom.items)
    if what == "tuple" and name in atom.keys:
        return atom.items[atom.keys.index(name)]
    if what in ("str", "list", "tuple", "dict", "Size", "int", "float", "bool", "iterator", "text"):
        return frozenset((Atom("method", f"{what}.{name}", (frozenset((atom,)),)),))
    if what == "device":
        return {"type": STR, "index": INT}.get(name, UNKNOWN)
    if what == "dtype":
        return BOOL if name.startswith("is_") else INT if name == "itemsize" else UNKNOWN
    return UNKNOWN


def _of_ref(atom: Atom, name: str, world: World) -> Kind:
    """An attribute of a torch module or class. An unknown one stays a torch name: it is flagged."""
    if atom.name in ("torch.nn.Module", "torch.Tensor") or world.table.kind(atom.name) == "class":
        full = f"{atom.name}.{name}"
        if not world.table.kind(full) and name.startswith("__"):
            return UNKNOWN
    full = f"{atom.name}.{name}"
    return followed_kind(full, world) or torch_name(full, world, atom.direct)


def _of_tensor(name: str, world: World) -> Kind:
    full = f"torch.Tensor.{name}"
    if world.table.kind(full) == "property" or name in ("shape", "dtype", "device", "ndim", "data"):
        return world.results.of_property(name)
    if world.table.kind(full) or world.table.rows(full):
        return frozenset((Atom("method", full),))
    return UNKNOWN


def _of_instance(atom: Atom, name: str, world: World) -> Kind:
    if "::" in atom.name:
        if name == "__class__":
            return kind("class", atom.name)
        found = world.member(atom.name, name)
        if any(a.kind == "method" and a.name.startswith("torch.nn.Module.") for a in found):
            return frozenset(_bound_to(a, atom) for a in found)  # ``net.eval()`` returns the net
        return found
    if name in _MODULE_TENSORS:
        return TENSOR
    if name == "training":
        return BOOL
    if name in _REGISTRIES:
        return frozenset((Atom("dict", items=(_REGISTRIES[name],)),))
    if name == "module" and atom.name in _WRAPPERS and atom.items:
        return atom.items[0]
    if atom.name in BY_NAME and name in atom.keys:
        return join(*atom.items)
    bound = frozenset((Atom("method", f"torch.nn.Module.{name}", (frozenset((atom,)),)),))
    if atom.name in _CONTAINERS and name in _CONTAINED:
        return frozenset((Atom("method", f"{atom.name}.{name}", (frozenset((atom,)),)),))
    if world.table.kind(f"torch.nn.Module.{name}") or name == "forward":
        return bound
    for signature in world.table.signatures(atom.name):
        for param in signature.params:
            if param.name == name:
                return {"int": INT, "float": FLOAT, "bool": BOOL, "str": STR}.get(
                    param.type, UNKNOWN
                )
    return UNKNOWN


def _bound_to(member: Atom, receiver: Atom) -> Atom:
    """Return a method that torch's Module defines with the instance that it is bound to."""
    if member.kind != "method" or not member.name.startswith("torch.nn.Module."):
        return member
    return Atom("method", member.name, (frozenset((receiver,)),))


def instance_of(atom: Atom, args: tuple[Kind, ...], world: World) -> Kind:
    """Return the instance that calling a class of torch's or of the project makes."""
    if atom.kind == "class":
        what = "Module" if world.is_module(atom.name) else "Object"
        return kind(what, atom.name)
    if atom.name in _CONTAINERS:
        return container(atom.name, args)
    if atom.name in _WRAPPERS and args:
        inner = frozenset(a for a in args[0] if a.name not in _WRAPPERS)
        return frozenset((Atom("Module", atom.name, (inner,) if inner else ()),))
    return world.results.of_call(atom.name)


def resolved(value: Kind, world: World) -> Kind:
    """Annotated classes become instances."""
    if not any(a.kind == "annotated" or a.items for a in value):
        return value
    found = []
    for atom in value:
        if atom.kind == "annotated":
            found.append(instance_of(Atom("class", atom.name), (), world))
        else:
            items = tuple(resolved(i, world) for i in atom.items)
            one = Atom(atom.kind, atom.name, items, atom.keys, False, atom.fixed)
            found.append(frozenset((one,)))
    return join(*found)


def container(name: str, args: tuple[Kind, ...]) -> Kind:
    """A torch container of Modules with the kinds of its elements: torch takes nothing else."""
    found: list[Kind] = []
    for arg in args:
        for atom in arg:
            if atom.kind in ("list", "tuple", "iterator", "dict"):
                found.extend(pair_values(i) for i in atom.items)
            else:
                found.append(frozenset((atom,)))
    held = [join(*found)] if found else []
    if name in _CONTAINERS[:3]:  # those of Modules
        held = [alike(MODULE, h) if unknown_but_for(MODULE, h) else h for h in held]
    keys = tuple(k for arg in args for a in arg for k in a.keys) if name in BY_NAME else ()
    return frozenset((Atom("Module", name, tuple(held), keys),))


def call_method(atom: Atom, args: tuple[Kind, ...], world: World) -> Kind:
    """The result of a bound method that is not a function of the project."""
    name = atom.name
    owner, _, last = name.rpartition(".")
    receiver = atom.items[0] if atom.items else NOTHING
    if owner in METHOD_RESULTS and last in METHOD_RESULTS[owner]:
        return METHOD_RESULTS[owner][last]
    if owner == "str":
        return STR
    if owner in ("dict", *BY_NAME):
        return dict_method(receiver, last, args)
    if owner == "list":
        return element(receiver) if last == "pop" else receiver if last == "copy" else UNKNOWN
    if owner in _CONTAINERS:
        return receiver
    if owner == "torch.nn.Module":
        return _of_module(receiver, last, world)
    if name.startswith("torch."):
        return world.results.of_call(name)
    return UNKNOWN


def _of_module(receiver: Kind, last: str, world: World) -> Kind:
    if last in ("forward", "__call__"):
        return call_module(receiver, world)
    known = world.results.of_call(f"torch.nn.Module.{last}")
    if last in ("children", "named_children") and any(a.items for a in receiver):
        each = join(*(i for a in receiver for i in a.items))
        named = frozenset((Atom("tuple", items=(STR, each), fixed=True),))
        return sequence("iterator", each if last == "children" else named)
    return receiver if known == MODULE and last not in ("get_submodule",) else known


def call_module(receiver: Kind, world: World) -> Kind:
    """Return the result of calling instances of Modules."""
    found: list[Kind] = []
    for atom in ordered(receiver):
        if "::" in atom.name:
            forward = ordered(world.member(atom.name, "forward"))
            functions = [world.function_of(a.name) for a in forward]
            named = {a.name for a in world.put_on_classes("forward")}
            own = [f for f in functions if f is not None and (f.owner or f.key in named)]
            given = join(*map(world.returns_any, own))
            if not given or given >= UNKNOWN:  # else a wrapper from outside returns the same
                given = join(given, *(world.returns_any(f) for f in functions if f is not None))
            found += [given] if any(functions) else []
            if not any(functions):
                bases = world.torch_bases(atom.name)
                found.extend(world.results.of_forward(b) for b in bases)
        elif atom.name in _WRAPPERS and atom.items:
            found.append(call_module(atom.items[0], world))
        elif atom.kind == "Module":
            found.append(world.results.of_forward(atom.name, "return_indices" in atom.keys))
    return join(*found) if found else TENSOR


def subscript(value: Kind, index: ast.expr, index_kind: Kind) -> Kind:
    """The kind of ``value[index]``."""
    found: list[Kind] = []
    literal = _literal_int(index)
    for atom in value:
        one = frozenset((atom,))
        if atom.kind == "Tensor":
            found += [] if is_all(index_kind, "str") else [TENSOR]
        elif atom.name in BY_NAME:
            found.append(join(*atom.items) if atom.items else UNKNOWN)
        elif atom.kind in ("list", "tuple", "iterator", "Size", "Module", "str"):
            if isinstance(index, ast.Slice):
                found.append(_sliced(atom))
            elif (
                literal is not None and atom.fixed and -len(atom.items) <= literal < len(atom.items)
            ):
                found.append(atom.items[literal])
            else:
                found.append(element(one))
        elif atom.kind == "dict":
            absent = isinstance(index, ast.Constant) and not holds_key(atom, index.value)
            found.append(UNKNOWN if absent or not atom.items else join(*atom.items))
        elif atom.kind != "None":
            found.append(element(one))
    return join(*found) if found or not value else UNKNOWN


def holds_key(atom: Atom, key: object) -> bool:
    """Return whether a dictionary may hold the key; one of unknown keys may hold any.

    A value that was stored under other keys may be this one, as keys are not compared.
    """
    return not atom.keys or "?" in atom.keys or str(key) in atom.keys


def _sliced(atom: Atom) -> Kind:
    if atom.kind == "Size":
        return SIZE
    if atom.fixed:
        return sequence("tuple", join(*atom.items))
    return frozenset((atom,))


def _literal_int(node: ast.expr) -> int | None:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = _literal_int(node.operand)
        return None if inner is None else -inner
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    return None
