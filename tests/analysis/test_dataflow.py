"""The solver: a fixpoint over loops, exceptions and tests, forward and backward."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any

import pytest

from migrate.analysis.cfg import Edge, Graph, Node, Why, evaluated, graph_of
from migrate.analysis.dataflow import Backward, Forward, NoFixpoint, Solution, solve

Names = frozenset[str]


class Bound(Forward[Names]):
    """Names that some path binds."""

    def initial(self, graph: Graph) -> Names:
        return frozenset()

    def join(self, first: Names, second: Names) -> Names:
        return first | second

    def transfer(self, node: Node, before: Names) -> Names | None:
        if isinstance(node.part, ast.Expr) and ast.unparse(node.part) == "exit()":
            return None
        return before | names(node, ast.Store)

    def edge(self, edge: Edge, state: Names) -> Names | None:
        if edge.why is Why.FALSE and isinstance(edge.test, ast.Name):
            return state | {"not " + edge.test.id}
        return None if ast.unparse(edge.test or ast.Constant(1)) == "never" else state


class Live(Backward[Names]):
    def bottom(self, graph: Graph) -> Names:
        return frozenset()

    def final(self, node: Node) -> Names:
        return frozenset({"seen"})

    def join(self, first: Names, second: Names) -> Names:
        return first | second

    def transfer(self, node: Node, after: Names) -> Names:
        return (after - names(node, ast.Store)) | names(node, ast.Load)


def names(node: Node, kind: type[ast.expr_context]) -> Names:
    found = (n for part in evaluated(node) for n in ast.walk(part) if isinstance(n, ast.Name))
    return frozenset(n.id for n in found if isinstance(n.ctx, kind))


def before(solution: Solution[Names], line: int) -> str:
    node = next(n for n in solution.graph.nodes if n.line == line)
    state = solution.before(node)
    return "unreached" if state is None else " ".join(sorted(state))


def bound(text: str) -> Solution[Names]:
    return solve(Bound(), graph_of(ast.parse(text)))


def live(text: str) -> Solution[Names]:
    return solve(Live(), graph_of(ast.parse(text)))


def test_what_a_break_and_a_continue_carry() -> None:
    text = (
        "while c:\n if p:\n  x = 1\n  break\n y = 1\n if q:\n  z = 1\n  continue\n w = 1\nend = 1"
    )
    assert before(bound(text), 10) == "not c not p not q w x y z"
    assert before(bound(text), 5) == "not p not q w y z"


def test_an_exception_carries_the_state_before_and_after() -> None:
    assert before(bound("try:\n a = f()\n b = f()\nexcept E:\n c = 1"), 5) == "a b"
    assert before(live("a = 0\ntry:\n a = f()\nexcept E:\n pass\ng(a)"), 3) == "E a f g seen"
    assert before(live("a = 0\na = f()\ng(a)"), 2) == "f g seen"


def test_the_end_of_a_loop_binds_nothing() -> None:
    assert before(bound("for i in x:\n break\nelse:\n a = 1\nb = 1"), 4) == ""
    assert before(bound("for i in x:\n pass\nelse:\n a = 1\nb = 1"), 4) == "i"
    assert before(live("i = 1\nfor i in x:\n f()\ng(i)"), 2) == "f g i seen x"


def test_an_edge_or_a_node_may_end_a_way() -> None:
    assert before(bound("if never:\n a = 1\nb = 1"), 2) == "unreached"
    assert before(bound("exit()\nb = 1"), 2) == "unreached"
    assert before(bound("try:\n exit()\nexcept E:\n b = 1\nc = 1"), 4) == ""


def test_an_endless_loop_reads_what_it_reads() -> None:
    assert before(live("while True:\n f(a)\n a = 1"), 1) == "a f seen"  # f may raise
    assert before(live("while True:\n a = 1"), 1) == ""


def test_both_sides_of_a_node_are_given() -> None:
    solution = live("a = b\nc = a")
    node = solution.graph.nodes[3]
    assert (solution.before(node), solution.after(node)) == ({"b", "seen"}, {"a", "seen"})


@dataclass(frozen=True)
class Count(Forward[int]):
    """A lattice without an end: the highest number of nodes on a path."""

    widens: bool

    def initial(self, graph: Graph) -> int:
        return 0

    def join(self, first: int, second: int) -> int:
        return max(first, second)

    def transfer(self, node: Node, before: int) -> int:
        return before + 1

    def widen(self, old: int, new: int) -> int:
        return 10**9 if self.widens else new

    def same(self, first: int, second: int) -> bool:
        return min(first, 10**9) == min(second, 10**9)


def test_a_lattice_without_end_is_widened() -> None:
    graph = graph_of(ast.parse("while x:\n f()\ng()"))
    assert solve(Count(True), graph).before(graph.exit) >= 10**9  # type: ignore[operator]
    with pytest.raises(NoFixpoint, match="line 1: does the lattice widen"):
        solve(Count(False), graph)


def test_the_cost_is_linear_in_the_statements() -> None:
    def transfers(count: int, analysis: type[Any]) -> int:
        done = 0

        class Counted(analysis):  # type: ignore[misc]
            def transfer(self, node: Node, before: Any) -> Any:
                nonlocal done
                done += 1
                return super().transfer(node, before)

        block = "for i in x:\n if i:\n  continue\n try:\n  a = f(i)\n except E as e:\n  b = 1\n"
        solve(Counted(), graph_of(ast.parse(block * count)))
        return done

    for analysis in (Bound, Live):
        assert 100 < transfers(1000, analysis) < 11 * transfers(100, analysis)
