"""In: small arrays and numbers. Out: that limits, comparisons, layouts and inputs are right."""

from __future__ import annotations

import numpy as np
import pytest

from migrate.parity.compare import (
    Measure,
    Strictness,
    compare,
    floor,
    judge,
    merge,
    relative_error,
    same_pattern,
    worst,
)
from migrate.parity.exchange import (
    ArrayStore,
    apply_layout,
    decode,
    digest,
    encode,
    leaves,
    opaque_part,
)
from migrate.parity.masks import channel_shape, keep_mask
from migrate.parity.probe import probe_source
from migrate.parity.request import InputSpec, parse_input
from migrate.records.outcomes import Verdict


def tensor_spec(array, **more):
    spec = {"t": "tensor", "key": array, "dtype": str(array.dtype), "shape": list(array.shape)}
    return {**spec, "own": 1e-7, "coarse": 0.0, "floor": 1e-6, "random": False, **more}


def compared(expected, actual, strictness=None):
    return compare(
        expected, actual, lambda s: s["key"], lambda s: s["key"], strictness or Strictness()
    )


@pytest.mark.parametrize(
    ("text", "shape", "dtype", "high"),
    [
        ("2x3x64x64", (2, 3, 64, 64), "float32", 0),
        ("7", (7,), "float32", 0),
        ("scalar", (), "float32", 0),
        ("2x16:int64<100", (2, 16), "int64", 100),
        ("4:bool", (4,), "bool", 0),
        ("2x8:float16", (2, 8), "float16", 0),
    ],
)
def test_an_input_is_read_and_written_back(text, shape, dtype, high):
    spec = parse_input(text)
    assert (spec.shape, spec.dtype, spec.high) == (shape, dtype, high)
    assert parse_input(spec.text) == spec


def test_keyword_literal_and_lower_limit():
    assert parse_input("mask=2x8:bool") == InputSpec((2, 8), "bool", name="mask")
    assert parse_input("size=py:(4, 4)").literal == "(4, 4)"
    assert parse_input("2x3:5<=int64<9") == InputSpec((2, 3), "int64", 5, 9)
    assert parse_input(InputSpec((2, 3), "int64", 5, 9).text).low == 5


@pytest.mark.parametrize("text", ["2x", "axb", "2x3:flot32", "2x3:int64<many", "py:open(1)", "-1"])
def test_an_input_that_cannot_be_read_names_its_part(text):
    with pytest.raises(ValueError, match="input"):
        parse_input(text)


def test_relative_error_is_euclidean_and_absolute_at_zero():
    reference = np.array([3.0, 4.0])
    assert relative_error(np.array([3.0, 4.5]), reference) == pytest.approx(0.1)
    assert relative_error(np.array([2.0, 2.0]), np.zeros(2)) == pytest.approx(2.0)
    assert relative_error(reference, reference) == 0.0


def test_floor_grows_with_the_reduction_and_the_dtype():
    assert floor("float32", 0) == pytest.approx(4 * 2**-24)
    assert floor("float32", 10_000) > 20 * floor("float32", 0)
    assert floor("float16", 1) > 1000 * floor("float32", 1)


def test_the_verdict_is_kernel_only_with_a_coarse_kernel():
    assert judge(2e-7, 1e-7, 0.0, 0.0, 3.0)[0] is Verdict.PASS
    assert judge(5e-5, 1e-7, 4e-5, 0.0, 3.0) == (Verdict.KERNEL, pytest.approx(1.2e-4))
    assert judge(5e-5, 1e-7, 0.0, 0.0, 3.0)[0] is Verdict.DIVERGED
    assert judge(5e-4, 1e-7, 4e-5, 0.0, 3.0)[0] is Verdict.DIVERGED


def test_nan_and_infinity_count_by_place():
    nan = np.array([np.nan, 1.0, np.inf])
    assert same_pattern(nan, nan)
    assert not same_pattern(np.array([1.0, np.nan, np.inf]), nan)
    assert not same_pattern(np.array([np.nan, 1.0, -np.inf]), nan)
    measure = compared(tensor_spec(nan), tensor_spec(np.array([0.0, 1.0, np.inf])))
    assert measure.verdict is Verdict.DIVERGED


def test_shape_dtype_value_and_structure_have_verdicts_of_their_own():
    one = np.ones((2, 3), np.float32)
    assert compared(tensor_spec(one), tensor_spec(one)).verdict is Verdict.PASS
    assert compared(tensor_spec(one), tensor_spec(one[:1])).verdict is Verdict.SHAPE
    double = one.astype(np.float64)
    assert compared(tensor_spec(one), tensor_spec(double)).verdict is Verdict.DTYPE
    assert compared(tensor_spec(one), tensor_spec(one * 1.01)).verdict is Verdict.DIVERGED
    assert compared(tensor_spec(one), tensor_spec(double * 2)).verdict is Verdict.DIVERGED
    pair = {"t": "tuple", "items": [tensor_spec(one), tensor_spec(one)]}
    assert compared(pair, tensor_spec(one)).verdict is Verdict.SHAPE
    assert compared(pair, {**pair, "t": "list"}).verdict is Verdict.PASS
    assert compared(pair, {**pair, "t": "list"}).elements == 12


def test_whole_numbers_are_exact():
    left = np.arange(4)
    assert compared(tensor_spec(left), tensor_spec(left)).verdict is Verdict.PASS
    measure = compared(tensor_spec(left), tensor_spec(left + np.array([0, 0, 1, 0])))
    assert measure.verdict is Verdict.DIVERGED
    assert "1 of 4" in measure.detail


def test_random_results_compare_shape_and_dtype_only():
    one = np.ones(3, np.float32)
    measure = compared(tensor_spec(one, random=True), tensor_spec(one * 9))
    assert measure.verdict is Verdict.NONDET
    assert compared(tensor_spec(one, random=True), tensor_spec(one[:2])).verdict is Verdict.SHAPE


def test_rtol_replaces_the_rule():
    one = np.ones(3, np.float32)
    loose = Strictness(rtol=0.1)
    assert compared(tensor_spec(one), tensor_spec(one * 1.05), loose).verdict is Verdict.PASS
    assert compared(tensor_spec(one), tensor_spec(one * 1.2), loose).verdict is Verdict.DIVERGED


def test_the_worst_verdict_wins_and_elements_add_up():
    merged = merge(
        [Measure(Verdict.PASS, 5), Measure(Verdict.SHAPE, 0), Measure(Verdict.KERNEL, 2)]
    )
    assert (merged.verdict, merged.elements) == (Verdict.SHAPE, 7)
    assert merge([]).verdict is Verdict.NOT_RUN
    assert worst([Verdict.NOT_RUN, Verdict.PASS]) is Verdict.NOT_RUN


def test_nested_values_go_through_files(tmp_path):
    store = ArrayStore(tmp_path)
    value = {"a": (np.arange(3), None), "b": [True, 2.5, "x"]}

    def tensor(item):
        if isinstance(item, np.ndarray):
            shape, dtype = list(item.shape), str(item.dtype)
            return {"t": "tensor", "key": store.put(item), "dtype": dtype, "shape": shape}
        return None

    spec = encode(value, tensor)
    back = decode(spec, lambda leaf: store.get(leaf["key"]), str)
    assert back["b"] == [True, 2.5, "x"]
    assert back["a"][0].tolist() == [0, 1, 2]
    assert [place for place, _ in leaves(spec)][:2] == ["['a'][0]", "['a'][1]"]


def test_an_opaque_part_says_what_it_is():
    spec = encode((object(),), lambda item: None)
    assert "object" in opaque_part(spec)
    with pytest.raises(ValueError, match="handed"):
        decode(spec, lambda leaf: None, str)


def test_layouts_change_shape_and_refuse_what_they_do_not_know():
    array = np.arange(6).reshape(2, 3)
    assert apply_layout(array, "unsqueeze(2)").shape == (2, 3, 1)
    assert apply_layout(array, "t()").shape == (3, 2)
    assert apply_layout(array, "reshape(-1).unsqueeze(0)").shape == (1, 6)
    assert apply_layout(array, "") is array
    with pytest.raises(ValueError, match="exec"):
        apply_layout(array, "exec(1)")


def test_hashes_see_dtype_shape_and_bytes():
    one = np.ones((2, 2), np.float32)
    assert digest(one) == digest(one.copy())
    assert len({digest(one), digest(one.reshape(4)), digest(one.astype(np.int32))}) == 3


def test_masks_depend_on_shape_and_probability_only():
    mask = keep_mask((100, 100), 0.3)
    assert np.array_equal(mask, keep_mask((100, 100), 0.3))
    assert not np.array_equal(mask, keep_mask((100, 100), 0.4))
    assert (mask == 0).mean() == pytest.approx(0.3, abs=0.02)
    assert mask.max() == pytest.approx(1 / 0.7)
    assert channel_shape((2, 3, 8, 8), 3) == (2, 3, 1, 1)
    assert channel_shape((3, 8, 8), 3) == (3, 1, 1)


def test_a_probe_is_valid_python_for_nested_inputs():
    def leaf(key):
        return {"t": "tensor", "key": key, "dtype": "float32", "shape": [1]}

    args = {"t": "tuple", "items": [leaf("a"), {"t": "list", "items": [leaf("b")]}]}
    kwargs = {"t": "dict", "keys": ["mask"], "items": [{"t": "value", "v": None}]}
    source, inputs = probe_source(args, kwargs, ["[0]", "['x']"])
    compile(source, "probe.py", "exec")
    assert "self.net(x0, [x1], mask=None)" in source
    assert "(result[0] * c0).sum() + (result['x'] * c1).sum()" in source
    assert [spec["key"] for spec in inputs] == ["a", "b"]


def test_a_lone_number_is_perturbed_more_often_than_many():
    torch = pytest.importorskip("torch")
    from migrate.parity.noise import FEW, MORE_DRAWS, OperatorLog, coarse_runs, draws_for

    assert draws_for([torch.zeros(FEW), torch.zeros(64)]) == 1 == draws_for([])
    assert draws_for([torch.zeros(64), torch.zeros(())]) == MORE_DRAWS > 4
    given = torch.linspace(-12, 12, 33)
    with OperatorLog(0) as log:
        given.exp()
    errors = {float(r.sum() / given.exp().sum() - 1) for r in coarse_runs(log, 0, given.exp, 8)}
    assert len(errors) > 8, "every draw is another one"
    assert 1e-6 < max(map(abs, errors)) < 1e-5
