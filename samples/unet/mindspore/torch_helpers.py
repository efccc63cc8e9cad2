# torch2ms helpers 0.1.0: written by torch2mindspore, which knows this file by this line.
"""In: arguments as torch takes them. Out: what torch gives, from MindSpore."""

import mindspore as ms
from mindspore import nn, ops


def relink(chain):
    """A SequentialCell calls the children that it has now, not those that it was built with."""
    late = len(chain._cells) - len(chain._is_dynamic_name)
    chain._is_dynamic_name.extend([False] * late)
    chain.cell_list = list(chain._cells.values())


class Sequential(nn.SequentialCell):
    """Reproduces torch.nn.Sequential exactly; also as a base class.

    A child that is set as an attribute or added by name joins the chain; a slice shares its
    Cells, whose Parameters keep their names.
    """

    def insert_child_to_cell(self, child_name, child_cell):
        super().insert_child_to_cell(child_name, child_cell)
        if "cell_list" in self.__dict__:
            relink(self)

    def __delattr__(self, name):
        if name in self._cells:
            del self._is_dynamic_name[list(self._cells).index(name)]
        super().__delattr__(name)
        self.cell_list = list(self._cells.values())

    def update_parameters_name(self, prefix="", recurse=True):
        self._names_below = prefix
        super().update_parameters_name(prefix, recurse)

    def __getitem__(self, index):
        if not isinstance(index, slice):
            return list(self._cells.values())[index]
        part = Sequential()
        for name, cell in list(self._cells.items())[index]:
            part.insert_child_to_cell(name, cell)
        return part

    def __iter__(self):
        return iter(list(self._cells.values()))

    def append(self, module):
        name = str(len(self._cells))
        module.update_parameters_name(self.__dict__.get("_names_below", "") + name + ".")
        self.insert_child_to_cell(name, module)
        return self

    def extend(self, sequential):
        for module in list(sequential):
            self.append(module)
        return self

    def insert(self, index, module):
        self._insert(index, module)
        return self

    def pop(self, key):
        module = self[key]
        del self[key]
        return module


def pad_from_inside(input, axis, before, after, mode):
    """The input longer along ``axis`` by elements of its own: the edge, mirrored or wrapped."""
    size = input.shape[axis]
    if input.size == 0:
        grown = (*input.shape[:axis], size + before + after, *input.shape[axis + 1 :])
        return ops.zeros(grown, input.dtype)
    places = ops.arange(-before, size + after)
    if mode == "replicate":
        places = ops.clamp(places, 0, size - 1)
    elif mode == "reflect":
        places = size - 1 - ops.abs(size - 1 - ops.abs(places))
    else:
        # what is cut is cut first, then the rest goes round
        start, end = max(-before, 0), size - max(-after, 0)
        places = start + (places - start) % (end - start)
    return input.index_select(axis, places.astype(ms.int64))


def padded_shape(shape, pad):
    """``shape`` with its last axes longer by the (before, after) pairs of ``pad``."""
    whole = tuple(shape[: len(shape) - len(pad) // 2])
    for i in range(len(pad) // 2 - 1, -1, -1):
        whole = (*whole, shape[len(shape) - 1 - i] + pad[2 * i] + pad[2 * i + 1])
    return whole


def pad_with(input, pad, value):
    """The input with ``value`` around it.

    Negative pads are cut by slicing: with them ops.pad is wrong on CPU from its second call on.
    """
    shape = padded_shape(input.shape, pad)
    ends, left = (), input.size
    for i in range(len(pad) // 2):
        before, after, axis = pad[2 * i], pad[2 * i + 1], input.ndim - 1 - i
        length = input.shape[axis] + min(before, 0) + min(after, 0)
        left = left if length > 0 else 0
        if 0 < length < input.shape[axis]:
            input = ops.narrow(input, axis, max(-before, 0), length)
        ends = (*ends, max(before, 0), max(after, 0))
    if left == 0:
        return ops.full(shape, value, dtype=input.dtype)
    return ops.pad(input, ends, "constant", value) if max((0, *ends)) > 0 else input


def pad(input, pad, mode="constant", value=None):
    """torch.nn.functional.pad: (before, after) pairs, last axis first; negative ones cut.

    Any number of axes in every mode, where ops.pad takes three.
    """
    for i in range(len(pad) // 2):
        before, after = pad[2 * i], pad[2 * i + 1]
        if mode != "constant" and (before != 0 or after != 0):
            input = pad_from_inside(input, input.ndim - 1 - i, before, after, mode)
    return pad_with(input, pad, 0 if value is None else value) if mode == "constant" else input


def softmax_over(input, dim, dtype=None):
    """torch.softmax along ``dim``, without MindSpore's kernel where that has one element.

    MindSpore 2.10 in PyNative: when the first softmax that a process differentiates goes over an
    axis of one element, all later gradients of softmax for that rank and axis are wrong.
    """
    x = input if dtype is None else input.astype(dtype)
    return ops.exp(x - x) if x.ndim == 0 or x.shape[dim] == 1 else ops.softmax(x, dim)


def per_axis(value, axes):
    """The value for each of ``axes`` axes: a number stands for all, as in torch."""
    if not isinstance(value, (tuple, list)):
        return (value,) * axes
    return tuple(value) * axes if len(value) == 1 else tuple(value)


def area(input, sizes):
    """Adaptive average pooling to ``sizes``, which is what torch's mode 'area' is."""
    if len(sizes) == 1:
        return ops.adaptive_avg_pool2d(input.unsqueeze(2), (1, sizes[0])).squeeze(2)
    if len(sizes) == 2:
        return ops.adaptive_avg_pool2d(input, sizes)
    return ops.adaptive_avg_pool3d(input, sizes)


def source_step(n, m, align_corners):
    """How far in the source one step in the result goes."""
    if align_corners:
        return (n - 1) / (m - 1) if m > 1 else 0.0
    return n / m


def cubic_weight(distance, a):
    """Keys' cubic convolution kernel at a distance from its centre."""
    near = ((a + 2) * distance - (a + 3)) * distance * distance + 1
    far = ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a
    return ops.where(distance <= 1, near, ops.where(distance < 2, far, ops.zeros_like(far)))


def filtered(x, axis, steps, ratio, mode):
    """Antialiased resampling along ``axis``: a product with the normalised filter matrix."""
    stretch = max(ratio, 1.0)
    places = ops.arange(x.shape[axis]).astype(ms.float32).reshape((-1, 1))
    distance = ops.abs(places + 0.5 - (steps + 0.5) * ratio) / stretch
    weights = ops.relu(1 - distance) if mode != "bicubic" else cubic_weight(distance, -0.5)
    weights = (weights / weights.sum(0, keepdims=True)).astype(x.dtype)
    return ops.matmul(x.swapaxes(axis, -1), weights).swapaxes(axis, -1)


def whole(place, n):
    """Places as int64 indices below ``n``."""
    return ops.clamp(place, 0, n - 1).astype(ms.int64)


def cubic(x, axis, place):
    """Bicubic interpolation along ``axis`` with torch's a = -0.75."""
    low = ops.floor(place)
    shape = [-1 if i == axis else 1 for i in range(x.ndim)]
    result = 0.0
    for tap in (-1, 0, 1, 2):
        weight = cubic_weight(ops.abs(place - low - tap), -0.75)
        taken = x.index_select(axis, whole(low + tap, x.shape[axis]))
        result = result + taken * weight.reshape(shape).astype(x.dtype)
    return result


def resampled(x, axis, count, ratio, mode, align_corners, antialias):
    """``x`` with ``count`` places along ``axis``, ``ratio`` apart in the source."""
    n = x.shape[axis]
    steps = ops.arange(count).astype(ms.float32)
    if mode == "nearest":
        return x.index_select(axis, whole(ops.floor(steps * ratio), n))
    if mode == "nearest-exact":
        return x.index_select(axis, whole(ops.floor((steps + 0.5) * ratio), n))
    if antialias:
        return filtered(x, axis, steps, ratio, mode)
    place = steps * ratio if align_corners else (steps + 0.5) * ratio - 0.5
    if mode == "bicubic":
        return cubic(x, axis, place)
    place = ops.maximum(place, 0.0)
    low = ops.floor(place)
    shape = [-1 if i == axis else 1 for i in range(x.ndim)]
    share = (place - low).reshape(shape).astype(x.dtype)
    below = x.index_select(axis, whole(low, n))
    return below * (1 - share) + x.index_select(axis, whole(low + 1, n)) * share


def interpolate(
    input, size=None, scale_factor=None, mode="nearest", align_corners=None,
    recompute_scale_factor=None, antialias=False,
):  # fmt: skip
    """torch.nn.functional.interpolate: every mode, by size or factor, antialias included."""
    axes = input.ndim - 2
    lengths = input.shape[2:]
    factors = None if scale_factor is None else per_axis(scale_factor, axes)
    if size is not None:
        sizes = per_axis(size, axes)
    else:
        sizes = tuple([int(n * f) for n, f in zip(lengths, factors)])
    if mode == "area":
        return area(input, sizes)
    pixels = input.dtype == ms.uint8 and mode not in ("nearest", "nearest-exact")
    for axis in range(axes)[::-1] if pixels else range(axes):
        n, m = lengths[axis], sizes[axis]
        ratio = source_step(n, m, align_corners)
        if factors is not None and not recompute_scale_factor and not align_corners:
            ratio = 1.0 / factors[axis]
        if n != m or ratio != 1.0:
            values = input.astype(ms.float32) if pixels else input
            values = resampled(values, axis + 2, m, ratio, mode, align_corners, antialias)
            # torch rounds pixels behind each axis, the last axis first
            input = ops.floor(values + 0.5).clamp(0, 255).astype(ms.uint8) if pixels else values
    return input


class Upsample(nn.Cell):
    """Reproduces torch.nn.Upsample."""

    def __init__(
        self,
        size=None,
        scale_factor=None,
        mode="nearest",
        align_corners=None,
        recompute_scale_factor=None,
    ):
        super().__init__()
        self.size, self.scale_factor, self.mode = size, scale_factor, mode
        self.align_corners = align_corners
        self.recompute_scale_factor = recompute_scale_factor

    def construct(self, x):
        return interpolate(
            x,
            self.size,
            self.scale_factor,
            self.mode,
            self.align_corners,
            self.recompute_scale_factor,
        )
