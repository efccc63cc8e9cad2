"""In: small projects. Out: whether scan counts what convert decides, and writes nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from migrate.mapping import table
from migrate.report.scan import MEANS, WORK, Assessment, Count, assess, render, work_of
from migrate.workspace.project import Request, convert

CLEAN = """import torch.nn as nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 4)

    def forward(self, x):
        return self.fc(x)
"""
HARD = """import torch
import timm


class Old(torch.nn.Module):
    def forward(self, x):
        return x


def choose(name, value):
    loss = torch.zeros(1).sum()
    loss.backward()
    return getattr(torch, name), value.view(2)
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    (root / "clean.py").write_text(CLEAN)
    (root / "hard.py").write_text(HARD)
    (root / "plain.py").write_text("x = 1\n")
    return root


def scanned(source: Path) -> Assessment:
    return assess(source, table.load()).assessment


def test_the_ledger_is_that_of_convert(project: Path, tmp_path: Path) -> None:
    found = scanned(project)
    record = convert(Request(project, tmp_path / "out")).record
    assert found.ledger == record.ledger
    assert found.ledger.adds_up
    assert sum(api.uses for api in found.apis) == found.ledger.total
    assert len(found.places) == found.ledger.flagged == sum(found.work.values())


def test_nothing_is_written(project: Path, run) -> None:
    before = sorted(path for path in project.parent.rglob("*"))
    done = run("scan", project)
    assert done.code == 1
    assert sorted(path for path in project.parent.rglob("*")) == before


def test_hard_places_come_first_with_place_code_reason(project: Path) -> None:
    found = scanned(project)
    order = [WORK.index(place.work) for place in found.places]
    assert order == sorted(order)
    first = found.places[0]
    assert (first.file, first.work) == (str(project / "hard.py"), "design")
    assert all(place.code and place.reason and place.line for place in found.places)
    codes = {place.code for place in found.places}
    assert {"ENV501", "LOP105", "API111"} <= codes
    assert not any(place.file.endswith("clean.py") for place in found.places)


def test_shares_count_files_and_cells_apart(project: Path) -> None:
    found = scanned(project)
    assert found.files == Count(clean=1, total=2), "plain.py does not mention torch"
    assert found.cells == Count(clean=2, total=2)
    assert found.references.total == found.ledger.total - found.ledger.out_of_scope
    assert found.references.share is not None
    assert 0 < found.references.share < 1


def test_apis_say_what_they_become_and_how_it_is_proved(project: Path) -> None:
    apis = {api.name: api for api in scanned(project).apis}
    linear = apis["torch.nn.Linear"]
    assert (linear.uses, linear.files, linear.ledger.converted) == (1, 1, 1)
    assert linear.targets == ("nn.Dense",)
    assert linear.proof in ("verified", "stale", "not executed")
    assert apis["torch.nn.Module"].uses == 2


def test_templates_of_mint_count_as_not_executed(project: Path) -> None:
    found = assess(project / "clean.py", table.load(), "mint").assessment
    linear = next(api for api in found.apis if api.name == "torch.nn.Linear")
    assert (linear.targets, linear.proof) == (("mint.nn.Linear",), "not executed")


def test_exit_codes(project: Path, tmp_path: Path, run) -> None:
    assert run("scan", project / "clean.py").code == 0
    assert run("scan", project / "hard.py").code == 1
    assert run("scan", tmp_path / "missing").code == 2
    (project / "broken.py").write_text("def f(:\n")
    broken = run("scan", project)
    assert broken.code == 2
    assert "broken.py" in broken.out


def test_json_reads_back(project: Path, run) -> None:
    text = run("scan", project, "--format", "json").out
    assert Assessment.model_validate(json.loads(text)) == scanned(project)


def test_text_lists_the_first_places_and_all_when_asked(tmp_path: Path) -> None:
    lines = "\n".join(f"a{i} = getattr(torch, name)" for i in range(30))
    path = tmp_path / "many.py"
    path.write_text(f"import torch\n\n\ndef f(name):\n    pass\n\n\nname = input()\n{lines}\n")
    found = scanned(path)
    short, long = render(found), render(found, every=True)
    assert short.count("API111 torch") == 10
    assert "... API111: 20 more places" in short
    assert long.count("API111 torch") == 30
    assert "99.9 %" not in short


def test_a_share_is_never_rounded_up_to_everything(project: Path) -> None:
    found = scanned(project).model_copy(update={"references": Count(clean=99_999, total=100_000)})
    assert "99.9 % convert without a flag (99,999 of 100,000)" in render(found)


def test_markdown_escapes(project: Path, run) -> None:
    text = run("scan", project, "--format", "md").out
    assert text.startswith("# Assessment of")
    assert "| `torch.nn.Linear` | 1 | 0 |" in text
    assert "### ENV501 (design, 1)" in text


def test_a_format_that_does_not_exist(project: Path) -> None:
    with pytest.raises(ValueError, match="choose one of text, json, md"):
        render(scanned(project), "xml")


@pytest.mark.parametrize(
    ("code", "work"),
    [("LOP105", "design"), ("ENV501", "design"), ("API104", "rewrite"), ("API102", "check")],
)
def test_work_of_a_code(code: str, work: str) -> None:
    assert work_of(code) == work
    assert work in MEANS
