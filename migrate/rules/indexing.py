"""Write indices in a form that MindSpore computes: slices with a step, full slices, none found.

The CPU kernel of a strided slice's gradient fails unless the slice with the step takes the first
axis alone or the last one alone. A full slice behind a mask over several axes (``x[mask, :]``) is
taken for one of the mask's axes in PyNative mode: the result has another shape, or only other
numbers where the axes are equally long. One that stands between a mask and a number stays, in an
index of its own: ``x[mask][:, :, 0]``. A store at places of which there may be none changes nothing
in torch, and MindSpore refuses it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from migrate.analysis.types.expressions import has_axes
from migrate.analysis.types.kinds import Kind, is_all, kind
from migrate.codegen.substitution import joined, piece
from migrate.records.outcomes import Edit, Outcome, Piece, Wrap
from migrate.rules.registry import rewrites
from migrate.sites.scene import Scene
from migrate.sites.selections import is_bytes, is_found, is_mask, is_selection, may_choose
from migrate.syntax.lines import (
    begins_line,
    ends_line,
    statements,
)
from migrate.syntax.trees import is_none

Parts = tuple["str | Piece", ...]
_SLICE = kind("instance", "slice")
SETS_UP = ("__init", "_init", "init", "reset", "load", "_load")


@rewrites()
def slices(scene: Scene) -> Iterator[Edit]:
    """Yield ``strided(x, 1, step=2)`` for ``x[:, ::2]`` where a gradient may pass."""
    for node in scene.file.of(ast.Subscript):
        index = node.slice
        items = list(index.elts) if isinstance(index, ast.Tuple) else [index]
        if not any(_has_step(i) for i in items) or _has_kernel(items):
            continue
        if not _is_read(scene, node):
            continue
        # what gives a Tensor for an index of several axes is one, or it would give an array
        if is_all(scene.kind(node.value), "Tensor") or (
            has_axes(index) and (is_all(scene.kind(node), "Tensor") or _is_taken(scene, node.value))
        ):
            axes = _axes(scene, items)
            if axes:
                yield _edit(scene, node, items, axes)


def _is_taken(scene: Scene, node: ast.expr) -> bool:
    """Return whether a value of which nothing is known is cut in the forward of a Module: no list
    is cut along several axes, and an array is none of a network."""
    function = scene.function(node)
    owner = function.owner if function is not None and function.name == "forward" else None
    others = {"unknown", "Tensor", "list", "tuple", "dict", "None"}  # an array is an instance
    unknown = scene.kind_names(node) <= others
    return unknown and owner is not None and scene.is_module_class(owner)


def _is_read(scene: Scene, node: ast.Subscript) -> bool:
    """Read in code that computes: neither assigned to, nor part of what a constructor sets up."""
    parent, function = scene.parent(node), scene.function(node)
    if not isinstance(node.ctx, ast.Load) or function is None:
        return False
    if isinstance(parent, ast.Subscript) and not isinstance(parent.ctx, ast.Load):
        return False
    in_place = isinstance(parent, ast.Attribute) and parent.attr.endswith("_")
    return not in_place and not function.name.lower().startswith(SETS_UP)


def _is_constant(node: ast.expr | None, *values: object) -> bool:
    return node is None or (isinstance(node, ast.Constant) and node.value in values)


def _has_step(node: ast.expr) -> bool:
    return isinstance(node, ast.Slice) and not _is_constant(node.step, None, 1)


def _is_whole(node: ast.expr) -> bool:
    return isinstance(node, ast.Slice) and not (node.lower or node.upper or node.step)


def _is_dots(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is ...


def _has_kernel(items: list[ast.expr]) -> bool:
    """``x[::2]`` and ``x[..., ::2]``."""
    return _has_step(items[0] if len(items) == 1 else items[-1]) and (
        len(items) == 1 or (len(items) == 2 and _is_dots(items[0]))
    )


def _axes(scene: Scene, items: list[ast.expr]) -> dict[int, int]:
    """The place in the index of each slice with a step -> its axis; {} where one is not known."""
    dots = next((i for i, item in enumerate(items) if _is_dots(item)), len(items))
    found: dict[int, int] = {}
    for place, item in enumerate(items):
        if not _has_step(item) or not isinstance(item, ast.Slice):
            continue
        bounds = [b for b in (item.lower, item.upper, item.step) if b is not None]
        beside = items[:place] if place < dots else items[place + 1 :]
        if any(is_all(scene.kind(b), "Tensor") for b in bounds):
            return {}
        taken = [_axes_taken(scene.kind(i), i) for i in beside]
        if None in taken:
            return {}
        count = sum(t or 0 for t in taken)
        found[place] = count if place < dots else -1 - count
    return found


def _axes_taken(kind: Kind, node: ast.expr) -> int | None:
    """How many axes one part of an index takes; None when its kind does not tell."""
    if isinstance(node, ast.Slice):
        return 1
    if is_none(node):
        return 0
    return 1 if is_all(kind, "int") and all(a.kind == "int" for a in kind) else None


def _edit(scene: Scene, node: ast.Subscript, items: list[ast.expr], axes: dict[int, int]) -> Edit:
    text, root = scene.spelling.local("helpers.strided")
    parts: Parts = (piece(scene.source, node.value),)
    for place, axis in axes.items():
        parts = (f"{text}(", *parts, f", {axis}", *_bounds(scene, items[place]), ")")
    rest: list[Parts] = [
        (":",) if i in axes else (piece(scene.source, item),) for i, item in enumerate(items)
    ]
    if any(i not in axes and not _is_full(x) for i, x in enumerate(items)):
        inner = [p for number, part in enumerate(rest) for p in ((", ",) if number else ()) + part]
        parts = (*parts, "[", *inner, "]")
    site = scene.site("torch.Tensor.__getitem__", node)
    return Edit(site, Outcome.HELPER, parts, needs=frozenset((root,)))


def _bounds(scene: Scene, item: ast.expr) -> Parts:
    assert isinstance(item, ast.Slice)
    parts: Parts = ()
    for name, bound, usual in (
        ("start", item.lower, (None, 0)),
        ("stop", item.upper, (None,)),
        ("step", item.step, (None, 1)),
    ):
        if bound is not None and not _is_constant(bound, *usual):
            parts = (*parts, f", {name}=", piece(scene.source, bound))
    return parts


@rewrites()
def masks_of_bytes(scene: Scene) -> Iterator[Edit]:
    """Yield ``x[mask.bool()]`` for a mask of uint8, which MindSpore refuses as an index."""
    data = scene.source.data
    made = b"byte" in data or b"uint8" in data or b"ByteTensor" in data
    for node in scene.file.of(ast.Subscript) if made else ():
        items = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if not is_all(scene.kind(node.value), "Tensor"):
            continue
        for item in items:
            if is_bytes(scene, item):
                parts = (piece(scene.source, item), ".bool()")
                site = scene.site("torch.Tensor.__getitem__", item)
                yield Wrap(site, Outcome.CONVERTED, parts)


@rewrites()
def cuts(scene: Scene) -> Iterator[Edit]:
    """Cut full slices off the end of an index that holds what may be a mask."""
    for node in scene.file.of(ast.Subscript):
        items = node.slice.elts if isinstance(node.slice, ast.Tuple) else []
        kept = len(items)
        while kept and _is_full(items[kept - 1]):
            kept -= 1
        read = isinstance(node.ctx, ast.Load)
        if not kept or not read or not is_all(scene.kind(node.value), "Tensor"):
            continue
        chosen = (i for i in items[:kept] if not isinstance(i, ast.Slice))
        cut = items[kept:] if any(may_choose(scene, i) for i in chosen) else []
        if kept > 2 and isinstance(items[1], ast.Slice) and is_mask(scene, items[0]):
            yield _mask_first(scene, node, items[: len(items) - len(cut)])
        else:
            for item in cut:
                site = scene.site("torch.Tensor.__getitem__", node).at(scene.source.span(item))
                yield Edit(site, Outcome.CONVERTED, ())


def _mask_first(scene: Scene, node: ast.Subscript, items: Sequence[ast.expr]) -> Edit:
    """Write ``x[mask][:, a:, b]`` for ``x[mask, a:, b]``."""
    source = scene.source
    parts: Parts = (piece(source, node.value), "[", piece(source, items[0]), "][:")
    for item in items[1:]:
        parts = (*parts, ", ", piece(source, item))
    return Edit(scene.site("torch.Tensor.__getitem__", node), Outcome.CONVERTED, (*parts, "]"))


def _is_full(item: ast.expr) -> bool:
    """``:`` and ``...``, behind which nothing is chosen."""
    return _is_dots(item) or _is_whole(item)


@rewrites()
def guards(scene: Scene) -> Iterator[Edit]:
    """Yield ``if places.size:`` around a store at positions of which there may be none."""
    stores: list[ast.Assign | ast.AugAssign] = []
    stores += scene.file.of(ast.Assign)
    stores += scene.file.of(ast.AugAssign)
    for node in stores:
        targets = [node.target] if isinstance(node, ast.AugAssign) else node.targets
        target = targets[0]
        if len(targets) != 1 or not isinstance(target, ast.Subscript) or not _alone(scene, node):
            continue
        if not is_all(scene.kind(target.value), "Tensor"):
            continue
        if _is_searched(scene, target.slice):
            assert isinstance(target.slice, ast.Name)
            yield _guard(scene, node, target, target.slice.id)
        elif _may_be_nowhere(scene, target.slice):
            yield _guard(scene, node, target, piece(scene.source, target))


def _is_searched(scene: Scene, places: ast.expr) -> bool:
    return (
        isinstance(places, ast.Name)
        and is_all(scene.kind(places), "Tensor")
        and (is_found(scene, places) or is_selection(scene, places))
    )


def _may_be_nowhere(scene: Scene, index: ast.expr) -> bool:
    """Whether an axis before the last is cut as pairs say that a loop goes through, or by a slice
    that a variable holds: ``mask[:, h, w, :]`` of shifted windows. The kernel fails where one of
    several axes has no element.
    """
    axes = index.elts[:-1] if isinstance(index, ast.Tuple) else []
    return any(
        _is_item(one.lower) and _is_item(one.upper)
        if isinstance(one, ast.Slice)
        else scene.kind(one) == _SLICE
        for one in axes
    )


def _is_item(bound: ast.expr | None) -> bool:
    """``h[0]``"""
    item = bound if isinstance(bound, ast.Subscript) else None
    return (
        item is not None
        and isinstance(item.value, ast.Name)
        and isinstance(item.slice, ast.Constant)
    )


def _alone(scene: Scene, node: ast.stmt) -> bool:
    """Whether no other statement shares its lines."""
    return begins_line(scene.source, node) and ends_line(scene.source, node)


def _guard(scene: Scene, node: ast.stmt, target: ast.Subscript, places: str | Piece) -> Edit:
    """Put a store under a condition."""
    source = scene.source
    site = scene.site("empty index", target).at(source.span(node))
    lines = (("if ", places, ".size:"), ("    ", statements(source, [node])))
    return Wrap(site, Outcome.CONVERTED, joined(source, lines))
