"""In: nothing. Out: what the evaluation of one function may ask about the rest of the program."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
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

Grown = Mapping[Site, tuple[Kind, frozenset[str]]]


@dataclass(frozen=True)
class Result:
    """One value that a function may return.

    ``parameter``: the parameter that it is, or whose call it is (``called``, with ``args`` by
    place), of the function or (``outer``) of the one around it; "" for anything else. ``kind``:
    what the expression is over all calls: the value, or what is called. ``closes``: of a function
    that is defined here, the parameters here that it may use, with what else is assigned to them.
    """

    kind: Kind
    parameter: str = ""
    outer: bool = False
    called: bool = False
    args: tuple[Result, ...] = ()
    closes: tuple[tuple[str, Kind], ...] = ()


class World(Protocol):
    """The whole-program side of the analysis; see ``inference``."""

    program: Program
    table: Table
    results: Results
    roots: frozenset[str]
    kinds: dict[int, Kind]
    recorded: Recorded

    def global_kind(self, path: str, name: str) -> Kind: ...

    def outer_kind(self, function: Function, name: str) -> Kind: ...

    def member(self, key: str, name: str) -> Kind: ...

    def inherited(self, key: str, name: str) -> Kind: ...

    def torch_bases(self, key: str) -> tuple[str, ...]: ...

    def is_module(self, key: str) -> bool: ...

    def is_function(self, key: str) -> bool: ...

    def returns(self, function: Function) -> Kind: ...

    def returns_any(self, function: Function) -> Kind: ...

    def overriding(self, function: Function) -> tuple[Function, ...]: ...

    def results_of(self, function: Function) -> tuple[Result, ...]: ...

    def argument(self, function: Function, name: str) -> Kind: ...

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

    def note_call(self, call: ast.Call) -> None: ...

    def star(self, path: str, module: str, level: int) -> Mapping[str, Kind]: ...

    def declared(self, unit: Function | str, name: str) -> ast.expr | None: ...

    def captured(self, path: str) -> Captured: ...

    def graph(self, unit: Unit) -> Graph: ...

    def binds(self, function: Function, name: str) -> Kind: ...

    def grown(self, function: Function) -> Grown: ...

    def put_into(self, function: Function, site: str) -> Kind: ...

    def put_into_given(self, function: Function) -> Kind: ...

    def kept(self, function: Function) -> frozenset[str]: ...

    def effects(self, function: Function) -> Effects: ...

    def unseen(self) -> Effects: ...

    def classes(self) -> tuple[Class, ...]: ...

    def changes(self, call: ast.Call) -> Changes: ...
