"""The Python API: what it gives, that importing it costs nothing, and a user's own ``migrate``."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from pathlib import Path

import pytest

import migrate
from migrate.records.outcomes import Outcome

ROOT = Path(__file__).parents[1]
CODE = "import torch\n\n\ndef f(x: torch.Tensor):\n    return torch.clip(x, 0, 1)\n"
FLAGGED = CODE + "\n\ndef g(x: torch.Tensor):\n    return x.data_ptr()\n"
SQUARE = """
import libcst as cst
import migrate


class Square(migrate.Rule):
    looks_for = ("torch.clip",)
    before = ("torch2ms",)

    def decide(self, node: cst.Call, facts: migrate.Facts):
        return facts.template("mindspore.ops.square({x})", x=node.args[0].value)
"""


def test_importing_loads_nothing() -> None:
    code = (
        "import sys, time; before = time.process_time(); import migrate; "
        "print(time.process_time() - before, *(n for n in sys.modules if n.startswith('migrate')))"
    )
    done = [
        subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
        for _ in range(3)
    ]
    seconds = [float(one.stdout.split()[0]) for one in done]
    assert min(seconds) < 0.05
    assert done[0].stdout.split()[1:] == ["migrate"]


@pytest.mark.parametrize("name", migrate.__all__)
def test_every_name_is_there_documented_and_typed(name: str) -> None:
    found = getattr(migrate, name)
    assert found.__doc__
    if inspect.isfunction(found):
        signature = inspect.signature(found)
        assert signature.return_annotation is not inspect.Signature.empty
        assert all(p.annotation is not p.empty for p in signature.parameters.values())
    with pytest.raises(AttributeError, match="nothing"):
        _ = migrate.nothing


def test_the_package_is_typed() -> None:
    assert (Path(migrate.__file__).parent / "py.typed").is_file()


def test_convert_writes_what_the_command_writes(run, write) -> None:
    source = write({"net.py": FLAGGED, "data/x.txt": "1"})
    made = migrate.convert(source, source.parent / "out")
    assert made.status == 1
    flagged = [e for f in made.record.files for e in f.entries if e.outcome is Outcome.FLAGGED]
    assert [entry.name for entry in flagged] == ["torch.Tensor.data_ptr"]
    run("convert", source, "-o", source.parent / "other")
    for name in ("net.py", "data/x.txt"):
        ours, other = source.parent / "out" / name, source.parent / "other" / name
        assert ours.read_bytes() == other.read_bytes()
    assert (source.parent / "out" / "torch2ms.json").is_file()
    (source.parent / "other" / "torch2ms.json").unlink()
    (source.parent / "other" / "net.py").write_text("mine")
    with pytest.raises(migrate.Problem, match="would be replaced"):
        migrate.convert(source, source.parent / "other")
    migrate.convert(source, source.parent / "out", force=True, exclude=["data"])
    with pytest.raises(migrate.Problem, match="not found"):
        migrate.convert(source / "gone.py", source.parent / "out")


def test_convert_source(tmp_path: Path) -> None:
    made = migrate.convert_source(CODE)
    assert "return ops.clamp(x, 0, 1)" in made.text
    assert [entry.name for entry in made.entries][-1] == "torch.clip"
    (tmp_path / "square.py").write_text(SQUARE)
    assert "ops.square(x)" in migrate.convert_source(CODE, mappings=[tmp_path / "square.py"]).text
    assert "mint" in migrate.convert_source(CODE, target="mint").text


def test_scan_is_asked_again_and_again(write) -> None:
    source = write({"net.py": FLAGGED})
    for _ in range(2):  # a package of the same name would take the function's place
        assert migrate.scan(source).ledger.flagged == 1
    assert [path.name for path in source.iterdir()] == ["net.py"]


def test_verify_and_weights_say_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(migrate.Problem, match="no record"):
        migrate.verify(tmp_path)
    with pytest.raises(migrate.Problem, match="not found"):
        migrate.weights(tmp_path / "a.pth", tmp_path / "b.ckpt", tmp_path)


# -- a user's own migrate -------------------------------------------------------------------------

OWN = "FACTOR = 2.0\n\n\ndef scaled(x):\n    return x * FACTOR\n"
NET = """import torch
from migrate import scaled


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(4, 3)

    def forward(self, x):
        return scaled(self.fc(x))
"""
PORT = """import migrate
from mindspore import nn


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc = nn.Dense(4, 3)

    def construct(self, x):
        from migrate import scaled

        return scaled(self.fc(x)) * migrate.FACTOR / 2
"""
TESTS = """
import migrate


def test_own_modules_are_their_own(assert_parity):
    assert migrate.FACTOR == 2.0
    assert_parity("net:Net", "port:Net", input="2x4", mode="pynative")
    assert_parity("out", build="Net()", input="2x4", mode="pynative")
    import migrate as again

    assert again is migrate and not hasattr(migrate, "convert")
"""


STARTS = """
import migrate


def test_own_modules_are_their_own(assert_parity):
    assert migrate.FACTOR == 2.0
"""


def started(folder: Path) -> str:
    """What pytest says that is started there as a user does, with the tool installed."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "torch2ms_pytest", "test_net.py"],
        cwd=folder, capture_output=True, text=True, timeout=240,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    return done.stdout[-3000:] + done.stderr[-1000:]


@pytest.mark.parametrize("own", ["migrate.py", "migrate/__init__.py"])
def test_it_does_not_break_the_start_of_pytest(own: str, tmp_path: Path) -> None:
    (tmp_path / own).parent.mkdir(exist_ok=True)
    (tmp_path / own).write_text(OWN)
    (tmp_path / "test_net.py").write_text(STARTS)
    assert "1 passed" in started(tmp_path)


@pytest.mark.slow
def test_both_sides_of_verify_import_it(tmp_path: Path) -> None:
    files = {"migrate.py": OWN, "net.py": NET, "port.py": PORT, "test_net.py": TESTS}
    source = tmp_path.parent / f"{tmp_path.name}_source"
    source.mkdir()
    for name, text in files.items():
        (tmp_path / name).write_text(text)
        (source / name).write_text(text)
    migrate.convert(source, tmp_path / "out", exclude=["port.py", "test_net.py"])
    said = started(tmp_path)
    assert "1 passed" in said, said
