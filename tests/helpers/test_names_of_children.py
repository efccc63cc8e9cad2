"""In: children whose names Cells refuse. Out: that they are added, named and trained."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

if importlib.util.find_spec("mindspore") is None:
    pytest.skip("needs MindSpore", allow_module_level=True)

import mindspore as ms
from mindspore import nn

from migrate.helpers.containers import Sequential, add_module


class Grid(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        add_module(self, "0x0 - 0x1", nn.Dense(2, 2))
        self.rows = Sequential()
        add_module(self.rows, "row 1", nn.Dense(2, 2))

    def construct(self, x: ms.Tensor) -> ms.Tensor:
        return self.rows(self._cells["0x0 - 0x1"](x))


class Net(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.grid = Grid()

    def construct(self, x: ms.Tensor) -> ms.Tensor:
        return self.grid(x).sum()


def test_names_with_spaces(tmp_path: Path) -> None:
    net = Net()
    names = [p.name for p in net.get_parameters()]
    layers = ("grid.0x0 - 0x1", "grid.rows.row 1")
    assert names == [f"{layer}.{part}" for layer in layers for part in ("weight", "bias")]
    grads = ms.grad(net, None, net.trainable_params())(ms.ops.ones((1, 2)))
    assert [g.shape for g in grads] == [(2, 2), (2,), (2, 2), (2,)]
    ms.save_checkpoint(net, str(tmp_path / "net.ckpt"))
    assert list(ms.load_checkpoint(str(tmp_path / "net.ckpt"))) == names
