"""In: packages that fail at import. Out: that a second try begins afresh."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from migrate.parity.importing import Tree, load, load_anyhow

PACKAGE = """
from pathlib import Path

from half_made.inner import part

if not Path(__file__).with_name("ready").exists():
    raise RuntimeError("not yet")
"""


def test_a_package_that_failed_is_imported_afresh(tmp_path: Path) -> None:
    inner = tmp_path / "half_made" / "inner"  # without __init__.py
    inner.mkdir(parents=True)
    (inner / "part.py").write_text("VALUE = 3\n")
    (tmp_path / "half_made" / "__init__.py").write_text(PACKAGE)
    (tmp_path / "net.py").write_text("from half_made.inner.part import VALUE\n")
    with pytest.raises(RuntimeError, match="not yet"):
        load(Tree(tmp_path), "net.py")
    assert "half_made.inner" in sys.modules and "half_made" not in sys.modules
    (tmp_path / "half_made" / "ready").touch()
    try:
        assert load(Tree(tmp_path), "net.py").VALUE == 3
    finally:
        for name in [name for name in sys.modules if name.partition(".")[0] == "half_made"]:
            del sys.modules[name]


def test_a_package_whose_first_import_fails_gives_what_comes_after_it(tmp_path: Path) -> None:
    (tmp_path / "partly").mkdir()
    text = "from __future__ import annotations\nimport no_such_thing\nfrom .part import VALUE\n"
    (tmp_path / "partly" / "__init__.py").write_text(text + "def f(x: Later): return x\n")
    (tmp_path / "partly" / "part.py").write_text("VALUE = 5\n")
    (tmp_path / "net.py").write_text("from partly import VALUE, f\n")
    try:
        module, note = load_anyhow(Tree(tmp_path), "net.py")
        assert (module.VALUE, module.f(2)) == (5, 2)
        assert note == "partly: ModuleNotFoundError: No module named 'no_such_thing'"
        (tmp_path / "net.py").write_text("from partly import no_such_thing\n")
        with pytest.raises(ModuleNotFoundError, match="no_such_thing"):
            load_anyhow(Tree(tmp_path), "net.py")
    finally:
        for name in [name for name in sys.modules if name.partition(".")[0] == "partly"]:
            del sys.modules[name]
