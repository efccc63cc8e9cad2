"""In: functions that were solved, or are being solved. Out: what is known of them already."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from migrate.rules.alias_values import Findings, Summary


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
