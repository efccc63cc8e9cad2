"""In: the rounds of an evaluation. Out: the Cell that Model.eval calls, and what a Metric gets.

The eval Cell as it is where it takes the batch as it comes and gives all that a round reads; else
a Cell around it, or around the network, that hands on what is read of the batch.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from migrate.outcomes import Edit, Outcome, Site
from migrate.source import Source
from migrate.training.effects import dotted
from migrate.training.lines import Parts, moved
from migrate.training.metric_sums import Measured


@dataclass(frozen=True)
class EvalNetwork:
    """``build`` makes it, ``received`` are the names of what a Metric gets of it; ``text`` is the
    class ``name`` where one is needed, ``renames`` the edits in the statement that moves there."""

    build: str
    received: tuple[str, ...]
    indexes: str = ""
    name: str = ""
    text: Parts = ()
    renames: tuple[Edit, ...] = ()


def eval_network(
    source: Source, found: Measured, own: str, torch: str, taken: set[str]
) -> EvalNetwork:
    """The Cell for Model.eval; ``taken`` grows by the name of a class."""
    rounds = found.rounds
    results = list(rounds.targets)
    if _is_with_eval_cell(source, rounds.cell, own):
        results[2] = rounds.given[1]
    read = {*found.received}
    if rounds.given == [*rounds.columns] and read <= {*results}:
        received = tuple(n if n in read else "_" for n in results)
        if len(received) == 3 and results[2] != rounds.targets[2] and received[0] == "_":
            return EvalNetwork(
                source.text_of(rounds.cell), received[1:], ", eval_indexes=[0, 1, 2]"
            )
        return EvalNetwork(source.text_of(rounds.cell), received)
    return _around(source, found, torch, free("EvalNet", taken))


def _is_with_eval_cell(source: Source, cell: ast.expr, own: str) -> bool:
    return any(
        isinstance(n, ast.Assign)
        and isinstance(n.value, ast.Call)
        and dotted(n.value.func) == f"{own}.WithEvalCell"
        and dotted(n.targets[0]) == dotted(cell)
        for n in ast.walk(source.tree)
    )


def _around(source: Source, found: Measured, torch: str, name: str) -> EvalNetwork:
    rounds = found.rounds
    member = dotted(rounds.cell).rpartition(".")[2]
    assert isinstance(rounds.forward.value, ast.Call)
    span = source.span(rounds.forward.value.func)
    site = Site("training", span, rounds.forward.lineno, 1)
    head = (
        f"class {name}({torch}.nn.Module):\n    def __init__(self, {member}):\n"
        f"        super().__init__(auto_prefix=False)\n        self.{member} = {member}\n\n"
        f"    def forward({', '.join(['self', *rounds.columns])}):\n"
    )
    text = (
        head,
        *moved(source, rounds.forward, " " * 8),
        f"        return {', '.join(found.received)}\n\n\n",
    )
    return EvalNetwork(
        f"{name}({source.text_of(rounds.cell)})",
        found.received,
        name=name,
        text=text,
        renames=(Edit(site, Outcome.CONVERTED, (f"self.{member}",)),),
    )


def free(name: str, taken: set[str]) -> str:
    """A name that nothing has; it is taken from now on."""
    number, chosen = 2, name
    while chosen in taken:
        chosen, number = f"{name}{number}", number + 1
    taken.add(chosen)
    return chosen
