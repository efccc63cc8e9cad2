"""In: the fields of a namedtuple. Out: a class of the same records that graph mode keeps."""

from collections import namedtuple
from functools import total_ordering
from operator import itemgetter


@total_ordering
class NamedFields:
    """A record that behaves as a namedtuple and is no tuple: graph mode keeps its class."""

    def __new__(cls, *args, **kwargs):
        made = object.__new__(cls)
        object.__setattr__(made, "_row", cls._plain(*args, **kwargs))
        return made

    def __getnewargs__(self):
        return tuple(self._row)

    def __getstate__(self):
        return {k: v for k, v in vars(self).items() if k != "_row"} or None

    def __setattr__(self, name, value):
        if name in self._fields:
            raise AttributeError("can't set attribute")
        object.__setattr__(self, name, value)

    def __iter__(self):
        return iter(self._row)

    def __len__(self):
        return len(self._row)

    def __getitem__(self, index):
        return self._row[index]

    def __add__(self, other):
        return tuple(self._row) + tuple(other)

    def __radd__(self, other):
        return tuple(other) + tuple(self._row)

    def __mul__(self, times):
        return self._row * times

    __rmul__ = __mul__

    def __eq__(self, other):
        return self._row == (other._row if isinstance(other, NamedFields) else other)

    def __lt__(self, other):
        return self._row < (other._row if isinstance(other, NamedFields) else other)

    def __hash__(self):
        return hash(self._row)

    def __repr__(self):
        return type(self).__name__ + repr(self._row)[len(self._plain.__name__) :]

    @classmethod
    def _make(cls, iterable):
        return cls.__new__(cls, *iterable)

    def _asdict(self):
        return self._row._asdict()

    def _replace(self, **changes):
        made = object.__new__(type(self))
        object.__setattr__(made, "_row", self._row._replace(**changes))
        return made

    def count(self, value):
        return self._row.count(value)

    def index(self, *args):
        return self._row.index(*args)


def named_fields(typename, field_names, *, rename=False, defaults=None, module=None):
    """Reproduces collections.namedtuple, but for isinstance(record, tuple).

    Graph mode takes a tuple of any class for a plain one: isinstance(record, Record) is False there
    and the record has no properties. It keeps objects of other classes as they are.
    """
    plain = namedtuple(typename, field_names, rename=rename, defaults=defaults, module=module)
    members = {name: property(itemgetter(i)) for i, name in enumerate(plain._fields)}
    members.update(_plain=plain, _fields=plain._fields, _field_defaults=plain._field_defaults)
    return type(typename, (NamedFields,), members)
