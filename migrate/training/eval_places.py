"""In: an evaluation loop that was cut. Out: where its Cell is built, and which eval() it takes."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from migrate.program import Function
from migrate.training.effects import binds, blocks
from migrate.training.eval_loops import EvalLoop, mode_set
from migrate.training.lines import above, indent_of, shares_line, whole
from migrate.training.marks import View
from migrate.training.modules import models
from migrate.training.placing import constructor
from migrate.training.slices import Region, block_of
from migrate.training.variables import Variables


@dataclass(frozen=True)
class Found:
    """The statements of an evaluation loop and their names; ``own`` is the instance's name."""

    loop: EvalLoop
    region: Region
    names: Variables
    function: Function | None
    own: str


@dataclass(frozen=True)
class Home:
    """Where the Cell is built: ``variable``, offset, indentation, whether behind a statement."""

    variable: str
    made_at: int
    indent: str
    behind: bool
    switch: ast.stmt | None


def home_of(view: View, found: Found, variable: str) -> Home | None:
    source, names = view.file.source, found.names
    switch = _switch(view, found)
    start = constructor(view, found.region.group, names, found.function)
    if start is not None:
        if switch is None:
            return None  # in which mode it is called, other methods say
        end = whole(source, start).end
        return Home(f"{found.own}.{variable}", end, indent_of(source, start), True, switch)
    loop = names.loop if switch is not None else found.loop.loop
    assert loop is not None
    if switch is not None and switch not in list(ast.walk(loop)):
        if _bound_between(view, switch, loop, {*names.held}, found.own):
            switch = None
        else:
            return Home(variable, above(source, switch), indent_of(source, switch), False, switch)
    return Home(variable, above(source, loop), indent_of(source, loop), False, switch)


def _switch(view: View, found: Found) -> ast.stmt | None:
    """The ``model.eval()`` that every round has passed, where one network is all there is."""
    nodes = [*found.region.inside, *found.region.losses]
    networks = models(view, nodes, found.own)
    if len(networks) != 1:
        return None
    model = next(iter(networks))
    item: ast.stmt = found.loop.statement
    while True:
        block, parent = block_of(view, item)
        for earlier in reversed(block[: block.index(item)]):
            mode = mode_set(earlier, model)
            if mode is not None:
                alone = not shares_line(view.file.source, earlier)
                return earlier if mode and alone else None
            inner = (s for b in blocks(earlier) for s in b)
            if any(mode_set(s, model) is not None for i in inner for s in _statements(i)):
                return None
        if not isinstance(parent, ast.stmt) or isinstance(parent, ast.FunctionDef):
            return None
        item = parent


def _statements(item: ast.stmt) -> list[ast.stmt]:
    return [n for n in ast.walk(item) if isinstance(n, ast.stmt)]


def _bound_between(view: View, switch: ast.stmt, loop: ast.stmt, held: set[str], own: str) -> bool:
    """Whether something that the Cell holds is bound between ``eval()`` and the loop."""
    block, _ = block_of(view, switch)
    outer: ast.AST = loop
    while outer not in block:
        outer = view.file.parents[id(outer)]
    assert isinstance(outer, ast.stmt)
    between = block[block.index(switch) : block.index(outer)]
    if outer is not loop:
        between = [*between, outer]
    return bool(binds(between, own) & held)
