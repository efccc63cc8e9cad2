"""In: a record and a verification. Out: JUnit XML, a test case for each Cell, rung and mode."""

from __future__ import annotations

import io
from xml.etree import ElementTree as xml

from migrate.outcomes import Verdict
from migrate.report.coverage import FINE
from migrate.report.versions import cautions
from migrate.result import Check, ModelResult, Record, Verification

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
