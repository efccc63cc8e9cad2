"""Register rules: what each looks for, in which order they are asked, and its examples.

A rule is a function with one of four decorators. ``decides`` gives an edit or a refusal for one
reference, or None where the next rule is asked; ``revises`` changes such a decision; ``rewrites``
yields edits of a whole file; ``by_row`` decides the calls of rows that name it.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cache, cached_property
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from typing import Any, TypedDict, TypeVar

from typing_extensions import Unpack

from migrate.records.outcomes import Problem
from migrate.sites.references import Form

OURS = "torch2ms"  # stands for all rules of this package in ``before`` and ``after``
EVERY = "*"  # and those of users
_PACKAGE = "migrate.rules."
Function = TypeVar("Function", bound=Callable[..., Any])


class Stage(Enum):
    """What a rule is given."""

    DECIDES = "one reference"
    REVISES = "the decision about a reference"
    REWRITES = "a whole file"
    BY_ROW = "a call whose row names the rule"


@dataclass(frozen=True)
class Examples:
    """What a rule is for, in its own file; cases of tests/rewriting_cases may name it as well.

    ``becomes``: (before, after); ``stays`` and ``flagged``: code. Lines that are no definitions
    are the body of a function with the parameters ``x, y: torch.Tensor, n: int, parts: list``.
    """

    becomes: tuple[tuple[str, str], ...] = ()
    stays: tuple[str, ...] = ()
    flagged: tuple[str, ...] = ()


class Declared(TypedDict, total=False):
    """The declared order (names of rules, of modules of rules, or OURS) and the examples."""

    before: tuple[str, ...]
    after: tuple[str, ...]
    becomes: tuple[tuple[str, str], ...]
    stays: tuple[str, ...]
    flagged: tuple[str, ...]


@dataclass(frozen=True)
class Registered:
    """A rule. ``names``: the torch names that it looks for, () for any of its ``forms``.

    ``file``: the file of a user's rule, "" for ours. ``purpose``: what its docstring begins with.
    """

    name: str
    stage: Stage
    run: Callable[..., Any]
    forms: frozenset[Form] = frozenset()
    names: frozenset[str] = frozenset()
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    examples: Examples = field(default_factory=Examples)
    file: str = ""
    purpose: str = ""

    def wants(self, form: Form, name: str) -> bool:
        """Return whether it looks for references of a form and torch name."""
        return form in self.forms and (not self.names or name in self.names)

    def is_called(self, name: str) -> bool:
        """Return whether ``before`` or ``after`` means it by a name."""
        if name == EVERY:
            return True
        if name == OURS:
            return not self.file and EVERY not in self.before
        return name == self.name or self.name.startswith(f"{name}.")

    def competes(self, other: Registered) -> bool:
        """Return whether both may claim one place, so that one has to be asked first."""
        if self.stage is not other.stage or self.stage in (Stage.REWRITES, Stage.BY_ROW):
            return False  # two edits of one text are found when a file is written
        if self.stage is Stage.REVISES:
            return True
        named = not self.names or not other.names or self.names & other.names
        return bool(named and self.forms & other.forms)


def decides(
    *forms: Form, names: Iterable[str] = (), **declared: Unpack[Declared]
) -> Callable[[Function], Function]:
    """Register ``(scene, node, name) -> Edit | Refusal | None`` for references of some forms."""
    return _registering(Stage.DECIDES, declared, forms=frozenset(forms), names=frozenset(names))


def revises(**declared: Unpack[Declared]) -> Callable[[Function], Function]:
    """Register ``(scene, node, decision) -> decision``."""
    return _registering(Stage.REVISES, declared)


def rewrites(**declared: Unpack[Declared]) -> Callable[[Function], Function]:
    """Register ``(scene) -> Iterable[Edit]``."""
    return _registering(Stage.REWRITES, declared)


def by_row(name: str, **declared: Unpack[Declared]) -> Callable[[Function], Function]:
    """Register ``(scene, site, call, receiver, chosen) -> Edit | Refusal`` for ``rule = name``."""
    return _registering(Stage.BY_ROW, declared, names=frozenset((name,)))


def _registering(stage: Stage, declared: Declared, **claim: Any) -> Callable[[Function], Function]:
    def register(function: Function) -> Function:
        shown = {k: v for k, v in declared.items() if k not in ("before", "after")}
        rule = Registered(
            f"{function.__module__.removeprefix(_PACKAGE)}.{function.__name__}", stage, function,
            before=declared.get("before", ()), after=declared.get("after", ()),
            examples=Examples(**shown), **claim,  # type: ignore[arg-type]
            purpose=" ".join((function.__doc__ or "").partition("\n\n")[0].split()),
        )  # fmt: skip
        function.registered = rule  # type: ignore[attr-defined]
        return function

    return register


@dataclass(frozen=True)
class Registry:
    """Rules in the order in which they are asked; made by ``ordered``."""

    rules: tuple[Registered, ...]

    @cached_property
    def _deciding(self) -> dict[tuple[Form, str], tuple[Registered, ...]]:
        return {}

    def deciding(self, form: Form, name: str) -> tuple[Registered, ...]:
        """The rules that are asked about a reference, the first one first."""
        known = self._deciding.get((form, name))
        if known is None:
            rules = self.of(Stage.DECIDES)
            known = self._deciding[form, name] = tuple(r for r in rules if r.wants(form, name))
        return known

    @cached_property
    def _stages(self) -> Mapping[Stage, tuple[Registered, ...]]:
        return {s: tuple(r for r in self.rules if r.stage is s) for s in Stage}

    def of(self, stage: Stage) -> tuple[Registered, ...]:
        """The rules of a stage."""
        return self._stages[stage]

    def named(self, row_rule: str) -> Registered:
        """The rule that rows call by a name."""
        return next(r for r in self.of(Stage.BY_ROW) if row_rule in r.names)

    def with_rules(self, more: Iterable[Registered]) -> Registry:
        """Return these rules and others."""
        return ordered((*self.rules, *more))


def ordered(rules: Iterable[Registered]) -> Registry:
    """Put rules into their declared order.

    Raises:
        Problem: two rules claim one place and declare no order, or orders contradict each other.
    """
    every = sorted(rules, key=lambda rule: rule.name)
    earlier: dict[str, set[str]] = {rule.name: set() for rule in every}
    if len(earlier) < len(every):
        twice = next(a for a, b in pairwise(every) if a.name == b.name)
        raise _wrong(twice, "two rules have one name", twice.name, "rename one of them")
    for rule in every:
        for other in _named(rule, rule.before, every):
            earlier[other.name].add(rule.name)
        earlier[rule.name].update(other.name for other in _named(rule, rule.after, every))
    try:
        sequence = list(TopologicalSorter(earlier).static_order())
    except CycleError as error:
        one = next(rule for rule in every if rule.name == error.args[1][0])
        why = " before ".join(reversed(error.args[1]))
        raise _wrong(one, "the declared orders are a circle", why, "take one out") from None
    before: dict[str, set[str]] = {}
    for name in sequence:
        direct = earlier[name]
        before[name] = direct.union(*(before[other] for other in direct))
    for first, second in _pairs(every):
        known = first.name in before[second.name] or second.name in before[first.name]
        if first.competes(second) and not known:
            user, other = (second, first) if second.file and not first.file else (first, second)
            why = f"{user.name} and {other.name} claim the same places, and declare no order"
            step = f"give {user.name} before = ({other.name!r},) or after = ({other.name!r},)"
            raise _wrong(user, "conflict of rules", why, step)
    by_name = {rule.name: rule for rule in every}
    return Registry(tuple(by_name[name] for name in sequence))


def _pairs(rules: list[Registered]) -> Iterator[tuple[Registered, Registered]]:
    return ((a, b) for place, a in enumerate(rules) for b in rules[place + 1 :])


def _named(rule: Registered, names: Iterable[str], every: list[Registered]) -> Iterator[Registered]:
    for name in names:
        found = [other for other in every if other.is_called(name) and other is not rule]
        if not found:
            why = f"its order names {name!r}"
            raise _wrong(rule, "no such rule", why, "torch2ms rules lists their names")
        yield from found


def _wrong(rule: Registered, what: str, why: str, step: str) -> Problem:
    return Problem(rule.file or f"rule {rule.name}", what, why, step)


@cache
def ours() -> Registry:
    """Import every module of this package, and return the rules that are defined in them."""
    package = importlib.import_module(_PACKAGE.rstrip("."))
    found = pkgutil.walk_packages(package.__path__, _PACKAGE)
    modules = [importlib.import_module(module.name) for module in found]
    return ordered(
        rule
        for module in modules
        for value in vars(module).values()
        if isinstance(rule := getattr(value, "registered", None), Registered)
        and value.__module__ == module.__name__
    )


def claimed(decision: Any, rule: Registered) -> Any:
    """Return an edit or refusal with the name of the rule that made it."""
    return decision if decision is None or decision.rule else replace(decision, rule=rule.name)
