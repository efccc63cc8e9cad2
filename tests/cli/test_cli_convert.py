"""In: small files and projects. Out: what ``torch2ms convert`` writes, says, and its exit codes."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from migrate.codegen import helper_copy
from migrate.engine import rewrite
from migrate.workspace.record import locate

CLEAN = "import torch\n\n\ndef f(x):\n    return torch.abs(x)  # size\n"
FLAGGED = CLEAN + "\n\ny = torch.cuda.nvtx.range_push('a')\n"
PLAIN = "import os\n\nprint(os.sep)\n"


def test_a_file_into_a_folder(run, write) -> None:
    root = write({"net.py": CLEAN})
    out = root.parent / "out"
    done = run("convert", root / "net.py", "-o", out)
    assert (done.code, done.err) == (0, "")
    assert sorted(os.listdir(out)) == ["net.py", "torch2ms.base.zip", "torch2ms.json"]
    text = (out / "net.py").read_text()
    assert "torch" not in text
    assert "# size" in text
    ast.parse(text)
    assert f"torch2ms report {out} -o report.html" in done.out


def test_a_file_into_a_named_file_with_its_own_record(run, write) -> None:
    root = write({"net.py": CLEAN})
    out = root.parent / "out" / "other.py"
    assert run("convert", root / "net.py", "-o", out).code == 0
    assert sorted(os.listdir(out.parent)) == [
        "other.py", "other.torch2ms.base.zip", "other.torch2ms.json",
    ]  # fmt: skip
    found = locate(out)
    assert (found.file, found.record.kind) == ("net.py", "file")
    assert found.record.source_root == str((root / "net.py").resolve())
    assert found.record.files[0].output == "other.py"


def test_two_files_with_records_of_their_own_share_a_folder(run, write) -> None:
    root = write({"a.py": CLEAN, "b.py": CLEAN})
    out = root.parent / "out"
    for name in ("a.py", "b.py"):
        assert run("convert", root / name, "-o", out / name).code == 0
    assert locate(out / "b.py").file == "b.py"


def test_a_folder_keeps_its_tree_and_other_files(run, write) -> None:
    root = write({"pkg/__init__.py": "", "pkg/net.py": CLEAN, "data/a.bin": b"\0\1", "x.py": PLAIN})
    (root / "x.py").chmod(0o755)
    (root / "data/a.bin").chmod(0o444)
    (root / "link.py").symlink_to("pkg/net.py")
    out = root.parent / "out"
    assert run("convert", root, "-o", out).code == 0
    assert (out / "data/a.bin").read_bytes() == b"\0\1"
    assert os.access(out / "data/a.bin", os.W_OK)
    assert os.access(out / "x.py", os.X_OK)
    assert (out / "x.py").read_text() == PLAIN
    assert os.readlink(out / "link.py") == "pkg/net.py"
    assert "torch" not in (out / "pkg/net.py").read_text()
    status = {file.source: file.status for file in locate(out).record.files}
    assert status["x.py"] == "copied"
    assert status["pkg/net.py"] == "converted"


def test_links_point_into_the_output_or_out_of_it_as_before(run, write) -> None:
    root = write({"net.py": CLEAN})
    outside = root.parent / "weights.bin"
    outside.write_bytes(b"w")
    for name, target in (
        ("inside", root.resolve() / "net.py"),
        ("relative", "../weights.bin"),
        ("absolute", outside.resolve()),
        ("dangling", "nowhere"),
        ("loop", "."),
    ):
        (root / name).symlink_to(target)
    out = root.parent / "deep" / "out"
    assert run("convert", root, "-o", out).code == 0
    assert os.readlink(out / "inside") == str(out.resolve() / "net.py")
    assert (out / "relative").read_bytes() == (out / "absolute").read_bytes() == b"w"
    assert (os.readlink(out / "dangling"), os.readlink(out / "loop")) == ("nowhere", ".")


def test_the_record_accounts_for_everything(run, write) -> None:
    root = write({"a.py": FLAGGED, "b.py": PLAIN, "venv/pyvenv.cfg": "", "venv/c.py": CLEAN})
    out = root.parent / "out"
    assert run("convert", root, "-o", out).code == 1
    record = locate(out).record
    assert record.ledger.adds_up
    assert record.ledger.flagged >= 1
    assert record.facts["torch"] and record.facts["mindspore"]
    by_source = {file.source: file for file in record.files}
    assert (by_source["venv"].status, by_source["venv"].reason) == (
        "skipped",
        "virtual environment",
    )
    assert len(by_source["a.py"].entries) == by_source["a.py"].ledger.total
    assert by_source["b.py"].source_sha256 == by_source["b.py"].output_sha256


def test_flags_are_listed_with_place_code_and_reason(run, write) -> None:
    root = write({"net.py": FLAGGED})
    done = run("convert", root / "net.py", "-o", root.parent / "out")
    assert done.code == 1
    line = next(line for line in done.out.splitlines() if line.startswith(str(root)))
    place, code = line.split()[:2]
    assert place == f"{root / 'net.py'}:8:5"
    assert code[:3].isupper() and code[3:].isdigit()


def test_diff_writes_nothing(run, write, snapshot) -> None:
    root = write({"net.py": FLAGGED, "b.py": PLAIN})
    before = snapshot(root.parent)
    done = run("convert", root, "-o", root.parent / "out", "--diff")
    assert done.code == 1
    assert snapshot(root.parent) == before
    assert done.out.startswith("--- a/net.py\n+++ b/net.py\n@@")
    assert "-import torch\n" in done.out
    assert "b.py" not in done.out
    assert "References:" in done.err


def test_strict_is_all_or_nothing(run, write) -> None:
    root = write({"net.py": CLEAN, "bad.py": FLAGGED})
    out = root.parent / "out"
    done = run("convert", root, "-o", out, "--strict")
    assert done.code == 1
    assert not out.exists()
    assert "Nothing is written" in done.out
    assert run("convert", root / "net.py", "-o", out, "--strict").code == 0
    assert (out / "net.py").exists()


def test_force_replaces_and_leaves_the_rest(run, write) -> None:
    root = write({"net.py": CLEAN})
    out = write({"net.py": "old\n", "mine.txt": "keep"}, "out")
    assert run("convert", root, "-o", out, "--force").code == 0
    assert "def f(" in (out / "net.py").read_text()
    assert (out / "net.py.orig").read_text() == "old\n"
    assert (out / "mine.txt").read_text() == "keep"


def test_a_crash_on_one_file_does_not_stop_the_others(run, write, monkeypatch) -> None:
    real = rewrite.convert

    def convert(inference, path, options):
        if path == "bad.py":
            raise RuntimeError("boom")
        return real(inference, path, options)

    monkeypatch.setattr(rewrite, "convert", convert)
    root = write({"bad.py": CLEAN, "net.py": CLEAN})
    for jobs in (1, 2):
        out = root.parent / f"out{jobs}"
        done = run("convert", root, "-o", out, "--jobs", jobs)
        assert done.code == 3
        assert f"{root / 'bad.py'}: internal error of torch2ms: RuntimeError: boom" in done.out
        assert sorted(os.listdir(out)) == ["net.py", "torch2ms.base.zip", "torch2ms.json"]
        failed = next(file for file in locate(out).record.files if file.source == "bad.py")
        assert (failed.status, failed.output) == ("failed", "")


def test_a_process_that_dies_costs_one_file(run, write, monkeypatch) -> None:
    real = rewrite.convert

    def convert(inference, path, options):
        if path == "bad.py":
            os._exit(7)
        return real(inference, path, options)

    monkeypatch.setattr(rewrite, "convert", convert)
    root = write({"bad.py": CLEAN, **{f"n{i}.py": CLEAN for i in range(5)}})
    done = run("convert", root, "-o", root.parent / "out", "--jobs", 2)
    assert done.code == 3
    assert "its process ended with exit code 7" in done.out
    assert len(os.listdir(root.parent / "out")) == 7


def test_output_that_is_not_python_is_a_fault_of_ours(run, write, monkeypatch) -> None:
    real = rewrite.convert

    def convert(inference, path, options):
        made = real(inference, path, options)
        return rewrite.Rewritten(
            b"def (", made.entries, made.ledger, made.helpers, made.cells, made.weights
        )

    monkeypatch.setattr(rewrite, "convert", convert)
    root = write({"net.py": CLEAN})
    done = run("convert", root / "net.py", "-o", root.parent / "out")
    assert done.code == 3
    assert not (root.parent / "out" / "net.py").exists()


def test_jobs_change_nothing(run, write, snapshot) -> None:
    files = {f"m{i}/__init__.py": "" for i in range(3)}
    files |= {f"m{i}/f{j}.py": FLAGGED if j else CLEAN for i in range(3) for j in range(3)}
    root = write(files)
    outs = [root.parent / f"out{jobs}" for jobs in (1, 3)]
    for jobs, out in zip((1, 3), outs, strict=True):
        assert run("convert", root, "-o", out, "--jobs", jobs).code == 1
    assert snapshot(outs[0]) == snapshot(outs[1])


def test_a_second_run_on_the_output_changes_nothing(run, write, snapshot) -> None:
    name = sorted(helper_copy.library())[0]
    helpers = helper_copy.module_text([name])
    root = write({"pkg/__init__.py": "", "pkg/net.py": CLEAN, "pkg/torch_helpers.py": helpers})
    first, second = root.parent / "first", root.parent / "second"
    assert run("convert", root, "-o", first).code == 0
    assert run("convert", first, "-o", second).code == 0
    before, after = snapshot(first), snapshot(second)
    before.pop("torch2ms.json"), after.pop("torch2ms.json")
    assert before == after
    assert after["pkg/torch_helpers.py"] == helpers.encode()


def test_helpers_stand_in_a_file_or_in_a_module(run, write) -> None:
    source = "import torch.nn as nn\n\nlayers = {'conv': nn.Conv2d}\n"
    root = write({"pkg/__init__.py": "", "pkg/sub/__init__.py": "", "pkg/sub/net.py": source})
    one, two = root.parent / "one", root.parent / "two"
    assert run("convert", root / "pkg/sub/net.py", "-o", one).code == 0
    assert "class Conv2d(" in (one / "net.py").read_text()
    assert run("convert", root, "-o", two).code == 0
    assert "from ..torch_helpers import Conv2d" in (two / "pkg/sub/net.py").read_text()
    module = (two / "pkg/torch_helpers.py").read_bytes()
    assert helper_copy.is_ours(module)
    assert "Conv2d" in helper_copy.names_in(module)


def test_convert_does_not_load_a_framework(write) -> None:
    root = write({"net.py": FLAGGED})
    out, page = str(root.parent / "out"), str(root.parent / "r.html")
    code = (
        "import sys\nfrom migrate.cli import main\n"
        f"codes = [main(['convert', {str(root)!r}, '-o', {out!r}]),\n"
        f"    main(['report', {out!r}, '-o', {page!r}]),\n"
        "    main(['explain', 'torch.abs'])]\n"
        "print(codes, sorted({'torch', 'mindspore', 'numpy'} & set(sys.modules)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True,
        cwd=Path(__file__).parents[2],
    )  # fmt: skip
    assert done.stdout.splitlines()[-1] == "[1, 0, 0] []"


def test_settings_name_exclusions_and_mappings(run, write) -> None:
    rows = '["torch.cuda.nvtx.range_push"]\nsignature = "range_push(msg)"\nto = "print(msg)"\n'
    root = write(
        {
            "pyproject.toml": '[tool.torch2ms]\nmappings = ["my.toml"]\nexclude = ["old/"]\n',
            "my.toml": rows,
            "net.py": FLAGGED,
            "old/net.py": FLAGGED,
        }
    )
    done = run("convert", root, "-o", root.parent / "out")
    assert not (root.parent / "out/old").exists()
    assert "range_push" not in (root.parent / "out/net.py").read_text(), done.out


@pytest.mark.parametrize(
    ("option", "named"),
    [("--follow", "nosuchpackage"), ("--follow-path", "nosuchfolder")],
)
def test_what_is_to_be_followed_has_to_be_there(run, write, option: str, named: str) -> None:
    root = write({"net.py": CLEAN})
    done = run("convert", root / "net.py", "-o", root.parent / "out", option, named)
    assert done.code == 2
    assert f"{option} {named}" in done.err and "next: " in done.err


def test_settings_may_name_packages_that_are_not_here(run, write) -> None:
    settings = '[tool.torch2ms]\nfollow = ["nosuchpackage"]\nfollow_path = ["nosuchfolder"]\n'
    root = write({"pyproject.toml": settings, "net.py": CLEAN})
    assert run("convert", root / "net.py", "-o", root.parent / "out").code == 0


def test_the_schema_version_is_checked(run, write) -> None:
    root = write({"net.py": CLEAN})
    out = root.parent / "out"
    run("convert", root, "-o", out)
    path = out / "torch2ms.json"
    content = json.loads(path.read_text())
    path.write_text(json.dumps({**content, "schema_version": 99}))
    done = run("report", out, "-o", root.parent / "r.html")
    assert done.code == 2
    assert "schema 99" in done.err


@pytest.mark.parametrize("format", ["html", "json"])
def test_report_by_the_ending_of_its_file(run, write, format: str) -> None:
    root = write({"net.py": CLEAN})
    run("convert", root, "-o", root.parent / "out")
    file = root.parent / f"r.{format}"
    done = run("report", root.parent / "out", "-o", file)
    assert done.code == 0
    assert "NOT verified" in done.out
    assert file.read_text().lstrip()[0] == ("<" if format == "html" else "{")


def test_torch_names_in_configurations_are_flagged(run, write) -> None:
    config = (
        "model:\n  _target_: torch.nn.Linear\n  name: my.torch.thing\n  url: x.org/torch.html\n"
    )
    files = {"conf/a.yaml": config, "net.py": "", "notes.md": "torch.nn.Linear", "b.json": "{}"}
    root = write(files)
    done = run("convert", root, "-o", root.parent / "out")
    assert done.code == 1
    assert f"{root / 'conf/a.yaml'}:2:13 ENV510 torch.nn.Linear:" in done.out
    assert done.out.count("ENV510 torch") == 1
    assert (root.parent / "out/conf/a.yaml").read_text() == config
    record = locate(root.parent / "out").record
    assert (record.ledger.total, record.ledger.flagged) == (1, 1)
