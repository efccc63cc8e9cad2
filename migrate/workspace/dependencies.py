"""Move requirements to MindSpore, and flag torch names in configuration files that are copied."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass

import tomlkit
import yaml
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from tomlkit.exceptions import TOMLKitError

from migrate.mapping.table import Table
from migrate.records.outcomes import Outcome
from migrate.records.result import Entry

MENTIONED = "ENV510"
SIZE_LIMIT = 1024 * 1024  # bytes; what is larger is data
_SUFFIXES = (".yaml", ".yml", ".json", ".toml", ".cfg", ".ini", ".gin")
# Configuration, not source code: there is no syntax tree that all of these have in common.
_NAME = re.compile(r"(?<![\w./-])torch(?:\.[A-Za-z_]\w*)+")


def is_configuration(path: str, data: bytes) -> bool:
    """Whether a file is one whose text may name what a program builds (``_target_: torch...``).

    What this tool wrote of a project, a baseline, findings or an assessment, builds nothing.
    """
    return path.endswith(_SUFFIXES) and len(data) <= SIZE_LIMIT and not _is_ours(data)


def _is_ours(data: bytes) -> bool:
    head = data[:400]
    told = b'"findings"' in head or b'"tool_version"' in head or b'"torch2ms"' in data[:2000]
    return told and (b'"schema_version"' in head or b"sarif" in head)


def named(line: str) -> tuple[tuple[str, int], ...]:
    """The (dotted torch name, column from 1) in a line that is no Python."""
    found = [(match.group(), match.start() + 1) for match in _NAME.finditer(line)]
    words = line.split()
    if not found and words[:1] in (["import"], ["from"]) and words[1:2] == ["torch"]:
        found.append(("torch", line.index("torch") + 1))
    return tuple(found)


def mentions(path: str, data: bytes, table: Table) -> tuple[Entry, ...]:
    """Every dotted torch name in a configuration, with what takes its place."""
    text = data.decode("utf-8", "replace")
    found = _yaml_names(text) if path.endswith((".yaml", ".yml")) else None
    return tuple(_entry(*item, table) for item in (_names(text) if found is None else found))


def _names(text: str) -> list[tuple[str, int, int]]:
    """(name, line, column), both from 1; lines that are comments are left out."""
    return [
        (name, number, column)
        for number, line in enumerate(text.splitlines(), 1)
        if not line.lstrip().startswith(("#", ";"))
        for name, column in ((m.group(), m.start() + 1) for m in _NAME.finditer(line))
    ]


def _yaml_names(text: str) -> list[tuple[str, int, int]] | None:
    """The names in keys and values of YAML, not those in comments; None: it is no plain YAML."""
    if not _NAME.search(text):
        return []
    try:
        tokens = list(yaml.scan(text, Loader=yaml.SafeLoader))
    except yaml.YAMLError:
        return None
    spans = [
        (token.start_mark.index, token.end_mark.index)
        for token in tokens
        if isinstance(token, (yaml.ScalarToken, yaml.TagToken))
    ]
    inside = [
        match for match in _NAME.finditer(text)
        if any(start <= match.start() < end for start, end in spans)
    ]  # fmt: skip
    return [(m.group(), *_position(text, m.start())) for m in inside]


def _position(text: str, offset: int) -> tuple[int, int]:
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)


def _entry(name: str, line: int, column: int, table: Table) -> Entry:
    reason, step = "a configuration names it; its text is copied as it is", ""
    row = next(iter(table.rows(name)), None)
    if row is not None and row.flag:
        reason, step = row.reason, row.next_step
    elif row is not None and row.to:
        own = row.to.startswith("helpers.")
        kind = "the helper " if own else ""
        step = f"write {kind}{row.to.removeprefix('helpers.')}"
    return Entry(
        name=name,
        outcome=Outcome.FLAGGED,
        line=line,
        column=column,
        output_line=line,
        code=MENTIONED,
        reason=reason,
        next_step=step or "write the MindSpore name that the converted code uses",
    )


DEPENDENCY = "ENV512"
# What the output has from MindSpore alone; other libraries that need torch are flagged.
_COVERED = ("torch", "torchvision", "torchaudio")
_POETRY = "the table of a tool"


@dataclass(frozen=True)
class Renewed:
    """The new text of a list of dependencies; ``entries`` say what became of each of torch's."""

    data: bytes
    entries: tuple[Entry, ...] = ()


def is_list(path: str) -> bool:
    """Whether a file is requirements*.txt, constraints*.txt, requirements/*.txt, pyproject.toml."""
    folder, name = posixpath.split(path)
    if name == "pyproject.toml":
        return True
    named = name.startswith(("requirements", "constraints")) or name.endswith("requirements.txt")
    return name.endswith(".txt") and (named or posixpath.basename(folder) == "requirements")


def renewed(path: str, data: bytes, table: Table) -> Renewed:
    """Put MindSpore in torch's place; a file that cannot be read stays as it is."""
    try:
        text = data.decode("utf-8")
        lists = _Lists(table)
        made = lists.toml(text) if path.endswith(".toml") else lists.lines(text)
    except (UnicodeDecodeError, TOMLKitError):
        return Renewed(data)
    return Renewed(made.encode("utf-8"), tuple(lists.entries))


class _Lists:
    """Goes through the requirements of one file; a second one for MindSpore is left out."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.entries: list[Entry] = []
        numbers = table.mindspore.release.split(".")
        self.version = f">={'.'.join(numbers[:2])},<{int(numbers[0]) + 1}"

    def lines(self, text: str) -> str:
        """requirements.txt: comments, options, markers and the ends of lines are kept."""
        kept: list[str] = []
        has = False
        for number, line in enumerate(text.splitlines(keepends=True), 1):
            body = line.rstrip("\r\n")
            code, mark, comment = body.partition(" #")
            goes_on = bool(kept) and kept[-1].rstrip().endswith("\\")
            if code.lstrip().startswith(("#", "-")) or not code.strip() or goes_on:
                kept.append(line)
                continue
            new = self._renewed(code.strip(), number, len(code) - len(code.lstrip()) + 1)
            if new is None:
                kept.append(line)
            elif not has:
                has = True
                gap = code[len(code.rstrip()) :] if mark else ""
                kept.append(new + gap + mark + comment + line[len(body) :])
        return "".join(kept)

    def toml(self, text: str) -> str:
        """pyproject.toml (PEP 621, PEP 735), its layout and comments kept; tables of poetry are
        flagged."""
        document = tomlkit.parse(text)
        lines = text.splitlines()
        for items in _arrays(document):
            has = False
            for index in reversed(range(len(items))):
                item = items[index]
                if not isinstance(item, str):
                    continue
                line, column = _place(lines, item)
                new = self._renewed(str(item), line, column)
                if new is not None and has:
                    del items[index]
                elif new is not None:
                    has = True
                    items[index] = new
        self.entries.reverse()
        for name in _poetry(document):
            line = _line_of_key(lines, name)
            self._flag(name, line, 1, _POETRY, f'write mindspore = "{self.version}"')
        return tomlkit.dumps(document)

    def _renewed(self, text: str, line: int, column: int) -> str | None:
        """What a requirement becomes; None: it stays."""
        options = text.endswith("\\") or " --" in text
        try:
            found = Requirement(text.rstrip("\\").partition(" --")[0].strip())
        except InvalidRequirement:
            return None
        name = canonicalize_name(found.name)
        step = self.table.needs_torch(name.replace("-", "_"))
        if name not in _COVERED:
            if step:
                self._flag(name, line, column, "it needs torch", step)
            return None
        if options:
            self._flag(
                name, line, column, "it is bound to hashes or options", f"mindspore{self.version}"
            )
            return None
        marker = f"; {found.marker}" if found.marker else ""
        self.entries.append(
            Entry(
                name=name, outcome=Outcome.CONVERTED, line=line, column=column, output_line=line,
                target="mindspore", note=f"a dependency: {text} became mindspore{self.version}",
            )
        )  # fmt: skip
        return f"mindspore{self.version}{marker}"

    def _flag(self, name: str, line: int, column: int, reason: str, step: str) -> None:
        self.entries.append(
            Entry(
                name=name, outcome=Outcome.FLAGGED, line=line, column=column, output_line=line,
                code=DEPENDENCY, reason=f"a dependency: {reason}", next_step=step,
            )
        )  # fmt: skip


def _arrays(document: tomlkit.TOMLDocument) -> Iterator[list[object]]:
    """Every array of requirements."""
    project = document.get("project", {})
    groups = [project.get("optional-dependencies", {}), document.get("dependency-groups", {})]
    arrays = [project.get("dependencies"), *(a for group in groups for a in group.values())]
    for items in (*arrays, document.get("build-system", {}).get("requires")):
        if isinstance(items, list):
            yield items


def _poetry(document: tomlkit.TOMLDocument) -> Iterator[str]:
    """Torch's libraries in the tables of poetry, whose values are no requirements."""
    poetry = document.get("tool", {}).get("poetry", {})
    groups = [g.get("dependencies", {}) for g in poetry.get("group", {}).values()]
    for table in (poetry.get("dependencies", {}), poetry.get("dev-dependencies", {}), *groups):
        yield from (name for name in table if canonicalize_name(name) in _COVERED)


def _place(lines: list[str], text: str) -> tuple[int, int]:
    """Line and column of a quoted item, both from 1."""
    for number, line in enumerate(lines, 1):
        at = line.find(text)
        if at > 0 and line[at - 1] in "\"'":
            return number, at + 1
    return 1, 1


def _line_of_key(lines: list[str], key: str) -> int:
    keys = [line.partition("=")[0].strip().strip("\"'") for line in lines]
    return keys.index(key) + 1 if key in keys else 1
