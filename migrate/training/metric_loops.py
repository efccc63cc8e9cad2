"""In: a file whose evaluation loops call eval Cells. Out: those that are rounds of Model.eval.

Model.eval hands each batch to one Cell and what the Cell gives to a Metric, and no more: a loop
that is left early, prints, or writes elsewhere stays one.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from migrate.source import Source
from migrate.training.effects import binds, dotted, reads
from migrate.training.epoch_loops import (
    batch_of,
    moves_batch,
    own_exits,
    scopes,
    statements,
    step_names,
)
from migrate.training.eval_loops import mode_set
from migrate.training.lines import shares_line
from migrate.training.metric_names import LOOPS, Levels, levels, mode_calls

_SAYS = {"print", "info", "debug", "warning", "write", "log", "set_postfix", "set_description"}
_SAYS |= {"add_scalar", "flush"}
_DRAWS = {"rand", "randn", "randint", "random", "shuffle", "permutation", "choice"}
_FITTING = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr, ast.If, ast.For, ast.With, ast.Pass)
_OPENS = (ast.FunctionDef, ast.ClassDef, ast.Lambda, ast.Await, ast.Yield, ast.YieldFrom)


@dataclass(frozen=True)
class EvalRounds:
    """``forward`` calls ``cell`` (an eval Cell, or the network itself) with a batch.

    ``columns`` name a batch, ``index`` its number ("" for none), ``moves`` bring it to a device,
    ``body`` is what a round does besides.
    """

    loop: ast.For
    around: Levels
    scope: ast.FunctionDef | None
    own: str
    forward: ast.Assign
    cell: ast.expr
    network: ast.expr
    data: ast.expr
    columns: tuple[str, ...]
    index: str
    moves: tuple[ast.stmt, ...]
    body: tuple[ast.stmt, ...]

    @property
    def is_cell(self) -> bool:
        """Whether an eval Cell is called, not the network."""
        return self.cell is not self.network

    @property
    def targets(self) -> list[str]:
        """What a call's results are bound to, one after another."""
        target = self.forward.targets[0]
        items = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
        return [dotted(item) for item in items]

    @property
    def given(self) -> list[str]:
        assert isinstance(self.forward.value, ast.Call)
        return [dotted(a) for a in self.forward.value.args]


@dataclass(frozen=True)
class Stays:
    """An evaluation loop that stays one, and why."""

    loop: ast.For
    reason: str


def eval_rounds(source: Source, own: str) -> list[EvalRounds | Stays]:
    """The evaluation loops of a file; ``own`` is the name that Cells are built from."""
    found: list[EvalRounds | Stays] = []
    steps = step_names(source.tree, own)
    for scope, instance, body in scopes(source.tree, None, "-"):
        for item, around in statements(body, ()):
            if not isinstance(item, ast.For) or _called(item) & steps:
                continue
            above = levels(scope or source.tree, around, item)
            switch = _switch(above, own)
            if switch is None:
                continue
            forward = next((s for s in item.body if _is_forward(s, switch)), None)
            if isinstance(forward, ast.Assign):
                made = _rounds(item, above, scope, instance, forward, switch)
                why = made if isinstance(made, str) else _unfit(source, made)
                found.append(Stays(item, why) if why else made)  # type: ignore[arg-type]
    return found


def _called(loop: ast.For) -> set[str]:
    return {dotted(n.func) for n in ast.walk(loop) if isinstance(n, ast.Call)}


def _switch(above: Levels, own: str) -> tuple[ast.expr, ast.expr] | None:
    """(what is called, the network) of the ``eval()`` that every round has passed."""
    for block, item, owner in above:
        if isinstance(item, LOOPS) and item is not above[0][1] and any(mode_calls(item)):
            return None
        for earlier in reversed(block[: block.index(item)]):
            if any(mode_calls(earlier)):
                return _switched(earlier, own)
        if isinstance(owner, (ast.FunctionDef, ast.Module)):
            return None
    return None


def _switched(item: ast.stmt, own: str) -> tuple[ast.expr, ast.expr] | None:
    value = item.value if isinstance(item, ast.Expr) else None
    if not isinstance(value, ast.Call):
        return None
    if dotted(value.func) == f"{own}.evaluating":
        inner = value.args[1]
        assert isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute)
        return value.args[0], inner.func.value
    if mode_set(item) and isinstance(value.func, ast.Attribute):
        return value.func.value, value.func.value
    return None


def _is_forward(item: ast.stmt, switch: tuple[ast.expr, ast.expr]) -> bool:
    value = item.value if isinstance(item, ast.Assign) else None
    name = dotted(value.func) if isinstance(value, ast.Call) else ""
    return bool(name) and name in {dotted(s) for s in switch}


def _rounds(
    loop: ast.For,
    above: Levels,
    scope: ast.FunctionDef | None,
    own: str,
    forward: ast.Assign,
    switch: tuple[ast.expr, ast.expr],
) -> EvalRounds | str:
    batch = batch_of(loop)
    if isinstance(batch, str):
        return batch
    index, _, data, columns = batch
    assert isinstance(forward.value, ast.Call)
    early = loop.body[: loop.body.index(forward)]
    moves = tuple(s for s in early if moves_batch(s, columns))
    body = tuple(s for s in loop.body if s is not forward and s not in moves)
    name = dotted(forward.value.func)
    cell = next(s for s in switch if dotted(s) == name)
    return EvalRounds(
        loop, above, scope, own, forward, cell, switch[1], data, columns, index, moves, body
    )


def _unfit(source: Source, made: EvalRounds) -> str:
    """Why a round is more than a call of the Cell and an update of a Metric."""
    loop, call = made.loop, made.forward.value
    assert isinstance(call, ast.Call)
    if loop.orelse or any(own_exits(s) for s in loop.body) or _has(loop, ast.Return, ast.Raise):
        return "it is left before the data are through"
    if any(shares_line(source, s) for s in loop.body):
        return "several statements stand on one line"
    if not all(isinstance(s, _FITTING) for s in made.body) or _has(loop, *_OPENS):
        return "a round is more than sums of results"
    if _words(loop) & _SAYS:
        return "every round prints or logs"
    if _words(loop) & _DRAWS:
        return "a round draws random numbers"
    if made.index and made.index in reads(made.body, made.own):
        return "the number of a batch is read"
    if not set(made.given) <= {*made.columns} or call.keywords or not all(made.targets):
        return "the network is not given the batch as it comes"
    before = loop.body[: loop.body.index(made.forward)]
    if binds([s for s in before if s not in made.moves], made.own) & {*made.columns}:
        return "the batch is prepared in the loop"
    if dotted(made.cell) in _called_in(made.body) or dotted(made.network) in reads(made.body):
        return "a round asks the network more than once"
    return ""


def _has(node: ast.AST, *kinds: type[ast.AST]) -> bool:
    return any(isinstance(n, kinds) for n in ast.walk(node))


def _words(node: ast.AST) -> set[str]:
    """The last word of everything that is called."""
    funcs = [n.func for n in ast.walk(node) if isinstance(n, ast.Call)]
    return {f.attr if isinstance(f, ast.Attribute) else getattr(f, "id", "") for f in funcs}


def _called_in(items: Sequence[ast.stmt]) -> set[str]:
    return {dotted(n.func) for s in items for n in ast.walk(s) if isinstance(n, ast.Call)}
