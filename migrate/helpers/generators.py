"""In: the seed of a torch.Generator. Out: the numbers that torch draws with it on a CPU.

Formulas: ATen's mt19937 engine, uniform_real_distribution, normal_fill and random_from_to.
"""

import math
import os

import mindspore as ms
import numpy as np

from migrate.helpers.keeping import is_pynative


def normal_blocks(uniform, dtype):
    """The Box-Muller transform of blocks of 16: eight radii, then the eight angles."""
    blocks = uniform.reshape(-1, 16).astype(np.float64)
    radius, angle = np.sqrt(-2 * np.log1p(-blocks[:, :8])), 2 * np.pi * blocks[:, 8:]
    pairs = np.concatenate((radius * np.cos(angle), radius * np.sin(angle)), 1)
    return pairs.reshape(-1).astype(dtype)


def drawn_tensor(draw, shape, dtype=None):
    """A Tensor of the numbers that a method of a Generator draws; float32 if no dtype is given."""
    assert is_pynative(), "torch2ms GRF613: a graph would draw once; draw in front of the Cell"
    dtype = ms.float32 if dtype is None else dtype
    numbers = draw(math.prod(shape), np.float64 if dtype == ms.float64 else np.float32)
    return ms.Tensor(np.asarray(numbers).reshape(shape), dtype)


class Generator:
    """Reproduces torch.Generator on a CPU: the same seed gives torch's own numbers.

    Numbers are float32 or float64 as torch draws them; those of normal distributions agree to
    rounding. Host code draws: a graph would keep the numbers of its first call, and refuses.
    """

    def __init__(self, device="cpu"):
        self.manual_seed(67280421310721)

    def manual_seed(self, seed):
        """Begin the sequence of a seed; gives the generator itself, as in torch."""
        self._seed = seed % 2**64
        self._engine = np.random.RandomState(self._seed % 2**32)
        self._spare = None  # the second number of a pair of normal ones
        return self

    def seed(self):
        """Begin a sequence that nobody knows; gives its seed."""
        return self.manual_seed(int.from_bytes(os.urandom(8), "little")).initial_seed()

    def initial_seed(self):
        """Return the seed of the present sequence."""
        return self._seed

    def words(self, count):
        """The next ``count`` words of 32 bits."""
        return np.frombuffer(self._engine.bytes(4 * count) if count else b"", "<u4")

    def long_words(self, count):
        """The next ``count`` words of 64 bits, the high half first."""
        halves = self.words(2 * count).astype(np.uint64)
        return (halves[0::2] << np.uint64(32)) | halves[1::2]

    def uniform(self, count, dtype=np.float32):
        """Numbers in [0, 1) of 24 random bits, in float64 of 53."""
        if dtype == np.float64:
            return (self.long_words(count) & np.uint64(2**53 - 1)) * 2.0**-53
        return ((self.words(count) & np.uint32(2**24 - 1)) * 2.0**-24).astype(np.float32)

    def normal(self, count, dtype=np.float32):
        """Standard normal numbers: blocks of 16 at once, fewer than that in pairs."""
        if count < 16:
            return np.array([self._single() for _ in range(count)], dtype)
        whole = count - count % 16
        drawn = normal_blocks(self.uniform(count, dtype)[:whole], dtype)
        if whole == count:
            return drawn
        last = normal_blocks(self.uniform(16, dtype), dtype)
        return np.concatenate((drawn[: count - 16], last))

    def _single(self):
        if self._spare is not None:
            number, self._spare = self._spare, None
            return number
        angle, length = self.uniform(2, np.float64)
        radius = np.sqrt(-2 * np.log1p(-length))
        self._spare = radius * np.sin(2 * np.pi * angle)
        return radius * np.cos(2 * np.pi * angle)

    def whole(self, low, high, count):
        """Whole numbers in [low, high)."""
        size = high - low
        if size < 2**28:
            return low + self.words(count).astype(np.int64) % size
        return low + (self.long_words(count) % np.uint64(size)).astype(np.int64)

    def order(self, size):
        """The numbers 0 to ``size - 1`` as torch.randperm shuffles them."""
        drawn, order = self.words(max(0, size - 1)).tolist(), list(range(size))
        for place, word in enumerate(drawn):
            other = place + word % (size - place)
            order[place], order[other] = order[other], order[place]
        return order

    def exponential(self, count, dtype=np.float32):
        """Numbers of the exponential distribution of rate 1."""
        return (-np.log1p(-self.uniform(count, np.float64))).astype(dtype)

    def choices(self, chances, count, replacement):
        """Columns of each row of ``chances``, which need not add up to 1, as torch.multinomial."""
        if replacement and count > 1:
            ends = np.cumsum(chances.astype(np.float64), 1)
            places = self.uniform(count * len(ends), np.float64).reshape(len(ends), count)
            return np.stack([np.searchsorted(e / e[-1], p) for e, p in zip(ends, places)])
        keys = chances / self.exponential(chances.size, chances.dtype).reshape(chances.shape)
        return np.argsort(-keys, 1, kind="stable")[:, :count]
