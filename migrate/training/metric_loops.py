"""Find evaluation loops that are rounds of Model.eval, what they sum up and hand on.

Model.eval hands each batch to one Cell and what the Cell gives to a Metric, and no more: a loop
that is left early, prints, or writes elsewhere stays one. A name that the rounds change is a sum
when a round reads what the last one left, or when the code behind the loop reads it; every other
name is a round's own.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from migrate.syntax.lines import shares_line
from migrate.syntax.source import Source
from migrate.syntax.trees import dotted, last_name
from migrate.training.callbacks import anew, binds_whole
from migrate.training.effects import binds, blocks, reads, uses
from migrate.training.epoch_loops import (
    batch_of,
    moves_batch,
    own_exits,
    scopes,
    statements,
    step_names,
)
from migrate.training.eval_loops import mode_set

LOOPS = (ast.For, ast.AsyncFor, ast.While)
_INNER = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_GROWS = {"append", "extend", "update", "add", "insert", "clear", "pop", "remove", "sort"}
_PLAIN = {"zeros", "ones", "full", "empty", "array", "tensor", "list", "dict", "set", "float"}
_PLAIN |= {"defaultdict", "Counter", "int", "deque", "len", "range"}
Levels = tuple[tuple[list[ast.stmt], ast.stmt, ast.AST], ...]


def levels(top: ast.AST, around: Sequence[ast.stmt], item: ast.stmt) -> Levels:
    """(block, statement, owner of the block) from an inner statement to its function."""
    found = []
    for owner in (*reversed(around), top):
        block = next(b for b in blocks(owner) if item in b)
        found.append((block, item, owner))
        if isinstance(owner, ast.stmt):
            item = owner
    return tuple(found)


def changed(item: ast.stmt, own: str) -> set[str]:
    """What a statement binds, writes into, or grows."""
    found = binds([item], own)
    for node in ast.walk(item):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            name = node.func.attr
            if name in _GROWS or (name.endswith("_") and not name.endswith("__")):
                base: ast.expr = node.func.value
                while isinstance(base, ast.Subscript):
                    base = base.value
                found.add(dotted(base))
    return found - {""}


def begins_anew(body: Sequence[ast.stmt], name: str) -> bool:
    """Whether every round binds the name before anything reads it."""
    return anew(body, name)


def read_later(top: ast.AST, around: Levels, name: str) -> bool:
    """Whether anything may read the name's last value when the loop is through."""
    loop = around[0][1]
    inside = {id(n) for n in ast.walk(loop)}
    for node in ast.walk(top):
        apart = isinstance(node, _INNER) and node is not top and id(node) not in inside
        if apart and any(u.name == name and not u.stored for u in uses(node)):
            return True
    for block, item, owner in around:
        at = block.index(item)
        first = _first(block[at + 1 :], name)
        if first is not None:
            return not anew([first], name)
        if isinstance(owner, LOOPS):
            test = owner.test if isinstance(owner, ast.While) else None
            before = _first(block[: at + 1], name)
            if before is not None and not anew([before], name) and before is not loop:
                return True
            if test is not None and any(u.name == name for u in uses(test)):
                return True
        elif isinstance(owner, ast.Try) and _first([s for b in blocks(owner) for s in b], name):
            return True
    return False


def _first(items: Sequence[ast.stmt], name: str) -> ast.stmt | None:
    return next((s for s in items if name in binds([s]) | reads([s])), None)


def binding(around: Levels, name: str, own: str) -> ast.Assign | None:
    """The plain statement in front of the loop that the name begins with."""
    for block, item, owner in around:
        for earlier in reversed(block[: block.index(item)]):
            if name in changed(earlier, own) | reads([earlier], own):
                whole = isinstance(earlier, ast.Assign) and all(
                    isinstance(t, (ast.Name, ast.Tuple)) for t in earlier.targets
                )
                if not isinstance(earlier, ast.Assign) or not whole:
                    return None
                bare = any(binds_whole(t, name) for t in earlier.targets)
                return earlier if bare and is_plain(earlier.value) else None
        if not isinstance(owner, ast.With):
            return None
    return None


def is_plain(value: ast.expr) -> bool:
    """A number, an empty list, an array of zeros: nothing that something else knows of."""
    if isinstance(value, ast.Constant):
        return True
    if isinstance(value, ast.Attribute):
        return value.attr in ("inf", "nan", "pi")
    if isinstance(value, (ast.Tuple, ast.List, ast.Set)):
        return all(map(is_plain, value.elts))
    if isinstance(value, ast.Dict):
        return all(k is not None for k in value.keys) and all(map(is_plain, value.values))
    if isinstance(value, ast.UnaryOp):
        return is_plain(value.operand)
    if isinstance(value, ast.BinOp):
        sides = (value.left, value.right)
        return all(is_plain(s) or isinstance(s, ast.Name) for s in sides)
    called = dotted(value.func).rpartition(".")[2] if isinstance(value, ast.Call) else ""
    return called in _PLAIN


def names_of_the_file(tree: ast.Module) -> set[str]:
    """What a class of the file's top level can read as it is."""
    found = set(dir(builtins))
    for item in tree.body:
        opens = isinstance(item, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
        found |= {item.name} if opens else binds([item])  # type: ignore[attr-defined]
    return found


def local_names(scope: ast.FunctionDef | None) -> set[str]:
    """The names that a function binds, its parameters among them."""
    if scope is None:
        return set()
    wide = {n for s in ast.walk(scope) if isinstance(s, ast.Global) for n in s.names}
    return (
        {a.arg for a in ast.walk(scope.args) if isinstance(a, ast.arg)} | binds(scope.body)
    ) - wide


def mode_calls(node: ast.AST) -> Iterator[ast.Call]:
    """``net.train()``, ``net.eval()`` and ``net.set_train()`` under a node."""
    for item in ast.walk(node):
        if isinstance(item, ast.Call) and isinstance(item.func, ast.Attribute):
            name = item.func.attr
            if name in ("train", "set_train") or (name == "eval" and not item.args):
                yield item


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
    return {last_name(f) for f in funcs}


def _called_in(items: Sequence[ast.stmt]) -> set[str]:
    return {dotted(n.func) for s in items for n in ast.walk(s) if isinstance(n, ast.Call)}
