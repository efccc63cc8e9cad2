"""In: a factor, descriptions of inputs. Out: what torch records of inputs of another size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from migrate.parity.request import parse_input


@dataclass(frozen=True)
class Size:
    """Inputs times ``factor``; the whole model alone if ``root_only``."""

    factor: float = 1.0
    root_only: bool = False

    @property
    def suffix(self) -> str:
        """Of the folder that holds it."""
        return "" if self == PLAIN else f"_times_{self.factor:g}{'_whole' * self.root_only}"


PLAIN = Size()


def has_floats(inputs: Sequence[str]) -> bool:
    """Whether one of these inputs is a tensor that has a size to change."""
    specs = [parse_input(text) for text in inputs]
    return any(not spec.literal and spec.dtype.startswith(("float", "bfloat")) for spec in specs)
