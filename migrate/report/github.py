"""In: a record and a verification, or findings. Out: annotations as GitHub's log commands."""

from __future__ import annotations

import os
from pathlib import Path

from migrate.report.ledger import flag_groups
from migrate.report.sarif import said
from migrate.result import Record, Verification


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
