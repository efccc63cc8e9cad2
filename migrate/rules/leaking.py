"""Find what a context without gradients does that cutting off its results does not."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from migrate.analysis.program import Class, File, Function
from migrate.analysis.types.inference import Inference
from migrate.analysis.types.kinds import holds_no_tensor, is_all
from migrate.records.outcomes import Edit, Outcome, Refusal, Site
from migrate.rules import data_attribute
from migrate.rules.always_stopped import keeps_recorded
from migrate.rules.called_from import call_sites, callers, running, scene_of, sites_of
from migrate.rules.function_blueprint import FUNCTION
from migrate.rules.hooks import REGISTERING
from migrate.rules.own_values import CASTS, CHOOSING, HANDING, evaluated, is_computed
from migrate.rules.stopped import (
    QUIET,
    RECORDING,
    STOPPING,
    is_stopped,
    meant,
    mode,
    outwards,
    switches,
)
from migrate.sites.buffer_gradients import NUMBERS, carries
from migrate.sites.references import direct_name
from migrate.sites.scene import Scene, once, once_a_file

_ASKED = "the program asks is_grad_enabled()"


def is_asked(scene: Scene, name: str, block: ast.AST) -> bool:
    """Return whether code inside a context of this name reads ``torch.is_grad_enabled()``: then it
    stays a switch.

    A context that enables gradients again may be inside a switch that stays.
    """
    if name not in QUIET[:8] or not scene.inference.program.mentions(_QUESTION):
        return False
    if name not in STOPPING:
        return True
    # the body of a ``with`` around a context of the program's own runs where that yields
    if _is_hidden(scene.inference) or any(
        isinstance(n, (ast.Yield, ast.YieldFrom)) for n in evaluated(block)
    ):
        return True
    asking = _asking(scene)
    inside = {id(n) for n in ast.walk(block)} - {
        id(n) for d in getattr(block, "decorator_list", ()) for n in ast.walk(d)
    }
    return not asking.isdisjoint(inside) or _is_wrapped(scene, block)


_QUESTION = b"is_grad_enabled"


@once
def _askers(inference: Inference) -> frozenset[str]:
    """Return the functions that ask whether gradients are recorded, and those that call them."""
    files = inference.program.files.values()
    units = (file.function_at(node) for file in files for node in _questions(inference, file))
    return frozenset(callers(inference, [u.key for u in units if u is not None]))


@once
def _is_hidden(inference: Inference) -> bool:
    """Return whether an operator or ``next`` runs code that reads the switch: no call is seen."""
    functions = [inference.program.functions[key] for key in _askers(inference)]
    return any(
        any(f.of(ast.Yield, ast.YieldFrom))
        or (f.name.startswith("__") and f.name not in ("__init__", "__call__"))
        or (f.name == "__call__" and f.owner is not None and not inference.torch_bases(f.owner.key))
        for f in functions
    )


def asks_in_function(scene: Scene, node: ast.AST) -> str:
    """Return the method of an ``autograd.Function`` that may run a question, or an empty text.

    "forward" where the question is its own: torch records nothing there.
    """
    around, owner = scene.function(node), scene.owner(node)
    if around is None:
        return ""
    if owner is not None and _is_function(scene.inference, owner):
        inside = (n for n in outwards(scene.file, node) if isinstance(n, (ast.With, ast.Lambda)))
        own = around.name == "forward" and around.owner is owner and next(inside, None) is None
        # a call of it by its name runs it under any switch; those by apply do not
        calls = (call for _, call, _ in sites_of(scene.inference, around))
        applied = all(getattr(getattr(c, "func", c), "attr", "") == "apply" for c in calls)
        return "forward" if own and applied else around.key
    keys = _reached_from(scene.inference, around.key)
    for function in (scene.inference.program.functions[key] for key in sorted(keys)):
        if function.owner is not None and _is_function(scene.inference, function.owner):
            return function.key
    return ""


def _is_function(inference: Inference, owner: Class) -> bool:
    return any(base in FUNCTION for base in inference.torch_bases(owner.key))


def _reached_from(inference: Inference, key: str) -> set[str]:
    known = _known_callers(inference)
    if key not in known:
        known[key] = callers(inference, [key])
    return known[key]


@once
def _known_callers(_inference: Inference) -> dict[str, set[str]]:
    return {}  # of a function that asks, by its key


def _questions(inference: Inference, file: File) -> Iterator[ast.AST]:
    """Yield the expressions of a file that read whether gradients are recorded."""
    text = _QUESTION.decode()
    if _QUESTION in file.source.data:
        yield from (n for n in file.of(ast.Attribute) if n.attr == text)
        yield from (n for n in file.of(ast.Constant) if n.value == text)
        names = (n for n in file.of(ast.Name) if isinstance(n.ctx, ast.Load))
        full = f"torch.{text}"
        yield from (n for n in names if any(a.name == full for a in inference.kind(n)))


@once_a_file
def _asking(scene: Scene) -> frozenset[int]:
    """Return the places of a file that ask whether gradients are recorded, or may run what does.

    What is reached as a value may be a hook, which the call of any Module runs.
    """
    inference, keys = scene.inference, _askers(scene.inference)
    found: list[ast.AST] = [*_questions(inference, scene.file), *running(scene, keys)]
    program = inference.program
    known = [program.functions[key] for key in keys]
    hooks = any(name in program.calls for name in REGISTERING)
    taken = frozenset(f.key for f in inference.summaries.graph.indirect) & keys
    for call in scene.file.of(ast.Call) if taken else ():
        kinds = {a.kind for a in inference.kind(call.func)}
        given = (a.value if isinstance(a, ast.Starred) else a for a in call.args)
        passed = (atom for g in (*given, *(k.value for k in call.keywords))
                  for atom in inference.kind(g))  # fmt: skip
        if "partial" in kinds or any(a.name in taken or a.kind == "partial" for a in passed):
            found.append(call)
            continue
        if kinds and "unknown" not in kinds:
            if hooks and "Module" in kinds:
                found.append(call)
            continue
        named = isinstance(call.func, ast.Attribute) and program.holders.get(call.func.attr, ())
        name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        stored = any(name in owner.stores for owner in named or ())
        if not name or stored or any(f.name == name for f in known):
            found.append(call)
    return frozenset(map(id, found))


def _is_wrapped(scene: Scene, block: ast.AST) -> bool:
    """Return whether a decorator of a function runs code that may ask, as far as is known."""
    keys, program = _askers(scene.inference), scene.inference.program
    for decorator in getattr(block, "decorator_list", ()):
        for atom in scene.kind(decorator.func if isinstance(decorator, ast.Call) else decorator):
            made = program.functions.get(atom.name)
            inner = (f for f in program.functions.values() if made and f.key.startswith(made.key))
            if any(f.key in keys for f in inner):
                return True
    return False


def leaks(scene: Scene, block: ast.With) -> str:
    """Return why cutting off what a block computes is not all that its contexts do."""
    calls = [i.context_expr for i in block.items if isinstance(i.context_expr, ast.Call)]
    if any(is_asked(scene, direct_name(scene, call.func) or "", block) for call in calls):
        return _ASKED
    for call in calls:
        if why := _leak(scene, call, block):
            return why
    if any(meant(direct_name(scene, c.func) or "", c) in STOPPING for c in calls):
        return handed_through(scene, block)
    return ""


def switched(scene: Scene, site: Site, context: ast.expr) -> Edit | Refusal:
    """Return the switch of the same name, or no context for a label or a choice of kernels."""
    func = context.func if isinstance(context, ast.Call) else context
    name = direct_name(scene, func) or ""
    if name in QUIET[:8]:
        if why := _not_entered(scene, context, name):
            return refused(site, why)
        text, root = scene.spelling.local(f"helpers.{name.rpartition('.')[2]}")
        place = replace(site, span=scene.source.span(func))
        made = text if func is not context else f"{text}()"
        return Edit(place, Outcome.HELPER, (made,), name, frozenset((root,)))
    text, root = scene.spelling.local("contextlib.nullcontext")
    place = replace(site, span=scene.source.span(context))
    return Edit(place, Outcome.CONVERTED, (f"{text}()",), name, frozenset((root,)))


def _not_entered(scene: Scene, context: ast.expr, name: str) -> str:
    """Return why a switch that is entered and left does not say what torch's says."""
    user = scene.parent(context)
    if isinstance(user, ast.Expr):
        return "it holds for all that comes behind it"
    if isinstance(user, ast.Call) and user.func is context:
        if name in RECORDING and not data_attribute.compiled(scene, user):
            return ""  # ``enable_grad()(closure)`` of an optimizer: a closure that switches
        return "it is applied to a function as a value"
    if isinstance(user, (ast.FunctionDef, ast.AsyncFunctionDef)):
        if any(isinstance(n, (ast.Yield, ast.YieldFrom)) for n in ast.walk(user)):
            return "torch enters it anew for each value that a generator yields"
        if name.endswith("set_grad_enabled"):
            return "it holds from the definition of the function on"
    return ""


def switched_function(
    scene: Scene, site: Site, decorator: ast.expr, name: str
) -> Edit | Refusal | None:
    """Return what becomes of a decorator; None where cutting off what is returned says it all.

    Graph mode passes over the switch: in compiled code, results are cut off as well.
    """
    function = scene.parent(decorator)
    if function is None:
        return None
    handed = handed_through(scene, function) if name in STOPPING else ""
    made = scene.file.functions.get(id(function))
    given = made.returned if made is not None else []
    numbers = all(v is None or holds_no_tensor(scene.kind(v)) for v in given)
    again = name in RECORDING and switches(scene) and not numbers
    if not handed and not again and not is_asked(scene, name, function):
        return None
    compiled = data_attribute.compiled(scene, function.body[0])  # type: ignore[attr-defined]
    lost = loses_itself(scene, function) if handed or not compiled else ""
    if lost or (compiled and handed):
        return refused(site, lost or handed)
    if again and compiled:
        return None  # what a graph records is told where it is called
    return switched(scene, site, decorator)


def refused(site: Site, why: str) -> Refusal:
    return Refusal(site, "LOP301", why, "cut off with .detach() what needs no gradient")


def handed_through(scene: Scene, block: ast.AST) -> str:
    """Return why what a block computes may have a gradient: a call may give what it is passed."""
    function = scene.function(getattr(block, "body", [block])[0])
    if function is None or not data_attribute.records(scene, function):
        return ""
    compiled = data_attribute.compiled(scene, getattr(block, "body", [block])[0])
    sites = call_sites(scene, function)  # an initializer is called for what it does
    if compiled and sites and all(isinstance(f.parents.get(id(c)), ast.Expr) for f, c, _ in sites):
        return ""
    if not compiled and not _leaves(scene, block):
        return ""
    for node in evaluated(block) if compiled else _everything(block):
        if isinstance(node, ast.With) and node is not block and not compiled:
            calls = [i.context_expr for i in node.items if isinstance(i.context_expr, ast.Call)]
            if any(direct_name(scene, call.func) in QUIET[4:8] for call in calls):
                return "gradients are recorded again inside"
        if isinstance(node, ast.Call) and keeps_recorded(scene, node, set()):
            return f"{ast.unparse(node.func)} keeps what it computes, gradient and all"
        if isinstance(node, ast.Call) and not _is_computed_with(scene, node):
            given = [*node.args, *(k.value for k in node.keywords)]
            if not compiled and _is_self(scene, node) and isinstance(node.func, ast.Attribute):
                given.append(node.func.value)
            own = [one for one in given if not is_computed(scene, one, block)]
            passed = any(carries(scene, one, function.node, frozenset()) for one in own)
            if passed and _gives_back(scene, node, frozenset(), not compiled):
                return f"{ast.unparse(node.func)} may give what it is passed, gradient and all"
            if not compiled and _records_again(scene, node, frozenset()):
                return f"{ast.unparse(node.func)} records gradients again"
    return ""


def loses_itself(scene: Scene, block: ast.AST) -> str:
    """Return an expression that is the Tensor itself in torch and a new one here, where a switch is
    off.
    """
    function = scene.function(getattr(block, "body", [block])[0])
    inside = function.node if function is not None else scene.source.tree
    for node in _everything(block):
        if not isinstance(node, ast.Call) or _is_computed_with(scene, node):
            continue
        if _is_self(scene, node, _KEPT):
            func = node.func
            given = [*node.args, func.value] if isinstance(func, ast.Attribute) else node.args
            for one in given:
                own = is_computed(scene, one, block) and not (
                    isinstance(one, ast.Call) and _gives_back(scene, one, frozenset(), True)
                )
                if not own and carries(scene, one, inside, frozenset()):
                    return f"{ast.unparse(func)} may give the Tensor itself, gradient and all"
    return ""


def _records_again(scene: Scene, call: ast.Call, seen: frozenset[str]) -> bool:
    """Return whether a function of the program that a call runs switches gradients on."""
    program = scene.inference.program
    if not program.mentions(b"enable_grad") and not program.mentions(b"set_grad_enabled"):
        return False
    for atom in scene.kind(call.func):
        key = atom.name
        if atom.kind == "Module" and "::" in key:
            key = next((m.name for m in scene.inference.member(key, "forward")), "")
        function = program.functions.get(key)
        if function is not None and key not in seen:
            there = scene_of(scene, program.files[function.path])
            decorators = getattr(function.node, "decorator_list", [])
            if any(direct_name(there, d) in RECORDING for d in decorators):
                return True
            for node in (*function.nodes, *decorators):
                if isinstance(node, ast.Call) and (
                    direct_name(there, node.func) in QUIET[4:8]
                    or _records_again(there, node, seen | {key})
                ):
                    return True
    return False


def _leaves(scene: Scene, block: ast.AST) -> bool:
    """Return whether a block may hand on what is no number: no evaluation that only prints does."""
    for node in _everything(block):
        if isinstance(node, (ast.Yield, ast.YieldFrom, ast.Nonlocal, ast.Global)):
            return True
        if isinstance(node, ast.Return) and node.value is not None:
            if not is_all(scene.kind(node.value), *NUMBERS, "None"):
                return True
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            if getattr(node.value.func, "id", "") not in ("print", "len"):
                return True
        elif isinstance(getattr(node, "ctx", None), ast.Store):
            if not isinstance(node, ast.Name):
                if isinstance(node, (ast.Attribute, ast.Subscript)):
                    return True
                continue
            number = is_all(scene.kind(node), *NUMBERS)
            if not number and isinstance(block, ast.With) and (
                scene.facts.read_after(node.id, block)
            ):  # fmt: skip
                return True
    return False


def _everything(block: ast.AST) -> Iterator[ast.AST]:
    """Yield what is evaluated as part of a block, its comprehensions among it."""
    for node in evaluated(block):
        yield node
        if isinstance(node, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
            yield from (n for part in ast.iter_child_nodes(node) for n in _everything(part))


_SELF = frozenset(
    """
    adjoint alpha_dropout as_tensor asarray atleast_1d atleast_2d atleast_3d bfloat16
    broadcast_tensors cartesian_prod conj conj_physical dequantize double dropout dropout2d
    feature_alpha_dropout flatten float half sum_to_size to to_dense type type_as
    """.split()
)
_KEPT = _SELF - {"as_tensor", "asarray"}  # here it is another Tensor


def _is_self(scene: Scene, call: ast.Call, names: frozenset[str] = frozenset()) -> bool:
    """Return whether an operator of torch returns its operand where that has the wanted form
    already.

    Where a variable is bound to the result of a cast, the test is written out behind that.
    """
    func = call.func
    name = getattr(func, "attr", getattr(func, "id", ""))
    kinds = scene.kind(func)
    if not any("torch." in a.name or a.kind == "unknown" for a in kinds):
        return False
    if names:
        return name in names
    holder = scene.parent(call)
    bound = isinstance(holder, ast.Assign) and all(isinstance(t, ast.Name) for t in holder.targets)
    return name in (_SELF - CASTS if bound else _SELF)


def _is_computed_with(scene: Scene, node: ast.AST) -> bool:
    """Return whether a value enters a result that is another object, or none."""
    user = scene.parent(node)
    if isinstance(user, ast.Attribute) and user.attr in HANDING:  # x.cpu().numpy()
        call = scene.parent(user)
        return isinstance(call, ast.Call) and _is_computed_with(scene, call)
    if isinstance(user, ast.Attribute):
        return user.attr not in CHOOSING
    return isinstance(user, (ast.BinOp, ast.UnaryOp, ast.Compare, ast.Expr))


_KEEPING = ("torch.nn.Identity", "torch.nn.Dropout", "torch.nn.functional.dropout", "torch.dropout",
            "torch.nn.AlphaDropout", "torch.nn.functional.alpha_dropout",
            "torch.nn.functional.feature_alpha_dropout")  # fmt: skip


def _gives_back(scene: Scene, call: ast.Call, seen: frozenset[str], unsure: bool) -> bool:
    """Return whether a call may give one of its arguments as it is; ``unsure``: if unknown, too."""
    if unsure and (_is_self(scene, call) or _is_unknown(scene, call.func)):
        return True
    for atom in scene.kind(call.func):
        key = atom.name
        if atom.kind == "Module" and "::" in key:
            key = next((m.name for m in scene.inference.member(key, "forward")), "")
        elif key.startswith(_KEEPING):
            return True
        function = scene.inference.program.functions.get(key)
        if function is not None and key not in seen:
            there = scene_of(scene, scene.inference.program.files[function.path])
            given = (v for v in function.returned if v)
            if any(_is_given(there, v, function, seen | {key}, unsure) for v in given):
                return True
    return False


def _is_unknown(scene: Scene, func: ast.expr) -> bool:
    """Return whether a call may run unknown code: not a method of a list, say."""
    atoms = scene.kind(func)
    if any(a.kind == "unknown" or (a.kind == "Module" and not a.name) for a in atoms):
        return True
    return not atoms and not (
        isinstance(func, ast.Attribute) and scene.kind_names(func.value) - {"unknown"}
    )


def _is_given(
    scene: Scene, value: ast.expr, function: Function, seen: frozenset[str], unsure: bool
) -> bool:
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
            parts = value.args if not torchs and _gives_back(scene, value, seen, unsure) else []
    else:
        parts = []
    return any(_is_given(scene, part, function, seen, unsure) for part in parts)


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
    elif not data_attribute.compiled(scene, block) or (
        _called_quietly(scene, function, frozenset())
    ):
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
