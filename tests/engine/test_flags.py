"""A flag in every position: the import goes on, the rest works, what is marked stops."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from migrate.engine import caught, rewrite
from migrate.engine.rewrite import Options, Rewritten
from migrate.mapping import table
from migrate.records.outcomes import Outcome, announced
from migrate.records.result import counted
from migrate.syntax.source import read
from tests.flag_programs.effects import EFFECTS

HERE = Path(__file__).parents[1]
ALIVE = {
    "ENTRY right": "True", "CHOSEN": "1", "annotated": "3", "default given": "3", "wrapped": "3",
    "Based setting": "3", "Member.good": "3", "instance": "False", "caught": "7", "chosen": "1",
    "guarded": "False", "listed": "[]", "called_later": "1", "second_test": "1", "asserted": "1",
    "shown": "'none'", "spread": "1.0", "is_masked": "False",
}  # fmt: skip
# what was flagged once, and is converted now: a write through a view, std of what may be a Tensor
CONVERTED = {"Written": "[0., 2.]", "spread": "0.707107", "Unknown": "2.41421"}


def converted(text: str) -> Rewritten:
    source = read("module.py", text.encode())
    rows = table.load(())
    return rewrite.convert(rewrite.analyse({source.path: source}, rows), source.path, Options())


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("flags")
    positions = (HERE / "flag_programs" / "positions.py").read_text()
    (folder / "positions.py").write_bytes(converted(positions).data)
    for number, text in enumerate(EFFECTS):
        (folder / f"effect_{number}.py").write_bytes(converted(f"import torch\n{text}\n").data)
    subprocess.run([sys.executable, str(HERE / "flag_worker.py"), str(folder)], check=True)
    read_back: dict[str, str] = json.loads((folder / "found.json").read_text())
    return read_back


@pytest.mark.slow
def test_what_is_marked_stops_and_nothing_else_does(found: dict[str, str]) -> None:
    wrong = {}
    for name, outcome in found.items():
        mode, _, rest = name.partition(" ")
        if mode == "alive":
            wanted = ALIVE[rest]
        elif rest.startswith("alive "):
            wanted = {"alive Chosen": "10.0", "alive Behind": "14.0"}[rest]
        else:
            wanted = CONVERTED.get(rest or mode, "raises")
        if wanted not in outcome:
            wrong[name] = outcome
    assert not wrong


def test_every_flag_is_counted_and_its_text_stands_as_a_comment() -> None:
    positions = (HERE / "flag_programs" / "positions.py").read_text()
    made = converted(positions)
    text = made.data.decode()
    flagged = [e for e in made.entries if e.outcome is Outcome.FLAGGED]
    assert text.count("# TODO(torch2ms ") >= len({e.line for e in flagged}) - 1  # one try
    for entry in flagged:
        assert f"# {announced(entry.code)}: {entry.name}: {entry.reason}" in text
    for expression in ("torch.nothing(x)", "[torch.nothing(i) for i in range(3)]"):
        assert f"# {expression}\n" in text
    assert "torch" not in {n.id for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Name)}


def test_a_handler_that_goes_on_lets_a_flag_through() -> None:
    made = converted(
        """
import contextlib
import torch
def flagged(x: torch.Tensor):
    try:
        return torch.nothing(x)
    except ValueError:
        return x
    except (TypeError, RuntimeError):
        return x * 0
def caller(x: torch.Tensor):
    try:
        y = flagged(x)
    except Exception:
        y = x * 0
    return y
def quiet(x: torch.Tensor):
    try:
        y = flagged(x)
    except Exception as error:
        raise SystemExit(1) from error
    try:
        y = flagged(x)
    except KeyError:
        y = x
    try:
        y = float("1")
    except Exception:
        y = x
    return y
def suppressing(x):
    with contextlib.suppress(ValueError, RuntimeError):
        x = flagged(x)
    return x
def leaving(xs):
    for x in xs:
        try:
            flagged(x)
        finally:
            break
    try:
        caller(x)
    finally:
        return x
def plain(x):
    with contextlib.suppress(KeyError):
        x = flagged(x)
    try:
        x = int(x)
    finally:
        return x
"""
    )
    scope: dict[str, Any] = {}
    exec(compile(made.data, "module.py", "exec"), scope)
    for name in ("flagged", "caller"):
        with pytest.raises(NotImplementedError, match="torch2ms"):
            scope[name](1)
    tree = ast.parse(made.data)
    functions = {n.name: ast.unparse(n) for n in tree.body if isinstance(n, ast.FunctionDef)}
    passed_on = {
        n: t.count("except NotImplementedError:\n        raise") for n, t in functions.items()
    }
    assert {n: c for n, c in passed_on.items() if c} == {"flagged": 1, "caller": 1}
    assert "except ValueError:\n        return x\n    except NotImpl" in functions["flagged"]
    with pytest.raises(NotImplementedError, match="torch2ms"):
        scope["suppressing"](1)
    assert functions["leaving"].count("finally:\n            raise_flag()") == 1
    assert functions["leaving"].count("finally:\n        raise_flag()") == 1
    assert "suppress(KeyError)" in functions["plain"] and "raise_flag" not in functions["plain"]


def test_a_handler_of_another_file_lets_a_flag_through() -> None:
    sources = {
        "lib.py": "import torch\ndef flagged(x):\n    return torch.nothing(x)\n"
        "class Base:\n    def go(self, x):\n        return x\n"
        "class Derived(Base):\n    def go(self, x):\n        return flagged(x)\n"
        "    @property\n    def gain(self):\n        return flagged(1)\n",
        "use.py": "from lib import Base, Derived, flagged\n"
        "def called(x):\n    try:\n        return flagged(x)\n"
        "    except Exception:\n        return x * 0\n"
        "def overridden(b: Base, x):\n    try:\n        return b.go(x)\n"
        "    except RuntimeError:\n        return x\n"
        "def read(d: Derived):\n    try:\n        return d.gain\n"
        "    except Exception:\n        return 0\n"
        "def stays(x):\n    try:\n        return int(x)\n"
        "    except Exception:\n        return 0\n",
    }
    files = {path: read(path, text.encode()) for path, text in sources.items()}
    built = rewrite.analyse(files, table.load(()))
    made = {path: rewrite.convert(built, path, Options()) for path in files}
    assert b"NotImplementedError" not in made["use.py"].data
    again = caught.again(built.inference, {path: r.raising for path, r in made.items()})
    assert again == ["use.py"]
    tree = ast.parse(rewrite.convert(built, "use.py", Options()).data)
    held = {n.name: ast.unparse(n) for n in tree.body if isinstance(n, ast.FunctionDef)}
    assert {n: "except NotImpl" in held[n] for n in held if n in ("called", "stays")} == {
        "called": True, "stays": False
    }  # fmt: skip
    assert all(
        "except NotImplementedError:\n        raise" in held[n] for n in ("overridden", "read")
    )


def test_a_missing_method_that_a_handler_would_take_is_asked_for_before() -> None:
    text = """
import torch
class Box:
    def backward(self):
        return self
def tried(x):
    try:
        return x.backward()
    except AttributeError:
        return x
def free(x):
    return x.backward()
"""
    tree = ast.parse(converted(text).data)
    functions = {n.name: ast.unparse(n) for n in tree.body if isinstance(n, ast.FunctionDef)}
    assert "not_tensor(x, 'torch2ms API102 torch.Tensor.backward').backward()" in functions["tried"]
    assert "return x.backward()" in functions["free"]


def test_a_flag_on_the_line_of_a_header_stops_where_the_block_moves() -> None:
    """A block of no_grad, or an else of a loop, that is written elsewhere takes its flags along."""
    made = converted(
        "import torch\n"
        "def f(x: torch.Tensor, d: int):\n"
        "    with torch.no_grad(): y = torch.zeros(3).add_(1); y = x.transpose(d)\n"
        "    return y\n"
        "class N(torch.nn.Module):\n"
        "    def forward(self, x, dims):\n"
        "        for d in dims: x = x + 1\n"
        "        else: x = x.transpose(d)\n"
        "        return x\n"
    ).data.decode()
    code = [line for line in made.splitlines() if not line.lstrip().startswith("#")]
    assert not [line for line in code if ".transpose(" in line]
    assert sum("unconverted('torch2ms API103" in line for line in code) == 2


def test_what_graph_mode_alone_refuses_is_marked_apart() -> None:
    made = converted(
        "from torch import nn\n\n\nclass Net(nn.Module):\n    def forward(self, x):\n"
        "        if self.first is None:\n            self.first = x * 2\n"
        "        return self.first\n"
    )
    text = made.data.decode()
    assert "            # Graph mode (GRF604): self.first: graph mode keeps nothing" in text
    assert "TODO" not in text
    ledger = counted(made.entries)
    assert (ledger.stopping, ledger.graph) == (0, 1)
