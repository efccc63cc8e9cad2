"""In: findings, and those that a project has accepted. Out: which are new, and the file again.

Findings are known by file, code, name and the text of their line, so they may move.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from migrate.check.findings import FAILED, Finding
from migrate.records.outcomes import Problem
from migrate.records.result import Frozen

VERSION = 1


class Known(Frozen):
    """One accepted finding, ``count`` times; ``file`` starts from the folder of the baseline."""

    file: str
    code: str
    name: str
    text: str
    count: int = 1


class Baseline(Frozen):
    """The file: sorted, so that its changes are easy to review."""

    schema_version: int = VERSION
    findings: tuple[Known, ...] = ()


@dataclass(frozen=True)
class Matched:
    """The findings with their states, and how many of the baseline are not found any more."""

    findings: tuple[Finding, ...]
    gone: int


Key = tuple[str, str, str, str]


def read(path: Path) -> Baseline:
    """Raises Problem when it is not there or not a baseline."""
    try:
        found = Baseline.model_validate_json(path.read_bytes())
    except FileNotFoundError as error:
        raise Problem(str(path), "no baseline", "there is no such file",
                      "write it with --update-baseline") from error  # fmt: skip
    except (OSError, ValidationError) as error:
        raise Problem(str(path), "not a baseline", str(error).splitlines()[0],
                      "write it again with --update-baseline") from error  # fmt: skip
    if found.schema_version != VERSION:
        raise Problem(str(path), f"a baseline of version {found.schema_version}",
                      f"this program reads version {VERSION}",
                      "write it again with --update-baseline")  # fmt: skip
    return found


def match(findings: Sequence[Finding], baseline: Baseline, folder: Path) -> Matched:
    """Mark what is known, each entry as often as it is counted.

    Entries of files that were not looked at are not gone.
    """
    left = Counter({(k.file, k.code, k.name, k.text): k.count for k in baseline.findings})
    marked = []
    for finding in findings:
        key = _key(finding, folder)
        if finding.state == "new" and left[key] > 0:
            left[key] -= 1
            finding = finding.model_copy(update={"state": "known"})
        marked.append(finding)
    return Matched(tuple(marked), sum(left.values()))


def seen(baseline: Baseline, files: Sequence[str], folder: Path) -> tuple[Baseline, Baseline]:
    """The entries of the files that were looked at, and the others."""
    names = {_relative(file, folder) for file in files}
    inside = tuple(known for known in baseline.findings if known.file in names)
    outside = tuple(known for known in baseline.findings if known.file not in names)
    return Baseline(findings=inside), Baseline(findings=outside)


def text(findings: Sequence[Finding], kept: Baseline, folder: Path) -> str:
    """The baseline of these findings, with entries of other files that stay."""
    counts: Counter[Key] = Counter(
        _key(finding, folder) for finding in findings
        if finding.state != "ignored" and finding.code != FAILED
        and not finding.code.startswith("SUP")
    )  # fmt: skip
    counts.update({(k.file, k.code, k.name, k.text): k.count for k in kept.findings})
    rows = [
        {"file": file, "code": code, "name": name, "text": line, "count": count}
        for (file, code, name, line), count in sorted(counts.items())
    ]
    whole = {"schema_version": VERSION, "findings": rows}
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"


def _key(finding: Finding, folder: Path) -> Key:
    return (_relative(finding.file, folder), finding.code, finding.name, finding.text)


def _relative(file: str, folder: Path) -> str:
    return Path(os.path.relpath(Path(file).absolute(), folder.absolute())).as_posix()
