"""What is wrong with an output is found before it is written, and costs one statement."""

from __future__ import annotations

import ast
import subprocess
import symtable
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from migrate.engine import rewrite
from migrate.engine.rewrite import Options, Rewritten
from migrate.engine.selfcheck import unbound
from migrate.mapping import table
from migrate.records.outcomes import Edit, Outcome, Site, Span
from migrate.rules import registry
from migrate.rules.registry import Registered, Registry, Stage
from migrate.sites.references import Form
from migrate.sites.scene import Scene
from migrate.syntax.source import read

TEXT = """\
import torch


def first(x: torch.Tensor):
    y = x + 1
    return torch.relu(y)


def second(x: torch.Tensor):
    return torch.relu(x)


value = torch.ones(3)
"""


def converted(text: str) -> Rewritten:
    source = read("module.py", text.encode())
    rows = table.load(())
    return rewrite.convert(rewrite.analyse({source.path: source}, rows), source.path, Options())


def with_rule(monkeypatch: pytest.MonkeyPatch, stage: Stage, run: Callable[..., Any]) -> None:
    """Let a rule of a test be asked before all others."""
    rule = Registered("test.rule", stage, run, frozenset(Form), file="test.py")
    rules = Registry((rule, *registry.ours().rules))
    monkeypatch.setattr(registry, "ours", lambda: rules)
    # other tests may have imported the tool anew; what is imported late is of that
    monkeypatch.setattr("migrate.rules.registry.ours", lambda: rules)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("x = y", {"y"}),
        ("def f(a):\n    return a + b", {"b"}),
        ("def f():\n    global c\n    c = 1\nc + d", {"d"}),
        ("class A:\n    e = 1\n    def f(self):\n        return e", {"e"}),
        ("[g for g in h]", {"h"}),
        ("import os, sys as s\nos.path, s, print, __name__, __file__", set()),
        ("def f():\n    i = 1\n    def g():\n        return i", set()),
        ("for j in range(3):\n    del j", set()),
        ("x: k = 1", {"k"}),
        ("def f():\n    from m import *\n" if False else "lambda n: n + o", {"o"}),
    ],
)
def test_names_that_nothing_binds(text: str, names: set[str]) -> None:
    assert unbound(symtable.symtable(text, "m.py", "exec")) == names


def _beside(scene: Scene, text: str, start: int, end: int) -> Edit:
    return Edit(Site("a rule", Span(start, end), 1, 1), Outcome.CONVERTED, (text,))


RAISING = """import torch

def first(x: torch.Tensor):
    y = torch.relu(x)
    return y

def second(x: torch.Tensor):
    return torch.sigmoid(x)
"""
FAULTS = {
    "nothing binds the name nowhere": ("y = x + 1", "y = nowhere(x)"),
    "the output does not compile": ("y = x + 1", "y = x +"),
    "two edits own one text": ("relu(y)", "relu(x)"),
    "nonlocal": ("y = x + 1", "nonlocal y"),
}


@pytest.mark.parametrize("what", FAULTS)
def test_a_wrong_edit_costs_its_statement(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = FAULTS[what]

    def broken(scene: Scene) -> Iterator[Edit]:
        start = TEXT.index(old)
        yield _beside(scene, new, start, start + len(old))

    with_rule(monkeypatch, Stage.REWRITES, broken)
    made = converted(TEXT)
    text = made.data.decode()
    ast.parse(text)
    found = [e for e in made.entries if e.code == "INT901"]
    assert len(found) == 1 and found[0].outcome is Outcome.FLAGGED
    assert what in found[0].reason or what == "nonlocal"
    assert text.count("raise NotImplementedError('torch2ms INT901") == 1
    assert "def second(x: ms.Tensor):\n    return ops.relu(x)" in text
    assert made.ledger.adds_up and made.ledger.total == len(made.entries)


# in a process of its own: it is the exit status of the command
COMMAND = """
import sys
from migrate.cli import app
from migrate.records.outcomes import Edit, Outcome, Site, Span
from migrate.rules import registry
from migrate.rules.registry import Registered, Registry, Stage
from migrate.sites.references import Form

start, end, *command = sys.argv[1:]
site = Site("a rule", Span(int(start), int(end)), 1, 1)
edit = Edit(site, Outcome.CONVERTED, ("y = nowhere(x)",))
rule = Registered("test.rule", Stage.REWRITES, lambda scene: iter([edit]), frozenset(Form))
rules = Registry((rule, *registry.ours().rules))
registry.ours = lambda: rules
sys.exit(app.main(command))
"""


def test_the_exit_status_is_that_of_an_internal_error(tmp_path: Path) -> None:
    start = TEXT.index("y = x + 1")
    (tmp_path / "net.py").write_text(TEXT)
    command = ["convert", str(tmp_path / "net.py"), "-o", str(tmp_path / "out.py")]
    given = [sys.executable, "-c", COMMAND, str(start), str(start + 9), *command]
    done = subprocess.run(given, capture_output=True, text=True, timeout=120)
    assert done.returncode == 3, done.stdout + done.stderr
    assert "INT901" in done.stdout and "INT901" in (tmp_path / "out.py").read_text()


def test_a_rule_that_raises_costs_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(scene: Scene, node: ast.AST, name: str) -> None:
        if name.endswith("relu"):
            raise KeyError("a fact")

    with_rule(monkeypatch, Stage.DECIDES, broken)
    made = converted(RAISING)
    text = made.data.decode()
    found = [e for e in made.entries if e.code == "INT901"]
    assert len(found) == 1 and "KeyError: 'a fact' (test_selfcheck.py:" in found[0].reason
    assert "raise NotImplementedError('torch2ms INT901 torch.relu')" in text
    assert "return ops.sigmoid(x)" in text
    assert made.ledger.adds_up and made.ledger.total == len(made.entries)


def test_a_rule_for_whole_files_that_raises_stops_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(scene: Scene) -> Iterator[Edit]:
        yield from ()
        raise KeyError("a fact")

    with_rule(monkeypatch, Stage.REWRITES, broken)
    text = converted(RAISING).data.decode()
    for name in ("first", "second"):
        assert f"\n{name} = Missing('torch2ms INT901 def {name}(x: torch.Tensor):')\n" in text


def test_a_right_file_has_no_fault() -> None:
    assert not [e for e in converted(TEXT).entries if e.code]
