"""In: dicts that compiled code makes of others. Out: ``joined(one, {"b": x})``, a helper.

Graph mode unpacks into calls, and into no dict; it does not join two of them with ``|`` either.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from migrate.outcomes import Outcome, Piece, Span
from migrate.receivers.kinds import is_all
from migrate.rules import graph_scope
from migrate.rules.graph_scope import Rewriting, builtin
from migrate.scene import Scene
from migrate.templates import piece

Parts = list[str | Piece]


def rewrites(scene: Scene) -> Iterator[Rewriting]:
    """``{**one, "b": x}``, ``dict(**one, b=x)`` and ``one | other``."""
    for node in graph_scope.nodes(scene, ast.Dict, ast.Call, ast.BinOp):
        groups: list[Parts] = []
        if isinstance(node, ast.Dict) and None in node.keys:
            groups = _display(scene, node)
        elif isinstance(node, ast.Call) and builtin(scene, node.func, "dict"):
            groups = _called(scene, node)
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
            groups = _both(scene, node)
        if groups and not graph_scope.only_tells(scene, node):
            yield _joined(scene, node, groups)


def _display(scene: Scene, node: ast.Dict) -> list[Parts]:
    """The dicts that are unpacked, and between them the entries as dicts of their own."""
    groups: list[Parts] = []
    entries: list[tuple[ast.expr, ast.expr]] = []
    for key, value in zip(node.keys, node.values, strict=True):
        if key is not None:
            entries.append((key, value))
            continue
        groups += _entries(scene, entries)
        groups.append([piece(scene.source, value, False)])
        entries = []
    return groups + _entries(scene, entries)


def _entries(scene: Scene, entries: list[tuple[ast.expr, ast.expr]]) -> list[Parts]:
    """One dict, its text as it was: what stands between two entries may be a comment."""
    if not entries:
        return []
    data = scene.source.data
    start = scene.source.span(entries[0][0]).start
    end = scene.source.span(entries[-1][1]).end
    while data[:start].rstrip().endswith(b"("):  # a key or value in parentheses of its own
        start = data[:start].rindex(b"(")
    while data[end:].lstrip().startswith(b")"):
        end = data.index(b")", end) + 1
    return [["{", Piece(Span(start, end)), "}"]]


def _called(scene: Scene, node: ast.Call) -> list[Parts]:
    """``dict(one, b=x)`` and ``dict(**one, b=x)``; named values alone are a plain dict."""
    spread = [k for k in node.keywords if k.arg is None]
    first = node.args[0] if node.args else None
    if len(node.args) > 1 or isinstance(first, ast.Starred):
        return []
    if not spread and (first is None or not is_all(scene.kind(first), "dict")):
        return []
    groups: list[Parts] = [[piece(scene.source, a, False)] for a in node.args]
    named = False
    for keyword in node.keywords:
        value = piece(scene.source, keyword.value, False)
        if keyword.arg is None:
            groups.append([value])
        elif named:
            groups[-1][-1:] = [f', "{keyword.arg}": ', value, "}"]
        else:
            groups.append(['{"' + keyword.arg + '": ', value, "}"])
        named = keyword.arg is not None
    return groups


def _both(scene: Scene, node: ast.BinOp) -> list[Parts]:
    if not is_all(scene.kind(node.left), "dict"):
        return []
    return [[piece(scene.source, side, False)] for side in (node.left, node.right)]


def _joined(scene: Scene, node: ast.AST, groups: list[Parts]) -> Rewriting:
    text, root = scene.spelling.local("helpers.joined")
    parts: Parts = [f"{text}("]
    for number, group in enumerate(groups):
        parts += [", " if number else "", *group]
    made = graph_scope.edit(scene, node, scene.source.span(node), *parts, ")")
    return Rewriting(node, (replace(made, outcome=Outcome.HELPER, needs=frozenset((root,))),))
