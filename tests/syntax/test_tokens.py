"""Tokens of a part of a file: texts, places, and the questions that rules ask of them."""

from __future__ import annotations

import ast
import io
import tokenize

import pytest

from migrate.records.outcomes import Span
from migrate.syntax import lines
from migrate.syntax.source import read, whole_strings

TEXTS = [
    "x = 1  # é: else\ny = [\n    'ü', 2,  # ,\n]\n",
    "for i in a:\n    pass  # else\n# else:\nelse:\n    b = 'else'\n",
    "f = lambda x, s=':': (\n    x\n)\n",
    "def g(a, /, b={':': 1}):  # :\n\treturn a \\\n\t\t+ b\r\n",
    "é = f'a{{b}} {x!r:>{10}} # no' + rf'{x}', f\"\"\"{\n  x  + len(f'{x}')\n} é {{}}\"\"\"  # é\n",
]


@pytest.mark.parametrize("text", TEXTS)
def test_every_token_lies_where_its_text_is(text: str) -> None:
    source = read("a.py", text.encode())
    found = [t for s in source.tree.body for t in source.lexed(source.span(s))]
    assert len(found) > 5
    assert all(source.text(t.span) == t.text for t in found)


def test_a_word_in_a_string_or_comment_is_no_token() -> None:
    source = read("a.py", TEXTS[1].encode())
    loop = source.tree.body[0]
    assert isinstance(loop, ast.For)
    end, start = source.span(loop.body[-1]).end, source.span(loop.orelse[0]).start
    word = lines.token(source, end, start, "else")
    assert word is not None and source.line_of(word.start) == 4


def test_a_colon_of_a_default_is_not_that_of_the_lambda() -> None:
    source = read("a.py", TEXTS[2].encode())
    made = source.tree.body[0]
    assert isinstance(made, ast.Assign) and isinstance(made.value, ast.Lambda)
    behind = source.span(made.value.args.defaults[0]).end
    colon = lines.token(source, behind, source.span(made.value.body).start, ":")
    assert colon is not None and source.text(Span(colon.start, colon.end + 2)) == ": ("


def test_a_function_in_parentheses_has_no_bracket_behind_it() -> None:
    source = read("a.py", b"f(x); (f)(x); f (x)\n")
    calls = [s.value for s in source.tree.body if isinstance(s, ast.Expr)]
    found = [lines.opening(source, c) for c in calls if isinstance(c, ast.Call)]
    assert found == [Span(1, 2), None, Span(16, 17)]


def test_an_f_string_is_one_string_and_holds_no_comment() -> None:
    source = read("a.py", TEXTS[-1].encode())
    strings = [source.text(Span(a, b)) for kind, a, b in source.tokens if kind == tokenize.STRING]
    assert [s[:6] for s in strings] == ["f'a{{b", "rf'{x}", 'f"""{\n']
    assert [kind for kind, _, _ in source.tokens].count(tokenize.COMMENT) == 1


def test_the_parts_of_newer_pythons_are_joined() -> None:
    """Brackets stand for the beginnings and ends that Python 3.12 gives."""
    plain = list(tokenize.generate_tokens(io.StringIO("x = (a + (b) + c) + d\n").readline))
    marked = [t._replace(type={"(": 90, ")": 91}.get(t.string, t.type)) for t in plain]
    found = [t for t in whole_strings(marked, (90,), (91,)) if t.start != t.end]
    assert [t.string for t in found[:3]] == ["x", "=", ""]
    assert found[2].type == tokenize.STRING
    assert (found[2].start, found[2].end) == ((1, 4), (1, 17))
    assert [t.string for t in found[3:5]] == ["+", "d"]
