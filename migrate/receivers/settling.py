"""In: a walked program. Out: the functions to walk again: they were given unsure answers.

A function is walked first without its callers. What it calls meanwhile may ask for a member that a
class stores in ``__init__``, one that gets its kind from the very function that is on its way; and
it may pass on what is not known before its own callers are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from migrate.program import Function, Program
from migrate.receivers.kinds import UNKNOWN, Kind
from migrate.receivers.parameters import Parameters
from migrate.receivers.world import Asked, World


@dataclass(eq=False)
class Early:
    """Who was given which answer before it was sure: function -> what it asked -> answers."""

    _given: dict[Function, dict[Asked, set[Kind]]] = field(default_factory=dict)

    def note(self, asked: Asked, reader: Function, answer: Kind) -> None:
        """The answer that a function was given."""
        self._given.setdefault(reader, {}).setdefault(asked, set()).add(answer)

    def forget(self, functions: Iterable[Function]) -> None:
        """These are walked again, and ask again."""
        for function in functions:
            self._given.pop(function, None)

    def outdated(self, world: World) -> list[Function]:
        """The functions that would be given another answer now."""
        asked = dict.fromkeys(asked for answers in self._given.values() for asked in answers)
        now = {question: {_answer(world, question)} for question in asked}
        return [
            reader for reader, answers in self._given.items()
            if any(now[question] != given for question, given in answers.items())
        ]  # fmt: skip


def _answer(world: World, asked: Asked) -> Kind:
    return world.returns(asked) if isinstance(asked, Function) else world.member(*asked)


def late_functions(
    program: Program, parameters: Parameters, given: Mapping[int, Mapping[str, Kind]]
) -> list[Function]:
    """The functions whose callers pass what was unknown when they were walked."""
    found = []
    for function in program.functions.values():
        walked = given.get(id(function), {})
        if UNKNOWN not in walked.values():
            continue
        now = parameters.of(function)
        if any(kind == UNKNOWN and now[name] != UNKNOWN for name, kind in walked.items()):
            found.append(function)
    return found
