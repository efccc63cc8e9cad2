"""Find evaluation loops, the loss that each computes, and where its Cell is built.

A loop evaluates when it stands under no_grad or behind ``model.eval()`` and nothing in it asks
for a gradient. Which call is the loss decides only what goes into a Cell, never a number: the
Cell computes what the statements computed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from migrate.analysis.program import Function
from migrate.syntax.lines import above, indent_of, shares_line, whole
from migrate.syntax.trees import all_names, dotted
from migrate.training.effects import binds, blocks
from migrate.training.marks import View, block_of
from migrate.training.modules import models, quiet
from migrate.training.placing import constructor
from migrate.training.slices import Region
from migrate.training.variables import Variables

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_GRADIENT = {"backward", "grad", "enable_grad", "set_grad_enabled", "requires_grad"}
_GRADIENT |= {"requires_grad_", "zero_grad"}
_LOSSES = {"cross_entropy", "binary_cross_entropy", "binary_cross_entropy_with_logits", "kl_div"}
_HOST = {"item", "numpy", "tolist", "append", "extend", "update", "print"}
_SUMS = (ast.BinOp, ast.UnaryOp, ast.Name, ast.Constant, ast.Attribute, ast.operator, ast.unaryop)


@dataclass(frozen=True)
class EvalLoop:
    """``block[index]`` holds the loss of a round: ``loss`` is the expression, ``name`` what a
    whole assignment binds it to ("" where it stands inside another expression)."""

    loop: ast.For
    block: list[ast.stmt]
    index: int
    loss: ast.expr
    call: ast.Call
    name: str

    @property
    def statement(self) -> ast.stmt:
        return self.block[self.index]


def eval_loops(view: View, function: Function | None, body: list[ast.stmt]) -> list[EvalLoop]:
    """The evaluation loops of a function's (or module's) own statements."""
    silent = function is not None and function.decorated("no_grad", "inference_mode")
    return list(_walk(view, body, None, silent))


def _walk(
    view: View, body: list[ast.stmt], loop: ast.For | None, silent: bool
) -> Iterator[EvalLoop]:
    if loop is not None and silent:
        found = _loss(view, loop, body)
        if found is not None:
            yield found
    for item in body:
        if isinstance(item, _DEFINITIONS):
            continue
        if isinstance(item, (ast.For, ast.While)):
            inner = item if isinstance(item, ast.For) and not _wants_gradient(item) else None
            yield from _walk(view, item.body, inner, silent)
        elif isinstance(item, ast.With):
            still = loop if quiet(view, item) else None
            yield from _walk(view, item.body, still, silent or quiet(view, item))
        else:
            for block in blocks(item):
                yield from _walk(view, block, None, silent)
        silent = mode_set(item) if mode_set(item) is not None else silent  # type: ignore[assignment]


def mode_set(item: ast.stmt, model: str = "") -> bool | None:
    """True for ``model.eval()``, False for ``model.train()``, None for anything else."""
    value = item.value if isinstance(item, ast.Expr) else None
    if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Attribute):
        return None
    if model and dotted(value.func.value) != model:
        return None
    if value.func.attr == "eval" and not value.args and not value.keywords:
        return True
    return False if value.func.attr == "train" else None


def _wants_gradient(loop: ast.For) -> bool:
    return any(isinstance(n, ast.Attribute) and n.attr in _GRADIENT for n in ast.walk(loop))


# -- the loss -----------------------------------------------------------------------------------


def _loss(view: View, loop: ast.For, block: list[ast.stmt]) -> EvalLoop | None:
    """The last assignment of a loss, or of a sum of losses; else the first use of one."""
    names: set[str] = set()
    assigned: EvalLoop | None = None
    inner: EvalLoop | None = None
    for index, item in enumerate(block):
        calls = [c for c in _calls(item) if is_loss(view, c)]
        target = item.targets[0] if isinstance(item, ast.Assign) else None
        if isinstance(item, ast.Assign) and isinstance(target, ast.Name) and len(item.targets) == 1:
            parts = all_names(item.value)
            if (calls or parts & names) and _is_sum(item.value, calls):
                names.add(target.id)
                call = calls[0] if calls else (assigned.call if assigned else None)
                if call is not None:
                    assigned = EvalLoop(loop, block, index, item.value, call, target.id)
                continue
        if len(calls) == 1 and inner is None and _is_plain_use(view, item, calls[0]):
            inner = EvalLoop(loop, block, index, calls[0], calls[0], "")
    return assigned or inner


def _calls(item: ast.stmt) -> Iterator[ast.Call]:
    """The calls of a simple statement, those of inner functions and comprehensions apart."""
    if isinstance(item, (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr)):
        yield from (n for n in ast.walk(item) if isinstance(n, ast.Call))


def _is_sum(value: ast.expr, calls: Sequence[ast.Call]) -> bool:
    """``criterion(a, y) + 0.4 * other``: arithmetic of losses and nothing else."""
    inside = {id(n) for c in calls for n in ast.walk(c)}
    rest = [n for n in ast.walk(value) if id(n) not in inside]
    return all(isinstance(n, (*_SUMS, ast.expr_context)) for n in rest)


def _is_plain_use(view: View, item: ast.stmt, call: ast.Call) -> bool:
    """Whether the statement always computes the loss, once."""
    node = view.file.parents[id(call)]
    while node is not item:
        if not isinstance(node, (ast.Attribute, ast.Call, ast.BinOp, ast.UnaryOp, ast.keyword)):
            return False
        node = view.file.parents[id(node)]
    return True


def is_loss(view: View, call: ast.Call) -> bool:
    """A loss of torch, or a function or Module that is called one and computes with Tensors."""
    name = dotted(call.func)
    atoms = view.atoms(call.func)
    refs = {n.rpartition(".")[2] for n in view.torch_names(call.func)}
    if refs:
        return all(n in _LOSSES or n.endswith("_loss") for n in refs)
    if not name or len(call.args) + len(call.keywords) < 2:
        return False
    made = {a.name for a in view.kind(call.func) if a.kind == "Module"}
    if atoms == {"Module"} and all(n.startswith("torch.nn.") and n.endswith("Loss") for n in made):
        return True
    last = name.rpartition(".")[2].lower()
    if "loss" not in last and "criterion" not in last:
        return False
    computes = atoms <= {"Module", "function", "method"} and view.atoms(call) <= {"Tensor"}
    return computes and not any(on_host(f) for f in _bodies(view, call.func))


def on_host(node: ast.AST) -> bool:
    """Whether code leaves the Tensors: in Graph mode a Cell cannot."""
    return any(
        (isinstance(n, ast.Attribute) and n.attr in _HOST)
        or (isinstance(n, ast.Name) and n.id in ("print", "np", "numpy", "math", "float", "int"))
        for n in ast.walk(node)
    )


def _bodies(view: View, func: ast.expr) -> Iterator[ast.AST]:
    """What the project's own function or Module does when it is called."""
    program = view.inference.program
    for atom in view.kind(func):
        if atom.kind in ("function", "method") and atom.name in program.functions:
            yield program.functions[atom.name].node
        elif atom.kind == "Module" and atom.name in program.classes:
            forward = program.classes[atom.name].methods.get("forward")
            if forward is not None:
                yield forward.node


@dataclass(frozen=True)
class Found:
    """The statements of an evaluation loop and their names; ``own`` is the instance's name."""

    loop: EvalLoop
    region: Region
    names: Variables
    function: Function | None
    own: str


@dataclass(frozen=True)
class Home:
    """Where the Cell is built: ``variable``, offset, indentation, whether behind a statement."""

    variable: str
    made_at: int
    indent: str
    behind: bool
    switch: ast.stmt | None


def home_of(view: View, found: Found, variable: str) -> Home | None:
    source, names = view.file.source, found.names
    switch = _switch(view, found)
    start = constructor(view, found.region.group, names, found.function)
    if start is not None:
        if switch is None:
            return None  # in which mode it is called, other methods say
        end = whole(source, start).end
        return Home(f"{found.own}.{variable}", end, indent_of(source, start), True, switch)
    loop = names.loop if switch is not None else found.loop.loop
    assert loop is not None
    if switch is not None and switch not in list(ast.walk(loop)):
        if _bound_between(view, switch, loop, {*names.held}, found.own):
            switch = None
        else:
            return Home(variable, above(source, switch), indent_of(source, switch), False, switch)
    return Home(variable, above(source, loop), indent_of(source, loop), False, switch)


def _switch(view: View, found: Found) -> ast.stmt | None:
    """The ``model.eval()`` that every round has passed, where one network is all there is."""
    nodes = [*found.region.inside, *found.region.losses]
    networks = models(view, nodes, found.own)
    if len(networks) != 1:
        return None
    model = next(iter(networks))
    item: ast.stmt = found.loop.statement
    while True:
        block, parent = block_of(view, item)
        for earlier in reversed(block[: block.index(item)]):
            mode = mode_set(earlier, model)
            if mode is not None:
                alone = not shares_line(view.file.source, earlier)
                return earlier if mode and alone else None
            inner = (s for b in blocks(earlier) for s in b)
            if any(mode_set(s, model) is not None for i in inner for s in _statements(i)):
                return None
        if not isinstance(parent, ast.stmt) or isinstance(parent, ast.FunctionDef):
            return None
        item = parent


def _statements(item: ast.stmt) -> list[ast.stmt]:
    return [n for n in ast.walk(item) if isinstance(n, ast.stmt)]


def _bound_between(view: View, switch: ast.stmt, loop: ast.stmt, held: set[str], own: str) -> bool:
    """Whether something that the Cell holds is bound between ``eval()`` and the loop."""
    block, _ = block_of(view, switch)
    outer: ast.AST = loop
    while outer not in block:
        outer = view.file.parents[id(outer)]
    assert isinstance(outer, ast.stmt)
    between = block[block.index(switch) : block.index(outer)]
    if outer is not loop:
        between = [*between, outer]
    return bool(binds(between, own) & held)
