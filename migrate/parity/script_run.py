"""Run a script on one side and note what it says, which models it builds, and what it draws.

Both sides use this module, so nothing of a framework is imported. A *root* is a model that is no
part of another one. Numbers come from one place, `Numbers`: the n-th draw of a kind and size is the
same on both sides, whatever is drawn in between.
"""

from __future__ import annotations

import functools
import io
import itertools
import logging
import math
import os
import pickle
import random
import runpy
import shlex
import sys
import time
import types
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from migrate.parity import apart
from migrate.parity.exchange import Array
from migrate.parity.messages import At, Emit, Payload, describe

TEXT, LOG, LOSS = "printed", "logged", "loss"
_CLOCKS = ("time", "perf_counter", "monotonic", "process_time")
_BEAT = 5.0  # seconds between two signs of life


@dataclass(frozen=True)
class Said:
    """One line that was printed or logged, or one loss that was differentiated.

    ``place`` is ``file:line`` below the root of the side, empty where no line of the program
    is on the stack.
    """

    kind: str
    place: str
    text: str = ""
    value: float = 0.0


@dataclass
class Numbers:
    """The random numbers of a run: float32, a function of kind, size and how often they were asked.

    ``counted=False``: a function of kind and size alone, as graph mode draws once for all calls.
    """

    counted: bool = True
    asked: Counter[tuple[str, int]] = field(default_factory=Counter)
    still: Callable[[], bool] = lambda: False  # what is drawn now counts on neither side

    def draw(self, kind: str, shape: Sequence[int]) -> Array:
        """Return "normal" or "uniform" numbers of a shape."""
        sizes = tuple(int(size) for size in shape)
        source = self._source(kind, math.prod(sizes))
        flat = source.standard_normal(sizes) if kind == "normal" else source.random_sample(sizes)
        return np.asarray(flat, np.float32)

    def order(self, size: int) -> Array:
        """Return a permutation of ``range(size)``, int64."""
        return self._source("order", size).permutation(size).astype(np.int64)

    def whole(self, low: int, high: int, shape: Sequence[int]) -> Array:
        """Return whole numbers in [low, high), int64."""
        sizes = tuple(int(size) for size in shape)
        return self._source("whole", math.prod(sizes)).randint(low, high, sizes, np.int64)

    def mask(self, shape: Sequence[int], p: float) -> Array:
        """Return what dropout multiplies by: 0 where it drops, ``1 / (1 - p)`` elsewhere."""
        kept = self.draw("uniform", shape) >= p
        return np.asarray(kept / (1.0 - p) if p < 1.0 else kept * 0.0, np.float32)

    def _source(self, kind: str, size: int) -> np.random.RandomState:
        number = self.asked[kind, size]
        self.asked[kind, size] += self.counted and not self.still()
        return np.random.RandomState(zlib.crc32(f"{kind} {size} {number}".encode()))


@dataclass
class Journal:
    """What a run said so far."""

    root: str
    emit: Emit
    said: list[Said] = field(default_factory=list)
    last: float = 0.0

    def note(self, kind: str, text: str = "", value: float = 0.0) -> None:
        self.said.append(Said(kind, self.place(), text, value))
        if time.monotonic() - self.last > _BEAT:  # the time limit is for what says nothing
            self.last = time.monotonic()
            self.emit(At(f"{len(self.said)} lines"))

    def place(self) -> str:
        """Return where the program is: its innermost line on the stack."""
        frame: types.FrameType | None = sys._getframe(1)
        while frame is not None:
            if self.is_own(frame.f_code.co_filename):
                file = frame.f_code.co_filename[len(self.root) :].lstrip("/")
                return f"{file}:{frame.f_lineno}"
            frame = frame.f_back
        return ""

    def is_own(self, file: str) -> bool:
        return file.startswith(self.root)


class Lines(io.TextIOBase):
    """Takes what is printed, and notes every line that is complete; of ``\\r`` the last form."""

    def __init__(self, journal: Journal) -> None:
        self.journal, self.begun = journal, ""

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        *whole, self.begun = (self.begun + text).split("\n")
        for line in whole:
            self.journal.note(TEXT, line.rpartition("\r")[2])
        return len(text)

    def close_line(self) -> None:
        if self.begun:
            self.journal.note(TEXT, self.begun.rpartition("\r")[2])
            self.begun = ""


@dataclass
class Roots:
    """Calls ``built`` behind the outermost constructor of a model, ``used`` before each outer call.

    ``base`` is the class of all models; ``begun`` is called in front of a constructor, ``gave``
    with what an outer call returned. What a constructor draws are starting weights, which are
    handed over: `is_building` says when that is.
    """

    base: Any
    built: Callable[[Any], None]
    used: Callable[[Any], None]
    begun: Callable[[], None] = lambda: None
    gave: Callable[[Any, Any], None] = lambda model, result: None
    open: list[int] = field(default_factory=list)
    depth: int = 0

    @property
    def is_building(self) -> bool:
        return bool(self.open)

    def watch(self) -> None:
        """Wrap the constructors and calls of all classes, those of the program as they come."""
        known = list(_below(self.base))
        own = vars(self.base).get("__init_subclass__")

        def __init_subclass__(cls: Any, /, **options: Any) -> None:
            if own is None:
                super(self.base, cls).__init_subclass__(**options)
            else:
                own.__func__(cls, **options)
            self._wrap(cls)

        self.base.__init_subclass__ = classmethod(__init_subclass__)
        for cls in known:
            self._wrap(cls)

    def _wrap(self, cls: Any) -> None:
        constructor, call = vars(cls).get("__init__"), vars(cls).get("__call__")
        if isinstance(constructor, types.FunctionType):
            cls.__init__ = self._constructing(constructor)
        if isinstance(call, types.FunctionType):
            cls.__call__ = self._calling(call)

    def _constructing(self, plain: Any) -> Any:
        @functools.wraps(plain)
        def made(model: Any, *args: Any, **kwargs: Any) -> None:
            if id(model) in self.open:
                plain(model, *args, **kwargs)
                return
            if not self.open:
                self.begun()
            self.open.append(id(model))
            try:
                plain(model, *args, **kwargs)
            finally:
                self.open.pop()
            if not self.open:
                self.built(model)

        return made

    def _calling(self, plain: Any) -> Any:
        @functools.wraps(plain)
        def called(model: Any, *args: Any, **kwargs: Any) -> Any:
            outer = not self.depth and not self.open
            if outer:
                self.used(model)
            self.depth += 1
            try:
                result = plain(model, *args, **kwargs)
            finally:
                self.depth -= 1
            if outer:
                self.gave(model, result)
            return result

        return called


def _below(cls: Any) -> Iterator[Any]:
    yield cls
    for kind in cls.__subclasses__():
        yield from _below(kind)


def keep_states(file: Path) -> None:
    """Write the states of the generators of numpy and Python."""
    file.write_bytes(pickle.dumps((np.random.get_state(), random.getstate())))


def take_states(file: Path) -> None:
    """Set the generators of numpy and Python as `keep_states` found them."""
    numbers, plain = pickle.loads(file.read_bytes())
    np.random.set_state(numbers)
    random.setstate(plain)


def run(root: Path, command: str, seed: int, journal: Journal) -> Payload:
    """Run ``FILE ARGUMENTS`` below a root as ``python FILE ARGUMENTS`` in that folder does.

    Answers what was ``said``, and how it ``failed`` (None where it came to its end).
    """
    file, *arguments = shlex.split(command)
    random.seed(seed)
    np.random.seed(seed)
    out, failed = Lines(journal), None
    with (
        apart.theirs((root, (root / file).parent), ""),
        _as_main(root, file, arguments, journal, out),
    ):
        try:
            runpy.run_path(str(root / file), run_name="__main__")
        except SystemExit as end:
            if end.code not in (None, 0):
                failed = asdict(describe(end))
        except (Exception, KeyboardInterrupt) as error:
            failed = asdict(describe(error))
    if failed is not None:
        failed["place"] = failed["place"].removeprefix(journal.root)
    return {"said": [asdict(one) for one in journal.said], "failed": failed}


@contextmanager
def _as_main(
    root: Path, file: str, arguments: Sequence[str], journal: Journal, out: Lines
) -> Iterator[None]:
    """Give the program its arguments, its folder, its output and a clock that runs by its calls."""
    ticks = itertools.count(1)

    def clock(native: Any) -> Any:
        def now() -> float:
            if journal.is_own(sys._getframe(1).f_code.co_filename):
                return 1.7e9 + next(ticks) * 1e-3
            return float(native())

        return now

    def handled(logger: Any, record: logging.LogRecord) -> None:
        journal.note(LOG, record.getMessage())
        plain(logger, record)

    plain = logging.Logger.callHandlers
    kept = sys.argv, sys.stdout, list(sys.path), Path.cwd()
    clocks = {name: getattr(time, name) for name in _CLOCKS}
    sys.argv, sys.stdout = [file, *arguments], out
    sys.path.insert(0, str((root / file).parent))
    os.chdir(root)
    for name, native in clocks.items():
        setattr(time, name, clock(native))
    logging.Logger.callHandlers = handled  # type: ignore[assignment, method-assign]
    try:
        yield
    finally:
        for name, native in clocks.items():
            setattr(time, name, native)
        logging.Logger.callHandlers = plain  # type: ignore[method-assign]
        out.close_line()
        sys.argv, sys.stdout, sys.path[:] = kept[:3]
        os.chdir(kept[3])
