"""In: tensors of different shapes and a pattern. Out: einops.pack, unpack and parse_shape."""

import mindspore as ms
from mindspore import ops


@ms.constexpr
def packing_axes(pattern):
    """How many axes stand before and after the star of "b * c"."""
    axes = pattern.split()
    if axes.count("*") != 1 or len(set(axes)) != len(axes):
        raise ValueError(f"einops: pattern {pattern!r} needs one '*' and different names")
    return axes.index("*"), len(axes) - axes.index("*") - 1


def pack(tensors, pattern):
    """einops.pack: the joined tensor, and for each tensor the shape that the star stood for."""
    before, after = packing_axes(pattern)
    flat, shapes = [], []
    for tensor in tensors:
        end = tensor.ndim - after
        shapes.append(tensor.shape[before:end])
        flat.append(tensor.reshape((*tensor.shape[:before], -1, *tensor.shape[end:])))
    return ops.cat(flat, before), shapes


@ms.constexpr
def unpacked_lengths(shape, axis, packed_shapes):
    """The lengths of the parts along the packed axis; one of them may hold a -1."""
    lengths = []
    for one in packed_shapes:
        product = 1
        for size in one:
            product *= size
        lengths.append(product)
    unknown = [i for i, length in enumerate(lengths) if length < 0]
    if unknown:
        lengths[unknown[0]] = shape[axis] - sum(n for n in lengths if n >= 0)
    if len(unknown) > 1 or sum(lengths) != shape[axis] or min(lengths, default=0) < 0:
        raise ValueError(f"einops: shapes {packed_shapes} do not fill axis {axis} of {shape}")
    return tuple(lengths)


def unpack(tensor, packed_shapes, pattern):
    """einops.unpack: the list of tensors that pack has joined."""
    axis, _ = packing_axes(pattern)
    shapes = tuple([tuple(one) for one in packed_shapes])
    lengths = unpacked_lengths(tensor.shape, axis, shapes)
    parts = tensor.split(lengths, axis)
    front, back = tensor.shape[:axis], tensor.shape[axis + 1 :]
    return [part.reshape(front + one + back) for part, one in zip(parts, shapes)]


@ms.constexpr
def shape_names(shape, pattern):
    """The names of a pattern ("b c h w", "b ... c") with the lengths that they stand for."""
    names = pattern.replace("...", " … ").split()
    if "…" in names:
        at = names.index("…")
        names[at : at + 1] = ["_"] * (len(shape) - len(names) + 1)
    if len(names) != len(shape):
        raise ValueError(f"einops: {pattern!r} does not name the axes of shape {shape}")
    return tuple((name, size) for name, size in zip(names, shape) if name != "_")


def parse_shape(x, pattern):
    """einops.parse_shape: a dict from the names of a pattern to the lengths; "_" is left out."""
    # dict() of a constant does not compile in graph mode
    return {name: size for name, size in shape_names(x.shape, pattern)}  # noqa: C416
