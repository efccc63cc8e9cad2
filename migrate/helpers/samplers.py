"""In: datasets and settings as torch's samplers take them. Out: the same indices."""

import numpy as np
from mindspore import communication


class Sampler:
    """Reproduces torch.utils.data.Sampler: an iterable of indices."""

    def __init__(self, data_source=None):
        self.data_source = data_source

    def __class_getitem__(cls, item):
        return cls


class SequentialSampler(Sampler):
    """Reproduces torch.utils.data.SequentialSampler."""

    def __iter__(self):
        return iter(range(len(self.data_source)))

    def __len__(self):
        return len(self.data_source)


class RandomSampler(Sampler):
    """Reproduces torch.utils.data.RandomSampler with other random numbers."""

    def __init__(self, data_source, replacement=False, num_samples=None):
        super().__init__(data_source)
        self.replacement = replacement
        self.num_samples = len(data_source) if num_samples is None else num_samples

    def __iter__(self):
        size = len(self.data_source)
        at_once = 4096 if self.replacement else size  # num_samples may mean: for ever
        for start in range(0, self.num_samples, at_once):
            count = min(at_once, self.num_samples - start)
            if self.replacement:
                yield from np.random.randint(0, size, count).tolist()
            else:
                yield from np.random.permutation(size)[:count].tolist()

    def __len__(self):
        return self.num_samples


class SubsetRandomSampler(Sampler):
    """Reproduces torch.utils.data.SubsetRandomSampler with other random numbers."""

    def __init__(self, indices):
        super().__init__(indices)

    def __iter__(self):
        return iter([self.data_source[i] for i in np.random.permutation(len(self.data_source))])

    def __len__(self):
        return len(self.data_source)


class WeightedRandomSampler(Sampler):
    """Reproduces torch.utils.data.WeightedRandomSampler with other random numbers."""

    def __init__(self, weights, num_samples, replacement=True):
        super().__init__()
        weights = np.asarray([float(weight) for weight in weights])
        self.chances, self.num_samples = weights / weights.sum(), num_samples
        self.replacement = replacement

    def __iter__(self):
        size = len(self.chances)
        chosen = np.random.choice(size, self.num_samples, self.replacement, self.chances)
        return iter(chosen.tolist())

    def __len__(self):
        return self.num_samples


def shuffled(words, size):
    """0 to ``size - 1`` in the order in which torch.randperm puts them by random words."""
    order = list(range(size))
    for place in range(size - 1):
        other = place + words[place] % (size - place)
        order[place], order[other] = order[other], order[place]
    return order


def seeded_permutation(size, seed):
    """torch.randperm(size) of a CPU generator with this seed, number by number."""
    words = np.frombuffer(np.random.RandomState(seed % 2**32).bytes(4 * size), "<u4").tolist()
    return shuffled(words, size)


class DistributedSampler(Sampler):
    """Reproduces torch.utils.data.distributed.DistributedSampler, shuffled orders included.

    Every process takes each ``num_replicas``-th index from ``rank`` on; without these two numbers,
    those of the processes that msrun started.
    """

    def __init__(
        self, dataset, num_replicas=None, rank=None, shuffle=True, seed=0, drop_last=False
    ):
        super().__init__(dataset)
        if num_replicas is None:
            num_replicas = communication.get_group_size()
        rank = communication.get_rank() if rank is None else rank
        if not 0 <= rank < num_replicas:
            raise ValueError(f"rank {rank} is not one of {num_replicas} processes")
        self.dataset, self.num_replicas, self.rank = dataset, num_replicas, rank
        self.shuffle, self.seed, self.drop_last, self.epoch = shuffle, seed, drop_last, 0
        size = len(dataset)
        self.num_samples = -(-size // num_replicas)
        if drop_last:
            self.num_samples = -(-(size - size % num_replicas) // num_replicas)
        self.total_size = self.num_samples * num_replicas

    def set_epoch(self, epoch):
        """Another order for another epoch."""
        self.epoch = epoch

    def __iter__(self):
        order = list(range(len(self.dataset)))
        if self.shuffle:
            order = seeded_permutation(len(order), self.seed + self.epoch)
        rounds = -(-self.total_size // max(1, len(order)))
        return iter((order * rounds)[: self.total_size][self.rank :: self.num_replicas])

    def __len__(self):
        return self.num_samples


class BatchSampler(Sampler):
    """Reproduces torch.utils.data.BatchSampler: lists of indices."""

    def __init__(self, sampler, batch_size, drop_last):
        super().__init__()
        self.sampler, self.batch_size, self.drop_last = sampler, batch_size, drop_last

    def __iter__(self):
        batch = []
        for index in self.sampler:
            batch.append(index)
            if len(batch) == self.batch_size:
                yield batch
                batch = []
        if batch and not self.drop_last:
            yield batch

    def __len__(self):
        whole, rest = divmod(len(self.sampler), self.batch_size)
        return whole + (1 if rest and not self.drop_last else 0)
