"""Every expression in every place keeps its meaning when it is written there; calls keep layout."""

from __future__ import annotations

import ast

import pytest

from migrate.codegen.rewriter import emit
from migrate.codegen.substitution import piece
from migrate.records.outcomes import Edit, Outcome, Piece, Site, Span
from migrate.syntax.source import Source, read
from migrate.workspace.project import convert_text

# "X" is the place
PLACES = (
    "X.a", "X[i]", "a[X]", "a[X:]", "X(b)", "f(X)", "f(k=X)", "f(*X)", "f(**X)", "f(b, X)",
    "-X", "not X", "X + a", "a - X", "a ** X", "X ** a", "X @ a", "X < a", "a in X", "X is a",
    "X and a", "a or X", "X if a else b", "a if X else b", "a if b else X", "lambda: X",
    "[X]", "(X, a)", "{X}", "{X: a}", "{a: X}", "[X for a in b]", "[a for a in X]",
    "[a for a in b if X]", "{a: X for a in b}", "(a for b in X)", "f'{X}'", "(a := X)", "X",
)  # fmt: skip
EXPRESSIONS = (
    "n", "1", "-1", "1.5", "True", "'s'", "x.y", "x()", "x[0]", "-x", "not x", "x + y", "x ** y",
    "x < y", "x and y", "x or y", "x if y else z", "lambda: x", "lambda u: u", "[x]", "(x, y)",
    "{x}", "(x for x in y)", "[x for x in y]", "(w := x)", "x,", "(x), (y)", "(yield x)",
)  # fmt: skip


def fitting(place: str) -> list[str]:
    """The expressions for a place: no quote fits into the quotes of an f-string."""
    return [e for e in EXPRESSIONS if "'" not in e or "'" not in place]


def tree_of(place: str, expression: str) -> str:
    """The tree of a place with the tree of an expression in it."""

    class Filling(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.expr:
            return ast.parse(f"({expression})", mode="eval").body if node.id == "X" else node

    return ast.dump(Filling().visit(ast.parse(place, mode="eval").body))


def edit(source: Source, node: ast.expr, *parts: str | Piece) -> Edit:
    return Edit(source.site("name", node), Outcome.CONVERTED, parts)


def call_in(tree: ast.AST, name: str) -> ast.Call:
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call)]
    return next(c for c in calls if getattr(c.func, "id", "") == name)


def written(source: Source, *edits: Edit) -> str:
    text = emit(source, edits).data.decode()
    return ast.dump(ast.parse(text).body[0].value)  # type: ignore[attr-defined]


@pytest.mark.parametrize("place", PLACES)
def test_an_expression_that_is_moved(place: str) -> None:
    for expression in fitting(place):
        source = read("m.py", f"value = old(({expression}), 1)".encode())
        call = call_in(source.tree, "old")
        before, after = place.split("X")
        made = written(source, edit(source, call, before, piece(source, call.args[0]), after))
        assert made == tree_of(place, expression), (place, expression)


@pytest.mark.parametrize("place", PLACES)
def test_an_expression_that_takes_the_place_of_another(place: str) -> None:
    for expression in fitting(place):
        source = read("m.py", f"value = {place.replace('X', 'old()')}".encode())
        call = call_in(source.tree, "old")
        bare = expression.startswith("(yield") or expression in ("x,", "(x), (y)", "(w := x)")
        new = f"({expression})" if bare else expression
        assert written(source, edit(source, call, new)) == tree_of(place, expression), (
            place,
            expression,
        )


@pytest.mark.parametrize("place", PLACES)
def test_an_expression_that_becomes_another_and_is_moved(place: str) -> None:
    for expression in fitting(place):
        if expression in ("x,", "(x), (y)", "(w := x)"):
            continue
        source = read("m.py", b"value = outer(old())")
        outer, old = call_in(source.tree, "outer"), call_in(source.tree, "old")
        before, after = place.split("X")
        inner = edit(source, old, expression)
        made = written(source, edit(source, outer, before, piece(source, old), after), inner)
        assert made == tree_of(place, expression), (place, expression)


def test_lines_that_lose_their_brackets_get_others() -> None:
    source = read("m.py", b"value = old(a +\n            b) + [\n    old(c)]\n")
    first, second = (n for n in ast.walk(source.tree) if isinstance(n, ast.Call))
    edits = [edit(source, n, piece(source, n.args[0]), ".x") for n in (first, second)]
    text = emit(source, edits).data.decode()
    assert text == "value = (a +\n            b).x + [\n    c.x]\n"


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("torch.cat( (a, b),1 )", "ops.cat( (a, b),1)"),
        ("torch.relu(\n        a,  # why\n    )", "ops.relu(\n        a,  # why\n    )"),
        ("torch.sum(a,\n        dim = 1)", "ops.sum(a,\n        dim=1)"),
        ("torch.relu((  # first\n        a))", "ops.relu(a)"),
    ],
)
def test_a_call_keeps_its_layout(before: str, after: str, newline: str) -> None:
    text = f"import torch\n\n\ndef f(a, b):\n    return {before}\n".replace("\n", newline)
    made = convert_text(text).text
    assert after.replace("\n", newline) in made
    assert "\r\n" not in made.replace(newline, "")


def test_a_whole_is_copied_where_nothing_changes() -> None:
    data = "x = 'ü'  # a\r\nif x :\r\n\ty= x ;z=1\r\n".encode()
    assert emit(read("m.py", data), []).data == data


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("first", [0, 1])
def test_what_goes_behind_a_statement_stands_before_what_goes_behind_its_block(
    newline: str, first: int
) -> None:
    text = newline.join(("if a:", "    b()", ""))
    source, end = read("m.py", text.encode()), text.rindex(")") + 1
    both = [
        Edit(Site("a", Span(end, end), 1, 1), Outcome.CONVERTED, (newline, "", "outer()")),
        Edit(Site("b", Span(end, end), 2, 5), Outcome.CONVERTED, (newline, "    ", "inner()")),
    ]
    made = emit(source, [both[first], both[1 - first]]).data.decode()
    assert made.split(newline) == ["if a:", "    b()", "    inner()", "outer()", ""]
