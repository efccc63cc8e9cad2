"""In: a file, or an import of it. Out: the kinds of the names that its top level binds."""

from __future__ import annotations

import ast

from migrate.analysis.program import Class, File
from migrate.analysis.types import values
from migrate.analysis.types.flow import Flow
from migrate.analysis.types.kinds import NOTHING, UNKNOWN, Kind, kind
from migrate.analysis.types.outside import kind_along
from migrate.analysis.types.world import World
from migrate.mapping.names import root_of


def bind(file: File, flow: Flow) -> None:
    """Bind in the walk of a file's top level what its definitions and imports say."""
    for name, item in file.top.items():
        flow.variables[name] = kind("class" if isinstance(item, Class) else "function", item.key)
    for node in file.imports:
        top = node in file.source.tree.body
        if isinstance(node, ast.Import) and top:
            flow._Import(node)
        elif isinstance(node, ast.ImportFrom) and top and node.names[0].name != "*":
            flow._ImportFrom(node)


def imported(world: World, path: str, module: str, level: int, name: str | None) -> Kind:
    """The kind of an imported module, or of a name from it."""
    full = f"{module}.{name}" if name else module
    if not level and (along := kind_along(full, path, world)) is not None:
        return along
    target = world.program.find_module(path, module, level)
    if target is not None:
        if name is None:
            return kind("project", target)
        found = world.global_kind(target, name) if target != path else NOTHING
        if found:
            return found
        inner = world.program.submodule(target, name)
        return kind("project", inner) if inner else UNKNOWN
    if level and name is not None:
        folder = world.program.find_module(path, f"{module}.{name}".strip("."), level)
        if folder:
            return kind("project", folder)
        # a module of the package that is not part of the conversion
        return UNKNOWN if module else kind("foreign", f"{'.' * level}{name}")
    if root_of(full) in world.roots:
        return values.torch_name(full, world, direct=True)
    return kind("foreign", full)
