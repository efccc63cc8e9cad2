"""Control flow graphs: every way that Python may take, and no other."""

from __future__ import annotations

import ast
import sys
from textwrap import dedent, indent

import pytest

from migrate.analysis.cfg import Carries, Graph, Role, Why, evaluated, graph_of


def graph(text: str) -> Graph:
    """The graph of a function whose body the text is; its first line is line 1."""
    unit = ast.parse("async def f():\n" + indent(dedent(text).strip("\n"), "    ")).body[0]
    ast.increment_lineno(unit, -1)
    assert isinstance(unit, ast.AsyncFunctionDef)
    return graph_of(unit)


def edges(text: str, why: Why | None = None, raised: bool = False) -> set[str]:
    """The edges between what is reached, by line (or by role where there is none)."""
    found = graph(text)
    reached = {n.index for n in found.order}
    return {
        f"{_name(e.source)}-{_name(e.target)}"
        for n in found.nodes
        for e in n.successors
        if n.index in reached
        and (raised or e.target is not found.raised)
        and (why is None or e.why is why)
    }


def _name(node: object) -> str:
    role: Role = node.role  # type: ignore[attr-defined]
    if role in (Role.ENTRY, Role.EXIT, Role.RAISED):
        return role.value
    mark = {Role.BIND: "b", Role.LEAVE: "l", Role.UNBIND: "u"}.get(role, "")
    return f"{node.line}{mark}"  # type: ignore[attr-defined]


def reached(text: str) -> set[int]:
    return {n.line for n in graph(text).order if n.line}


def test_branches_carry_their_test() -> None:
    found = graph("if x:\n  a = 1\nelif y:\n  b = 1\nc = 1")
    test = found.order[1]
    assert {(e.why, ast.unparse(e.test or ast.Constant(0)), e.target.line) for e in test.successors
            if e.why is not Why.EXCEPTION} == {(Why.TRUE, "x", 2), (Why.FALSE, "x", 3)}  # fmt: skip
    assert edges("if x:\n  a = 1\nelif y:\n  b = 1\nc = 1") == {
        "entry-1", "1-2", "1-3", "3-4", "3-5", "2-5", "4-5", "5-exit",
    }  # fmt: skip


def test_for_binds_nothing_at_its_end() -> None:
    text = "for i in x:\n  if i:\n    break\n  if y:\n    continue\n  a = 1\nelse:\n  b = 1\nc = 1"
    assert edges(text) == {
        "entry-1", "1-1b", "1b-2", "2-3", "2-4", "3-9", "4-5", "4-6", "5-1b", "6-1b", "1b-8",
        "8-9", "9-exit",
    }  # fmt: skip
    (over,) = [e for n in graph(text).nodes for e in n.successors if e.target.line == 8]
    assert over.carries is Carries.BEFORE


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("while True:\n  a = 1\nb = 1", {1, 2}),
        ("while not 0:\n  if x:\n    break\nelse:\n  b = 1\nc = 1", {1, 2, 3, 6}),
        ("while False:\n  a = 1\nb = 1", {1, 3}),
        ("if 0:\n  a = 1\nelse:\n  b = 1", {1, 4}),
        ("return\na = 1", {1}),
        ("raise x\na = 1", {1}),
        ("assert False\na = 1", {1}),
        ("for i in x:\n  continue\n  a = 1\nb = 1", {1, 2, 4}),
        ("try:\n  return\nfinally:\n  a = 1\nb = 1", {2, 4}),
        ("try:\n  raise x\nexcept:\n  a = 1\nelse:\n  b = 1\nc = 1", {2, 3, 4, 7}),
        ("try:\n  a = 1\nexcept:\n  b = 1\nc = 1", {2, 5}),
        ("while x:\n  try:\n    break\n  finally:\n    a = 1\n  b = 1\nc = 1", {1, 3, 5, 7}),
        ("try:\n  f()\nfinally:\n  return\na = 1", {2, 4}),
        ("while x:\n  try:\n    return 1\n  finally:\n    break\nc = 1", {1, 3, 5, 6}),
        ("match x:\n  case 1:\n    return\n  case _:\n    return\na = 1", {1, 2, 3, 4, 5}),
        ("match x:\n  case 1:\n    return\n  case _ if y:\n    return\na = 1", {1, 2, 3, 4, 5, 6}),
        ("match x:\n  case (1 | a) as b:\n    return\na = 1", {1, 2, 3}),
        ("with open(x):\n  return f()\na = 1", {1, 2}),
        ("with suppress(E):\n  return f()\na = 1", {1, 2, 3}),
        ("with no_grad(), g():\n  raise x\na = 1", {1, 2, 3}),
    ],
)
def test_what_control_comes_to(text: str, lines: set[int]) -> None:
    assert reached(text) == lines


def test_every_statement_of_a_try_may_enter_its_handlers() -> None:
    text = "try:\n  a = f()\n  b = 1\n  g()\nexcept E as e:\n  h()\nelse:\n  k()\nc = 1"
    assert edges(text, Why.EXCEPTION) == {"2-5", "4-5", "6-5u"}
    assert {"5-6", "6-5u", "5u-9", "8-9"} <= edges(text)
    into = [e for n in graph(text).nodes for e in n.successors if e.target.line == 5]
    assert {e.carries for e in into if e.source.line in (2, 4)} == {Carries.EITHER}


def test_handlers_are_tried_in_turn_and_the_rest_is_raised() -> None:
    text = "try:\n  f()\nexcept A:\n  a = 1\nexcept B:\n  b = 1"
    assert edges(text, raised=True) == {
        "entry-2", "2-exit", "2-3", "3-4", "3-5", "3-raised", "5-6", "5-raised", "4-exit", "6-exit",
    }  # fmt: skip
    text = "try:\n  f()\nexcept:\n  a = 1"
    assert "3-raised" not in edges(text, raised=True)


def test_finally_leads_on_only_to_what_entered_it() -> None:
    text = """
        for i in x:
          try:
            if i:
              continue
            a = 1
          finally:
            b = 1
          c = 1
        d = 1
    """
    out = {e for e in edges(text, raised=True) if e.startswith("7-")}
    assert out == {"7-1b", "7-8", "7-raised"}  # continue, next, and the test may raise
    text = "try:\n  a = 1\nfinally:\n  b = 1\nc = 1"
    assert {e for e in edges(text, raised=True) if e.startswith("4-")} == {"4-5"}


def test_nested_finally_runs_from_the_inside_out() -> None:
    text = "try:\n  try:\n    return f()\n  finally:\n    a = 1\nfinally:\n  b = 1\nc = 1"
    assert edges(text, raised=True) == {"entry-3", "3-5", "5-7", "7-exit", "7-raised"}


def test_the_name_of_a_handler_is_unbound_on_every_way_out() -> None:
    text = "while x:\n  try:\n    f()\n  except E as e:\n    if y:\n      break\n    return\nz = 1"
    found = edges(text)
    assert {"6-4u", "7-4u", "4u-8", "4u-exit"} <= found
    assert not {"6-8", "7-exit"} & found


@pytest.mark.skipif(sys.version_info < (3, 11), reason="except* is new in 3.11")
def test_several_handlers_of_a_group_may_run() -> None:
    text = "try:\n  f()\nexcept* A:\n  g()\nexcept* B:\n  b = 1\nc = 1"
    found = edges(text, raised=True)
    assert {"2-3", "3-4", "4-5", "3-5", "5-6", "6-7", "5-7", "6-raised"} <= found


def test_a_with_may_swallow_unless_surely_not() -> None:
    assert edges("with f() as a:\n  b = g()\nc = 1") == {
        "entry-1", "1-2", "2-1l", "1l-3", "3-exit",
    }  # fmt: skip
    found = graph("with f() as a:\n  b = g()\nc = 1")
    leaves = [n for n in found.nodes if n.role is Role.LEAVE]
    assert {e.carries for n in leaves for e in n.predecessors} == {Carries.AFTER, Carries.EITHER}
    found = graph("with torch.no_grad():\n  b = g()\nc = 1")
    assert len([n for n in found.nodes if n.role is Role.LEAVE]) == 1


def test_assert_leads_to_the_handlers() -> None:
    assert "2-3" in edges("try:\n  assert x\nexcept A:\n  a = 1", Why.FALSE)


def test_units_of_every_kind() -> None:
    tree = ast.parse("class A:\n  x = 1\n  def f(self): return 1\ny = lambda: x\n")
    module, owner = graph_of(tree), tree.body[0]
    assert isinstance(owner, ast.ClassDef)
    assert [n.role for n in module.nodes[3:]] == [Role.DEFINITION, Role.STATEMENT]
    assert [n.line for n in graph_of(owner).order if n.line] == [2, 3]
    inner = tree.body[1].value  # type: ignore[attr-defined]
    assert [ast.unparse(n.part) for n in graph_of(inner).order if n.part] == ["x"]


def test_a_node_is_found_by_what_is_evaluated_there() -> None:
    tree = ast.parse("for i in f(x):\n  with g() as (a, b): pass\n")
    parents = {id(c): n for n in ast.walk(tree) for c in ast.iter_child_nodes(n)}
    found = graph_of(tree)

    def role(name: str) -> Role | None:
        node = next(n for n in ast.walk(tree) if isinstance(n, ast.Name) and n.id == name)
        point = found.at(node, parents)
        return point.role if point is not None else None

    assert [role(n) for n in "xigb"] == [Role.ITERATE, Role.BIND, Role.ENTER, Role.ENTER]
    loop = tree.body[0]
    assert found.points[id(loop)].role is Role.ITERATE
    assert [n.role for n in found.inside(loop)] == [
        Role.ITERATE, Role.BIND, Role.ENTER, Role.STATEMENT, Role.LEAVE,
    ]  # fmt: skip
    assert {e.target for e in found.leaving(loop)} == {found.exit, found.raised}


def test_what_is_evaluated_at_a_node() -> None:
    found = graph("@d\nasync def g(a: A = b, *c: C) -> R:\n  pass\nx = y\nx += z")
    assert [[ast.unparse(p) for p in evaluated(n)] for n in found.nodes[3:]] == [
        ["d", "b", "A", "C", "R"], ["y", "x"], ["x", "z"],
    ]  # fmt: skip


def test_long_chains_need_no_stack() -> None:
    nested = ast.parse("if x: pass").body[0]
    for _ in range(5000):
        outer = ast.parse("if x: pass").body[0]
        outer.orelse = [nested]  # type: ignore[attr-defined]
        nested = outer
    tree = ast.Module(body=[nested], type_ignores=[])
    assert len(graph_of(tree).order) > 10_000
