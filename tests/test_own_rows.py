"""In: rows of a user. Out: whether they override and extend ours in every command."""

from __future__ import annotations

import json
import sys
from importlib.metadata import DistributionFinder
from pathlib import Path

import pytest

from migrate.evidence import store
from migrate.evidence.store import RowEvidence
from migrate.mapping import table
from migrate.mapping.table_lint import lint
from migrate.records.outcomes import Problem
from migrate.workspace.settings import Settings, mapping_files

ROWS = """
["mylib.gate"]
signature = "gate(x: Tensor, scale: float = 2.0) -> Tensor"
to = "mindspore.ops.mul(x, scale)"

["torch.nn.Tanh"]
to = "mindspore.nn.Sigmoid()"
"""
CASES = """
["mylib.gate"]
source = "import mylib"
calls = ["mylib.gate(x0)"]
inputs = ["2x3"]
"""
CODE = "import torch\nimport mylib\n\nact = torch.nn.Tanh()\n\n\ndef f(x: torch.Tensor):\n"
CODE += "    return mylib.gate(x)\n"


@pytest.fixture
def own(tmp_path: Path) -> Path:
    (tmp_path / "cases").mkdir()
    (tmp_path / "cases" / "rows.toml").write_text(CASES)
    (tmp_path / "cases" / "other.toml").write_text("not toml at all [")
    (tmp_path / "rows.toml").write_text(ROWS)
    (tmp_path / "net.py").write_text(CODE)
    return tmp_path


def test_rows_override_and_extend(own: Path) -> None:
    rows = table.load((own / "rows.toml",))
    assert rows.rows("torch.nn.Tanh")[0].to == "mindspore.nn.Sigmoid()"
    assert rows.rows("mylib.gate")[0].file == str(own / "rows.toml")
    assert table.load().rows("torch.nn.Tanh")[0].to != "mindspore.nn.Sigmoid()"


def test_convert_takes_them_by_option_and_by_setting(own: Path, run) -> None:
    out = own / "out"
    assert "Tanh()" in converted(run, own / "net.py", out)
    by_option = converted(run, own / "net.py", out, "--mappings", own / "rows.toml")
    assert "act = nn.Sigmoid()" in by_option
    assert "ops.mul(x, 2.0)" in by_option
    (own / "pyproject.toml").write_text('[tool.torch2ms]\nmappings = ["rows.toml"]\n')
    assert converted(run, own / "net.py", out) == by_option


def converted(run, source: Path, out: Path, *options: object) -> str:
    run("convert", source, "-o", out, "--force", *options)
    return (out / source.name).read_text()


def test_explain_scan_and_list_know_them(own: Path, run) -> None:
    rows = ("--mappings", own / "rows.toml")
    assert "becomes: mindspore.ops.mul(x, scale)" in run("explain", "mylib.gate", *rows).out
    assert run("explain", "mylib.gate").code == 2
    assert "nn.Sigmoid" in run("scan", own / "net.py", *rows).out
    assert "mylib.gate\n" in run("table", "list", "mylib", *rows).out


def test_the_same_lints_hold(own: Path) -> None:
    path = own / "rows.toml"
    ours = {problem.message for problem in lint(table.load())}

    def found() -> list[str]:
        return [p.message for p in lint(table.load((path,))) if p.message not in ours]

    assert found() == []
    path.write_text(ROWS.replace("mul(x, scale)", "mull(x)"))
    messages = found()
    assert any("MindSpore has no such name" in message for message in messages)
    assert any("says nothing of the argument scale" in message for message in messages)
    path.write_text(ROWS + '\n["mylib.other"]\nto = "mindspore.ops.abs(x)"\ntoo = 1\n')
    assert any("unknown key 'too'" in message for message in found())
    (own / "cases" / "rows.toml").write_text(CASES.replace("inputs", "input"))
    assert any("unknown key 'input'" in message for message in found())


def test_evidence_goes_beside_them_and_ours_stays(own: Path) -> None:
    rows = table.load((own / "rows.toml",))
    theirs = RowEvidence("mylib.gate", "PASS", store.row_hash(rows, "mylib.gate"), elements=6)
    ours = store.evidence_file(table.load(), "torch.nn.Tanh")
    before = ours.read_bytes()
    assert store.write(rows, [theirs])
    assert ours.read_bytes() == before
    written = json.loads((own / "evidence" / "rows.json").read_text())
    assert list(written["rows"]) == ["mylib.gate"]
    assert store.is_fresh(rows, "mylib.gate")
    assert "torch.nn.Tanh" not in store.read(rows), "our evidence says nothing of their row"


def test_a_file_that_does_not_exist(own: Path, run) -> None:
    done = run("convert", own / "net.py", "-o", own / "out", "--mappings", own / "none.toml")
    assert done.code == 2
    assert "no file of rows" in done.err
    (own / "rows.toml").write_text("[")
    assert run("scan", own / "net.py", "--mappings", own / "rows.toml").code == 2


def test_order_settings_then_options(own: Path) -> None:
    other = own / "more.toml"
    other.write_text("")
    found = mapping_files(Settings(mappings=(own / "rows.toml",)), (other, own / "rows.toml"))
    assert found == (own / "rows.toml", other)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of installed packages with one that brings rows."""
    site = tmp_path / "site"
    rows = site / "company_rows" / "tables"
    rows.mkdir(parents=True)
    (rows.parent / "__init__.py").write_text("")
    (rows / "__init__.py").write_text("raise RuntimeError('imported')\n")
    (rows / "company.toml").write_text('["company.f"]\nsignature = "f(x)"\nto = "x"\n')
    info = site / "company_rows-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: company-rows\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[torch2ms.mappings]\ncompany = company_rows.tables\n")
    monkeypatch.delitem(sys.modules, "company_rows", raising=False)
    monkeypatch.syspath_prepend(str(site))
    for finder in sys.meta_path:
        if isinstance(finder, DistributionFinder) or hasattr(finder, "invalidate_caches"):
            finder.invalidate_caches()
    return site


def test_an_installed_package_brings_rows_and_is_not_imported(site: Path, run) -> None:
    found = mapping_files(Settings())
    assert found == (site / "company_rows" / "tables" / "company.toml",)
    assert "becomes: x" in run("explain", "company.f").out
    assert "company_rows.tables" not in sys.modules


def test_an_entry_point_without_rows(site: Path) -> None:
    (site / "company_rows" / "tables" / "company.toml").unlink()
    with pytest.raises(Problem, match="brings no rows"):
        mapping_files(Settings())


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ('too = "mindspore.ops.relu(input)"', "unknown key 'too'"),
        ('to = "mindspore.ops.relu(x)"', "to uses 'x'"),
        ('to = "mindspore.ops.relu(input)"\nflag = "API104"', "has to and flag"),
    ],
)
def test_a_row_that_would_be_passed_over_ends_the_conversion(
    own: Path, run, row: str, said: str
) -> None:
    (own / "rows.toml").write_text(f'["torch.relu"]\n{row}\n')
    made = run("convert", own / "net.py", "-o", own / "out", "--mappings", own / "rows.toml")
    assert made.code == 2
    assert f"rows.toml: torch.relu: {said}" in made.err and "next: " in made.err
