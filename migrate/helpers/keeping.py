"""In: a Cell, a name and a value. Out: the member, in PyNative; nothing in graph mode."""

import mindspore as ms
from mindspore import ops


@ops.constexpr
def is_pynative():
    """Whether code runs line by line: known when graph mode compiles it."""
    return ms.get_context("mode") == ms.PYNATIVE_MODE


def keep(cell, name, value):
    """``cell.name = value`` for those who look at it later, in PyNative.

    Graph mode keeps nothing but Parameters on a Cell: there the member stays what it was.
    """
    if is_pynative():
        setattr(cell, name, value)
