"""Names along the flow of control: reaching bindings, definite assignment, liveness, order."""

from __future__ import annotations

import ast
from textwrap import dedent

import pytest

from migrate.analysis.facts import Facts


def facts(text: str) -> Facts:
    tree = ast.parse(dedent(text))
    parents = {id(c): n for n in ast.walk(tree) for c in ast.iter_child_nodes(n)}
    return Facts(tree, parents)


def reads(found: Facts, name: str) -> list[ast.Name]:
    every = (n for n in ast.walk(found.tree) if isinstance(n, ast.Name) and n.id == name)
    return sorted((n for n in every if isinstance(n.ctx, ast.Load)), key=lambda n: n.lineno)


def reach(text: str, name: str = "x") -> str:
    """The lines of the bindings that reach the last read, "?" unbound, "+" others outside."""
    found = facts(text)
    answer = found.reach(reads(found, name)[-1])
    lines = sorted({getattr(b.place, "lineno", 0) for b in answer.bindings})
    marks = "?" * answer.unbound + "+" * answer.outside
    return " ".join([*map(str, lines), *([marks] if marks else [])])


def function(text: str, parameters: str = "") -> str:
    lines = dedent(text).strip("\n").split("\n")
    return "\n".join([f"def f({parameters}):", *("  " + line for line in lines)])


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("x = 1\nx = 2\ng(x)", "3"),
        ("if c:\n  x = 1\ng(x)", "3 ?"),
        ("while True:\n  if c:\n    x = 1\n    break\ng(x)", "4"),
        ("while c:\n  x = 1\n  if d:\n    continue\n  x = 2\ng(x)", "3 6 ?"),
        ("x = 0\nfor x in y:\n  pass\nelse:\n  g(x)", "2 3"),
        ("for x in y:\n  x = 1\n  break\nelse:\n  return\ng(x)", "3"),
        ("try:\n  x = h()\nexcept E:\n  g(x)", "3 ?"),
        ("x = 0\ntry:\n  x = h()\nfinally:\n  g(x)", "2 4"),
        ("try:\n  x = h()\nexcept E:\n  return\ng(x)", "3"),
        ("x = 0\ntry:\n  h()\nexcept E as x:\n  pass\ng(x)", "2 ?"),
        ("with suppress(E):\n  x = h()\ng(x)", "3 ?"),
        ("with torch.no_grad():\n  x = h()\ng(x)", "3"),
        ("x = 1\ndel x\ng(x)", "?"),
        ("x = 1\nx += 1\ng(x)", "3"),
        ("if c and (x := h()):\n  g(x)", "2"),
        ("if c and (x := h()):\n  pass\ng(x)", "2 ?"),
        ("if not (x := h()) or c:\n  return\ng(x)", "2"),
        ("x = 0\nwhile (x := h()):\n  pass\ng(x)", "3"),
        ("c and (x := h())\ng(x)", "2 ?"),
        ("a = [x := i for i in y]\ng(x)", "2 ?"),
        ("match y:\n  case [x, *_] if x:\n    return\n  case {**x}:\n    pass\ng(x)", "3 5 ?"),
        ("match y:\n  case 1:\n    return\n  case x:\n    pass\ng(x)", "5"),
        ("x: int\ng(x)", "?"),
        ("import x.y\nfrom a import b as x\ng(x)", "3"),
        ("a, x = h()\ng(x)", "2"),
        ("x, b[x] = h()", "2 ?"),
        ("with h(x) as x:\n  pass", "?"),
        ("def x(): pass\ng(x)", "2"),
        ("global x\nx = 1\ng(x)", "3 ?"),
        ("def h():\n  nonlocal x\n  x = 2\nx = 1\nh()\ng(x)", "4 5"),
        ("x = 1\ng([x for x in y])", "3"),
        ("x = 1\ng([a for x in x])", "2"),
        ("x = 1\nx = 2\ng(lambda: x)", "2 3 ?"),
        ("x = 1\nclass A:\n  y = x", "2 ?"),
        ("return\ng(x)\nx = 1", ""),
    ],
)
def test_what_reaches_a_read_in_a_function(text: str, lines: str) -> None:
    assert reach(function(text)) == lines


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("x = 1\ndef f():\n  return x\nx = 2", "1 4 ?"),
        ("def f(x=1, *, y):\n  return x", "1"),
        ("x = 1\ndef f():\n  global x\n  x = 2\nf()\ng(x)", "1 4"),
        ("x = 1\nclass A:\n  x = 2\n  def f(self): return x", "1 ?"),
        ("x = 1\nclass A:\n  if c:\n    x = 2\n  y = x", "1 4 ?"),
        ("if c:\n  sum = 1\ng(sum)", "2 ?+"),
        ("from a import *\ng(x)", "1 ?+"),
        ("x = 1\nfrom a import *\ng(x)", "1 2"),
        ("if c:\n  x = 1\ng(x)", "2 ?"),
        ("g(x)", "?+"),
        ("x = 1\nexec(a)\ng(x)", "1 +"),
        ("x = 0\ndef f(a=(x := 1)): pass\ng(x)", "2"),
        ("from __future__ import annotations\nclass A:\n  def f() -> x: pass\nx = 1", "4 ?+"),
        ("def f():\n  x = 1\n  def g():\n    global x\n    return x\nx = 2", "6 ?"),
    ],
)
def test_what_reaches_a_read_in_a_file(text: str, lines: str) -> None:
    assert reach(text, "sum" if "sum" in text else "x") == lines


def live(text: str, name: str = "x") -> bool:
    """Whether the value of a name may be read after the statement in the line "# here"."""
    found = facts(text)
    line = next(i for i, t in enumerate(dedent(text).split("\n"), 1) if "# here" in t)
    of_line = (n for n in ast.walk(found.tree) if isinstance(n, ast.stmt) and n.lineno == line)
    return found.read_after(name, next(of_line))


@pytest.mark.parametrize(
    "text",
    [
        "x = 1  # here\ng(x)",
        "while c:\n  g(x)\n  x = 1  # here",
        "while c:\n  if d:\n    x = 1  # here\n    continue\n  x = 2\n  g()\ng(x)",
        "while c:\n  x = 1  # here\n  if d:\n    break\n  x = 2\nelse:\n  x = 3\ng(x)",
        "x = 0\ntry:\n  x = 1  # here\n  h()\n  x = 2\nexcept E:\n  pass\ng(x)",
        "try:\n  x = 1  # here\n  return\nfinally:\n  g(x)",
        "x = 1  # here\nx += 1",
        "x = 1  # here\nreturn lambda: x",
        "x = 1  # here\nreturn (x for i in y)",
        "def h():\n  return x\nx = 1  # here\nh()\nx = 2",
        "def h():\n  nonlocal x\n  x += 1\nx = 1  # here",
        "global x\nx = 1  # here",
        "x = 1  # here\nreturn locals()",
        "for x in y:  # here\n  pass\ng(x)",
        "x = 1  # here\nc and (x := 2)\ng(x)",
        "x = 1  # here\nfor x in y:\n  pass\ng(x)",
        "x = 1  # here\nclass A:\n  y = x",
        "x = 1  # here\ndel x",
    ],
)
def test_what_is_read_later_in_a_function(text: str) -> None:
    assert live(function(text))


@pytest.mark.parametrize(
    "text",
    [
        "x = 1  # here\nx = 2\ng(x)",
        "while c:\n  x = 2\n  g(x)\n  x = 1  # here",
        "x = 1  # here\nfor a in y:\n  x = 2\n  g(x)",
        "if c:\n  x = 1  # here\nelse:\n  g(x)",
        "x = 1  # here\nwith no_grad():\n  x = 2\ng(x)",
        "x = 1  # here\nreturn [x for x in y]",
        "x = 1  # here\nreturn g(lambda x: x)",
        "x = 1  # here\nwhile True:\n  g()",
        "g(x)\nx = 1  # here",
        "x = 1  # here\ntry:\n  x = 2\nfinally:\n  g(x)",
    ],
)
def test_what_is_not_read_later_in_a_function(text: str) -> None:
    assert not live(function(text))


def test_the_names_of_a_module_or_class_are_read_by_others() -> None:
    assert live("x = 1  # here")
    assert live("class A:\n  x = 1  # here")
    assert not live("x = 1  # here\nx = 2")
    assert live("x = 1  # here\nh()\nx = 2\ndef h(): return x")


def test_definite_assignment() -> None:
    text = function("if c:\n  x = 1\nelse:\n  raise E\ng(x)\ndel x\ng(x)")
    found = facts(text)
    assert [found.is_bound("x", n) for n in reads(found, "x")] == [True, False]
    assert not found.is_bound("y", reads(found, "x")[0])


def test_order_is_that_of_control() -> None:
    found = facts(function("while c:\n  if d:\n    a()\n    return\n  b()\ne()"))
    a, b, e = (reads(found, n)[0] for n in "abe")
    assert found.may_follow(b, a) and not found.may_follow(a, b) and not found.may_follow(a, e)
    assert found.may_follow(b, b) and not found.may_follow(e, e)
    found = facts("a()\ndef f():\n  b()")
    assert found.may_follow(reads(found, "b")[0], reads(found, "a")[0])


def test_what_a_name_still_has() -> None:
    found = facts(
        function("x = 1\nwhile c:\n  g(x)\n  if d:\n    x = 2\n    continue\n  x = 3\nh(x)")
    )
    first, *_, last = reads(found, "x")
    start, loop = found.tree.body[0].body[:2]  # type: ignore[attr-defined]
    assert found.carries("x", start, first) and found.carries("x", loop, last)
    assert not found.carries("x", first, first)
    assert found.carries("x", loop.body[1], first)


def test_the_values_of_a_name() -> None:
    text = "a = f()\nif c:\n  a, (b, d) = g(), (h(), i)\nfor b in e: pass\nk(a, b, d, z)"
    found = facts(function(text))
    values = {
        name: [ast.unparse(v) if v is not None else None for v in found.values(read)]
        for name in "abdz"
        for read in reads(found, name)[-1:]
    }
    assert values == {"a": ["f()", "g()"], "b": ["h()", None], "d": ["i"], "z": [None]}
