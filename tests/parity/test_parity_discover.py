"""In: the text of a model file. Out: what can be built without help, and why the rest cannot."""

from __future__ import annotations

import ast
from textwrap import dedent

import pytest

from migrate.parity.discover import candidates, without_mode

FILE = """
    import torch.nn as nn
    from dataclasses import dataclass

    WIDTH = 8

    @dataclass
    class Config:
        width: int = 8

    @dataclass
    class Strict:
        width: int

    class Block(nn.Module):
        def __init__(self, inside, outside): ...
        def forward(self, x): ...

    class Net(nn.Module):
        def __init__(self, block, layers, classes=10): ...
        def forward(self, x): ...

    class Configured(nn.Module):
        def __init__(self, config: Config): ...
        def forward(self, x): ...

    class Unknown(nn.Module):
        def __init__(self, config: Strict): ...
        def forward(self, x): ...

    class Child(Configured):
        pass

    class Abstract(nn.Module):
        def __init__(self): ...

    class Plain(nn.Linear):
        def __init__(self): ...

    def _make(block, layers, **kwargs):
        model = Net(block, layers, **kwargs)
        return model

    def net18(pretrained=False, **kwargs):
        return _make(Block, [2, 2], **kwargs)

    def wide(width):
        return nn.Sequential(nn.Linear(width, 2))

    def loss(x):
        return x.sum()

    def local():
        width = 3
        wide(width)

    def test_net():
        return Net(Block, [1, WIDTH])
"""
MODULES = frozenset({"Block", "Net", "Configured", "Unknown", "Child", "Abstract", "Plain"})


def found():
    tree = ast.parse(dedent(FILE))
    return {candidate.name: candidate for candidate in candidates(tree, MODULES)}


def test_arguments_come_from_a_call_in_the_file_with_known_values():
    assert found()["Net"].build == "Net(Block, [1, WIDTH])"
    assert found()["Block"].reason == "needs inside, outside"


def test_a_call_with_local_names_is_not_taken():
    assert found()["wide"].reason == "needs width"


def test_a_configuration_with_defaults_is_built():
    assert found()["Configured"].build == "Configured(config=Config())"
    assert found()["Child"].build == "Child(config=Config())"
    assert found()["Unknown"].reason == "needs config"


def test_builders_are_functions_that_return_a_model():
    assert found()["net18"].build == "net18()"
    assert "loss" not in found()
    assert "test_net" not in found()


def test_a_class_without_forward_is_skipped_but_an_inherited_one_counts():
    assert found()["Abstract"].reason == "defines no forward"
    assert found()["Plain"].reason == ""


@pytest.mark.parametrize(
    ("build", "cell"),
    [
        ("Net(3).eval()", "Net(3)"),
        ("make(nn.ReLU).train(False).eval()", "make(nn.ReLU)"),
        ("Net()", "Net()"),
        ("Net(mode=other.eval())", "Net(mode=other.eval())"),
        ("net.eval()", "net"),
        ("eval('Net()')", "eval('Net()')"),
        ("Net(", "Net("),
    ],
)
def test_a_cell_is_built_without_a_mode(build: str, cell: str) -> None:
    assert without_mode(build) == cell
