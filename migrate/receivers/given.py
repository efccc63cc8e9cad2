"""In: a call and what it is given. Out: what the call proves of its arguments, in the frame."""

from __future__ import annotations

import ast

from migrate.program import Function
from migrate.receivers.binding import Binding
from migrate.receivers.elimination import Question
from migrate.receivers.kinds import TENSOR


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
