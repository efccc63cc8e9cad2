"""In: nothing. Out: what a conversion as a whole is: the record, the outputs, what failed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from migrate.records.choices import Choice
from migrate.records.outcomes import FAULT
from migrate.records.result import Record
from migrate.vendoring.library import Looked
from migrate.workspace.jinja import Template
from migrate.workspace.notebook import Notebook
from migrate.workspace.outputs import Output
from migrate.workspace.tree import Failure


@dataclass(frozen=True)
class Conversion:
    """Everything that convert decided; ``originals`` are the input bytes of changed files.

    ``record_name`` is where the record belongs, relative to the output root ``root``;
    ``conflicts``: outputs in which a hand edit meets a change of the conversion; ``unused``:
    choices whose place is not there, or not flagged any more; ``looked``: what was looked up of
    installed packages.
    """

    record: Record
    root: Path
    record_name: str
    outputs: tuple[Output, ...]
    failures: tuple[Failure, ...] = ()
    originals: Mapping[str, bytes] = field(default_factory=dict)
    notebooks: Mapping[str, Notebook | Template] = field(default_factory=dict)
    conflicts: tuple[str, ...] = ()
    unused: tuple[Choice, ...] = ()
    looked: Looked = field(default_factory=Looked)

    @property
    def status(self) -> int:
        """Exit code: 3 internal error, 2 unreadable input, 1 something to look at, 0 clean."""
        entries = (entry for file in self.record.files for entry in file.entries)
        if any(f.internal for f in self.failures) or any(e.code == FAULT for e in entries):
            return 3
        if self.failures:
            return 2
        return 1 if self.record.ledger.flagged or self.conflicts else 0
