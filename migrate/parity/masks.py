"""In: a shape and a drop probability. Out: one dropout mask, the same in both frameworks.

Both workers replace the random draw of dropout by this mask (scale included), so that train mode
can be compared number by number and a wrong probability or a forgotten ``training=`` shows.
"""

from __future__ import annotations

import math
import os
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from migrate.parity.exchange import Array

# Classes that drop whole samples or branches with a random draw of their own in forward; their
# probability is set to 0 on both sides, and of the class itself only shape and dtype count.
PATH_DROPPING = ("DropPath", "StochasticDepth", "DropConnect", "DropBlock2d")
EVEN = "TORCH2MS_EVEN_MASKS"
PROBABILITIES = ("p", "drop_prob", "drop_path", "drop_rate", "prob")


def keep_mask(shape: Sequence[int], p: float) -> Array:
    """Return float32 of ``shape``: 0 where dropped, ``1 / (1 - p)`` elsewhere.

    A function of p and the number of elements, so that a model may drop before or after a reshape.
    Even masks (`choose_masks`) scale everything by ``1 + p``, or ``1 + 2 p`` where channels are
    dropped: they fit any order of the axes.
    """
    sizes = tuple(int(size) for size in shape)
    if os.environ.get(EVEN):
        by_channel = len(sizes) > 2 and all(size == 1 for size in sizes[2:])
        return np.full(sizes, 1.0 + p * (2 if by_channel else 1), np.float32)
    seed = zlib.crc32(f"{math.prod(sizes)} {p:.4f}".encode())
    if p >= 1.0:
        return np.zeros(sizes, np.float32)
    kept = np.random.RandomState(seed).random_sample(sizes) >= p
    mask: Array = (kept / (1.0 - p)).astype(np.float32)
    return mask


def choose_masks(request: Mapping[str, Any], emit: object = None) -> dict[str, Any]:
    """Even masks from now on, in this process; or those that drop again."""
    os.environ[EVEN] = "1" if request["even"] else ""
    return {}


def channel_shape(shape: Sequence[int], unbatched: int) -> tuple[int, ...]:
    """Return the shape of a mask that drops whole channels.

    ``unbatched`` axes mean no batch axis.
    """
    kept = 1 if len(shape) == unbatched else 2
    return (*shape[:kept], *(1 for _ in shape[kept:]))


def draw(kind: str, shape: Sequence[int]) -> Array:
    """Return float32 of ``shape``: "normal" or "uniform", a function of kind and size."""
    sizes = tuple(int(size) for size in shape)
    source = np.random.RandomState(zlib.crc32(f"{kind} {math.prod(sizes)}".encode()))
    flat = source.standard_normal(sizes) if kind == "normal" else source.random_sample(sizes)
    drawn: Array = np.asarray(flat, np.float32)
    return drawn
