"""Random programs are run: what a variable holds at a place is inside the kind inferred there."""

from __future__ import annotations

import ast
import builtins
import types
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from migrate.analysis.types import contents
from migrate.analysis.types.kinds import UNKNOWN, Kind
from migrate.engine import rewrite
from migrate.mapping import table
from migrate.syntax.source import read
from tests.analysis.observed_programs import BODIES, PROGRAMS

HEAD = """
import torch
import numpy as np


class Box:
    def __init__(self):
        self.h = None
        self.items = []

    def keep(self, value):
        self.h = value

    def push(self, value):
        self.items.append(value)

    def hold(self, value):
        self.items = value

    def give(self):
        return self.items

    def other(self):
        return self


def put(holder, value):
    holder.append(value)


def same(value):
    return value


def clear(box):
    box.h = 1


def main(box, a, b, c):
    xs = []
    d = {}
"""
NAMES = ("a", "b", "c", "xs", "box", "d")
VALUES = ("torch.ones(1)", "1", "'s'", "None", "np.zeros(3)", "[]", "{}", "Box()", "[1]",
          "[torch.ones(1)]", "{'k': 's'}", "[[]]")  # fmt: skip
SIMPLE = (
    "{x} = {v}", "{x} = {v}", "{x} = {y}", "{x} = {y}", "{x} = [{y}, {z}]", "{x}, {y} = {y}, {x}",
    "{x}, *{y} = [{z}, {v}, 1]", "{x} = {y} if callable(0) else {z}", "{x} = callable(0) and {y}",
    "{x} = (w := {y}) or {z}", "{x} = [e for e in {y}]", "{x} = {y}[0]", "{x} = {y}['k']",
    "{x} = {y} or {z}", "{x}.append({y})", "{x}.append({v})", "{x}[0] = {v}", "{x} += [{y}]",
    "{x}.extend([{y}])", "{x}.extend({y})", "{x}['k'] = {y}", "{x} = {y}.setdefault('k', {z})",
    "{x}.update(k={y})", "{x}[:] = [{y}]", "del {x}", "{x}.h = {y}", "{x} = {y}.h", "{x}.keep({y})",
    "{x} = {y}.items", "{x}.push({y})", "{x}.hold({y})", "{x} = {y}.give()", "{x} = same({y})",
    "put({x}, {y})", "clear({x})", "{x} = {y}.other()", "{x}.items.append({v})", "{x} = list({y})",
    "{x} = {y}.copy()", "{x} = {y} + {z}", "[{x} := e for e in {y}]", "{x} = {y}.pop()",
    "add = {x}.append; add({v})", "{x} = (lambda: {y})()", "{x} = dict(k={y})",
    "{x} = {y}.get('k')",
    "{x} -= {y}", "{x} *= {y}", "{x} += {z}", "{x} = {y} - {z}", "{x} = {y} * {z}", "{x} = -{y}",
    "{x} = 2 ** {y}", "{x} = {y} < {z}", "{x} = abs({y})", "{x} = max({y}, {z})", "{x} = 1 - {y}",
    "for {z} in [{v}, {y}]: {x} -= {z}", "{x} = sum([{y}, {z}])", "{x} = pow({y}, 2)",
    "assert {x} is not None", "raise ValueError", "{x} = tuple([{y}, {z}])", "{x}.insert(0, {y})",
)  # fmt: skip
JUMPS = ("if callable(0): break", "if callable(0): continue", "break", "continue")
BLOCKS = (
    "if callable(0):", "if {x} is None:", "if isinstance({x}, list):", "while callable(0):",
    "for {x} in {y}:", "for {x} in ({v}, {y}):", "try:", "def inner():", "while True:",
    "match {x}:",
    "if {x}:", "for i, {x} in enumerate({y}):", "with torch.no_grad():",
)  # fmt: skip

# what is asked before most statements that would fail for other values
_FITTING = (
    ("{x}.append", "isinstance({x}, list)"), ("{x}.extend", "isinstance({x}, list)"),
    ("{x}[0] =", "isinstance({x}, list) and {x}"), ("{x} += [", "isinstance({x}, list)"),
    ("{x}['k']", "isinstance({x}, dict)"), ("{y}.setdefault", "isinstance({y}, dict)"),
    ("{x}.update", "isinstance({x}, dict)"), ("put({x}", "isinstance({x}, list)"),
    ("{x}[:]", "isinstance({x}, list)"), ("{x}.insert", "isinstance({x}, list)"),
    ("{x}.h =", "isinstance({x}, Box)"), ("{x}.keep", "isinstance({x}, Box)"),
    ("{x}.push", "isinstance({x}, Box)"), ("{x}.hold", "isinstance({x}, Box)"),
    ("{y}.h", "isinstance({y}, Box)"), ("{y}.items", "isinstance({y}, Box)"),
    ("{y}.give", "isinstance({y}, Box)"), ("{y}.other", "isinstance({y}, Box)"),
    ("in {y}]", "isinstance({y}, list)"), ("{y}[0]", "isinstance({y}, list) and {y}"),
    ("{y}['k']", "isinstance({y}, dict)"), ("{y}.pop", "isinstance({y}, list) and {y}"),
    ("{y}.get", "isinstance({y}, dict)"), ("{y}.copy", "isinstance({y}, (list, dict))"),
    ("list({y})", "isinstance({y}, list)"), (".extend({y})", "isinstance({y}, list)"),
    ("clear({x})", "isinstance({x}, Box)"), ("{x}.items", "isinstance({x}, Box)"),
    ("{y} + {z}", "isinstance({y}, list) and isinstance({z}, list)"),
    ("{x} -= {y}", "hash(({x}, {y}))"), ("{x} *= {y}", "hash(({x}, {y}))"),
    ("{x} += {z}", "hash(({x}, {z}))"), ("{y} - {z}", "hash(({y}, {z}))"),
    ("{y} * {z}", "hash(({y}, {z}))"), ("= -{y}", "hash({y})"), ("** {y}", "hash({y})"),
    ("{y} < {z}", "hash(({y}, {z}))"), ("abs({y})", "hash({y})"), ("1 - {y}", "hash({y})"),
    ("max({y}", "hash(({y}, {z}))"), ("sum([{y}", "hash(({y}, {z}))"), ("pow({y}", "hash({y})"),
    ("[{v}, {y}]", "hash(({x}, {v}, {y}))"),
)  # fmt: skip


@st.composite
def bodies(draw: st.DrawFn, depth: int, loop: bool, indent: str) -> list[str]:
    """The lines of a block: statements, each followed by a look at a variable."""
    lines = []
    for _ in range(draw(st.integers(1, 5))):
        of = {k: draw(st.sampled_from(NAMES)) for k in "xyz"} | {"v": draw(st.sampled_from(VALUES))}
        kind = draw(st.integers(0, 9))
        if kind < 3 and depth:
            lines += draw(blocks(depth, loop, indent, of))
        elif kind == 3 and loop:
            lines.append(indent + draw(st.sampled_from(JUMPS)))
        elif kind == 4:
            lines.append(f"{indent}if callable(0): return {of['x']}")
        else:
            line = draw(st.sampled_from(SIMPLE))
            for sign, test in _FITTING:
                if sign in line and draw(st.integers(0, 3)):
                    line = f"if {test}: {line}"
            lines.append(indent + line.format(**of))
        lines.append(f"{indent}id({draw(st.sampled_from(NAMES))})")
    return lines


@st.composite
def blocks(draw: st.DrawFn, depth: int, loop: bool, indent: str, of: dict[str, str]) -> list[str]:
    head = draw(st.sampled_from(BLOCKS)).format(**of)
    inner = indent + "    "
    loops = head.startswith(("for", "while"))
    body = draw(bodies(depth - 1, loop or loops, inner))
    if head == "match " + of["x"] + ":":
        cases = [f"case {p}:" for p in ("[p, *q]", "None", "str()", "whole") if draw(st.booleans())]
        found = [indent + head]
        for case in cases or ["case _:"]:
            found += [inner + case, *draw(bodies(depth - 1, loop, inner + "    "))]
        return found
    if head == "def inner():":
        body = draw(bodies(0, False, inner))
        own = [f"{inner}nonlocal {of['x']}"] if draw(st.booleans()) else []
        return [indent + head, *own, *body, f"{indent}inner()"]
    if loops:
        body = [f"{inner}callable(0)", *body]
    lines = [indent + head, *body]
    if head == "try:":
        ways = draw(st.sampled_from(("e", "f", "ef", "el", "elf")))
        for key, line in (("e", "except Exception as d:"), ("l", "else:"), ("f", "finally:")):
            if key in ways:
                lines += [indent + line, *draw(bodies(depth - 1, loop, inner))]
    elif head != "with torch.no_grad():" and draw(st.booleans()):
        lines += [indent + "else:", *draw(bodies(depth - 1, loop, inner))]
    return lines


@st.composite
def programs(draw: st.DrawFn) -> str:
    given = [draw(st.sampled_from(VALUES)) for _ in range(3)]
    body = draw(bodies(3, False, "    "))
    return HEAD + "\n".join(body) + f"\n\n\nmain(Box(), {', '.join(given)})\n"


class Number:
    """Computes as torch's and numpy's objects do: with numbers, and with its own kind."""

    def _with(self, *_: object) -> Any:
        return type(self)()

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __pow__ = __rpow__ = _with
    __neg__ = __abs__ = __lt__ = __gt__ = _with


class Tensor(Number):
    """Stands for torch's."""


class Array(Number):
    """Stands for numpy's."""


def computes(values: Any) -> bool:
    """Whether an operator takes all of some values."""
    kinds = {type(v) for v in (values if isinstance(values, tuple) else (values,))}
    return kinds <= {int, bool, Tensor} or kinds <= {int, bool, Array}


class Over(BaseException):
    """The program has run long enough."""


class _Context:
    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...


@cache
def rows() -> table.Table:
    return table.load(())


def inside(value: Any, kind: Kind, depth: int = 0) -> bool:
    """Whether a value is one of the alternatives of a kind."""
    if depth > 8 or kind >= UNKNOWN:
        return True
    for atom in kind:
        if isinstance(value, Tensor):
            found = atom.kind == "Tensor"
        elif isinstance(value, Array):
            found = atom.kind == "instance" and atom.name in ("numpy.ndarray", "")
        elif isinstance(value, list | tuple | dict):
            held = list(value.values()) if isinstance(value, dict) else list(value)
            found = atom.kind == type(value).__name__ and _holds(held, atom, depth)
        elif type(value) in (int, str, bool):
            found = atom.kind == type(value).__name__
        elif value is None:
            found = atom.kind == "None"
        elif type(value).__name__ == "Box":
            found = atom.kind == "Object" and atom.name.endswith("::Box")
        else:
            found = True  # functions, methods, exceptions
        if found:
            return True
    return False


def _holds(values: list[Any], atom: Any, depth: int) -> bool:
    if not atom.items:
        return True
    if atom.fixed:
        pairs = zip(values, atom.items, strict=False)
        return len(values) == len(atom.items) and all(inside(v, i, depth + 1) for v, i in pairs)
    return all(inside(v, atom.items[0], depth + 1) for v in values)


def observe(text: str, choices: list[bool], look: Callable[[int, Any], None]) -> None:
    """Run a program; `look` gets the line and the value of every ``id(x)``."""
    steps = iter([*choices * 3, *[False] * 40])

    def ask() -> bool:
        try:
            return next(steps)
        except StopIteration:
            raise Over from None

    def seen(value: Any) -> int:
        import sys

        look(sys._getframe(1).f_lineno, value)
        return 0

    modules: Mapping[str, Any] = {
        "torch": types.SimpleNamespace(ones=lambda n: Tensor(), no_grad=_Context),
        "numpy": types.SimpleNamespace(zeros=lambda n: Array()),
    }
    known = dict(vars(builtins)) | {
        "id": seen, "hash": computes, "callable": lambda _: ask(),
        "__import__": lambda name, *_: modules[name]
    }  # fmt: skip
    space = {"__builtins__": known, "__name__": "program"}
    try:
        exec(compile(text, "program", "exec"), space)
    except (Over, Exception):
        return


def inferred(text: str) -> dict[int, tuple[str, Kind]]:
    """The kinds of what ``id(x)`` looks at, by line."""
    source = read("program.py", text.encode())
    inference = rewrite.analyse({"program.py": source}, rows()).inference
    return {
        node.lineno: (ast.unparse(node), inference.kinds.get(id(node.args[0]), UNKNOWN))
        for node in inference.program.files["program.py"].of(ast.Call)
        if getattr(node.func, "id", "") == "id"
    }


def violations(text: str, choices: list[bool]) -> list[str]:
    """The places at which a value was seen that the analysis rules out."""
    kinds = inferred(text)
    found: list[str] = []

    def look(line: int, value: Any) -> None:
        what, kind = kinds[line]
        if not inside(value, kind):
            found.append(f"line {line}: {what}: {value!r} not in {sorted(a.kind for a in kind)}")

    for turn in range(4):
        observe(text, choices[turn:] + choices[:turn], look)
    return found


@pytest.fixture(params=(contents.MANY, 1), ids=("groups", "anywhere"))
def _group_size(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a group of joined sites be too large from a few sites, or from one, on."""
    monkeypatch.setattr("migrate.analysis.types.told.MANY", request.param)


@pytest.mark.usefixtures("_group_size")
@pytest.mark.parametrize("text", PROGRAMS)
def test_every_name_of_a_container_sees_what_is_put_in(text: str) -> None:
    assert not violations("import torch\n" + text, [True, False, True, False])


@pytest.mark.usefixtures("_group_size")
@pytest.mark.parametrize("body", BODIES)
def test_every_name_of_a_container_sees_what_a_call_puts_in(body: str) -> None:
    body = body.replace("; ", "\n    ")
    text = f"{HEAD}    {body}\n\n\nmain(Box(), [1], 's', [1])\n"
    assert not violations(text, [True, False, True, False])


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), database=None)
@given(programs(), st.lists(st.booleans(), min_size=4, max_size=12))
def test_what_is_seen_is_inside_what_is_inferred(text: str, choices: list[bool]) -> None:
    try:
        compile(text, "program", "exec")
    except SyntaxError:  # nonlocal after a use, and the like
        return
    assert not violations(text, choices), text
