"""In: the installed MindSpore. Out: the facts of every public MindSpore name.

Tensor methods and overloaded functions are dispatched in C++; their signatures stand in the
docstrings, one for each overload: on the first line and after ``.. method::`` or ``.. function::``.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from types import ModuleType
from typing import Any

from migrate.evidence.signature_text import default_source, from_callable, from_def, parse_def

FULL = tuple(
    """
    mindspore mindspore.nn mindspore.nn.probability mindspore.nn.probability.distribution
    mindspore.nn.wrap mindspore.ops mindspore.mint mindspore.mint.nn
    mindspore.mint.nn.functional mindspore.mint.linalg mindspore.mint.special
    mindspore.mint.optim mindspore.mint.distributed mindspore.experimental.optim
    mindspore.experimental.optim.lr_scheduler mindspore.common.dtype
    mindspore.common.initializer mindspore.dataset mindspore.dataset.vision
    mindspore.dataset.transforms mindspore.numpy mindspore.amp mindspore.train
    mindspore.communication mindspore.scipy.linalg mindspore.hal mindspore.runtime
    mindspore.parallel
    """.split()
)
MEMBERS = frozenset(
    """
    mindspore.Tensor mindspore.Parameter mindspore.nn.Cell mindspore.nn.Optimizer
    mindspore.experimental.optim.Optimizer mindspore.nn.SequentialCell mindspore.nn.CellList
    mindspore.nn.CellDict mindspore.dataset.GeneratorDataset mindspore.train.Model
    mindspore.Generator
    """.split()
)
DIRECTIVES = (".. method::", ".. function::")
Entry = list[Any]


def collect() -> tuple[dict[str, Entry], dict[str, str], str]:
    """(names, aliases, version) of the installed MindSpore; see ``migrate.mapping.signatures``."""
    mindspore = importlib.import_module("mindspore")
    names: dict[str, Entry] = {}
    for space in FULL:
        module = importlib.import_module(space)
        names[space] = ["module", "inspect", {}]
        for name in _public(module):
            value: Any = getattr(module, name)
            path = f"{space}.{name}"
            names[path] = _entry(value, path)
            if isinstance(value, type) and "construct" in vars(value):
                texts = from_callable(value.__dict__["construct"], method=True, default=_default)
                names[f"{path}.construct"] = ["method", "inspect", texts]
            if path in MEMBERS:
                names.update(_members(value, path))
    return names, _aliases(names), mindspore.__version__


def _public(module: ModuleType) -> Iterator[str]:
    for name in sorted(set(dir(module)) | set(getattr(module, "__all__", ()))):
        value = getattr(module, name, None)
        if name.startswith("_") or value is None:
            continue
        home = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", "")
        if str(home or "mindspore").partition(".")[0] in ("mindspore", "mindspore_"):
            yield name


def _entry(value: Any, path: str) -> Entry:
    if isinstance(value, ModuleType):
        return ["module", "inspect", {}]
    if isinstance(value, type):
        return _class_entry(value, path)
    if not callable(value):
        return ["constant", "inspect", {}]
    name = path.rpartition(".")[2]
    return ["function", *_callable(value, name, method=False)]


def _class_entry(value: Any, path: str) -> Entry:
    bases = [f"{base.__module__}.{base.__qualname__}" for base in value.__mro__[1:-1]]
    kept = [base for base in bases if base.startswith("mindspore")]
    if value.__init__ is object.__init__ and value.__new__ is object.__new__:
        return ["class", "inspect", {"": "()"}, kept]
    texts = from_callable(value.__init__, method=True, default=_default)
    if not _is_silent(texts):
        return ["class", "inspect", texts, kept]
    if told := _from_docs(value.__doc__, value.__name__) or _from_parent(value):
        return ["class", "docs", told, kept]
    if path == "mindspore.Tensor":  # the constructor is native; ``tensor`` passes its arguments on
        tensor = importlib.import_module("mindspore").tensor
        return ["class", "docs", from_callable(tensor, default=_default), kept]
    return ["class", "inspect", texts or {"": "(*args, **kwargs)"}, kept]


def _from_parent(value: Any) -> dict[str, str]:
    """The recurrent Cells pass (*args, **kwargs) on, after a mode that they choose themselves."""
    for parent in value.__mro__[1:]:
        texts = from_callable(parent.__init__, method=True, default=_default)
        if texts and not _is_silent(texts):
            mode = "(mode, "
            return {
                label: "(" + text[len(mode) :]
                for label, text in texts.items()
                if text.startswith(mode)
            }
    return {}


def _callable(value: Any, name: str, method: bool) -> tuple[str, dict[str, str]]:
    """(source, texts) of a function or method: inspect where it tells something, else the docs."""
    plain = type(value).__call__ if _is_primitive(value) else value
    texts = from_callable(plain, method=method or plain is not value, default=_default)
    if not _is_silent(texts):
        return "inspect", texts
    told = _from_docs(getattr(value, "__doc__", ""), name, drop_self=False)
    return ("docs", told) if told else ("inspect", texts)


def _is_primitive(value: Any) -> bool:
    return not inspect.isroutine(value) and not isinstance(value, type) and hasattr(value, "name")


def _is_silent(texts: Mapping[str, str]) -> bool:
    """Whether inspect found no more than ``(*args, **kwargs)``."""
    return all(
        text.partition(" ->")[0] in ("(*args, **kwargs)", "(*args)", "") for text in texts.values()
    )


def _members(value: type, path: str) -> dict[str, Entry]:
    found: dict[str, Entry] = {}
    for name in sorted(dir(value)):
        if name.startswith("_") and name not in ("__call__",):
            continue
        member = inspect.getattr_static(value, name)
        if isinstance(member, staticmethod | classmethod):
            texts = from_callable(member.__func__, isinstance(member, classmethod), _default)
            found[f"{path}.{name}"] = ["method", "inspect", texts]
        elif isinstance(member, property) or inspect.isdatadescriptor(member):
            found[f"{path}.{name}"] = ["property", "inspect", {}]
        elif callable(member):
            found[f"{path}.{name}"] = ["method", *_callable(member, name, method=True)]
        else:
            found[f"{path}.{name}"] = ["constant", "inspect", {}]
    return found


def _from_docs(text: str | None, name: str, drop_self: bool = False) -> dict[str, str]:
    """The signatures that a docstring states, the first one plain; {} when it states none."""
    found: list[str] = []
    for number, line in enumerate((text or "").strip().splitlines()):
        line = line.strip()
        stated = next(
            (line[len(mark) :].strip() for mark in DIRECTIVES if line.startswith(mark)), ""
        )
        if number == 0 and line.startswith(f"{name}("):
            stated = line
        if stated and stated.partition("(")[0].rpartition(".")[2] == name:
            signature = parse_def(stated)
            if signature is not None:
                found.append(from_def(signature))
    return {("" if i == 0 else f"docs{i}"): one for i, one in enumerate(dict.fromkeys(found))}


def _default(value: Any) -> str:
    """MindSpore's types have names; everything else as for torch."""
    text = str(value)
    if type(value).__module__.startswith("mindspore") and hasattr(value, "__class__"):
        if text.isidentifier() or text.isalnum():
            named = getattr(sys.modules["mindspore"], text.lower(), None)
            if named is not None and named == value:
                return f"mindspore.{text.lower()}"
        return "..."
    return default_source(value)


def _aliases(names: Mapping[str, Entry]) -> dict[str, str]:
    """The module that defines a class or function -> its shortest public name."""
    found: dict[str, str] = {}
    for path in sorted(names, key=lambda name: (name.count("."), len(name), name)):
        space, _, name = path.rpartition(".")
        if names[path][0] not in ("class", "function") or space not in sys.modules:
            continue
        value: Callable[..., Any] = getattr(sys.modules[space], name)
        home = f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', '')}"
        if home.startswith("mindspore.") and home != path and home not in names:
            found.setdefault(home, path)
    return found
