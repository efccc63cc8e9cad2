"""In: a walked program. Out: the methods to walk again, as their callers were not known in time.

A function is walked first without its callers. What it calls meanwhile may ask for a member that a
class stores in ``__init__``, one that gets its kind from the very function that is on its way; and
it may pass on what is not known before its own callers are.
"""

from __future__ import annotations

from collections.abc import Mapping

from migrate.program import Function, Program
from migrate.receivers.classes import Classes
from migrate.receivers.kinds import UNKNOWN, Kind
from migrate.receivers.parameters import Parameters


def late_methods(
    program: Program,
    classes: Classes,
    parameters: Parameters,
    given: Mapping[int, Mapping[str, Kind]],
) -> list[Function]:
    """The methods of classes of which more is known now: what ``__init__`` gets or what it stores.

    ``given`` holds, by the id of a function, the kinds of its parameters in that walk.
    """
    found: list[Function] = []
    for owner in program.classes.values():
        start = owner.methods.get("__init__")
        if start is None or not classes.unknown(owner.key):
            continue
        walked, now = given.get(id(start), {}), parameters.of(start)
        more = any(kind == UNKNOWN and now[name] != UNKNOWN for name, kind in walked.items())
        if more or classes.outdated(owner.key):
            classes.forget(owner.key)
            found += owner.methods.values()
    return found + late_functions(program, parameters, given)


def late_functions(
    program: Program, parameters: Parameters, given: Mapping[int, Mapping[str, Kind]]
) -> list[Function]:
    """The functions whose callers pass what was unknown when they were walked."""
    found = []
    for function in program.functions.values():
        walked = given.get(id(function), {})
        if not any(kind == UNKNOWN for kind in walked.values()):
            continue
        now = parameters.of(function)
        if any(kind == UNKNOWN and now[name] != UNKNOWN for name, kind in walked.items()):
            found.append(function)
    return found
