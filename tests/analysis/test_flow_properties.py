"""Programs made at random: what is seen when they run is inside what the analysis says.

Every value says which binding made it, so that a read that is seen names the binding that reached
it. Choices, exceptions and the ends of loops come from a tape.
"""

from __future__ import annotations

import ast
import itertools
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from textwrap import indent
from types import FrameType
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from migrate.analysis.facts import Facts

NAMES = ("x", "y", "z")
Choice = Callable[[Sequence[Any]], Any]


class Raised(Exception):
    pass


class Stop(BaseException):
    """The tape is at its end."""


class Value:
    """What the binding of a number gave."""

    tape: Iterator[bool]

    def __init__(self, number: int) -> None:
        self.number = number

    def __add__(self, other: Value) -> Value:
        return other

    def __bool__(self) -> bool:
        return choose(self.tape)


def choose(tape: Iterator[bool]) -> bool:
    for choice in tape:
        return choice
    raise Stop


@dataclass
class Maker:
    """Draws the text of a program; every binding and every read has a number."""

    choice: Choice
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    left: int = 25

    def pick(self, *options: str) -> str:
        return str(self.choice(options))

    def name(self) -> str:
        return self.pick(*NAMES)

    def value(self) -> str:
        return f"V({next(self.numbers)})"

    def use(self) -> str:
        return f"use({next(self.numbers)}, {self.name()})"

    def test(self) -> str:
        name, value = self.name(), self.value()
        return self.pick(
            "c()", "c()", f"c() and ({name} := {value})", f"not ({name} := {value}) or c()",
            f"not (c() and ({name} := {value}))", f"({name} := {value}) if c() else c()", "True",
        )  # fmt: skip

    def block(self, loop: bool, top: bool, depth: int) -> str:
        count = self.choice(range(1, 5))
        return "\n".join(self.statement(loop, top, depth) for _ in range(count))

    def inner(self, loop: bool, top: bool, depth: int) -> str:
        return indent(self.block(loop, top, depth + 1), "  ")

    def statement(self, loop: bool, top: bool, depth: int) -> str:
        self.left -= 1
        if depth > 3 or self.left < 0 or self.choice(range(3)):
            return self.simple(loop, top)
        return self.compound(loop, top, depth)

    def simple(self, loop: bool, top: bool) -> str:
        name, other = self.name(), self.name()
        options = [
            self.use(), self.use(), f"{name} = {self.value()}", f"{name} = {self.value()}",
            f"{name}, {other} = {self.value()}, may({self.value()})",
            f"{name} = may({self.value()})",
            f"{name} += {self.value()}", f"del {name}", "may(0)", "raise Raised",
            f"c() and ({name} := {self.value()})",
            f"[{self.use()} for {name} in [{self.value()}]]",
            f"[({name} := {self.value()}) for {self.other(name)} in it(0)]",
            f"list({self.use()} for {other} in it({self.value()}) if c())",
            f"h = lambda: {self.use()}", f"h = ({self.use()} for i in [0])",
            f"{name}: int", f"{name}: int = {self.value()}", "call(h)", "assert c()",
        ]  # fmt: skip
        options += ["break", "continue"] if loop else []
        options += ["return"] if top else []
        return self.pick(*options)

    def other(self, name: str) -> str:
        return self.pick(*(n for n in NAMES if n != name))

    def compound(self, loop: bool, top: bool, depth: int) -> str:
        name = self.name()
        body = self.inner(loop, top, depth)
        kind = self.pick("if", "while", "for", "try", "finally", "with", "match", "def", "class")
        more = self.inner(loop, top, depth)
        if kind == "if":
            return f"if {self.test()}:\n{body}\nelse:\n{more}"
        if kind == "while":
            body = self.inner(True, top, depth)
            return f"while {self.test()}:\n  c()\n{body}\nelse:\n{more}"
        if kind == "for":
            body = self.inner(True, top, depth)
            return f"for {name} in it({self.value()}):\n{body}\nelse:\n{more}"
        if kind == "try":
            clause = self.pick("Raised", f"Raised as {name}", "(NameError, Raised)", "Exception")
            return (
                f"try:\n{body}\nexcept KeyError:\n{self.inner(loop, top, depth)}\n"
                f"except {clause}:\n{more}\nelse:\n{self.inner(loop, top, depth)}"
            )
        if kind == "finally":
            return f"try:\n{body}\nfinally:\n{self.inner(False, False, depth)}"
        if kind == "with":
            manager = self.pick("nullcontext", "suppress")
            return f"with {manager}({self.value()}) as {name}:\n{body}"
        if kind == "match":
            pattern = self.pick(name, f"V() as {name}", "0")
            last = self.pick("_", self.other(name)) if self.choice((False, True)) else "0"
            return (
                f"match {self.value()}:\n  case {pattern} if c():\n{indent(body, '  ')}\n"
                f"  case {last}:\n{indent(more, '  ')}"
            )
        if kind == "class":
            return f"class A:\n{self.inner(False, False, depth)}"
        body = self.inner(False, True, depth)
        outer = self.pick("", f"  OUTER {name}\n")
        return f"def h():\n{outer}{body}\n{self.pick('call(h)', 'pass')}"


def program(choice: Choice, module: bool) -> str:
    """Return the text of a module, or of a function that is called."""
    maker = Maker(choice)
    if module:
        text = maker.block(False, False, 0).replace("OUTER", "global")
        return text + "\n" + maker.use()
    parts = [f"{n} = V({next(maker.numbers)})" for n in NAMES if choice((False, True))]
    parts += [maker.block(False, True, 0), maker.use()]
    # what is nonlocal has to be bound in the function
    last = [f"{n} = V({next(maker.numbers)})" for n in NAMES]
    text = "\n".join([*parts, "return", *last]).replace("OUTER", "nonlocal")
    return f"def main(x=V(0)):\n{indent(text, '  ')}\nmain()"


@st.composite
def programs(draw: Callable[[st.SearchStrategy[Any]], Any], module: bool) -> str:
    return program(lambda options: draw(st.sampled_from(options)), module)


@dataclass
class Run:
    """What was seen: (read, binding) by their numbers; lines where a name had no value."""

    reads: set[tuple[int, int]] = field(default_factory=set)
    unbound: set[tuple[int, str]] = field(default_factory=set)
    final: dict[str, Any] = field(default_factory=dict)
    ended: bool = False


def run(text: str, choices: list[bool]) -> Run:
    found = Run()
    tape = iter(choices)

    def use(number: int, value: object) -> None:
        if isinstance(value, Value):
            found.reads.add((number, value.number))

    class V(Value):
        pass

    V.tape = tape

    def may(value: object) -> object:
        if choose(tape):
            raise Raised
        return value

    def it(value: object) -> Iterator[object]:
        while choose(tape):
            yield value

    class Manager:
        def __init__(self, value: object) -> None:
            self.value = value

        def __enter__(self) -> object:
            return self.value

        def __exit__(self, *_: object) -> bool:
            return False

    class Swallowing(Manager):
        def __exit__(self, kind: object, *_: object) -> bool:
            return isinstance(kind, type) and issubclass(kind, Exception) and choose(tape)

    def call(function: Any) -> None:
        choose(tape)
        if callable(function):
            function()
        elif hasattr(function, "__next__"):
            list(function)

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        if event == "exception" and issubclass(argument[0], NameError):
            name = getattr(argument[1], "name", None) or str(argument[1]).split("'")[1]
            if argument[2] is not None and argument[2].tb_next is None:
                found.unbound.add((frame.f_lineno, name))
        return trace

    namespace: dict[str, Any] = {
        "V": V, "use": use, "may": may, "it": it, "c": lambda: choose(tape), "call": call,
        "nullcontext": Manager, "suppress": Swallowing, "Raised": Raised,
    }  # fmt: skip
    code = compile(text, "program", "exec")
    limit = sys.getrecursionlimit()
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        exec(code, namespace)
        found.ended = True
    except (Stop, Exception):
        pass
    finally:
        sys.settrace(before)
        sys.setrecursionlimit(limit)
    found.final = {n: namespace[n].number for n in NAMES if isinstance(namespace.get(n), V)}
    return found


class Numbered:
    """The program's reads and bindings by their numbers."""

    def __init__(self, text: str) -> None:
        self.text = text
        tree = ast.parse(text)
        self.parents = {id(c): n for n in ast.walk(tree) for c in ast.iter_child_nodes(n)}
        self.facts = Facts(tree, self.parents)
        self.reads: dict[int, ast.Name] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "use":
                number, read = node.args
                assert isinstance(number, ast.Constant) and isinstance(read, ast.Name)
                self.reads[int(number.value)] = read  # type: ignore[arg-type]

    def numbers(self, place: ast.AST) -> set[int]:
        """The numbers of the values that a place may bind."""
        top: ast.AST = place
        if isinstance(place, ast.arg):
            return {0}
        parent = self.parents[id(top)]
        if isinstance(parent, ast.Tuple):
            assert isinstance(place, ast.expr)
            assign = self.parents[id(parent)]
            assert isinstance(assign, ast.Assign) and isinstance(assign.value, ast.Tuple)
            return _values(assign.value.elts[parent.elts.index(place)])
        while isinstance(parent, ast.pattern):
            parent = self.parents[id(parent)]
        if isinstance(parent, ast.match_case):
            match = self.parents[id(parent)]
            assert isinstance(match, ast.Match)
            return _values(match.subject)
        if isinstance(parent, ast.For | ast.comprehension):
            return _values(parent.iter)
        if isinstance(parent, ast.withitem):
            return _values(parent.context_expr)
        if isinstance(parent, ast.Assign | ast.AugAssign | ast.AnnAssign | ast.NamedExpr):
            return _values(parent.value) if parent.value is not None else set()
        return set()

    def check(self, seen: Run) -> None:
        for number, made in seen.reads:
            read = self.reads[number]
            reach = self.facts.reach(read)
            bindings = [b for b in reach.bindings if made in self.numbers(b.place)]
            assert bindings, f"line {read.lineno}: value {made} is not in the answer\n{self.text}"
            self.check_liveness(read, bindings)
        for line, name in seen.unbound:
            reads = [
                n
                for n in ast.walk(self.facts.tree)
                if isinstance(n, ast.Name) and n.id == name and n.lineno == line
                and (not isinstance(n.ctx, ast.Store) or self._augmented(n))
            ]  # fmt: skip
            sure = [self.facts.is_bound(name, n) and not self._own(n) for n in reads]
            assert not sure or not all(sure), f"line {line}: {name} has no value\n{self.text}"
        if seen.ended:
            module = self.facts.unit(self.facts.tree)
            for name, made in seen.final.items():
                reach = module.bindings.before(name, module.graph.exit)
                assert any(made in self.numbers(b.place) for b in reach.bindings), self.text

    def _augmented(self, node: ast.AST) -> bool:
        return isinstance(self.parents[id(node)], ast.AugAssign)

    def _own(self, node: ast.Name) -> bool:
        point = self.facts.point(node)
        return point is not None and id(node) in point[0].scope.own

    def check_liveness(self, read: ast.Name, bindings: list[Any]) -> None:
        at = self.facts.point(read)
        for binding in bindings:
            made = self.facts.point(binding.place)
            if made is None or at is None or isinstance(binding.place, ast.arg):
                continue
            if made[1] is at[1] or self.parents.get(id(binding.place)) is None:
                continue
            unit, node = made
            if binding not in unit.scope.events[node.index].binds:
                continue  # a variable of a comprehension
            assert unit.live.after(read.id, node), f"{read.id} of line {node.line}\n{self.text}"


def _values(node: ast.AST) -> set[int]:
    return {
        int(n.args[0].value)  # type: ignore[attr-defined]
        for n in ast.walk(node)
        if isinstance(n, ast.Call) and getattr(n.func, "id", "") == "V"
    }


def check(text: str, tapes: list[list[bool]]) -> bool:
    try:
        compile(text, "program", "exec")
    except SyntaxError:  # nonlocal of a name that a comprehension or class takes, and the like
        return False
    program = Numbered(text)
    for tape in tapes:
        program.check(run(text, tape))
    return True


TAPES = st.lists(st.lists(st.booleans(), min_size=1, max_size=60), min_size=3, max_size=3)
FEW = settings(
    max_examples=30, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True
)


@FEW
@given(programs(module=False), TAPES)
def test_what_a_function_shows_is_in_the_answer(text: str, tapes: list[list[bool]]) -> None:
    check(text, tapes)


@FEW
@given(programs(module=True), TAPES)
def test_what_a_module_shows_is_in_the_answer(text: str, tapes: list[list[bool]]) -> None:
    check(text, tapes)


@pytest.mark.parametrize("seed", range(8))
def test_many_programs(seed: int) -> None:
    """Drawn without hypothesis, which takes longer to draw one than to run ten."""
    for number in range(75):
        chosen = random.Random(1000 * seed + number)
        tapes = [[chosen.random() < p for _ in range(200)] for p in (0.3, 0.5, 0.15, 0.7)]
        check(program(chosen.choice, bool(number % 2)), tapes)


def test_most_programs_say_something() -> None:
    text = "def main(x=V(0)):\n  if c():\n    x = V(1)\n  use(2, x)\n  del x\n  use(3, x)\nmain()"
    seen = run(text, [True])
    assert seen.reads == {(2, 1)} and seen.unbound == {(6, "x")}
    assert check(text, [[True], [False]])
