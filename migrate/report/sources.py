"""In: a converted file of a record, both roots. Out: its two texts, or why they are missing."""

from __future__ import annotations

import io
import tokenize
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from migrate.result import FileResult


@dataclass(frozen=True)
class Texts:
    """``problem`` tells why ``before`` or ``after`` is missing; ``warning``: it changed since."""

    before: str = ""
    after: str = ""
    problem: str = ""
    warning: str = ""


def texts(file: FileResult, source_root: Path, output_root: Path) -> Texts:
    """Read both sides with Python's own encoding rules; never raises for a bad file."""
    warnings = []
    sides = []
    for root, name, digest, what in (
        (source_root, file.source, file.source_sha256, "source"),
        (output_root, file.output, file.output_sha256, "output"),
    ):
        path = _path(root, name)
        try:
            data = path.read_bytes()
        except OSError as error:
            reason = error.strerror or type(error).__name__
            return Texts(problem=_moved(what, path, reason))
        if digest and sha256(data).hexdigest() != digest:
            warnings.append(f"The {what} file {name} has changed since it was converted.")
        sides.append(_decode(data))
    return Texts(sides[0], sides[1], warning=" ".join(warnings))


def _path(root: Path, name: str) -> Path:
    """A root that is itself the file stands for it (one file was converted)."""
    return root if root.is_file() else root / name


def _moved(what: str, path: Path, reason: str) -> str:
    return (
        f"No diff: the {what} file cannot be read at {path} ({reason}). "
        "Put it back, or convert again, and run torch2ms report once more."
    )


def _decode(data: bytes) -> str:
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        text = data.decode(encoding)
    except (SyntaxError, UnicodeDecodeError, LookupError):
        text = data.decode("utf-8", errors="replace")
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
