"""In: a program, and code with blanks to find and to put in its place. Out: the changed programs.

``_x`` in a pattern stands for any expression (or any name behind a dot), ``...`` among arguments
for all that are not named. The same blank in what is put repeats what was found.
"""

from __future__ import annotations

import ast
import copy
import functools
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

REST = "..."


@dataclass(frozen=True)
class Site:
    """A place that a pattern fits: the class and function around it, and the changed program."""

    owner: str
    function: str
    first: int
    last: int
    before: str
    after: str
    program: str


@dataclass
class Found:
    """What the blanks stand for."""

    parts: dict[str, Any] = field(default_factory=dict)

    def bind(self, name: str, value: Any) -> bool:
        known = self.parts.setdefault(name, value)
        return _text(known) == _text(value)


def _text(value: Any) -> str:
    return ast.dump(value) if isinstance(value, ast.AST) else repr(value)


def is_blank(name: Any) -> bool:
    return isinstance(name, str) and len(name) > 1 and name[0] == "_" and name[1] != "_"


def fits(pattern: Any, node: Any, found: Found) -> bool:
    """Whether a node is what the pattern says; ``found`` learns what the blanks stand for."""
    if isinstance(pattern, ast.Name) and is_blank(pattern.id):
        return isinstance(node, ast.expr) and found.bind(pattern.id, node)
    if isinstance(pattern, list):
        return isinstance(node, list) and len(pattern) == len(node) and all(
            fits(one, other, found) for one, other in zip(pattern, node, strict=True)
        )  # fmt: skip
    if not isinstance(pattern, ast.AST):
        if is_blank(pattern) and isinstance(node, str):
            return found.bind(pattern, node)
        return bool(pattern == node)
    if type(pattern) is not type(node):
        return False
    if isinstance(pattern, ast.Call):
        return _call_fits(pattern, node, found)
    names = [name for name in pattern._fields if name not in ("ctx", "type_comment", "kind")]
    return all(fits(getattr(pattern, n), getattr(node, n), found) for n in names)


def _is_rest(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is ...


def _call_fits(pattern: ast.Call, node: ast.Call, found: Found) -> bool:
    wanted = [arg for arg in pattern.args if not _is_rest(arg)]
    is_open = len(wanted) < len(pattern.args)
    keywords = {keyword.arg: keyword for keyword in node.keywords}
    if not fits(pattern.func, node.func, found) or len(node.args) < len(wanted):
        return False
    for keyword in pattern.keywords:
        other = keywords.pop(keyword.arg, None)
        if other is None or not fits(keyword.value, other.value, found):
            return False
    if not all(fits(one, other, found) for one, other in zip(wanted, node.args, strict=False)):
        return False
    rest = (node.args[len(wanted):], list(keywords.values()))  # fmt: skip
    found.parts[REST] = rest
    return is_open or not (rest[0] or rest[1])


class Filled(ast.NodeTransformer):
    """A pattern with its blanks filled in."""

    def __init__(self, found: Found) -> None:
        self.found = found

    def visit_Name(self, node: ast.Name) -> ast.AST:
        part = self.found.parts.get(node.id) if is_blank(node.id) else None
        return copy.deepcopy(part) if isinstance(part, ast.AST) else node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        node.attr = self.found.parts[node.attr] if is_blank(node.attr) else node.attr
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        is_open = any(_is_rest(arg) for arg in node.args)
        node.args = [arg for arg in node.args if not _is_rest(arg)]
        self.generic_visit(node)
        if is_open:
            args, keywords = copy.deepcopy(self.found.parts[REST])
            given = {keyword.arg for keyword in node.keywords}
            node.args += args
            node.keywords += [keyword for keyword in keywords if keyword.arg not in given]
        return node


def sites(program: str, find: str, put: str) -> Iterator[Site]:
    """Every place that ``find`` fits, each with the program in which ``put`` stands there.

    Lines in front of the place and at its beginning keep their numbers. A replacement that is the
    same code is left out.
    """
    pattern = ast.parse(find).body[0]
    whole = not isinstance(ast.parse(put).body[0], ast.Expr)
    wanted = pattern.value if isinstance(pattern, ast.Expr) and not whole else pattern
    for owner, function, node in _all_nodes(program):
        found = Found()
        if not fits(wanted, node, found):
            continue
        fresh = [Filled(copy.deepcopy(found)).visit(one) for one in ast.parse(put).body]
        after = "; ".join(ast.unparse(one) for one in fresh)
        if isinstance(node, ast.expr) and not isinstance(fresh[0].value, (ast.Call, ast.Name)):
            after = f"({after})"
        if after.strip("()") != ast.unparse(node).strip("()"):
            text = _replaced(program, node, after)
            before = ast.get_source_segment(program, node) or ""
            yield Site(owner, function, node.lineno, node.end_lineno or node.lineno,
                       " ".join(before.split()), after, text)  # fmt: skip


@functools.lru_cache(maxsize=8)
def _all_nodes(program: str) -> list[tuple[str, str, ast.AST]]:
    return list(_nodes(ast.parse(program).body, "", ""))


def _nodes(body: list[ast.stmt], owner: str, function: str) -> Iterator[tuple[str, str, ast.AST]]:
    """Statements and expressions, with the class and the function they stand in."""
    for one in body:
        if isinstance(one, ast.ClassDef):
            yield from _nodes(one.body, one.name, function)
        elif isinstance(one, ast.FunctionDef):
            yield from _nodes(one.body, owner, one.name)
        else:
            for node in ast.walk(one):
                if isinstance(node, (ast.expr, ast.stmt)):
                    yield owner, function, node


def _replaced(program: str, node: Any, text: str) -> str:
    lines = program.encode().splitlines(keepends=True)
    start = sum(map(len, lines[: node.lineno - 1])) + node.col_offset
    end = sum(map(len, lines[: node.end_lineno - 1])) + node.end_col_offset
    whole = program.encode()
    return (whole[:start] + text.encode() + whole[end:]).decode()
