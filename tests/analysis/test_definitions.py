"""Reaching bindings against beniget: a small sample of what benchmarks/definitions.py compares."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

pytest.importorskip("beniget")
SCRIPT = Path(__file__).parents[2] / "benchmarks" / "definitions.py"


def definitions() -> ModuleType:
    spec = importlib.util.spec_from_file_location("definitions", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["definitions"] = module
    spec.loader.exec_module(module)
    return module


def test_every_definition_of_beniget_is_in_the_answer() -> None:
    module = definitions()
    result = module.Compared()
    for path in module.sample(40, seed=7):
        module.compare(path, result)
    assert not result.violations
    assert result.pairs > 5000


def test_what_the_graph_loses_is_a_violation(tmp_path: Path) -> None:
    module = definitions()
    path = tmp_path / "a.py"
    path.write_text("def f(x):\n  if x:\n    y = 1\n  else:\n    y = 2\n  return y\n")
    tree = module.ast.parse(path.read_text())
    parents = {id(c): n for n in module.ast.walk(tree) for c in module.ast.iter_child_nodes(n)}
    facts = module.Facts(tree, parents)
    places = {n.lineno: n for n in module.ast.walk(tree) if getattr(n, "id", "") == "y"}
    assert module.wrong_by_beniget(facts, places[3], places[6]) == ""
    places[5].ctx = module.ast.Load()
    assert "other branch" in module.wrong_by_beniget(facts, places[3], places[5])
