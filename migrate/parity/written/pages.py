"""In: a session and its checks. Out: a pytest file, its fixtures, and what it imports."""

from __future__ import annotations

import os
import shutil
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, Template

from migrate import __version__
from migrate.parity.recorded import Recorded
from migrate.parity.written.copies import PACKAGE, copies
from migrate.parity.written.fixtures import write_fixtures
from migrate.records.outcomes import Verdict
from migrate.records.result import Check

MARK = "Written by torch2ms"
RUNGS = ("forward eval", "forward train", "gradients", "loss", "optimizer step", "steps")
DOC = {
    "forward eval": "Fed what its torch partner received, the Cell gives what torch gives.",
    "forward train": "The same in train mode: shared dropout masks, moved statistics count.",
    "gradients": "Gradients of its parameters (whole model: of the inputs), for a fixed cotangent.",
    "loss": "The loss of the first step.",
    "optimizer step": "What the first step moves the weights of the Cell by.",
    "steps": "Later losses, and what all steps together move the weights by.",
}


class NotOurs(Exception):
    """A file or folder stands where tests would be written, and this tool did not write it."""


@dataclass(frozen=True)
class Case:
    """One parameter set of a test; ``skip`` says why verify could not compare anything."""

    path: str
    mode: str
    skip: str = ""


@dataclass(frozen=True)
class RungTests:
    """One test function: a rung with all its Cells and modes."""

    rung: str
    doc: str
    cases: tuple[Case, ...]

    @property
    def name(self) -> str:
        return "test_" + self.rung.replace(" ", "_")


def write_tests(session: Recorded, checks: Sequence[Check], folder: Path) -> Path:
    """Write the tests of one model into a folder, in place of those of an earlier run.

    Raises NotOurs, WorkerError, WorkerLost and OSError; then nothing of the model is written.
    """
    stem = _stem(session)
    test, fixtures = folder / f"test_{stem}.py", folder / stem
    refuse_others(test, fixtures)
    text = _page(session, checks, folder, stem)
    fresh = folder / f".{stem}.new"
    for old in (fresh, fixtures):
        shutil.rmtree(old, ignore_errors=True)
    write_fixtures(session, checks, fresh)
    fresh.rename(fixtures)
    (folder / PACKAGE).mkdir(exist_ok=True)
    for name, content in copies().items():
        (folder / PACKAGE / name).write_text(content, encoding="utf-8")
    test.write_text(text, encoding="utf-8")
    return test


def refuse_others(test: Path, fixtures: Path) -> None:
    """Raises NotOurs where writing would replace what somebody else wrote."""
    if test.exists() and MARK not in test.read_text(encoding="utf-8", errors="replace"):
        raise NotOurs(f"{test} is there, and torch2ms did not write it")
    if fixtures.exists() and not (fixtures / "model.json").exists():
        raise NotOurs(f"{fixtures} is there, and torch2ms did not write it")


def _stem(session: Recorded) -> str:
    """A name for the model: that of file and class, with a checksum where they do not tell all."""
    target, inputs = session.target, session.target.inputs
    file = Path(target.source).with_suffix("").as_posix()
    build = target.build.removesuffix("()")
    words = " ".join((file, build, *inputs))
    text = "_".join("".join(c if c.isalnum() else " " for c in words).split())[:60]
    shapes = all(part.isdecimal() for one in inputs for part in one.split("x"))
    if file.isidentifier() and build.isidentifier() and shapes and len(words) < 60:
        return text
    return f"{text}_{zlib.crc32(repr((file, build, inputs)).encode()):08x}"


def _page(session: Recorded, checks: Sequence[Check], folder: Path, stem: str) -> str:
    return template().render(
        what=_one_line(f"{session.target.build} of {session.target.output}"), mark=MARK,
        version=__version__, package=PACKAGE, stem=stem,
        code=_way(session.target.ms_root, folder),
        torch_code=_way(session.target.torch_root, folder),
        tests=_tests(checks),
        whole=any(c.rung == "forward eval" and not c.torch_path and c.elements for c in checks),
    )  # fmt: skip


def template() -> Template:
    """The page of one model; every text of the user's goes through the filter ``text``."""
    environment = Environment(
        loader=PackageLoader("migrate.parity.written", "."), undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True,
    )  # fmt: skip
    environment.filters["text"] = _text
    return environment.get_template("test_model.py.j2")


def _tests(checks: Sequence[Check]) -> list[RungTests]:
    found = []
    for rung in RUNGS:
        cases = [
            Case(c.torch_path, c.mode, (c.detail or "not run") * (c.verdict is Verdict.NOT_RUN))
            for c in checks if c.rung == rung
        ]  # fmt: skip
        if cases:
            found.append(RungTests(rung, DOC[rung], tuple(cases)))
    return found


def _way(root: Path, folder: Path) -> str:
    return Path(os.path.relpath(root.resolve(), folder.resolve())).as_posix()


def _one_line(text: str) -> str:
    """Safe inside a docstring."""
    return " ".join(text.split()).replace("\\", "/").replace('"""', "'''")[:160]


def _text(value: Any) -> str:
    """A Python string literal with double quotes, as formatters write it."""
    literal = repr(str(value))
    return literal if '"' in literal else f'"{literal[1:-1]}"'
