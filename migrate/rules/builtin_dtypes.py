"""Write Python's int, float and bool as the dtypes that torch takes them for."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from migrate.records.outcomes import Edit, Outcome, Site
from migrate.sites.scene import DTYPES, Scene

_POSITIONAL = ("torch.Tensor.to", "torch.Tensor.type")


def written(scene: Scene) -> Iterator[Edit]:
    """``torch.zeros(3, dtype=int)``, ``x.to(float)``: int64 and float64."""
    for name in scene.file.of(ast.Name):
        kind = scene.kind(name)
        builtin = next(iter(kind)).name if len(kind) == 1 else ""
        if name.id not in DTYPES or builtin != name.id or not _is_dtype(scene, name):
            continue
        text, root = scene.spelling.local(DTYPES[name.id])
        span = scene.source.span(name)
        site = Site("dtype", span, name.lineno, name.col_offset + 1)
        yield Edit(site, Outcome.CONVERTED, (text,), needs=frozenset((root,)))


def _is_dtype(scene: Scene, name: ast.Name) -> bool:
    """Return whether a call of torch takes a name for a dtype."""
    parent = scene.parent(name)
    keyword = parent.arg if isinstance(parent, ast.keyword) else ""
    call = scene.parent(parent) if isinstance(parent, ast.keyword) else parent
    if not isinstance(call, ast.Call) or call.func is name:
        return False
    called = [a.name for a in scene.kind(call.func) if a.kind in ("ref", "method")]
    if not called or not all(n.startswith("torch.") for n in called):
        return False
    return keyword == "dtype" or (not keyword and all(n in _POSITIONAL for n in called))
