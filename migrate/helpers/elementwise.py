"""In: tensors. Out: torch's elementwise functions, with torch's names of arguments."""

import mindspore as ms
from mindspore import ops

from migrate.helpers.creation import broadcast_shapes
from migrate.helpers.dtypes import as_float, is_whole, paired
from migrate.helpers.functional import vector_norm


def of_elements(function):
    """A function of numpy that gives a Tensor where it is given one, as it does for torch's."""

    def computed(*args, **kwargs):
        result = function(*args, **kwargs)
        return ms.Tensor(result) if any(isinstance(a, ms.Tensor) for a in args) else result

    return computed


def sqrt(input):
    """torch.sqrt."""
    return ops.sqrt(input)


def in_double(function, input):
    """The function by the kernel for float64, given back in the dtype that torch gives."""
    input = as_float(input)
    wide = ms.complex128 if ops.is_complex(input) else ms.float64
    return function(input.astype(wide)).astype(input.dtype)


def exact_log(input):
    """torch.log to the last bit: MindSpore's kernel for float32 is off by hundreds of them."""
    return in_double(ops.log, input)


def exact_log2(input):
    """torch.log2 to the last bit: MindSpore's of 8 is below 3, and 2 when it is cut."""
    return in_double(ops.log2, input)


def exact_log10(input):
    """torch.log10 to the last bit: MindSpore's of 1000 is below 3, and 2 when it is cut."""
    return in_double(ops.log10, input)


def deg2rad(input):
    """torch.deg2rad."""
    return ops.deg2rad(input)


def rad2deg(input):
    """torch.rad2deg."""
    return ops.rad2deg(input)


def frac(input):
    """torch.frac: what is left of a number without its whole part."""
    return ops.frac(input)


def bmm(input, mat2):
    """torch.bmm: one matrix product for each pair of a batch."""
    return ops.bmm(input, mat2)


def add(input, other, *, alpha=1):
    """torch.add: input + alpha * other."""
    return ops.add(*paired(input, other if alpha == 1 else alpha * other))


def sub(input, other, *, alpha=1):
    """torch.sub: input - alpha * other."""
    return ops.sub(*paired(input, other if alpha == 1 else alpha * other))


def power(input, exponent):
    """torch.pow; a whole number to a negative power is 0, unless it is 1 or -1."""
    input, exponent = paired(input, exponent)
    tensors = isinstance(exponent, ms.Tensor) and isinstance(input, ms.Tensor)
    if tensors and not is_whole(input):
        # 0 to the power 0 is 1 with the gradient 0, where the kernel's is NaN
        flat = ops.logical_and(input == 0, exponent == 0)
        input = ops.where(flat, ops.ones_like(input), input)
    if not (tensors and is_whole(input) and is_whole(exponent)):
        return ops.pow(input, exponent)
    result = ops.pow(input, ops.abs(exponent))
    lost = ops.logical_and(exponent < 0, ops.abs(input) != 1)
    return ops.where(lost, ops.zeros_like(result), result)


def fmod(input, other):
    """torch.fmod, exact for every quotient: MindSpore's subtracts a rounded product."""
    whole = is_whole(input if isinstance(input, ms.Tensor) else other)
    return ops.Mod()(input, other) if whole else ops.TruncateMod()(input, other)


def exp2(input):
    """torch.exp2 in the dtype of ``input``; of whole numbers in float32."""
    return ops.exp2(input).astype(as_float(input).dtype)


def clamp(input, min=None, max=None):
    """torch.clamp: between ``min`` and ``max``, numbers or tensors; None leaves an end open."""
    input, min = paired(input, min)
    input, max = paired(input, max)
    for end in (min, max):
        if isinstance(end, ms.Tensor):
            input = input.broadcast_to(broadcast_shapes(input.shape, end.shape))
    if isinstance(min, ms.Tensor):
        min = min.broadcast_to(input.shape)
    if isinstance(max, ms.Tensor):
        max = max.broadcast_to(input.shape)
    return ops.clamp(input, min, max)


def round_to(input, decimals):
    """torch.round to a number of decimals; negative ones round to tens, hundreds, ..."""
    scale = 10.0**decimals
    return ops.round(input * scale) / scale


def entr(input):
    """torch.special.entr: -x log(x), 0 at 0, -inf below."""
    x = as_float(input)
    return ops.where(x < 0, ops.full_like(x, -float("inf")), -xlogy(x, x))


def logit(input, eps=None):
    """torch.logit; MindSpore's kernel for its gradient writes where it must not."""
    input = as_float(input)
    if eps is not None:
        low, high = ops.full_like(input, eps), ops.full_like(input, 1 - eps)
        input = ops.where(input < low, low, ops.where(input > high, high, input))
    return ops.log(input / (1 - input))


def xlogy(input, other):
    """torch.xlogy: x log(y), 0 where x is 0 unless y is NaN; of whole numbers in float32."""
    power = input if isinstance(input, ms.Tensor) else ops.full((), input, dtype=ms.float32)
    y = other if isinstance(other, ms.Tensor) else ops.full((), other, dtype=ms.float32)
    power, y = paired(power, y)
    if not power.is_floating_point():
        power = power.astype(y.dtype if y.is_floating_point() else ms.float32)
    if not y.is_floating_point():
        y = y.astype(power.dtype)
    zero = ops.logical_and(power == 0, ops.logical_or(y <= 0, ops.isinf(y)))
    return power * ops.log(ops.where(zero, ops.ones_like(y), y))


def sinc(input):
    """torch.sinc: sin(pi x) / (pi x), 1 at 0; of whole numbers and bool in float32."""
    return ops.sinc(as_float(input))


def ndtr(input):
    """torch.special.ndtr: the standard normal distribution function."""
    return 0.5 * ops.erfc(-input * 0.7071067811865476)


def xlog1py(input, other):
    """torch.special.xlog1py: x log(1 + y), 0 where x is 0."""
    return xlogy(input, other + 1)


def erfinv(input):
    """torch.erfinv: the kernel's value made exact by Halley steps on erf."""
    outside = ops.stop_gradient(ops.erfinv(input))
    start = ops.clamp(outside, -4.0, 4.0)
    for _ in range(3):
        step = (ops.erf(start) - ops.stop_gradient(input)) * erf_slope(start)
        start = start - step / (1 + start * step)
    result = start - (ops.erf(start) - input) * erf_slope(start)
    return ops.where(ops.abs(input) < 1, result, outside)


def erf_slope(x):
    """1 / erf'(x)."""
    return 0.886226925452758 * ops.exp(ops.square(x))


def mvlgamma(input, p):
    """torch.mvlgamma: the multivariate log-gamma function of dimension ``p``."""
    total = ops.lgamma(input) + p * (p - 1) / 4 * 1.1447298858494002
    for i in range(1, p):
        total = total + ops.lgamma(input - i / 2)
    return total


def atan2(input, other):
    """torch.atan2, of whole numbers too: its gradient at the origin is zero, where MindSpore's is
    NaN."""
    input, other = paired(input, other)
    input, other = as_float(input), as_float(other)
    origin = ops.logical_and(input == 0, other == 0)
    beside = ops.atan2(ops.where(origin, ops.ones_like(input), input), other)
    return ops.where(origin, ops.stop_gradient(ops.atan2(input, other)), beside)


def angle(input):
    """torch.angle: that of complex numbers; of real ones pi where negative, else 0; NaN stays."""
    if input.is_complex():
        return atan2(ops.imag(input), ops.real(input))
    input = as_float(input)
    turned = ops.where(input < 0, ops.full_like(input, 3.141592653589793), ops.zeros_like(input))
    return ops.where(ops.isnan(input), input, turned)


def fmin(input, other):
    """torch.fmin: the smaller element; a number wins over NaN."""
    input, other = paired(input, other)
    return -ops.fmax(-input, -other)


def fill(input, value):
    """torch.fill: ``value``, a number or a 0-d tensor, in the shape and dtype of ``input``."""
    if isinstance(value, ms.Tensor):
        return value.astype(input.dtype).broadcast_to(input.shape)
    return ops.full_like(input, value)


def logcumsumexp(input, dim):
    """torch.logcumsumexp along ``dim``; MindSpore's kernel refuses a tensor without axes."""
    return ops.deepcopy(input) if input.ndim == 0 else ops.logcumsumexp(input, dim)


def renorm(input, p, dim, maxnorm):
    """torch.renorm: slices along ``dim`` with a larger p-norm are scaled down to ``maxnorm``."""
    axis = dim % input.ndim
    others = tuple([i for i in range(input.ndim) if i != axis])
    size = vector_norm(input, p, others, True)
    return ops.where(size > maxnorm, input * (maxnorm / (size + 1e-7)), input)
