"""In: environments made up here. Out: what doctor finds, and that it imports no framework."""

from __future__ import annotations

import subprocess
import sys

import pytest

from migrate.workspace.doctor import diagnose, judge

RIGHT = {"torch": "2.13.0", "mindspore": "2.10.0", "numpy": "1.26.4"}


def found(python=(3, 11), flags=(), environment=None, memory=16.0, **versions):
    known = {**RIGHT, **versions}
    findings = judge(
        python, lambda name: known[name], "x86_64", frozenset(flags), environment or {}, 4, memory
    )
    return {finding.name: finding for finding in findings}


def test_a_right_environment_needs_nothing():
    assert {finding.level for finding in found().values()} == {"ok"}


@pytest.mark.parametrize(
    ("name", "level", "step", "given"),
    [
        ("Python", "problem", "3.11", {"python": (3, 13)}),
        ("torch", "problem", "--torch-python", {"torch": ""}),
        ("mindspore", "problem", "torch2mindspore[verify]", {"mindspore": ""}),
        ("mindspore", "advice", "2.10", {"mindspore": "2.3.0"}),
        ("numpy", "problem", "numpy<2", {"numpy": "2.1.0"}),
        ("numpy", "advice", "numpy<2", {"numpy": "2.1.0", "mindspore": ""}),
        ("oneDNN", "advice", "ONEDNN_MAX_CPU_ISA=AVX2", {"flags": ("avx2", "avx512f")}),
        ("machine", "advice", "--jobs 1", {"memory": 1.5}),
    ],
)
def test_each_lack_has_a_next_step(name, level, step, given):
    finding = found(**given)[name]
    assert finding.level == level
    assert step in finding.next_step


def test_avx512_is_fine_once_the_variable_is_set():
    flags, environment = ("avx512f",), {"ONEDNN_MAX_CPU_ISA": "AVX2"}
    assert found(flags=flags, environment=environment)["oneDNN"].level == "ok"


def test_this_machine_is_looked_at_without_importing_a_framework():
    assert [finding.name for finding in diagnose()][:4] == ["Python", "torch", "mindspore", "numpy"]
    code = (
        "import sys; from migrate.workspace.doctor import diagnose; diagnose(); "
        "sys.exit(any(name in sys.modules for name in ('torch', 'mindspore', 'numpy')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
