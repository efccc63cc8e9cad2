"""In: rows of a user's own mappings. Out: calls as docs/table.md says that such rows write them."""

from __future__ import annotations

import ast

import pytest

from migrate.mapping import table
from migrate.records.outcomes import Outcome
from migrate.workspace.project import ConvertedText, convert_text

SIGNATURE = "signature = \"f(x, n=1, mode='a') -> Tensor\"\n"


@pytest.fixture(scope="module")
def convert(tmp_path_factory: pytest.TempPathFactory):
    """Convert one call with one row: convert(row, call)."""

    def call(row: str, source: str) -> ConvertedText:
        path = tmp_path_factory.mktemp("rows") / "demo.toml"
        path.write_text(row)
        text = f"import demo\n\ndef use(a, b, x):\n    return {source}\n"
        return convert_text(text, table.load((path,)))

    return call


def returned(made: ConvertedText) -> str:
    return made.text.rpartition("return ")[2].strip()


def meaning(expression: str) -> str:
    return ast.dump(ast.parse(expression))


def test_a_literal_needs_no_parentheses(convert) -> None:
    made = convert(f'["demo.f"]\n{SIGNATURE}to = "x ** n"\ndrop = ["mode"]\n', "demo.f(a, 2)")
    assert returned(made) == "a ** 2"


def test_the_text_of_an_argument_is_not_changed(convert) -> None:
    row = f'["demo.f"]\n{SIGNATURE}to = "x + n"\ndrop = ["mode"]\n'
    assert returned(convert(row, "demo.f(a  [ 0 ], b  .c)")) == "a  [ 0 ] + b  .c"


@pytest.mark.parametrize(
    ("template", "source", "result"),
    [
        # an argument under an operator keeps what it means
        ("x * n", "demo.f(a + b, a - b)", "(a + b) * (a - b)"),
        ("x * n", "demo.f(a, b)", "a * b"),
        ("x * n", "demo.f(a)", "a * 1"),
        ("-x + n", "demo.f(a if b else x, 2)", "-(a if b else x) + 2"),
        ("x ** n", "demo.f(-a, 2)", "(-a) ** 2"),
        ("x - n", "demo.f(a, b - 1)", "a - (b - 1)"),
        ("x.sum() + n", "demo.f(a + b, 2)", "(a + b).sum() + 2"),
        ("x.sum() + n", "demo.f(lambda: a, 2)", "(lambda: a).sum() + 2"),
        ("x[n]", "demo.f(a, (k := 1))", "a[(k := 1)]"),
        # omitted arguments have their defaults where they are used under an operator
        ("x.sum(n)", "demo.f(a)", "a.sum(1)"),
        ("x.sum(n)", "demo.f(a, n=b)", "a.sum(dim=b)"),
        # text of arguments is taken as it stands
        ("x + n", "demo.f( a [ 0 ] , 'q' )", "a [ 0 ] + 'q'"),
        # by name and in another order
        ("x - n", "demo.f(n=a, x=b)", "b - a"),
    ],
)
def test_expression(convert, template: str, source: str, result: str) -> None:
    row = f'["demo.f"]\n{SIGNATURE}to = "{template}"\ndrop = ["mode"]\n'
    if "n" not in template.replace("sum", ""):
        row = row.replace('["mode"]', '["mode", "n"]')
    made = convert(row, source)
    assert meaning(returned(made)) == meaning(result)
    assert [e.outcome for e in made.entries if e.name == "demo.f"] == [Outcome.CONVERTED]


@pytest.mark.parametrize(
    ("source", "result"),
    [
        ("demo.f(demo.h(a), demo.f(x, b))", "(not a) * (x * b)"),
        ("demo.g(demo.f(a, b))", "(a * b).sum()"),
        ("demo.g((demo.f(a, b)))", "(a * b).sum()"),
        ("-demo.h(a)", "-(not a)"),
        ("not demo.h(a)", "not not a"),
        ("[demo.h(a) for a in demo.f(a, b)]", "[not a for a in a * b]"),
        ("a + demo.h(b)", "a + (not b)"),
        ("(demo.h(a)).extra", "(not a).extra"),
        ("demo.g(((a), (b)))", "((a), (b)).sum()"),
        ("demo.h(2).extra", "(not 2).extra"),
        # nothing is put around what needs nothing
        ("demo.h(a == b)", "not a == b"),
        ("a, demo.h(b)", "a, not b"),
    ],
)
def test_a_new_expression_inside_another_keeps_what_it_means(
    convert, source: str, result: str
) -> None:
    row = (
        f'["demo.f"]\n{SIGNATURE}to = "x * n"\ndrop = ["mode"]\n'
        '["demo.g"]\nsignature = "g(x) -> Tensor"\nto = "x.sum()"\n'
        '["demo.h"]\nsignature = "h(x) -> Tensor"\nto = "not x"\n'
    )
    made = convert(row, source)
    assert meaning(returned(made)) == meaning(result)


@pytest.mark.parametrize(
    ("only", "source", "flagged"),
    [
        ("only = { mode = \"'a'\" }", "demo.f(a)", False),
        ("only = { mode = \"'a'\" }", "demo.f(a, 1, 'a')", False),
        ("only = { mode = \"'a'\" }", "demo.f(a, mode='b')", True),
        ("only = { mode = \"'a'\" }", "demo.f(a, mode=b)", True),
        ("only = { mode = [\"'a'\", \"'b'\"] }", "demo.f(a, mode='b')", False),
        ("only = { mode = [\"'a'\", \"'b'\"] }", "demo.f(a, mode='c')", True),
        ('drop = ["mode"]', "demo.f(a, mode='c')", False),
        ('drop = ["mode"]', "demo.f(a, 1, 'a', 4)", True),
        ('drop = ["mode"]', "demo.f(a, nothing=4)", True),
        ('drop = ["mode"]', "demo.f()", True),
        ('drop = ["mode"]', "demo.f(a, x=b)", True),
        ('drop = ["mode"]', "demo.f(*a)", True),
        ('drop = ["mode"]', "demo.f(a, **b)", True),
    ],
)
def test_what_a_row_admits(convert, only: str, source: str, flagged: bool) -> None:
    made = convert(f'["demo.f"]\n{SIGNATURE}to = "x + n"\n{only}\n', source)
    assert any(e.outcome is Outcome.FLAGGED for e in made.entries) == flagged
    assert ("raise NotImplementedError" in made.text) == flagged


def test_a_call_with_names_of_its_own(convert) -> None:
    row = (
        '["demo.f"]\nsignature = "f(x, n=1, *, mode=2) -> Tensor"\n'
        'to = "mindspore.ops.clamp(x, min=n, max=mode)"\n'
    )
    made = convert(row, "demo.f(a, mode=3)")
    assert returned(made) in ("ops.clamp(a, min=1, max=3)", "ops.clamp(a, 1, 3)")


def test_the_first_variant_that_admits_the_call_wins(convert) -> None:
    row = (
        f'["demo.f"]\n{SIGNATURE}to = "x - n"\nonly = {{ mode = "\'a\'" }}\n'
        f'["demo.f:other"]\n{SIGNATURE}to = "x + n"\nonly = {{ mode = "\'b\'" }}\n'
    )
    assert returned(convert(row, "demo.f(a, b)")) == "a - b"
    assert returned(convert(row, "demo.f(a, b, 'b')")) == "a + b"
    assert any(e.outcome is Outcome.FLAGGED for e in convert(row, "demo.f(a, b, 'c')").entries)


def test_a_condition_on_what_is_given(convert) -> None:
    row = (
        f'["demo.f"]\n{SIGNATURE}to = "x - n"\ndrop = ["mode"]\nwhen = {{ n = "given" }}\n'
        f'["demo.f:other"]\n{SIGNATURE}to = "+x"\ndrop = ["mode", "n"]\n'
        'when = { n = "omitted" }\n'
    )
    assert returned(convert(row, "demo.f(a, b)")) == "a - b"
    assert returned(convert(row, "demo.f(a)")) == "+a"


def test_variadic_arguments(convert) -> None:
    row = '["demo.f"]\nsignature = "f(x, *n) -> Tensor"\nto = "mindspore.ops.tile(x, n)"\n'
    for call, result in (("2, 3", "(2, 3)"), ("2", "(2,)")):
        made = returned(convert(row, f"demo.f(a, {call})"))
        assert made == f"ops.tile(a, {result})"


@pytest.mark.parametrize("source", ["demo.f(a)", "demo.f"])
def test_a_refusal_of_the_row(convert, source: str) -> None:
    row = f'["demo.f"]\n{SIGNATURE}flag = "API104"\nreason = "no such thing"\nnext = "leave it"\n'
    entry = next(e for e in convert(row, source).entries if e.outcome is Outcome.FLAGGED)
    assert (entry.code, entry.reason, entry.next_step) == ("API104", "no such thing", "leave it")
    assert (entry.line, entry.column) == (4, 12)


def test_a_note_goes_to_the_report_only(convert) -> None:
    row = f'["demo.f"]\n{SIGNATURE}to = "x + n"\ndrop = ["mode"]\nnote = "Slower."\n'
    made = convert(row, "demo.f(a, 1)")
    assert [e.note for e in made.entries if e.name == "demo.f"] == ["Slower."]
    assert "Slower" not in made.text
