"""In: the table and its evidence. Out: one HTML page of all rows, searchable without a network."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from jinja2 import Environment, PackageLoader, StrictUndefined

from migrate import __version__
from migrate.evidence import store
from migrate.evidence.store import RowEvidence
from migrate.explain.page import differences
from migrate.mapping.row import Row
from migrate.mapping.table import Table

KINDS = ("native", "helper", "rule", "flagged")
PROOFS = ("verified", "stale", "not executed")


@dataclass(frozen=True)
class Line:
    """One row as the page shows it. ``kind`` is one of KINDS, ``proof`` of PROOFS or ""."""

    key: str
    kind: str
    becomes: str
    mint: str
    says: tuple[str, ...]
    proof: str
    figures: str


def browse(rows: Table) -> str:
    """The page; its lines are all there without scripts, a script filters them."""
    recorded = store.read(rows)
    lines = [_line(row, rows, recorded) for name in rows.names for row in rows.rows(name)]
    environment = Environment(
        loader=PackageLoader("migrate.explain"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("table.html.j2").render(
        lines=lines,
        kinds=_counts([line.kind for line in lines], KINDS),
        proofs=_counts([line.proof for line in lines], PROOFS),
        mint=sum(bool(line.mint) for line in lines),
        version=__version__,
        torch=rows.torch.release,
        mindspore=rows.mindspore.release,
    )


def _counts(found: Sequence[str], known: Sequence[str]) -> dict[str, int]:
    counts = Counter(found)
    return {name: counts[name] for name in known}


def _line(row: Row, rows: Table, recorded: Mapping[str, RowEvidence]) -> Line:
    kind = kind_of(row)
    becomes = row.to or row.ref
    if row.rule:
        becomes = f"decided where it stands ({row.rule})"
    if row.flag:
        becomes = f"{row.flag}: {row.reason}"
    says = [row.next_step] if row.next_step else []
    return Line(
        key=row.key,
        kind=kind,
        becomes=becomes,
        mint=row.mint,
        says=(*says, *differences(row, rows)),
        proof="" if row.flag else _proof(row, rows, recorded),
        figures=_figures(recorded.get(row.key)),
    )


def kind_of(row: Row) -> str:
    """How a row is decided, as one of KINDS."""
    if row.flag:
        return "flagged"
    if row.rule:
        return "rule"
    return "helper" if "helpers." in (row.to or row.ref) else "native"


def _proof(row: Row, rows: Table, recorded: Mapping[str, RowEvidence]) -> str:
    found = recorded.get(row.key)
    if found is None or not found.elements:
        return "not executed"
    fresh = found.passed and store.is_fresh(rows, row.key, recorded)
    return "verified" if fresh else "stale"


def _figures(found: RowEvidence | None) -> str:
    if found is None:
        return ""
    modes = " and ".join(found.modes) or "no mode"
    return (
        f"{found.verdict}, {found.elements:,} numbers, {modes}, gradient {found.gradient}, "
        f"worst error {found.error:.1e} of {found.limit:.1e}"
    )
