"""In: the tensors of both sides. Out: pairs with the least total cost, and where others are near.

The cost of a pair adds up: kinds of layer that differ, roles that differ, names that are not alike,
and the distance between the times at which the layers run. Shapes that do not fit cannot pair.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linear_sum_assignment

from migrate.parity.hand.inventory import Side, Weight
from migrate.parity.hand.kinds import likeness
from migrate.parity.hand.layouts import layouts

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
