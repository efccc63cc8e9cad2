"""In: settings and calls that differ from torch's. Out: the changes that verify tries."""

from __future__ import annotations

import ast

import pytest

from migrate.parity.ms_remedies import call_changes, cell_changes


def tried(torch, given):
    return [dict(change.arguments) for change in cell_changes(torch, given)]


@pytest.mark.parametrize(
    ("torch", "given", "wanted"),
    [
        ({"eps": 1e-5}, {"epsilon": 1e-7}, {"epsilon": 1e-5}),
        ({"momentum": 0.1}, {"momentum": 0.1}, {"momentum": 0.9}),
        ({"padding": (1, 2)}, {"pad_mode": "same", "padding": 0},
         {"pad_mode": "pad", "padding": (1, 1, 2, 2)}),
        ({"approximate": "none"}, {"approximate": True}, {"approximate": False}),
        ({"dim": -1}, {"axis": 1}, {"axis": -1}),
        ({"p": 0.1}, {"keep_prob": 0.1, "p": None}, {"p": 0.1}),
        ({}, {"use_batch_statistics": True}, {"use_batch_statistics": None}),
        ({"stride": 2, "ceil_mode": True}, {"stride": 1, "ceil_mode": False},
         {"stride": 2, "ceil_mode": True}),
    ],
)  # fmt: skip
def test_known_differences_are_tried(torch, given, wanted):
    assert wanted in tried(torch, given)


@pytest.mark.parametrize(
    ("torch", "given"),
    [
        ({"eps": 1e-5}, {"eps": 1e-5}), ({"stride": (2, 2)}, {"stride": 2}),
        ({"eps": 1e-5}, {"kernel_size": 3}), ({"kernel_size": 3}, {}),
        ({"padding": (1, 1)}, {"pad_mode": "pad", "padding": 1}),
        ({}, {"use_batch_statistics": None}),
    ],
)  # fmt: skip
def test_what_is_alike_is_not_tried(torch, given):
    assert tried(torch, given) == []


def forms(call, torch=""):
    theirs = ast.parse(torch, mode="eval").body if torch else None
    return [ast.unparse(form) for form in call_changes(ast.parse(call, mode="eval").body, theirs)]


@pytest.mark.parametrize(
    ("call", "torch", "wanted"),
    [
        ("v + 0.01", "v + 1e-05", "v + 1e-05"),
        ("x.var(1)", "x.var(1)", "x.var(1, ddof=1)"),
        ("ops.gelu(x)", "F.gelu(x)", "ops.gelu(x, approximate='none')"),
        ("ops.softmax(x, axis=1)", "", "ops.softmax(x, axis=-1)"),
        ("ops.where(c, a, b)", "", "ops.where(c, b, a)"),
        ("ops.cat([a, b], axis=1)", "", "ops.cat([b, a], axis=1)"),
        ("matmul(x, self.w.T)", "", "matmul(x, self.w)"),
        ("matmul(x, self.w)", "", "matmul(x, self.w.swapaxes(-1, -2))"),
        ("ops.dropout(x, 0.4, training=False)", "", "ops.dropout(x, 0.4, training=True)"),
    ],
)  # fmt: skip
def test_known_forms_of_a_call_are_tried(call, torch, wanted):
    assert wanted in forms(call, torch)


@pytest.mark.parametrize(("call", "torch"), [
    ("ops.relu(x)", "F.relu(x)"), ("x + 1", "x + 1"), ("x + 1", "x + 1 + 2"),
    ("f(x, y)", "f(x, y)"),
])  # fmt: skip
def test_other_calls_are_left_alone(call, torch):
    assert forms(call, torch) == []
