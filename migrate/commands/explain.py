"""In: the arguments of ``torch2ms explain``. Out: the explanation, and an exit code."""

from __future__ import annotations

from pathlib import Path

from migrate.commands.table import load
from migrate.explain import explain, explain_code, is_code


def run(name: str, mappings: tuple[Path, ...] = ()) -> int:
    """Print everything known about a name or code. Raises Problem when it is unknown."""
    rows = load(mappings)
    for line in explain_code(name, rows) if is_code(name) else explain(name, rows):
        print(line)
    return 0
