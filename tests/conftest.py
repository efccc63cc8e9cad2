"""In: nothing. Out: fixtures that run the command line and write small projects."""

from __future__ import annotations

import builtins
import contextlib
import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from migrate.cli import app as cli


@dataclass(frozen=True)
class Ran:
    """What a command gave back."""

    code: int
    out: str
    err: str


@pytest.fixture(autouse=True)
def imports_as_before() -> Iterator[None]:
    """Fail where a test leaves a process that imports otherwise: later ones would get the blame."""
    before = builtins.__import__
    yield
    after, builtins.__import__ = builtins.__import__, before
    assert after is before, "this test changed the import function of the process"


@pytest.fixture(autouse=True)
def cache_of_its_own(tmp_path_factory: pytest.TempPathFactory, monkeypatch) -> None:
    """Give each test a cache that nobody else writes."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture
def run() -> Callable[..., Ran]:
    """Run ``torch2ms`` in this process: run("convert", path, "-o", out)."""

    def call(*arguments: object) -> Ran:
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = cli.main([str(argument) for argument in arguments])
        return Ran(code, out.getvalue(), err.getvalue())

    return call


@pytest.fixture
def write(tmp_path: Path) -> Callable[[dict[str, str | bytes]], Path]:
    """Write files below a folder of its own: write({"pkg/net.py": "import torch\\n"})."""

    def call(files: dict[str, str | bytes], root: str = "in") -> Path:
        for name, content in files.items():
            path = tmp_path / root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode() if isinstance(content, str) else content)
        return tmp_path / root

    return call


def snapshot(folder: Path) -> dict[str, object]:
    """Every path below a folder with its content: to see that nothing was changed."""
    found: dict[str, object] = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_symlink():
            found[name] = ("link", path.readlink().as_posix())
        else:
            found[name] = path.read_bytes() if path.is_file() else "folder"
    return found


@pytest.fixture(name="snapshot")
def snapshot_fixture() -> Callable[[Path], dict[str, object]]:
    return snapshot
