"""In: the region of a training step and its names. Out: the text of its loss Cell and the call.

The Cell is written as a torch Module: the ordinary rules make a Cell of it.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from migrate.outcomes import Edit, Outcome, Piece, Site, Span
from migrate.source import Source
from migrate.training.effects import binds, dotted, reads, uses
from migrate.training.lines import Parts, moved
from migrate.training.marks import View
from migrate.training.slices import Region
from migrate.training.variables import Variables

_TAKEN = {"construct", "name", "phase", "cells", "parameters", "training", "bprop", "compile"}


@dataclass(frozen=True)
class LossCell:
    """What stands for the loss: ``text`` is the class ("" for nn.WithLossCell), ``build`` the
    expression that makes it, ``inputs`` and ``results`` those of a call, ``renames`` edits of
    names inside the statements that it took over."""

    text: Parts
    build: str
    inputs: tuple[Parts, ...]
    results: tuple[str, ...]
    renames: tuple[Edit, ...]


def plain(view: View, region: Region, names: Variables, module: str) -> LossCell | None:
    """``nn.WithLossCell`` where the loss is ``criterion(model(x), y)`` and no more is asked."""
    if names.extra or region.captured or len(region.losses) != 1:
        return None
    found = of_criterion(region)
    if found is None:
        return None
    network, loss, inputs = found
    both = {dotted(network), dotted(loss)}
    if both - set(names.held) or len(both) != 2 or set(names.held) != both:
        return None
    if any(reads([i]) & binds(region.inside) for i in inputs):
        return None
    build = f"{module}.WithLossCell({dotted(network)}, {dotted(loss)})"
    only = region.losses[0]
    results = (only.id,) if isinstance(only, ast.Name) else ("loss",)
    spans = tuple((Piece(view.file.source.span(i)),) for i in inputs)
    return LossCell((), build, spans, results, ())


def of_criterion(region: Region) -> tuple[ast.expr, ast.expr, tuple[ast.expr, ast.expr]] | None:
    """(model, criterion, (data, label)) of ``criterion(model(data), label)``."""
    bound: dict[str, ast.expr] = {}
    for item in region.inside:
        target = item.targets[0] if isinstance(item, ast.Assign) else None
        if not isinstance(item, ast.Assign) or len(item.targets) != 1:
            return None
        if not isinstance(target, ast.Name) or target.id in bound:
            return None
        bound[target.id] = item.value
    loss = _through(region.losses[0], bound)
    if not isinstance(loss, ast.Call) or len(loss.args) != 2 or loss.keywords:
        return None
    output = _through(loss.args[0], bound)
    if not isinstance(output, ast.Call) or len(output.args) != 1 or output.keywords:
        return None
    if bound or isinstance(output.args[0], ast.Starred) or isinstance(loss.args[1], ast.Starred):
        return None
    return output.func, loss.func, (output.args[0], loss.args[1])


def _through(node: ast.expr, bound: dict[str, ast.expr]) -> ast.expr:
    """What a name was bound to; each binding is used once."""
    return bound.pop(node.id) if isinstance(node, ast.Name) and node.id in bound else node


def written(
    view: View, region: Region, names: Variables, own: str, name: str, base: str
) -> LossCell:
    """A class of its own."""
    source = view.file.source
    members = _spelled([f"self.{n.rpartition('.')[2]}" for n in names.held], _TAKEN)
    members = dict(zip(names.held, members.values(), strict=True))
    inputs = _spelled(names.given, binds(region.inside, own))
    renames = tuple(_renames(view, region, names, own, members, inputs))
    body: list[str | Piece] = []
    for item in region.inside:
        body += moved(source, item, " " * 8)
        for _, n, binding in region.captured:
            if binding is item and f" = {n}\n" not in "".join(
                p for p in body if isinstance(p, str)
            ):
                body.append(f"        first_{n} = {n}\n")
    results = _result_names(region, names)
    text = (
        *_header(name, base, members, inputs),
        *body,
        *_returned(source, region, results[1:]),
    )
    build = f"{name}({', '.join(names.held)})"
    given = tuple((n,) for n in names.given)
    return LossCell(text, build, given, results, renames)


def _spelled(names: Sequence[str], taken: set[str]) -> dict[str, str]:
    """A member or parameter name for each name: its last part, unless that is taken."""
    found: dict[str, str] = {}
    for name in names:
        short = name.rpartition(".")[2]
        while (short != name and short in taken) or short in found.values():
            short += "_"
        found[name] = short
    return found


def _header(name: str, base: str, members: dict[str, str], inputs: dict[str, str]) -> Parts:
    arguments = ", ".join(["self", *members.values()])
    lines = [
        f"class {name}({base}):",
        f"    def __init__({arguments}):",
        "        super().__init__(auto_prefix=False)",
        *(f"        self.{m} = {m}" for m in members.values()),
        "",
        f"    def forward({', '.join(['self', *inputs.values()])}):",
    ]
    return ("\n".join(lines) + "\n",)


def _result_names(region: Region, names: Variables) -> tuple[str, ...]:
    only = region.losses[0] if len(region.losses) == 1 else None
    first = only.id if isinstance(only, ast.Name) else "_"
    captured = dict.fromkeys(f"first_{n}" for _, n, _ in region.captured)
    return (first, *names.extra, *captured)


def _returned(source: Source, region: Region, extra: Sequence[str]) -> Parts:
    parts: list[str | Piece] = ["        return "]
    for index, loss in enumerate(region.losses):
        simple = isinstance(loss, (ast.Name, ast.Call, ast.Attribute))
        bare = simple or len(region.losses) == 1
        parts += [" + "] if index else []
        parts.append(Piece(source.span(loss), parens=not bare))
    return (*parts, "".join(f", {n}" for n in extra), "\n")


def _renames(
    view: View,
    region: Region,
    names: Variables,
    own: str,
    members: dict[str, str],
    inputs: dict[str, str],
) -> list[Edit]:
    """``model`` becomes ``self.model``; ``self.batch``, where it is an input, ``batch``."""
    new = {n: f"self.{m}" for n, m in members.items() if n != f"self.{m}"}
    new |= {n: i for n, i in inputs.items() if n != i}
    found = []
    for item in [*region.inside, *region.losses]:
        for use in uses(item, own):
            if use.name in new:
                span = view.file.source.span(use.node)
                site = Site("training", Span(span.start, span.end), use.node.lineno, 1)
                found.append(Edit(site, Outcome.CONVERTED, (new[use.name],)))
    return found
