"""In: an attribute of what may be a record. Out: the record that has it, or why it stays as it is.

What stays is an attribute of a dict in graph mode, which has none: that is an error there and never
another number. So it costs the place a flag, and the class keeps its form.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from functools import partial

from migrate.analysis.program import Class, Function
from migrate.analysis.types.inference import Inference
from migrate.analysis.types.kinds import Atom, Kind, ordered
from migrate.rules.record_writes import is_own

_PYTHON: dict[str, type] = {"list": list, "tuple": tuple, "dict": dict, "str": str, "int": int,
                            "float": float, "bool": bool, "None": type(None)}  # fmt: skip
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_NOTHING = ("unknown", "None")
_TORCH = ("torch.Tensor", "torch.nn.Module", "torch.Size")
_WRITTEN = "graph mode binds a variable anew, and who holds the record otherwise keeps the old one"
_OTHER = "graph mode has the dict of its fields, and it may be something else"


@dataclass(frozen=True)
class Record:
    """The fields of a class in their order, and the text of what they are where none is given."""

    key: str
    fields: tuple[str, ...]
    defaults: dict[str, str] = field(default_factory=dict)
    named: bool = False


Field = tuple[Record, str]


def field_of(
    inference: Inference, function: Function, node: ast.Attribute, known: dict[str, Record]
) -> Field | None:
    """The record, and "" or why the attribute is not rewritten; None where there is no record."""
    keys = record_keys(inference, function, node.value, known)
    found = [known[key] for key in keys]
    if not found:
        return None
    kind = _kind(inference, node.value)
    others = [a for a in kind if a.kind != "Object" or a.name not in known]
    may_be = partial(_may_be, inference, function, node, known)
    if not _alike(found, node.attr) or any(map(may_be, others)):
        return found[0], _OTHER
    if isinstance(node.ctx, ast.Load):
        return found[0], ""
    own = not found[0].named and is_own(inference, function, node)
    return found[0], "" if own else _WRITTEN


def record_keys(
    inference: Inference, function: Function, node: ast.AST, known: dict[str, Record]
) -> list[str]:
    """The records that an expression may be. An unknown variable is one if nothing else in the
    project has all the fields that the function asks of it."""
    kind = _kind(inference, node)
    keys = [a.name for a in ordered(kind) if a.kind == "Object" and a.name in known]
    if keys or not isinstance(node, ast.Name) or not all(a.kind in _NOTHING for a in kind):
        return keys
    name = _variables(inference, function).get(id(node), node.id)
    return eliminated(inference, function, known).get(name, [])


def _alike(found: list[Record], name: str) -> bool:
    """Whether one spelling reads the field of each: a name, or the same place of a tuple."""
    if any(name not in r.fields for r in found) or len({r.named for r in found}) > 1:
        return False
    return not found[0].named or len({r.fields.index(name) for r in found}) == 1


def _may_be(
    inference: Inference,
    function: Function,
    node: ast.Attribute,
    known: dict[str, Record],
    atom: Atom,
) -> bool:
    """Whether something else has all that the function asks of the variable."""
    asked = asked_of(inference, function, node)
    if atom.kind in _PYTHON:
        return all(hasattr(_PYTHON[atom.kind], a) for a in asked)
    if atom.kind == "Tensor":
        return all(f"torch.Tensor.{a}" in inference.table.torch.names for a in asked)
    if atom.kind != "unknown":
        return True
    records = set(record_keys(inference, function, node.value, known))
    return any(asked <= names for k, names in members(inference).items() if k not in records)


def asked_of(inference: Inference, function: Function, node: ast.Attribute) -> set[str]:
    """All that the function asks of the variable of which it asks this attribute."""
    name = _variables(inference, function).get(id(node.value), "")
    return _asked(inference, function).get(name, {node.attr})


def eliminated(
    inference: Inference, function: Function, known: dict[str, Record]
) -> dict[str, list[str]]:
    """The record by the variable of which nothing else has what the function asks."""
    notes = inference.program.notes.setdefault("eliminated records", {})
    place = (function.key, tuple(known))
    if place not in notes:
        asked = _asked(inference, function).items()
        keys = {name: _only(inference, attributes, known) for name, attributes in asked}
        notes[place] = {name: [key] for name, key in keys.items() if key}
    found: dict[str, list[str]] = notes[place]
    return found


def _only(inference: Inference, asked: set[str], known: dict[str, Record]) -> str:
    fits = [r for r in known.values() if asked and asked <= set(r.fields)]
    if len(fits) != 1 or fits[0].named:
        return ""
    others = (n for k, n in members(inference).items() if k != fits[0].key)
    library = inference.table.torch.names
    torchs = (all(f"{owner}.{a}" in library for a in asked) for owner in _TORCH)
    pythons = (all(hasattr(t, a) for a in asked) for t in _PYTHON.values())
    return "" if any(asked <= n for n in others) or any((*torchs, *pythons)) else fits[0].key


def _variables(inference: Inference, function: Function) -> dict[int, str]:
    """The variable by the place of its name; what a comprehension binds is one of its own."""
    notes = inference.program.notes.setdefault("variables", {})
    if function.key not in notes:
        names = [n for n in function.nodes if isinstance(n, ast.Name)]
        notes[function.key] = found = {id(n): n.id for n in names}
        for number, node in enumerate(n for n in function.nodes if isinstance(n, _COMPREHENSIONS)):
            inside = [n for n in ast.walk(node) if isinstance(n, ast.Name)]
            bound = {n.id for n in inside if isinstance(n.ctx, ast.Store)}
            found |= {id(n): f"{n.id} {number}" for n in inside if n.id in bound}
    known: dict[int, str] = notes[function.key]
    return known


def _asked(inference: Inference, function: Function) -> dict[str, set[str]]:
    """What is read and written of each variable, and of those that it is given to."""
    notes = inference.program.notes.setdefault("asked of variables", {})
    if function.key not in notes:
        names, asked = _variables(inference, function), dict[str, set[str]]()
        for node in function.nodes:
            if isinstance(node, ast.Attribute) and id(node.value) in names:
                asked.setdefault(names[id(node.value)], set()).add(node.attr)
        for one in (a for several in function.assigned.values() for a in several):
            if isinstance(one.value, ast.Name):
                parts = [names[id(n)] for n in (one.value, *one.targets) if id(n) in names]
                ends = [asked.setdefault(name, set()) for name in parts]
                both = set().union(*ends)
                asked |= {n: both for n, own in asked.items() if any(own is e for e in ends)}
        notes[function.key] = asked
    found: dict[str, set[str]] = notes[function.key]
    return found


def members(inference: Inference) -> dict[str, frozenset[str]]:
    """What the objects of each class of the program have, by the class."""
    notes = inference.program.notes
    if "members of classes" not in notes:
        classes = inference.program.classes
        notes["members of classes"] = {k: _names(inference, c, ()) for k, c in classes.items()}
    found: dict[str, frozenset[str]] = notes["members of classes"]
    return found


def _names(inference: Inference, owner: Class, seen: tuple[str, ...]) -> frozenset[str]:
    names = {*owner.methods, *owner.stores}
    for statement in owner.node.body:
        targets = getattr(statement, "targets", [getattr(statement, "target", None)])
        names |= {t.id for t in targets if isinstance(t, ast.Name)}
    for kind in inference.bases(owner.key):
        for atom in kind:
            base = inference.program.classes.get(atom.name)
            if base is not None and base.key not in seen:
                names |= _names(inference, base, (*seen, owner.key))
    return frozenset(names)


def _kind(inference: Inference, node: ast.AST) -> Kind:
    return inference.kinds.get(id(node), frozenset())
