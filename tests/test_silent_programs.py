"""Small hostile programs give torch's numbers, or stop where they are flagged, in both modes."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        any(importlib.util.find_spec(name) is None for name in ("torch", "mindspore")),
        reason="needs torch and MindSpore",
    ),
]


def test_no_program_is_silently_wrong(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "benchmarks" / "silent"), "--out", str(tmp_path)],
        capture_output=True, text=True, timeout=1800, cwd=ROOT, env={**os.environ},
    )  # fmt: skip
    rows = json.loads((tmp_path / "summary.json").read_text(encoding="utf-8"))["rows"]
    programs = [
        p for p in (ROOT / "tests" / "silent_programs").iterdir() if p.name != "__pycache__"
    ]
    assert len(rows) == len(programs)
    wrong = [r for r in rows if r["verdict"] not in ("RIGHT", "FLAGGED")]
    assert not wrong and not done.returncode, wrong
