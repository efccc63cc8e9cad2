"""In: input specifications of cases ("2x3x8 int64 high=5"). Out: seeded numpy arrays.

No number is near zero and no two are equal by chance: zeros and ties hide errors.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from migrate.parity.exchange import Array

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
