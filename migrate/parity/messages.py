"""What the workers say while they work, as lines of JSON, and how they answer requests.

User code prints; so a worker keeps the real stdout aside for its answers, and everything printed
goes to stderr. The last line of an answer is ``{"message": "Done", ...}``.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, TextIO

from migrate.parity.compare import Measure
from migrate.records.outcomes import Why


@dataclass(frozen=True)
class At:
    """The call that begins now; ``call`` is -1 for a run of the whole model."""

    path: str
    call: int = -1


@dataclass(frozen=True)
class Ran:
    """What one call showed: alone on torch's input (``local``), and inside the whole model.

    ``name`` is the tensor or weight of torch that the measure is of, ``rung`` the one it belongs
    to where a request climbs several. Of a port: ``fed`` is how far the input inside the model is
    from torch's, ``inside_of`` the Cells that ran when the model broke off, ``follows`` which
    Cells gave what a Cell received.
    """

    path: str
    call: int = 0
    local: Measure | None = None
    cumulative: Measure | None = None
    name: str = ""
    rung: str = ""
    fed: float | None = None
    inside_of: tuple[str, ...] = ()
    follows: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def measure(self) -> Measure:
        """Return what counts of it: the local measure, if there is one."""
        found = self.local or self.cumulative
        if found is None:
            raise ValueError(f"nothing was measured of {self.path or 'the whole model'}")
        return found


@dataclass(frozen=True)
class Trained:
    """The losses of all steps, and why the optimizer's state was not compared."""

    torch: tuple[float, ...]
    reference: tuple[float, ...]
    mindspore: tuple[float, ...]
    no_state: Why | None = None


@dataclass(frozen=True)
class Failed:
    """An exception in a command; ``missing``: a name or module that is not there."""

    kind: str
    text: str
    place: str = ""
    missing: bool = False


Event = At | Ran | Trained
Emit = Callable[[Event], None]
_KINDS: dict[str, Any] = {kind.__name__: kind for kind in (At, Ran, Trained, Failed)}


def as_json(message: Event | Failed) -> dict[str, Any]:
    return {"message": type(message).__name__, **asdict(message)}


def read(line: Mapping[str, Any]) -> Any:
    """Return the message of `as_json`."""
    fields = {name: _frozen(value) for name, value in line.items() if name != "message"}
    message = _KINDS[line["message"]](**fields)
    if isinstance(message, Ran):
        local, inside = line["local"], line["cumulative"]
        return replace(
            message, local=Measure.of(local) if local else None,
            cumulative=Measure.of(inside) if inside else None,
        )  # fmt: skip
    if isinstance(message, Trained) and message.no_state:
        return replace(message, no_state=Why(message.no_state))
    return message


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


Payload = dict[str, Any]
Command = Callable[[Payload, Emit], Payload]


def serve(commands: dict[str, Command]) -> None:
    """Answer requests until stdin ends; an exception in a command is an answer, not the end."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    _be_killed_first()
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()

    def emit(event: Event) -> None:
        _write(answers, as_json(event))

    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = commands[request["command"]](request, emit)
        except (Exception, SystemExit) as error:
            _write(answers, as_json(describe(error)))
            continue
        _write(answers, {"message": "Done", "answer": answer})


def describe(error: BaseException) -> Failed:
    """Return type, meaning and innermost place of an exception, short enough for a report."""
    ours = str(Path(__file__).parent)
    frames = [
        frame for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith((ours, "<frozen"))
    ]  # fmt: skip
    place = f"{frames[-1].filename}:{frames[-1].lineno}" if frames else ""
    missing = isinstance(error, (NameError, ImportError))
    return Failed(type(error).__name__, _gist(str(error))[:400], place, missing)


def _gist(message: str) -> str:
    """The text up to the first ruler, and the line of code that MindSpore's compiler names."""
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    rulers = [number for number, line in enumerate(lines) if set(line) == {"-"}]
    head = " ".join(lines[: rulers[0]] if rulers and rulers[0] else lines)
    code = [
        f"in {line.partition('In file ')[2].rpartition(',')[0]}: {lines[number + 1]}"
        for number, line in enumerate(lines[:-1]) if line.startswith("#") and "In file " in line
    ]  # fmt: skip
    outer = code[-1:] if rulers else []
    return " ".join([head[:300], *outer])


def _write(stream: TextIO, payload: Mapping[str, Any]) -> None:
    stream.write(json.dumps(payload) + "\n")
    stream.flush()


def _end_with(parent: int) -> None:
    """End when the command that started this worker was killed: nobody waits for the answer."""
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(1)


def _be_killed_first() -> None:
    """Have the worker die, not the command that started it, when memory runs out (Linux)."""
    try:
        with open("/proc/self/oom_score_adj", "w", encoding="ascii") as score:
            score.write("1000")
    except OSError:
        return
