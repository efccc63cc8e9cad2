"""Open blocks ``with torch.enable_grad():`` in front of a gradient that is asked for.

What is differentiated is a function of its own here, in which nothing stops a gradient.
"""

from __future__ import annotations

import ast
from itertools import pairwise

from migrate.records.outcomes import Edit, Outcome, Site
from migrate.syntax.lines import shares_line, statements
from migrate.syntax.source import Source
from migrate.syntax.trees import dotted, last_name


def opened(source: Source) -> list[Edit]:
    """Return the edits that put the statements of such blocks in their place."""
    if b"enable_grad" not in source.data or b"autograd.grad(" not in source.data:
        return []
    bodies = [getattr(n, "body", ()) for n in ast.walk(source.tree)]
    pairs = [p for body in bodies if isinstance(body, list) for p in pairwise(body)]
    return [_opened(source, block) for block, behind in pairs if _records(source, block, behind)]


def _records(source: Source, block: ast.stmt, behind: ast.stmt) -> bool:
    if not isinstance(block, ast.With) or len(block.items) != 1:
        return False
    call = block.items[0].context_expr
    if not isinstance(call, ast.Call) or last_name(call.func) != "enable_grad":
        return False
    asked = (n for n in ast.walk(behind) if isinstance(n, ast.Call))
    if any(shares_line(source, s) for s in (block, *block.body)):
        return False
    return any(dotted(c.func).endswith("autograd.grad") for c in asked)


def _opened(source: Source, block: ast.stmt) -> Edit:
    assert isinstance(block, ast.With)
    site = Site("enable_grad", source.span(block), block.lineno, block.col_offset + 1)
    return Edit(site, Outcome.KEPT, (statements(source, block.body),))
