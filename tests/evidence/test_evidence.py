"""In: small tables, made-up findings. Out: whether evidence is prepared, judged, kept right."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from migrate.evidence import store
from migrate.evidence.judge import Outcome, compare_run, evidence, places, same_numbers
from migrate.evidence.programs import Probe, harness_text, probes
from migrate.evidence.store import RowEvidence
from migrate.evidence.variants import InputError, draw, parse_input
from migrate.mapping.row import Case
from migrate.mapping.signatures import HelperFiles
from migrate.mapping.table import Table, load, mappings_folder

ROWS = """
["torch.nn.BatchNorm2d"]
to = "mindspore.nn.BatchNorm2d(num_features, eps, momentum)"
ref = "mindspore.nn.BatchNorm2d"
weights = { weight = "gamma", running_mean = "moving_mean", num_batches_tracked = "" }
layout = { weight = "unsqueeze(0)" }

["torch.relu"]
to = "helpers.one(input)"

["torch.sigmoid"]
flag = "API104"
reason = "for the test"
"""
CASES = """
["torch.nn.BatchNorm2d"]
calls = ["torch.nn.BatchNorm2d(3, 1e-3)"]
inputs = ["2x3x4x4", "5 int64 high=3"]
forward = "m(x0)"

["torch.relu"]
calls = ["torch.relu(x0)", "torch.relu(x0 + x1)"]
inputs = ["2x3", "3 int64"]
"""
HELPER = """\"\"\"In: nothing. Out: nothing.\"\"\"


def two(x):
    return x


def one(x):
    return two(x)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "facts").symlink_to(mappings_folder() / "facts")
    for name in ("cases", "helpers"):
        (tmp_path / name).mkdir()
    (tmp_path / "torch.toml").write_text(ROWS)
    (tmp_path / "cases" / "torch.toml").write_text(CASES)
    (tmp_path / "helpers" / "h.py").write_text(HELPER)
    return tmp_path


def open_table(folder: Path) -> Table:
    table = load(folder=folder)
    helpers = HelperFiles(folder / "helpers")
    return Table(table.raw, table.files, table.torch, table.mindspore, helpers, folder)


@pytest.fixture
def table(folder: Path) -> Table:
    return open_table(folder)


@pytest.mark.parametrize(
    ("text", "shape", "dtype"),
    [
        ("2x3", (2, 3), "float32"),
        ("scalar", (), "float32"),
        ("4 int64 high=5", (4,), "int64"),
        ("2x2 bool", (2, 2), "bool"),
        ("7 positive", (7,), "float32"),
        ("3 complex64", (3,), "complex64"),
        ("0x3", (0, 3), "float32"),
    ],
)
def test_inputs_have_shape_and_dtype_and_are_the_same_each_time(
    text: str, shape: tuple[int, ...], dtype: str
) -> None:
    one = draw(text, "torch.relu", 0)
    assert (one.shape, str(one.dtype)) == (shape, dtype)
    np.testing.assert_array_equal(one, draw(text, "torch.relu", 0))


def test_inputs_keep_off_zero_and_within_their_bounds() -> None:
    assert np.abs(draw("100x100", "k", 0)).min() >= 0.049
    whole = draw("1000 int64 low=2 high=5", "k", 0)
    assert set(whole.tolist()) == {2, 3, 4}
    assert sorted(draw("3x3 unique", "k", 0).ravel().tolist()) == list(range(9))
    uniform = draw("1000 uniform", "k", 0)
    assert 0 < uniform.min() < uniform.max() < 1
    assert not np.array_equal(draw("5", "k", 0), draw("5", "k", 1))


@pytest.mark.parametrize("text", ["", "2xa", "2x3 flaot32", "3 hihg=2"])
def test_an_input_that_is_not_understood_is_an_error(text: str) -> None:
    with pytest.raises(InputError):
        parse_input(text)


def test_probes_of_a_function_take_the_inputs_that_each_call_uses(table: Table) -> None:
    row, case = table.row("torch.relu"), table.case("torch.relu")
    assert row is not None and case is not None
    text, found = probes(table, row, case)
    ast.parse(text)
    assert [(p.name, p.names, p.floating, p.is_module) for p in found] == [
        ("call0", ("x0",), (0,), False),
        ("call1", ("x0", "x1"), (0,), False),
    ]


def test_a_class_is_wrapped_and_its_ref_is_passed_as_a_value(table: Table) -> None:
    row, case = table.row("torch.nn.BatchNorm2d"), table.case("torch.nn.BatchNorm2d")
    assert row is not None and case is not None
    text, found = probes(table, row, case)
    assert [(p.name, p.names, p.is_module, p.through_ref) for p in found] == [
        ("call0", ("x0",), True, False),
        ("ref0", ("x0",), True, True),
    ]
    assert "return through(3, 0.001)" in text
    assert "self.m = ref0_by(torch.nn.BatchNorm2d)" in text
    assert "return self.m(x0)" in text


def test_the_harness_is_python_and_differentiates_the_named_results() -> None:
    probe = Probe("call0", "f(x0, x1)", False, ("x0", "x1"), (0,))
    text = harness_text(probe, "case_a", ("[0]", "[1]['y']"))
    ast.parse(text)
    assert "(result[0] * c0).sum() + (result[1]['y'] * c1).sum(), result" in text
    assert "def total(x0, x1, c0, c1):" in text


def test_weights_find_their_places_by_the_class_that_names_them(table: Table) -> None:
    found = {
        "state": {"m.weight": 1, "m.bias": 2, "m.running_mean": 3, "m.num_batches_tracked": 4},
        "classes": {"": ["__main__.call0"], "m": ["torch.nn.modules.batchnorm.BatchNorm2d"]},
    }
    assert places(table, found) == (
        ("m.weight", "m.gamma", "unsqueeze(0)", 1),
        ("m.bias", "m.bias", "", 2),
        ("m.running_mean", "m.moving_mean", "", 3),
    )


def spec(key: int | str, array: Any, **more: Any) -> dict[str, Any]:
    return {
        "t": "tensor",
        "key": key,
        "dtype": str(array.dtype),
        "shape": list(array.shape),
        **more,
    }


@dataclass(frozen=True)
class Ran:
    """What a comparison has to know of a run."""

    label: str = "f(x0)"
    mode: str = "pynative"
    kind: str = ""
    weights: tuple[Any, ...] = ()


def run(
    result: Any, gradient: Any, expected_dtype: str = "float32", kind: str = ""
) -> list[Outcome]:
    """One run where torch has [1, 2] with the gradient [3, 4]."""
    right, slope = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    limits = {"own": 1e-8, "coarse": 0.0, "floor": 3e-7}
    expected = {
        "arrays": [right, slope],
        "result": {**spec("0", right, **limits), "dtype": expected_dtype},
        "gradients": {"input[0]": {**spec("1", slope, **limits), "dtype": "float32"}},
        "buffers": {},
        "random": False,
    }
    actual = {
        "result": (spec(0, result), {0: result}),
        "gradients": {"input[0]": (spec(0, gradient), {0: gradient})},
        "buffers": {},
    }
    return compare_run(Ran(kind=kind), expected, actual, False)


GOOD, SLOPE = np.array([1, 2], np.float32), np.array([3, 4], np.float32)
CASE = Case("torch.relu", ("f(x0)",), ("2",), modes=("pynative",))
PROBE = Probe("call0", "f(x0)", False, ("x0",), (0,))


def verdict_of(outcomes: list[Outcome], problems: tuple[str, ...] = ()) -> RowEvidence:
    return evidence(CASE, "0", [PROBE], outcomes, problems)


def test_what_matches_passes_and_counts_its_elements() -> None:
    found = verdict_of(run(GOOD, SLOPE))
    assert (found.verdict, found.gradient, found.elements) == ("PASS", "PASS", 4)
    assert found.modes == ("pynative",) and found.passed and not found.failures


@pytest.mark.parametrize(
    ("outcomes", "verdict"),
    [
        (run(GOOD * np.float32(1.0001), SLOPE), "DIVERGED"),
        (run(GOOD, SLOPE * np.float32(1.0001)), "DIVERGED"),
        (run(GOOD, np.zeros(2, np.float32)), "DIVERGED"),
        (run(GOOD.reshape(2, 1), SLOPE), "SHAPE"),
        (run(GOOD.astype(np.float64), SLOPE), "DTYPE"),
        (run(np.array([1, np.nan], np.float32), SLOPE), "DIVERGED"),
        ([], "NOT_RUN"),
    ],
)
def test_what_differs_goes_red(outcomes: list[Outcome], verdict: str) -> None:
    found = verdict_of(outcomes)
    assert found.verdict == verdict
    assert not found.passed and found.failures


def test_a_run_that_fails_and_a_problem_go_red() -> None:
    expected = {"arrays": [], "random": False}
    blocked = compare_run(Ran(mode="graph"), expected, {"error": "TypeError: no"}, False)
    assert verdict_of(blocked).verdict == "BLOCKED"
    assert not verdict_of(run(GOOD, SLOPE), ("torch: the call raises",)).passed


def test_a_gradient_that_is_missing_goes_red() -> None:
    slope = {"arrays": [GOOD], "random": False, "result": {"t": "value", "v": 1}, "buffers": {}}
    expected = {**slope, "gradients": {"a": spec("0", GOOD), "b": spec("0", GOOD)}}
    mine = {"a": (spec(0, GOOD), {0: GOOD})}
    actual = {"result": ({"t": "value", "v": 1}, {}), "gradients": mine, "buffers": {}}
    expected["gradients"]["a"].update(own=0.0, coarse=0.0, floor=1e-7)
    lost = compare_run(Ran(), expected, actual, False)
    assert verdict_of(lost).verdict == "UNMATCHED"
    expected["state"] = {"a": GOOD, "b": GOOD}
    told = compare_run(Ran(weights=(("a", "a", "", GOOD),)), expected, actual, False)
    assert verdict_of(told).verdict == "PASS"


def test_a_gradient_is_compared_in_the_shape_of_the_cell() -> None:
    limits = {"own": 0.0, "coarse": 0.0, "floor": 1e-7}
    expected = {
        "arrays": [GOOD],
        "random": False,
        "result": {"t": "value", "v": 1},
        "gradients": {"w": spec("0", GOOD, **limits)},
        "buffers": {},
        "state": {"w": GOOD},
    }
    mine = GOOD.reshape(1, 2)
    actual = {
        "result": ({"t": "value", "v": 1}, {}),
        "gradients": {"w": (spec(0, mine), {0: mine})},
        "buffers": {},
    }
    for layout, verdict in (("unsqueeze(0)", "PASS"), ("", "SHAPE")):
        ran = Ran(weights=(("w", "w", layout, GOOD),))
        found = verdict_of(compare_run(ran, expected, actual, False))
        assert found.verdict == verdict


def test_only_equal_runs_are_the_same() -> None:
    one = {"arrays": [GOOD], "random": False}
    assert same_numbers(one, {"arrays": [GOOD.copy()], "random": False})
    assert not same_numbers(one, {"arrays": [SLOPE], "random": False})
    assert not same_numbers(one, {"arrays": [GOOD], "random": True})
    assert not same_numbers(one, {"error": "x"})


def recorded(table: Table, key: str, verdict: str = "PASS") -> RowEvidence:
    return RowEvidence(key, verdict, store.row_hash(table, key), 1, 4, 1e-8, 3e-7, ("pynative",))


def test_evidence_is_kept_and_flagged_rows_need_none(table: Table) -> None:
    assert store.executable(table) == store.stale(table) == ("torch.nn.BatchNorm2d", "torch.relu")
    store.write(table, [recorded(table, "torch.relu")])
    assert store.stale(table) == ("torch.nn.BatchNorm2d",)
    assert store.read(table)["torch.relu"] == recorded(table, "torch.relu")
    store.write(table, [recorded(table, "torch.nn.BatchNorm2d", "DIVERGED")])
    assert store.stale(table) == ("torch.nn.BatchNorm2d",)
    (path,) = store.write(table, [])
    first = path.read_bytes()
    store.write(table, [])
    assert path.read_bytes() == first


def test_the_message_says_which_rows_and_what_to_run(folder: Path, table: Table) -> None:
    assert "2 rows were never executed" in store.freshness(table).message
    keys = store.executable(table)
    store.write(table, [recorded(table, key) for key in keys])
    assert store.freshness(table).message == ""
    store.write(table, [recorded(table, "torch.relu", "DIVERGED")])
    assert "1 rows went red when they were executed: torch.relu" in store.freshness(table).message
    path = folder / "torch.toml"
    path.write_text(path.read_text().replace("helpers.one", "helpers.two"))
    message = store.freshness(open_table(folder)).message
    assert "1 rows have changed since they were executed: torch.relu" in message
    assert "torch2ms table verify --changed" in message


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("torch.toml", "helpers.one(input)", "helpers.two(input)"),
        ("cases/torch.toml", "torch.relu(x0 + x1)", "torch.relu(x0 - x1)"),
        ("helpers/h.py", "return x\n", "return x + 1\n"),
        ("helpers/h.py", "return two(x)", "return two(x) * 2"),
    ],
)
def test_a_changed_row_case_or_helper_is_stale(
    folder: Path, table: Table, file: str, old: str, new: str
) -> None:
    store.write(table, [recorded(table, "torch.relu")])
    assert store.is_fresh(open_table(folder), "torch.relu")
    path = folder / file
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    assert not store.is_fresh(open_table(folder), "torch.relu")


def test_a_comment_in_a_helper_changes_nothing(folder: Path, table: Table) -> None:
    store.write(table, [recorded(table, "torch.relu")])
    path = folder / "helpers" / "h.py"
    path.write_text(path.read_text().replace("return two(x)", "return two(x)  # why"))
    assert store.is_fresh(open_table(folder), "torch.relu")


def test_source_stands_before_the_calls_and_forward_makes_a_module(folder: Path) -> None:
    cases = (
        '["torch.relu"]\nsource = """class Net(torch.nn.Module):\n    pass\n"""\n'
        'calls = ["Net()"]\ninputs = ["2x3"]\nforward = "m(x0, x0)"\n'
    )
    (folder / "cases" / "torch.toml").write_text(cases)
    table = open_table(folder)
    row, case = table.row("torch.relu"), table.case("torch.relu")
    assert row is not None and case is not None
    text, (probe,) = probes(table, row, case)
    assert text.index("class Net") < text.index("self.m = Net()")
    assert "return self.m(x0, x0)" in text
    assert probe.is_module
