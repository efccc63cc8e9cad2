"""In: the seed of a torch.Generator. Out: the numbers that torch draws with it on a CPU.

Formulas: ATen's mt19937 engine, uniform_real_distribution, normal_fill and random_from_to.
"""

import math
import os

import mindspore as ms
import numpy as np
from mindspore import ops

from migrate.helpers.creation import size_of
from migrate.helpers.data import DataLoader, Subset, lengths_of_split, random_split
from migrate.helpers.keeping import is_pynative
from migrate.helpers.random import bernoulli, normal_around, rand, randint, randn, randperm
from migrate.helpers.samplers import (
    RandomSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
    shuffled,
)
from migrate.helpers.tensor import assign, draw_normal_, draw_uniform_, random_


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
        return shuffled(self.words(max(0, size - 1)).tolist(), size)

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


def rand_by(*size, generator=None, dtype=None):
    """torch.rand with a generator, or with none."""
    if generator is None:
        return rand(*size, dtype=dtype)
    return drawn_tensor(generator.uniform, size_of(size), dtype)


def randn_by(*size, generator=None, dtype=None):
    """torch.randn with a generator, or with none."""
    if generator is None:
        return randn(*size, dtype=dtype)
    return drawn_tensor(generator.normal, size_of(size), dtype)


def randint_by(low, high, size, *, generator=None, dtype=None):
    """torch.randint with a generator, or with none."""
    if generator is None:
        return randint(low, high, size, dtype=dtype)
    return drawn_tensor(
        lambda count, _: generator.whole(low, high, count), tuple(size), dtype or ms.int64
    )


def randperm_by(n, *, generator=None, dtype=None):
    """torch.randperm with a generator, or with none."""
    if generator is None:
        return randperm(n, dtype=dtype)
    return drawn_tensor(lambda count, _: generator.order(count), (n,), dtype or ms.int64)


def normal_by(mean, std, size, *, generator=None, dtype=None):
    """torch.normal of numbers with a generator, or with none."""
    if generator is None:
        return ops.normal(tuple(size), mean, std)
    return drawn_tensor(generator.normal, tuple(size), dtype) * std + mean


def normal_around_by(mean, std=1.0, *, generator=None):
    """torch.normal of Tensors with a generator, or with none."""
    if generator is None:
        return normal_around(mean, std)
    centre = mean + ops.zeros_like(std) if isinstance(std, ms.Tensor) else mean
    return centre + std * drawn_tensor(generator.normal, centre.shape, centre.dtype)


def bernoulli_by(input, *, generator=None):
    """torch.bernoulli with a generator, or with none."""
    if generator is None:
        return bernoulli(input)
    numbers = drawn_tensor(generator.uniform, input.shape, input.dtype)
    return (numbers < input).astype(input.dtype)


def multinomial_by(input, num_samples, replacement=False, *, generator=None):
    """torch.multinomial with a generator, or with none."""
    if generator is None:
        return ops.multinomial(input, num_samples, replacement).astype(ms.int64)
    chances = input.asnumpy().reshape(-1, input.shape[-1])
    return drawn_tensor(
        lambda _, __: generator.choices(chances, num_samples, replacement),
        (*input.shape[:-1], num_samples),
        ms.int64,
    )


def normal_by_(tensor, mean=0.0, std=1.0, generator=None):
    """torch.Tensor.normal_ with a generator, or with none."""
    if generator is None:
        return draw_normal_(tensor, mean, std)
    return assign(tensor, drawn_tensor(generator.normal, tensor.shape, tensor.dtype) * std + mean)


def uniform_by_(tensor, start=0.0, end=1.0, generator=None):
    """torch.Tensor.uniform_ with a generator, or with none."""
    if generator is None:
        return draw_uniform_(tensor, start, end)
    numbers = drawn_tensor(generator.uniform, tensor.shape, tensor.dtype)
    return assign(tensor, numbers * (end - start) + start)


def random_by_(tensor, low, high, generator=None):
    """torch.Tensor.random_ with a generator, or with none."""
    if generator is None:
        return random_(tensor, low, high)
    return assign(tensor, randint_by(low, high, tensor.shape, generator=generator))


def random_split_by(dataset, lengths, generator=None):
    """torch.utils.data.random_split with a generator, or with none."""
    if generator is None:
        return random_split(dataset, lengths)
    order = generator.order(len(dataset))
    lengths = lengths_of_split(dataset, lengths)
    ends = [sum(lengths[: i + 1]) for i in range(len(lengths))]
    return [Subset(dataset, order[e - n : e]) for e, n in zip(ends, lengths)]


class RandomSamplerBy(RandomSampler):
    """Reproduces torch.utils.data.RandomSampler, with the orders of a generator if one is given."""

    def __init__(self, data_source, replacement=False, num_samples=None, generator=None):
        super().__init__(data_source, replacement, num_samples)
        self.generator = generator

    def __iter__(self):
        return super().__iter__() if self.generator is None else self._generated()

    def _generated(self):
        """32 numbers at once; a permutation that nothing is left for is drawn as well."""
        size = len(self.data_source)
        if self.replacement:
            for start in range(0, self.num_samples, 32):
                count = min(32, self.num_samples - start)
                yield from self.generator.whole(0, size, count).tolist()
            return
        for start in range(0, self.num_samples + 1, size):
            yield from self.generator.order(size)[: self.num_samples - start]


class SubsetRandomSamplerBy(SubsetRandomSampler):
    """Reproduces torch.utils.data.SubsetRandomSampler, in a generator's order if one is given."""

    def __init__(self, indices, generator=None):
        super().__init__(indices)
        self.generator = generator

    def __iter__(self):
        if self.generator is None:
            return super().__iter__()
        return iter([self.data_source[i] for i in self.generator.order(len(self.data_source))])


class WeightedRandomSamplerBy(WeightedRandomSampler):
    """Reproduces torch.utils.data.WeightedRandomSampler, with a generator's numbers if given."""

    def __init__(self, weights, num_samples, replacement=True, generator=None):
        super().__init__(weights, num_samples, replacement)
        self.generator = generator

    def __iter__(self):
        if self.generator is None:
            return super().__iter__()
        chances = self.chances.reshape(1, -1)
        return iter(self.generator.choices(chances, self.num_samples, self.replacement)[0].tolist())


class DataLoaderBy(DataLoader):
    """Reproduces torch.utils.data.DataLoader with the orders of a generator if one is given."""

    def __init__(
        self,
        dataset,
        batch_size=1,
        shuffle=None,
        sampler=None,
        batch_sampler=None,
        collate_fn=None,
        drop_last=False,
        generator=None,
    ):
        if shuffle and sampler is None and batch_sampler is None:
            sampler = RandomSamplerBy(dataset, generator=generator)
        super().__init__(
            dataset, batch_size, shuffle, sampler, batch_sampler, collate_fn, drop_last
        )
        self.generator = generator

    def __iter__(self):
        if self.generator is not None:
            self.generator.long_words(1)  # torch draws a seed for workers, of whom none is here
        return super().__iter__()
