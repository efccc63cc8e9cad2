"""In: layers that are built. Out: that settings which change later count as they do in torch."""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np
import pytest

if importlib.util.find_spec("mindspore") is None or importlib.util.find_spec("torch") is None:
    pytest.skip("needs torch and MindSpore", allow_module_level=True)

import mindspore as ms
import torch
from mindspore import nn

from migrate.helpers import convolution, norm, pooling
from migrate.helpers.init import zeros_
from migrate.helpers.late_children import set_child
from migrate.helpers.late_settings import set_ceil_mode, set_convolution, set_norm
from migrate.helpers.layer_parts import give_part, has_part, layer_part, part_of


def same(theirs: Any, mine: Any, cotangent: int = 1) -> None:
    """Values and gradients of a layer of each side over the same numbers."""
    x = np.random.RandomState(0).randn(2, 3, 7, 10).astype(np.float32)
    given = torch.tensor(x, requires_grad=True)
    wanted = theirs(given)
    weights = np.random.RandomState(cotangent).randn(*wanted.shape).astype(np.float32)
    (wanted * torch.tensor(weights)).sum().backward()
    found = mine(ms.Tensor(x))
    assert found.shape == tuple(wanted.shape)
    np.testing.assert_allclose(found.asnumpy(), wanted.detach().numpy(), rtol=0, atol=1e-5)
    grad = ms.grad(lambda x: (mine(x) * ms.Tensor(weights)).sum())(ms.Tensor(x))
    np.testing.assert_allclose(grad.asnumpy(), given.grad.numpy(), rtol=0, atol=1e-5)


@pytest.mark.parametrize("value", [True, False])
@pytest.mark.parametrize(
    ("settings", "pool"),
    [
        ((2, 2), lambda: nn.MaxPool2d(2, 2)),
        ((3, 2, 1), lambda: nn.MaxPool2d(3, 2, pad_mode="pad", padding=1)),
        ((2, 2, 0, 2), lambda: nn.MaxPool2d(2, 2, pad_mode="pad", dilation=2)),
        ((2, 3, 0, 1, False, True), lambda: nn.MaxPool2d(2, 3, pad_mode="pad", ceil_mode=True)),
        (((3, 2), (2, 3)), lambda: pooling.MaxPool2d((3, 2), (2, 3))),
    ],
)
def test_ceil_mode_counts_from_then_on(settings: Any, pool: Any, value: bool) -> None:
    theirs, mine = torch.nn.MaxPool2d(*settings), pool()
    theirs.ceil_mode = value
    set_ceil_mode(mine, "ceil_mode", value)
    same(theirs, mine)
    assert mine.ceil_mode is value


def test_what_has_no_such_setting_raises() -> None:
    with pytest.raises(TypeError, match="AvgPool2d: its ceil_mode"):
        set_ceil_mode(nn.AvgPool2d(2, 2), "ceil_mode", True)
    own = pooling.AvgPool2d(2)
    set_ceil_mode(own, "ceil_mode", True)
    theirs = torch.nn.AvgPool2d(2, ceil_mode=True)
    same(theirs, own)


def test_a_convolution_goes_by_what_it_is_told_later() -> None:
    theirs = torch.nn.Conv2d(3, 4, 3, padding=1, bias=False)
    mine = nn.Conv2d(3, 4, 3, pad_mode="pad", padding=1)
    mine.weight.set_data(ms.Tensor(theirs.weight.detach().numpy()))
    for name, value in (("stride", (2, 1)), ("dilation", 2), ("padding", (2, 3))):
        setattr(theirs, name, torch.nn.modules.utils._pair(value))
        set_convolution(mine, name, value)
        same(theirs, mine)
    with pytest.raises(TypeError, match="MaxPool2d: its stride"):
        set_convolution(nn.MaxPool2d(2), "stride", 1)


@pytest.mark.parametrize("groups", [1, 2])
def test_a_convolution_of_volumes_goes_by_it_too(groups: int) -> None:
    theirs = torch.nn.Conv3d(2, 4, 3, padding=(1, 0, 2), groups=groups, bias=False)
    mine = convolution.Conv3d(2, 4, 3, padding=(1, 0, 2), groups=groups, bias=False)
    mine.weight.set_data(ms.Tensor(theirs.weight.detach().numpy()))
    x = np.random.RandomState(0).randn(1, 2, 5, 6, 7).astype(np.float32)
    for name, value in (("stride", (2, 1, 1)), ("padding", (1, 2, 0)), ("dilation", (1, 2, 1))):
        setattr(theirs, name, value)
        set_convolution(mine, name, value)
        wanted = theirs(torch.tensor(x)).detach().numpy()
        np.testing.assert_allclose(mine(ms.Tensor(x)).asnumpy(), wanted, rtol=0, atol=1e-5)


@pytest.mark.parametrize("native", [True, False])
def test_a_convolution_over_one_axis_goes_by_it_too(native: bool) -> None:
    theirs = torch.nn.Conv1d(2, 4, 3, padding=1, groups=2, bias=False)
    mine = (
        nn.Conv1d(2, 4, 3, pad_mode="pad", padding=1, group=2)
        if native
        else convolution.Conv1d(2, 4, 3, padding=1, groups=2, bias=False)
    )
    mine.weight.set_data(ms.Tensor(theirs.weight.detach().numpy()).expand_dims(2))
    x = np.random.RandomState(0).randn(2, 2, 9).astype(np.float32)
    for name, value in (("stride", (2,)), ("padding", (3,)), ("dilation", (2,))):
        setattr(theirs, name, value)
        set_convolution(mine, name, value[0])
        wanted = theirs(torch.tensor(x)).detach().numpy()
        np.testing.assert_allclose(mine(ms.Tensor(x)).asnumpy(), wanted, rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    ("theirs", "mine", "settings"),
    [
        (torch.nn.BatchNorm2d(3), nn.BatchNorm2d(3), {"eps": 0.5, "momentum": 0.4}),
        (torch.nn.BatchNorm2d(3), norm.BatchNorm2d(3), {"momentum": 1, "eps": 0.5}),
        (torch.nn.GroupNorm(3, 3), nn.GroupNorm(3, 3), {"eps": 0.5}),
        (torch.nn.LayerNorm(10), nn.LayerNorm((10,), epsilon=1e-5), {"eps": 0.5}),
        (torch.nn.InstanceNorm2d(3), norm.InstanceNorm2d(3), {"eps": 0.5}),
    ],
)
def test_a_norm_goes_by_what_it_is_told_later(theirs: Any, mine: Any, settings: Any) -> None:
    for name, value in settings.items():
        setattr(theirs, name, value)
        set_norm(mine, name, value)
    x = np.random.RandomState(1).randn(2, 3, 7, 10).astype(np.float32)
    theirs.train()(torch.tensor(x))
    mine.set_train()(ms.Tensor(x))
    for name, moved in theirs.named_buffers():
        if name.startswith("running"):
            found = layer_part(mine, name).asnumpy()
            np.testing.assert_allclose(found, moved.numpy(), rtol=0, atol=1e-5)
    theirs.eval()
    mine.set_train(False)
    same(theirs, mine)


def test_what_a_norm_cannot_be_told_raises() -> None:
    with pytest.raises(TypeError, match="Dropout: its momentum"):
        set_norm(nn.Dropout(p=0.5), "momentum", 0.1)
    with pytest.raises(TypeError, match="BatchNorm2d: its momentum"):
        set_norm(nn.BatchNorm2d(3), "momentum", None)


def test_parts_of_layers_go_by_torchs_names() -> None:
    embedding, dense, bn = nn.Embedding(4, 3), nn.Dense(3, 4), norm.BatchNorm2d(3)
    give_part(embedding, "weight", dense.weight)
    assert embedding.embedding_table is dense.weight
    assert layer_part(embedding, "weight") is layer_part(dense, "weight") is dense.weight
    assert layer_part(nn.Dense(3, 4, has_bias=False), "bias") is None
    give_part(bn, "bias", ms.Parameter(ms.Tensor([1.0, 2.0, 3.0])))
    assert layer_part(bn, "bias") is bn.beta
    assert layer_part(bn, "running_var") is bn.moving_variance
    with pytest.raises(AttributeError, match="weight"):
        layer_part(nn.ReLU(), "weight")


def test_a_weight_that_is_set_by_a_name_is_the_cells_own() -> None:
    embedding, dense, norms = nn.Embedding(4, 3), nn.Dense(3, 4), nn.LayerNorm((3,))
    set_child(embedding, "weight", dense.weight)
    assert embedding.embedding_table is dense.weight
    set_child(norms, "bias", dense.bias)
    assert norms.beta is dense.bias
    set_child(dense, "weight", embedding.embedding_table)
    set_child(embedding, "late", nn.ReLU())
    assert [n for n, _ in embedding.parameters_and_names()] == ["embedding_table"]


@pytest.mark.parametrize(
    ("theirs", "mine"),
    [
        (torch.nn.Linear(2, 3), nn.Dense(2, 3)),
        (torch.nn.Linear(2, 3, bias=False), nn.Dense(2, 3, has_bias=False)),
        (torch.nn.Conv2d(2, 3, 1, bias=False), nn.Conv2d(2, 3, 1)),
        (torch.nn.Embedding(4, 2), nn.Embedding(4, 2)),
        (torch.nn.BatchNorm2d(3), nn.BatchNorm2d(3)),
        (torch.nn.LayerNorm(3), nn.LayerNorm((3,))),
        (torch.nn.GroupNorm(1, 3), nn.GroupNorm(1, 3)),
        (torch.nn.ReLU(), nn.ReLU()),
        (torch.nn.Sequential(), nn.SequentialCell()),
    ],
)
def test_what_is_asked_of_a_layer_is_answered_as_in_torch(theirs: Any, mine: Any) -> None:
    for name in ("weight", "bias", "running_mean", "running_var", "num_batches_tracked"):
        assert has_part(mine, name) is hasattr(theirs, name), (type(mine), name)
        wanted, found = getattr(theirs, name, "none"), part_of(mine, name, "none")
        assert (found is None) is (wanted is None), (type(mine), name)
        assert getattr(found, "shape", found) == getattr(wanted, "shape", wanted)


def test_what_is_filled_in_place_is_filled_where_it_lies() -> None:
    table = nn.Embedding(4, 3).embedding_table
    zeros_(table[1])
    zeros_(table[0][1:])
    zeros_(table[3, 0])
    assert (table.asnumpy() == 0).tolist() == [
        [False, True, True], [True] * 3, [False] * 3, [True, False, False]
    ]  # fmt: skip
    for view in (ms.ops.ones((2, 3)).T, ms.ops.ones((2, 3)).chunk(2)[1]):
        with pytest.raises(NotImplementedError, match="a view is filled in place"):
            zeros_(view)
    assert zeros_(ms.Tensor(1.0)) == 0


def test_the_batches_of_a_norm_are_none_until_its_statistics_move() -> None:
    moved = nn.BatchNorm2d(3)
    assert layer_part(moved, "num_batches_tracked") == 0
    moved.set_train()(ms.ops.ones((2, 3, 4, 4)))
    with pytest.raises(NotImplementedError, match="nothing counts the batches"):
        layer_part(moved, "num_batches_tracked")
    give_part(moved, "num_batches_tracked", ms.Tensor(0))
    assert layer_part(moved, "num_batches_tracked") == 0


def test_a_cell_of_ones_own_keeps_its_names() -> None:
    class Scale(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.gamma = ms.Parameter(ms.ops.ones(3))

    assert not has_part(Scale(), "weight")
    assert part_of(Scale(), "weight", 1) == 1
    assert part_of(torch.zeros(2), "bias", 2) == 2
