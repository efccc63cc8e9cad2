"""In: tensors. Out: torch's changes of shape, diagonals and comparisons."""

import mindspore as ms
from mindspore import ops

from migrate.helpers.creation import broadcast_shapes


def flatten(input, start_dim=0, end_dim=-1):
    """torch.flatten: joins the axes from ``start_dim`` to ``end_dim``."""
    return ops.flatten(input, start_dim=start_dim, end_dim=end_dim)


def squeeze(input, dim):
    """torch.squeeze of one or more axes: those of another length than 1 stay."""
    if input.ndim == 0:
        return input
    dims = [axis % input.ndim for axis in ((dim,) if isinstance(dim, int) else dim)]
    shape = input.shape
    return input.reshape([shape[i] for i in range(len(shape)) if not (i in dims and shape[i] == 1)])


def size_numel(size):
    """torch.Size.numel: how many elements a tensor of that size has."""
    count = 1
    for length in size:
        count = count * length
    return count


def diag(input, diagonal=0):
    """torch.diag: a matrix with a vector on a diagonal, or a diagonal of a matrix."""
    if input.ndim == 1:
        return ops.diag_embed(input, diagonal)
    return ops.diagonal(input, diagonal)


def cross(input, other, dim=None):
    """torch.cross along ``dim``, by default the first axis of length 3."""
    if dim is None:
        dim = list(input.shape).index(3)
    shape = broadcast_shapes(input.shape, other.shape)
    return ops.cross(input.broadcast_to(shape), other.broadcast_to(shape), dim)


def bitwise_not(input):
    """torch.bitwise_not: logical for bool, else by bits."""
    return ops.logical_not(input) if input.dtype == ms.bool_ else ops.invert(input)


def inverted(value):
    """``~value`` where it may be a Tensor: MindSpore's ``~`` of whole numbers gives a bool."""
    return bitwise_not(value) if isinstance(value, ms.Tensor) else ~value


def equal(input, other):
    """torch.equal: one Python bool, False for other shapes. PyNative only."""
    return input.shape == other.shape and bool((input == other).all())


def allclose(input, other, rtol=1e-05, atol=1e-08, equal_nan=False):
    """torch.allclose: one Python bool. PyNative only."""
    return bool(ops.isclose(input, other, rtol, atol, equal_nan).all())


def linalg_cross(input, other, *, dim=-1):
    """torch.linalg.cross along ``dim``; the inputs broadcast."""
    return cross(input, other, dim)


def polar(abs, angle):
    """torch.polar: complex numbers of a length and an angle; the inputs broadcast."""
    shape = broadcast_shapes(abs.shape, angle.shape)
    return ops.polar(abs.broadcast_to(shape), angle.broadcast_to(shape))


def hsplit(input, indices_or_sections):
    """torch.hsplit: parts along the second axis, of a 1-d tensor along its only one."""
    return tensor_split(input, indices_or_sections, 0 if input.ndim == 1 else 1)


def tensor_split(input, indices_or_sections, dim=0):
    """torch.tensor_split: into a number of parts, or at places; a tensor of these in PyNative."""
    if isinstance(indices_or_sections, ms.Tensor):
        indices_or_sections = indices_or_sections.tolist()
    length, cuts = input.shape[dim], indices_or_sections
    if isinstance(cuts, int):
        small, longer = length // cuts, length % cuts
        cuts = [small * i + min(i, longer) for i in range(1, cuts)]
    ends = [0, *cuts, length]
    parts = [slice(ends[i], ends[i + 1]) for i in range(len(ends) - 1)]
    return tuple([slice_of(input, dim, part) for part in parts])


def slice_of(input, dim, part):
    """The ``part`` (a slice) of ``input`` along ``dim``."""
    axis = dim + input.ndim if dim < 0 else dim
    return input[tuple([part if i == axis else slice(None) for i in range(input.ndim)])]


def unravel_index(indices, shape):
    """torch.unravel_index: one int64 index tensor for each axis of ``shape``."""
    shape = (shape,) if isinstance(shape, int) else shape
    rest, found = indices.astype(ms.int64), []
    for length in shape[::-1]:
        found.append(rest % length)
        rest = ops.floor_divide(rest, length)
    return tuple(found[::-1])


def copies(tensors):
    """A tuple of new tensors, as torch's ``_copy`` functions give instead of views."""
    return tuple([ops.deepcopy(one) for one in tensors])


def atleast_1d(*tensors):
    """torch.atleast_1d of several tensors, or of a list of them: a tuple."""
    several = tensors[0] if len(tensors) == 1 else tensors
    if not isinstance(several, (list, tuple)):
        return ops.atleast_1d(several)
    return tuple([ops.atleast_1d(tensor) for tensor in several])


def atleast_2d(*tensors):
    """torch.atleast_2d of several tensors, or of a list of them: a tuple."""
    several = tensors[0] if len(tensors) == 1 else tensors
    if not isinstance(several, (list, tuple)):
        return ops.atleast_2d(several)
    return tuple([ops.atleast_2d(tensor) for tensor in several])


def atleast_3d(*tensors):
    """torch.atleast_3d of several tensors, or of a list of them: a tuple."""
    several = tensors[0] if len(tensors) == 1 else tensors
    if not isinstance(several, (list, tuple)):
        return ops.atleast_3d(several)
    return tuple([ops.atleast_3d(tensor) for tensor in several])
