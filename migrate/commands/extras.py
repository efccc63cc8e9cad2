"""In: the packages that a command needs. Out: nothing, or the Problem that one is missing."""

from __future__ import annotations

import importlib.util

from migrate.errors import Problem

_WHY = {"verify": "this command runs the frameworks", "cluster": "--cluster runs through dask"}


def need(*packages: str, extra: str = "verify") -> None:
    """Look whether packages of an extra are there, without importing them.

    Raises:
        Problem: one is missing; convert and report do without them.
    """
    missing = [name for name in packages if importlib.util.find_spec(name) is None]
    if missing:
        raise Problem(
            "torch2ms", f"{' and '.join(missing)} cannot be imported",
            _WHY[extra], f'pip install "torch2mindspore[{extra}]"',
        )  # fmt: skip
