"""Find what a context without gradients does that cutting off its results does not."""

from __future__ import annotations

import ast

from migrate.analysis.program import Function
from migrate.analysis.types.kinds import is_all
from migrate.rules import data_attribute
from migrate.rules.called_from import call_sites, scene_of
from migrate.rules.own_values import CHOOSING, HANDING, evaluated, is_computed
from migrate.rules.stopped import QUIET, STOPPING, is_stopped, meant, mode
from migrate.sites.buffer_gradients import NUMBERS, carries
from migrate.sites.references import direct_name
from migrate.sites.scene import Scene


def leaks(scene: Scene, block: ast.With) -> str:
    """Return why cutting off what a block computes is not all that its contexts do."""
    calls = [i.context_expr for i in block.items if isinstance(i.context_expr, ast.Call)]
    for call in calls:
        if why := _leak(scene, call, block):
            return why
    if any(meant(direct_name(scene, c.func) or "", c) in STOPPING for c in calls):
        return handed_through(scene, block)
    return ""


def handed_through(scene: Scene, block: ast.AST) -> str:
    """Return why what a block computes may have a gradient: a call may give what it is passed."""
    function = scene.function(getattr(block, "body", [block])[0])
    if function is None or not data_attribute.records(scene, function):
        return ""
    sites = call_sites(scene, function)  # an initializer is called for what it does
    if sites and all(isinstance(f.parents.get(id(c)), ast.Expr) for f, c, _ in sites):
        return ""
    for call in evaluated(block):
        if isinstance(call, ast.Call) and not _is_computed_with(scene.parent(call)):
            given = [*call.args, *(k.value for k in call.keywords)]
            own = [one for one in given if not is_computed(scene, one, block)]
            passed = any(carries(scene, one, function.node, frozenset()) for one in own)
            if passed and _gives_back(scene, call, frozenset()):
                return f"{ast.unparse(call.func)} may give what it is passed, gradient and all"
    return ""


def _is_computed_with(user: ast.AST | None) -> bool:
    """Return whether a value goes into a result that is another object, or into nothing."""
    if isinstance(user, ast.Attribute):
        return user.attr not in HANDING | CHOOSING
    return isinstance(user, (ast.BinOp, ast.UnaryOp, ast.Compare, ast.Expr))


_KEEPING = ("torch.nn.Identity", "torch.nn.Dropout", "torch.nn.functional.dropout", "torch.dropout",
            "torch.nn.AlphaDropout", "torch.nn.functional.alpha_dropout",
            "torch.nn.functional.feature_alpha_dropout")  # fmt: skip


def _gives_back(scene: Scene, call: ast.Call, seen: frozenset[str]) -> bool:
    """Return whether a call of the program may give one of its arguments as it is."""
    for atom in scene.kind(call.func):
        key = atom.name
        if atom.kind == "Module" and "::" in key:
            key = next((m.name for m in scene.inference.member(key, "forward")), "")
        elif key.startswith(_KEEPING):
            return True
        function = scene.inference.program.functions.get(key)
        if function is not None and key not in seen:
            there = scene_of(scene, scene.inference.program.files[function.path])
            if any(_is_given(there, v, function, seen | {key}) for v in function.returned if v):
                return True
    return False


def _is_given(scene: Scene, value: ast.expr, function: Function, seen: frozenset[str]) -> bool:
    """Return whether an expression may be an argument of its function, as it is."""
    if is_all(scene.kind(value), *NUMBERS):
        return False
    if isinstance(value, ast.IfExp):
        parts = [value.body, value.orelse]
    elif isinstance(value, (ast.Tuple, ast.List, ast.BoolOp)):
        parts = value.elts if not isinstance(value, ast.BoolOp) else value.values
    elif isinstance(value, ast.Name):
        bound = scene.facts.reach(value).bindings
        if any(isinstance(b.place, ast.arg) and b.name not in ("self", "cls") for b in bound):
            return True
        parts = [v for v in scene.facts.values(value) if v is not None and v is not value]
        mark = f"{function.key}:{value.id}:{value.lineno}"
        if mark in seen:
            return False
        seen = seen | {mark}
    elif isinstance(value, ast.Call):
        func = value.func
        torchs = any(a.kind in ("ref", "method") and "torch." in a.name for a in scene.kind(func))
        if isinstance(func, ast.Attribute) and func.attr in HANDING and len(value.args) < 2:
            parts = [func.value]
        else:
            parts = value.args if not torchs and _gives_back(scene, value, seen) else []
    else:
        parts = []
    return any(_is_given(scene, part, function, seen) for part in parts)


def _leak(scene: Scene, call: ast.Call, block: ast.With) -> str:
    name, function = direct_name(scene, call.func) or "", scene.function(block)
    asked = mode(call)
    if name not in QUIET[:8] or function is None or not data_attribute.records(scene, function):
        return ""
    if asked is not None and not isinstance(asked, ast.Constant):
        differentiates = any(_asks_for_gradient(scene, node) for node in function.nodes)
        bases = function.owner.node.bases if function.owner is not None else ()
        differentiates |= any(ast.unparse(b).startswith(_MADE) for b in bases)
        return "" if differentiates else "whether gradients are recorded is found out when it runs"
    if meant(name, call) in STOPPING:
        yields = any(isinstance(n, (ast.Yield, ast.YieldFrom)) for n in evaluated(block))
        if yields and not _is_context(function) and _taken_in_code(scene, function):
            return "no gradient is recorded in the code either that takes what is yielded"
        if yields and _is_context(function) and not _only_entered(scene, function):
            return "no gradient is recorded in the code either that enters this context"
    elif _called_quietly(scene, function, frozenset()):
        return "gradients are recorded again in what is called where they are not"
    return ""


_MADE = "_torch2ms"  # the base of the Cell that a training step differentiates


def _asks_for_gradient(scene: Scene, node: ast.AST) -> bool:
    """Return whether a call computes gradients, in torch's way or as a training step."""
    if not isinstance(node, ast.Call):
        return False
    called = getattr(node.func, "attr", getattr(node.func, "id", ""))
    return called in ("backward", "grad") or any(a.kind == "Step" for a in scene.kind(node.func))


def _is_context(function: Function) -> bool:
    return function.decorated("contextmanager")


_EXHAUSTING = frozenset("list tuple sum set dict sorted max min any all".split())


def _taken_in_code(scene: Scene, function: Function) -> bool:
    """Return whether code that records gradients may run between two values of a generator."""
    sites = call_sites(scene, function)
    for file, call, caller in sites:
        taker = file.parents.get(id(call))
        named = isinstance(taker, ast.Call) and getattr(taker.func, "id", "") in _EXHAUSTING
        if not named and data_attribute.records(scene_of(scene, file), caller):
            return True
    return not sites


def _only_entered(scene: Scene, function: Function) -> bool:
    """Return whether every use of a context manager is a ``with``, whose results are cut off."""
    for file in scene.inference.program.files.values():
        mentions = [n for n in file.of(ast.Name) if n.id == function.name]
        for node in [*mentions, *(n for n in file.of(ast.Attribute) if n.attr == function.name)]:
            call = file.parents.get(id(node))
            entered = isinstance(call, ast.Call) and call.func is node
            item = file.parents.get(id(call))
            if not entered or not isinstance(item, ast.withitem):
                return False
            if not enters_quiet(scene_of(scene, file), item):
                return False
    return True


def enters_quiet(scene: Scene, item: ast.withitem) -> bool:
    """Return whether a ``with`` enters a context of the program that yields under no_grad."""
    func = item.context_expr.func if isinstance(item.context_expr, ast.Call) else None
    if func is None:
        return False
    functions = scene.inference.program.functions
    found = [functions.get(a.name) for a in scene.kind(func)]
    return any(f is not None and _is_context(f) and _yields_quietly(scene, f) for f in found)


def _yields_quietly(scene: Scene, function: Function) -> bool:
    file = scene.inference.program.files[function.path]
    there = scene_of(scene, file)
    yields = [n for n in function.nodes if isinstance(n, (ast.Yield, ast.YieldFrom))]
    return any(is_stopped(there, file, n) for n in yields)


def _called_quietly(scene: Scene, function: Function, seen: frozenset[str]) -> bool:
    """Return whether a caller of a function, near or far, records no gradient there."""
    if function.key in seen:
        return False
    return any(
        is_stopped(scene_of(scene, file), file, call)
        or (
            caller is not None
            and _called_quietly(scene_of(scene, file), caller, seen | {function.key})
        )
        for file, call, caller in call_sites(scene, function)
    )
