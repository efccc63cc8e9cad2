"""In: rows, cases, helper sources. Out: their hash, and evidence read from and written to JSON.

Evidence lies beside the rows in ``evidence/<same file>.json``. A row whose hash differs from the
recorded one, or that has no record, is stale.
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from migrate.mapping.table import Table
from migrate.syntax.trees import all_names

# Raise this when other inputs are generated or results are judged differently: all rows are stale.
GENERATION = 1
PACKAGES = ("torch", "mindspore", "numpy")


LISTS = ("modes", "holds", "refuses", "differs", "failures")


@dataclass(frozen=True)
class RowEvidence:
    """What executing one row showed.

    ``verdict`` is the worst of all calls; ``calls`` counts calls, ``elements`` the numbers that
    were compared. ``error`` and ``limit`` (relative, Euclidean norm) are of the worst comparison.
    ``modes`` are those in which every call passed; ``gradient`` is a verdict or "none". ``ulp`` is
    the largest error of a forward result in units of the last place of float32.
    Generated kinds of input (kinds.py): on which ones the row ``holds``, raise or crash although
    torch computes (``refuses``), and silently differ as the case admits (``differs``).
    """

    key: str
    verdict: str
    sha256: str
    calls: int = 0
    elements: int = 0
    error: float = 0.0
    limit: float = 0.0
    modes: tuple[str, ...] = ()
    gradient: str = "none"
    ulp: float = 0.0
    holds: tuple[str, ...] = ()
    refuses: tuple[str, ...] = ()
    differs: tuple[str, ...] = ()
    failures: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        return self.verdict in ("PASS", "KERNEL", "NONDET")


def row_hash(table: Table, key: str) -> str:
    """sha256 of a row, its case and the helpers that it uses; a change makes evidence stale."""
    values = table.raw[key]
    siblings = table.keys(key.partition(":")[0])
    # mint is not executed, so it proves nothing and spoils nothing
    rows = {one: {k: v for k, v in table.raw[one].items() if k != "mint"} for one in siblings}
    texts = " ".join(str(row.get(part, "")) for row in rows.values() for part in ("to", "ref"))
    case = table.case(key)
    content = {
        "rows": rows,  # the others of this name decide together with it
        "case": None if case is None else {**asdict(case), "file": ""},
        "helpers": _helpers(table, texts),
        "generation": GENERATION,
        "rule": _rule(table, str(values.get("rule", ""))),
    }
    text = json.dumps(content, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def _rule(table: Table, name: str) -> str:
    """The code of a rule function, "" when the row names none."""
    folder = table.helpers.folder.parent / "rules"
    for path in sorted(folder.glob("*.py")) if name else ():
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and node.name == name:
                return ast.unparse(node)
    return ""


def _helpers(table: Table, text: str) -> dict[str, str]:
    """The helpers named in a text and those that they use: name -> their code without comments."""
    waiting = [word for word in table.helpers.paths if f"helpers.{word}" in text]
    found: dict[str, str] = {}
    while waiting:
        name = waiting.pop()
        node = table.helpers.definition(name)
        if name in found or node is None:
            continue
        found[name] = ast.unparse(node)
        waiting += sorted(all_names(node) & table.helpers.paths.keys())
    return found


def evidence_file(table: Table, key: str) -> Path:
    """Where the evidence of a row lies."""
    path = table.files[key]
    return path.parent / "evidence" / f"{path.stem}.json"


def read(table: Table) -> dict[str, RowEvidence]:
    """All recorded evidence by key, fresh and stale."""
    found: dict[str, RowEvidence] = {}
    for path in sorted({evidence_file(table, key) for key in table.raw}):
        if path.is_file():
            rows = json.loads(path.read_text(encoding="utf-8"))["rows"]
            found.update(
                {
                    key: _record(key, values)
                    for key, values in rows.items()
                    # a user's row replaces ours, and our evidence says nothing of it
                    if key not in table.raw or evidence_file(table, key) == path
                }
            )
    return found


def versions(table: Table, key: str) -> Mapping[str, str]:
    """The packages that the evidence of a row's file was made with."""
    path = evidence_file(table, key)
    if not path.is_file():
        return {}
    return dict(json.loads(path.read_text(encoding="utf-8"))["versions"])


def _record(key: str, values: Mapping[str, Any]) -> RowEvidence:
    lists = {name: tuple(values.get(name, ())) for name in LISTS}
    return RowEvidence(key, **{**values, **lists})


def is_fresh(table: Table, key: str, recorded: Mapping[str, RowEvidence] | None = None) -> bool:
    """Whether the recorded evidence belongs to the row, case and helpers as they are now."""
    known = (read(table) if recorded is None else recorded).get(key)
    return known is not None and known.sha256 == row_hash(table, key)


def executable(table: Table) -> tuple[str, ...]:
    """The keys of all rows that have calls to execute."""
    keys = []
    for key in table.raw:
        case = table.case(key)
        if case is not None and case.calls and "flag" not in table.raw[key]:
            keys.append(key)
    return tuple(keys)


@dataclass(frozen=True)
class Freshness:
    """Keys of executable rows whose evidence does not stand: none, outdated, or not passed."""

    missing: tuple[str, ...]
    changed: tuple[str, ...]
    red: tuple[str, ...]

    @property
    def message(self) -> str:
        """What is wrong, and the command that mends it; "" when nothing is."""
        parts = [
            (self.missing, "were never executed"),
            (self.changed, "have changed since they were executed"),
            (self.red, "went red when they were executed"),
        ]
        lines = [f"{len(k)} rows {what}: {', '.join(k)}" for k, what in parts if k]
        return "\n".join([*lines, "run: torch2ms table verify --changed"]) if lines else ""


def freshness(table: Table) -> Freshness:
    """Which rows have to be executed; reads the recorded evidence, runs nothing."""
    recorded, keys = read(table), executable(table)
    missing = tuple(key for key in keys if key not in recorded)
    changed = tuple(k for k in keys if k in recorded and not is_fresh(table, k, recorded))
    known = {*missing, *changed}
    red = tuple(key for key in keys if key not in known and not recorded[key].passed)
    return Freshness(missing, changed, red)


def stale(table: Table) -> tuple[str, ...]:
    """The keys of executable rows without fresh evidence that passed."""
    found = freshness(table)
    waiting = {*found.missing, *found.changed, *found.red}
    return tuple(key for key in executable(table) if key in waiting)


def write(table: Table, fresh: Iterable[RowEvidence]) -> tuple[Path, ...]:
    """Merge evidence into the files: sorted, one row a line, rows that are gone removed."""
    new = {one.key: one for one in fresh}
    recorded = {**read(table), **new}
    by_file: dict[Path, dict[str, RowEvidence]] = {}
    for key, one in recorded.items():
        if key in table.raw:
            by_file.setdefault(evidence_file(table, key), {})[key] = one
    if table.user_files:  # ours stays as it is
        own = {evidence_file(table, key) for key in new if table.files[key] in table.user_files}
        by_file = {path: rows for path, rows in by_file.items() if path in own}
    for path, rows in by_file.items():
        path.parent.mkdir(exist_ok=True)
        scratch = path.with_name(f".{path.name}.{os.getpid()}")
        scratch.write_text(_text(rows), encoding="utf-8")
        scratch.replace(path)  # whole or not at all: two runs may write at once
    return tuple(sorted(by_file))


def _text(rows: Mapping[str, RowEvidence]) -> str:
    versions = json.dumps({name: _version(name) for name in PACKAGES})
    lines = ",\n".join(f"{json.dumps(key)}: {_line(rows[key])}" for key in sorted(rows))
    return f'{{"versions": {versions},\n"rows": {{\n{lines}\n}}}}\n'


def _line(one: RowEvidence) -> str:
    values = {k: v for k, v in asdict(one).items() if k != "key" and v not in ((), 0, 0.0)}
    for name in ("error", "limit", "ulp"):
        if name in values:
            values[name] = float(f"{values[name]:.2e}")
    return json.dumps(values)


def _version(package: str) -> str:
    try:
        return version(package).partition("+")[0]
    except PackageNotFoundError:
        return ""
