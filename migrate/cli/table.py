"""In: the arguments of ``torch2ms table``. Out: lists, problems, facts and evidence files."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Any

from migrate.cli.terminal import need
from migrate.mapping import table
from migrate.records.outcomes import Problem


def load(mappings: tuple[Path, ...] = ()) -> table.Table:
    """Our rows and those of the user's files. Raises Problem when a file cannot be read."""
    try:
        return table.load(mappings)
    except table.TableError as error:
        where, _, why = str(error).partition(": ")
        raise Problem(where, "mappings cannot be read", why, "correct that file") from error


def show(parts: tuple[str, ...], mappings: tuple[Path, ...] = ()) -> int:
    """Print the rows whose key holds one of ``parts``."""
    known = load(mappings)
    rows = [row for name in known.names for row in known.rows(name)]
    chosen = [row for row in rows if not parts or any(part in row.key for part in parts)]
    for row in chosen:
        target = row.to or (f"rule {row.rule}" if row.rule else f"flag {row.flag}: {row.reason}")
        print(f"{row.key}\n    {target}")
    print(f"{len(chosen)} of {len(rows)} rows", file=sys.stderr)
    return 0 if chosen else 1


def lint(mappings: tuple[Path, ...] = ()) -> int:
    """Print the problems of the table; 1 when there are any."""
    from migrate.mapping.table_lint import lint as problems

    found = problems(load(mappings))
    for problem in found:
        print(problem.message)
    print(f"{len(found)} problems", file=sys.stderr)
    return 1 if found else 0


def facts() -> int:
    """Write mappings/facts. Raises Problem when a framework is missing."""
    need("numpy", "mindspore", "torch")
    from migrate.evidence.signatures import write

    for path in write(progress=lambda line: print(line, file=sys.stderr)):
        print(path)
    return 0


def verify(
    names: tuple[str, ...], changed: bool, jobs: int, mappings: tuple[Path, ...] = ()
) -> int:
    """Execute the cases of rows (without names: the user's, if any); 1 when one of them is red."""
    need("numpy", "mindspore", "torch")
    from migrate.evidence.verify import verify as run

    known = load(mappings)
    names = names or tuple(key for key in known.raw if known.files[key] in known.user_files)
    summary = run(known, names, changed, jobs, lambda line: print(line, file=sys.stderr))
    print(summary.text)
    return 0 if summary.passed else 1


def docs(folder: Path, commands: Any, mappings: tuple[Path, ...] = ()) -> int:
    """Write the pages made from table and command line, and print where they lie."""
    from migrate.cli.pages import pages
    from migrate.workspace.outputs import write_atomically

    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pages(load(mappings), commands).items():
        write_atomically(folder / name, partial(_write, text))
        print(folder / name)
    return 0


def _write(text: str, path: Path) -> None:
    path.write_text(text, encoding="utf-8")
