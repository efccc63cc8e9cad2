"""In: every public name that the facts know of torch. Out: each has a row, or is part of what has.

A name that nothing decides would be flagged as "no row", which tells the user nothing.
"""

from __future__ import annotations

from functools import cache

import pytest

from migrate.mapping.names import canonical
from migrate.mapping.table import Table, is_pattern, load

CALLS = ("torch.nn.Module.__call__", "torch.nn.Module.forward")


@cache
def rows() -> Table:
    return load(())


def owner_of(name: str) -> str:
    """The class that a name is a member of, "" for a name of a module."""
    space = name.rpartition(".")[0]
    return space if rows().kind(space) == "class" else ""


def decided(name: str) -> bool:
    """Whether a row answers for a name.

    A module is only walked through, and calling a Module needs no row. The instances of a class
    are what its row makes of it, so the row answers for their members too; of Tensors and Modules,
    each member needs a row. A method in place is decided by the row of the plain one.
    """
    table = rows()
    name = canonical(name, table)
    if table.rows(name) or table.kind(name) == "module" or name in CALLS:
        return True
    owner = canonical(owner_of(name), table)
    name = f"{owner}.{name.rpartition('.')[2]}" if owner else name
    if owner == "torch.Tensor":
        return bool(table.rows(name) or (name[-1] == "_" and table.rows(name.rstrip("_"))))
    if not owner or owner == "torch.nn.Module":
        return False
    return bool(table.rows(table.member(owner, name.rpartition(".")[2])) or table.rows(owner))


def spaces() -> list[str]:
    """Every namespace of the facts, members of classes under that of their class."""
    found = {(owner_of(name) or name).rpartition(".")[0] for name in rows().torch.names}
    return sorted({*found, "torch.Tensor", "torch.nn.Module"})


def names_of(space: str) -> list[str]:
    listed = [n for n in rows().torch.names if (owner_of(n) or n).rpartition(".")[0] == space]
    own = ("torch.Tensor", "torch.nn.Module")
    if space in own:
        return [n for n in rows().torch.names if owner_of(n) == space]
    return [n for n in listed if owner_of(n) not in own]


@pytest.mark.parametrize("space", spaces())
def test_every_name_of_a_namespace_is_decided(space: str) -> None:
    names = names_of(space)
    missing = [name for name in names if not decided(name)]
    assert names
    assert not missing, f"{len(missing)} of {len(names)} have no row: {' '.join(missing)}"


def test_a_name_that_torch_lacks_is_not_decided() -> None:
    assert not decided("torch.nn.Conv9d")
    assert not decided("torch.Tensor.bogus")
    assert not decided("torch.cudnn_bogus"), "patterns cover names that torch has"


def test_a_pattern_covers_what_lies_below_and_yields_to_a_row_of_its_own() -> None:
    table = rows()
    assert [row.key for row in table.rows("torch.distributed.rpc.init_rpc")] == [
        "torch.distributed.*"
    ]
    assert [row.key for row in table.rows("torch.distributed.is_available")] == [
        "torch.distributed.is_available"
    ]
    assert not table.rows("torch.distributed")


def test_the_longest_pattern_counts() -> None:
    assert rows().rows("torch.cuda.amp.common")[0].key == "torch.cuda.amp.*"
    assert rows().rows("torch.cuda.Stream.query")[0].key == "torch.cuda.*"


def test_patterns_only_flag() -> None:
    patterns = [key for key in rows().raw if is_pattern(key)]
    assert patterns
    assert all(row.flag for key in patterns for row in rows().rows(key))


def test_the_row_of_a_base_answers_for_its_classes() -> None:
    table = rows()
    base = "torch.distributions.Distribution.log_prob"
    assert table.member("torch.distributions.Normal", "log_prob") == base
    assert table.member("torch.distributions.Normal", "bogus") == (
        "torch.distributions.Normal.bogus"
    )
