"""In: a file of a program. Out: the files that imports connect with it."""

from __future__ import annotations

import ast

from migrate.program import File, Program
from migrate.training.marks import View


def connected(view: View) -> list[File]:
    """The files that imports, in either direction, connect with this one."""
    program = view.inference.program
    near: dict[str, set[str]] = {path: set() for path in program.files}
    for path, file in program.files.items():
        for other in _imported(program, file) & set(near):
            near[path].add(other)
            near[other].add(path)
    found, waiting = {view.file.path}, [view.file.path]
    while waiting:
        more = near[waiting.pop()] - found
        found |= more
        waiting += more
    return [program.files[path] for path in sorted(found)]


def _imported(program: Program, file: File) -> set[str]:
    found: set[str | None] = set()
    for node in file.imports:
        if isinstance(node, ast.Import):
            found |= {program.linked(file.path, a.name) for a in node.names}
            continue
        module, level = node.module or "", node.level
        found.add(program.linked(file.path, module, level))
        for alias in node.names:
            name = f"{module}.{alias.name}".strip(".")
            found.add(program.linked(file.path, name, level))
    return {path for path in found if path}
