"""The modules of migrate/ import in one direction and load no framework."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1] / "migrate"

# From first to last; a folder counts as one. A module imports only from those before it.
ORDER = """
records syntax mapping vendoring analysis codegen sites rules training engine workspace
parity evidence explain report check cli testing api __main__
""".split()
# Frameworks are loaded only here, each in a process of its own.
FRAMEWORKS = ("torch", "mindspore", "numpy", "torchgen")
MAY_LOAD = ("parity", "evidence", "helpers")


def files() -> list[Path]:
    return sorted(p for p in ROOT.rglob("*.py") if p != ROOT / "__init__.py")


def unit(path: Path) -> str:
    """The entry of ORDER that a file belongs to."""
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imported(path: Path) -> list[tuple[int, str]]:
    """(line, dotted name) of every import, wherever it stands."""
    found: list[tuple[int, str]] = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path}:{node.lineno}: write the full name of the module"
            module = node.module or ""
            names = [alias.name for alias in node.names] if module == "migrate" else [""]
            found += [(node.lineno, f"{module}.{name}".rstrip(".")) for name in names]
    return found


def test_every_module_has_its_place_in_the_order() -> None:
    known = {unit(path) for path in files()} - {"helpers"}
    missing = known - set(ORDER)
    assert not missing, f"add to ORDER in {__file__}: {sorted(missing)}"
    assert len(ORDER) == len(set(ORDER))


@pytest.mark.parametrize("path", files(), ids=lambda p: p.relative_to(ROOT).as_posix())
def test_imports_point_upwards(path: Path) -> None:
    own = unit(path)
    for line, name in imported(path):
        parts = name.split(".")
        if parts[0] != "migrate" or len(parts) == 1 or parts[1] in (own, "__version__"):
            continue
        if own == "helpers" or parts[1] == "helpers":
            assert own == parts[1], f"{path}:{line}: helpers are copied, not imported"
            continue
        assert ORDER.index(parts[1]) < ORDER.index(own), f"{path}:{line}: {own} imports {name}"


@pytest.mark.parametrize("path", files(), ids=lambda p: p.relative_to(ROOT).as_posix())
def test_frameworks_are_loaded_by_the_workers_only(path: Path) -> None:
    if unit(path) in MAY_LOAD:
        return
    loads = [f"{line}: {name}" for line, name in imported(path) if name.split(".")[0] in FRAMEWORKS]
    assert not loads, f"{path}: {loads}"


def needed(path: Path) -> set[str]:
    """Modules of migrate that a file imports as it is read."""
    found: set[str] = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("migrate"):
            module = str(node.module)
            found |= {module, *(f"{module}.{alias.name}" for alias in node.names)}
    return found


def test_no_modules_import_each_other_in_a_circle() -> None:
    waits = {".".join(p.relative_to(ROOT.parent).with_suffix("").parts): needed(p) for p in files()}
    waits = {name: after & waits.keys() for name, after in waits.items()}
    while ready := {name for name, after in waits.items() if not after}:
        waits = {name: after - ready for name, after in waits.items() if name not in ready}
    assert not waits, f"these wait for each other: {sorted(waits)}"


def test_the_check_itself_goes_red(tmp_path: Path) -> None:
    path = tmp_path / "x.py"
    path.write_text("def f():\n    from migrate import cli\n    import torch.nn\n")
    assert imported(path) == [(2, "migrate.cli"), (3, "torch.nn")]
    path.write_text("from .x import y\n")
    with pytest.raises(AssertionError, match="full name"):
        imported(path)


@pytest.mark.parametrize("path", files(), ids=lambda p: p.relative_to(ROOT).as_posix())
def test_a_module_says_what_it_is_for_and_holds_one_idea(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert ast.get_docstring(ast.parse(text)), f"{path}: what is it for?"
    assert text.count("\n") <= 600, f"{path}: {text.count(chr(10))} lines; is it one idea?"
