"""In: paired tensors and both traces. Out: which Cell stands for which module."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from migrate.parity.hand.alignment import align
from migrate.parity.hand.fusing import Part
from migrate.parity.hand.inventory import Side
from migrate.parity.hand.kinds import likeness


def pair_cells(
    torch: Side, mindspore: Side, parts: Sequence[Part], fixed: Mapping[str, str]
) -> dict[str, str]:
    """Module paths -> Cell paths. The roots are a pair; ``fixed`` comes from a mapping file."""
    paired = {"": "", **fixed}
    _owners(torch, mindspore, parts, paired)
    _holders(torch, mindspore, parts, paired)
    _same_names(torch, mindspore, paired)
    for path, cell in list(paired.items()):  # a layer that holds its activation gives back more
        if torch.kinds.get(path) in ("linear", "conv") and mindspore.below(cell):
            del paired[path]
    leaves = [call for call in torch.calls if not torch.below(call.path)]
    others = [call for call in mindspore.calls if not mindspore.below(call.path)]
    paired.update(align(torch, mindspore, leaves, others, paired))
    return paired


def _add(torch: Side, mindspore: Side, paired: dict[str, str], path: str, cell: str) -> None:
    """Pair two Cells unless one of them is taken, or they run unequally often."""
    free = path not in paired and cell not in paired.values()
    calls = mindspore.counts.get(cell, 0)
    if free and (torch.counts.get(path, 0) == calls or (mindspore.partial and not calls)):
        paired[path] = cell


def _owners(torch: Side, mindspore: Side, parts: Sequence[Part], paired: dict[str, str]) -> None:
    """Layers whose own tensors all went to one layer, from where no other tensors came."""
    there: dict[str, set[str]] = {}
    back: dict[str, set[str]] = {}
    for part in parts:
        path, cell = part.key.rpartition(".")[0], _layer(mindspore, part.place)
        there.setdefault(path, set()).add(cell)
        back.setdefault(cell, set()).add(path)
    for path, cells in there.items():
        cell = next(iter(cells))
        if len(cells) == 1 and len(back[cell]) == 1:
            _add(torch, mindspore, paired, path, cell)


def _layer(side: Side, place: str) -> str:
    """The layer that a tensor belongs to: BatchNorm3d keeps a BatchNorm2d inside."""
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
    """Path -> the tensors at and below it."""
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
    """Whether a pair lies inside the pairs around it, on both sides alike."""
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
