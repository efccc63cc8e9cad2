"""In: a Cell, a name and a value. Out: the member, in PyNative; nothing in graph mode."""

import functools

import mindspore as ms
from mindspore import ops
from mindspore.graph.api import _pynative_executor


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


def refuse(reason):
    """Raise NotImplementedError, where an expression cannot."""
    raise NotImplementedError(reason)


def random_number(draw, *bounds):
    """``draw(*bounds)``, of numbers between the bounds, or 0 and 1.

    Graph mode would ask Python once, when it compiles; MindSpore draws at each call.
    """
    if is_pynative():
        return draw(*bounds)
    number = ops.rand(1)
    return number if len(bounds) == 0 else bounds[0] + (bounds[1] - bounds[0]) * number


def compile_anew():
    """Make graph mode compile again: what has just changed is a constant of its graphs.

    Not while PyNative computes a gradient, of which nothing would be left.
    """
    if not _pynative_executor.grad_flag():
        ms.ms_memory_recycle()


def wraps(function):
    """functools.wraps without ``__wrapped__``, which graph mode compiles in the wrapper's place,
    and ``__module__``, where it looks up the names that the wrapper uses.
    """

    def named(wrapper):
        own = wrapper.__module__
        functools.update_wrapper(wrapper, function)
        wrapper.__module__ = own
        del wrapper.__wrapped__
        return wrapper

    return named


def with_none(outputs, count, at_end=True):
    """``count`` results: a graph leaves None at the end of a tuple out.

    Raises TypeError where None may be in front of others: a graph moves those.
    """
    if not isinstance(outputs, (tuple, list)) or len(outputs) >= count:
        return outputs
    if not at_end:
        raise TypeError("torch2ms GRF615: a graph leaves None out of a tuple; return it last")
    more = [None] * (count - len(outputs))
    return (*outputs, *more) if isinstance(outputs, tuple) else [*outputs, *more]


def with_form(outputs, form):
    """What a Cell returns, with its dicts: a graph gives the tuple of their values.

    ``form`` has dicts, lists and tuples as they are returned, and ``...`` for all else. Raises
    TypeError where it is None, which says that it is not known, or does not fit.
    """
    if is_pynative() or form is ...:
        return outputs
    if form is None or len(form) != len(outputs):
        raise TypeError("torch2ms GRF615: a graph gives a tuple for a dict; return a tuple")
    if isinstance(form, dict):
        return {key: with_form(held, form[key]) for key, held in zip(form, outputs)}
    return type(form)(with_form(held, part) for held, part in zip(outputs, form))


def with_keys(outputs, keys):
    """The dict that a Cell returns: a graph gives the tuple of its values.

    Raises TypeError where ``keys`` is None: they are not known.
    """
    if isinstance(outputs, dict):
        return outputs
    if keys is None or len(keys) != len(outputs):
        raise TypeError("torch2ms GRF615: a graph gives a tuple for a dict; return a tuple")
    return dict(zip(keys, outputs))
