"""In: tensors. Out: torch's elementwise functions where MindSpore names or orders arguments otherwise."""

from mindspore import ops


def sqrt(input):
    """torch.sqrt."""
    return ops.sqrt(input)


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
    return ops.add(input, other) if alpha == 1 else ops.add(input, alpha * other)


def sub(input, other, *, alpha=1):
    """torch.sub: input - alpha * other."""
    return ops.sub(input, other) if alpha == 1 else ops.sub(input, alpha * other)


def clamp(input, min=None, max=None):
    """torch.clamp: between ``min`` and ``max``, numbers or tensors; None leaves an end open."""
    return ops.clamp(input, min, max)
