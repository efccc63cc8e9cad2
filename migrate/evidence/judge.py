"""In: what torch and MindSpore found for the probes of one row. Out: the row's evidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from migrate.evidence.programs import Probe
from migrate.evidence.store import RowEvidence
from migrate.mapping.row import Case, Row
from migrate.mapping.table import Table
from migrate.parity.compare import Measure, Strictness, compare, worst
from migrate.parity.exchange import Array, Spec, apply_layout, leaves
from migrate.records.outcomes import Verdict

MOST_LINES = 8
# A reduction over nothing leaves memory as it was, which may be right by chance.
UNDEFINED = ("empty",)
Weight = tuple[str, str, str, Array]
Described = tuple[Spec, Mapping[int, Array]]


class Run(Protocol):
    """What a comparison has to know of a run of MindSpore."""

    @property
    def label(self) -> str: ...
    @property
    def mode(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def weights(self) -> Sequence[Weight]: ...


@dataclass(frozen=True)
class Outcome:
    """One comparison: which run (label, mode), which part (result, gradient, buffer).

    ``kind``: on which generated inputs, "" for those of the case. ``ulp``: the largest error of a
    float32 result in units of the last place.
    """

    label: str
    mode: str
    part: str
    measure: Measure
    kind: str = ""
    ulp: float = 0.0


def places(table: Table, found: Mapping[str, Any]) -> tuple[Weight, ...]:
    """(torch name, place in the Cell, change of shape, numbers) of all weights with a partner.

    The outermost Module whose row names the weight decides; names that no row mentions stay.
    """
    pairs = []
    for name, numbers in found["state"].items():
        place, layout = _place(table, name, found["classes"])
        if place:
            pairs.append((name, place, layout, numbers))
    return tuple(pairs)


def _place(table: Table, name: str, classes: Mapping[str, Sequence[str]]) -> tuple[str, str]:
    parts = name.split(".")
    for end in range(len(parts)):
        path, rest = ".".join(parts[:end]), ".".join(parts[end:])
        row = class_row(table, classes.get(path, ()))
        if row is None or not (rest in row.weights or rest in row.layout):
            continue
        renamed = row.weights.get(rest, rest)
        prefix = f"{path}." if path else ""
        return (prefix + renamed if renamed else ""), row.layout.get(rest, "")
    return name, ""


def class_row(table: Table, mro: Sequence[str]) -> Row | None:
    """The row of a class or of its nearest base that has one; None: none has."""
    for name in mro:
        rows = table.rows(table.torch.canonical(name))
        if rows:
            return next((row for row in rows if row.weights or row.layout), rows[0])
    return None


def same_numbers(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two torch runs gave the same results, gradients and buffers, bit for bit."""
    if "arrays" not in one or "arrays" not in other or one["random"] or other["random"]:
        return False
    mine, theirs = one["arrays"], other["arrays"]
    return len(mine) == len(theirs) and all(
        a.dtype == b.dtype and np.array_equal(a, b, equal_nan=a.dtype.kind in "fc")
        for a, b in zip(mine, theirs, strict=True)
    )


def compare_run(
    run: Run, expected: Mapping[str, Any], actual: Mapping[str, Any], random: bool
) -> list[Outcome]:
    """All comparisons of one run. A run that failed is one BLOCKED outcome.

    Torch weights outside ``run.weights`` have no partner by their row.
    """
    if "error" in actual:
        lost = Measure(Verdict.BLOCKED, detail=str(actual["error"]))
        return [Outcome(run.label, run.mode, "result", lost, run.kind)]
    arrays: Sequence[Array] = expected["arrays"]
    measure = _measure(expected["result"], actual["result"], arrays, random)
    ulp = 0.0 if random else _ulp(expected["result"], actual["result"], arrays)
    outcomes = [Outcome(run.label, run.mode, "result", measure, run.kind, ulp)]
    if "gradient error" in actual:
        lost = Measure(Verdict.BLOCKED, detail=str(actual["gradient error"]))
        return [*outcomes, Outcome(run.label, run.mode, "gradient", lost, run.kind)]
    if random or expected["random"]:
        return outcomes
    without = frozenset(expected.get("state", {})) - {name for name, *_ in run.weights}
    layouts = {name: layout for name, _, layout, _ in run.weights}
    for part in ("gradients", "buffers"):
        for name, spec in expected[part].items():
            described = actual[part].get(name)
            if described is None and (name in without or not actual[part]):
                continue
            lost = Measure(Verdict.UNMATCHED, detail="MindSpore's side has none")
            moved, held = _moved(spec, arrays, layouts.get(name, ""))
            if described is not None and run.kind and part == "gradients":
                described = _where_finite(moved, described, held)
            measure = lost if described is None else _measure(moved, described, held, False)
            outcomes.append(Outcome(run.label, run.mode, f"{part[:-1]} {name}", measure, run.kind))
    return outcomes


def _ulp(expected: Spec, actual: Described, arrays: Sequence[Array]) -> float:
    """The largest distance of a float32 number from torch's float64 one, in its last places."""
    pairs = zip(leaves(expected), leaves(actual[0]), strict=False)
    return max((_distance(one, other, arrays, actual[1]) for (_, one), (_, other) in pairs),
               default=0.0)  # fmt: skip


def _distance(one: Spec, other: Spec, arrays: Sequence[Array], mine: Mapping[int, Array]) -> float:
    if not (one["t"] == other["t"] == "tensor" and one["dtype"] == other["dtype"] == "float32"):
        return 0.0
    reference, value = arrays[int(one["key"])], mine[other["key"]]
    if reference.shape != value.shape:
        return 0.0
    with np.errstate(all="ignore"):  # what overflows float32 is left out
        unit = np.spacing(np.abs(reference.astype(np.float32))).astype(np.float64)
        found = np.abs(value.astype(np.float64) - reference) / unit
    return float(np.max(found[np.isfinite(found)], initial=0.0))


def _moved(spec: Spec, arrays: Sequence[Array], layout: str) -> tuple[Spec, Sequence[Array]]:
    """What torch has for a weight, in the shape that the Cell keeps it in."""
    if not layout:
        return spec, arrays
    changed = apply_layout(arrays[int(spec["key"])], layout)
    return {**spec, "key": "0", "shape": list(changed.shape)}, [changed]


def _where_finite(expected: Spec, actual: Described, arrays: Sequence[Array]) -> Described:
    """The gradient of generated inputs, with torch's own numbers where those are not finite.

    There torch has no derivative either, and who has a finite one does no harm.
    """
    spec, mine = actual
    wanted = arrays[int(expected["key"])] if expected["t"] == "tensor" else None
    if wanted is None or spec["t"] != "tensor" or mine[spec["key"]].shape != wanted.shape:
        return actual
    numbers = mine[spec["key"]]
    settled = np.where(np.isfinite(wanted), numbers, wanted).astype(numbers.dtype)
    return spec, {**mine, spec["key"]: settled}


def _measure(
    expected: Spec, actual: tuple[Spec, Mapping[int, Array]], arrays: Sequence[Array], random: bool
) -> Measure:
    spec, mine = actual
    wanted = _as_random(expected) if random else expected
    return compare(
        wanted,
        spec,
        lambda leaf: arrays[int(leaf["key"])],
        lambda leaf: mine[leaf["key"]],
        Strictness(),
    )


def _as_random(spec: Spec) -> Spec:
    if "items" in spec:
        return {**spec, "items": [_as_random(item) for item in spec["items"]]}
    return {**spec, "random": True} if spec["t"] == "tensor" else spec


def evidence(
    case: Case,
    sha256: str,
    probes: Sequence[Probe],
    outcomes: Sequence[Outcome],
    problems: Sequence[str],
) -> RowEvidence:
    """The evidence of a row. ``problems``: what kept calls from being compared at all."""
    written = [outcome for outcome in outcomes if not outcome.kind]
    kinds = by_kind([outcome for outcome in outcomes if outcome.kind])
    problems = (*problems, *_outdated(case, kinds))
    elements = sum(outcome.measure.elements for outcome in written)
    bad = [outcome for outcome in written if not good(outcome)]
    bad += [one for kind, some in kinds.differs.items() if kind not in case.differs for one in some]
    overall = worst([outcome.measure.verdict for outcome in (*written, *bad)])
    if problems or not elements:
        overall = worst([overall, Verdict.NOT_RUN])
    gradients = [o.measure.verdict for o in written if o.part.startswith("gradient")]
    tightest = max(written, key=_excess, default=None)
    silent = () if problems or elements else ("nothing was compared",)
    return RowEvidence(
        key=case.key,
        verdict=overall.value,
        sha256=sha256,
        calls=sum(not (probe.through_ref or probe.kind) for probe in probes),
        elements=elements,
        error=(tightest.measure.error or 0.0) if tightest else 0.0,
        limit=(tightest.measure.limit or 0.0) if tightest else 0.0,
        modes=tuple(m for m in case.modes if _mode_passed(m, written) and not problems),
        gradient=worst(gradients).value if gradients else "none",
        ulp=max((outcome.ulp for outcome in written), default=0.0),
        holds=kinds.holds,
        refuses=kinds.refuses,
        differs=tuple(kind for kind in kinds.differs if kind in case.differs),
        failures=(*problems, *silent, *_lines(bad)),
    )


@dataclass(frozen=True)
class Kinds:
    """Kinds of generated input by what became of them."""

    holds: tuple[str, ...]
    refuses: tuple[str, ...]
    differs: Mapping[str, tuple[Outcome, ...]]


def by_kind(outcomes: Sequence[Outcome]) -> Kinds:
    """A kind differs when one comparison does, refuses when a run raised, and holds otherwise."""
    groups: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        if outcome.measure.verdict is not Verdict.NOT_RUN:  # an empty shape has nothing to compare
            groups.setdefault(outcome.kind, []).append(outcome)
    differs = {
        kind: tuple(one for one in some if not good(one) and not _raised(one))
        for kind, some in groups.items()
    }
    differs = {kind: some for kind, some in differs.items() if some}
    refuses = tuple(k for k, some in groups.items() if k not in differs and any(map(_raised, some)))
    holds = tuple(kind for kind in groups if kind not in differs and kind not in refuses)
    return Kinds(holds, refuses, differs)


def _outdated(case: Case, kinds: Kinds) -> list[str]:
    """Differences that the case admits although there are none."""
    return [
        f"the case says that {kind} differs, and it does not: take it out of differs"
        for kind in case.differs
        if kind not in kinds.differs and kind not in UNDEFINED
    ]


def _raised(outcome: Outcome) -> bool:
    return outcome.measure.verdict is Verdict.BLOCKED


def good(outcome: Outcome) -> bool:
    """Whether a comparison counts as passed."""
    return outcome.measure.verdict in (Verdict.PASS, Verdict.KERNEL, Verdict.NONDET)


def _mode_passed(mode: str, outcomes: Sequence[Outcome]) -> bool:
    mine = [outcome for outcome in outcomes if outcome.mode == mode]
    return bool(mine) and all(good(outcome) for outcome in mine)


def _excess(outcome: Outcome) -> float:
    return (outcome.measure.error or 0.0) / (outcome.measure.limit or 1.0)


def _lines(bad: Sequence[Outcome]) -> list[str]:
    """One line for each different reason: the first place and how many more have it."""
    groups: dict[tuple[str, str], list[Outcome]] = {}
    for outcome in bad:
        kind = outcome.measure.detail if outcome.measure.verdict is Verdict.BLOCKED else ""
        groups.setdefault((outcome.part if not kind else "", kind or outcome.label), []).append(
            outcome
        )
    lines = []
    for some in list(groups.values())[:MOST_LINES]:
        first, others = some[0], len(some) - 1
        more = f" (and {others} more)" if others else ""
        place = f"{first.label} [{first.mode}] {first.part}"
        lines.append(f"{place}: {first.measure.verdict.value} {first.measure.detail}{more}")
    hidden = len(groups) - len(lines)
    return lines + ([f"... and {hidden} more reasons"] if hidden > 0 else [])
