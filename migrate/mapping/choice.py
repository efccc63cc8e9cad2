"""In: a torch name and a call of it. Out: the row that admits the call, bound, or why none does."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from migrate.mapping import calls
from migrate.mapping.calls import BoundCall
from migrate.mapping.table import POLICY_DROP, Row, Table
from migrate.mapping.templates import names, parse
from migrate.syntax.trees import dotted

# kinds that a `when` condition may name
_WHEN = {
    "int": {"int"}, "Tensor": {"Tensor"}, "float": {"float"}, "str": {"str"}, "None": {"None"},
    "dtype": {"dtype"}, "device": {"device", "str"}, "tuple": {"tuple", "list", "Size"},
    "list": {"tuple", "list", "Size"}, "plain list": {"list"}, "data": {"tuple", "list"},
    "bool": {"bool"}, "range": {"iterator"}, "number": {"int", "float", "bool"},
}  # fmt: skip
SELECTION = "selection"  # the condition: an operand may have no elements
WHOLE = "made whole"  # the condition: what the call gives loses its fraction later on
NUMBERS = "numbers"  # the condition: an operand may hold more than truth values
ZERO = "holding 0"  # the condition: one of the numbers is 0, or a difference, which may be
NO_LIST = "no list"  # the condition: MindSpore's own layers take numbers and tuples
COMPLEX = "complex"  # the condition: an operand may hold complex numbers
MIXED = "mixed dtypes"  # the condition: the Tensors listed may be of several dtypes
# conditions that take more than kinds to tell
_AROUND = {SELECTION, WHOLE, NUMBERS, ZERO, COMPLEX, MIXED}
CLASS = "ref"  # the condition: a class of torch's as a value, where that is seen
_UNSURE = frozenset({"unknown", "instance", "foreign", "torch", "method", "partial", "callable"})


@dataclass(frozen=True)
class Chosen:
    """The row and the arguments; ``sure`` when no other row could be meant."""

    row: Row
    bound: BoundCall
    sure: bool


@dataclass(frozen=True)
class NotChosen:
    """No row admits the call. ``ref`` may still be used: the arguments stay as they are.

    ``impossible``: torch's own signatures refuse the call, so nothing else may take it either.
    """

    code: str
    reason: str
    next_step: str = ""
    ref: str = ""
    row: Row | None = None
    flagged: bool = False
    impossible: bool = False


def choose(
    table: Table,
    name: str,
    args: Sequence[ast.expr],
    keywords: Sequence[ast.keyword],
    kinds_of: Callable[[ast.expr], frozenset[str]],
    target: str,
    selects: Callable[[Row, BoundCall], bool] = lambda row, bound: False,
) -> list[Chosen] | NotChosen:
    """The candidates, surest first; more than one when the types do not tell them apart.

    ``selects``: whether what stands around the call is what a row wants; such a row goes first.
    """
    rows = table.rows(name)
    if not rows:
        return _unknown(table, name)
    if len(rows) == 1 and rows[0].flag:
        row = rows[0]
        return NotChosen(row.flag, row.reason, row.next_step, row.ref, row, flagged=True)
    special = [row for row in rows if _AROUND & set(row.when.values())]
    for row in special:
        bound, _ = calls.choose(args, keywords, row.signatures, kinds_of)
        for one in bound:
            admitted = _conditions(row, one, kinds_of) and _refused(row, one, target) is None
            if admitted and _hands_on(row, one, target) and selects(row, one):
                return [Chosen(row, one, sure=True)]
    plain = [r for r in rows if r not in special]
    found = _plain(plain, args, keywords, kinds_of, target)
    if isinstance(found, NotChosen) and not found.flagged:
        counted = _plain(plain, args, keywords, kinds_of, target, counting=True)
        return found if isinstance(counted, NotChosen) else counted
    return found


def _plain(
    rows: Sequence[Row],
    args: Sequence[ast.expr],
    keywords: Sequence[ast.keyword],
    kinds_of: Callable[[ast.expr], frozenset[str]],
    target: str,
    counting: bool = False,
) -> list[Chosen] | NotChosen:
    """The candidates among rows that ask nothing of how many elements there are."""
    found: list[Chosen] = []
    tried = [
        (row, *calls.choose(args, keywords, row.signatures, kinds_of, counting)) for row in rows
    ]
    # a signature that this call cannot have is no other meaning of it
    meant = {
        row.signatures
        for row, bound, why in tried
        if bound or not _refuses(row, why, "").impossible
    }
    single = len(meant) == 1
    ref = next((row.ref for row in rows if row.ref), "")
    why = NotChosen("API101", "no signature of it admits this call", ref=ref, row=rows[0])
    for row, bound, unbound in tried:
        if not bound:
            why = _better(why, _refuses(row, unbound, ref))
            continue
        reason = None
        for one in bound:
            if not _hands_on(row, one, target):
                why = _better(why, NotChosen("API103", calls.SPREAD, ref=ref, row=row))
                continue
            sure = _conditions(row, one, kinds_of)
            if row.flag and _outside(row, one):
                continue
            reason = _refused(row, one, target) if sure and not row.flag else None
            if sure and reason is None:
                certain = sure == calls.YES and (single or _certain(one, kinds_of))
                found.append(Chosen(row, one, certain))
                break
        if reason is not None:
            why = _better(why, NotChosen("DEF110", reason, ref=ref, row=row))
    return _surest(found, why)


def _surest(found: list[Chosen], why: NotChosen) -> list[Chosen] | NotChosen:
    """Of the rows that admit the call those that may be meant; a flag counts if it comes first."""
    flags = [c for c in found if c.row.flag]
    if flags and (found[0].row.flag or all(c.row.flag for c in found)):
        row = flags[0].row
        return NotChosen(row.flag, row.reason, row.next_step, row.ref, row, flagged=True)
    found = [c for c in found if not c.row.flag]
    certain_ones = [c for c in found if c.sure]
    return (certain_ones[:1] or found) or why


def _refuses(row: Row, why: calls.Unbound, ref: str) -> NotChosen:
    never = not (why.dynamic or why.of_kinds) and bool(row.signatures)
    return NotChosen("API103", why.reason, ref=ref, row=row, impossible=never)


def _better(old: NotChosen, new: NotChosen) -> NotChosen:
    """The reason nearest to success: a refused value says more than a signature that fails."""
    best = new if old.code != "DEF110" or new.code == "DEF110" else old
    # before the first row nothing is known: any other row that might take it counts
    never = new.impossible and (old.impossible or old.code == "API101")
    return replace(best, impossible=never)


def _unknown(table: Table, name: str) -> NotChosen:
    if table.kind(name):
        return NotChosen("API101", "the table has no row for it", "add a row, or write it by hand")
    near = table.suggest(name)
    hint = f"did you mean {near}?" if near else "check the name"
    return NotChosen("API100", "torch 2.13 has no such public name", hint)


def _certain(bound: BoundCall, kinds_of: Callable[[ast.expr], frozenset[str]]) -> bool:
    for param in bound.signature.params:
        value = bound.values.get(param.name)
        if isinstance(value, ast.expr) and calls.fits(param, kinds_of(value)) != calls.YES:
            return False
    return True


def _conditions(row: Row, bound: BoundCall, kinds_of: Callable[[ast.expr], frozenset[str]]) -> int:
    """Whether the row's ``when`` holds: NO, MAYBE or YES."""
    mark = calls.YES
    for name, wanted in row.when.items():
        if wanted in _AROUND:
            continue  # asked by ``choose``
        value = bound.values.get(name)
        if wanted in ("given", "omitted"):
            if (value is not None) != (wanted == "given"):
                return calls.NO
            continue
        if wanted == NO_LIST:
            if isinstance(value, ast.expr) and "list" in kinds_of(value):
                return calls.NO
            continue
        if isinstance(value, tuple) and len(value) == 1:
            value = value[0]  # a list where several numbers may stand
        if not isinstance(value, ast.expr) or isinstance(value, ast.Starred):
            return calls.NO
        kinds = kinds_of(value)
        if wanted in ("holding None", "without None"):
            if ("holding None" in kinds) != (wanted == "holding None"):
                return calls.NO
            continue
        if wanted == "list without None":
            if "holding None" in kinds or not getattr(value, "elts", True):
                return calls.NO  # an empty CellList forgets its name: later Parameters lack it
            wanted = "plain list"  # CellList takes no tuple
        allowed = _WHEN.get(wanted, {wanted})
        kinds -= {"holding None"}  # a list is one, whatever it holds
        # what is annotated as a tuple may be a shape, and often is a number
        shape = wanted == "data" and "tuple" in kinds and not isinstance(value, ast.Tuple)
        if kinds and kinds <= allowed and not shape:
            continue
        if wanted == CLASS or (not kinds & allowed and not kinds & _UNSURE):
            return calls.NO
        mark = calls.MAYBE
    return mark


def _hands_on(row: Row, bound: BoundCall, target: str) -> bool:
    """Whether the target takes in torch's order, and last, what ``*args`` stands for."""
    if not bound.spread:
        return True
    text = row.mint if target == "mint" and row.mint else row.to
    template = parse(text) if text else None
    if row.rule or not isinstance(template, ast.Call) or template.keywords:
        return False
    last = tuple(getattr(a, "id", "") for a in template.args[-len(bound.spread) :])
    preset = any(p.default is not None for p in bound.signature.params if p.name in bound.spread)
    ours = dotted(template.func).startswith("helpers.")  # their defaults are torch's
    return last == bound.spread and (ours or not preset)


def _refused(row: Row, bound: BoundCall, target: str) -> str | None:
    """Why the row cannot take these arguments, or None."""
    used = names(row.mint if target == "mint" and row.mint else row.to)
    if outside := _outside(row, bound):
        return outside
    for name, value in bound.values.items():
        known = name in used or name in row.only or name in row.drop or name in POLICY_DROP
        if not known and not row.rule and not _is_default(bound, name, value):
            return f"argument {name!r} has no counterpart"
    return None


def _outside(row: Row, bound: BoundCall) -> str | None:
    """Why an argument is not literally one of the values that ``only`` names, or None."""
    for name, value in bound.values.items():
        texts = row.only.get(name, ())
        if texts and not (isinstance(value, ast.expr) and any(_same(value, t) for t in texts)):
            shown = ast.unparse(value) if isinstance(value, ast.expr) else "..."
            return f"{name}={shown} has no portable target, only {' or '.join(texts)}"
    return None


def _is_default(bound: BoundCall, name: str, value: ast.expr | tuple[ast.expr, ...]) -> bool:
    param = bound.signature.param(name)
    return bool(
        param and param.default and isinstance(value, ast.expr) and _same(value, param.default)
    )


def _same(node: ast.expr, text: str) -> bool:
    """Whether an expression is literally the value that a text spells."""
    return ast.dump(node) == ast.dump(parse(text))
