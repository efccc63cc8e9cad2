"""Write the sentences at the top of the report, and what to say of versions nobody has proved."""

from __future__ import annotations

from dataclasses import dataclass

from migrate.records.outcomes import Verdict
from migrate.records.result import Ledger, Record, Verification
from migrate.report.ledger import FINE, Coverage

TESTED = "CPU"


def cautions(record: Record, verification: Verification | None) -> tuple[str, ...]:
    """One sentence for each framework of another version than the evidence's, and the device."""
    environment = verification.environment if verification else {}
    other = [
        f"{name} {environment[name]} (the table's evidence: {proved})"
        for name, proved in record.facts.items()
        if name in environment and _public(environment[name]) != _public(proved)
    ]
    found = []
    if other:
        found.append(
            f"Verified with {' and '.join(other)}. The evidence of the table does not count "
            "for that; what was measured here does."
        )
    device = environment.get("device", TESTED)
    if device != TESTED:
        found.append(
            f"MindSpore ran on {device}. This tool is tested on {TESTED} only: its list of "
            "coarse kernels is not that of this device."
        )
    return tuple(found)


def _public(version: str) -> str:
    """Without the part that names a build: 2.13.0+cpu is 2.13.0."""
    return version.partition("+")[0]


@dataclass(frozen=True)
class Headline:
    """``tone`` is good, warn or bad; ``badge`` two or three words, ``text`` one sentence."""

    tone: str
    badge: str
    text: str


@dataclass(frozen=True)
class Card:
    """One of the three numbers that are never added to each other."""

    title: str
    done: int
    total: int
    unit: str
    lines: tuple[str, ...]


def headline(record: Record, verification: Verification | None, seen: Coverage) -> Headline:
    """The worst thing that is true comes first."""
    failed = sum(file.status == "failed" for file in record.files)
    if failed:
        return Headline("bad", "Files failed", f"{_plural(failed, 'file')} could not be converted.")
    flagged = record.ledger.flagged
    graph = record.ledger.graph
    only = f" ({graph:,} of them for graph mode alone)" if graph else ""
    act = f" {_plural(flagged, 'reference')} flagged{only}: a person must act." if flagged else ""
    if verification is None:
        return Headline(
            "warn", "NOT verified", f"Converted, but nothing was run in either framework.{act}"
        )
    if not seen.elements:
        return Headline("bad", "NOT verified", f"Verification ran, but compared no number.{act}")
    if verification.verdict not in FINE:
        text = f"The worst verdict is {verification.verdict.value}: the output is not proved.{act}"
        return Headline("bad", verification.verdict.value, text)
    if verification.partial:
        text = f"Verification was interrupted: what ran until then matches torch.{act}"
        return Headline("warn", "Verified in part", text)
    if flagged or seen.classes_matched < len(seen.classes):
        missing = len(seen.classes) - seen.classes_matched
        rest = (
            f" {_plural(missing, 'Module class')} did not run or did not match." if missing else ""
        )
        text = f"What ran matches torch.{rest}{act}"
        return Headline("warn", "Verified in part", text)
    return Headline("good", "Verified", "Every Module class ran in both frameworks and matched.")


def cards(record: Record, verification: Verification | None, seen: Coverage) -> tuple[Card, ...]:
    """Converted, executed and verified, each with its own total."""
    return (_converted(record.ledger), _executed(verification, seen), _verified(verification, seen))


def _converted(ledger: Ledger) -> Card:
    return Card(
        "Converted",
        ledger.converted + ledger.helper + ledger.kept,
        ledger.total,
        "torch references decided",
        (
            f"{ledger.converted:,} converted, {ledger.helper:,} by a helper, {ledger.kept:,} kept",
            f"{ledger.stopping:,} flagged, {ledger.graph:,} for graph mode, "
            f"{ledger.out_of_scope:,} out of scope",
        ),
    )


def _executed(verification: Verification | None, seen: Coverage) -> Card:
    if verification is None:
        lines: tuple[str, ...] = ("Nothing was run. Next: torch2ms verify",)
    else:
        lines = (
            f"{seen.executed:,} of {seen.inside:,} references inside classes lie in those that ran",
            "Code outside Module classes is not run here",
        )
    return Card(
        "Executed", seen.classes_executed, len(seen.classes), "Module classes ran in both", lines
    )


def _verified(verification: Verification | None, seen: Coverage) -> Card:
    if verification is None:
        return Card("Verified", 0, 0, "checks", ("NOT verified: conversion alone proves nothing",))
    kernel = sum(
        check.verdict is Verdict.KERNEL for model in verification.models for check in model.checks
    )
    return Card(
        "Verified",
        seen.checks_matched,
        seen.checks,
        "checks within their limit",
        (
            f"{seen.classes_matched:,} of {len(seen.classes):,} Module classes match everywhere",
            f"{seen.elements:,} numbers compared; {kernel:,} checks met a known coarse kernel",
            *([f"{_plural(seen.not_run, 'check')} did not run"] if seen.not_run else []),
        ),
    )


def _plural(number: int, noun: str) -> str:
    tail = "es" if noun.endswith("s") else "s"
    return f"{number:,} {noun}{'' if number == 1 else tail}"
