"""In: a target and the kind of its value, or a test. Out: the frame with its variables so known."""

from __future__ import annotations

import ast

from migrate.receivers import values
from migrate.receivers.frame import Frame
from migrate.receivers.kinds import (
    BOOL,
    FLOAT,
    INT,
    NONE,
    NOTHING,
    STR,
    TENSOR,
    UNKNOWN,
    Atom,
    Kind,
    element,
    indirect,
    join,
    kind,
    place,
    sequence,
    shallow,
    without_none,
)


class Binding(Frame):
    """Assigns kinds to targets, and uses what tests tell about names."""

    def bind(self, target: ast.expr, value: Kind) -> None:
        """Assign a kind to a target: a name, an attribute, a tuple of targets."""
        self.world.kinds[id(target)] = value
        if isinstance(target, ast.Name):
            self.bound(target.id, indirect(self.recalled(target, value)))
        elif isinstance(target, ast.Attribute):
            self.kind(target.value)
            self.stored(target, indirect(value))
        elif isinstance(target, (ast.Tuple, ast.List)):
            for index, item in enumerate(target.elts):
                if isinstance(item, ast.Starred):
                    self.bind(item.value, sequence("list", element(value)))
                else:
                    self.bind(item, place(value, index))
        elif isinstance(target, ast.Subscript):
            self._put(target, self.kind(target.value), indirect(value))
            self.kind(target.slice)

    def _put(self, target: ast.Subscript, holder: Kind, value: Kind) -> None:
        """``d["a"] = x``: what is put into a list or dictionary belongs to its elements."""
        key = target.slice.value if isinstance(target.slice, ast.Constant) else "?"
        grown = frozenset(_with_element(atom, str(key), value) for atom in holder)
        if grown != holder and isinstance(target.value, (ast.Name, ast.Attribute)):
            self.bind(target.value, grown)

    def bound(self, name: str, value: Kind) -> None:
        self.env[name] = value

    def stored(self, target: ast.Attribute, value: Kind) -> None:
        """Overridden where attributes are collected."""

    def narrow(self, test: ast.expr, holds: bool) -> None:
        """Use what a test tells about names: isinstance, ``is None``, truth."""
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            self.narrow(test.operand, not holds)
        elif isinstance(test, ast.BoolOp):
            if isinstance(test.op, ast.And) == holds:
                for value in test.values:
                    self.narrow(value, holds)
        elif isinstance(test, ast.Compare) and len(test.ops) == 1:
            none = isinstance(test.comparators[0], ast.Constant) and (
                test.comparators[0].value is None
            )
            if none and isinstance(test.ops[0], (ast.Is, ast.IsNot)):
                self._narrow_none(test.left, isinstance(test.ops[0], ast.Is) == holds)
        elif isinstance(test, ast.Call):
            self._narrow_isinstance(test, holds)
        elif isinstance(test, ast.Name) and holds:
            self._narrow_none(test, False)

    def _narrow_none(self, node: ast.expr, is_none: bool) -> None:
        if isinstance(node, ast.Name) and node.id in self.env:
            value = self.env[node.id]
            self.env[node.id] = NONE if is_none else without_none(value) or UNKNOWN

    def _narrow_isinstance(self, test: ast.Call, holds: bool) -> None:
        if getattr(test.func, "id", "") != "isinstance" or len(test.args) != 2:
            return
        subject, classes = test.args
        if not isinstance(subject, ast.Name) or subject.id not in self.env:
            return
        parts = classes.elts if isinstance(classes, ast.Tuple) else [classes]
        found = [self._instance_kind(self.kind(p)) for p in parts]
        if all(found) and holds:
            self.env[subject.id] = join(*found)
        elif all(found) and TENSOR in found:
            self.env[subject.id] = (self.env[subject.id] - TENSOR) or UNKNOWN

    def _instance_kind(self, value: Kind) -> Kind:
        found = []
        for atom in value:
            if atom.kind == "ref" and atom.name == "torch.Tensor":
                found.append(TENSOR)
            elif atom.kind in ("ref", "class"):
                found.append(values.instance_of(atom, (), self.world))
            elif atom.kind == "builtin":
                known = {"int": INT, "float": FLOAT, "str": STR, "bool": BOOL}
                plain = kind(atom.name) if atom.name in ("list", "tuple", "dict") else UNKNOWN
                found.append(known.get(atom.name, plain))
            elif atom.kind == "foreign":
                found.append(kind("instance", atom.name))
            elif atom.kind == "tuple":
                found.extend(self._instance_kind(i) for i in atom.items)
            else:
                return NOTHING
        return join(*found)


def _with_element(atom: Atom, key: str, value: Kind) -> Atom:
    """A container with one more element; what is unknown counts where its keys are written."""
    if atom.kind not in ("list", "dict") or atom.fixed or not atom.items:
        return atom
    keys = tuple(dict.fromkeys((*atom.keys, key))) if atom.keys else ()
    added = value if keys else value - UNKNOWN
    return Atom(atom.kind, atom.name, (join(*atom.items, shallow(added)),), keys)
