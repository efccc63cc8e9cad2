"""In: sizes, numbers, lists and arrays. Out: tensors of the shapes and dtypes torch gives."""

from collections import deque

import mindspore as ms
import numpy as np
from mindspore import ops

from migrate.helpers.keeping import is_pynative


def plain_numbers(data):
    """The list with each Tensor of one element, such as ``[x]``, as a number: it adds no axis."""
    if isinstance(data, (list, tuple)):
        return [plain_numbers(one) for one in data]
    if isinstance(data, ms.Tensor) and data.ndim > 0 and data.size == 1:
        return data.reshape(())
    return data


def tensor(data, dtype=None, device=None, requires_grad=False, pin_memory=False):
    """torch.tensor: a new tensor of numbers, nested lists, an array or a tensor."""
    data = list(data) if isinstance(data, deque) else data
    made = ms.tensor(plain_numbers(data) if isinstance(data, (list, tuple)) else data, dtype=dtype)
    if dtype is None and made.dtype == ms.complex128 and isinstance(data, (complex, list, tuple)):
        return made.astype(ms.complex64)  # Python's numbers have no precision of their own
    return made


def as_tensor(data, dtype=None, device=None):
    """torch.as_tensor: a tensor stays what it is unless its dtype changes; an array is shared."""
    if isinstance(data, ms.Tensor):
        return data if dtype is None else data.astype(dtype)
    if isinstance(data, (list, tuple)) and len(data) > 0 and isinstance(data[0], ms.Tensor):
        data = ops.stack(data)
        return data if dtype is None else data.astype(dtype)
    if is_pynative() and isinstance(data, np.ndarray):
        shared = ms.Tensor.from_numpy(data)
        return shared if dtype is None else shared.astype(dtype)
    return tensor(data, dtype)


def scalar_tensor(
    s, *, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False
):
    """torch.scalar_tensor: 0-d, float32 unless a dtype is given."""
    return ms.tensor(s, dtype=ms.float32 if dtype is None else dtype)


def size_of(size):
    """The shape that torch's ``*size`` means: numbers one by one, or one sequence of them."""
    if len(size) == 1 and isinstance(size[0], (list, tuple)):
        return tuple(size[0])
    return tuple(size)


def zeros(*size, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False):
    """torch.zeros (and torch.empty): zeros, float32 unless a dtype is given."""
    return ops.full(size_of(size), 0, dtype=ms.float32 if dtype is None else dtype)


def new_of_size(input, *size):
    """input.new(2, 3), zeros; TypeError for a list, tuple or Tensor, which may hold values."""
    if not all(isinstance(length, int) for length in size):
        raise TypeError(f"input.new takes whole numbers here, not {size}")
    return ops.zeros(size if len(size) > 0 else (0,), dtype=input.dtype)


def ones(*size, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False):
    """torch.ones: ones, float32 unless a dtype is given."""
    return ops.full(size_of(size), 1, dtype=ms.float32 if dtype is None else dtype)


def full(
    size, fill_value, *, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False
):
    """torch.full: bool, int64 or float32 after the value, unless a dtype is given."""
    if isinstance(fill_value, ms.Tensor):
        return ops.zeros_like(fill_value, dtype=dtype).broadcast_to(size) + fill_value.astype(
            fill_value.dtype if dtype is None else dtype
        )
    if dtype is not None and dtype != ms.int64:
        return ops.full(size, fill_value, dtype=dtype)
    if isinstance(fill_value, bool) and dtype is None:
        return ops.full(size, fill_value, dtype=ms.bool_)
    if isinstance(fill_value, int):
        # in graph mode ops.full cuts whole numbers to 32 bits
        return ops.full(size, 0, dtype=ms.int64) + int(fill_value)
    return ops.full(size, fill_value, dtype=ms.float32 if dtype is None else dtype)


def arange(
    start=0,
    end=None,
    step=1,
    *,
    dtype=None,
    layout=None,
    device=None,
    pin_memory=False,
    requires_grad=False,
):
    """torch.arange: int64 for whole numbers, float32 where one is a float."""
    if end is None:
        return ops.arange(0, start, step, dtype=dtype)
    return ops.arange(start, end, step, dtype=dtype)


def closed_range(start, end, step=1, *, dtype=None):
    """torch.range: from ``start`` to ``end``, which is one of them; float32 unless told."""
    count = int((end - start) / step) + 1
    return (start + step * ops.arange(count)).astype(ms.float32 if dtype is None else dtype)


def linspace(
    start,
    end,
    steps,
    *,
    dtype=None,
    layout=None,
    device=None,
    pin_memory=False,
    requires_grad=False,
):
    """torch.linspace: ``steps`` values, both ends included, which may be 0-d tensors."""
    dtype = ms.float32 if dtype is None else dtype
    if steps == 0:
        return ops.zeros((0,), dtype)
    first = start.astype(ms.float32) if isinstance(start, ms.Tensor) else float(start)
    last = end.astype(ms.float32) if isinstance(end, ms.Tensor) else float(end)
    values = ops.linspace(first * ops.ones((), ms.float32), last * ops.ones((), ms.float32), steps)
    return values.astype(dtype)


def logspace(
    start,
    end,
    steps,
    base=10.0,
    *,
    dtype=None,
    layout=None,
    device=None,
    pin_memory=False,
    requires_grad=False,
):
    """torch.logspace: powers of ``base`` with ``steps`` exponents from ``start`` to ``end``."""
    powers = ops.pow(base, linspace(start, end, steps))
    return powers if dtype is None else powers.astype(dtype)


def eye(n, m=None, *, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False):
    """torch.eye: ones on the diagonal of an n x m matrix."""
    return ops.eye(n, m, dtype)


def cat(tensors, dim=0):
    """torch.cat: dtypes are promoted, empty 1-d tensors are left out."""
    tensors = [one for one in tensors if not (one.ndim == 1 and one.shape[0] == 0)] or tensors[:1]
    return ops.cat(promoted(tensors), dim)


def stack(tensors, dim=0):
    """torch.stack: along a new axis; dtypes are promoted."""
    return ops.stack(promoted(tensors), dim)


def promoted(tensors):
    """The tensors in the dtype that torch promotes them to together."""
    total = tensors[0].reshape((-1,))[:0].sum()
    same = True
    for one in tensors[1:]:
        if one.dtype != tensors[0].dtype:
            same = False
            total = total * one.reshape((-1,))[:0].sum()
    if same:
        return tensors
    return [one.astype(total.dtype) for one in tensors]


def split(tensor, split_size_or_sections, dim=0):
    """torch.split: chunks of one size, the last may be smaller, or of the sizes listed."""
    return ops.split(tensor, split_size_or_sections, dim)


def chunk(input, chunks, dim=0):
    """torch.chunk: up to ``chunks`` parts of equal size, the last may be smaller."""
    return ops.chunk(input, chunks, dim)


def where(condition, input=None, other=None):
    """torch.where: a choice by element, or with one argument the indices of what is true."""
    if input is None:
        return ops.unbind(ops.nonzero(condition), 1)
    return ops.where(condition, input, other)


def meshgrid(*tensors, indexing=None):
    """torch.meshgrid of tensors or of one list of them; 'ij' unless 'xy' is given."""
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        tensors = tensors[0]
    if len(tensors) == 1:
        return (tensors[0].reshape((-1,)),)
    return ops.meshgrid(*tensors, indexing="ij" if indexing is None else indexing)


def broadcast_shapes(*shapes):
    """torch.broadcast_shapes: the shape that all the shapes broadcast to."""
    rank = max([1 if isinstance(one, int) else len(one) for one in shapes])
    result = [1] * rank
    for one in shapes:
        lengths = (one,) if isinstance(one, int) else tuple(one)
        for i, length in enumerate(lengths):
            place = i + rank - len(lengths)
            if length != 1 and result[place] not in (1, length):
                raise ValueError("shapes do not broadcast")
            if length != 1:
                result[place] = length
    return tuple(result)


def broadcast_tensors(*tensors):
    """torch.broadcast_tensors: all tensors in their common shape."""
    shape = broadcast_shapes(*[one.shape for one in tensors])
    return tuple([one.broadcast_to(shape) for one in tensors])


def zeros_like(input, *, dtype=None, device=None, pin_memory=False, requires_grad=False):
    """torch.zeros_like (and torch.empty_like): zeros in the shape and, unless given, dtype."""
    return ops.zeros_like(input, dtype=dtype)


def ones_like(input, *, dtype=None, device=None, pin_memory=False, requires_grad=False):
    """torch.ones_like: ones in the shape and, unless given, dtype."""
    return ops.ones_like(input, dtype=dtype)


def full_like(input, fill_value, *, dtype=None, device=None, pin_memory=False, requires_grad=False):
    """torch.full_like: one value in the shape and, unless given, dtype."""
    return ops.full_like(input, fill_value, dtype=dtype)


def from_numpy(ndarray):
    """torch.from_numpy: a tensor of the array's dtype. PyNative only."""
    return ms.Tensor.from_numpy(ndarray)


def promote_types(type1, type2):
    """torch.promote_types: the dtype that both promote to."""
    return (ops.ones((1,), type1) * ops.ones((1,), type2)).dtype


def hann_window(window_length, periodic=True, dtype=None):
    """torch.hann_window, float32 unless a dtype is given."""
    return ops.hann_window(window_length, periodic).astype(dtype or ms.float32)
