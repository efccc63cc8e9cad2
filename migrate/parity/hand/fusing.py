"""In: tensors that found no partner of their shape. Out: those that are pieces of one another.

Query, key and value are one matrix on one side and three layers on the other; so are the gates of
a recurrent layer, or the biases of several. Pieces lie along the first axis, in torch's order.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from migrate.parity.hand.inventory import Shape, Weight
from migrate.parity.hand.kinds import likeness, words

PIECES = (2, 3, 4)
ORDERED = ("q", "k", "v")


@dataclass(frozen=True)
class Part:
    """Rows ``torch_rows`` of a torch tensor, after ``layout``, are ``rows`` of ``place``.

    ``axis`` is that of ``rows``; None stands for all of it.
    """

    key: str
    place: str
    layout: str = ""
    torch_rows: tuple[int, int] | None = None
    rows: tuple[int, int] | None = None
    axis: int = 0


@dataclass(frozen=True)
class Fused:
    parts: tuple[Part, ...]
    torch_left: tuple[Weight, ...]
    mindspore_left: tuple[Weight, ...]


def fuse_named(torch: Sequence[Weight], mindspore: Sequence[Weight]) -> Fused:
    """The pieces that are called q, k and v, where as many wholes are on the other side.

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
                found = tuple(_Piece(weight, False) for weight in group)
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
    weight: Weight
    turned: bool


def _pieces(whole: Weight, candidates: Sequence[Weight], join: bool) -> tuple[_Piece, ...]:
    """The nearest group of equal tensors of one role that make up the whole."""
    groups: list[tuple[float, tuple[_Piece, ...]]] = []
    for count, turned in itertools.product(PIECES, (False, True)):
        wanted = _piece_shape(whole.shape, count, turned, join)
        fitting = [w for w in candidates if w.shape == wanted] if wanted else []
        for group in _groups(fitting, count):
            cost = 10 * min(abs(w.rank - whole.rank) for w in group) + 2 * turned
            cost += 3 * (1 - likeness(whole.owner, group[0].owner.rpartition(".")[0]))
            groups.append((cost, tuple(_Piece(w, turned) for w in group)))
    return min(groups, key=lambda item: item[0])[1] if groups else ()


def _piece_shape(whole: Shape, count: int, turned: bool, join: bool) -> Shape:
    """The shape of one of ``count`` pieces; empty where the whole does not divide."""
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


def _split(whole: Weight, pieces: Sequence[_Piece]) -> Iterator[Part]:
    size = whole.shape[0] // len(pieces)
    for number, piece in enumerate(pieces):
        layout = "t()" if piece.turned else ""
        rows = (number * size, (number + 1) * size)
        yield Part(whole.place, piece.weight.place, layout, torch_rows=rows)


def _join(whole: Weight, pieces: Sequence[_Piece]) -> Iterator[Part]:
    """A turned whole holds its pieces side by side."""
    axis = 1 if pieces[0].turned else 0
    size = whole.shape[axis] // len(pieces)
    for number, piece in enumerate(pieces):
        rows = (number * size, (number + 1) * size)
        layout = "t()" if piece.turned else ""
        yield Part(piece.weight.place, whole.place, layout, rows=rows, axis=axis)
