"""Remember the calls that are flagged instead of a write in the function that they call.

One of several callers passes what the write gets wrong for it: what it reads later, a part of a
tensor, a value with a gradient. The other callers go on, and so does the function.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from dataclasses import dataclass, field

from migrate.sites.scene import Scene


@dataclass(frozen=True)
class Missed:
    """The alias that would miss a write: a name, or a caller."""

    code: str
    by: str


@dataclass
class CallsStopped:
    """The calls by file, with what is missed; ``complete``: they were asked for, none is added."""

    calls: defaultdict[str, dict[int, Missed]] = field(default_factory=lambda: defaultdict(dict))
    complete: bool = False


def calls_stopped(scene: Scene) -> CallsStopped:
    """Return the calls of the program that are flagged so far."""
    found = scene.inference.program.notes.setdefault("stopped calls", CallsStopped())
    assert isinstance(found, CallsStopped)
    return found


def stop(scene: Scene, path: str, call: ast.AST, missed: Missed) -> bool:
    """Flag a call instead of what it calls, and return whether that is possible."""
    found = calls_stopped(scene)
    if isinstance(call, ast.Call) and not found.complete:
        found.calls[path].setdefault(id(call), missed)
    return id(call) in found.calls[path]
