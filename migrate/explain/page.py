"""In: a torch name and the table. Out: what becomes of it, why, and how it was checked."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

from migrate.evidence import store
from migrate.evidence.store import RowEvidence
from migrate.explain.differences import differences
from migrate.explain.example import example
from migrate.explain.names import answering, full_name
from migrate.facts import Param, Signature
from migrate.row import Row
from migrate.table import Table

_MARKS = {"args": "*", "kwargs": "**"}
_SHOWN = 12


def explain(
    name: str,
    rows: Table,
    recorded: Mapping[str, RowEvidence] | None = None,
    examples: bool = True,
) -> Iterator[str]:
    """Signatures on both sides, differences, example, evidence of a torch name.

    ``name`` may lack its namespace ("Conv2d", "nn.Conv2d"). ``recorded``: the evidence, read when
    not given; ``examples=False`` leaves the converted examples out.

    Raises:
        Problem: torch has no such name, with a suggestion.
    """
    full = full_name(name, rows)
    found, why = answering(full, rows)
    yield full + (f"  ({why})" if why else "")
    for signature in rows.signatures(full):
        yield f"  torch:     {shown(signature)}"
    if rows.kind(full) == "module":
        yield from _namespace(full, rows)
    elif not found:
        yield "  no row: it is flagged where it is used (API101)"
    recorded = store.read(rows) if recorded is None else recorded
    for row in found:
        yield from _row(row, rows, recorded, examples)


def _namespace(name: str, rows: Table) -> Iterator[str]:
    """What a module holds."""
    inside = [n for n in rows.torch.names if n.rpartition(".")[0] == name]
    flagged = [n for n in inside if all(r.flag for r in rows.rows(n)) and rows.rows(n)]
    more = ", ..." if len(inside) > _SHOWN else ""
    yield f"  a namespace of {len(inside)} names, {len(flagged)} of them flagged"
    yield f"  holds:     {', '.join(n.rpartition('.')[2] for n in inside[:_SHOWN])}{more}"


def _row(
    row: Row, rows: Table, recorded: Mapping[str, RowEvidence], examples: bool
) -> Iterator[str]:
    yield f"  row {row.key}  ({Path(row.file).name})"
    if row.flag:
        yield f"    flagged {row.flag}: {row.reason}; {row.next_step}".rstrip("; ")
    if row.rule:
        yield f"    decided by the rule {row.rule}, which looks at the place"
    if row.to:
        yield f"    becomes: {row.to}"
    for target in targets(row.to):
        for signature in rows.target_signatures(target):
            yield f"    MindSpore: {target}{shown(signature)}"
    if row.mint:
        yield f"    mint:    {row.mint}  (--target mint; not executed here, checked by signature)"
    if row.ref:
        yield f"    as a value: {row.ref}"
    for line in differences(row, rows):
        yield f"    differs: {line}"
    if examples:
        yield from _example(row, rows)
    if not row.flag:
        yield f"    evidence: {evidence(row, rows, recorded)}"


def _example(row: Row, rows: Table) -> Iterator[str]:
    found = example(row, rows.case(row.key), rows)
    if found is None:
        return
    shapes = ", ".join(f"x{i}: {spec}" for i, spec in enumerate(found.inputs))
    yield "    example" + (f" with {shapes}" if shapes else "")
    yield from (f"      - {line}".rstrip() for line in found.before.splitlines())
    yield from (f"      + {line}".rstrip() for line in found.after.splitlines())
    if found.helpers:
        yield f"      copied along: {', '.join(found.helpers)}"


def targets(template: str) -> Iterator[str]:
    """The full names that a template calls."""
    if not template:
        return
    for node in ast.walk(ast.parse(template, mode="eval")):
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            if name.startswith(("mindspore.", "helpers.")):
                yield name
            elif name.startswith("self.") and name.count(".") == 1:
                yield f"mindspore.Tensor.{name.partition('.')[2]}"


def shown(signature: Signature) -> str:
    """A signature as Python writes it."""
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


def evidence(row: Row, rows: Table, recorded: Mapping[str, RowEvidence]) -> str:
    """What running the row showed, or plainly that it was not run as it is now."""
    found = recorded.get(row.key)
    if found is None:
        return "not executed (torch2ms table verify)"
    text = f"{found.verdict}, {found.elements:,} numbers compared in {found.calls} calls"
    text += f", {' and '.join(found.modes) or 'no mode'}, gradient {found.gradient}"
    text += f", worst error {found.error:.1e} of {found.limit:.1e} allowed, {found.ulp:.0f} ULP"
    if versions := store.versions(rows, row.key):
        text += f", with {', '.join(f'{name} {value}' for name, value in versions.items())}"
    parts = (("holds", found.holds), ("raises", found.refuses), ("differs", found.differs))
    text = "; ".join([text, *(f"{word} on {', '.join(some)}" for word, some in parts if some)])
    if not store.is_fresh(rows, row.key, recorded):
        return f"stale, the row has changed since (torch2ms table verify --changed). Then: {text}"
    return text
