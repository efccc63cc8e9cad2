"""In: a torch name and the table. Out: what becomes of it and why, as lines of text."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from migrate.errors import Problem
from migrate.evidence import store
from migrate.facts import Param, Signature
from migrate.row import Row
from migrate.table import Table

_SPACES = ("torch.nn.", "torch.", "torch.nn.functional.", "torch.Tensor.", "torch.optim.")
_MARKS = {"args": "*", "kwargs": "**"}


def explain(name: str, rows: Table) -> Iterator[str]:
    """Row, signatures on both sides, note, example and evidence of a torch name.

    ``name`` may lack its namespace ("Conv2d", "nn.Conv2d").

    Raises:
        Problem: torch has no such name, with a suggestion.
    """
    full = _full_name(name, rows)
    found = rows.rows(full)
    yield full
    for signature in rows.signatures(full):
        yield f"  torch:     {_shown(signature)}"
    if not found:
        yield "  no row: it is flagged where it is used (API)"
    for row in found:
        yield from _row(row, rows)


def _full_name(name: str, rows: Table) -> str:
    for full in (name, *(space + name for space in _SPACES), f"torch.{name}"):
        if rows.rows(full) or (full.startswith("torch.") and rows.kind(full)):
            return full
    near = rows.suggest(name) or rows.suggest(f"torch.{name}") or rows.suggest(f"torch.nn.{name}")
    raise Problem(
        name, "unknown name", "neither torch nor the table has it",
        f"did you mean {near}?" if near else "give the full name, such as torch.nn.Conv2d",
    )  # fmt: skip


def _row(row: Row, rows: Table) -> Iterator[str]:
    yield f"  row {row.key}  ({Path(row.file).name})"
    if row.flag:
        yield f"    flagged {row.flag}: {row.reason}; {row.next_step}".rstrip("; ")
    if row.rule:
        yield f"    decided by the rule {row.rule}"
    for label, value in (("becomes", row.to), ("mint", row.mint), ("as a value", row.ref)):
        if value:
            yield f"    {label}: {value}"
    for target in _targets(row.to):
        for signature in rows.target_signatures(target):
            yield f"    {target}{_shown(signature)}"
    for argument, values in row.only.items():
        yield f"    only where {argument} is {' or '.join(values)}"
    for argument, kind in row.when.items():
        yield f"    when {argument} is {kind}"
    if row.drop:
        yield f"    without effect here: {', '.join(sorted(row.drop))}"
    for old, new in row.weights.items():
        yield f"    weight {old} -> {new or 'no partner'}"
    if row.note:
        yield f"    note: {row.note}"
    case = rows.case(row.key)
    if case:
        yield f"    example: {case.calls[0]}  with x0, x1, ... = {', '.join(case.inputs)}"
    yield f"    evidence: {_evidence(row, rows)}"


def _targets(template: str) -> Iterator[str]:
    """The full names that a template calls."""
    if not template:
        return
    for node in ast.walk(ast.parse(template, mode="eval")):
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            if name.startswith(("mindspore.", "helpers.")):
                yield name


def _shown(signature: Signature) -> str:
    kinds = [param.kind for param in signature.params]
    parts = [_param(param) for param in signature.params]
    if "kw" in kinds and "args" not in kinds:
        parts.insert(kinds.index("kw"), "*")
    result = f" -> {signature.result}" if signature.result else ""
    return f"({', '.join(parts)}){result}"


def _param(param: Param) -> str:
    typed = f": {param.type}" if param.type else ""
    default = "" if param.default is None else f"={param.default}"
    return f"{_MARKS.get(param.kind, '')}{param.name}{typed}{default}"


def _evidence(row: Row, rows: Table) -> str:
    recorded = store.read(rows)
    found = recorded.get(row.key)
    if found is None:
        return "none yet (torch2ms table verify)"
    if not store.is_fresh(rows, row.key, recorded):
        return "stale: the row has changed (torch2ms table verify --changed)"
    text = f"{found.verdict}, {found.elements:,} numbers compared in {found.calls} calls"
    text += f", {' and '.join(found.modes) or 'no mode'}, gradient {found.gradient}"
    text += f", worst error {found.error:.1e} of {found.limit:.1e} allowed, {found.ulp:.0f} ULP"
    parts = (("holds", found.holds), ("raises", found.refuses), ("differs", found.differs))
    return "; ".join([text, *(f"{word} on {', '.join(some)}" for word, some in parts if some)])
