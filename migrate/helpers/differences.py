"""In: sampled values. Out: torch's differences, slopes and running integrals along an axis."""

import mindspore as ms
from mindspore import ops

from migrate.helpers.dtypes import as_float


def diff(input, n=1, dim=-1, prepend=None, append=None):
    """torch.diff: the n-th difference of neighbours along ``dim``."""
    if n == 0:
        return input
    if prepend is not None:
        input = ops.cat((prepend, input), dim)
    if append is not None:
        input = ops.cat((input, append), dim)
    for _ in range(n):
        count = input.shape[dim] - 1
        later, earlier = ops.narrow(input, dim, 1, count), ops.narrow(input, dim, 0, count)
        input = later != earlier if input.dtype == ms.bool_ else later - earlier
    return input


def cumulative_trapezoid(y, x=None, *, dx=1, dim=-1):
    """torch.cumulative_trapezoid along ``dim``, at places ``x`` or ``dx`` apart."""
    count = y.shape[dim]
    pairs = ops.narrow(y, dim, 1, count - 1) + ops.narrow(y, dim, 0, count - 1)
    if x is None:
        return ops.cumsum(pairs * (dx / 2.0), dim)
    if x.ndim == 1:
        x = x.reshape([-1 if i == dim % y.ndim else 1 for i in range(y.ndim)])
    count = x.shape[dim]
    gaps = ops.narrow(x, dim, 1, count - 1) - ops.narrow(x, dim, 0, count - 1)
    return ops.cumsum(pairs * gaps / 2.0, dim)


def trapezoid(y, x=None, *, dx=1, dim=-1):
    """torch.trapezoid along ``dim``, at places ``x`` or ``dx`` apart; keeps float64."""
    count = y.shape[dim]
    pairs = ops.narrow(y, dim, 1, count - 1) + ops.narrow(y, dim, 0, count - 1)
    if x is None:
        return pairs.sum(dim) * (dx / 2.0)
    if x.ndim == 1:
        x = x.reshape([-1 if i == dim % y.ndim else 1 for i in range(y.ndim)])
    count = x.shape[dim]
    gaps = ops.narrow(x, dim, 1, count - 1) - ops.narrow(x, dim, 0, count - 1)
    return (pairs * gaps).sum(dim) / 2.0


def gradient(input, *, spacing=1, dim=None, edge_order=1):
    """torch.gradient: a tuple of slopes, one for each axis of ``dim``.

    ``spacing`` is a distance, one for each axis, or the 1-d coordinates along each axis.
    """
    dims = tuple(range(input.ndim)) if dim is None else dim
    dims = (dims,) if isinstance(dims, int) else dims
    input = as_float(input)
    slopes = []
    for i, axis in enumerate(dims):
        step = spacing[i] if isinstance(spacing, (list, tuple)) else spacing
        values = input.movedim(axis, -1)
        gaps = ops.full((values.shape[-1] - 1,), 1, dtype=input.dtype)
        even = not isinstance(step, ms.Tensor)
        if not even:
            gaps = step[1:] - step[:-1]
        elif step is not None:
            gaps = gaps * step
        slopes.append(slope(values, gaps, edge_order, even).movedim(-1, axis))
    return tuple(slopes)


def slope(f, gaps, edge_order, even):
    """The slope of ``f`` along the last axis, second order inside; ``gaps`` lie between values."""
    rise = (f[..., 1:] - f[..., :-1]) / gaps
    left, right = gaps[:-1], gaps[1:]
    if even:
        inner = (f[..., 2:] - f[..., :-2]) / (left + right)
    else:
        inner = (rise[..., :-1] * right + rise[..., 1:] * left) / (left + right)
    first, last = rise[..., :1], rise[..., -1:]
    if edge_order == 2:
        # the parabola through the three outermost values
        first = first + (first - inner[..., :1])
        last = last + (last - inner[..., -1:])
    return ops.cat((first, inner, last), -1)
