"""In: rows and cases broken on purpose. Out: whether the lint that should go red does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from migrate.mapping.table import load, mappings_folder
from migrate.mapping.table_lint import Problem, lint

CASE = 'calls = ["{name}(x0)"]\ninputs = ["2x3"]\n'
RELU = "torch.nn.functional.relu"
GOOD = f'["{RELU}"]\nto = "mindspore.ops.relu(input)"\nref = "mindspore.ops.relu"\n'
Lint = Callable[..., tuple[Problem, ...]]


@pytest.fixture
def check(tmp_path: Path) -> Lint:
    """Problems of one rows file: check("torch.toml", rows, cases=...)."""

    def call(name: str, rows: str, cases: str | None = None) -> tuple[Problem, ...]:
        (tmp_path / "facts").symlink_to(mappings_folder() / "facts")
        (tmp_path / "cases").mkdir()
        (tmp_path / name).write_text(rows, encoding="utf-8")
        if cases is None:
            keys = [line for line in rows.splitlines() if line.startswith('["')]
            cases = "".join(
                f"{key}\n{CASE.format(name=key[2:-2].partition(':')[0])}" for key in keys
            )
        (tmp_path / "cases" / name).write_text(cases, encoding="utf-8")
        return lint(load(folder=tmp_path))

    return call


def test_a_good_row_has_no_problems(check: Lint) -> None:
    assert check("torch.nn.functional.toml", GOOD) == ()


def row(name: str, text: str) -> str:
    return f'["{name}"]\n{text}\n'


BROKEN = [
    ("keys", "torch.toml", row("torch.abs", 'to = "input.abs()"\nonnly = { x = "1" }'), "'only'"),
    ("decision", "torch.toml", row("torch.abs", 'to = "input.abs()"\nflag = "API1"'), "flag"),
    ("decision", "torch.toml", row("torch.abs", 'flag = "XYZ104"\nreason = "x"'), "code"),
    ("decision", "torch.toml", row("torch.abs", 'flag = "API104"'), "reason"),
    ("decision", "torch.toml", row("torch.abs", 'note = "nothing else"'), "no decision"),
    ("name", "torch.toml", row("torch.aabs", 'to = "mindspore.ops.abs(input)"'), "torch.abs"),
    ("name", "einops.toml", row("einops.reduce", 'to = "helpers.linear(x)"'), "signature"),
    ("name", "torchvision.toml", row("torch.abs", 'to = "input.abs()"'), "torchvision.toml"),
    (
        "name",
        "torch.toml",
        row("torch.nn.modules.conv.Conv2d", 'flag = "API104"\nreason = "x"'),
        "Conv2d",
    ),
    ("totality", "torch.toml", row("torch.sum", 'to = "mindspore.ops.sum(input, dim)"'), "keepdim"),
    ("totality", "torch.toml", row("torch.abs", 'to = "input.abs()"\ndrop = ["out"]'), "out"),
    (
        "conditions",
        "torch.toml",
        row("torch.abs", 'to = "input.abs()"\nonly = { dmi = "1" }'),
        "dmi",
    ),
    (
        "conditions",
        "torch.toml",
        row("torch.abs", 'to = "input.abs()"\nwhen = { input = "blue" }'),
        "blue",
    ),
    (
        "conditions",
        "torch.toml",
        row("torch.abs", 'to = "input.abs()"\nonly = { out = "(" }'),
        "Python",
    ),
    ("templates", "torch.toml", row("torch.abs", 'to = "input.abs("'), "expression"),
    ("templates", "torch.toml", row("torch.abs", 'to = "input + input"'), "2 times"),
    ("templates", "torch.toml", row("torch.abs", 'to = "mindspore.ops.abs(inptu)"'), "'input'"),
    (
        "templates",
        "torch.toml",
        row("torch.abs", 'to = "mindspore.ops.abss(input)"'),
        "mindspore.ops.abs",
    ),
    ("templates", "torch.toml", row("torch.abs", 'to = "helpers.no_such(input)"'), "helper"),
    (
        "templates",
        "torch.toml",
        row("torch.abs", 'to = "mindspore.ops.abs(input, 1)"'),
        "2 positional",
    ),
    (
        "templates",
        "torch.toml",
        row("torch.abs", 'to = "mindspore.ops.abs(input=input, y=1)"'),
        "'y'",
    ),
    (
        "templates",
        "torch.toml",
        row("torch.abs", 'to = "mindspore.ops.clamp(min=input)"'),
        "no 'input'",
    ),
    ("templates", "torch.Tensor.toml", row("torch.Tensor.abs", 'to = "self.abss()"'), "method"),
    (
        "templates",
        "torch.toml",
        row("torch.abs", 'to = "input.abs()"\nmint = "mindspore.mint.abz(input)"'),
        "mint",
    ),
    (
        "ref",
        "torch.toml",
        row("torch.abs", 'to = "input.abs()"\nref = "mindspore.ops.nothing"'),
        "exist",
    ),
    ("ref", "torch.nn.toml", row("torch.nn.ELU", 'ref = "mindspore.nn.ELU"'), "inplace"),
    ("ref", "torch.toml", row("torch.softmax", 'ref = "mindspore.ops.softmax"'), "dim"),
    ("rule", "torch.toml", row("torch.abs", 'rule = "no_such_rule"'), "no_such_rule"),
    (
        "order",
        "torch.toml",
        row("torch.neg", 'to = "input.neg()"') + row("torch.abs", 'to = "input.abs()"'),
        "torch.neg",
    ),
]


@pytest.mark.parametrize(
    ("name", "file", "rows", "says"), BROKEN, ids=lambda value: str(value)[:40]
)
def test_a_broken_row_goes_red(check: Lint, name: str, file: str, rows: str, says: str) -> None:
    mine = [problem for problem in check(file, rows) if problem.lint == name]
    assert mine, f"the lint {name} says nothing"
    assert says in " ".join(problem.message for problem in mine)
    for problem in mine:
        assert problem.file and problem.key and problem.why and problem.next_step


BROKEN_CASES = [
    ("case", "", "has no case"),
    ("case", f'["{RELU}"]\ninputs = ["2"]\n', "no calls"),
    ("case", f'["{RELU}"]\ncalls = ["{RELU}(x1)"]\ninputs = ["2"]\n', "x1"),
    ("case", f'["{RELU}"]\ncalls = ["{RELU}("]\ninputs = ["2"]\n', "not Python"),
    ("case", f'["{RELU}"]\ncalls = ["{RELU}(x0)"]\ninputs = ["2"]\nmodes = ["pynative"]\n', "mode"),
    ("case", f'["{RELU}6"]\ncalls = ["{RELU}(x0)"]\ninputs = ["2"]\n', "no such row"),
    ("keys", f'["{RELU}"]\ncall = ["{RELU}(x0)"]\ninputs = ["2"]\n', "'calls'"),
]


@pytest.mark.parametrize(("name", "cases", "says"), BROKEN_CASES)
def test_a_broken_case_goes_red(check: Lint, name: str, cases: str, says: str) -> None:
    found = check("torch.nn.functional.toml", GOOD, cases)
    assert says in " ".join(problem.message for problem in found if problem.lint == name)


def test_the_shipped_table_has_no_problems() -> None:
    assert [problem.message for problem in lint(load())] == []
