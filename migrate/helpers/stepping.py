"""In: functions and sequences of Tensors. Out: what callable, reduce and next give, in any mode."""

import inspect

import mindspore as ms
from mindspore import nn

from migrate.helpers.keeping import is_pynative


def is_callable(value):
    """callable(value): graph mode asks Python for constants only, and Tensors are none."""
    if is_pynative():
        return callable(value)
    return value is not None and not isinstance(
        value, (ms.Tensor, tuple, list, dict, str, int, float)
    )


def is_function(value):
    """inspect.isfunction(value), also of Tensors in graph mode."""
    if is_pynative():
        return inspect.isfunction(value)
    return is_callable(value) and not isinstance(value, nn.Cell)


def reduced(function, items, *start):
    """functools.reduce(function, items, *start) of a sequence, as the loop that graph mode has."""
    total = start[0] if len(start) > 0 else items[0]
    for item in items if len(start) > 0 else items[1:]:
        total = function(total, item)
    return total


def next_of(items, *default):
    """The first of the items (or the default, where there is none), and the others."""
    if len(items) > 0:
        return items[0], items[1:]
    if len(default) == 0:
        raise StopIteration("nothing is left")
    return default[0], items


def called(function, *args, **kwargs):
    """``function(*args, **kwargs)`` of a partial: graph mode does not call one that is stored."""
    if is_pynative():
        return function(*args, **kwargs)
    return function.func(*function.args, *args, **function.keywords, **kwargs)
