"""In: what the workers say about two built models. Out: owners, tensors and calls, alike for both.

A *call* is one entry of a trace: the path of a module or Cell, in the order in which calls ended.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from migrate.parity.hand.kinds import kind_of, role

Shape = tuple[int, ...]
UNUSED = ("num_batches_tracked",)


@dataclass(frozen=True)
class Weight:
    """One tensor: where it lies, what it is, and when its layer ran (``rank``, from 0 to 1).

    ``whole``: it holds whole numbers or booleans.
    """

    place: str
    shape: Shape
    trained: bool
    parameter: bool
    rank: float = 0.0
    whole: bool = False

    @property
    def owner(self) -> str:
        return self.place.rpartition(".")[0]

    @property
    def name(self) -> str:
        return self.place.rpartition(".")[2]

    @property
    def role(self) -> str:
        return role(self.name)


@dataclass(frozen=True)
class Call:
    """One call of one Cell: the shapes that came out of it."""

    path: str
    shapes: tuple[Shape, ...] = ()


@dataclass(frozen=True)
class Side:
    """One model: kinds and class names by path, in the order of registration; tensors; calls.

    ``partial``: the run that was traced broke off.
    """

    kinds: Mapping[str, str]
    classes: Mapping[str, str]
    weights: tuple[Weight, ...]
    calls: tuple[Call, ...]
    counts: Mapping[str, int] = field(default_factory=dict)
    partial: bool = False

    def below(self, path: str) -> tuple[str, ...]:
        """All paths below one."""
        prefix = f"{path}." if path else ""
        return tuple(p for p in self.kinds if p != path and p.startswith(prefix))

    @cached_property
    def counted(self) -> Mapping[str, str]:
        """Paths of layers with the numbers in them counted anew, from 0, for each name and kind.

        One side may number its convolutions 0, 3, 6 in a chain, and the other from 1.
        """
        groups: dict[tuple[str, str, str], set[int]] = {}
        owners = dict.fromkeys(weight.owner for weight in self.weights)
        parted = {owner: tuple(self._numbered(owner)) for owner in owners}
        for group, number, _ in itertools.chain.from_iterable(parted.values()):
            groups.setdefault(group, set()).add(number)
        return {
            owner: ".".join(
                f"{group[1]}{sorted(groups[group]).index(number)}" if number >= 0 else step
                for group, number, step in steps
            )
            for owner, steps in parted.items()
        }

    def _numbered(self, owner: str) -> Iterator[tuple[tuple[str, str, str], int, str]]:
        """Each step of a path: what it is counted among, its number (-1: none), and itself."""
        steps = owner.split(".")
        for depth, step in enumerate(steps):
            stem = step.rstrip("0123456789")
            above, path = ".".join(steps[:depth]), ".".join(steps[: depth + 1])
            number = int(step[len(stem) :]) if stem != step else -1
            yield (above, stem, self.kinds.get(path, "")), number, step

    @cached_property
    def owners(self) -> frozenset[str]:
        """The paths that hold tensors themselves."""
        return frozenset(weight.owner for weight in self.weights)


def torch_side(built: Mapping[str, Any], index: Mapping[str, Any]) -> Side:
    """From the answers "build" and the index of a recorded run."""
    rows = built["modules"]
    calls = tuple(Call(e["path"], _shapes(e["local"])) for e in index["calls"])
    owners = {row["key"].rpartition(".")[0] for row in built["tensors"]}
    ranks = _ranks([row["path"] for row in rows], calls, owners)
    weights = tuple(
        _weight(row["key"], row, ranks, row["kind"] == "parameter") for row in built["tensors"]
        if not row["tied"] and row["key"].rpartition(".")[2] not in UNUSED
    )  # fmt: skip
    kinds = {row["path"]: kind_of(row["class"], row["classes"][0]) for row in rows}
    classes = {row["path"]: row["class"] for row in rows}
    return Side(kinds, classes, weights, calls, index["counts"])


def mindspore_side(built: Mapping[str, Any], trace: Mapping[str, Any]) -> Side:
    """From the answers "build" and "trace"."""
    rows = built["cells"]
    calls = tuple(Call(e["path"], tuple(tuple(s) for s in e["shapes"])) for e in trace["calls"])
    owners = {row["place"].rpartition(".")[0] for row in built["tensors"] if row["parameter"]}
    ranks = _ranks([row["path"] for row in rows], calls, owners)
    seen: set[int] = set()
    weights: list[Weight] = []
    for row in sorted(built["tensors"], key=lambda row: not row["parameter"]):
        if row["same"] not in seen:
            weights.append(_weight(row["place"], row, ranks, row["parameter"]))
        seen.add(row["same"])
    kinds = {row["path"]: kind_of(row["class"], row["module"]) for row in rows}
    classes = {row["path"]: row["class"] for row in rows}
    counts: dict[str, int] = {}
    for call in calls:
        counts[call.path] = counts.get(call.path, 0) + 1
    return Side(kinds, classes, tuple(weights), calls, counts, bool(trace["error"]))


def _weight(
    place: str, row: Mapping[str, Any], ranks: Mapping[str, float], parameter: bool
) -> Weight:
    rank = ranks.get(place.rpartition(".")[0], 0.0)
    whole = row["dtype"].startswith(("int", "uint", "bool"))
    return Weight(place, tuple(row["shape"]), row["trained"], parameter, rank, whole)


def _shapes(spec: Mapping[str, Any]) -> tuple[Shape, ...]:
    if "items" in spec:
        return tuple(shape for item in spec["items"] for shape in _shapes(item))
    return (tuple(spec["shape"]),) if spec["t"] == "tensor" else ()


def _ranks(paths: Sequence[str], calls: Sequence[Call], owners: set[str]) -> dict[str, float]:
    """When each owner of weights first ended, as a share of them all.

    What was never called as a Cell follows what was registered before it.
    """
    first = {call.path: number for number, call in reversed(list(enumerate(calls)))}
    keyed: list[tuple[float, str]] = []
    last = -1.0
    for path in paths:
        last = float(first[path]) if path in first else last + 1e-3
        keyed.append((last, path))
    ordered = [path for _, path in sorted(keyed) if path in owners]
    return {path: number / max(len(ordered), 1) for number, path in enumerate(ordered)}
