"""In: a module and the names asked of it. Out: its source with these and what they need."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from migrate.syntax.source import Source
from migrate.vendoring.library import Library, Place, loaded
from migrate.vendoring.policy import Policy


def reduced(library: Library, policy: Policy, module: str, names: Iterable[str]) -> str:
    """The text: what the module defines itself stands as it is, in the order of the original; what
    it imports is taken from where it is defined, installed or converted; submodules come last."""
    names = frozenset(names)
    source = library.source(module)
    head = f'"""The part of {module} that is used here."""\n'
    if source is None:
        return head
    own = own_statements(library, module, names)
    kept = {id(node) for node in own}
    wanted = names | {name for node in own for name in loaded(node)}
    here: dict[int, list[str]] = {}
    for name in sorted(wanted):
        for node, _ in library.bindings(module, name)[-1:]:
            here.setdefault(id(node), []).append(name)
    parts = [_first_comments(source) + head + "\n"]
    for node in source.tree.body:
        if id(node) in kept or _is_future(node):
            parts.append(_text(source, node))
        else:
            parts += _imports(library, policy, module, here.get(id(node), ()))
    placed = {name for some in here.values() for name in some}
    parts += _imports(library, policy, module, sorted(names - placed))
    return "".join(parts)


def _imports(library: Library, policy: Policy, module: str, names: Iterable[str]) -> list[str]:
    """One line for each module that defines some of the names."""
    lines: dict[str, list[str]] = {}
    for name in names:
        place = library.origin(module, name)
        if place is None or place == (module, name):
            continue
        base, what = _written(library, policy, module, place)
        lines.setdefault(base, []).append(what + ("" if what == name else f" as {name}"))
    return [f"from {base} import {', '.join(what)}\n" for base, what in lines.items()]


def _written(library: Library, policy: Policy, module: str, place: Place) -> tuple[str, str]:
    """How a module imports what is defined at a place: relatively, if that is converted as well."""
    base, what = place
    if not what:
        base, _, what = base.rpartition(".")
    here = module.split(".") if library.is_package(module) else module.split(".")[:-1]
    there = base.split(".")
    if not here or here[0] != there[0] or not policy.converts(place[0]):
        return base, what
    same = 0
    while same < min(len(here), len(there)) and here[same] == there[same]:
        same += 1
    return "." * (len(here) - same + 1) + ".".join(there[same:]), what


def own_statements(library: Library, module: str, names: Iterable[str]) -> list[ast.stmt]:
    """The statements of the module itself that bind one of the names, and what those need.

    A statement that defines nothing, like the call of a function that registers a class, is kept
    for what is kept: it says more about it.
    """
    pending, seen = list(names), set[str]()
    found: dict[int, ast.stmt] = {}
    while pending:
        name = pending.pop()
        if name in seen or library.origin(module, name) != (module, name):
            continue
        seen.add(name)
        nodes = [node for node, place in library.bindings(module, name) if place == (module, name)]
        if not any(isinstance(node, (ast.Import, ast.ImportFrom)) for node in nodes):
            nodes += library.speaking(module, name)
        for node in nodes:
            if id(node) not in found:
                found[id(node)] = node
                pending += sorted(loaded(node))
    return list(found.values())


def _is_future(node: ast.stmt) -> bool:
    return isinstance(node, ast.ImportFrom) and node.module == "__future__"


def _first_comments(source: Source) -> str:
    """What stands above all code: who wrote it, and the licence."""
    lines = []
    for line in source.data.decode("utf-8").splitlines():
        if line.strip() and not line.startswith("#"):
            break
        lines.append(line)
    text = "\n".join(lines).strip("\n")
    return f"{text}\n" if text else ""


def _text(source: Source, node: ast.stmt) -> str:
    """The lines of a statement, with decorators and the comments right above."""
    decorators = getattr(node, "decorator_list", ())
    first = source.line_of(min(source.span(one).start for one in (node, *decorators)))
    lines = source.data.decode("utf-8").split("\n")
    while first > 1 and lines[first - 2].startswith("#") and first > 2:
        first -= 1
    last = source.line_of(source.span(node).end)
    text = "\n".join(lines[first - 1 : last]) + "\n"
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return text
    return f"\n\n{text}" if isinstance(node, (ast.FunctionDef, ast.ClassDef)) else f"\n{text}"
