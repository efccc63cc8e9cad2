"""Run the examples of rules: what becomes of the code, and which rule decided it."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass

from migrate.engine import rewrite
from migrate.engine.rewrite import Options
from migrate.mapping.table import Table
from migrate.records.outcomes import Decision, Refusal
from migrate.rules.registry import Registered, Registry
from migrate.syntax.source import read

_HEAD = "def example(x: torch.Tensor, y: torch.Tensor, n: int, parts: list):\n"
_IMPORTS = "import torch\nfrom torch import nn\nimport torch.nn.functional as F\n"


@dataclass(frozen=True)
class Ran:
    """What code became, and the decisions of all rules; lines of ``head`` do not count."""

    head: frozenset[int]
    text: str
    decisions: tuple[Decision, ...]

    def of(self, rule: str) -> list[Decision]:
        """The decisions that a rule made or revised, what is put around an example apart."""
        mine = [d for d in self.decisions if rule in d.rule.split(", ")]
        return [d for d in mine if d.site.line not in self.head]

    def acts(self, rule: str) -> bool:
        """Return whether a rule changed or refused something."""
        return any(isinstance(d, Refusal) or d.parts is not None for d in self.of(rule))

    def flags(self, rule: str) -> bool:
        """Return whether a rule refused something."""
        return any(isinstance(decision, Refusal) for decision in self.of(rule))


def run(code: str, rules: Registry, table: Table) -> Ran:
    """Convert a whole module."""
    source, options = read("module.py", code.encode()), Options(rules=rules)
    analysed = rewrite.analyse({source.path: source}, table)
    made = rewrite.planned(analysed.inference, source.path, options)[2]
    found: list[Decision] = []
    if made is not None:
        found = [*made.decisions, *made.extra, *(refusal for refusal, _ in made.stopped)]
    text = rewrite.convert(analysed, source.path, options).data.decode()
    ours = (*_IMPORTS.splitlines(), _HEAD.rstrip())
    head = {number for number, line in enumerate(code.splitlines(), 1) if line in ours}
    return Ran(frozenset(head if code.startswith(_IMPORTS) else ()), text, tuple(found))


def module(code: str) -> str:
    """Return an example as a module: statements that define nothing are a function's body."""
    code = textwrap.dedent(code).strip("\n")
    body = ast.parse(code).body
    imports = [n for n in body if isinstance(n, (ast.Import, ast.ImportFrom))]
    others = [n for n in body if n not in imports]
    lines = code.splitlines()[imports[-1].end_lineno if imports else 0 :]
    rest = "\n".join(lines).strip("\n")
    if not any(isinstance(n, (ast.FunctionDef, ast.ClassDef)) for n in others):
        rest = _HEAD + textwrap.indent(rest, "    ")
    head = "".join(f"{ast.unparse(n)}\n" for n in imports)
    return f"{_IMPORTS}{head}\n\n{rest}\n"


def failures(rule: Registered, rules: Registry, table: Table) -> Iterator[str]:
    """Yield what is wrong with the examples in a rule."""
    shown = rule.examples
    for before, after in shown.becomes:
        ran = run(module(before), rules, table)
        wanted = textwrap.dedent(after).strip("\n")
        if wanted not in ran.text and textwrap.indent(wanted, "    ") not in ran.text:
            yield f"{rule.name}: {before!r} does not become {after!r}, but:\n{ran.text}"
        elif not ran.of(rule.name):
            yield f"{rule.name}: {before!r} is not what this rule converts"
    for code in shown.stays:
        if run(module(code), rules, table).acts(rule.name):
            yield f"{rule.name}: {code!r} does not stay as it is"
    for code in shown.flagged:
        if not run(module(code), rules, table).flags(rule.name):
            yield f"{rule.name}: {code!r} is not flagged by it"
