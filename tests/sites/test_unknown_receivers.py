"""A receiver that is not known: the flag names the binding, and its annotation removes the flag."""

from __future__ import annotations

from functools import cache

import pytest

from migrate.mapping import table
from migrate.workspace.project import convert_text


@cache
def rows() -> table.Table:
    return table.load(())


HEAD = "import torch\nimport pandas\nimport lib\n"
# the program, what the flag says is unknown, what it says to write, and where that is written
FORMS = {
    "a parameter": (
        "def f(x):\n    return x.max(0).values\n",
        "parameter x of f (line 4)",
        "x: torch.Tensor",
        ("def f(x)", "def f(x: torch.Tensor)"),
    ),
    "a parameter by keyword": (
        "def f(*, x=None):\n    return x.max(0).values\n",
        "parameter x of f (line 4)",
        "x: torch.Tensor",
        ("*, x=None", "*, x: torch.Tensor = None"),
    ),
    "a parameter of a method": (
        "class A:\n    def f(self, x):\n        return x.max(0).values\n",
        "parameter x of f (line 5)",
        "x: torch.Tensor",
        ("self, x", "self, x: torch.Tensor"),
    ),
    "what a parameter holds": (
        "def f(xs):\n    return xs[0].max(0).values\n",
        "parameter xs of f (line 4)",
        "xs: list[torch.Tensor]",
        ("def f(xs)", "def f(xs: list[torch.Tensor])"),
    ),
    "what a parameter holds by name": (
        "def f(batch):\n    return batch['x'].max(0).values\n",
        "parameter batch of f (line 4)",
        "batch: dict[str, torch.Tensor]",
        ("def f(batch)", "def f(batch: dict[str, torch.Tensor])"),
    ),
    "all that is passed": (
        "def f(*xs):\n    return xs[0].max(0).values\n",
        "parameter *xs of f (line 4)",
        "*xs: torch.Tensor",
        ("def f(*xs)", "def f(*xs: torch.Tensor)"),
    ),
    "a variable": (
        "def f(src):\n    x = src.load()\n    return x.max(0).values\n",
        "variable x of f, bound on line 5",
        "x: torch.Tensor",
        ("x = src", "x: torch.Tensor = src"),
    ),
    "a variable that is bound twice": (
        "def f(src, n):\n    x = src.load()\n    if n:\n        x = src.more(x)\n"
        "    return x.max(0).values\n",
        "variable x of f, bound on lines 5, 7",
        "x: torch.Tensor",
        ("x = src.load", "x: torch.Tensor = src.load"),
    ),
    "a variable of a loop": (
        "def f(src):\n    for x in src.load():\n        print(x.max(0).values)\n",
        "variable x of f, bound on line 5",
        "x: torch.Tensor",
        ("    for x", "    x: torch.Tensor\n    for x"),
    ),
    "a variable of a comprehension": (
        "def f(xs):\n    return [x.max(0).values for x in xs]\n",
        "parameter xs of f (line 4)",
        "xs: list[torch.Tensor]",
        ("def f(xs)", "def f(xs: list[torch.Tensor])"),
    ),
    "a variable that is unpacked": (
        "def f(src):\n    x, y = src.load()\n    return x.max(0).values\n",
        "variable x of f, bound on line 5",
        "x: torch.Tensor",
        ("    x, y", "    x: torch.Tensor\n    x, y"),
    ),
    "a global": (
        "def load(src):\n    return src.get()\nx = load(0)\ndef f():\n    return x.max(0).values\n",
        "the global x, bound on line 6",
        "x: torch.Tensor",
        ("x = load", "x: torch.Tensor = load"),
    ),
    "an attribute": (
        "class A:\n    def __init__(self, src):\n        self.h = src.load()\n"
        "    def f(self):\n        return self.h.max(0).values\n",
        "attribute h of A (line 4), stored in __init__ (line 5)",
        "h: torch.Tensor in the body of A",
        ("class A:\n", "class A:\n    h: torch.Tensor\n"),
    ),
    "an attribute of a base": (
        "class A:\n    def __init__(self, src):\n        self.h = src.load()\n"
        "class B(A):\n    def f(self):\n        return self.h.max(0).values\n",
        "attribute h of B (line 7)",
        "h: torch.Tensor in the body of B",
        ("class B(A):\n", "class B(A):\n    h: torch.Tensor\n"),
    ),
    "the result of a function": (
        "def g(src):\n    return src.load()\ndef f(src):\n    return g(src).max(0).values\n",
        "the result of g (module.py, line 4)",
        "-> torch.Tensor",
        ("def g(src):", "def g(src) -> torch.Tensor:"),
    ),
    "the result of a method": (
        "class A:\n    def g(self, src):\n        return src.load()\n"
        "    def f(self, src):\n        return self.g(src).max(0).values\n",
        "the result of g (module.py, line 5)",
        "-> torch.Tensor",
        ("def g(self, src):", "def g(self, src) -> torch.Tensor:"),
    ),
    "a chain of methods": (
        "def f(x):\n    return x.reshape(2, -1).max(0).values\n",
        "parameter x of f (line 4)",
        "x: torch.Tensor",
        ("def f(x)", "def f(x: torch.Tensor)"),
    ),
    "what an unknown method gives": (
        "def f(src):\n    return src.load().max(0).values\n",
        "src.load() (line 5)",
        "give it a name with a type: y: torch.Tensor = src.load()",
        ("return src.load()", "y: torch.Tensor = src.load()\n    return y"),
    ),
}


@pytest.mark.parametrize("name", FORMS)
def test_the_annotation_removes_the_flag(name: str) -> None:
    text, what, annotation, (old, new) = FORMS[name]
    flags = flagged(HEAD + text)
    assert len(flags) == 1
    assert what in flags[0][0] and flags[0][1] == f"annotate it: {annotation}"
    assert text.count(old) == 1
    assert not flagged(HEAD + text.replace(old, new))


def flagged(text: str) -> list[tuple[str, str]]:
    made = convert_text(text, rows())
    return [(e.reason, e.next_step) for e in made.entries if e.code == "API102"]


@pytest.mark.parametrize(
    ("old", "new"),
    [("def f(x)", "def f(x: list)"), ("def f(x)", "def f(x: pandas.DataFrame)")],
    ids=["a list", "a frame"],
)
def test_another_annotation_makes_no_tensor_of_it(old: str, new: str) -> None:
    text = HEAD + "def f(x):\n    return x.max(0).values\n"
    made = convert_text(text.replace(old, new), rows())
    assert ".max(0).values" in made.text


def test_the_call_that_passes_something_unknown_is_named() -> None:
    moved = "def moved(x):\n    return x.max(0).values\n"
    shown = "def shown(ys, n):\n    return moved(ys)\n"
    run = "def run(src):\n    shown(n=2, ys=src.load(1))\n"
    ((reason, _),) = flagged(HEAD + moved + shown + run)
    assert reason.endswith(":9 passes src.load(1)")
    ((reason, _),) = flagged(HEAD + moved + shown)
    assert reason.endswith(":7 passes ys")
    assert " passes " not in flagged(HEAD + moved)[0][0]
