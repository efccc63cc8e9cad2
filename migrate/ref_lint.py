"""In: a row with ``ref``. Out: how the reference differs from torch's own signature."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator

from migrate.facts import Param, Signature
from migrate.row import Row
from migrate.table import Table
from migrate.template_lint import Finding, says_nothing

WHY = "a caller that we do not see uses torch's arguments"
# A call that gives one of these to a ref without them raises TypeError: loud, never wrong.
MAY_LACK = frozenset({"out", "generator", "layout", "pin_memory", "requires_grad", "memory_format"})


def lint_ref(table: Table, row: Row) -> Iterator[Finding]:
    """The reference takes torch's arguments: same names, same order, same defaults."""
    if not row.ref:
        return
    targets = table.target_signatures(row.ref)
    if not targets:
        known = (
            table.mindspore.kind(row.ref)
            or row.ref.partition(".")[2] in table.helpers.paths
            or row.ref in dir(builtins)
        )
        if not known:
            yield Finding(f"ref {row.ref} does not exist", WHY, "correct the name")
        return
    if not row.signatures:
        return
    reasons = [
        list(_differences(wanted, target)) for target in targets for wanted in row.signatures
    ]
    if all(reasons):
        best = min(reasons, key=len)
        yield Finding(
            f"ref {row.ref}: {'; '.join(best)}", WHY, "write a helper with torch's signature"
        )


def _differences(wanted: Signature, target: Signature) -> Iterator[str]:
    theirs = {param.name: param for param in target.params}
    if says_nothing(wanted) or {"args", "kwargs"} <= {param.kind for param in target.params}:
        return
    for param in wanted.params:
        other = theirs.get(param.name)
        if other is None:
            if not (param.kind == "kw" and param.name in MAY_LACK):
                yield f"no argument {param.name!r}"
            continue
        if not _same_default(param, other):
            yield f"{param.name} is {other.default} where torch has {param.default}"
    shared = [p for p in wanted.params if p.name in theirs and theirs[p.name].kind != "args"]
    ours = [p.name for p in shared if p.kind in ("pos", "any")]
    order = [p.name for p in target.params if p.kind in ("pos", "any")]
    if order[: len(ours)] != ours:
        yield f"the order is ({', '.join(order)}) where torch has ({', '.join(ours)})"
    extra = [p for p in target.params if p.default is None and wanted.param(p.name) is None]
    for param in extra:
        if param.kind not in ("args", "kwargs"):
            yield f"it wants an argument {param.name!r} of its own"


def _same_default(param: Param, other: Param) -> bool:
    if param.kind in ("args", "kwargs") or param.default == other.default:
        return True
    if param.default is None:
        return True  # torch requires it: a default more does no harm
    if other.default is None:
        return False
    ours, theirs = _value(param.default), _value(other.default)
    return ours == theirs and (isinstance(ours, bool) == isinstance(theirs, bool))


def _value(source: str) -> object:
    """A default as a value; names of dtypes compare by their last part."""
    try:
        return ast.literal_eval(source)
    except (ValueError, SyntaxError):
        return source.rpartition(".")[2]
