"""In: both models' inventories. Out: which tensor is which, with what is unsure or left over."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from migrate.parity.hand.assignment import Match, assign
from migrate.parity.hand.fusing import Part, fuse, fuse_named
from migrate.parity.hand.inventory import Side, Weight
from migrate.parity.hand.kinds import likeness

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
