"""In: the case of a row. Out: its first call as torch writes it, and as the engine converts it."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from migrate.project import ConvertedText, convert_text
from migrate.row import Case, Row
from migrate.table import Table

_NAME = "example"


@dataclass(frozen=True)
class Example:
    """``before`` and ``after`` are statements; ``helpers`` are copied along; ``inputs`` shapes."""

    before: str
    after: str
    helpers: tuple[str, ...]
    inputs: tuple[str, ...]


def example(row: Row, case: Case | None, rows: Table) -> Example | None:
    """The row's own case, converted now; None: it has no call, or the call stands on its own."""
    if case is None or not case.calls:
        return None
    before = _statement(row, case)
    text = "\n".join(["import torch", "", *([case.source, ""] if case.source else []), before, ""])
    try:
        made = convert_text(text, rows)
        after = _part(made.text) or _flags(made)
    except (SyntaxError, ValueError):
        return None  # the case is wrong: table lint says so
    helpers = tuple(sorted(name.removeprefix("helpers.") for name in made.helpers))
    return Example(before, after, helpers, case.inputs)


def _statement(row: Row, case: Case) -> str:
    call = case.calls[0]
    used = {node.id for node in ast.walk(ast.parse(call)) if isinstance(node, ast.Name)}
    inputs = [f"x{i}" for i in range(len(case.inputs)) if f"x{i}" in used]
    if not inputs:
        return f"{_NAME} = {call}"
    parameters = ", ".join(f"{name}: torch.Tensor" for name in inputs)
    if row.name.endswith("_") and call.startswith("x0."):
        return f"def {_NAME}({parameters}):\n    {call}\n    return x0"
    return f"def {_NAME}({parameters}):\n    return {call}"


def _part(text: str) -> str:
    """The example's statement in the new text, with the comment above it."""
    for node in ast.parse(text).body:
        bound = (
            [node.name]
            if isinstance(node, ast.FunctionDef)
            else [t.id for t in node.targets if isinstance(t, ast.Name)]
            if isinstance(node, ast.Assign)
            else []
        )
        if _NAME in bound:
            lines = text.splitlines()
            first = node.lineno - 1
            while first and lines[first - 1].startswith("#"):
                first -= 1
            return "\n".join(lines[first : node.end_lineno])
    return ""


def _flags(made: ConvertedText) -> str:
    return "\n".join(f"# {e.code} {e.name}: {e.reason}" for e in made.entries if e.code)
