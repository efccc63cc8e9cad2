"""In: a region and the loop around it. Out: what else changes between two rounds of it.

A loss Cell holds what stays and is given what changes: what functions called from the loop change
counts as well, and what can be neither held nor given is said.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from migrate.program import Function
from migrate.training.effects import dotted
from migrate.training.marks import View


def by_calls(view: View, name: str, function: Function | None, own: str) -> bool:
    """Whether functions change a name that is not theirs: ``self.weight``, a global."""
    if not name.startswith(own + "."):
        nodes = (n for n in view.file.nodes if isinstance(n, (ast.Global, ast.Nonlocal)))
        return any(name in n.names for n in nodes)
    while function is not None and function.owner is None:
        function = function.parent
    if function is None or function.owner is None:
        return False
    storing = function.owner.stores.get(name.removeprefix(own + "."), [])
    return any(s.name != "__init__" for s in storing)


def attribute(loop: ast.stmt | None, nodes: Iterable[ast.AST]) -> str:
    """An attribute of an object that the loop writes and the loss reads: ``config.weight``."""
    if loop is None:
        return ""
    chains = (n for n in ast.walk(loop) if isinstance(n, ast.Attribute))
    stored = {dotted(n) for n in chains if isinstance(n.ctx, ast.Store)} - {""}
    read = {dotted(n) for item in nodes for n in ast.walk(item) if isinstance(n, ast.Attribute)}
    return next(iter(sorted(stored & read)), "")


def drawn(view: View, nodes: Iterable[ast.AST]) -> int:
    """The line where numpy or ``random`` draws inside of the loss; 0 for none.

    A compiled Cell would draw once and for all.
    """
    for call in (n for item in nodes for n in ast.walk(item) if isinstance(n, ast.Call)):
        seen = [call.func, *([call.func.value] if isinstance(call.func, ast.Attribute) else [])]
        names = {a.name for n in seen for a in view.kind(n) if a.kind in ("foreign", "instance")}
        if any(n.startswith(("numpy.random", "random.")) or n == "random" for n in names):
            return call.lineno
        if isinstance(call.func, ast.Attribute) and _draws(view, dotted(call.func.value)):
            return call.lineno
    return 0


def _draws(view: View, name: str) -> bool:
    """Whether a name is bound to a generator of numpy's or of ``random``."""
    for node in view.file.nodes:
        if isinstance(node, ast.Assign) and name and name in {dotted(t) for t in node.targets}:
            made = dotted(node.value.func) if isinstance(node.value, ast.Call) else ""
            if made.startswith(("np.random.", "numpy.random.", "random.")):
                return True
    return False
