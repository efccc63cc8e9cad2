"""In: a call and what it is given. Out: what the call proves of its arguments, in the frame."""

from __future__ import annotations

import ast

from migrate.program import Function
from migrate.receivers.binding import Binding
from migrate.receivers.elimination import Question
from migrate.receivers.kinds import MODULE_ONLY, TENSOR, UNKNOWN, without_none

_NAMED = (ast.Name, ast.Attribute)


class Given(Binding):
    """Takes a call for evidence: of what the callee does with it, of what goes into Modules."""

    def _shown_by(self, function: Function, node: ast.Call) -> None:
        """The body of a function of the project shows what it was given."""
        shown = self.world.shown(function)
        bound = function.owner is not None and not function.decorated("staticmethod")
        names = [a.arg for a in function.parameters][1 if bound else 0 :]
        given = [] if any(isinstance(a, ast.Starred) for a in node.args) else node.args
        passed = [*zip(names, given, strict=False), *((k.arg, k.value) for k in node.keywords)]
        for name, value in passed:
            if name is not None and name in shown and isinstance(value, ast.Name):
                self.saw(value, shown[name])

    def _only_a_module(self, func: ast.Attribute) -> bool:
        """``x.parameters()``; ``x.eval()`` of what the same function calls: a Module."""
        value = self.world.kinds.get(id(func.value), UNKNOWN)
        if not without_none(value) <= UNKNOWN or not isinstance(func.value, _NAMED):
            return False
        if func.attr in MODULE_ONLY:
            return self.world.only_modules_have(func.attr)
        if func.attr == "eval" and self.world.only_modules_have("eval") and _is_alone(self, func):
            return True
        if func.attr not in ("train", "eval") or self.function is None:
            return False
        calls = (n.func for n in ast.walk(self.function.node) if isinstance(n, ast.Call))
        name = func.value.id if isinstance(func.value, ast.Name) else ""
        return any(isinstance(c, ast.Name) and c.id == name for c in calls) or any(
            isinstance(a, ast.Name) and a.id == name and self._builds_module(n)
            for n in ast.walk(self.function.node)
            if isinstance(n, ast.Call)
            for a in n.args
        )

    def _builds_module(self, node: ast.Call) -> bool:
        """``NetWithLoss(model)``: a Module is made of it."""
        callee = self.world.kinds.get(id(node.func), UNKNOWN)
        return any(
            (a.kind == "class" and self.world.is_module(a.name)) or a.name.startswith("torch2ms.")
            for a in callee
        )

    def _into_module(self, node: ast.Call) -> None:
        """What was moved elsewhere and goes into a Module is no Module."""
        for arg in (*node.args, *(k.value for k in node.keywords)):
            if isinstance(arg, ast.Name) and arg.id in self.moved:
                self._moved_into_module(arg, self.moved[arg.id])

    def _moved_into_module(self, node: ast.Name, move: ast.Call) -> None:
        """``batch = {k: v.to(device) ...}; model(**batch)``: no Module is given Modules."""
        assert isinstance(move.func, ast.Attribute)
        question = Question(move.func.attr, move, True, False, self.names_of, given=True)
        why = self.world.only_tensors_have(question)
        if not why:
            return
        self.assumed[id(move.func)] = f"{ast.unparse(move.func.value)} is taken for a Tensor: {why}"
        if node.id in self.elements:
            self.traced.setdefault(self.elements[node.id], TENSOR)
        else:
            self.saw_tensor(node)


def _is_alone(frame: Given, func: ast.Attribute) -> bool:
    """``x.eval()`` as a statement: called for what it does to x."""
    parents = frame.world.program.files[frame.path].parents
    call = parents.get(id(func))
    if not isinstance(call, ast.Call) or call.args or call.keywords:
        return False
    return isinstance(parents.get(id(call)), ast.Expr)
