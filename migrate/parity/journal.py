"""In: rungs as they are finished. Out: what an interrupted run is continued from.

A model has one file, replaced as a whole after each of its rungs. The folder of a run is named by
everything that its numbers depend on, so what was kept of other code or options is never used.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import ValidationError

from migrate.parity.request import VerifyRequest
from migrate.records.result import Check, Frozen, ModelResult, Record, Rung


class Kept(Frozen):
    """One finished rung with its checks."""

    rung: Rung
    checks: tuple[Check, ...] = ()


class Page(Frozen):
    """What is known of one model: its finished rungs, and in the end its result."""

    kept: tuple[Kept, ...] = ()
    result: ModelResult | None = None


@dataclass(frozen=True)
class Journal:
    """The pages of one run; without a folder nothing outlives the process."""

    folder: Path | None = None

    def _file(self, key: str) -> Path | None:
        name = hashlib.sha256(key.encode()).hexdigest()[:24]
        return self.folder / f"{name}.json" if self.folder else None

    def read(self, key: str) -> Page:
        """The page of a model; an empty one where there is none that can be read."""
        file = self._file(key)
        try:
            return Page.model_validate_json(file.read_bytes()) if file else Page()
        except (OSError, ValidationError):
            return Page()

    def write(self, key: str, page: Page) -> None:
        """Replace the page of a model as a whole."""
        file = self._file(key)
        if file is not None:
            whole = file.with_suffix(".new")
            whole.write_text(page.model_dump_json(), encoding="utf-8")
            os.replace(whole, file)


def open_journal(
    request: VerifyRequest, record: Record, roots: Sequence[Path], environment: Mapping[str, str]
) -> Journal:
    """The journal of exactly this run; ``roots`` are the folders of sources and outputs."""
    if request.journal is None:
        return Journal()
    folder = request.journal / _fingerprint(request, record, roots, environment)
    folder.mkdir(parents=True, exist_ok=True)
    return Journal(folder)


def close_journal(request: VerifyRequest) -> None:
    """Remove what was kept, after the result has been written."""
    if request.journal is not None:
        shutil.rmtree(request.journal, ignore_errors=True)


def _fingerprint(
    request: VerifyRequest, record: Record, roots: Sequence[Path], environment: Mapping[str, str]
) -> str:
    # how the models are spread, and which of them are asked for, changes none of their numbers
    spread = replace(request, jobs=1, cluster="", builds=(), inputs=(), file="")
    asked = repr(replace(spread, journal=None, reproductions=None, tests=None))
    digest = hashlib.sha256(asked.encode())
    digest.update(record.model_dump_json().encode())
    digest.update(json.dumps(dict(environment), sort_keys=True).encode())
    for root in roots:
        for path in sorted(root.rglob("*.py") if root.is_dir() else (root,)):
            if {request.reproductions, request.tests} & set(path.parents):
                continue  # written by this very run
            digest.update(f"{path}\n".encode())
            digest.update(path.read_bytes() if path.is_file() else b"")
    return digest.hexdigest()[:24]
