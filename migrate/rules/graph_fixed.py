"""In: an expression of a method. Out: whether members, constants and given keys decide it."""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace

from migrate.program import Function
from migrate.rules import graph_state
from migrate.rules.called_from import call_sites
from migrate.scene import Scene

_DRAWN = ("rand", "normal", "bernoulli", "multinomial", "poisson", "uniform", "dropout", "empty",
          "exponential", "geometric", "cauchy")  # fmt: skip
_PYTHON = ("int", "float", "bool", "len", "range", "max", "min", "abs", "tuple", "list", "sum")
_PARTS = (ast.BinOp, ast.UnaryOp, ast.Compare, ast.BoolOp, ast.IfExp, ast.Subscript, ast.Slice,
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
        return isinstance(node, _PARTS) and all(map(self.holds, ast.iter_child_nodes(node)))

    def _is_variable(self, node: ast.Name) -> bool:
        function: Function | None = self.function
        while function is not None:
            if node.id in function.locals or node.id in {p.arg for p in function.parameters}:
                return True
            function = function.parent
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
        places = graph_state.known_places(self.scene.inference.program, node.attr)
        stores = [p for p in places if isinstance(getattr(p, "ctx", None), ast.Store)]
        return all(id(p) in making or id(p) in self.renewing for p in stores)

    def _call(self, node: ast.Call) -> bool:
        func = node.func
        name = func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")
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
    """The nodes in constructors, and in methods that nothing but constructors calls."""
    program = scene.inference.program
    if "constructing" not in program.notes:
        inside: set[int] = set()
        for owner in program.classes.values():
            for method in owner.methods.values():
                callers = [caller for _, _, caller in call_sites(scene, method)]
                called = bool(callers) and all(c and c.name == "__init__" for c in callers)
                if method.name == "__init__" or called:
                    inside |= {id(node) for node in method.nodes}
        program.notes["constructing"] = frozenset(inside)
    found: frozenset[int] = program.notes["constructing"]
    return found
