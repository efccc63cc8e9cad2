"""In: tensors of values. Out: torch's histograms: counts and the edges of the bins."""

import mindspore as ms
from mindspore import ops


def bin_edges(values, bins, low=None, high=None):
    """``bins`` + 1 edges from ``low`` to ``high``; without them, from the smallest value on."""
    if low is None and values.size == 0:
        low, high = 0.0, 1.0
    if low is None:
        low, high = values.min(), values.max()
        same = low == high
        low, high = ops.where(same, low - 0.5, low), ops.where(same, high + 0.5, high)
    steps = ops.arange(bins + 1).astype(values.dtype) / bins
    return ops.where(steps < 1, low + (high - low) * steps, high + ops.zeros_like(steps))


def bin_of(values, edges):
    """The number of the bin of each of 1-d ``values``, and whether it lies in any."""
    inside = ops.logical_and(values >= edges[0], values <= edges[-1])
    number = ops.searchsorted(edges, values, right=True).astype(ms.int64) - 1
    return ops.clamp(number, 0, edges.shape[0] - 2), inside


def histc(input, bins=100, min=0, max=0):
    """torch.histc: how many elements lie in each of equal bins."""
    if input.size == 0:
        return ops.zeros((bins,), input.dtype)
    return ops.histc(input, bins, float(min), float(max))


def histogram(input, bins, *, range=None, weight=None, density=False):
    """torch.histogram: (counts, edges); ``bins`` is a number or the edges. No gradient."""
    values = input.reshape((1, -1)).T
    counts, edges = histogramdd(
        values,
        [bins],
        range=range,
        weight=None if weight is None else weight.reshape((-1,)),
        density=density,
    )
    return counts, edges[0]


def histogramdd(input, bins, range=None, weight=None, density=False):
    """torch.histogramdd of N x D points: (D-dimensional counts, tuple of the edges of each axis).

    ``bins`` is one number, one for each axis, or the edges of each axis. No gradient.
    """
    points = ops.stop_gradient(input.reshape((-1, input.shape[-1])))
    width = points.shape[1]
    bins = [bins] * width if isinstance(bins, int) else list(bins)
    weights = (
        ops.ones((points.shape[0],), points.dtype) if weight is None else weight.reshape((-1,))
    )
    edges, place = [], ops.zeros((points.shape[0],), ms.int64)
    for axis, wanted in enumerate(bins):
        values = points[:, axis]
        if not isinstance(wanted, ms.Tensor):
            ends = (None, None) if range is None else (range[2 * axis], range[2 * axis + 1])
            wanted = bin_edges(values, wanted, ends[0], ends[1])
        number, inside = bin_of(values, wanted)
        weights = ops.where(inside, weights, ops.zeros_like(weights))
        place = place * (wanted.shape[0] - 1) + number
        edges.append(wanted)
    shape = [one.shape[0] - 1 for one in edges]
    total = 1
    for length in shape:
        total = total * length
    counts = ops.zeros((total,), points.dtype)
    counts = ops.tensor_scatter_elements(counts, place, weights, 0, "add").reshape(shape)
    return density_of(counts, edges) if density else counts, tuple(edges)


def density_of(counts, edges):
    """``counts`` divided by their sum and by the size of each bin."""
    result = counts / counts.sum()
    for axis, one in enumerate(edges):
        widths = one[1:] - one[:-1]
        result = result / widths.reshape([-1 if i == axis else 1 for i, _ in enumerate(edges)])
    return result
