"""Prepare a row to be run: torch source with probes, the converted file, harness files, the runs.

Graph mode compiles real files with fixed arguments only, so calls are written out one by one.
Result and gradient come from one compilation: the sum that is differentiated carries the result.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from migrate.evidence import store, workers
from migrate.evidence.variants import (
    InputError,
    Variant,
    draw,
    generated_calls,
    parse_input,
    variants,
)
from migrate.mapping.row import Case, Row
from migrate.mapping.table import Table
from migrate.syntax.trees import all_names


@dataclass(frozen=True)
class Probe:
    """One call as a definition of the source: ``name`` of the function or Module class.

    ``names`` are its inputs and ``floating`` those that are differentiated. ``kind`` names the
    argument that was added to a written call, "" for a written one.
    """

    name: str
    call: str
    is_module: bool
    names: tuple[str, ...]
    floating: tuple[int, ...]
    through_ref: bool = False
    kind: str = ""


def is_module(table: Table, row: Row, case: Case) -> bool:
    """Whether the call constructs a Module, whose instance is then called."""
    if row.kind == "class" and "torch.nn.Module" in table.bases(row.name):
        return True
    if row.name.startswith("torch.") or not row.to:
        return bool(case.forward)
    made = ast.parse(row.to, mode="eval").body
    return isinstance(made, ast.Call) and table.target_is_class(ast.unparse(made.func))


def probes(
    table: Table, row: Row, case: Case, generate: bool = False
) -> tuple[str, tuple[Probe, ...]]:
    """The torch source of all calls of a case and one Probe for each.

    Where the row has a ``ref``, each call that names it is made once more with the name passed
    as a value. ``generate``: also calls with arguments that the case does not give (arguments.py).
    Raises SyntaxError for a call that is not Python.
    """
    module = is_module(table, row, case)
    parts = ["import torch\n"]
    if not row.name.startswith("torch."):
        parts = [f"import torch\nimport {row.name.rpartition('.')[0]}\n"]
    if case.source:
        parts.append(case.source.strip() + "\n")
    found: list[Probe] = []
    calls = [("", call) for call in case.calls]
    calls += generated_calls(row, case) if generate else ()
    for index, (kind, call) in enumerate(calls):
        for through_ref in (False, True):
            taken = _without_name(call, row.name) if through_ref else call
            if through_ref and (not row.ref or taken is None):
                continue
            text = taken or call
            name = f"{'ref' if through_ref else 'call'}{index}"
            chosen = _inputs(case.forward if module else call, case)
            floating = tuple(i for i, x in enumerate(chosen) if _is_floating(case, x))
            probe = Probe(name, call, module, chosen, floating, through_ref, kind)
            write = _module_text if module else _function_text
            parts.append(write(probe, text, row.name, case.forward))
            found.append(probe)
    return "\n\n".join(parts), tuple(found)


def _inputs(text: str, case: Case) -> tuple[str, ...]:
    """The inputs that the text names; all of them for a Module without a forward of its own."""
    every = tuple(f"x{number}" for number in range(len(case.inputs)))
    if not text:
        return every
    used = all_names(ast.parse(text, mode="eval"))
    return tuple(name for name in every if name in used)


def _is_floating(case: Case, name: str) -> bool:
    return parse_input(case.inputs[int(name[1:])]).dtype in ("float16", "float32", "float64")


def _without_name(call: str, name: str) -> str | None:
    """The call with the torch name replaced by ``through``; None: it does not call that name."""
    tree = ast.parse(call, mode="eval")
    hits = [n for n in ast.walk(tree) if isinstance(n, ast.Call) and ast.unparse(n.func) == name]
    for hit in hits:
        hit.func = ast.Name("through", ast.Load())
    return ast.unparse(tree) if hits else None


def _function_text(probe: Probe, call: str, name: str, forward: str) -> str:
    arguments = ", ".join(f"{x}: torch.Tensor" for x in probe.names)
    if not probe.through_ref:
        return f"def {probe.name}({arguments}):\n    return {call}\n"
    plain = ", ".join(probe.names)
    given = ", ".join([name, *probe.names])
    outer = f"def {probe.name}({arguments}):\n    return {probe.name}_by({given})\n"
    inner = f"def {probe.name}_by(through, {plain}):\n    return {call}\n"
    return f"{inner}\n\n{outer}"


def _module_text(probe: Probe, call: str, name: str, forward: str) -> str:
    arguments = ", ".join(f"{x}: torch.Tensor" for x in probe.names)
    built = f"{probe.name}_by({name})" if probe.through_ref else call
    made = f"def {probe.name}_by(through):\n    return {call}\n\n\n" if probe.through_ref else ""
    used = _instance_call(forward) if forward else f"self.m({', '.join(probe.names)})"
    # an argument is its caller's: a layer that works in place is given a value of its own
    own = "".join(f"        {x} = {x}.clone()\n" for x in probe.names if "inplace=True" in call)
    return (
        f"{made}class {probe.name}(torch.nn.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        f"        self.m = {built}\n\n"
        f"    def forward(self, {arguments}):\n{own}"
        f"        return {used}\n"
    )


def _instance_call(forward: str) -> str:
    """``m(x0, x0)`` as written in a method: ``self.m(x0, x0)``."""
    tree = ast.parse(forward, mode="eval")
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id == "m":
            node.id = "self.m"
    return ast.unparse(tree)


Convert = Callable[[str, Table], Any]


@dataclass(frozen=True)
class Prepared:
    """A row ready to run: its converted file, probes and inputs; ``problems`` when it is not."""

    row: Row
    case: Case
    sha256: str
    probes: tuple[Probe, ...] = ()
    source: Path = Path()
    converted: Path = Path()
    inputs: Mapping[str, Any] | None = None
    variants: tuple[Variant, ...] = ()
    problems: tuple[str, ...] = ()


def converter() -> Convert:
    """The engine; imported late, as it is large."""
    from migrate.workspace.project import convert_text

    return convert_text


def prepare(
    table: Table, key: str, folder: Path, convert: Convert, generate: bool = True
) -> Prepared:
    """Convert the case of a row into ``folder``; what keeps it from running is a problem.

    ``generate``: the row also runs on other kinds of input than those of its case.
    """
    row, case = table.row(key), table.case(key)
    assert row is not None and case is not None, key
    sha256 = store.row_hash(table, key)
    try:
        text, found = probes(table, row, case, generate)
        inputs = {f"x{i}": draw(spec, key, i) for i, spec in enumerate(case.inputs)}
        generated = variants(key, case.inputs) if generate else ()
        converted = convert(text, table)
    except (SyntaxError, InputError) as error:
        return Prepared(row, case, sha256, problems=(f"the case: {error}",))
    except Exception as error:  # the engine must not stop the run over all other rows
        return Prepared(row, case, sha256, problems=(f"the conversion: {workers.describe(error)}",))
    stem = "case_" + hashlib.sha256((key + converted.text).encode()).hexdigest()[:16]
    source, target = folder / f"{stem}_torch.py", folder / f"{stem}.py"
    source.write_text(text, encoding="utf-8")
    target.write_text(converted.text, encoding="utf-8")
    written = _written_lines(text, found)
    problems = _conversion_problems(row, converted.entries, written, "graph" in case.modes)
    if problems:
        return Prepared(row, case, sha256, problems=problems)
    return Prepared(row, case, sha256, found, source, target, inputs, generated)


def _written_lines(text: str, found: Sequence[Probe]) -> range:
    """The lines before the first generated call: a flag behind them is a kind that is refused."""
    lines = text.splitlines()
    first = next((probe.name for probe in found if probe.kind), "")
    heads = (f"def {first}(", f"class {first}(", f"def {first}_by(")
    end = (n for n, line in enumerate(lines, 1) if first and line.startswith(heads))
    return range(1, next(end, len(lines) + 1))


def _conversion_problems(
    row: Row, entries: Sequence[Any], written: range, compiled: bool
) -> tuple[str, ...]:
    """Flags inside the case, and whether the row under test is the one that decided.

    What graph mode would do counts for a case that is ``compiled`` alone.
    """
    entries = [entry for entry in entries if entry.line in written]
    flagged = [e for e in entries if e.outcome.value == "flagged"]
    flagged = [e for e in flagged if compiled or not e.code.startswith("GRF")]
    lines = dict.fromkeys(f"flagged: {e.name}: {e.code} {e.reason}" for e in flagged)
    if not flagged and entries and row.key not in {e.row for e in entries}:
        used = sorted({e.row for e in entries if e.row})
        return (f"the row did not decide its own case; rows used: {', '.join(used) or 'none'}",)
    return tuple(lines)


FUNCTION = '''"""In: nothing. Out: one probe: forward, and the total that is differentiated."""
from {module} import {name}


def forward({inputs}):
    return {name}({inputs})


def total({inputs_and_heads}):
    result = {name}({inputs})
    return {total}, result
'''

MODULE = '''"""In: nothing. Out: what one probe needs: build, forward, Total."""
from mindspore import nn
from {module} import {name}


def build():
    return {name}()


def forward(net):
    def run({inputs}):
        return net({inputs})

    return run


class Total(nn.Cell):
    def __init__(self, net):
        super().__init__(auto_prefix=False)
        self.net = net

    def construct(self, {inputs_and_heads}):
        result = self.net({inputs})
        return {total}, result
'''

TOGETHER = '''"""In: functions. Out: them compiled as one graph, which takes all their arguments."""
import mindspore as ms


def compiled({functions}):
    @ms.jit(fullgraph=True)
    def step({arguments}):
        return ({calls},)

    return step
'''


def together_text(counts: Sequence[int]) -> str:
    """The file that compiles functions of so many arguments each.

    A compilation costs more than what it compiles, so the calls of a row share one.
    """
    groups = [[f"a{i}_{j}" for j in range(count)] for i, count in enumerate(counts)]
    return TOGETHER.format(
        functions=", ".join(f"f{i}" for i in range(len(counts))),
        arguments=", ".join(name for group in groups for name in group),
        calls=", ".join(f"f{i}({', '.join(group)})" for i, group in enumerate(groups)),
    )


def harness_text(probe: Probe, module: str, heads: Sequence[str]) -> str:
    """``heads``: the places of the differentiated results, like ``[0]['logits']``."""
    inputs = ", ".join(probe.names)
    cotangents = [f"c{number}" for number in range(len(heads))]
    terms = [f"(result{h} * {c}).sum()" for h, c in zip(heads, cotangents, strict=True)]
    return (MODULE if probe.is_module else FUNCTION).format(
        module=module,
        name=probe.name,
        inputs=inputs,
        inputs_and_heads=", ".join([*probe.names, *cotangents]),
        total=" + ".join(terms) or "0",
    )
