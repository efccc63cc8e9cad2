"""In: a guilty Cell and what torch has there. Out: the change with which the Cell passes, if any.

What differs silently between the frameworks is known: eps, the sense of a momentum, tanh for erf,
pad_mode, Bessel's correction, an axis, a transposed weight. The Cell is built anew with other
arguments, or the guilty call in its code is compiled in another form; then it is compared on
torch's input as before.
"""

from __future__ import annotations

import ast
import copy
import itertools
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mindspore as ms

from migrate.parity.cells import Net, restore
from migrate.parity.compare import Measure, Strictness
from migrate.parity.exchange import ArrayStore, Spec
from migrate.parity.importing import ARGUMENTS
from migrate.parity.inner_calls import Codes, codes_of, entry_of, recompiled
from migrate.parity.messages import Emit, Payload
from migrate.parity.replay import Job, local_measure, set_mode
from migrate.records.outcomes import Verdict
from migrate.syntax.trees import last_name

# torch's name of a setting -> the arguments of MindSpore's Cells that say the same
SPELLINGS = {
    "eps": ("eps", "epsilon"), "negative_slope": ("alpha", "negative_slope"), "alpha": ("alpha",),
    "dim": ("axis", "dim"), "groups": ("group", "groups"), "ceil_mode": ("ceil_mode",),
    "count_include_pad": ("count_include_pad",), "stride": ("stride",), "beta": ("beta",),
    "dilation": ("dilation",), "kernel_size": ("kernel_size",), "num_groups": ("num_groups",),
    "align_corners": ("align_corners",), "mode": ("mode",), "p": ("p",), "threshold":
    ("threshold",), "output_padding": ("output_padding",), "batch_first": ("batch_first",),
    "scale_factor": ("scale_factor",), "upscale_factor": ("upscale_factor",), "min_val":
    ("min_val",), "max_val": ("max_val",), "lambd": ("lambd",), "output_size": ("output_size",),
}  # fmt: skip
APPROXIMATE = {"none": False, "tanh": True}
Values = dict[str, tuple[Any, ...]]
SWITCHED: Values = {
    "ddof": (0, 1), "unbiased": (True, False), "align_corners": (True, False),
    "approximate": ("none", "tanh"), "training": (True, False),
}  # fmt: skip
AXES = ("axis", "dim", "axes", "dims")
EXCHANGED = ("where", "matmul", "cat", "sub", "div")
# what a function takes that it does not take from torch by default
ADDED: dict[str, Values] = {
    "gelu": {"approximate": ("none", "tanh")}, "var": {"ddof": (0, 1)}, "std": {"ddof": (0, 1)},
    "leaky_relu": {"alpha": (0.01,)},
}  # fmt: skip
MOST = 40


@dataclass(frozen=True)
class Change:
    """Arguments with which a Cell is built anew, and what they are called."""

    arguments: Mapping[str, Any]
    text: str


def cell_changes(torch: Mapping[str, Any], given: Mapping[str, Any]) -> Iterator[Change]:
    """Changes of the arguments that a Cell was built with, one after another, then all together.

    ``torch`` are the settings of the module, ``given`` all arguments of the Cell by name.
    """
    found = list(_single(torch, given))
    yield from found
    if len(found) > 1:
        whole: dict[str, Any] = {}
        for change in found:
            whole |= {name: v for name, v in change.arguments.items() if name not in whole}
        yield Change(whole, " and ".join(change.text for change in found))


def _single(torch: Mapping[str, Any], given: Mapping[str, Any]) -> Iterator[Change]:
    for name, value in torch.items():
        for other in SPELLINGS.get(name, ()):
            if other in given and not _same(given[other], value):
                yield _change({other: value})
    if "padding" in torch and "pad_mode" in given:
        padding = _padding(torch["padding"])
        if given["pad_mode"] != "pad" or not _same(given.get("padding"), padding):
            yield _change({"pad_mode": "pad", "padding": padding})
    elif "padding" in torch and "padding" in given and not _same(given["padding"],
                                                                 torch["padding"]):  # fmt: skip
        yield _change({"padding": torch["padding"]})
    if isinstance(given.get("approximate"), bool) and torch.get("approximate") in APPROXIMATE:
        yield _change({"approximate": APPROXIMATE[torch["approximate"]]})
    if "momentum" in given and isinstance(torch.get("momentum"), float):
        sense = f"momentum=1 - {torch['momentum']!r} (it weighs the old value here)"
        yield Change({"momentum": 1 - torch["momentum"]}, sense)
        yield _change({"momentum": torch["momentum"]})
    if given.get("use_batch_statistics") is not None:
        yield _change({"use_batch_statistics": None})


def _change(arguments: dict[str, Any]) -> Change:
    return Change(arguments, ", ".join(f"{name}={value!r}" for name, value in arguments.items()))


def _padding(value: Any) -> Any:
    """Return MindSpore's padding, a number for each side: torch pads both sides alike."""
    if isinstance(value, (tuple, list)) and len(value) == 2:
        return (value[0], value[0], value[1], value[1])
    return value


def _same(one: Any, other: Any) -> bool:
    def plain(value: Any) -> Any:
        items = tuple(value) if isinstance(value, (tuple, list)) else (value,)
        return items[0] if len(set(items)) == 1 else items

    return bool(plain(one) == plain(other))


def call_changes(call: ast.expr, torch: ast.expr | None) -> Iterator[ast.expr]:
    """Other forms of a guilty call: torch's numbers, and what is often exchanged."""
    forms = itertools.chain(
        _constants(call, torch), _keywords(call), _axes(call), _order(call), _layouts(call)
    )
    return itertools.islice(forms, MOST)


def _constants(call: ast.expr, torch: ast.expr | None) -> Iterator[ast.expr]:
    """Torch's numbers in place of those that differ, where both have as many."""
    mine, theirs = _numbers(call), _numbers(torch) if torch is not None else []
    if len(mine) == len(theirs):
        for place, (one, other) in enumerate(zip(mine, theirs, strict=True)):
            if one.value != other.value:
                changed = copy.deepcopy(call)
                _numbers(changed)[place].value = other.value
                yield changed


def _numbers(node: ast.expr) -> list[ast.Constant]:
    """Return the plain numbers of an expression, in the order of the text."""
    found = [n for n in ast.walk(node) if isinstance(n, ast.Constant)
             and isinstance(n.value, (int, float))]  # fmt: skip
    return sorted(found, key=lambda n: (n.lineno, n.col_offset))


def _keywords(call: ast.expr) -> Iterator[ast.expr]:
    if not isinstance(call, ast.Call):
        return
    for place, keyword in enumerate(call.keywords):
        for value in SWITCHED.get(keyword.arg or "", ()):
            changed = copy.deepcopy(call)
            changed.keywords[place].value = ast.Constant(value)
            yield changed
    given = {keyword.arg for keyword in call.keywords}
    for name, values in ADDED.get(_name(call), {}).items():
        for value in values if name not in given else ():
            changed = copy.deepcopy(call)
            changed.keywords.append(ast.keyword(name, ast.Constant(value)))
            yield changed


def _axes(call: ast.expr) -> Iterator[ast.expr]:
    """Yield every other axis, of tensors up to four axes."""
    for place, keyword in enumerate(call.keywords if isinstance(call, ast.Call) else ()):
        if keyword.arg in AXES:
            for axis in (-1, 1, 2, 0, -2, 3):
                changed = copy.deepcopy(call)
                assert isinstance(changed, ast.Call)
                changed.keywords[place].value = ast.Constant(axis)
                yield changed


def _order(call: ast.expr) -> Iterator[ast.expr]:
    """Yield the last two arguments exchanged, or the parts of a list."""
    if not isinstance(call, ast.Call) or _name(call) not in EXCHANGED:
        return
    changed = copy.deepcopy(call)
    first = changed.args[0] if changed.args else None
    if isinstance(first, (ast.List, ast.Tuple)):
        first.elts.reverse()
        yield changed
    elif len(changed.args) > 1:
        changed.args[-2:] = changed.args[:-3:-1]
        yield changed


def _layouts(call: ast.expr) -> Iterator[ast.expr]:
    """Yield a matrix transposed or no longer transposed."""
    matrices = call.args if isinstance(call, ast.Call) and _name(call) == "matmul" else ()
    for place, matrix in enumerate(matrices):
        changed = copy.deepcopy(call)
        assert isinstance(changed, ast.Call)
        is_turned = isinstance(matrix, ast.Attribute) and matrix.attr == "T"
        turned = ast.Call(ast.Attribute(matrix, "swapaxes", ast.Load()),
                          [ast.Constant(-1), ast.Constant(-2)], [])  # fmt: skip
        changed.args[place] = copy.deepcopy(matrix.value) if is_turned else turned  # type: ignore[attr-defined]
        yield changed


def _name(call: ast.Call) -> str:
    func = call.func
    name = last_name(func)
    return name.removeprefix("torch_")


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
