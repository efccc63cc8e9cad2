"""Read a Jinja template that makes Python as one module, and put the converted one back."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from migrate.syntax.source import Unreadable, read

SUFFIXES = (".jinja", ".jinja2", ".j2")
_IMPORT = re.compile(r"^[ \t]*(?:import|from)[ \t]+torch\b", re.MULTILINE)
_LINE = re.compile(r"^[ \t]*(?:\{%[^%]*%\}|\{#[^#]*#\})[ \t]*$", re.MULTILINE)
# what ends a block that is not always filled in: what follows is reached all the same
_END = re.compile(
    r"(?:raise|return|continue|break)\b(?:(?!torch)[^\n])*$(?=\s*\{%-?\s*(?:endif|else|elif))",
    re.MULTILINE,
)
# what rests on the order of statements, of which a block may leave some out
_ORDERED = re.compile(
    r"\.backward\(|\.step\(|[a-z0-9]_\(|[-+*/|&@]=[^=]|\]\s*=[^=]|no_grad|enable_grad|inplace"
)
_VALUE = re.compile(r"\{\{.*?\}\}")
_HIDDEN = re.compile(r"^[ \t]*# JINJA_(\d+)_$|JINJA_(\d+)_", re.MULTILINE)

_KEPT = "JINJA_KEPT_"


@dataclass(frozen=True)
class Template:
    """A template of Python that imports torch.

    ``text`` is Python: a name stands for each value that is filled in, a comment for each line of
    Jinja's own. ``hidden`` are those, by number.
    """

    path: str
    text: str
    hidden: tuple[str, ...]

    def place(self, line: int) -> tuple[int, int]:
        """Return (0, line): a template has no cells."""
        return 0, line

    def put_back(self, data: bytes) -> bytes:
        """Return the template with what was hidden in its place.

        Raises:
            ValueError: a value or a line is lost, or torch is still imported.
        """
        text = data.decode("utf-8")
        kept = {int(line or value) for line, value in _HIDDEN.findall(text)}
        lost = [form for number, form in enumerate(self.hidden) if number not in kept]
        if lost or _IMPORT.search(text):
            raise ValueError(f"{self.path}: {lost[0].strip() if lost else 'torch'} is in the way")
        text = text[: text.rindex(_KEPT)]
        while _HIDDEN.search(text):  # what ends a block may hold values
            text = _HIDDEN.sub(lambda m: self.hidden[int(m[1] or m[2])], text)
        return text.encode("utf-8")


def read_template(path: str, data: bytes) -> Template | None:
    """Return a template of Python that imports torch; None for any other file.

    None as well where lines of Jinja may leave statements out and what is written in place, or
    differentiated, rests on their order.
    """
    text = data.decode("utf-8", "replace")
    if not _IMPORT.search(text) or (_LINE.search(text) and _ORDERED.search(text)):
        return None
    hidden: list[str] = []
    text = _END.sub(_hiding(hidden, "JINJA_{}_"), text)
    text = _LINE.sub(_hiding(hidden, "# JINJA_{}_"), text)
    text = _VALUE.sub(_hiding(hidden, "JINJA_{}_"), text)
    try:
        tree = read(path, text.encode("utf-8")).tree
    except Unreadable:
        return None
    return Template(
        path, f"{text.rstrip()}\n{_KEPT} = [{', '.join(_bound(tree))}]\n", tuple(hidden)
    )


def _bound(tree: ast.Module) -> Iterator[str]:
    """Yield what a template has of torch: what is filled in may read all of it."""
    for node in tree.body:
        if isinstance(node, ast.Import):
            roots = (a.asname or a.name for a in node.names if a.name == "torch")
            yield from (f"{root}.float32" for root in roots)
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "torch":
            yield from (a.asname or a.name for a in node.names)


def _hiding(hidden: list[str], form: str) -> Callable[[re.Match[str]], str]:
    def hide(match: re.Match[str]) -> str:
        hidden.append(match.group())
        return form.format(len(hidden) - 1)

    return hide
