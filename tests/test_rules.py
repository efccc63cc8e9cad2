"""Rules register themselves: their order, conflicts at start-up and in a file, their examples."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from test_rewriting import cases

from migrate.engine.examples import Ran, failures, run
from migrate.mapping import table
from migrate.records.outcomes import Problem
from migrate.rules import registry
from migrate.rules.registry import OURS, Examples, Registered, Stage, decides, ordered
from migrate.sites.references import Form


def nothing(scene: object, node: ast.AST, name: str) -> None:
    """Decide nothing."""


def rule(name: str, **changes: Any) -> Registered:
    usual: dict[str, Any] = {"forms": frozenset((Form.NAME,)), "file": f"{name}.py"}
    return Registered(name, Stage.DECIDES, nothing, **{**usual, **changes})


def names(*rules: Registered) -> list[str]:
    return [one.name for one in ordered(rules).rules]


def test_rules_of_one_place_need_an_order() -> None:
    with pytest.raises(Problem, match="a and b claim the same places, and declare no order"):
        ordered((rule("a"), rule("b")))
    assert names(rule("a"), rule("b", before=("a",))) == ["b", "a"]
    assert names(rule("a", after=("b",)), rule("b")) == ["b", "a"]
    # an order over a third one is an order
    assert names(rule("a", after=("b",)), rule("c", before=("b",)), rule("b")) == ["c", "b", "a"]


def test_rules_of_other_places_need_none() -> None:
    one, other = frozenset(("torch.abs",)), frozenset(("torch.relu",))
    assert names(rule("a", names=one), rule("b", names=other)) == ["a", "b"]
    assert names(rule("a"), rule("b", forms=frozenset((Form.MEMBER,)))) == ["a", "b"]
    with pytest.raises(Problem, match="claim the same places"):
        ordered((rule("a", names=one), rule("b", names=one | other)))


def test_an_order_that_cannot_be() -> None:
    with pytest.raises(Problem, match="the declared orders are a circle"):
        ordered((rule("a", before=("b",)), rule("b", before=("a",))))
    with pytest.raises(Problem, match=r"a\.py: no such rule: its order names 'c'"):
        ordered((rule("a", before=("c",)),))
    with pytest.raises(Problem, match="two rules have one name"):
        ordered((rule("a"), rule("a")))


def test_a_rule_of_a_user_may_precede_or_follow_all_of_ours() -> None:
    torch_abs = frozenset(("torch.abs",))
    for order, first in (({"before": (OURS,)}, True), ({"after": (OURS,)}, False)):
        rules = registry.ours().with_rules((rule("user", names=torch_abs, **order),))
        asked = [r.name for r in rules.deciding(Form.NAME, "torch.abs")]
        # what is gone with its branch comes first in any case
        assert asked[0] == "graph.flags.never_run"
        assert asked.index("user") == (1 if first else len(asked) - 1)
    with pytest.raises(Problem, match=r"user and .* claim the same places"):
        registry.ours().with_rules((rule("user", names=torch_abs),))


def test_a_decorator_registers_and_leaves_the_function_as_it_is() -> None:
    function: Callable[..., Any] = decides(Form.NAME, before=("references",))(nothing)
    assert function is nothing
    made = nothing.registered  # type: ignore[attr-defined]
    assert isinstance(made, Registered)
    assert (made.purpose, made.before) == ("Decide nothing.", ("references",))


def test_every_form_has_a_rule() -> None:
    decided = {form for one in registry.ours().of(Stage.DECIDES) for form in one.forms
               if one.name != "graph.flags.never_run"}  # fmt: skip
    assert set(Form) - decided == {Form.STATEMENT}


def test_no_rule_is_named_outside_its_file() -> None:
    """The engine reads the registry; it knows the names of no rules."""
    plan = Path(registry.__file__).parents[1] / "engine" / "plan.py"
    text = plan.read_text(encoding="utf-8")
    assert not [one.name for one in registry.ours().rules if f"{one.name}(" in text]


# -- examples -------------------------------------------------------------------------------------

# rules that need packages to convert along, and the tests that have them
FOLLOWED = "vendoring/test_following.py"
FOLLOWING = {"imports.advised": FOLLOWED, "imports.decide_along": FOLLOWED}


@cache
def rows() -> table.Table:
    return table.load()


@cache
def ran(name: str) -> Ran:
    """The conversion of a case."""
    case = next(one for one in cases() if one.name == name)
    return run(case.before, registry.ours(), rows())


def shown(name: str) -> tuple[list[Ran], list[Ran]]:
    """What a rule does in the cases that name it, and in those that it leaves alone."""
    acts = [ran(case.name) for case in cases() if name in case.by]
    return acts, [ran(case.name) for case in cases() if name in case.spares]


@pytest.mark.parametrize("rule", registry.ours().rules, ids=lambda rule: rule.name)
def test_every_rule_has_examples_and_does_what_they_say(rule: Registered) -> None:
    if rule.name in FOLLOWING:
        assert (Path(__file__).parent / FOLLOWING[rule.name]).is_file()
        return
    assert rule.purpose, f"{rule.name}: what is it for?"
    acts, spares = shown(rule.name)
    own = rule.examples
    assert acts or own.becomes or own.flagged, f"{rule.name} has no example of what it does"
    assert spares or own.stays, f"{rule.name} has no example of what it leaves alone"
    assert all(one.of(rule.name) for one in acts)
    assert not [one for one in spares if one.acts(rule.name)]
    assert not list(failures(rule, registry.ours(), rows()))
    if rule.name in REFUSING:
        assert own.flagged or any(one.flags(rule.name) for one in acts), f"{rule.name}: flagged?"


# rules whose code makes a Refusal
REFUSING = frozenset(
    one.name for one in registry.ours().rules
    if one.stage is not Stage.REWRITES and "Refusal(" in inspect.getsource(inspect.unwrap(one.run))
)  # fmt: skip


def test_cases_name_rules_that_exist() -> None:
    known = {one.name for one in registry.ours().rules}
    assert {name for case in cases() for name in (*case.by, *case.spares)} <= known


def test_a_rule_with_wrong_examples_fails() -> None:
    wrong = Examples((("z = x.sum(dim=1)", "z = x.sum(dim=1)"),), ("z = x.sum(dim=1)",), ("z = n",))
    found = replace(next(r for r in registry.ours().rules if r.name == "members.decide"))
    said = list(failures(replace(found, examples=wrong), registry.ours(), rows()))
    assert len(said) == 3
    assert "does not become" in said[0] and "does not stay" in said[1] and "not flagged" in said[2]
