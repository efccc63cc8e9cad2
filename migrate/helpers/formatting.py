"""In: what a text is made from. Out: the number in it, where it may be a Tensor."""

from mindspore import Tensor


def as_number(value):
    """Reproduces how torch formats (``f"{loss:.3f}"``): a Tensor without axes by its number."""
    return value.item() if isinstance(value, Tensor) and value.ndim == 0 else value


def as_numbers(values):
    """The same for the values of a dict: ``text.format(**self.__dict__)``."""
    return {key: as_number(value) for key, value in values.items()}


def as_array(value):
    """What may be a Tensor, for a library that takes arrays of numpy."""
    return value.asnumpy() if isinstance(value, Tensor) else value
