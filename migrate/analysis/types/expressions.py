"""Evaluate expressions: give the kind of every node in them, in the order of the evaluation."""

from __future__ import annotations

import ast
import builtins
from itertools import count
from typing import TypeGuard

from migrate.analysis.dataflow import WIDEN_AFTER
from migrate.analysis.types import contents, values
from migrate.analysis.types.annotations import annotated, is_generic
from migrate.analysis.types.calling import Calling
from migrate.analysis.types.frame import State, joined, widened
from migrate.analysis.types.kinds import (
    BINARY,
    BOOL,
    FLOAT,
    INT,
    KEYED,
    MODULE,
    NONE,
    NOTHING,
    STATISTICS,
    STR,
    TENSOR,
    UNKNOWN,
    Atom,
    Kind,
    element,
    fixed_tuple,
    indirect,
    is_all,
    join,
    kind,
    sequence,
    shallow,
    taking_axes,
)
from migrate.analysis.types.python_results import binary
from migrate.syntax.trees import defaults

_CONSTANTS = {bool: BOOL, int: INT, float: FLOAT, str: STR, type(None): NONE}


class Evaluator(Calling):
    """Evaluates every expression of one function."""

    # -- names and attributes -------------------------------------------------------------------

    def _Name(self, node: ast.Name) -> Kind:
        name = node.id
        if name in self.env:
            return self.env[name]
        if self.function is not None:
            if name in self.function.locals:
                return UNKNOWN
            found = self.world.outer_kind(self.function, name)
            if name in self.function.globals:
                found = join(found, self.variables.get(name, NOTHING))
        else:
            found = self.world.global_kind(self.path, name)
        if found:
            return contents.received(found, f"={name}")
        return kind("builtin", name) if hasattr(builtins, name) else UNKNOWN

    def _Attribute(self, node: ast.Attribute) -> Kind:
        value = self.kind(node.value)
        if node.attr in STATISTICS and self.world.only_modules_have(node.attr):
            self.saw(node.value, MODULE)
            value = self.world.kinds[id(node.value)]
        found = self.paths.get((getattr(node.value, "id", ""), node.attr))
        if found is None:
            found = values.attribute(value, node.attr, self.world)
            if not contents.is_plain(found):
                found = contents.received(found, *contents.of_attribute(node.attr, value))
        why = self.assumed.get(id(node.value), "")
        if found >= UNKNOWN and (len(value) == 1 or node.attr in STATISTICS):
            unsure = next(iter(value)) if len(value) == 1 else Atom("unknown")
            likely, assumed = self.world.likely(unsure, node.attr)
            found = join(found - UNKNOWN, likely)
            why = f"{ast.unparse(node)} is {assumed}" if assumed else why
        if why:
            self.assume(node, why)
        return found

    # -- literals -------------------------------------------------------------------------------

    def _Constant(self, node: ast.Constant) -> Kind:
        return _CONSTANTS.get(type(node.value), UNKNOWN)

    def _JoinedStr(self, node: ast.JoinedStr) -> Kind:
        self._others(node)
        return STR

    def _Tuple(self, node: ast.Tuple) -> Kind:
        kinds = [self.kind(e) for e in node.elts]
        if any(isinstance(e, ast.Starred) for e in node.elts):
            parts = zip(node.elts, kinds, strict=True)
            return sequence(
                "tuple", join(*(element(k) if isinstance(e, ast.Starred) else k for e, k in parts))
            )
        return fixed_tuple(tuple(map(indirect, kinds)))

    def _List(self, node: ast.List | ast.Set) -> Kind:
        kinds = [
            element(self.kind(e)) if isinstance(e, ast.Starred) else self.kind(e) for e in node.elts
        ]
        return self._made(node, sequence("list", indirect(join(*kinds))))

    _Set = _List

    def _made(self, node: ast.expr, value: Kind) -> Kind:
        """Return a new container, which the expression makes each time."""
        return contents.made_at(value, id(node))

    def _Dict(self, node: ast.Dict) -> Kind:
        kinds: list[Kind] = []
        keys: list[str] = []
        keyed = False
        for key, value in zip(node.keys, node.values, strict=True):
            found = self.kind(value)
            if key is None:
                kinds += contents.values(found)
                keys.append("?")
                continue
            keyed |= not is_all(self.kind(key), "str")
            kinds.append(found)
            keys.append(str(key.value) if isinstance(key, ast.Constant) else "?")
        held = shallow(indirect(join(*kinds)))
        name = KEYED if keyed else ""
        return self._made(node, frozenset((Atom("dict", name, (held,), tuple(keys)),)))

    def _Lambda(self, node: ast.Lambda) -> Kind:
        for _, default in defaults(node.args):
            self.kind(default)
        return kind("function", self._lambda_key(node))

    def _lambda_key(self, node: ast.Lambda) -> str:
        file = self.world.program.files[self.path]
        return file.functions[id(node)].key

    # -- comprehensions -------------------------------------------------------------------------

    def _comprehension(self, node: ast.expr, *parts: ast.expr) -> Kind:
        """Return the kind of the last part; what a walrus binds in it is bound outside of it."""
        clauses: list[ast.comprehension] = node.generators  # type: ignore[attr-defined]
        first = self.kind(clauses[0].iter)
        outside, before, events = self.hidden, self.leave(), self.effects.events
        names = frozenset(n.id for c in clauses for n in ast.walk(c.target) if _is_name(n))
        self.hidden = outside | names
        repeats = bool(self.world.program.files[self.path].of(ast.NamedExpr))
        start = before
        for visit in count(1):
            self.effects.events = []
            found = self._one_round(clauses, first, parts)
            if not repeats:
                self.enter(before)
                break
            end = joined(start, self._without(names, before))
            if end.env == start.env:
                self.enter(start)
                break
            start = widened(start, end) if visit > WIDEN_AFTER else end
            self.enter(start)
        inside, self.effects.events, self.hidden = self.effects.events, events, outside
        self.forked(inside, [])
        return indirect(found)

    def _one_round(
        self, clauses: list[ast.comprehension], first: Kind, parts: tuple[ast.expr, ...]
    ) -> Kind:
        for index, clause in enumerate(clauses):
            self.bind(clause.target, element(self.kind(clause.iter) if index else first))
            for test in clause.ifs:
                true, _ = self.tested(test)
                if true is not None:
                    self.enter(true)
        for name in self.hidden & self.env.keys():  # functions that are defined in it read them
            for inner in (self.inner, self.effects.inner):
                inner[name] = join(inner.get(name, NOTHING), self.env[name])
        found = UNKNOWN
        for part in parts:
            found = self.kind(part)
        return found

    def _without(self, names: frozenset[str], before: State) -> State:
        """Return this state with the variables of a comprehension as they were outside of it."""
        after = self.leave()
        env = {n: v for n, v in after.env.items() if n not in names}
        notes = {n: v for n, v in after.notes.items() if n not in names}
        paths = {p: v for p, v in after.paths.items() if p[0] not in names}
        env |= {n: before.env[n] for n in names & before.env.keys()}
        notes |= {n: before.notes[n] for n in names & before.notes.keys()}
        paths |= {p: v for p, v in before.paths.items() if p[0] in names}
        return State(env, notes, paths)

    def _ListComp(self, node: ast.ListComp | ast.SetComp) -> Kind:
        return self._made(node, sequence("list", self._comprehension(node, node.elt)))

    _SetComp = _ListComp

    def _GeneratorExp(self, node: ast.GeneratorExp) -> Kind:
        made = sequence("iterator", self._comprehension(node, node.elt))
        lazy = (self.world.kinds[id(c.iter)] for c in node.generators)
        at = contents.NO_SITES.union(*map(contents.all_sites, lazy))  # looked at when it is used
        return frozenset(a._replace(sites=at) for a in made)

    def _DictComp(self, node: ast.DictComp) -> Kind:
        held = shallow(self._comprehension(node, node.key, node.value))
        text = is_all(self.world.kinds.get(id(node.key), UNKNOWN), "str")
        return self._made(node, frozenset((Atom("dict", "" if text else KEYED, (held,)),)))

    # -- operators ------------------------------------------------------------------------------

    def _BinOp(self, node: ast.BinOp) -> Kind:
        left, right = self.kind(node.left), self.kind(node.right)
        if isinstance(node.op, ast.MatMult) and self.world.only_tensors_multiply():
            self.saw_tensor(node.left)
            self.saw_tensor(node.right)
            left, right = (self.world.kinds[id(n)] for n in (node.left, node.right))
        self.saw_beside(node.left, right)
        self.saw_beside(node.right, left)
        return self._made(node, self.operated(node.op, left, right))

    def operated(self, op: ast.operator, left: Kind, right: Kind, anew: bool = True) -> Kind:
        """Return the result of an operator; ``anew``: not of an augmented assignment."""
        if not any(a.kind in ("Object", "Module") for a in left | right):
            return binary(op, left, right)
        name = BINARY[type(op)]
        asked = [(left, n) for n in (f"__{name}__", f"__i{name}__")[: 2 - anew]]
        members = (
            m for of, method in (*asked, (right, f"__r{name}__")) for a in of
            if a.kind in ("Object", "Module") and "::" in a.name
            for m in self.world.member(a.name, method)
        )  # fmt: skip
        functions = [f for m in members if (f := self.world.function_of(m.name)) is not None]
        beside = is_all(left, "Tensor") or is_all(right, "Tensor")
        if not functions and beside and not any(map(self._is_derived_elsewhere, left | right)):
            return TENSOR  # what has no such method raises beside one
        return join(*map(self.world.returns_any, functions)) or UNKNOWN

    def _is_derived_elsewhere(self, atom: Atom) -> bool:
        """Return whether an object may have methods that no class of the program or torch has."""
        todo, seen = [atom.name] * ("::" in atom.name), {atom.name}
        while todo:
            for base in (a for bases in self.world.bases(todo.pop()) for a in bases):
                if base.kind == "class" and "::" in base.name:
                    todo += {base.name} - seen
                    seen.add(base.name)
                elif base.kind != "ref" and (base.kind, base.name) != ("builtin", "object"):
                    return True
        return False

    def _UnaryOp(self, node: ast.UnaryOp) -> Kind:
        value = self.kind(node.operand)
        if isinstance(node.op, ast.Not):
            return BOOL
        if any(a.kind in ("Object", "Module") for a in value):
            return UNKNOWN
        return value - BOOL | INT if value >= BOOL else value

    def _Compare(self, node: ast.Compare) -> Kind:
        sides = [self.kind(node.left), *map(self.kind, node.comparators)]
        if any(isinstance(op, (ast.Is, ast.IsNot, ast.In, ast.NotIn)) for op in node.ops):
            return BOOL
        if any(is_all(s, "Tensor") for s in sides):
            return TENSOR
        unsure = any(a.kind in ("unknown", "Tensor", "instance") for s in sides for a in s)
        return UNKNOWN if unsure else BOOL

    def _BoolOp(self, node: ast.BoolOp) -> Kind:
        self.tested(node)
        return self.world.kinds[id(node)]

    def _IfExp(self, node: ast.IfExp) -> Kind:
        true, false = self.tested(node.test)
        outer, events, found, ends = self.leave(), self.effects.events, [], []
        ways = []
        for state, part in ((true, node.body), (false, node.orelse)):
            self.enter(state or outer)
            self.effects.events = []
            value = self.kind(part)
            if state is not None:
                found.append(value)
                ends.append(self.leave())
                ways.append(self.effects.events)
        self.effects.events = events
        self.forked(*ways)
        self.enter(joined(*ends) if len(ends) == 2 else ends[0])
        return join(*found)

    def _NamedExpr(self, node: ast.NamedExpr) -> Kind:
        found = self.kind(node.value)
        self.bind(node.target, found)
        return found

    def _Starred(self, node: ast.Starred) -> Kind:
        return self.kind(node.value)

    def _Subscript(self, node: ast.Subscript) -> Kind:
        value, index = self.kind(node.value), self.kind(node.slice)
        if is_generic(value):
            return kind("alias", "", annotated(node, self.world.kinds))
        if isinstance(node.slice, ast.Tuple) and has_axes(node.slice):
            value = self.world.kinds[id(node.value)] = taking_axes(value)
        found = values.subscript(value, node.slice, index)
        return self._made(node, found) if isinstance(node.slice, ast.Slice) else found

    def _Slice(self, node: ast.Slice) -> Kind:
        self._others(node)
        return NONE


def has_axes(index: ast.expr) -> bool:
    """Return whether an index has several axes, one of them a slice or dots: ``[..., ::2]``."""
    return isinstance(index, ast.Tuple) and any(
        isinstance(i, ast.Slice) or (isinstance(i, ast.Constant) and i.value is ...)
        for i in index.elts
    )


def _is_name(node: ast.AST) -> TypeGuard[ast.Name]:
    return isinstance(node, ast.Name)
