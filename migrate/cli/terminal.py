"""Say on the terminal how far a command is, or that it lacks a package; colours, completion."""

from __future__ import annotations

import importlib.util
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TextIO

import typer

from migrate.records.outcomes import Problem

_WHY = {"verify": "this command runs the frameworks", "cluster": "--cluster runs through dask"}


def need(*packages: str, extra: str = "verify") -> None:
    """Look whether packages of an extra are there, without importing them.

    Raises:
        Problem: one is missing; convert and report do without them.
    """
    missing = [name for name in packages if importlib.util.find_spec(name) is None]
    if missing:
        raise Problem(
            "torch2ms", f"{' and '.join(missing)} cannot be imported",
            _WHY[extra], f'pip install "torch2mindspore[{extra}]"',
        )  # fmt: skip


# -- colours -------------------------------------------------------------------------------------

_FINDING = re.compile(r"(?P<place>\S.*?) (?P<code>[A-Z]{3}\d{3}) (?P<name>[^ :]+): (?P<rest>.*)")
_LABELS = {"CONFLICT:": "31", "Merged:": "32", "Kept:": "32", "Flagged:": "31", "Replaced:": "33"}


def is_coloured(stream: TextIO) -> bool:
    """Return whether a stream shows colours: a terminal, unless NO_COLOR says that it should not.

    FORCE_COLOR has them also where the output is piped.
    """
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def say(stream: TextIO, lines: Iterable[str]) -> None:
    """Print lines, findings and what stands in front of a colon in colours where there are any."""
    paint = is_coloured(stream)
    for line in lines:
        print(painted(line) if paint else line, file=stream)


def painted(line: str) -> str:
    """Return a line with its code in red (yellow for graph mode alone) and its name in bold."""
    found = _FINDING.match(line)
    if found is not None:
        code, rest = found["code"], found["rest"]
        reason, _, step = rest.partition("; ")
        shade = "33" if code.startswith("GRF") else "31"
        tail = f"; \33[2m{step}\33[0m" if step else ""
        return (
            f"{found['place']} \33[{shade}m{code}\33[0m \33[1m{found['name']}\33[0m: {reason}{tail}"
        )
    label = line.partition(" ")[0]
    shade = _LABELS.get(label, "")
    return f"\33[{shade}m{label}\33[0m{line[len(label) :]}" if shade else line


def painted_change(line: str) -> str:
    """Return a line of a unified diff in the colours that diffs have."""
    text = line.rstrip("\n")
    heads = (("---", "1"), ("+++", "1"), ("@@", "36"), ("-", "31"), ("+", "32"))
    shade = next((shade for head, shade in heads if text.startswith(head)), "")
    return f"\33[{shade}m{text}\33[0m\n" if shade else line


# -- completion ----------------------------------------------------------------------------------

COMPLETING = "_TORCH2MS_COMPLETE"  # what a shell sets when it asks for completions


def prepare_completion() -> None:
    """Let a shell ask: one line for each answer, however narrow its terminal is."""
    from typer.completion import completion_init  # type: ignore[attr-defined]

    os.environ["COLUMNS"] = "2000"
    completion_init()


def install_completion(shell: str) -> None:
    """Write the completion of a shell to where it reads them, and end the program."""
    from typer.completion import install  # type: ignore[attr-defined]

    name, path = install(shell=shell, prog_name="torch2ms")
    print(f"{name} completion is in {path}; it works in the next {name}")
    raise typer.Exit


def show_completion(shell: str) -> None:
    """Print the completion of a shell, and end the program."""
    from typer.completion import get_completion_script  # type: ignore[attr-defined]

    print(get_completion_script(prog_name="torch2ms", complete_var=COMPLETING, shell=shell))
    raise typer.Exit


# -- progress ------------------------------------------------------------------------------------

Progress = Callable[[int, int], None]
_SLOW = 40  # files from which progress is worth a line


@contextmanager
def progress(doing: str) -> Iterator[Progress]:
    """A bar on a terminal, a line now and then elsewhere; nothing for a few files."""
    if not sys.stderr.isatty():
        yield lambda done, total: _line(doing, done, total)
        return
    from rich.console import Console
    from rich.progress import Progress as Bar

    with Bar(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(doing, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _line(doing: str, done: int, total: int) -> None:
    step = max(1, total // 10)
    if total >= _SLOW and (done // step != (done - 1) // step or done == total):
        print(f"{doing}: {done} of {total} files", file=sys.stderr)
