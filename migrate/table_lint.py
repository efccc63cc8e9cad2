"""In: a Table. Out: the Problems of its rows and cases, each with what, why and what to do next."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from migrate.ref_lint import lint_ref
from migrate.row import CASE_KEYS, CODES, POLICY_DROP, POLICY_REFUSE, ROW_KEYS, Row, TableError
from migrate.table import Table, is_pattern, read_toml
from migrate.template_lint import Finding, argument_uses, lint_template, torch_arguments

DECISIONS = ("to", "rule", "flag")
WHEN = frozenset(
    {
        *("given", "omitted", "literal", "list without None", "holding 0"),
        *("int", "float", "bool", "str", "tuple", "list", "None", "dtype", "device", "Tensor"),
        *("plain list", "number", "numbers", "selection", "made whole"),
        *("data", "Size", "ref", "range"),
    }
)

# what makes a row mean something else than it says
_FATAL = ("keys", "format", "decision", "templates")


@dataclass(frozen=True)
class Problem:
    """One broken promise of the table: where it stands, what is wrong, why, what next."""

    lint: str
    file: str
    key: str
    what: str
    why: str
    next_step: str

    @property
    def message(self) -> str:
        return f"{self.file}: {self.key}: {self.what} ({self.why}); {self.next_step}"


def lint(table: Table, rules: Path | None = None) -> tuple[Problem, ...]:
    """All problems of a table, in the order of its files. ``rules``: the rule functions."""
    rules = rules or Path(__file__).resolve().parent / "rules"
    known = _rule_functions(rules)
    found = [*_orders(table), *_case_problems(table)]
    for key in table.raw:
        found += _of_key(table, key, known)
    return tuple(found)


def broken(table: Table, files: Collection[Path]) -> tuple[Problem, ...]:
    """What a user's rows say that would be passed over: unknown keys, arguments, decisions."""
    keys = [key for key in table.raw if table.files[key] in files]
    return tuple(
        problem
        for key in keys
        for problem in _of_key(table, key, frozenset())
        if problem.lint in _FATAL
    )


def _of_key(table: Table, key: str, rules: frozenset[str]) -> Iterator[Problem]:
    file = str(table.files[key])
    yield from _unknown_keys(table, key, frozenset(table.raw[key]), ROW_KEYS, file)
    try:
        row = table.row(key)
    except TableError as error:
        yield Problem("format", file, key, str(error), "unreadable", "correct it")
        return
    if row is not None:
        yield from _row_problems(table, row, rules)


def _row_problems(table: Table, row: Row, rules: frozenset[str]) -> Iterator[Problem]:
    checks: tuple[Callable[[Table, Row], Iterator[Finding]], ...] = (
        _decision,
        _name,
        _totality,
        _conditions,
        _templates,
        lint_ref,
        _case,
    )
    for check in checks:
        for finding in check(table, row):
            yield _problem(row, check.__name__.strip("_").removeprefix("lint_"), finding)
    if row.rule and row.rule not in rules:
        near = difflib.get_close_matches(row.rule, rules, n=1)
        hint = f"did you mean {near[0]!r}?" if near else "write it in migrate/rules/"
        finding = Finding(f"there is no rule {row.rule!r}", "nothing would decide the call", hint)
        yield _problem(row, "rule", finding)


def _problem(row: Row, name: str, finding: Finding) -> Problem:
    return Problem(name, row.file, row.key, finding.what, finding.why, finding.next_step)


def _decision(table: Table, row: Row) -> Iterator[Finding]:
    given = [part for part in DECISIONS if getattr(row, part)]
    if len(given) != 1 and not (not given and row.ref):
        yield Finding(
            f"has {' and '.join(given) or 'no decision'}",
            "a row is decided by exactly one of to, rule, flag",
            "keep one of them (ref alone is enough for a name that is never called)",
        )
    if row.flag and (row.flag[:3] not in CODES or not row.flag[3:].isdigit()):
        yield Finding(
            f"flag {row.flag!r} is not a code",
            "codes are stable",
            f"use {', '.join(CODES)} + number",
        )
    if row.flag and not row.reason:
        yield Finding("flags without a reason", "a refusal says why", 'add reason = "..."')
    for part in ("weights", "layout", "attrs", "forward"):
        if getattr(row, part) and row.kind not in ("class", "function"):
            yield Finding(f"{part} on a {row.kind}", "only classes have it", "remove it")


def _name(table: Table, row: Row) -> Iterator[Finding]:
    root = row.name.partition(".")[0]
    if is_pattern(row.name):
        if not row.flag:
            why = "it stands for names that nobody has looked at one by one"
            yield Finding("decides for many names", why, "flag, or write a row for each")
        return
    written = "signature" in table.raw[row.key]
    # the facts do not list what objects such as torch.backends.cuda.matmul hold
    held = table.kind(row.name.rpartition(".")[0]) == "constant"
    if root == "torch" and not table.kind(row.name) and not (written or held):
        near = table.suggest(row.name)
        hint = f"did you mean {near}?" if near else "give its signature = ..."
        yield Finding("torch has no such name", "the row would never be used", hint)
    elif root == "torch" and table.torch.canonical(row.name) != row.name:
        other = table.torch.canonical(row.name)
        yield Finding(f"is another name of {other}", "rows stand under the public name", "move it")
    elif root != "torch" and not written and row.to and not row.flag:
        yield Finding("has no signature", "the facts cover torch only", "add signature = ...")
    stem = Path(row.file).stem
    if stem.partition(".")[0] != root and Path(row.file) not in table.user_files:
        why = "a file holds the names of one package"
        yield Finding(f"stands in {stem}.toml", why, "move it")


def _totality(table: Table, row: Row) -> Iterator[Finding]:
    """Every torch argument is used, admitted at one value, or dropped by name."""
    for name in sorted(row.drop & POLICY_REFUSE):
        yield Finding(
            f"drops {name}=",
            "that changes what the call does",
            f"use it or only = {{ {name} = ... }}",
        )
    omitted = {arg for arg, value in row.when.items() if value == "omitted"}
    covered = set(row.only) | row.drop | omitted | POLICY_DROP | POLICY_REFUSE
    for part in ("to", "mint"):
        template = getattr(row, part)
        used = set(argument_uses(template, torch_arguments(row)))
        for name in torch_arguments(row) if template else ():
            if name not in covered | used:
                yield Finding(
                    f"{part} says nothing of the argument {name}",
                    "a call that gives it would lose it",
                    f'use it in the template, or only = {{ {name} = "..." }}, or drop = ["{name}"]',
                )


def _conditions(table: Table, row: Row) -> Iterator[Finding]:
    arguments = torch_arguments(row)
    for part, names in (("only", row.only), ("when", row.when), ("drop", row.drop)):
        for name in names:
            around = ("selection", "made whole", "numbers")
            receiver = part == "when" and name == "self" and row.when[name] in around
            if name not in arguments and arguments and not receiver:
                near = difflib.get_close_matches(name, arguments, n=1)
                hint = f"did you mean {near[0]!r}?" if near else f"it has: {', '.join(arguments)}"
                yield Finding(f"{part} names {name!r}", "torch has no such argument here", hint)
    for name, value in row.when.items():
        if value not in WHEN:
            yield Finding(
                f"when {name} = {value!r}", "that condition is unknown", f"one of {sorted(WHEN)}"
            )
    for name, values in row.only.items():
        for value in values:
            try:
                ast.parse(value, mode="eval")
            except SyntaxError:
                yield Finding(f"only {name} = {value!r}", "it is not Python", "write it as source")


def _templates(table: Table, row: Row) -> Iterator[Finding]:
    for part in ("to", "mint"):
        if template := getattr(row, part):
            yield from lint_template(table, row, part, template)


def _case(table: Table, row: Row) -> Iterator[Finding]:
    case = table.case(row.key)
    if row.flag:
        return
    if case is None:
        yield Finding(
            "has no case", "an unexecuted row proves nothing", "add one in mappings/cases/"
        )
        return
    if not case.calls and not case.why:
        yield Finding("its case has no calls", "nothing would be executed", "add calls or a why")
    for call in case.calls:
        try:
            tree = ast.parse(call, mode="eval")
        except SyntaxError as error:
            yield Finding(f"case {call!r} is not Python", str(error.msg), "correct the call")
            continue
        names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        inputs = {f"x{number}" for number in range(len(case.inputs))}
        lacking = sorted(n for n in names if n[:1] == "x" and n[1:].isdigit() and n not in inputs)
        if lacking:
            yield Finding(f"case uses {', '.join(lacking)}", "no such input", "add it to inputs")
    if len(case.modes) < 2 and not case.why:
        yield Finding("its case leaves a mode out", "graph mode is a promise", "add why = ...")


def _case_problems(table: Table) -> Iterator[Problem]:
    for key in table.case_keys:
        case = table.case(key)
        if case is not None and key not in table.raw:
            near = difflib.get_close_matches(key, table.raw, n=1, cutoff=0.8)
            hint = f"did you mean {near[0]}?" if near else "write the row or remove the case"
            yield Problem("case", case.file, key, "there is no such row", "it is never run", hint)
    own = [path.parent / "cases" / path.name for path in table.user_files]
    ours = sorted((table.folder / "cases").glob("*.toml"))
    for path in [*ours, *(file for file in own if file.is_file())]:
        for key, values in read_toml(path).items():
            yield from _unknown_keys(table, key, frozenset(values), CASE_KEYS, str(path))


def _unknown_keys(
    table: Table, key: str, given: frozenset[str], known: frozenset[str], file: str
) -> Iterator[Problem]:
    for name in sorted(given - known):
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(sorted(known))}"
        yield Problem("keys", file, key, f"unknown key {name!r}", "it would be ignored", hint)


def _orders(table: Table) -> Iterator[Problem]:
    """Keys are sorted within a file, so that two people add rows in different places."""
    folders = (table.folder, table.folder / "cases")
    for path in [file for folder in folders for file in sorted(folder.glob("*.toml"))]:
        for before, after in pairwise(read_toml(path)):
            if after.replace(":", "\x00") < before.replace(":", "\x00"):
                yield Problem(
                    "order",
                    str(path),
                    after,
                    f"stands after {before}",
                    "keys are sorted",
                    "move it",
                )


def _rule_functions(folder: Path) -> frozenset[str]:
    names = [
        node.name
        for path in sorted(folder.glob("*.py"))
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef)
    ]
    return frozenset(names)
