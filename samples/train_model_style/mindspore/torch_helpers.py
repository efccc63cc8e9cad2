# torch2ms helpers 0.1.0: written by torch2mindspore, which knows this file by this line.
"""In: arguments as torch takes them. Out: what torch gives, from MindSpore."""

from collections import namedtuple

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops


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


class IterableDataset(Dataset):
    """Reproduces torch.utils.data.IterableDataset: items one after another."""

    def __iter__(self):
        raise NotImplementedError("an IterableDataset defines __iter__")


class Sampler:
    """Reproduces torch.utils.data.Sampler: an iterable of indices."""

    def __init__(self, data_source=None):
        self.data_source = data_source

    def __class_getitem__(cls, item):
        return cls


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


class SequentialSampler(Sampler):
    """Reproduces torch.utils.data.SequentialSampler."""

    def __iter__(self):
        return iter(range(len(self.data_source)))

    def __len__(self):
        return len(self.data_source)


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


def plain_index(index):
    """A number of numpy's, which is no index of a Tensor, as one of Python's."""
    return index.item() if isinstance(index, np.generic) else index


def default_convert(data):
    """Reproduces torch.utils.data.default_convert: arrays become Tensors, also in containers."""
    if isinstance(data, (np.ndarray, np.generic)) and data.dtype.kind not in "SU":
        return Tensor(np.asarray(data))
    if isinstance(data, dict):
        return {key: default_convert(item) for key, item in data.items()}
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*map(default_convert, data))
    return [default_convert(item) for item in data] if isinstance(data, (list, tuple)) else data


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


def reduction_of(size_average, reduce, reduction):
    """The reduction that torch's two old arguments stand for, where one of them is given."""
    if size_average is None and reduce is None:
        return reduction
    if reduce is not None and not reduce:
        return "none"
    return "mean" if size_average is None or size_average else "sum"


def keep_buffer(cell, name, value):
    """Makes ``value`` a buffer of the cell, as torch does with weights; None stays None."""
    if name in cell.__dict__:
        delattr(cell, name)
    if value is None:
        setattr(cell, name, None)
    else:
        cell.register_buffer(name, value)


def as_labels(target):
    """Class labels as int32, which the kernels want; probabilities stay."""
    return target.astype(ms.int32) if target.dtype in (ms.int64, ms.uint8) else target


class CrossEntropyLoss(nn.CrossEntropyLoss):
    """Reproduces torch.nn.CrossEntropyLoss; labels may be int64, or class probabilities."""

    def __init__(
        self,
        weight=None,
        size_average=None,
        ignore_index=-100,
        reduce=None,
        reduction="mean",
        label_smoothing=0.0,
    ):
        super().__init__(
            None, ignore_index, reduction_of(size_average, reduce, reduction), label_smoothing
        )
        keep_buffer(self, "weight", weight)

    def construct(self, logits, labels):
        return ops.cross_entropy(
            logits,
            as_labels(labels),
            self.weight,
            self.ignore_index,
            self.reduction,
            self.label_smoothing,
        )


def named_modules(cell, prefix="", remove_duplicate=True):
    """torch.nn.Module.named_modules with shared Cells as often as they occur."""
    if remove_duplicate:
        yield from cell.cells_and_names(name_prefix=prefix)
        return
    yield prefix, cell
    for name, child in cell._cells.items():
        if child is not None:
            inner = ".".join([prefix] * bool(prefix) + [name])
            yield from named_modules(child, inner, remove_duplicate=False)


def is_buffer(cell, name):
    """Whether a Parameter of a Cell stands for one of torch's buffers."""
    statistics = ("moving_mean", "moving_variance", "num_batches_tracked")
    return name in statistics or name in cell.__dict__.get("registered_buffers", ())


def torch_name(cell, name):
    """torch's name for a parameter or buffer of a normalisation or embedding Cell."""
    names = {"moving_mean": "running_mean", "moving_variance": "running_var"}
    if isinstance(cell, nn.Embedding):
        names["embedding_table"] = "weight"
    is_norm = isinstance(cell, (nn.LayerNorm, nn.GroupNorm)) or "moving_mean" in cell._params
    if is_norm or type(cell).__name__.startswith(("BatchNorm", "InstanceNorm")):
        names["gamma"], names["beta"] = "weight", "bias"
    return names.get(name, name)


def torch_names(cell):
    """torch's names of what the state_dict of a Cell holds, by MindSpore's, in torch's order."""
    found = {}
    for path, one in named_modules(cell, remove_duplicate=False):
        for buffers in (False, True):
            for name in (n for n in one._params if is_buffer(one, n) == buffers):
                start = path + "." if path else ""
                found[start + name] = start + torch_name(one, name)
    return found


def state_dict(cell):
    """torch.nn.Module.state_dict under torch's names: weight and running_mean, not gamma."""
    state, names = cell.state_dict(), torch_names(cell)
    named = {new: state.pop(old) for old, new in names.items() if old in state}
    return type(state)({**named, **state})


class IncompatibleKeys(namedtuple("IncompatibleKeys", ["missing_keys", "unexpected_keys"])):
    """What torch.nn.Module.load_state_dict gives back: names that lack a value or a place."""

    def __repr__(self):
        if not any(self):
            return "<All keys matched successfully>"
        return f"_IncompatibleKeys(missing_keys={self[0]}, unexpected_keys={self[1]})"


def load_state_dict(cell, state_dict, strict=True):
    """torch.nn.Module.load_state_dict of Tensors under torch's names or MindSpore's.

    The numbers go into the weights' own memory: MindSpore's own way, and ``set_data``, give a
    weight other memory, and an optimizer that has made a step goes on with the old one. ``cell``
    may be ``super()``. Where classes or hooks have a say, MindSpore's own way comes first.
    """
    load, cell = cell.load_state_dict, getattr(cell, "__self__", cell)
    overridden = getattr(load, "__func__", load) is not nn.Cell.load_state_dict
    hooks = ("_load_state_dict_pre_hooks", "_load_state_dict_post_hooks")
    hooked = any(
        any(getattr(one, h, None) for h in hooks)
        or type(one)._load_from_state_dict is not nn.Cell._load_from_state_dict
        for _, one in cell.cells_and_names()
    )
    names, kept = torch_names(cell), cell.state_dict()
    own = {new: old for old, new in names.items()}
    given = {own.get(key, key): value for key, value in state_dict.items()}
    if hooked or overridden:
        held = [(weight, ops.stop_gradient(weight)) for weight in kept.values()]
        result = load(state_dict if overridden else given, strict)
        for weight, memory in held:
            loaded = weight.copy()
            weight.assign_value(memory)
            weight.copy_(loaded)
        return result
    missing = [names.get(key, key) for key in kept if key not in given]
    unexpected = [names.get(key, key) for key in given if key not in kept]
    fitting = {key: kept[key] for key in given if key in kept}
    odd = [names.get(k, k) for k, tensor in fitting.items() if tensor.shape != given[k].shape]
    if odd or (strict and (missing or unexpected)):
        raise RuntimeError(
            f"Error(s) in loading state_dict for {type(cell).__name__}: missing {missing}, "
            f"unexpected {unexpected}, of another shape {odd}"
        )
    for key, tensor in fitting.items():
        tensor.copy_(given[key].astype(tensor.dtype))
    return IncompatibleKeys(missing, unexpected)


def number(value):
    """A setting as a Python number: the shortest that is this float32; others stay."""
    if not isinstance(value, Tensor):
        return value
    return float(str(value.value())) if value.dtype == ms.float32 else value.item()


def numbers(values):
    """Rates as Python numbers."""
    return [number(value) for value in values]


def last_lr(scheduler):
    """Reproduces ``get_last_lr()`` of torch's schedules: a list of Python numbers."""
    kept = vars(scheduler).get("last_rates")
    return numbers(scheduler.get_last_lr()) if kept is None else list(kept)
