"""In: scripts that save, load and read data. Out: that the converted ones print the same values."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from migrate.mapping import table
from migrate.records.outcomes import Outcome
from migrate.workspace.project import convert_text

PROGRAMS = sorted((Path(__file__).parent / "script_programs").glob("*.py"))
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        any(importlib.util.find_spec(name) is None for name in ("torch", "mindspore")),
        reason="needs torch and MindSpore",
    ),
]


def printed(path: Path) -> object:
    """What the script prints last, read as JSON."""
    done = subprocess.run(
        [sys.executable, str(path)], capture_output=True, text=True, timeout=300, cwd=path.parent,
        env={**os.environ, "ONEDNN_MAX_CPU_ISA": "AVX2"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_a_converted_script_prints_the_same(path: Path, tmp_path: Path) -> None:
    made = convert_text(path.read_text(encoding="utf-8"), table.load(()))
    flagged = [e for e in made.entries if e.outcome is Outcome.FLAGGED]
    assert not flagged, flagged
    target = tmp_path / path.name
    target.write_text(made.text, encoding="utf-8")
    expected, found = printed(path), printed(target)
    assert isinstance(expected, dict) and expected
    assert isinstance(found, dict) and found.keys() == expected.keys()
    for key, value in expected.items():
        numbers = value if isinstance(value, list) else [value]
        if all(isinstance(number, float) for number in numbers):
            value = pytest.approx(value, rel=1e-5, abs=1e-6)
        assert found[key] == value, key
