"""Explain a torch name, or all: what becomes of it, how that differs, how it was checked."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined

from migrate import __version__
from migrate.evidence import store
from migrate.evidence.store import RowEvidence
from migrate.explain.names import answering, full_name
from migrate.mapping.row import Case, Row
from migrate.mapping.signatures import Param, Signature
from migrate.mapping.table import Table
from migrate.mapping.table_lint import torch_arguments
from migrate.syntax.trees import all_names, dotted
from migrate.workspace.project import ConvertedText, convert_text


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
    used = all_names(ast.parse(call))
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


KINDS = ("native", "helper", "rule", "flagged")
PROOFS = ("verified", "stale", "not executed")


@dataclass(frozen=True)
class Line:
    """One row as the page shows it. ``kind`` is one of KINDS, ``proof`` of PROOFS or ""."""

    key: str
    kind: str
    becomes: str
    mint: str
    says: tuple[str, ...]
    proof: str
    figures: str


def browse(rows: Table) -> str:
    """The page; its lines are all there without scripts, a script filters them."""
    recorded = store.read(rows)
    lines = [_line(row, rows, recorded) for name in rows.names for row in rows.rows(name)]
    environment = Environment(
        loader=PackageLoader("migrate.explain"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("table.html.j2").render(
        lines=lines,
        kinds=_counts([line.kind for line in lines], KINDS),
        proofs=_counts([line.proof for line in lines], PROOFS),
        mint=sum(bool(line.mint) for line in lines),
        version=__version__,
        torch=rows.torch.release,
        mindspore=rows.mindspore.release,
    )


def _counts(found: Sequence[str], known: Sequence[str]) -> dict[str, int]:
    counts = Counter(found)
    return {name: counts[name] for name in known}


def _line(row: Row, rows: Table, recorded: Mapping[str, RowEvidence]) -> Line:
    kind = kind_of(row)
    becomes = row.to or row.ref
    if row.rule:
        becomes = f"decided where it stands ({row.rule})"
    if row.flag:
        becomes = f"{row.flag}: {row.reason}"
    says = [row.next_step] if row.next_step else []
    return Line(
        key=row.key,
        kind=kind,
        becomes=becomes,
        mint=row.mint,
        says=(*says, *differences(row, rows)),
        proof="" if row.flag else _proof(row, rows, recorded),
        figures=_figures(recorded.get(row.key)),
    )


def kind_of(row: Row) -> str:
    """How a row is decided, as one of KINDS."""
    if row.flag:
        return "flagged"
    if row.rule:
        return "rule"
    return "helper" if "helpers." in (row.to or row.ref) else "native"


def _proof(row: Row, rows: Table, recorded: Mapping[str, RowEvidence]) -> str:
    found = recorded.get(row.key)
    if found is None or not found.elements:
        return "not executed"
    fresh = found.passed and store.is_fresh(rows, row.key, recorded)
    return "verified" if fresh else "stale"


def _figures(found: RowEvidence | None) -> str:
    if found is None:
        return ""
    modes = " and ".join(found.modes) or "no mode"
    return (
        f"{found.verdict}, {found.elements:,} numbers, {modes}, gradient {found.gradient}, "
        f"worst error {found.error:.1e} of {found.limit:.1e}"
    )
