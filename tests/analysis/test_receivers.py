"""In: code whose receivers nothing annotates. Out: what they are taken for, and why it says so."""

from __future__ import annotations

import gc
from functools import cache
from pathlib import Path

import pytest

from migrate import report
from migrate.analysis.types import rivals
from migrate.mapping import table
from migrate.records.outcomes import Problem
from migrate.workspace.project import Request, convert, convert_text


@cache
def rows() -> table.Table:
    return table.load(())


def assumed(text: str) -> list[tuple[int, str, str]]:
    made = convert_text(text, rows())
    return [(e.line, e.name, e.assumption) for e in made.entries if e.assumption]


def test_elimination_is_an_assumption() -> None:
    text = "import torch\n\ndef f(x):\n    y = x.std(0)\n    return x.numel(), y.numel()\n"
    (line, name, why), *rest = assumed(text)
    assert (line, name) == (4, "torch.Tensor.std")
    assert why.startswith("x is taken for a Tensor: nothing else") and not rest


@pytest.mark.parametrize(
    "text",
    [
        "import torch\n\ndef f(x: torch.Tensor):\n    return x.std(0)\n",
        "import torch\n\ndef f(x):\n    y = torch.relu(x)\n    return x.std(0)\n",
        "import torch\n\ndef f(x):\n    return x.std(0)\n\ny = f(torch.ones(3))\n",
        "from torch import nn\n\nclass A(nn.Module):\n    def forward(self, x):\n"
        "        return x.std(0)\n",
    ],
    ids=["annotated", "proved by its use", "proved by a call", "input of a Module"],
)
def test_what_is_known_is_none(text: str) -> None:
    assert assumed(text) == []


def test_another_file_may_bring_arrays(tmp_path: Path) -> None:
    source = tmp_path / "in"
    source.mkdir()
    (source / "net.py").write_text("import torch\n\ndef f(x):\n    return x.std(0)\n")
    made = convert(Request(source, tmp_path / "one", jobs=1))
    assert not made.record.ledger.flagged
    page = report.to_markdown(made.record, None)
    assert "net.py:4" in page.partition("## Taken for granted")[2].partition("## Parity")[0]
    (source / "data.py").write_text("import numpy\n")
    made = convert(Request(source, tmp_path / "two", jobs=1))
    (net,) = (one.content or b"" for one in made.outputs if str(one.path) == "net.py")
    assert b"std(x, 0) if isinstance(x, ms.Tensor) else x.std(0)" in net


@pytest.mark.parametrize("name", sorted(rivals.numpy()))
def test_signatures_of_arrays_are_numpys(name: str) -> None:
    """Every argument that the table of rivals gives a method is one that numpy takes."""
    numpy = pytest.importorskip("numpy")
    method = getattr(numpy.ndarray, name)
    assert callable(method)
    for param in rivals.numpy()[name][0].params:
        if param.kind not in ("args", "kwargs", "pos"):
            assert param.name in (method.__doc__ or "") or _documented(numpy, name, param.name)


def _documented(numpy: object, name: str, argument: str) -> bool:
    function = getattr(numpy, name, None)
    return argument in (function.__doc__ or "") if function is not None else False


def test_the_search_for_cycles_comes_back(tmp_path: Path) -> None:
    """Conversion switches it off; whoever had it on has it on afterwards, also after a failure."""
    (tmp_path / "a.py").write_text("import torch\n")
    convert(Request(tmp_path / "a.py", tmp_path / "out", jobs=1))
    assert gc.isenabled()
    with pytest.raises(Problem):
        convert(Request(tmp_path / "missing.py", tmp_path / "out", jobs=1))
    assert gc.isenabled()


def test_a_library_has_other_callers(tmp_path: Path) -> None:
    package = tmp_path / "lib"
    package.mkdir()
    (package / "__init__.py").write_text("")
    text = (
        "import torch\n\ndef f(x):\n    return x.std(0)\n\ndef _g(x):\n    return x.std(0)\n\n"
        "def h(x: torch.Tensor):\n    return f(x), _g(x)\n"
    )
    (package / "net.py").write_text(text)
    made = convert(Request(package, tmp_path / "out", jobs=1))
    entries = [e for f in made.record.files for e in f.entries if e.assumption]
    assert [(e.line, e.assumption.partition(",")[0]) for e in entries] == [
        (4, "x is what the callers in the project pass")
    ]
