"""Exchange partners of layers by the numbers that flow into them.

A port may build its branches in another order, under other names. With torch's weights in it, a
layer with the right partner receives the numbers that its partner receives, as far as all before
it is right. So the first layer that does not is exchanged with one that does; and where several
layers receive the same numbers (a fork), their orders are tried and what follows decides. Names
that are alike are no guess and stay: a port that uses its layers in another order is wrong.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from migrate.parity.hand.inventory import Side, Weight, likeness
from migrate.parity.hand.matching import SURE, Part, couples, layouts

WIDEST = 4  # branches of a fork whose orders are all tried
Fits = Mapping[str, Sequence[str]]  # Cell -> the modules that receive the same numbers


@dataclass(frozen=True)
class Flow:
    """Both sides, and what is exchanged: layers whose tensors all went to one layer."""

    torch: Side
    mindspore: Side

    def couples(self, parts: Sequence[Part]) -> dict[str, str]:
        """Return the layers that are partners as a whole, by torch's order of calls."""
        layers = [(p.key.rpartition(".")[0], p.place.rpartition(".")[0]) for p in parts]
        cut = {path for part, (path, _) in zip(parts, layers, strict=True) if not _is_whole(part)}
        found = {p: cell for p, cell in couples(layers).items() if p and p not in cut}
        ranks = {weight.owner: weight.rank for weight in self.torch.weights}
        return dict(sorted(found.items(), key=lambda pair: ranks.get(pair[0], 0.0)))

    def is_named(self, path: str, cell: str) -> bool:
        """Return whether the names say that they are partners, and what is around them agrees."""
        if likeness(path, cell) < SURE:
            return False
        return around(self.torch, path) == around(self.mindspore, cell)

    def settled(self, parts: Sequence[Part], fits: Fits) -> tuple[Part, ...] | None:
        """Return the parts with the first layer that receives other numbers exchanged, if any."""
        partners = self.couples(parts)
        back = {cell: path for path, cell in partners.items()}
        for path, cell in partners.items():
            if path in fits.get(cell, ()) or self.is_named(path, cell):
                continue
            for other, rival in back.items():
                right = path in fits.get(other, ()) and rival not in fits.get(other, ())
                if right and not self.is_named(rival, other):
                    changed = self.exchanged(parts, {path: other, rival: cell})
                    if changed is not None:
                        return changed
        return None

    def forks(self, parts: Sequence[Part], fits: Fits) -> Iterator[tuple[Part, ...]]:
        """Yield the parts with the branches of a fork in another order, fork by fork."""
        partners = self.couples(parts)
        groups: dict[frozenset[str], list[str]] = {}
        for path, cell in partners.items():
            alike = frozenset(fits.get(cell, ()))
            if path in alike and not self.is_named(path, cell):
                groups.setdefault(alike, []).append(path)
        for paths in groups.values():
            orders: Iterator[Sequence[str]] = itertools.permutations(paths)
            if len(paths) > WIDEST:
                orders = _swaps(paths)
            for order in orders:
                changes = {
                    path: partners[other]
                    for path, other in zip(paths, order, strict=True) if path != other
                }  # fmt: skip
                changed = self.exchanged(parts, changes) if changes else None
                if changed is not None:
                    yield changed

    def exchanged(
        self, parts: Sequence[Part], changes: Mapping[str, str]
    ) -> tuple[Part, ...] | None:
        """Return the parts with other Cells for some layers; None where the tensors do not fit."""
        fresh: dict[str, Part] = {}
        for path, cell in changes.items():
            mine = [weight for weight in self.torch.weights if weight.owner == path]
            theirs = [weight for weight in self.mindspore.weights if weight.owner == cell]
            for weight in mine:
                other = next((one for one in theirs if one.role == weight.role), None)
                layout = self._layout(weight, other) if other else None
                if other is None or layout is None or len(mine) != len(theirs):
                    return None
                fresh[weight.place] = Part(weight.place, other.place, layout)
        return tuple(fresh.get(part.key, part) for part in parts)

    def _layout(self, weight: Weight, other: Weight) -> str | None:
        kinds = self.torch.kinds.get(weight.owner), self.mindspore.kinds.get(other.owner)
        found = layouts(weight, other, native=bool(kinds[0]) and kinds[0] == kinds[1])
        return found[0] if found else None


def around(side: Side, path: str) -> Counter[tuple[int, ...]]:
    """Return the sizes of all tensors beside a layer: what its branch is built of."""
    outer = path.rpartition(".")[0]
    prefix = f"{outer}." if outer else ""
    return Counter(
        tuple(sorted(size for size in weight.shape if size != 1))
        for weight in side.weights if outer and weight.place.startswith(prefix)
    )  # fmt: skip


def _is_whole(part: Part) -> bool:
    return part.torch_rows is None and part.rows is None and not part.adds


def _swaps(paths: Sequence[str]) -> Iterator[Sequence[str]]:
    for one, other in itertools.combinations(range(len(paths)), 2):
        order = list(paths)
        order[one], order[other] = order[other], order[one]
        yield order
