"""In: the sample notebook, converted. Out: whether its cells run in order and the net learns."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "samples" / "notebook"


def script(notebook: Path) -> str:
    """The code cells as one program, as far as IPython is not needed."""
    lines: list[str] = []
    for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] != "code" or source.startswith("%%bash"):
            continue
        for line in source.split("\n"):
            line = line.replace("%time ", "").replace("!ls", "['file']")
            if not line.startswith(("%", "!")):
                lines.append(line)
    return "\n".join(lines)


@pytest.mark.slow
@pytest.mark.parametrize("framework", ["torch", "mindspore"])
def test_the_notebook_runs(framework: str, tmp_path: Path) -> None:
    pytest.importorskip(framework)
    program = tmp_path / "program.py"
    program.write_text(script(FOLDER / framework / "stripes.ipynb"), encoding="utf-8")
    place = os.pathsep.join([str(FOLDER / framework), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": place, "ONEDNN_MAX_CPU_ISA": "AVX2"}
    done = subprocess.run(
        [sys.executable, str(program)], capture_output=True, text=True, timeout=200,
        cwd=tmp_path, env=environment,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    files, smaller, right = done.stdout.split()[-3:]
    assert (files, smaller) == ("True", "True")
    assert float(right) > 0.4  # a quarter is chance
