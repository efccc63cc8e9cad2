"""What takes the place of torch code without a counterpart: calls and values that raise."""

import contextlib
import sys

from mindspore import Tensor


def unconverted(message):
    """Raises NotImplementedError: the comment above the call has the reason and what to do."""
    raise NotImplementedError(message)


def not_tensor(value, message):
    """Return ``value``; raise NotImplementedError if it is a Tensor.

    The method that is called on it means one thing for a Tensor of torch, another for MindSpore's.
    """
    if isinstance(value, Tensor):
        raise NotImplementedError(message)
    return value


def raise_flag():
    """Raise again, in a ``finally`` that would drop it, what an unconverted line has raised."""
    error = sys.exc_info()[1]
    if isinstance(error, NotImplementedError) and str(error).startswith("torch2ms "):
        raise error


class suppressed(contextlib.suppress):
    """``contextlib.suppress`` that lets through what an unconverted line raises."""

    def __exit__(self, kind, error, trace):
        flagged = isinstance(error, NotImplementedError) and str(error).startswith("torch2ms ")
        return False if flagged else super().__exit__(kind, error, trace)


class MissingType(type):
    """The class of classes derived from something missing: their attributes raise as well."""

    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        raise NotImplementedError(cls.__missing__)


class Missing:
    """Stands for a value that was not converted: importing the file works, using it raises.

    Raises NotImplementedError on call, attribute, index, iteration, truth, comparison, arithmetic
    and formatting; a class derived from it raises when it is instantiated. It may be part of an
    annotation (``X | None``). What Python itself made is no instance of it; others raise, but
    where it stands for a class that has ``no_objects`` here.
    """

    error = type("MissingError", (Exception,), {"__doc__": "For except clauses: nobody raises it."})
    __hash__ = object.__hash__

    def __init__(self, message, no_objects=False):
        self.__dict__["message"] = message
        self.__dict__["no_objects"] = no_objects

    def __repr__(self):
        return f"Missing({self.__dict__['message']!r})"

    def _fail(self, *args, **kwargs):
        raise NotImplementedError(self.__dict__["message"])

    __getitem__ = __setitem__ = __delitem__ = __iter__ = __next__ = __len__ = __contains__ = _fail
    __bool__ = __int__ = __float__ = __index__ = __complex__ = __str__ = __format__ = _fail
    __lt__ = __gt__ = __le__ = __ge__ = __enter__ = __exit__ = __setattr__ = __delattr__ = _fail
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = _fail
    __rtruediv__ = __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __pow__ = __rpow__ = _fail
    __matmul__ = __rmatmul__ = __and__ = __rand__ = __xor__ = __rxor__ = __lshift__ = _fail
    __rlshift__ = __rshift__ = __rrshift__ = __neg__ = __pos__ = __abs__ = __invert__ = _fail
    __array__ = __await__ = __round__ = _fail

    def __call__(self, *args, **kwargs):
        if len(args) == 3 and isinstance(args[2], dict) and "__module__" in args[2]:
            return self  # as a metaclass: the class is missing
        return self._fail()

    def __eq__(self, other):
        return True if other is self else self._fail()

    def __ne__(self, other):
        return False if other is self else self._fail()

    def __or__(self, other):
        annotated = other is None or isinstance(other, (type, str, Missing))
        return self if annotated or type(other).__module__ in ("types", "typing") else self._fail()

    __ror__ = __or__

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        self._fail()

    def __instancecheck__(self, value):
        plain = type(value).__module__ == "builtins" and type(value) is not tuple
        return False if plain or self.__dict__["no_objects"] else self._fail()

    def __subclasscheck__(self, value):
        known = self.__dict__["no_objects"] or value.__module__ == "builtins"
        return False if known else self._fail()

    def decorate(self, function):
        """As a decorator: the decorated name raises when it is used."""
        return self

    def __mro_entries__(self, bases):
        message = self.__dict__["message"]

        def fail(cls, *args, **kwargs):
            raise NotImplementedError(message)

        return (MissingType("MissingBase", (), {"__new__": fail, "__missing__": message}),)
