"""In: nothing. Out: the files that tests need beside them, by name: this package's, in one folder.

The tests judge by the very code that verify judged by; only its imports become relative.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from migrate import __version__

ROOT = Path(__file__).parents[2]
PACKAGE = "torch2ms_parity"
FIRST = ("migrate.parity.written.support", "migrate.parity.written.torch_check")
NOTICE = (
    f"# Copied from torch2mindspore {__version__} (Apache-2.0); changes are lost when tests are "
)
NOTICE += "written again.\n"
INIT = '''"""What the parity tests beside this folder stand on."""
'''


def copies() -> dict[str, str]:
    """Every file that the tests import, directly or not: name -> text."""
    waiting = list(FIRST)
    texts: dict[str, str] = {}
    origins: dict[str, str] = {}
    while waiting:
        module = waiting.pop()
        name = f"{_short(module)}.py"
        if origins.setdefault(name, module) != module:
            raise ValueError(f"{module} and {origins[name]} would both become {name}")
        if name in texts:
            continue
        text = _path(module).read_text(encoding="utf-8")
        texts[name] = NOTICE + _relative(text, module)
        waiting += [found for _, found in _imports(text, module)]
    return {"__init__.py": NOTICE + INIT, **dict(sorted(texts.items()))}


def _short(module: str) -> str:
    return module.rpartition(".")[2]


def _path(module: str) -> Path:
    return ROOT.joinpath(*module.split(".")[1:]).with_suffix(".py")


def _imports(text: str, module: str) -> Iterator[tuple[ast.ImportFrom, str]]:
    """Imports of this package, each with the module it needs. Raises ValueError for other forms."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import) and any(a.name.startswith("migrate") for a in node.names):
            raise ValueError(f"{module}:{node.lineno}: import the names that are needed")
        if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith("migrate"):
            continue
        source = node.module or ""
        if _path(source).is_file():
            yield node, source
        for alias in node.names if not _path(source).is_file() else ():
            yield node, f"{source}.{alias.name}"


def _relative(text: str, module: str) -> str:
    """The text with ``from migrate.a.b import c`` as ``from .b import c``."""
    lines = text.splitlines(keepends=True)
    for node, needed in _imports(text, module):
        old = f"from {node.module} import"
        new = f"from .{_short(needed)} import" if needed == node.module else "from . import"
        number = node.lineno - 1
        if old in lines[number]:
            lines[number] = lines[number].replace(old, new, 1)
    return "".join(lines)
