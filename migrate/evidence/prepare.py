"""In: a row and its case. Out: the row ready to run: converted file, probes, inputs."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from migrate.evidence import store, workers
from migrate.evidence.inputs import InputError, draw
from migrate.evidence.kinds import Variant, variants
from migrate.evidence.sources import Probe, probes
from migrate.row import Case, Row
from migrate.table import Table

Convert = Callable[[str, Table], Any]


@dataclass(frozen=True)
class Prepared:
    """A row ready to run: its converted file, probes and inputs; ``problems`` when it is not."""

    row: Row
    case: Case
    sha256: str
    probes: tuple[Probe, ...] = ()
    source: Path = Path()
    converted: Path = Path()
    inputs: Mapping[str, Any] | None = None
    variants: tuple[Variant, ...] = ()
    problems: tuple[str, ...] = ()


def converter() -> Convert:
    """The engine; imported late, as it is large."""
    from migrate.project import convert_text

    return convert_text


def prepare(
    table: Table, key: str, folder: Path, convert: Convert, generate: bool = True
) -> Prepared:
    """Convert the case of a row into ``folder``; what keeps it from running is a problem.

    ``generate``: the row also runs on other kinds of input than those of its case.
    """
    row, case = table.row(key), table.case(key)
    assert row is not None and case is not None, key
    sha256 = store.row_hash(table, key)
    try:
        text, found = probes(table, row, case, generate)
        inputs = {f"x{i}": draw(spec, key, i) for i, spec in enumerate(case.inputs)}
        generated = variants(key, case.inputs) if generate else ()
        converted = convert(text, table)
    except (SyntaxError, InputError) as error:
        return Prepared(row, case, sha256, problems=(f"the case: {error}",))
    except Exception as error:  # the engine must not stop the run over all other rows
        return Prepared(row, case, sha256, problems=(f"the conversion: {workers.describe(error)}",))
    stem = "case_" + hashlib.sha256((key + converted.text).encode()).hexdigest()[:16]
    source, target = folder / f"{stem}_torch.py", folder / f"{stem}.py"
    source.write_text(text, encoding="utf-8")
    target.write_text(converted.text, encoding="utf-8")
    problems = _conversion_problems(row, converted.entries, _written_lines(text, found))
    if problems:
        return Prepared(row, case, sha256, problems=problems)
    return Prepared(row, case, sha256, found, source, target, inputs, generated)


def _written_lines(text: str, found: Sequence[Probe]) -> range:
    """The lines before the first generated call: a flag behind them is a kind that is refused."""
    lines = text.splitlines()
    first = next((probe.name for probe in found if probe.kind), "")
    heads = (f"def {first}(", f"class {first}(", f"def {first}_by(")
    end = (n for n, line in enumerate(lines, 1) if first and line.startswith(heads))
    return range(1, next(end, len(lines) + 1))


def _conversion_problems(row: Row, entries: Sequence[Any], written: range) -> tuple[str, ...]:
    """Flags inside the case, and whether the row under test is the one that decided."""
    entries = [entry for entry in entries if entry.line in written]
    flagged = [e for e in entries if e.outcome.value == "flagged"]
    lines = dict.fromkeys(f"flagged: {e.name}: {e.code} {e.reason}" for e in flagged)
    if not flagged and entries and row.key not in {e.row for e in entries}:
        used = sorted({e.row for e in entries if e.row})
        return (f"the row did not decide its own case; rows used: {', '.join(used) or 'none'}",)
    return tuple(lines)
