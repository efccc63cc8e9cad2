"""In: a length and the shape of a window. Out: the windows of torch.signal.windows."""

import math

import mindspore as ms
from mindspore import ops


def positions(M, sym, dtype):
    """0, 1, ..., M - 1, and the number of steps in a period: one less where symmetric."""
    return ops.arange(M).astype(ms.float32 if dtype is None else dtype), M - 1 if sym else M


def general_cosine(M, *, a, sym=True, dtype=None):
    """torch.signal.windows.general_cosine: alternating sum of a[i] cos(2 pi i n / period)."""
    places, period = positions(M, sym, dtype)
    result = ops.full_like(places, float(a[0]) if M > 1 else 1.0)
    if M > 1:
        for i in range(1, len(a)):
            result = result + (-1) ** i * a[i] * ops.cos(places * (2 * math.pi * i / period))
    return result


def general_hamming(M, *, alpha=0.54, sym=True, dtype=None):
    """torch.signal.windows.general_hamming; with alpha 0.5 it is hann."""
    return general_cosine(M, a=[alpha, 1.0 - alpha], sym=sym, dtype=dtype)


def hamming(M, *, sym=True, dtype=None):
    """torch.signal.windows.hamming."""
    return general_hamming(M, sym=sym, dtype=dtype)


def hann(M, *, sym=True, dtype=None):
    """torch.signal.windows.hann."""
    return general_hamming(M, alpha=0.5, sym=sym, dtype=dtype)


def blackman(M, *, sym=True, dtype=None):
    """torch.signal.windows.blackman."""
    return general_cosine(M, a=[0.42, 0.5, 0.08], sym=sym, dtype=dtype)


def nuttall(M, *, sym=True, dtype=None):
    """torch.signal.windows.nuttall."""
    return general_cosine(M, a=[0.3635819, 0.4891775, 0.1365995, 0.0106411], sym=sym, dtype=dtype)


def bartlett(M, *, sym=True, dtype=None):
    """torch.signal.windows.bartlett: a triangle."""
    places, period = positions(M, sym, dtype)
    return 1 - ops.abs(places * (2 / period) - 1) if M > 1 else ops.ones_like(places)


def cosine(M, *, sym=True, dtype=None):
    """torch.signal.windows.cosine: half a wave, from just above 0."""
    places, period = positions(M, sym, dtype)
    return ops.sin((places + 0.5) * (math.pi / (period + 1))) if M > 1 else ops.ones_like(places)


def exponential(M, *, center=None, tau=1.0, sym=True, dtype=None):
    """torch.signal.windows.exponential: exp(-abs(n - center) / tau)."""
    places, period = positions(M, sym or M <= 1, dtype)
    return ops.exp(-ops.abs(places - (period / 2 if center is None else center)) / tau)


def gaussian(M, *, std=1.0, sym=True, dtype=None):
    """torch.signal.windows.gaussian."""
    places, period = positions(M, sym or M <= 1, dtype)
    return ops.exp(-0.5 * ops.square((places - period / 2) / std))


def kaiser(M, *, beta=12.0, sym=True, dtype=None):
    """torch.signal.windows.kaiser."""
    places, period = positions(M, sym, dtype)
    if M <= 1:
        return ops.ones_like(places)
    height = 1 - ops.square(ops.minimum(places * (2 / period) - 1, 1.0))
    return ops.bessel_i0(beta * ops.sqrt(ops.maximum(height, 0.0))) / ops.bessel_i0(
        ops.full_like(places[:1], beta)
    )
