"""In: a file of a program. Out: the files that it may share objects with, through imports.

Scripts that lie in one folder and import nothing of each other say nothing about each other.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from migrate.program import File, Program
from migrate.scene import Scene

_KEY = "neighbours"


def neighbours(scene: Scene) -> tuple[File, ...]:
    """The file itself and all that imports join to it, in either direction and over others."""
    if _KEY not in scene._memo:
        scene._memo[_KEY] = _joined(scene)
    found = scene._memo[_KEY]
    assert isinstance(found, tuple)
    return found


def mentions(scene: Scene, *words: bytes) -> bool:
    """Whether the text of one of these files holds one of the words."""
    return any(word in file.source.data for file in neighbours(scene) for word in words)


def _links(program: Program) -> dict[str, set[str]]:
    """The files that an import joins, by the path of either."""
    if _KEY not in program.notes:
        links: dict[str, set[str]] = {path: set() for path in program.files}
        for path, file in program.files.items():
            for other in _imports(program, file):
                links[path].add(other)
                links[other].add(path)
        program.notes[_KEY] = links
    found: dict[str, set[str]] = program.notes[_KEY]
    return found


def _joined(scene: Scene) -> tuple[File, ...]:
    files = scene.inference.program.files
    links = _links(scene.inference.program)
    seen, waiting = {scene.file.path}, [scene.file.path]
    while waiting:
        new = links.get(waiting.pop(), set()) - seen
        seen |= new
        waiting += new
    return tuple(files[path] for path in sorted(seen) if path in files)


def _imports(program: Program, file: File) -> Iterator[str]:
    """The files of the program that one of them imports."""
    for node in file.imports:
        names: list[tuple[str, int]] = []
        if isinstance(node, ast.Import):
            names = [(alias.name, 0) for alias in node.names]
        else:
            origin = node.module or ""
            full = [f"{origin}.{alias.name}".lstrip(".") for alias in node.names]
            names = [(name, node.level) for name in (origin, *full)]
        for name, level in names:
            path = program.linked(file.path, name, level) if name or level else None
            if path is not None and path in program.files:
                yield path
