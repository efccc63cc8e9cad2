"""In: ``module:name`` or ``module:call(...)``. Out: the module to import and what to evaluate."""

from __future__ import annotations

import ast
from dataclasses import dataclass


@dataclass(frozen=True)
class Address:
    """One side of a pair; ``build`` is evaluated in ``module`` and called if it is no model yet."""

    module: str
    build: str

    @property
    def text(self) -> str:
        return f"{self.module}:{self.build}"


def is_address(text: str) -> bool:
    """Whether an argument names an object of a module, and not a file or folder."""
    module, mark, build = text.partition(":")
    return bool(mark and build) and all(part.isidentifier() for part in module.split("."))


def parse_address(text: str) -> Address:
    """Read one side of a pair. Raises ValueError that says what cannot be read."""
    if not is_address(text):
        raise ValueError(f"{text!r} is not module:name or module:call(...)")
    module, _, build = text.partition(":")
    try:
        ast.parse(build.strip(), mode="eval")
    except SyntaxError as error:
        raise ValueError(f"{text!r}: {build!r} is not a Python expression") from error
    return Address(module, build.strip())
