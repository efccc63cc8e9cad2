"""Read [tool.torch2ms] of the nearest pyproject.toml, and find the rows and rules of users.

A package brings rows by an entry point: ``[project.entry-points."torch2ms.mappings"]`` with
``any_name = "package.folder"``; every ``*.toml`` in that folder is a file of rows. It brings rules
by one of the group ``torch2mindspore.rules``, with ``any_name = "package.module"``.
"""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterator, Sequence
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError

from migrate.records.outcomes import Problem
from migrate.records.result import Frozen

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


class ModelSettings(Frozen):
    """One model to verify: ``build`` is evaluated in each side's own module of ``file``."""

    build: str
    input: tuple[str, ...] = ()
    file: str = ""


class VerifySettings(Frozen):
    """[tool.torch2ms.verify]: the options of verify, and [[tool.torch2ms.verify.model]]."""

    build: tuple[str, ...] = ()
    input: tuple[str, ...] = ()
    mode: Literal["both", "pynative", "graph"] | None = None
    jobs: int | None = None
    timeout: float | None = None
    k: float | None = None
    rtol: float | None = None
    atol: float | None = None
    seed: int | None = None
    steps: int | None = None
    loss: tuple[str, ...] = ()
    target: tuple[str, ...] = ()
    optimizer: tuple[str, ...] = ()
    script: tuple[str, ...] = ()
    torch_python: Path | None = None
    device: Literal["CPU", "GPU", "Ascend"] | None = None
    memory: float | None = None
    cluster: str | None = None
    magnitudes: tuple[float, ...] = ()
    model: tuple[ModelSettings, ...] = ()


class CheckSettings(Frozen):
    """[tool.torch2ms.check]: the options of check."""

    fail_on: tuple[str, ...] = ()
    baseline: Path | None = None


class Settings(Frozen):
    """[tool.torch2ms]: ``mappings`` are files with rows of the user, ``rules`` files or modules
    with rules (as files, once read); ``exclude``, ``train_style``, ``follow`` and its kin are as
    the options of convert."""

    mappings: tuple[Path, ...] = ()
    rules: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    train_style: Literal["cells", "model"] = "cells"
    follow: tuple[str, ...] = ()
    no_follow: tuple[str, ...] = ()
    follow_path: tuple[Path, ...] = ()
    verify: VerifySettings = Field(default_factory=VerifySettings)
    check: CheckSettings = CheckSettings()


def nearest(*starts: Path) -> Settings:
    """The settings of the first pyproject.toml with [tool.torch2ms], upward from each start.

    Raises:
        Problem: it is not valid TOML, or holds a key or value that is not known.
    """
    seen: set[Path] = set()
    for start in starts:
        place = start.resolve()
        for folder in (place, *place.parents):
            path = folder / "pyproject.toml"
            if path in seen or not path.is_file():
                continue
            seen.add(path)
            section = _section(path)
            if section is not None:
                return _checked(path, section)
    return Settings()


def _section(path: Path) -> dict[str, Any] | None:
    """[tool.torch2ms] of a file; None: it has none."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise Problem(str(path), "cannot be read", str(error), "correct that file") from error
    section = content.get("tool", {}).get("torch2ms")
    return section if section is None or isinstance(section, dict) else {"torch2ms": section}


def _checked(path: Path, section: dict[str, Any]) -> Settings:
    try:
        found = Settings.model_validate(section)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(["tool.torch2ms", *(str(part) for part in first["loc"])])
        raise Problem(
            f"{path}: {place}", "not a setting", first["msg"], _advice(str(first["loc"][-1]))
        ) from error
    rows = tuple(path.parent / item for item in found.mappings)
    rules = tuple(str(_module(path.parent, item, f"{path}: rules")) for item in found.rules)
    along = tuple(path.parent / item for item in found.follow_path)
    check = found.check
    if check.baseline is not None:
        check = check.model_copy(update={"baseline": path.parent / check.baseline})
    changed = {"mappings": rows, "check": check, "follow_path": along, "rules": rules}
    return found.model_copy(update=changed)


def _module(folder: Path, name: str, where: str) -> Path:
    """Return the file of a module: a path, or a dotted name, in the folder or installed."""
    if name.endswith(".py"):
        path = folder / name
    else:
        path = folder.joinpath(*name.split(".")).with_suffix(".py")
        if not path.is_file():
            try:
                spec = find_spec(name)
            except (ImportError, ValueError):
                spec = None
            path = Path(spec.origin) if spec is not None and spec.origin else path
    if not path.is_file():
        raise Problem(where, f"no module {name}", f"there is no file {path}", "correct the name")
    return path.resolve()


def _advice(key: str) -> str:
    sections = (Settings, VerifySettings, ModelSettings, CheckSettings)
    known = [name for section in sections for name in section.model_fields]
    near = difflib.get_close_matches(key, [name for name in known if name != key], 1)
    return f"did you mean {near[0]!r}?" if near else "correct or remove it"


GROUP = "torch2ms.mappings"
RULES = "torch2mindspore.rules"


def mapping_files(settings: Settings, given: Sequence[Path] = ()) -> tuple[Path, ...]:
    """Files of installed packages, then of the project, then those given (--mappings).

    Those that end in ``.py`` hold rules, the others rows.

    Raises:
        Problem: a file does not exist, or an entry point names a folder without rows.
    """
    listed = (*settings.mappings, *map(Path, settings.rules), *given)
    for path in listed:
        if not path.is_file():
            raise Problem(
                str(path), "no file of rows", "it does not exist, or is a folder",
                "correct --mappings, or mappings and rules in [tool.torch2ms]",
            )  # fmt: skip
    return tuple(dict.fromkeys((*_installed(), *(path.resolve() for path in listed))))


def _installed() -> Iterator[Path]:
    for point in sorted(entry_points(group=GROUP), key=lambda one: one.name):
        yield from _files(point)
    for point in sorted(entry_points(group=RULES), key=lambda one: one.name):
        yield _module(Path(), point.module, f"entry point {RULES}: {point.name}")


def _files(point: EntryPoint) -> list[Path]:
    try:
        spec = find_spec(point.module)
    except (ImportError, ValueError):
        spec = None
    folders = list(spec.submodule_search_locations or ()) if spec else []
    found = [path for folder in folders for path in sorted(Path(folder).glob("*.toml"))]
    if not found:
        name = point.dist.name if point.dist else "an installed package"
        raise Problem(
            f"entry point {GROUP}: {point.name} = {point.value}", "brings no rows",
            f"{name} names a package folder that holds no *.toml", "correct or remove that package",
        )  # fmt: skip
    return [path.resolve() for path in found]
