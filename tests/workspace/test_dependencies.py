"""In: lists of dependencies and configurations. Out: MindSpore in torch's place, the rest kept."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from migrate.mapping import table
from migrate.records.outcomes import Outcome
from migrate.workspace.dependencies import is_list, mentions, renewed

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

MINDSPORE = "mindspore>=2.10,<3"


@pytest.fixture(scope="module")
def rows() -> table.Table:
    return table.load(())


@pytest.fixture
def made(rows: table.Table) -> Callable[..., tuple[str, list[Any]]]:
    def call(text: str, path: str = "requirements.txt") -> tuple[str, list[Any]]:
        found = renewed(path, text.encode(), rows)
        return found.data.decode(), list(found.entries)

    return call


def test_torch_becomes_mindspore_once(made: Any) -> None:
    text, entries = made("numpy\ntorch==2.1.0  # the framework\nTorchVision >= 0.9\nscipy\n")
    assert text == f"numpy\n{MINDSPORE}  # the framework\nscipy\n"
    assert [(e.name, e.line, e.outcome) for e in entries] == [
        ("torch", 2, Outcome.CONVERTED),
        ("torchvision", 3, Outcome.CONVERTED),
    ]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("torch", MINDSPORE),
        ("torch>=1.8,!=1.9.0", MINDSPORE),
        ("torch[opt-einsum]~=2.0", MINDSPORE),
        ('torch>=1.8; sys_platform == "linux"', f'{MINDSPORE}; sys_platform == "linux"'),
        ("torch @ https://x.org/torch-2.0-cp310.whl", MINDSPORE),
    ],
)
def test_spellings_of_a_requirement(made: Any, line: str, expected: str) -> None:
    assert made(f"{line}\r\n")[0] == f"{expected}\r\n"


MUST_STAY = [
    "numpy>=1.2\n",
    "# torch==1.0\n",
    "-r torch.txt\n--extra-index-url https://download.pytorch.org/whl/cu118\n",
    "torchx\nmy-torch\ntorch_like==1\n",
    "not a requirement torch ==\n",
    "-e git+https://github.com/x/torch.git#egg=torch\n",
]


@pytest.mark.parametrize("text", MUST_STAY)
def test_what_is_not_torch_stays(made: Any, text: str) -> None:
    assert made(text) == (text, [])


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("timm>=0.9\n", "timm"),
        ("pytorch-lightning\n", "pytorch-lightning"),
        ("torch==2.0 \\\n    --hash=sha256:abc\n", "torch"),
        ("torch==2.0 --hash=sha256:abc\n", "torch"),
    ],
)
def test_what_a_person_must_do_is_flagged_and_stays(made: Any, text: str, name: str) -> None:
    found, entries = made(text)
    assert found == text
    (entry,) = entries
    assert (entry.name, entry.code, entry.line) == (name, "ENV512", 1)
    assert entry.next_step


PROJECT = """# my project
[project]
name = "torch-thing"  # torch
dependencies = [
    "numpy",
    "torch>=2.0",  # for all of it
    "torchvision",
    "timm",
]
[project.optional-dependencies]
gpu = ["torch; python_version > '3.9'"]

[dependency-groups]
dev = ["pytest", {include-group = "gpu"}]

[tool.poetry.dependencies]
torch = "^2.0"
[tool.black]
line-length = 100
"""


def test_pyproject_keeps_its_layout(made: Any) -> None:
    text, entries = made(PROJECT, "sub/pyproject.toml")
    assert text.startswith('# my project\n[project]\nname = "torch-thing"  # torch\n')
    assert f'"{MINDSPORE}"' in text and '"torch>=2.0"' not in text
    assert text.count("mindspore") == 2
    (gpu,) = tomllib.loads(text)["project"]["optional-dependencies"]["gpu"]
    assert gpu == MINDSPORE + '; python_version > "3.9"'
    assert 'torch = "^2.0"\n[tool.black]\nline-length = 100\n' in text
    flagged = {(e.name, e.line) for e in entries if e.outcome is Outcome.FLAGGED}
    assert flagged == {("timm", 8), ("torch", 17)}


@pytest.mark.parametrize("text", ["[project\ntorch", '[project]\nname = "torch"\n', "torch = 1\n"])
def test_other_pyprojects_stay(made: Any, text: str) -> None:
    assert made(text, "pyproject.toml") == (text, [])


def test_which_files_are_lists() -> None:
    yes = ("requirements.txt", "a/requirements-dev.txt", "requirements/base.txt", "constraints.txt")
    assert all(map(is_list, (*yes, "dev-requirements.txt", "pyproject.toml")))
    assert not any(map(is_list, ("notes.txt", "setup.cfg", "requirements.md", "requirements.py")))


def test_the_output_has_the_renewed_list(run: Any, write: Any) -> None:
    files = {"requirements.txt": "torch\nnumpy\n", "net.py": "import torch\n", "run.sh": "torch\n"}
    root: Path = write(files)
    done = run("convert", root, "-o", root.parent / "out")
    assert done.code == 0, done
    assert (root.parent / "out/requirements.txt").read_text() == f"{MINDSPORE}\nnumpy\n"
    assert (root.parent / "out/run.sh").read_text() == "torch\n"
    assert (root / "requirements.txt").read_text() == "torch\nnumpy\n"
    again = run("convert", root.parent / "out", "-o", root.parent / "two")
    assert again.code == 0
    assert (root.parent / "two/requirements.txt").read_text() == f"{MINDSPORE}\nnumpy\n"


YAML = """# torch.nn.Conv2d in a comment
defaults: !!python/name:torch.nn.ReLU
model:
  _target_: torch.nn.Linear  # torch.nn.Conv1d
  loss: {_target_: "torch.nn.CrossEntropyLoss"}
  é: my.torch.thing
  url: x.org/torch.html
  text: |
    torch.relu
"""


def test_yaml_names_and_their_partners(rows: table.Table) -> None:
    found = mentions("a.yaml", YAML.encode(), rows)
    places = [(e.name, e.line, e.column) for e in found]
    assert places == [
        ("torch.nn.ReLU", 2, 25),
        ("torch.nn.Linear", 4, 13),
        ("torch.nn.CrossEntropyLoss", 5, 21),
        ("torch.relu", 9, 5),
    ]
    by_name = {e.name: e.next_step for e in found}
    assert by_name["torch.nn.Linear"].startswith("write mindspore.nn.Dense(in_features")
    assert by_name["torch.relu"].startswith("write mindspore.ops.relu")


@pytest.mark.parametrize(
    ("path", "text", "names"),
    [
        ("a.json", '{"x": "torch.optim.SGD"}', ["torch.optim.SGD"]),
        ("a.yaml", "x: {{ jinja }}\n  y: [torch.nn.Linear", ["torch.nn.Linear"]),
        ("a.ini", "; torch.nn.Linear\nx = torch.nn.Tanh\n# torch.relu\n", ["torch.nn.Tanh"]),
        ("a.yaml", "x: pytorch.nn.y\ny: torch\n", []),
        ("a.yaml", "# torch.nn.Linear\nx: 1  # torch.relu\n", []),
        ("a.toml", "x = 'a/torch.nn'\n", []),
    ],
)
def test_other_configurations(rows: table.Table, path: str, text: str, names: list[str]) -> None:
    assert [e.name for e in mentions(path, text.encode(), rows)] == names


def test_a_name_that_torch_has_not_is_flagged_all_the_same(rows: table.Table) -> None:
    (entry,) = mentions("a.yaml", b"x: torch.nn.Nonsense\n", rows)
    assert entry.code == "ENV510" and "write the MindSpore name" in entry.next_step
