"""In: a guilty Cell and what torch has there. Out: the change with which the Cell passes, if any.

The Cell is built anew with other arguments, or the guilty call in its code is compiled in another
form; then it is compared on torch's input as before.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import mindspore as ms

from migrate.parity.cells import Net, restore
from migrate.parity.channel import Emit, Payload
from migrate.parity.compare import Measure
from migrate.parity.exchange import ArrayStore, Spec
from migrate.parity.importing import ARGUMENTS
from migrate.parity.inner_calls import Codes, codes_of, entry_of, recompiled
from migrate.parity.remedies import call_changes, cell_changes
from migrate.parity.replay import Job, local_measure, set_mode
from migrate.parity.tolerance import Strictness
from migrate.records.outcomes import Verdict

FINE = (Verdict.PASS, Verdict.KERNEL)


def remedy(net: Net, request: Payload, emit: Emit) -> Payload:
    """Try what is known to differ; answers ``{"text": ...}``, empty when nothing helps."""
    entry, training = entry_of(request)
    job = Job(net, {request["path"]: request["cell"]}, ArrayStore(Path(request["folder"])),
                 "pynative", Strictness(**request["strictness"]))  # fmt: skip
    set_mode("pynative")
    net.root.set_train(training)
    try:
        if request["mindspore"]:
            return {"text": _changed_call(job, entry, request)}
        return {"text": _changed_cell(job, entry, request)}
    finally:
        restore(net, "")


def _passes(job: Job, entry: Spec) -> bool:
    measure: Measure = local_measure(job, entry, {})
    return measure.verdict in FINE and measure.elements > 0


def _changed_cell(job: Job, entry: Spec, request: Payload) -> str:
    path = request["cell"]
    cell = job.net.cells[path]
    given = cell.__dict__.get(ARGUMENTS)
    if given is None or cell._cells:
        return ""
    for change in cell_changes(request["settings"], given):
        try:
            job.net.cells[path] = _rebuilt(cell, {**given, **change.arguments})
            if _passes(job, entry):
                return change.text
        except Exception:  # the framework refuses these arguments: no remedy
            continue
        finally:
            job.net.cells[path] = cell
    return ""


def _rebuilt(cell: Any, arguments: dict[str, Any]) -> Any:
    made = type(cell)(**arguments)
    for name, held in cell._params.items():
        if held is not None:
            made._params[name].set_data(ms.Tensor(held.asnumpy()))
    made.set_train(cell.training)
    return made


def _changed_call(job: Job, entry: Spec, request: Payload) -> str:
    """``mindspore`` and ``torch`` read ``net.py:12: x.var(1)``."""
    head, _, text = request["mindspore"].partition(": ")
    name, _, line = head.rpartition(":")
    root, owner = Path(job.net.source), type(job.net.cells[request["cell"]])
    tree = ast.parse((root / name).read_text(encoding="utf-8"))
    node = _at(tree, int(line), text)
    if node is None:
        return ""
    for fresh in call_changes(node, _expression(request["torch"].partition(": ")[2])):
        changed = copy.deepcopy(tree)
        _Put(int(line), text, fresh).visit(changed)
        ast.fix_missing_locations(changed)
        with _compiled_as(root, owner, root / name, changed):
            if _passes(job, entry):
                return ast.unparse(fresh)
    return ""


@contextmanager
def _compiled_as(root: Path, owner: type, file: Path, tree: ast.Module) -> Iterator[None]:
    def compiled(other: Path) -> Codes:
        return codes_of(tree, file) if other == file else {}

    with recompiled(root, owner, compiled):
        yield


def _expression(text: str) -> ast.expr | None:
    try:
        return ast.parse(text, mode="eval").body
    except SyntaxError:  # long calls are cut off
        return None


def _plain(node: ast.AST) -> str:
    return ast.dump(node)


def _at(tree: ast.Module, line: int, text: str) -> ast.expr | None:
    wanted = _expression(text)
    nodes = (n for n in ast.walk(tree) if isinstance(n, ast.expr) and n.lineno == line)
    return next((n for n in nodes if wanted is not None and _plain(n) == _plain(wanted)), None)


class _Put(ast.NodeTransformer):
    """The first expression of that text in a line replaced."""

    def __init__(self, line: int, text: str, fresh: ast.expr) -> None:
        self.line, self.wanted, self.fresh = line, _expression(text), fresh

    def visit(self, node: ast.AST) -> ast.AST:
        here = isinstance(node, ast.expr) and node.lineno == self.line
        if here and self.wanted is not None and _plain(node) == _plain(self.wanted):
            self.wanted = None
            return ast.copy_location(copy.deepcopy(self.fresh), node)
        return super().visit(node)  # type: ignore[no-any-return]
