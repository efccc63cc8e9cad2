"""In: a Cell, a name and a value. Out: the member, in PyNative; nothing in graph mode."""

import functools

from mindspore import ops


@ops.constexpr(check=False)
def is_nothing(value):
    """Whether a value is None: graph mode hands None in place of a function."""
    return value is None


def is_pynative():
    """Whether code runs line by line: known when graph mode, or ``jit``, compiles it."""

    def function():
        return None

    return not is_nothing(function)


def keep(cell, name, value):
    """``cell.name = value`` for those who look at it later, in PyNative.

    Graph mode keeps nothing but Parameters on a Cell: there the member stays what it was.
    """
    if is_pynative():
        setattr(cell, name, value)


def pynative_only(reason):
    """Raise NotImplementedError when graph mode compiles the call; do nothing in PyNative.

    It stands before what graph mode would compile to something else, without a word.
    """
    if not is_pynative():
        raise NotImplementedError(reason)


def wraps(function):
    """functools.wraps without ``__wrapped__``, which graph mode compiles in the wrapper's place."""

    def named(wrapper):
        functools.update_wrapper(wrapper, function)
        del wrapper.__wrapped__
        return wrapper

    return named
