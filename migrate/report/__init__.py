"""In: the record of a conversion, its verification, both trees. Out: the report as text."""

from __future__ import annotations

from pathlib import Path

from migrate.records.result import Record, Verification
from migrate.report.changes import changes, compare
from migrate.report.formats import schema, to_github, to_json, to_junit, to_sarif
from migrate.report.markdown import to_markdown

__all__ = ["FORMATS", "changes", "compare", "render", "schema"]

FORMATS = ("html", "json", "md", "sarif", "junit", "github")


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
    match format:
        case "html":
            # jinja2 and pygments are only needed here
            from migrate.report.html import page

            return page(record, verification, source_root, output_root)
        case "json":
            return to_json(record, verification)
        case "md":
            return to_markdown(record, verification)
        case "sarif":
            return to_sarif(record, verification)
        case "junit":
            return to_junit(record, verification)
        case "github":
            return to_github(record, verification, source_root)
    raise ValueError(f"report format {format!r} does not exist; choose one of {', '.join(FORMATS)}")
