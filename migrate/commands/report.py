"""In: the arguments of ``torch2ms report``. Out: the report file."""

from __future__ import annotations

from pathlib import Path

from migrate import record
from migrate.errors import Problem
from migrate.outputs import write_atomically


def run(out: Path, file: Path, format: str) -> int:
    """Write the report of the output at ``out``; gives the exit code. Raises Problem."""
    from migrate.report import render

    located = record.locate(out)
    verification = record.read_verification(located)
    source = Path(located.record.source_root)
    text = render(located.record, verification, source, located.root, format)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(file, lambda path: path.write_text(text, encoding="utf-8"))
    except OSError as error:
        raise Problem(
            str(file), "cannot be written", error.strerror or str(error), "choose another FILE"
        ) from error
    print(f"{file} ({len(text) // 1024:,} KB)")
    if verification is None:
        print(f"NOT verified yet. Next: torch2ms verify {out}")
    return 0
