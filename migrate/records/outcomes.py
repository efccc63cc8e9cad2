"""In: nothing. Out: the frozen records that every other module speaks in."""

from __future__ import annotations

import ast
import traceback
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import NamedTuple

FAULT = "INT901"  # the code of what is a fault of this tool
GRAPH = "GRF"  # the codes of what graph mode alone does not run


def announced(code: str) -> str:
    """Return how the comment of a code begins: a finding about graph mode alone is no work left to
    do, as PyNative is right there and graph mode refuses the place.
    """
    return f"Graph mode ({code})" if code.startswith(GRAPH) else f"TODO(torch2ms {code})"


class Outcome(str, Enum):
    """What became of one torch-derived reference; the five add up to the number of sites."""

    CONVERTED = "converted"
    KEPT = "kept"
    HELPER = "helper"
    FLAGGED = "flagged"
    OUT_OF_SCOPE = "out of scope"


class Verdict(str, Enum):
    """The closed list of parity verdicts, best first."""

    PASS = "PASS"
    KERNEL = "KERNEL"
    NONDET = "NONDET"
    NOT_RUN = "NOT_RUN"
    UNMATCHED = "UNMATCHED"
    BLOCKED = "BLOCKED"
    PROPAGATED = "PROPAGATED"
    DTYPE = "DTYPE"
    SHAPE = "SHAPE"
    DIVERGED = "DIVERGED"


class Why(str, Enum):
    """Why a comparison, or a whole rung, has nothing to compare; none of these is a fault."""

    VAGUE = "torch's own rounding leaves nothing to compare"
    NEVER = "its forward never ran with these inputs"
    NOTHING = "it returns nothing that can be compared"
    NO_GRADIENT = "no floating result depends on a parameter or input"
    NO_TENSOR = "no tensor of the model is saved in both frameworks"
    NO_TENSORS = "neither side has a tensor of its own"
    NO_FLOATS = "no input is a tensor of floating numbers"
    NO_STATE = "torch's optimizer keeps no state of a weight"
    UNKNOWN_STATE = "MindSpore's optimizer has no state under a name that is known"
    REACHED = "the inputs reach every piece of every operator"
    UNREACHED = "no input reaches what is left of some operators"
    # of a port: a Cell that cannot be compared, as the port is built in another way
    ELSEWHERE = "this Cell divides the work differently"
    OTHER_INPUT = "its input corresponds to torch's only in shape, or what is before it differs"
    NOT_ALIKE = "it is called with other tensors than its torch partner"
    NOT_CALLED = "it is never called here"
    STOPPED = "the run ends here: it receives another shape than its torch partner"


class Span(NamedTuple):
    """A half-open range of byte offsets in the UTF-8 text of a module."""

    start: int
    end: int

    def lies_in(self, spans: Iterable[Span]) -> bool:
        """Return whether one of some spans holds all of it."""
        return any(s.start <= self.start and self.end <= s.end for s in spans)


@dataclass(frozen=True)
class Piece:
    """A part of the original text inside an edit; edits nested in it are applied as well.

    A piece that knows its ``node`` gets parentheses where its place asks for them. Statements get
    the indentation of their place; all those of a block bring its comments along. ``without``: a
    field of the statement that is left out (the ``orelse`` of a loop). ``inside``: what other edits
    make of the whole of it is left out.
    """

    span: Span
    node: ast.expr | None = field(default=None, compare=False, repr=False)
    without: str = field(default="", kw_only=True)
    inside: bool = field(default=False, kw_only=True)


@dataclass(frozen=True)
class Site:
    """One torch-derived reference in the input. Line and column count from 1, in characters."""

    name: str
    span: Span
    line: int
    column: int

    def at(self, span: Span) -> Site:
        """Return the same reference with another span."""
        return Site(self.name, span, self.line, self.column)


@dataclass(frozen=True)
class Edit:
    """A decided change: the span becomes the parts, one after another.

    ``needs`` lists what the new text uses: import roots ("mindspore.nn") and helpers
    ("helpers.batch_norm"); ``rule`` is the name of the rule that made it. ``also``: changes of
    other nodes that come with it.
    """

    site: Site
    outcome: Outcome
    parts: tuple[str | Piece, ...] | None
    row: str = ""
    needs: frozenset[str] = frozenset()
    note: str = ""
    rule: str = field(default="", compare=False, kw_only=True)
    also: tuple[Edit, ...] = field(default=(), kw_only=True)

    def each(self) -> tuple[Edit, ...]:
        """Return this edit and those of other nodes that belong to it."""
        return (self, *self.also)


class Part(str, Enum):
    """A part of a node that Python's own tree has no node for."""

    LINES = "lines of their own for the statements of a line"
    BEFORE = "lines before a statement"
    BEHIND = "lines behind a statement"
    HANDLER = "a handler before one of a try"
    DECORATOR = "a decorator above those of a definition"
    MODULE = "the module that an import takes names from, dots included"
    BASE = "one more base of a class"
    PARAMETER = "a first parameter of a function"
    SECOND = "a parameter behind the first of a function"
    OPERAND = "an operand of and or or, which goes behind the others"
    FIRST = "a first argument of a call"
    LAST = "a last argument of a call"
    TARGET = "one more target of what a statement computes"
    PARAMETERS = "the parameters of a function"
    SLASH = "the slash among the parameters of a function, which goes"


@dataclass(frozen=True)
class Added(Edit):
    """An edit of a ``part`` of the node at ``node``; its own span is empty, so it owns no text.

    Lines have the indentation that they have to each other; the writer puts them into a block.
    """

    part: Part = field(kw_only=True)
    node: Span = field(kw_only=True)


@dataclass(frozen=True)
class Lines(Edit):
    """An edit that puts lines in the place of statements.

    Their indentation is that which they have to each other; the writer puts them into a block.
    """


@dataclass(frozen=True)
class Removal(Edit):
    """An edit that takes a whole statement away; a block that loses all of them keeps pass."""


@dataclass(frozen=True)
class Wrap(Edit):
    """Something around an expression, whatever else becomes of the expression and of its place."""


@dataclass(frozen=True)
class Refusal:
    """A site that is not converted: a stable code, the reason, and what to do next.

    ``keep`` leaves the text as it is (it may be right, but nobody proved it); otherwise nothing
    of torch may stay and the statement raises. ``guard``: the text stays, and its receiver is
    checked when the program runs, since a Tensor of MindSpore has a method of that name as well.
    ``tensor``: an expression; the statement stays, and raises only where that is a Tensor.
    ``given``, ``tensors``: names; the statement stays, and raises only where one of them is not
    None, or is a Tensor.
    """

    site: Site
    code: str
    reason: str
    next_step: str = ""
    keep: bool = False
    guard: bool = False
    tensor: Span | None = None
    given: tuple[str, ...] = ()
    tensors: tuple[str, ...] = ()
    rule: str = field(default="", compare=False, kw_only=True)

    @property
    def message(self) -> str:
        """The text that the comment and the exception carry."""
        tail = f"; {self.next_step}" if self.next_step else ""
        return f"{self.code} {self.site.name}: {self.reason}{tail}"


Decision = Edit | Refusal


class Problem(Exception):
    """A command cannot go on. ``status`` is its exit code: 2 usage or input, 3 internal error."""

    def __init__(self, where: str, what: str, why: str, next_step: str, status: int = 2) -> None:
        super().__init__(f"{where}: {what}: {why}; {next_step}")
        self.where, self.what, self.why, self.next_step = where, what, why, next_step
        self.status = status


def last_place(error: BaseException) -> str:
    """An exception as one line, with the place in this tool where it was raised."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {error}{place}"
