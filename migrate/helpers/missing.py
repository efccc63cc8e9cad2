"""In: the message of a flag. Out: an object that stands where torch code had no counterpart."""


class MissingType(type):
    """The class of classes derived from something missing: their attributes raise as well."""

    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        raise NotImplementedError(cls.__missing__)


class Missing:
    """Stands for something that was not converted: importing the file works, using it raises.

    Raises NotImplementedError with the flag's message on call, attribute, index, iteration, truth
    and arithmetic; a class derived from it raises when it is instantiated.
    """

    def __init__(self, message):
        self.__dict__["message"] = message

    def _fail(self, *args, **kwargs):
        raise NotImplementedError(self.__dict__["message"])

    __call__ = __getitem__ = __setitem__ = __iter__ = __len__ = __bool__ = __contains__ = _fail
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = _fail
    __enter__ = __exit__ = __setattr__ = __lt__ = __gt__ = __le__ = __ge__ = _fail

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        self._fail()

    def decorate(self, function):
        """As a decorator: the decorated name raises when it is used."""
        return self

    def __mro_entries__(self, bases):
        message = self.__dict__["message"]

        def fail(cls, *args, **kwargs):
            raise NotImplementedError(message)

        return (MissingType("MissingBase", (), {"__new__": fail, "__missing__": message}),)
