"""In: statements. Out: what the names hold on every way through them."""

from __future__ import annotations

import ast
from collections.abc import Callable

from migrate.program import Function
from migrate.rules.alias_calls import Calls, Summary
from migrate.rules.storage import State, joined
from migrate.scene import Scene

ROUNDS = 8


class Flow(Calls):
    """Walks branches and loops."""

    def __init__(self, scene: Scene, summary: Callable[[Function], Summary]) -> None:
        super().__init__(scene, summary)
        self.dead = False
        self.breaks: list[list[State]] = []
        self.continues: list[list[State]] = []

    def run(self, body: list[ast.stmt]) -> None:
        for item in body:
            if self.dead:
                return
            self.flight.clear()
            method = getattr(self, "_" + type(item).__name__, None)
            if method is not None:
                method(item)
            else:
                self._parts(item)

    # -- control flow ---------------------------------------------------------------------------

    def _branch(self, body: list[ast.stmt], start: State) -> State | None:
        self.state, self.dead = start, False
        self.run(body)
        return None if self.dead else self.state

    def _join(self, *ends: State | None) -> None:
        state = joined(ends)
        self.dead = state is None
        self.state = state if state is not None else State()

    def _If(self, item: ast.If) -> None:
        self.value(item.test)
        before = self.state
        self._join(self._branch(item.body, before.copy()), self._branch(item.orelse, before.copy()))

    def _loop(self, item: ast.For | ast.AsyncFor | ast.While) -> None:
        head: State | None = self.state
        for _ in range(ROUNDS):
            assert head is not None
            self.breaks.append([])
            self.continues.append([])
            self.state = head.copy()
            if isinstance(item, ast.While):
                self.value(item.test)
            else:
                self.bind(item.target, self.each(item.iter))
            end = self._branch(item.body, self.state)
            breaks = self.breaks.pop()
            ends = joined([head, end, *self.continues.pop()])
            if ends == head:
                break
            head = ends
        assert head is not None
        self._join(self._branch(item.orelse, head.copy()), *breaks)

    _For = _AsyncFor = _While = _loop

    def _Break(self, item: ast.Break) -> None:
        self.breaks[-1].append(self.state)
        self.dead = True

    def _Continue(self, item: ast.Continue) -> None:
        self.continues[-1].append(self.state)
        self.dead = True

    def _With(self, item: ast.With | ast.AsyncWith) -> None:
        for part in item.items:
            refs = self.value(part.context_expr)
            if part.optional_vars is not None:
                self.bind(part.optional_vars, refs)
        self.run(item.body)

    _AsyncWith = _With

    def _Try(self, item: ast.Try) -> None:
        before = self.state
        end = self._branch(item.body, before.copy())
        raised = joined([before, end, self.state]) or before
        ends = [self._branch(item.orelse, end) if end is not None else None]
        ends += [self._branch(h.body, raised.copy()) for h in item.handlers]
        self._join(*ends)
        if self.dead:
            self._branch(item.finalbody, raised.copy())
            self.dead = True
        else:
            self.run(item.finalbody)

    _TryStar = _Try

    def _Match(self, item: ast.Match) -> None:
        refs = self.value(item.subject)
        before = self.state
        ends: list[State | None] = [before]
        for case in item.cases:
            state = before.copy()
            for part in ast.walk(case.pattern):
                name = getattr(part, "name", None) or getattr(part, "rest", None)
                if isinstance(name, str):
                    state.names[name] = refs | self.elements(refs)
            ends.append(self._branch(case.body, state))
        self._join(*ends)

    def _FunctionDef(self, item: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self.state.names[item.name] = self.closure(item)

    _AsyncFunctionDef = _FunctionDef

    def _ClassDef(self, item: ast.ClassDef) -> None:
        self.state.names[item.name] = self.closure(item)
