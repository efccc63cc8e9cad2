"""Reduce a program to the least text that still shows something."""

from __future__ import annotations

import ast
import copy
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from programs import Program

Holds = Callable[[Program], bool]
_BODIES = ("body", "orelse", "finalbody")


def shrunk(program: Program, holds: Holds, seconds: float = 60.0) -> Program:
    """The smallest program found in the time for which ``holds`` is true."""
    until = time.monotonic() + seconds
    for call in program.calls:
        if len(program.calls) > 1 and holds(one := replace(program, calls=(call,))):
            program = one
            break
    for name in list(program.others):
        fewer = {n: t for n, t in program.others.items() if n != name}
        if holds(one := replace(program, others=fewer)):
            program = one
    changed = True
    while changed and time.monotonic() < until:
        changed = False
        for variants in (_without_statements, _unwrapped, _simpler):
            number = 0
            while time.monotonic() < until:
                text = _variant(program.text, variants, number)
                if text is None:
                    break
                if text != program.text and holds(one := program.with_text(text)):
                    program, changed = one, True
                else:
                    number += 1
    return program


def _variant(
    text: str, variants: Callable[[ast.Module], Iterator[ast.Module]], number: int
) -> str | None:
    for at, tree in enumerate(variants(ast.parse(text))):
        if at == number:
            try:
                return ast.unparse(ast.fix_missing_locations(tree)) + "\n"
            except Exception:
                return text
    return None


def _lists(tree: ast.AST) -> list[list[ast.stmt]]:
    found = []
    for node in ast.walk(tree):
        for field in (*_BODIES, "handlers", "cases"):
            block = getattr(node, field, None)
            if isinstance(block, list) and block:
                found.append(block)
    return found


def _without_statements(tree: ast.Module) -> Iterator[ast.Module]:
    """Without whole runs of statements, long runs first."""
    blocks = _lists(tree)
    for size in (8, 4, 2, 1):
        for number, block in enumerate(blocks):
            if size > len(block):
                continue
            for start in range(0, len(block) - size + 1, max(1, size // 2)):
                if size == 1 and isinstance(block[start], ast.Pass):
                    continue
                other = copy.deepcopy(tree)
                mine = _lists(other)[number]
                del mine[start : start + size]
                if not mine and number:
                    mine.append(ast.Pass())
                yield other


def _unwrapped(tree: ast.Module) -> Iterator[ast.Module]:
    """With the blocks of a compound statement in its place."""
    for number, block in enumerate(_lists(tree)):
        for at, statement in enumerate(block):
            for field in _BODIES:
                if isinstance(statement, (ast.FunctionDef, ast.ClassDef)) or not getattr(
                    statement, field, None
                ):
                    continue
                other = copy.deepcopy(tree)
                mine = _lists(other)[number]
                mine[at : at + 1] = getattr(mine[at], field)
                yield other


def _simpler(tree: ast.Module) -> Iterator[ast.Module]:
    """With an expression replaced by a part of it, or without one of several parts."""
    for number, node in enumerate(ast.walk(tree)):
        for change in _changes(node):
            other = copy.deepcopy(tree)
            twin = next(n for i, n in enumerate(ast.walk(other)) if i == number)
            change(twin)
            yield other


def _changes(node: ast.AST) -> Iterator[Callable[[ast.AST], None]]:
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns"):
            continue
        if isinstance(value, ast.expr) and isinstance(getattr(value, "ctx", ast.Load()), ast.Load):
            for at, part in enumerate(_parts(value)):
                if isinstance(part, ast.expr):
                    yield _replacing(field, at)
        elif isinstance(value, list) and field in (
            "args",
            "elts",
            "values",
            "keywords",
            "decorator_list",
        ):
            if isinstance(node, ast.arguments) or (
                field == "values" and not isinstance(node, ast.BoolOp)
            ):
                continue
            for at, one in enumerate(value):
                if isinstance(one, (ast.expr, ast.keyword)) and (
                    field != "values" or len(value) > 2
                ):  # fmt: skip
                    yield _dropping(field, at)
                if isinstance(one, ast.expr):
                    for part_at, part in enumerate(_parts(one)):
                        if isinstance(part, ast.expr):
                            yield _replacing_in(field, at, part_at)


def _parts(value: ast.expr) -> list[ast.AST]:
    if isinstance(value, ast.Call):
        inner = [value.func.value] if isinstance(value.func, ast.Attribute) else []
        return [*inner, *(a for a in value.args if not isinstance(a, ast.Starred))]
    if isinstance(value, (ast.List, ast.Tuple, ast.BinOp, ast.BoolOp, ast.IfExp, ast.Subscript,
                          ast.UnaryOp, ast.Compare, ast.Attribute, ast.Dict, ast.NamedExpr)):  # fmt: skip
        if isinstance(value, ast.NamedExpr):
            return [value.value]
        return [c for c in ast.iter_child_nodes(value)
                if isinstance(c, ast.expr) and not isinstance(c, (ast.Slice, ast.Starred))]  # fmt: skip
    return []


def _replacing(field: str, at: int) -> Callable[[ast.AST], None]:
    return lambda node: setattr(node, field, _parts(getattr(node, field))[at])


def _replacing_in(field: str, index: int, at: int) -> Callable[[ast.AST], None]:
    def change(node: ast.AST) -> None:
        values = getattr(node, field)
        values[index] = _parts(values[index])[at]

    return change


def _dropping(field: str, at: int) -> Callable[[ast.AST], None]:
    def change(node: ast.AST) -> None:
        del getattr(node, field)[at]

    return change
