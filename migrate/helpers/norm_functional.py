"""In: inputs, statistics and weights. Out: batch and instance norm with torch's updates."""

import mindspore as ms
from mindspore import ops


def batch_norm(
    input, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1,
    eps=1e-05,
):  # fmt: skip
    """torch.nn.functional.batch_norm; in training it also updates the running statistics."""
    if input.size == 0:
        return input
    axes = (0, *tuple(range(2, input.ndim)))
    channels = (1, -1) + (1,) * (input.ndim - 2)
    if not training:
        scale = ops.rsqrt(running_var.reshape(channels) + eps)
        return scaled((input - running_mean.reshape(channels)) * scale, weight, bias, channels)
    mean = input.mean(axes, True)
    centred = input - mean
    variance = ops.square(centred).mean(axes, True)
    result = scaled(centred * ops.rsqrt(variance + eps), weight, bias, channels)
    if running_mean is None:
        return result
    count = input.size // input.shape[1]
    new_mean = ops.stop_gradient(mean.reshape((-1,)))
    new_var = ops.stop_gradient(variance.reshape((-1,)) * (count / max(count - 1, 1)))
    moved = ops.assign(running_mean, running_mean * (1 - momentum) + new_mean * momentum)
    spread = ops.assign(running_var, running_var * (1 - momentum) + new_var * momentum)
    return ops.depend(ops.depend(result, moved), spread)


def scaled(normal, weight, bias, shape):
    """normal * weight + bias, each where it is not None, reshaped to ``shape``."""
    if weight is not None:
        normal = normal * weight.reshape(shape)
    return normal if bias is None else normal + bias.reshape(shape)


def instance_norm(
    input, running_mean=None, running_var=None, weight=None, bias=None, use_input_stats=True,
    momentum=0.1, eps=1e-05,
):  # fmt: skip
    """torch.nn.functional.instance_norm; it also updates running statistics that are given."""
    channels = (1, -1) + (1,) * (input.ndim - 2)
    if not use_input_stats:
        scale = ops.rsqrt(running_var.reshape(channels) + eps)
        return scaled((input - running_mean.reshape(channels)) * scale, weight, bias, channels)
    axes = tuple(range(2, input.ndim))
    mean = input.mean(axes, True)
    centred = input - mean
    variance = ops.square(centred).mean(axes, True)
    result = scaled(centred * ops.rsqrt(variance + eps), weight, bias, channels)
    if running_mean is None:
        return result
    count = input.size // (input.shape[0] * input.shape[1])
    new_mean = ops.stop_gradient(mean.mean(0).reshape((-1,)))
    new_var = ops.stop_gradient(variance.mean(0).reshape((-1,)) * (count / max(count - 1, 1)))
    moved = ops.assign(running_mean, running_mean * (1 - momentum) + new_mean * momentum)
    spread = ops.assign(running_var, running_var * (1 - momentum) + new_var * momentum)
    return ops.depend(ops.depend(result, moved), spread)


def alpha_dropout(input, p=0.5, training=False, inplace=False):
    """torch.nn.functional.alpha_dropout: dropout that keeps mean and variance of SELU outputs."""
    if not training or p == 0:
        return input
    return selu_dropped(input, (ops.rand_like(input) >= p).astype(input.dtype), p)


def feature_alpha_dropout(input, p=0.5, training=False, inplace=False):
    """torch.nn.functional.feature_alpha_dropout: alpha dropout of whole channels."""
    if not training or p == 0:
        return input
    channels = (*input.shape[:2], *(1,) * (input.ndim - 2))
    keep = (ops.rand(channels) >= p).astype(input.dtype)
    return selu_dropped(input, keep.broadcast_to(input.shape), p)


def feature_dropout(input, p=0.5, training=False):
    """torch.feature_dropout: dropout of whole channels."""
    if not training or p == 0:
        return input
    if p == 1:
        return ops.zeros_like(input)
    keep = ops.rand((*input.shape[:2], *(1,) * (input.ndim - 2))) >= p
    return input * keep.astype(input.dtype) / (1 - p)


def selu_dropped(input, keep, p):
    """The input where ``keep`` is 1, SELU's lowest value elsewhere; mean and variance restored."""
    if p == 1:
        return ops.zeros_like(input)
    low = -1.7580993408473766
    scale = ((1 - p) * (1 + p * low**2)) ** -0.5
    return scale * (input * keep + low * (1 - keep) + p * low)


def dropout(input, p=0.5, training=True, inplace=False):
    """torch.nn.functional.dropout."""
    return ops.dropout(input, p, training)


def shorten_rows(weight, ids, max_norm, norm_type):
    """Shortens the rows of a Parameter that are looked up and longer than ``max_norm``."""
    if not isinstance(weight, ms.Parameter):
        raise NotImplementedError("embedding: max_norm of a weight that is no Parameter")
    rows = ops.stop_gradient(ops.gather(weight, ids, 0))
    norms = rows.norm(norm_type, 1, True)
    short = ops.where(norms > max_norm, rows * (max_norm / (norms + 1e-7)), rows)
    ops.assign(weight, ops.tensor_scatter_update(weight, ids.reshape(-1, 1), short))


def embedding(
    input, weight, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False,
    sparse=False,
):  # fmt: skip
    """torch.nn.functional.embedding; row ``padding_idx`` gets no gradient.

    With ``max_norm`` the weight is a Parameter, and rows that are longer are shortened in it.
    """
    if scale_grad_by_freq:
        raise NotImplementedError("embedding: scale_grad_by_freq")
    if max_norm is not None:
        shorten_rows(weight, input.reshape(-1), max_norm, norm_type)
    rows = ops.gather(weight, input, 0)
    if padding_idx is None:
        return rows
    real = (input != padding_idx % weight.shape[0]).unsqueeze(-1)
    return ops.where(real, rows, ops.stop_gradient(rows))


def channel_shuffle(input, groups):
    """torch.nn.functional.channel_shuffle: the channels of all groups in turn."""
    split = input.reshape((input.shape[0], groups, -1, *tuple(input.shape[2:])))
    return split.swapaxes(1, 2).reshape(input.shape)


def dropout2d(input, p=0.5, training=True, inplace=False):
    """torch.nn.functional.dropout2d; three axes are a batch of sequences, as torch has it."""
    if input.ndim == 3:
        return ops.dropout1d(input, p, training)
    return ops.dropout2d(input, p, training)


def dropout3d(input, p=0.5, training=True, inplace=False):
    """torch.nn.functional.dropout3d, batched or not."""
    if input.ndim == 4:
        return ops.dropout3d(input.unsqueeze(0), p, training).squeeze(0)
    return ops.dropout3d(input, p, training)
