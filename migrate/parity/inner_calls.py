"""In: a Module or Cell and a call of it. Out: the result of every call and operation in its code.

Both frameworks are watched in the same way: the functions of a file are compiled once more, with
each call and each operation passed through an observer, and put back afterwards.
"""

from __future__ import annotations

import ast
import builtins
import sys
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from migrate.parity.exchange import Array, ArrayStore, Spec, read_index

OBSERVER = "__torch2ms_result__"  # among the builtins of the process, while it watches
MOST = 300  # results kept
Observe = Callable[[str, Any, str], None]
Codes = dict[tuple[str, int], types.CodeType]  # by name and first line
Compiled = Callable[[Path], Codes]


@dataclass
class Seen:
    """The arrays of what was observed: ``rows`` are {place, within, key, shape}, first to last."""

    store: ArrayStore
    tensors: Callable[[Any], list[Array]]
    rows: list[Spec] = field(default_factory=list)

    def observe(self, place: str, value: Any, within: str) -> None:
        for array in self.tensors(value):
            if len(self.rows) < MOST and array.size:
                key = self.store.put(array)
                shape = list(array.shape)
                self.rows.append({"place": place, "within": within, "key": key, "shape": shape})


def entry_of(request: Spec) -> tuple[Spec, bool]:
    """Return the recorded call that a request names, and whether it was made in train mode."""
    index = read_index(Path(request["folder"]))
    place = (request["path"], request["call"])
    found = next(one for one in index["calls"] if (one["path"], one["call"]) == place)
    return found, bool(index["training"])


@dataclass
class Marked(ast.NodeTransformer):
    """``f(x) + y`` in a function becomes observer(1, observer(0, f(x)) + y)."""

    lines: list[str]
    places: list[str] = field(default_factory=list)

    def _watched(self, node: ast.expr) -> ast.AST:
        text = ast.get_source_segment("".join(self.lines), node) or ""
        self.generic_visit(node)
        number = len(self.places)
        self.places.append(f"{node.lineno}: {' '.join(text.split())[:120]}")
        name = ast.Name(OBSERVER, ast.Load())
        made = ast.Call(name, [ast.Constant(number), node], [])
        return ast.fix_missing_locations(ast.copy_location(made, node))

    def visit_Call(self, node: ast.Call) -> ast.AST:
        return self._watched(node)

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        return self._watched(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        return self._watched(node)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        return node  # before Python 3.12 the places in it are not those in the file

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.body = [self.visit(statement) for statement in node.body]
        return node  # decorators and defaults run once, when the function is made


@contextmanager
def recompiled(root: Path, owner: type, compiled: Compiled) -> Iterator[None]:
    """Give the functions of the files that define a class other code, and put theirs back.

    Files that do not lie below root (those of the framework) are left alone. ``compiled`` answers
    a file's new code by name and first line.
    """
    before: list[tuple[types.FunctionType, types.CodeType]] = []
    try:
        for file, functions in _files(root, owner).items():
            codes = compiled(file)
            for function in functions:
                new = codes.get((function.__code__.co_name, function.__code__.co_firstlineno))
                if new is not None and new.co_freevars == function.__code__.co_freevars:
                    before.append((function, function.__code__))
                    function.__code__ = new
        yield
    finally:
        for function, code in before:
            function.__code__ = code


@contextmanager
def watched(root: Path, owner: type, observe: Observe) -> Iterator[None]:
    """Call ``observe(place, value, function)`` for what runs in the files that define a class.

    A place reads ``net.py:12: x.var(1)``.
    """
    places: list[str] = []

    def compiled(file: Path) -> Codes:
        codes, marked = _compiled(file, len(places), root)
        places.extend(marked)
        return codes

    def result(number: int, value: Any) -> Any:
        observe(places[number], value, sys._getframe(1).f_code.co_name)
        return value

    try:
        with recompiled(root, owner, compiled):
            setattr(builtins, OBSERVER, result)
            yield
    finally:
        if hasattr(builtins, OBSERVER):
            delattr(builtins, OBSERVER)


def _files(root: Path, owner: type) -> dict[Path, list[types.FunctionType]]:
    """The functions of the file of each class in the line of ``owner`` that lies below root."""
    found: dict[Path, list[types.FunctionType]] = {}
    for kind in owner.__mro__:
        module = sys.modules.get(kind.__module__)
        name = getattr(module, "__file__", None)
        if not name or not Path(name).is_relative_to(root) or Path(name) in found:
            continue
        held = [v for v in vars(module).values() if getattr(v, "__module__", "") == kind.__module__]
        inner = [v for one in held if isinstance(one, type) for v in vars(one).values()]
        functions = [v for v in (*held, *inner) if isinstance(v, types.FunctionType)]
        found[Path(name)] = [f for f in functions if f.__code__.co_filename == name]
    return found


def _mark(body: list[ast.stmt], marked: Marked) -> None:
    """Mark what stands in functions; what a file or class runs when it is read stays."""
    for one in body:
        if isinstance(one, ast.ClassDef):
            _mark(one.body, marked)
        elif isinstance(one, ast.FunctionDef):
            marked.visit(one)


def _compiled(file: Path, start: int, root: Path) -> tuple[Codes, list[str]]:
    """Return the functions of a file with observers, and the places."""
    text = file.read_text(encoding="utf-8")
    marked = Marked(text.splitlines(keepends=True), ["" for _ in range(start)])
    tree = ast.parse(text)
    _mark(tree.body, marked)
    short = file.relative_to(root).as_posix()
    return codes_of(tree, file), [f"{short}:{place}" for place in marked.places[start:]]


def codes_of(tree: ast.Module, file: Path) -> Codes:
    """Return the code of every function of a file."""
    codes: Codes = {}
    waiting = [compile(tree, str(file), "exec")]
    while waiting:
        code = waiting.pop()
        codes[code.co_name, code.co_firstlineno] = code
        waiting += [one for one in code.co_consts if isinstance(one, types.CodeType)]
    return codes
