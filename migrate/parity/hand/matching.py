"""Pair the tensors of two models: the cheapest assignment, and where others are near.

The cost of a pair adds up: kinds of layer that differ, roles that differ, names that are not alike,
and the distance between the times at which the layers run. Shapes that do not fit cannot pair.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.optimize import linear_sum_assignment

from migrate.parity.hand.fusing import Part, fuse, fuse_named
from migrate.parity.hand.inventory import Shape, Side, Weight, likeness


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
    owners = _couples(first.matches)
    taken = ({m.torch.place for m in first.matches}, {m.mindspore.place for m in first.matches})
    rest = (
        [w for w in one if w.place not in taken[0]],
        [w for w in other if w.place not in taken[1]],
    )
    second = _assign(torch, mindspore, *rest, owners)
    return Assigned((*first.matches, *second.matches), second.torch_left, second.mindspore_left)


def _couples(matches: Sequence[Match]) -> dict[str, str]:
    """Layers whose matrices went to one layer, from where no others came."""
    there: dict[str, set[str]] = {}
    back: dict[str, set[str]] = {}
    for match in matches:
        there.setdefault(match.torch.owner, set()).add(match.mindspore.owner)
        back.setdefault(match.mindspore.owner, set()).add(match.torch.owner)
    return {
        one: cell for one, cells in there.items() for cell in cells
        if len(cells) == 1 and len(back[cell]) == 1
    }  # fmt: skip


def _assign(
    torch: Side, mindspore: Side, one: Sequence[Weight], other: Sequence[Weight],
    owners: Mapping[str, str],
) -> Assigned:  # fmt: skip
    """The cheapest pairs of tensors with shapes that fit, each tensor at most once."""
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
    """The parts with some of them exchanged."""
    return tuple(change.get(part.key, part) for part in matching.parts)
