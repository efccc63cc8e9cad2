"""In: the bytes of a notebook. Out: its Python cells as one module, and the notebook put back."""

from __future__ import annotations

import ast
import json
from dataclasses import dataclass
from typing import Any

from migrate.source import Unreadable

_MARK = "# In [torch2ms cell {}]"
_MAGIC = "pass  # torch2ms magic {}"
_SHELLS = ("%", "!", "?")
_PYTHON_MAGICS = ("%%time", "%%timeit", "%%capture", "%%prun")


@dataclass(frozen=True)
class Notebook:
    """A notebook of format 4. ``text`` holds the cells numbered in ``cells``, each under a mark;
    ``magics`` are the lines of IPython that ``text`` holds as ``pass``."""

    path: str
    content: dict[str, Any]
    cells: tuple[int, ...]
    text: str
    magics: tuple[str, ...] = ()

    def place(self, line: int) -> tuple[int, int]:
        """(number of the cell, line in it), both from 1, of a line of ``text``."""
        cell, start = 0, 0
        for number, shown in enumerate(self.text.split("\n")[:line], 1):
            if shown in (_MARK.format(n + 1) for n in self.cells):
                cell, start = int(shown.rpartition(" ")[2].rstrip("]")), number
        return cell, line - start


def read(path: str, data: bytes) -> Notebook:
    """Take the Python cells out of a notebook.

    Raises:
        Unreadable: not a notebook of format 4, another language, or a cell is not Python.
    """
    try:
        content = json.loads(data.decode("utf-8"))
        cells = content["cells"]
        language = content.get("metadata", {}).get("kernelspec", {}).get("language", "python")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Unreadable(
            path, "not a notebook of format 4", f"{type(error).__name__}: {error}",
            "open and save it with Jupyter, or leave it out with --exclude",
        ) from error  # fmt: skip
    taken: list[int] = []
    parts: list[str] = []
    magics: list[str] = []
    for number, cell in enumerate(cells):
        source = _source(cell)
        if cell.get("cell_type") != "code" or language != "python" or _is_foreign(source):
            continue
        taken.append(number)
        parts += [_MARK.format(number + 1), _without_magics(path, number, source, magics)]
    return Notebook(path, content, tuple(taken), "\n".join([*parts, ""]), tuple(magics))


def _source(cell: dict[str, Any]) -> str:
    source = cell.get("source", "")
    return source if isinstance(source, str) else "".join(source)


def _is_foreign(source: str) -> bool:
    """A cell of another language: %%bash, %%html, ..."""
    return source.startswith("%%") and not source.startswith(_PYTHON_MAGICS)


def _without_magics(path: str, number: int, source: str, magics: list[str]) -> str:
    """The Python of a cell; lines for IPython are put aside where it is not Python with them."""
    if _parses(source):
        return source
    lines = source.split("\n")
    for place, line in enumerate(lines):
        bare = line.strip()
        if bare.startswith(_SHELLS) or bare.endswith("?"):
            indent = line[: len(line) - len(line.lstrip())]
            lines[place] = indent + _MAGIC.format(len(magics))
            magics.append(line)
    text = "\n".join(lines)
    try:
        ast.parse(text)
    except (SyntaxError, ValueError) as error:
        raise Unreadable(
            f"{path}:cell {number + 1}", "not Python 3", str(error),
            "correct the cell, or leave the notebook out with --exclude",
        ) from error  # fmt: skip
    return text


def _parses(source: str) -> bool:
    try:
        ast.parse(source)
    except (SyntaxError, ValueError):
        return False
    return True


def put_back(notebook: Notebook, data: bytes) -> bytes:
    """The notebook with converted cells; what a changed cell had printed is taken out.

    Args:
        data: the converted ``text``, with all its marks.

    Raises:
        ValueError: a mark or a magic line is missing; the notebook cannot be put together.
    """
    content = json.loads(json.dumps(notebook.content))
    new = _split(notebook, data.decode("utf-8"))
    old = _split(notebook, notebook.text)
    for number in notebook.cells:
        cell = content["cells"][number]
        if new[number] == old[number]:
            continue
        text = new[number]
        cell["source"] = (
            text.splitlines(keepends=True) if isinstance(cell["source"], list) else text
        )
        cell["outputs"], cell["execution_count"] = [], None
    return (json.dumps(content, indent=1, ensure_ascii=False) + "\n").encode("utf-8")


def _split(notebook: Notebook, text: str) -> dict[int, str]:
    """Cell number -> its text, magic lines in place again."""
    found: dict[int, str] = {}
    rest = "\n" + text
    for number in reversed(notebook.cells):
        mark = f"\n{_MARK.format(number + 1)}\n"
        rest, middle, body = rest.rpartition(mark)
        if not middle:
            raise ValueError(f"{notebook.path}: the mark of cell {number + 1} is lost")
        found[number] = body.removesuffix("\n")
    if rest.strip():
        first = notebook.cells[0]
        found[first] = f"{rest.strip()}\n{found[first]}"
    for index, line in enumerate(notebook.magics):
        hidden = line[: len(line) - len(line.lstrip())] + _MAGIC.format(index)
        holder = next((n for n, body in found.items() if hidden in body.split("\n")), None)
        if holder is None:
            raise ValueError(f"{notebook.path}: the line {line.strip()!r} is lost")
        lines = found[holder].split("\n")
        found[holder] = "\n".join(line if shown == hidden else shown for shown in lines)
    return found
