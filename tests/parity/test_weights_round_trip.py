"""In: the models of all samples, and awkward ones. Out: their checkpoints come back bit by bit."""

from __future__ import annotations

import importlib.util
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from migrate.workspace import outputs, record
from migrate.workspace.outputs import Output
from migrate.workspace.project import Request, convert

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[2]
NAMES = sorted(path.parent.name for path in (ROOT / "samples").glob("*/verify.toml"))
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        any(importlib.util.find_spec(name) is None for name in ("torch", "mindspore")),
        reason="needs torch and MindSpore",
    ),
]
AWKWARD = """
import torch
from torch import nn


class Shared(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Conv1d(2, 4, 3)
        self.block = nn.Sequential(self.layer, nn.BatchNorm1d(4))
        self.emb = nn.Embedding(5, 4)
        self.head = nn.Linear(4, 5, bias=False)
        self.head.weight = self.emb.weight
        self.register_buffer("kept", torch.arange(3.0))
        self.register_buffer("made", torch.arange(4.0), persistent=False)
        self.scale = nn.Parameter(torch.tensor(2.0))

    def forward(self, x):
        return self.head(self.block(x).mean(-1)) * self.scale + self.kept.sum() + self.made.sum()
"""
RoundTrip = Callable[[Path, str, str], str]


@pytest.fixture
def round_trip() -> Iterator[RoundTrip]:
    """(converted folder, file, build) -> what the benchmark says of it."""
    path = ROOT / "benchmarks" / "checkpoint_round_trip.py"
    spec = importlib.util.spec_from_file_location("checkpoint_round_trip", path)
    assert spec is not None and spec.loader is not None
    bench = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(bench)
    from migrate.parity.request import VerifyRequest
    from migrate.parity.session import open_sides

    with tempfile.TemporaryDirectory() as folder:
        sides = open_sides(VerifyRequest(Path(), Path()), Path(folder), 0)

        def tried(output: Path, file: str, build: str) -> str:
            with tempfile.TemporaryDirectory() as scratch:
                return str(bench.round_trip(sides, output, file, build, Path(scratch)))

        yield tried
        sides.stop()


def converted(source: Path, output: Path) -> Path:
    done = convert(Request(source, output, jobs=1))
    outputs.write((*done.outputs, Output(record.NAME, record.text(done.record))), output)
    return output


@pytest.mark.parametrize("name", NAMES)
def test_a_sample_comes_back_bit_by_bit(tmp_path: Path, name: str, round_trip: RoundTrip) -> None:
    folder = ROOT / "samples" / name
    output = converted(folder / "torch", tmp_path)
    models = tomllib.loads((folder / "verify.toml").read_text(encoding="utf-8"))["model"]
    for model in models:
        said = round_trip(output, model["file"], model["build"])
        assert said.startswith("SAME"), (model, said)


def test_shared_layers_tied_weights_and_unsaved_buffers_come_back(
    tmp_path: Path, round_trip: RoundTrip
) -> None:
    source = tmp_path / "torch"
    source.mkdir()
    (source / "net.py").write_text(AWKWARD)
    said = round_trip(converted(source, tmp_path / "out"), "net.py", "Shared()")
    # layer and block.0 share a weight and a bias, emb and head a weight
    assert said == "SAME 12 tensors, 1 counters without partner"
