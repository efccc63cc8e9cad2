"""In: an expression that runs torch code. Out: the types that its receivers had meanwhile.

Runs as a process of its own, in the user's torch environment: needs torch and numpy only.
"""

from __future__ import annotations

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

from migrate.parity import importing, seeing
from migrate.parity.channel import Emit, Payload, serve
from migrate.parity.importing import Tree
from migrate.parity.request import parse_input
from migrate.parity.torch_inputs import FAILURES, find_inputs
from migrate.parity.torch_values import change, tensors

_PYTHON = frozenset(getattr(sys, "stdlib_module_names", ("builtins", "collections")))
_NAMES = {torch.Size: "Size", torch.dtype: "dtype", torch.device: "device"}


class Observer:
    """Counts the types at each place of the files below ``root``, which are observed at import."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.counts: Counter[tuple[int, type]] = Counter()
        self.places: list[tuple[str, seeing.Place]] = []

    def see(self, number: int, value: Any) -> Any:
        self.counts[number, type(value)] += 1
        return value

    def code(self, data: bytes, path: str) -> CodeType | None:
        """The observed code of a file below the root; None for any other."""
        file = Path(path)
        if not file.is_relative_to(self.root) or "site-packages" in file.parts:
            return None
        code, places = seeing.compiled(data, path, len(self.places))
        relative = file.relative_to(self.root).as_posix()
        self.places += [(relative, place) for place in places]
        return code

    def found(self) -> list[Payload]:
        """One row for each place and type: file, place, what, name, times."""
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
    """What a type is to the converter, and the name of its class."""
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
    setattr(builtins, seeing.OBSERVER, observer.see)
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
