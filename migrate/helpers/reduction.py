"""In: tensors. Out: torch's reductions, sorts and counts, with torch's dtypes and results."""

import mindspore as ms
from mindspore import ops

from migrate.helpers.complex_numbers import magnitude
from migrate.helpers.dtypes import is_whole, paired
from migrate.helpers.functional import vector_norm
from migrate.helpers.linear_algebra import matrix_norm


def max_of(input, dim=None, keepdim=False):
    """torch.max: of all elements, (values, indices) along ``dim``, or of two tensors."""
    if dim is None:
        return input.max()
    if isinstance(dim, ms.Tensor):
        return ops.maximum(*paired(input, dim))
    return ops.max(input, dim, keepdim)


def min_of(input, dim=None, keepdim=False):
    """torch.min: of all elements, (values, indices) along ``dim``, or of two tensors."""
    if dim is None:
        return input.min()
    if isinstance(dim, ms.Tensor):
        return ops.minimum(*paired(input, dim))
    return ops.min(input, dim, keepdim)


def mean(input, dim=None, keepdim=False, *, dtype=None):
    """torch.mean over ``dim``."""
    return ops.mean(input if dtype is None else input.astype(dtype), dim, keepdim)


def amax(input, dim=(), keepdim=False):
    """torch.amax over ``dim``."""
    return ops.amax(input, dim, keepdim)


def amin(input, dim=(), keepdim=False):
    """torch.amin over ``dim``."""
    return ops.amin(input, dim, keepdim)


def argmin(input, dim=None, keepdim=False):
    """torch.argmin: int64 index of the smallest element, of all or along ``dim``."""
    return all_axes_kept(ops.argmin(input, dim, keepdim).astype(ms.int64), input, dim, keepdim)


def argmax(input, dim=None, keepdim=False):
    """torch.argmax: int64 index of the largest element, of all or along ``dim``."""
    return all_axes_kept(ops.argmax(input, dim, keepdim).astype(ms.int64), input, dim, keepdim)


def all_axes_kept(found, input, dim, keepdim):
    """The index ``found`` among all elements with an axis for each of the input's, where asked."""
    return found.reshape((1,) * input.ndim) if keepdim and dim is None else found


def norm(input, p="fro", dim=None, keepdim=False, out=None, dtype=None):
    """torch.norm: the vector p-norm over ``dim`` ('fro' is 2); or a matrix's nuclear norm."""
    if out is not None:
        raise NotImplementedError("torch2ms DEF110 norm writes into no out=")
    if p == "nuc":
        return matrix_norm(input, "nuc", (-2, -1) if dim is None else dim, keepdim, dtype=dtype)
    return vector_norm(input, 2 if p is None or p == "fro" else p, dim, keepdim, dtype=dtype)


def cumsum(input, dim, *, dtype=None):
    """torch.cumsum: whole numbers and bool are summed as int64."""
    input = summable(input, dtype)
    return ops.deepcopy(input) if input.ndim == 0 or input.size == 0 else ops.cumsum(input, dim)


def summable(input, dtype):
    """``input`` in the dtype in which torch accumulates it."""
    if dtype is not None:
        return input.astype(dtype)
    return input.astype(ms.int64) if is_whole(input) else input


def cumprod(input, dim, *, dtype=None):
    """torch.cumprod: whole numbers and bool are multiplied as int64."""
    input = summable(input, dtype)
    if input.ndim == 0 or input.size == 0:
        return ops.deepcopy(input)
    if is_whole(input):
        return ops.cumprod(input, dim).astype(input.dtype)  # the kernel gives int64
    # the kernel's gradient divides by the elements, which zeros make NaN
    found, step, size = ops.swapaxes(input, 0, dim), 1, input.shape[dim]
    while step < size:
        found = ops.cat((found[:step], found[step:] * found[:-step]))
        step = 2 * step
    return ops.swapaxes(found, 0, dim)


def topk(input, k, dim=-1, largest=True, sorted=True):
    """torch.topk: (values, int64 indices) along ``dim``; equal values may come in another order."""
    if input.ndim == 0:
        flat = input.reshape((1,))[:k]
        return (flat, ops.zeros(flat.shape, ms.int64)) if k == 0 else sort(input)
    if k == 0:
        none = ops.swapaxes(ops.swapaxes(input, 0, dim)[:0], 0, dim)
        return none, ops.zeros(none.shape, ms.int64)
    key = order_key(input) if input.is_floating_point() else input
    indices = ops.topk(key, k, dim, largest, sorted)[1].astype(ms.int64)
    return ops.gather_elements(input, dim, indices), indices


def sort(input, dim=-1, descending=False, stable=False):
    """torch.sort: (values, int64 indices) along ``dim``; always stable."""
    if input.ndim == 0 or input.size == 0:
        return ops.deepcopy(input), ops.zeros_like(input, dtype=ms.int64)
    key = order_key(input) if input.is_floating_point() else input
    if input.dtype == ms.float64:  # the kernel sorts these by their float32
        indices = ops.topk(key, input.shape[dim], dim, descending)[1].astype(ms.int64)
    else:
        indices = ops.sort(key, dim, descending)[1].astype(ms.int64)
    return ops.gather_elements(input, dim, indices), indices


def order_key(x):
    """``x`` with NaN above all numbers, as torch has it: NaN mixes up MindSpore's sort."""
    top = 65504.0 if x.dtype == ms.float16 else 3.3895313892515355e38
    top = 1.7976931348623157e308 if x.dtype == ms.float64 else top
    return ops.where(ops.isnan(x), ops.full_like(x, float("inf")), ops.clamp(x, max=top))


def argsort(input, dim=-1, descending=False, stable=False):
    """torch.argsort: int64 indices along ``dim``; always stable."""
    return sort(input, dim, descending)[1]


def kthvalue(input, k, dim=-1, keepdim=False):
    """torch.kthvalue: (k-th smallest value along ``dim``, its int64 index)."""
    values, indices = sort(input, dim)
    if input.ndim == 0:
        return values, indices
    values, indices = values.swapaxes(dim, -1), indices.swapaxes(dim, -1)
    values = values[..., k - 1 : k].swapaxes(dim, -1)
    indices = indices[..., k - 1 : k].swapaxes(dim, -1)
    if keepdim:
        return values, indices
    return values.squeeze(dim), indices.squeeze(dim)


def median_of(input, dim, keepdim=False):
    """torch.median along ``dim``: (lower median, its int64 index); a NaN where there is one."""
    count = 1 if input.ndim == 0 else input.shape[dim]
    values, indices = kthvalue(input, (count + 1) // 2, dim, True)
    if input.is_floating_point() and input.ndim > 0:
        absent = ops.isnan(ops.stop_gradient(input)).astype(ms.int32)
        first = ops.argmax(absent, dim, True).astype(ms.int64)
        indices = ops.where(ops.amax(absent, dim, True) > 0, first, indices)
        values = ops.gather_elements(input, dim, indices)
    if keepdim or input.ndim == 0:
        return values, indices
    return values.squeeze(dim), indices.squeeze(dim)


def median(input):
    """torch.median of all elements: the lower of the two middle values, 0-d."""
    return shared_value(input, median_of(input.reshape((-1,)), 0)[0])


def shared_value(input, value):
    """The 0-d ``value``; all elements of ``input`` that are equal to it share its gradient."""
    if not input.is_floating_point():
        return value
    equal = input == ops.stop_gradient(value)
    total = ops.where(equal, input, ops.zeros_like(input)).sum()
    return total / equal.astype(input.dtype).sum()


def correction_of(unbiased, correction):
    """The divisor's correction: torch takes either a flag or a number, 1 when neither is given."""
    if correction is not None:
        return correction
    return 0 if unbiased is False else 1


def reduced_axes(input, dim):
    """``dim`` as a tuple of axes counted from 0; all axes when it is None or empty."""
    if isinstance(dim, int):
        dim = (dim,)
    if dim is None or len(dim) == 0:
        return tuple(range(input.ndim))
    return tuple([axis + input.ndim if axis < 0 else axis for axis in dim])


def element_count(input, axes):
    """How many elements each result of a reduction over ``axes`` is made of."""
    count = 1
    for axis in axes:
        count = count * input.shape[axis]
    return count


def var_mean(input, dim=None, unbiased=None, keepdim=False, *, correction=None):
    """torch.var_mean: (variance, mean) over ``dim``; unbiased unless told otherwise."""
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    if input.ndim == 0:
        return magnitude(input) * 0 / (1 - correction_of(unbiased, correction)), input
    axes = reduced_axes(input, dim)
    count = element_count(input, axes)
    mean = input.mean(axes, True)
    # the mean over no elements may be any number in MindSpore
    mean = mean if count > 0 else ops.full_like(mean, float("nan"))
    free = count - correction_of(unbiased, correction)
    total = ops.square(magnitude(input - mean)).sum(axes, keepdims=keepdim)
    # the sum over no elements may be any number in MindSpore
    total = total if count > 0 else ops.zeros_like(total)
    spread = total / free if free > 0 else total / 0.0
    return spread, mean if keepdim else mean.reshape(spread.shape)


def var(input, dim=None, unbiased=None, keepdim=False, *, correction=None):
    """torch.var over ``dim``; unbiased unless told otherwise."""
    return var_mean(input, dim, unbiased, keepdim, correction=correction)[0]


def std(input, dim=None, unbiased=None, keepdim=False, *, correction=None):
    """torch.std over ``dim``; unbiased unless told otherwise. The gradient at 0 is 0."""
    return root(var_mean(input, dim, unbiased, keepdim, correction=correction)[0])


def root(variance):
    """The square root, with gradient 0 at 0."""
    flat = variance == 0
    return ops.where(flat, variance * 0, ops.sqrt(ops.where(flat, variance + 1, variance)))


def std_mean(input, dim=None, unbiased=None, keepdim=False, *, correction=None):
    """torch.std_mean: (standard deviation, mean) over ``dim``; unbiased unless told otherwise."""
    spread, mean = var_mean(input, dim, unbiased, keepdim, correction=correction)
    return root(spread), mean


def aminmax(input, *, dim=None, keepdim=False):
    """torch.aminmax: (minimum, maximum) of all elements or along ``dim``."""
    return ops.amin(input, dim, keepdim), ops.amax(input, dim, keepdim)


def count_nonzero(input, dim=None):
    """torch.count_nonzero as int64, over all elements or ``dim``."""
    return sum_of((input != 0).astype(ms.int64), dim, False)


def nanmean(input, dim=None, keepdim=False, *, dtype=None):
    """torch.nanmean: the mean of the elements that are not NaN."""
    if dtype is not None:
        input = input.astype(dtype)
    there = ops.logical_not(ops.isnan(input))
    kept = ops.where(there, input, ops.zeros_like(input))
    total = sum_of(kept, dim, keepdim)
    return total / sum_of(there.astype(input.dtype), dim, keepdim)


def nansum(input, dim=None, keepdim=False, *, dtype=None):
    """torch.nansum: the sum of the elements that are not NaN."""
    if dtype is not None:
        input = input.astype(dtype)
    return sum_of(ops.where(ops.isnan(input), ops.zeros_like(input), input), dim, keepdim)


def sum_of(input, dim, keepdim):
    """The sum over ``dim``; over no elements 0, where MindSpore's kernel gives any number."""
    total = input.sum(dim, keepdims=keepdim)
    return total if input.size else ops.zeros_like(total)


def between(data, place, interpolation):
    """The values of ``data`` (sorted along the last axis) at real ``place``s."""
    low, high = ops.floor(place), ops.ceil(place)
    below = data.index_select(-1, low.astype(ms.int64))
    above = data.index_select(-1, high.astype(ms.int64))
    if interpolation == "lower":
        return below
    if interpolation == "higher":
        return above
    if interpolation == "nearest":
        return data.index_select(-1, ops.round(place).astype(ms.int64))
    if interpolation == "midpoint":
        return below + (above - below) * 0.5
    return below + (above - below) * (place - low)


def quantile(input, q, dim=None, keepdim=False, *, interpolation="linear"):
    """torch.quantile of one ``q`` or a 1-d tensor of them; NaN where there is one."""
    if interpolation not in ("linear", "lower", "higher", "nearest", "midpoint"):
        raise ValueError("quantile: unknown interpolation")
    axis = 0 if dim is None else dim % input.ndim
    data = input.reshape((-1,)) if dim is None else input.swapaxes(axis, -1)
    data = sort(data)[0] if data.shape[-1] > 1 else data
    levels = q if isinstance(q, ms.Tensor) else ms.tensor(q, input.dtype)
    found = between(data, levels.reshape((-1,)) * (data.shape[-1] - 1), interpolation)
    found = ops.where(ops.isnan(data[..., -1:]), ops.full_like(found, float("nan")), found)
    if dim is None:
        result = found.reshape((-1,) + (1,) * input.ndim) if keepdim else found
    else:
        result = kept_axis(found, axis, keepdim)
    return result if levels.ndim > 0 else result.squeeze(0)


def kept_axis(found, axis, keepdim):
    """The last axis of ``found`` moved to the front, the reduced ``axis`` kept or dropped."""
    moved = found.unsqueeze(0).swapaxes(0, -1).squeeze(-1).unsqueeze(-1)
    moved = moved.swapaxes(axis + 1, -1)
    return moved if keepdim else moved.squeeze(axis + 1)
