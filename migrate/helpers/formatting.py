"""In: what a text is made from. Out: the number in it, where it may be a Tensor."""

from mindspore import Tensor


def as_number(value):
    """Reproduces how torch formats (``f"{loss:.3f}"``): a Tensor of one element by its number."""
    return value.item() if isinstance(value, Tensor) else value
