"""A generated torch program, the folder it is written to, and the plain form of its results."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

Arguments = tuple[Any, ...]
HEADER = """import collections
import contextlib
import dataclasses
import functools
import math

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from fuzzkit import fill

"""


@dataclass(frozen=True)
class Program:
    """One independent program: definitions that no other program uses, and how they are run.

    ``kind`` is "call" (a function of arrays and plain values), "model" (``entry`` builds a Module
    whose weights the kit has filled) or "train" (a function that trains and returns its history).
    ``calls`` holds one tuple of arguments per run; ``others`` maps the names of further files to
    their text. ``features`` name what was put in: forms, operators, rows.
    """

    name: str
    kind: str
    text: str
    entry: str
    calls: tuple[Arguments, ...]
    others: Mapping[str, str] = field(default_factory=dict)
    imports: str = ""
    features: frozenset[str] = frozenset()
    gradient: bool = True
    lent: bool = True  # whoever calls the entry may read the arguments behind that

    def with_text(self, text: str) -> Program:
        return replace(self, text=text)


def main_text(programs: Sequence[Program]) -> str:
    """The file that holds the programs."""
    imports = "".join(sorted({line for p in programs for line in p.imports.splitlines(True)}))
    return HEADER + imports + "\n\n" + "\n\n".join(p.text for p in programs)


def files_of(programs: Sequence[Program]) -> dict[str, str]:
    """Every file of the folder: the main file and the other files of its programs."""
    found = {"main.py": main_text(programs)}
    for program in programs:
        found.update({name: HEADER + text for name, text in program.others.items()})
    return found


# -- results -------------------------------------------------------------------------------------


class Unplain(Exception):
    """A result that cannot be compared: a module, a function, a method."""


def apart(expected: Any, got: Any, where: str = "", beside: float = 0.0, loose: float = 1.0) -> str:
    """What differs between two plain results, "" where they are the same.

    ``beside``: the size of numbers beside which a millionth is nothing. ``loose`` multiplies what
    floats may differ by.
    """
    if expected[0] != got[0]:
        return f"{where}: {_shown(expected)} / {_shown(got)}"
    what, a, b = expected[0], expected[1], got[1]
    if what in ("tensor", "array"):
        return _arrays_apart(a, b, where, beside, loose)
    if what == "dict":
        if {k for k, _ in a} == {k for k, _ in b} and any("." in k for k, _ in a):
            b = [(k, dict(b)[k]) for k, _ in a]  # the order of weights is a layer's own, by design
        if [k for k, _ in a] != [k for k, _ in b]:
            return f"{where}: keys {[k for k, _ in a]} / {[k for k, _ in b]}"
        return next((t for (k, x), (_, y) in zip(a, b, strict=True)
                     if (t := apart(x, y, f"{where}[{k!r}]", beside, loose))), "")  # fmt: skip
    if what in ("list", "tuple"):
        if len(a) != len(b):
            return f"{where}: {len(a)} elements / {len(b)}"
        return next((t for i, (x, y) in enumerate(zip(a, b, strict=True))
                     if (t := apart(x, y, f"{where}[{i}]", beside, loose))), "")  # fmt: skip
    if what == "float":
        return _arrays_apart(np.asarray(a), np.asarray(b), where, 0.0, loose)
    return "" if a == b else f"{where}: {a!r} / {b!r}"


def _shown(value: Any) -> str:
    if value[0] in ("tensor", "array"):
        return f"{value[0]} {value[1].dtype}{list(value[1].shape)}"
    return f"{value[0]} {str(value[1])[:60]}"


def _arrays_apart(
    a: np.ndarray, b: np.ndarray, where: str, beside: float = 0.0, loose: float = 1.0
) -> str:
    if a.shape != b.shape:
        return f"{where}: shape {a.shape} / {b.shape}"
    if a.dtype != b.dtype:
        return f"{where}: dtype {a.dtype} / {b.dtype}"
    return numbers_apart(a, b, where, loose, beside)


def numbers_apart(
    a: np.ndarray, b: np.ndarray, where: str, loose: float = 1.0, beside: float = 0.0
) -> str:
    """What differs between two arrays of one shape and dtype: floats within 1e-4 of the largest."""
    if a.size == 0:
        return ""
    if a.dtype.kind not in "fc":
        return "" if (a == b).all() else f"{where}: {a.ravel()[:6]} / {b.ravel()[:6]}"
    if (np.isfinite(a) != np.isfinite(b)).any():
        return f"{where}: not finite elsewhere {a.ravel()[:5]} / {b.ravel()[:5]}"
    wide = np.complex128 if a.dtype.kind == "c" else np.float64
    coarse = {"float16": 2e-2}.get(str(a.dtype), 1e-4) * loose
    x, y = a.astype(wide)[np.isfinite(a)], b.astype(wide)[np.isfinite(a)]
    gap, scale = np.abs(x - y), (np.abs(x).max() if x.size else 0.0)
    if gap.size and gap.max() > 3e-6 * loose + coarse * scale + 1e-6 * beside:
        return f"{where}: off by {gap.max():.3g} of {scale:.3g}: {x.ravel()[:4]} / {y.ravel()[:4]}"
    return ""


def is_finite(value: Any) -> bool:
    """Whether every number of a plain result is finite and of moderate size."""
    what, inner = value
    if what in ("tensor", "array"):
        return not inner.size or inner.dtype.kind not in "fc" or bool(
            np.isfinite(inner).all() and np.abs(inner).max() < 1e5
        )  # fmt: skip
    if what == "float":
        return math.isfinite(inner) and abs(inner) < 1e6
    if what == "dict":
        return all(is_finite(x) for _, x in inner)
    return what not in ("list", "tuple") or all(map(is_finite, inner))


def tensors(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """(path, tensor) of the tensors in lists, tuples and dicts, of whichever framework."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from tensors(inner, (*path, key))
    elif isinstance(value, (list, tuple)):
        for index, inner in enumerate(value):
            yield from tensors(inner, (*path, index))
    elif hasattr(value, "dtype") and hasattr(value, "view") and not isinstance(value, np.ndarray):
        yield path, value


def weights_of_sum(count: int, number: int) -> np.ndarray:
    """The factors by which a result's elements are summed before the gradient is taken."""
    return np.cos(np.arange(count) + number).astype(np.float32)


def filling(name: str, shape: Sequence[int]) -> np.ndarray:
    """The numbers that a Parameter of this name is filled with, on either side."""
    import zlib

    draws = np.random.RandomState(zlib.crc32(name.encode()) % 2**31)
    return np.asarray(draws.uniform(-0.5, 0.5, tuple(shape)), np.float32)
