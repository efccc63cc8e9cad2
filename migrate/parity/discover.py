"""In: the text of a source file. Out: the expressions that may build a model without help.

Pure ast, so that no function is called merely to see what it is: a function counts as a builder
when it returns a Module class of the file, called, or the result of another such function. What
needs arguments takes them from a call that the file itself makes, or from a configuration class
of the file that has defaults.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


@dataclass(frozen=True)
class Candidate:
    """A class or builder function: ``build`` is its call, ``reason`` why it cannot be tried."""

    name: str
    build: str
    reason: str = ""


@dataclass(frozen=True)
class File:
    """What one file defines at its top level."""

    tree: ast.Module
    classes: Mapping[str, ast.ClassDef]
    functions: Mapping[str, ast.FunctionDef]
    names: frozenset[str]


def candidates(tree: ast.Module, modules: frozenset[str]) -> tuple[Candidate, ...]:
    """Candidates in order of the file; ``modules`` names the Module classes defined there."""
    file = File(
        tree,
        {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)},
        {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)},
        frozenset(_bound(tree)),
    )
    builders = _builders(file, modules)
    found: list[Candidate] = []
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name in modules:
            if not _has_forward(node, file):
                found.append(Candidate(node.name, f"{node.name}()", "defines no forward"))
                continue
            found.append(_candidate(node.name, _constructor(node, file), file))
        elif isinstance(node, ast.FunctionDef) and node.name in builders:
            found.append(_candidate(node.name, node.args, file))
    return tuple(c for c in found if not c.name.startswith("test"))


def _candidate(name: str, args: ast.arguments | None, file: File) -> Candidate:
    skip = 1 if name in file.classes else 0
    missing = _required(args, skip) if args else []
    if not missing:
        return Candidate(name, f"{name}()")
    call = _call_in_file(name, file)
    if call:
        return Candidate(name, call)
    given = [_configuration(argument, file) for argument in missing]
    if all(given):
        pairs = (f"{argument.arg}={text}" for argument, text in zip(missing, given, strict=True))
        return Candidate(name, f"{name}({', '.join(pairs)})")
    names = ", ".join(argument.arg for argument in missing)
    return Candidate(name, f"{name}()", f"needs {names}")


def _bound(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            yield node.name
        elif isinstance(node, ast.Assign):
            yield from (target.id for target in node.targets if isinstance(target, ast.Name))


def _call_in_file(name: str, file: File) -> str:
    """A call of ``name`` that the file makes outside classes with values that are always known."""
    body = [node for node in file.tree.body if not isinstance(node, ast.ClassDef)]
    for node in (inner for statement in body for inner in ast.walk(statement)):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
            continue
        values = [*node.args, *(keyword.value for keyword in node.keywords)]
        if node.func.id == name and all(_known(value, file) for value in values):
            return ast.unparse(node)
    return ""


def _known(value: ast.expr, file: File) -> bool:
    allowed = (
        ast.Constant, ast.Name, ast.List, ast.Tuple, ast.Dict, ast.Load, ast.UnaryOp, ast.USub,
        ast.BinOp, ast.operator, ast.keyword, ast.Call,
    )  # fmt: skip
    return all(
        isinstance(node, allowed) and (not isinstance(node, ast.Name) or node.id in file.names)
        for node in ast.walk(value)
    )


def _configuration(argument: ast.arg, file: File) -> str:
    """``Config()`` for an argument annotated with a class of the file that has defaults."""
    annotation = argument.annotation
    name = annotation.id if isinstance(annotation, ast.Name) else ""
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        name = annotation.value
    if argument.arg in ("config", "cfg", "args", "hparams") and not name:
        named = [c for c in file.classes if c.lower().endswith(("config", "args", "params"))]
        name = named[0] if len(named) == 1 else ""
    node = file.classes.get(name)
    if node is None:
        return ""
    fields = [n for n in node.body if isinstance(n, ast.AnnAssign) and n.value is None]
    constructor = _constructor(node, file)
    needs = _required(constructor, 1) if constructor else fields
    return "" if needs else f"{name}()"


def _builders(file: File, modules: frozenset[str]) -> frozenset[str]:
    known = set(modules)
    while True:
        more = {n for n, f in file.functions.items() if n not in known and _returns(f, known)}
        if not more:
            return frozenset(known - modules)
        known |= more


def _returns(function: ast.FunctionDef, known: set[str]) -> bool:
    made = {
        target.id
        for node in ast.walk(function)
        if isinstance(node, ast.Assign) and _makes(node.value, known)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    return any(
        _makes(value, known) or (isinstance(value, ast.Name) and value.id in made)
        for value in _returned(function)
    )


def _returned(function: ast.FunctionDef) -> Iterator[ast.expr]:
    waiting: list[ast.AST] = list(function.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            continue
        if isinstance(node, ast.Return) and node.value is not None:
            yield node.value
        waiting.extend(ast.iter_child_nodes(node))


def _makes(value: ast.expr, known: set[str]) -> bool:
    if not isinstance(value, ast.Call):
        return False
    if isinstance(value.func, ast.Name):
        return value.func.id in known
    return ast.unparse(value.func) in ("nn.Sequential", "torch.nn.Sequential")


def _required(args: ast.arguments, skip: int) -> list[ast.arg]:
    plain = [*args.posonlyargs, *args.args]
    without = plain[: len(plain) - len(args.defaults)][skip:]
    pairs = zip(args.kwonlyargs, args.kw_defaults, strict=True)
    return [*without, *(argument for argument, default in pairs if default is None)]


def _constructor(node: ast.ClassDef, file: File) -> ast.arguments | None:
    for owner in _lineage(node, file):
        for method in owner.body:
            if isinstance(method, ast.FunctionDef) and method.name == "__init__":
                return method.args
    return None


def _has_forward(node: ast.ClassDef, file: File) -> bool:
    """Return whether forward is defined here, or inherited from other than a plain Module."""
    for owner in _lineage(node, file):
        if any(isinstance(m, ast.FunctionDef) and m.name == "forward" for m in owner.body):
            return True
        outside = [base for base in owner.bases if ast.unparse(base) not in file.classes]
        if any(ast.unparse(base).rpartition(".")[2] != "Module" for base in outside):
            return True
    return False


def _lineage(node: ast.ClassDef, file: File) -> Iterator[ast.ClassDef]:
    waiting, seen = [node], set()
    while waiting:
        current = waiting.pop(0)
        if current.name in seen:
            continue
        seen.add(current.name)
        yield current
        names = [base.id for base in current.bases if isinstance(base, ast.Name)]
        waiting += [file.classes[name] for name in names if name in file.classes]


def without_mode(build: str) -> str:
    """Return a build expression as a Cell understands it: ``Net().eval()`` is ``Net()``.

    Cells have no ``eval`` or ``train``; verify sets the mode of every rung itself, on both sides.
    """
    try:
        node = ast.parse(build.strip(), mode="eval").body
    except SyntaxError:
        return build
    whole = node
    while (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("eval", "train")
    ):
        node = node.func.value
    return build if node is whole else ast.unparse(node)
