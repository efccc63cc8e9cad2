"""In: the installed frameworks. Out: mappings/facts/*.json, the same bytes on every run.

Each framework is imported in a process of its own: one must not see what the other has loaded.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from migrate.mapping.signatures import FORMAT
from migrate.mapping.table import MINDSPORE_FACTS, TORCH_FACTS, mappings_folder
from migrate.records.outcomes import Problem

FILES = {"torch": TORCH_FACTS, "mindspore": MINDSPORE_FACTS}
TIMEOUT = 600.0


def write(folder: Path | None = None, progress: Callable[[str], None] = print) -> tuple[Path, ...]:
    """Write the facts of torch and MindSpore; gives the paths. Raises Problem."""
    folder = folder or mappings_folder() / "facts"
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for framework, name in FILES.items():
        progress(f"reading the signatures of {framework}")
        path = folder / name
        command = [sys.executable, "-m", "migrate.evidence.signatures", framework, str(path)]
        root = str(Path(__file__).resolve().parents[2])
        old = os.environ.get("PYTHONPATH", "")
        environment = {**os.environ, "PYTHONPATH": root + (os.pathsep + old if old else "")}
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=TIMEOUT, check=False
        )
        if done.returncode:
            last = (done.stderr.strip().splitlines() or ["no message"])[-1]
            raise Problem(
                f"facts of {framework}", "cannot be surveyed", last,
                'install both frameworks with: pip install "torch2mindspore[verify]"',
            )  # fmt: skip
        written.append(path)
    return tuple(written)


def dump(framework: str, release: str, names: Mapping[str, Any], aliases: Mapping[str, str]) -> str:
    """The text of a facts file: sorted, one name a line, no date and no path."""
    rows = ",\n".join(
        f"{json.dumps(name)}:{json.dumps(names[name], separators=(',', ':'))}"
        for name in sorted(names)
    )
    other = ",\n".join(f"{json.dumps(a)}:{json.dumps(aliases[a])}" for a in sorted(aliases))
    head = {"format": FORMAT, "framework": framework, "release": release}
    opening = json.dumps(head)[:-1]
    return f'{opening},\n"names":{{\n{rows}\n}},\n"aliases":{{\n{other}\n}}}}\n'


def main(framework: str, path: Path) -> None:
    """Survey one framework in this process and write its file."""
    if framework == "torch":
        from migrate.evidence.torch_signatures import collect
    else:
        from migrate.evidence.mindspore_signatures import collect
    names, aliases, release = collect()
    path.write_text(dump(framework, release, names, aliases), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
