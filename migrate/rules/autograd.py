"""In: ``torch.no_grad`` and its kin. Out: code without them, results cut off from the gradient."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from migrate.analysis.cfg import Role, Why
from migrate.analysis.program import Function
from migrate.analysis.types.kinds import is_all
from migrate.codegen.layout import above
from migrate.mapping.choice import Chosen
from migrate.records.outcomes import Edit, Outcome, Piece, Refusal, Site, Span
from migrate.rules import data_attribute, decorators
from migrate.rules.called_from import call_sites, scene_of
from migrate.rules.dedent import dedented
from migrate.rules.stopped import QUIET, STOPPING, is_stopped, outwards
from migrate.rules.torch_sharing import is_view_name
from migrate.sites.buffer_gradients import CUTTING, NUMBERS, carries, is_parameter
from migrate.sites.references import direct_name
from migrate.sites.scene import Scene
from migrate.syntax.lines import before, commented_end, comments, first_start
from migrate.syntax.trees import unpacked

# their rows take whatever is given, also by **: they only choose a kernel
_KERNELS = QUIET[-2:]


_CUT, _CUT_ALL = "mindspore.ops.stop_gradient", "helpers.without_gradient"
_COLLECTING = frozenset("append extend insert add update appendleft setdefault".split())
# what has variables of its own
_LATER = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef, ast.ListComp,
          ast.SetComp, ast.DictComp, ast.GeneratorExp)  # fmt: skip


def no_grad(
    scene: Scene, site: Site, call: ast.Call, receiver: ast.expr | None, chosen: Chosen
) -> Edit | Refusal:
    """As a context or decorator: removed; MindSpore differentiates only what it is asked to."""
    parent = scene.parent(call)
    if isinstance(parent, ast.withitem):
        statement = scene.parent(parent)
        if isinstance(statement, ast.With) and all(
            _quiet(scene, item.context_expr) for item in statement.items
        ):
            if why := _leaks(scene, statement):
                return Refusal(site, "LOP301", why, "cut off with .detach() what needs no gradient")
            return _header(scene, site, statement, chosen)
    if isinstance(parent, (ast.FunctionDef, ast.AsyncFunctionDef)):
        if _quiet(scene, call) in STOPPING and (why := _handed_through(scene, parent)):
            return Refusal(site, "LOP301", why, "cut off with .detach() what needs no gradient")
        return decorators.dropped(scene, site, call, chosen.row)
    return Refusal(
        site,
        "LOP301",
        "contexts of torch have no counterpart as objects",
        "use it as a with-statement or decorator",
    )


def autocast(
    scene: Scene, site: Site, call: ast.Call, receiver: ast.expr | None, chosen: Chosen
) -> Edit | Refusal:
    """As a context or decorator: removed, where torch on a CPU computes in float32 as well."""
    if _lowers(call):
        return Refusal(
            site,
            "LOP105",
            "torch computes in bfloat16 here, for which MindSpore has no products on CPUs",
            "delete it and compute in float32",
        )
    return no_grad(scene, site, call, receiver, chosen)


def _lowers(call: ast.Call) -> bool:
    """``autocast("cpu")``: a lower precision on CPUs too, unless it is switched off."""
    named = {k.arg: k.value for k in call.keywords}
    device, enabled = named.get("device_type", next(iter(call.args), None)), named.get("enabled")
    off = isinstance(enabled, ast.Constant) and enabled.value is False
    return isinstance(device, ast.Constant) and device.value == "cpu" and not off


def _header(scene: Scene, site: Site, node: ast.With, chosen: Chosen) -> Edit:
    source = scene.source
    start, end = source.span(node).start, first_start(scene.source, node.body[0])
    notes = comments(source, start, end)
    place = Site(site.name, Span(start, end), site.line, site.column)
    return Edit(
        place, Outcome.CONVERTED, above(source, start, notes), chosen.row.key, note=chosen.row.note
    )


def contexts(scene: Scene) -> Iterator[Edit]:
    """What goes with a removed context: its body moves left, its results are cut off."""
    for node in scene.file.of(ast.With):
        names = [_quiet(scene, item.context_expr) for item in node.items]
        if all(names):
            if _leaks(scene, node):
                continue
            yield from _dedent(scene, node)
            if set(names) & set(STOPPING) and _differentiated(scene, node):
                yield from _cut_held(scene, node)  # before what follows the block
                yield from _cut_names(scene, node)
        elif any(_enters_quiet(scene, item) for item in node.items) and _differentiated(
            scene, node
        ):
            yield from _cut_held(scene, node)
            yield from _cut_names(scene, node)
    for function in scene.file.of(ast.FunctionDef):
        stopping = any(_decorates(scene, d) in STOPPING for d in function.decorator_list)
        if stopping and _differentiated(scene, function.body[0]):
            yield from _cut_returns(scene, function)
            yield from _cut_held(scene, function)


def _leaks(scene: Scene, block: ast.With) -> str:
    """Return why cutting off what a block computes is not all that its contexts do."""
    calls = [i.context_expr for i in block.items if isinstance(i.context_expr, ast.Call)]
    for call in calls:
        if why := _leak(scene, call, block):
            return why
    if any(_meant(direct_name(scene, c.func) or "", c) in STOPPING for c in calls):
        return _handed_through(scene, block)
    return ""


def _handed_through(scene: Scene, block: ast.AST) -> str:
    """Return why what a block computes may have a gradient: a call may give what it is passed."""
    function = scene.function(next(_inside(block)))
    if function is None or not data_attribute.records(scene, function):
        return ""
    for call in _evaluated(block):
        if isinstance(call, ast.Call) and not _is_computed_with(scene.parent(call)):
            given = [*call.args, *(k.value for k in call.keywords)]
            own = [one for one in given if not _is_computed(scene, one, block)]
            passed = any(carries(scene, one, function.node, frozenset()) for one in own)
            if passed and _gives_back(scene, call, frozenset()):
                return f"{ast.unparse(call.func)} may give what it is passed, gradient and all"
    return ""


def _is_computed_with(user: ast.AST | None) -> bool:
    """Return whether a value goes into a result that is another object, or into nothing."""
    if isinstance(user, ast.Attribute):
        return user.attr not in _HANDING | _CHOOSING
    return isinstance(user, (ast.BinOp, ast.UnaryOp, ast.Compare, ast.Expr))


_KEEPING = ("torch.nn.Identity", "torch.nn.Dropout", "torch.nn.functional.dropout")


def _gives_back(scene: Scene, call: ast.Call, seen: frozenset[str]) -> bool:
    """Return whether a call of the program may give one of its arguments as it is."""
    for atom in scene.kind(call.func):
        key = atom.name
        if atom.kind == "Module" and "::" in key:
            key = next((m.name for m in scene.inference.member(key, "forward")), "")
        elif atom.kind == "Module" and key.startswith(_KEEPING):
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
        if isinstance(func, ast.Attribute) and func.attr in _HANDING and len(value.args) < 2:
            parts = [func.value]
        else:
            parts = value.args if not torchs and _gives_back(scene, value, seen) else []
    else:
        parts = []
    return any(_is_given(scene, part, function, seen) for part in parts)


def _leak(scene: Scene, call: ast.Call, block: ast.With) -> str:
    name, function = direct_name(scene, call.func) or "", scene.function(block)
    mode = _mode(call)
    if name not in QUIET[:8] or function is None or not data_attribute.records(scene, function):
        return ""
    if mode is not None and not isinstance(mode, ast.Constant):
        asked = any(_asks_for_gradient(scene, node) for node in function.nodes)
        return "" if asked else "whether gradients are recorded is found out when it runs"
    if _meant(name, call) in STOPPING:
        yields = any(isinstance(n, (ast.Yield, ast.YieldFrom)) for n in _evaluated(block))
        if yields and not _is_context(function) and _taken_in_code(scene, function):
            return "no gradient is recorded in the code either that takes what is yielded"
        if yields and _is_context(function) and not _only_entered(scene, function):
            return "no gradient is recorded in the code either that enters this context"
    elif _called_quietly(scene, function, frozenset()):
        return "gradients are recorded again in what is called where they are not"
    return ""


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
            if not _enters_quiet(scene_of(scene, file), item):
                return False
    return True


def _enters_quiet(scene: Scene, item: ast.withitem) -> bool:
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


def _spreads(call: ast.Call) -> bool:
    """Arguments by * and **: no row takes them, so the context stays and is flagged."""
    starred = any(isinstance(a, ast.Starred) for a in call.args)
    return starred or any(k.arg is None for k in call.keywords)


def _quiet(scene: Scene, node: ast.expr) -> str:
    if not isinstance(node, ast.Call):
        return ""
    name = direct_name(scene, node.func) or ""
    if _spreads(node) and name not in _KERNELS:
        return ""
    quiet = name in QUIET and scene.table.rows(name) and not _lowers(node)
    return _meant(name, node) if quiet else ""


def _decorates(scene: Scene, node: ast.expr) -> str:
    """``@torch.no_grad()``, or ``@torch.no_grad`` without parentheses."""
    bare = "" if isinstance(node, ast.Call) else direct_name(scene, node) or ""
    return bare if bare in decorators.BARE else _quiet(scene, node)


def _mode(call: ast.Call) -> ast.expr | None:
    return next(iter([*call.args, *(k.value for k in call.keywords if k.arg == "mode")]), None)


def _meant(name: str, call: ast.Call) -> str:
    """The context that it comes to: ``set_grad_enabled(False)`` is ``no_grad()``."""
    mode = _mode(call)
    if not (isinstance(mode, ast.Constant) and mode.value is False):
        return name
    last = name.rpartition(".")[2]
    return {"set_grad_enabled": "torch.no_grad", "inference_mode": "torch.enable_grad"}.get(
        last, name
    )


def _dedent(scene: Scene, node: ast.With) -> Iterator[Edit]:
    for span in dedented(scene, node, node.body):
        yield _silent(scene, node, span, ())


def _silent(
    scene: Scene,
    node: ast.AST,
    span: Span,
    parts: tuple[str | Piece, ...],
    needs: frozenset[str] = frozenset(),
) -> Edit:
    line = scene.source.line_of(span.start)
    return Edit(Site("torch.no_grad", span, line, 1), Outcome.CONVERTED, parts, needs=needs)


def _differentiated(scene: Scene, node: ast.AST) -> bool:
    """Whether the code may lie on the way of a gradient: in a function that sets nothing up."""
    function = scene.function(node)
    if function is None:
        return False
    name = function.name.lower()
    return not (name.startswith(("__init", "_init", "init", "reset", "load", "_load")))


def _cut_names(scene: Scene, node: ast.With) -> Iterator[Edit]:
    """After the block: ``x = ops.stop_gradient(x)`` for the Tensors that it bound.

    Where a jump or an exception may leave the block with one, or the block may leave the name as
    it was, that is cut where it is bound.
    """
    facts = scene.facts
    stores: dict[str, list[ast.Name]] = {}
    kept: set[str] = set()
    own = {id(item) for item in _evaluated(node)}
    given = {n for item in ast.walk(node) if isinstance(item, ast.Nonlocal) for n in item.names}
    same, copied = _same_objects(scene, node)
    kept |= copied  # another name has it, and that may hold what is not of the block as well
    for item in ast.walk(node):
        if not isinstance(item, ast.Name) or not isinstance(item.ctx, ast.Store):
            continue
        if id(item) not in own and item.id not in given:
            continue  # a variable of a function inside
        read = item.id in copied or facts.read_after(item.id, node)
        if read and id(item) in own and (cast := _cast_of(scene, item)):
            yield _cut(scene, node, scene.statement(item), item.id, 0, cast)
            kept.add(item.id)
        elif id(item) in same:
            kept.add(item.id)  # no value is computed: it has the gradient that it had
        elif read and (is_all(scene.kind(item), "Tensor") or _may_carry(scene, item, node)):
            stores.setdefault(item.id, []).append(item)
    end = commented_end(scene.source, node.body[-1])
    behind = []  # text at one place is kept in this order: what is deeper comes first
    for name, places in stores.items():
        inside = all(id(place) in own for place in places)
        early = name in kept or _leaves_early(scene, name, node)
        if inside and (early or _keeps_older(scene, name, node, places)):
            leaving = {id(p) for p in _left_with(scene, name, node)}
            for place in places:
                if isinstance(scene.statement(place), ast.For) and id(place) not in leaving:
                    places = [p for p in places if p is not place]
            for statement in dict.fromkeys(map(scene.statement, places)):
                if isinstance(statement, ast.For):
                    yield _cut_first(scene, statement, name)
                elif isinstance(statement, (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr)):
                    yield _cut(scene, node, statement, name)
        elif not isinstance(node.body[-1], (ast.Return, ast.Raise)):
            behind.append(_cut(scene, node, node, name, end))
    yield from _cut_returns(scene, node)
    yield from behind


_HANDING = frozenset("contiguous cpu cuda real positive resolve_conj resolve_neg".split())


_CHOOSING = frozenset("max min next getattr get pop setdefault popleft".split())


def _handed(scene: Scene, value: ast.expr) -> str:
    """Return the variable that a value may be itself, or "?" for what an object holds."""
    if isinstance(value, ast.IfExp):
        return _handed(scene, value.body) or _handed(scene, value.orelse)
    if isinstance(value, ast.BoolOp):
        return next(filter(None, (_handed(scene, v) for v in value.values)), "")
    func = value.func if isinstance(value, ast.Call) else None
    name = getattr(func, "attr", getattr(func, "id", ""))
    if isinstance(value, ast.Call) and func is not None and name in _CHOOSING:
        torchs = any(a.kind in ("ref", "method") and "torch." in a.name for a in scene.kind(func))
        return "" if torchs else "?"
    if isinstance(value, ast.Call) and isinstance(func, ast.Attribute) and name in _HANDING:
        args = value.args
        if not value.keywords and len(args) < 2:
            return _handed(scene, args[0] if args else func.value)
    if isinstance(value, (ast.Attribute, ast.Subscript)) and not isinstance(value.ctx, ast.Store):
        view = isinstance(value, ast.Attribute) and is_view_name(value.attr)
        return "" if view or _is_split(scene, value.value) else "?"
    return value.id if isinstance(value, ast.Name) else ""


def _same_objects(scene: Scene, block: ast.AST) -> tuple[set[int], set[str]]:
    """Return the names of a block that are bound to what another name holds: ``a, c = b, d``.

    With the names of the block's own values among those: these are cut off where they are bound.
    What a loop or a function inside binds cannot be: a copy of it counts as a value of its own.
    """
    given: dict[int, str] = {}
    bound: dict[str, list[int]] = {}
    cut: set[int] = set()
    for item in ast.walk(block):
        if isinstance(item, ast.Assign):
            for target in item.targets:
                for one, value in unpacked(target, item.value):
                    if isinstance(one, ast.Name) and (name := _handed(scene, value)):
                        given[id(one)] = name
                cut |= {id(n) for n in ast.walk(target)}
        elif isinstance(item, (ast.AnnAssign, ast.AugAssign)):
            cut.add(id(item.target))
        elif isinstance(item, ast.For):
            cut |= {id(n) for n in ast.walk(item.target)}
            given |= {id(n): "?" for n, part in _rounds(item) if not _is_split(scene, part)}
        elif isinstance(item, ast.Name) and isinstance(item.ctx, ast.Store):
            bound.setdefault(item.id, []).append(id(item))
            if _is_recorded(scene, item, block):
                given[id(item)] = "?"
                cut.add(id(item))
    for entered in getattr(block, "items", ()):  # what a context gives is no value of the block
        for item in ast.walk(entered):
            given |= {id(item): "?"} if isinstance(item, ast.Name) else {}
            cut.add(id(item))
    loose = {name for name, places in bound.items() if not cut.issuperset(places)}
    given = {key: name for key, name in given.items() if name not in loose}
    own = {name for name, places in bound.items() if any(p not in given for p in places)}
    return set(given), own & set(given.values())


def _is_recorded(scene: Scene, node: ast.AST, block: ast.AST) -> bool:
    """Return whether gradients are on again where a node of a block is evaluated."""
    for around in outwards(scene.file, node):
        if around is block:
            return False
        if isinstance(around, ast.With):
            names = [_quiet(scene, item.context_expr) for item in around.items]
            if set(names) & set(STOPPING):
                return False
            if set(names) & set(QUIET[4:8]):
                return True
    return False


def _rounds(loop: ast.For) -> Iterator[tuple[ast.Name, ast.expr]]:
    """Yield the variables of a loop, each with what it takes an element of."""
    call = loop.iter
    given = call.args if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) else []
    name = call.func.id if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) else ""
    parts: list[tuple[ast.expr, ast.expr]] = [(loop.target, loop.iter)]
    targets = loop.target.elts if isinstance(loop.target, ast.Tuple) else []
    if name == "enumerate" and len(targets) == 2 and given:
        parts = [(targets[1], given[0])]
    elif name == "zip" and len(targets) == len(given):
        parts = list(zip(targets, given, strict=True))
    elif name in ("reversed", "iter", "list", "tuple") and given:
        parts = [(loop.target, given[0])]
    for target, part in parts:
        yield from ((n, part) for n in ast.walk(target) if isinstance(n, ast.Name))


_SPLITTING = frozenset("unbind chunk split tensor_split hsplit vsplit dsplit".split())


def _is_split(scene: Scene, value: ast.expr) -> bool:
    """Return whether the elements of a value are parts of a Tensor, made when it is evaluated."""
    func = value.func if isinstance(value, ast.Call) else None
    held = func.value if isinstance(func, ast.Attribute) and func.attr in _SPLITTING else None
    torchs = held is not None and any(a.kind == "ref" for a in scene.kind(held))
    return torchs or is_all(scene.kind(held or value), "Tensor")


_CASTS = frozenset("to type type_as float double half bfloat16".split())


def _cast_of(scene: Scene, target: ast.Name) -> str:
    """Return the variable that ``y = x.float()`` takes another dtype of: it may be x itself."""
    item = scene.parent(target)
    if not isinstance(item, ast.Assign) or item.targets != [target]:
        return ""
    call = item.value
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return ""
    held = call.func.value
    named = call.func.attr in _CASTS and isinstance(held, ast.Name) and held.id != target.id
    tensors = named and is_all(scene.kind(held), "Tensor") and is_all(scene.kind(target), "Tensor")
    return held.id if tensors and isinstance(held, ast.Name) else ""


def _cut(
    scene: Scene, block: ast.With, after: ast.stmt, name: str, end: int = 0, cast: str = ""
) -> Edit:
    """``name = ops.stop_gradient(name)`` behind a statement of a block that moves left.

    ``cast``: the variable that it is itself where it has its dtype.
    """
    source = scene.source
    text, root = _cutting(scene, block, name)
    end = end or commented_end(source, after)
    start, line = source.span(after).start, source.line_start(after.lineno)
    if before(source, start).strip():  # behind a colon
        start, line = source.span(block).start, source.line_start(block.lineno)
    indent = Piece(Span(line, start))  # what goes with the headers around it goes here as well
    value = f"{cast} if {cast}.dtype == {name}.dtype else {text}({name})" if cast else ""
    parts = (source.newline, indent, f"{name} = {value or f'{text}({name})'}")
    return _silent(scene, block, Span(end, end), parts, frozenset((root,)))


def _cutting(scene: Scene, block: ast.AST, name: str) -> tuple[str, str]:
    """Return the function that cuts off what a block binds a name to, and what to import."""
    places = (n for n in _evaluated(block) if isinstance(n, ast.Name) and n.id == name)
    stored = [n for n in places if isinstance(n.ctx, ast.Store)]
    known = all(is_all(scene.kind(n), "Tensor") for n in stored)
    return scene.spelling.local(_CUT if known else _CUT_ALL)


def _may_carry(scene: Scene, node: ast.expr, block: ast.AST) -> bool:
    """Return whether an expression, or a variable that is bound, may hold Tensors with a gradient,
    and nothing says what it is."""
    if "unknown" not in scene.kind_names(node):
        return False
    if isinstance(node, ast.Name):
        item = scene.parent(node)
        if isinstance(node.ctx, ast.Load):
            names = (n for n in _evaluated(block) if isinstance(n, ast.Name) and n.id == node.id)
            return any(_may_carry(scene, n, block) for n in names if isinstance(n.ctx, ast.Store))
        alone = isinstance(item, ast.Assign) and item.targets == [node]
        bound = item.value if alone or isinstance(item, ast.AugAssign) else None  # type: ignore[union-attr]
        return bound is not None and _may_carry(scene, bound, block)
    computes = isinstance(node, (ast.Call, ast.BinOp, ast.UnaryOp, ast.Subscript))
    recorded = computes and data_attribute.records(scene, scene.function(node))
    return recorded and carries(scene, node, block, frozenset())


def _cut_first(scene: Scene, header: ast.For, name: str) -> Edit:
    """``name = ops.stop_gradient(name)`` as the first statement of a loop that binds it."""
    source, first = scene.source, header.body[0]
    text, root = scene.spelling.local("mindspore.ops.stop_gradient")
    start, line = first_start(scene.source, first), source.line_start(first.lineno)
    beside = source.data[line:start].strip()  # behind a colon
    rest = ("; ",) if beside else (source.newline, Piece(Span(line, start)))
    parts = (f"{name} = {text}({name})", *rest)
    return _silent(scene, first, Span(start, start), parts, frozenset((root,)))


def _leaves_early(scene: Scene, name: str, node: ast.With) -> bool:
    """Whether a jump or an exception may leave a block with a value that is read there."""
    point = scene.facts.point(node)
    assert point is not None
    live = point[0].live
    return any(
        live.before(name, edge.target)
        for edge in point[0].graph.leaving(node)
        if edge.source.role is not Role.LEAVE or edge.why is Why.EXCEPTION
    )


def _keeps_older(scene: Scene, name: str, node: ast.With, places: list[ast.Name]) -> bool:
    """Whether a block may end with the value that a name had before it, gradient and all."""
    inside = {id(place) for place in places}
    return any(id(place) not in inside for place in _left_with(scene, name, node))


def _left_with(scene: Scene, name: str, node: ast.With) -> Iterator[ast.AST | None]:
    """Yield what a name may be bound by where a block ends; None where nothing binds it."""
    point = scene.facts.point(node)
    assert point is not None
    for edge in point[0].graph.leaving(node):
        if edge.source.role is Role.LEAVE and edge.why is not Why.EXCEPTION:
            reach = point[0].bindings.after(name, edge.source)
            yield from (b.place for b in reach.bindings)
            if reach.unbound:
                yield None


def _evaluated(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what is evaluated as part of a block or body: not what functions inside do later."""
    pending: list[ast.AST] = [node]
    while pending:
        current = pending.pop()
        yield current
        if current is node or not isinstance(current, _LATER):
            pending.extend(reversed(list(ast.iter_child_nodes(current))))


def _cut_returns(scene: Scene, block: ast.AST) -> Iterator[Edit]:
    """Cut off the Tensors that a block returns, but for what it was handed as it is."""
    for item in _evaluated(block):
        if isinstance(item, ast.Return) and item.value is not None:
            if _is_recorded(scene, item, block):
                continue
            values = item.value.elts if isinstance(item.value, ast.Tuple) else [item.value]
            for value in values:
                if is_all(scene.kind(value), "Tensor") and (
                    not isinstance(value, ast.Name) or _is_computed(scene, value, block)
                ):
                    yield from _wrapped(scene, value, "{}(", ")")


def _wrapped(
    scene: Scene, value: ast.expr, before: str, after: str, by: str = _CUT
) -> Iterator[Edit]:
    text, root = scene.spelling.local(by)
    span, needs = scene.source.span(value), frozenset((root,))
    yield _silent(scene, value, Span(span.start, span.start), (before.format(text),), needs)
    yield _silent(scene, value, Span(span.end, span.end), (after.format(text),), needs)


# -- what containers hold ------------------------------------------------------------------------


def _cut_held(scene: Scene, block: ast.AST) -> Iterator[Edit]:
    """Cut off what a block computes and puts into a list, a tuple, a dict or an object.

    An element that was there before the block has the gradient that it had.
    """
    if not data_attribute.records(scene, scene.function(next(_inside(block)))):
        return
    for item in _evaluated(block):
        held: list[ast.expr] = []
        if _is_recorded(scene, item, block):
            continue
        if isinstance(item, ast.Assign):
            places = [t for target in item.targets for t in _places(target)]
            if not all(isinstance(t, ast.Name) for t in places):
                held = [] if all(_takes_numbers(scene, t) for t in places) else [item.value]
            elif isinstance(item.value, (ast.IfExp, ast.BoolOp)) and _handed(scene, item.value):
                held = [item.value]
            elif not is_all(scene.kind(item.value), "Tensor"):
                unpacks = len(places) > 1 or not isinstance(item.targets[0], ast.Name)
                behind = _may_carry(scene, item.value, block)  # cut off where the block ends
                held = [] if unpacks or behind else [item.value]
        elif isinstance(item, ast.AugAssign):
            held = [item.value] if is_all(scene.kind(item.value), "list", "tuple") else []
        elif isinstance(item, (ast.Yield, ast.YieldFrom)):
            held = [item.value] if item.value is not None else []
        elif isinstance(item, ast.Return) and item.value is not None:
            parts = item.value.elts if isinstance(item.value, ast.Tuple) else [item.value]
            held = [p for p in parts if not is_all(scene.kind(p), "Tensor")]
        elif isinstance(item, ast.Call) and _collects(scene, item):
            held = [*item.args, *(k.value for k in item.keywords)]
        for value in held:
            yield from _cut_parts(scene, value, block)


def _inside(block: ast.AST) -> Iterator[ast.AST]:
    yield from getattr(block, "body", [block])


def _places(target: ast.expr) -> Iterator[ast.expr]:
    if isinstance(target, (ast.Tuple, ast.List)):
        for part in target.elts:
            yield from _places(part)
    else:
        yield target.value if isinstance(target, ast.Starred) else target


def _takes_numbers(scene: Scene, place: ast.expr) -> bool:
    """Return whether a Parameter, or a part of a Tensor, takes the numbers of what it is set to."""
    if isinstance(place, ast.Attribute):
        return place.attr in ("data", "grad") or is_parameter(scene, place)
    return isinstance(place, ast.Subscript) and is_all(scene.kind(place.value), "Tensor")


def _collects(scene: Scene, call: ast.Call) -> bool:
    """Return whether a call puts its arguments into a container."""
    func = call.func
    return isinstance(func, ast.Attribute) and func.attr in _COLLECTING and (
        "Tensor" not in scene.kind_names(func.value)
    )  # fmt: skip


def _cut_parts(scene: Scene, value: ast.expr, block: ast.AST) -> Iterator[Edit]:
    """Cut off the Tensors of a value that the block computes."""
    if isinstance(value, (ast.List, ast.Tuple, ast.Set)):
        for part in value.elts:
            yield from _cut_parts(scene, part, block)
    elif isinstance(value, ast.Dict):
        for part in value.values:
            yield from _cut_parts(scene, part, block)
    elif isinstance(value, (ast.ListComp, ast.SetComp, ast.GeneratorExp)):
        yield from _cut_parts(scene, value.elt, block)
    elif isinstance(value, ast.DictComp):
        yield from _cut_parts(scene, value.value, block)
    elif isinstance(value, ast.IfExp):
        yield from _cut_parts(scene, value.body, block)
        yield from _cut_parts(scene, value.orelse, block)
    elif isinstance(value, ast.BoolOp):
        for part in value.values:
            yield from _cut_parts(scene, part, block)
    elif isinstance(value, ast.Call) and _handed(scene, value):
        return
    elif _is_computed(scene, value, block):
        kinds = scene.kind(value)
        tensors = all(is_all(i, "Tensor") for a in kinds for i in a.items)
        if is_all(kinds, "Tensor"):
            yield from _wrapped(scene, value, "{}(", ")")
        elif isinstance(value, ast.Call) and tensors and all(a.items for a in kinds):
            if is_all(kinds, "list"):
                yield from _wrapped(scene, value, "[{}(v) for v in ", "]")
            elif is_all(kinds, "tuple"):
                yield from _wrapped(scene, value, "tuple({}(v) for v in ", ")")
        elif _may_carry(scene, value, block):
            yield from _wrapped(scene, value, "{}(", ")", _CUT_ALL)


def _is_computed(scene: Scene, value: ast.expr, block: ast.AST) -> bool:
    """Return whether an expression has a value of the block's own, which may have a gradient."""
    if isinstance(value, ast.Name):
        if any(value.id in _bound_by(scene, around) for around in outwards(scene.file, value)):
            return True
        same, _ = _same_objects(scene, block)
        return any(
            isinstance(n, ast.Name) and n.id == value.id and isinstance(n.ctx, ast.Store)
            for n in _evaluated(block)
            if id(n) not in same
        )
    if isinstance(value, ast.Call):
        name = getattr(value.func, "attr", getattr(value.func, "id", ""))
        return name not in CUTTING
    return isinstance(value, (ast.BinOp, ast.UnaryOp, ast.Subscript)) and not (
        isinstance(value, ast.Subscript) and not is_all(scene.kind(value.value), "Tensor")
    )


def _bound_by(scene: Scene, node: ast.AST) -> set[str]:
    """Return the variables of a comprehension that are parts of Tensors."""
    return {
        name.id
        for clause in getattr(node, "generators", ())
        if is_all(scene.kind(clause.iter), "Tensor")
        for name in ast.walk(clause.target)
        if isinstance(name, ast.Name)
    }
