"""In: an expression that runs torch code. Out: the types that its receivers had meanwhile.

Runs as a process of its own, in the user's torch environment: needs torch and numpy only.
Receivers are what attributes are asked of: ``x`` in ``x.view(2)``. Places are as ast counts them:
(first line, column in bytes, last line, column).
"""

from __future__ import annotations

import ast
import builtins
import inspect
import sys
import tempfile
from collections import Counter
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import numpy as np
import torch

from migrate.parity import importing
from migrate.parity.importing import Tree
from migrate.parity.messages import Emit, Payload, serve
from migrate.parity.request import parse_input
from migrate.parity.torch_model import FAILURES, find_inputs
from migrate.parity.torch_record import change, tensors

OBSERVER = "__torch2ms_seen__"  # among the builtins of the process

Place = tuple[int, int, int, int]


class Observed(ast.NodeTransformer):
    """``x.view(2)`` becomes ``__torch2ms_seen__(17, x).view(2)``; ``places[17]`` is that of x."""

    def __init__(self, start: int) -> None:
        self.start = start
        self.places: list[Place] = []

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        value = node.value
        place = (value.lineno, value.col_offset, value.end_lineno or 0, value.end_col_offset or 0)
        self.generic_visit(node)
        if (
            not isinstance(node.ctx, ast.Load)
            or isinstance(value, ast.Constant)
            or _is_super(value)
        ):
            return node
        number = self.start + len(self.places)
        self.places.append(place)
        args: list[ast.expr] = [ast.Constant(number), node.value]
        call = ast.Call(ast.Name(OBSERVER, ast.Load()), args, [])
        node.value = ast.copy_location(call, value)
        ast.copy_location(call.func, value)
        ast.copy_location(args[0], value)
        return node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        return node  # before Python 3.12 the places in it are not those in the file

    def visit_MatchValue(self, node: ast.AST) -> ast.AST:
        return node  # a pattern admits no call

    visit_MatchClass = visit_MatchMapping = visit_MatchValue

    # Annotations are read by others (dataclasses, torch.jit), not run for what they do.
    def visit_arg(self, node: ast.arg) -> ast.AST:
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        if node.value is not None:
            node.value = self.visit(node.value)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        returns, node.returns = node.returns, None
        self.generic_visit(node)
        node.returns = returns
        return node


def _is_super(node: ast.expr) -> bool:
    return (
        isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super"
    )


def compiled(data: bytes, path: str, start: int) -> tuple[CodeType, list[Place]]:
    """Return the code of a file, observed; its places are numbered from ``start``."""
    tree = ast.parse(data, path)
    observed = Observed(start)
    code = compile(observed.visit(tree), path, "exec", dont_inherit=True)
    return code, observed.places


_PYTHON = frozenset(getattr(sys, "stdlib_module_names", ("builtins", "collections")))
_NAMES = {torch.Size: "Size", torch.dtype: "dtype", torch.device: "device"}


class Observer:
    """Counts the types at each place of the files below ``root``, which are observed at import."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.counts: Counter[tuple[int, type]] = Counter()
        self.places: list[tuple[str, Place]] = []

    def see(self, number: int, value: Any) -> Any:
        self.counts[number, type(value)] += 1
        return value

    def code(self, data: bytes, path: str) -> CodeType | None:
        """Return the observed code of a file below the root; None for any other."""
        file = Path(path)
        if not file.is_relative_to(self.root) or "site-packages" in file.parts:
            return None
        code, places = compiled(data, path, len(self.places))
        relative = file.relative_to(self.root).as_posix()
        self.places += [(relative, place) for place in places]
        return code

    def found(self) -> list[Payload]:
        """Return one row for each place and type: file, place, what, name, times."""
        rows = []
        for (number, owner), times in self.counts.items():
            if owner in (ModuleType, type(None)) or issubclass(owner, type):
                continue
            file, place = self.places[number]
            what, name = described(owner, self.root)
            row = {"file": file, "place": place, "what": what, "name": name, "times": times}
            rows.append(row)
        return rows


def described(owner: type, root: Path) -> tuple[str, str]:
    """Return what a type is to the converter, and the name of its class."""
    own = f"{owner.__module__}.{owner.__qualname__}".removeprefix("builtins.")
    if owner in (torch.Tensor, torch.nn.Parameter):
        return "Tensor", ""
    if owner in _NAMES:
        return _NAMES[owner], ""
    if issubclass(owner, torch.Tensor):
        return "unclear", own
    if issubclass(owner, torch.nn.Module):
        public = getattr(torch.nn, owner.__name__, None) is owner
        return "Module", f"torch.nn.{owner.__name__}" if public else _key(owner, root) or own
    if issubclass(owner, torch.optim.Optimizer):
        return "Optimizer", ""
    plain = owner.__module__.partition(".")[0] in _PYTHON or owner is np.ndarray
    of_torch = any(base.__module__.startswith("torch") for base in owner.__mro__)
    if not of_torch and (plain or _key(owner, root)):
        return "plain", own
    return "unclear", own


def _key(owner: type, root: Path) -> str:
    """ "file::Class" of a class below the root, as the converter names it; "" for any other."""
    try:
        file = Path(inspect.getsourcefile(owner) or "")
    except (TypeError, OSError):
        return ""
    inside = file.is_relative_to(root) and "site-packages" not in file.parts
    return f"{file.relative_to(root).as_posix()}::{owner.__qualname__}" if inside else ""


def trace(request: Payload, emit: Emit) -> Payload:
    """Import the file observed, evaluate ``build`` in it, and run the model that comes of it."""
    root = Path(request["root"])
    observer = Observer(root)
    _observe(observer)
    module = importing.load(Tree(root, request["package"]), request["file"])
    torch.manual_seed(request["seed"])
    value = eval(request["build"], vars(module))  # the user's own expression
    if inspect.isclass(value) and issubclass(value, torch.nn.Module):
        value = value()
    used: list[str] = []
    if isinstance(value, torch.nn.Module):
        used = _run(value, request, observer)
    return {"found": observer.found(), "inputs": used, "result": type(value).__name__}


def _observe(observer: Observer) -> None:
    """Let every file below the root be compiled with its receivers observed."""
    plain = SourceFileLoader.source_to_code

    def source_to_code(loader: Any, data: Any, path: Any, **options: Any) -> Any:
        code = observer.code(data, path) if isinstance(data, bytes) else None
        return plain(loader, data, path, **options) if code is None else code

    SourceFileLoader.source_to_code = source_to_code  # type: ignore[method-assign, assignment]
    setattr(builtins, OBSERVER, observer.see)
    # what was compiled before, without the observer, must not be taken
    sys.pycache_prefix = tempfile.mkdtemp(prefix="torch2ms_trace", dir=".")


def _run(model: torch.nn.Module, request: Payload, observer: Observer) -> list[str]:
    """Forward in eval and train mode, and backward where it can be; gives the inputs used."""
    before = observer.counts.copy()
    specs = tuple(parse_input(text) for text in request["inputs"])
    specs, (args, kwargs) = find_inputs(model, specs, request["seed"])
    observer.counts = before  # inputs that were merely tried are no evidence
    for training in (False, True):
        model.train(training)
        try:
            made = model(*change(args, torch.clone), **change(kwargs, torch.clone))
            heads = [t for t in tensors(made) if t.requires_grad]
            if training and heads:
                torch.autograd.backward(heads, [torch.ones_like(t) for t in heads])
        except FAILURES:
            if not training:
                raise
    return [spec.text for spec in specs]


def main() -> None:
    """Serve until stdin ends."""
    torch.backends.mha.set_fastpath_enabled(False)  # else children of attention never run
    sys.argv = ["torch2ms"]
    serve({"trace": trace})


if __name__ == "__main__":
    main()
