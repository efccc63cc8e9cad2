"""In: what was compared, call by call. Out: who each judge would name, and whether that is right.

Beside the verdicts of verify stand two plainer judges that see the same runs (PyNative mode, rung
by rung, each Cell inside the model): ``allclose(rtol=1e-5, atol=1e-5)``, and the difference of the
means of both tensors, at most 1e-5.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from workload import Fault

from migrate.parity.messages import Emit, Event, Ran
from migrate.parity.worker import Payload, Worker
from migrate.records.outcomes import Verdict
from migrate.records.result import Guilty, ModelResult

PLAIN = 1e-5
RUNGS = {"eval": "forward eval", "train": "forward train", "gradients": "gradients"}
BROKEN = (Verdict.SHAPE, Verdict.BLOCKED)


@dataclass
class Heard(Worker):
    """The MindSpore worker; what it answers is kept: (rung, check) in the order of the answers."""

    events: list[tuple[str, Ran]] = field(default_factory=list)
    cells: dict[str, Payload] = field(default_factory=dict)
    paths: dict[str, str] = field(default_factory=dict)

    def call(
        self, command: str, payload: Payload, timeout: float,
        on_event: Emit | None = None,
    ) -> Payload:  # fmt: skip
        folder = str(payload.get("folder", "")).rpartition("/")[2]
        plain = payload.get("mode") == "pynative"

        def hear(event: Event) -> None:
            if isinstance(event, Ran) and plain and (folder in RUNGS or command == "training"):
                self.events.append((RUNGS.get(folder) or event.rung, event))
            if on_event is not None:
                on_event(event)

        answer = super().call(command, payload, timeout, hear)
        if command == "build":
            self.cells = {row["path"]: row for row in answer["cells"]}
        self.paths = payload.get("paths", self.paths)
        return answer


@dataclass(frozen=True)
class Named:
    """Whom a judge holds guilty: nobody if ``rung`` is empty."""

    rung: str = ""
    place: str = ""
    kind: str = ""
    call: str = ""
    text: str = ""
    path: str = ""


def by_verify(model: ModelResult) -> Named:
    guilty: Guilty | None = model.guilty
    if guilty is None:
        return Named()
    kind = guilty.mindspore.rpartition("(")[2].rstrip(")")
    text = f"{guilty.rung}: {guilty.mindspore} {guilty.mindspore_place}: {guilty.cause}"
    path = guilty.mindspore.partition(" (")[0]
    return Named(guilty.rung, guilty.mindspore_place, kind, guilty.mindspore_call, text, path)


def by_plain(heard: Heard, figure: str) -> Named:
    """The first Cell whose result inside the model is farther off than 1e-5."""
    for rung, check in heard.events:
        measure = check.cumulative or check.measure
        size = getattr(measure, figure)
        if measure.verdict in BROKEN or (size is not None and not size <= PLAIN):
            path = check.path
            if rung == "gradients" or check.rung:
                path = check.name.rpartition(".")[0]
            cell = heard.cells.get(heard.paths.get(path, path), {})
            place = f"{cell.get('file', '')}:{cell.get('line', 0)}"
            return Named(rung, place, cell.get("class", ""), "", f"{rung}: {path} {place}",
                         path)  # fmt: skip
    return Named()


def is_right(fault: Fault, named: Named) -> bool:
    """Whether Cell and rung are those that the table of kinds says, at the place of this fault."""
    site = fault.site
    file, _, line = named.place.rpartition(":")
    made_here = file == fault.model.file and int(line or 0) in range(site.first, site.last + 1)
    if fault.names == "tensor":
        its_own = named.path.rpartition(".")[2] in site.before.split(".")
        return made_here or its_own or named.kind == site.owner
    if named.rung not in fault.rung.split(" or "):
        return False
    if fault.names == "cell":
        return made_here
    return fault.names == "rung" or named.kind == site.owner


def is_line(fault: Fault, named: Named) -> bool:
    """Whether the very line of the fault is named, as the maker of a Cell or as a call."""
    lines = range(fault.site.first, fault.site.last + 1)
    return _line(named.place) in lines or _line(named.call.partition(": ")[0]) in lines


def _line(place: str) -> int:
    number = place.rpartition(":")[2]
    return int(number) if number.isdecimal() else 0


def share(rows: Sequence[Mapping[str, Any]], judge: str, what: str) -> str:
    """``57 (95.0 %)`` of the rows."""
    count = sum(bool(row[judge][what]) for row in rows)
    return f"{count} ({100 * count / max(len(rows), 1):.1f} %)"
