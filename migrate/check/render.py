"""In: findings. Out: them as text, JSON, SARIF or annotations of a code host."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

from migrate import __version__
from migrate.check.findings import FAILED, Finding, fails
from migrate.report.formats import annotation, document, result, said

FORMATS = ("text", "github", "json", "sarif")


def render(findings: Sequence[Finding], gone: int, fail_on: Sequence[str], format: str) -> str:
    """What is printed; known and ignored findings stand one by one in JSON and SARIF only."""
    if format == "json":
        return _json(findings, gone, fail_on)
    if format == "sarif":
        return document([_result(finding, fail_on) for finding in findings], __version__)
    new = [finding for finding in findings if finding.state == "new"]
    lines = [_github(f, fail_on) if format == "github" else _line(f) for f in new]
    return "".join(line + "\n" for line in [*lines, _summary(findings, gone, fail_on)])


def _line(finding: Finding) -> str:
    name = f" {finding.name}" if finding.name else ""
    step = f"; {finding.next_step}" if finding.next_step else ""
    return f"{finding.place} {finding.code}{name}: {finding.reason}{step}"


def _github(finding: Finding, fail_on: Sequence[str]) -> str:
    level = "error" if fails(finding, fail_on) else "warning"
    name = f"{finding.name}: " if finding.name else ""
    cell = f"cell {finding.cell}, line {finding.line}: " if finding.cell else ""
    line, column = (0, 0) if finding.cell else (finding.line, finding.column)
    text = f"{cell}{name}{said(finding.reason, finding.next_step)}"
    return annotation(level, finding.file, finding.code, text, line, column)


def _summary(findings: Sequence[Finding], gone: int, fail_on: Sequence[str]) -> str:
    """``Findings: 3 new (2 fail), 40 in the baseline, 1 ignored with a reason``."""
    states = Counter(finding.state for finding in findings)
    failing = sum(fails(finding, fail_on) for finding in findings)
    parts = [f"{states['new']} new" + (f" ({failing} fail)" if states["new"] else "")]
    parts += [f"{states['known']} in the baseline"] if states["known"] else []
    parts += [f"{states['ignored']} ignored with a reason"] if states["ignored"] else []
    tail = f"; {gone} of the baseline are gone: --update-baseline keeps it so" if gone else ""
    return f"Findings: {', '.join(parts)}{tail}"


def _json(findings: Sequence[Finding], gone: int, fail_on: Sequence[str]) -> str:
    whole = {
        "schema_version": 1, "tool_version": __version__,
        "failing": sum(fails(finding, fail_on) for finding in findings), "gone": gone,
        "findings": [finding.model_dump(mode="json") for finding in findings],
    }  # fmt: skip
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"


def _result(finding: Finding, fail_on: Sequence[str]) -> dict[str, Any]:
    level = "error" if finding.code == FAILED or fails(finding, fail_on) else "warning"
    line, column = (0, 0) if finding.cell else (finding.line, finding.column)
    text = said(finding.reason, finding.next_step)
    found = result(finding.code, level, text, finding.file, line, column)
    found["baselineState"] = "unchanged" if finding.state == "known" else "new"
    if finding.state == "ignored":
        found["suppressions"] = [{"kind": "inSource", "justification": finding.justification}]
    return found
