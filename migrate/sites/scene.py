"""In: one file of an analysed program. Out: all that a decision about a place in it may look at."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, wraps
from typing import TypeVar

from migrate.analysis.facts import Facts
from migrate.analysis.program import Class, File, Function
from migrate.analysis.types.inference import Inference
from migrate.analysis.types.kinds import UNKNOWN, Kind, ordered, without_none
from migrate.codegen.imports import Spelling
from migrate.mapping.table import Table
from migrate.records.outcomes import Site
from migrate.syntax.source import Source

WITH_NONE = "holding None"
Fact = TypeVar("Fact")
Of = TypeVar("Of", "Scene", Inference)


# what torch takes Python's types for where it wants a dtype
DTYPES = {"int": "mindspore.int64", "float": "mindspore.float64", "bool": "mindspore.bool_"}


@dataclass(frozen=True)
class Scene:
    """A file, its analysis, and how it spells MindSpore names; ``target`` is portable or mint."""

    file: File
    inference: Inference
    spelling: Spelling
    target: str = "portable"
    _memo: dict[str, object] = field(default_factory=dict, compare=False)

    @property
    def source(self) -> Source:
        return self.file.source

    @property
    def table(self) -> Table:
        return self.inference.table

    @cached_property
    def parents(self) -> dict[int, ast.AST]:
        return self.file.parents

    @property
    def neighbours(self) -> tuple[File, ...]:
        """The file, and those whose code may run in one process with it."""
        return self.inference.program.joined(self.file.path)

    def mentions(self, *words: bytes) -> bool:
        """Return whether the text of one of the neighbours holds one of the words."""
        return any(word in file.source.data for file in self.neighbours for word in words)

    @property
    def facts(self) -> Facts:
        """The flow of names: what reaches a read, what is bound, what is read later."""
        return self.inference.facts(self.file.path)

    def kind(self, node: ast.AST) -> Kind:
        return self.inference.kinds.get(id(node), UNKNOWN)

    def kind_names(self, node: ast.AST) -> frozenset[str]:
        """The names of the alternatives, a class of the torch namespace as "Module" and so on."""
        kind = self.kind(node)
        names = frozenset(
            "dtype" if a.kind == "builtin" and a.name in DTYPES else a.kind for a in kind
        )
        inside = (n.kind for a in kind if a.kind in ("list", "tuple") for i in a.items for n in i)
        if "None" in inside or (isinstance(node, ast.List) and self._gets_none(node)):
            return names | {WITH_NONE}
        return names

    def _gets_none(self, node: ast.List) -> bool:
        """``self.x = ModuleList([])`` gets a None by ``self.x.append(...)`` somewhere."""
        assigned = self.parent(self.parent(node) or node)
        if not isinstance(assigned, ast.Assign) or not isinstance(self.parent(node), ast.Call):
            return False
        names = {ast.dump(t).replace("Store()", "Load()") for t in assigned.targets}
        given = [
            arg
            for call, _ in self.file.calls.get("append", ())
            if isinstance(call.func, ast.Attribute) and ast.dump(call.func.value) in names
            for arg in call.args
        ]
        return any(a.kind == "None" for arg in given for a in self.kind(arg))

    def parent(self, node: ast.AST) -> ast.AST | None:
        return self.parents.get(id(node))

    def around(self, node: ast.AST, *until: type[ast.AST]) -> Iterator[ast.AST]:
        """Yield the nodes around a node, the innermost first, up to one of some classes."""
        return self.file.around(node, *until)

    def holder(self, node: ast.AST, *kinds: type[ast.AST]) -> ast.AST | None:
        """Return the innermost node of some classes around a node."""
        return self.file.holder(node, *kinds)

    def statement(self, node: ast.AST) -> ast.stmt:
        """The innermost statement that holds a node."""
        while not isinstance(node, ast.stmt):
            node = self.parents[id(node)]
        return node

    def function(self, node: ast.AST) -> Function | None:
        """The innermost function (lambdas apart) around a node."""
        found = self.file.holder(node, ast.FunctionDef, ast.AsyncFunctionDef)
        return self.file.functions.get(id(found))

    def owner(self, node: ast.AST) -> Class | None:
        """The class whose body (or method) holds a node."""
        return self.file.classes.get(id(self.file.holder(node, ast.ClassDef)))

    def in_annotation(self, node: ast.AST) -> bool:
        """Whether a node is (part of) an annotation."""
        child, parent = node, self.parents.get(id(node))
        while parent is not None and isinstance(child, ast.expr):
            if isinstance(parent, ast.arg):
                return parent.annotation is child
            if isinstance(parent, ast.AnnAssign):
                return parent.annotation is child
            if isinstance(parent, (ast.FunctionDef, ast.AsyncFunctionDef)):
                return parent.returns is child
            child, parent = parent, self.parents.get(id(parent))
        return False

    def is_module_class(self, owner: Class) -> bool:
        return self.inference.is_module(owner.key)

    def module_classes(self, node: ast.AST) -> tuple[str, ...]:
        """The torch classes an expression may be an instance of; () unless surely a Module."""
        found: list[str] = []
        for atom in ordered(without_none(self.kind(node))):
            if atom.kind != "Module":
                return ()
            bases = self.inference.torch_bases(atom.name) if "::" in atom.name else (atom.name,)
            found.extend(b for b in bases if b not in found)
        return tuple(found)

    def site(self, name: str, node: ast.AST) -> Site:
        return self.source.site(name, node)


def once(fact: Callable[[Of], Fact]) -> Callable[[Of], Fact]:
    """Compute a fact of a whole program once, and keep it with the program."""
    key = f"{fact.__module__}.{fact.__qualname__}"

    @wraps(fact)
    def known(of: Of) -> Fact:
        inference = of.inference if isinstance(of, Scene) else of
        notes = inference.program.notes
        if key not in notes:
            notes[key] = fact(of)
        return notes[key]  # type: ignore[no-any-return]

    return known


def once_a_file(fact: Callable[[Scene], Fact]) -> Callable[[Scene], Fact]:
    """Compute a fact of one file once, and keep it with the scene."""
    key = f"{fact.__module__}.{fact.__qualname__}"

    @wraps(fact)
    def known(scene: Scene) -> Fact:
        if key not in scene._memo:
            scene._memo[key] = fact(scene)
        return scene._memo[key]  # type: ignore[return-value]

    return known
