"""In: the arguments of ``torch2ms table``. Out: lists, problems, facts and evidence files."""

from __future__ import annotations

import sys

from migrate import table
from migrate.commands.extras import need
from migrate.errors import Problem


def load() -> table.Table:
    try:
        return table.load()
    except table.TableError as error:
        where, _, why = str(error).partition(": ")
        raise Problem(where, "mappings cannot be read", why, "correct that file") from error


def show(parts: tuple[str, ...]) -> int:
    """Print the rows whose key holds one of ``parts``."""
    known = load()
    rows = [row for name in known.names for row in known.rows(name)]
    chosen = [row for row in rows if not parts or any(part in row.key for part in parts)]
    for row in chosen:
        target = row.to or (f"rule {row.rule}" if row.rule else f"flag {row.flag}: {row.reason}")
        print(f"{row.key}\n    {target}")
    print(f"{len(chosen)} of {len(rows)} rows", file=sys.stderr)
    return 0 if chosen else 1


def lint() -> int:
    """Print the problems of the table; 1 when there are any."""
    from migrate.table_lint import lint as problems

    found = problems(load())
    for problem in found:
        print(problem.message)
    print(f"{len(found)} problems", file=sys.stderr)
    return 1 if found else 0


def facts() -> int:
    """Write mappings/facts. Raises Problem when a framework is missing."""
    need("numpy", "mindspore", "torch")
    from migrate.evidence.facts import FactsRunError, write

    try:
        written = write(progress=lambda line: print(line, file=sys.stderr))
    except FactsRunError as error:
        raise Problem(
            "table facts", "cannot survey", str(error), 'pip install "torch2mindspore[verify]"'
        ) from error
    for path in written:
        print(path)
    return 0


def verify(names: tuple[str, ...], changed: bool, jobs: int) -> int:
    """Execute the cases of rows; 1 when one of them is red."""
    need("numpy", "mindspore", "torch")
    from migrate.evidence.verify import verify as run

    summary = run(load(), names, changed, jobs, lambda line: print(line, file=sys.stderr))
    print(summary.text)
    return 0 if summary.passed else 1
