"""Show a flagged place on a terminal, original and output side by side, and read an answer."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from rich.console import Console
from rich.markup import escape
from rich.syntax import Syntax
from rich.table import Table

from migrate.explain.candidates import Candidate
from migrate.records.choices import Asked

Answer = Candidate | Literal["next", "back", "quit", "stop", "all"]
_WORDS: dict[str, Answer] = {"": "next", "n": "next", "b": "back", "q": "quit", "!": "stop"}


def show(
    place: Asked, found: Sequence[Candidate], number: int, total: int, keys: str,
    console: Console | None = None,
) -> None:  # fmt: skip
    """Print a place, what is known of it, and what may be chosen."""
    console = console or Console(highlight=False)
    key = place.key
    where = f"{key.file}:{place.line}:{place.column}"
    inside = f" in {key.within}" if key.within else ""
    console.rule(f"[bold]{number} of {total}[/bold]  {escape(where)}{escape(inside)}", align="left")
    sides = Table(expand=True, pad_edge=False, show_edge=False)
    sides.add_column("original", ratio=1)
    sides.add_column("output", ratio=1)
    sides.add_row(_code(place.original), _code(place.output))
    console.print(sides)
    console.print(f"[red]{place.code}[/red] {escape(key.name)}: {escape(place.reason)}")
    if place.next_step:
        console.print(f"     {escape(place.next_step)}")
    if place.receiver:
        kinds = " or ".join(place.kinds) or "unknown"
        console.print(f"     {escape(place.receiver)} is {escape(kinds)}")
        for value in place.values:
            console.print(f"       {escape(value)}")
    for at, one in enumerate(found[:9], 1):
        text = one.becomes if one.form in ("expression", "statement") else one.form
        console.print(f"  [bold]{at}[/bold] {escape(text)}  [dim]{escape(one.source)}[/dim]")
    console.print(f"[dim]{escape(keys)}[/dim]")


def _code(text: str) -> Syntax:
    return Syntax(text, "python", word_wrap=True, background_color="default", theme="ansi_dark")


def ask(place: Asked, found: Sequence[Candidate]) -> Answer:
    """Read what a person decides; asks again where an answer does not fit the place."""
    while True:
        try:
            answer = input("> ").strip()
        except EOFError:
            return "quit"
        if answer in _WORDS:
            return _WORDS[answer]
        if answer.isdigit() and 1 <= int(answer) <= len(found[:9]):
            return found[int(answer) - 1]
        if answer == "a" and found:
            return "all"
        if answer == "k" and "keep" in place.forms:
            return Candidate("keep", "", "")
        if answer == "e" and "expression" in place.forms:
            print(f"  instead of {place.expression}:")
            if text := input("  ").strip():
                return Candidate("expression", text, "")
        elif answer == "s" and "statement" in place.forms:
            if text := written(place):
                return Candidate("statement", text, "")
        else:
            print("  this cannot be answered here")


def written(place: Asked) -> str:
    """Let a person write statements: in $EDITOR, else on the terminal up to an empty line."""
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    if not editor or shutil.which(editor.split()[0]) is None:
        print("  statements in MindSpore, an empty line ends them:")
        lines = list(iter(lambda: input("  "), ""))
        return "\n".join(lines)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "statement.py"
        told = f"{place.original}\n{place.reason}".split("\n")
        comment = "".join(f"# {line}\n" for line in told)
        path.write_text(comment, encoding="utf-8")
        subprocess.run([*editor.split(), str(path)], check=False)
        text = path.read_text(encoding="utf-8").removeprefix(comment)
    return text.strip("\n")
