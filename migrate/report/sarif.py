"""In: a record and a verification. Out: SARIF 2.1.0, which code hosts show beside the lines."""

from __future__ import annotations

import json
from typing import Any

from migrate.report.ledger import flag_groups
from migrate.report.topics import topic
from migrate.result import ModelResult, Record, Verification

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
PARITY = "PARITY"
UNREADABLE = "FAILED"


def to_sarif(record: Record, verification: Verification | None) -> str:
    """One run: flags are warnings, failed files and Cells that diverge are errors."""
    groups = flag_groups(record)
    results = [
        _result(group.code, "warning", _text(flag.entry.reason, flag.entry.next_step), flag.file,
                flag.entry.line, flag.entry.column)
        for group in groups
        for flag in group.flags
    ]  # fmt: skip
    results += [
        _result(UNREADABLE, "error", file.reason, file.source)
        for file in record.files
        if file.status == "failed"
    ]
    results += [_guilty(m) for m in (verification.models if verification else ()) if m.guilty]
    codes = dict.fromkeys(result["ruleId"] for result in results)
    driver = {
        "name": "torch2mindspore",
        "version": record.tool_version or "0",
        "rules": [{"id": code, "shortDescription": {"text": _title(code)}} for code in codes],
    }
    document = {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": results}],
    }
    return json.dumps(document, indent=2) + "\n"


def _title(code: str) -> str:
    own = {PARITY: "a Cell differs from its torch partner", UNREADABLE: "file not converted"}
    return own.get(code, topic(code))


def _text(reason: str, next_step: str) -> str:
    return f"{reason}. Next: {next_step}" if next_step else reason


def _result(
    code: str, level: str, text: str, file: str, line: int = 0, column: int = 0
) -> dict[str, Any]:
    place: dict[str, Any] = {"artifactLocation": {"uri": file, "uriBaseId": "SRCROOT"}}
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
    return _result(PARITY, "error", text, file or model.source, number)
