"""In: rows broken on purpose, and files that crash. Out: whether executing them goes red."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from migrate.evidence.store import RowEvidence
from migrate.evidence.verify import verify
from migrate.table import Table, load

pytestmark = pytest.mark.slow

NORM = "weights = { weight = 'gamma', bias = 'beta', running_mean = 'moving_mean', "
NORM += "running_var = 'moving_variance', num_batches_tracked = '' }"
POLICY = 'drop = ["track_running_stats", "dtype", "bias", "padding_mode", "elementwise_affine"]'

# name -> (broken template, further keys, call, input)
BROKEN = {
    "torch.nn.BatchNorm2d": (
        "mindspore.nn.BatchNorm2d(num_features, 0.1, momentum=1 - momentum, affine=affine)",
        NORM, "torch.nn.BatchNorm2d(3)", "4x3x5x5",
    ),
    "torch.nn.BatchNorm1d": (
        "mindspore.nn.BatchNorm1d(num_features, eps, momentum=momentum, affine=affine)",
        NORM, "torch.nn.BatchNorm1d(3)", "8x3",
    ),
    "torch.nn.LeakyReLU": ("mindspore.nn.LeakyReLU()", "", "torch.nn.LeakyReLU()", "2x3"),
    "torch.nn.Linear": (
        "mindspore.nn.Dense(in_features, out_features, has_bias=False)",
        "", "torch.nn.Linear(3, 4)", "2x3",
    ),
    "torch.nn.functional.softmax": (
        "mindspore.ops.softmax(input)", 'drop = ["dim", "_stacklevel", "dtype"]',
        "torch.nn.functional.softmax(x0, dim=0)", "2x3",
    ),
    "torch.nn.functional.gelu": (
        "mindspore.ops.gelu(input, 'tanh')", 'drop = ["approximate"]',
        "torch.nn.functional.gelu(x0)", "4x16",
    ),
    "torch.argmax": (
        "mindspore.ops.argmax(input, dim, keepdim).astype(mindspore.int32)", "",
        "torch.argmax(x0, dim=1)", "2x3",
    ),
    "torch.square": ("mindspore.ops.square(mindspore.ops.stop_gradient(input))", "",
                     "torch.square(x0)", "2x3"),
}  # fmt: skip
RIGHT = {"torch.tan": ("mindspore.ops.tan(input)", "", "torch.tan(x0)", "2x3")}


def _table(folder: Path, rows: dict[str, tuple[str, str, str, str]]) -> Table:
    """The shipped table with these rows in place of all rows of the same names."""
    (folder / "cases").mkdir()
    text = "".join(
        f'["{name}"]\nto = "{to}"\n{more}\n' + ("" if "drop" in more else f"{POLICY}\n")
        for name, (to, more, _, _) in rows.items()
    )
    cases = "".join(
        f'["{name}"]\ncalls = ["{call}"]\ninputs = ["{given}"]\n'
        for name, (_, _, call, given) in rows.items()
    )
    (folder / "canaries.toml").write_text(text)
    (folder / "cases" / "canaries.toml").write_text(cases)
    table = load([folder / "canaries.toml"])
    raw = {k: v for k, v in table.raw.items() if k in rows or k.partition(":")[0] not in rows}
    return dataclasses.replace(table, raw=raw)


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, RowEvidence]]:
    rows = {**BROKEN, **RIGHT}
    table = _table(tmp_path_factory.mktemp("canaries"), rows)
    summary = verify(table, tuple(rows), progress=lambda line: None, record=False)
    yield {row.key: row for row in summary.rows}


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_row_passes_in_both_modes(found: dict[str, RowEvidence], name: str) -> None:
    assert found[name].verdict in ("PASS", "KERNEL"), found[name].failures
    assert found[name].modes == ("pynative", "graph")
    assert found[name].gradient in ("PASS", "KERNEL")


RED = {
    "torch.nn.BatchNorm2d": "DIVERGED",
    "torch.nn.BatchNorm1d": "DIVERGED",
    "torch.nn.LeakyReLU": "DIVERGED",
    "torch.nn.Linear": "BLOCKED",
    "torch.nn.functional.softmax": "DIVERGED",
    "torch.nn.functional.gelu": "DIVERGED",
    "torch.argmax": "DTYPE",
    "torch.square": "DIVERGED",
}


@pytest.mark.parametrize("name", RED)
def test_a_row_broken_on_purpose_goes_red(found: dict[str, RowEvidence], name: str) -> None:
    assert found[name].verdict == RED[name], found[name].failures
    assert found[name].modes == ()
    assert found[name].failures


def test_wrong_statistics_and_gradients_are_named(found: dict[str, RowEvidence]) -> None:
    assert "buffer m.running_mean" in " ".join(found["torch.nn.BatchNorm1d"].failures)
    assert "gradient input[0]" in " ".join(found["torch.square"].failures)


@dataclass(frozen=True)
class Stand:
    """What a conversion gives: text and entries."""

    text: str
    entries: tuple[Any, ...] = ()


def test_a_crash_costs_one_row_and_torch_is_out_of_reach(tmp_path: Path) -> None:
    rows = {
        "torch.sin": ("mindspore.ops.sin(input)", "", "torch.sin(x0)", "2x3"),
        "torch.cos": ("mindspore.ops.cos(input)", "", "torch.cos(x0)", "2x3"),
        "torch.exp": ("mindspore.ops.exp(input)", "", "torch.exp(x0)", "2x3"),
    }
    bodies = {
        "torch.sin": "import os\n\n\ndef call0(x0):\n    os._exit(3)\n",
        "torch.cos": "from mindspore import ops\n\n\ndef call0(x0):\n    return ops.cos(x0)\n",
        "torch.exp": "import torch\n\n\ndef call0(x0):\n    return torch.exp(x0)\n",
    }

    def convert(text: str, table: Table) -> Stand:
        return Stand(next(body for name, body in bodies.items() if name in text))

    table = _table(tmp_path, rows)
    quiet = {"progress": lambda line: None, "record": False}
    done = verify(table, tuple(rows), convert=convert, **quiet)  # type: ignore[arg-type]
    verdicts = {row.key: row.verdict for row in done.rows}
    assert verdicts == {"torch.sin": "BLOCKED", "torch.cos": "PASS", "torch.exp": "BLOCKED"}
    reasons = {row.key: " ".join(row.failures) for row in done.rows}
    assert "died with exit code 3" in reasons["torch.sin"]
    assert "torch" in reasons["torch.exp"]
