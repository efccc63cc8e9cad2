"""In: torch's name of a number that an optimizer keeps. Out: the prefixes it has in MindSpore.

MindSpore names the state of a weight ``<prefix>.<name of the weight>``; the prefixes are those of
the optimizers of nn, of experimental.optim and of the helpers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

PREFIXES: Mapping[str, tuple[str, ...]] = {
    "momentum_buffer": ("accum", "moments", "moment"),
    "exp_avg": ("moment1", "adam_m"),
    "exp_avg_sq": ("moment2", "adam_v"),
    "square_avg": ("mean_square", "accum"),
    "grad_avg": ("mean_grad",),
    "acc_delta": ("accum_update",),
    "sum": ("accum",),
}


def key_of(moment: str, weight: str) -> str:
    """How the state of a weight is named between both sides: the weight first, as a path."""
    return f"{weight}.{moment}"


def moment_of(key: str) -> tuple[str, str]:
    """``(weight, moment)`` of a key."""
    weight, _, moment = key.rpartition(".")
    return weight, moment


def found_under(moment: str, weight: str, names: Iterable[str]) -> str:
    """The name among ``names`` under which MindSpore keeps it; empty if none is known."""
    held = frozenset(names)
    prefixes = (moment, *PREFIXES.get(moment, ()))
    return next((name for p in prefixes if (name := f"{p}.{weight}") in held), "")
