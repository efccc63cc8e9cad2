"""In: the text of a file in migrate/helpers. Out: its definitions, with what each of them uses."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from migrate.free_names import free_names

_ALIASES = {"mindspore": "ms", "numpy": "np"}
_INSIDE = "migrate.helpers"


class HelperError(Exception):
    """A helper that does not exist or cannot be copied; says where, what, why, next."""


@dataclass(frozen=True)
class Definition:
    """One top-level definition or constant of a file, where ``own`` are definitions and
    ``imported`` import roots, by the names they have there."""

    name: str
    file: str
    order: int
    text: str
    node: ast.stmt = field(repr=False)
    own: Mapping[str, str] = field(repr=False)
    imported: Mapping[str, str] = field(repr=False)
    future: bool = False

    @cached_property
    def _used(self) -> tuple[str, ...]:
        """Free names by place. Found when asked for: an output needs few of all definitions."""
        free = set(free_names(self.node))
        last = {n.id: n for n in ast.walk(self.node) if n in free}
        return tuple(sorted(last, key=lambda key: (last[key].lineno, last[key].col_offset)))

    @property
    def uses(self) -> tuple[str, ...]:
        """The definitions that it uses."""
        return tuple(
            self.own[key] for key in self._used if key in self.own and self.own[key] != self.name
        )

    @property
    def imports(self) -> frozenset[str]:
        """The import roots that it uses."""
        return frozenset(self.imported[key] for key in self._used if key in self.imported)


def read_helpers(file: str, text: str) -> tuple[Definition, ...]:
    """The definitions of one helper file, in order. Raises HelperError."""
    tree = ast.parse(text, file)
    lines = text.splitlines()
    imported: dict[str, str] = {}
    inside: dict[str, str] = {}
    future = False
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module == "__future__":
            future = True
        elif isinstance(node, ast.Import | ast.ImportFrom):
            _read_import(file, node, imported, inside)
    local = {name: name for node in tree.body for name in names_of(node)}
    own = {**inside, **local}
    found = []
    for order, node in enumerate(tree.body):
        for name in names_of(node):
            body = _text(node, lines)
            found.append(Definition(name, file, order, body, node, own, imported, future))
    return tuple(found)


def names_of(node: ast.stmt) -> tuple[str, ...]:
    """The name that a top-level statement defines, if it can be a helper or a constant of one."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return (node.name,)
    targets: list[ast.expr] = []
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, ast.AnnAssign) and node.value is not None:
        targets = [node.target]
    if len(targets) == 1 and isinstance(targets[0], ast.Name) and targets[0].id != "__all__":
        return (targets[0].id,)
    return ()


def _read_import(
    file: str,
    node: ast.Import | ast.ImportFrom,
    imported: dict[str, str],
    inside: dict[str, str],
) -> None:
    for alias in node.names:
        if isinstance(node, ast.Import):
            root, bound = alias.name, alias.asname or alias.name.split(".")[0]
        else:
            module = node.module or ""
            root, bound = f"{module}.{alias.name}", alias.asname or alias.name
            if node.level or module.startswith(_INSIDE):
                if bound != alias.name or module == _INSIDE:
                    raise _uncopiable(file, node, f"{alias.name} as {bound}")
                inside[bound] = alias.name
                continue
        if bound != binding(root):
            raise _uncopiable(file, node, ast.unparse(node))
        imported[bound] = root


def binding(root: str) -> str:
    """The name that an import of a root binds in helpers: ms for mindspore."""
    return _ALIASES.get(root, root.rpartition(".")[2])


def _uncopiable(file: str, node: ast.stmt, shown: str) -> HelperError:
    return HelperError(
        f"migrate/helpers/{file}:{node.lineno}: {shown!r} cannot be copied into an output, where "
        "names are bound as 'import mindspore as ms' and 'from x import y'; import it that way"
    )


def _text(node: ast.stmt, lines: list[str]) -> str:
    """The lines of a definition, from the comment or decorator right above it."""
    decorators = getattr(node, "decorator_list", [])
    start = min([node.lineno, *(item.lineno for item in decorators)])
    while start > 1 and lines[start - 2].startswith("#"):
        start -= 1
    assert node.end_lineno is not None
    return "\n".join(lines[start - 1 : node.end_lineno])
