"""Write an epoch loop for mindspore.train.Model and its callbacks.

What stood around the step keeps its words and its variables: it moves into methods that Model
calls at the same moments. Each part of an epoch's end is a class named after what it does.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from migrate.codegen.substitution import piece
from migrate.records.outcomes import Edit, Piece, Span
from migrate.syntax.lines import above, indent_of, shifted, whole
from migrate.syntax.source import Source
from migrate.syntax.trees import all_names, last_name
from migrate.training.effects import binds, free, uses
from migrate.training.epoch_loops import EpochLoop, counted, moves_batch, own_exits
from migrate.training.lines import Parts, edit


@dataclass(frozen=True)
class Method:
    """``event`` is what Model calls, ``lead`` the lines in front of the statements, ``bound``
    the names that both bind."""

    event: str
    lead: tuple[str, ...]
    body: tuple[ast.stmt, ...]
    bound: frozenset[str]


def is_read(loop: EpochLoop, name: str) -> bool:
    """Whether a variable of the loop is read in it or behind it; in a module, always."""
    if loop.scope is None:
        return bool(name)
    heads = [loop.outer.target, loop.inner.target, loop.call]
    skipped = {id(n) for h in heads for n in ast.walk(h)}
    return any(
        isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load)
        for n in ast.walk(loop.scope)
        if id(n) not in skipped
    )


def is_batch_read(loop: EpochLoop) -> bool:
    """Whether anything but the step reads the batch."""
    later = [s for s in loop.tail if not binds([s], loop.own) & {*loop.columns}]
    reading = {
        u.name for s in [*loop.early, *loop.late, *later] for u in uses(s, loop.own) if not u.stored
    }
    behind = [n for n in _behind(loop) if isinstance(n.ctx, ast.Load)]
    return bool((reading | {n.id for n in behind}) & {*loop.columns})


def _behind(loop: EpochLoop) -> list[ast.Name]:
    """The names behind the loop, and those in functions defined in front of it."""
    if loop.scope is None:
        return []
    inner = (ast.FunctionDef, ast.Lambda)
    defined = {id(n) for f in ast.walk(loop.scope) if isinstance(f, inner) and f is not loop.scope
               for n in ast.walk(f)}  # fmt: skip
    end = loop.outer.end_lineno or loop.outer.lineno
    return [
        n
        for n in ast.walk(loop.scope)
        if isinstance(n, ast.Name) and (n.lineno > end or id(n) in defined)
    ]


def shared(loop: EpochLoop, methods: Sequence[Method]) -> set[str]:
    """What one method binds and another place, or its own next call, reads."""
    found: set[str] = set()
    behind = {n.id for n in _behind(loop) if isinstance(n.ctx, ast.Load)}
    for method in methods:
        for name in method.bound:
            if "." in name:
                continue
            others = any(_asks(o, name) for o in methods if o is not method)
            if loop.scope is None or name in behind or others or not _begins(method, name):
                found.add(name)
    return found


def _asks(method: Method, name: str) -> bool:
    """Whether a method reads what another has bound."""
    read = any(u.name == name and not u.stored for s in method.body for u in uses(s))
    return (read or any(f"{name} +=" in line for line in method.lead)) and not _begins(method, name)


def _begins(method: Method, name: str) -> bool:
    """Whether each call of a method binds the name before anything reads it."""
    for line in method.lead:
        target, _, value = line.partition(" = ")
        if value and name in target.strip("()").replace(",", " ").split():
            return True
        if line.startswith(f"{name} +="):
            return False
    return anew(method.body, name)


def anew(items: Sequence[ast.stmt], name: str) -> bool:
    """Whether the first statement that names it binds it, without reading it."""
    for item in items:
        if not any(u.name == name for u in uses(item)):
            continue
        if isinstance(item, ast.Assign):
            bare = any(binds_whole(t, name) for t in item.targets)
            return bare and not any(u.name == name for u in uses(item.value))
        if isinstance(item, ast.For):
            if any(u.name == name for u in uses(item.iter)):
                return False
            return binds_whole(item.target, name) or anew(item.body, name)
        if isinstance(item, ast.With):
            if any(u.name == name for i in item.items for u in uses(i)):
                return False
            return anew(item.body, name)
        return False
    return False


def binds_whole(target: ast.expr, name: str) -> bool:
    if isinstance(target, (ast.Tuple, ast.List)):
        return any(binds_whole(e, name) for e in target.elts)
    return isinstance(target, ast.Name) and target.id == name


def elsewhere(loop: EpochLoop) -> set[str]:
    """The names that the scope binds outside of the loop (nonlocal asks for one that is)."""
    if loop.scope is None:  # in a module any name can be bound from a method
        return all_names(loop.outer)
    inside = {id(n) for n in ast.walk(loop.outer)}
    found = {n.arg for n in ast.walk(loop.scope.args) if isinstance(n, ast.arg)}
    for node in ast.walk(loop.scope):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found |= {node.id} if id(node) not in inside else set()
        elif isinstance(node, (ast.Global, ast.Nonlocal)):
            found |= {*node.names}
    return found


def declared(loop: EpochLoop, names: Sequence[str]) -> list[str]:
    """The global and nonlocal lines for the names that a method binds."""
    said = [n for n in ast.walk(loop.scope or loop.outer) if isinstance(n, ast.Global)]
    wide = {name for n in said for name in n.names}
    found = [n for n in names if loop.scope is None or n in wide]
    rest = [n for n in names if n not in found]
    lines = [f"global {', '.join(found)}"] if found else []
    return lines + ([f"nonlocal {', '.join(rest)}"] if rest else [])


_SAVES = {"save", "state_dict", "save_checkpoint", "deepcopy"}
_JUDGES = ("eval", "valid", "test")


def edits(source: Source, loop: EpochLoop, own: str, taken: set[str]) -> list[Edit]:
    """The edits that put Model.train in place of the loop over epochs."""
    indent = indent_of(source, loop.outer)
    classes = _classes(source, loop, own, taken)
    names = shared(loop, [m for _, methods in classes for m in methods])
    unbound = sorted(names - elsewhere(loop))
    parts: list[str | Piece] = []
    if unbound:
        parts.append(f"{indent}{' = '.join(unbound)} = None\n")
    for name, methods in classes:
        parts += [f"\n{indent}class {name}({own}.Callback):\n"]
        parts += _joined([_method(source, loop, m, names, indent) for m in methods])
    parts += [f"\n{indent}"] if classes else [indent]
    parts += _running(source, loop, own, [name for name, _ in classes], taken, indent)
    span = Span(whole(source, loop.outer).start, whole(source, loop.outer).end)
    return [
        edit(source, span, tuple(parts)),
        *_exits(source, loop, indent),
        *_switches(source, loop, own),
    ]


def _joined(found: Sequence[Parts]) -> Iterator[str | Piece]:
    for index, parts in enumerate(found):
        yield from ("\n",) if index else ()
        yield from parts


# -- classes ------------------------------------------------------------------------------------


def _classes(
    source: Source, loop: EpochLoop, own: str, taken: set[str]
) -> list[tuple[str, list[Method]]]:
    """The callbacks in the order in which Model calls them."""
    batches = list(_around_steps(source, loop, own))
    found = [("TrainingLog", batches)] if batches else []
    for name, items in _groups(loop.tail):
        bound = frozenset(binds(items, loop.own))
        found.append((name, [Method("on_train_epoch_end", (), tuple(items), bound)]))
    return [(free(name, taken), methods) for name, methods in found]


def _around_steps(source: Source, loop: EpochLoop, own: str) -> Iterator[Method]:
    """What stands in front of the batches, in front of the step and behind it."""
    epoch = loop.outer.target.id if isinstance(loop.outer.target, ast.Name) else ""
    lead = [_epoch(loop, epoch)] if is_read(loop, epoch) else []
    counts = bool(loop.index) and is_read(loop, loop.index)
    lead += [f"{loop.index} = {int(loop.first) - 1}"] if counts else []
    named = {epoch, *([loop.index] if counts else [])} if lead else set()
    if lead or loop.head:
        yield _made("on_train_epoch_begin", loop, lead, loop.head, named)
    columns = ", ".join(loop.columns) + ("," if len(loop.columns) == 1 else "")
    lead = [f"{loop.index} += 1"] if counts else []
    named = {loop.index} if counts else set()
    if is_batch_read(loop):
        lead += [f"{columns} = {own}.batch(run_context)"]
        named |= {*loop.columns}
    late = loop.late
    if all(moves_batch(s, loop.columns) for s in loop.early):
        late = [*loop.early, *late] if is_batch_read(loop) else late
    else:
        yield _made("on_train_step_begin", loop, lead, loop.early, named)
        lead, named = [], set()
    if loop.results is not None and any(is_read(loop, n) for n in binds([loop.call], loop.own)):
        target, step = source.text_of(loop.results), source.text_of(loop.step)
        lead += [f"{target} = {own}.net_outputs(run_context, {step})"]
        named |= binds([loop.call], loop.own)
    if lead or late:
        yield _made("on_train_step_end", loop, lead, late, named)


def _made(
    event: str, loop: EpochLoop, lead: list[str], body: list[ast.stmt], named: set[str]
) -> Method:
    bound = frozenset({*binds(body, loop.own), *named})
    return Method(event, tuple(lead), tuple(body), bound)


def _epoch(loop: EpochLoop, name: str) -> str:
    number = f"{name} = run_context.original_args().cur_epoch_num"
    start, _ = counted(loop)
    if isinstance(start, ast.Constant) and start.value == 1:
        return number
    return f"{number} - 1" if start is None else f"{number} - 1 + {ast.unparse(start)}"


def _groups(items: Sequence[ast.stmt]) -> list[tuple[str, list[ast.stmt]]]:
    """The statements behind the batches by what they do; what may stop the run comes last.

    What is bound or noted on the way of an evaluation belongs to it.
    """
    kinds = [_kind(s) for s in items]
    judged = [i for i, k in enumerate(kinds) if k == "Evaluation"]
    found: list[tuple[str, list[ast.stmt]]] = []
    for index, item in enumerate(items):
        name = kinds[index]
        if name == "EpochLog" and judged and judged[0] < index < judged[-1]:
            name = "Evaluation"
        after = bool(found) and found[-1][0] == "Evaluation" and name == "EpochLog"
        if found and (found[-1][0] == name or after or _may_stop(found[-1][1])):
            found[-1][1].append(item)
        else:
            found.append((name, [item]))
    return found


def _may_stop(items: Sequence[ast.stmt]) -> bool:
    return any(own_exits(s) for s in items)


def _kind(item: ast.stmt) -> str:
    called = {last_name(n.func) for n in ast.walk(item) if isinstance(n, ast.Call)}
    if any(isinstance(e, ast.Break) for e in own_exits(item)):
        return "EarlyStopping"
    if called & _SAVES:
        return "BestCheckpoint" if isinstance(item, ast.If) else "Checkpoint"
    if "step" in called:
        return "LearningRate"
    if (
        "evaluating" in called
        or "set_train" in called
        or any(n.startswith(_JUDGES) for n in called)
    ):
        return "Evaluation"
    loops = isinstance(item, (ast.For, ast.With))
    return "Evaluation" if loops else "EpochLog"


# -- text ---------------------------------------------------------------------------------------


def _method(source: Source, loop: EpochLoop, method: Method, names: set[str], indent: str) -> Parts:
    instance = "callback" if loop.own == "self" else "self"
    inner = indent + " " * 8
    parts: list[str | Piece] = [f"{indent}    def {method.event}({instance}, run_context):\n"]
    parts += [f"{inner}{line}\n" for line in declared(loop, sorted(method.bound & names))]
    parts += [f"{inner}{line}\n" for line in method.lead]
    before = [s for s in method.body if s.end_lineno and s.end_lineno < loop.call.lineno]
    behind = [s for s in method.body if s not in before]
    for run in (before, behind):  # the call of the step stands between them
        if run:
            span = Span(above(source, run[0]), whole(source, run[-1]).end)
            parts += shifted(source, span, inner)
    return tuple(parts)


def _exits(source: Source, loop: EpochLoop, indent: str) -> Iterator[Edit]:
    """break and continue of the loop over epochs, in a method that Model calls."""
    for item in loop.tail:
        for leaving in own_exits(item):
            stop = f"run_context.request_stop()\n{indent_of(source, leaving)}"
            text = (stop if isinstance(leaving, ast.Break) else "") + "return"
            yield edit(source, source.span(leaving), (text,))


def _switches(source: Source, loop: EpochLoop, own: str) -> Iterator[Edit]:
    """``net.train()`` in a method, where nothing else would tell that net is a Module."""
    for item in loop.head:
        call = item.value if isinstance(item, ast.Expr) else None
        func = call.func if isinstance(call, ast.Call) else None
        if not isinstance(func, ast.Attribute) or func.attr != "train":
            continue
        if isinstance(func.value, ast.Name):
            span = source.span(item)
            parts = (f"{own}.training({func.value.id}, ", Piece(span), ")")
            yield edit(source, span, parts)


def _running(
    source: Source,
    loop: EpochLoop,
    own: str,
    callbacks: Sequence[str],
    taken: set[str],
    indent: str,
) -> Parts:
    data, model = free("train_data", taken), free("training", taken)
    columns = ", ".join(f'"{name}"' for name in loop.columns)
    made, several = ", ".join(f"{name}()" for name in callbacks), free("callbacks", taken)
    return (
        f"{data} = {own}.GeneratorDataset(",
        piece(source, loop.data),
        f", [{columns}])\n{indent}{model} = {own}.Model(",
        piece(source, loop.step),
        f")\n{indent}{several} = [{made}]\n{indent}{own}.run_model({model}, ",
        *_count(source, loop),
        f", {data}, {several})",
    )


def _count(source: Source, loop: EpochLoop) -> Parts:
    """How many epochs: ``range(1, epochs + 1)`` has as many as ``epochs`` says."""
    start, stop = counted(loop)
    if start is None:
        return (piece(source, stop),)
    plus = isinstance(stop, ast.BinOp) and isinstance(stop.op, ast.Add)
    if plus and isinstance(stop, ast.BinOp) and ast.unparse(stop.right) == ast.unparse(start):
        return (piece(source, stop.left),)
    return (piece(source, stop), " - ", piece(source, start))
