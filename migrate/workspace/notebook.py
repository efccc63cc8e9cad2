"""In: the bytes of a notebook. Out: its Python cells as one module, and the notebook put back."""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from migrate.records.outcomes import Outcome
from migrate.records.result import Entry
from migrate.syntax.source import Unreadable
from migrate.workspace.dependencies import named

_MARK = "# In [torch2ms cell {}]"
_PUT_ASIDE = "  # torch2ms magic {}"
_SHELLS = ("%", "!", "?")
_PYTHON_MAGICS = ("%%time", "%%timeit", "%%capture", "%%prun")
_TIMED = ("%time ", "%timeit ")  # what follows on the line is Python
LINES = "ENV511"
CELL = "ENV513"


@dataclass(frozen=True)
class Magic:
    """A line of IPython. ``hidden`` replaces it in the text of the module; its part that is Python
    comes before the comment that ends ``hidden``, and ``prefix`` precedes that. ``quiet``: it is of
    a cell that is flagged as a whole.
    """

    line: str
    hidden: str
    prefix: str = ""
    quiet: bool = False


@dataclass(frozen=True)
class Notebook:
    """A notebook of format 4. ``text`` holds the cells numbered in ``cells``, each under a mark;
    ``magics`` are the lines of IPython that ``text`` holds as Python. ``unread``: why a cell is no
    Python 3, by its number: it is kept as it is."""

    path: str
    content: dict[str, Any]
    cells: tuple[int, ...]
    text: str
    magics: tuple[Magic, ...] = ()
    unread: Mapping[int, str] = field(default_factory=dict)

    def put_back(self, data: bytes) -> bytes:
        """Return the notebook with converted cells; see `put_back`."""
        return put_back(self, data)

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
        Unreadable: not a notebook of format 4.
    """
    try:
        content = json.loads(data.decode("utf-8"))
        cells = content["cells"]
        language = _language(content.get("metadata", {}))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Unreadable(
            path, "not a notebook of format 4", f"{type(error).__name__}: {error}",
            "open and save it with Jupyter, or leave it out with --exclude",
        ) from error  # fmt: skip
    taken: list[int] = []
    parts: list[str] = []
    magics: list[Magic] = []
    code = [(n, _source(c)) for n, c in enumerate(cells) if c.get("cell_type") == "code"]
    unread: dict[int, str] = {}
    for number, source in code if language == "python" else ():
        if _is_foreign(source):
            continue
        found = list(magics)
        try:
            text = _without_magics(source, found)
        except (SyntaxError, ValueError) as error:
            unread[number] = str(error)
            continue
        magics = found
        taken.append(number)
        parts += [_MARK.format(number + 1), text]
    # What is no Python comes last, as comments: it is only told of.
    for number, source in code if language == "python" else ():
        lines = source.split("\n")
        if number in unread or (_is_foreign(source) and any(map(named, lines))):
            taken.append(number)
            text = "\n".join(_commented(line, magics, number in unread) for line in lines)
            parts += [_MARK.format(number + 1), text]
    return Notebook(path, content, tuple(taken), "\n".join([*parts, ""]), tuple(magics), unread)


def _language(metadata: dict[str, Any]) -> str:
    kernel = metadata.get("kernelspec", {}).get("language")
    language: str = kernel or metadata.get("language_info", {}).get("name", "python")
    return "python" if language.startswith("ipython") else language.lower()


def _source(cell: dict[str, Any]) -> str:
    source = cell.get("source", "")
    return source if isinstance(source, str) else "".join(source)


def _is_foreign(source: str) -> bool:
    """A cell of another language: %%bash, %%html, %%writefile, ..."""
    start = source.lstrip()
    return start.startswith("%%") and not start.startswith(_PYTHON_MAGICS)


def _without_magics(source: str, magics: list[Magic]) -> str:
    """The Python of a cell; lines for IPython are put aside where it is not Python with them.

    Raises:
        SyntaxError, ValueError: it is not Python 3.
    """
    if _parses(source):
        return source
    lines: list[str] = []
    continues = ""  # the indentation of a line for the shell that goes on in the next one
    for line in source.split("\n"):
        bare, indent = line.strip(), line[: len(line) - len(line.lstrip())]
        if continues or bare.startswith(_SHELLS) or bare.endswith("?"):
            indent = continues[1:] if continues else indent
            lines.append(_aside(line, indent, magics))
            continues = f"+{indent}" if bare.endswith("\\") else ""
        else:
            lines.append(_assigned(line, magics))
    text = "\n".join(lines)
    ast.parse(text)
    return text


def _aside(line: str, indent: str, magics: list[Magic]) -> str:
    """A line of Python in place of one for IPython; with what of it is Python."""
    bare = line.strip()
    prefix = next((p for p in _TIMED if bare.startswith(p)), "")
    while prefix and bare.removeprefix(prefix).startswith("-"):  # an option and its value
        option, _, rest = bare.removeprefix(prefix).partition(" ")
        prefix += option + " "
        if len(option) == 2 and option[1] in "nrpt":
            prefix += rest.partition(" ")[0] + " "
    code = bare.removeprefix(prefix) if prefix else ""
    if not code or not _parses(code):
        # a comment ends no run of imports, but a block needs a statement
        code, prefix = "pass" if indent else "", ""
    hidden = indent + (code + _PUT_ASIDE.format(len(magics))).lstrip()
    magics.append(Magic(line, hidden, prefix))
    return hidden


def _commented(line: str, magics: list[Magic], quiet: bool) -> str:
    magics.append(Magic(line, _PUT_ASIDE.format(len(magics)).strip(), quiet=quiet))
    return magics[-1].hidden


def _assigned(line: str, magics: list[Magic]) -> str:
    """Return the text for ``files = !ls`` and ``here = %pwd``, whose values are unknown."""
    target, _, value = line.partition("=")
    if not value.lstrip().startswith(("!", "%")) or not _parses(f"{target.strip()} = 0"):
        return line
    hidden = f"{target}= get_ipython()" + _PUT_ASIDE.format(len(magics))
    magics.append(Magic(line, hidden))
    return hidden


def _parses(source: str) -> bool:
    try:
        ast.parse(source)
    except (SyntaxError, ValueError):
        return False
    return True


def left_alone(notebook: Notebook) -> tuple[Entry, ...]:
    """Return cells that cannot be read, and uses of torch in lines that are no Python.

    Both are kept as they are.
    """
    places = {shown: number for number, shown in enumerate(notebook.text.split("\n"), 1)}
    found: list[Entry] = []
    for number, why in notebook.unread.items():
        line = places[_MARK.format(number + 1)] + 1
        found.append(
            Entry(
                name=f"cell {number + 1}",
                outcome=Outcome.FLAGGED,
                line=line,
                column=1,
                output_line=line,
                code=CELL,
                reason=f"the cell is not Python 3 and is kept as it is: {why}",
                next_step="correct it, and convert again",
            )
        )
    for magic in notebook.magics:
        line = places[magic.hidden]
        names = () if magic.prefix or magic.quiet else named(magic.line)
        found += [
            Entry(
                name=name,
                outcome=Outcome.FLAGGED,
                line=line,
                column=column,
                output_line=line,
                code=LINES,
                reason="a line of IPython, or of another language, is kept as it is",
                next_step="write it as Python of its own, or by hand for MindSpore",
            )
            for name, column in names
        ]
    return tuple(found)


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
        if not old[number].endswith("\n"):
            text = text.rstrip("\n")
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
        rest += "\n"  # the mark took it: a cell before this one may be empty
        if not middle:
            raise ValueError(f"{notebook.path}: the mark of cell {number + 1} is lost")
        found[number] = body.removesuffix("\n")
    if rest.strip():
        first = notebook.cells[0]
        found[first] = f"{rest.strip()}\n{found[first]}"
    for index, magic in enumerate(notebook.magics):
        holder = next((n for n, body in found.items() if _line_of(index, body) is not None), None)
        if holder is None:
            raise ValueError(f"{notebook.path}: the line {magic.line.strip()!r} is lost")
        found[holder] = _restored(found[holder], index, magic)
    return found


def _line_of(index: int, body: str) -> int | None:
    mark = _PUT_ASIDE.format(index).strip()
    lines = body.split("\n")
    return next((i for i, line in enumerate(lines) if line.rstrip().endswith(mark)), None)


def _restored(body: str, index: int, magic: Magic) -> str:
    """Return the cell with its line of IPython; a magic of the cell is its first line."""
    lines = body.split("\n")
    at = _line_of(index, body) or 0
    shown = lines[at]
    if shown == magic.hidden:
        lines[at] = magic.line
    else:
        indent = shown[: len(shown) - len(shown.lstrip())]
        code = shown.strip().removesuffix(_PUT_ASIDE.format(index).strip()).rstrip()
        # code that no longer stands on one line cannot be timed by a line
        whole = magic.prefix and code and _parses(code)
        lines[at] = f"{indent}{magic.prefix}{code}" if whole else f"{indent}{code}".rstrip()
    if magic.line.startswith(_PYTHON_MAGICS):
        lines.insert(0, lines.pop(at))
    return "\n".join(lines)
