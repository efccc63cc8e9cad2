"""In: the packages that a command needs. Out: nothing, or the Problem that one is missing."""

from __future__ import annotations

import importlib.util

from migrate.errors import Problem


def need(*packages: str) -> None:
    """Look whether packages of the extra [verify] are there, without importing them.

    Raises:
        Problem: one is missing; convert and report do without them.
    """
    missing = [name for name in packages if importlib.util.find_spec(name) is None]
    if missing:
        raise Problem(
            "torch2ms", f"{' and '.join(missing)} cannot be imported",
            "this command runs the frameworks", 'pip install "torch2mindspore[verify]"',
        )  # fmt: skip
