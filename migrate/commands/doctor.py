"""In: nothing. Out: what ``torch2ms doctor`` says about this machine, and its exit code."""

from __future__ import annotations


def run() -> int:
    """Print the findings; 1 when one of them stands in the way of verify."""
    from migrate.doctor import diagnose

    found = diagnose()
    for finding in found:
        step = f"; {finding.next_step}" if finding.next_step else ""
        print(f"{finding.level:<8} {finding.name}: {finding.found}{step}")
    return 1 if any(finding.level == "problem" for finding in found) else 0
