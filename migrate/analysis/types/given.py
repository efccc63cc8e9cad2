"""Take a call for evidence: of what its callee does with the arguments, of what enters Modules."""

from __future__ import annotations

import ast
from itertools import takewhile

from migrate.analysis.program import Function
from migrate.analysis.types import values
from migrate.analysis.types.binding import Binding
from migrate.analysis.types.elimination import Question
from migrate.analysis.types.kinds import (
    GIVEN,
    MODULE_ONLY,
    TENSOR,
    UNKNOWN,
    having,
    is_all,
    without_none,
)
from migrate.analysis.types.world import World

_NAMED = (ast.Name, ast.Attribute)
_OF_MODULES = "torch.nn.Module."
# methods that others may have, but of what can be called only Modules: optimizers cannot
_CALLED_ONES = frozenset({"train", "eval", "state_dict", "load_state_dict"})


class Given(Binding):
    """Infers the kinds of arguments from a call: from the body of the callee, from calls of
    Modules.
    """

    def _shown_by(self, function: Function, node: ast.Call) -> None:
        """Infer the kinds of the arguments from the body of a function of the project."""
        shown = self.world.shown(function)
        bound = function.owner is not None and not function.decorated("staticmethod")
        names = [a.arg for a in function.parameters][1 if bound else 0 :]
        given = [] if any(isinstance(a, ast.Starred) for a in node.args) else node.args
        passed = [*zip(names, given, strict=False), *((k.arg, k.value) for k in node.keywords)]
        for name, value in passed:
            if name is not None and name in shown and isinstance(value, ast.Name):
                self.saw(value, shown[name])

    def _taken_for_tensor(self, node: ast.expr) -> None:
        self.saw_tensor(node)
        self.world.kinds[id(node)] = TENSOR
        if isinstance(node, ast.Name) and node.id in self.env:
            self.learn(node.id, TENSOR)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            self._chained(node, node.func)

    def _chained(self, node: ast.Call, func: ast.Attribute) -> None:
        """Infer Tensor for ``x`` in ``x.reshape(2, -1).permute(1, 0)``: only a Tensor has both
        methods.
        """
        if not _may_be_tensor(self.world, func):
            return
        question = Question(func.attr, node, True, False, self.names_of, chained=True)
        why = self.world.only_tensors_have(question)
        if why:
            self.assume(func, f"{ast.unparse(func.value)} is taken for a Tensor: {why}")
            self._taken_for_tensor(func.value)
            self.world.kinds[id(func)] = values.attribute(TENSOR, func.attr, self.world)

    def _only_a_tensor(self, node: ast.Call, func: ast.Attribute) -> bool:
        """A call that nothing but a Tensor would take, on a receiver of unknown kind."""
        if not _may_be_tensor(self.world, func):
            return False
        if _is_tried(self, node):
            return False
        if self.world.recorded.at(self.path, func.value) is not None:
            return False  # a run has shown something else, or several types
        holder = self.world.program.files[self.path].parents.get(id(node))
        used = not isinstance(holder, ast.Expr)
        beside = isinstance(func.value, ast.Name) and self.note(func.value.id).near
        value = having(self.world.kinds.get(id(func.value), UNKNOWN), func.attr)
        partly = value >= TENSOR
        question = Question(func.attr, node, used, beside, self.names_of, partly=partly)
        why = self.world.only_tensors_have(question)
        if why:
            self.assume(func, f"{ast.unparse(func.value)} is taken for a Tensor: {why}")
        return bool(why)

    def _only_a_module(self, func: ast.Attribute) -> bool:
        """``x.parameters()``; ``x.eval()``, ``x.state_dict()`` of what is called here: a Module."""
        value = self.world.kinds.get(id(func.value), UNKNOWN)
        if not without_none(value) <= UNKNOWN or not isinstance(func.value, _NAMED):
            return False
        if func.attr in MODULE_ONLY:
            return self.world.only_modules_have(func.attr)
        if func.attr == "eval" and self.world.only_modules_have("eval") and _is_alone(self, func):
            return True
        if func.attr not in _CALLED_ONES or self.function is None:
            return False
        return self._is_called(self.function, ast.unparse(func.value), set())

    def _is_called(self, function: Function, name: str, seen: set[tuple[str, str]]) -> bool:
        """Return whether a function calls what it has under a name, or passes it on to be called.

        It is as good as called where a Module is made of it.
        """
        if (function.key, name) in seen:
            return False
        seen.add((function.key, name))
        for call in function.nodes:
            if not isinstance(call, ast.Call):
                continue
            if isinstance(call.func, _NAMED) and ast.unparse(call.func) == name:
                return True
            placed = takewhile(lambda a: not isinstance(a, ast.Starred), call.args)
            given = [*enumerate(placed), *((k.arg, k.value) for k in call.keywords)]
            for place, value in given:
                if not isinstance(value, _NAMED) or ast.unparse(value) != name:
                    continue
                if isinstance(place, int) and self._builds_module(call):
                    return True
                callee = self._plain_callee(call)
                taken = "" if callee is None else _taken_as(callee, place)
                if callee is not None and taken and self._is_called(callee, taken, seen):
                    return True
        return False

    def _plain_callee(self, call: ast.Call) -> Function | None:
        """Return the function of the project that a call by its plain name is of."""
        if not isinstance(call.func, ast.Name):
            return None
        atoms = self.world.kinds.get(id(call.func)) or self.kind(call.func)
        keys = [a.name for a in atoms if a.kind == "function"]
        return self.world.function_of(keys[0]) if len(keys) == len(atoms) == 1 else None

    def _only_a_string(self, node: ast.Call, func: ast.Attribute) -> bool:
        """``key.split(".")``: text alone is split at a text that is written out."""
        at = node.args[0] if node.args and func.attr == "split" else None
        if not isinstance(at, ast.Constant) or not isinstance(at.value, str):
            return False
        value = self.world.kinds.get(id(func.value), UNKNOWN)
        if not value >= UNKNOWN or not is_all(value, "unknown", "str", "Tensor", "int", "float"):
            return False
        if any(func.attr in owner.methods for owner in self.world.holders(func.attr)):
            return False
        series = isinstance(func.value, ast.Attribute) and func.value.attr == "str"  # of pandas
        return not series and not self.world.holds_callable(func.attr)

    def _builds_module(self, node: ast.Call) -> bool:
        """``NetWithLoss(model)``: a Module is made of it."""
        callee = self.world.kinds.get(id(node.func))
        if callee is None:  # the call is further down
            callee = self.kind(node.func) if isinstance(node.func, _NAMED) else UNKNOWN
        return any(
            (a.kind == "class" and self.world.is_module(a.name)) or a.name.startswith("torch2ms.")
            for a in callee
        )

    def _into_module(self, node: ast.Call) -> None:
        """Note that what was moved elsewhere and is passed to a Module is no Module."""
        for arg in (*node.args, *(k.value for k in node.keywords)):
            if isinstance(arg, ast.Name) and (note := self.note(arg.id)).moved is not None:
                self._moved_into_module(arg, note.moved, note.inside)

    def _moved_into_module(self, node: ast.Name, move: ast.Call, inside: str) -> None:
        """Infer Tensors for ``batch = {k: v.to(device) ...}; model(**batch)``: the arguments of a
        Module are no Modules.
        """
        assert isinstance(move.func, ast.Attribute)
        question = Question(move.func.attr, move, True, False, self.names_of, given=True)
        why = self.world.only_tensors_have(question)
        if not why:
            return
        self.assume(move.func, f"{ast.unparse(move.func.value)} is taken for a Tensor: {why}")
        if inside:
            self.proved(node.id + inside, TENSOR)
        else:
            self.saw_tensor(node)


def _may_be_tensor(world: World, asked: ast.Attribute) -> bool:
    """Return whether an unknown alternative, or the result of an object's call, may be a Tensor,
    and no other kind has the attribute that is read.
    """
    value = having(world.kinds.get(id(asked.value), UNKNOWN), asked.attr)
    rest = value
    if not (world.program.holders.get(asked.attr) or world.table.kind(_OF_MODULES + asked.attr)):
        rest = frozenset(a for a in value if a.kind != "Module")  # none of them has it
    return bool(rest) and rest <= UNKNOWN | GIVEN | TENSOR and value != TENSOR


def _is_tried(frame: Given, call: ast.Call) -> bool:
    """Return whether the call may fail for want of the method inside a ``try`` that continues."""
    parents = frame.world.program.files[frame.path].parents
    node: ast.AST = call
    while (around := parents.get(id(node))) is not None:
        if isinstance(around, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            return False
        if isinstance(around, ast.Try) and any(node is s for s in around.body):
            types = (h.type for h in around.handlers if h.type is not None)
            if any("AttributeError" in ast.unparse(t) for t in types):
                return True
        node = around
    return False


def _is_alone(frame: Given, func: ast.Attribute) -> bool:
    """``x.eval()`` as a statement: called for what it does to x."""
    parents = frame.world.program.files[frame.path].parents
    call = parents.get(id(func))
    if not isinstance(call, ast.Call) or call.args or call.keywords:
        return False
    return isinstance(parents.get(id(call)), ast.Expr)


def _taken_as(callee: Function, place: int | str | None) -> str:
    """Return the parameter that takes the argument at a place, or by a keyword; "" for none.

    A parameter that is bound anew is no longer what was passed.
    """
    names = [p.arg for p in callee.parameters]
    name = place if isinstance(place, str) else ""
    if isinstance(place, int) and place < len(names):
        name = names[place]
    bound = any(
        isinstance(n, ast.Name) and n.id == name and not isinstance(n.ctx, ast.Load)
        for n in callee.nodes
    )
    return name if name in names and not bound else ""
