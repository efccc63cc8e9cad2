"""In: a row, torch's signature, the target's. Out: in words, what differs and how it is met."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from migrate.facts import Param, Signature
from migrate.row import Row
from migrate.table import Table
from migrate.template_lint import dotted, torch_arguments


def differences(row: Row, rows: Table) -> Iterator[str]:
    """One line a difference: names, defaults, fixed values, formulas, results, weights."""
    yield from _call(row, rows)
    for name, values in row.only.items():
        yield f"{name} other than {' or '.join(values)} is flagged, or decided by another row"
    for name, kind in row.when.items():
        yield f"this row is for calls where {name} is {kind}"
    if row.drop:
        yield f"no effect here, left out: {', '.join(sorted(row.drop))}"
    if row.returns:
        fields = ", ".join(f".{field} is [{i}]" for i, field in enumerate(row.returns))
        yield f"the result is a plain tuple: {fields}"
    renamed = [f"{old} is {new}" for old, new in row.weights.items() if new]
    gone = [old for old, new in row.weights.items() if not new]
    if renamed:
        yield f"weights: {', '.join(renamed)}"
    if gone:
        yield f"weights without a partner: {', '.join(gone)}"
    for name, change in row.layout.items():
        yield f"weights: {name} changes shape ({change})"
    if row.note:
        yield row.note


def _call(row: Row, rows: Table) -> Iterator[str]:
    node = ast.parse(row.to, mode="eval").body if row.to else None
    if not isinstance(node, ast.Call):
        return
    name = dotted(node.func)
    if name.startswith("self."):
        name = f"mindspore.Tensor.{name.removeprefix('self.')}"
    elif row.kind == "method" and name:
        yield "the method becomes a function"
    target = _fitting(node, rows.target_signatures(name)) if name else None
    if target is None:
        return
    own = {p.name: p for one in row.signatures for p in one.params}
    for slot, value in _filled(node, target):
        yield from _argument(slot, value, own)
    if name.startswith("helpers."):
        yield from _helper(name, row, rows)


def _fitting(node: ast.Call, found: tuple[Signature, ...]) -> Signature | None:
    names = {keyword.arg for keyword in node.keywords if keyword.arg}
    fitting = (one for one in found if names <= {p.name for p in one.params})
    return next(fitting, next(iter(found), None))


def _filled(node: ast.Call, target: Signature) -> Iterator[tuple[Param, ast.expr]]:
    slots = [param for param in target.params if param.kind in ("pos", "any")]
    yield from ((s, v) for s, v in zip(slots, node.args) if not isinstance(v, ast.Starred))  # noqa: B905
    for keyword in node.keywords:
        slot = target.param(keyword.arg) if keyword.arg else None
        if slot is not None:
            yield slot, keyword.value


def _argument(slot: Param, value: ast.expr, own: dict[str, Param]) -> Iterator[str]:
    used = [n.id for n in ast.walk(value) if isinstance(n, ast.Name) and n.id in own]
    text = ast.unparse(value)
    if text in own:
        first = next(iter(own)) == text  # the tensor, which nobody names
        if slot.name != text and not first and slot.name not in ("input", "self"):
            yield f"{text} is called {slot.name}"
        yield from _defaults(own[text], slot)
    elif used:
        yield f"{slot.name} is given {text}"
    elif slot.default is not None and slot.default != text:
        yield f"{slot.name}={text} is written: MindSpore's default is {slot.default}"


def _defaults(mine: Param, slot: Param) -> Iterator[str]:
    if mine.default is None or slot.default is None or mine.default == slot.default:
        return
    try:
        here, there = ast.literal_eval(mine.default), ast.literal_eval(slot.default)
    except ValueError:
        return
    if here == there:
        return
    yield (
        f"{mine.name}: torch's default is {mine.default}, MindSpore's {slot.default}"
        f"{_size(here, there)}; torch's is written where the call gives none"
    )


def _size(here: object, there: object) -> str:
    """How far two defaults lie apart."""
    numbers = [x for x in (here, there) if isinstance(x, (int, float)) and x is not True]
    if len(numbers) < 2 or isinstance(here, bool) or isinstance(there, bool):
        return ""
    a, b = abs(numbers[0]), abs(numbers[1])
    if not a or not b:
        return ""
    return f" ({max(a, b) / min(a, b):.3g} times as {'large' if b > a else 'small'})"


def _helper(name: str, row: Row, rows: Table) -> Iterator[str]:
    """What the helper says of itself, and what MindSpore's own name of that kind lacks."""
    node = rows.helpers.definition(name.partition(".")[2])
    said = ast.get_docstring(node) if node is not None else None
    first = said.split("\n\n")[0].replace("\n", " ") if said else "no description"
    yield f"{name} is copied into the output: {first}"
    last = row.name.rpartition(".")[2]
    if not row.name.startswith("torch."):
        return  # another library's word: the name says nothing
    spaces = {"class": ("nn",), "method": ("Tensor",)}.get(row.kind, ("ops",))
    for native in (f"mindspore.{space}.{last}" for space in spaces):
        for theirs in rows.mindspore.signatures(native)[:1]:
            yield f"{native} exists and is not used{_lacks(row, theirs)}"


def _lacks(row: Row, theirs: Signature) -> str:
    """The arguments that a namesake does not take, and the defaults that differ."""
    if any(p.kind in ("args", "kwargs") for p in theirs.params):
        return ""
    wanted = [n for n in torch_arguments(row) if n not in ("out", "device", "dtype", "inplace")]
    missing = [name for name in wanted if theirs.param(name) is None]
    parts = [f"it has no argument named {', '.join(missing)}"] if missing else []
    for one in row.signatures[:1]:
        for mine in one.params:
            slot = theirs.param(mine.name)
            known = slot is not None and mine.default and slot.default
            if known and slot is not None and mine.default != slot.default:
                parts.append(f"its {mine.name} is {slot.default}, torch's {mine.default}")
    return f": {'; '.join(parts)}" if parts else ""
