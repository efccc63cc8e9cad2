"""In: names and codes. Out: whether explain says what becomes of them, why, how it was proved."""

from __future__ import annotations

from functools import cache

import pytest

from migrate.evidence.store import RowEvidence
from migrate.explain import explain, explain_code, is_code
from migrate.explain.names import flags, full_name, page
from migrate.explain.page import differences
from migrate.mapping.table import Table, is_pattern, load
from migrate.records.outcomes import Problem


@cache
def rows() -> Table:
    return load()


def said(name: str, recorded: dict[str, RowEvidence] | None = None) -> str:
    return "\n".join(explain(name, rows(), recorded if recorded is not None else {}))


def row_differences(key: str) -> list[str]:
    row = rows().row(key)
    assert row is not None
    return list(differences(row, rows()))


@pytest.mark.parametrize("kind", ["function", "class", "method", "property", "constant", "module"])
def test_every_public_name_resolves(kind: str) -> None:
    names = [name for name in rows().torch.names if rows().kind(name) == kind]
    assert names
    for name in names:
        lines = list(explain(name, rows(), {}, examples=False))
        assert lines[0].split("  (")[0] == name
        assert len(lines) > 1, f"{name}: nothing is said of it"
        assert "no row" not in "\n".join(lines), name


def test_a_row_and_its_example_from_the_case() -> None:
    text = said("torch.amax")
    assert "torch:     (input: Tensor, dim: int[]=(), keepdim: bool=False" in text
    assert "MindSpore: mindspore.ops.amax(input, axis=None, keepdims=False" in text
    assert "      -     return torch.amax(x0)" in text
    assert "      +     return ops.amax(x0, ())" in text


def test_an_example_with_a_helper_names_it() -> None:
    text = said("torch.addmm")
    assert "+     return addmm(x0, x1, x2)" in text
    assert "copied along: addmm" in text


def test_differences_with_their_size() -> None:
    found = row_differences("torch.nn.LayerNorm")
    assert "eps is called epsilon" in found
    assert any("1e-05, MindSpore's 1e-07 (100 times as small)" in line for line in found)
    assert "momentum is given 1 - momentum" in row_differences("torch.nn.BatchNorm2d:momentum")
    assert any(
        line.startswith("pad_mode='valid' is written: MindSpore's default is 'same'")
        for line in row_differences("torch.nn.Conv2d")
    )


def test_no_difference_where_there_is_none() -> None:
    assert not row_differences("torch.nn.functional.relu6")


def test_evidence_is_said_plainly() -> None:
    key = "torch.nn.functional.relu6"
    assert "evidence: not executed" in said(key)
    old = RowEvidence(key, "PASS", "0" * 64, calls=2, elements=48, modes=("pynative",))
    assert "evidence: stale, the row has changed since" in said(key, {key: old})


def test_a_flagged_name_claims_no_evidence() -> None:
    text = said("torch.compile" if rows().rows("torch.compile") else "torch.fx.Graph")
    assert "evidence:" not in said("torch.fx.Graph")
    assert "torch.fx.* answers for all names like it" in said("torch.fx.Graph")
    assert text


def test_mint_is_shown_as_not_executed() -> None:
    assert "mint:    mindspore.mint.nn.Conv2d(" in said("torch.nn.Conv2d")
    assert "not executed here, checked by signature" in said("torch.nn.Conv2d")


@pytest.mark.parametrize(
    ("short", "full"),
    [
        ("Conv2d", "torch.nn.Conv2d"),
        ("nn.Conv2d", "torch.nn.Conv2d"),
        ("F.relu", "torch.nn.functional.relu"),
        ("Tensor.view", "torch.Tensor.view"),
        ("view", "torch.Tensor.view"),
        ("torch.clip", "torch.clip"),
    ],
)
def test_names_without_their_namespace(short: str, full: str) -> None:
    assert full_name(short, rows()) == full


@pytest.mark.parametrize(
    ("wrong", "near"),
    [
        ("conv2d_", "torch.conv2d"),
        ("torch.nn.conv2d", "torch.nn.Conv2d"),
        ("torch.nn.BatchNorm2", "torch.nn.BatchNorm2d"),
        ("torch.Tensor.adddmm", "torch.Tensor.addmm"),
    ],
)
def test_did_you_mean(wrong: str, near: str) -> None:
    with pytest.raises(Problem) as raised:
        full_name(wrong, rows())
    assert near in raised.value.next_step


def test_a_name_like_nothing() -> None:
    with pytest.raises(Problem) as raised:
        full_name("qqqqqqqqqq", rows())
    assert "give the full name" in raised.value.next_step


def test_in_place_methods_and_members() -> None:
    assert "in place" in said("torch.Tensor.add_").splitlines()[0]
    assert "inherited from torch.nn.Module" in said("torch.nn.Conv2d.parameters")
    assert "a namespace of" in said("torch.nn.functional")


def test_every_documented_code_is_explained() -> None:
    known = flags(page())
    assert len(known) > 25
    for code, flag in known.items():
        lines = list(explain_code(code, rows()))
        assert flag.topic, code
        assert lines[0] == f"{code}  {flag.topic}"
        assert any("  means:     " in line and len(line) > 20 for line in lines)


def test_codes_of_rows_name_the_rows() -> None:
    text = "\n".join(explain_code("opt401", rows()))
    assert "always on: " in text
    assert "torch.optim." in text
    assert "it depends on the place" in "\n".join(explain_code("INP203", rows()))


def test_a_code_that_does_not_exist() -> None:
    with pytest.raises(Problem) as raised:
        list(explain_code("API194", rows()))
    assert "did you mean API1" in raised.value.next_step
    assert not is_code("Conv2d")
    assert is_code("api104")


def test_patterns_are_no_names_to_explain() -> None:
    assert not any(is_pattern(name) for name in rows().torch.names)


def test_the_command(run) -> None:
    done = run("explain", "GELU")
    assert done.code == 0
    assert done.out.startswith("torch.nn.GELU\n")
    assert run("explain", "API104").out.startswith("API104  ")
    assert run("explain", "no_such_thing_at_all").code == 2
