"""In: nothing. Out: the result of a pair written by hand, its JSON schema versioned."""

from __future__ import annotations

from pydantic import Field

from migrate import __version__
from migrate.outcomes import Verdict
from migrate.result import Check, Frozen, Rung


class Blame(Frozen):
    """Where the pair first differs. Paths are those of the Cells, empty for the whole model."""

    rung: str
    mode: str
    torch: str
    mindspore: str
    call: str = ""
    cause: str = ""
    torch_place: str = ""
    mindspore_place: str = ""
    torch_call: str = ""
    mindspore_call: str = ""


class PairResult(Frozen):
    """What ``torch2ms verify TORCH MS`` found.

    ``unmatched`` lists Cells and tensors of one side; ``ambiguous`` tensors whose partner is a
    guess; ``cells`` maps module paths to Cell paths.
    """

    schema_version: int = 1
    tool_version: str = __version__
    torch: str = ""
    mindspore: str = ""
    inputs: tuple[str, ...] = ()
    verdict: Verdict = Verdict.NOT_RUN
    guilty: Blame | None = None
    rungs: tuple[Rung, ...] = ()
    unmatched: tuple[str, ...] = ()
    ambiguous: tuple[str, ...] = ()
    checks: tuple[Check, ...] = ()
    cells: dict[str, str] = Field(default_factory=dict)
    environment: dict[str, str] = Field(default_factory=dict)
    mapping: str = ""
    detail: str = ""
