"""Pair the Cells of two models by their tensors, their names and the order of calls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from migrate.parity.hand.inventory import Call, Side, family, likeness
from migrate.parity.hand.matching import Part, couples

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
    scores = [[_score(torch, mindspore, a, b, paired, back) for b in other] for a in one]
    pairs: dict[str, set[str]] = {}
    for call, at in zip(one, aligned(scores), strict=True):
        if at >= 0:
            pairs.setdefault(call.path, set()).add(other[at].path)
    return _consistent(torch, mindspore, pairs, paired)


def aligned(scores: Sequence[Sequence[float]]) -> list[int]:
    """Return for each row its column, -1 for none, in the same order and with the highest sum.

    Needleman and Wunsch's alignment; what scores no more than 0 does not pair.
    """
    rows, columns = len(scores), len(scores[0]) if scores else 0
    table = [[0.0] * (columns + 1) for _ in range(rows + 1)]
    for i in range(rows - 1, -1, -1):
        row, below, score = table[i], table[i + 1], scores[i]
        for j in range(columns - 1, -1, -1):
            row[j] = max(below[j], row[j + 1], below[j + 1] + score[j])
    partner = [-1] * rows
    i = j = 0
    while i < rows and j < columns:
        if scores[i][j] > 0 and table[i][j] == table[i + 1][j + 1] + scores[i][j]:
            partner[i] = j
            i, j = i + 1, j + 1
        elif table[i][j] == table[i + 1][j]:
            i += 1
        else:
            j += 1
    return partner


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


def pair_cells(
    torch: Side, mindspore: Side, parts: Sequence[Part], fixed: Mapping[str, str],
    fits: Mapping[str, Sequence[str]],
) -> dict[str, str]:  # fmt: skip
    """Module paths -> Cell paths. The roots are a pair; ``fixed`` comes from a mapping file.

    ``fits`` says which modules receive the numbers that a Cell receives.
    """
    paired = {"": "", **fixed}
    _owners(torch, mindspore, parts, paired)
    _holders(torch, mindspore, parts, paired)
    _same_names(torch, mindspore, paired)
    for path, cell in list(paired.items()):  # a layer that holds its activation gives back more
        if torch.kinds.get(path) in ("linear", "conv") and mindspore.below(cell):
            del paired[path]
    _fed_alike(torch, mindspore, fits, paired)
    leaves = [call for call in torch.calls if not torch.below(call.path)]
    others = [call for call in mindspore.calls if not mindspore.below(call.path)]
    paired.update(align(torch, mindspore, leaves, others, paired))
    return paired


def _fed_alike(
    torch: Side, mindspore: Side, fits: Mapping[str, Sequence[str]], paired: dict[str, str]
) -> None:
    """Pair layers without tensors that receive the same numbers, where there is one of each."""

    def free(cell: str) -> list[str]:
        kind = family(mindspore.kinds.get(cell, ""))
        return [
            path for path in fits[cell]
            if kind and family(torch.kinds[path]) == kind
            and path not in paired and path not in torch.owners
        ]  # fmt: skip

    taken = set(paired.values())
    wanted = {
        cell: free(cell) for cell in fits
        if cell in mindspore.kinds and cell not in taken | mindspore.owners
    }  # fmt: skip
    rivals = Counter(path for paths in wanted.values() for path in paths)
    for cell, paths in wanted.items():
        if len(paths) == 1 and rivals[paths[0]] == 1:
            _add(torch, mindspore, paired, paths[0], cell)


def _add(torch: Side, mindspore: Side, paired: dict[str, str], path: str, cell: str) -> None:
    """Pair two Cells unless one of them is taken, or they run unequally often."""
    free = path not in paired and cell not in paired.values()
    calls = mindspore.counts.get(cell, 0)
    if free and (torch.counts.get(path, 0) == calls or (mindspore.partial and not calls)):
        paired[path] = cell


def _owners(torch: Side, mindspore: Side, parts: Sequence[Part], paired: dict[str, str]) -> None:
    """Layers whose own tensors all went to one layer, from where no other tensors came."""
    layers = ((part.key.rpartition(".")[0], _layer(mindspore, part.place)) for part in parts)
    for path, cell in couples(layers).items():
        _add(torch, mindspore, paired, path, cell)


def _layer(side: Side, place: str) -> str:
    """Return the layer that a tensor belongs to: BatchNorm3d keeps a BatchNorm2d inside."""
    cell = place.rpartition(".")[0]
    outer = cell.rpartition(".")[0]
    while outer and side.kinds.get(cell) and side.kinds.get(outer) == side.kinds[cell]:
        cell, outer = outer, outer.rpartition(".")[0]
    return cell


def _holders(torch: Side, mindspore: Side, parts: Sequence[Part], paired: dict[str, str]) -> None:
    """Cells that hold the same tensors; of several, the most alike.

    Tensors that no part names are left out on both sides.
    """
    left = _held([part.key for part in parts], torch)
    right: dict[frozenset[str], list[str]] = {}
    for cell, places in _held([part.place for part in parts], mindspore).items():
        right.setdefault(frozenset(places), []).append(cell)
    image: dict[str, set[str]] = {}
    origin: dict[str, set[str]] = {}
    for part in parts:
        image.setdefault(part.key, set()).add(part.place)
        origin.setdefault(part.place, set()).add(part.key)
    choices: list[tuple[float, str, str]] = []
    for path, keys in left.items():
        images = frozenset(place for key in keys for place in image[key])
        whole = all(origin[place] <= keys for place in images)  # else it is a piece of a Cell
        for cell in right.get(images, []) if whole else ():
            alike = likeness(path, cell) + likeness(torch.classes[path], mindspore.classes[cell])
            alike += 0.5 * (_results(torch, path) == _results(mindspore, cell))
            choices.append((-alike, path, cell))
    for _, path, cell in sorted(choices):
        if _nested(paired, path, cell):
            _add(torch, mindspore, paired, path, cell)


def _results(side: Side, path: str) -> object:
    return next((call.shapes for call in side.calls if call.path == path), None)


def _held(places: Sequence[str], side: Side) -> dict[str, set[str]]:
    """Return path -> the tensors at and below it."""
    found: dict[str, set[str]] = {}
    for place in places:
        path = place.rpartition(".")[0]
        while True:
            if path in side.kinds:
                found.setdefault(path, set()).add(place)
            if not path:
                break
            path = path.rpartition(".")[0]
    return found


def _nested(paired: Mapping[str, str], path: str, cell: str) -> bool:
    """Return whether a pair lies inside the pairs around it, on both sides alike."""
    return all(
        _inside(path, other) == _inside(cell, partner) and
        _inside(other, path) == _inside(partner, cell)
        for other, partner in paired.items()
    )  # fmt: skip


def _inside(path: str, outer: str) -> bool:
    return path != outer and (not outer or path.startswith(f"{outer}."))


def _same_names(torch: Side, mindspore: Side, paired: dict[str, str]) -> None:
    """Children of a pair under one name, where they are of one kind or nobody's."""
    for path in torch.kinds:
        if path in paired or path not in torch.counts or path in torch.owners:
            continue
        outer, _, name = path.rpartition(".")
        cell = paired.get(outer)
        if cell is None:
            continue
        inner = f"{cell}.{name}" if cell else name
        if inner in mindspore.kinds and torch.kinds[path] == mindspore.kinds[inner]:
            _add(torch, mindspore, paired, path, inner)
