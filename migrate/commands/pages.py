"""In: the table and the command line. Out: the pages that are made from them, by file name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from migrate.table import Table

COMMANDS = "commands.md"
TABLE = "table.html"
MARKER = "<!-- Made by `torch2ms table docs`; change the program, not this page. -->"


def pages(rows: Table) -> Mapping[str, str]:
    """Every page: the browsable table, and the commands with their options."""
    from migrate.explain.browse import browse

    return {TABLE: browse(rows), COMMANDS: commands_page()}


def commands_page() -> str:
    """docs/commands.md, from the command line itself."""
    import typer

    from migrate.cli import app

    root = typer.main.get_command(app)
    lines = [MARKER, "", "# Commands", "", root.epilog or "", ""]
    for name, command in _commands("torch2ms", root):
        lines += _command(name, command)
    return "\n".join(lines).rstrip("\n") + "\n"


def _commands(name: str, command: Any) -> Iterator[tuple[str, Any]]:
    for part, inner in sorted(getattr(command, "commands", {}).items()):
        if hasattr(inner, "commands"):
            yield from _commands(f"{name} {part}", inner)
        else:
            yield f"{name} {part}", inner


def _command(name: str, command: Any) -> Iterator[str]:
    said, _, example = (command.help or "").partition("\b")
    arguments = " ".join(
        p.make_metavar_text for p in map(_Shown, command.params) if p.is_argument
    )  # fmt: skip
    yield f"## {name}"
    yield ""
    yield f"`{name} {arguments}`".replace(" `", "`")
    yield ""
    yield said.strip()
    yield ""
    if example:
        yield from ("```", *(line.strip() for line in example.splitlines()[2:] if line), "```", "")
    options = [p for p in map(_Shown, command.params) if not p.is_argument and not p.hidden]
    for option in options:
        yield f"- `{option.spelling}`: {option.help}"
    yield ""


class _Shown:
    """A parameter of a command, as the page shows it."""

    def __init__(self, parameter: Any) -> None:
        self.parameter = parameter

    @property
    def is_argument(self) -> bool:
        return bool(self.parameter.param_type_name == "argument")

    @property
    def hidden(self) -> bool:
        return bool(self.parameter.name in ("version", "help"))

    @property
    def help(self) -> str:
        return " ".join((self.parameter.help or "").split())

    @property
    def make_metavar_text(self) -> str:
        shown = self.parameter.metavar or self.parameter.name.upper()
        return str(shown if self.parameter.required else f"[{shown}]")

    @property
    def spelling(self) -> str:
        kind = self.parameter.type
        choices = getattr(kind, "choices", None)
        value = "|".join(getattr(c, "value", str(c)) for c in choices) if choices else ""
        value = value or self.parameter.metavar or ""
        flag = getattr(self.parameter, "is_flag", False)
        plain = "" if flag else f" {value or kind.name.upper()}"
        return ", ".join(self.parameter.opts) + plain
