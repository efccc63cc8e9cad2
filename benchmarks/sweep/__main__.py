"""Convert whole installed packages and run their Modules in both frameworks.

    python benchmarks/sweep PACKAGE... --out DIR [--most N] [--seed S] [--mode pynative|graph]

A PACKAGE is what is imported (``vit_pytorch``). ``find.py`` draws Modules that torch can build and
run; the package is converted by its installed folder, as its user would, and every Module is built,
given torch's weights and run: in train mode twice, its gradients, and in eval mode. Modules
that draw numbers in train mode are run in eval mode alone.

Classes: RIGHT, FLAGGED (stops at a flag), LOUD (raises something else), FOREIGN (needs a package
that was not converted), SILENT (other numbers). Prints a table by package and what failed by
cause; DIR gets ``sweep.json``. Exit status 1 where anything is SILENT.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import re
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

HERE = Path(__file__).resolve().parent


_silent = importlib.util.spec_from_file_location(
    "silent_board", HERE.parent / "silent" / "__main__.py"
)
assert _silent is not None and _silent.loader is not None
board = importlib.util.module_from_spec(_silent)
sys.modules["silent_board"] = board
_silent.loader.exec_module(board)

FLAG = re.compile(r"torch2ms [A-Z]{3}\d{3}")
FOREIGN = re.compile(r"No module named")


def folder_of(package: str) -> Path:
    """Return where a package is installed: a folder, or one file."""
    spec = importlib.util.find_spec(package)
    assert spec is not None and spec.origin is not None, f"{package} is not installed"
    origin = Path(spec.origin)
    return origin.parent if spec.submodule_search_locations else origin


def found(package: str, out: Path, most: int, seed: int) -> list[dict[str, str]]:
    """Return the Modules of a package that torch can run; a crash costs the class it was in."""
    path = out / "found.jsonl"
    known = path.exists()  # of an earlier run into the same folder
    path.touch()
    for _ in range(0 if known else 20):
        before = path.read_text(encoding="utf-8")
        command = [sys.executable, str(HERE / "find.py"), package, str(path), str(most), str(seed)]
        try:
            ran = subprocess.run(command, timeout=900, capture_output=True, text=True)
        except subprocess.TimeoutExpired:
            break
        if ran.returncode == 0:
            break
        lines = path.read_text(encoding="utf-8")
        if lines == before:
            why = {"why": f"died: {ran.returncode} {ran.stderr[-300:]}"}
            path.write_text(lines + json.dumps(why) + "\n", encoding="utf-8")
            if not lines:  # it cannot be imported
                break
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def convert(package: str, out: Path) -> tuple[int, int, float]:
    """Convert a package into ``out/dst``; return the files with a flag, all files and seconds."""
    source, target = folder_of(package), out / "dst" / package
    if source.is_file():
        target = out / "dst"
    started = time.monotonic()
    if not target.exists():
        command = [sys.executable, "-m", "migrate", "convert", str(source), "-o", str(target)]
        ran = subprocess.run([*command, "--force", "--jobs", "1"], capture_output=True, text=True)
        (out / "convert.log").write_text(ran.stdout + ran.stderr, encoding="utf-8")
    texts = [p.read_text(encoding="utf-8") for p in target.rglob("*.py")]
    flagged = sum(bool(FLAG.search(t)) for t in texts)
    return flagged, len(texts), time.monotonic() - started


def programs(package: str, modules: list[dict[str, str]], out: Path) -> list[board.Program]:
    """Write one program for each Module that torch can run."""
    folder = out / "programs"
    folder.mkdir(exist_ok=True)
    made = []
    for number, one in enumerate(m for m in modules if "build" in m):
        path = folder / f"{package}_{number:04d}_{one['name']}.py"
        path.write_text(
            f"from {one['module']} import {one['name']}\n\n"
            f"#: {one['kind']} {one['build']} <- {one['inputs']}\n",
            encoding="utf-8",
        )
        made.append(board.Program(path.stem, path, path))
    return made


def verdict(row: board.Row) -> str:
    """Return the class of a Module."""
    if row.verdict in ("RIGHT", "SILENT", "FLAGGED"):
        return row.verdict
    return "FOREIGN" if any(FOREIGN.search(f) for f in row.found) else row.verdict


def swept(package: str, out: Path, given: argparse.Namespace) -> list[tuple[str, board.Row]]:
    """Convert a package and run its Modules; return their classes and what was found."""
    out.mkdir(parents=True, exist_ok=True)
    modules = found(package, out, given.most, given.seed)
    flagged, files, seconds = convert(package, out)
    todo = programs(package, modules, out)
    print(f"{package}: {len(todo)} Modules of {len(modules)} tried run in torch; {files} files in"
          f" {seconds:.0f} s, {flagged} with a flag", flush=True)  # fmt: skip
    if not files:  # torch's own package would be imported in its place
        return [
            ("LOUD", board.Row(p.name, "LOUD", 0, ["no output: see convert.log"])) for p in todo
        ]
    work = out / "answers"
    work.mkdir(exist_ok=True)
    paths = os.environ.get("PYTHONPATH", "")
    expected = board.answers("torch", todo, work, given.seconds)
    os.environ["PYTHONPATH"] = f"{out / 'dst'}:{paths}"
    mine = board.answers(given.mode, todo, work, given.seconds)
    os.environ["PYTHONPATH"] = paths
    rows = [
        board.judged(p, expected.get(p.name, {}), {given.mode: mine.get(p.name, {})}) for p in todo
    ]
    return [(verdict(row), row) for row in rows]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("packages", nargs="+")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--most", type=int, default=60, help="Modules of a package")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--mode", choices=board.MODES, default="pynative")
    parser.add_argument("--seconds", type=float, default=60.0, help="for one Module on one side")
    given = parser.parse_args()
    table: dict[str, list[tuple[str, board.Row]]] = {}
    for package in given.packages:
        try:
            table[package] = swept(package, given.out.resolve() / package, given)
        except Exception as error:  # the next package is told of all the same
            print(f"{package}: {type(error).__name__}: {error}")
            continue
        counts = Counter(v for v, _ in table[package])
        print(f"    {dict(counts)}", flush=True)
        for one, row in table[package]:
            if one != "RIGHT":
                why = row.found[0].replace("\n", " ") if row.found else ""
                print(f"    {one:8} {row.name:40} {why[:200]}", flush=True)
    kept = {p: [(v, r.name, r.found) for v, r in rows] for p, rows in table.items()}
    (given.out / "sweep.json").write_text(json.dumps(kept, indent=1), encoding="utf-8")
    everything = Counter(v for rows in table.values() for v, _ in rows)
    print("| package | Modules | right | flagged | loud | foreign | silent |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    total = [row for rows in table.values() for row in rows]
    for package, rows in [*table.items(), ("all", total)]:
        counts = Counter(v for v, _ in rows)
        cells = [counts[c] for c in ("RIGHT", "FLAGGED", "LOUD", "FOREIGN", "SILENT")]
        print(f"| {package} | {len(rows)} | " + " | ".join(map(str, cells)) + " |")
    return bool(everything["SILENT"])


if __name__ == "__main__":
    sys.exit(main())
