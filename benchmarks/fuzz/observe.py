"""Check that every type seen when a torch program runs is inside the kind that was inferred."""

from __future__ import annotations

import ast
import contextlib
import copy
import io
import sys
import types
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from harness import run
from programs import Program, files_of
from torch_side import SIDE, TookLong, limited

from migrate.analysis.types.inference import Inference
from migrate.analysis.types.kinds import Atom, Kind
from migrate.engine import rewrite
from migrate.mapping import table
from migrate.syntax.source import read

_ELEMENTS = 50  # of a container that are looked at
_SKIPPED = (ast.Starred, ast.Slice, ast.JoinedStr, ast.FormattedValue, ast.Lambda, ast.Yield,
            ast.YieldFrom, ast.Await, ast.NamedExpr)  # fmt: skip


@dataclass(frozen=True)
class Violation:
    """A value that was seen where the analysis says that it cannot be."""

    path: str
    line: int
    text: str
    inferred: str
    observed: str
    node: str

    @property
    def kind(self) -> str:
        """What is wrong, without names."""
        return f"{self.node} {self.inferred.partition('[')[0]} / {self.observed.partition('[')[0]}"

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.text}: inferred {self.inferred}, observed {self.observed}"


class _Instrumented(ast.NodeTransformer):
    """Every loaded expression with a kind goes through ``__seen__(number, value)``."""

    def __init__(self, numbers: Mapping[int, int]) -> None:
        self.numbers = numbers

    def visit(self, node: ast.AST) -> Any:
        if isinstance(node, ast.FunctionDef):
            node.body = [self.visit(one) for one in node.body]
            node.args.defaults = [self.visit(one) for one in node.args.defaults]
            return node
        if isinstance(node, ast.ClassDef):
            node.body = [self.visit(one) for one in node.body]
            return node
        if isinstance(node, ast.match_case):
            node.guard = self.visit(node.guard) if node.guard else None
            node.body = [self.visit(one) for one in node.body]
            return node
        if isinstance(node, ast.AnnAssign):
            node.value = self.visit(node.value) if node.value else None
            return node
        number = self.numbers.get(id(node))
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id == "super"
        ):
            return node
        self.generic_visit(node)
        loaded = isinstance(getattr(node, "ctx", ast.Load()), ast.Load)
        if (
            number is None
            or not isinstance(node, ast.expr)
            or not loaded
            or isinstance(node, _SKIPPED)
        ):
            return node
        seen = ast.Name("__seen__", ast.Load())
        return ast.copy_location(ast.Call(seen, [ast.Constant(number), node], []), node)


class Observer:
    """The inference of the files of a folder, and what running them shows."""

    def __init__(self, files: Mapping[str, str], rows: table.Table) -> None:
        self.files = files
        sources = {name: read(name, text.encode()) for name, text in files.items()}
        built = rewrite.analyse(sources, rows)
        self.inference: Inference = _of_original(built, sources, rows)
        self.nodes: list[tuple[str, ast.expr]] = []
        self.violations: dict[int, Violation] = {}
        self.looked = 0
        self.known = 0
        self._checked: dict[tuple[int, Any], bool] = {}

    def modules(self) -> dict[str, Any]:
        """The main module, executed with its expressions observed."""
        names = sorted(self.files, key=lambda name: name == "main.py")
        made: types.ModuleType | None = None
        for name in names:
            tree = self.inference.program.files[name].source.tree
            numbers: dict[int, int] = {}
            twin = copy.deepcopy(tree)
            for node, other in zip(ast.walk(tree), ast.walk(twin), strict=True):
                if isinstance(node, ast.expr) and id(node) in self.inference.kinds:
                    numbers[id(other)] = len(self.nodes)
                    self.nodes.append((name, node))
            shown = ast.fix_missing_locations(_Instrumented(numbers).visit(twin))
            made = types.ModuleType(name.removesuffix(".py"))
            sys.modules[made.__name__] = made
            made.__dict__["__seen__"] = self.seen
            exec(compile(shown, name, "exec"), made.__dict__)
        assert made is not None
        return made.__dict__

    def first_of(self, programs: Sequence[Program]) -> Iterator[tuple[Program, Violation]]:
        """The first violation in each program; what is wrong at first spoils what follows."""
        text = self.files["main.py"]
        for program in programs:
            first = text[: text.index(program.text)].count("\n") + 1
            last = first + program.text.count("\n")
            mine = [v for v in self.violations.values()
                    if v.path in program.others or (v.path == "main.py" and first <= v.line <= last)]  # fmt: skip
            if mine:
                yield program, mine[0]

    def seen(self, number: int, value: Any) -> Any:
        name, node = self.nodes[number]
        inferred = self.inference.kinds[id(node)]
        self.looked += 1
        if not inferred or any(a.kind == "unknown" for a in inferred):
            return value
        self.known += 1
        if number not in self.violations and not inside(value, inferred):
            text = ast.unparse(node)
            self.violations[number] = Violation(
                name, node.lineno, text[:80], shown(inferred), described(value), type(node).__name__
            )
        return value


def _of_original(
    built: rewrite.Analysed, sources: Mapping[str, Any], rows: table.Table
) -> Inference:
    """The inference of the files as they were: training loops are restructured otherwise."""
    if not built.staged:
        return built.inference
    from migrate.analysis import index
    from migrate.syntax.deep import deeply

    inference = Inference(index.build(sources, None, ""), rows)
    deeply(inference.everything)
    return inference


def inside(value: Any, inferred: Kind, depth: int = 0) -> bool:
    """Whether a value is one of the alternatives."""
    return depth > 6 or not inferred or any(_is(value, atom, depth) for atom in inferred)


def _is(value: Any, atom: Atom, depth: int) -> bool:
    what = atom.kind
    if isinstance(value, slice) or value is Ellipsis:
        return True
    if what in ("unknown", "torch", "alias", "Step"):
        return True
    if what == "Tensor":
        return isinstance(value, torch.Tensor)
    if what == "None":
        return value is None
    if what == "int":
        return isinstance(value, int) and not isinstance(value, bool)
    if what in ("float", "bool", "str"):
        return isinstance(value, {"float": float, "bool": bool, "str": str}[what])
    if what == "Module":
        return isinstance(value, torch.nn.Module) and _named(value, atom.name)
    if what == "Size":
        return isinstance(value, torch.Size)
    if what in ("list", "tuple"):
        return _is_sequence(value, atom, depth)
    if what == "dict":
        if not isinstance(value, dict):
            return False
        return not atom.items or all(
            any(inside(v, item, depth + 1) for item in atom.items)
            for v in list(value.values())[:_ELEMENTS]
        )
    if what == "dtype":
        return isinstance(value, torch.dtype)
    if what == "device":
        return isinstance(value, torch.device)
    if what == "Optimizer":
        return isinstance(value, torch.optim.Optimizer)
    if what == "instance" and atom.name == "numpy.ndarray":
        return isinstance(value, (np.ndarray, np.generic, int, float))
    if what == "instance" and atom.name == "numpy.float64":
        return isinstance(value, (np.generic, int, float))
    if what in ("instance", "foreign", "partial", "iterator", "text"):
        # the name of an instance says what was called to get it, not what it is
        return what == "instance" or not isinstance(value, torch.Tensor)
    if what in ("function", "method", "class"):
        return callable(value)
    if what == "Object":
        return type(value).__module__ == "main" or not isinstance(value, (torch.Tensor, list, int))
    if what == "ref":
        return not isinstance(value, (torch.Tensor, list, dict, str)) or bool(atom.name)
    return True


def _is_sequence(value: Any, atom: Atom, depth: int) -> bool:
    # a list stands for every sequence and set of one kind of element
    types_ = (tuple,) if atom.kind == "tuple" else (list, set, frozenset, range)
    if not isinstance(value, types_):
        return atom.kind == "list" and type(value).__module__ in ("collections", "builtins") and not isinstance(
            value, (int, float, str, dict, tuple, type(None))
        )  # fmt: skip
    if atom.fixed:
        return len(value) == len(atom.items) and all(
            inside(v, item, depth + 1) for v, item in zip(value, atom.items, strict=True)
        )
    if not atom.items:
        return True
    return all(inside(v, atom.items[0], depth + 1) for v in list(value)[:_ELEMENTS])


def _named(value: Any, name: str) -> bool:
    if not name or name in ("torch.nn.Module",):
        return True
    last = name.rpartition(".")[2].rpartition(":")[2]
    return any(base.__name__ == last for base in type(value).__mro__)


def shown(inferred: Kind) -> str:
    return " | ".join(sorted(
        a.kind + (f" {a.name}" if a.name else "")
        + (f"[{', '.join(shown(i) for i in a.items)}]" if a.items else "") for a in inferred
    ))  # fmt: skip


def described(value: Any, depth: int = 0) -> str:
    name = type(value).__name__
    if isinstance(value, (list, tuple, set)) and depth < 3:
        kinds = dict.fromkeys(described(v, depth + 1) for v in list(value)[:_ELEMENTS])
        return f"{name}[{', '.join(kinds)}]"
    if isinstance(value, dict) and depth < 3:
        kinds = dict.fromkeys(described(v, depth + 1) for v in list(value.values())[:_ELEMENTS])
        return f"{name}[{', '.join(kinds)}]"
    return name


def observed(programs: Sequence[Program], rows: table.Table) -> tuple[Observer, list[str]]:
    """An observer that has seen every program of a folder run, and what did not run."""
    observer = Observer(files_of(programs), rows)
    module = observer.modules()
    failed = []
    with contextlib.redirect_stdout(io.StringIO()):
        for program in programs:
            try:
                with limited(8.0):
                    found, _ = run(program, module, SIDE, {}, gradients=False)
            except TookLong:
                found = {"run": ("raises", "it has no end")}
            failed += [f"{program.name} {k}: {v[1]}" for k, v in found.items() if v[0] == "raises"]
    return observer, failed
