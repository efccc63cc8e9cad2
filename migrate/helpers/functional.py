"""In: tensors. Out: activations, norms and distances with torch's signatures and defaults."""

import math

import mindspore as ms
from mindspore import ops

from migrate.helpers.activation import softplus_of
from migrate.helpers.complex_numbers import magnitude
from migrate.helpers.convolution import per_axis
from migrate.helpers.creation import broadcast_shapes
from migrate.helpers.shuffling import slid
from migrate.helpers.softmax import softmax_over


def relu(input, inplace=False):
    """torch.nn.functional.relu; a new tensor also where ``inplace`` is set."""
    return ops.relu(input)


def relu6(input, inplace=False):
    """torch.nn.functional.relu6."""
    return ops.relu6(input)


def gelu(input, *, approximate="none"):
    """torch.nn.functional.gelu: by erf, or by tanh with approximate='tanh'."""
    return ops.gelu(input, approximate)


def silu(input, inplace=False):
    """torch.nn.functional.silu."""
    return ops.silu(input)


def mish(input, inplace=False):
    """torch.nn.functional.mish: x tanh(softplus(x)), with tanh(log(1 + e)) = n / (n + 2)."""
    e = ops.exp(ops.minimum(input, 20.0))
    n = e * (e + 2)
    return input * (n / (n + 2))


def leaky_relu(input, negative_slope=0.01, inplace=False):
    """torch.nn.functional.leaky_relu; at zero, too, the gradient is ``negative_slope``."""
    return ops.where(input > 0, input, negative_slope * input)


def elu(input, alpha=1.0, inplace=False):
    """torch.nn.functional.elu for any ``alpha``."""
    if alpha == 1.0:
        return ops.elu(input)
    return ops.where(input > 0, input, alpha * ops.expm1(ops.where(input > 0, 0.0, input)))


def celu(input, alpha=1.0, inplace=False):
    """torch.nn.functional.celu."""
    return ops.celu(input, alpha)


def selu(input, inplace=False):
    """torch.nn.functional.selu, by its formula: the gradient of ops.selu is wrong below zero."""
    negative = 1.6732632423543772 * ops.expm1(ops.where(input > 0, 0.0, input))
    return 1.0507009873554805 * ops.where(input > 0, input, negative)


def prelu(input, weight):
    """torch.nn.functional.prelu: one slope, or one for each channel of axis 1."""
    if weight.size == 1:
        slope = weight.reshape(())
    else:
        slope = weight.reshape((-1,) + (1,) * (input.ndim - 2))
    return ops.where(input > 0, input, slope * input)


def rrelu(input, lower=0.125, upper=0.3333333333333333, training=False, inplace=False):
    """torch.nn.functional.rrelu: a random slope below zero in training, else the mean slope."""
    if not training:
        return leaky_relu(input, (lower + upper) / 2)
    slope = lower + (upper - lower) * ops.rand_like(input)
    return ops.where(input > 0, input, slope * input)


def hardtanh(input, min_val=-1.0, max_val=1.0, inplace=False):
    """torch.nn.functional.hardtanh; on a bound the gradient is 0."""
    below = ops.where(input >= max_val, max_val, input)
    return ops.where(input <= min_val, min_val, below).astype(input.dtype)


def hardswish(input, inplace=False):
    """torch.nn.functional.hardswish."""
    return ops.hardswish(input)


def hardsigmoid(input, inplace=False):
    """torch.nn.functional.hardsigmoid."""
    return ops.hardsigmoid(input)


def thresholded(input, threshold, value, inplace=False):
    """torch.nn.functional.threshold: ``value`` where the input is not above ``threshold``."""
    return ops.threshold(input, threshold, value)


def glu(input, dim=-1):
    """torch.nn.functional.glu: the first half times the sigmoid of the second."""
    return ops.glu(input, dim)


def softmax(input, dim=None, _stacklevel=3, dtype=None):
    """torch.nn.functional.softmax; without ``dim`` the axis follows torch's old rule."""
    return softmax_over(input, implied_dim(input, dim), dtype)


def log_softmax(input, dim=None, _stacklevel=3, dtype=None):
    """torch.nn.functional.log_softmax; without ``dim`` the axis follows torch's old rule."""
    if dtype is not None:
        input = input.astype(dtype)
    return ops.log_softmax(input, implied_dim(input, dim))


def softmin(input, dim=None, _stacklevel=3, dtype=None):
    """torch.nn.functional.softmin; without ``dim`` the axis follows torch's old rule."""
    return softmax_over(-input, implied_dim(input, dim), dtype)


def implied_dim(input, dim):
    """The axis that torch takes when none is named: 0 for 0, 1 and 3 axes, else 1."""
    if dim is not None:
        return dim
    return 0 if input.ndim in (0, 1, 3) else 1


def linear(input, weight, bias=None):
    """torch.nn.functional.linear: input @ weight.T + bias."""
    return ops.dense(input, weight, bias)


def normalize(input, p=2.0, dim=1, eps=1e-12, out=None):
    """torch.nn.functional.normalize: the input over its p-norm along ``dim``, at least ``eps``."""
    if out is not None:
        raise NotImplementedError("torch2ms DEF110 normalize writes into no out=")
    length = at_least(vector_norm(input, p, dim, True), eps)
    return input / length.astype(input.dtype)


def at_least(x, low):
    """``x``, or ``low`` where it is less; NaN stays, which MindSpore's own maximum may lose."""
    return ops.where(x < low, ops.full_like(x, low), x)


def vector_norm(x, ord=2, dim=None, keepdim=False, *, dtype=None):
    """torch.linalg.vector_norm over ``dim`` (all axes when None); gradient 0 at 0."""
    x = magnitude(x if dtype is None else x.astype(dtype))
    if ord == math.inf:
        return ops.amax(x.abs(), dim, keepdim)
    if ord == -math.inf:
        return ops.amin(x.abs(), dim, keepdim)
    if x.size and ord == 0:
        return (x != 0).astype(x.dtype).sum(dim, keepdims=keepdim)
    if x.size and ord == 1:
        return x.abs().sum(dim, keepdims=keepdim)
    total = powers(x, ord).sum(dim, keepdims=keepdim)
    if x.size == 0:
        return ops.zeros_like(total)
    flat = total == 0
    root = ops.where(flat, ops.ones_like(total), total)
    root = ops.sqrt(root) if ord == 2 else ops.pow(root, 1.0 / ord)
    return ops.where(flat, ops.zeros_like(total), root)


def powers(x, ord):
    """abs(x) ** ord, with gradient 0 where x is 0."""
    if ord == 2:
        return ops.square(x)
    absent = x == 0
    size = ops.pow(ops.where(absent, ops.ones_like(x), x.abs()), ord)
    return ops.where(absent, ops.full_like(x, 0.0 if ord > 0 else float("inf")), size)


def layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-5):
    """torch.nn.functional.layer_norm over the last ``len(normalized_shape)`` axes."""
    if input.size == 0:
        return input
    axes = tuple(range(-len(normalized_shape), 0))
    mean = input.mean(axes, True)
    centred = input - mean
    variance = ops.square(centred).mean(axes, True)
    result = centred * ops.rsqrt(variance + eps)
    if weight is not None:
        result = result * weight
    return result if bias is None else result + bias


def rms_norm(input, normalized_shape, weight=None, eps=None):
    """torch.nn.functional.rms_norm over the last ``len(normalized_shape)`` axes."""
    if input.size == 0:
        return input
    axes = tuple(range(-len(normalized_shape), 0))
    if eps is None:
        eps = 1.1920928955078125e-07 if input.dtype == ms.float32 else 2.220446049250313e-16
    result = input * ops.rsqrt(ops.square(input).mean(axes, True) + eps)
    return result if weight is None else result * weight


def group_norm(input, num_groups, weight=None, bias=None, eps=1e-5):
    """torch.nn.functional.group_norm over channel groups of axis 1."""
    grouped = input.reshape((input.shape[0], num_groups, -1))
    centred = grouped - grouped.mean(-1, True)
    variance = ops.square(centred).mean(-1, True)
    result = (centred * ops.rsqrt(variance + eps)).reshape(input.shape)
    channels = (1, -1) + (1,) * (input.ndim - 2)
    if weight is not None:
        result = result * weight.reshape(channels)
    return result if bias is None else result + bias.reshape(channels)


def local_response_norm(input, size, alpha=1e-4, beta=0.75, k=1.0):
    """torch.nn.functional.local_response_norm: each channel over its ``size`` neighbours."""
    if input.size == 0:
        return input
    squares = ops.square(input)
    before, after = size // 2, (size - 1) // 2
    edge = (input.shape[0], before, *input.shape[2:])
    far = (input.shape[0], after, *input.shape[2:])
    if before > 0:
        squares = ops.cat((ops.full(edge, 0.0, dtype=input.dtype), squares), 1)
    if after > 0:
        squares = ops.cat((squares, ops.full(far, 0.0, dtype=input.dtype)), 1)
    total = squares[:, : input.shape[1]]
    for shift in range(1, size):
        total = total + squares[:, shift : shift + input.shape[1]]
    return input / ops.pow(k + alpha * total / size, beta)


def cosine_similarity(x1, x2, dim=1, eps=1e-8):
    """torch.nn.functional.cosine_similarity along ``dim``; the inputs broadcast."""
    shape = broadcast_shapes(x1.shape, x2.shape)
    x1, x2 = x1.broadcast_to(shape), x2.broadcast_to(shape)
    first = at_least(vector_norm(x1, 2, dim, True), eps)
    second = at_least(vector_norm(x2, 2, dim, True), eps)
    return ((x1 / first) * (x2 / second)).sum(dim)


def pairwise_distance(x1, x2, p=2.0, eps=1e-6, keepdim=False):
    """torch.nn.functional.pairwise_distance: the p-norm of x1 - x2 + eps along the last axis."""
    return vector_norm(x1 - x2 + eps, p, -1, keepdim)


def one_hot(input, num_classes=-1):
    """torch.nn.functional.one_hot as int64; -1 counts the classes (PyNative only)."""
    if num_classes == -1:
        num_classes = int(input.max()) + 1
    if input.size == 0:
        return ops.zeros((*input.shape, num_classes), dtype=ms.int64)
    return ops.one_hot(input, num_classes).astype(ms.int64)


def gumbel_softmax(logits, tau=1, hard=False, eps=1e-10, dim=-1):
    """torch.nn.functional.gumbel_softmax; ``hard``: one-hot forward, soft gradient."""
    noise = -ops.log(-ops.log(ops.rand_like(logits).clamp(1e-20, 1.0 - 6e-8)))
    soft = softmax_over((logits + noise) / tau, dim)
    if not hard:
        return soft
    winner = soft.argmax(dim).astype(ms.int32)
    depth = soft.shape[dim]
    sharp = ops.one_hot(winner, depth, axis=-1 if dim % soft.ndim == soft.ndim - 1 else dim)
    return ops.stop_gradient(sharp.astype(soft.dtype) - soft) + soft


def logsigmoid(input):
    """torch.nn.functional.logsigmoid, also below -88, where MindSpore's kernel gives -inf."""
    return -softplus_of(-input)


def fold(input, output_size, kernel_size, dilation=1, padding=0, stride=1):
    """torch.nn.functional.fold: overlapping blocks summed into images."""
    size = (output_size, output_size) if isinstance(output_size, int) else tuple(output_size)
    images = input if input.ndim == 3 else input.unsqueeze(0)
    result = ops.fold(images, ms.tensor(size, ms.int32), kernel_size, dilation, padding, stride)
    return result if input.ndim == 3 else result.squeeze(0)


def unfold(input, kernel_size, dilation=1, padding=0, stride=1):
    """torch.nn.functional.unfold: every window as a column, batched or not, empty or not."""
    images = input if input.ndim == 4 else input.unsqueeze(0)
    if input.size == 0:
        kernel, spread = per_axis(kernel_size, 2), per_axis(dilation, 2)
        pads, step = per_axis(padding, 2), per_axis(stride, 2)
        height = slid(images.shape[2], kernel[0], spread[0], pads[0], step[0])
        width = slid(images.shape[3], kernel[1], spread[1], pads[1], step[1])
        rows = images.shape[1] * kernel[0] * kernel[1]
        return ops.zeros((images.shape[0], rows, height * width), input.dtype)
    result = ops.unfold(images, kernel_size, dilation, padding, stride)
    return result if input.ndim == 4 else result.squeeze(0)
