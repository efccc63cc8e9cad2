"""In: a training step in its place. Out: the edits that put the call of it there."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from migrate.records.outcomes import Edit, Piece, Span
from migrate.syntax.lines import comments, indent_of, whole
from migrate.syntax.source import Source
from migrate.training.cells import LossCell
from migrate.training.clips import Clip, clip
from migrate.training.effects import uses
from migrate.training.groups import Group
from migrate.training.lines import Parts, edit
from migrate.training.marks import Act, Mark, View, block_of
from migrate.training.placing import Place
from migrate.training.slices import Region
from migrate.training.steps import Step


def edits(
    view: View,
    region: Region,
    cell: LossCell,
    step: Step,
    place: Place,
    built: tuple[str, ...],
    others: Sequence[Region] = (),
) -> Iterator[Edit]:
    """The region gives way to the call; marks elsewhere go, or become calls of the step.

    ``built`` are the lines that build the step, in front of the call where it is built late.
    Where one of the ``others`` clears gradients within the region, that goes as well.
    """
    source = view.file.source
    dropped, here = _dropped(region, others)
    before = built if place.late else ()
    if region.condition is None:
        parts = _plain(source, region, here, dropped, cell, step, place, before)
    else:
        parts = _conditional(source, region, here, dropped, cell, step, place, before)
    first, last = region.block[here.start], region.block[here.stop - 1]
    span = Span(whole(source, first).start, whole(source, last).end)
    yield edit(source, span, parts)
    covered = {id(n) for s in region.block[here.start : here.stop] for n in ast.walk(s)}
    if region.condition is not None:  # what else it does keeps its place, updates in it too
        rest = [s for s in region.condition.body if id(s) not in dropped]
        covered -= {id(n) for s in (*rest, *region.condition.orelse) for n in ast.walk(s)}
    for other in others:
        block, (_, there) = other.block, _dropped(other, (region,))
        covered |= {id(s) for s in block[there.start : there.stop]} & _cleared(region)
    inside = {id(n) for s in region.inside for n in ast.walk(s)}
    stays = [m for m in region.group.marks if m not in _gone(region.group)]
    elsewhere = [
        m for m in region.group.marks if id(m.statement) not in (inside if m in stays else covered)
    ]
    yield from _elsewhere(view, region, elsewhere, place)
    yield from cell.renames
    yield from _captures(source, region)


def _cleared(region: Region) -> set[int]:
    """The statements that clear gradients for a step that is one call: it starts from none."""
    return {id(z.statement) for z in region.group.zeros} if region.group.fused else set()


def _gone(group: Group) -> tuple[Mark, ...]:
    """The marks that the call of a step stands for; each of the others becomes a call in its place.

    What applies or clears gradients that are added up is one of the others, wherever it stands.
    """
    return group.marks if group.fused or group.apart else group.backwards


def _dropped(region: Region, others: Sequence[Region]) -> tuple[set[int], range]:
    """The statements of a region that are not needed any more, and how far it goes."""
    own = {id(s) for s in region.inside} | {id(m.statement) for m in _gone(region.group)}
    return own.union(*map(_cleared, others)), _range(region, own)


def _range(region: Region, dropped: set[int]) -> range:
    """From the first statement that goes to the last, within the block."""
    own = [i for i, s in enumerate(region.block) if id(s) in dropped]
    close = [i for i in own if i >= min(_first_inside(region), region.last)]
    close = [i for i in close if i <= region.last] if region.group.apart else close
    last = max([region.last, *close])
    before = [i for i in own if i < last]
    start = min([i for i in before if i >= _nearby(region, before)] or [region.last])
    return range(start, last + 1)


def _first_inside(region: Region) -> int:
    return region.block.index(region.inside[0]) if region.inside else region.last


def _nearby(region: Region, own: Sequence[int]) -> int:
    """Where the run of statements begins: a zero_grad right in front belongs to it."""
    first = _first_inside(region)
    while first - 1 in own:
        first -= 1
    return first


# -- the region -------------------------------------------------------------------------------


def _plain(
    source: Source,
    region: Region,
    here: range,
    dropped: set[int],
    cell: LossCell,
    step: Step,
    place: Place,
    before: tuple[str, ...] = (),
) -> Parts:
    indent = indent_of(source, region.block[here.start])
    later = {id(s) for s in region.moved}
    stays: list[str | Piece] = []
    behind: list[str | Piece] = []
    notes: list[str] = []
    for index in here:
        item = region.block[index]
        span = extent(source, region.block, index, here.start)
        if id(item) in dropped:
            notes += comments(source, span.start, _code_start(source, item))
            notes += comments(source, source.span(item).end, span.end)
        elif id(item) in later or index > region.last:
            behind += ["\n", Piece(span)]
        else:
            stays += [Piece(span), "\n"]
    lines = [f"{indent}{line}\n" for line in (*notes, *before)]
    fresh = f"{place.variable}.clear()\n{indent}" if region.group.apart else ""
    return (*stays, *lines, indent, fresh, *_call(cell, step, place, indent), *behind)


def extent(source: Source, block: list[ast.stmt], index: int, first: int) -> Span:
    """A statement's lines, with the comments and blank lines in front of it."""
    span = whole(source, block[index])
    if index == first:
        return span
    start = whole(source, block[index - 1]).end
    return Span(min(start + 1, span.start), span.end)


def _code_start(source: Source, item: ast.stmt) -> int:
    return source.span(item).start


def _call(cell: LossCell, step: Step, place: Place, indent: str) -> Parts:
    results = [*cell.results, *step.results]
    target = "" if results == ["_"] else ", ".join(results) + " = "
    parts: list[str | Piece] = [f"{target}{place.variable}("]
    for index, given in enumerate(cell.inputs):
        parts += [", "] if index else []
        parts += given
    return (*parts, ")", cell.rebuilt(indent))


def _conditional(
    source: Source,
    region: Region,
    here: range,
    dropped: set[int],
    cell: LossCell,
    step: Step,
    place: Place,
    before: tuple[str, ...] = (),
) -> Parts:
    """``if training: loss, out = step(x)``, ``else:`` the loss as it stood; then the rest."""
    held = region.condition
    assert held is not None
    indent = indent_of(source, held)
    inner = indent_of(source, held.body[0])
    test = source.text_of(held.test)
    first = region.group.backwards[0].statement
    moved = {id(s) for s in region.moved}
    # what the ``if`` does in front of the backward, as clearing gradients that stay with weights
    ahead = {id(s) for s in held.body[: held.body.index(first)]} - dropped - moved
    stays: list[str | Piece] = []
    behind: list[str | Piece] = []
    other: list[str] = []
    for index in range(here.start, here.stop):
        item = region.block[index]
        span = extent(source, region.block, index, here.start)
        if item is held:
            behind += _rest(source, held, dropped | ahead, indent, test)
        elif item in region.inside:
            other.append(_indented(source.text(whole(source, item)), inner[len(indent) :]))
        elif id(item) in dropped:
            continue
        elif item in region.moved or index > region.last:
            behind += ["\n", Piece(span)]
        else:
            stays += [Piece(span), "\n"]
    early = [Piece(whole(source, s)) for s in held.body if id(s) in ahead]
    head = (
        f"{indent}if {test}:\n",
        *(part for one in early for part in (one, "\n")),
        *(f"{inner}{line}\n" for line in before),
        inner,
        *_call(cell, step, place, inner),
        f"\n{indent}else:\n",
    )
    return (*stays, *head, "\n".join(other), *behind)


def _indented(text: str, more: str) -> str:
    return "\n".join(more + line if line.strip() else line for line in text.split("\n"))


def _rest(source: Source, held: ast.If, dropped: set[int], indent: str, test: str) -> Parts:
    """What else the ``if`` of the update did."""
    tail = [s for s in held.body if id(s) not in dropped]
    if not tail and not held.orelse:
        return ()
    parts: list[str | Piece] = [f"\n{indent}if {test}:"]
    for item in tail:
        parts += ["\n", Piece(whole(source, item))]
    if not tail:
        parts.append(f"\n{indent_of(source, held.body[0])}pass")
    if held.orelse:
        parts.append(f"\n{indent}else:")
        for item in held.orelse:
            parts += ["\n", Piece(whole(source, item))]
    return tuple(parts)


# -- elsewhere --------------------------------------------------------------------------------


def _elsewhere(view: View, region: Region, found: Sequence[Mark], place: Place) -> Iterator[Edit]:
    """zero_grad and the like outside the region; accumulated gradients are applied by name."""
    source = view.file.source
    # of the two in ``if clipping: unscale_(...), clip_grad_norm_(...)`` each is written anew
    for mark in {id(m.statement if m.when is None else m.call): m for m in found}.values():
        text = _later(view, region, mark, place)
        if text:
            changed = mark.call if mark.when is not None else mark.statement
            yield edit(source, source.span(changed), (text,))
            continue
        block, parent = block_of(view, mark.statement)
        going = {id(m.statement) for m in found if not _later(view, region, m, place)}
        if not isinstance(parent, ast.Module) and all(id(s) in going for s in block):
            kept = "pass" if block[0] is mark.statement else ""
            yield edit(source, source.span(mark.statement), (kept,))
            continue
        span = whole(source, mark.statement)
        end = min(span.end + 1, len(source.data))
        notes = comments(source, source.span(mark.statement).end, span.end)
        indent = indent_of(source, mark.statement)
        yield edit(source, Span(span.start, end), tuple(f"{indent}{n}\n" for n in notes))


_METHODS = {Act.STEP: "update", Act.UNSCALE: "unscale", Act.UPDATE: "adjust"}


def _later(view: View, region: Region, mark: Mark, place: Place) -> str:
    """How an accumulating step does what the mark did; "" when there is nothing to do."""
    if region.group.fused:
        return ""
    step = place.variable
    if mark.act in _METHODS:
        return f"{step}.{_METHODS[mark.act]}()"
    if mark.act is Act.ZERO:
        if region.group.apart:
            return ""
        loops = [n for n in region.group.backwards[0].on if isinstance(n, (ast.For, ast.While))]
        late = mark.statement.lineno > region.group.backwards[0].statement.lineno
        again = late or place.behind or any(n in mark.on for n in loops)
        return f"{step}.clear()" if again else ""
    made = clip(view, region.group, mark) if mark in region.group.clips() else None
    if isinstance(made, Clip):
        method = "clip" if mark.act is Act.CLIP_NORM else "clip_value"
        target = f"{made.target} = " if made.target else ""
        return f"{target}{step}.{method}({made.call(view)})"
    return ""


def _captures(source: Source, region: Region) -> Iterator[Edit]:
    """In statements that move: the name of the binding that they read."""
    for item, name, _ in region.captured:
        for use in uses(item):
            if use.name == name and not use.stored:
                yield edit(source, source.span(use.node), (f"first_{name}",))
