"""Pair the tensors of two models: the cheapest assignment, pieces of one another, a mapping file.

The cost of a pair adds up: kinds of layer that differ, roles that differ, names that are not alike,
and the distance between the times at which the layers run. Shapes that do not fit cannot pair.
Query, key and value are one matrix on one side and three layers on the other; so are the gates of a
recurrent layer. Such pieces lie along the first axis, in torch's order, or are stacked along a new
one. The mapping file is TOML: ``[cells]`` maps module paths to Cell paths, ``[weights]`` torch's
tensors to ``"place"``, ``{to, layout, torch_rows, rows, axis}``, or a list of such parts.
"""

from __future__ import annotations

import itertools
import json
import math
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from migrate.parity.hand.inventory import Shape, Side, Weight, likeness, words
from migrate.records.outcomes import Problem

PIECES = (2, 3, 4)
ORDERED = ("q", "k", "v")


@dataclass(frozen=True)
class Part:
    """Rows ``torch_rows`` of a torch tensor, after ``layout``, are ``rows`` of ``place``.

    ``axis`` is that of ``rows``; None stands for all of it. ``adds``: to what another part puts
    there.
    """

    key: str
    place: str
    layout: str = ""
    torch_rows: tuple[int, int] | None = None
    rows: tuple[int, int] | None = None
    axis: int = 0
    adds: bool = False


@dataclass(frozen=True)
class Fused:
    parts: tuple[Part, ...]
    torch_left: tuple[Weight, ...]
    mindspore_left: tuple[Weight, ...]


def fuse_named(torch: Sequence[Weight], mindspore: Sequence[Weight]) -> Fused:
    """Return the pieces that are called q, k and v, where as many wholes are on the other side.

    They go before all else: each by itself has the shape of many a layer.
    """
    parts: list[Part] = []
    for wholes, pieces, join in ((torch, mindspore, False), (mindspore, torch, True)):
        for shape in dict.fromkeys(whole.shape for whole in wholes):
            wanted = [whole for whole in wholes if whole.shape == shape]
            known = sum(weight.shape == shape for weight in pieces)
            size = _piece_shape(shape, len(ORDERED), False, join)
            fitting = [weight for weight in pieces if size and weight.shape == size]
            groups = [g for g in _groups(fitting, len(ORDERED)) if all(_letter(w) for w in g)]
            if known or len(groups) != len(wanted):
                continue
            groups.sort(key=lambda group: group[0].rank)
            for whole, group in zip(sorted(wanted, key=lambda w: w.rank), groups, strict=True):
                rows = whole.shape[0] // len(ORDERED)
                found = tuple(_Piece(weight, rows) for weight in group)
                parts += _join(whole, found) if join else _split(whole, found)
    keys, places = {part.key for part in parts}, {part.place for part in parts}
    return Fused(
        tuple(parts), tuple(w for w in torch if w.place not in keys),
        tuple(w for w in mindspore if w.place not in places),
    )  # fmt: skip


def fuse(torch: Sequence[Weight], mindspore: Sequence[Weight]) -> Fused:
    """Find wholes on either side whose pieces lie on the other."""
    parts: list[Part] = []
    used: set[str] = set()
    for whole in torch:
        pieces = _pieces(whole, [w for w in mindspore if f"m{w.place}" not in used], False)
        if pieces:
            parts += _split(whole, pieces)
            used |= {f"t{whole.place}", *(f"m{piece.weight.place}" for piece in pieces)}
    for whole in mindspore:
        if f"m{whole.place}" in used:
            continue
        pieces = _pieces(whole, [w for w in torch if f"t{w.place}" not in used], True)
        if pieces:
            parts += _join(whole, pieces)
            used |= {f"m{whole.place}", *(f"t{piece.weight.place}" for piece in pieces)}
    return Fused(
        tuple(parts), tuple(w for w in torch if f"t{w.place}" not in used),
        tuple(w for w in mindspore if f"m{w.place}" not in used),
    )  # fmt: skip


@dataclass(frozen=True)
class _Piece:
    """A tensor that is ``rows`` of a whole along its first axis (the second if ``turned``)."""

    weight: Weight
    rows: int
    layout: str = ""
    turned: bool = False


Group = tuple[_Piece, ...]


def _pieces(whole: Weight, candidates: Sequence[Weight], join: bool) -> Group:
    """Return the nearest group of tensors of one role that make up the whole."""
    groups = list(_equal(whole, candidates, join))
    groups = groups or list(_unequal(whole, candidates)) or list(_stacked(whole, candidates, join))
    return min(groups, key=lambda group: _group_cost(whole, group)) if groups else ()


def _group_cost(whole: Weight, group: Group) -> float:
    first = group[0]
    cost = 10 * min(abs(piece.weight.rank - whole.rank) for piece in group) + 2 * first.turned
    return cost + 3 * (1 - likeness(whole.owner, first.weight.owner.rpartition(".")[0]))


def _equal(whole: Weight, candidates: Sequence[Weight], join: bool) -> Iterator[Group]:
    for count, turned in itertools.product(PIECES, (False, True)):
        wanted = _piece_shape(whole.shape, count, turned, join)
        fitting = [w for w in candidates if w.shape == wanted] if wanted else []
        for group in _groups(fitting, count):
            rows = whole.shape[1 if turned and join else 0] // count
            yield tuple(_Piece(w, rows, "t()" if turned else "", turned) for w in group)


def _unequal(whole: Weight, candidates: Sequence[Weight]) -> Iterator[Group]:
    """Neighbours of other sizes, as two heads that are one layer on the other side."""
    same = len(whole.shape), whole.shape[1:]
    fitting = [w for w in candidates if w.shape and (len(w.shape), w.shape[1:]) == same]
    for count in PIECES:
        for group in _groups(fitting, count):
            if sum(w.shape[0] for w in group) == whole.shape[0]:
                yield tuple(_Piece(w, w.shape[0]) for w in group)


def _stacked(whole: Weight, candidates: Sequence[Weight], join: bool) -> Iterator[Group]:
    """As many tensors as the whole has rows, each of the shape of a row."""
    shape = whole.shape[1:]
    fitting = [w for w in candidates if w.shape == shape]
    if len(whole.shape) > 1 and whole.shape[0] > 1:
        layout = f"reshape{(1, *shape)}" if join else f"reshape({', '.join(map(str, shape))})"
        for group in _groups(fitting, whole.shape[0]):
            yield tuple(_Piece(w, 1, layout) for w in group)


def _piece_shape(whole: Shape, count: int, turned: bool, join: bool) -> Shape:
    """Return the shape of one of ``count`` pieces; empty where the whole does not divide."""
    axis = 1 if turned and join else 0
    if len(whole) <= axis or whole[axis] % count or (turned and len(whole) != 2):
        return ()
    piece = tuple(size // count if i == axis else size for i, size in enumerate(whole))
    return piece[::-1] if turned else piece


def _groups(fitting: Sequence[Weight], count: int) -> Iterator[tuple[Weight, ...]]:
    """Neighbours in registration with one parent and one role; q, k, v in that order."""
    keyed: dict[tuple[str, str], list[Weight]] = {}
    for weight in fitting:
        parent = weight.owner.rpartition(".")[0]
        role = weight.role if weight.role in ("weight", "bias") else ""
        keyed.setdefault((parent, role), []).append(weight)
    for members in keyed.values():
        named = [weight for weight in members if _letter(weight)]
        members = named if len(named) == count else members
        for start in range(len(members) - count + 1):
            yield tuple(sorted(members[start : start + count], key=_letter_order))


def _letter(weight: Weight) -> str:
    found = words(weight.place)[-3:]
    return next((x for x in ORDERED for w in found if w in (x, f"w{x}", f"{x}w", f"b{x}")), "")


def _letter_order(weight: Weight) -> int:
    letter = _letter(weight)
    return ORDERED.index(letter) if letter else len(ORDERED)


def _split(whole: Weight, pieces: Group) -> Iterator[Part]:
    for piece, rows in zip(pieces, _rows(pieces), strict=True):
        yield Part(whole.place, piece.weight.place, piece.layout, torch_rows=rows)


def _join(whole: Weight, pieces: Group) -> Iterator[Part]:
    """Yield the parts that join pieces; a turned whole holds them side by side."""
    axis = 1 if pieces[0].turned else 0
    for piece, rows in zip(pieces, _rows(pieces), strict=True):
        yield Part(piece.weight.place, whole.place, piece.layout, rows=rows, axis=axis)


def _rows(pieces: Group) -> Iterator[tuple[int, int]]:
    ends = list(itertools.accumulate(piece.rows for piece in pieces))
    return zip([0, *ends], ends, strict=False)


def layouts(torch: Weight, mindspore: Weight, native: bool) -> tuple[str, ...]:
    """Empty when the shapes do not fit.

    ``native``: both belong to layers of the frameworks themselves, which agree on the order of
    axes; else a square matrix may lie either way.
    """
    one, other = torch.shape, mindspore.shape
    if one == other:
        square = len(one) == 2 and one[0] == one[1] and one[0] > 1
        return ("", "t()") if square and not native else ("",)
    if math.prod(one) != math.prod(other):
        return ()
    if _core(one) == _core(other):
        return (_reshape(other),)
    if len(_core(one)) == 2 and _core(one)[::-1] == _core(other):
        return (f"squeeze().t().{_reshape(other)}" if len(one) != 2 or len(other) != 2 else "t()",)
    if one[:1] == other[:1] and len(one) > 2 and len(other) == 2:
        return (_reshape(other),)
    if native:
        return ()
    return _permuted(one, other)


def _core(shape: Shape) -> Shape:
    return tuple(size for size in shape if size != 1)


def _reshape(shape: Shape) -> str:
    return f"reshape({', '.join(str(size) for size in shape)})"


def _permuted(one: Shape, other: Shape) -> tuple[str, ...]:
    """Axes in another order, where only one order gives that shape (kernels kept HWIO)."""
    if len(one) != len(other) or len(set(one)) != len(one) or sorted(one) != sorted(other):
        return ()
    return (f"permute({', '.join(str(one.index(size)) for size in other)})",)


NEVER = 1e6
KIND, ROLE, NAME, STEP, FARTHEST, CONSTANT, TRAINED = 3.0, 2.0, 2.0, 0.4, 4.0, 1.0, 2.0
APART = 5.0  # a bias that leaves its matrix
CHANGED = 0.3  # a pair that needs a change of shape, against one that does not
NEAR = 0.35  # another choice that costs no more than this in addition is ambiguous
LIMIT = 9.0


@dataclass(frozen=True)
class Match:
    """One torch tensor and its partner; ``others`` are changes of shape that fit as well."""

    torch: Weight
    mindspore: Weight
    layout: str
    others: tuple[str, ...] = ()
    rivals: tuple[str, ...] = ()


@dataclass(frozen=True)
class Assigned:
    matches: tuple[Match, ...]
    torch_left: tuple[Weight, ...]
    mindspore_left: tuple[Weight, ...]


def assign(
    torch: Side, mindspore: Side, one: Sequence[Weight], other: Sequence[Weight]
) -> Assigned:
    """Matrices and kernels first; vectors then follow those of their layers."""
    many = [w for w in one if len(w.shape) > 1], [w for w in other if len(w.shape) > 1]
    first = _assign(torch, mindspore, *many, {})
    owners = couples((m.torch.owner, m.mindspore.owner) for m in first.matches)
    taken = ({m.torch.place for m in first.matches}, {m.mindspore.place for m in first.matches})
    rest = (
        [w for w in one if w.place not in taken[0]],
        [w for w in other if w.place not in taken[1]],
    )
    second = _assign(torch, mindspore, *rest, owners)
    return Assigned((*first.matches, *second.matches), second.torch_left, second.mindspore_left)


def couples(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return those on the left that went to one on the right, from where no others came."""
    there: dict[str, set[str]] = {}
    back: dict[str, set[str]] = {}
    for one, other in pairs:
        there.setdefault(one, set()).add(other)
        back.setdefault(other, set()).add(one)
    return {
        one: other for one, others in there.items() for other in others
        if len(others) == 1 and len(back[other]) == 1
    }  # fmt: skip


def _assign(
    torch: Side, mindspore: Side, one: Sequence[Weight], other: Sequence[Weight],
    owners: Mapping[str, str],
) -> Assigned:  # fmt: skip
    """Return the cheapest pairs of tensors with shapes that fit, each tensor at most once."""
    if not one or not other:
        return Assigned((), tuple(one), tuple(other))
    known: dict[tuple[str, str], float] = {}
    depth = max(len({w.owner for w in side.weights}) for side in (torch, mindspore))
    costs = np.full((len(one), len(other)), NEVER)
    back = {cell: path for path, cell in owners.items()}
    for row, left in enumerate(one):
        for column, right in enumerate(other):
            found = _layouts(torch, mindspore, left, right)
            if found:
                changed = CHANGED if found[0] else 0.0
                apart = owners.get(left.owner, right.owner) != right.owner
                apart = apart or back.get(right.owner, left.owner) != left.owner
                cost = _cost(torch, mindspore, left, right, known, depth)
                costs[row, column] = cost + changed + APART * apart
    pairs = [(r, c) for r, c in zip(*linear_sum_assignment(costs), strict=True)
             if costs[r, c] < LIMIT]  # fmt: skip
    matches = []
    for row, column in pairs:
        found = _layouts(torch, mindspore, one[row], other[column])
        rivals = _rivals(costs, row, column, pairs, other)
        matches.append(Match(one[row], other[column], found[0], found[1:], rivals))
    rows, columns = {r for r, _ in pairs}, {c for _, c in pairs}
    return Assigned(
        tuple(matches), tuple(w for i, w in enumerate(one) if i not in rows),
        tuple(w for i, w in enumerate(other) if i not in columns),
    )  # fmt: skip


def _layouts(torch: Side, mindspore: Side, one: Weight, other: Weight) -> tuple[str, ...]:
    if one.whole != other.whole:
        return ()
    kinds = torch.kinds.get(one.owner, ""), mindspore.kinds.get(other.owner, "")
    return layouts(one, other, native=bool(kinds[0]) and kinds[0] == kinds[1])


def _rivals(
    costs: np.ndarray[tuple[int, int], np.dtype[np.float64]], row: int, column: int,
    pairs: Sequence[tuple[int, int]], other: Sequence[Weight],
) -> tuple[str, ...]:  # fmt: skip
    """Partners that would cost hardly more, by exchange with the tensor that has them."""
    found = []
    for row2, column2 in pairs:
        now = costs[row, column] + costs[row2, column2]
        if row2 != row and costs[row, column2] + costs[row2, column] - now <= NEAR:
            found.append(other[column2].place)
    return tuple(found)


def _cost(
    torch: Side, mindspore: Side, one: Weight, other: Weight,
    known: dict[tuple[str, str], float], depth: int,
) -> float:  # fmt: skip
    """Small where the names, the kinds, the roles and the order agree."""
    owners = one.owner, other.owner
    if owners not in known:
        left, right = torch.kinds.get(one.owner, ""), mindspore.kinds.get(other.owner, "")
        differ = 0.0 if left == right else (KIND if left and right else KIND / 3)
        steps = min(STEP * depth * abs(one.rank - other.rank), FARTHEST)
        anew = torch.counted.get(one.owner, ""), mindspore.counted.get(other.owner, "")
        alike = max(likeness(*owners), likeness(*anew))
        known[owners] = differ + steps + NAME * (1.0 - alike)
    same = one.role == other.role
    near = 0.0 if same else ROLE * (1.0 - 0.5 * likeness(one.name, other.name))
    kind = CONSTANT if one.parameter and not other.parameter else 0.0
    statistic = TRAINED if not one.parameter and other.trained else 0.0
    return known[owners] + near + kind + statistic


SURE = 0.9  # names this much alike are no guess


@dataclass(frozen=True)
class Matching:
    """``parts`` copy torch's weights; ``unlike`` pairs belong together but differ in shape.

    ``choices`` are other layouts or partners of tensors where nothing but trying decides.
    """

    parts: tuple[Part, ...]
    unlike: tuple[tuple[Weight, Weight], ...] = ()
    torch_left: tuple[Weight, ...] = ()
    mindspore_left: tuple[Weight, ...] = ()
    ambiguous: tuple[tuple[str, tuple[str, ...]], ...] = ()
    choices: tuple[Mapping[str, Part], ...] = field(default=())

    def places(self, key: str) -> tuple[str, ...]:
        return tuple(part.place for part in self.parts if part.key == key)


def match(torch: Side, mindspore: Side, fixed: Sequence[Part] = ()) -> Matching:
    """Pair all tensors; ``fixed`` parts come from a mapping file and stay."""
    keys, places = {part.key for part in fixed}, {part.place for part in fixed}
    one = [weight for weight in torch.weights if weight.place not in keys]
    other = [weight for weight in mindspore.weights if weight.place not in places]
    named = fuse_named(one, other)
    assigned = assign(torch, mindspore, named.torch_left, named.mindspore_left)
    fused = fuse(assigned.torch_left, assigned.mindspore_left)
    unlike, torch_left, mindspore_left = _unlike(torch, mindspore, fused.torch_left,
                                                 fused.mindspore_left)  # fmt: skip
    matches = assigned.matches
    singles = tuple(Part(m.torch.place, m.mindspore.place, m.layout) for m in matches)
    unsure = [m for m in matches if m.rivals and likeness(m.torch.place, m.mindspore.place) < SURE]
    return Matching(
        (*fixed, *named.parts, *singles, *fused.parts), unlike, torch_left,
        mindspore_left, tuple((m.torch.place, m.rivals) for m in unsure),
        tuple(_choices(matches, unsure)),
    )  # fmt: skip


SUMMED = ("lstm", "lstmcell", "rnn", "rnncell")  # nothing comes between the two biases of a gate
TWO = {"bias_ih": "bias_hh", "bias_hh": "bias_ih"}


def with_sums(matching: Matching, torch: Side) -> Matching:
    """Add torch's second bias of a recurrent layer to the only one that the port has."""
    left = list(matching.torch_left)
    added: list[Part] = []
    for weight in matching.torch_left:
        first = weight.name[:7]
        other = f"{weight.owner}.{TWO.get(first, '')}{weight.name[7:]}".lstrip(".")
        parts = [part for part in matching.parts if part.key == other]
        if first in TWO and torch.kinds.get(weight.owner) in SUMMED and parts:
            added += [replace(part, key=weight.place, adds=True) for part in parts]
            left.remove(weight)
    return replace(matching, parts=(*matching.parts, *added), torch_left=tuple(left))


def _unlike(
    torch: Side, mindspore: Side, one: Sequence[Weight], other: Sequence[Weight]
) -> tuple[tuple[tuple[Weight, Weight], ...], tuple[Weight, ...], tuple[Weight, ...]]:
    """Tensors of one role in layers of one kind and alike name, whose shapes do not fit."""
    pairs: list[tuple[Weight, Weight]] = []
    left = [weight for weight in other if weight.parameter]
    for weight in one:
        kind = torch.kinds.get(weight.owner, "")
        fitting = [
            w for w in left
            if w.role == weight.role and mindspore.kinds.get(w.owner, "") == kind
            and len(w.shape) == len(weight.shape)
            and (kind or likeness(weight.owner, w.owner) >= SURE)
        ]  # fmt: skip
        if fitting:
            best = max(fitting, key=lambda w: likeness(weight.owner, w.owner) - abs(
                weight.rank - w.rank) / 10)  # fmt: skip
            pairs.append((weight, best))
            left.remove(best)
    paired = {w.place for w, _ in pairs}
    taken = {w.place for _, w in pairs}
    return (
        tuple(pairs), tuple(w for w in one if w.place not in paired),
        tuple(w for w in other if w.place not in taken),
    )  # fmt: skip


def _choices(matches: Sequence[Match], unsure: Sequence[Match]) -> list[Mapping[str, Part]]:
    """Changes of the parts that are worth a try: square matrices turned, near rivals exchanged."""
    turned = [m for m in matches if m.others]
    single = [{m.torch.place: Part(m.torch.place, m.mindspore.place, m.others[0])} for m in turned]
    together = {key: part for change in single for key, part in change.items()}
    found: list[Mapping[str, Part]] = [together] if len(turned) > 1 else []
    found += single
    by_place = {m.mindspore.place: m for m in matches}
    for m in unsure:
        for place in m.rivals:
            rival = by_place[place]
            if m.torch.place < rival.torch.place:
                found.append({
                    m.torch.place: Part(m.torch.place, place, m.layout),
                    rival.torch.place: Part(rival.torch.place, m.mindspore.place, rival.layout),
                })  # fmt: skip
    return found


def with_choice(matching: Matching, change: Mapping[str, Part]) -> tuple[Part, ...]:
    """Return the parts with some of them exchanged."""
    return tuple(change.get(part.key, part) for part in matching.parts)


if sys.version_info >= (3, 11):
    import tomllib
else:  # pragma: no cover
    import tomli as tomllib

HEAD = """\
# Which Cell and which tensor stands for which, as torch2ms verify found it. Edit it, and give it
# back with --map: what stands here is taken as it is, what does not is looked for.
"""


@dataclass(frozen=True)
class Fixed:
    """What a mapping file says."""

    cells: Mapping[str, str]
    parts: tuple[Part, ...]


def text(
    cells: Mapping[str, str], parts: Sequence[Part],
    ambiguous: Sequence[tuple[str, tuple[str, ...]]],
) -> str:  # fmt: skip
    """Return the file; tensors with other plausible partners are marked."""
    unsure = dict(ambiguous)
    lines = [HEAD, "[cells]"]
    lines += [f"{json.dumps(path)} = {json.dumps(cell)}" for path, cell in cells.items() if path]
    lines += ["", "[weights]"]
    for key in dict.fromkeys(part.key for part in parts):
        mine = [part for part in parts if part.key == key]
        value = _part(mine[0]) if len(mine) == 1 else f"[{', '.join(_part(p) for p in mine)}]"
        note = f"  # unsure: or {', '.join(unsure[key])}" if key in unsure else ""
        lines.append(f"{json.dumps(key)} = {value}{note}")
    return "\n".join(lines) + "\n"


def _part(part: Part) -> str:
    more = [f"layout = {json.dumps(part.layout)}"] if part.layout else []
    more += [f"torch_rows = {list(part.torch_rows)}"] if part.torch_rows else []
    more += [f"rows = {list(part.rows)}"] if part.rows else []
    more += [f"axis = {part.axis}"] if part.axis else []
    more += ["adds = true"] if part.adds else []
    place = json.dumps(part.place)
    return f"{{ {', '.join([f'to = {place}', *more])} }}" if more else place


def read(path: Path) -> Fixed:
    """Read a mapping file. Raises Problem that names the line or key."""
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
        cells = {str(path): str(cell) for path, cell in data.get("cells", {}).items()}
        parts = [
            part for key, value in data.get("weights", {}).items()
            for part in _parts(key, value)
        ]  # fmt: skip
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise Problem(
            str(path), "not a mapping file", f"{type(error).__name__}: {error}",
            "give a file that torch2ms verify wrote, or a new name",
        ) from error  # fmt: skip
    return Fixed(cells, tuple(parts))


def _parts(key: str, value: Any) -> list[Part]:
    found = []
    for item in value if isinstance(value, list) else [value]:
        row = {"to": item} if isinstance(item, str) else item
        known = {"to", "layout", "torch_rows", "rows", "axis", "adds"}
        if not isinstance(row, dict) or not set(row) <= known:
            raise ValueError(f"{key}: a part has the keys {', '.join(sorted(known))}")
        pairs = [tuple(row[name]) if name in row else None for name in ("torch_rows", "rows")]
        found.append(Part(
            key, row["to"], row.get("layout", ""), pairs[0], pairs[1], row.get("axis", 0),
            bool(row.get("adds", False)),
        ))  # fmt: skip
    return found
