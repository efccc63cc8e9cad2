"""What draws random numbers is told by its name, for every row of the table that does."""

from __future__ import annotations

import ast

import pytest

from migrate.evidence import store
from migrate.mapping import table
from migrate.sites.references import draws

# These set what is there already, or make Tensors whose numbers are whatever lies in memory.
SETTING = ("torch.nn.init.", "torch.empty", "torch.Tensor.new_empty", "torch.manual_seed")


def is_drawn(name: str) -> bool:
    return draws(ast.parse(name, mode="eval").body)


def test_every_random_row_draws() -> None:
    rows = table.load()
    keys = store.executable(rows)
    random = {k.partition(":")[0] for k in keys if (case := rows.case(k)) and case.random}
    asked = [name for name in random if not name.startswith(SETTING)]
    assert len(asked) > 30
    assert [name for name in asked if not is_drawn(name)] == []


@pytest.mark.parametrize(
    "name",
    ["F.normalize", "nn.LayerNorm", "grid_sample", "Upsample", "operand", "nn.init.zeros_",
     "drop_last", "torch.where", "self.sampler", "brand"],
)  # fmt: skip
def test_others_do_not(name: str) -> None:
    assert not is_drawn(name)
