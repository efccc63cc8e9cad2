"""In: the text of a source file. Out: the expressions that may build a model without arguments.

Pure ast, so that no function is called merely to see what it is: a function counts as a builder
when it returns a Module class of the file, called, or the result of another such function.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Candidate:
    """A class or builder function: ``build`` is its call, ``reason`` why it cannot be tried."""

    name: str
    build: str
    reason: str = ""


def candidates(tree: ast.Module, modules: frozenset[str]) -> tuple[Candidate, ...]:
    """Candidates in order of the file; ``modules`` names the Module classes defined there."""
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    builders = _builders(functions, modules)
    found: list[Candidate] = []
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name in modules:
            found.append(Candidate(node.name, f"{node.name}()", _class_reason(node, tree)))
        elif isinstance(node, ast.FunctionDef) and node.name in builders:
            missing = _required(node.args, 0)
            reason = f"needs {', '.join(missing)}" if missing else ""
            found.append(Candidate(node.name, f"{node.name}()", reason))
    return tuple(c for c in found if not c.name.startswith("test"))


def _builders(functions: list[ast.FunctionDef], modules: frozenset[str]) -> frozenset[str]:
    known = set(modules)
    while True:
        more = {f.name for f in functions if f.name not in known and _returns(f, known)}
        if not more:
            return frozenset(known - modules)
        known |= more


def _returns(function: ast.FunctionDef, known: set[str]) -> bool:
    made = {
        target.id
        for node in ast.walk(function)
        if isinstance(node, ast.Assign) and _calls(node.value, known)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    return any(
        _calls(value, known) or (isinstance(value, ast.Name) and value.id in made)
        for value in _returned(function)
    )


def _returned(function: ast.FunctionDef) -> Iterator[ast.expr]:
    waiting: list[ast.AST] = list(function.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.Lambda, ast.AsyncFunctionDef)):
            continue
        if isinstance(node, ast.Return) and node.value is not None:
            yield node.value
        waiting.extend(ast.iter_child_nodes(node))


def _calls(value: ast.expr, known: set[str]) -> bool:
    if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Name):
        return False
    return value.func.id in known


def _required(args: ast.arguments, skip: int) -> list[str]:
    plain = [*args.posonlyargs, *args.args][skip:]
    without = plain[: len(plain) - len(args.defaults)] if args.defaults else plain
    keyword = [
        a for a, default in zip(args.kwonlyargs, args.kw_defaults, strict=False) if default is None
    ]
    return [argument.arg for argument in (*without, *keyword)]


def _class_reason(node: ast.ClassDef, tree: ast.Module) -> str:
    classes = {n.name: n for n in tree.body if isinstance(n, ast.ClassDef)}
    current: ast.ClassDef | None = node
    has_forward, missing = False, None
    while current is not None:
        methods = {n.name: n for n in current.body if isinstance(n, ast.FunctionDef)}
        has_forward = has_forward or "forward" in methods
        if missing is None and "__init__" in methods:
            missing = _required(methods["__init__"].args, 1)
        names = [base.id for base in current.bases if isinstance(base, ast.Name)]
        if current.bases and not any(name in classes for name in names):
            has_forward = has_forward or not _is_plain_module(current)
        current = next((classes[name] for name in names if name in classes), None)
    if not has_forward:
        return "defines no forward"
    return f"needs {', '.join(missing)}" if missing else ""


def _is_plain_module(node: ast.ClassDef) -> bool:
    return any(ast.unparse(base) in ("nn.Module", "torch.nn.Module", "Module", "M.Module")
               for base in node.bases)  # fmt: skip
