"""In: workers with limits, devices that are not there. Out: they end, and it is said why."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from parity_pairs import LENET, LENET_MS, write_pair

from migrate.parity.ladder import verify
from migrate.parity.request import VerifyRequest
from migrate.parity.session import open_sides
from migrate.parity.worker import Worker, WorkerLost, this_python
from migrate.records.outcomes import Problem

pytestmark = [
    pytest.mark.skipif(
        any(importlib.util.find_spec(name) is None for name in ("torch", "mindspore")),
        reason="needs torch and MindSpore",
    ),
    pytest.mark.timeout(300),
]


def test_a_process_beyond_its_memory_is_ended(tmp_path: Path) -> None:
    worker = Worker("torch_side", this_python(), tmp_path, memory=0.001)
    with pytest.raises(WorkerLost, match=r"more than the 0\.001 GiB of --memory") as lost:
        worker.call("hello", {}, 60.0)
    assert not lost.value.killed, "it is not tried again"
    assert worker.process is None


def test_within_its_memory_it_answers(tmp_path: Path) -> None:
    worker = Worker("torch_side", this_python(), tmp_path, memory=64.0)
    try:
        assert "torch" in worker.call("hello", {}, 60.0)
    finally:
        worker.stop()


def test_both_sides_get_the_limit(tmp_path: Path) -> None:
    sides = open_sides(VerifyRequest(tmp_path, tmp_path, memory=3.0), tmp_path, 0)
    assert (sides.torch.memory, sides.mindspore.memory) == (3.0, 3.0)


def test_a_device_that_is_not_there_is_named(tmp_path: Path) -> None:
    record = write_pair(tmp_path, LENET, LENET_MS)
    with pytest.raises(Problem, match=r"--device: MindSpore cannot use Ascend: .*; leave"):
        verify(VerifyRequest(record, record.parent, device="Ascend"), lambda line: None)
