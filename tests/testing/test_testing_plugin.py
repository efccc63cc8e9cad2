"""In: tests written by hand with assert_parity. Out: right ports pass, wrong ones name the Cell."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from migrate.cli import verify
from migrate.parity.request import VerifyRequest
from migrate.records.outcomes import Problem, Verdict
from migrate.records.result import ModelResult, Verification
from migrate.testing.parity import assert_parity

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PROJECT = Path(__file__).parents[2] / "pyproject.toml"

TORCH = """import torch
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(4, 3)
        self.norm = torch.nn.LayerNorm(3)
    def forward(self, x):
        return self.norm(self.fc(x))
"""
MINDSPORE = """from mindspore import nn
class Net(nn.Cell):
    def __init__(self, epsilon=1e-5):
        super().__init__()
        self.fc = nn.Dense(4, 3)
        self.norm = nn.LayerNorm((3,), epsilon=epsilon)
    def construct(self, x):
        return self.norm(self.fc(x))
"""
TESTS = """
def test_right(assert_parity):
    result = assert_parity("net_torch:Net", "net_ms:Net", input="2x4", mode="pynative")
    assert sum(check.elements for check in result.checks) > 20

def test_wrong(assert_parity):
    assert_parity("net_torch:Net", "net_ms:Net(epsilon=0.5)", input="2x4", mode="pynative")
"""


@pytest.mark.slow
def test_a_fixture_for_tests_beside_both_modules(tmp_path: Path) -> None:
    files = {"net_torch.py": TORCH, "net_ms.py": MINDSPORE, "test_net.py": TESTS}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    command = [sys.executable, "-m", "pytest", "-p", "torch2ms_pytest", str(tmp_path)]
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(
        command, cwd=PROJECT.parent, env=environment, capture_output=True, text=True, timeout=240
    )
    assert "1 failed, 1 passed" in done.stdout, done.stdout[-3000:] + done.stderr[-1000:]
    assert "torch and MindSpore differ:" in done.stdout
    assert "first guilty: norm -> norm (forward eval, pynative)" in done.stdout


def test_the_entry_point_leads_to_the_fixture() -> None:
    points = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]["entry-points"]
    plugin = importlib.import_module(points["pytest11"]["torch2ms"])
    assert plugin.assert_parity.__name__ == "assert_parity"


def test_loading_the_plugin_loads_neither_the_tool_nor_a_framework() -> None:
    code = "import sys, torch2ms_pytest as p; print(*sys.modules)"
    lines = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(lines.stdout.split())
    assert not {"torch", "mindspore", "numpy", "typer", "migrate"} & loaded


@pytest.fixture
def out(run, write) -> Path:
    root = write({"a.py": "import torch\n\n\ndef f(x):\n    return torch.abs(x)\n"})
    assert run("convert", root, "-o", root.parent / "out").code == 0
    return root.parent / "out"


@pytest.mark.parametrize("verdict", list(Verdict))
def test_only_what_was_compared_and_agrees_passes(
    verdict: Verdict, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[VerifyRequest] = []

    def found(requests: Sequence[VerifyRequest]) -> Verification:
        asked.extend(requests)
        model = ModelResult(name="n", source="a.py", build="n()", inputs=(), verdict=verdict)
        return Verification(verdict=verdict, models=(model,))

    monkeypatch.setattr(verify, "_verify", found)
    before = sorted(out.rglob("*"))
    if verdict in (Verdict.PASS, Verdict.KERNEL, Verdict.NONDET):
        assert_parity(out, build="n()", input=["2x3", "scalar"], mode="graph", k=2.0)
    else:
        with pytest.raises(AssertionError, match=rf"{verdict.value} +a.py: n\(\)"):
            assert_parity(out, build="n()", input=["2x3", "scalar"], mode="graph", k=2.0)
    (request,) = asked
    given = (request.builds, request.inputs, request.modes, request.k)
    assert given == (("n()",), ("2x3", "scalar"), ("graph",), 2.0)
    assert sorted(out.rglob("*")) == before


def test_what_is_no_output_and_no_pair_is_said(tmp_path: Path) -> None:
    with pytest.raises(Problem, match="no record"):
        assert_parity(tmp_path)
    with pytest.raises(Problem, match="not a pair"):
        assert_parity("net.py", "net_ms:Net")
