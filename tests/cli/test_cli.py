"""In: arguments. Out: versions, help, usage errors and exit codes of every command."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from migrate import __version__
from migrate.cli import app as cli

COMMANDS = [
    (),
    ("convert",),
    ("fix",),
    ("scan",),
    ("check",),
    ("verify",),
    ("report",),
    ("explain",),
    ("rules",),
    ("doctor",),
    ("table",),
    ("table", "list"),
    ("table", "lint"),
    ("table", "docs"),
    ("table", "facts"),
    ("table", "verify"),
]


@pytest.mark.parametrize("command", COMMANDS)
def test_version_everywhere(run, command: tuple[str, ...]) -> None:
    done = run(*command, "--version")
    assert (done.code, done.out) == (0, f"torch2ms {__version__}\n")


@pytest.mark.parametrize("command", COMMANDS)
def test_help_everywhere(run, command: tuple[str, ...]) -> None:
    done = run(*command, "--help")
    assert done.code == 0
    assert "Usage: torch2ms" in done.out


@pytest.mark.parametrize("command", ["convert", "fix", "scan", "verify", "report", "explain"])
def test_help_shows_an_example(run, command: str) -> None:
    assert f"  torch2ms {command} " in run(command, "--help").out.partition("Example")[2]


@pytest.mark.parametrize(
    "arguments",
    [
        ("convert",),
        ("convert", "x.py"),
        ("convert", "x.py", "-o", "y", "--target", "cuda"),
        ("convert", "x.py", "-o", "y", "--jobs", "-1"),
        ("verify", ".", "--mode", "eager"),
        ("nonsense",),
        ("table", "nonsense"),
    ],
)
def test_usage_errors(run, arguments: tuple[str, ...]) -> None:
    done = run(*arguments)
    assert done.code == 2
    assert done.err


def test_a_diff_needs_no_place_to_write_to(run, write, snapshot) -> None:
    root = write({"net.py": "import torch\n\n\ndef f(x):\n    return torch.poisson(x)\n"})
    before = snapshot(root.parent)
    for source in (root, root / "net.py"):
        done = run("convert", source, "--diff")
        assert done.code == 1
        assert done.out.startswith("--- a/net.py\n+++ b/net.py\n")
        assert snapshot(root.parent) == before
    done = run("convert", root)
    assert done.code == 2
    assert f"torch2ms convert {root} -o OUT, or --diff to see it" in done.err


def test_colours_where_they_are_wanted(run, write, monkeypatch) -> None:
    root = write({"net.py": "import torch\n\n\ndef f(x):\n    return torch.poisson(x)\n"})
    for name in ("NO_COLOR", "FORCE_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    plain = run("convert", root, "--diff"), run("check", root)
    assert not any("\33[" in done.out + done.err for done in plain)
    monkeypatch.setenv("FORCE_COLOR", "1")
    shown = run("convert", root, "--diff")
    assert "\33[31mAPI104\33[0m \33[1mtorch.poisson\33[0m: " in shown.err
    assert "\33[31m-    return torch.poisson(x)\33[0m\n" in shown.out
    assert re.sub("\x1b\\[[0-9]+m", "", shown.out) == plain[0].out
    assert re.sub("\x1b\\[[0-9]+m", "", shown.err) == plain[0].err
    assert "\33[31mAPI104" in run("check", root).out
    assert "\33[" not in run("check", root, "--format", "json").out
    monkeypatch.setenv("NO_COLOR", "1")
    assert [run("convert", root, "--diff"), run("check", root)] == list(plain)


@pytest.mark.parametrize(
    ("shell", "place"),
    [("bash", ".bash_completions/torch2ms.sh"), ("zsh", ".zfunc/_torch2ms"),
     ("fish", ".config/fish/completions/torch2ms.fish")],
)  # fmt: skip
def test_completion_is_installed(run, monkeypatch, tmp_path: Path, shell: str, place: str) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    done = run("--install-completion", shell)
    assert done.code == 0 and shell in done.out, done.err
    text = (tmp_path / place).read_text()
    assert "_TORCH2MS_COMPLETE" in text
    assert run("--show-completion", shell).out.strip() == text.strip()


def test_an_unknown_shell_is_told_which_there_are(run) -> None:
    assert "'bash', 'zsh', 'fish'" in run("--install-completion", "tcsh").err


ASKING = {
    "bash": {"COMP_WORDS": "torch2ms convert --tra", "COMP_CWORD": "2"},
    "zsh": {"_TYPER_COMPLETE_ARGS": "torch2ms convert --tra"},
    "fish": {"_TYPER_COMPLETE_ARGS": "torch2ms convert --tra",
             "_TYPER_COMPLETE_FISH_ACTION": "get-args"},
}  # fmt: skip


@pytest.mark.parametrize("shell", ASKING)
def test_a_shell_is_answered_a_line_for_each_option(shell: str) -> None:
    asked = {"_TORCH2MS_COMPLETE": f"complete_{shell}", "COLUMNS": "40", **ASKING[shell]}
    done = subprocess.run(
        [sys.executable, "-m", "migrate"], capture_output=True, text=True, timeout=60, check=False,
        cwd=Path(__file__).parents[2], env={**os.environ, **asked},
    )  # fmt: skip
    assert "--trace" in done.stdout and "--train-style" in done.stdout, done.stderr
    assert len(done.stdout.splitlines()) == 2


def test_an_unexpected_error_is_reported_as_ours(run, monkeypatch) -> None:
    monkeypatch.setattr("migrate.cli.questions.explain", lambda *given: 1 // 0)
    done = run("explain", "torch.abs")
    assert done.code == 3
    assert "internal error: ZeroDivisionError" in done.err
    assert "please report it" in done.err


def test_explain_shows_row_signatures_and_example(run) -> None:
    done = run("explain", "torch.Tensor.addmm")
    assert done.code == 0
    assert "torch:     (mat1: Tensor, mat2: Tensor" in done.out
    assert "becomes: " in done.out
    assert "-     return x0.addmm(x1, x2)" in done.out
    assert "evidence:" in done.out


def test_explain_finds_a_name_without_its_namespace(run) -> None:
    assert run("explain", "Conv2d").out.startswith("torch.nn.Conv2d\n")


def test_explain_suggests(run) -> None:
    done = run("explain", "torch.Tensor.adddmm")
    assert done.code == 2
    assert "did you mean torch.Tensor.addmm?" in done.err


def test_table_list_chooses_by_a_part_of_the_name(run) -> None:
    done = run("table", "list", "Tensor.addmm")
    assert done.code == 0
    assert "torch.Tensor.addmm\n" in done.out
    assert run("table", "list", "no_such_name").code == 1


def test_python_m_migrate() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "migrate", "--version"], capture_output=True, text=True,
        timeout=60, check=False, cwd=Path(__file__).parents[2],
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, f"torch2ms {__version__}\n")


def test_the_app_lists_what_is_tested_here() -> None:
    names = {command.callback.__name__ for command in cli.app.registered_commands}
    assert names == {c[0] for c in COMMANDS if len(c) == 1} - {"table"}
