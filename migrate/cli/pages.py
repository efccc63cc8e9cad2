"""In: the table and the command line. Out: the pages that are made from them, by file name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum
from pathlib import Path
from typing import Any

from migrate.mapping.table import Table

COMMANDS = "commands.md"
TABLE = "table.html"
RULES = "rules.md"
MARKER = "<!-- Made by `torch2ms table docs -o docs`; change the program, not this page. -->"


def pages(rows: Table, commands: Any) -> Mapping[str, str]:
    """Every page: the browsable table, the commands with their options, the rules."""
    from migrate.explain.page import browse

    cases = Path(__file__).parents[2] / "tests" / "rewriting_cases"
    made = {TABLE: browse(rows), COMMANDS: commands_page(commands)}
    return {**made, RULES: rules_page(cases)} if cases.is_dir() else made


def rules_page(cases: Path) -> str:
    """docs/rules.md, from the rules and the cases that name them as their examples."""
    from migrate.cli.rules import claims, place
    from migrate.mapping.table import read_toml
    from migrate.rules import registry

    every = [case for path in sorted(cases.glob("*.toml")) for case in read_toml(path)["case"]]
    rules = sorted(registry.ours().rules, key=lambda rule: rule.name)
    lines = [MARKER, "", "# Rules", "", f"The {len(rules)} rules of conversion, with what each",
             "converts, leaves alone and flags. [contributing.md](contributing.md) says how to add",
             "one, `torch2ms rules net.py:12` which of them decides a line.", ""]  # fmt: skip
    for rule in rules:
        lines += [f"## `{rule.name}`", "", rule.purpose.replace("``", "`"), ""]
        lines += [f"`{place(rule).partition(':')[0]}`: {'; '.join(claims(rule))}.", ""]
        own = rule.examples
        for before, after in own.becomes:
            lines += _example("Changes", before, after)
        for case in (c for c in every if rule.name in c.get("by", ())):
            said = "Is flagged" if case["must"] == "flag" else "Changes"
            lines += _example(said, case["before"], case.get("after", ""))
        spared = (c["before"] for c in every if rule.name in c.get("spares", ()))
        for title, codes in (("Is flagged", own.flagged), ("Stays", (*own.stays, *spared))):
            for code in codes:
                lines += _example(title, code)
    return "\n".join(lines).rstrip("\n") + "\n"


def _example(title: str, code: str, after: str = "") -> list[str]:
    shown = ["```python", *code.strip("\n").splitlines(), "```", ""]
    return [f"{title}:", "", *shown, *(_example("to this", after) if after.strip() else [])]


def commands_page(root: Any) -> str:
    """docs/commands.md, from the command line itself (typer's command of the whole program)."""
    lines = [MARKER, "", "# Commands", "", str(root.epilog or ""), ""]
    for name, command in _commands("torch2ms", root):
        lines += _command(name, command)
    return "\n".join(lines).rstrip("\n") + "\n"


def _commands(name: str, command: Any) -> Iterator[tuple[str, Any]]:
    for part, inner in command.commands.items():
        if hasattr(inner, "commands"):
            yield from _commands(f"{name} {part}", inner)
        else:
            yield f"{name} {part}", inner


def _command(name: str, command: Any) -> Iterator[str]:
    said, _, example = (command.help or "").partition("\b")
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    yield f"## `{' '.join([name, *map(_metavar, arguments)])}`"
    yield ""
    yield said.strip()
    yield ""
    if example:
        lines = [line.strip() for line in example.strip().splitlines()[1:]]
        yield from ("```", *lines, "```", "")
    yield from (f"- `{_metavar(p)}`: {_help(p)}" for p in arguments if _help(p))
    for option in command.params:
        if option.param_type_name == "option" and option.name not in ("version", "help"):
            yield f"- `{_spelling(option)}`: {_help(option)}{_default(option)}"
    yield ""


def _metavar(argument: Any) -> str:
    shown = argument.metavar or argument.name.upper()
    shown = f"{shown}..." if argument.multiple or argument.default == [] else shown
    return str(shown if argument.required else f"[{shown}]")


def _help(parameter: Any) -> str:
    return " ".join((parameter.help or "").split())


def _spelling(option: Any) -> str:
    value = "" if option.is_flag else f" {option.metavar or option.name.upper()}"
    return ", ".join(option.opts) + value


def _default(option: Any) -> str:
    value = option.default
    value = value.value if isinstance(value, Enum) else value
    if value in (None, False, "") or option.required or callable(value):
        return ""
    return f" Default: {value}."
