"""Index of the units of a program: what each defines, calls, stores, and binds in outer scopes."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field

from migrate.analysis.program import Class, File, Function, Program
from migrate.analysis.types.captured import bound_in
from migrate.syntax.trees import all_parameters, children, last_name

Unit = Function | str  # a function, or the top level of the file at a path


@dataclass(eq=False)
class UnitIndex:
    """The statements and functions directly in a unit; built once, as the trees do not change."""

    program: Program
    stored_attributes: set[str] = field(default_factory=set)
    annotation_ids: set[int] = field(default_factory=set)
    fields: set[int] = field(default_factory=set)  # what the constructor of a record may set
    _calls: dict[Unit, list[ast.Call]] = field(default_factory=dict)
    _stores: dict[Unit, list[ast.Attribute]] = field(default_factory=dict)
    _functions: dict[Unit, list[Function]] = field(default_factory=dict)
    _classes: dict[Unit, list[Class]] = field(default_factory=dict)
    _read: dict[Unit, list[ast.expr]] = field(default_factory=dict)
    _annotations: dict[Unit, list[ast.expr]] = field(default_factory=dict)
    _writers: dict[tuple[Unit, str], list[Function]] = field(default_factory=dict)
    _nested: dict[Function, list[Function]] = field(default_factory=dict)
    _declared: dict[Unit, dict[str, ast.expr]] = field(default_factory=dict)
    _declared_members: dict[tuple[str, str], tuple[Unit, ast.expr]] = field(default_factory=dict)
    _silent: dict[Function, bool] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for file in self.program.files.values():
            for calls in file.calls.values():
                for call, caller in calls:
                    self._calls.setdefault(caller or file.path, []).append(call)
            for function in file.functions.values():
                self._define(function)
            for owner in file.classes.values():
                self._classes.setdefault(self.around(owner), []).append(owner)
                self._read.setdefault(self.around(owner), []).extend(owner.node.bases)
            for annotated in file.of(ast.AnnAssign):
                self._declare(file, annotated)
            for node in file.of(ast.Attribute):
                if isinstance(node.ctx, ast.Store):
                    unit = self.unit_of(file, node)
                    self._stores.setdefault(unit, []).append(node)
                    self.stored_attributes.add(node.attr)

    def is_field(self, node: ast.AnnAssign) -> bool:
        """Return whether the constructor of a record may set what a class body declares."""
        return id(node) in self.fields

    def _define(self, function: Function) -> None:
        unit = self.around(function)
        self._functions.setdefault(unit, []).append(function)
        node = function.node
        found = [d for d in (*node.args.defaults, *node.args.kw_defaults) if d is not None]
        if not isinstance(node, ast.Lambda):
            found += node.decorator_list
        self._read.setdefault(unit, []).extend(found)
        written = [a.annotation for a in all_parameters(node.args) if a.annotation is not None]
        if not isinstance(node, ast.Lambda) and node.returns is not None:
            written.append(node.returns)
        self._annotations.setdefault(unit, []).extend(written)
        self.annotation_ids.update(map(id, written))
        for name in function.globals:
            self._writers.setdefault((self._bound_in(function, name), name), []).append(function)
        method = function.parent
        while method is not None:
            if method.owner is not None:
                self._nested.setdefault(method, []).append(function)
                break
            method = method.parent

    def _declare(self, file: File, node: ast.AnnAssign) -> None:
        """Note what an annotation says of a variable, or of an attribute of a class."""
        unit = self.unit_of(file, node)
        owner = file.classes.get(id(file.parents.get(id(node))))
        if owner is not None and _is_record(owner.node):
            self.fields.add(id(node))
        name = node.target.id if isinstance(node.target, ast.Name) else ""
        if isinstance(node.target, ast.Attribute) and isinstance(node.target.value, ast.Name):
            method = unit
            while isinstance(method, Function) and method.owner is None and method.parent:
                method = method.parent
            if isinstance(method, Function) and method.owner is not None and method.parameters:
                own = node.target.value.id == method.parameters[0].arg
                owner, name = method.owner if own else None, node.target.attr
        if owner is not None and name:
            self._declared_members.setdefault((owner.key, name), (unit, node.annotation))
            self._annotations.setdefault(unit, []).append(node.annotation)
            self.annotation_ids.add(id(node.annotation))
        elif name and isinstance(node.target, ast.Name):
            self._declared.setdefault(unit, {}).setdefault(name, node.annotation)

    def declared(self, unit: Unit, name: str) -> ast.expr | None:
        """Return the annotation of a variable of a unit."""
        return self._declared.get(unit, {}).get(name)

    def declared_member(self, key: str, name: str) -> tuple[Unit, ast.expr] | None:
        """Return the annotation of an attribute, in the body or a method of its class."""
        return self._declared_members.get((key, name))

    def _bound_in(self, function: Function, name: str) -> Unit:
        """The unit whose variable ``global`` or ``nonlocal`` means."""
        return bound_in(function, name) or function.path

    def around(self, item: Function | Class) -> Unit:
        """Return the unit that a function or class is defined in."""
        return item.parent or item.path

    def unit_of(self, file: File, node: ast.AST) -> Unit:
        """Return the unit of a node."""
        outer = file.parents.get(id(node))
        return (file.function_at(outer) if outer is not None else None) or file.path

    def calls(self, unit: Unit) -> Sequence[ast.Call]:
        """Return the calls that stand in a unit."""
        return self._calls.get(unit, ())

    def stores(self, unit: Unit) -> Sequence[ast.Attribute]:
        """Return the attributes that a unit assigns to."""
        return self._stores.get(unit, ())

    def functions(self, unit: Unit) -> Sequence[Function]:
        """Return the functions that are defined in a unit, methods included."""
        return self._functions.get(unit, ())

    def classes(self, unit: Unit) -> Sequence[Class]:
        """Return the classes that are defined in a unit."""
        return self._classes.get(unit, ())

    def read_by_node(self, unit: Unit) -> Sequence[ast.expr]:
        """Return the defaults, decorators and bases in a unit."""
        return self._read.get(unit, ())

    def annotations(self, unit: Unit) -> Sequence[ast.expr]:
        """Return the annotations of the functions that are defined in a unit."""
        return self._annotations.get(unit, ())

    def writers(self, unit: Unit, name: str) -> Sequence[Function]:
        """Return the functions that bind a variable of the unit by ``global`` or ``nonlocal``."""
        return self._writers.get((unit, name), ())

    def nested(self, method: Function) -> Sequence[Function]:
        """Return the functions defined inside a method, at any depth."""
        return self._nested.get(method, ())

    def gives_nothing(self, function: Function) -> bool:
        """Whether a function has no ``return`` with a value and no ``yield``."""
        if function not in self._silent:
            self._silent[function] = self._gives_nothing(function)
        return self._silent[function]

    def _gives_nothing(self, function: Function) -> bool:
        inner = {id(f.node) for f in self._functions.get(function, ())}
        todo: list[ast.AST] = (
            list(function.node.body) if isinstance(function.node.body, list) else []
        )
        while todo:
            node = todo.pop()
            if isinstance(node, ast.Return) and node.value is not None:
                return False
            if isinstance(node, (ast.Yield, ast.YieldFrom)):
                return False
            if id(node) not in inner:
                todo += children(node)
        return True


_RECORDS = frozenset({"dataclass", "define", "frozen", "mutable", "s", "attrs"})


def _is_record(node: ast.ClassDef) -> bool:
    """Return whether a decorator makes a constructor of the annotated names of a class."""
    called = (d.func if isinstance(d, ast.Call) else d for d in node.decorator_list)
    return not _RECORDS.isdisjoint(last_name(func) for func in called)
