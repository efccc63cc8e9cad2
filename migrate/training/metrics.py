"""Make a Metric, and the Cell that Model.eval calls, of an evaluation loop whose sums are known.

clear() binds the sums, update() is a round, eval() computes what is read behind the loop; the
statements keep their words. The eval Cell stays where it takes the batch as it comes and gives all
that a round reads; else a Cell around it, or around the network, hands on what is read.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from migrate.records.outcomes import Edit, Outcome, Piece, Site, Span
from migrate.syntax.lines import above, blank_lines, comments, indent_of, moved, shifted, whole
from migrate.syntax.source import Source
from migrate.syntax.trees import dotted
from migrate.training.effects import binds, free, reads, uses
from migrate.training.lines import Parts, edit
from migrate.training.metric_loops import LOOPS
from migrate.training.metric_sums import Measured, class_name, key_of, measures


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


_RESERVED = {"clear", "update", "eval", "indexes", "set_indexes", "_indexes"}
_IN = " " * 8


def edits(source: Source, found: Measured, own: str, torch: str, taken: set[str]) -> list[Edit]:
    """The edits that put Model.eval in place of an evaluation loop; ``taken`` grows by names."""
    rounds = found.rounds
    words = measures([_names(found, n) for n in (*found.sums, *found.results)])
    metric, key = free(class_name(words), taken), key_of(words)
    network = eval_network(source, found, own, torch, taken)
    top = next(s for s in source.tree.body if rounds.loop.lineno <= (s.end_lineno or 0))
    place, home = above(source, top), _home(source, found)
    data, model = free("eval_data", taken), free("evaluation", taken)
    built = _built(source, found, own, home, (data, model, metric, key), network)
    apart = "" if blank_lines(source, place) >= 2 else "\n\n"
    text = (apart, *network.text, *_metric(source, found, metric, own, network.received))
    run = f'{own}.run_eval({model}, {data}, "{key}")'
    at = above(source, home)
    return [
        edit(source, Span(place, place), text),
        *_renames(source, found),
        *network.renames,
        *([] if home is rounds.loop else [edit(source, Span(at, at), (built,))]),
        _in_place(source, found, run, built if home is rounds.loop else "", bool(network.text)),
        *(_removed(source, s) for s in (*found.begins, *found.ends)),
    ]


def _names(found: Measured, name: str) -> list[str]:
    """A sum, and what the rounds add to it: they say what it measures."""
    own = found.rounds.own
    added = (
        sorted(reads([s.value], own))
        for s in found.rounds.body
        if isinstance(s, ast.AugAssign) and name in binds([s], own)
    )
    return [name, *(n for names in added for n in names)]


def _built(
    source: Source,
    found: Measured,
    own: str,
    home: ast.stmt,
    names: tuple[str, str, str, str],
    network: EvalNetwork,
) -> str:
    """The lines that make the data set and the Model."""
    rounds, indent = found.rounds, indent_of(source, home)
    data, model, metric, key = names
    columns = ", ".join(f'"{name}"' for name in rounds.columns)
    made = f"{metric}({', '.join(found.held)})"
    given = (
        f'{source.text_of(rounds.network)}, {network.build}, {{"{key}": {made}}}{network.indexes}'
    )
    return (
        f"{indent}{data} = {own}.GeneratorDataset({source.text_of(rounds.data)}, [{columns}])\n"
        f"{indent}{model} = {own}.EvalModel({given})\n"
    )


def _home(source: Source, found: Measured) -> ast.stmt:
    """The outermost loop that binds nothing of what the Model is made of, else the loop itself."""
    rounds = found.rounds
    made_of = [*found.held, *map(dotted, (rounds.data, rounds.cell, rounds.network))]
    own = rounds.own
    needed = {n if n.startswith(f"{own}.") else n.partition(".")[0] for n in made_of}
    needed |= {".".join(n.split(".")[:2]) for n in needed}
    home: ast.stmt = rounds.loop
    for _, item, _ in rounds.around[1:]:
        if not isinstance(item, LOOPS):
            continue
        if binds([item], own) & needed or any(_rebound(source, n) for n in needed if "." in n):
            break
        home = item
    return home


def _rebound(source: Source, name: str) -> bool:
    """Whether anything but a constructor puts something else into an attribute."""
    starts = [f for f in ast.walk(source.tree) if getattr(f, "name", "") == "__init__"]
    inside = {id(n) for f in starts for n in ast.walk(f)}
    return any(
        isinstance(n, ast.Attribute) and not isinstance(n.ctx, ast.Load)
        for n in ast.walk(source.tree)
        if getattr(n, "attr", "") == name.rpartition(".")[2] and id(n) not in inside
    )


# -- the class ----------------------------------------------------------------------------------


def members(found: Measured) -> dict[str, str]:
    """The attribute of the Metric for each name that outlives a round."""
    chosen: dict[str, str] = {}
    for name in (*found.sums, *found.held):
        short = name.rpartition(".")[2]
        while short in _RESERVED or short in chosen.values():
            short += "_"
        chosen[name] = short
    return chosen


def _metric(source: Source, found: Measured, name: str, own: str, received: Sequence[str]) -> Parts:
    kept = members(found)
    held = [kept[n] for n in found.held]
    inputs = "results" if "inputs" in received else "inputs"
    taken = ", ".join(received) + ("," if len(received) == 1 else "")
    parts: list[str | Piece] = [
        f"class {name}({own}.Metric):\n    def __init__({', '.join(['self', *held])}):\n",
        f"{_IN}super().__init__()\n",
        *(f"{_IN}self.{n} = {n}\n" for n in held),
        f"{_IN}self.clear()\n\n    def clear(self):\n",
    ]
    parts += _lines(source, found.begins)
    parts += [f"\n    def update(self, *{inputs}):\n{_IN}{taken} = {own}.outputs({inputs})\n"]
    parts += _lines(source, found.rounds.body)
    parts += ["\n    def eval(self):\n", *_lines(source, found.ends)]
    if found.results:
        given = [f"self.{kept[n]}" if n in found.sums else n for n in found.results]
        parts += [f"{_IN}return {', '.join(given)}\n"]
    return (*parts, "\n\n")


def _lines(source: Source, items: Sequence[ast.stmt]) -> Iterator[str | Piece]:
    for item in items:
        span = Span(above(source, item), whole(source, item).end)
        yield from shifted(source, span, _IN)


def _renames(source: Source, found: Measured) -> Iterator[Edit]:
    kept = members(found)
    for item in (*found.begins, *found.rounds.body, *found.ends):
        for use in uses(item, found.rounds.own):
            if use.name in kept:
                yield edit(source, source.span(use.node), (f"self.{kept[use.name]}",))


# -- the loop -----------------------------------------------------------------------------------


def _in_place(source: Source, found: Measured, run: str, built: str, wraps: bool) -> Edit:
    rounds = found.rounds
    span, indent = whole(source, rounds.loop), indent_of(source, rounds.loop)
    moved = [*rounds.body, *([rounds.forward] if wraps else [])]
    kept = [Span(above(source, s), whole(source, s).end) for s in moved]
    said = [
        text for text, at in _comments(source, span) if not any(k.start <= at < k.end for k in kept)
    ]
    target = f"{', '.join(found.results)} = " if found.results else "return "
    text = "".join(f"{indent}{line}\n" for line in said)
    return edit(source, span, (f"{text}{built}{indent}{target}{run}",))


def _comments(source: Source, span: Span) -> Iterator[tuple[str, int]]:
    for start, end in ((a, b) for _, a, b in source.tokens if span.start <= a < span.end):
        yield from ((text, start) for text in comments(source, start, end) if text)


def _removed(source: Source, item: ast.stmt) -> Edit:
    end = min(whole(source, item).end + 1, len(source.data))
    return edit(source, Span(above(source, item), end), ())
