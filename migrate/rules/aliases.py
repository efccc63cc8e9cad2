"""In: a variable and a place in a function. Out: the name under which its storage is read later.

A forward walk keeps for each variable the storages it may share; a later read counts when no
statement on the way binds the name anew. Branches are joined, loops run twice, and a read anywhere
in a loop around the place counts as later.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from migrate.receivers.kinds import is_all
from migrate.scene import Scene

# methods whose result shares storage with the receiver
_VIEWS = frozenset(
    "view reshape transpose permute squeeze unsqueeze expand expand_as flatten narrow select t "
    "chunk split unbind detach contiguous to float half double type_as view_as swapaxes movedim "
    "diagonal unfold unflatten requires_grad_ data T mT real imag".split()
)
_PASSING = frozenset(("torch.nn.Identity", "torch.nn.Flatten", "torch.nn.Dropout"))
_COLLECTING = ("append", "extend", "insert", "add", "update", "setdefault")
_BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")
# stands for attributes, containers and whatever else a tensor was put into
STORED = "what it was stored in"
Storages = dict[str, frozenset[int]]


def read_later(scene: Scene, name: str, node: ast.expr, itself: bool = False) -> str:
    """Another name of the same storage that is read after ``node``; "" when there is none.

    ``itself`` asks about ``name`` too.
    """
    function = scene.function(node)
    body = function.node.body if function is not None else scene.source.tree.body
    statement = scene.statement(node)
    walk = _Walk(scene, statement)
    if isinstance(body, list):
        walk.run(body, {})
    here = walk.found.get(name, frozenset())
    others = {n for n, s in walk.found.items() if s & here} - {name}
    if walk.found.get(STORED, frozenset()) & here:
        return STORED
    for other in sorted(others | ({name} if itself else set())):
        if _reads(scene, body if isinstance(body, list) else [], other, statement):
            return other
    return ""


def bound_then_read(scene: Scene, name: str, statement: ast.stmt) -> bool:
    """Whether a variable that a compound statement binds is read after it."""
    return _reads(scene, [], name, statement)


class _Walk:
    """Storages of the variables just before one statement."""

    def __init__(self, scene: Scene, statement: ast.stmt) -> None:
        self.scene, self.statement = scene, statement
        self.found: Storages = {}
        self.fresh = 0

    def run(self, body: list[ast.stmt], state: Storages) -> Storages:
        for item in body:
            if item is self.statement:
                self.found = _merged(self.found, state)
            state = self._step(item, state)
        return state

    def _step(self, item: ast.stmt, state: Storages) -> Storages:
        if isinstance(item, (ast.Assign, ast.AnnAssign)):
            return self._assign(item, state)
        if isinstance(item, (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)):
            return state
        if isinstance(item, ast.Expr) and isinstance(item.value, ast.Call):
            return self._collected(item.value, state)
        if isinstance(item, ast.For):
            state = self._bound(item.target, item.iter, state)
        rounds = 2 if isinstance(item, (ast.For, ast.While)) else 1
        for _ in range(rounds):
            ends = [state]
            for block in _BLOCKS:
                for part in _statements(getattr(item, block, None)):
                    ends.append(self.run(part, dict(state)))
            state = _merged(*ends)
        return state

    def _collected(self, call: ast.Call, state: Storages) -> Storages:
        """``outs.append(x)``: a container shares what is put into it."""
        if isinstance(call.func, ast.Attribute) and call.func.attr in _COLLECTING:
            for arg in call.args:
                state = self._stored(arg, state)
        return state

    def _stored(self, value: ast.expr, state: Storages) -> Storages:
        state, shared = self._shared(value, state)
        return {**state, STORED: state.get(STORED, frozenset()) | shared}

    def _shared(self, value: ast.expr, state: Storages) -> tuple[Storages, frozenset[int]]:
        """The storages that a value may share; variables met first get one of their own."""
        shared: frozenset[int] = frozenset()
        for source in sources(self.scene, value):
            if source not in state:
                self.fresh += 1
                state = {**state, source: frozenset((self.fresh,))}
            shared |= state[source]
        return state, shared

    def _bound(self, target: ast.expr, value: ast.expr, state: Storages) -> Storages:
        """The names of a loop share what they run over."""
        state, shared = self._shared(value, state)
        names = [n.id for n in ast.walk(target) if isinstance(n, ast.Name)]
        return {**state, **dict.fromkeys(names, shared)} if shared else state

    def _assign(self, item: ast.Assign | ast.AnnAssign, state: Storages) -> Storages:
        targets = item.targets if isinstance(item, ast.Assign) else [item.target]
        if item.value is None:
            return state
        state, shared = self._shared(item.value, state)
        if any(isinstance(t, (ast.Attribute, ast.Subscript)) for t in targets):
            state = self._stored(item.value, state)
        state = dict(state)
        for target in targets:
            for part in ast.walk(target):
                if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
                    self.fresh += 1
                    state[part.id] = shared or frozenset((self.fresh,))
        if len(targets) > 1 and not shared:
            names = [t.id for t in targets if isinstance(t, ast.Name)]
            state.update(dict.fromkeys(names, state[names[0]]))
        return state


def _statements(block: object) -> Iterator[list[ast.stmt]]:
    """The statement lists of a block (handlers and cases hold one each)."""
    if not isinstance(block, list) or not block:
        return
    if isinstance(block[0], ast.stmt):
        yield block
    else:
        for part in block:
            yield part.body


def _merged(*states: Storages) -> Storages:
    found: Storages = {}
    for state in states:
        for name, storages in state.items():
            found[name] = found.get(name, frozenset()) | storages
    return found


def _reads(scene: Scene, body: list[ast.stmt], name: str, statement: ast.stmt) -> bool:
    """Whether ``name`` may be read after the statement before it is bound anew."""
    loop = _loop(scene, statement)
    if loop is not None and _first_in(scene, loop, name, statement):
        return True
    child: ast.AST = statement
    parent = scene.parent(statement)
    while parent is not None:
        for block in _BLOCKS:
            for items in _statements(getattr(parent, block, None)):
                if child in items:
                    for later in items[items.index(child) + 1 :]:
                        if _loads(later, name):
                            return True
                        if _binds(later, name):
                            return False
        if isinstance(parent, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Module)):
            return False
        child, parent = parent, scene.parent(parent)
    return False


def _first_in(scene: Scene, loop: ast.stmt, name: str, statement: ast.stmt) -> bool:
    """Whether the next round of the loop reads the name before binding it."""
    targets = [loop.target] if isinstance(loop, ast.For) else []
    if any(_stores(t, name) for t in targets):
        return False
    for item in getattr(loop, "body", ()):
        if _loads(item, name) and item is not statement:
            return True
        if _binds(item, name):
            return False
    return False


def _loads(node: ast.AST, name: str) -> bool:
    return any(
        isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load)
        for n in ast.walk(node)
    )


def _stores(node: ast.AST, name: str) -> bool:
    return any(
        isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store)
        for n in ast.walk(node)
    )


def _binds(statement: ast.stmt, name: str) -> bool:
    """A plain assignment that surely binds the name anew."""
    return isinstance(statement, ast.Assign) and any(
        _stores(target, name) for target in statement.targets
    )


def _loop(scene: Scene, node: ast.AST) -> ast.stmt | None:
    """The innermost loop around a node inside its function."""
    current = scene.parent(node)
    while current is not None and not isinstance(current, (ast.FunctionDef, ast.Lambda)):
        if isinstance(current, (ast.For, ast.While)):
            return current
        current = scene.parent(current)
    return None


def root_name(node: ast.expr) -> str | None:
    """The variable at the root of ``x``, ``x[i]`` or ``x.view(...)[i]``."""
    while True:
        if isinstance(node, ast.Name):
            return node.id
        if isinstance(node, (ast.Subscript, ast.Attribute, ast.Starred)):
            node = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            node = node.func.value
        else:
            return None


def shares(scene: Scene, node: ast.expr) -> bool:
    """Whether a value may share storage with the variable at its root."""
    if isinstance(node, ast.Name):
        return True
    if isinstance(node, ast.Subscript):
        return shares(scene, node.value)
    if isinstance(node, ast.Attribute):
        return node.attr in _VIEWS and shares(scene, node.value)
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    name, receiver = node.func.attr, node.func.value
    views = name in _VIEWS or name.endswith("_")
    return views and is_all(scene.kind(receiver), "Tensor") and shares(scene, receiver)


def sources(scene: Scene, node: ast.expr) -> Iterator[str]:
    """The variables whose storage an assigned value may share."""
    if isinstance(node, (ast.Tuple, ast.List)):
        for item in node.elts:
            yield from sources(scene, item)
    elif isinstance(node, ast.BoolOp):
        for item in node.values:
            yield from sources(scene, item)
    elif isinstance(node, ast.NamedExpr):
        yield node.target.id
    elif isinstance(node, ast.Dict):
        for item in node.values:
            yield from sources(scene, item)
    elif isinstance(node, ast.IfExp):
        yield from sources(scene, node.body)
        yield from sources(scene, node.orelse)
    elif isinstance(node, ast.Call) and node.args and _passes(scene, node):
        yield from sources(scene, node.args[0])
    else:
        root = root_name(node)
        if root is not None and shares(scene, node):
            yield root


def _passes(scene: Scene, node: ast.Call) -> bool:
    """A layer that hands on its very input, or changes it in place."""
    atoms = scene.kind(node.func)
    classes = set(scene.module_classes(node.func))
    return bool(classes & _PASSING) or any("inplace" in a.keys for a in atoms)
