"""What leaves a graph: a dict comes out as the tuple of its values, None at the end is left out.

Inside of a graph both are what they are. So only calls of Modules by host code are changed:
``with_none(net(x), 2)`` and ``with_keys(net(x), ("loss", "logits"))``; nothing happens in PyNative.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from migrate.outcomes import Outcome, Span
from migrate.program import Function
from migrate.receivers.kinds import Kind
from migrate.rules import graph_scope
from migrate.rules.graph_scope import Rewriting
from migrate.scene import Scene


def rewrites(scene: Scene) -> Iterator[Rewriting]:
    """Yield the calls of Modules whose result is another one when it leaves a graph."""
    compiled = {id(n) for f in graph_scope.compiled_here(scene) for n in f.nodes}
    for node in scene.file.of(ast.Call):
        used = not isinstance(scene.parent(node), (ast.Expr, ast.Await))
        if id(node) in compiled or not used or not _is_module(scene, node):
            continue
        kind = scene.kind(node)
        if count := _with_none(kind):
            yield _wrapped(scene, node, "with_none", str(count))
        elif kind and all(atom.kind == "dict" for atom in kind):
            yield _wrapped(scene, node, "with_keys", _keys(scene, node))


def _is_module(scene: Scene, node: ast.Call) -> bool:
    kind = scene.kind(node.func)
    return bool(kind) and all(a.kind == "Module" and "::" in a.name for a in kind)


def _with_none(kind: Kind) -> int:
    """Return the length of a tuple that may end with None."""
    lengths = {len(a.items) if a.kind == "tuple" and a.fixed else 0 for a in kind}
    if len(lengths) != 1 or 0 in lengths:
        return 0
    last = {atom.kind for a in kind for atom in a.items[-1]}
    return lengths.pop() if "None" in last else 0


def _keys(scene: Scene, node: ast.Call) -> str:
    """Return the keys of the dict that a Module returns, or None where they are not written."""
    found = set()
    for atom in scene.kind(node.func):
        for member in scene.inference.member(atom.name, "forward"):
            function = scene.inference.program.functions.get(member.name)
            found |= _returned(scene, function) if function is not None else {""}
    return found.pop() if len(found) == 1 and "" not in found else "None"


def _returned(scene: Scene, function: Function) -> set[str]:
    """Return the keys of each dict that a function returns; "" for one that is no plain display."""
    found = set()
    for node in function.nodes:
        if not isinstance(node, ast.Return):
            continue
        value = node.value
        if not isinstance(value, ast.Dict) or not value.keys:
            return {""}
        if not all(isinstance(k, ast.Constant) for k in value.keys):
            return {""}
        kinds = (scene.inference.kinds.get(id(v), frozenset()) for v in value.values)
        if any(a.kind in ("None", "dict") for kind in kinds for a in kind):
            return {""}
        found.add(f"[{', '.join(repr(k.value) for k in value.keys)}]")  # type: ignore[union-attr]
    return found


def _wrapped(scene: Scene, node: ast.Call, helper: str, given: str) -> Rewriting:
    text, root = scene.spelling.local(f"helpers.{helper}")
    span = scene.source.span(node)
    edits = [
        graph_scope.edit(scene, node, Span(place, place), put)
        for place, put in ((span.start, f"{text}("), (span.end, f", {given})"))
    ]
    needs = frozenset((root,))
    made = tuple(replace(e, outcome=Outcome.HELPER, needs=needs) for e in edits)
    return Rewriting(node, made)
