"""In: shapes that the numbers decide. Out: a note in forward alone, whose code gives the same."""

from __future__ import annotations

import importlib.util

import pytest

from migrate.mapping import table
from migrate.records.outcomes import Outcome
from migrate.workspace.project import convert_text

SOURCE = """
import torch
from torch import nn


class Net(nn.Module):
    def forward(self, x, order: torch.Tensor):
        mask = x > 0
        a = x[mask]
        b = x[order] + x[0] + x[1:]
        c = torch.nonzero(mask)
        d = torch.unique(x)
        e = x.masked_select(mask)
        return a, b, c, d, e


def positive(x: torch.Tensor):
    return x[x > 0]
"""


def test_notes_name_the_form_of_a_fixed_shape() -> None:
    made = convert_text(SOURCE, table.load(()))
    found = {e.line: e for e in made.entries if "shape that the numbers decide" in e.note}
    assert sorted(found) == [9, 11, 12, 13]
    assert {e.outcome for e in found.values()} == {Outcome.KEPT}
    assert "ops.where(mask, x, 0)" in found[9].note
    assert "ops.topk" in found[11].note and "ops.sort" in found[12].note


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("mindspore") is None, reason="needs MindSpore")
def test_the_code_of_the_notes_is_right() -> None:
    import mindspore as ms
    from mindspore import ops

    x = ms.Tensor([3.0, -1.0, 2.0, 3.0, -1.0])
    mask = x > 0
    assert float(ops.where(mask, x, 0).sum() / mask.sum()) == pytest.approx(float(x[mask].mean()))
    order = ops.topk(mask.astype(ms.float32), 3)[1]
    assert sorted(order.asnumpy().tolist()) == ops.nonzero(mask).flatten().asnumpy().tolist()
    s = ops.sort(x)[0]
    new = s[1:] != s[:-1]
    assert new.asnumpy().tolist() == [False, True, True, False]
