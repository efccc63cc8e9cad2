"""In: a file. Out: its statements that belong to a training step, each with what it does.

Kinds decide what a receiver is; where they know nothing, elimination does: only an optimizer has
both ``step`` and ``zero_grad``, only a gradient scaler's ``step`` takes an optimizer.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property

from migrate.analysis.program import File, Function
from migrate.analysis.types.inference import Inference
from migrate.analysis.types.kinds import UNKNOWN, Kind, without_none
from migrate.syntax.trees import dotted
from migrate.training.effects import blocks
from migrate.training.foreign_scaling import stops

SCALERS = ("torch.cuda.amp.GradScaler", "torch.amp.GradScaler", "torch.GradScaler")
CLIP_NORM = ("torch.nn.utils.clip_grad_norm_", "torch.nn.utils.clip_grad_norm")
CLIP_VALUE = ("torch.nn.utils.clip_grad_value_", "torch.nn.utils.clip_grad_value")


PARAMETERS = {"torch2ms.leaf", "torch.nn.Parameter", "torch.nn.parameter.Parameter"}


class Act(Enum):
    """What a statement does in a training step."""

    ZERO = "zero_grad"
    BACKWARD = "backward"
    UNSCALE = "unscale_"
    CLIP_NORM = "clip_grad_norm_"
    CLIP_VALUE = "clip_grad_value_"
    STEP = "step"
    UPDATE = "update"


NAMES = {
    Act.ZERO: "torch.optim.Optimizer.zero_grad",
    Act.BACKWARD: "torch.Tensor.backward",
    Act.UNSCALE: "torch.amp.GradScaler.unscale_",
    Act.CLIP_NORM: "torch.nn.utils.clip_grad_norm_",
    Act.CLIP_VALUE: "torch.nn.utils.clip_grad_value_",
    Act.STEP: "torch.optim.Optimizer.step",
    Act.UPDATE: "torch.amp.GradScaler.update",
}


@dataclass(frozen=True)
class Mark:
    """A statement of a training step.

    ``who`` is the dotted name of the optimizer, Module or scaler; ``on`` the branches and loops
    around it, outermost first; ``loss`` what a backward starts from; ``scaler`` its scaler;
    ``when`` the condition under which it clips; ``every`` the optimizers of a loop over them.
    """

    act: Act
    statement: ast.stmt
    call: ast.Call
    who: str
    on: tuple[ast.stmt, ...]
    loss: ast.expr | None = None
    scaler: str = ""
    when: ast.expr | None = None
    every: ast.expr | None = None


@dataclass(frozen=True)
class View:
    """A file and what is known of it."""

    file: File
    inference: Inference
    assuming: bool = False  # that what is called, and of which nothing is known, is a Module
    _memo: dict[str, set[str]] = field(default_factory=dict, compare=False)
    functions: dict[str, bool] = field(default_factory=dict, compare=False)  # modules.py

    @property
    def neighbours(self) -> tuple[File, ...]:
        """The file, and those whose code may run in one process with it."""
        return self.inference.program.joined(self.file.path)

    def kind(self, node: ast.AST) -> Kind:
        return self.inference.kinds.get(id(node), UNKNOWN)

    def atoms(self, node: ast.AST) -> set[str]:
        """The kinds an expression may have, None and unknown apart."""
        return {a.kind for a in without_none(self.kind(node)) if a.kind != "unknown"}

    def torch_names(self, node: ast.AST) -> set[str]:
        return {a.name for a in self.kind(node) if a.kind == "ref"}

    @cached_property
    def optimizers(self) -> set[str]:
        """Names whose ``step()`` the file calls, or a scaler's with them, and ``zero_grad()``.

        What has ``param_groups`` or is given to a schedule of torch is an optimizer as well, and
        so is what alone has a ``step()`` where gradients are cleared by the Module.
        """
        stepped: set[str] = set()
        known = {dotted(n.value) for n in self.file.of(ast.Attribute) if n.attr == "param_groups"}
        for call, _ in self.file.calls.get("step", ()):
            if isinstance(call.func, ast.Attribute):
                given = call.args[:1] if self.is_scaler(call.func.value) else []
                stepped |= {dotted(node) for node in (call.func.value, *given)}
        for call, _ in self.file.calls.get("zero_grad", ()):
            known |= {dotted(call.func.value)} if isinstance(call.func, ast.Attribute) else set()
        for call in self.file.of(ast.Call):
            made = self.torch_names(call.func)
            if made and all(n.startswith("torch.optim.lr_scheduler.") for n in made):
                known |= {dotted(node) for node in call.args[:1]}
        return (stepped & (known | set(self._updating()))) - {""}

    def _updating(self) -> Iterator[str]:
        """Yield the one name of unknown kind in a function whose ``step()`` can be its update."""
        for _, body in bodies(self):
            calls = [n for s in body for n in ast.walk(s) if isinstance(n, ast.Call)]
            methods = [c for c in calls if isinstance(c.func, ast.Attribute)]
            named = {a: [c for c in methods if c.func.attr == a]  # type: ignore[attr-defined]
                     for a in ("backward", "zero_grad", "step")}  # fmt: skip
            if not named["backward"] or not named["zero_grad"]:
                continue
            if all(self.atoms(c.func.value) == {"Module"} for c in named["zero_grad"]):  # type: ignore[attr-defined]
                stepped = {dotted(c.func.value) for c in named["step"] if not c.args}  # type: ignore[attr-defined]
                if len(stepped) == 1 and not self.atoms(named["step"][0].func.value):  # type: ignore[attr-defined]
                    yield stepped.pop()

    @cached_property
    def leaves(self) -> dict[str, set[int]]:
        """Names that are bound to Parameters of no Module, with the values that make these."""
        found: dict[str, set[int]] = {}
        for item in self.file.of(ast.Assign):
            value = item.value
            if isinstance(value, ast.Call) and self.torch_names(value.func) & PARAMETERS:
                for target in item.targets:
                    found.setdefault(dotted(target), set()).add(id(value))
        found.pop("", None)
        return found

    def is_leaf(self, node: ast.AST) -> bool:
        """Return whether a variable that is read may be such a Parameter, or an attribute is."""
        made = self.leaves.get(dotted(node), set())
        if not made or not isinstance(node, ast.Name):
            return bool(made)
        return any(id(v) in made for v in self.inference.facts(self.file.path).values(node))

    def is_optimizer(self, node: ast.AST) -> bool:
        found = self.atoms(node)
        if found:
            return found == {"Optimizer"}
        return dotted(node) in self.optimizers

    def is_optimizer_name(self, name: str) -> bool:
        return name in self.optimizers

    @cached_property
    def scalers(self) -> set[str]:
        """Names of unknown kind whose ``step`` takes an optimizer, and that scale a loss."""
        steps = (call for call, _ in self.file.calls.get("step", ()))
        taking = {dotted(c.func) for c in steps if c.args and self.is_optimizer(c.args[0])}
        scales = {dotted(call.func) for call, _ in self.file.calls.get("scale", ())}
        names = {n.removesuffix(".step") for n in taking if n.endswith(".step")}
        return names & {n.removesuffix(".scale") for n in scales if n.endswith(".scale")}

    def is_scaler(self, node: ast.AST) -> bool:
        names = {a.name for a in without_none(self.kind(node)) if a.kind == "torch"}
        return bool(names) and names <= set(SCALERS)


def may_mark(view: View, call: ast.Call) -> bool:
    """Return whether a call may be one of a mark, or build an optimizer."""
    if getattr(call.func, "attr", "") in _MARKING or "Optimizer" in view.atoms(call):
        return True
    return not view.torch_names(call.func).isdisjoint((*CLIP_NORM, *CLIP_VALUE))


def has_marks(view: View) -> bool:
    """Return whether a call in the file may be one of a mark, or build an optimizer."""
    known: dict[str, bool] = view.inference.program.notes.setdefault("marks", {})
    path = view.file.path
    if path not in known:
        calls = (call for some in view.file.calls.values() for call, _ in some)
        known[path] = any(may_mark(view, call) for call in calls)
    return known[path]


# clamp_: of the gradients in a loop
_MARKING = frozenset(("backward", "zero_grad", "step", "unscale_", "update", "clamp_"))


def marks(view: View, body: list[ast.stmt]) -> list[Mark]:
    """The marks of a function's (or module's) own statements, in the order of the text."""
    if not has_marks(view):
        return []
    return sorted(_walk(view, body, ()), key=lambda m: m.statement.lineno)


def _walk(view: View, body: list[ast.stmt], on: tuple[ast.stmt, ...]) -> Iterator[Mark]:
    for item in body:
        if isinstance(item, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue
        if isinstance(item, (ast.With, ast.Expr)) and stops([item]):  # apex, which is flagged
            continue
        found = _mark(view, item, on)
        several = [found] if found is not None else _compound(view, item, on)
        if several:
            yield from several
            continue
        around = on if isinstance(item, (ast.With, ast.AsyncWith)) else (*on, item)
        for inner in blocks(item):
            yield from _walk(view, inner, around)


def _mark(view: View, item: ast.stmt, on: tuple[ast.stmt, ...]) -> Mark | None:
    value = item.value if isinstance(item, (ast.Expr, ast.Assign)) else None
    if not isinstance(value, ast.Call):
        return None
    names = view.torch_names(value.func)
    for act, known in ((Act.CLIP_NORM, CLIP_NORM), (Act.CLIP_VALUE, CLIP_VALUE)):
        if names and names <= set(known):
            return Mark(act, item, value, "", on)
    if not isinstance(value.func, ast.Attribute) or isinstance(item, ast.Assign):
        return None
    return _method(view, item, value, value.func, on)


def _compound(view: View, item: ast.stmt, on: tuple[ast.stmt, ...]) -> list[Mark]:
    """``if clip > 0: clip_grad_norm_(...)`` and ``for o in optimizers: o.step()``."""
    if isinstance(item, ast.If) and not item.orelse:
        found = [_mark(view, s, on) for s in item.body]
        kinds = {m.act if m and isinstance(m.statement, ast.Expr) else None for m in found}
        if kinds <= {Act.UNSCALE, Act.CLIP_NORM, Act.CLIP_VALUE}:
            return [replace(m, statement=item, when=item.test) for m in found if m is not None]
    if isinstance(item, ast.For) and not item.orelse and len(item.body) == 1:
        clamped = _clamped(item)
        if clamped is not None:
            return [Mark(Act.CLIP_VALUE, item, clamped, "", on)]
        one = _mark(view, item.body[0], on)
        plain = isinstance(item.target, ast.Name) and one is not None and not one.scaler
        if plain and one is not None and one.act in (Act.STEP, Act.ZERO):
            who = _collection(item.iter)
            if who and one.who == dotted(item.target):
                return [replace(one, statement=item, who=who, every=item.iter)]
    return []


def _clamped(loop: ast.For) -> ast.Call | None:
    """The call in ``for p in net.parameters(): p.grad.data.clamp_(-1, 1)``."""
    item = loop.body[0]
    if isinstance(item, ast.If) and not item.orelse and len(item.body) == 1:
        if ast.unparse(item.test) != f"{ast.unparse(loop.target)}.grad is not None":
            return None
        item = item.body[0]
    call = item.value if isinstance(item, ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return None
    ours = isinstance(loop.iter, ast.Call) and dotted(loop.iter.func).endswith(".parameters")
    name = dotted(call.func.value).removesuffix(".data")
    return (
        call
        if ours and call.func.attr == "clamp_" and name == f"{dotted(loop.target)}.grad"
        else None
    )


def _collection(node: ast.expr) -> str:
    """The dotted name of what a loop goes through: ``optimizers`` or ``optimizers.values()``."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and not node.args:
        node = node.func.value if node.func.attr == "values" else node
    return dotted(node)


def _method(
    view: View, item: ast.stmt, call: ast.Call, func: ast.Attribute, on: tuple[ast.stmt, ...]
) -> Mark | None:
    who = dotted(func.value)
    if func.attr == "backward":
        return _backward(view, item, call, func.value, on)
    if func.attr == "zero_grad" and (view.is_optimizer(func.value) or _may_be_module(view, func)):
        return Mark(Act.ZERO, item, call, who, on)
    if func.attr == "step" and view.is_optimizer(func.value):
        return Mark(Act.STEP, item, call, who, on)
    if func.attr in ("step", "unscale_") and call.args and view.is_optimizer(call.args[0]):
        act = Act.STEP if func.attr == "step" else Act.UNSCALE
        return Mark(act, item, call, dotted(call.args[0]), on, scaler=who)
    if func.attr == "update" and (view.is_scaler(func.value) or who in view.scalers):
        return Mark(Act.UPDATE, item, call, who, on, scaler=who)
    return None


def _may_be_module(view: View, func: ast.Attribute) -> bool:
    return view.atoms(func.value) in (set(), {"Module"}) and bool(dotted(func.value))


def _backward(
    view: View, item: ast.stmt, call: ast.Call, loss: ast.expr, on: tuple[ast.stmt, ...]
) -> Mark | None:
    """``loss.backward()`` and ``scaler.scale(loss).backward()``."""
    if (
        isinstance(loss, ast.Call)
        and isinstance(loss.func, ast.Attribute)
        and loss.func.attr == "scale"
        and len(loss.args) == 1
        and view.atoms(loss.func.value) <= {"torch"}
    ):
        scaler = dotted(loss.func.value)
        return Mark(Act.BACKWARD, item, call, "", on, loss.args[0], scaler)
    if view.atoms(loss) <= {"Tensor", *_NUMBERS_AND_CONTAINERS}:
        return Mark(Act.BACKWARD, item, call, "", on, loss)
    return None


# these have no backward(): where it is called the value is none of them
_NUMBERS_AND_CONTAINERS = frozenset(("int", "float", "bool", "str", "list", "tuple", "dict"))


def block_of(view: View, item: ast.stmt) -> tuple[list[ast.stmt], ast.AST]:
    """The list that holds a statement, and the statement (or module) that holds the list."""
    parent = view.file.parents[id(item)]
    while not any(item in b for b in blocks(parent)):
        parent = view.file.parents[id(parent)]
    return next(b for b in blocks(parent) if item in b), parent


def bodies(view: View) -> Iterator[tuple[Function | None, list[ast.stmt]]]:
    """The file's own statements, then those of every function."""
    yield None, view.file.source.tree.body
    for function in view.file.functions.values():
        if isinstance(function.node.body, list):
            yield function, function.node.body


def all_marks(view: View) -> list[Mark]:
    """The marks of a file."""
    return [m for _, body in bodies(view) for m in marks(view, body)]
