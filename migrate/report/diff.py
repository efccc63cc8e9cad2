"""Show a file before and after conversion side by side, its tokens coloured."""

from __future__ import annotations

import io
import tokenize
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from hashlib import sha256
from pathlib import Path
from typing import Literal

from markupsafe import Markup, escape
from pygments.lexers.python import PythonLexer  # type: ignore[import-untyped,unused-ignore]
from pygments.token import (  # type: ignore[import-untyped,unused-ignore]
    Comment,
    Keyword,
    Name,
    Number,
    Operator,
    String,
    _TokenType,
)

from migrate.records.result import Entry, FileResult


@dataclass(frozen=True)
class Texts:
    """``problem`` tells why ``before`` or ``after`` is missing; ``warning``: it changed since."""

    before: str = ""
    after: str = ""
    problem: str = ""
    warning: str = ""


def texts(file: FileResult, source_root: Path, output_root: Path) -> Texts:
    """Read both sides with Python's own encoding rules; never raises for a bad file."""
    warnings = []
    sides = []
    for root, name, digest, what in (
        (source_root, file.source, file.source_sha256, "source"),
        (output_root, file.output, file.output_sha256, "output"),
    ):
        path = _path(root, name)
        try:
            data = path.read_bytes()
        except OSError as error:
            reason = error.strerror or type(error).__name__
            return Texts(problem=_moved(what, path, reason))
        if digest and sha256(data).hexdigest() != digest:
            warnings.append(f"The {what} file {name} has changed since it was converted.")
        sides.append(_decode(data))
    return Texts(sides[0], sides[1], warning=" ".join(warnings))


def _path(root: Path, name: str) -> Path:
    """A root that is itself the file stands for it (one file was converted)."""
    return root if root.is_file() else root / name


def _moved(what: str, path: Path, reason: str) -> str:
    return (
        f"No diff: the {what} file cannot be read at {path} ({reason}). "
        "Put it back, or convert again, and run torch2ms report once more."
    )


def _decode(data: bytes) -> str:
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        text = data.decode(encoding)
    except (SyntaxError, UnicodeDecodeError, LookupError):
        text = data.decode("utf-8", errors="replace")
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")


_CLASSES: tuple[tuple[_TokenType, str], ...] = (
    (Comment, "c"),
    (String, "s"),
    (Number, "m"),
    (Keyword, "k"),
    (Operator.Word, "k"),
    (Name.Builtin, "b"),
    (Name.Function, "f"),
    (Name.Class, "f"),
    (Name.Decorator, "f"),
)


@dataclass(frozen=True)
class Token:
    """A stretch of one line; ``kind`` is a CSS class, empty for plain text."""

    kind: str
    text: str


Line = tuple[Token, ...]


def tokens(text: str, python: bool = True) -> tuple[Line, ...]:
    """The lines of the text (``\\n`` only), each as tokens; a last empty line is left out."""
    if not python:
        return tuple((Token("", line),) for line in _lines(text))
    lines: list[list[Token]] = [[]]
    lexer = PythonLexer(stripnl=False, ensurenl=False, stripall=False, tabsize=0)
    for kind, value in lexer.get_tokens(text):
        first, *rest = value.split("\n")
        lines[-1].append(Token(_token_kind(kind), first))
        lines.extend([Token(_token_kind(kind), part)] for part in rest)
    if lines and not any(token.text for token in lines[-1]):
        lines.pop()
    return tuple(tuple(token for token in line if token.text) for line in lines)


def _lines(text: str) -> list[str]:
    return text.removesuffix("\n").split("\n") if text else []


def _token_kind(token: _TokenType) -> str:
    for parent, name in _CLASSES:
        if token is parent or parent in token.split():
            return name
    return ""


def markup(line: Line, marked: Sequence[bool] = ()) -> Markup:
    """The line as HTML; tokens that are ``marked`` (one truth value each) stand in ``<u>``."""
    parts: list[str] = []
    plain = ""
    for index, token in enumerate(line):
        here = bool(marked and marked[index])
        if not token.kind and not here:
            plain += token.text
            continue
        parts.append(str(escape(plain)))
        plain = ""
        parts.append(_span(token, here))
    parts.append(str(escape(plain)))
    return Markup("".join(parts).replace("</u><u>", ""))


def _span(token: Token, marked: bool) -> str:
    text = str(escape(token.text))
    inner = f"<i class={token.kind}>{text}</i>" if token.kind else text
    return f"<u>{inner}</u>" if marked else inner


def changed(left: Line, right: Line) -> tuple[list[bool], list[bool]]:
    """Which tokens of two paired lines differ; nothing is marked when hardly any agree."""
    words = [token.text for token in left], [token.text for token in right]
    matcher = SequenceMatcher(None, *words, autojunk=False)
    marks = [False] * len(left), [False] * len(right)
    if matcher.ratio() < 0.35:
        return marks
    for tag, a, b, c, d in matcher.get_opcodes():
        if tag != "equal":
            marks[0][a:b] = [True] * (b - a)
            marks[1][c:d] = [True] * (d - c)
    return marks


CONTEXT = 3
SHORTEST_FOLD = 8


@dataclass(frozen=True)
class Row:
    """One row: numbers count from 1 and are 0 where that side has no line."""

    kind: Literal["same", "edit", "del", "add"]
    left: int
    right: int
    left_html: Markup
    right_html: Markup
    entries: tuple[Entry, ...] = ()


@dataclass(frozen=True)
class Block:
    """A stretch of rows; ``folded`` ones are unchanged and closed at first."""

    folded: bool
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Pair:
    """Line indices that stand in one row (from 0; -1: none)."""

    left: int
    right: int
    same: bool


def blocks(
    before: str, after: str, entries: Sequence[Entry], python: bool = True
) -> tuple[Block, ...]:
    """The whole diff. Lines end in ``\\n``; ``entries`` belong to the file."""
    left, right = tokens(before, python), tokens(after, python)
    pairs = list(_pairs(_text(left), _text(right), _anchors(entries)))
    by_line = _entries_by_line(entries)
    rows = [_row(pair, left, right, by_line) for pair in pairs]
    return tuple(_fold(rows))


def _text(lines: Sequence[Line]) -> list[str]:
    return ["".join(token.text for token in line) for line in lines]


def _anchors(entries: Sequence[Entry]) -> dict[int, int]:
    return {e.line - 1: e.output_line - 1 for e in entries if e.output_line}


def _entries_by_line(entries: Sequence[Entry]) -> dict[int, tuple[Entry, ...]]:
    found: dict[int, list[Entry]] = defaultdict(list)
    for entry in sorted(entries, key=lambda e: (e.line, e.column)):
        found[entry.line].append(entry)
    return {line: tuple(group) for line, group in found.items()}


def _pairs(left: list[str], right: list[str], anchors: dict[int, int]) -> Iterator[Pair]:
    # autojunk guesses which lines are noise: fine for speed on huge files only
    matcher = SequenceMatcher(None, left, right, autojunk=len(left) > 4000)
    for tag, a, b, c, d in matcher.get_opcodes():
        if tag == "equal":
            yield from (Pair(a + i, c + i, True) for i in range(b - a))
        else:
            yield from _replaced(a, b, c, d, anchors)


def _replaced(a: int, b: int, c: int, d: int, anchors: dict[int, int]) -> Iterator[Pair]:
    """Put changed lines side by side: where an entry says so, else one after another."""
    owner = {target: line for line, target in anchors.items() if c <= target < d}
    uneven = b - a != d - c
    while a < b or c < d:
        left, right = a < b, c < d
        # an output line before the partner of this input line, or one that a later line owns
        early = uneven and left and right and c < anchors.get(a, c) < d
        later = left and a not in anchors and a < owner.get(c, a) < b
        take_left = left and not early
        take_right = right and not (later and take_left)
        yield Pair(a if take_left else -1, c if take_right else -1, False)
        a, c = a + take_left, c + take_right


def _row(
    pair: Pair, left: Sequence[Line], right: Sequence[Line], entries: dict[int, tuple[Entry, ...]]
) -> Row:
    before = left[pair.left] if pair.left >= 0 else ()
    after = right[pair.right] if pair.right >= 0 else ()
    marks: tuple[list[bool], list[bool]] = ([], [])
    if not pair.same and before and after:
        marks = changed(before, after)
    return Row(
        kind=_kind(pair),
        left=pair.left + 1,
        right=pair.right + 1,
        left_html=markup(before, marks[0]),
        right_html=markup(after, marks[1]),
        entries=entries.get(pair.left + 1, ()) if pair.left >= 0 else (),
    )


def _kind(pair: Pair) -> Literal["same", "edit", "del", "add"]:
    if pair.same:
        return "same"
    if pair.left < 0:
        return "add"
    return "del" if pair.right < 0 else "edit"


def _fold(rows: Sequence[Row]) -> Iterator[Block]:
    near = [False] * len(rows)
    for index, row in enumerate(rows):
        if row.kind != "same" or any(entry.code for entry in row.entries):
            low, high = max(0, index - CONTEXT), min(len(rows), index + CONTEXT + 1)
            near[low:high] = [True] * (high - low)
    start = 0
    for end in range(1, len(rows) + 1):
        if end == len(rows) or near[end] != near[start]:
            folded = not near[start] and end - start >= SHORTEST_FOLD
            yield Block(folded, tuple(rows[start:end]))
            start = end
