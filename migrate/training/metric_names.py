"""In: an evaluation loop and its function. Out: what it sums up, begins with, and hands on.

A name that the rounds change is a sum when a round reads what the last one left, or when the code
behind the loop reads it; every other name is a round's own.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator, Sequence

from migrate.training.callback_names import anew, binds_whole
from migrate.training.effects import binds, blocks, dotted, reads, uses

LOOPS = (ast.For, ast.AsyncFor, ast.While)
_INNER = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_GROWS = {"append", "extend", "update", "add", "insert", "clear", "pop", "remove", "sort"}
_PLAIN = {"zeros", "ones", "full", "empty", "array", "tensor", "list", "dict", "set", "float"}
_PLAIN |= {"defaultdict", "Counter", "int", "deque", "len", "range"}
Levels = tuple[tuple[list[ast.stmt], ast.stmt, ast.AST], ...]


def levels(top: ast.AST, around: Sequence[ast.stmt], item: ast.stmt) -> Levels:
    """(block, statement, owner of the block) from an inner statement to its function."""
    found = []
    for owner in (*reversed(around), top):
        block = next(b for b in blocks(owner) if item in b)
        found.append((block, item, owner))
        if isinstance(owner, ast.stmt):
            item = owner
    return tuple(found)


def changed(item: ast.stmt, own: str) -> set[str]:
    """What a statement binds, writes into, or grows."""
    found = binds([item], own)
    for node in ast.walk(item):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            name = node.func.attr
            if name in _GROWS or (name.endswith("_") and not name.endswith("__")):
                base: ast.expr = node.func.value
                while isinstance(base, ast.Subscript):
                    base = base.value
                found.add(dotted(base))
    return found - {""}


def begins_anew(body: Sequence[ast.stmt], name: str) -> bool:
    """Whether every round binds the name before anything reads it."""
    return anew(body, name)


def read_later(top: ast.AST, around: Levels, name: str) -> bool:
    """Whether anything may read the name's last value when the loop is through."""
    loop = around[0][1]
    inside = {id(n) for n in ast.walk(loop)}
    for node in ast.walk(top):
        apart = isinstance(node, _INNER) and node is not top and id(node) not in inside
        if apart and any(u.name == name and not u.stored for u in uses(node)):
            return True
    for block, item, owner in around:
        at = block.index(item)
        first = _first(block[at + 1 :], name)
        if first is not None:
            return not anew([first], name)
        if isinstance(owner, LOOPS):
            test = owner.test if isinstance(owner, ast.While) else None
            before = _first(block[: at + 1], name)
            if before is not None and not anew([before], name) and before is not loop:
                return True
            if test is not None and any(u.name == name for u in uses(test)):
                return True
        elif isinstance(owner, ast.Try) and _first([s for b in blocks(owner) for s in b], name):
            return True
    return False


def _first(items: Sequence[ast.stmt], name: str) -> ast.stmt | None:
    return next((s for s in items if name in binds([s]) | reads([s])), None)


def binding(around: Levels, name: str, own: str) -> ast.Assign | None:
    """The plain statement in front of the loop that the name begins with."""
    for block, item, owner in around:
        for earlier in reversed(block[: block.index(item)]):
            if name in changed(earlier, own) | reads([earlier], own):
                whole = isinstance(earlier, ast.Assign) and all(
                    isinstance(t, (ast.Name, ast.Tuple)) for t in earlier.targets
                )
                if not isinstance(earlier, ast.Assign) or not whole:
                    return None
                bare = any(binds_whole(t, name) for t in earlier.targets)
                return earlier if bare and is_plain(earlier.value) else None
        if not isinstance(owner, ast.With):
            return None
    return None


def is_plain(value: ast.expr) -> bool:
    """A number, an empty list, an array of zeros: nothing that something else knows of."""
    if isinstance(value, ast.Constant):
        return True
    if isinstance(value, ast.Attribute):
        return value.attr in ("inf", "nan", "pi")
    if isinstance(value, (ast.Tuple, ast.List, ast.Set)):
        return all(map(is_plain, value.elts))
    if isinstance(value, ast.Dict):
        return all(k is not None for k in value.keys) and all(map(is_plain, value.values))
    if isinstance(value, ast.UnaryOp):
        return is_plain(value.operand)
    if isinstance(value, ast.BinOp):
        sides = (value.left, value.right)
        return all(is_plain(s) or isinstance(s, ast.Name) for s in sides)
    called = dotted(value.func).rpartition(".")[2] if isinstance(value, ast.Call) else ""
    return called in _PLAIN


def names_of_the_file(tree: ast.Module) -> set[str]:
    """What a class of the file's top level can read as it is."""
    found = set(dir(builtins))
    for item in tree.body:
        opens = isinstance(item, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
        found |= {item.name} if opens else binds([item])  # type: ignore[attr-defined]
    return found


def local_names(scope: ast.FunctionDef | None) -> set[str]:
    """The names that a function binds, its parameters among them."""
    if scope is None:
        return set()
    wide = {n for s in ast.walk(scope) if isinstance(s, ast.Global) for n in s.names}
    return (
        {a.arg for a in ast.walk(scope.args) if isinstance(a, ast.arg)} | binds(scope.body)
    ) - wide


def mode_calls(node: ast.AST) -> Iterator[ast.Call]:
    """``net.train()``, ``net.eval()`` and ``net.set_train()`` under a node."""
    for item in ast.walk(node):
        if isinstance(item, ast.Call) and isinstance(item.func, ast.Attribute):
            name = item.func.attr
            if name in ("train", "set_train") or (name == "eval" and not item.args):
                yield item
