"""Judge what the data decide while the graph runs: graph mode decides it when it compiles.

Measured: of a number that a branch on a Tensor chooses, a shape, an axis or the bound of a slice
takes that of the other branch; of values of several sorts, and of texts, comes something else; a
list of layers or functions gives its first one for any number that is read from a Tensor.

Shapes that the numbers decide run as they are, but each new shape costs: graph mode compiles for
shapes that change, and Ascend is slow with them. A note has the form of a fixed shape.
"""

from __future__ import annotations

import ast

from migrate.analysis.types.kinds import is_all
from migrate.records.outcomes import Edit, Outcome
from migrate.rules.graph import values
from migrate.rules.graph.scope import (
    Checks,
    Findings,
    Found,
    Rewriting,
    builtin,
    only_tells,
)
from migrate.sites.scene import Scene, once_a_file
from migrate.sites.selections import is_selection
from migrate.syntax.trees import last_name

_PASSING = frozenset(("int", "float", "bool", "abs", "max", "min", "round", "sum", "pow"))
# the number is a value for the kernel there: no shape depends on it
_VALUED = frozenset(
    "add sub subtract mul multiply div divide true_divide pow where maximum"
    " minimum full_like new_full arange masked_fill fill_ eq ne gt lt ge le leaky_relu elu item"
    " remainder fmod floor_divide range print lerp add_ mul_ sub_ div_ isinstance".split()
)
_SORTS = {"int": "int", "float": "float", "bool": "bool", "str": "str", "None": "None",
          "tuple": "tuple", "Size": "tuple", "list": "list", "dict": "dict",
          "Tensor": "Tensor", "Module": "Module"}  # fmt: skip
_CALLED = frozenset(("function", "method", "ref", "Module", "partial", "builtin", "class"))
_CARRYING = (ast.BinOp, ast.UnaryOp, ast.Tuple, ast.List, ast.IfExp, ast.Starred)
_LOOPS = (ast.While, ast.For)
_SUMMED = ("len", "sum", "max", "min")
_LENGTH = "the data decide how long it is: graph mode has sequences of one length alone"
_UNITS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.Module)


class Asked:
    """Answer questions about the expressions of one file, each once."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self._late: dict[int, bool] = {}
        self._joined: dict[int, bool] = {}

    def late(self, node: ast.expr) -> bool:
        """Return whether a value is surely known only when the graph runs."""
        if id(node) not in self._late:
            self._late[id(node)] = False  # under way: a loop adds nothing
            self._late[id(node)] = self._is_late(node)
        return self._late[id(node)]

    def trains(self, statement: ast.stmt) -> bool:
        """Return whether only training decides by data how often a statement runs.

        ``if self.training and random() < drop: continue`` is no question in eval mode.
        """
        loop = self.scene.parent(statement)
        if not isinstance(loop, _LOOPS):
            return isinstance(loop, ast.If) and _asks_training(loop.test)
        if self.late(loop.test) if isinstance(loop, ast.While) else self.is_range(loop.iter):
            return False
        ends = [
            node
            for node in ast.walk(loop)
            if isinstance(node, ast.If)
            and self.late(node.test)
            and _leaves_loop(node, (ast.Break, ast.Continue))
        ]
        return bool(ends) and all(_asks_training(node.test) for node in ends)

    def _is_late(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Name) and is_all(self.scene.kind(node), "Tensor"):
            return not self._is_guessed(node)
        operators = (ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp)
        if not isinstance(node, operators) and is_all(self.scene.kind(node), "Tensor"):
            return True
        if isinstance(node, ast.Compare):
            if any(isinstance(o, (ast.Is, ast.IsNot)) for o in node.ops):
                return False
            return any(self.late(n) for n in (node.left, *node.comparators))
        if isinstance(node, ast.Name):
            return self.joined(node) or any(
                v is not None and self.late(v) for v in self.scene.facts.values(node)
            )
        if isinstance(node, ast.Call):
            func = node.func
            if values.random_drawn(self.scene, node) is not None:
                return True
            if isinstance(func, ast.Attribute) and func.attr == "item":
                return is_all(self.scene.kind(func.value), "Tensor")
            return _passes(node, node) and any(self.late(a) for a in node.args)
        if isinstance(node, ast.Subscript):
            return self.late(node.value) and self._is_size(node.value)
        if self._is_size(node):
            return is_selection(self.scene, _sized(node))
        if isinstance(node, ast.IfExp):
            return self.late(node.test) or self.late(node.body) or self.late(node.orelse)
        return any(self.late(n) for n in _operands(node))

    def _is_guessed(self, node: ast.Name) -> bool:
        """Return whether nothing but its place in forward says that a parameter is a Tensor."""
        place = next(iter(self.scene.facts.reach(node).bindings), None)
        function = self.scene.function(node)
        if place is None or not isinstance(place.place, ast.arg) or place.place.annotation:
            return False
        return function is not None and not any(
            isinstance(n, (ast.Attribute, ast.Subscript)) and getattr(n.value, "id", "") == node.id
            for n in function.nodes
        )

    def _is_size(self, node: ast.expr) -> bool:
        """Return whether an expression asks how large a Tensor is."""
        held = _sized(node)
        return held is not node and is_all(self.scene.kind(held), "Tensor")

    def is_range(self, node: ast.AST) -> bool:
        """Return whether a node is ``range(k)`` of a number that the data decide."""
        named = isinstance(node, ast.Call) and builtin(self.scene, node.func, "range")
        return named and any(self.late(a) for a in node.args)  # type: ignore[attr-defined]

    def joined(self, node: ast.expr) -> bool:
        """Return whether a branch that the data decide chooses what is no Tensor."""
        if id(node) not in self._joined:
            self._joined[id(node)] = False
            self._joined[id(node)] = self._is_joined(node)
        return self._joined[id(node)]

    def _is_joined(self, node: ast.expr) -> bool:
        if "Tensor" in self.scene.kind_names(node):
            return False
        if isinstance(node, ast.IfExp):
            return self.late(node.test) or self.joined(node.body) or self.joined(node.orelse)
        if isinstance(node, ast.Name):
            bindings = self.scene.facts.reach(node).bindings
            if len(bindings) > 1 and any(self._is_chosen(b.place, node) for b in bindings):
                return True
            values = self.scene.facts.values(node)
            return any(v is not None and self.joined(v) for v in values)
        if isinstance(node, ast.Call):
            return _passes(node, node) and any(self.joined(a) for a in node.args)
        return any(self.joined(n) for n in _operands(node))

    def _is_chosen(self, place: ast.AST, read: ast.AST) -> bool:
        """Return whether a branch or loop that the data decide binds a name, and ends before the
        name is read."""
        child, around = place, self.scene.parent(place)
        while around is not None and not isinstance(around, _UNITS):
            inside = child in getattr(around, "body", ()) or child in getattr(around, "orelse", ())
            if inside and not self._holds(around, read):
                if isinstance(around, (ast.If, ast.While)) and self.late(around.test):
                    return True
                if isinstance(around, _LOOPS) and self._broken(around):
                    return True
            child, around = around, self.scene.parent(around)
        return False

    def _holds(self, around: ast.AST, node: ast.AST) -> bool:
        return node is around or around in self.scene.around(node)

    def is_open(self, loop: ast.For | ast.While, statement: ast.stmt) -> bool:
        """Return whether the data decide how often a statement of a loop's body runs."""
        over = self.is_range(loop.iter) if isinstance(loop, ast.For) else self.late(loop.test)
        before = loop.body[: loop.body.index(statement)] if statement in loop.body else loop.body
        passed = any(self._broken(s, (ast.Break, ast.Continue)) for s in before)
        return over or passed or self._broken(loop, (ast.Break,))

    def _broken(
        self, around: ast.AST, by: tuple[type[ast.stmt], ...] = (ast.Break, ast.Continue)
    ) -> bool:
        """Return whether the data decide when a round of a loop, or all of it, ends."""
        return any(
            isinstance(node, ast.If) and self.late(node.test) and _leaves_loop(node, by)
            for node in ast.walk(around)
        )


@once_a_file
def asked_of(scene: Scene) -> Asked:
    """Return the answers for one file."""
    return Asked(scene)


def _asks_training(test: ast.expr) -> bool:
    """``self.training and ...``"""
    first = test.values[0] if isinstance(test, ast.BoolOp) else test
    conjoined = isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And)
    return conjoined and ast.unparse(first) == "self.training"


def _leaves_loop(node: ast.stmt, by: tuple[type[ast.stmt], ...]) -> bool:
    """Return whether a statement holds a ``break`` or ``continue`` of a loop around it."""
    inner = [s for s in ast.iter_child_nodes(node) if isinstance(s, ast.stmt)]
    return any(
        isinstance(s, by) or (not isinstance(s, _LOOPS) and _leaves_loop(s, by)) for s in inner
    )


def _sized(node: ast.expr) -> ast.expr:
    """Return ``x`` of ``x.shape``, ``x.size()``, ``x.numel()`` and ``len(x)``, else the node."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.value if node.func.attr in ("size", "numel", "nelement") else node
    if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "len" and node.args:
        return node.args[0]
    return node.value if isinstance(node, ast.Attribute) and node.attr == "shape" else node


def _operands(node: ast.expr) -> list[ast.expr]:
    if isinstance(node, ast.BinOp):
        return [node.left, node.right]
    if isinstance(node, ast.UnaryOp):
        return [node.operand]
    return node.values if isinstance(node, ast.BoolOp) else []


def _chosen(scene: Scene, node: ast.IfExp) -> Found | None:
    if only_tells(scene, node):
        return None
    return _sorts(scene, node) or _used(scene, node)


def _read(scene: Scene, node: ast.Name) -> Found | None:
    if not isinstance(node.ctx, ast.Load) or not asked_of(scene).joined(node):
        return None
    return None if only_tells(scene, node) else _bound_sorts(scene, node) or _used(scene, node)


def _sort(scene: Scene, node: ast.expr) -> str:
    """Return which sort of value an expression surely has; "" where it is not known."""
    sorts = {_SORTS.get(name, "") for name in scene.kind_names(node)}
    return sorts.pop() if len(sorts) == 1 else ""


def _sorts(scene: Scene, node: ast.IfExp) -> Found | None:
    if not asked_of(scene).late(node.test) or isinstance(scene.parent(node), ast.Assign):
        return None  # a variable is judged where it is read
    return _differ([_sort(scene, node.body), _sort(scene, node.orelse)], ast.unparse(node))


def _bound_sorts(scene: Scene, node: ast.Name) -> Found | None:
    values = [
        part
        for v in scene.facts.values(node)
        for part in ((v.body, v.orelse) if isinstance(v, ast.IfExp) else (v,))
    ]
    return _differ([_sort(scene, v) if v is not None else "" for v in values], node.id)


def _differ(sorts: list[str], name: str) -> Found | None:
    """Return the finding where branches give values of several sorts, texts, or layers, whose
    weights get no gradient together."""
    if not all(sorts) or (len(set(sorts)) == 1 and sorts[0] not in ("str", "Module")):
        return None
    what = " or ".join(sorted(set(sorts)))
    why = f"the data choose ({what}): graph mode gives something else"
    return "GRF618", name, why, "choose between Tensors alike, or keep the choice out of forward"


def _used(scene: Scene, node: ast.expr) -> Found | None:
    """Return the finding where a number that the data choose decides a shape, axis or bound."""
    if isinstance(node, ast.Name) and not asked_of(scene).joined(node):
        return None
    if isinstance(node, ast.IfExp) and not asked_of(scene).joined(node):
        return None
    child: ast.AST = node
    around = scene.parent(node)
    while around is not None and (isinstance(around, _CARRYING) or _passes(around, child)):
        if isinstance(around, ast.IfExp) and child is around.test:
            return None
        if isinstance(around, ast.expr) and "Tensor" in scene.kind_names(around):
            return None  # it is a value in the arithmetic of Tensors
        child, around = around, scene.parent(around)
    name = ast.unparse(node)
    if isinstance(around, ast.keyword):
        child, around = around, scene.parent(around)
    sized = isinstance(around, ast.Slice) or (
        isinstance(around, ast.Call) and child is not around.func and not _is_valued(around)
    )
    if not sized:
        return None
    why = "the data choose this number: graph mode takes a shape, an axis or a bound from another"
    return "GRF618", name, why, "choose between the results (torch.where, if), not the numbers"


def _passes(around: ast.AST | None, child: ast.AST) -> bool:
    """Return whether a call gives a number that depends on the child: ``min(n, 1)``."""
    func = around.func if isinstance(around, ast.Call) and around.func is not child else None
    return isinstance(func, ast.Name) and func.id in _PASSING


def _is_valued(call: ast.Call) -> bool:
    """Return whether a call takes its numbers as values of elements."""
    return last_name(call.func) in _VALUED


def _chosen_call(scene: Scene, node: ast.Subscript) -> Found | None:
    """``self.experts[int(i)](x)``: graph mode calls the first one."""
    if isinstance(node.slice, (ast.Slice, ast.Tuple, ast.Constant)) or not asked_of(scene).late(
        node.slice
    ):
        return None
    kinds = scene.kind(node.value)
    items = [i for a in kinds if a.kind in ("list", "tuple", "dict") for k in a.items for i in k]
    listed = is_all(kinds, "Module") or (
        bool(items) and all(i.kind in _CALLED for i in items) and is_all(kinds, "list", "tuple")
    )
    if not listed:
        return None
    why = "the data choose the layer or function: graph mode takes the first"
    return "GRF618", ast.unparse(node), why, "compute all of them and choose between the results"


def _computed(scene: Scene, node: ast.Call) -> Found | None:
    """``math.sqrt(x[mask].shape[0])``: refused, and in a loss function the gradient is 0."""
    names = [a.name for a in scene.kind(node.func) if a.kind == "foreign"]
    if not names or not all(n.startswith(("math.", "numpy.")) for n in names):
        return None
    if not any(asked_of(scene).late(a) for a in (*node.args, *(k.value for k in node.keywords))):
        return None
    why = "Python computes it, from what the data decide: graph mode has no number yet"
    return "GRF618", names[0], why, "compute it with torch"


def _grown(scene: Scene, node: ast.Call) -> Found | None:
    """``if x.any(): found.append(x)``: graph mode has lists of one length alone."""
    func, statement = node.func, scene.parent(node)
    if not isinstance(func, ast.Attribute) or func.attr not in ("append", "extend", "insert"):
        return None
    branch = scene.parent(statement) if isinstance(statement, ast.Expr) else None
    name = ast.unparse(func.value)
    if not is_all(scene.kind(func.value), "list"):
        return None
    if isinstance(branch, ast.If):
        if not asked_of(scene).late(branch.test) or _grows(branch.body, name) == _grows(
            branch.orelse, name
        ):
            return None
    elif not (
        isinstance(branch, _LOOPS)
        and isinstance(statement, ast.stmt)
        and asked_of(scene).is_open(branch, statement)
    ):
        return None
    why = "the data decide how long the list is: graph mode has lists of one length alone"
    return "GRF618", name, why, "append something in both branches"


def _counted(scene: Scene, node: ast.Call) -> Found | None:
    """``range(k)[-1]``, ``[f(i) for i in range(k)]``: of such a sequence graph mode has one item
    that stands for all."""
    if not asked_of(scene).is_range(node):
        return None
    around = scene.parent(node)
    if isinstance(around, ast.comprehension):
        node, around = around, scene.parent(scene.parent(around) or around)  # type: ignore[assignment]
    elif isinstance(around, (ast.For, ast.Compare)):
        return None
    if isinstance(around, ast.Call) and getattr(around.func, "id", "") in _SUMMED:
        return None
    return "GRF618", "range", _LENGTH, "go over a range of fixed length, and choose inside"


def _repeated(scene: Scene, node: ast.BinOp) -> Found | None:
    """``[x] * k``"""
    sides = ((node.left, node.right), (node.right, node.left))
    if not isinstance(node.op, ast.Mult) or not any(
        is_all(scene.kind(one), "list", "tuple") and asked_of(scene).late(other)
        for one, other in sides
    ):
        return None
    around = scene.parent(node)
    if isinstance(around, ast.Call) and getattr(around.func, "id", "") == "len":
        return None
    return "GRF618", ast.unparse(node), _LENGTH, "use torch.stack and expand"


def _grows(block: list[ast.stmt], name: str) -> int:
    return sum(
        isinstance(n, ast.Call)
        and isinstance(n.func, ast.Attribute)
        and n.func.attr in ("append", "extend", "insert")
        and ast.unparse(n.func.value) == name
        for s in block
        for n in ast.walk(s)
    )


_MASK = (
    "as many elements as the mask has: a shape that the numbers decide. With a fixed one:"
    " `ops.where(mask, x, 0)`, and `ops.where(mask, x, 0).sum() / mask.sum()` for a mean"
)
_CALLS = {
    "nonzero": "as many rows as there are: a shape that the numbers decide. With a fixed one, the"
    " first k: `order = ops.topk(mask.astype(ms.float32), k)[1]`, or go on with the mask itself",
    "masked_select": _MASK,
    "unique": "as many as there are: a shape that the numbers decide. With a fixed one:"
    " `s = ops.sort(x)[0]` and `new = s[1:] != s[:-1]`, which of the others are new",
}


def _masked(scene: Scene, node: ast.Subscript) -> Rewriting | None:
    """``x[x > 0]``"""
    if not isinstance(node.ctx, ast.Load) or not is_all(scene.kind(node.value), "Tensor"):
        return None
    return _noted(scene, node, _MASK, "x[mask]") if _is_mask(scene, node.slice) else None


def _shaped(scene: Scene, node: ast.Call) -> Rewriting | None:
    """``torch.nonzero(x)``, ``x.masked_select(m)``, ``torch.unique(x)``"""
    names = {a.name for a in scene.kind(node.func) if a.name.startswith("torch.")}
    called = names.pop().rpartition(".")[2] if len(names) == 1 else ""
    note = _CALLS.get(called, "")
    return _noted(scene, node, note, f"the shape of {called}") if note else None


def _noted(scene: Scene, node: ast.AST, note: str, name: str) -> Rewriting:
    return Rewriting(node, (Edit(scene.site(name, node), Outcome.KEPT, None),), note, name)


def _is_mask(scene: Scene, index: ast.expr) -> bool:
    """A comparison of Tensors, or a variable that is only ever bound to one."""
    if isinstance(index, ast.UnaryOp) and isinstance(index.op, ast.Invert):
        return True
    if isinstance(index, ast.Compare):
        return any(is_all(scene.kind(n), "Tensor") for n in (index.left, *index.comparators))
    function = scene.function(index)
    if not isinstance(index, ast.Name) or function is None:
        return False
    bound = [n for n in ast.walk(function.node) if isinstance(n, ast.Assign)
             and any(getattr(t, "id", "") == index.id for t in n.targets)]  # fmt: skip
    return bool(bound) and all(
        isinstance(n.value, ast.Compare) and _is_mask(scene, n.value) for n in bound
    )


CHECKS: Checks = {ast.Subscript: (_masked,), ast.Call: (_shaped,)}
FINDINGS: Findings = {
    ast.IfExp: (_chosen,),
    ast.Name: (_read,),
    ast.Subscript: (_chosen_call,),
    ast.Call: (_grown, _computed, _counted),
    ast.BinOp: (_repeated,),
}
