"""In: the record of a conversion, its verification, both trees. Out: the report as HTML or JSON."""

from __future__ import annotations

from pathlib import Path

from migrate.report.document import schema, to_json
from migrate.result import Record, Verification

__all__ = ["FORMATS", "render", "schema"]

FORMATS = ("html", "json")


def render(
    record: Record,
    verification: Verification | None,
    source_root: Path,
    output_root: Path,
    format: str = "html",
) -> str:
    """The report as text.

    ``source_root`` and ``output_root`` are the folders that the record's paths start from, or,
    where one file was converted, that file; files that are missing there are reported in the page.
    Raises ValueError for a format that does not exist.
    """
    if format == "json":
        return to_json(record, verification)
    if format == "html":
        # jinja2 and pygments are only needed here
        from migrate.report.html import page

        return page(record, verification, source_root, output_root)
    raise ValueError(f"report format {format!r} does not exist; choose one of {', '.join(FORMATS)}")
