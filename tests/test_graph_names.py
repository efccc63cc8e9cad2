"""In: functions whose patterns bind names. Out: no value of one is taken away above its use."""

from __future__ import annotations

from migrate.mapping import table
from migrate.workspace.project import convert_text

PATTERNS = """
from torch import nn


class Net(nn.Module):
    def forward(self, x, config, flag):
        match config:
            case [a, *rest]:
                x = x + a
            case _:
                return x
        if flag:
            a = 7
        return x * a
"""


def test_what_a_pattern_binds_has_a_value() -> None:
    assert "a = None" not in convert_text(PATTERNS, table.load(())).text


def test_what_one_way_alone_binds_has_none() -> None:
    bare = PATTERNS.replace("[a, *rest]", "[_, *rest]").replace("x + a", "x + 1")
    made = convert_text(bare, table.load(())).text
    assert "        a = None\n        if flag:" in made
