"""In: the kind of an object. Out: the kinds of its attributes, and of what calling it gives."""

from __future__ import annotations

import ast
import builtins

from migrate.names import canonical
from migrate.receivers.kinds import (
    BOOL,
    DTYPE,
    FLOAT,
    INT,
    MODULE,
    NONE,
    NOTHING,
    SIZE,
    STR,
    TENSOR,
    UNKNOWN,
    Atom,
    Kind,
    element,
    join,
    kind,
    sequence,
)
from migrate.receivers.world import World

_BUILTIN_RESULTS = {
    "len": INT, "int": INT, "float": FLOAT, "str": STR, "bool": BOOL, "isinstance": BOOL,
    "hasattr": BOOL, "callable": BOOL, "issubclass": BOOL, "id": INT, "print": NONE, "repr": STR,
    "all": BOOL, "any": BOOL, "ord": INT, "chr": STR, "hash": INT, "format": STR,
    "range": sequence("iterator", INT), "open": kind("instance", "open"),
}  # fmt: skip
_METHOD_RESULTS = {
    "str": {"split": sequence("list", STR), "rsplit": sequence("list", STR), "encode": UNKNOWN,
            "splitlines": sequence("list", STR), "find": INT, "index": INT, "count": INT,
            "startswith": BOOL, "endswith": BOOL, "isdigit": BOOL, "isalpha": BOOL,
            "partition": sequence("tuple", STR), "rpartition": sequence("tuple", STR)},
    "list": {"index": INT, "count": INT, "append": NONE, "extend": NONE, "sort": NONE,
             "insert": NONE, "reverse": NONE, "clear": NONE, "remove": NONE},
    "Size": {"index": INT, "count": INT, "numel": INT},
    "tuple": {"index": INT, "count": INT},
}  # fmt: skip
_MODULE_TENSORS = ("weight", "bias", "running_mean", "running_var", "in_proj_weight",
                   "in_proj_bias", "num_batches_tracked", "alpha")  # fmt: skip
_CONTAINERS = ("torch.nn.Sequential", "torch.nn.ModuleList", "torch.nn.ModuleDict",
               "torch.nn.ParameterList", "torch.nn.ParameterDict")  # fmt: skip
_DICTS = ("torch.nn.ModuleDict", "torch.nn.ParameterDict")


def torch_name(name: str, world: World, direct: bool) -> Kind:
    """The kind of a reference to the torch (or otherwise covered) name."""
    name = canonical(name, world.table)
    constant = world.table.kind(name) == "constant" or not world.table.signatures(name)
    if constant:
        rows = world.table.rows(name)
        if any(row.result == "dtype" or row.to in _DTYPES for row in rows) or name in _DTYPES:
            return frozenset((Atom("dtype", name, direct=direct),))
    return frozenset((Atom("ref", name, direct=direct),))


_DTYPES = frozenset(
    f"{root}.{name}"
    for root in ("torch", "mindspore")
    for name in (
        "float32 float float64 double float16 half bfloat16 int64 long int32 int int16 short int8 "
        "uint8 bool complex64 complex128 cfloat cdouble"
    ).split()
    if (root, name) not in (("mindspore", "float"), ("mindspore", "int"), ("mindspore", "bool"))
) | {"mindspore.bool_"}


def attribute(value: Kind, name: str, world: World) -> Kind:
    """The kind of ``value.name``."""
    return (
        join(*(_attribute(atom, name, world) for atom in value if atom.kind != "None")) or UNKNOWN
    )


def _attribute(atom: Atom, name: str, world: World) -> Kind:
    what = atom.kind
    if what == "ref":
        return _of_ref(atom, name, world)
    if what == "Tensor":
        return _of_tensor(name, world)
    if what in ("Module", "Object"):
        return _of_instance(atom, name, world)
    if what == "class":
        return world.member(atom.name, name)
    if what == "super":
        return world.inherited(atom.name, name)
    if what == "project":
        found = world.global_kind(atom.name, name)
        path = world.program.submodule(atom.name, name)
        return found or (kind("project", path) if path else UNKNOWN)
    if what == "foreign":
        return kind("foreign", f"{atom.name}.{name}")
    if what in ("instance", "torch", "Optimizer"):
        return kind("instance", f"{atom.name}.{name}")
    if what == "tuple" and name in atom.keys:
        return atom.items[atom.keys.index(name)]
    if what in ("str", "list", "tuple", "dict", "Size", "int", "float", "bool", "iterator"):
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
    return torch_name(f"{atom.name}.{name}", world, atom.direct)


def _of_tensor(name: str, world: World) -> Kind:
    full = f"torch.Tensor.{name}"
    if world.table.kind(full) == "property" or name in ("shape", "dtype", "device", "ndim", "data"):
        return world.results.of_property(name)
    if world.table.kind(full) or world.table.rows(full):
        return frozenset((Atom("method", full),))
    return UNKNOWN


def _of_instance(atom: Atom, name: str, world: World) -> Kind:
    if "::" in atom.name:
        return world.member(atom.name, name)
    if name in _MODULE_TENSORS:
        return TENSOR
    if name == "training":
        return BOOL
    bound = frozenset((Atom("method", f"torch.nn.Module.{name}", (frozenset((atom,)),)),))
    if atom.name in _CONTAINERS and name in (
        "append",
        "extend",
        "insert",
        "keys",
        "items",
        "values",
        "update",
        "pop",
        "clear",
    ):
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


def instance_of(atom: Atom, args: tuple[Kind, ...], world: World) -> Kind:
    """The instance that calling a class (torch's or the project's) gives."""
    if atom.kind == "class":
        what = "Module" if world.is_module(atom.name) else "Object"
        return kind(what, atom.name)
    if atom.name in _CONTAINERS:
        return container(atom.name, args)
    return world.results.of_call(atom.name)


def container(name: str, args: tuple[Kind, ...]) -> Kind:
    """A torch container of Modules with the kinds of its elements."""
    found: list[Kind] = []
    for arg in args:
        for atom in arg:
            if atom.kind in ("list", "tuple", "iterator", "dict"):
                found.extend(_pair_values(i) for i in atom.items)
            else:
                found.append(frozenset((atom,)))
    return frozenset((Atom("Module", name, (join(*found),) if found else ()),))


def _pair_values(value: Kind) -> Kind:
    """Of (name, Module) pairs, the Modules."""
    return join(*(a.items[-1] if a.kind == "tuple" and a.items else frozenset((a,)) for a in value))


def call_method(atom: Atom, args: tuple[Kind, ...], world: World) -> Kind:
    """The result of a bound method that is not a function of the project."""
    name = atom.name
    owner, _, last = name.rpartition(".")
    receiver = atom.items[0] if atom.items else NOTHING
    if owner in _METHOD_RESULTS and last in _METHOD_RESULTS[owner]:
        return _METHOD_RESULTS[owner][last]
    if owner == "str":
        return STR
    if owner in ("dict", *_DICTS):
        return _of_dict(receiver, last)
    if owner == "list":
        return element(receiver) if last == "pop" else receiver if last == "copy" else UNKNOWN
    if owner in _CONTAINERS:
        return receiver
    if owner == "torch.nn.Module":
        return _of_module(receiver, last, world)
    if name.startswith("torch."):
        return world.results.of_call(name)
    return UNKNOWN


def _of_dict(receiver: Kind, last: str) -> Kind:
    value = join(*(i for a in receiver for i in a.items)) or UNKNOWN
    if last in ("get", "pop", "setdefault"):
        return value
    if last == "keys":
        return sequence("iterator", STR)
    if last == "values":
        return sequence("iterator", value)
    if last == "items":
        return sequence("iterator", frozenset((Atom("tuple", items=(STR, value), fixed=True),)))
    return receiver if last == "copy" else NONE


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
    """What calling instances of Modules gives."""
    found: list[Kind] = []
    for atom in receiver:
        if "::" in atom.name:
            forward = world.member(atom.name, "forward")
            functions = [world.function_of(a.name) for a in forward if a.kind == "method"]
            found.extend(world.returns(f) for f in functions if f is not None)
            if not any(functions):
                bases = world.torch_bases(atom.name)
                found.extend(world.results.of_forward(b) for b in bases)
        elif atom.kind == "Module":
            found.append(world.results.of_forward(atom.name))
    return join(*found) or TENSOR


def builtin(name: str, args: tuple[Kind, ...]) -> Kind:
    """The result of a builtin function."""
    if name in _BUILTIN_RESULTS:
        return _BUILTIN_RESULTS[name]
    first = args[0] if args else NOTHING
    if name in ("list", "sorted", "set", "frozenset"):
        return sequence("list", element(first)) if args else sequence("list", NOTHING)
    if name in ("tuple", "reversed", "iter", "filter"):
        of = element(args[-1]) if args else NOTHING
        if name == "tuple" and any(a.fixed for a in first):
            return first
        return sequence("tuple" if name == "tuple" else "iterator", of)
    if name == "enumerate":
        return sequence("iterator", _tuple(INT, element(first)))
    if name == "zip":
        return sequence("iterator", _tuple(*map(element, args)))
    if name == "next":
        return element(first)
    if name == "dict":
        return frozenset((Atom("dict"),))
    if name in ("sum", "max", "min"):
        many = len(args) > 1 and name != "sum"
        return join(*args) if many else element(first)
    if name in ("abs", "round", "pow", "divmod"):
        return first
    if name == "super" or name == "getattr":
        return UNKNOWN
    return kind("instance", name) if hasattr(builtins, name) else UNKNOWN


def _tuple(*places: Kind) -> Kind:
    return frozenset((Atom("tuple", items=places, fixed=True),))


def foreign(name: str, args: tuple[Kind, ...]) -> Kind:
    """The result of calling something that is neither torch nor the project."""
    first = args[0] if args else NOTHING
    if name in ("copy.deepcopy", "copy.copy", "typing.cast", "functools.lru_cache"):
        return args[-1] if name == "typing.cast" and args else first or UNKNOWN
    if name == "functools.partial":
        return frozenset((Atom("partial", items=(first,)),))
    if name.startswith("math."):
        last = name[5:]
        return INT if last in ("ceil", "floor", "gcd", "prod", "isqrt", "comb") else FLOAT
    if name in ("itertools.chain", "itertools.islice"):
        return sequence("iterator", join(*map(element, args)))
    if name == "itertools.repeat":
        return sequence("iterator", first)
    if name in ("collections.OrderedDict", "collections.defaultdict"):
        return frozenset((Atom("dict", items=_dict_values(first)),))
    return kind("instance", name)


def _dict_values(first: Kind) -> tuple[Kind, ...]:
    pairs = [_pair_values(i) for a in first for i in a.items]
    return (join(*pairs),) if pairs else ()


def subscript(value: Kind, index: ast.expr, index_kind: Kind) -> Kind:
    """The kind of ``value[index]``."""
    found: list[Kind] = []
    literal = _literal_int(index)
    for atom in value:
        one = frozenset((atom,))
        if atom.kind == "Tensor":
            found.append(TENSOR)
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
            found.append(join(*atom.items) if atom.items else UNKNOWN)
        elif atom.kind != "None":
            found.append(UNKNOWN)
    return join(*found) or UNKNOWN


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


__all__ = [
    "DTYPE",
    "MODULE",
    "attribute",
    "builtin",
    "call_method",
    "call_module",
    "container",
    "foreign",
    "instance_of",
    "subscript",
    "torch_name",
]
