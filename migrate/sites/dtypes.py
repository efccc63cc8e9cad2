"""Tell the dtypes of Tensors, from what makes them.

Kinds carry no dtype. It is found here along the bindings that reach a use; where any of them does
not tell, it is unknown.
"""

from __future__ import annotations

import ast

from migrate.analysis.types.kinds import is_all
from migrate.sites.scene import Scene

INTEGERS = frozenset("long int int8 int16 int32 int64 short uint8 byte".split())
FLOATS = frozenset("float double half bfloat16 float16 float32 float64".split())
# the result has the dtype of the first operand
KEEPING = frozenset(
    "view reshape permute transpose t flatten unflatten squeeze unsqueeze expand expand_as repeat"
    " contiguous clone detach abs neg negative clamp flip roll index_select gather take tile"
    " masked_fill movedim swapaxes narrow select repeat_interleave broadcast_to cpu"
    " cuda triu tril diagonal view_as reshape_as zeros_like ones_like empty_like new_zeros"
    " new_ones".split()
)
SUMS = frozenset(("sum", "prod", "cumsum", "cumprod"))
_LARGEST = frozenset(("max", "min", "amax", "amin"))  # without an axis: max and min give pairs
PLACES = frozenset(("argmax", "argmin", "argsort", "nonzero", "bincount", "randint", "randperm"))
TRUTHS = frozenset("eq ne lt le gt ge isnan isinf isfinite logical_not any all isin".split())
_JOINING = (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod)
# ``torch.arange(n)`` where nothing tells the bound: int64, or float32, which a cast leaves as it is
COUNT = "count"
_ORDER = ("bool", "int", COUNT, "float")
WIDTHS = {"long": "int64", "int": "int32", "short": "int16", "byte": "uint8", "float": "float32",
          "double": "float64", "half": "float16"}  # fmt: skip


class Dtypes:
    """Tell int, bool and float Tensors and numbers of one file apart; "" is unknown.

    The default dtype is float32: setting another is flagged.
    """

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self._known: dict[int, str] = {}

    def of(self, node: ast.expr) -> str:
        """Return the sort of the elements of a Tensor, or of a number."""
        if id(node) not in self._known:
            self._known[id(node)] = ""  # under way: a loop settles nothing
            self._known[id(node)] = self._of(node)
        return self._known[id(node)]

    def _of(self, node: ast.expr) -> str:
        if isinstance(node, ast.Constant):
            kind = type(node.value).__name__
            return kind if kind in _ORDER else ""
        if isinstance(node, (ast.List, ast.Tuple)):
            return _joined([self.of(e) for e in node.elts])
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            reach = self.scene.facts.reach(node)
            values = self.scene.facts.values(node)
            if reach.outside or not values or len(values) != len(reach.bindings):
                return self._number(node)
            sorts = {self.of(v) if v is not None else "" for v in values}
            return (sorts.pop() if len(sorts) == 1 else "") or self._number(node)
        if isinstance(node, ast.BinOp):
            both = _joined([self.of(node.left), self.of(node.right)])
            if isinstance(node.op, ast.Div):
                return "float" if both else ""
            return max(both, "int", key=_ORDER.index) if both in _ORDER and isinstance(
                node.op, _JOINING
            ) else ""  # fmt: skip
        if isinstance(node, ast.UnaryOp):
            return "bool" if isinstance(node.op, ast.Not) else self.of(node.operand)
        if isinstance(node, ast.Compare):
            return "bool" if is_all(self.scene.kind(node), "Tensor") else ""
        if isinstance(node, ast.IfExp):
            sorts = {self.of(node.body), self.of(node.orelse)}
            return sorts.pop() if len(sorts) == 1 else ""
        if isinstance(node, ast.Subscript):
            held = is_all(self.scene.kind(node.value), "Tensor")
            return self.of(node.value) if held else self._number(node)
        if isinstance(node, ast.Attribute):
            same = node.attr in ("T", "mT", "data") and is_all(
                self.scene.kind(node.value), "Tensor"
            )
            return self.of(node.value) if same else self._number(node)
        return self._called(node) if isinstance(node, ast.Call) else ""

    def _number(self, node: ast.expr) -> str:
        """Return the sort of a number of Python's."""
        kinds = self.scene.kind(node)
        return next((s for s in _ORDER if is_all(kinds, s)), "")

    def _called(self, call: ast.Call) -> str:
        named = {k.arg: k.value for k in call.keywords if k.arg}
        if len(named) < len(call.keywords) or any(isinstance(a, ast.Starred) for a in call.args):
            return ""
        if "dtype" in named:
            return self._named(named["dtype"])
        kinds = self.scene.kind(call.func)
        refs = {a.name for a in kinds if a.kind == "ref"}
        if len(refs) == len(kinds) == 1:
            return self._made(refs.pop(), list(call.args), named)
        if isinstance(call.func, ast.Attribute) and is_all(
            self.scene.kind(call.func.value), "Tensor"
        ):
            return self._method(call.func, call.args)
        return self._number(call)

    def _made(self, name: str, given: list[ast.expr], named: dict[str, ast.expr]) -> str:
        """Return the sort of what a function of torch gives."""
        own, _, last = name.rpartition(".")
        if own != "torch":
            return ""
        if last == "arange":
            bounds = [*given, *(v for k, v in named.items() if k in ("start", "end", "step"))]
            return _joined([self.of(g) or COUNT for g in bounds])
        if last in ("tensor", "as_tensor"):
            return self.of(given[0]) if given and not self._is_array(given[0]) else ""
        if last == "full":
            return self.of(given[1]) if len(given) > 1 else ""
        if last in ("zeros", "ones", "empty", "rand", "randn", "linspace", "eye"):
            return "float"
        if last in ("cat", "stack", "concat"):
            return self.of(given[0]) if given else ""
        return self._kept(last, given)

    def _is_array(self, node: ast.expr) -> bool:
        return not is_all(self.scene.kind(node), "int", "float", "bool", "list", "tuple", "Tensor")

    def _method(self, func: ast.Attribute, given: list[ast.expr]) -> str:
        name = func.attr
        if name in INTEGERS:
            return "int"
        if name in FLOATS or name == "bool":
            return "bool" if name == "bool" else "float"
        if name in ("to", "type", "type_as"):
            only = given[0] if len(given) == 1 else None
            if only is None:
                return ""
            if is_all(self.scene.kind(only), "device"):
                return self.of(func.value)
            return self.of(only) if is_all(self.scene.kind(only), "Tensor") else self._named(only)
        return self._kept(name, [func.value, *given])

    def _kept(self, name: str, given: list[ast.expr]) -> str:
        if name in PLACES:
            return "int"
        if name in TRUTHS:
            return "bool"
        sort = self.of(given[0]) if given else ""
        if name in SUMS:
            return "int" if sort == "bool" else sort
        if name in KEEPING or (name in _LARGEST and len(given) == 1):
            return sort
        return ""

    def _named(self, node: ast.expr) -> str:
        """Return the sort of a dtype that is written: ``torch.long``."""
        names = {a.name.rpartition(".")[2] for a in self.scene.kind(node) if a.kind == "ref"}
        if not names and isinstance(node, ast.Attribute) and node.attr in INTEGERS | FLOATS:
            names = {node.attr} if is_all(self.scene.kind(node), "dtype") else set()
        if names and names <= INTEGERS:
            return "int"
        return "bool" if names == {"bool"} else "float" if names and names <= FLOATS else ""


class Exact(Dtypes):
    """Tell the very dtypes of Tensors; numbers of Python's have none."""

    def before(self, node: ast.AugAssign) -> str:
        """Return the dtype that a variable has before something is added to it."""
        assert isinstance(node.target, ast.Name)
        reach = self.scene.facts.reach_before(node.target.id, node)
        values = [self.scene.facts._value(b.place, False) for b in reach.bindings]
        found = {self.of(v) if v is not None else "" for v in values}
        return found.pop() if len(found) == 1 and not reach.outside and values else ""

    def _of(self, node: ast.expr) -> str:
        if isinstance(node, ast.BinOp):
            sides = (node.left, node.right)
            tensors = [s for s in sides if not is_all(self.scene.kind(s), "int", "float", "bool")]
            found = {self.of(s) for s in tensors}
            alone = len(found) == 1 and isinstance(node.op, (ast.Add, ast.Sub, ast.Mult))
            only = found.pop() if alone else ""
            real = any(is_all(self.scene.kind(s), "float") for s in sides)
            return only if only.startswith("float") or not real else ""
        if isinstance(node, (ast.Constant, ast.List, ast.Tuple)):
            return ""
        return super()._of(node)

    def _number(self, node: ast.expr) -> str:
        return ""

    def _made(self, name: str, given: list[ast.expr], named: dict[str, ast.expr]) -> str:
        sort = Dtypes(self.scene)._made(name, given, named)
        if name in ("torch.cat", "torch.stack", "torch.concat"):
            return ""
        return {"int": "int64", "float": "float32", "bool": "bool"}.get(sort, "")

    def _method(self, func: ast.Attribute, given: list[ast.expr]) -> str:
        name = func.attr
        return WIDTHS.get(name, name if name in FLOATS else "") or super()._method(func, given)

    def _kept(self, name: str, given: list[ast.expr]) -> str:
        sort = super()._kept(name, given)
        return {"int": "int64"}.get(sort, sort) if name in PLACES | SUMS else sort

    def _named(self, node: ast.expr) -> str:
        names = {a.name.rpartition(".")[2] for a in self.scene.kind(node) if a.kind == "ref"}
        name = names.pop() if len(names) == 1 else getattr(node, "attr", "")
        return WIDTHS.get(name, name) if name in INTEGERS | FLOATS | {"bool"} else ""


def _joined(sorts: list[str]) -> str:
    """Return the sort of what several make together; "" where one of them is unknown."""
    return max(sorts, key=_ORDER.index) if sorts and "" not in sorts else ""


def may_differ(scene: Scene, joined: ast.expr) -> bool:
    """Return whether Tensors of several dtypes may stand in a display: one is made with a dtype of
    its own, and another is not seen to have the same. What a layer gives has that of its weights.
    """
    exact = Exact(scene)
    each = joined.elts if isinstance(joined, (ast.List, ast.Tuple)) else []
    found = [exact.of(e) for e in each if not (exact.of(e) == "" and _is_of_layer(scene, e))]
    return len(set(found)) > 1


def _is_of_layer(scene: Scene, node: ast.expr) -> bool:
    values = scene.facts.values(node) if isinstance(node, ast.Name) else (node,)
    calls = [v for v in values if isinstance(v, ast.Call)]
    return bool(calls) and all(is_all(scene.kind(c.func), "Module") for c in calls)
