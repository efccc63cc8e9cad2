"""In: arguments. Out: versions, help, usage errors and exit codes of every command."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from migrate import __version__
from migrate.cli import app as cli

COMMANDS = [
    (),
    ("convert",),
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


@pytest.mark.parametrize("command", ["convert", "scan", "verify", "report", "explain"])
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
