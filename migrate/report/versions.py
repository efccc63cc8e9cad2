"""In: a record and a verification. Out: what to say of versions and devices nobody has proved."""

from __future__ import annotations

from migrate.result import Record, Verification

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
