"""Vary the calls of a case: more arguments, other kinds of input; and draw their numbers.

Written cases show that a row holds where its author looked. These show where it holds besides:
torch is the oracle, what it refuses is no kind of this row. A template that drops an argument, or
sends it to the wrong place, shows as soon as it has another value than its default. Draws depend
on the row's key alone; no number is near zero and no two are equal by chance: zeros and ties hide
errors. Kinds of their own are made of them (``zeros`` are what ReLU and padding leave, a
``constant`` has no variance): where a function has no derivative, each framework takes one. Whole
numbers are indices or labels more often than not, so they only change their shape.
"""

from __future__ import annotations

import ast
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from migrate.mapping.row import POLICY_DROP, POLICY_REFUSE, Case, Row
from migrate.mapping.signatures import Param, Signature
from migrate.parity.exchange import Array

# Arguments that decide nothing here, and those that torch itself gave up.
LEFT_OUT = POLICY_DROP | POLICY_REFUSE | {"size_average", "reduce", "_stacklevel"}
BASES = 2
TEXTS: dict[str, tuple[str, ...]] = {
    "mean": ("'sum'", "'none'"),
    "zeros": ("'reflect'",),
    "constant": ("'reflect'",),
    "none": ("'tanh'",),
    "nearest": ("'bilinear'",),
    "linear": ("'lower'",),
    "tanh": ("'relu'",),
}
NAMED: dict[str, tuple[str, ...]] = {
    "norm": ("'ortho'",),
    "rounding_mode": ("'floor'", "'trunc'"),
    "indexing": ("'xy'",),
    "side": ("'right'",),
    "dim": ("0", "-1"),
    "dtype": ("torch.float64",),
    "stride": ("1",),
    "min": ("0.25",),
    "max": ("0.25",),
    "correction": ("0",),
    "unbiased": ("False",),
    "n": ("4",),
}
TYPED: dict[str, tuple[str, ...]] = {
    "bool": ("True",),
    "int": ("2",),
    "float": ("0.5",),
    "Scalar": ("0.5",),
}


def generated_calls(row: Row, case: Case) -> tuple[tuple[str, str], ...]:
    """(what was added, the call) for each optional argument that the first calls do not give.

    An argument counts as open even where another call of the case gives it: written calls are
    often such that it makes no difference there.
    """
    if case.source or not row.signatures:
        return ()
    found: dict[str, str] = {}
    for text in case.calls[:BASES]:
        for added, call in _with_one_more(row, text):
            if call not in case.calls:
                found.setdefault(call, added)
    return tuple((added, call) for call, added in found.items())


def _with_one_more(row: Row, text: str) -> Iterator[tuple[str, str]]:
    tree = ast.parse(text, mode="eval")
    found = _call_of(row, tree)
    if found is None or any(isinstance(one, ast.Starred) for one in found.args):
        return
    given = {word.arg for word in found.keywords}
    for param in _optional(row.signatures[0], found.args, given):
        for value in alternatives(param):
            found.keywords.append(ast.keyword(param.name, ast.parse(value, mode="eval").body))
            yield f"{param.name}={value}", ast.unparse(tree)
            found.keywords.pop()


def _call_of(row: Row, tree: ast.AST) -> ast.Call | None:
    """The only call of the row's name; None where there are several or none."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    method = row.name.rpartition(".")[2] if row.name.startswith("torch.Tensor.") else ""
    hits = [
        call
        for call in calls
        if ast.unparse(call.func) == row.name
        or (method and isinstance(call.func, ast.Attribute) and call.func.attr == method)
    ]
    return hits[0] if len(hits) == 1 else None


def _optional(
    signature: Signature, positional: Sequence[ast.expr], given: set[str | None]
) -> Iterator[Param]:
    for number, param in enumerate(signature.params):
        left_out = param.name in LEFT_OUT or param.name in given
        if param.default is None or param.kind not in ("any", "kw") or left_out:
            continue
        if param.kind == "kw" or number >= len(positional):
            yield param


def alternatives(param: Param) -> tuple[str, ...]:
    """Other values than the default, as source text; none where nothing sensible is known."""
    try:
        default = ast.literal_eval(param.default or "")
    except (ValueError, SyntaxError):
        return ()
    if isinstance(default, bool):
        return (str(not default),)
    if isinstance(default, int):
        return ("0" if default else "1",) if "dim" in param.name else (str(default + 1),)
    if isinstance(default, float):
        return (str(default / 2 + 0.125 if abs(default) < 1 else default + 0.5),)
    if isinstance(default, str):
        return TEXTS.get(default, ())
    if isinstance(default, tuple):
        return NAMED["dim"] if param.name == "dim" else ()
    return NAMED.get(param.name) or TYPED.get(param.type, ())


EDGES = (0.0, 0.5, -0.5, 1.0, -1.0, 2.0, -2.0, 1.5, -2.5, 3.0, -3.0, 6.0, 10.0, -10.0)
FEW = (0.0, 0.5, -0.5, 1.0, -1.0)
LARGE = (1e4, -1.1e4, 88.0, -89.0, 300.0, -310.0, 1e-6, -1.1e-6)
NOT_FINITE = (np.nan, np.inf, -np.inf, -0.0)
FLOATS = ("float32",)
# kinds of numbers whose gradient is compared as well
STEEP = ("edges", "zeros", "ties", "constant", "large")
Shape = tuple[int, ...]


@dataclass(frozen=True)
class Variant:
    """Generated inputs of one kind. ``gradient``: whether it is compared as well."""

    kind: str
    inputs: Mapping[str, Array]
    gradient: bool = False


def variants(key: str, inputs: Sequence[str]) -> tuple[Variant, ...]:
    """All kinds that make sense for these input specifications; none without floating inputs."""
    specs = [parse_input(text) for text in inputs]
    floating = [i for i, spec in enumerate(specs) if spec.dtype in FLOATS]
    if not floating:
        return ()
    found = []
    for kind, changed in _shapes(specs, floating).items():
        if changed != specs:
            arrays = [draw_spec(spec, f"{key}/{kind}", i) for i, spec in enumerate(changed)]
            found.append(Variant(kind, _named(arrays), gradient=kind != "empty"))
    plain = [draw_spec(spec, key, i) for i, spec in enumerate(specs)]
    for kind, change in _changes(key, specs).items():
        chosen = floating[-1:] if kind == "mixed" else floating
        if kind == "mixed" and len(floating) < 2:
            continue
        arrays = [change(x, i) if i in chosen else x for i, x in enumerate(plain)]
        found.append(Variant(kind, _named(arrays), gradient=kind in STEEP))
    return tuple(found)


def _named(arrays: Sequence[Array]) -> dict[str, Array]:
    return {f"x{number}": array for number, array in enumerate(arrays)}


def _shapes(specs: list[InputSpec], floating: list[int]) -> dict[str, list[InputSpec]]:
    def all_of(change: Callable[[Shape], Shape]) -> list[InputSpec]:
        return [replace(spec, shape=change(spec.shape)) for spec in specs]

    longest = max(len(spec.shape) for spec in specs)
    found = {
        "0-d": all_of(lambda shape: ()),
        "empty": all_of(lambda shape: (0, *shape[1:])),
        "size 1": all_of(lambda shape: (1,) * len(shape)),
        f"{longest + 1}-d": all_of(lambda shape: (2, *shape)),
    }
    if longest < 3:
        found["4-d"] = all_of(lambda shape: (*(2, 3, 2)[: 4 - longest], *shape))
    if len(floating) > 1:
        last = floating[-1]
        for kind, change in (("broadcast", _flat_first), ("lower rank", _lower)):
            one = replace(specs[last], shape=change(specs[last].shape))
            found[kind] = [*specs[:last], one, *specs[last + 1 :]]
    return found


def _flat_first(shape: Shape) -> Shape:
    return (1, *shape[1:]) if len(shape) > 1 else (1,)


def _lower(shape: Shape) -> Shape:
    return shape[1:]


def _changes(key: str, specs: Sequence[InputSpec]) -> dict[str, Callable[[Array, int], Array]]:
    """Kind -> what becomes of a floating input and its number."""
    first = next(i for i, spec in enumerate(specs) if spec.dtype in FLOATS)

    def whole(array: Array, index: int) -> Array:
        # all different, with zero and negative numbers where the case admits them
        random = _random(key, "int64", index)
        low = 1 if specs[index].kind in ("positive", "uniform") else -(array.size // 2)
        return np.asarray(random.permutation(array.size).reshape(array.shape) + low)

    def big(array: Array, index: int) -> Array:
        # neither float32 nor int32 holds them; what MindSpore sends through float64 does
        random = _random(key, "big", index)
        positive = specs[index].kind in ("positive", "uniform")
        signs = 1 if positive else random.choice((-1, 1), array.shape)
        return np.asarray((whole(array, index) + 2**33 + array.size) * signs)

    def byte(array: Array, index: int) -> Array:
        every = np.concatenate([np.arange(255, -1, -1)] * (-(-array.size // 256) or 1))
        return (
            _random(key, "uint8", index)
            .permutation(every)[: array.size]
            .reshape(array.shape)
            .astype(np.uint8)
        )

    def constant(array: Array, index: int) -> Array:
        return np.full_like(array, array.flat[0]) if array.size else array

    def far(array: Array, index: int) -> Array:
        # a quotient that float32 rounds, an angle of many turns
        return array * np.float32(2**16) if index == first else array

    def truth(array: Array, index: int) -> Array:
        random = _random(key, "bool", index)
        return np.asarray(random.permutation(np.arange(array.size) % 2 == 0)).reshape(array.shape)

    def double(array: Array, index: int) -> Array:
        return array.astype(np.float64)

    def zeros(array: Array, index: int) -> Array:
        every_second = np.arange(array.size) % 2 == 0
        kept = _random(key, "zeros", index).permutation(every_second).reshape(array.shape)
        return np.where(kept, array, np.zeros_like(array))

    def ties(array: Array, index: int) -> Array:
        drawn = _random(key, "ties", index).choice(np.asarray(FEW), array.shape)
        return np.asarray(drawn).astype(array.dtype)

    return {
        "float64": double,
        "int64": whole,
        "big": big,
        "uint8": byte,
        "constant": constant,
        "bool": truth,
        "mixed": whole,
        "edges": _from(EDGES, key, "edges"),
        "zeros": zeros,
        "ties": ties,
        "large": _from(LARGE, key, "large"),
        "far": far,
        "nan and inf": _some(NOT_FINITE, key, "nan"),
    }


def _from(values: tuple[float, ...], key: str, kind: str) -> Callable[[Array, int], Array]:
    def change(array: Array, index: int) -> Array:
        # no two numbers are equal: where ties stand, torch itself gives any index
        random = _random(key, kind, index)
        plain = np.asarray(values)
        rounds = -(-array.size // len(values)) or 1
        drawn = [np.where(plain == 0, 0.37 * i, plain * (1 + 0.0917 * i)) for i in range(rounds)]
        every = np.concatenate([random.permutation(some) for some in drawn])[: array.size]
        return np.asarray(every.reshape(array.shape).astype(array.dtype))

    return change


def _some(values: tuple[float, ...], key: str, kind: str) -> Callable[[Array, int], Array]:
    """A few of the numbers are replaced, the others stay as they were."""

    def change(array: Array, index: int) -> Array:
        random = _random(key, kind, index)
        changed = array.copy().ravel()
        places = random.permutation(changed.size)[: max(1, min(len(values), changed.size // 2))]
        chosen = random.permutation(np.asarray(values))[: len(places)]
        changed[places] = chosen.astype(array.dtype)
        return np.asarray(changed.reshape(array.shape))

    return change


def _random(key: str, kind: str, index: int) -> np.random.RandomState:
    return np.random.RandomState(zlib.crc32(f"{key}/{kind}:{index}".encode()) % 2**31)


KINDS = ("normal", "uniform", "positive", "unique")
DTYPES = ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64")
COMPLEX = ("complex64", "complex128")


class InputError(ValueError):
    """An input specification that is not understood; the message says which part."""


@dataclass(frozen=True)
class InputSpec:
    """Shape, dtype and how the numbers are drawn; ``low``/``high`` bound whole numbers."""

    shape: tuple[int, ...]
    dtype: str = "float32"
    kind: str = "normal"
    low: int = 0
    high: int = 10


def parse_input(text: str) -> InputSpec:
    """``"2x3"``, ``"scalar"``, ``"4 int64 high=5"``, ``"3 unique"``. Raises InputError."""
    words = text.split()
    if not words:
        raise InputError("an input is empty; write its shape, like 2x3 or scalar")
    try:
        shape = () if words[0] == "scalar" else tuple(int(n) for n in words[0].split("x"))
    except ValueError as error:
        raise InputError(
            f"input {text!r}: {words[0]!r} is no shape; write 2x3 or scalar"
        ) from error
    options: dict[str, Any] = {}
    for word in words[1:]:
        name, equals, value = word.partition("=")
        if equals and name in ("low", "high"):
            options[name] = int(value)
        elif word in KINDS:
            options["kind"] = word
        elif word in DTYPES or word in COMPLEX:
            options["dtype"] = word
        else:
            known = ", ".join((*DTYPES, *COMPLEX, *KINDS, "low=", "high="))
            raise InputError(f"input {text!r}: {word!r} is unknown; known are {known}")
    return InputSpec(shape, **options)


def draw(text: str, key: str, index: int) -> Array:
    """The array of one input; its seed is made of the row's key and the number of the input."""
    return draw_spec(parse_input(text), key, index)


def draw_spec(spec: InputSpec, key: str, index: int) -> Array:
    """The same for a specification that is read already."""
    random = np.random.RandomState(zlib.crc32(f"{key}:{index}".encode()) % 2**31)
    size = int(np.prod(spec.shape, dtype=np.int64))
    numbers = _numbers(spec, random, size)
    return np.asarray(numbers.reshape(spec.shape).astype(spec.dtype))


def _numbers(spec: InputSpec, random: np.random.RandomState, size: int) -> Array:
    if spec.kind == "unique":
        return random.permutation(size)
    if spec.dtype == "bool":
        chosen = random.rand(size) < 0.5
        chosen[: min(size, 2)] = [True, False][: min(size, 2)]
        return chosen
    if spec.dtype.startswith(("int", "uint")):
        return random.randint(spec.low, spec.high, size=size)
    if spec.kind == "uniform":
        return 0.02 + 0.96 * random.rand(size)
    if spec.kind == "positive":
        return 0.1 + 1.9 * random.rand(size)
    plain = _off_zero(random.standard_normal(size))
    if spec.dtype in COMPLEX:
        return plain + 1j * _off_zero(random.standard_normal(size))
    return plain


def _off_zero(numbers: Array) -> Array:
    """Kinks stand at zero: keep a distance of 0.05 from it, and no two numbers alike."""
    return np.asarray(
        np.where(np.abs(numbers) < 0.05, numbers + np.copysign(0.05, numbers), numbers)
    )
