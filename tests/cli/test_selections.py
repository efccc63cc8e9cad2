"""In: a function in which names depend on each other. Out: masks are soon asked for."""

from __future__ import annotations

import time
from pathlib import Path

from migrate.cli.app import main


def test_names_that_are_bound_twice_are_looked_at_once(tmp_path: Path) -> None:
    """Each name is made of the one before, twice: every path through them would take for ever."""
    steps = [
        f"    v{i} = v{i - 1} * v{i - 1}.abs()\n    v{i} = v{i} + v{i - 1}\n" for i in range(1, 40)
    ]
    body = "".join(steps) + "    return v39.sum(0), v39.mean(0), torch.max(v39, 0)\n"
    source = tmp_path / "many.py"
    source.write_text(f"import torch\n\n\ndef f(v0: torch.Tensor):\n{body}", encoding="utf-8")
    start = time.process_time()
    assert main(["convert", str(source), "-o", str(tmp_path / "out")]) == 0
    assert time.process_time() - start < 30
