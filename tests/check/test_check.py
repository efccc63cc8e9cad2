"""In: small files. Out: what ``torch2ms check`` finds, silences, knows already, and prints."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from migrate.check.findings import Finding, comments, fails

ROOT = Path(__file__).parents[2]
SARIF = json.loads((ROOT / "tests/schemas/sarif-2.1.0-rtm.5.json").read_text(encoding="utf-8"))

CLEAN = "import torch\n\n\ndef f(x: torch.Tensor):\n    return torch.abs(x)\n"
STREAM = "import torch\n\n\ndef f():\n    return torch.cuda.Stream(){}\n"
FLAG = "DEV109"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def found(run, *arguments: object) -> list[dict[str, Any]]:
    return json.loads(run("check", *arguments, "--format", "json").out)["findings"]


def codes(run, *arguments: object) -> list[tuple[int, str, str]]:
    return [(f["line"], f["code"], f["state"]) for f in found(run, *arguments)]


def test_findings_are_those_of_convert_and_nothing_is_written(run, here: Path) -> None:
    Path("net.py").write_text(STREAM.format(""))
    Path("ok.py").write_text(CLEAN)
    ran = run("check", "net.py", "ok.py")
    assert ran.code == 1
    said = run("convert", "net.py", "-o", "out", "--diff").err.splitlines()[0]
    assert ran.out.splitlines()[0] == said
    assert ran.out.splitlines()[1:] == ["Findings: 1 new (1 fail)"]
    assert sorted(path.name for path in here.iterdir()) == ["net.py", "ok.py"]
    assert run("check", "ok.py").code == 0


def test_a_folder_is_a_project_and_overlapping_paths_count_once(run, here: Path) -> None:
    (here / "pkg").mkdir()
    Path("pkg/net.py").write_text(STREAM.format(""))
    assert [f["file"] for f in found(run, ".", "pkg/net.py", "pkg")] == ["pkg/net.py"]


SILENCED = (
    ("  # torch2ms: ignore[DEV109] never run on CPU", [(5, FLAG, "ignored")]),
    ("  # torch2ms: ignore[API104, DEV109]: both", [(5, FLAG, "ignored"), (5, "SUP102", "new")]),
    ("  # torch2ms: ignore[DEV109]", [(5, FLAG, "new"), (5, "SUP101", "new")]),
    ("  # torch2ms: ignore[DEV109] - ", [(5, FLAG, "new"), (5, "SUP101", "new")]),
    ("  # torch2ms: ignore because of me", [(5, FLAG, "new"), (5, "SUP100", "new")]),
    ("  # torch2ms: ignore[] because", [(5, FLAG, "new"), (5, "SUP100", "new")]),
    ("  # torch2ms: ignore[DEV109 because", [(5, FLAG, "new"), (5, "SUP100", "new")]),
    ("  # torch2ms: ignore[DEV] a topic is no code", [(5, FLAG, "new"), (5, "SUP102", "new")]),
    (', "# torch2ms: ignore[DEV109] a string"', [(5, FLAG, "new")]),
    ("\n    # torch2ms: ignore[DEV109] too late", [(5, FLAG, "new"), (6, "SUP102", "new")]),
)


@pytest.mark.parametrize(("comment", "expected"), SILENCED, ids=[text for text, _ in SILENCED])
def test_only_a_comment_with_code_and_reason_silences(
    run, here: Path, comment: str, expected: list[tuple[int, str, str]]
) -> None:
    Path("net.py").write_text(STREAM.format(comment))
    assert codes(run, "net.py") == expected
    assert run("check", "net.py").code == int(any(state == "new" for _, _, state in expected))


def test_a_comment_above_speaks_of_the_next_line_of_code(run, here: Path) -> None:
    text = STREAM.format("").replace(
        "    return", "    # torch2ms: ignore[DEV109] why\n\n    return"
    )
    Path("net.py").write_text(text)
    (one,) = found(run, "net.py")
    assert (one["line"], one["state"], one["justification"]) == (7, "ignored", "why")


def test_a_comment_without_any_flag_is_a_finding(run, here: Path) -> None:
    Path("net.py").write_text(CLEAN + "# torch2ms: ignore[API104] of old\n")
    assert codes(run, "net.py") == [(6, "SUP102", "new")]
    assert run("check", "net.py", "--fail-on", "API").code == 1
    assert run("check", "net.py", "--fail-on", "none").code == 0


def test_silenced_flags_are_announced_in_the_output_all_the_same(run, here: Path) -> None:
    Path("net.py").write_text(STREAM.format("  # torch2ms: ignore[DEV109] never run"))
    assert run("convert", "net.py", "-o", "out").code == 1
    assert "# TODO(torch2ms DEV109)" in Path("out/net.py").read_text()


@pytest.mark.parametrize(
    ("fail_on", "state", "failing"),
    [
        (("any",), "new", True), (("DEV",), "new", True), ((FLAG,), "new", True),
        (("API",), "new", False), (("DEV1",), "new", False), (("none",), "new", False),
        (("any",), "known", False), (("any",), "ignored", False),
    ],
)  # fmt: skip
def test_what_fails(fail_on: tuple[str, ...], state: str, failing: bool) -> None:
    assert fails(Finding(file="a", code=FLAG, reason="r", state=state), fail_on) is failing


def test_what_cannot_be_read_always_fails(run, here: Path) -> None:
    assert fails(Finding(file="a", code="FAILED", reason="r"), ("none",))
    Path("bad.py").write_text("def f(:\n")
    Path("net.py").write_text(STREAM.format(""))
    ran = run("check", "bad.py", "net.py", "--fail-on", "none")
    assert ran.code == 2
    assert "bad.py FAILED: " in ran.out and f"net.py:5:12 {FLAG}" in ran.out
    assert run("check", "bad.py").code == 2
    assert run("check", "missing.py").code == 2


def test_unknown_codes_and_baselines_are_usage_errors(run, here: Path) -> None:
    Path("net.py").write_text(CLEAN)
    assert "no topic of codes" in run("check", "net.py", "--fail-on", "XYZ").err
    assert "--update-baseline" in run("check", "net.py", "--baseline", "b.json").err
    assert run("check", "net.py", "--update-baseline").code == 2
    Path("b.json").write_text('{"findings": [1]}')
    assert run("check", "net.py", "--baseline", "b.json").code == 2


def test_a_baseline_lets_the_old_pass_and_only_the_old(run, here: Path) -> None:
    net, given = Path("net.py"), ("check", "net.py", "--baseline", "b.json")
    net.write_text(STREAM.format(""))
    assert run(*given, "--update-baseline").code == 0
    before = Path("b.json").read_text()
    net.write_text("\n# moved\n" + STREAM.format(""))
    assert run(*given).code == 0
    net.write_text(STREAM.format("") + "\n\ndef g():\n    return torch.cuda.Stream()\n")
    ran = run(*given)  # the same line once more is one too many
    assert ran.code == 1 and "1 new (1 fail), 1 in the baseline" in ran.out
    net.write_text(CLEAN)
    assert "1 of the baseline are gone" in run(*given).out
    assert Path("b.json").read_text() == before
    assert run(*given, "--update-baseline").code == 0
    net.write_text(STREAM.format(""))
    assert run(*given).code == 1


def test_what_check_and_scan_wrote_into_the_project_is_no_finding(run, here: Path) -> None:
    Path("net.py").write_text(STREAM.format(""))
    assert run("check", ".", "--baseline", "known.json", "--update-baseline").code == 0
    assert "torch.cuda.Stream" in Path("known.json").read_text()
    Path("scan.json").write_text(run("scan", ".", "--format", "json").out)
    Path("check.json").write_text(run("check", ".", "--format", "json").out)
    Path("check.sarif.json").write_text(run("check", ".", "--format", "sarif").out)
    done = run("check", ".", "--baseline", "known.json")
    assert (done.code, done.out) == (0, "Findings: 0 new, 1 in the baseline\n")
    Path("config.json").write_text('{"schema_version": 1, "kind": "torch.cuda.Stream"}')
    assert "config.json:1:32 ENV510" in run("check", ".", "--baseline", "known.json").out


def test_a_baseline_keeps_files_that_were_not_looked_at(run, here: Path) -> None:
    for name in ("a.py", "b.py"):
        Path(name).write_text(STREAM.format(""))
    run("check", ".", "--baseline", "x/b.json", "--update-baseline")
    Path("a.py").write_text(CLEAN)
    run("check", "a.py", "--baseline", "x/b.json", "--update-baseline")
    kept = json.loads(Path("x/b.json").read_text())["findings"]
    assert [row["file"] for row in kept] == ["../b.py"]
    assert "gone" not in run("check", "a.py", "--baseline", "x/b.json").out


def test_comments_that_silence_nothing_do_not_get_into_a_baseline(run, here: Path) -> None:
    Path("net.py").write_text(STREAM.format("  # torch2ms: ignore[DEV109]"))
    run("check", "net.py", "--baseline", "b.json", "--update-baseline")
    assert [row["code"] for row in json.loads(Path("b.json").read_text())["findings"]] == [FLAG]
    assert run("check", "net.py", "--baseline", "b.json").code == 1


def test_settings_of_the_project(run, here: Path) -> None:
    section = '[tool.torch2ms.check]\nfail_on = ["API"]\nbaseline = "known.json"\n'
    Path("pyproject.toml").write_text(section)
    Path("net.py").write_text(STREAM.format(""))
    assert run("check", "net.py", "--update-baseline").code == 0
    assert Path("known.json").exists()
    Path("pyproject.toml").write_text('[tool.torch2ms.check]\nbasline = "known.json"\n')
    assert "did you mean 'baseline'" in run("check", "net.py").err


def test_sarif_is_valid_and_tells_states(run, here: Path) -> None:
    (here / "a b").mkdir()
    Path("a b/net.py").write_text(
        STREAM.format("") + "\n\ndef g():\n    torch.cuda.Stream()  # torch2ms: ignore[DEV109] so\n"
    )
    document = json.loads(run("check", ".", "--format", "sarif").out)
    jsonschema.validate(document, SARIF)
    one, other = document["runs"][0]["results"]
    uri = one["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert (uri, one["level"], one["baselineState"]) == ("a%20b/net.py", "error", "new")
    assert other["suppressions"] == [{"kind": "inSource", "justification": "so"}]
    assert "suppressions" not in one
    del document["runs"][0]["tool"]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, SARIF)


def test_annotations_are_escaped(run, here: Path) -> None:
    (here / "a,b%").mkdir()
    Path("a,b%/net.py").write_text(STREAM.format(""))
    line, summary = run("check", ".", "--format", "github").out.splitlines()
    assert line.startswith(f"::error file=a%2Cb%25/net.py,line=5,col=12,title={FLAG}::torch.cuda")
    assert summary == "Findings: 1 new (1 fail)"
    line, _ = run("check", ".", "--format", "github", "--fail-on", "API").out.splitlines()
    assert line.startswith("::warning ")


def test_a_notebook_counts_by_cell(run, here: Path) -> None:
    cells = [
        "import torch\n",
        "# torch2ms: ignore[DEV109] why\ntorch.cuda.Stream()\ntorch.cuda.Stream()",
    ]
    content = {
        "cells": [{"cell_type": "code", "metadata": {}, "outputs": [], "source": text,
                   "execution_count": None} for text in cells],
        "metadata": {}, "nbformat": 4, "nbformat_minor": 4,
    }  # fmt: skip
    Path("n.ipynb").write_text(json.dumps(content))
    places = [(f["cell"], f["line"], f["state"]) for f in found(run, "n.ipynb")]
    assert places == [(2, 2, "ignored"), (2, 3, "new")]
    assert "n.ipynb:cell 2:3:1 DEV109" in run("check", "n.ipynb").out


def test_comments_of_any_encoding_and_line_ends() -> None:
    data = "# coding: latin-1\r\nx = 'é'  # torch2ms: ignore[A1] é\r\n".encode("latin-1")
    (one,) = comments(data)
    assert (one.line, one.target, one.codes, one.reason) == (2, 2, ("A1",), "é")


def test_no_framework_is_loaded(here: Path) -> None:
    Path("net.py").write_text(STREAM.format(""))
    code = "import sys; from migrate.cli import main; print(main(['check', 'net.py']))\n"
    code += "print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "migrate.check.gather" in loaded
    assert not {"torch", "mindspore", "numpy", "jinja2"} & loaded


def test_the_hooks_name_commands_that_exist(run) -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    assert [hook["id"] for hook in hooks] == ["torch2ms-check"]
    for hook in hooks:
        program, *arguments = hook["entry"].split()
        assert program == "torch2ms" and hook["language"] == "python"
        assert run(*arguments, "--help").code == 0
