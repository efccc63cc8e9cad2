"""In: small pairs of models. Out: what verify sees beyond inputs near one, and what it advises."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from migrate.parity.climb import draw_checks
from migrate.parity.hand.flow import Flow
from migrate.parity.hand.inventory import Side, Weight
from migrate.parity.hand.matching import Part, match, with_sums
from migrate.parity.hand.port import Pair, verify_pair
from migrate.parity.request import Draw, VerifyRequest, has_floats, parse_address
from migrate.parity.session import Sides, opened_sides
from migrate.records.outcomes import Verdict, Why
from migrate.records.result import Check, PairResult

TORCH = '''"""In: nothing. Out: models."""
import torch
from torch import nn

class Unit(nn.Module):
    def forward(self, x):
        return x / (x.norm(dim=-1, keepdim=True) + 1e-6)

class Count(nn.Module):
    def forward(self, x):
        return x * 2

class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(6, 8)
        self.norm = nn.LayerNorm(8, eps=1e-2)
    def forward(self, x):
        return self.norm(self.fc(x))

class Spread(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(6, 8)
    def forward(self, x):
        y = torch.tanh(self.fc(x))
        return (y - y.mean(-1, keepdim=True)) / y.std(-1, keepdim=True)

class Layers(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(2, 4, 3, padding=1)
        self.bn = nn.BatchNorm2d(4)
    def forward(self, x):
        return torch.relu(self.bn(self.conv(x))).mean((2, 3))
'''
PORT = '''"""In: nothing. Out: their ports; arguments make mistakes."""
from mindspore import nn, ops

class Unit(nn.Cell):
    def __init__(self, eps=1e-6):
        super().__init__()
        self.eps = eps
    def construct(self, x):
        return x / (ops.norm(x, dim=-1, keepdim=True) + self.eps)

class Count(nn.Cell):
    def construct(self, x):
        return x + x

class Small(nn.Cell):
    def __init__(self, eps=1e-2):
        super().__init__()
        self.dense = nn.Dense(6, 8)
        self.ln = nn.LayerNorm((8,), epsilon=eps)
    def construct(self, x):
        return self.ln(self.dense(x))

class Spread(nn.Cell):
    def __init__(self):
        super().__init__()
        self.dense = nn.Dense(6, 8)
    def construct(self, inputs):
        h = ops.tanh(self.dense(inputs))
        centre = ops.mean(h, -1, True)
        return (h - centre) / ops.std(h, axis=-1, ddof=0, keepdims=True)

class Layers(nn.Cell):
    def __init__(self, pad_mode="pad", eps=1e-5, momentum=0.9):
        super().__init__()
        padding = 1 if pad_mode == "pad" else 0
        self.conv = nn.Conv2d(2, 4, 3, pad_mode=pad_mode, padding=padding, has_bias=True)
        self.bn = nn.BatchNorm2d(4, eps=eps, momentum=momentum)
    def construct(self, x):
        return ops.mean(ops.relu(self.bn(self.conv(x))), (2, 3))
'''


@pytest.fixture(scope="module")
def sides() -> Iterator[Sides]:
    with opened_sides(VerifyRequest(Path(), Path())) as (opened,):
        yield opened


@pytest.fixture
def verified(sides: Sides, tmp_path: Path):
    (tmp_path / "reach_torch.py").write_text(TORCH, encoding="utf-8")
    (tmp_path / "reach_ms.py").write_text(PORT, encoding="utf-8")

    def run(name: str, build: str, text: str, magnitudes: tuple[float, ...] = ()) -> PairResult:
        pair = Pair(parse_address(f"reach_torch:{name}"), parse_address(f"reach_ms:{build}"),
                    (str(tmp_path),))  # fmt: skip
        request = VerifyRequest(
            Path(), Path(), inputs=(text,), magnitudes=magnitudes, modes=("pynative",)
        )
        return verify_pair(sides, pair, request, lambda line: None)[0]

    return run


@pytest.mark.parametrize(
    ("build", "magnitudes", "verdict"),
    [
        ("Unit(1e-8)", (), Verdict.PASS),  # what differs drowns in the inputs
        ("Unit(1e-8)", (1e-3,), Verdict.DIVERGED),
        ("Unit(1e-6)", (1e-3, 10.0), Verdict.PASS),
    ],
)
def test_tiny_inputs_show_an_eps_that_drowns_otherwise(verified, build, magnitudes, verdict):
    result = verified("Unit", build, "3x16", magnitudes)
    assert result.verdict is verdict, result.model_dump_json(include={"rungs"}, indent=1)
    assert (result.guilty is None) is (verdict is Verdict.PASS)
    if result.guilty is not None:
        assert result.guilty.rung == "magnitudes"
        assert "inputs times 0.001" in result.guilty.cause


def test_whole_numbers_have_no_other_magnitude(verified):
    result = verified("Count", "Count", "4:int64<9", (1e-3,))
    assert result.verdict is Verdict.PASS
    assert [r.detail for r in result.rungs if r.name == "magnitudes"] == [Why.NO_FLOATS]


def test_a_cure_comes_before_the_other_causes(verified):
    result = verified("Small", "Small(1e-5)", "4x6")
    assert result.guilty is not None
    assert result.guilty.mindspore == "ln"
    assert result.guilty.cause.startswith("it passes with epsilon=0.01")


def test_the_call_is_named_where_a_port_is_written_in_other_words(verified):
    result = verified("Spread", "Spread", "4x6")
    guilty = result.guilty
    assert guilty is not None
    assert "y.std(-1, keepdim=True)" in guilty.torch_call
    assert "ops.std(h, axis=-1, ddof=0, keepdims=True)" in guilty.mindspore_call
    assert guilty.cause.startswith("it passes with ops.std(h, axis=-1, ddof=1, keepdims=True)")


@pytest.mark.parametrize(
    ("inputs", "expected"),
    [(["2x3"], True), (["2:int64<3"], False), (["py:0.5"], False),
     (["m=2:bool", "2:float16"], True)],
)  # fmt: skip
def test_which_inputs_have_a_size(inputs: list[str], expected: bool) -> None:
    assert has_floats(inputs) is expected


def test_all_cells_are_looked_at_only_where_the_whole_fails() -> None:
    asked: list[Draw] = []

    def climbed(draw: Draw) -> tuple[Check, ...]:
        asked.append(draw)
        verdict = Verdict.DIVERGED if draw.factor == 10.0 else Verdict.PASS
        return (Check(rung="magnitudes", mode="pynative", torch_path="", verdict=verdict),)

    found = draw_checks([Draw(0.001), Draw(10.0)], climbed)
    assert asked == [Draw(0.001, root_only=True), Draw(10.0, root_only=True), Draw(10.0)]
    assert [check.detail for check in found] == ["inputs times 0.001", "inputs times 10"]


def test_layers_that_are_numbered_from_another_start_are_paired_in_order() -> None:
    def side(names: list[str], kind: str) -> Side:
        weights = tuple(
            Weight(f"{name}.weight", (5, 5, 3, 3), True, True, rank / 2)
            for rank, name in enumerate(names)
        )
        return Side(dict.fromkeys(names, kind), dict.fromkeys(names, "X"), weights, ())

    torch = side(["smooth.0", "smooth.1", "smooth.2"], "conv")
    port = side(["out1", "out2", "out3"], "conv")
    found = {part.key: part.place for part in match(torch, port).parts}
    assert found == {f"smooth.{n}.weight": f"out{n + 1}.weight" for n in range(3)}


def test_a_name_that_is_the_same_counts_for_more_than_its_number() -> None:
    def side(names: list[str]) -> Side:
        weights = tuple(Weight(f"{name}.weight", (4, 4), True, True, 0.5) for name in names)
        return Side(dict.fromkeys(names, "linear"), dict.fromkeys(names, "X"), weights, ())

    found = {p.key: p.place for p in match(side(["fc1", "fc2"]), side(["fc2", "fc1"])).parts}
    assert found == {"fc1.weight": "fc1.weight", "fc2.weight": "fc2.weight"}


def parts_of(torch: dict[str, tuple[int, ...]], port: dict[str, tuple[int, ...]]) -> dict[str, str]:
    def side(weights: dict[str, tuple[int, ...]]) -> Side:
        owners = dict.fromkeys((place.rpartition(".")[0] for place in weights), "")
        held = tuple(Weight(place, shape, True, True, 0.5) for place, shape in weights.items())
        return Side(owners, owners, held, ())

    return {
        f"{part.key}{list(part.torch_rows or ())}": f"{part.place}{list(part.rows or ())}"
        for part in match(side(torch), side(port)).parts
    }


def test_pieces_may_be_of_different_sizes_or_stacked() -> None:
    heads = {"classes.bias": (5,), "boxes.bias": (4,)}
    assert parts_of(heads, {"head.bias": (9,)}) == {
        "classes.bias[]": "head.bias[0, 5]", "boxes.bias[]": "head.bias[5, 9]",
    }  # fmt: skip
    heads = {"classes.weight": (5, 16), "boxes.weight": (4, 16)}
    assert parts_of(heads, {"head.weight": (9, 16), "scale": ()}) == {
        "classes.weight[]": "head.weight[0, 5]", "boxes.weight[]": "head.weight[5, 9]",
    }  # fmt: skip
    experts = {"list.0.weight": (5, 6), "list.1.weight": (5, 6)}
    assert parts_of(experts, {"all.weight": (2, 5, 6)}) == {
        "list.0.weight[]": "all.weight[0, 1]", "list.1.weight[]": "all.weight[1, 2]",
    }  # fmt: skip
    assert parts_of({"all.weight": (2, 5, 6)}, experts) == {
        "all.weight[0, 1]": "list.0.weight[]", "all.weight[1, 2]": "list.1.weight[]",
    }  # fmt: skip


def test_pieces_that_are_no_whole_stay_alone() -> None:
    heads = {"classes.weight": (5, 16), "boxes.weight": (4, 16)}
    assert parts_of(heads, {"head.weight": (8, 16)}) == {}
    assert parts_of({"a": (), "b": (3,)}, {"c": (7,), "d": (2, 2)}) == {}
    assert parts_of(heads, {"head.weight": (9, 12)}) == {}


@pytest.mark.parametrize(("kind", "places"), [("lstm", ["x.bias", "x.bias"]), ("gru", ["x.bias"])])
def test_two_biases_are_one_where_nothing_comes_between_them(kind: str, places: list[str]) -> None:
    """In a GRU one of them stands inside a product with the reset gate."""
    weights = tuple(
        Weight(f"rnn.{name}", shape, True, True, 0.5)
        for name, shape in (("weight_ih_l0", (8, 3)), ("bias_ih_l0", (8,)), ("bias_hh_l0", (8,)))
    )
    torch = Side({"rnn": kind}, {"rnn": "X"}, weights, ())
    own = Weight("x.weight", (8, 3), True, True, 0.5), Weight("x.bias", (8,), True, True, 0.5)
    found = with_sums(match(torch, Side({"x": "linear"}, {"x": "Y"}, own, ())), torch)
    biases = [part for part in found.parts if part.key != "rnn.weight_ih_l0"]
    assert [part.place for part in biases] == places
    assert sum(part.adds for part in biases) == len(places) - 1
    assert len(found.torch_left) == 2 - len(places)


@pytest.mark.parametrize(
    ("build", "cure"),
    [
        ("Layers(pad_mode='valid')", "it passes with pad_mode='pad', padding=(1, 1, 1, 1)"),
        ("Layers(eps=1e-2)", "it passes with eps=1e-05"),
        ("Layers(momentum=0.1)", "it passes with momentum=1 - 0.1 (it weighs the old value here)"),
    ],
)
def test_layers_whose_constructors_are_decorated_are_built_anew_as_well(verified, build, cure):
    result = verified("Layers", build, "3x2x6x6")
    assert result.guilty is not None
    assert result.guilty.cause.startswith(cure), result.guilty.cause


def branch_sides() -> tuple[Side, Side]:
    def side(names: list[str]) -> Side:
        weights = tuple(
            Weight(f"{name}.weight", (4, 4), True, True, rank / len(names))
            for rank, name in enumerate(names)
        )
        return Side(dict.fromkeys(names, "linear"), dict.fromkeys(names, "X"), weights, ())

    return side(["in1", "in2", "out1", "out2"]), side(["a", "b", "c", "d"])


def test_a_layer_is_exchanged_with_one_that_receives_the_numbers_of_its_partner() -> None:
    flow = Flow(*branch_sides())
    pairs = {"in1": "a", "in2": "b", "out1": "c", "out2": "d"}
    parts = [Part(f"{path}.weight", f"{cell}.weight") for path, cell in pairs.items()]
    fits = {"a": ["in1", "in2"], "b": ["in1", "in2"], "c": ["out2"], "d": ["out1"]}
    changed = flow.settled(parts, fits)
    assert changed is not None
    assert flow.couples(changed) == pairs | {"out1": "d", "out2": "c"}
    assert flow.settled(changed, fits) is None
    (other,) = flow.forks(changed, fits)
    assert flow.couples(other) == {"in1": "b", "in2": "a", "out1": "d", "out2": "c"}


def test_what_names_say_is_not_exchanged_away() -> None:
    torch = branch_sides()[0]
    flow = Flow(torch, torch)
    parts = [Part(weight.place, weight.place) for weight in torch.weights]
    fits = {"in1": ["in2"], "in2": ["in1"], "out1": [], "out2": []}
    assert flow.settled(parts, fits) is None
    assert list(flow.forks(parts, {"in1": ["in1", "in2"], "in2": ["in1", "in2"]})) == []


def test_tensors_that_do_not_fit_are_not_exchanged() -> None:
    one, other = branch_sides()
    weights = (*other.weights[:3], Weight("d.weight", (4, 5), True, True, 0.9))
    flow = Flow(one, Side(other.kinds, other.classes, weights, ()))
    pairs = {"in1": "a", "in2": "b", "out1": "c", "out2": "d"}
    parts = [Part(f"{path}.weight", f"{cell}.weight") for path, cell in pairs.items()]
    assert flow.settled(parts, {"c": ["out2"], "d": ["out1"]}) is None
