"""Kinds of the results of Python's operators, functions and methods, and of foreign code."""

from __future__ import annotations

import ast
import builtins
import sys
from collections.abc import Mapping

from migrate.analysis.types import options, rivals
from migrate.analysis.types.kinds import (
    ARRAY,
    BOOL,
    FLOAT,
    INT,
    NONE,
    NOTHING,
    SCALAR,
    SIZE,
    STR,
    TENSOR,
    UNKNOWN,
    Atom,
    Kind,
    element,
    indirect,
    is_all,
    join,
    kind,
    sequence,
)

_BUILTIN_RESULTS = {
    "len": INT, "int": INT, "float": FLOAT, "str": STR, "bool": BOOL, "isinstance": BOOL,
    "hasattr": BOOL, "callable": BOOL, "issubclass": BOOL, "id": INT, "print": NONE, "repr": STR,
    "all": BOOL, "any": BOOL, "ord": INT, "chr": STR, "hash": INT, "format": STR,
    "range": sequence("iterator", INT),
}  # fmt: skip
METHOD_RESULTS = {
    "str": {"split": sequence("list", STR), "rsplit": sequence("list", STR), "encode": UNKNOWN,
            "splitlines": sequence("list", STR), "find": INT, "index": INT, "count": INT,
            "startswith": BOOL, "endswith": BOOL, "isdigit": BOOL, "isalpha": BOOL,
            "partition": sequence("tuple", STR), "rpartition": sequence("tuple", STR)},
    "list": {"index": INT, "count": INT, "append": NONE, "extend": NONE, "sort": NONE,
             "insert": NONE, "reverse": NONE, "clear": NONE, "remove": NONE},
    "Size": {"index": INT, "count": INT, "numel": INT},
    "tuple": {"index": INT, "count": INT},
    "text": {"read": STR, "readline": STR, "readlines": sequence("list", STR), "write": INT,
             "close": NONE, "flush": NONE},
}  # fmt: skip

# functions of numpy whose result is an array of numbers for any arguments
_ARRAYS = frozenset(
    "array asarray ascontiguousarray zeros ones full eye arange linspace stack concatenate vstack "
    "hstack rand randn randint random random_sample uniform normal standard_normal".split()
)
# functions of numpy that give a tuple of arrays for any arguments
_TUPLES = frozenset(
    "nonzero triu_indices tril_indices diag_indices triu_indices_from tril_indices_from "
    "diag_indices_from ix_".split()
)
# builtins whose result may be an argument, or the result of a function among the arguments
_HANDING_ON = ("functools.reduce", "operator.", "heapq.", "itertools.", "random.choice",
               "random.sample", "contextlib.nullcontext")  # fmt: skip
# functions of numpy that compute element by element: of a Tensor torch makes a Tensor again
_OF_ELEMENTS = frozenset(
    """
abs absolute add arccos arccosh arcsin arcsinh arctan arctan2 arctanh cbrt ceil cos cosh
deg2rad divide equal exp exp2 expm1 fabs float_power floor floor_divide fmax fmin fmod
greater greater_equal hypot isfinite isinf isnan less less_equal log log10 log1p log2
logaddexp logical_and logical_not logical_or logical_xor maximum minimum mod multiply
negative not_equal positive power rad2deg reciprocal remainder rint sign sin sinh sqrt
square subtract tan tanh true_divide trunc
""".split()
)
# modules of Python's whose objects hold, or whose functions give, what they are passed
_STANDARD_HOLDING = frozenset(
    "asyncio collections concurrent contextlib functools multiprocessing operator pickle queue "
    "threading types unittest weakref".split()
)
_GENERATORS = ("numpy.random.RandomState", "numpy.random.default_rng", "numpy.random.Generator")
# functions that draw one number unless they get more arguments than these
_ONE_NUMBER = {"beta": 2, "uniform": 2, "normal": 2, "gamma": 2, "rand": 0, "randn": 0,
               "random": 0, "random_sample": 0, "standard_normal": 0}  # fmt: skip
_NO_ARRAYS = frozenset({"tolist", "item", "choice", "permutation", "shuffle", "tobytes", "dump"})


def builtin(name: str, args: tuple[Kind, ...], node: ast.Call, kinds: Mapping[int, Kind]) -> Kind:
    """The result of a builtin function; ``node`` is its call, ``kinds`` are those of all nodes."""
    if name == "open":
        return kind("text") if _opens_text(node) else kind("instance", "open")
    if name in _BUILTIN_RESULTS:
        return _BUILTIN_RESULTS[name]
    first = args[0] if args else NOTHING
    starred = any(isinstance(a, ast.Starred) for a in node.args)
    if name in ("list", "sorted", "set", "frozenset"):
        return sequence("list", element(first)) if args else sequence("list", NOTHING)
    if name in ("tuple", "reversed", "iter", "filter"):
        of = element(args[-1]) if args else NOTHING
        if name == "tuple" and any(a.fixed for a in first):
            return first
        return sequence("tuple" if name == "tuple" else "iterator", of)
    if name == "enumerate":
        return sequence("iterator", _tuple(INT, element(first)))
    if name == "zip" and starred:
        return sequence("iterator", sequence("tuple", join(*map(element, args))))
    if name == "zip":
        return sequence("iterator", _tuple(*map(element, args)))
    if name == "next":
        return join(element(first), *args[1:])
    if name == "dict":
        return _dict(node, kinds)
    if name in ("sum", "max", "min"):
        many = (starred or len(args) > 1) and name != "sum"
        named = (k.value for k in node.keywords if k.arg in ("start", "default"))
        other = (kinds.get(id(value), UNKNOWN) for value in named)
        found = join(*args) if many else join(element(first), *args[1:], *other)
        return found - BOOL | INT if name == "sum" and found >= BOOL else found
    if name == "round" and len(args) == 1 and is_all(first, "int", "float", "bool"):
        return INT
    if name == "divmod":
        return _tuple(join(*args), join(*args))
    if name in ("abs", "round", "pow"):
        found = join(*args) if name == "pow" else first
        return found - BOOL | INT if found >= BOOL else found
    if name == "super" or name == "getattr":
        return UNKNOWN
    if name == "type" and len(args) == 1:
        return class_of(first)
    return kind("instance", name) if hasattr(builtins, name) else UNKNOWN


def class_of(value: Kind) -> Kind:
    """Return the kind of ``type(x)``: the classes of the project that ``x`` may be of."""
    objects = [a for a in value if a.kind in ("Module", "Object") and "::" in a.name]
    if not objects or len(objects) < len(value):
        return UNKNOWN if "unknown" in {a.kind for a in value} else kind("instance", "type")
    return frozenset(Atom("class", a.name) for a in objects)


def _tuple(*places: Kind) -> Kind:
    return frozenset((Atom("tuple", items=places, fixed=True),))


def _dict(node: ast.Call, kinds: Mapping[int, Kind]) -> Kind:
    """``dict(a=1)`` holds what its keywords say."""
    keys = tuple(k.arg for k in node.keywords if k.arg)
    if not node.args and not node.keywords:
        return frozenset((Atom("dict", items=(NOTHING,)),))
    if node.args or not keys or len(keys) < len(node.keywords):
        return frozenset((Atom("dict"),))
    held = join(*(indirect(kinds.get(id(k.value), UNKNOWN)) for k in node.keywords))
    return frozenset((Atom("dict", items=(held,), keys=keys),))


def _opens_text(node: ast.Call) -> bool:
    """Whether ``open(...)`` surely opens a text: its mode is written and says so."""
    if any(isinstance(a, ast.Starred) for a in node.args) or any(not k.arg for k in node.keywords):
        return False
    modes = [*node.args[1:2], *(k.value for k in node.keywords if k.arg == "mode")]
    words = [m.value if isinstance(m, ast.Constant) else None for m in modes]
    return all(isinstance(word, str) and "b" not in word for word in words)


def foreign(name: str, args: tuple[Kind, ...]) -> Kind:
    """The result of calling something that is neither torch nor the project."""
    first = args[0] if args else NOTHING
    if name.startswith("."):
        return UNKNOWN
    if name in ("copy.deepcopy", "copy.copy", "typing.cast", "functools.lru_cache",
                "dataclasses.replace"):  # fmt: skip
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
    if name == "collections.OrderedDict":
        return frozenset((Atom("dict", name, _dict_values(first) if args else (NOTHING,)),))
    if name == "collections.defaultdict":
        return frozenset((Atom("dict", name, (_made_by(first),)),))
    if name.startswith("numpy.random.") and _draws_one(name, args):
        return SCALAR
    if name == "collections.namedtuple":
        return frozenset((Atom("callable", name, items=(UNKNOWN,)),))
    if name.startswith(_HANDING_ON):
        return UNKNOWN
    if is_of_elements(name) and args and all(_is_number(value) for value in args):
        return SCALAR
    if is_of_elements(name) and any(a.kind == "Tensor" for value in args for a in value):
        return TENSOR if any(is_all(value, "Tensor") for value in args) else UNKNOWN
    last = name.rpartition(".")[2]
    if name.startswith("numpy.") and last in _TUPLES:
        return sequence("tuple", ARRAY)
    if name == "numpy.where" and len(args) == 1:
        return sequence("tuple", ARRAY)
    if name.startswith("numpy.") and (last in _ARRAYS or _draws_several(name, args)):
        return ARRAY
    handed = hands_on(name) or name.startswith("numpy.")
    if handed and any(map(may_be_torchs, args)):
        return kind("instance", name) if last[:1].isupper() else UNKNOWN
    return kind("instance", name)


def _is_number(value: Kind) -> bool:
    return is_all(value, "int", "float", "bool") or value == SCALAR


def hands_on(name: str) -> bool:
    """Return whether foreign code may give, or keep, a Tensor or a Module that it is passed."""
    root = name.partition(".")[0]
    if root in sys.stdlib_module_names:
        return root in _STANDARD_HOLDING
    return root not in rivals.WITHOUT_TORCH


def may_be_torchs(value: Kind) -> bool:
    """Return whether a value is, holds or computes something of torch's in some case."""
    return any(
        a.kind in _TORCHS
        or (a.kind in ("list", "tuple", "dict", "iterator", "instance") and any(
            map(may_be_torchs, a.items)))
        for a in value
    )  # fmt: skip


_TORCHS = frozenset("Tensor Module Object Optimizer torch ref class function method partial "
                    "callable".split())  # fmt: skip


def is_of_elements(name: str) -> bool:
    """Return whether a name is that of a function of numpy that computes element by element."""
    owner, _, last = name.rpartition(".")
    return owner == "numpy" and last in _OF_ELEMENTS


def _made_by(factory: Kind) -> Kind:
    """Return what a factory of Python's makes: the values of a defaultdict."""
    made = {"list": sequence("list", NOTHING), "set": sequence("list", NOTHING),
            "dict": frozenset((Atom("dict", items=(NOTHING,)),)),
            "int": INT, "float": FLOAT, "str": STR}  # fmt: skip
    names = {a.name if a.kind == "builtin" else "" for a in factory}
    return join(*(made.get(name, UNKNOWN) for name in names)) or UNKNOWN


def given(name: str, args: tuple[Kind, ...]) -> Kind:
    """Return the result of a method of a foreign object: mostly an array for an array."""
    owner, _, last = name.rpartition(".")
    if name in options.PARSES:
        return _tuple(options.PARSED, UNKNOWN) if "known" in last else options.PARSED
    if owner.startswith(_GENERATORS) and _draws_one(name, args):
        return SCALAR
    generates = owner.startswith(_GENERATORS)
    numbers = owner == "numpy.ndarray" or generates
    if (numbers and last not in _NO_ARRAYS) or (generates and _draws_several(name, args)):
        return ARRAY
    return UNKNOWN if hands_on(name) and any(map(may_be_torchs, args)) else kind("instance")


def _draws_one(name: str, args: tuple[Kind, ...]) -> bool:
    """Return whether ``np.random.beta(a, b)`` draws one number: it has no size."""
    parameters = _ONE_NUMBER.get(name.rpartition(".")[2], -1)
    return len(args) <= parameters and not any(ARRAY & a for a in args)


def _draws_several(name: str, args: tuple[Kind, ...]) -> bool:
    """Return whether numbers are put in order, ``permutation(n)``, or several chosen of them."""
    least = {"permutation": 1, "choice": 2}.get(name.rpartition(".")[2], 0)
    numbers = is_all(args[0], "int") or args[0] == ARRAY if args else False
    return bool(least) and len(args) >= least and numbers


def _dict_values(first: Kind) -> tuple[Kind, ...]:
    pairs = [pair_values(i) for a in first for i in a.items]
    return (join(*pairs),) if pairs else ()


def pair_values(value: Kind) -> Kind:
    """Of (name, Module) pairs, the Modules."""
    return join(*(a.items[-1] if a.kind == "tuple" and a.items else frozenset((a,)) for a in value))


def dict_method(receiver: Kind, last: str, args: tuple[Kind, ...] = ()) -> Kind:
    """The result of a method of a dictionary."""
    value = join(*(i for a in receiver for i in a.items)) or UNKNOWN
    if last in ("get", "pop", "setdefault"):
        return join(value, args[1]) if len(args) > 1 else value
    key = element(receiver)
    if last == "keys":
        return sequence("iterator", key)
    if last == "values":
        return sequence("iterator", value)
    if last == "items":
        return sequence("iterator", frozenset((Atom("tuple", items=(key, value), fixed=True),)))
    return receiver if last == "copy" else NONE


_NUMBERS = ("int", "float", "bool")


def binary(op: ast.operator, left: Kind, right: Kind) -> Kind:
    """The kind of ``left op right``."""
    both = left | right
    for many, other in ((left, right), (right, left)):
        if isinstance(op, ast.Mult) and is_all(many, "list") and is_all(other, "Tensor"):
            return many  # a Tensor of one whole number is taken for that
    if is_all(left, "Tensor") or is_all(right, "Tensor"):
        return TENSOR
    if is_all(both, *_NUMBERS):
        if isinstance(op, ast.Div):
            return FLOAT
        if is_all(left, "float") or is_all(right, "float"):
            return FLOAT
        return join(INT, *(FLOAT for a in both if a.kind == "float"))
    if is_all(left, "str"):
        return STR
    if is_all(left, "Size", "tuple") and isinstance(op, ast.Add):
        if is_all(both, "Size", "tuple") and any(a.kind == "Size" for a in left):
            return SIZE
        return sequence("tuple", join(*(i for a in both for i in a.items)) or UNKNOWN)
    for many, other in ((left, right), (right, left)):
        fixed = any(a.fixed for a in many) and is_all(many, "tuple")
        if isinstance(op, ast.Mult) and fixed and is_all(other, "int", "bool", "unknown"):
            return sequence("tuple", join(*(i for a in many for i in a.items)))  # its length?
    if is_all(left, "list", "tuple") and isinstance(op, (ast.Add, ast.Mult)):
        return frozenset(a for a in join(left, right) if a.kind in ("list", "tuple"))
    if is_all(right, "list", "tuple") and isinstance(op, ast.Mult):
        return right
    if is_all(both, "instance", *_NUMBERS) and both >= ARRAY and _numeric(both):
        return ARRAY
    if is_all(both, "instance", *_NUMBERS) and both >= SCALAR and _numeric(both - SCALAR):
        return SCALAR
    if any(a.kind == "Tensor" for a in both) and is_all(both, "Tensor", *_NUMBERS):
        return both
    return UNKNOWN


def _numeric(both: Kind) -> bool:
    """Arrays of numbers and numbers, nothing else that some library gave."""
    return all(a.kind != "instance" or a in ARRAY for a in both)
