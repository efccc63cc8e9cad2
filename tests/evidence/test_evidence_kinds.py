"""In: input specifications, signatures, made-up findings. Out: what is generated, how it counts."""

from __future__ import annotations

import ast
import dataclasses
import pickle
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from migrate.evidence import workers
from migrate.evidence.judge import Outcome, compare_run, evidence
from migrate.evidence.programs import Probe, together_text
from migrate.evidence.variants import alternatives, generated_calls, variants
from migrate.evidence.workers import MindSporeRun, groups
from migrate.mapping.row import Case, Row
from migrate.mapping.signatures import Param, parse_signature
from migrate.parity.compare import Measure
from migrate.records.outcomes import Verdict

TWO = ("2x3", "2x3")


def test_generated_inputs_are_the_same_each_time_and_differ_by_row() -> None:
    first, again = variants("torch.add", TWO), variants("torch.add", TWO)
    assert [one.kind for one in first] == [one.kind for one in again]
    for one, other in zip(first, again, strict=True):
        for name in one.inputs:
            np.testing.assert_array_equal(one.inputs[name], other.inputs[name])
    elsewhere = {one.kind: one for one in variants("torch.mul", TWO)}
    edges = next(one for one in first if one.kind == "edges")
    assert not np.array_equal(edges.inputs["x0"], elsewhere["edges"].inputs["x0"])


def test_shapes_and_dtypes_of_the_kinds() -> None:
    found = {one.kind: one for one in variants("torch.add", TWO)}
    shapes = {kind: [x.shape for x in found[kind].inputs.values()] for kind in found}
    assert shapes["0-d"] == [(), ()]
    assert shapes["empty"] == [(0, 3), (0, 3)]
    assert shapes["size 1"] == [(1, 1), (1, 1)]
    assert shapes["3-d"] == [(2, 2, 3), (2, 2, 3)]
    assert shapes["4-d"] == [(2, 3, 2, 3), (2, 3, 2, 3)]
    assert shapes["broadcast"] == [(2, 3), (1, 3)]
    assert shapes["lower rank"] == [(2, 3), (3,)]
    assert found["int64"].inputs["x1"].dtype == np.int64
    assert found["bool"].inputs["x0"].dtype == np.bool_
    assert [x.dtype.name for x in found["mixed"].inputs.values()] == ["float32", "int64"]
    assert not np.isfinite(found["nan and inf"].inputs["x0"]).all()
    assert np.isfinite(found["nan and inf"].inputs["x0"]).any()


def test_no_two_generated_numbers_are_equal_but_where_the_kind_says_so() -> None:
    for one in variants("torch.sort", ("5x7",)):
        numbers = one.inputs["x0"].ravel()
        numbers = numbers[np.isfinite(numbers)]
        alike = len(numbers) - len(set(numbers.tolist()))
        assert bool(alike) == (one.kind in ("bool", "zeros", "ties", "constant")), one.kind


def test_zeros_and_ties_are_many_and_their_gradient_is_compared() -> None:
    found = {one.kind: one for one in variants("torch.sort", ("5x7",))}
    zeros, ties = found["zeros"].inputs["x0"], found["ties"].inputs["x0"]
    assert (zeros == 0).sum() == 17 and len(np.unique(ties)) <= 5
    assert all(found[kind].gradient for kind in ("zeros", "ties", "edges", "constant", "large"))
    assert len(np.unique(found["constant"].inputs["x0"])) == 1


def test_big_whole_numbers_and_bytes() -> None:
    found = {one.kind: one for one in variants("torch.sort", ("20x15",))}
    big, byte = found["big"].inputs["x0"], found["uint8"].inputs["x0"]
    assert big.dtype == np.int64 and byte.dtype == np.uint8
    assert (np.abs(big) > 2**33).all() and len(np.unique(big)) == big.size
    assert (big.astype(np.float32).astype(np.int64) != big).any()
    assert byte.min() == 0 and byte.max() == 255
    far = {one.kind: one for one in variants("torch.fmod", TWO)}["far"].inputs
    assert np.abs(far["x0"]).max() > 2**12 * np.abs(far["x1"]).max()
    positive = {one.kind: one for one in variants("torch.log", ("2x3 positive",))}
    assert (positive["big"].inputs["x0"] > 0).all()


def test_indices_keep_their_numbers_and_without_floats_nothing_is_generated() -> None:
    found = {one.kind: one for one in variants("torch.gather", ("4x3", "2x3 int64 high=2"))}
    assert all(one.inputs["x1"].dtype == np.int64 for one in found.values())
    assert all(one.inputs["x1"].max(initial=0) < 2 for one in found.values())
    assert "mixed" not in found
    assert variants("torch.bincount", ("7 int64",)) == ()


def row(name: str, signature: str) -> Row:
    kind = "function"
    return Row(name, name, "", kind, signatures=(parse_signature(signature),))


def test_arguments_that_no_call_gives_are_added_one_at_a_time() -> None:
    signature = "(input: Tensor, dim: int, keepdim: bool = False, *, out: Tensor | None = None)"
    one = row("torch.amax", signature)
    made = generated_calls(one, Case("torch.amax", ("torch.amax(x0, 1) * 2",), ("2x3",)))
    assert made == (("keepdim=True", "torch.amax(x0, 1, keepdim=True) * 2"),)


def test_an_argument_that_another_call_gives_is_added_all_the_same() -> None:
    one = row("torch.amax", "(input: Tensor, dim: int, keepdim: bool = False)")
    calls = ("torch.amax(x0, 1)", "torch.amax(x0[:, :1], 0, keepdim=True)")
    made = generated_calls(one, Case("torch.amax", calls, ("2x3",)))
    assert made == (("keepdim=True", "torch.amax(x0, 1, keepdim=True)"),)


@pytest.mark.parametrize(
    "calls",
    [
        ("torch.amax(x0, 1, True)",),
        ("torch.amax(x0, 1, keepdim=True)",),
        ("torch.amax(x0, 1)", "torch.amax(x0, 1, keepdim=True)"),
        ("torch.amax(torch.amax(x0, 1), 0)",),
        ("torch.amax(*x0)",),
    ],
)
def test_nothing_is_added_where_it_is_given_or_the_place_is_unclear(calls: tuple[str, ...]) -> None:
    one = row("torch.amax", "(input: Tensor, dim: int, keepdim: bool = False)")
    assert generated_calls(one, Case("torch.amax", calls, ("2x3",))) == ()


@pytest.mark.parametrize(
    ("name", "default", "type_", "values"),
    [
        ("keepdim", "False", "bool", ("True",)),
        ("bias", "True", "bool", ("False",)),
        ("padding", "0", "int", ("1",)),
        ("dim", "-1", "int", ("0",)),
        ("eps", "1e-05", "float", ("0.125005",)),
        ("reduction", "'mean'", "str", ("'sum'", "'none'")),
        ("approximate", "'none'", "str", ("'tanh'",)),
        ("dtype", "None", "dtype", ("torch.float64",)),
        ("weight", "None", "Tensor", ()),
        ("layout", "torch.strided", "layout", ()),
    ],
)
def test_other_values_than_the_default(
    name: str, default: str, type_: str, values: tuple[str, ...]
) -> None:
    assert alternatives(Param(name, "any", default, type_)) == values


CASE = Case("torch.relu", ("f(x0)",), ("2",))
PROBE = Probe("call0", "f(x0)", False, ("x0",), (0,))
FINE = Outcome("f(x0)", "pynative", "result", Measure(Verdict.PASS, 4))


def outcome(kind: str, verdict: Verdict) -> Outcome:
    return Outcome(f"f(x0) on {kind}", "pynative", "result", Measure(verdict, 4), kind)


def test_a_kind_that_differs_turns_the_row_red_and_one_that_is_refused_does_not() -> None:
    loud, silent = outcome("bool", Verdict.BLOCKED), outcome("0-d", Verdict.DTYPE)
    good = outcome("edges", Verdict.PASS)
    quiet = evidence(CASE, "0", [PROBE], [FINE, loud, good], ())
    assert quiet.passed and (quiet.holds, quiet.refuses) == (("edges",), ("bool",))
    red = evidence(CASE, "0", [PROBE], [FINE, loud, silent], ())
    assert red.verdict == "DTYPE" and "on 0-d" in red.failures[0]
    assert red.elements == FINE.measure.elements  # generated inputs prove nothing by numbers


def test_a_kind_that_raises_here_and_differs_there_differs() -> None:
    both = [outcome("0-d", Verdict.BLOCKED), outcome("0-d", Verdict.DIVERGED)]
    assert not evidence(CASE, "0", [PROBE], [FINE, *both], ()).passed


def test_the_case_may_admit_a_difference_as_long_as_there_is_one() -> None:
    admits = dataclasses.replace(CASE, differs={"0-d": "the kernel gives a vector"})
    silent = outcome("0-d", Verdict.SHAPE)
    found = evidence(admits, "0", [PROBE], [FINE, silent], ())
    assert found.passed and found.differs == ("0-d",)
    gone = evidence(admits, "0", [PROBE], [FINE], ())
    assert not gone.passed and "take it out" in gone.failures[0]


def test_a_gradient_that_raises_does_not_hide_a_result_that_differs() -> None:
    raised = {"result": (spec(GOOD * 2), {0: GOOD * 2}), "gradient error": "no such shapes"}
    limits = {"own": 1e-8, "coarse": 0.0, "floor": 3e-7}
    expected = {
        "arrays": [GOOD],
        "result": {**spec(GOOD, "0"), **limits},
        "gradients": {},
        "buffers": {},
        "random": False,
    }
    found = compare_run(a_run("f(x0)", "pynative", "0-d"), expected, raised, False)
    assert [one.measure.verdict for one in found] == [Verdict.DIVERGED, Verdict.BLOCKED]
    assert not evidence(CASE, "0", [PROBE], [FINE, *found], ()).passed
    raised["result"] = (spec(GOOD), {0: GOOD})
    found = compare_run(a_run("f(x0)", "pynative", "0-d"), expected, raised, False)
    assert evidence(CASE, "0", [PROBE], [FINE, *found], ()).refuses == ("0-d",)


GOOD = np.array([1, 2], np.float32)


def spec(array: Any, key: Any = 0) -> dict[str, Any]:
    shape = list(array.shape)
    return {"t": "tensor", "key": key, "dtype": str(array.dtype), "shape": shape}


def a_run(label: str, mode: str, kind: str = "") -> MindSporeRun:
    nowhere = Path("nowhere")
    return MindSporeRun(label, nowhere, nowhere, PROBE, {}, (), (), mode, False, kind)


def test_graphs_that_stand_together_are_compiled_as_one() -> None:
    runs = [a_run("a", "pynative"), a_run("b", "graph"), a_run("c", "graph"), a_run("d", "graph")]
    assert [len(group) for group in groups(runs)] == [1, 3]
    apart = [dataclasses.replace(run, alone=True) for run in runs]
    assert [len(group) for group in groups(apart)] == [1, 1, 1, 1]
    text = together_text([1, 2])
    ast.parse(text)
    assert "return (f0(a0_0), f1(a1_0, a1_1),)" in text


class Worker:
    """Stands for a pool: writes journals, and dies in the runs that it is told to die in."""

    def __init__(self, deadly: set[str]) -> None:
        self.deadly = deadly
        self.asked: list[list[str]] = []

    def schedule(self, job: Any, args: tuple[Any, ...], timeout: float) -> Future[None]:
        runs, journal = args
        self.asked.append([run.label for run in runs])
        with journal.open("ab") as answers:
            for group in groups(runs):
                if self.deadly & {run.label for run in group}:
                    break
                for run in group:
                    pickle.dump({"result": run.label}, answers)
        done: Future[None] = Future()
        done.set_result(None)
        return done


def answers_of(deadly: set[str], runs: list[MindSporeRun], folder: Path) -> list[str]:
    pool: Any = Worker(deadly)
    asked = workers.ask_mindspore(pool, runs, folder / "row.journal")
    return [one.get("result", one.get("error")) for one in workers.collect(pool, asked)]


def test_a_crash_costs_its_run_and_no_other(tmp_path: Path) -> None:
    runs = [a_run(label, "pynative") for label in "abc"]
    assert answers_of({"b"}, runs, tmp_path)[::2] == ["a", "c"]


def test_a_crash_among_graphs_that_were_compiled_as_one_costs_one_of_them(tmp_path: Path) -> None:
    runs = [a_run("a", "pynative"), *(a_run(label, "graph") for label in "bcd")]
    found = answers_of({"c"}, runs, tmp_path)
    assert [found[0], found[1], found[3]] == ["a", "b", "d"]
    assert "no answer" in found[2]


def test_after_two_crashes_the_rest_of_that_mode_is_not_tried(tmp_path: Path) -> None:
    runs = [*(a_run(label, "pynative") for label in "abcd"), a_run("e", "pynative", "0-d")]
    found = answers_of({"a", "b"}, runs, tmp_path)
    assert "not tried" in found[2] and "not tried" in found[3]
    assert found[4] == "e"


def test_a_journal_that_was_cut_short_keeps_what_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.journal"
    whole = pickle.dumps({"result": 1})
    path.write_bytes(whole + pickle.dumps({"result": 2})[:-4])
    assert workers.read_journal(path) == [{"result": 1}]
    assert workers.read_journal(tmp_path / "none.journal") == []


def test_overflow_is_where_torch_has_it_in_float32() -> None:
    torch_run = pytest.importorskip("migrate.evidence.torch_run")
    plain = np.array([1, np.inf, np.nan, 3.4e38], np.float32)
    exact = np.array([1.00000001, 1e41, 5.0, 1.8e308])
    found = torch_run.within_range(exact, plain)
    assert found[0] == exact[0] and found[3] == np.float64(plain[3])
    assert np.isinf(found[1]) and np.isnan(found[2])
    assert torch_run.within_range(exact, exact) is exact
