"""In: a row and its case. Out: torch source text that executes each call, and its Probes."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from migrate.evidence.arguments import generated_calls
from migrate.evidence.inputs import parse_input
from migrate.row import Case, Row
from migrate.table import Table


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
    tree = ast.parse(text, mode="eval")
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
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
