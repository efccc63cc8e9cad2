"""In: statements of one function. Out: the kinds of its variables after them, branches joined."""

from __future__ import annotations

import ast

from migrate.receivers.expressions import Evaluator
from migrate.receivers.frame import Environment
from migrate.receivers.kinds import NOTHING, UNKNOWN, Kind, element, join, kind, may_be_any_module
from migrate.syntax import children


class Branches(Evaluator):
    """Walks statements in order; branches are joined, loops run twice."""

    def run(self, body: list[ast.stmt]) -> bool:
        """Walk statements; False when the end is not reached."""
        for statement in body:
            method = getattr(self, f"_{type(statement).__name__}", None)
            if method is None:
                self._plain(statement)
            elif method(statement) is False:
                return False
        return True

    def _plain(self, node: ast.stmt) -> None:
        for child in children(node):
            if isinstance(child, ast.expr):
                self.kind(child)

    def _If(self, node: ast.If) -> bool:
        self.kind(node.test)
        before = dict(self.env)
        self.narrow(node.test, True)
        told = {n: v for n, v in self.env.items() if v is not before.get(n) and _layers(v)}
        alive = self.run(node.body)
        first, self.env = self.env, before
        unsure = {n: before[n] for n in told if may_be_any_module(before.get(n, NOTHING))}
        self.narrow(node.test, False)
        other = self.run(node.orelse)
        if alive and other:
            kept = {n: v for n, v in unsure.items() if first.get(n) is told[n]}
            self.env = merged(first, self.env) | kept
        elif alive:
            self.env = first
        return alive or other

    def _For(self, node: ast.For | ast.AsyncFor) -> None:
        each = element(self.kind(node.iter))
        for _ in range(2):
            before = dict(self.env)
            self.bind(node.target, each)
            self.run(node.body)
            self.env = merged(before, self.env)
        self.run(node.orelse)

    _AsyncFor = _For

    def _While(self, node: ast.While) -> None:
        for _ in range(2):
            before = dict(self.env)
            self.kind(node.test)
            self.narrow(node.test, True)
            self.run(node.body)
            self.env = merged(before, self.env)
        self.run(node.orelse)

    def _With(self, node: ast.With | ast.AsyncWith) -> bool:
        for item in node.items:
            value = self.kind(item.context_expr)
            if item.optional_vars is not None:
                self.bind(item.optional_vars, value)
        return self.run(node.body)

    _AsyncWith = _With

    def _Try(self, node: ast.Try) -> bool:
        before = dict(self.env)
        alive = self.run(node.body) and self.run(node.orelse)
        ends = [self.env] if alive else []
        sure = {n: self.env[n] for n in self._sure_imports(node.body) if n in self.env}
        for handler in node.handlers:
            self.env = merged(before, ends[0]) if ends else dict(before)
            if handler.type is not None:
                self.kind(handler.type)
            if handler.name:
                self.bound(handler.name, kind("instance", "exception"))
            if self.run(handler.body):
                ends.append({**self.env, **sure})
        self.variables.update(sure)
        if ends:
            self.env = merged(*ends)
        return self.run(node.finalbody) and bool(ends)

    _TryStar = _Try

    def _sure_imports(self, body: list[ast.stmt]) -> set[str]:
        """What ``try`` imports from torch: all of it is there, so no handler binds it anew."""
        names: set[str] = set()
        for item in body:
            if not isinstance(item, ast.ImportFrom) or item.level:
                return set()
            if not all(self.world.table.kind(f"{item.module}.{a.name}") for a in item.names):
                return set()
            names |= {a.asname or a.name for a in item.names}
        return names

    def _Match(self, node: ast.Match) -> bool:
        self.kind(node.subject)
        before, ends = dict(self.env), [dict(self.env)]
        for case in node.cases:
            self.env = dict(before)
            for part in ast.walk(case.pattern):
                for value in _evaluated(part):
                    self.kind(value)
                name = getattr(part, "name", None) or getattr(part, "rest", None)
                if isinstance(name, str):
                    self.bound(name, UNKNOWN)
            if case.guard is not None:
                self.kind(case.guard)
            if self.run(case.body):
                ends.append(self.env)
        self.env = merged(*ends)
        return True

    def _Raise(self, node: ast.Raise) -> bool:
        self._plain(node)
        return False

    def _Continue(self, node: ast.Continue) -> bool:
        return False

    _Break = _Continue


def _layers(value: Kind) -> bool:
    return all(a.kind == "Module" for a in value)


def merged(*environments: Environment) -> Environment:
    """What holds after any of several branches."""
    first, *rest = environments
    found = dict(first)
    for other in rest:
        for name, value in other.items():
            mine = found.get(name)
            if mine is None:
                if "." not in name:
                    found[name] = value
            elif mine is not value:
                found[name] = join(mine, value)
        for name in [n for n in found if "." in n and n not in other]:
            del found[name]
    return found


def _evaluated(part: ast.AST) -> list[ast.expr]:
    """The expressions of a pattern: values, keys, classes."""
    if isinstance(part, ast.MatchMapping):
        return part.keys
    found = getattr(part, "value" if isinstance(part, ast.MatchValue) else "cls", None)
    return [found] if isinstance(found, ast.expr) else []
