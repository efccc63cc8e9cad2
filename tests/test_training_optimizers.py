"""In: training programs. Out: converted ones lose, schedule and scale as torch's, in both modes."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest
import training_programs

from migrate.cli import app as cli

HERE = Path(__file__).parent
SIDES = ("torch", "pynative", "graph")


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, object]]:
    """What every program gives on every side; each side runs in a process of its own."""
    folder = tmp_path_factory.mktemp("training")
    (folder / "torch").mkdir()
    training_programs.write(folder / "torch")
    cli.main(["convert", str(folder / "torch"), "-o", str(folder / "mindspore")])
    environment = {**os.environ, "ONEDNN_MAX_CPU_ISA": "AVX2"}
    for side in SIDES:
        source = folder / ("torch" if side == "torch" else "mindspore")
        command = [sys.executable, str(HERE / "training_programs.py"), side, str(source)]
        subprocess.run([*command, str(folder / f"{side}.json")], check=True, env=environment)
    return {side: json.loads((folder / f"{side}.json").read_text()) for side in SIDES}


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["pynative", "graph"])
@pytest.mark.parametrize("name", sorted(training_programs.programs()))
def test_twenty_steps_as_torch(ran: dict[str, dict[str, object]], name: str, mode: str) -> None:
    wanted, got = ran["torch"][name], ran[mode][name]
    assert isinstance(wanted, list), wanted
    assert isinstance(got, list), got
    assert len(wanted) >= 20 and len(set(wanted)) > 2, "the program does not train"
    assert len(got) == len(wanted)
    for index, (a, b) in enumerate(zip(wanted, got, strict=True)):
        assert math.isclose(a, b, rel_tol=1e-4, abs_tol=1e-6), f"value {index}: torch {a}, here {b}"
