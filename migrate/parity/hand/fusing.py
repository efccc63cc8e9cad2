"""In: tensors that found no partner of their shape. Out: those that are pieces of one another.

Query, key and value are one matrix on one side and three layers on the other; so are the gates of
a recurrent layer, or the biases of several. Pieces lie along the first axis, in torch's order, or
are stacked along a new one.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from migrate.parity.hand.inventory import Shape, Weight, likeness, words

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
    """The nearest group of tensors of one role that make up the whole."""
    groups = list(_equal(whole, candidates, join))
    groups = groups or list(_unequal(whole, candidates)) or list(_stacked(whole, candidates, join))
    return min(groups, key=lambda group: _cost(whole, group)) if groups else ()


def _cost(whole: Weight, group: Group) -> float:
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


def _split(whole: Weight, pieces: Group) -> Iterator[Part]:
    for piece, rows in zip(pieces, _rows(pieces), strict=True):
        yield Part(whole.place, piece.weight.place, piece.layout, torch_rows=rows)


def _join(whole: Weight, pieces: Group) -> Iterator[Part]:
    """A turned whole holds its pieces side by side."""
    axis = 1 if pieces[0].turned else 0
    for piece, rows in zip(pieces, _rows(pieces), strict=True):
        yield Part(piece.weight.place, whole.place, piece.layout, rows=rows, axis=axis)


def _rows(pieces: Group) -> Iterator[tuple[int, int]]:
    ends = list(itertools.accumulate(piece.rows for piece in pieces))
    return zip([0, *ends], ends, strict=False)
