"""In: nothing. Out: what the evaluation of one function may ask about the rest of the program."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Protocol

from migrate.analysis.cfg import Graph, Unit
from migrate.analysis.summaries import Changes, Effects
from migrate.program import Class, Function, Program
from migrate.receivers.captured import Captured
from migrate.receivers.elimination import Question
from migrate.receivers.kinds import Atom, Kind, Site
from migrate.receivers.recorded import Recorded
from migrate.receivers.results import Results
from migrate.table import Table

Asked = Function | tuple[str, str]  # what it gives, or a member: (key of a class, name)


class Walk(Protocol):
    """What the walk of one function or module has found so far; see ``flow``."""

    variables: dict[str, Kind]
    stores: dict[str, Kind]
    result: Kind
    grown: dict[Site, tuple[Kind, frozenset[str]]]

    @property
    def put_into_given(self) -> Kind: ...

    @property
    def kept(self) -> set[str]: ...


class World(Protocol):
    """The whole-program side of the analysis; see ``inference``."""

    program: Program
    table: Table
    results: Results
    roots: frozenset[str]
    kinds: dict[int, Kind]
    recorded: Recorded

    def captured(self, path: str) -> Captured: ...

    def graph(self, unit: Unit) -> Graph: ...

    def flow(self, function: Function) -> Walk: ...

    def settled(self, function: Function) -> bool: ...

    def too_early(self, asked: Asked, answer: Kind, by: Sequence[Function]) -> Kind: ...

    def module(self, path: str) -> Walk: ...

    def global_kind(self, path: str, name: str) -> Kind: ...

    def outer_kind(self, function: Function, name: str) -> Kind: ...

    def member(self, key: str, name: str) -> Kind: ...

    def inherited(self, key: str, name: str) -> Kind: ...

    def torch_bases(self, key: str) -> tuple[str, ...]: ...

    def is_module(self, key: str) -> bool: ...

    def is_function(self, key: str) -> bool: ...

    def returns(self, function: Function, call: ast.Call | None = None) -> Kind: ...

    def shown(self, function: Function) -> Mapping[str, Kind]: ...

    def returns_with(self, function: Function, given: dict[str, Kind]) -> Kind: ...

    def function_of(self, key: str) -> Function | None: ...

    def class_of(self, key: str) -> Class | None: ...

    def imported(self, path: str, module: str, level: int, name: str | None) -> Kind: ...

    def likely(self, atom: Atom, name: str) -> tuple[Kind, str]: ...

    def only_tensors_have(self, asked: Question) -> str: ...

    def only_tensors_multiply(self) -> bool: ...

    def only_modules_have(self, attribute: str) -> bool: ...

    def class_body(self, key: str, variables: dict[str, Kind]) -> None: ...

    def note_call(self, key: str, call: ast.Call) -> None: ...

    def star(self, path: str, module: str, level: int) -> dict[str, Kind]: ...

    def effects(self, function: Function) -> Effects: ...

    def changes(self, call: ast.Call) -> Changes: ...
