"""In: where, what, why and what next. Out: the one exception that ends a command with a message."""

from __future__ import annotations

import traceback
from pathlib import Path


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
