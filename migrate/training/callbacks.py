"""In: an epoch loop. Out: the text that runs it by mindspore.train.Model and its callbacks.

What stood around the step keeps its words and its variables: it moves into methods that Model
calls at the same moments. Each part of an epoch's end is a class named after what it does.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from migrate.outcomes import Edit, Outcome, Piece, Site, Span
from migrate.source import Source
from migrate.training.effects import binds, uses
from migrate.training.epoch_loops import EpochLoop, counted, own_exits
from migrate.training.lines import Parts, above, indent_of, shifted, whole

_SAVES = {"save", "state_dict", "save_checkpoint", "deepcopy"}
_JUDGES = ("eval", "valid", "test")


@dataclass(frozen=True)
class _Method:
    """``event`` is what Model calls, ``lead`` the lines in front of the statements."""

    event: str
    lead: tuple[str, ...]
    body: tuple[ast.stmt, ...]
    bound: frozenset[str]


def edits(source: Source, loop: EpochLoop, own: str, taken: set[str]) -> list[Edit]:
    """The edits that put Model.train in place of the loop over epochs."""
    indent = indent_of(source, loop.outer)
    classes = _classes(loop, own, taken)
    names = _shared(loop, [m for _, methods in classes for m in methods])
    unbound = sorted(names - _elsewhere(loop))
    parts: list[str | Piece] = []
    if unbound:
        parts.append(f"{indent}{' = '.join(unbound)} = None\n")
    for name, methods in classes:
        parts += [f"\n{indent}class {name}({own}.Callback):\n"]
        parts += _joined([_method(source, loop, m, names, indent) for m in methods])
    parts += [f"\n{indent}"] if classes else [indent]
    parts += _running(source, loop, own, [name for name, _ in classes], taken, indent)
    span = Span(whole(source, loop.outer).start, whole(source, loop.outer).end)
    return [_edit(source, span, tuple(parts)), *_exits(source, loop, indent)]


def _joined(found: Sequence[Parts]) -> Iterator[str | Piece]:
    for index, parts in enumerate(found):
        yield from ("\n",) if index else ()
        yield from parts


# -- classes ------------------------------------------------------------------------------------


def _classes(loop: EpochLoop, own: str, taken: set[str]) -> list[tuple[str, list[_Method]]]:
    """The callbacks in the order in which Model calls them."""
    batches = list(_around_steps(loop, own))
    found = [("TrainingLog", batches)] if batches else []
    for name, items in _groups(loop.tail):
        bound = frozenset(binds(items, loop.own))
        found.append((name, [_Method("on_train_epoch_end", (), tuple(items), bound)]))
    return [(_free(name, taken), methods) for name, methods in found]


def _around_steps(loop: EpochLoop, own: str) -> Iterator[_Method]:
    arguments = "run_context.original_args()"
    epoch = loop.outer.target.id if isinstance(loop.outer.target, ast.Name) else ""
    start, _ = counted(loop)
    number = f"{arguments}.cur_epoch_num"
    begin = "- 1" if start is None else f"- 1 + {_text(start)}"
    begin = "" if isinstance(start, ast.Constant) and start.value == 1 else f" {begin}"
    lead = [f"{epoch} = {number}{begin}"] if _is_read(loop, epoch) else []
    counts = bool(loop.index) and _is_read(loop, loop.index)
    lead += [f"{loop.index} = {int(loop.first) - 1}"] if counts else []
    named = {epoch, *([loop.index] if counts else [])} if lead else set()
    if lead or loop.head:
        bound = frozenset({*binds(loop.head, loop.own), *named})
        yield _Method("on_train_epoch_begin", tuple(lead), tuple(loop.head), bound)
    batch = f"{', '.join(loop.columns)}, = {own}.batch(run_context)"
    batch = batch.replace(",  =", ", =") if len(loop.columns) == 1 else batch.replace(", =", " =")
    lead = [f"{loop.index} += 1"] if counts else []
    lead += [batch] if _reads_batch(loop, [*loop.early, *loop.late, *loop.tail]) else []
    if lead or loop.early:
        bound = frozenset({*binds(loop.early, loop.own), *loop.columns, loop.index} - {""})
        yield _Method("on_train_step_begin", tuple(lead), tuple(loop.early), bound)
    lead = []
    if loop.results is not None and (loop.late or _is_read_after(loop)):
        step = _text(loop.step)
        lead = [f"{_text(loop.results)} = {own}.net_outputs(run_context, {step})"]
    if lead or loop.late:
        results = binds([loop.call], loop.own)
        bound = frozenset({*binds(loop.late, loop.own), *(results if lead else ())})
        yield _Method("on_train_step_end", tuple(lead), tuple(loop.late), bound)


def _is_read_after(loop: EpochLoop) -> bool:
    results = binds([loop.call], loop.own)
    return any(_is_read(loop, name) for name in results)


def _reads_batch(loop: EpochLoop, items: Sequence[ast.stmt]) -> bool:
    return any(u.name in loop.columns and not u.stored for s in items for u in uses(s, loop.own))


def _is_read(loop: EpochLoop, name: str) -> bool:
    """Whether a variable of the loop is read in it or anywhere behind its head."""
    heads = [loop.outer.target, loop.inner.target, loop.call]
    skipped = {id(n) for h in heads for n in ast.walk(h)}
    top = loop.scope or loop.outer
    nodes = [n for n in ast.walk(top) if isinstance(n, ast.Name) and id(n) not in skipped]
    if loop.scope is None:
        return bool(name)  # of a module: others may read it
    return any(n.id == name and isinstance(n.ctx, ast.Load) for n in nodes)


def _groups(items: Sequence[ast.stmt]) -> list[tuple[str, list[ast.stmt]]]:
    """The statements behind the batches by what they do; what may stop the run comes last."""
    found: list[tuple[str, list[ast.stmt]]] = []
    for item in items:
        name = _kind(item)
        if found and (found[-1][0] == name or _may_stop(found[-1][1])):
            found[-1][1].append(item)
        else:
            found.append((name, [item]))
    return found


def _may_stop(items: Sequence[ast.stmt]) -> bool:
    return any(own_exits(s) for s in items)


def _kind(item: ast.stmt) -> str:
    called = {
        n.func.attr if isinstance(n.func, ast.Attribute) else getattr(n.func, "id", "")
        for n in ast.walk(item)
        if isinstance(n, ast.Call)
    }
    if own_exits(item):
        return "EarlyStopping"
    if called & _SAVES:
        return "BestCheckpoint" if isinstance(item, ast.If) else "Checkpoint"
    if "step" in called:
        return "LearningRate"
    if "set_train" in called or any(n.startswith(_JUDGES) for n in called):
        return "Evaluation"
    loops = isinstance(item, (ast.For, ast.With))
    return "Evaluation" if loops else "EpochLog"


# -- variables ----------------------------------------------------------------------------------


def _shared(loop: EpochLoop, methods: Sequence[_Method]) -> set[str]:
    """What a method binds and another place, or the method's next call, reads."""
    found: set[str] = set()
    top = loop.scope.body if loop.scope is not None else []
    for method in methods:
        inside = {id(n) for s in method.body for n in ast.walk(s)}
        outside = {
            u.name
            for s in top
            for u in uses(s, loop.own)
            if not u.stored and id(u.node) not in inside
        }
        for name in method.bound:
            alone = loop.scope is not None and name not in outside
            if "." not in name and not (alone and _begins_anew(method, name)):
                found.add(name)
    return found


def _begins_anew(method: _Method, name: str) -> bool:
    """Whether each call of the method binds the name before anything reads it."""
    if any(line.startswith(f"{name} +=") for line in method.lead):
        return False
    if any(name in line.partition(" = ")[0].split(", ") for line in method.lead):
        return True
    for item in method.body:
        mine = [u for u in uses(item) if u.name == name]
        if not mine:
            continue
        first = item.value if isinstance(item, ast.Assign) else None
        return first is not None and not any(u.name == name for u in uses(first))
    return False


def _elsewhere(loop: EpochLoop) -> set[str]:
    """The names that the scope binds outside of the loop (nonlocal asks for one that is)."""
    if loop.scope is None:
        return _all_names(loop)
    inside = {id(n) for n in ast.walk(loop.outer)}
    found = {n.arg for n in ast.walk(loop.scope.args) if isinstance(n, ast.arg)}
    for node in ast.walk(loop.scope):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found |= {node.id} if id(node) not in inside else set()
        elif isinstance(node, (ast.Global, ast.Nonlocal)):
            found |= {*node.names}
    return found


def _all_names(loop: EpochLoop) -> set[str]:
    """In a module any name can be bound from a method."""
    return {n.id for n in ast.walk(loop.outer) if isinstance(n, ast.Name)}


def _declared(loop: EpochLoop, names: Sequence[str]) -> list[str]:
    said = [n for n in ast.walk(loop.scope or loop.outer) if isinstance(n, ast.Global)]
    wide = {name for n in said for name in n.names}
    found = [n for n in names if loop.scope is None or n in wide]
    rest = [n for n in names if n not in found]
    lines = [f"global {', '.join(found)}"] if found else []
    return lines + ([f"nonlocal {', '.join(rest)}"] if rest else [])


# -- text ---------------------------------------------------------------------------------------


def _method(
    source: Source, loop: EpochLoop, method: _Method, names: set[str], indent: str
) -> Parts:
    instance = "callback" if loop.own == "self" else "self"
    inner = indent + " " * 8
    parts: list[str | Piece] = [f"{indent}    def {method.event}({instance}, run_context):\n"]
    parts += [f"{inner}{line}\n" for line in _declared(loop, sorted(method.bound & names))]
    parts += [f"{inner}{line}\n" for line in method.lead]
    if method.body:
        first, last = method.body[0], method.body[-1]
        span = Span(above(source, first), whole(source, last).end)
        parts += shifted(source, span, indent_of(source, first), inner)
    return tuple(parts)


def _exits(source: Source, loop: EpochLoop, indent: str) -> Iterator[Edit]:
    """break and continue of the loop over epochs, in a method that Model calls."""
    for item in loop.tail:
        before, inner = indent_of(source, item), indent + " " * 8
        for leaving in own_exits(item):
            depth = inner + indent_of(source, leaving)[len(before) :]
            stop = f"run_context.request_stop()\n{depth}"
            text = (stop if isinstance(leaving, ast.Break) else "") + "return"
            yield _edit(source, source.span(leaving), (text,))


def _running(
    source: Source,
    loop: EpochLoop,
    own: str,
    callbacks: Sequence[str],
    taken: set[str],
    indent: str,
) -> Parts:
    data, model = _free("train_data", taken), _free("training", taken)
    columns = ", ".join(f'"{name}"' for name in loop.columns)
    made = ", ".join(f"{name}()" for name in callbacks)
    return (
        f"{data} = {own}.GeneratorDataset(",
        Piece(source.span(loop.data)),
        f", [{columns}])\n{indent}{model} = {own}.Model(",
        Piece(source.span(loop.step)),
        f")\n{indent}{own}.run_model({model}, ",
        *_count(source, loop),
        f", {data}, [{made}])",
    )


def _count(source: Source, loop: EpochLoop) -> Parts:
    """How many epochs: ``range(1, epochs + 1)`` has as many as ``epochs`` says."""
    start, stop = counted(loop)
    if start is None:
        return (Piece(source.span(stop)),)
    plus = isinstance(stop, ast.BinOp) and isinstance(stop.op, ast.Add)
    if plus and isinstance(stop, ast.BinOp) and _text(stop.right) == _text(start):
        return (Piece(source.span(stop.left)),)
    bare = isinstance(stop, (ast.Name, ast.Constant, ast.Attribute))
    number = isinstance(start, (ast.Name, ast.Constant, ast.Attribute))
    return (
        Piece(source.span(stop), parens=not bare),
        " - ",
        Piece(source.span(start), parens=not number),
    )


def _free(name: str, taken: set[str]) -> str:
    number, chosen = 2, name
    while chosen in taken:
        chosen, number = f"{name}{number}", number + 1
    taken.add(chosen)
    return chosen


def _text(node: ast.expr) -> str:
    return ast.unparse(node)


def _edit(source: Source, span: Span, parts: Parts) -> Edit:
    site = Site("training", span, source.line_of(span.start), 1)
    return Edit(site, Outcome.CONVERTED, parts)
