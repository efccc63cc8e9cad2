"""In: tests/training_loops. Out: each loop, converted, gives torch's losses over 24 steps."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from migrate.workspace.project import convert_text

HERE = Path(__file__).parent
LOOPS = sorted(p.stem for p in (HERE / "training_loops").glob("*.py"))


def losses(framework: str, mode: str, folder: Path) -> dict[str, list[float] | str]:
    """What the worker prints, from a process of its own."""
    done = subprocess.run(
        [sys.executable, str(HERE / "training_worker.py"), framework, mode, str(folder)],
        env={**os.environ, "ONEDNN_MAX_CPU_ISA": "AVX2"},
        capture_output=True,
        text=True,
        timeout=600,
    )
    line = next((x for x in done.stdout.splitlines() if x.startswith("RESULT")), None)
    assert line, done.stderr[-2000:]
    found: dict[str, list[float] | str] = json.loads(line.removeprefix("RESULT"))
    return found


@pytest.fixture(scope="module")
def converted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("converted")
    for name in LOOPS:
        text = (HERE / "training_loops" / f"{name}.py").read_text(encoding="utf-8")
        made = convert_text(text)
        assert not [e for e in made.entries if e.code], name
        assert ".backward(" not in made.text and "TrainStep" in made.text.replace("OneStep", "Step")
        (folder / f"{name}.py").write_text(made.text, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def expected() -> dict[str, list[float] | str]:
    return losses("torch", "eager", HERE / "training_loops")


@pytest.mark.parametrize("mode", ["pynative", pytest.param("graph", marks=pytest.mark.slow)])
def test_losses_are_torchs_step_by_step(
    mode: str, converted: Path, expected: dict[str, list[float] | str]
) -> None:
    found = losses("mindspore", mode, converted)
    assert sorted(found) == LOOPS
    for name in LOOPS:
        mine, theirs = found[name], expected[name]
        assert isinstance(theirs, list), f"{name}: torch: {theirs}"
        assert isinstance(mine, list), f"{name}: {mine}"
        assert len(mine) == len(theirs) >= 24
        assert mine == pytest.approx(theirs, rel=2e-5, abs=2e-6), name
        assert len({round(x, 6) for x in theirs}) > 12, f"{name}: the losses hardly move"
