"""In: datasets and settings as torch.utils.data takes them. Out: the same batches as Tensors."""

import numpy as np
from mindspore import Tensor, ops


class ConcatDataset:
    """Reproduces torch.utils.data.ConcatDataset: several datasets one behind the other."""

    def __init__(self, datasets):
        self.datasets = list(datasets)

    def __len__(self):
        return sum(len(dataset) for dataset in self.datasets)

    def __getitem__(self, index):
        index = index + len(self) if index < 0 else index
        for dataset in self.datasets:
            if index < len(dataset):
                return dataset[index]
            index -= len(dataset)
        raise IndexError("index out of range")

    def __add__(self, other):
        return ConcatDataset([self, other])


class Dataset:
    """Reproduces torch.utils.data.Dataset: items by index; two of them can be added."""

    def __getitem__(self, index):
        raise NotImplementedError("a Dataset defines __getitem__")

    def __add__(self, other):
        return ConcatDataset([self, other])


class IterableDataset(Dataset):
    """Reproduces torch.utils.data.IterableDataset: items one after another."""

    def __iter__(self):
        raise NotImplementedError("an IterableDataset defines __iter__")


class TensorDataset(Dataset):
    """Reproduces torch.utils.data.TensorDataset: item i holds row i of every tensor."""

    def __init__(self, *tensors):
        if any(tensor.shape[0] != tensors[0].shape[0] for tensor in tensors):
            raise ValueError("all tensors of a TensorDataset have the same first size")
        self.tensors = tensors

    def __getitem__(self, index):
        return tuple(tensor[index] for tensor in self.tensors)

    def __len__(self):
        return self.tensors[0].shape[0]


class Subset(Dataset):
    """Reproduces torch.utils.data.Subset: the items of a dataset at some indices."""

    def __init__(self, dataset, indices):
        self.dataset, self.indices = dataset, indices

    def __getitem__(self, index):
        return self.dataset[self.indices[index]]

    def __len__(self):
        return len(self.indices)


def random_split(dataset, lengths, generator=None):
    """Reproduces torch.utils.data.random_split; lengths or fractions, other random numbers."""
    if all(0 < length < 1 for length in lengths) and abs(sum(lengths) - 1) < 1e-6:
        sizes = [int(len(dataset) * length) for length in lengths]
        for i in range(len(dataset) - sum(sizes)):
            sizes[i % len(sizes)] += 1
        lengths = sizes
    if sum(lengths) != len(dataset):
        raise ValueError("the lengths do not add up to the length of the dataset")
    order = np.random.permutation(len(dataset)).tolist()
    ends = [sum(lengths[: i + 1]) for i in range(len(lengths))]
    return [Subset(dataset, order[e - n : e]) for e, n in zip(ends, lengths)]


class Sampler:
    """Reproduces torch.utils.data.Sampler: an iterable of indices."""

    def __init__(self, data_source=None):
        self.data_source = data_source


class SequentialSampler(Sampler):
    """Reproduces torch.utils.data.SequentialSampler."""

    def __iter__(self):
        return iter(range(len(self.data_source)))

    def __len__(self):
        return len(self.data_source)


class RandomSampler(Sampler):
    """Reproduces torch.utils.data.RandomSampler with other random numbers."""

    def __init__(self, data_source, replacement=False, num_samples=None, generator=None):
        super().__init__(data_source)
        self.replacement = replacement
        self.num_samples = len(data_source) if num_samples is None else num_samples

    def __iter__(self):
        size = len(self.data_source)
        if self.replacement:
            return iter(np.random.randint(0, size, self.num_samples).tolist())
        rounds = -(-self.num_samples // size)
        order = [i for _ in range(rounds) for i in np.random.permutation(size).tolist()]
        return iter(order[: self.num_samples])

    def __len__(self):
        return self.num_samples


class SubsetRandomSampler(Sampler):
    """Reproduces torch.utils.data.SubsetRandomSampler with other random numbers."""

    def __init__(self, indices, generator=None):
        super().__init__(indices)

    def __iter__(self):
        return iter([self.data_source[i] for i in np.random.permutation(len(self.data_source))])

    def __len__(self):
        return len(self.data_source)


class WeightedRandomSampler(Sampler):
    """Reproduces torch.utils.data.WeightedRandomSampler with other random numbers."""

    def __init__(self, weights, num_samples, replacement=True, generator=None):
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


def default_collate(batch):
    """Reproduces torch.utils.data.default_collate: stacks items, also in dicts and tuples."""
    first = batch[0]
    if isinstance(first, Tensor):
        return ops.stack(list(batch))
    if isinstance(first, (np.ndarray, np.generic)):
        return Tensor(np.stack(batch))
    if isinstance(first, bool | int | float):
        return Tensor(np.asarray(batch))
    if isinstance(first, (str, bytes)):
        return batch
    if isinstance(first, dict):
        return {key: default_collate([item[key] for item in batch]) for key in first}
    columns = [default_collate(list(column)) for column in zip(*batch)]
    if hasattr(first, "_fields"):
        return type(first)(*columns)
    return columns


class DataLoader:
    """Reproduces torch.utils.data.DataLoader in one process; other random numbers.

    Batches come in the same order when not shuffled. Workers, pinned memory and prefetching,
    which change no number, are not there.
    """

    def __init__(
        self,
        dataset,
        batch_size=1,
        shuffle=None,
        sampler=None,
        batch_sampler=None,
        collate_fn=None,
        drop_last=False,
    ):
        self.dataset, self.batch_size, self.drop_last = dataset, batch_size, drop_last
        self.collate_fn = collate_fn
        self.iterable = isinstance(dataset, IterableDataset)
        if sampler is None and not self.iterable:
            sampler = RandomSampler(dataset) if shuffle else SequentialSampler(dataset)
        self.sampler, self.batch_sampler = sampler, batch_sampler
        if batch_sampler is None and batch_size is not None and not self.iterable:
            self.batch_sampler = BatchSampler(sampler, batch_size, drop_last)

    def _items(self):
        """Lists of items, one list a batch."""
        if not self.iterable:
            for indices in self.batch_sampler:
                yield [self.dataset[index] for index in indices]
            return
        batch = []
        for item in self.dataset:
            batch.append(item)
            if len(batch) == self.batch_size:
                yield batch
                batch = []
        if batch and not self.drop_last:
            yield batch

    def __iter__(self):
        if self.batch_size is None and self.batch_sampler is None:
            items = self.dataset if self.iterable else (self.dataset[i] for i in self.sampler)
            return iter(items if self.collate_fn is None else map(self.collate_fn, items))
        return map(self.collate_fn or default_collate, self._items())

    def __len__(self):
        if self.batch_sampler is not None:
            return len(self.batch_sampler)
        if not self.iterable:
            return len(self.sampler)
        whole, rest = divmod(len(self.dataset), self.batch_size)
        return whole + (1 if rest and not self.drop_last else 0)
