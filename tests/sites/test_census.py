"""The census counts what may be torch's without the inference, and nothing is left out of it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from migrate.codegen.imports import Spelling
from migrate.engine import plan, rewrite
from migrate.mapping import table
from migrate.sites import census
from migrate.sites.references import Form
from migrate.sites.scene import Scene
from migrate.syntax.source import read
from tests.test_samples import NAMES, SAMPLES

ROWS = table.load()
SEEN = {Form.NAME, Form.UNSURE}


def scenes(sources: dict[str, str]) -> list[Scene]:
    """The files as one analysed program."""
    made = rewrite.analyse({n: read(n, t.encode()) for n, t in sources.items()}, ROWS)
    found = []
    for path, file in made.inference.program.files.items():
        made.inference.file(path)
        found.append(Scene(file, made.inference, Spelling(frozenset())))
    return found


def taken(text: str) -> census.Census:
    (scene,) = scenes({"a.py": text})
    return census.taken(scene, {id(r.node) for r in plan.everything(scene)})


def names(text: str) -> list[str]:
    (scene,) = scenes({"a.py": text})
    return sorted(p.name for p in census.places(scene.file, scene.facts, census.members(ROWS)))


@pytest.mark.parametrize("name", NAMES)
def test_no_name_of_torch_is_decided_that_the_census_has_not_counted(name: str) -> None:
    root = SAMPLES / name / "torch"
    files = {p.relative_to(root).as_posix(): p.read_text() for p in sorted(root.rglob("*.py"))}
    compared = 0
    for scene in scenes(files) if files else ():
        found = census.places(scene.file, scene.facts, census.members(ROWS))
        counted = {id(node) for place in found for node in place.chain}
        for reference in plan.everything(scene):
            own = reference.name.startswith("torch2ms.")  # restructuring wrote it
            if reference.form in SEEN and not own:
                assert id(reference.node) in counted, ast.unparse(reference.node)
                compared += 1
    assert compared or not any(Path(p).suffix == ".py" for p in files)


def test_a_name_counts_where_only_imports_of_torch_bind_it() -> None:
    text = "import torch as t\nfrom torch import nn\nt.nn.functional.relu\nnn.Linear\nt\n"
    assert names(text) == ["nn.Linear", "t", "t.nn.functional.relu"]


@pytest.mark.parametrize(
    "text",
    [
        "import numpy as torch\ntorch.zeros\n",
        "import torch\ndef f(torch):\n    return torch.zeros\n",
        "import torch\ntorch = object()\ntorch.zeros\n",
        "from .torch import zeros\nzeros\n",
    ],
)
def test_a_name_that_something_else_binds_does_not_count(text: str) -> None:
    assert names(text) == []


def test_what_is_surely_no_object_of_torch_is_counted_by_its_kind() -> None:
    found = taken("import torch\nx = torch.zeros(3)\nx.view(-1)\n'a b'.split()\n[3].index(3)\n")
    assert (found.places, found.settled) == (4, 2)
    assert dict(found.others) == {"str": 1, "list": 1} and not found.open


def test_what_nobody_knows_is_open_and_not_called_settled() -> None:
    found = taken("import torch\ndef f(thing):\n    return thing.is_sparse\n")
    assert found.settled == 0 and [place.name for place in found.open] == ["is_sparse"]


def test_an_attribute_of_a_module_that_torch_gives_none_is_its_own() -> None:
    text = """
import torch
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.relu = torch.nn.ReLU()
    def forward(self, x):
        return self.relu(x)
"""
    found = taken(text)
    assert dict(found.others) == {"Module": 2} and not found.open
