"""In: a record and a verification. Out: SARIF 2.1.0, which code hosts show beside the lines."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from migrate.report.ledger import flag_groups
from migrate.report.topics import topic
from migrate.report.versions import cautions
from migrate.result import ModelResult, Record, Verification

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
PARITY = "PARITY"
UNREADABLE = "FAILED"


def to_sarif(record: Record, verification: Verification | None) -> str:
    """One run: flags are warnings, failed files and Cells that diverge are errors."""
    groups = flag_groups(record)
    results = [
        result(group.code, "warning", said(flag.entry.reason, flag.entry.next_step), flag.file,
               flag.entry.line, flag.entry.column)
        for group in groups
        for flag in group.flags
    ]  # fmt: skip
    results += [
        result(UNREADABLE, "error", file.reason, file.source)
        for file in record.files
        if file.status == "failed"
    ]
    results += [_guilty(m) for m in (verification.models if verification else ()) if m.guilty]
    return document(results, record.tool_version, cautions(record, verification))


def document(results: Sequence[dict[str, Any]], version: str, warnings: Sequence[str] = ()) -> str:
    """One run of this tool with these results; ``warnings`` are about the run, not about a line."""
    codes = dict.fromkeys(result["ruleId"] for result in results)
    driver = {
        "name": "torch2mindspore",
        "version": version or "0",
        "rules": [{"id": code, "shortDescription": {"text": _title(code)}} for code in codes],
    }
    run: dict[str, Any] = {"tool": {"driver": driver}, "results": results}
    if warnings:
        notes = [{"level": "warning", "message": {"text": text}} for text in warnings]
        run["invocations"] = [{"executionSuccessful": True, "toolExecutionNotifications": notes}]
    whole = {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(whole, indent=2) + "\n"


def _title(code: str) -> str:
    own = {PARITY: "a Cell differs from its torch partner", UNREADABLE: "file not converted"}
    return own.get(code, topic(code))


def said(reason: str, next_step: str) -> str:
    """One sentence for what is wrong and what to do."""
    return f"{reason}. Next: {next_step}" if next_step else reason


def result(
    code: str, level: str, text: str, file: str, line: int = 0, column: int = 0
) -> dict[str, Any]:
    """One finding. ``file`` is a path with forward slashes below the root of the sources."""
    uri = quote(file, safe="/")
    place: dict[str, Any] = {"artifactLocation": {"uri": uri, "uriBaseId": "SRCROOT"}}
    if line:
        place["region"] = {"startLine": line, "startColumn": max(column, 1)}
    return {
        "ruleId": code,
        "level": level,
        "message": {"text": text or _title(code)},
        "locations": [{"physicalLocation": place}],
    }


def _guilty(model: ModelResult) -> dict[str, Any]:
    guilty = model.guilty
    assert guilty is not None
    file, _, line = guilty.torch_place.rpartition(":")
    text = f"{model.build}: {guilty.torch} ({guilty.rung}, {guilty.mode}) {guilty.cause}"
    number = int(line) if line.isdigit() else 0
    return result(PARITY, "error", text, file or model.source, number)
