"""In: a Record, or where an output lies. Out: the text of torch2ms.json, and it read back."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from migrate.records.outcomes import Problem
from migrate.records.result import SCHEMA_VERSION, Record, Verification

NAME = "torch2ms.json"
VERIFICATION = "torch2ms.verify.json"


@dataclass(frozen=True)
class Located:
    """A record on disk. ``root`` is the output root; ``file`` is set when one output was named."""

    path: Path
    root: Path
    record: Record
    file: str = ""

    @property
    def verification(self) -> Path:
        """Where ``verify`` writes what it found: beside the record."""
        if self.path.name == NAME:
            return self.root / VERIFICATION
        return self.path.with_name(self.path.name.replace(NAME, VERIFICATION))


def text(record: Record | Verification) -> bytes:
    """A record as it lies on disk: JSON, one value a line."""
    return (record.model_dump_json(indent=1) + "\n").encode("utf-8")


def locate(out: Path) -> Located:
    """Find and read the record of an output.

    Args:
        out: the folder or file that ``convert -o`` wrote, a file in it, or the record itself.

    Raises:
        Problem: there is no record, or it cannot be read.
    """
    if not out.exists():
        raise Problem(
            str(out), "not found", "there is no such file or folder",
            "give what convert wrote: torch2ms convert FILE|DIR -o OUT",
        )  # fmt: skip
    if out.is_dir():
        path = out / NAME
    else:
        path = out if out.name.endswith(NAME) else out.with_name(f"{out.stem}.{NAME}")
        if not path.exists():
            path = next((p / NAME for p in out.parents if (p / NAME).exists()), path)
    if not path.exists():
        raise Problem(
            str(out), "no record", f"{path.name} is not there; convert writes it",
            f"torch2ms convert FILE|DIR -o {out if out.is_dir() else out.parent}",
        )  # fmt: skip
    record = _read(path)
    return Located(path, path.parent, record, _file(out, path, record))


def _read(path: Path) -> Record:
    try:
        data = path.read_text(encoding="utf-8")
        record = Record.model_validate_json(data)
    except (OSError, ValueError) as error:
        raise Problem(
            str(path), "not a record of torch2ms", str(error).splitlines()[0],
            "convert again with --force",
        ) from error  # fmt: skip
    if record.schema_version != SCHEMA_VERSION:
        raise Problem(
            str(path), f"a record of schema {record.schema_version}",
            f"this version reads schema {SCHEMA_VERSION}", "convert again with --force",
        )  # fmt: skip
    return record


def _file(out: Path, path: Path, record: Record) -> str:
    """The source path of the one output that was named; "" for all of them."""
    if out.is_dir() or out == path:
        return ""
    wanted = out.resolve().relative_to(path.parent.resolve()).as_posix()
    source = next((f.source for f in record.files if f.output == wanted and f.source), "")
    if source:
        return source
    raise Problem(
        str(out), "not an output of this conversion", f"{path} does not name it",
        "give a converted file, or the whole folder",
    )  # fmt: skip


def read_verification(located: Located) -> Verification | None:
    """What verify found last; None: it has not run on this output.

    Raises:
        Problem: the file is there but cannot be read.
    """
    path = located.verification
    if not path.exists():
        return None
    try:
        return Verification.model_validate_json(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise Problem(
            str(path), "not a result of torch2ms verify", str(error).splitlines()[0],
            f"run again: torch2ms verify {located.root}",
        ) from error  # fmt: skip
