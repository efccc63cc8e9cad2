"""In: a file whose training steps are Cells. Out: the loops that mindspore.train.Model can run.

Model runs epochs of batches and calls back in between. It does what the loop did where an epoch
is one loop over a data set, each round one call of the step with the whole batch, and the loop
is left at the end of an epoch only.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from migrate.syntax.lines import shares_line
from migrate.syntax.source import Source
from migrate.syntax.trees import dotted
from migrate.training.effects import binds, blocks, reads

_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_MODE = "in which mode it trains is not said in front of it"
_NOTHING = "-"  # the instance where there is none: no name is like it
_STEPS = ("TrainOneStepCell", "TrainOneStep", "TrainStep")


@dataclass(frozen=True)
class EpochLoop:
    """``outer`` counts epochs, ``inner`` takes batches, ``call`` makes the step.

    ``columns`` are the names of a batch, ``index`` that of its number ("" for none), counted from
    ``first``; ``scope`` is the function around it (None: the module) and ``own`` the name of its
    instance.
    """

    outer: ast.For
    inner: ast.For
    call: ast.stmt
    step: ast.expr
    data: ast.expr
    columns: tuple[str, ...]
    index: str
    first: str
    scope: ast.FunctionDef | None
    own: str

    @property
    def results(self) -> ast.expr | None:
        return self.call.targets[0] if isinstance(self.call, ast.Assign) else None

    @property
    def early(self) -> list[ast.stmt]:
        return self.inner.body[: self.inner.body.index(self.call)]

    @property
    def late(self) -> list[ast.stmt]:
        return self.inner.body[self.inner.body.index(self.call) + 1 :]

    @property
    def head(self) -> list[ast.stmt]:
        return self.outer.body[: self.outer.body.index(self.inner)]

    @property
    def tail(self) -> list[ast.stmt]:
        return self.outer.body[self.outer.body.index(self.inner) + 1 :]


@dataclass(frozen=True)
class Refused:
    """The line of a step's call, and why its loop stays one."""

    line: int
    reason: str


def epoch_loops(
    source: Source, own: str, single: Collection[str] = ()
) -> list[EpochLoop | Refused]:
    """The loops around each call of a step; ``own`` is the name that steps are built from.

    ``single`` are the steps of one network: Model puts whatever a step holds into training mode.
    """
    steps = step_names(source.tree, own)
    found: list[EpochLoop | Refused] = []
    for scope, instance, body in scopes(source.tree, None, _NOTHING):
        calls = [(c, around) for c, around in statements(body, ()) if _called(c) in steps]
        several = len({_called(c) for c, _ in calls}) > 1 or len(calls) > 1
        for call, around in calls:
            loop = _loop(source, call, around, scope, instance)
            if isinstance(loop, EpochLoop):
                loop = _untrained(loop, body, single) or loop
            if several and isinstance(loop, EpochLoop):
                loop = "several steps are made in one function"
            found.append(Refused(call.lineno, loop) if isinstance(loop, str) else loop)
    return found


def step_names(tree: ast.Module, own: str) -> set[str]:
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            owner, _, name = dotted(node.value.func).partition(".")
            if owner == own and name.endswith(_STEPS):
                found |= {dotted(t) for t in node.targets}
    return found


def scopes(
    node: ast.Module | ast.ClassDef | ast.FunctionDef, scope: ast.FunctionDef | None, own: str
) -> Iterator[tuple[ast.FunctionDef | None, str, list[ast.stmt]]]:
    """(function, name of its instance, statements): the module's, then those of functions."""
    if not isinstance(node, ast.ClassDef):
        yield scope, own, node.body
    for item in ast.walk(node) if isinstance(node, ast.Module) else node.body:
        if isinstance(item, ast.ClassDef):
            methods = [m for m in item.body if isinstance(m, ast.FunctionDef)]
            for method in methods:
                first = method.args.args[0].arg if method.args.args else ""
                yield method, first, method.body
        elif isinstance(item, ast.FunctionDef) and isinstance(node, ast.Module):
            inside = {id(m) for c in ast.walk(node) if isinstance(c, ast.ClassDef) for m in c.body}
            if id(item) not in inside:
                yield item, _NOTHING, item.body


def statements(
    body: list[ast.stmt], around: tuple[ast.stmt, ...]
) -> Iterator[tuple[ast.stmt, tuple[ast.stmt, ...]]]:
    for item in body:
        if isinstance(item, _DEFINITIONS):
            continue
        yield item, around
        for block in blocks(item):
            yield from statements(block, (*around, item))


def _called(item: ast.stmt) -> str:
    value = item.value if isinstance(item, (ast.Assign, ast.Expr)) else None
    return dotted(value.func) if isinstance(value, ast.Call) else ""


def _loop(
    source: Source,
    call: ast.stmt,
    around: Sequence[ast.stmt],
    scope: ast.FunctionDef | None,
    own: str,
) -> EpochLoop | str:
    if len(around) < 2 or not all(isinstance(a, ast.For) for a in around[-2:]):
        return "it is not a loop over batches inside a loop over epochs"
    outer, inner = around[-2:]
    assert isinstance(outer, ast.For) and isinstance(inner, ast.For)
    if any(isinstance(a, _LOOPS) for a in around[:-2]):
        return "it is inside a third loop"
    if inner not in outer.body or call not in inner.body or inner.orelse or outer.orelse:
        return "the step is made under a condition"
    if not isinstance(outer.target, ast.Name) or _range(outer.iter) is None:
        return "epochs are not counted by range()"
    batch = batch_of(inner)
    if isinstance(batch, str):
        return batch
    index, first, data, columns = batch
    assert isinstance(call, (ast.Assign, ast.Expr)) and isinstance(call.value, ast.Call)
    if [dotted(a) for a in call.value.args] != list(columns) or call.value.keywords:
        return "the step is not given the batch as it comes"
    made = EpochLoop(outer, inner, call, call.value.func, data, columns, index, first, scope, own)
    return _unfit(source, made) or made


def _range(node: ast.expr) -> tuple[ast.expr | None, ast.expr] | None:
    """(start, stop) of ``range(stop)`` or ``range(start, stop)``."""
    if not isinstance(node, ast.Call) or dotted(node.func) != "range" or node.keywords:
        return None
    if len(node.args) == 1:
        return None, node.args[0]
    return (node.args[0], node.args[1]) if len(node.args) == 2 else None


def counted(loop: EpochLoop) -> tuple[ast.expr | None, ast.expr]:
    """The first epoch (None: 0) and the one behind the last."""
    found = _range(loop.outer.iter)
    assert found is not None
    return found


def batch_of(inner: ast.For) -> tuple[str, str, ast.expr, tuple[str, ...]] | str:
    """(name of the number, its start, data, names) of ``for i, (x, y) in enumerate(data, 1)``."""
    target, data, index, first = inner.target, inner.iter, "", "0"
    if isinstance(data, ast.Call) and dotted(data.func) == "enumerate" and data.args:
        pair = target.elts if isinstance(target, ast.Tuple) else []
        start = [*data.args[1:], *(k.value for k in data.keywords)]
        if len(pair) != 2 or not isinstance(pair[0], ast.Name) or len(start) > 1:
            return "batches are not numbered by enumerate() alone"
        if start and not isinstance(start[0], ast.Constant):
            return "batches are numbered from a number that is computed"
        first = str(start[0].value) if start and isinstance(start[0], ast.Constant) else "0"
        index, target, data = pair[0].id, pair[1], data.args[0]
    if not dotted(data):
        return "what the batches come from is not a variable"
    if not isinstance(target, (ast.Tuple, ast.List)):
        return "a batch is not taken apart in the head of the loop"
    names = [e.id for e in target.elts if isinstance(e, ast.Name)]
    if len(names) != len(target.elts):
        return "a batch is nested"
    return index, first, data, tuple(names)


def _unfit(source: Source, loop: EpochLoop) -> str:
    """Why Model would do something else, "" where it would not."""
    inside = [n for s in loop.outer.body for n in ast.walk(s)]
    if any(isinstance(n, (ast.Return, ast.Yield, ast.YieldFrom, ast.Await)) for n in inside):
        return "the function is left in the loop"
    if any(own_exits(s) for s in loop.inner.body) or any(own_exits(s) for s in loop.head):
        return "an epoch is left before its end"
    if any(shares_line(source, s) for s in [*loop.outer.body, *loop.inner.body]):
        return "several statements stand on one line"
    early = [s for s in loop.early if not moves_batch(s, loop.columns)]
    if binds(early, loop.own) & {*loop.columns} or any(_switches(s) for s in loop.inner.body):
        return "the batch is prepared, or the mode is switched, in the loop"
    if any(_switches(s) for s in loop.head) and not _trains_last(loop.head):
        return "the step is made in evaluation mode"
    needed = {dotted(loop.step), dotted(loop.data)} | reads([loop.outer.iter], loop.own)
    if binds([loop.outer], loop.own) & needed:
        return "the data, the step or the number of epochs is bound anew in the loop"
    return ""


def _untrained(loop: EpochLoop, body: list[ast.stmt], single: Collection[str]) -> str:
    """Why Model's own switch to training mode may not be what the code does."""
    step = dotted(loop.step)
    before = [s for s, _ in statements(body, ()) if s.lineno < loop.outer.lineno]
    if any(_called(s) == f"{step}.set_train" for s in before):
        return ""
    if step not in single:
        return "Model would put several networks into training mode"
    simple = [s for s in before if isinstance(s, ast.Expr)]
    return "" if _trains_last(loop.head) or _trains_last(simple) else _MODE


def own_exits(item: ast.stmt) -> list[ast.stmt]:
    """The break and continue that belong to the loop a statement stands in."""
    if isinstance(item, (ast.Break, ast.Continue)):
        return [item]
    if isinstance(item, (*_LOOPS, *_DEFINITIONS)):
        return []
    return [e for block in blocks(item) for s in block for e in own_exits(s)]


def moves_batch(item: ast.stmt, columns: Sequence[str]) -> bool:
    """``x, y = x.to(device), y.to(device)``: the same numbers elsewhere."""
    if not isinstance(item, ast.Assign) or len(item.targets) != 1:
        return False
    target, value = item.targets[0], item.value
    pairs = [(target, value)]
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        pairs = list(zip(target.elts, value.elts, strict=False))
        if len(target.elts) != len(value.elts):
            return False
    return all(_is_move(t, v) and dotted(t) in columns for t, v in pairs)


def _is_move(target: ast.expr, value: ast.expr) -> bool:
    if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Attribute):
        return False
    if dotted(value.func.value) != dotted(target) or not dotted(target):
        return False
    if value.func.attr in ("cuda", "cpu"):
        return True
    device = value.args[0] if value.args else None
    named = dotted(device).rpartition(".")[2].lower() if device is not None else ""
    return value.func.attr == "to" and ("device" in named or isinstance(device, ast.Constant))


def _switches(item: ast.stmt, *modes: str) -> bool:
    wanted = modes or ("train", "eval", "set_train")
    return any(
        isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and n.func.attr in wanted
        for n in ast.walk(item)
    )


def _trains_last(items: Sequence[ast.stmt]) -> bool:
    last = next((s for s in reversed(items) if _switches(s)), None)
    value = last.value if isinstance(last, ast.Expr) else None
    plain = isinstance(value, ast.Call) and not value.args and not value.keywords
    return plain and last is not None and _switches(last, "train")
