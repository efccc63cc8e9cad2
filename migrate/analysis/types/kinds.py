"""The kinds of values that the flow analysis tells apart, as small sets of alternatives."""

from __future__ import annotations

import ast
from functools import lru_cache
from typing import NamedTuple

MAX_ALTERNATIVES = 8
# functions that are only called or passed on: tables of layers and builders are long
MAX_NAMES = 24
MAX_DEPTH = 6  # enumerate(zip(stages, lists of blocks)) is five deep


class Atom(NamedTuple):
    """One alternative of what an expression may be.

    ``kind`` is one of: Tensor, Module (``name`` is its class), Object (instance of a class of the
    project), Optimizer, ref (``name`` is a torch name; ``direct`` when the expression spells it),
    class and function (``name`` is a key of the project), project (a module of it), method
    (``name`` is its function or torch name), partial, foreign (``name`` is a dotted name outside
    torch and the project), instance (of something foreign), Step (a training step around the
    network in ``items``), alias (a name for the type in ``items``), list, tuple, dict, Size, int,
    float, bool, str, text (an open file), None, dtype, device, unknown. ``items`` holds the kinds
    of the elements: one for a list, one for each place of a tuple (``fixed``), the values of a
    dict (``keys`` where they are written), what was passed for the ``keys`` to the call that
    defined a function. ``sites`` are where a container may have been made.
    """

    kind: str
    name: str = ""
    items: tuple[Kind, ...] = ()
    keys: tuple[str, ...] = ()
    direct: bool = False
    fixed: bool = False
    sites: frozenset[Site] = frozenset()


Kind = frozenset[Atom]
Site = int | str | tuple[object, int]  # see `contents`


@lru_cache(maxsize=4096)
def kind(name: str, of: str = "", *items: Kind) -> Kind:
    """Return the kind of one alternative; interned, as most are used often."""
    return frozenset((Atom(name, of, items),))


NOTHING: Kind = frozenset()
UNKNOWN: Kind = kind("unknown")
TENSOR: Kind = kind("Tensor")
INT: Kind = kind("int")
FLOAT: Kind = kind("float")
BOOL: Kind = kind("bool")
STR: Kind = kind("str")
NONE: Kind = kind("None")
DTYPE: Kind = kind("dtype")
DEVICE: Kind = kind("device")
SIZE: Kind = frozenset((Atom("Size", items=(INT,)),))
MODULE: Kind = kind("Module")
ARRAY: Kind = kind("instance", "numpy.ndarray")  # holds numbers
PACKED: Kind = kind("torch", "torch.nn.utils.rnn.PackedSequence")
SCALAR: Kind = kind("instance", "numpy.float64")  # a number of numpy's
MODULE_STATE = "torch.nn.Module.state_dict"  # the name of a dict that is the state of a Module
KEYED = "keyed"  # a dict whose keys may be other than texts
CONTEXT: Kind = kind("instance", "torch.autograd.function.FunctionCtx")  # holds what it likes
GIVEN: Kind = kind("instance")  # what a call of something foreign or unknown gave
# methods that only Modules have: a receiver of one is a Module
MODULE_ONLY = ("parameters", "named_parameters", "modules", "named_modules", "named_buffers",
               "named_children")  # fmt: skip
# layers of torch whose result may be the argument, or a view of it
HANDING_ON = frozenset("Identity Flatten Unflatten Dropout Dropout1d Dropout2d Dropout3d "
                       "AlphaDropout FeatureAlphaDropout".split())  # fmt: skip
# what torch's layers hold that normalize, and hardly anything else
STATISTICS = frozenset({"running_mean", "running_var"})

# what the methods of operators are called
BINARY: dict[type[ast.operator], str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "truediv", ast.FloorDiv: "floordiv",
    ast.Mod: "mod", ast.Pow: "pow", ast.MatMult: "matmul", ast.LShift: "lshift",
    ast.RShift: "rshift", ast.BitAnd: "and", ast.BitOr: "or", ast.BitXor: "xor",
}  # fmt: skip

_NAMES = ("class", "ref", "function", "Module")

_SIMPLE = {
    "Tensor": TENSOR,
    "int": INT,
    "float": FLOAT,
    "bool": BOOL,
    "str": STR,
    "None": NONE,
    "Size": SIZE,
    "dtype": DTYPE,
    "device": DEVICE,
    "Module": MODULE,
    "ndarray": ARRAY,
    "PackedSequence": PACKED,
    "Scalar": frozenset((Atom("int"), Atom("float"))),
    "number": frozenset((Atom("int"), Atom("float"))),
}


def join(*kinds: Kind) -> Kind:
    """The alternatives of all, or unknown where there are too many to be of use."""
    if len(kinds) == 2:
        first, second = kinds
        if first is second or not second:
            return first
        if not first:
            merged = second
        elif second <= first:
            merged = first
        else:
            merged = first | second
    else:
        merged = frozenset().union(*kinds)
    return merged if len(merged) <= 1 else _normal(merged)


@lru_cache(maxsize=1 << 16)
def _normal(merged: Kind) -> Kind:
    merged = _merge_lists(merged)
    if len(merged) <= MAX_ALTERNATIVES:
        return merged
    merged = _merge_closures(_merge_modules(merged))
    named = sum(a.kind in _NAMES for a in merged)
    if len(merged) - named <= MAX_ALTERNATIVES and named <= MAX_NAMES:
        return merged
    return UNKNOWN | (merged & NONE)


def _merge_modules(alternatives: Kind) -> Kind:
    """Modules of too many classes are some Module."""
    modules = frozenset(a for a in alternatives if a.kind == "Module")
    return alternatives - modules | MODULE if len(modules) > MAX_NAMES else alternatives


def _merge_closures(alternatives: Kind) -> Kind:
    """Functions forget what the calls that defined them were passed."""
    return frozenset(
        a._replace(items=(), keys=()) if a.kind == "function" else a for a in alternatives
    )


def _merge_lists(alternatives: Kind) -> Kind:
    """Lists (and lists of Modules) of one name become one list of joined elements."""
    groups: dict[tuple[str, str], list[Atom]] = {}
    for atom in alternatives:
        if atom.kind in ("list", "dict", "Module") and not atom.fixed:
            groups.setdefault((atom.kind, atom.name), []).append(atom)
    for (what, name), atoms in groups.items():
        if len(atoms) > 1:
            items = join(*(i for a in atoms for i in a.items))
            if what != "Module" and not all(a.items for a in atoms):
                items = join(items, UNKNOWN)  # one without items may hold anything
            keys = frozenset().union(*(a.keys for a in atoms))
            sites = frozenset().union(*(a.sites for a in atoms))
            held = (items,) if items or all(a.items for a in atoms) else ()
            one = Atom(what, name, held, tuple(sorted(keys)), sites=sites)
            alternatives = (alternatives - frozenset(atoms)) | {one}
    return alternatives


_PLAIN = {"int": int, "float": float, "bool": bool, "str": str, "list": list, "tuple": tuple,
          "dict": dict}  # fmt: skip


def may_have(atom: Atom, name: str) -> bool:
    """Whether an attribute may be asked of it: not of None, of a list only what lists have."""
    plain = _PLAIN.get(atom.kind)
    if atom.kind == "builtin" and atom.name == "object":  # stands for a library that is not there
        plain = object
    return atom.kind != "None" and (plain is None or name in atom.keys or hasattr(plain, name))


def having(value: Kind, name: str) -> Kind:
    """Return the alternatives that may have an attribute; unknown if none may."""
    found = frozenset(a for a in value if may_have(a, name))
    return found or (UNKNOWN if value - NONE else found)


def taking_axes(value: Kind) -> Kind:
    """The alternatives that an index of several axes may be asked of: no list, text or number."""
    found = frozenset(a for a in value if a.kind != "None" and a.kind not in _PLAIN)
    return found | frozenset(a for a in value if a.kind == "dict") or (UNKNOWN if value else found)


def sequence(what: str, element: Kind) -> Kind:
    """A list, set, iterator or variable tuple of one kind of element."""
    return frozenset((Atom(what, items=(shallow(element),)),))


def fixed_tuple(places: tuple[Kind, ...]) -> Kind:
    return frozenset((Atom("tuple", items=tuple(shallow(p) for p in places), fixed=True),))


@lru_cache(maxsize=1 << 16)
def depth(value: Kind) -> int:
    """Return how many levels of containers, and what they hold, a value has."""
    return max((1 + max(map(depth, a.items), default=0) for a in value), default=0)


def shallow(value: Kind) -> Kind:
    """Nesting beyond a few levels is forgotten, so that loops come to an end."""
    return value if depth(value) < MAX_DEPTH else UNKNOWN


def indirect(value: Kind) -> Kind:
    """What a variable holds: its later uses do not spell the torch name."""
    for atom in value:
        if atom.direct:
            break
    else:
        return value
    return frozenset(
        Atom(a.kind, a.name, a.items, a.keys, False, a.fixed, a.sites) if a.direct else a
        for a in value
    )


def ordered(value: Kind) -> list[Atom]:
    """The alternatives in one order, for evaluations that look at functions not yet walked."""
    return list(value) if len(value) < 2 else sorted(value, key=_order)


def _order(atom: Atom) -> tuple[object, ...]:
    items = tuple(tuple(sorted(map(_order, item))) for item in atom.items)
    return (atom.kind, atom.name, atom.keys, atom.direct, atom.fixed, items)


@lru_cache(maxsize=1 << 14)
def without_none(value: Kind) -> Kind:
    """The alternatives but None."""
    for atom in value:
        if atom.kind == "None":
            return frozenset(a for a in value if a.kind != "None")
    return value


def unknown_but_for(proved: Kind, value: Kind) -> bool:
    """Whether a value, None apart, is of this kind or unknown, but not surely of this kind.

    What a call of something unknown gave is unknown; a Module of any class is a Module.
    """
    rest = without_none(value)
    like = alike(proved, rest)
    return rest <= UNKNOWN | GIVEN | like and (rest != like or not rest)


def alike(proved: Kind, value: Kind) -> Kind:
    """A value that is proved to be of a kind, with what is known of it beyond that."""
    known = frozenset(a for a in value if a.kind == "Module") if proved == MODULE else proved
    return known if known and value <= known else proved | known


def is_all(value: Kind, *names: str) -> bool:
    """Whether every alternative, None apart, is of one of the kinds; False for nothing known."""
    kinds = _names_of(value)
    return bool(kinds) and kinds.issubset(names)


@lru_cache(maxsize=1 << 14)
def _names_of(value: Kind) -> frozenset[str]:
    return frozenset(a.kind for a in value if a.kind != "None")


_NO_TENSORS = frozenset("int float bool str Size dtype device torch".split())


def holds_no_tensor(value: Kind) -> bool:
    """Return whether a value is a number, a text, or a sequence of such: sizes of a Tensor."""
    rest = without_none(value)
    return bool(rest) and all(
        a.kind in _NO_TENSORS
        or (a.kind in ("list", "tuple") and bool(a.items) and all(map(holds_no_tensor, a.items)))
        for a in rest
    )


def may_be_numpys(value: Kind) -> bool:
    """A number that may be one of numpy's, which computes itself where a Tensor is on its right."""
    rest = without_none(value) - SCALAR
    return value >= SCALAR and (not rest or is_all(rest, "int", "float", "bool"))


def may_be_any_module(value: Kind) -> bool:
    """Whether a value may be a Module of whatever class."""
    names = ("", "torch.nn.Module")
    some = (a.kind == "Module" and a.name in names and not a.items for a in value)
    return value >= UNKNOWN or any(some)


BY_NAME = ("torch.nn.ModuleDict", "torch.nn.ParameterDict")  # iteration yields their keys
_OF_MODULES = frozenset(("torch.nn.Sequential", "torch.nn.ModuleList"))


def element(value: Kind) -> Kind:
    """Return the kind of an element of the value, by iteration or by a number as index."""
    found: list[Kind] = []
    for atom in without_none(value):
        if atom.kind in ("Tensor", "str"):
            found.append(frozenset((atom,)))
        elif atom.kind in ("dict", "text") or atom.name in BY_NAME:
            found.append(UNKNOWN if atom.name == KEYED else STR)
        elif atom.kind in ("list", "tuple", "Size", "Module", "iterator"):
            unknown = MODULE if atom.name in _OF_MODULES else UNKNOWN
            found.append(join(*atom.items) if atom.items else unknown)
        elif atom.kind == "torch" and atom.items:
            found.append(atom.items[0])
        else:
            found.append(ARRAY if atom in ARRAY else UNKNOWN)
    return join(*found) if found or not value else UNKNOWN


def place(value: Kind, index: int) -> Kind:
    """Return the kind of ``value[index]`` for a literal index."""
    found: list[Kind] = []
    for atom in without_none(value):
        if atom.fixed and -len(atom.items) <= index < len(atom.items):
            found.append(atom.items[index])
        else:
            found.append(element(frozenset((atom,))))
    return join(*found) if found or not value else UNKNOWN


def from_text(text: str) -> Kind:
    """Return the kind that a type name of the table or the signatures means."""
    text = text.strip()
    if text in _SIMPLE:
        return _SIMPLE[text]
    if text.startswith("torch."):
        return kind("torch", text)
    if text.endswith("?"):
        return join(from_text(text[:-1]), NONE)
    if text.endswith("[]"):
        return sequence("list", from_text(text[:-2]))
    head, bracket, inner = text.partition("[")
    if bracket and head in ("tuple", "list", "Optional"):
        parts = tuple(from_text(p) for p in _split(inner.rstrip()[:-1]) if p.strip() != "...")
        if head == "Optional":
            return join(parts[0], NONE)
        if head == "list" or "..." in inner.split(","):
            return sequence(head, join(*parts))
        return fixed_tuple(parts) if "..." not in inner else sequence("tuple", join(*parts))
    return UNKNOWN


def _split(text: str) -> list[str]:
    """The parts between the outermost commas."""
    parts, level, last = [], 0, 0
    for index, char in enumerate(text):
        level += (char == "[") - (char == "]")
        if char == "," and level == 0:
            parts.append(text[last:index])
            last = index + 1
    return [*parts, text[last:]]
