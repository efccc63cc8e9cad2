"""Programs that random search found: equal values in MindSpore, observed types inside the kinds."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from migrate.evidence.variants import draw
from migrate.workspace import project

# tomllib is part of Python from 3.11 on; tomli is the same before
_toml = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
HERE = Path(__file__).parent
FUZZ = HERE.parent / "benchmarks" / "fuzz"


@pytest.fixture(scope="module")
def kit() -> Iterator[dict[str, Any]]:
    """The modules of the benchmark, which are no package."""
    kept = list(sys.path)
    sys.path.insert(0, str(FUZZ))
    try:
        import cases
        import generate
        import observe
        import programs
        import runner
        import torch_side

        torch_side.install_kit()
        yield {
            "cases": cases, "generate": generate, "observe": observe, "programs": programs,
            "runner": runner, "torch_side": torch_side,
        }  # fmt: skip
    finally:
        sys.path[:] = kept


def test_the_benchmark_leaves_the_tool_as_it_is(kit: dict[str, Any]) -> None:
    """Rows that it remembered for its own folders were taken for those of later tests."""
    assert inspect.getsourcefile(project.load) == project.__file__
    assert not hasattr(project.load, "cache_info")


def written(kit: dict[str, Any]) -> list[Any]:
    """The programs of the file."""
    found = _toml.loads((HERE / "fuzz_programs.toml").read_text(encoding="utf-8"))
    made = []
    for number, (name, one) in enumerate(found.items(), 1):
        given = tuple(draw(i, name, k) if isinstance(i, str) else i
                      for k, i in enumerate(one["inputs"]))  # fmt: skip
        made.append(
            kit["programs"].Program(f"p{number}", "call", one["text"], one["entry"], (given,))
        )
    return made


def test_observed_types_are_inside_the_kinds(kit: dict[str, Any]) -> None:
    """The programs of the file and some that are drawn: those of the known gaps left out."""
    programs = written(kit)
    drawn = [p for p, _ in kit["generate"].programs(7, 100, 120)]
    for some in (programs, drawn):
        seen, failed = kit["observe"].observed(some, kit["cases"].rows())
        assert not failed
        assert seen.known > 100
        assert not [str(v) for v in seen.violations.values()]


@pytest.mark.slow
def test_values_are_those_of_torch(kit: dict[str, Any]) -> None:
    made = [kit["torch_side"].oracle(p) for p in written(kit)]
    assert all(made)
    bench = kit["runner"].Bench(("pynative",))
    try:
        verdicts = bench.folder(made)
    finally:
        bench.close()
    assert len(verdicts) == len(made)
    assert {v.program.entry: (v.what, v.cause) for v in verdicts} == {
        p.entry: ("RIGHT", "") for p, _ in made
    }
