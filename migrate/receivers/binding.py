"""In: a target and the kind of its value, or a test. Out: the frame with its variables so known."""

from __future__ import annotations

import ast

from migrate.receivers import class_texts, narrowing
from migrate.receivers.frame import Frame
from migrate.receivers.kinds import (
    NONE,
    NOTHING,
    UNKNOWN,
    Atom,
    Kind,
    element,
    indirect,
    join,
    kind,
    may_be_any_module,
    place,
    sequence,
    shallow,
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
        """Use what a test tells about names: isinstance, ``is None``, truth, a class's name."""
        if holds and (told := class_texts.asked(test, self.function)):
            self._narrow_class(told)
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
            elif isinstance(test.ops[0], (ast.Is, ast.Eq, ast.In)) and holds:
                if isinstance(test.left, ast.Call):
                    self._narrow_type(test.left, test.comparators[0])
                elif isinstance(test.ops[0], ast.In):
                    self._narrow_member(test.left, test.comparators[0])
        elif isinstance(test, ast.Call):
            self._narrow_isinstance(test, holds)
        elif isinstance(test, ast.Name) and holds:
            self._narrow_none(test, False)

    def _narrow_none(self, node: ast.expr, is_none: bool) -> None:
        if isinstance(node, ast.Name) and node.id in self.env:
            # a new object, by which an ``if`` sees what its test has told
            value = frozenset(a for a in self.env[node.id] if a.kind != "None")
            self.env[node.id] = NONE if is_none else value or UNKNOWN

    def _narrow_isinstance(self, test: ast.Call, holds: bool) -> None:
        if getattr(test.func, "id", "") != "isinstance" or len(test.args) != 2:
            return
        subject, classes = test.args
        if not isinstance(subject, ast.Name) or subject.id not in self.env:
            return
        value, tested = self.env[subject.id], self.kind(classes)
        if holds:
            self.env[subject.id] = narrowing.holding(value, tested, self.world) or value
        else:
            self.env[subject.id] = narrowing.failing(value, tested, self.world)

    def _narrow_type(self, call: ast.Call, classes: ast.expr) -> None:
        """``type(m) is nn.ReLU``, ``type(m) in (nn.ReLU, nn.SiLU)``: m is one of them."""
        subject = call.args[0] if getattr(call.func, "id", "") == "type" and call.args else None
        if not isinstance(subject, ast.Name) or subject.id not in self.env:
            return
        tested = self.kind(classes)
        if any(a.kind in ("list", "tuple") for a in tested):
            tested = element(tested)
        value = self.env[subject.id]
        self.env[subject.id] = narrowing.holding(value, tested, self.world) or value

    def _narrow_class(self, tests: tuple[class_texts.Asked, ...]) -> None:
        """``"Conv" in m.__class__.__name__``: of a Module that may be any, it is such a layer."""
        subject = tests[0].subject
        value, table, program = self.env.get(subject, NOTHING), self.world.table, self.world.program
        if not may_be_any_module(value):
            return
        layers = sorted(class_texts.meant(tests, table, program))
        own = [c for c in program.classes.values() if any(a.meets(c.name) for a in tests)]
        bases = [row for c in own for b in self.world.torch_bases(c.key) for row in table.rows(b)]
        keeping = any("weight" in c.stores for c in own)
        renaming = any(row.weights for name in layers for row in table.rows(name))
        if (keeping and renaming) or any(row.weights for row in bases):
            return  # that class says what its weights are called
        found = [kind("Module", n) for n in layers]
        if subject in self.env and found:
            self.env[subject] = join(*found)

    def _narrow_member(self, node: ast.expr, items: ast.expr) -> None:
        """``layer in LAYERS``: of a table of classes, it is one of them."""
        each = element(self.world.kinds.get(id(items), UNKNOWN))
        classes = all(a.kind in ("class", "ref") for a in each)
        if classes and isinstance(node, ast.Name) and self.env.get(node.id, NOTHING) >= UNKNOWN:
            self.env[node.id] = each


def _with_element(atom: Atom, key: str, value: Kind) -> Atom:
    """A container with one more element; what is unknown counts where its keys are written."""
    if atom.kind not in ("list", "dict") or atom.fixed or not atom.items:
        return atom
    keys = tuple(dict.fromkeys((*atom.keys, key))) if atom.keys else ()
    added = value if keys else value - UNKNOWN
    return Atom(atom.kind, atom.name, (join(*atom.items, shallow(added)),), keys)
