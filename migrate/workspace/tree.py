"""List the files of a folder in order, apart by kind, and read what is Python of them."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pathspec import GitIgnoreSpec

from migrate.records.outcomes import Problem
from migrate.syntax.source import Source, Unreadable, read
from migrate.workspace import notebook
from migrate.workspace.jinja import SUFFIXES, Template, read_template
from migrate.workspace.notebook import Notebook

SIZE_LIMIT = 20 * 1024 * 1024  # bytes; what is larger is weights or data, not a program
_CACHES = ("__pycache__", "kernel_meta", "node_modules", "site-packages")
_BUILDS = ("build", "dist")
_RECORDS = ("torch2ms.json", "torch2ms.verify.json", "torch2ms.base.zip")
_PROJECT_FILES = ("setup.py", "setup.cfg", "pyproject.toml")

Kind = Literal["python", "notebook", "template", "link", "other"]


@dataclass(frozen=True)
class Found:
    """A file of the input; ``path`` is relative to the root, with forward slashes."""

    path: str
    kind: Kind
    size: int = 0


@dataclass(frozen=True)
class Skipped:
    """A file or folder that is left out, and why."""

    path: str
    reason: str


@dataclass(frozen=True)
class Tree:
    """What a folder holds, sorted by path."""

    root: Path
    files: tuple[Found, ...]
    skipped: tuple[Skipped, ...]

    def of_kind(self, kind: Kind) -> tuple[str, ...]:
        return tuple(file.path for file in self.files if file.kind == kind)


@dataclass(frozen=True)
class _Rules:
    """The rules in force in one folder; ``ignore``: (folder of a .gitignore, its rules)."""

    exclude: GitIgnoreSpec
    ignore: tuple[tuple[str, GitIgnoreSpec], ...] = ()

    def inside(self, folder: str, root: Path) -> _Rules:
        try:
            lines = (root / folder / ".gitignore").read_text("utf-8", "replace").splitlines()
        except OSError:
            return self
        own = (folder, GitIgnoreSpec.from_lines(lines))
        return _Rules(self.exclude, (*self.ignore, own))

    def reason(self, path: str, is_folder: bool) -> str:
        """Why the rules leave this path out; "" when they do not. --exclude has the last word."""
        shown = path + "/" if is_folder else path
        excluded = self.exclude.check_file(shown).include
        if excluded is not None:
            return "named by --exclude" if excluded else ""
        ignored = None
        for folder, rules in self.ignore:
            answer = rules.check_file(shown[len(folder) + 1 if folder else 0 :]).include
            ignored = ignored if answer is None else answer
        return "named in .gitignore" if ignored else ""


def walk(root: Path, exclude: Sequence[str] = ()) -> Tree:
    """List a folder without hidden folders, environments, caches, build output, large files.

    Args:
        root: an existing folder.
        exclude: patterns as in .gitignore, relative to the root; ``!pattern`` takes back in
            what .gitignore leaves out.

    Raises:
        Problem: the folder cannot be listed, or a pattern is not valid.
    """
    try:
        rules = _Rules(GitIgnoreSpec.from_lines(exclude))
    except ValueError as error:
        raise Problem(
            "--exclude", "not a pattern", str(error), "write it as in a .gitignore file"
        ) from error
    files: list[Found] = []
    skipped: list[Skipped] = []
    pending = [("", rules)]
    while pending:
        folder, outer = pending.pop()
        here = outer.inside(folder, root)
        for entry in _entries(root, folder, skipped):
            path = f"{folder}/{entry.name}" if folder else entry.name
            reason = _reason(entry, here.reason(path, _is_folder(entry)))
            if reason:
                skipped.append(Skipped(path, reason))
            elif _is_folder(entry):
                pending.append((path, here))
            else:
                files.append(_found(entry, path))
    by_path = lambda item: item.path.split("/")  # noqa: E731
    return Tree(root, tuple(sorted(files, key=by_path)), tuple(sorted(skipped, key=by_path)))


def _entries(root: Path, folder: str, skipped: list[Skipped]) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(root / folder) as entries:
            return list(entries)
    except OSError as error:
        if not folder:
            raise Problem(
                str(root), "cannot be listed", error.strerror or str(error), "check its permissions"
            ) from error
        skipped.append(Skipped(folder, f"cannot be listed: {error.strerror}"))
        return []


def _is_folder(entry: os.DirEntry[str]) -> bool:
    return entry.is_dir(follow_symlinks=False)


def _reason(entry: os.DirEntry[str], by_rule: str) -> str:
    """Why an entry is left out, "" when it is not."""
    if entry.is_symlink():
        return by_rule
    if _is_folder(entry):
        return _folder_reason(entry) or by_rule
    mode = entry.stat(follow_symlinks=False)
    if not stat.S_ISREG(mode.st_mode):
        return "neither file, folder nor link"
    if entry.name.endswith((".pyc", ".pyo")):
        return "cache"
    if entry.name == "torch2ms-choices.toml":
        return "choices for torch2ms"
    if entry.name.endswith(_RECORDS):
        return "record of an earlier conversion"
    if mode.st_size > SIZE_LIMIT:
        return f"over {SIZE_LIMIT // 1024 // 1024} MB ({mode.st_size / 1024 / 1024:.0f} MB)"
    return by_rule


def _folder_reason(entry: os.DirEntry[str]) -> str:
    folder = Path(entry.path)
    if (folder / "pyvenv.cfg").exists() or (folder / "conda-meta").is_dir():
        return "virtual environment"
    if entry.name.startswith("."):
        return "hidden folder"
    if entry.name in _CACHES or entry.name.endswith(".egg-info"):
        return "cache"
    beside_project = any((folder.parent / name).exists() for name in _PROJECT_FILES)
    if entry.name in _BUILDS and beside_project and not (folder / "__init__.py").exists():
        return "build output"
    return ""


def _found(entry: os.DirEntry[str], path: str) -> Found:
    if entry.is_symlink():
        return Found(path, "link")
    size = entry.stat(follow_symlinks=False).st_size
    if entry.name.endswith((".py", ".pyw")):
        return Found(path, "python", size)
    if entry.name.endswith(SUFFIXES):
        return Found(path, "template", size)
    return Found(path, "notebook" if entry.name.endswith(".ipynb") else "other", size)


@dataclass(frozen=True)
class Failure:
    """A file that has no output; ``internal``: through a fault of this tool."""

    path: str
    where: str
    what: str
    why: str
    next_step: str
    internal: bool = False


@dataclass(frozen=True)
class Inputs:
    """What was read. ``raw``: the bytes of each file in ``sources``; the source of a notebook or of
    a template is the Python in it, and the file itself is in ``notebooks``."""

    raw: Mapping[str, bytes]
    sources: Mapping[str, Source]
    notebooks: Mapping[str, Notebook | Template]
    failures: tuple[Failure, ...]


def read_all(tree: Tree) -> Inputs:
    """Read and parse every Python file and notebook; other files are only tried."""
    raw: dict[str, bytes] = {}
    sources: dict[str, Source] = {}
    notebooks: dict[str, Notebook | Template] = {}
    failures: list[Failure] = []
    for found in tree.files:
        try:
            _read(tree, found, raw, sources, notebooks)
        except Unreadable as error:
            failures.append(
                Failure(found.path, error.where, error.what, error.why, error.next_step)
            )
        except OSError as error:
            why = error.strerror or str(error)
            failures.append(
                Failure(found.path, found.path, "cannot be read", why, "check its permissions")
            )
    return Inputs(raw, sources, notebooks, tuple(failures))


def _read(
    tree: Tree,
    found: Found,
    raw: dict[str, bytes],
    sources: dict[str, Source],
    notebooks: dict[str, Notebook | Template],
) -> None:
    path = found.path
    taken: Notebook | Template | None = None
    if found.kind == "python":
        raw[path] = (tree.root / path).read_bytes()
        sources[path] = read(path, raw[path])
    elif found.kind == "notebook":
        data = (tree.root / path).read_bytes()
        taken = notebook.read(path, data)
    elif found.kind == "template":
        data = (tree.root / path).read_bytes()
        taken = read_template(path, data)
    elif found.kind == "other":
        (tree.root / path).open("rb").close()
    if taken is not None:
        sources[path] = read(path, taken.text.encode("utf-8"))
        raw[path], notebooks[path] = data, taken
