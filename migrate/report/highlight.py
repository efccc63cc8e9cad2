"""In: Python text. Out: its lines as escaped HTML with short classes for the kinds of token."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

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
        lines[-1].append(Token(_kind(kind), first))
        lines.extend([Token(_kind(kind), part)] for part in rest)
    if lines and not any(token.text for token in lines[-1]):
        lines.pop()
    return tuple(tuple(token for token in line if token.text) for line in lines)


def _lines(text: str) -> list[str]:
    return text.removesuffix("\n").split("\n") if text else []


def _kind(token: _TokenType) -> str:
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
