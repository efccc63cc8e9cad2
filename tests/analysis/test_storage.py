"""The lattice of shared storage: paths that are not told apart, and what is put at their end."""

from __future__ import annotations

from itertools import product

from migrate.analysis.storage import (
    DEEPEST,
    MANY_FIELDS,
    NO_REFS,
    REST,
    SHALLOW,
    Ref,
    Refs,
    State,
    is_rest,
    path_of,
    regions,
)

NAMES = tuple("abcdefgh")


def given(name: str) -> Refs:
    return frozenset((Ref(("param", name)),))


def followed(state: State, held: Refs, *names: str) -> Refs:
    for name in names:
        held = state.get(held, name)
    return held


def test_an_attribute_that_comes_again_is_not_told_apart() -> None:
    state = State()
    below = followed(state, given("node"), "below", "value")
    assert {path_of(r.region) for r in below} == {("node", "below", "value")}
    again = followed(state, given("node"), "below", "below")
    assert all(is_rest(r.region) for r in again)
    assert regions(followed(state, again, "below", "value")) == regions(again)


def test_elements_of_elements_are_told_apart_and_no_deeper_ones() -> None:
    state = State()
    deeper = followed(state, given("rows"), "[]", "['x']")
    assert {path_of(r.region) for r in deeper} == {("rows", "[]", "['x']")}
    assert all(is_rest(r.region) for r in state.get(deeper, "[]"))


def test_as_many_paths_as_there_are_names_do_not_grow_with_their_length() -> None:
    state = State()
    for names in product(NAMES, repeat=4):
        followed(state, given("x"), *names)
    told_apart = MANY_FIELDS + len(NAMES) ** SHALLOW + len(NAMES)
    assert len(state.fields) < 2 * told_apart < len(NAMES) ** 4  # each may have a rest
    assert max(len(path_of(region)) for region in state.fields) <= 1 + DEEPEST + 1


def test_a_write_below_reaches_what_was_told_apart_and_the_other_way_round() -> None:
    state = State()
    known = followed(state, given("x"), "a", "b")
    rest = state.get(state.get(given("x"), "a"), REST)
    beside = state.get(given("x"), "b")
    state.names |= {"known": known, "rest": rest, "beside": beside}
    state.write(rest, 1)
    assert {r.stale for r in state.names["known"]} == {1}
    assert {r.stale for r in state.names["beside"]} == {0}
    other = State()
    other.names["rest"] = other.get(other.get(given("x"), "a"), REST)
    other.write(followed(other, given("x"), "a", "b"), 2)
    assert 2 in {r.stale for r in other.names["rest"]}


def test_what_is_put_somewhere_below_is_found_under_every_name() -> None:
    state = State()
    value = frozenset((state.make("value"),))
    assert not value & followed(state, given("x"), "a", "b")
    state.put(state.get(given("x"), "a"), REST, value)
    for names in (("a", "b"), ("a", "c"), ("a", "b", "d"), ("a", "[]")):
        assert value <= followed(state, given("x"), *names)
    assert not value & followed(state, given("x"), "c")
    assert value <= state.reach(given("x"))
    assert state.reach(NO_REFS) == NO_REFS
