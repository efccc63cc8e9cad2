"""In: ports written by hand, right and wrong. Out: right ones pass, wrong ones name their fault."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from migrate.parity.hand.inventory import Side, Weight
from migrate.parity.hand.matching import Part, layouts, match, read, text
from migrate.parity.hand.port import Pair, verify_pair
from migrate.parity.request import VerifyRequest, is_address, parse_address
from migrate.parity.session import Sides, opened_sides
from migrate.records.outcomes import Verdict

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

HERE = Path(__file__).parents[1] / "hand_ports"
PORTS: dict[str, Any] = tomllib.loads((HERE / "ports.toml").read_text(encoding="utf-8"))
RIGHT = (Verdict.PASS, Verdict.KERNEL, Verdict.NONDET)


def cases() -> Iterator[Any]:
    for name, row in PORTS.items():
        marks = () if row.get("fast") else (pytest.mark.slow,)
        for build in row["right"]:
            yield pytest.param(row, build, None, id=f"{name}-{build}", marks=marks)
        for build, fault in row.get("wrong", {}).items():
            yield pytest.param(row, build, fault, id=f"{name}-{build}", marks=marks)


@pytest.fixture(scope="module")
def sides() -> Iterator[Sides]:
    with opened_sides(VerifyRequest(Path(), Path())) as (opened,):
        yield opened


@pytest.mark.parametrize(("row", "build", "fault"), list(cases()))
def test_port(sides: Sides, row: Any, build: str, fault: Any) -> None:
    module = row["ms"].partition(":")[0]
    pair = Pair(parse_address(row["torch"]), parse_address(f"{module}:{build}"), (str(HERE),))
    request = VerifyRequest(Path(), Path(), inputs=tuple(row["input"]))
    result, mapping = verify_pair(sides, pair, request, lambda line: None)
    said = result.model_dump_json(include={"verdict", "guilty", "rungs"}, indent=1)
    assert mapping
    if fault is None:
        assert result.verdict in RIGHT, said
        assert any(row.get("unsure", "") in line for line in (*result.ambiguous, "")), said
        assert result.guilty is None
        return
    assert result.verdict not in RIGHT, said
    assert result.guilty is not None
    assert result.guilty.rung == fault["rung"], said
    assert result.guilty.mindspore == fault.get("cell", result.guilty.mindspore), said
    assert result.guilty.torch == fault.get("torch", result.guilty.torch), said
    assert result.verdict.value == fault.get("verdict", result.verdict.value), said


def side(kinds: dict[str, str], *weights: tuple[str, tuple[int, ...]]) -> Side:
    rows = tuple(
        Weight(place, shape, True, True, number / len(weights))
        for number, (place, shape) in enumerate(weights)
    )
    return Side(kinds, dict.fromkeys(kinds, "X"), rows, ())


def pairs(torch: Side, mindspore: Side) -> dict[str, tuple[str, str]]:
    return {part.key: (part.place, part.layout) for part in match(torch, mindspore).parts}


def test_names_decide_where_shapes_do_not() -> None:
    linear = {"q": "linear", "k": "linear"}
    torch = side(linear, ("q.weight", (4, 4)), ("k.weight", (4, 4)))
    swapped = side({"key": "linear", "query": "linear"}, ("key.weight", (4, 4)),
                   ("query.weight", (4, 4)))  # fmt: skip
    assert pairs(torch, swapped) == {
        "q.weight": ("query.weight", ""), "k.weight": ("key.weight", ""),
    }  # fmt: skip


def test_order_decides_where_names_do_not() -> None:
    torch = side({"a": "linear", "b": "linear"}, ("a.weight", (4, 4)), ("b.weight", (4, 4)))
    other = side({"0": "linear", "1": "linear"}, ("0.weight", (4, 4)), ("1.weight", (4, 4)))
    assert pairs(torch, other) == {"a.weight": ("0.weight", ""), "b.weight": ("1.weight", "")}


def test_a_bias_follows_its_matrix() -> None:
    kinds = {"output": "linear", "out": "linear"}
    torch = side(kinds, ("output.weight", (4, 4)), ("output.bias", (4,)),
                 ("out.weight", (4, 8)), ("out.bias", (4,)))  # fmt: skip
    port = side({"dense": "linear", "output": "linear"}, ("dense.weight", (4, 4)),
                ("dense.bias", (4,)), ("output.weight", (4, 8)), ("output.bias", (4,)))  # fmt: skip
    found = pairs(torch, port)
    assert found["output.bias"] == ("dense.bias", "")
    assert found["out.bias"] == ("output.bias", "")


def test_pieces_of_one_matrix() -> None:
    torch = side({"attn": "attention"}, ("attn.in_proj_weight", (12, 4)))
    port = side(dict.fromkeys("vkq", "linear"), ("v.weight", (4, 4)), ("k.weight", (4, 4)),
                ("q.weight", (4, 4)))  # fmt: skip
    found = {part.place: part.torch_rows for part in match(torch, port).parts}
    assert found == {"q.weight": (0, 4), "k.weight": (4, 8), "v.weight": (8, 12)}


def test_what_does_not_fit_stays_alone() -> None:
    torch = side({"a": "linear"}, ("a.weight", (4, 6)))
    port = side({"b": "conv"}, ("b.weight", (5, 7)))
    matching = match(torch, port)
    assert not matching.parts
    assert [w.place for w in matching.torch_left] == ["a.weight"]
    assert [w.place for w in matching.mindspore_left] == ["b.weight"]


@pytest.mark.parametrize(
    ("one", "other", "native", "expected"),
    [
        ((8, 3, 5), (8, 3, 1, 5), False, ("reshape(8, 3, 1, 5)",)),
        ((4, 6), (6, 4), False, ("t()",)),
        ((4, 4), (4, 4), False, ("", "t()")),
        ((4, 4), (4, 4), True, ("",)),
        ((4, 6), (6, 5), False, ()),
        ((2, 3, 4), (4, 6), True, ()),
    ],
)
def test_layouts(
    one: tuple[int, ...], other: tuple[int, ...], native: bool, expected: tuple[str, ...]
) -> None:
    weights = Weight("a.w", one, True, True), Weight("b.w", other, True, True)
    assert layouts(*weights, native) == expected


def test_a_mapping_file_says_what_was_found(tmp_path: Path) -> None:
    parts = (
        Part("a.weight", "b.weight"), Part("c.w", "d", "t()"),
        Part("e", "f", torch_rows=(0, 4)), Part("e", "g", rows=(4, 8), axis=1),
    )  # fmt: skip
    path = tmp_path / "x.map.toml"
    path.write_text(text({"": "", "a": "b"}, parts, [("a.weight", ("z",))]), encoding="utf-8")
    assert "unsure: or z" in path.read_text(encoding="utf-8")
    fixed = read(path)
    assert fixed.parts == parts
    assert fixed.cells == {"a": "b"}


def test_a_mapping_file_that_is_wrong_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.map.toml"
    path.write_text('[weights]\na = { too = "b" }\n', encoding="utf-8")
    with pytest.raises(Exception, match="a part has the keys"):
        read(path)


def test_addresses() -> None:
    assert parse_address("pkg.net:Net(10, act='relu')").build == "Net(10, act='relu')"
    assert is_address("net:Net")
    for text_ in ("out/net.py", "out", "net:", ":Net", "a b:Net"):
        assert not is_address(text_)
    with pytest.raises(ValueError, match="not a Python expression"):
        parse_address("net:Net(")
