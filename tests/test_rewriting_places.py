"""In: a torch name in every place where an expression may stand. Out: none is passed over."""

from __future__ import annotations

import ast
from functools import cache

import pytest

from migrate.mapping import table
from migrate.workspace.project import convert_text

# {0} is an expression; every other name is bound in PREFIX.
PREFIX = "import torch\nimport contextlib\n\nitems, key, flag, value = [1], 'a', True, 1\n"
PLACES = {
    "argument": "print({0})",
    "keyword": "print(1, sep={0})",
    "star argument": "print(*[{0}])",
    "double star argument": "dict(**{{'a': {0}}})",
    "list": "z = [{0}]",
    "set": "z = {{{0}}}",
    "dict key": "z = {{{0}: 1}}",
    "dict value": "z = {{'a': {0}}}",
    "tuple": "z = 1, {0}",
    "subscript": "z = {{}}.get(1, {{}}) and items[{0}]",
    "slice": "z = items[:0 if {0} else 1]",
    "stored subscript": "z = {{}}\nz[{0}] = 1",
    "deleted subscript": "z = {{}}\nz.pop({0}, None)",
    "binary operator": "z = 1 if {0} == 2 else 3",
    "boolean operator": "z = flag and {0}",
    "not": "z = not {0}",
    "chained comparison": "z = 1 is not {0} is not 2",
    "conditional expression": "z = {0} if flag else {0}",
    "f-string": "z = f'{{({0})!r}}'",
    "format of an f-string": "z = f'{{value:{{{0} and 1}}}}'",
    "list comprehension": "z = [{0} for i in items if {0}]",
    "iterated": "z = [i for i in [{0}]]",
    "dict comprehension": "z = {{i: {0} for i in items}}",
    "generator": "z = list({0} for i in items)",
    "body of a lambda": "z = lambda a: {0}",
    "default of a lambda": "z = lambda a={0}: a",
    "keyword default of a lambda": "z = lambda *, a={0}: a",
    "default": "def f(a={0}):\n    return a",
    "keyword default": "def f(*, a={0}):\n    return a",
    "default of a method": "class A:\n    def f(self, a={0}):\n        return a",
    "default of an inner function": "def f():\n    def g(a={0}):\n        return a\n    return g",
    "annotation of a parameter": "def f(a: {0}):\n    return a",
    "annotation of a result": "def f(a) -> {0}:\n    return a",
    "annotation of *args": "def f(*a: {0}, **b: {0}):\n    return a",
    "annotation of a variable": "z: {0} = 1",
    "annotation in a class": "class A:\n    z: {0} = {0}",
    "annotation in a function": "def f():\n    z: {0} = 1\n    return z",
    "subscripted annotation": "def f(a: list[{0}]):\n    return a",
    "decorator argument": "def d(a):\n    return lambda f: f\n\n@d({0})\ndef f():\n    pass",
    "class decorator argument": "def d(a):\n    return lambda f: f\n\n@d({0})\nclass A:\n    pass",
    "class keyword": "class A(metaclass=({0}, type)[1]):\n    pass",
    "return": "def f():\n    return {0}",
    "yield": "def f():\n    yield {0}",
    "yield from": "def f():\n    yield from [{0}]",
    "await": "async def f():\n    async def g(a):\n        return a\n    return await g({0})",
    "if": "if {0}:\n    pass",
    "elif": "if not flag:\n    pass\nelif {0}:\n    pass",
    "while": "while not {0}:\n    pass",
    "for": "for z in [{0}]:\n    pass",
    "with": "with contextlib.nullcontext({0}) as z:\n    pass",
    "assert": "assert {0}",
    "assert message": "assert flag, {0}",
    "try": "try:\n    z = {0}\nexcept ValueError:\n    z = {0}\nfinally:\n    z = {0}",
    "exception type": "try:\n    pass\nexcept (ValueError, ({0}, KeyError)[1]):\n    pass",
    "raise": "def f():\n    raise ValueError({0})",
    "match subject": "match {0}:\n    case _:\n        pass",
    "match guard": "match value:\n    case 1 if {0}:\n        pass\n    case _:\n        z = {0}",
    "walrus": "if (z := {0}):\n    pass",
    "augmented assignment": "z = (1,)\nz += ({0},)",
    "several targets": "y = z = {0}",
    "starred": "first, *rest = [{0}, {0}]",
    "statement": "{0}",
    "after a semicolon": "z = 1; z = {0}",
    "nested class": "class A:\n    class B:\n        z = {0}",
    "global": "def f():\n    global z\n    z = {0}",
}
VALUES = {"constant": "torch.float32", "call": "torch.zeros(1)", "function": "torch.sigmoid"}


@cache
def rows() -> table.Table:
    return table.load(())


def left_of_torch(text: str) -> list[str]:
    return [
        f"{node.lineno}: {ast.unparse(node)}"
        for node in ast.walk(ast.parse(text))
        if (isinstance(node, ast.Name) and node.id == "torch")
        or (isinstance(node, ast.Import) and any(a.name == "torch" for a in node.names))
    ]


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("place", PLACES)
def test_a_name_is_found(place: str, value: str) -> None:
    text = PREFIX + PLACES[place].format(VALUES[value]) + "\n"
    if VALUES[value] not in text:
        pytest.fail("the place does not hold the value")
    compile(text, "before.py", "exec")
    made = convert_text(text, rows())
    compile(made.text, "after.py", "exec")
    name = VALUES[value].removesuffix("(1)")
    asked = text.count(VALUES[value])
    assert not left_of_torch(made.text)
    assert [e.name for e in made.entries].count(name) == asked


def test_a_name_in_a_pattern_is_found() -> None:
    text = "import torch\n\nmatch 1:\n    case torch.float32:\n        z = 1\n"
    made = convert_text(text, rows())
    assert "case ms.float32:" in made.text
    assert not left_of_torch(made.text)


def test_a_name_that_is_left_is_seen() -> None:
    assert left_of_torch("import torch\nz = torch.zeros(1)\n") == ["1: import torch", "2: torch"]
