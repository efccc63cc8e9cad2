"""In: datasets and settings as torch.utils.data takes them. Out: the same batches as Tensors."""

import numpy as np
from mindspore import Tensor, ops

from migrate.helpers.samplers import BatchSampler, RandomSampler, SequentialSampler


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

    def __class_getitem__(cls, item):
        return cls

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


def plain_index(index):
    """A number of numpy's, which is no index of a Tensor, as one of Python's."""
    return index.item() if isinstance(index, np.generic) else index


class Subset(Dataset):
    """Reproduces torch.utils.data.Subset: the items of a dataset at some indices."""

    def __init__(self, dataset, indices):
        self.dataset, self.indices = dataset, indices

    def __getitem__(self, index):
        return self.dataset[plain_index(self.indices[index])]

    def __len__(self):
        return len(self.indices)


class ChainDataset(IterableDataset):
    """Reproduces torch.utils.data.ChainDataset: iterable datasets one behind the other."""

    def __init__(self, datasets):
        self.datasets = datasets

    def __iter__(self):
        for dataset in self.datasets:
            yield from dataset

    def __len__(self):
        return sum(len(dataset) for dataset in self.datasets)


class StackDataset(Dataset):
    """Reproduces torch.utils.data.StackDataset: item i holds item i of every dataset."""

    def __init__(self, *args, **kwargs):
        if bool(args) == bool(kwargs):
            raise ValueError("a StackDataset holds a tuple or a dictionary of datasets, not both")
        self.datasets = args or kwargs
        lengths = {len(dataset) for dataset in (args or kwargs.values())}
        if len(lengths) > 1:
            raise ValueError("all datasets of a StackDataset have the same length")
        self._length = lengths.pop()

    def __getitem__(self, index):
        if isinstance(self.datasets, dict):
            return {name: dataset[index] for name, dataset in self.datasets.items()}
        return tuple(dataset[index] for dataset in self.datasets)

    def __len__(self):
        return self._length


def lengths_of_split(dataset, lengths):
    """How many items each part of a data set gets; fractions leave a rest, one item for each."""
    if all(0 < length < 1 for length in lengths) and abs(sum(lengths) - 1) < 1e-6:
        sizes = [int(len(dataset) * length) for length in lengths]
        for i in range(len(dataset) - sum(sizes)):
            sizes[i % len(sizes)] += 1
        lengths = sizes
    if sum(lengths) != len(dataset):
        raise ValueError("the lengths do not add up to the length of the dataset")
    return lengths


def random_split(dataset, lengths):
    """Reproduces torch.utils.data.random_split; lengths or fractions, other random numbers."""
    lengths = lengths_of_split(dataset, lengths)
    order = np.random.permutation(len(dataset)).tolist()
    ends = [sum(lengths[: i + 1]) for i in range(len(lengths))]
    return [Subset(dataset, order[e - n : e]) for e, n in zip(ends, lengths)]


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


def default_convert(data):
    """Reproduces torch.utils.data.default_convert: arrays become Tensors, also in containers."""
    if isinstance(data, (np.ndarray, np.generic)) and data.dtype.kind not in "SU":
        return Tensor(np.asarray(data))
    if isinstance(data, dict):
        return {key: default_convert(item) for key, item in data.items()}
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*map(default_convert, data))
    return [default_convert(item) for item in data] if isinstance(data, (list, tuple)) else data


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
                yield [self.dataset[plain_index(index)] for index in indices]
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
            items = (
                self.dataset
                if self.iterable
                else (self.dataset[plain_index(i)] for i in self.sampler)
            )
            return map(self.collate_fn or default_convert, items)
        return map(self.collate_fn or default_collate, self._items())

    def __len__(self):
        if self.batch_sampler is not None:
            return len(self.batch_sampler)
        if not self.iterable:
            return len(self.sampler)
        whole, rest = divmod(len(self.dataset), self.batch_size)
        return whole + (1 if rest and not self.drop_last else 0)
