"""Let Python compute where graph mode would compute with floats in single precision.

``int(n * (1 - ratio))`` is another integer there, once the last bits decide. Numbers that only pass
through a graph keep theirs, so the arithmetic becomes a function under ``constexpr``, which runs
while the graph is compiled. What is computed in a loop or by a caller stops the compiler.
"""

from __future__ import annotations

import ast
import keyword
from collections.abc import Iterator
from dataclasses import replace

from migrate.codegen.substitution import piece
from migrate.records.outcomes import Part
from migrate.rules.graph import scope
from migrate.rules.graph.late import asked_of
from migrate.rules.graph.scope import Rewriting, Silent, Text, only_tells
from migrate.sites.scene import Scene, once_a_file
from migrate.syntax.trees import last_name

_WHOLE = frozenset(("int", "round", "floor", "ceil", "trunc"))
_PASSING = frozenset(("float", "abs", "max", "min", "sum"))
_INNER = (ast.BinOp, ast.UnaryOp, ast.Compare, ast.IfExp, ast.BoolOp)
_CUT = (ast.FloorDiv, ast.Mod)
_ROUGH = ("no", "int", "short", "quotient", "double", "computed")  # the later, the less exact


def rewrites(scene: Scene) -> Iterator[Rewriting]:
    """Yield the functions under ``constexpr``, and the calls in place of the arithmetic."""
    made: dict[int, Rewriting] = {}
    taken = set(scene.file.names) | set(scene.file.top)
    for node in _consumers(scene):
        roots = _roots(scene, node)
        for root in roots or ():
            if id(root) not in made and not any(scope.holds(r.node, root) for r in made.values()):
                made[id(root)] = _function(scene, root, taken)
    yield from made.values()


def flags(scene: Scene) -> Iterator[Silent]:
    """Yield what decides by the last bits of a float, and is not computed in one expression."""
    for node in _consumers(scene):
        if _roots(scene, node) is None:
            why = "graph mode computes with floats in single precision: another number may come out"
            step = "compute it in a function under mindspore.ops.constexpr, or in __init__"
            yield Silent(node, ("GRF619", ast.unparse(node), why, step))


@once_a_file
def _consumers(scene: Scene) -> list[ast.expr]:
    """Return the expressions whose value the last bits of a float decide."""
    seen, found = _seen(scene), []
    for node in scope.nodes(scene, ast.Call, ast.BinOp, ast.Compare):
        assert isinstance(node, ast.expr)
        if seen.decides(node) and not only_tells(scene, node):
            around = scene.parent(node)
            if not (isinstance(around, ast.expr) and seen.decides(around)):
                found.append(node)
    return sorted(found, key=lambda n: (n.lineno, n.col_offset))


class _Seen:
    """Say how exactly graph mode knows the numbers of one file."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.asked = asked_of(scene)
        self._known: dict[int, str] = {}

    def decides(self, node: ast.expr) -> bool:
        """Return whether an expression cuts or compares a float that the graph has computed."""
        if isinstance(node, ast.Call):
            name = last_name(node.func)
            plain = name in _WHOLE and len(node.args) == 1 and not node.keywords
            return plain and self._is_python(node) and self.of(node.args[0]) == "computed"
        if isinstance(node, ast.BinOp) and isinstance(node.op, _CUT):
            sides = {self.of(node.left), self.of(node.right)}
            return "no" not in sides and bool(sides & {"double", "computed"})
        if isinstance(node, ast.Compare):
            kinds = [self.of(n) for n in (node.left, *node.comparators)]
            return "no" not in kinds and "computed" in kinds
        return False

    def _is_python(self, call: ast.Call) -> bool:
        kinds = self.scene.kind(call.func)
        return bool(kinds) and all(
            a.kind == "builtin" or (a.kind == "foreign" and a.name.startswith("math."))
            for a in kinds
        )

    def of(self, node: ast.expr) -> str:
        """Return how exact a number is; "no" for what is none, or not before the graph runs."""
        if id(node) not in self._known:
            self._known[id(node)] = "no"  # under way: what a loop adds is asked for once
            self._known[id(node)] = self._of(node)
        return self._known[id(node)]

    def _of(self, node: ast.expr) -> str:
        if isinstance(node, ast.Constant):
            if isinstance(node.value, float):
                short = float(node.value * 256).is_integer() and abs(node.value) < 65536
                return "short" if short else "double"
            return "int" if isinstance(node.value, int) else "no"
        if isinstance(node, ast.BinOp):
            return self._operation(node)
        if isinstance(node, ast.UnaryOp):
            return self.of(node.operand)
        if isinstance(node, ast.IfExp):
            return _worst([self.of(node.body), self.of(node.orelse)])
        if isinstance(node, ast.Call) and self._is_python(node):
            name = last_name(node.func)
            if name in _WHOLE or name == "len":
                return "int"
            parts = [self.of(a) for a in node.args]
            return _worst(parts) if name in _PASSING else ("no" if "no" in parts else "double")
        if isinstance(node, ast.Name):
            values = [v for v in self.scene.facts.values(node) if v is not None]
            if any(isinstance(v, _INNER) and self.of(v) == "computed" for v in values):
                return "computed"
        kinds = self.scene.kind_names(node)
        if self.asked.late(node):
            return "no"
        if kinds <= {"int", "bool"}:
            return "int"
        if kinds <= {"int", "bool", "float"}:
            return "double"
        member = isinstance(node, ast.Attribute) and getattr(node.value, "id", "") == "self"
        return "double" if member and kinds <= {"unknown", "int", "float"} else "no"

    def _operation(self, node: ast.BinOp) -> str:
        left, right = self.of(node.left), self.of(node.right)
        both = {left, right}
        if "no" in both:
            return "no"
        exact = both <= {"int", "short"}
        if isinstance(node.op, ast.Div):
            return "quotient" if exact else "computed"
        if isinstance(node.op, (ast.Add, ast.Sub)) and both <= {"int", "short", "quotient"}:
            return "quotient" if "quotient" in both else _worst([left, right])
        if isinstance(node.op, ast.Pow):
            root = isinstance(node.right, ast.Constant) and node.right.value == 0.5
            return "int" if both == {"int"} else "quotient" if exact and root else "computed"
        return _worst([left, right]) if exact else "computed"


@once_a_file
def _seen(scene: Scene) -> _Seen:
    return _Seen(scene)


def _worst(parts: list[str]) -> str:
    return "no" if "no" in parts or not parts else max(parts, key=_ROUGH.index)


def _roots(scene: Scene, node: ast.expr) -> list[ast.expr] | None:
    """Return the expressions that Python has to compute, an inner one first; None where a loop,
    an addition in place or unpacking has a part in it."""
    seen = _seen(scene)
    found = [node]
    for root in found:
        for leaf in _leaves(seen, root):
            if isinstance(leaf, ast.Name) and seen.of(leaf) == "computed":
                values = scene.facts.values(leaf)
                if any(v is None for v in values) or _is_looped(scene, root):
                    return None
                found += [v for v in values if v is not None and isinstance(v, _INNER)
                          and seen.of(v) == "computed" and v not in found]  # fmt: skip
    return found[::-1]


def _is_looped(scene: Scene, node: ast.AST) -> bool:
    for around in scene.around(node, ast.FunctionDef, ast.Lambda):
        if isinstance(around, (ast.While, ast.For)):
            return True
    return False


def _leaves(seen: _Seen, node: ast.expr) -> list[ast.expr]:
    """Return the largest parts of an expression that are no arithmetic of Python's."""
    if isinstance(node, ast.Constant):
        return []
    inner: list[ast.expr] = []
    if isinstance(node, ast.Call) and seen._is_python(node):
        name = last_name(node.func)
        inner = node.args if name in _WHOLE | _PASSING and not node.keywords else []
    if isinstance(node, _INNER):
        inner = [n for n in ast.iter_child_nodes(node) if isinstance(n, ast.expr)]
    return [leaf for part in inner for leaf in _leaves(seen, part)] if inner else [node]


def _function(scene: Scene, root: ast.expr, taken: set[str]) -> Rewriting:
    """Return the definition in front of the class or function, and its call."""
    seen = _seen(scene)
    names: dict[str, tuple[str, ast.expr]] = {}
    for leaf in _leaves(seen, root):
        names.setdefault(ast.unparse(leaf), (_parameter(leaf, names), leaf))
    text = ast.unparse(_Named(seen, names).visit(ast.parse(ast.unparse(root), mode="eval").body))
    parent = scene.parent(root)
    target = parent.targets[0] if isinstance(parent, ast.Assign) else None
    purpose = f"{target.id}_of" if isinstance(target, ast.Name) else "computed"
    name = _free(purpose, taken)
    taken.add(name)
    source = scene.source
    parts: list[Text] = [f"{name}("]
    for number, (_, leaf) in enumerate(names.values()):
        parts += [", " if number else "", piece(source, leaf)]
    call = scope.edit(scene, root, source.span(root), *parts, ")")
    spelled, need = scene.spelling.local("mindspore.ops.constexpr")
    given = ", ".join(n for n, _ in names.values())
    lines = (f"@{spelled}", f"def {name}({given}):", f"    return {text}", "", "")
    top = next(s for s in scene.source.tree.body if scope.holds(s, root))
    above = scope.part(scene, top, Part.BEFORE, source.newline.join(lines))
    return Rewriting(root, (call, replace(above, needs=frozenset({need}))))


class _Named(ast.NodeTransformer):
    """Put the names of parameters in the place of the leaves."""

    def __init__(self, seen: _Seen, names: dict[str, tuple[str, ast.expr]]) -> None:
        self.names = names

    def visit(self, node: ast.AST) -> ast.AST:
        if isinstance(node, ast.expr) and not isinstance(node, ast.Constant):
            known = self.names.get(ast.unparse(node))
            if known is not None:
                return ast.Name(known[0], ast.Load())
        return self.generic_visit(node)


def _parameter(leaf: ast.expr, names: dict[str, tuple[str, ast.expr]]) -> str:
    name = last_name(leaf).lstrip("_") or "n"
    return _free(name, {n for n, _ in names.values()} | _WHOLE | _PASSING | {"math"})


def _free(name: str, taken: set[str]) -> str:
    tries = (name, *(f"{name}_{n}" for n in range(2, 1000)))
    return next(t for t in tries if t not in taken and not keyword.iskeyword(t))
