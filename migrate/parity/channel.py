"""In: a worker's commands. Out: requests as JSON lines on stdin answered on the real stdout.

User code prints; so the real stdout is kept aside for answers and everything printed goes to
stderr. Each answer line is ``{"kind": "event" | "done" | "error", ...}``.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

Payload = dict[str, Any]
Emit = Callable[[Payload], None]
Command = Callable[[Payload, Emit], Payload]


def serve(commands: dict[str, Command]) -> None:
    """Answer requests until stdin ends; an exception in a command is an answer, not the end."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    _be_killed_first()
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()

    def emit(payload: Payload) -> None:
        _write(answers, {"kind": "event", **payload})

    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = commands[request["command"]](request, emit)
        except (Exception, SystemExit) as error:
            _write(answers, {"kind": "error", **describe(error)})
            continue
        _write(answers, {"kind": "done", **answer})


def describe(error: BaseException) -> Payload:
    """Type, meaning and innermost place of an exception, short enough for a report."""
    ours = str(Path(__file__).parent)
    frames = [
        frame for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith((ours, "<frozen"))
    ]  # fmt: skip
    place = f"{frames[-1].filename}:{frames[-1].lineno}" if frames else ""
    return {"type": type(error).__name__, "message": _gist(str(error))[:400], "place": place}


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


def _write(stream: TextIO, payload: Payload) -> None:
    stream.write(json.dumps(payload) + "\n")
    stream.flush()


def _end_with(parent: int) -> None:
    """End when the command that started this worker was killed: nobody waits for the answer."""
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(1)


def _be_killed_first() -> None:
    """When memory runs out, the worker dies and not the command that started it (Linux)."""
    try:
        with open("/proc/self/oom_score_adj", "w", encoding="ascii") as score:
            score.write("1000")
    except OSError:
        return
