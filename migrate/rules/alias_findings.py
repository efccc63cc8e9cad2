"""In: what a walk of a function came upon. Out: what its callers must know, and what is known."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from migrate.analysis.storage import (
    DEEPEST,
    ELEMENTS,
    NO_REFS,
    REST,
    SAME,
    VIEW,
    Refs,
    Region,
    State,
    outer_path,
    path_of,
    root,
)
from migrate.rules.views import Repair

Path = tuple[str, ...]
MADE, ANY = "", "*"  # no names of parameters: what the function makes, whatever it is handed
MOST_KEPT = 200


@dataclass
class Findings:
    """What a walk found: ``seen`` maps a write to the name under which it is missed.

    ``cut`` maps a write that loses a gradient to the name under which that is missed; ``lost`` are
    the attributes that a gradient is lost in, ``rebound`` those bound anew, ``added_to`` those that
    an augmented assignment binds to a new tensor, ``changed`` those that are written in place,
    ``asked`` those read, all as paths from a parameter; the first four with their writes.
    ``outside``: what is written in place of variables of outside, as paths from these. ``sums``
    maps the place where such a new tensor is made to its attribute. ``unfolded``: augmented
    assignments to what has an element set later; ``items``: parameters that have.
    ``given`` maps a write to the parameters of whose storage it is; ``assigned`` are writes into
    what an object holds, ``parts`` into parts of tensors, ``renewed`` assignments whose operand is
    read again, ``returned`` storages given back, ``places`` those at each place of a tuple (None:
    there are other results as well); ``tied``: two of these are one. ``whole``: all that is given
    back are new tensors, no view of one; ``divided``: some of it is what parts of a new tensor are
    in. ``unseen`` are
    writes into what nothing else holds; ``repairs`` maps a write to its node and to the names that
    are brought up to date behind it. ``kept``: (what is reached from a parameter or a variable of
    outside, the attribute or element of it, the other parameter that is put there, how); ``MADE``
    for a parameter is a container that the function makes, whose elements have their own entries.
    ``behind``: (a parameter that is changed, a path from one that is read after that).
    """

    seen: dict[int, str] = field(default_factory=dict)
    given: dict[int, dict[str, int]] = field(default_factory=dict)
    assigned: set[int] = field(default_factory=set)
    renewed: set[int] = field(default_factory=set)
    returned: Refs = NO_REFS
    places: tuple[Refs, ...] | None = ()
    tied: bool = False
    whole: bool | None = None
    divided: bool = False
    parts: set[int] = field(default_factory=set)
    cut: dict[int, str] = field(default_factory=dict)
    lost: dict[Path, set[int]] = field(default_factory=dict)
    rebound: dict[Path, set[int]] = field(default_factory=dict)
    added_to: dict[Path, set[int]] = field(default_factory=dict)
    changed: dict[Path, set[int]] = field(default_factory=dict)
    outside: dict[Path, set[int]] = field(default_factory=dict)
    sums: dict[Hashable, Path] = field(default_factory=dict)
    asked: set[Path] = field(default_factory=set)
    added: set[int] = field(default_factory=set)
    unfolded: set[int] = field(default_factory=set)
    items: set[str] = field(default_factory=set)
    kept: set[tuple[Path, str, str, int]] = field(default_factory=set)
    behind: set[tuple[str, Path]] = field(default_factory=set)
    unseen: set[int] = field(default_factory=set)
    repairs: dict[int, tuple[ast.AST, tuple[Repair, ...]]] = field(default_factory=dict)
    lent: set[int] = field(default_factory=set)  # calls that pass a part to what sets the whole
    otherwise: set[int] = field(default_factory=set)  # writes that do more than set elements
    intricate: bool = False  # given up


@dataclass(frozen=True)
class Back:
    """What the result of a function shares: ``shares`` maps parameters to how their storage is
    returned.

    ``fields``: what attributes of ``self`` hold, as paths; ``outer``: variables of enclosing
    scopes. ``added``: it is the result of an augmented assignment.
    """

    shares: Mapping[str, int] = field(default_factory=dict)
    fields: Mapping[Path, int] = field(default_factory=dict)
    outer: Mapping[str, int] = field(default_factory=dict)
    added: bool = False


@dataclass(frozen=True)
class Summary:
    """What callers must know: what is given back, and the parameters that are changed.

    ``places``: what each place of a tuple gives back, where all that is returned are tuples of one
    length; ``tied``: two parts of what is given back may share storage; ``whole``, ``divided``: as
    in `Findings`.

    ``writes`` maps a parameter to how the change gets at it; ``assigns``: the object changes.
    ``sets``: the parameters that change by elements set in the very object alone, in PyNative.
    ``lost``, ``rebound``, ``added_to``, ``changed``, ``outside``, ``asked``, ``items``, ``kept``
    and ``behind`` are those of `Findings`.
    """

    back: Back = field(default_factory=Back)
    places: tuple[Back, ...] = ()
    writes: Mapping[str, int] = field(default_factory=dict)
    tied: bool = False
    assigns: bool = False
    lost: frozenset[Path] = frozenset()
    rebound: frozenset[Path] = frozenset()
    added_to: frozenset[Path] = frozenset()
    asked: frozenset[Path] = frozenset()
    items: frozenset[str] = frozenset()
    kept: frozenset[tuple[Path, str, str, int]] = frozenset()
    changed: frozenset[Path] = frozenset()
    outside: frozenset[Path] = frozenset()
    behind: frozenset[tuple[str, Path]] = frozenset()
    whole: bool = False
    divided: bool = False
    sets: frozenset[str] = frozenset()


def kept_by(state: State, own: frozenset[Region]) -> set[tuple[Path, str, str, int]]:
    """Return the parameters that other parameters, or variables of outside, hold at the end.

    The entries of a container that the function makes are told apart, ``self.parts = list(parts)``;
    what is deeper in them is not. ``own`` are the parameters that gather arguments; their elements
    are the very values that a caller passes.
    """
    places: dict[Region, list[tuple[str, Refs]]] = {}
    for (region, name), refs in state.inside.items():
        places.setdefault(region, []).append((name, refs))
    asked = {one[0] for refs in state.inside.values() for one in refs} & places.keys()
    reached = state.reaching({r for r in asked if root(r) == r and r[0] != "param"})
    known: dict[Refs, frozenset[tuple[str, int]]] = {}
    entries: dict[Region, frozenset[tuple[str, str, int]]] = {}

    def each(refs: Refs) -> Iterator[tuple[str, int]]:
        for one, _, how in refs:
            first = root(one)
            if first[0] == "param":
                whole = one == first or (one[0] == "field" and one[1] in own and one[2] == ELEMENTS)
                yield str(first[1]), how if whole else VIEW
            elif first == one and one in reached:
                yield from ((name, VIEW) for name in reached[one])

    def given(refs: Refs) -> frozenset[tuple[str, int]]:
        if refs not in known:
            known[refs] = frozenset(each(refs))
        return known[refs]

    def held_in(made: Region) -> frozenset[tuple[str, str, int]]:
        if made not in entries:
            entries[made] = frozenset((n, *g) for n, refs in places[made] for g in given(refs))
        return entries[made]

    found: set[tuple[Path, str, str, int]] = set()
    for region, held in places.items():
        if not (holder := path_of(region) or outer_path(region)):
            continue
        kind, itself, *_ = root(region)
        itself = itself if kind == "param" else None
        for name, refs in held:
            made = [r for r in refs if root(r.region) == r.region and r.region in places]
            made = made if len(holder) < DEEPEST else []
            inner = frozenset().union(*map(held_in, {r.region for r in made}))
            deeper = {((*holder, name), *one) for one in inner if one[1] != itself}
            found |= deeper | ({(holder, name, MADE, SAME)} if deeper else set())
            rest = refs.difference(made) if made else refs
            found |= {(holder, name, *one) for one in given(rest) if one[0] != itself}
    for told in (2, 1):
        if len(found) > MOST_KEPT:
            found = {_shortened(entry, told) for entry in found}
    return found


def _shortened(kept: tuple[Path, str, str, int], told: int) -> tuple[Path, str, str, int]:
    """Tell an entry of a long list no further apart than some steps from what is passed."""
    path, _, given, how = kept
    return (path[:told], REST, given, how) if len(path) > told else kept


def at_large(summary: Summary, own: str) -> Summary:
    """Return the effects of a callback that gets anything that its caller can reach.

    Of what it does to the parts of a parameter, they may be any at all: one path stands for them.
    ``own`` is the parameter that is the object itself, whose attributes stay apart.
    """

    def wide(paths: frozenset[Path]) -> frozenset[Path]:
        return frozenset(p if len(p) < 2 or p[0] == own else (ANY, REST) for p in paths)

    return replace(
        summary,
        asked=wide(summary.asked),
        lost=wide(summary.lost),
        rebound=wide(summary.rebound),
        added_to=wide(summary.added_to),
        changed=wide(summary.changed),
        kept=frozenset(
            entry if entry[0][0] == own else ((ANY,), REST, entry[2], max(entry[3], VIEW))
            for entry in summary.kept
            if entry[0][0] == own or entry[2] != MADE
        ),
    )


class Resting(NamedTuple):
    """What was found in a function of a cycle, and the summaries of open ones that it rests on."""

    found: Findings
    on: Mapping[int | str, Summary]
    walked: frozenset[int | str]

    def holds(self, open_now: Mapping[int | str, Summary]) -> bool:
        """Return whether solving it again would find the same."""
        same = all(key in open_now and open_now[key] == made for key, made in self.on.items())
        return same and self.walked.isdisjoint(open_now)


@dataclass
class Notes:
    """What is known of the functions of a program: solved ones, and those that are being solved."""

    done: dict[int | str, Findings] = field(default_factory=dict)
    open: dict[int | str, Summary] = field(default_factory=dict)
    asked: set[int | str] = field(default_factory=set)  # open ones whose summary was used
    walked: set[int | str] = field(default_factory=set)  # those that were solved meanwhile
    resting: dict[int | str, Resting] = field(default_factory=dict)
    entered: dict[tuple[int, frozenset[int]], Findings] = field(default_factory=dict)
    steps: defaultdict[int | str, list[int]] = field(
        default_factory=lambda: defaultdict(lambda: [0])
    )
