"""In: rows broken on purpose, and files that crash. Out: whether executing them goes red."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from migrate.evidence.store import RowEvidence
from migrate.evidence.verify import verify
from migrate.mapping.table import Table, load

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

CANARIES: dict[str, dict[str, Any]] = tomllib.loads(
    (Path(__file__).parents[1] / "canaries.toml").read_text(encoding="utf-8")
)
FAST = tuple(key for key, values in CANARIES.items() if values.get("fast"))
RIGHT = ("torch.tan", "torch.nn.Tanh")
# Right rows may differ on these as well, so a canary has to go red elsewhere.
EXTREME = ("on nan and inf", "on large", "on empty")


def broken(table: Table, keys: tuple[str, ...]) -> Table:
    """The shipped table with these rows broken; their cases stay as they are."""
    raw = dict(table.raw)
    for key in keys:
        changed = {k: v for k, v in CANARIES[key].items() if k not in ("wrong", "fast")}
        raw[key] = {**raw[key], **changed}
    return dataclasses.replace(table, raw=raw)


def executed(keys: tuple[str, ...], right: tuple[str, ...] = ()) -> dict[str, RowEvidence]:
    table = broken(load(), keys)
    wanted = (*keys, *right)
    others = {one for key in wanted for one in table.keys(key.partition(":")[0])} - set(wanted)
    quiet: dict[str, Any] = {"progress": lambda line: None, "record": False, "confirm": False}
    summary = verify(table, wanted, jobs=2, left_out=others, **quiet)
    return {row.key: row for row in summary.rows}


@pytest.fixture(scope="module")
def few() -> Iterator[Mapping[str, RowEvidence]]:
    yield executed(FAST, RIGHT)


@pytest.fixture(scope="module")
def all_of_them() -> Iterator[Mapping[str, RowEvidence]]:
    yield executed(tuple(key for key in CANARIES if key not in FAST))


def assert_red(row: RowEvidence) -> None:
    assert not row.passed
    telling = [line for line in row.failures if not any(part in line for part in EXTREME)]
    assert telling, f"{row.key} goes red on extreme inputs only: {row.failures}"
    assert not any("flagged" in line for line in telling), telling


def test_there_are_canaries_of_every_kind() -> None:
    assert len(CANARIES) >= 30 and len(FAST) == 6
    assert len({values["wrong"] for values in CANARIES.values()}) >= 20


@pytest.mark.parametrize("key", FAST)
def test_a_row_broken_on_purpose_goes_red(few: Mapping[str, RowEvidence], key: str) -> None:
    assert_red(few[key])


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("key", [key for key in CANARIES if key not in FAST])
def test_every_row_broken_on_purpose_goes_red(
    all_of_them: Mapping[str, RowEvidence], key: str
) -> None:
    assert_red(all_of_them[key])


@pytest.mark.parametrize("key", RIGHT)
def test_a_right_row_passes_in_both_modes(few: Mapping[str, RowEvidence], key: str) -> None:
    row = few[key]
    assert not [line for line in row.failures if not any(part in line for part in EXTREME)]
    assert row.modes == ("pynative", "graph")
    assert row.gradient in ("PASS", "KERNEL")
    assert "4-d" in row.holds


def test_wrong_statistics_and_gradients_are_named(few: Mapping[str, RowEvidence]) -> None:
    moments = " ".join(few["torch.nn.BatchNorm1d:momentum"].failures)
    assert "buffer m.running_mean" in moments
    assert "gradient input[0]" in " ".join(few["torch.square"].failures)


@dataclass(frozen=True)
class Stand:
    """What a conversion gives: text and entries."""

    text: str
    entries: tuple[Any, ...] = ()


@pytest.mark.slow
def test_a_crash_costs_one_row_and_torch_is_out_of_reach() -> None:
    bodies = {
        "torch.sin": "import os\n\n\ndef call0(x0):\n    os._exit(3)\n",
        "torch.cos": "from mindspore import ops\n\n\ndef call0(x0):\n    return ops.cos(x0)\n",
        "torch.exp": "import torch\n\n\ndef call0(x0):\n    return torch.exp(x0)\n",
    }

    def convert(text: str, table: Table) -> Stand:
        body = next(body for name, body in bodies.items() if name in text)
        return Stand(f"{body}\n\nref0 = call0\n")

    quiet = {"progress": lambda line: None, "record": False, "generate": False}
    done = verify(load(), tuple(bodies), convert=convert, **quiet)  # type: ignore[arg-type]
    verdicts = {row.key: row.verdict for row in done.rows}
    assert verdicts == {"torch.sin": "BLOCKED", "torch.cos": "PASS", "torch.exp": "BLOCKED"}
    reasons = {row.key: " ".join(row.failures) for row in done.rows}
    assert "died with exit code 3" in reasons["torch.sin"]
    assert "torch" in reasons["torch.exp"]
