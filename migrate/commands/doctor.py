"""In: nothing. Out: what ``torch2ms doctor`` says about this machine, and its exit code."""

from __future__ import annotations


def run() -> int:
    """Print the findings; 1 when one of them stands in the way of verify."""
    from migrate.doctor import diagnose

    found = diagnose()
    for finding in found:
        print(finding.text)
    return 1 if any(finding.level == "error" for finding in found) else 0
