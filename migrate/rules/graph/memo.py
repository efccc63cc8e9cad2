"""Compute what ``if self.c is None: self.c = f(n)`` keeps at each call: ``c = f(n)``.

A member that only saves work is a local variable: graph mode keeps nothing on self, and computes
what does not change once. The value has to depend on nothing but members and what the test
compares, so that computing it again gives what was kept.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace

from migrate.analysis.program import Function
from migrate.analysis.types.inference import Inference
from migrate.rules.called_from import sites_of
from migrate.rules.graph import scope, state
from migrate.rules.graph.scope import Rewriting
from migrate.sites.scene import Scene, once
from migrate.syntax.lines import begins_line, statements
from migrate.syntax.trees import all_names, last_name

NOTE = (
    "computed at each call now: graph mode keeps nothing on self. Torch goes on with the first"
    " value, even where the weights change between two calls"
)
_LOOKS = ("size", "dim", "str", "len", "hasattr")
_TESTS = (ast.Name, ast.Attribute, ast.Constant, ast.Compare, ast.BoolOp, ast.Subscript,
          ast.UnaryOp, ast.Call, ast.Tuple, ast.operator, ast.cmpop, ast.boolop, ast.unaryop,
          ast.expr_context)  # fmt: skip


@dataclass(frozen=True)
class Memo:
    """The block that fills it, and every place that names what it fills, by the member."""

    function: Function
    block: ast.If
    places: dict[str, list[ast.Attribute | ast.Subscript]]


def rewrites(scene: Scene) -> Iterator[Rewriting]:
    """Yield the blocks without their tests, and local variables for the members."""
    for node in scope.nodes(scene, ast.If):
        assert isinstance(node, ast.If)
        if node.orelse or not all(isinstance(s, ast.Assign) for s in node.body):
            continue
        function = scene.function(node)
        owner = function.owner if function is not None else None
        if function is None or owner is None or not scene.is_module_class(owner):
            continue
        memo = _memo(scene, function, node) if function.parameters else None
        if memo is not None and not state.by_other_names(function):
            yield from _computed(scene, memo)


def _computed(scene: Scene, memo: Memo) -> Iterator[Rewriting]:
    yield Rewriting(
        memo.block, (scope.whole(scene, memo.block, statements(scene.source, memo.block.body)),)
    )
    for member, places in memo.places.items():
        local = scope.free_local(scene, memo.function, member)
        for place in places:
            made = scope.whole(scene, place, local)
            note = NOTE if place is places[0] else ""
            yield Rewriting(place, (made,), note, f"self.{member}")


def _memo(scene: Scene, function: Function, block: ast.If) -> Memo | None:
    """Whether a block does nothing but fill members, and the same values would come again."""
    if not begins_line(scene.source, block):
        return None
    own = function.parameters[0].arg
    filled: dict[str, str] = {}
    renewing = _renewing(scene, block, own)
    fixed = Fixed(scene, function, own, _keys(block), renewing)
    for statement in block.body:
        if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
            return None
        target = statement.targets[0]
        if not fixed.holds(statement.value):
            return None
        fixed = fixed.knowing(ast.unparse(target))
        holder = target.value if isinstance(target, ast.Subscript) else target
        if isinstance(holder, ast.Attribute) and getattr(holder.value, "id", "") == own:
            filled[holder.attr] = ast.unparse(target)
        elif not isinstance(target, ast.Name):
            return None
    if not filled or not _asks(block.test, filled, own):
        return None
    found = {m: _places(scene, function, block, m, text) for m, text in filled.items()}
    held = {ast.unparse(s.targets[0]) for s in block.body
            if isinstance(s, ast.Assign) and _may_grow(scene, s.value)}  # fmt: skip
    if any(_is_handed_on(scene, p) for m in found for p in found[m] if filled[m] in held):
        return None
    places = {m: some for m, some in found.items() if some}
    return Memo(function, block, places) if len(places) == len(filled) else None


def _renewing(scene: Scene, block: ast.If, own: str) -> frozenset[int]:
    """The nodes of methods that empty what the block fills: what they change is asked for again."""
    holders = [h for s in block.body if isinstance(s, ast.Assign) for h in _holders(s)]
    filled = [h.attr for h in holders if isinstance(h, ast.Attribute) and _is_member(h, own)]
    known = _emptying(scene.inference)
    return frozenset.intersection(*(known.get(m, frozenset()) for m in filled or ("",)))


@once
def _emptying(inference: Inference) -> dict[str, frozenset[int]]:
    """Return the nodes of all methods of the program that empty a member, by its name."""
    found: dict[str, set[int]] = {}
    for method in (m for c in inference.program.classes.values() for m in c.methods.values()):
        stores = [n for n in method.nodes if isinstance(n, ast.Assign) and _is_empty(n.value)]
        for target in (t for store in stores for t in store.targets):
            if isinstance(target, ast.Attribute):
                found.setdefault(target.attr, set()).update(map(id, method.nodes))
    return {member: frozenset(ids) for member, ids in found.items()}


def _holders(statement: ast.Assign) -> list[ast.expr]:
    return [t.value if isinstance(t, ast.Subscript) else t for t in statement.targets]


def _may_grow(scene: Scene, value: ast.expr) -> bool:
    """Whether it may be a list or dict: one that was made elsewhere, where nothing is known."""
    taken = isinstance(value, (ast.Attribute, ast.Name, ast.Subscript))
    kinds = ("list", "dict", "unknown") if taken else ("list", "dict")
    return any(a.kind in kinds for a in scene.kind(value))


def _is_handed_on(scene: Scene, place: ast.expr) -> bool:
    """Whether more is done with a list than to look into it: ``self.steps.append(x)`` keeps x."""
    if not isinstance(place.ctx, ast.Load):  # type: ignore[attr-defined]
        return False
    parent = scene.parent(place)
    if isinstance(parent, ast.Subscript):
        return parent.value is not place
    gone = isinstance(parent, (ast.For, ast.comprehension)) and parent.iter is place
    return not gone and not isinstance(parent, ast.Starred)


def _alternatives(test: ast.expr) -> list[ast.expr]:
    return test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or) else [test]


def _asks(test: ast.expr, filled: dict[str, str], own: str) -> bool:
    """Whether one alternative says that it is not there, and none does anything but look."""
    for node in ast.walk(test):
        called = getattr(node, "func", None)
        if not isinstance(node, _TESTS):
            return False
        if called is not None and last_name(called) not in _LOOKS:
            return False
    for part in _alternatives(test):
        negative = isinstance(part, ast.UnaryOp) and isinstance(part.op, ast.Not)
        compared = isinstance(part, ast.Compare) and isinstance(
            part.ops[0], (ast.Is, ast.NotIn, ast.NotEq)
        )
        names = {getattr(n, "attr", getattr(n, "value", "")) for n in ast.walk(part)
                 if isinstance(n, ast.Constant) or _is_member(n, own)}  # fmt: skip
        if (negative or compared) and names & set(filled):
            return True
    return False


def _is_member(node: ast.AST, own: str) -> bool:
    return isinstance(node, ast.Attribute) and getattr(node.value, "id", "") == own


def _keys(block: ast.If) -> frozenset[str]:
    """What the test compares with what was kept, as it is spelled: values may depend on it.

    ``key not in self.c`` before ``self.c[key] = ...``, ``self.n != n`` before ``self.n = n``.
    """
    stores = {
        ast.unparse(s.targets[0]): ast.unparse(s.value)
        for s in block.body
        if isinstance(s, ast.Assign)
    }
    found: list[ast.expr] = []
    for part in _alternatives(block.test):
        if not isinstance(part, ast.Compare) or len(part.ops) != 1:
            continue
        left, right = part.left, part.comparators[0]
        if isinstance(part.ops[0], ast.NotIn):
            place = f"{ast.unparse(right)}[{ast.unparse(left)}]"
            found += [left] if place in stores else []
        elif isinstance(part.ops[0], ast.NotEq):
            for one, other in ((left, right), (right, left)):
                same = stores.get(ast.unparse(one)) == ast.unparse(other)
                found += [other] if same else []
    for key in list(found):
        found += key.elts if isinstance(key, ast.Tuple) else []
    return frozenset(map(ast.unparse, found))


def _places(
    scene: Scene, function: Function, block: ast.If, member: str, text: str
) -> list[ast.Attribute | ast.Subscript]:
    """Where the member is filled and read; nothing, where that is not seen to be all.

    It is filled in the block and read after it, under the same key; other methods empty it.
    """
    around = scope.statements_after(scene, block)
    after = {id(n) for s in around for n in ast.walk(s)}
    inside = {id(n) for s in block.body for n in ast.walk(s)}
    tested = {id(n) for n in ast.walk(block.test)}
    variables = all_names(ast.parse(text))
    uses: list[ast.Attribute] = []
    found: list[ast.Attribute | ast.Subscript] = []
    for node in ast.walk(function.node):
        stored = isinstance(getattr(node, "ctx", None), ast.Store)
        bound = isinstance(node, ast.Name) and stored and node.id in variables
        if bound and id(node) in after | inside:
            return []  # the key is another one when the member is read
        if not isinstance(node, ast.Attribute) or node.attr != member:
            continue
        uses.append(node)
        parent = scene.parent(node)
        place = parent if isinstance(parent, ast.Subscript) and "[" in text else node
        if id(node) in tested:
            continue
        if ast.unparse(place) != text or state.changes(scene, place):
            return []
        if id(node) not in inside and (id(node) not in after or isinstance(place.ctx, ast.Store)):
            return []
        found.append(place)
    found.sort(key=lambda n: scene.source.span(n).start)
    lone = state.known_only(scene, function, member, uses, _is_emptied)
    return found if lone else []


def _is_emptied(scene: Scene, node: ast.Attribute) -> bool:
    """``self.c = None``, ``self.c = {}``, and the question before it whether there is anything."""
    parent = scene.file.parents.get(id(node))
    if isinstance(parent, ast.Assign):
        return parent.targets == [node] and _is_empty(parent.value)
    if isinstance(parent, ast.AnnAssign):
        return parent.target is node and isinstance(parent.value, (ast.Constant, ast.Dict))
    if isinstance(parent, ast.If) and parent.test is node and not parent.orelse:
        targets = [t for s in parent.body if isinstance(s, ast.Assign) for t in s.targets]
        return len(targets) == len(parent.body) and all(
            isinstance(t, ast.Attribute) and t.attr == node.attr and _is_emptied(scene, t)
            for t in targets
        )
    return False


def _is_empty(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) or (
        isinstance(value, (ast.Dict, ast.List)) and not ast.unparse(value)[1:-1]
    )


# -- what members, constants and given keys decide ----------------------------------------------

_DRAWN = ("rand", "normal", "bernoulli", "multinomial", "poisson", "uniform", "dropout", "empty",
          "exponential", "geometric", "cauchy")  # fmt: skip
_PYTHON = ("int", "float", "bool", "len", "range", "max", "min", "abs", "tuple", "list", "sum")
_FIXED = (ast.BinOp, ast.UnaryOp, ast.Compare, ast.BoolOp, ast.IfExp, ast.Subscript, ast.Slice,
          ast.Tuple, ast.List, ast.operator, ast.unaryop, ast.cmpop, ast.boolop,
          ast.expr_context)  # fmt: skip


@dataclass(frozen=True)
class Fixed:
    """What is known to be the same at each call of ``function``: the members of ``own`` that only
    constructors bind, or methods whose nodes are in ``renewing``, and expressions that are spelled
    like one of ``keys``."""

    scene: Scene
    function: Function
    own: str
    keys: frozenset[str] = frozenset()
    renewing: frozenset[int] = frozenset()

    def knowing(self, text: str) -> Fixed:
        return replace(self, keys=self.keys | {text})

    def holds(self, node: ast.AST) -> bool:
        if isinstance(node, ast.Constant):
            return True
        if isinstance(node, ast.expr) and ast.unparse(node) in self.keys:
            return True
        if isinstance(node, ast.Name):
            return not self._is_variable(node)
        if isinstance(node, ast.Attribute):
            return self._attribute(node)
        if isinstance(node, ast.Call):
            return self._call(node)
        return isinstance(node, _FIXED) and all(map(self.holds, ast.iter_child_nodes(node)))

    def _is_variable(self, node: ast.Name) -> bool:
        for function in self.function.outwards:
            if node.id in function.locals or node.id in {p.arg for p in function.parameters}:
                return True
        kinds = ("ref", "class", "function", "foreign", "project", "builtin")
        kind = self.scene.kind(node)
        return not kind or any(a.kind not in kinds for a in kind)

    def _attribute(self, node: ast.Attribute) -> bool:
        if node.attr == "device":
            return True  # it has no counterpart
        owner = self.function.owner
        if getattr(node.value, "id", "") != self.own or owner is None:
            return self.holds(node.value)
        making = constructing(self.scene)
        places = state.known_places(self.scene.inference).get(node.attr, [])
        stores = [p for p in places if isinstance(getattr(p, "ctx", None), ast.Store)]
        return all(id(p) in making or id(p) in self.renewing for p in stores)

    def _call(self, node: ast.Call) -> bool:
        func = node.func
        name = last_name(func)
        if name.endswith("_") or any(word in name for word in _DRAWN):
            return False
        kind = self.scene.kind(func)
        if not kind or not all(self._computes(a.kind, a.name) for a in kind):
            return False
        on = [func.value] if any(a.kind == "method" for a in kind) else []  # type: ignore[attr-defined]
        given = [*node.args, *(k.value for k in node.keywords if k.arg != "device")]
        return all(map(self.holds, [*on, *given]))

    def _computes(self, kind: str, name: str) -> bool:
        """Functions of torch and Python that give the same for the same."""
        if kind == "builtin":
            return name in _PYTHON
        if kind == "foreign":
            return name.startswith(("math.", "numpy.")) and not name.startswith("numpy.random")
        return kind in ("ref", "method") and "::" not in name


def constructing(scene: Scene) -> frozenset[int]:
    """Return the nodes in constructors, and in methods that nothing but constructors calls."""
    return _constructing(scene.inference)


@once
def _constructing(inference: Inference) -> frozenset[int]:
    inside: set[int] = set()
    for owner in inference.program.classes.values():
        for method in owner.methods.values():
            callers = [caller for _, _, caller in sites_of(inference, method)]
            called = bool(callers) and all(c and c.name == "__init__" for c in callers)
            if method.name == "__init__" or called:
                inside |= {id(node) for node in method.nodes}
    return frozenset(inside)
