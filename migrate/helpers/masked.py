"""In: tensors and masks that are true where an element counts. Out: torch.masked's reductions."""

import mindspore as ms
from mindspore import ops

from migrate.helpers.complex_numbers import conj
from migrate.helpers.dtypes import as_float, is_whole
from migrate.helpers.functional import vector_norm
from migrate.helpers.reduction import (
    amax,
    amin,
    argmax,
    argmin,
    cumprod,
    cumsum,
    reduced_axes,
    sort,
)


def included(input, mask, other):
    """The input where ``mask`` (broadcast to its shape) is true or None, elsewhere ``other``."""
    if mask is None:
        return input
    chosen = mask.astype(ms.bool_).broadcast_to(input.shape)
    return ops.where(chosen, input, ops.full_like(input, other))


def lowest_of(input):
    """The number below all others of the input's dtype."""
    if input.is_floating_point():
        return -float("inf")
    return 0 if input.dtype == ms.uint8 else -highest_of(input) - 1


def highest_of(input):
    """The number above all others of the input's dtype."""
    if input.is_floating_point():
        return float("inf")
    if input.dtype == ms.int64:
        return 9223372036854775807
    if input.dtype == ms.uint8:
        return 255
    return {1: 127, 2: 32767}.get(input.itemsize, 2147483647)


def summed_dtype(input, dtype):
    """The dtype of sums and products: as given, the input's, or int64 for whole numbers."""
    if dtype is not None:
        return dtype
    return ms.int64 if is_whole(input) else input.dtype


def cast(result, dtype):
    """The result in ``dtype`` if one is given."""
    return result if dtype is None else result.astype(dtype)


def masked_sum(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """torch.masked.sum over ``dim``; 0 where nothing counts."""
    x = included(input, mask, 0).astype(summed_dtype(input, dtype))
    return summed(x, reduced_axes(input, dim), bool(keepdim))


def summed(x, axes, keepdim):
    """The sum over ``axes``; a tensor without axes is its own sum, one without elements gives 0."""
    if x.ndim == 0:
        return x
    if x.size == 0:
        return ops.zeros(reduced_shape(x, axes, keepdim), x.dtype)
    return x.sum(axes, keepdims=keepdim)


def reduced_shape(x, axes, keepdim):
    """The shape of a reduction over ``axes``."""
    if keepdim:
        return tuple([1 if i in axes else x.shape[i] for i in range(x.ndim)])
    return tuple([x.shape[i] for i in range(x.ndim) if i not in axes])


def masked_prod(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """torch.masked.prod over ``dim``; 1 where nothing counts."""
    x = included(input, mask, 1).astype(summed_dtype(input, dtype))
    if x.ndim == 0:
        return x
    axes = reduced_axes(x, dim)
    if x.size == 0:
        return ops.ones(reduced_shape(x, axes, keepdim), x.dtype)
    for axis in axes:
        x = ops.prod(x, axis, True)
    return x if keepdim else x.squeeze(axes)


def masked_cumsum(input, dim, *, dtype=None, mask=None):
    """torch.masked.cumsum along ``dim``; what does not count adds 0."""
    x = included(input, mask, 0)
    kept = input.dtype if dtype is None else dtype
    return cumsum(x, dim, dtype=kept) if x.ndim > 0 and x.size > 0 else x.astype(kept)


def masked_cumprod(input, dim, *, dtype=None, mask=None):
    """torch.masked.cumprod along ``dim``; what does not count multiplies by 1."""
    x = included(input, mask, 1)
    kept = input.dtype if dtype is None else dtype
    return cumprod(x, dim, dtype=kept) if x.ndim > 0 and x.size > 0 else x.astype(kept)


def masked_amax(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """torch.masked.amax over ``dim``; the lowest number where nothing counts."""
    x = included(input, mask, lowest_of(input))
    return cast(amax(x, reduced_axes(x, dim), bool(keepdim)) if x.ndim > 0 else x, dtype)


def masked_amin(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """torch.masked.amin over ``dim``; the highest number where nothing counts."""
    x = included(input, mask, highest_of(input))
    return cast(amin(x, reduced_axes(x, dim), bool(keepdim)) if x.ndim > 0 else x, dtype)


def masked_argmax(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """torch.masked.argmax: the index along ``dim``, in the input's dtype, as torch returns it."""
    x = included(input, mask, lowest_of(input))
    place = argmax(x, dim if x.ndim > 0 else None, bool(keepdim))
    return place.astype(input.dtype if dtype is None else dtype)


def masked_argmin(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """torch.masked.argmin: the index along ``dim``, in the input's dtype, as torch returns it."""
    x = included(input, mask, highest_of(input))
    place = argmin(x, dim if x.ndim > 0 else None, bool(keepdim))
    return place.astype(input.dtype if dtype is None else dtype)


def masked_mean(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """torch.masked.mean over ``dim``; NaN where nothing counts."""
    kept = input.dtype if dtype is None else dtype
    total = masked_sum(input, dim, keepdim=keepdim, dtype=kept, mask=mask)
    return total / masked_sum(ops.ones_like(input, dtype=kept), dim, keepdim=keepdim, mask=mask)


def masked_median(input, dim=-1, *, keepdim=False, dtype=None, mask=None):
    """torch.masked.median along ``dim``: the lower one; NaN where nothing counts."""
    x = included(as_float(input), mask, float("nan"))
    x = x.reshape((1,)) if input.ndim == 0 else x
    known = ops.logical_not(ops.isnan(x))
    count = known.astype(ms.int64).sum(dim, keepdims=True)
    ordered = sort(x, dim)[0]
    place = ops.maximum((count + 1) // 2 - 1, 0)
    value = ops.gather_elements(ordered, dim, place)
    value = ops.where(count > 0, value, ops.full_like(value, float("nan")))
    value = cast(value, None if input.is_floating_point() else dtype or input.dtype)
    return value if keepdim and input.ndim > 0 else value.squeeze(dim)


def masked_norm(input, ord=2.0, dim=None, *, keepdim=False, dtype=None, mask=None):
    """torch.masked.norm: the vector norm of what counts."""
    x = included(input, mask, float("inf") if ord == -float("inf") else 0)
    x = x.reshape((1,)) if input.ndim == 0 else x
    if x.size == 0:
        return cast(summed(x, reduced_axes(x, dim), bool(keepdim)), dtype)
    norm = vector_norm(x, 2 if ord is None else ord, reduced_axes(x, dim), bool(keepdim))
    return cast(norm.reshape(()) if input.ndim == 0 else norm, dtype)


def masked_var(
    input, dim=None, unbiased=None, *, correction=None, keepdim=False, dtype=None, mask=None
):
    """torch.masked.var of what counts; NaN or inf where too little does."""
    kept = dtype or as_float(input).dtype
    less = correction if correction is not None else 0 if unbiased is False else 1
    x = input.astype(kept)
    count = masked_sum(ops.ones_like(x), dim, keepdim=True, mask=mask)
    centred = x - masked_sum(x, dim, keepdim=True, mask=mask) / count
    total = masked_sum(centred * conj(centred), dim, keepdim=keepdim, mask=mask)
    return total / ops.maximum(count - less, 0.0).reshape(total.shape)


def masked_std(
    input, dim=None, unbiased=None, *, correction=None, keepdim=False, dtype=None, mask=None
):
    """torch.masked.std of what counts; NaN or inf where too little does."""
    return ops.sqrt(
        masked_var(
            input, dim, unbiased, correction=correction, keepdim=keepdim, dtype=dtype, mask=mask
        )
    )


def masked_softmax(input, dim, *, dtype=None, mask=None):
    """torch.masked.softmax along ``dim``; what does not count gets 0."""
    x = cast(included(input, mask, -float("inf")), dtype)
    return shares(x, dim)


def masked_softmin(input, dim, *, dtype=None, mask=None):
    """torch.masked.softmin along ``dim``; what does not count gets 0."""
    x = cast(included(input, mask, float("inf")), dtype)
    return shares(-x, dim)


def shares(x, dim):
    """softmax along ``dim``, NaN where all is -inf, as torch has it and MindSpore's has not."""
    if x.ndim == 0 or x.size == 0:
        return ops.exp(x - x)
    parts = ops.exp(x - ops.stop_gradient(ops.amax(x, dim, True)))
    return parts / parts.sum(dim, keepdims=True)


def masked_log_softmax(input, dim, *, dtype=None, mask=None):
    """torch.masked.log_softmax along ``dim``; what does not count gets -inf."""
    x = cast(included(input, mask, -float("inf")), dtype)
    if x.ndim == 0 or x.size == 0:
        return x - x
    x = x - ops.stop_gradient(ops.amax(x, dim, True))
    return x - ops.log(ops.exp(x).sum(dim, keepdims=True))


def masked_logsumexp(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """torch.masked.logsumexp over ``dim``; -inf where nothing counts."""
    x = included(input, mask, lowest_of(input))
    if x.ndim == 0 or x.size == 0:
        return cast(x if x.ndim == 0 else ops.log(masked_sum(x, dim, keepdim=keepdim)), dtype)
    axes = reduced_axes(x, dim)
    top = ops.stop_gradient(ops.amax(x, axes, True))
    top = ops.where(ops.isfinite(top), top, ops.zeros_like(top))
    result = ops.log(ops.exp(x - top).sum(axes, keepdims=bool(keepdim)))
    return cast(result + top.reshape(result.shape), dtype)


def masked_logaddexp(input, other, *, dtype=None, input_mask=None, other_mask=None):
    """torch.masked.logaddexp; what does not count adds nothing."""
    x = included(input, input_mask, -float("inf"))
    y = included(other, other_mask, -float("inf"))
    first = x >= y
    high, low = ops.where(first, x, y), ops.where(first, y, x)
    gap = ops.where(ops.logical_and(x == y, ops.isinf(x)), ops.zeros_like(high), low - high)
    # log(1 + exp(gap)): the kernel of expm1 is the finer one
    return cast(high + ops.log(ops.expm1(gap) + 2), dtype)


def masked_normalize(input, ord, dim, *, eps=1e-12, dtype=None, mask=None):
    """torch.masked.normalize: what counts over its norm along ``dim``, at least ``eps``."""
    size = masked_norm(input, ord, dim, keepdim=True, dtype=dtype, mask=mask)
    size = ops.where(size < eps, ops.full_like(size, eps), size)
    return included(input, mask, 0) / size
