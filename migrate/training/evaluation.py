"""In: an evaluation loop. Out: the edits that put an eval Cell in place of forward and loss.

``nn.WithEvalCell`` where it is ``criterion(model(x), y)``, else a class of its own. What has no
loss, or cannot be cut, stays a call of the network: that is right as well.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, replace

from migrate.analysis.program import Function
from migrate.codegen.substitution import piece
from migrate.records.outcomes import Edit, Piece, Span
from migrate.syntax.lines import above, comments, indent_of, shares_line, whole
from migrate.syntax.trees import all_names, dotted
from migrate.training.cells import LossCell, of_criterion, written
from migrate.training.effects import binds, free, reads
from migrate.training.eval_loops import EvalLoop, Found, Home, eval_loops, home_of, on_host
from migrate.training.groups import Group, Unclear
from migrate.training.lines import Parts, edit
from migrate.training.marks import Act, Mark, View
from migrate.training.modules import models
from migrate.training.placing import top_level
from migrate.training.slices import Region, cut_off
from migrate.training.variables import Variables, variables
from migrate.training.wording import extent


@dataclass(frozen=True)
class Evaluation:
    """The edits of one loop; ``switch`` is the ``model.eval()`` that it takes over, ``cell`` the
    name of the class that it adds ("" for none)."""

    edits: tuple[Edit, ...]
    switch: ast.stmt | None
    cell: str


def evaluations(
    view: View, function: Function | None, body: list[ast.stmt], own: str, taken: set[str]
) -> list[Evaluation]:
    """What becomes of the evaluation loops of one function."""
    owner = function.owner if function is not None else None
    if owner is not None and view.inference.is_module(owner.key):
        return []  # a Module that held a Cell around itself would never end
    found: list[Evaluation] = []
    built: dict[tuple[str, int], str] = {}
    for loop in eval_loops(view, function, body):
        item = _found(view, loop, function, own)
        made = _evaluation(view, item, taken, built) if item is not None else None
        if made is not None:
            found.append(made)
    return found


def _found(view: View, loop: EvalLoop, function: Function | None, own: str) -> Found | None:
    """The statements between the network and the loss, where they can be cut out."""
    nowhere = ast.Pass(lineno=loop.statement.lineno)
    group = Group((Mark(Act.BACKWARD, nowhere, loop.call, "", ()),), (), (), (), True)
    loss = loop.loss
    if loop.name:
        loss = ast.copy_location(ast.Name(loop.name, ast.Load()), loop.statement.targets[0])  # type: ignore[attr-defined]
    items = loop.block[: loop.index + bool(loop.name)]
    cut = cut_off(view, group, items, (loss,), own)
    if isinstance(cut, str) or not all(isinstance(s, ast.Assign) for s in cut.inside):
        return None
    if loop.name and loop.statement not in cut.inside:
        return None
    if any(map(on_host, [*cut.inside, loss])) or _bound_twice(cut.inside, own):
        return None
    if any(shares_line(view.file.source, s) for s in [*cut.inside, loop.statement]):
        return None
    behind = [] if loop.name else [loop.statement]
    inside, moved = tuple(cut.inside), (*cut.moved, *behind)
    region = Region(group, loop.block, inside, moved, loop.index, (loss,))
    names = variables(view, region, function, own)
    if isinstance(names, Unclear) or names.loop is None:
        return None
    return Found(loop, region, _with_globals(view, region, names, own), function, own)


def _bound_twice(inside: Sequence[ast.stmt], own: str) -> bool:
    every = [n for s in inside for n in binds([s], own)]
    return len(every) != len(set(every))


def _with_globals(view: View, region: Region, names: Variables, own: str) -> Variables:
    """A Cell holds its networks, those of the file's top level as well."""
    needed = models(view, [*region.inside, *region.losses], own)
    missing = sorted(needed - set(names.held) - set(names.given))
    return replace(names, held=(*missing, *names.held))


def _evaluation(
    view: View, found: Found, taken: set[str], built: dict[tuple[str, int], str]
) -> Evaluation | None:
    """``built`` are the Cells of the same function: one that fits again is called again."""
    name = free("EvalCell", {*taken})
    loss = found.loop.name or _loss_name(view, found)
    made = _fitting(view, found, loss)
    own_class = made is None
    if made is None:
        cell = written(
            view, found.region, found.names, found.own, name, "_torch2ms_torch.nn.Module"
        )
        made = replace(cell, results=(loss, *cell.results[1:]))
    home = home_of(view, found, free("eval_net", {*taken, *built.values()}))
    if home is None:
        return None
    before = built.get((made.build, home.made_at), "")
    if before:
        home = replace(home, variable=before)
    elif home.made_at in {at for _, at in built}:
        return None  # one eval() serves two networks: the second stays as it is
    built[made.build, home.made_at] = home.variable
    taken |= {home.variable.rpartition(".")[2]} if home.behind else set()
    taken |= {name} if own_class else set()
    edits = [_in_place(view, found, made, home), *made.renames]
    source, computed = view.file.source, found.region.losses[0]
    if source.text_of(computed) != loss:
        edits.append(edit(source, source.span(computed), (loss,)))
    edits += [] if before else _building(view, made, home)
    if own_class:
        top = above(view.file.source, top_level(view, found.loop.loop))
        edits.append(edit(view.file.source, Span(top, top), (*made.text, "\n\n")))
    return Evaluation(tuple(edits), home.switch, name if own_class else "")


def _loss_name(view: View, found: Found) -> str:
    """A name for a loss that had none, which nothing else uses."""
    top = found.function.node if found.function is not None else view.file.source.tree
    used = all_names(top)
    used |= {n.arg for n in ast.walk(top) if isinstance(n, ast.arg)}
    return next(
        n for n in ("loss", "batch_loss", *map("loss_{}".format, range(99))) if n not in used
    )


def _fitting(view: View, found: Found, loss: str) -> LossCell | None:
    """``nn.WithEvalCell``, which returns loss, outputs and labels."""
    region = found.region
    if found.loop.name and not isinstance(found.loop.loss, ast.Call):
        return None
    criterion = of_criterion(region)
    if criterion is None:
        return None
    network, loss_fn, inputs = criterion
    both = [dotted(network), dotted(loss_fn)]
    known = {"Module", "function", "method"}
    if not all(both) or both[0] == both[1] or not view.atoms(loss_fn) <= known:
        return None
    if view.torch_names(loss_fn) or any(reads([i]) & binds(region.inside) for i in inputs):
        return None
    outputs = [t.id for s in region.inside for t in s.targets if s.value.func is network]  # type: ignore[attr-defined]
    if set(found.names.extra) - set(outputs):
        return None
    result = outputs[0] if found.names.extra else "_"
    spans = tuple((piece(view.file.source, i),) for i in inputs)
    build = f"_torch2ms.WithEvalCell({both[0]}, {both[1]})"
    return LossCell((), build, spans, (loss, result, "_"), ())


# -- what is written ----------------------------------------------------------------------------


def _building(view: View, cell: LossCell, home: Home) -> list[Edit]:
    source = view.file.source
    lines = [f"{home.indent}{home.variable} = {cell.build}"]
    text = "\n" + lines[0] if home.behind else lines[0] + "\n"
    found = [edit(source, Span(home.made_at, home.made_at), (text,))]
    if home.switch is not None:
        span = source.span(home.switch)  # its eval() still says what a Module is
        parts = (f"_torch2ms.evaluating({home.variable}, ", Piece(span), ")")
        found.append(edit(source, span, parts))
    return found


def _in_place(view: View, found: Found, cell: LossCell, home: Home) -> Edit:
    """The call in place of the statements; what uses its results comes behind it."""
    source, region = view.file.source, found.region
    dropped, later = {id(s) for s in region.inside}, {id(s) for s in region.moved}
    starts = [region.block.index(s) for s in region.inside]
    first = min([*starts, region.last])
    stays: list[str | Piece] = []
    behind: list[str | Piece] = []
    notes: list[str] = []
    for index in range(first, region.last + 1):
        item = region.block[index]
        span = extent(source, region.block, index, first)
        if id(item) in dropped:
            notes += comments(source, span.start, source.span(item).start)
            notes += comments(source, source.span(item).end, span.end)
        elif index == region.last or id(item) in later:
            behind += ["\n", Piece(span)]
        else:
            stays += [Piece(span), "\n"]
    indent = indent_of(source, region.block[first])
    parts = (
        *stays,
        *(f"{indent}{n}\n" for n in notes),
        indent,
        *_call(cell, home),
        cell.rebuilt(indent),
        *behind,
    )
    whole_span = Span(
        whole(source, region.block[first]).start, whole(source, region.block[region.last]).end
    )
    return edit(source, whole_span, parts)


def _call(cell: LossCell, home: Home) -> Parts:
    parts: list[str | Piece] = [f"{', '.join(cell.results)} = {home.variable}("]
    for index, given in enumerate(cell.inputs):
        parts += [", "] if index else []
        parts += given
    return (*parts, ")")
