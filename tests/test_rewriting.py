"""In: tests/rewriting_cases. Out: each source becomes what its case says, stays, or is flagged."""

from __future__ import annotations

import ast
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from migrate.codegen import helper_copy
from migrate.engine import rewrite
from migrate.engine.rewrite import Options, Rewritten
from migrate.mapping import table
from migrate.records.outcomes import Outcome, announced
from migrate.syntax.source import read

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    import tomli as tomllib

FOLDER = Path(__file__).parent / "rewriting_cases"


@dataclass(frozen=True)
class Case:
    """``must`` is become, stay or flag; it is an example of the rules ``by`` which that happens.

    ``spares``: rules of which it shows what they leave alone.
    """

    name: str
    must: str
    before: str
    after: str = ""
    codes: tuple[str, ...] = ()
    lines: tuple[int, ...] = ()
    by: tuple[str, ...] = ()
    spares: tuple[str, ...] = ()


@cache
def cases() -> list[Case]:
    return [
        Case(**{k: tuple(v) if isinstance(v, list) else v for k, v in entry.items()})
        for path in sorted(FOLDER.glob("*.toml"))
        for entry in tomllib.loads(path.read_text(encoding="utf-8"))["case"]
    ]


def marked(case: Case) -> object:
    return pytest.param(case, id=case.name)


@cache
def rows() -> table.Table:
    return table.load(())


def converted(text: str) -> Rewritten:
    source = read("module.py", text.encode())
    return rewrite.convert(rewrite.analyse({source.path: source}, rows()), source.path, Options())


def without_helpers(made: Rewritten) -> str:
    """The text after the helpers that were copied into it; all of it when there are none."""
    text = made.data.decode()
    names = set(helper_copy.bound(sorted(made.helpers))) if made.helpers else set()
    ends = [n.end_lineno for n in ast.parse(text).body if getattr(n, "name", "") in names]
    return "".join(text.splitlines(True)[max(ends, default=0) :])


def test_half_of_the_cases_stay_or_are_flagged() -> None:
    kinds = Counter("stay" if case.spares else case.must for case in cases())
    assert set(kinds) == {"become", "stay", "flag"}
    assert kinds["stay"] + kinds["flag"] >= kinds["become"], kinds


def test_names_are_given_once() -> None:
    counts = Counter(case.name for case in cases())
    assert max(counts.values()) == 1, counts.most_common(1)


@pytest.mark.parametrize("case", [marked(c) for c in cases() if c.must != "flag"])
def test_becomes_or_stays(case: Case) -> None:
    made = converted(case.before)
    wanted = case.after or case.before
    if made.helpers:  # as many blank lines as Python asks for after a definition
        wanted = "\n\n" + wanted.lstrip("\n")
    assert without_helpers(made) == wanted
    assert not [e for e in made.entries if e.outcome is Outcome.FLAGGED]


@pytest.mark.parametrize("case", [marked(c) for c in cases() if c.must == "flag"])
def test_is_flagged(case: Case) -> None:
    made = converted(case.before)
    flagged = [e for e in made.entries if e.outcome is Outcome.FLAGGED]
    assert flagged
    if case.codes:
        assert {e.code for e in flagged} == set(case.codes)
        assert {e.line for e in flagged} == set(case.lines)
    for entry in flagged:
        assert f"# {announced(entry.code)}: " in made.data.decode()
        assert entry.reason


@pytest.mark.parametrize("case", cases(), ids=lambda c: c.name)
def test_the_ledger_adds_up(case: Case) -> None:
    made = converted(case.before)
    assert made.ledger.adds_up
    assert made.ledger.total == len(made.entries)
    assert not [e for e in made.entries if e.code == "INT901"]  # the output checks itself
    counts = Counter(e.outcome for e in made.entries)
    assert counts[Outcome.FLAGGED] == made.ledger.flagged
    assert counts[Outcome.CONVERTED] == made.ledger.converted


@pytest.mark.parametrize("case", cases(), ids=lambda c: c.name)
def test_a_second_conversion_changes_nothing(case: Case) -> None:
    once = converted(case.before).data.decode()
    compile(once, "module.py", "exec")
    assert converted(once).data.decode() == once


def test_a_wrong_expectation_goes_red() -> None:
    """The comparison sees a difference of one character."""
    case = next(c for c in cases() if c.must == "become")
    assert without_helpers(converted(case.before)) != case.after + " "


def test_two_blank_lines_follow_the_helpers() -> None:
    text = "import torch\nx = torch.nn.BatchNorm2d(3, track_running_stats=False)\n"
    assert without_helpers(converted(text)) == text.replace("import torch", "\n").replace(
        "torch.nn.", ""
    )
