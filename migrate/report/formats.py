"""Write a record and a verification for machines: JSON with its schema, SARIF, JUnit, GitHub."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree as xml

from migrate.records.outcomes import Verdict
from migrate.records.result import SCHEMA_VERSION, Check, Frozen, ModelResult, Record, Verification
from migrate.report.headline import cautions
from migrate.report.ledger import FINE, flag_groups, topic


class Document(Frozen):
    """``verification`` is null when nothing was verified."""

    schema_version: int = SCHEMA_VERSION
    record: Record
    verification: Verification | None = None


def schema() -> dict[str, Any]:
    """The JSON schema (draft 2020-12) of ``torch2ms report --format json``."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **Document.model_json_schema(mode="serialization"),
        "title": f"torch2mindspore result, version {SCHEMA_VERSION}",
    }


def to_json(record: Record, verification: Verification | None) -> str:
    """The document as indented JSON, with a final newline; NaN and infinity become null."""
    return Document(record=record, verification=verification).model_dump_json(indent=2) + "\n"


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


def to_github(record: Record, verification: Verification | None, source_root: Path) -> str:
    """One line each: flags are warnings, failed files and guilty Cells errors."""
    below = source_root if record.kind == "folder" else source_root.parent
    lines = [
        annotation("warning", _place(below, flag.file), group.code,
                   f"{flag.entry.name}: {said(flag.entry.reason, flag.entry.next_step)}",
                   flag.entry.line, flag.entry.column)
        for group in flag_groups(record)
        for flag in group.flags
    ]  # fmt: skip
    lines += [
        annotation("error", _place(below, file.source), "not converted", file.reason)
        for file in record.files if file.status == "failed"
    ]  # fmt: skip
    for model in verification.models if verification else ():
        if model.guilty:
            file, _, line = model.guilty.torch_place.rpartition(":")
            text = f"{model.build}: {model.guilty.torch or 'the whole model'}: {model.guilty.cause}"
            where = _place(below, file or model.source)
            lines.append(annotation("error", where, "parity", text, int(line or 0)))
    return "".join(line + "\n" for line in lines)


def annotation(level: str, file: str, title: str, text: str, line: int = 0, column: int = 0) -> str:
    """``::warning file=net.py,line=3,col=5,title=API104::text``; a line or column 0 is none."""
    given = {"file": file, "line": line, "col": column, "title": title}
    shown = ",".join(f"{name}={_property(str(value))}" for name, value in given.items() if value)
    return f"::{level} {shown}::{_data(text)}"


def _data(text: str) -> str:
    """As the runner decodes it again."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def _place(below: Path, file: str) -> str:
    """From the working folder, which is the repository in a workflow."""
    return Path(os.path.relpath(below / file)).as_posix()


Properties = tuple[tuple[str, str], ...]
SKIPPED = frozenset({Verdict.NOT_RUN, Verdict.UNMATCHED})


def to_junit(record: Record, verification: Verification | None) -> str:
    """Test suites for CI servers; without a verification, one skipped case says so."""
    root = xml.Element("testsuites", name="torch2mindspore")
    if verification is None or not verification.models:
        suite = xml.SubElement(
            root, "testsuite", name="parity", tests="1", failures="0", skipped="1"
        )
        case = xml.SubElement(suite, "testcase", classname="parity", name="verify")
        xml.SubElement(case, "skipped", message="NOT verified: nothing was run")
    else:
        properties = _properties(record, verification)
        for model in verification.models:
            _suite(root, model, properties)
    xml.indent(root)
    stream = io.BytesIO()
    xml.ElementTree(root).write(stream, encoding="utf-8", xml_declaration=True)
    return _clean(stream.getvalue().decode("utf-8")) + "\n"


def _properties(record: Record, verification: Verification) -> Properties:
    """What it ran with, and what to say of that."""
    notes = [("caution", text) for text in cautions(record, verification)]
    return (*verification.environment.items(), *notes)


def _suite(root: xml.Element, model: ModelResult, properties: Properties) -> None:
    suite = xml.SubElement(root, "testsuite", name=model.build or model.name)
    said = xml.SubElement(suite, "properties") if properties else suite
    for name, value in properties:
        xml.SubElement(said, "property", name=name, value=value)
    for check in model.checks:
        _case(suite, model, check)
    if not model.checks:
        case = xml.SubElement(suite, "testcase", classname=model.source, name="verify")
        kind = "skipped" if model.verdict in SKIPPED else "failure"
        xml.SubElement(case, kind, message=model.detail or f"{model.verdict.value}: nothing ran")
    suite.set("tests", str(len(suite.findall("testcase"))))
    suite.set("failures", str(len(suite.findall("testcase/failure"))))
    suite.set("skipped", str(len(suite.findall("testcase/skipped"))))
    suite.set("time", f"{model.seconds:.3f}")


def _case(suite: xml.Element, model: ModelResult, check: Check) -> None:
    name = f"{check.torch_path or '(model)'} [{check.rung}, {check.mode}]"
    case = xml.SubElement(suite, "testcase", classname=check.source or model.source, name=name)
    if check.verdict in SKIPPED:
        xml.SubElement(case, "skipped", message=check.detail or check.verdict.value)
    elif check.verdict not in FINE or not check.elements:
        message = f"{check.verdict.value}: local {check.local}, cumulative {check.cumulative}, "
        failure = xml.SubElement(case, "failure", message=f"{message}limit {check.limit}")
        failure.text = check.detail or None


def _clean(text: str) -> str:
    """Control characters are not allowed in XML, not even escaped."""
    return "".join(c for c in text if c >= " " or c in "\t\n\r")
