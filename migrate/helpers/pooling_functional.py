"""In: torch.nn.functional's pooling arguments. Out: pools with torch's meaning of them."""

import math

import mindspore as ms
from mindspore import ops

from migrate.helpers.convolution import per_axis


def both_ends(padding, axes):
    """The padding of each axis twice: before and after it."""
    ends = ()
    for each in per_axis(padding, axes):
        ends = (*ends, each, each)
    return ends


def max_pool1d(
    input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False
):
    """torch.nn.functional.max_pool1d, batched or not."""
    step = kernel_size if stride is None or stride == () else stride
    found = max_pool2d(
        input.unsqueeze(-2), (1, *per_axis(kernel_size, 1)), (1, *per_axis(step, 1)),
        (0, *per_axis(padding, 1)), (1, *per_axis(dilation, 1)), ceil_mode, return_indices,
    )  # fmt: skip
    if return_indices:
        return found[0].squeeze(-2), found[1].squeeze(-2)
    return found.squeeze(-2)


def max_pool2d(
    input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False
):
    """torch.nn.functional.max_pool2d, batched or not; indices are int64."""
    images = input if input.ndim == 4 else input.unsqueeze(0)
    step = kernel_size if stride is None or stride == () else stride
    found = ops.max_pool2d(
        images, per_axis(kernel_size, 2), per_axis(step, 2), per_axis(padding, 2),
        per_axis(dilation, 2), return_indices, ceil_mode,
    )  # fmt: skip
    if input.ndim == 4:
        return found
    return (found[0].squeeze(0), found[1].squeeze(0)) if return_indices else found.squeeze(0)


def max_pool3d(
    input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False
):
    """torch.nn.functional.max_pool3d, batched or not."""
    volumes = input if input.ndim == 5 else input.unsqueeze(0)
    step = kernel_size if stride is None or stride == () else stride
    found = ops.max_pool3d(
        volumes, per_axis(kernel_size, 3), per_axis(step, 3), per_axis(padding, 3),
        per_axis(dilation, 3), ceil_mode, return_indices,
    )  # fmt: skip
    if input.ndim == 5:
        return found
    return (found[0].squeeze(0), found[1].squeeze(0)) if return_indices else found.squeeze(0)


def pooled_length(length, kernel, stride, padding, ceil_mode):
    """How many windows fit along an axis; with ``ceil_mode`` the last may pass the end."""
    room = length + 2 * padding - kernel
    count = -(-room // stride) + 1 if ceil_mode else room // stride + 1
    return count - 1 if ceil_mode and (count - 1) * stride >= length + padding else count


def pooled_nothing(input, kernel_size, stride, padding, ceil_mode, axes):
    """What a pool makes of a batch without elements, which the kernels refuse."""
    sizes = zip(per_axis(kernel_size, axes), per_axis(stride, axes), per_axis(padding, axes))
    lengths = [
        pooled_length(input.shape[input.ndim - axes + i], kernel, step, pad, ceil_mode)
        for i, (kernel, step, pad) in enumerate(sizes)
    ]
    return ops.zeros((*input.shape[: input.ndim - axes], *lengths), input.dtype)


def avg_pool1d(input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True):
    """torch.nn.functional.avg_pool1d, batched or not; the stride is the kernel size by default."""
    step = kernel_size if stride is None or stride == () else stride
    images = avg_pool2d(
        input.unsqueeze(-2), (1, *per_axis(kernel_size, 1)), (1, *per_axis(step, 1)),
        (0, *per_axis(padding, 1)), ceil_mode, count_include_pad,
    )  # fmt: skip
    return images.squeeze(-2)


def avg_pool2d(
    input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True,
    divisor_override=None,
):  # fmt: skip
    """torch.nn.functional.avg_pool2d, batched or not; the stride is the kernel size by default."""
    images = input if input.ndim == 4 else input.unsqueeze(0)
    step = kernel_size if stride is None or stride == () else stride
    if input.size == 0:
        return pooled_nothing(input, kernel_size, step, padding, ceil_mode, 2)
    divisor = 0 if divisor_override is None else 1
    count_include_pad = count_include_pad or divisor_override is not None
    result = ops.avg_pool2d(
        images, per_axis(kernel_size, 2), per_axis(step, 2), both_ends(padding, 2), ceil_mode,
        count_include_pad, divisor,
    )  # fmt: skip
    if divisor_override is not None:
        result = result / divisor_override
    return result if input.ndim == 4 else result.squeeze(0)


def avg_pool3d(
    input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True,
    divisor_override=None,
):  # fmt: skip
    """torch.nn.functional.avg_pool3d, batched or not; the stride is the kernel size by default."""
    volumes = input if input.ndim == 5 else input.unsqueeze(0)
    step = kernel_size if stride is None or stride == () else stride
    if input.size == 0:
        return pooled_nothing(input, kernel_size, step, padding, ceil_mode, 3)
    divisor = 0 if divisor_override is None else 1
    count_include_pad = count_include_pad or divisor_override is not None
    result = ops.avg_pool3d(
        volumes, per_axis(kernel_size, 3), per_axis(step, 3), both_ends(padding, 3), ceil_mode,
        count_include_pad, divisor,
    )  # fmt: skip
    if divisor_override is not None:
        result = result / divisor_override
    return result if input.ndim == 5 else result.squeeze(0)


def adaptive_avg_pool1d(input, output_size):
    """torch.nn.functional.adaptive_avg_pool1d for any output size, batched or not."""
    size = per_axis(output_size, 1)
    if input.size == 0:
        return ops.zeros((*input.shape[:-1], *size), input.dtype)
    return ops.adaptive_avg_pool2d(input.unsqueeze(-2), (1, *size)).squeeze(-2)


def adaptive_max_pool1d(input, output_size, return_indices=False):
    """torch.nn.functional.adaptive_max_pool1d for any output size."""
    size = (1, *per_axis(output_size, 1))
    found = ops.adaptive_max_pool2d(input.unsqueeze(-2), size, return_indices)
    if return_indices:
        return found[0].squeeze(-2), found[1].squeeze(-2)
    return found.squeeze(-2)


def adaptive_avg_pool3d(input, output_size):
    """torch.nn.functional.adaptive_avg_pool3d; None keeps the size of an axis."""
    size = kept_lengths(input, output_size)
    if input.size == 0:
        return ops.zeros((*input.shape[:-3], *size), input.dtype)
    return ops.adaptive_avg_pool3d(input, size)


def adaptive_max_pool3d(input, output_size, return_indices=False):
    """torch.nn.functional.adaptive_max_pool3d; indices are int64."""
    found = ops.adaptive_max_pool3d(input, kept_lengths(input, output_size), True)
    return (found[0], found[1].astype(ms.int64)) if return_indices else found[0]


def kept_lengths(input, output_size):
    """The last three lengths of a result: as wanted, or as they are where that is None."""
    wanted, lengths = per_axis(output_size, 3), input.shape[-3:]
    return tuple([lengths[i] if wanted[i] is None else wanted[i] for i in range(3)])


def lp_pool1d(input, norm_type, kernel_size, stride=None, ceil_mode=False):
    """torch.nn.functional.lp_pool1d: the p-norm of every window."""
    if abs(norm_type) == float("inf"):
        return widest(max_pool1d, input, norm_type, kernel_size, stride, ceil_mode)
    total = avg_pool1d(ops.pow(input, norm_type), kernel_size, stride, 0, ceil_mode)
    return lp_root(total * per_axis(kernel_size, 1)[0], norm_type)


def lp_pool2d(input, norm_type, kernel_size, stride=None, ceil_mode=False):
    """torch.nn.functional.lp_pool2d: the p-norm of every window."""
    if abs(norm_type) == float("inf"):
        return widest(max_pool2d, input, norm_type, kernel_size, stride, ceil_mode)
    total = avg_pool2d(ops.pow(input, norm_type), kernel_size, stride, 0, ceil_mode)
    return lp_root(total * math.prod(per_axis(kernel_size, 2)), norm_type)


def lp_pool3d(input, norm_type, kernel_size, stride=None, ceil_mode=False):
    """torch.nn.functional.lp_pool3d: the p-norm of every window."""
    if abs(norm_type) == float("inf"):
        return widest(max_pool3d, input, norm_type, kernel_size, stride, ceil_mode)
    total = avg_pool3d(ops.pow(input, norm_type), kernel_size, stride, 0, ceil_mode)
    return lp_root(total * math.prod(per_axis(kernel_size, 3)), norm_type)


def widest(pool, input, norm_type, kernel_size, stride, ceil_mode):
    """The largest size of a window, or the smallest where the norm is that of -infinity."""
    sign = 1 if norm_type > 0 else -1
    return sign * pool(sign * ops.abs(input), kernel_size, stride, ceil_mode=ceil_mode)


def lp_root(total, norm_type):
    """The p-th root with the sign of the sum, as torch takes it; NaN stays NaN."""
    size = ops.where(ops.isnan(total), total, ops.sign(total) * ops.relu(ops.abs(total)))
    return ops.pow(size, 1.0 / norm_type)
