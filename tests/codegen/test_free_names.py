"""In: top-level statements. Out: the names of their module in them, as Python's own tables say."""

from __future__ import annotations

import ast
import symtable
from pathlib import Path

import pytest

from migrate.codegen import helper_copy
from migrate.codegen.helper_copy import free_names

ROOT = Path(__file__).parents[2] / "migrate"


def by_symtable(text: str) -> set[str]:
    """The names that are the module's, in any scope of the text."""
    pending, found = [symtable.symtable(text, "text.py", "exec")], set()
    while pending:
        table = pending.pop()
        pending += table.get_children()
        for symbol in table.get_symbols():
            if table.get_type() == "module":
                found |= {symbol.get_name()} if symbol.is_referenced() else set()
            elif symbol.is_global():
                found.add(symbol.get_name())
    return found


def ours(statement: ast.stmt) -> set[str]:
    return {node.id for node in free_names(statement)}


@pytest.mark.parametrize(
    "text",
    [
        "def pad(x: T, pad=D, *a, k=K, **o):\n    y = pad[0]; return q(y, o, [i * z for i in w])",
        "def f():\n    global g\n    g = 1\n    def inner(): return g, v\n    return inner",
        "def f(x):\n    try: h()\n    except E as x: x\n    import os\n    with o as (a, *b): b",
        "def f():\n    return [(i, j, n) for i in rows for j in i if (m := j)], m",
        "f(lambda x, y=z: x + y + z)",
        "class A(B, metaclass=M):\n    def m(self, c=d): return c, e, A",
    ],
)
def test_scopes(text: str) -> None:
    assert ours(ast.parse(text).body[0]) == by_symtable(text)


def test_variables_of_a_class_are_none_of_its_methods() -> None:
    (node,) = ast.parse("class A:\n    c = 1\n    e = c\n    def m(self): return c").body
    assert [name.lineno for name in free_names(node) if name.id == "c"] == [4]


@pytest.mark.parametrize("path", sorted(ROOT.rglob("*.py")), ids=lambda p: p.name)
def test_our_own_files(path: Path) -> None:
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef):
            assert ours(node) == by_symtable(ast.unparse(node)), node.name


def test_an_argument_that_is_named_like_a_helper_is_no_use_of_it() -> None:
    pad, shape = (helper_copy.library()[name] for name in ("pad_with", "padded_shape"))
    assert "pad" not in (*pad.uses, *shape.uses)
    text, _ = helper_copy.inline(["pad"], {"pad": "torch_pad"})
    assert "def torch_pad(input, pad, mode=" in text
    assert "pad[2 * i]" in text and "torch_pad[" not in text
