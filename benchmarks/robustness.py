"""In: folders (default: every installed package that imports torch). Out: what broke, by cause.

    python benchmarks/robustness.py [FOLDER...] [--jobs 2] [--limit 10] [--json FILE] [--whole]

Converts every file that imports torch, each alone, as ``convert FILE`` does, in processes of its
own. A file is sound when the tool does not crash or run out of time, the output parses and imports
no torch, the ledger adds up and agrees with the entries, no comment is lost, a file without
references stays as it is, a second conversion changes nothing, and a process with another hash seed
writes the same bytes. ``--whole`` converts each folder in one go instead, as ``convert FOLDER``
does, twice with the files in another order. The exit status is 1 when anything broke.
"""

from __future__ import annotations

import argparse
import ast
import importlib.util
import json
import multiprocessing
import os
import sys
import sysconfig
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import TimeoutError
from dataclasses import asdict, dataclass
from pathlib import Path

from pebble import ProcessPool
from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from soundness import Finding, alone, once, whole

SEEDS = ("1", "2")


@dataclass(frozen=True)
class Summary:
    """What was found over all; ``broken``: cause -> paths."""

    files: int
    lines: int
    references: int
    flagged: int
    unreadable: int
    seconds: float
    slowest: tuple[tuple[float, str], ...]
    broken: dict[str, list[str]]


def packages() -> list[Path]:
    """The installed packages with a file that imports torch; this tool and MindSpore apart."""
    site = Path(sysconfig.get_paths()["purelib"])
    own = importlib.util.find_spec("migrate")
    apart = {"mindspore", "migrate"} if own else {"mindspore"}
    tops = sorted(p for p in site.iterdir() if p.is_dir() and p.name not in apart)
    return [top for top in tops if any(map(imports_torch, top.rglob("*.py")))]


def imports_torch(path: Path) -> bool:
    """Whether an import statement of the file, wherever it stands, names torch."""
    try:
        data = path.read_bytes()
        if b"torch" not in data:
            return False
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(data)
    except (OSError, SyntaxError, ValueError):
        return False
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            if any(alias.name.split(".")[0] == "torch" for alias in node.names):
                return True
        elif isinstance(node, ast.ImportFrom) and (
            not node.level and (node.module or "").split(".")[0] == "torch"
        ):
            return True
    return False


def run(
    work: Callable[[Path], Finding], paths: Sequence[Path], seed: str, jobs: int, limit: float
) -> list[Finding]:
    """One finding for each path, from processes with the hash seed."""
    os.environ["PYTHONHASHSEED"] = seed
    found = []
    spawn = multiprocessing.get_context("spawn")
    with ProcessPool(max_workers=jobs, context=spawn) as pool, Progress(transient=True) as progress:
        task = progress.add_task(f"hash seed {seed}", total=len(paths))
        futures = {path: pool.schedule(work, args=(path,), timeout=limit) for path in paths}
        for path, future in futures.items():
            try:
                found.append(future.result())
            except TimeoutError:
                found.append(Finding(str(path), broken=(f"over {limit:g} s",)))
            except Exception as error:  # a process that died: told, and the others go on
                found.append(Finding(str(path), broken=(f"died: {type(error).__name__}",)))
            progress.advance(task)
    return found


def summary(first: Iterable[Finding], second: Iterable[Finding]) -> Summary:
    """Both runs together; what differs between them is a fault."""
    first = list(first)
    again = {finding.path: finding for finding in second}
    broken: dict[str, list[str]] = defaultdict(list)
    for finding in first:
        causes = list(finding.broken)
        other = again.get(finding.path)
        if other and other.digest and not causes and other.digest != finding.digest:
            causes.append("another hash seed or order of files, another output")
        for cause in causes:
            broken[cause].append(finding.path)
    slowest = sorted(((f.slowest, f.slowest_path or f.path) for f in first), reverse=True)
    return Summary(
        files=sum(f.files for f in first),
        lines=sum(f.lines for f in first),
        references=sum(f.references for f in first),
        flagged=sum(f.flagged for f in first),
        unreadable=sum(f.unreadable for f in first),
        seconds=round(sum(f.seconds for f in first), 2),
        slowest=tuple(slowest[:5]),
        broken=dict(sorted(broken.items(), key=lambda item: -len(item[1]))),
    )


def show(console: Console, found: Summary) -> None:
    """The numbers, then a table of what broke, the most frequent first."""
    console.print(
        f"{found.files:,} files, {found.lines:,} lines, {found.references:,} torch references "
        f"({found.flagged:,} flagged), {found.unreadable} not Python 3, "
        f"{found.lines / max(found.seconds, 1e-9):,.0f} lines/s of processor time"
    )
    for seconds, path in found.slowest:
        console.print(f"  {seconds:6.2f} s  {path}", soft_wrap=True, highlight=False)
    if not found.broken:
        console.print("nothing broke")
        return
    table = Table("cause", "files", "for example")
    for cause, paths in found.broken.items():
        table.add_row(cause, str(len(paths)), "\n".join(paths[:3]))
    console.print(table)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", type=Path, nargs="*", help="default: installed packages")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--limit", type=float, default=0.0, help="seconds, of one file or folder")
    parser.add_argument("--json", type=Path, help="also write what was found to this file")
    parser.add_argument("--whole", action="store_true", help="convert each folder in one go")
    arguments = parser.parse_args()
    folders = [folder.resolve() for folder in arguments.folders] or packages()
    if arguments.whole:
        works, paths, limit = (whole, whole), folders, 900.0
    else:
        files = (p for folder in folders for p in sorted(folder.rglob("*.py")))
        works, paths, limit = (alone, once), [p for p in files if imports_torch(p)], 60.0
    limit = arguments.limit or limit
    pairs = zip(works, SEEDS, strict=True)
    runs = [run(work, paths, seed, arguments.jobs, limit) for work, seed in pairs]
    found = summary(*runs)
    show(Console(width=160 if not sys.stdout.isatty() else None), found)
    causes = Counter({cause: len(paths) for cause, paths in found.broken.items()})
    if arguments.json:
        text = json.dumps({**asdict(found), "causes": causes}, indent=2)
        arguments.json.write_text(text + "\n", encoding="utf-8")
    return 1 if found.broken else 0


if __name__ == "__main__":
    sys.exit(main())
