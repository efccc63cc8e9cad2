"""In: a class and its fields. Out: the object in PyNative, its fields alone in graph mode."""

from migrate.helpers.keeping import is_pynative


class Subscripted:
    """A record whose fields are read and written as those of a dict: ``out["logits"]``."""

    def __getitem__(self, name):
        return getattr(self, name)

    def __setitem__(self, name, value):
        setattr(self, name, value)

    def update(self, fields):
        for name, value in fields.items():
            setattr(self, name, value)


def record(kind, **fields):
    """``kind(**fields)``; in graph mode, which makes no objects, the dict of the fields."""
    if is_pynative():
        return kind(**fields)
    return fields


def is_record(value, kind, *fields):
    """isinstance(value, kind): in graph mode, whether it is a dict of these fields."""
    if is_pynative():
        return isinstance(value, kind)
    if not isinstance(value, dict):
        return False
    found = True
    for name in fields:
        found = found and name in value
    return found


def named_record(kind, *fields):
    """``kind(*fields)`` of a NamedTuple; in graph mode a plain tuple."""
    if is_pynative():
        return kind(*fields)
    return fields


class Namespace:
    """What a small module of torch has, under torch's names: it stands where that is passed on."""

    def __init__(self, **named):
        self.__dict__.update(named)
