"""In: the arguments of torch.native_*_norm. Out: the result, the means and 1 / deviations used."""

from mindspore import ops

from migrate.helpers.norm_functional import batch_norm, scaled


def native_layer_norm(input, normalized_shape, weight, bias, eps):
    """torch.native_layer_norm: (result, mean, 1 / deviation), the last two with axes of 1."""
    axes = tuple(range(-len(normalized_shape), 0))
    if input.size == 0:
        shape = (*input.shape[: input.ndim - len(axes)], *(1,) * len(axes))
        return input, ops.zeros(shape, input.dtype), ops.zeros(shape, input.dtype)
    mean = input.mean(axes, True)
    centred = input - mean
    rate = ops.rsqrt(ops.square(centred).mean(axes, True) + eps)
    result = centred * rate
    result = result if weight is None else result * weight
    return result if bias is None else result + bias, mean, rate


def native_group_norm(input, weight, bias, N, C, HxW, group, eps):
    """torch.native_group_norm: (result, mean, 1 / deviation), the last two (N, groups)."""
    if input.size == 0:
        return input, ops.zeros((N, group), input.dtype), ops.zeros((N, group), input.dtype)
    grouped = input.reshape((N, group, -1))
    mean = grouped.mean(2, True)
    centred = grouped - mean
    rate = ops.rsqrt(ops.square(centred).mean(2, True) + eps)
    result = (centred * rate).reshape(input.shape)
    result = scaled(result, weight, bias, (1, C) + (1,) * (input.ndim - 2))
    return result, mean.squeeze(2), rate.squeeze(2)


def native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps):
    """torch.native_batch_norm: (result, mean, 1 / deviation), the last two empty in evaluation."""
    result = batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)
    if not training:
        return result, ops.zeros((0,), input.dtype), ops.zeros((0,), input.dtype)
    axes = (0, *tuple(range(2, input.ndim)))
    mean = input.mean(axes, True)
    rate = ops.rsqrt(ops.square(input - mean).mean(axes, True) + eps)
    return result, mean.reshape((-1,)), rate.reshape((-1,))
