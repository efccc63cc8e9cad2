"""In: tensors of several devices, which are one here. Out: torch's sums over them, and copies."""

from __future__ import annotations

import importlib.util

import pytest

if importlib.util.find_spec("mindspore") is None:
    pytest.skip("needs MindSpore", allow_module_level=True)

import mindspore as ms

from migrate.helpers.data_parallel import broadcast_to_devices, reduce_add_coalesced


def test_sums_are_over_runs_and_copies_by_device() -> None:
    def both(a: ms.Tensor, b: ms.Tensor) -> ms.Tensor:
        total, square = reduce_add_coalesced(2, a, a * a, b, b * b)
        copies = broadcast_to_devices([0, 1], total, square)
        assert copies == (total, square, total, square)
        return copies[2] * 10 + copies[3]

    a, b = ms.Tensor([1.0, 2.0]), ms.Tensor([3.0, 5.0])
    assert both(a, b).asnumpy().tolist() == [50.0, 99.0]
    grads = ms.grad(lambda a, b: both(a, b).sum(), (0, 1))(a, b)
    assert [g.asnumpy().tolist() for g in grads] == [[12.0, 14.0], [16.0, 20.0]]
