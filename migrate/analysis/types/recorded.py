"""In: the types of receivers in a run of the torch program. Out: kinds where the analysis has none.

A run shows what a receiver was, not what it must be: it counts only where the analysis infers
nothing, only where every run saw one and the same type, and it is listed as an assumption.
"""

from __future__ import annotations

import ast
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field

from migrate.analysis.types.kinds import DEVICE, DTYPE, SIZE, TENSOR, Atom, Kind, kind, without_none
from migrate.records.result import SAID

# first and last line, columns in UTF-8 bytes, as ast counts them
Place = tuple[int, int, int, int]

SEVERAL = "several"
PLAIN = "plain"
_OF_TORCH = {"Tensor": TENSOR, "Size": SIZE, "dtype": DTYPE, "device": DEVICE,
             "Optimizer": kind("Optimizer")}  # fmt: skip


@dataclass(frozen=True)
class Seen:
    """What a receiver was. ``what`` is a kind of torch's, "plain" (of Python, numpy or the
    project), "unclear" (of another library) or "several"; ``name`` the class or a list of them;
    ``run`` the expression that was run, or SAID."""

    what: str
    name: str
    times: int
    run: str

    @property
    def text(self) -> str:
        if self.run == SAID:
            return f"{self.name} ({SAID})"
        often = "once" if self.times == 1 else f"{self.times:,} times"
        return f"{self.name or self.what} ({often}) when {self.run} ran"


@dataclass(frozen=True)
class Recorded:
    """What was seen, by file and place of the receiver; a file that never ran is not in it."""

    places: Mapping[str, Mapping[Place, Seen]] = field(default_factory=dict)

    def at(self, path: str, node: ast.expr) -> Seen | None:
        found = self.places.get(path)
        return found.get(place_of(node)) if found else None

    def settled(self, path: str, node: ast.expr, known: Kind, classes: Container[str]) -> Kind:
        """The kind of a receiver, where what is known of it leaves open what the run has shown.

        Args:
            classes: the keys of the project's classes.
        """
        seen = self.at(path, node)
        vague = frozenset(filter(_is_vague, known))
        if seen is None or not vague:
            return known
        if seen.what == "Module":
            shown = kind("Module", _class(seen, classes))
        elif seen.what in _OF_TORCH:
            shown = _OF_TORCH[seen.what]
        else:
            return known
        others = {a.kind for a in without_none(known) - vague}
        return shown if others <= {seen.what} else known


def place_of(node: ast.expr) -> Place:
    return (node.lineno, node.col_offset, node.end_lineno or 0, node.end_col_offset or 0)


def _is_vague(atom: Atom) -> bool:
    """Nothing is known of it, or only what was called to get it (a function of some library)."""
    return atom.kind == "unknown" or (atom.kind == "instance" and atom.name != "numpy.ndarray")


def _class(seen: Seen, classes: Container[str]) -> str:
    """The class of a Module; "" where it is not known which one."""
    known = seen.name.startswith("torch.nn.") or seen.name in classes
    return seen.name if known else ""


def is_plain(seen: Seen | None, known: Kind) -> bool:
    """Whether the run shows that nothing of torch is meant, and the analysis agrees."""
    tensors = Atom("Tensor") in known or any(a.kind == "Module" for a in known)
    return seen is not None and seen.what == PLAIN and not tensors


def merged(runs: Sequence[Recorded]) -> Recorded:
    """What all runs saw together; different types at one place are "several"."""
    places: dict[str, dict[Place, Seen]] = {}
    for run in runs:
        for path, found in run.places.items():
            here = places.setdefault(path, {})
            for place, seen in found.items():
                here[place] = _both(here[place], seen) if place in here else seen
    return Recorded(places)


def _both(first: Seen, second: Seen) -> Seen:
    times, run = first.times + second.times, _joined(first.run, second.run, "; ")
    if first.what == second.what == "Module":
        return Seen("Module", first.name if first.name == second.name else "", times, run)
    if first.what == second.what and first.what != SEVERAL:
        return Seen(first.what, _joined(first.name, second.name, ", "), times, run)
    names = _joined(first.name or first.what, second.name or second.what, ", ")
    return Seen(SEVERAL, names, times, run)


def _joined(first: str, second: str, mark: str) -> str:
    parts = [*first.split(mark), *second.split(mark)]
    return mark.join(dict.fromkeys(part for part in parts if part))
