"""Keep what a conversion, a scan or a check gave, by the content of all that it was made from.

The key is a digest of what was asked for, of every file of the input, of the user's rows, of this
tool's own files and of the packages it runs with. What was looked up of installed packages lies in
the entry: it is looked up again, and the entry counts only where it is still the same. Nothing is
kept of a run with rules of users or recorded types, of one that failed through a fault of ours, or
where a file changed while it ran.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from migrate.mapping.table import mappings_folder
from migrate.records.choices import Choice
from migrate.records.result import Record
from migrate.vendoring.library import Looked
from migrate.workspace import jinja, notebook
from migrate.workspace.conversion import Conversion
from migrate.workspace.outputs import Output, mode_of, write_atomically
from migrate.workspace.request import Request, inputs
from migrate.workspace.tree import Failure, Tree

VERSION = 1
LIMIT = 400_000_000  # bytes of all entries together
_PACKAGES = ("libcst", "pydantic", "pathspec", "jinja2", "pyyaml", "tomlkit", "packaging", "torch",
             "mindspore", "numpy")  # fmt: skip


@dataclass(frozen=True)
class Kept:
    """What a run gave: a text for each name, and what it looked up of installed packages."""

    parts: Mapping[str, bytes]
    looked: Looked = field(default_factory=Looked)
    keeps: bool = True


@dataclass(frozen=True)
class Cache:
    """A folder of entries. ``limit``: what is used least goes where all take more bytes."""

    folder: Path
    limit: int = LIMIT

    def got(
        self, kind: str, request: Request, more: Sequence[str], make: Callable[[], Kept]
    ) -> Mapping[str, bytes]:
        """Return what was kept for a request, else what ``make`` gives, which is kept then.

        Args:
            kind: of what is kept ("convert"); ``more``: what else it depends on.

        Raises:
            Problem: the input is missing, or holds no Python; and whatever ``make`` raises.
        """
        key = self._key(kind, request, more)
        if key is None:
            return make().parts
        path = self.folder / f"{key}.zip"
        found = self._read(path, request)
        if found is not None:
            return found
        made = make()
        if made.keeps and self._key(kind, request, more) == key:
            self._write(path, made)
        return made.parts

    def _key(self, kind: str, request: Request, more: Sequence[str]) -> str | None:
        """Return the key of a request; None: it cannot be told by the content of files."""
        own = [path for path in request.mappings if path.suffix == ".py"]
        if own or (request.recorded is not None and request.recorded.places):
            return None
        tree = inputs(request)
        try:
            parts = [
                f"{VERSION} {kind} {self.tool}", *more, *_asked(request),
                *(f"{path} {_digest(path)}" for path in request.mappings), *_content(tree),
            ]  # fmt: skip
        except OSError:
            return None
        return sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()

    @cached_property
    def tool(self) -> str:
        """Return a digest of this tool, of Python, and of the packages that it works with."""
        found = sha256(sys.version.encode())
        for name in _PACKAGES:
            with contextlib.suppress(PackageNotFoundError):
                found.update(f"{name} {version(name)}\n".encode())
        for root in (Path(__file__).parents[1], mappings_folder()):
            for path in sorted(root.rglob("*")):
                if path.suffix not in (".pyc", "") and path.is_file():
                    found.update(f"{path.relative_to(root)}\n".encode())
                    found.update(path.read_bytes())
        return found.hexdigest()

    def _read(self, path: Path, request: Request) -> dict[str, bytes] | None:
        """Return an entry that still holds; a broken one counts as none."""
        try:
            with zipfile.ZipFile(path) as opened:
                parts = {name: opened.read(name) for name in opened.namelist()}
            looked = Looked(**json.loads(parts.pop("looked.json")))
        except (OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile):
            return None
        if not looked.holds(request.wish.paths):
            return None
        with contextlib.suppress(OSError):
            os.utime(path)  # what is used stays longest
        return parts

    def _write(self, path: Path, made: Kept) -> None:
        """Keep an entry; where that cannot be, nothing is lost but time."""
        parts = {"looked.json": json.dumps(asdict(made.looked)).encode(), **made.parts}

        def fill(new: Path) -> None:
            with zipfile.ZipFile(new, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as packed:
                for name, data in parts.items():
                    packed.writestr(name, data)

        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            write_atomically(path, fill, 0o600)
            self._bound(path)
        except OSError:
            return

    def _bound(self, newest: Path) -> None:
        """Take away what was used least, until all entries together are small enough."""
        entries = []
        for path in self.folder.iterdir():
            with contextlib.suppress(OSError):  # another run may have taken it away
                state = path.stat()
                entries.append((state.st_mtime_ns, state.st_size, path))
        total = sum(size for _, size, _ in entries)
        for _, size, path in sorted(entries):
            if total <= self.limit:
                return
            if path != newest:
                path.unlink(missing_ok=True)
                total -= size


def opened(wanted: bool = True) -> Cache | None:
    """Return the cache of this user; None where it is not wanted, or there is no place for it."""
    if not wanted:
        return None
    try:
        root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError:  # nobody knows where this user's home is
        return None
    return Cache(root / "torch2ms") if root.is_absolute() else None


def _asked(request: Request) -> list[str]:
    """Return everything of a request that its result depends on, but for the content of files."""
    wish = request.wish
    choices = [choice.model_dump() for choice in request.choices]
    words = {
        "source": [str(request.source), str(request.source.resolve())],
        "output": [str(request.output), str(request.output.resolve())],
        "options": [request.target, request.helpers, request.train_style, *request.exclude],
        "wish": [wish.follow, wish.no_follow, [str(path.resolve()) for path in wish.paths]],
        "choices": choices, "path": sys.path, "here": os.getcwd(),
    }  # fmt: skip
    return [json.dumps(words, sort_keys=True)]


def _content(tree: Tree) -> list[str]:
    """Return what tells the files of an input: their kinds, modes and digests."""
    found = [f"{one.path}: {one.reason}" for one in tree.skipped]
    for one in tree.files:
        path = tree.root / one.path
        if one.kind == "link":
            found.append(f"{one.path} -> {os.readlink(path)}")
        else:
            found.append(f"{one.path} {one.kind} {mode_of(path):o} {_digest(path)}")
    return found


def _digest(path: Path) -> str:
    return sha256(path.read_bytes()).hexdigest()


# -- a conversion as parts -----------------------------------------------------------------------


def dumped(made: Conversion) -> Kept:
    """Return a conversion as texts, to be read back by ``loaded``."""
    parts: dict[str, bytes] = {}
    outputs: list[dict[str, Any]] = []
    for number, output in enumerate(made.outputs):
        if output.content is not None:
            parts[f"outputs/{number}"] = output.content
        source = None if output.source is None else str(output.source)
        outputs.append({"path": output.path, "source": source, "link": output.link,
                        "mode": output.mode})  # fmt: skip
    rest = {
        "root": str(made.root), "record_name": made.record_name, "outputs": outputs,
        "failures": [asdict(failure) for failure in made.failures],
        "originals": sorted(made.originals), "notebooks": sorted(made.notebooks),
        "unused": [choice.model_dump() for choice in made.unused],
    }  # fmt: skip
    parts["conversion.json"] = json.dumps(rest).encode("utf-8", "surrogateescape")
    parts["record.json"] = made.record.model_dump_json().encode("utf-8")
    return Kept(parts, made.looked, made.status != 3)


def loaded(parts: Mapping[str, bytes], request: Request) -> Conversion:
    """Return the conversion that parts were made from; its inputs are read again."""
    rest = json.loads(parts["conversion.json"])
    tree = inputs(request)
    outputs = tuple(
        Output(
            one["path"], parts.get(f"outputs/{number}"),
            None if one["source"] is None else Path(one["source"]), one["link"], one["mode"],
        )
        for number, one in enumerate(rest["outputs"])
    )  # fmt: skip
    originals = {path: (tree.root / path).read_bytes() for path in rest["originals"]}
    books: dict[str, notebook.Notebook | jinja.Template] = {}
    for path in rest["notebooks"]:
        data = (tree.root / path).read_bytes()
        read = notebook.read if path.endswith(".ipynb") else jinja.read_template
        book = read(path, data)
        assert book is not None
        books[path] = book
    return Conversion(
        Record.model_validate_json(parts["record.json"]), Path(rest["root"]), rest["record_name"],
        outputs, tuple(Failure(**one) for one in rest["failures"]), originals, books,
        unused=tuple(Choice(**one) for one in rest["unused"]),
    )  # fmt: skip
