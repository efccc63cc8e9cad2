"""Strings and comments of a file, and the places of names."""

from __future__ import annotations

import ast
import io
import tokenize

import pytest

from migrate.records.outcomes import Span
from migrate.syntax.source import read, whole_strings

TEXT = (
    "é = f'a{{b}} {x!r:>{10}} # no' + rf'{x}', f\"\"\"{\n  x  + len(f'{x}')\n} é {{}}\"\"\"  # é\n"
)


def test_an_f_string_is_one_string_and_holds_no_comment() -> None:
    source = read("a.py", TEXT.encode())
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


@pytest.mark.parametrize(
    "text",
    ["def  é(é=1): pass", "async \\\n def é(): pass", "class\té: pass", "(é\n.é)", "lambda é=2: é"],
)
def test_the_name_of_a_definition_parameter_or_attribute_is_found(text: str) -> None:
    source = read("a.py", text.encode())
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Attribute, ast.arg)
    for node in ast.walk(source.tree):
        if isinstance(node, kinds):
            assert source.text(source.name_span(node)) == "é"
