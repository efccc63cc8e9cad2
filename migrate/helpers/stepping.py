"""In: functions, sequences and dicts of Tensors. Out: callable, reduce, next and ** in any mode."""

import inspect

import mindspore as ms
from mindspore import nn
from mindspore.ops import constexpr

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


def begun(items):
    """iter(items), for next_of: graph mode has no iterators, but it has parts of sequences."""
    if isinstance(items, (list, tuple)) or not is_pynative():
        return items
    return iter(items)


def next_of(items, *default):
    """The first of the items (or the default, where there is none), and the others."""
    if is_pynative() and not isinstance(items, (list, tuple)):
        return next(items, *default), items
    if len(items) > 0:
        return items[0], items[1:]
    if len(default) == 0:
        raise StopIteration("nothing is left")
    return default[0], items


def greatest(values, key):
    """max(values, key=key) of a sequence: graph mode's own max takes no key."""
    found = values[0]
    for value in values[1:]:
        if key(value) > key(found):
            found = value
    return found


def least(values, key):
    """min(values, key=key) of a sequence."""
    found = values[0]
    for value in values[1:]:
        if key(value) < key(found):
            found = value
    return found


@constexpr
def of_text(text, method, *given):
    """Call a method of a text: Python does it while a graph is compiled."""
    return getattr(text, method)(*given)


@constexpr
def _order(keys, reverse):
    return sorted(range(len(keys)), key=lambda place: keys[place], reverse=reverse)


def arranged(values, key, reverse=False):
    """sorted(values, key=key, reverse=reverse) of a sequence of Tensors, by what is no Tensor."""
    return [values[place] for place in _order([key(value) for value in values], reverse)]


def called(function, *args, **kwargs):
    """``function(*args, **kwargs)``: graph mode does not call a partial that is stored."""
    if is_pynative() or not hasattr(function, "keywords"):
        return function(*args, **kwargs)
    return function.func(*function.args, *args, **function.keywords, **kwargs)


def bound(function, *first, **named):
    """functools.partial(function, ...): graph mode mixes up the keywords of two partials."""

    def call(*rest, **others):
        return function(*first, *rest, **joined(named, others))

    return call


def exclusive_or(first, second):
    """``first ^ second``: graph mode has it for Tensors and integers, and not for bools."""
    if isinstance(first, bool) and isinstance(second, bool):
        return first != second
    return first ^ second


def is_full(cell):
    """The truth of a Module, which is its length: a Cell is true, in graph mode when empty."""
    if cell is None or not hasattr(cell, "__len__"):
        return cell is not None
    return len(cell) > 0


def joined(*parts):
    """``{**one, **other}``: graph mode does not unpack into a dict."""
    made = {}
    for part in parts:
        made.update(part)
    return made
