"""In: two traces of calls and the Cells already paired. Out: calls that stand for one another.

Needleman and Wunsch's alignment of two sequences: paired Cells are fixed points, between them
calls pair by kind, name and the shape of their results; what fits nothing stays alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from migrate.parity.hand.inventory import Call, Side
from migrate.parity.hand.kinds import family, likeness

NO = -1e9
FIXED, KIND, FAMILY, NAME, SHAPE = 20.0, 2.0, 0.8, 1.0, 0.7
LEAST = 1.5
LONGEST = 4_000_000  # cells of the table; beyond that names alone pair


def align(
    torch: Side, mindspore: Side, one: Sequence[Call], other: Sequence[Call],
    paired: Mapping[str, str],
) -> dict[str, str]:  # fmt: skip
    """Paths of torch -> paths of MindSpore, where all calls of the one align with the other's."""
    if not one or not other or len(one) * len(other) > LONGEST:
        return {}
    back = {cell: path for path, cell in paired.items()}
    table = [[0.0] * (len(other) + 1) for _ in range(len(one) + 1)]
    scores = [[_score(torch, mindspore, a, b, paired, back) for b in other] for a in one]
    for i in range(len(one) - 1, -1, -1):
        row, below, score = table[i], table[i + 1], scores[i]
        for j in range(len(other) - 1, -1, -1):
            row[j] = max(below[j], row[j + 1], below[j + 1] + score[j])
    pairs: dict[str, set[str]] = {}
    i = j = 0
    while i < len(one) and j < len(other):
        if scores[i][j] > 0 and table[i][j] == table[i + 1][j + 1] + scores[i][j]:
            pairs.setdefault(one[i].path, set()).add(other[j].path)
            i, j = i + 1, j + 1
        elif table[i][j] == table[i + 1][j]:
            i += 1
        else:
            j += 1
    return _consistent(torch, mindspore, pairs, paired)


def _consistent(
    torch: Side, mindspore: Side, pairs: Mapping[str, set[str]], paired: Mapping[str, str]
) -> dict[str, str]:
    claimed: dict[str, int] = {}
    for cells in pairs.values():
        for cell in cells:
            claimed[cell] = claimed.get(cell, 0) + 1
    found: dict[str, str] = {}
    for path, cells in pairs.items():
        cell = next(iter(cells))
        alone = len(cells) == 1 and claimed[cell] == 1
        if alone and path not in paired and torch.counts.get(path) == mindspore.counts.get(cell):
            found[path] = cell
    return found


def _score(
    torch: Side, mindspore: Side, one: Call, other: Call,
    paired: Mapping[str, str], back: Mapping[str, str],
) -> float:  # fmt: skip
    if one.path in paired or other.path in back:
        return FIXED if paired.get(one.path) == other.path else NO
    if one.path in torch.owners or other.path in mindspore.owners:
        return NO  # what holds tensors is paired by them or not at all
    left, right = torch.kinds[one.path], mindspore.kinds[other.path]
    alike = likeness(one.path.rpartition(".")[2], other.path.rpartition(".")[2])
    score = NAME * alike + (SHAPE if one.shapes == other.shapes else 0.0)
    if left and left == right:
        score += KIND
    elif left and family(left) == family(right):
        score += FAMILY
    elif left or right:
        score -= 1.0
    return score if score >= LEAST else NO
