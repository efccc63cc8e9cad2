"""In: the bytes of a Python file. Out: its syntax tree with byte offsets; the way back to bytes."""

from __future__ import annotations

import ast
import bisect
import codecs
import io
import re
import tokenize
import warnings
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

from migrate.records.outcomes import Site, Span

_LINE_END = re.compile(rb"\r\n|\r|\n")


_OPENING = tuple(getattr(tokenize, f"{kind}STRING_START", -1) for kind in "FT")  # Python 3.12
_CLOSING = tuple(getattr(tokenize, f"{kind}STRING_END", -1) for kind in "FT")


def whole_strings(
    tokens: Iterable[tokenize.TokenInfo],
    opening: Collection[int] = _OPENING,
    closing: Collection[int] = _CLOSING,
) -> Iterator[tokenize.TokenInfo]:
    """Yield tokens with each f-string as one string, as Python before 3.12 has it.

    Newer ones give its beginning, its parts and the code between its braces one by one. The text of
    the joined token is empty: a doubled brace is single in the text of a part.
    """
    depth, start = 0, (0, 0)
    for token in tokens:
        if token.type in opening:
            start, depth = (start if depth else token.start), depth + 1
        elif token.type in closing:
            depth -= 1
            if not depth:
                yield tokenize.TokenInfo(tokenize.STRING, "", start, token.end, token.line)
        elif not depth:
            yield token


class Unreadable(Exception):
    """A file that cannot be taken as Python 3 source; says where, what, why and what next."""

    def __init__(self, where: str, what: str, why: str, next_step: str) -> None:
        super().__init__(f"{where}: {what}: {why}; {next_step}")
        self.where, self.what, self.why, self.next_step = where, what, why, next_step


@dataclass(frozen=True)
class Source:
    """One module: ``data`` is its text in UTF-8 without a byte order mark."""

    path: str
    data: bytes
    tree: ast.Module
    encoding: str = "utf-8"
    bom: bool = False
    newline: str = "\n"
    _starts: tuple[int, ...] = field(default=(), repr=False)

    def offset(self, line: int, column: int) -> int:
        """Byte offset of a position as ast gives it (line from 1, column in UTF-8 bytes)."""
        return self._starts[line - 1] + column

    def span(self, node: ast.AST) -> Span:
        """The bytes of an expression or statement, decorators not included."""
        assert isinstance(node, (ast.expr, ast.stmt, ast.keyword, ast.arg, ast.alias))
        end = self._starts[node.end_lineno - 1] + node.end_col_offset  # type: ignore[operator]
        return Span(self._starts[node.lineno - 1] + node.col_offset, end)

    def name_span(self, node: ast.AST) -> Span:
        """Return where the name of a definition, parameter or attribute stands."""
        if isinstance(node, ast.Attribute):
            end = self.span(node).end
            return Span(end - len(node.attr.encode()), end)
        start = self.span(node).start
        if isinstance(node, ast.arg):
            return Span(start, start + len(node.arg.encode()))
        assert isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
        words = 2 if isinstance(node, ast.AsyncFunctionDef) else 1
        found = re.compile(rb"(?:\w+(?:\s|\\)+){%d}" % words).match(self.data, start)
        assert found is not None
        return Span(found.end(), found.end() + len(node.name.encode()))

    def text(self, span: Span) -> str:
        return self.data[span.start : span.end].decode("utf-8")

    def text_of(self, node: ast.AST) -> str:
        return self.text(self.span(node))

    def is_enclosed(self, node: ast.expr) -> bool:
        """Return whether an operand has parentheses of its own."""
        span = self.span(node)
        before, behind = self.data[: span.start].rstrip()[-1:], self.data[span.end :].lstrip()[:1]
        return (before, behind) == (b"(", b")")

    @property
    def lines(self) -> int:
        """How many lines the text has, an empty one behind the last line end included."""
        return len(self._starts)

    def line_start(self, line: int) -> int:
        return self._starts[line - 1]

    def line_of(self, offset: int) -> int:
        """The 1-based line that holds a byte offset."""
        return bisect.bisect_right(self._starts, offset)

    def site(self, name: str, node: ast.AST) -> Site:
        """The reference ``name`` at ``node``, with the column in characters from 1."""
        span = self.span(node)
        line = self.line_of(span.start)
        before = self.data[self._starts[line - 1] : span.start]
        return Site(name, span, line, len(before.decode("utf-8", "replace")) + 1)

    def site_at(self, name: str, span: Span) -> Site:
        """A change at a span that no node of the tree stands for, by the line where it begins."""
        return Site(name, span, self.line_of(span.start), 1)

    @cached_property
    def tokens(self) -> tuple[tuple[int, int, int], ...]:
        """(token type, start offset, end offset) of comments and strings."""
        found = []
        reader = io.BytesIO(self.data).readline
        for token in whole_strings(tokenize.tokenize(reader)):
            if token.type in (tokenize.COMMENT, tokenize.STRING):
                found.append((token.type, self._at(token.start), self._at(token.end)))
        return tuple(found)

    def _at(self, place: tuple[int, int]) -> int:
        """Byte offset of a tokenize position, whose column counts characters."""
        start = self._starts[place[0] - 1]
        end = self._starts[place[0]] if place[0] < len(self._starts) else len(self.data)
        line = self.data[start:end]
        if line.isascii():
            return start + place[1]
        return start + len(line.decode("utf-8")[: place[1]].encode("utf-8"))

    def encode(self, data: bytes) -> bytes:
        """Text in UTF-8 as the file had it: encoding and byte order mark kept."""
        if self.encoding not in ("utf-8", "utf-8-sig"):
            try:
                return data.decode("utf-8").encode(self.encoding)
            except UnicodeEncodeError:
                return data
        return codecs.BOM_UTF8 + data if self.bom else data


def read(path: str, data: bytes) -> Source:
    """Parse a file.

    Raises:
        Unreadable: binary content, unknown or wrong encoding, Python 2, any other syntax error.
    """
    text, encoding, bom = _decode(path, data)
    utf8 = text.encode("utf-8")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(utf8 if encoding == "utf-8" else text, path)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise _not_python(path, text, error) from error
    starts = (0, *(m.end() for m in _LINE_END.finditer(utf8)))
    first = _LINE_END.search(utf8)
    newline = first.group().decode() if first else "\n"
    return Source(path, utf8, tree, encoding, bom, newline, starts)


def _decode(path: str, data: bytes) -> tuple[str, str, bool]:
    """(text, encoding, whether it began with a byte order mark)"""
    if b"\0" in data:
        raise Unreadable(
            path, "not a text file", "it holds NUL bytes", "leave it out with --exclude"
        )
    bom = data.startswith(codecs.BOM_UTF8)
    body = data[len(codecs.BOM_UTF8) :] if bom else data
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    except SyntaxError as error:
        raise Unreadable(
            path,
            "unknown encoding",
            str(error),
            "save it as UTF-8, or correct the coding line at its top",
        ) from error
    try:
        return body.decode(encoding), encoding.replace("utf-8-sig", "utf-8"), bom
    except UnicodeDecodeError as error:
        raise Unreadable(
            path,
            f"not {encoding} text",
            f"byte 0x{data[error.start]:02x} at offset {error.start}",
            "save it as UTF-8, or name its encoding in a coding line (PEP 263)",
        ) from error


def _not_python(path: str, text: str, error: Exception) -> Unreadable:
    line = getattr(error, "lineno", None) or 1
    where = f"{path}:{line}"
    lines = text.splitlines()
    shown = lines[line - 1].strip()[:80] if 0 < line <= len(lines) else ""
    message = getattr(error, "msg", None) or str(error)
    old = ("Missing parentheses in call to 'print'", "Missing parentheses in call to 'exec'")
    if message.startswith(old) or shown.startswith(("print ", "except ", "exec ", "raise ")):
        return Unreadable(
            where,
            "Python 2 code",
            f"{message}: {shown!r}" if shown else message,
            "bring it to Python 3 first (for example with 2to3), then convert",
        )
    why = f"{message}: {shown!r}" if shown else message
    return Unreadable(
        where, "syntax error", why, "correct the file, or leave it out with --exclude"
    )
