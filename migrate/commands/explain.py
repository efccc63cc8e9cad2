"""In: the arguments of ``torch2ms explain``. Out: the explanation, and an exit code."""

from __future__ import annotations

from migrate.commands.table import load
from migrate.explain import explain


def run(name: str) -> int:
    """Print everything known about a name. Raises Problem when it is unknown."""
    for line in explain(name, load()):
        print(line)
    return 0
