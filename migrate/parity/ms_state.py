"""In: what torch's optimizer keeps after a step, MindSpore's optimizer. Out: a measure for each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from migrate.outcomes import Verdict
from migrate.parity.compare import Measure
from migrate.parity.exchange import Array, Spec
from migrate.parity.moments import NO_STATE, UNKNOWN_STATE, found_under, moment_of
from migrate.parity.ms_values import array

STATE = "optimizer state"
Answers = list[tuple[str, str, Measure]]  # rung, weight of torch, what was found
Compare = Callable[[Spec, Array, str], Measure]  # torch's, MindSpore's, the weight


def state_measures(
    wanted: Mapping[str, Spec], optimizer: Any, partners: Mapping[str, Any], compare: Compare
) -> tuple[Answers, str]:
    """A measure for each moment of each weight, or none and why.

    ``partners`` maps torch's weights to MindSpore's Parameters. State that only MindSpore keeps
    (a moment that is zero without momentum) is no fault.
    """
    keys = [key for key in wanted if moment_of(key)[0] in partners]
    if not keys:
        return [], NO_STATE
    listed: Iterable[Any] = getattr(optimizer, "get_parameters", tuple)()
    held = {parameter.name: parameter for parameter in listed}
    places = {}
    for key in keys:
        weight, moment = moment_of(key)
        places[key] = found_under(moment, partners[weight].name, held)
    if not any(places.values()):
        return [], UNKNOWN_STATE
    found: Answers = []
    for key, name in places.items():
        weight, moment = moment_of(key)
        if not name:
            lacks = f"MindSpore's optimizer keeps no {moment} of {weight}"
            found.append((STATE, weight, Measure(Verdict.UNMATCHED, detail=lacks)))
            continue
        measure = compare(wanted[key], array(held[name]), weight)
        told = f"{moment} of {weight}: {measure.detail}" if measure.detail else ""
        found.append((STATE, weight, replace(measure, detail=told)))
    return found, ""
