"""In: code and the target mint. Out: whether rows of mint are used, all of them or none."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrate.mapping import table
from migrate.mapping.row import NOTE, for_mint
from migrate.mapping.table_lint import lint
from migrate.workspace.project import Request, convert


def converted(tmp_path: Path, code: str, target: str) -> str:
    path = tmp_path / "net.py"
    path.write_text(code)
    made = convert(Request(path, tmp_path / "out", target))  # type: ignore[arg-type]
    content = made.outputs[0].content
    assert content is not None
    return content.decode()


NET = """import torch
import torch.nn as nn


class Net(nn.Module):
    def __init__(self, norm=nn.BatchNorm2d):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, padding=1)
        self.norm = norm(4)
        self.own = nn.BatchNorm2d(4, momentum=0.2)

    def forward(self, x: torch.Tensor):
        return torch.addmm(x, x, x), self.own.weight
"""


def test_mint_and_portable(tmp_path: Path) -> None:
    mint = converted(tmp_path, NET, "mint")
    assert "norm=mint.nn.BatchNorm2d)" in mint
    assert "mint.nn.Conv2d(3, 4, 3, padding=1)" in mint
    assert "mint.nn.BatchNorm2d(4, momentum=0.2)" in mint
    assert "mint.addmm(x, x, x), self.own.weight" in mint
    assert "from mindspore import mint, nn" in mint
    portable = converted(tmp_path, NET, "portable")
    assert "mint" not in portable
    assert "self.own.gamma" in portable


def test_weights_of_mint_have_torchs_names(tmp_path: Path) -> None:
    path = tmp_path / "net.py"
    path.write_text(NET)
    assert convert(Request(path, tmp_path / "out", "mint")).record.weights == {}
    names = convert(Request(path, tmp_path / "out")).record.weights
    assert names["torch.nn.BatchNorm2d"]["weight"] == "gamma"


def test_arguments_that_mint_lacks_are_flagged_not_mixed(tmp_path: Path) -> None:
    code = "import torch\n\nnorm = torch.nn.BatchNorm2d(4, bias=False)\n"
    assert "TODO(torch2ms API104)" in converted(tmp_path, code, "mint")
    assert "TODO" not in converted(tmp_path, code, "portable")


def test_a_note_says_that_mint_was_not_executed(tmp_path: Path) -> None:
    path = tmp_path / "net.py"
    path.write_text(NET)
    record = convert(Request(path, tmp_path / "out", "mint")).record
    notes = {e.name: e.note for e in record.files[0].entries}
    assert NOTE in notes["torch.addmm"]
    assert NOTE in notes["torch.nn.Conv2d"]
    portable = convert(Request(path, tmp_path / "out")).record
    assert not any(NOTE in e.note for e in portable.files[0].entries)


def test_rows_without_mint_stay() -> None:
    raw = {"a.f": {"to": "x"}, "a.g": {"to": "y", "mint": "z", "ref": "r"}}
    made = for_mint(raw)
    assert made["a.f"] == raw["a.f"]
    assert made["a.g"] == {"to": "z", "mint": "z", "ref": "r", "note": NOTE}


def test_a_class_with_other_names_is_mint_in_all_rows() -> None:
    raw = {
        "a.C": {"to": "p", "mint": "m.C(x)", "weights": {"w": "v"}, "ref": "helpers.C"},
        "a.C:more": {"to": "helpers.C(x)", "weights": {"w": "v"}, "when": {"x": "int"}},
    }
    made = for_mint(raw)
    assert made["a.C"] == {"to": "m.C(x)", "mint": "m.C(x)", "ref": "m.C", "note": NOTE}
    assert made["a.C:more"]["flag"] == "API104"
    assert "to" not in made["a.C:more"]
    assert "weights" not in made["a.C:more"]
    assert made["a.C:more"]["when"] == {"x": "int"}


def test_there_are_many_and_all_pass_the_lint() -> None:
    rows = table.load()
    templates = [key for key, values in rows.raw.items() if values.get("mint")]
    assert len(templates) >= 300
    problems = [p for p in lint(rows) if "mint" in p.what]
    assert not problems, "\n".join(p.message for p in problems)


@pytest.mark.parametrize(
    ("template", "what"),
    [
        ("mindspore.mint.addmmm(input, mat1, mat2)", "MindSpore has no such name"),
        ("mindspore.mint.addmm(input, mat1)", "with no 'mat2'"),
        ("mindspore.mint.addmm(input, mat1, mat2, gamma=beta)", "argument 'gamma'"),
        ("mindspore.mint.addmm(input, mat1, mat2, alpha=alpha)", "nothing of the argument beta"),
    ],
)
def test_a_wrong_template_is_found(template: str, what: str) -> None:
    rows = table.load()
    row = dict(rows.raw["torch.addmm"])
    row["mint"] = template
    broken = table.Table(
        {**rows.raw, "torch.addmm": row},
        rows.files, rows.torch, rows.mindspore, rows.helpers, rows.folder,
    )  # fmt: skip
    assert any(what in problem.message for problem in lint(broken))
