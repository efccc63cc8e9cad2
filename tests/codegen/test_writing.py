"""Every expression in every place keeps its meaning when it is written there; calls keep layout."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from migrate.codegen.rewriter import emit
from migrate.codegen.substitution import added, piece
from migrate.records.outcomes import Edit, Outcome, Part, Piece, Site, Span
from migrate.syntax.lines import first_start, statements
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


def removal(source: Source, node: ast.AST) -> Edit:
    site, end = source.site("name", node), source.span(node).end
    start = first_start(source, node) if isinstance(node, ast.stmt) else site.span.start
    return Edit(site.at(Span(start, end)), Outcome.CONVERTED, ())


@pytest.mark.parametrize(
    ("before", "gone", "after"),
    [
        ("y = f(a, b)\n", "b", "y = f(a)\n"),
        ("y = f(a, b)\n", "a", "y = f(b)\n"),
        ("y = f(a,  # first\n      b)\n", "b", "# first\ny = f(a)\n"),
        ("y = x[a, b]\n", "b", "y = x[a]\n"),
        ("y = [a, b, ]\n", "b", "y = [a, ]\n"),
        ("if (a and\n        b):\n    y = 1\n", "a", "if (b):\n    y = 1\n"),
        ("y = (a or b) and c\n", "b", "y = (a) and c\n"),
    ],
)
def test_what_is_taken_away_goes_with_its_comma_or_word(before: str, gone: str, after: str) -> None:
    source = read("m.py", before.encode())
    names = (n for n in ast.walk(source.tree) if isinstance(n, ast.Name) and n.id == gone)
    made = emit(source, [removal(source, next(names))])
    comments = "".join(f"{source.text(span)}\n" for span in made.lost)
    assert comments + made.data.decode() == after


BLOCK = """\
def f(a):
    with g():  # why
        # above
        y = call(
            a,
        )  # behind

        if y:
            z = \"\"\"
kept\"\"\"
        # end
    return y
"""
MOVED = """\
def f(a):
    # why
    # above
    y = call(
        a,
    )  # behind

    if y:
        z = \"\"\"
kept\"\"\"
    # end
    return y
"""


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_a_block_that_moves_brings_its_comments_and_has_the_new_indentation(newline: str) -> None:
    source = read("m.py", BLOCK.replace("\n", newline).encode())
    block = next(n for n in ast.walk(source.tree) if isinstance(n, ast.With))
    parts = (statements(source, block.body),)
    made = emit(source, [Edit(source.site("name", block), Outcome.CONVERTED, parts)])
    wanted = MOVED.replace("\n", newline)
    # what is in a text stays as it is
    assert made.data.decode() == wanted and not made.lost and not made.failed


def test_a_block_that_loses_everything_keeps_pass_and_comments_behind_what_is_replaced() -> None:
    source = read("m.py", b"if a:\n    # one\n    b = 1  # two\n    c = 2\nd = 3  # three\n")
    found = [n for n in ast.walk(source.tree) if isinstance(n, ast.Assign)]
    by_name = {ast.unparse(n.targets[0]): n for n in found}
    edits = [removal(source, by_name["b"]), removal(source, by_name["c"])]
    edits.append(Edit(source.site("name", by_name["d"]), Outcome.CONVERTED, ("d = 4\ne = 5",)))
    text = emit(source, edits).data.decode()
    assert text == "if a:\n    # one\n    pass\n    # two\nd = 4\ne = 5  # three\n"


def test_a_text_that_is_no_python_is_left_out_and_told() -> None:
    source = read("m.py", b"y = f(a)\n")
    call = call_in(source.tree, "f")
    made = emit(source, [edit(source, call, "g(")])
    assert made.data == source.data
    assert [offset for offset, _ in made.failed] == [4]


SAMPLES = sorted((Path(__file__).parents[2] / "samples").rglob("torch/*.py"))


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_statements_without_an_edit_keep_their_bytes(path: Path) -> None:
    """Every second statement is taken away: all that is left is copied."""
    source = read("m.py", path.read_bytes())
    body = source.tree.body
    text = emit(source, [removal(source, node) for node in body[::2]]).data.decode()
    left = [ast.get_source_segment(source.data.decode(), node) for node in body[1::2]]
    assert all(segment in text for segment in left if segment)
    ast.parse(text)


def test_a_comment_in_two_calls_that_become_alike_is_not_lost() -> None:
    source = read("m.py", b"y = f(\n    a,  # why\n)\nz = g(\n    a,  # why\n)\n")
    calls = [n for n in ast.walk(source.tree) if isinstance(n, ast.Call)]
    text = "h(\n    b,  # why\n)"
    made = emit(source, [edit(source, call, text) for call in calls])
    assert made.data.decode() == f"y = {text}\nz = {text}\n" and not made.lost


@pytest.mark.parametrize(
    ("before", "part", "text", "after"),
    [
        ("class A: pass\n", Part.BASE, "B", "class A(B): pass\n"),
        ("class A(): pass\n", Part.BASE, "B", "class A(B): pass\n"),
        ("@d\nclass A(C, m=M): pass\n", Part.BASE, "B", "@d\nclass A(C, B, m=M): pass\n"),
        ("from a.b import c  # d\n", Part.MODULE, "..e.f", "from ..e.f import c  # d\n"),
        ("from . import c\n", Part.MODULE, "e", "from e import c\n"),
        ("f(a)\n", Part.FIRST, "b", "f(b, a)\n"),
        ("f(a for a in x)\n", Part.FIRST, "b", "f(b, (a for a in x))\n"),
        ("f()\n", Part.LAST, "b=1", "f(b=1)\n"),
        ("f(\n    a,\n)\n", Part.LAST, "b=1", "f(\n    a,\n    b=1,\n)\n"),
        ("f(a)\n", Part.TARGET, "x", "x = f(a)\n"),
        ("y = (\n    f(a)  # why\n)\n", Part.TARGET, "x", "y = x = (\n    f(a)  # why\n)\n"),
        ("def f(a, /): pass\n", Part.SLASH, "", "def f(a): pass\n"),
        ("def f(a, /, b=1, *c): pass\n", Part.SLASH, "", "def f(a, b=1, *c): pass\n"),
        ("def f(a, b): pass\n", Part.SECOND, "c", "def f(a, c, b): pass\n"),
        ("def f(*a): pass\n", Part.PARAMETER, "self", "def f(self, *a): pass\n"),
        ("def f(a, *, b): pass\n", Part.PARAMETERS, "c, d", "def f(c, d): pass\n"),
        ("def f(a): pass\n", Part.DECORATOR, "d(1)", "@d(1)\ndef f(a): pass\n"),
        ("if a: f(a)  # why\n", Part.LINES, "", "if a:\n    f(a)  # why\n"),
        ("b = 1; f(a)\n", Part.BEFORE, "c = 2", "b = 1; c = 2; f(a)\n"),
        ("f(a); b = 1\n", Part.BEFORE, "c = 2", "c = 2\nf(a); b = 1\n"),
        ("b = 1; f(a)  # why\n", Part.BEHIND, "c = 2", "b = 1; f(a)  # why\nc = 2\n"),
        ("if a: f(a)  # why\n", Part.BEHIND, "c = 2", "if a: f(a); c = 2  # why\n"),
        (
            "if a:\n    # above\n    f(a)  # why\n",
            Part.BEFORE,
            "if b:\n    c = 2",
            "if a:\n    # above\n    if b:\n        c = 2\n    f(a)  # why\n",
        ),
        (
            "if a:\n    f(a)  # why\n\nb = 1\n",
            Part.BEHIND,
            "c = '''\nd'''",
            "if a:\n    f(a)  # why\n    c = '''\nd'''\n\nb = 1\n",
        ),
    ],
)
def test_a_part_of_a_node_is_changed(before: str, part: Part, text: str, after: str) -> None:
    source = read("m.py", before.encode())
    of: type[ast.AST] = ast.Expr
    if part is Part.BASE:
        of = ast.ClassDef
    elif part in (Part.FIRST, Part.LAST):
        of = ast.Call
    elif part in (Part.SLASH, Part.SECOND, Part.PARAMETER, Part.PARAMETERS, Part.DECORATOR):
        of = ast.FunctionDef
    elif part in (Part.TARGET, Part.MODULE):
        of = ast.stmt
    inner = [n for n in ast.walk(source.tree) if isinstance(n, of) and n is not source.tree]
    called = [n for n in inner if of is not ast.Expr or isinstance(n.value, ast.Call)]  # type: ignore[attr-defined]
    made = emit(source, [added(source, source.site("name", called[0]), called[0], part, text)])
    assert made.data.decode() == after and not made.lost and not made.failed


def test_an_operand_goes_behind_the_others_of_its_chain() -> None:
    source = read("m.py", b"y = (a and f(b)\n     and c and (d or e))\n")
    call = call_in(source.tree, "f")
    last = added(source, source.site("name", call), call, Part.OPERAND)
    made = emit(source, [edit(source, call, "g()"), last])
    assert made.data.decode() == "y = (a and c\n     and (d or e) and g())\n"


@pytest.mark.parametrize(
    "end",
    [
        "\n\n\n  \n",
        "\n\n   ",
        "\r\n\r\n  \r\n",
        "\n\nif y:\n    y\n\n        # here\n        # too\n",
    ],
)
def test_white_space_and_comments_at_the_end_stay(end: str) -> None:
    source = read("m.py", f"y = f(1){end}".encode())
    call = next(n for n in ast.walk(source.tree) if isinstance(n, ast.Call))
    assert emit(source, [edit(source, call, "g(2)")]).data.decode() == f"y = g(2){end}"
