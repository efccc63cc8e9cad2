"""In: tensors and indices. Out: torch's scatters, index and roll operations as new tensors."""

import mindspore as ms
from mindspore import ops

from migrate.helpers.creation import broadcast_shapes
from migrate.helpers.scattering import scatter_reduce


def scatter(input, dim, index, src, *, reduce=None):
    """torch.scatter: ``src`` is a tensor at least as large as ``index``, or a number."""
    shape = input.shape
    if input.ndim == 0:
        # the kernels refuse tensors without axes
        input, index = input.reshape((1,)), index.reshape((1,))
        src = src.reshape((1,)) if isinstance(src, ms.Tensor) else src
    if isinstance(src, ms.Tensor) and src.ndim == index.ndim:
        src = src[tuple([slice(0, length) for length in index.shape])].astype(input.dtype)
    elif isinstance(src, ms.Tensor):
        src = src.astype(input.dtype).broadcast_to(index.shape)
    else:
        src = ops.full(index.shape, src, dtype=input.dtype)
    if reduce is None:
        result = ops.tensor_scatter_elements(input, index, src, dim)
    elif reduce == "add":
        result = ops.tensor_scatter_elements(input, index, src, dim, "add")
    else:
        result = scatter_reduce(input, dim, index, src, "prod")
    return result.reshape(shape)


def scatter_add(input, dim, index, src):
    """torch.scatter_add: adds the elements of ``src`` at ``index`` along ``dim``."""
    return scatter(input, dim, index, src, reduce="add")


def along_axis(index, shape, dim):
    """A 1-d ``index`` along ``dim`` spread over ``shape``, as a scatter wants it."""
    axis = dim % len(shape)
    flat = index.astype(ms.int64).reshape([-1 if i == axis else 1 for i in range(len(shape))])
    return flat.broadcast_to([index.size if i == axis else n for i, n in enumerate(shape)])


def index_add(input, dim, index, source, *, alpha=1):
    """torch.index_add: adds the slices of ``alpha * source`` at ``index`` along ``dim``."""
    if input.ndim == 0:
        return input + alpha * source.sum()
    source = (alpha * source).astype(input.dtype)
    where = along_axis(index, input.shape, dim)
    return ops.tensor_scatter_elements(input, where, source, dim, "add")


def index_copy(input, dim, index, source):
    """torch.index_copy: puts the slices of ``source`` at ``index`` along ``dim``."""
    if input.ndim == 0:
        return source.reshape(())
    where = along_axis(index, input.shape, dim)
    return ops.tensor_scatter_elements(input, where, source.astype(input.dtype), dim)


def index_fill(input, dim, index, value):
    """torch.index_fill: a number or 0-d tensor at ``index`` along ``dim``."""
    if input.ndim == 0:
        return ops.zeros_like(input) + value
    axis = dim % input.ndim
    places = ops.arange(input.shape[axis]).reshape((-1, 1))
    chosen = (places == index.reshape((1, -1))).any(1)
    mask = chosen.reshape([-1 if i == axis else 1 for i in range(input.ndim)])
    filler = ops.zeros_like(input) + value
    return ops.where(mask, filler.astype(input.dtype), input)


def roll(input, shifts, dims=()):
    """torch.roll: elements pushed over one end come in at the other."""
    if isinstance(shifts, int):
        shifts = (shifts,)
    if isinstance(dims, int):
        dims = (dims,)
    result = input.reshape((-1,)) if len(dims) == 0 else input
    for shift, dim in zip(shifts, dims if len(dims) > 0 else (0,)):
        length = result.shape[dim]
        if length > 0 and shift % length != 0:
            head, tail = ops.split(result, [length - shift % length, shift % length], dim)
            result = ops.cat((tail, head), dim)
    return result.reshape(input.shape)


def take_along_dim(input, indices, dim=None):
    """torch.take_along_dim: gathers along ``dim``, the other axes broadcast against each other."""
    if dim is None:
        return ops.gather_elements(input.reshape((-1,)), 0, indices.reshape((-1,)))
    axis = dim % input.ndim
    data_shape, index_shape = list(input.shape), list(indices.shape)
    for i in range(input.ndim):
        if i != axis:
            data_shape[i] = index_shape[i] = max(input.shape[i], indices.shape[i])
    data, where = input.broadcast_to(data_shape), indices.broadcast_to(index_shape)
    return ops.gather_elements(data, axis, where.astype(ms.int64))


def nonzero_tuple(input):
    """torch.where(condition), torch.nonzero(as_tuple=True): one int64 index vector an axis."""
    if input.ndim == 0:
        return (ops.nonzero(input.reshape((1,)))[:, 0],)
    return ops.unbind(ops.nonzero(input), 1)


def searchsorted(sorted_sequence, input, *, out_int32=False, right=False, side=None, sorter=None):
    """torch.searchsorted: where ``input`` would go into ``sorted_sequence`` to keep it sorted."""
    if sorter is not None:
        sorted_sequence = ops.gather_elements(sorted_sequence, -1, sorter)
    values = input if isinstance(input, ms.Tensor) else ms.tensor(input, sorted_sequence.dtype)
    after = side == "right" if side is not None else right
    data, wanted = sorted_sequence, values.unsqueeze(-1)
    if data.ndim > 1:
        data = data.unsqueeze(-2)
    smaller = data <= wanted if after else data < wanted
    count = smaller.astype(ms.int32).sum(-1)
    return count.astype(ms.int32 if out_int32 else ms.int64)


def bucketize(input, boundaries, *, out_int32=False, right=False):
    """torch.bucketize: the number of the bucket between 1-d ``boundaries`` of every element."""
    return searchsorted(boundaries, input, out_int32=out_int32, right=right)


def isin(elements, test_elements, *, assume_unique=False, invert=False):
    """torch.isin: which elements occur in ``test_elements`` (a tensor or a number)."""
    if not isinstance(test_elements, ms.Tensor):
        found = elements == test_elements
    elif not isinstance(elements, ms.Tensor):
        found = (test_elements == elements).any()
    else:
        found = (elements.unsqueeze(-1) == test_elements.reshape((-1,))).any(-1)
    return ops.logical_not(found) if invert else found


def bincount(input, weights=None, minlength=0):
    """torch.bincount: int64 counts, or sums of ``weights``. PyNative only: the length is data."""
    length = max(int(input.max()) + 1 if input.size else 0, minlength)
    bins = ops.arange(length).reshape((1, -1))
    there = input.reshape((-1, 1)) == bins
    if weights is None:
        return there.astype(ms.int64).sum(0)
    weights = weights if weights.dtype == ms.float32 else weights.astype(ms.float64)
    return (there.astype(weights.dtype) * weights.reshape((-1, 1))).sum(0)


def gather(input, dim, index, *, sparse_grad=False):
    """torch.gather: the elements of ``input`` at ``index`` along ``dim``."""
    return ops.gather_elements(input, dim, index)


def masked_scatter(input, mask, source):
    """torch.masked_scatter: the elements of ``source``, in order, where ``mask`` is true."""
    shape = broadcast_shapes(input.shape, mask.shape)
    input, place = input.broadcast_to(shape), mask.broadcast_to(shape).reshape((-1,))
    turn = ops.cumsum(place.astype(ms.int64), 0) - 1
    taken = source.reshape((-1,)).index_select(0, ops.maximum(turn, 0))
    return ops.where(place, taken, input.reshape((-1,))).reshape(input.shape)


def select_at(input, dim, index):
    """torch.select: the slice number ``index`` along ``dim``, without that axis."""
    return ops.narrow(input, dim, index % input.shape[dim], 1).squeeze(dim)


def repeat_interleave(input, repeats, dim=None):
    """torch.repeat_interleave: repeats slices; a tensor of counts is PyNative only."""
    if dim is None:
        input, dim = input.reshape((-1,)), 0
    if isinstance(repeats, int):
        return ops.repeat_interleave(input, repeats, dim)
    ends = ops.cumsum(repeats.astype(ms.int64).broadcast_to((input.shape[dim],)), 0)
    places = ops.arange(int(ends[-1])).reshape((-1, 1))
    order = (places >= ends.reshape((1, -1))).astype(ms.int64).sum(1)
    return ops.index_select(input, dim, order)


def tile_away(input, *dims):
    """torch.tile and Tensor.repeat where one of ``dims`` may be 0: then nothing, and no gradient.

    The gradient of MindSpore's tile is a sum over nothing there, which may be any number.
    """
    times = dims[0] if isinstance(dims[0], (tuple, list)) else dims
    sizes = (1,) * (len(times) - input.ndim) + tuple(input.shape)
    times = (1,) * (len(sizes) - len(times)) + tuple(times)
    if 0 not in times:
        return input.tile(times)
    return ops.zeros(tuple([size * time for size, time in zip(sizes, times)]), input.dtype)


def combinations(input, r=2, with_replacement=False):
    """torch.combinations of ``r`` elements of a 1-d tensor, one combination a row."""
    found = ops.combinations(input, r, with_replacement)
    return found if found.size else ops.zeros((0, r), input.dtype)


def cartesian_prod(*tensors):
    """torch.cartesian_prod: all combinations of the elements of 1-d tensors, one a row."""
    return tensors[0] if len(tensors) == 1 else ops.cartesian_prod(*tensors)


def nonzero_static(input, *, size, fill_value=-1):
    """torch.nonzero_static: ``size`` rows of indices, the rest ``fill_value``. PyNative only."""
    if input.ndim == 0:
        return ops.zeros((size, 0), ms.int64)
    found = ops.nonzero(input)[:size]
    missing = ops.full((size - found.shape[0], input.ndim), fill_value, dtype=ms.int64)
    return ops.cat((found, missing))


def take(input, index):
    """torch.take: elements of ``input`` seen as one row; negative places count from its end."""
    flat = input.reshape((-1,))
    if index.size == 0:
        return ops.zeros(index.shape, input.dtype)
    # a negative index has a value in MindSpore, but loses its gradient
    return flat[index % flat.shape[0]]
