"""Effects of functions and components of the call graph, on programs of a few lines."""

from __future__ import annotations

from textwrap import dedent

import pytest

from migrate.analysis import index
from migrate.analysis.summaries import ANY, Effects, Summaries
from migrate.syntax.source import read


def effects(text: str, name: str, *, other: str = "") -> Effects:
    sources = {"net.py": read("net.py", dedent(text).encode())}
    if other:
        sources["other.py"] = read("other.py", dedent(other).encode())
    program = index.build(sources)
    (function,) = [f for key, f in program.functions.items() if key.endswith(f"::{name}")]
    return Summaries(program).of(function)


RESET = """
class Net:
    def reset(self):
        self.h = []

    def step(self, x):
        self.reset()
        return x

class Sub(Net):
    def reset(self):
        self.other = []
"""


@pytest.mark.parametrize(
    ("text", "name", "parameter", "written"),
    [
        (RESET, "Net.step", "self", {"h", "other"}),
        ("def f(net):\n    net.h = 1\n", "f", "net", {"h"}),
        ("def f(net, name):\n    setattr(net, name, 1)\n", "f", "net", {ANY}),
        ("def f(net):\n    setattr(net, 'h', 1)\n", "f", "net", {"h"}),
        ("def g(n):\n    n.h = 1\ndef f(net):\n    g(net)\n", "f", "net", {"h"}),
        ("def g(n):\n    n.append(1)\ndef f(net):\n    g(net.layers)\n", "f", "net", set()),
        ("def f(net):\n    return net.h\n", "f", "net", set()),
        ("def f(net):\n    net.layers.append(1)\n", "f", "net", {"layers"}),
    ],
)
def test_attributes_of_parameters(text: str, name: str, parameter: str, written: set[str]) -> None:
    assert effects(text, name).attributes.get(parameter, frozenset()) == written


def test_attributes_of_what_is_no_parameter() -> None:
    found = effects("def g(n):\n    n.append(1)\ndef f(net):\n    g(net.layers)\n", "f")
    assert found.elsewhere == {"layers"} and found.mutated == {"net"}
    assert effects("def f():\n    net = make()\n    net.h = 1\n", "f").elsewhere == {"h"}


def test_a_new_object_is_nobody_elses() -> None:
    text = "class A:\n    def __init__(self):\n        self.h = 1\ndef f():\n    return A()\n"
    assert effects(text, "f").written == set()


@pytest.mark.parametrize(
    ("body", "mutated"),
    [
        ("xs.append(1)", {"xs"}),
        ("xs[0] = 1", {"xs"}),
        ("ys = xs\n    ys.append(1)", {"xs"}),
        ("for y in xs:\n        y.append(1)", {"xs"}),
        ("xs += [1]", {"xs"}),
        ("xs.add_(1)", {"xs"}),
        ("del xs[0]", {"xs"}),
        ("xs = xs + [1]", set()),
        ("n = len(xs)\n    return n", set()),
        ("return xs[0]", set()),
    ],
)
def test_contents_of_parameters(body: str, mutated: set[str]) -> None:
    assert effects(f"def f(xs):\n    {body}\n", "f").mutated == mutated


def test_names_of_outer_scopes() -> None:
    text = "n = 0\ndef f():\n    global n\n    n = 1\ndef g():\n    f()\n"
    assert effects(text, "g").rebound == {("net.py", "n")}
    text = "def f():\n    n = 0\n    def g():\n        nonlocal n\n        n = []\n    g()\n"
    assert effects(text, "f").rebound == set()
    assert {name for _, name in effects(text, "f.<locals>.g").rebound} == {"n"}


def test_returned_and_escaping() -> None:
    found = effects("def f(a, b, c):\n    b.x = c\n    return a[0]\n", "f")
    assert found.returned == {"a"} and found.escaping == {"c"}
    found = effects("def f(a):\n    def g():\n        return a\n    return g\n", "f")
    assert found.escaping == {"a"}


def test_mutual_recursion_and_another_file() -> None:
    text = "from other import g\ndef f(xs, n):\n    if n:\n        g(xs, n - 1)\n"
    other = "from net import f\ndef g(ys, n):\n    ys.append(0)\n    f(ys, n)\n"
    assert effects(text, "f", other=other).mutated == {"xs"}


def test_code_out_of_sight() -> None:
    text = "n = 0\ndef note(x):\n    global n\n    n = x\ndef f(fn, x):\n    fn(x)\nf(note, 1)\n"
    found = effects(text, "f")
    assert found.unknown and "x" in found.mutated
    program = index.build({"net.py": read("net.py", text.encode())})
    assert Summaries(program).unseen.rebound == {("net.py", "n")}
    assert not effects("def f(x):\n    return x.relu().view(-1)\n", "f").unknown


def test_components_are_callees_first() -> None:
    text = "def a():\n    b()\ndef b():\n    c()\ndef c():\n    b()\n"
    program = index.build({"net.py": read("net.py", text.encode())})
    found = [sorted(f.name for f in part) for part in Summaries(program).components() if part]
    assert found == [["b", "c"], ["a"]]
