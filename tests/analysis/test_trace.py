"""In: torch code whose receivers nothing types. Out: a run types them, and nothing more."""

from __future__ import annotations

import ast
import builtins
import json
from pathlib import Path
from typing import Any

import pytest

from migrate.analysis.types.kinds import MODULE, STR, TENSOR, UNKNOWN, kind
from migrate.analysis.types.recorded import Recorded, Seen, merged, place_of
from migrate.engine import rewrite
from migrate.mapping import table
from migrate.parity import torch_trace
from migrate.syntax.source import read

NET = """import torch
import torch.nn as nn


class Holder:
    values = (1,)

    def max(self, axis):
        return self


class Net(nn.Module):
    def __init__(self, wide=False):
        super().__init__()
        self.fc = nn.Linear(4, 3)
        self.wide = wide
        self.store = {}
        self.fill(h=Holder(), l=[3, 1], s="a b")

    def fill(self, **items):
        self.store.update(items)

    def forward(self, x):
        self.fill(y=self.fc(x))
        y = self.store["y"].max(0).values  # tensor
        parts = self.store["h"].max(1).values  # plain
        for key in ("y", "h"):
            both = self.store[key].max(0).values  # several
        if self.wide:
            return self.store["y"].max(1).values  # unreached
        return y
"""
BY_MARK = {
    text.rpartition("# ")[2]: number
    for number, text in enumerate(NET.splitlines(), 1)
    if "  # " in text
}


@pytest.fixture
def observed() -> Any:
    """Runs code with its receivers observed; gives its names and the (text, type) pairs seen."""

    def run(text: str) -> tuple[dict[str, Any], list[tuple[str, type]]]:
        code, places = torch_trace.compiled(text.encode(), "x.py", 5)
        seen: list[tuple[str, type]] = []

        def see(number: int, value: Any) -> Any:
            first, start, last, end = places[number - 5]
            assert first == last
            line = text.encode().splitlines()[first - 1]
            seen.append((line[start:end].decode(), type(value)))
            return value

        setattr(builtins, torch_trace.OBSERVER, see)
        try:
            names: dict[str, Any] = {"__name__": "x"}
            exec(code, names)
        finally:
            delattr(builtins, torch_trace.OBSERVER)
        return names, seen

    return run


def test_receivers_are_seen_where_they_stand(observed: Any) -> None:
    _, seen = observed("é = 'a b'; n = é.split()[0].upper().count('A')\n")
    assert [text for text, _ in seen] == ["é", "é.split()[0]", "é.split()[0].upper()"]
    assert {owner for _, owner in seen} == {str}


MUST_RUN = (
    "class A:\n    x: 'B.c' = 1\n    def f(self, y: int = 2) -> 'a.b':\n        return self.x + y\n"
    "class B(A):\n    def f(self):\n        return super().f() + self.__g()\n"
    "    def __g(self):\n        return self.x\nr = B().f()\nassert r == 4\n",
    "class P:\n    C = 3\nmatch 3:\n    case P.C: r = 1\nassert r == 1\n",
    "class P: pass\np = P()\np.x = [1]\np.x += [2]\np.x[0] = 5\ndel p.x[1]\nassert p.x == [5]\n",
    "s = 'a'\nassert f'{s.upper()!r:>5} {len(s.upper())}' == \"  'A' 1\"\n",
    "from __future__ import annotations\ndef f(x: a.b.c): return x.real\nassert f(3) == 3\n",
    "async def f(x):\n    return x.real\nassert f.__name__ == 'f'\nf(1).close()\n",
    "assert [c.upper() for c in 'ab'] == ['A', 'B'] and (lambda q: q.real)(2) == 2\n",
)


@pytest.mark.parametrize("text", MUST_RUN)
def test_observed_code_does_what_it_did(observed: Any, text: str) -> None:
    exec(compile(text, "x.py", "exec", dont_inherit=True), {"__name__": "x"})
    observed(text)


def node(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def recorded(*found: Seen) -> Recorded:
    return merged([Recorded({"a.py": {place_of(node("x")): one}}) for one in found])


TENSOR_SEEN = Seen("Tensor", "", 2, "Net()")


def settled(known: Any, *found: Seen) -> Any:
    return recorded(*found).settled("a.py", node("x"), known, ("a.py::Net",))


def test_a_run_tells_what_nothing_else_does() -> None:
    assert settled(UNKNOWN, TENSOR_SEEN) == TENSOR
    assert settled(UNKNOWN, TENSOR_SEEN, Seen("Tensor", "", 1, "Net(2)")) == TENSOR
    assert settled(UNKNOWN | TENSOR, TENSOR_SEEN) == TENSOR
    assert settled(kind("instance", "timm.create"), TENSOR_SEEN) == TENSOR
    linear = Seen("Module", "torch.nn.Linear", 1, "f()")
    assert settled(UNKNOWN, linear) == kind("Module", "torch.nn.Linear")
    assert settled(UNKNOWN, linear, Seen("Module", "a.py::Net", 1, "f()")) == MODULE
    assert settled(UNKNOWN, Seen("Module", "timm.Block", 1, "f()")) == MODULE


def test_a_run_changes_nothing_that_is_known_or_in_doubt() -> None:
    assert settled(STR, TENSOR_SEEN) == STR
    assert settled(UNKNOWN | STR, TENSOR_SEEN) == UNKNOWN | STR
    plain = Seen("plain", "list", 1, "f()")
    assert settled(UNKNOWN, TENSOR_SEEN, plain) == UNKNOWN
    assert settled(UNKNOWN, plain, TENSOR_SEEN, TENSOR_SEEN) == UNKNOWN
    assert settled(UNKNOWN, Seen("unclear", "lib.Tensor", 1, "f()")) == UNKNOWN
    assert settled(UNKNOWN, plain) == UNKNOWN
    other = Recorded({"b.py": {place_of(node("x")): TENSOR_SEEN}})
    assert other.settled("a.py", node("x"), UNKNOWN, ()) == UNKNOWN
    assert recorded(TENSOR_SEEN).settled("a.py", node("(x)"), UNKNOWN, ()) == UNKNOWN


def test_two_types_are_told_together() -> None:
    (both,) = recorded(TENSOR_SEEN, Seen("plain", "list", 1, "f()")).places["a.py"].values()
    assert both == Seen("several", "Tensor, list", 3, "Net(); f()")
    assert both.text == "Tensor, list (3 times) when Net(); f() ran"


def entries(folder: Path, name: str = "net.py") -> list[dict[str, Any]]:
    files = json.loads((folder / "torch2ms.json").read_text())["files"]
    found: list[dict[str, Any]] = next(f for f in files if f["source"] == name)["entries"]
    return found


def test_a_traced_model(run: Any, write: Any) -> None:
    pytest.importorskip("torch")
    root = write({"net.py": NET})
    before = run("convert", root / "net.py", "-o", root.parent / "plain")
    flags = ("plain", "several", "tensor", "unreached")
    plain = {e["line"] for e in entries(root.parent / "plain") if e["outcome"] == "flagged"}
    assert {BY_MARK["tensor"], BY_MARK["several"], BY_MARK["unreached"]} <= plain, before.out
    done = run(
        "convert", root / "net.py", "-o", root.parent / "out", "--trace", "Net()", "--input", "2x4"
    )
    assert done.code == 1, done
    by_line = {e["line"]: e for e in entries(root.parent / "out") if e["line"] in BY_MARK.values()}
    found = {name: by_line.get(BY_MARK[name]) for name in flags}
    assert found["tensor"]["outcome"] == "converted"
    assert "was: Tensor (2 times) when Net() ran" in found["tensor"]["assumption"]
    assert found["several"]["code"] == "API102"
    assert "Tensor, net.py::Holder" in found["several"]["reason"].replace(
        "net.Holder", "net.py::Holder"
    )
    assert found["unreached"]["code"] == "API102"
    assert "nothing tells" in found["unreached"]["reason"]
    text = (root.parent / "out/net.py").read_text()
    assert 'self.store["h"].max(1).values  # plain' in text
    assert "receivers are what they were in the run" in done.out


def test_two_runs_reach_more(run: Any, write: Any) -> None:
    pytest.importorskip("torch")
    root = write({"pkg/__init__.py": "", "pkg/net.py": NET})
    done = run(
        "convert", root, "-o", root.parent / "out", "--input", "2x4",
        "--trace", "pkg/net.py:Net()", "--trace", "pkg/net.py:Net(wide=True)",
    )  # fmt: skip
    assert done.code == 1, done
    found = entries(root.parent / "out", "pkg/net.py")
    flagged = {e["line"] for e in found if e["code"] == "API102"}
    assert flagged == {BY_MARK["several"]}


LOOP = """import torch
import torch.nn as nn
import torch.optim as optim

kept = __import__("json").loads("{}")


class Holder:
    def expand(self, *sizes):
        return [sizes]


def train():
    net = nn.Linear(4, 2)
    criterion = nn.MSELoss()
    optimizer = optim.SGD(net.parameters(), lr=0.1)
    for step in range(2):
        x, y = torch.ones(3, 4), torch.ones(3, 2)
        optimizer.zero_grad()
        out = net(x)
        loss = criterion(out, y)
        loss.backward()
        optimizer.step()
        kept.update(last=out.detach())
        print(kept["last"].max(1).values)
    return kept["last"].max(1).values
"""


def test_what_was_seen_follows_a_restructured_loop(run: Any, write: Any) -> None:
    pytest.importorskip("torch")
    root = write({"train.py": LOOP})
    run("convert", root, "-o", root.parent / "plain")
    before = {e["line"] for e in entries(root.parent / "plain", "train.py") if e["code"]}
    assert before == {25, 26}
    done = run("convert", root, "-o", root.parent / "out", "--trace", "train.py:train()")
    assert done.code == 0, done
    assumed = {e["line"] for e in entries(root.parent / "out", "train.py") if e["assumption"]}
    assert {25, 26} <= assumed
    assert "TrainOneStep" in (root.parent / "out/train.py").read_text()


def test_places_that_went_elsewhere_are_left_out() -> None:
    """A type recorded for text that restructuring replaces is not taken for what stands there."""
    source = read("train.py", LOOP.encode())
    places = {
        place_of(n.value): Seen("Tensor", "", 1, "train()")
        for n in ast.walk(source.tree)
        if isinstance(n, ast.Attribute)
    }
    built = rewrite.analyse(
        {"train.py": source}, table.load(()), "cells", Recorded({"train.py": places})
    )
    staged = built.staged["train.py"]
    moved = built.inference.recorded.places["train.py"]
    assert 0 < len(moved) < len(places)
    lines = staged.source.data.splitlines()
    texts = {source.text_of(n.value) for n in ast.walk(source.tree) if isinstance(n, ast.Attribute)}
    for first, start, last, end in moved:
        if first == last:
            assert lines[first - 1][start:end].decode() in texts


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["--trace", "Missing()"], "does not run"),
        (["--trace", "Net()", "--input", "2x?"], "cannot be read"),
        (["--trace", "Net()", "--input", "2x5"], "does not run"),
    ],
)
def test_a_run_that_fails_is_told(run: Any, write: Any, arguments: list[str], part: str) -> None:
    pytest.importorskip("torch")
    root = write({"net.py": NET})
    done = run("convert", root / "net.py", "-o", root.parent / "out", *arguments)
    assert (done.code, part in done.err) == (2, True), done
    assert not (root.parent / "out").exists()


def test_a_folder_needs_the_file(run: Any, write: Any) -> None:
    root = write({"net.py": NET, "n.ipynb": "{}"})
    for source, text in ((root, "Net()"), (root, "other.py:Net()"), (root / "n.ipynb", "Net()")):
        done = run("convert", source, "-o", root.parent / "out", "--trace", text)
        assert done.code == 2 and "--trace" in done.err, done
