"""Solve a data flow problem on a control flow graph, forward or backward, to a fixpoint.

An analysis is one lattice: how states join, and how a node changes one. Its states are values of
any type that are never changed in place; a transfer that changes nothing returns the state it was
given, which costs nothing. The solver visits nodes in (reverse) postorder and keeps one state
before and one after each node.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from migrate.analysis.cfg import Carries, Edge, Graph, Node

State = TypeVar("State")
WIDEN_AFTER = 8  # visits of a node
GIVE_UP_AFTER = 1000


class _Lattice(Generic[State]):
    """What both directions share."""

    def join(self, first: State, second: State) -> State:
        """Return the least state that covers both."""
        raise NotImplementedError

    def same(self, first: State, second: State) -> bool:
        """Return whether two states are equal; `join` decides nothing else."""
        return first is second or first == second

    def widen(self, old: State, new: State) -> State:
        """Return a state that covers ``new``, which covers ``old``, such that no chain is endless.

        It is called where a node was visited more than `WIDEN_AFTER` times. A lattice that is not
        finite, or is high, has to answer with its unknown.
        """
        return new


class Forward(_Lattice[State]):
    """A forward analysis: a state says what may have happened on the way to a point."""

    into_raised = False  # whether the state in which exceptions leave the unit is wanted

    def initial(self, graph: Graph) -> State:
        """Return the state in which the unit is entered."""
        raise NotImplementedError

    def transfer(self, node: Node, before: State) -> State | None:
        """Return the state after a node; None if control never comes out of it normally."""
        raise NotImplementedError

    def edge(self, edge: Edge, state: State) -> State | None:
        """Return the state on an edge (narrowed by its test); None if it is never taken."""
        return state


class Backward(_Lattice[State]):
    """A backward analysis: a state says what may happen from a point on."""

    def bottom(self, graph: Graph) -> State:
        """Return what a join with any state leaves as it is; the state before an endless loop."""
        raise NotImplementedError

    def final(self, node: Node) -> State:
        """Return the state at the exit or where an exception leaves the unit."""
        raise NotImplementedError

    def transfer(self, node: Node, after: State) -> State:
        """Return the state before a node that does its work.

        What is needed where it does not, since it raises or binds nothing, is joined by the solver.
        """
        raise NotImplementedError

    def edge(self, edge: Edge, state: State) -> State:
        """Return the state on an edge, at its source."""
        return state


@dataclass(frozen=True)
class Solution(Generic[State]):
    """The fixpoint. A state is None where control never comes."""

    graph: Graph
    _before: Sequence[State | None]
    _after: Sequence[State | None]

    def before(self, node: Node) -> State | None:
        """Return the state before a node is evaluated."""
        return self._before[node.index]

    def after(self, node: Node) -> State | None:
        """Return the state after it; of a backward analysis, over every way out of it."""
        return self._after[node.index]


class NoFixpoint(Exception):
    """The states of a node never stop growing."""


def solve(analysis: Forward[State] | Backward[State], graph: Graph) -> Solution[State]:
    """Return the least fixpoint; raises NoFixpoint if the lattice does not let it converge."""
    if isinstance(analysis, Forward):
        return _forward(analysis, graph)
    return _backward(analysis, graph)


class _Worklist:
    """The nodes that wait, the first in the order of the traversal first."""

    def __init__(self, order: Sequence[Node], count: int) -> None:
        self.order = order
        self.rank = [-1] * count
        for rank, node in enumerate(order):
            self.rank[node.index] = rank
        self.waits = [False] * count
        self.visits = [0] * count
        self.heap: list[int] = []

    def add(self, node: Node) -> None:
        if not self.waits[node.index]:
            self.waits[node.index] = True
            heapq.heappush(self.heap, self.rank[node.index])

    def pop(self) -> Node:
        node = self.order[heapq.heappop(self.heap)]
        self.waits[node.index] = False
        self.visits[node.index] += 1
        if self.visits[node.index] > GIVE_UP_AFTER:
            raise NoFixpoint(f"no fixpoint at line {node.line}: does the lattice widen?")
        return node


def _forward(analysis: Forward[State], graph: Graph) -> Solution[State]:
    count = len(graph.nodes)
    before: list[State | None] = [None] * count
    after: list[State | None] = [None] * count
    work = _Worklist(graph.order, count)
    unobserved = None if analysis.into_raised else graph.raised
    before[graph.entry.index] = analysis.initial(graph)
    work.add(graph.entry)
    while work.heap:
        node = work.pop()
        state = before[node.index]
        assert state is not None  # only nodes with a state wait
        result = after[node.index] = analysis.transfer(node, state)
        either: State | None = None
        for edge in node.successors:
            target = edge.target
            if target is unobserved:
                continue
            if edge.carries is Carries.AFTER:
                passed = result
            elif edge.carries is Carries.BEFORE or result is None or result is state:
                passed = state
            else:
                either = analysis.join(state, result) if either is None else either
                passed = either
            passed = None if passed is None else analysis.edge(edge, passed)
            if passed is None:
                continue
            old = before[target.index]
            if old is not None:
                if old is passed:
                    continue
                passed = analysis.join(old, passed)
                if work.visits[target.index] > WIDEN_AFTER:
                    passed = analysis.widen(old, passed)
                if analysis.same(old, passed):
                    continue
            before[target.index] = passed
            work.add(target)
    return Solution(graph, before, after)


def _backward(analysis: Backward[State], graph: Graph) -> Solution[State]:
    count = len(graph.nodes)
    bottom = analysis.bottom(graph)
    before: list[State | None] = [None] * count
    after: list[State | None] = [None] * count
    order = graph.order[::-1]
    reached = {node.index for node in order}
    work = _Worklist(order, count)
    for node in order:
        before[node.index] = bottom
        work.add(node)
    while work.heap:
        node = work.pop()
        if node is graph.exit or node is graph.raised:
            done = undone = analysis.final(node)
            state = after[node.index] = done
        else:
            done = undone = bottom  # after the node did its work, and where it may not have
            for edge in node.successors:
                there = before[edge.target.index]
                assert there is not None  # every node that is reached has a state
                there = analysis.edge(edge, there)
                if edge.carries is not Carries.BEFORE:
                    done = analysis.join(done, there)
                if edge.carries is not Carries.AFTER:
                    undone = analysis.join(undone, there)
            after[node.index] = analysis.join(done, undone)
            state = analysis.join(analysis.transfer(node, done), undone)
        old = before[node.index]
        assert old is not None
        if work.visits[node.index] > WIDEN_AFTER:
            state = analysis.widen(old, analysis.join(old, state))
        if analysis.same(old, state):
            continue
        before[node.index] = state
        for edge in node.predecessors:
            if edge.source.index in reached:
                work.add(edge.source)
    return Solution(graph, before, after)
