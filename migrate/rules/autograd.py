"""In: ``torch.no_grad`` and its kin. Out: code without them, results cut off from the gradient."""

from __future__ import annotations

import ast
import tokenize
from collections.abc import Iterator

from migrate.analysis.cfg import Role, Why
from migrate.choice import Chosen
from migrate.layout import above
from migrate.outcomes import Edit, Outcome, Piece, Refusal, Site, Span
from migrate.receivers.kinds import is_all
from migrate.rules import decorators
from migrate.rules.dedent import dedented, first_start
from migrate.scene import Scene
from migrate.sites import direct_name
from migrate.source import Source
from migrate.syntax import unpacked

QUIET = ("torch.no_grad", "torch.inference_mode", "torch.autograd.no_grad",
         "torch.autograd.inference_mode", "torch.enable_grad", "torch.set_grad_enabled",
         "torch.autograd.enable_grad", "torch.autograd.set_grad_enabled",
         "torch.autocast", "torch.amp.autocast", "torch.cuda.amp.autocast",
         "torch.profiler.record_function", "torch.autograd.profiler.record_function",
         "torch.nn.attention.sdpa_kernel", "torch.backends.cuda.sdp_kernel")  # fmt: skip
STOPPING = QUIET[:4]
# their rows take whatever is given, also by **: they only choose a kernel
_KERNELS = QUIET[-2:]


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
            return _header(scene, site, statement, chosen)
    if isinstance(parent, (ast.FunctionDef, ast.AsyncFunctionDef)):
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
    start, end = source.span(node).start, first_start(scene, node.body[0])
    tokens = source.tokens if b"#" in source.data[start:end] else ()
    notes = [
        source.text(Span(a, b))
        for kind, a, b in tokens
        if kind == tokenize.COMMENT and start <= a < end
    ]
    place = Site(site.name, Span(start, end), site.line, site.column)
    return Edit(
        place, Outcome.CONVERTED, above(source, start, notes), chosen.row.key, note=chosen.row.note
    )


def contexts(scene: Scene) -> Iterator[Edit]:
    """What goes with a removed context: its body moves left, its results are cut off."""
    for node in scene.file.of(ast.With):
        names = [_quiet(scene, item.context_expr) for item in node.items]
        if all(names):
            yield from _dedent(scene, node)
            if set(names) & set(STOPPING) and _differentiated(scene, node):
                yield from _cut_names(scene, node)
    for function in scene.file.of(ast.FunctionDef):
        stopping = any(_decorates(scene, d) in STOPPING for d in function.decorator_list)
        if stopping and _differentiated(scene, function.body[0]):
            yield from _cut_returns(scene, function)


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


def _meant(name: str, call: ast.Call) -> str:
    """The context that it comes to: ``set_grad_enabled(False)`` is ``no_grad()``."""
    mode = next(iter([*call.args, *(k.value for k in call.keywords if k.arg == "mode")]), None)
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
    same = _same_objects(node)
    for item in ast.walk(node):
        if not isinstance(item, ast.Name) or not isinstance(item.ctx, ast.Store):
            continue
        if id(item) not in own and item.id not in given:
            continue  # a variable of a function inside
        if id(item) in same:
            kept.add(item.id)  # no value is computed: it has the gradient that it had
        elif is_all(scene.kind(item), "Tensor") and facts.read_after(item.id, node):
            stores.setdefault(item.id, []).append(item)
    end = _line_end(scene.source, scene.source.span(node.body[-1]).end)
    behind = []  # text at one place is kept in this order: what is deeper comes first
    for name, places in stores.items():
        inside = all(id(place) in own for place in places)
        early = name in kept or _leaves_early(scene, name, node)
        if inside and (early or _keeps_older(scene, name, node, places)):
            for statement in dict.fromkeys(map(scene.statement, places)):
                if isinstance(statement, (ast.Assign, ast.AugAssign, ast.AnnAssign)):
                    yield _cut(scene, node, statement, name)
        elif not isinstance(node.body[-1], (ast.Return, ast.Raise)):
            behind.append(_cut(scene, node, node, name, end))
    yield from behind
    yield from _cut_returns(scene, node)


def _same_objects(block: ast.With) -> set[int]:
    """Return the names of a block that are bound to what a name held before it: ``a, c = b, d``."""
    given: dict[int, str] = {}
    for item in (n for n in ast.walk(block) if isinstance(n, ast.Assign)):
        for target in item.targets:
            for one, value in unpacked(target, item.value):
                if isinstance(one, ast.Name) and isinstance(value, ast.Name):
                    given[id(one)] = value.id
    stores = [
        n for n in ast.walk(block) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
    ]
    before = -1
    while before != len(given):  # what is bound to a name that holds a value of the block is none
        before = len(given)
        computed = {n.id for n in stores if id(n) not in given}
        given = {key: name for key, name in given.items() if name not in computed}
    return set(given)


def _cut(scene: Scene, block: ast.With, after: ast.stmt, name: str, end: int = 0) -> Edit:
    """``name = ops.stop_gradient(name)`` behind a statement of a block that moves left."""
    source = scene.source
    text, root = scene.spelling.local("mindspore.ops.stop_gradient")
    end = end or _line_end(source, source.span(after).end)
    indent = Piece(Span(source.line_start(block.lineno), source.span(block).start))
    start, line = source.span(after).start, source.line_start(after.lineno)
    deeper = ""
    if after is not block and not source.data[line:start].strip():
        # the block's own indentation may be edited, what is deeper than its body stays
        first = first_start(scene, block.body[0]) - source.line_start(block.body[0].lineno)
        deeper = source.text(Span(line + first, start))
    parts = (source.newline, indent, f"{deeper}{name} = {text}({name})")
    return _silent(scene, block, Span(end, end), parts, frozenset((root,)))


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
    point = scene.facts.point(node)
    assert point is not None
    inside = {id(place) for place in places}
    reaches = [
        point[0].bindings.after(name, edge.source)
        for edge in point[0].graph.leaving(node)
        if edge.source.role is Role.LEAVE and edge.why is not Why.EXCEPTION
    ]
    return any(
        reach.unbound or any(id(b.place) not in inside for b in reach.bindings) for reach in reaches
    )


def _line_end(source: Source, end: int) -> int:
    """Behind a comment on the same line: it belongs to what stands there."""
    stop = source.data.find(b"\n", end)
    rest = source.data[end : stop if stop >= 0 else len(source.data)]
    return end + len(rest.rstrip(b"\r")) if rest.strip().startswith(b"#") else end


def _evaluated(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what is evaluated as part of a block or body: not what functions inside do later."""
    pending: list[ast.AST] = [node]
    while pending:
        current = pending.pop()
        yield current
        if current is node or not isinstance(current, _LATER):
            pending.extend(reversed(list(ast.iter_child_nodes(current))))


def _cut_returns(scene: Scene, node: ast.AST) -> Iterator[Edit]:
    text, root = scene.spelling.local("mindspore.ops.stop_gradient")
    for item in _evaluated(node):
        if isinstance(item, ast.Return) and item.value is not None:
            values = item.value.elts if isinstance(item.value, ast.Tuple) else [item.value]
            for value in values:
                if is_all(scene.kind(value), "Tensor"):
                    span = scene.source.span(value)
                    yield _silent(
                        scene,
                        value,
                        Span(span.start, span.start),
                        (f"{text}(",),
                        frozenset((root,)),
                    )
                    yield _silent(scene, value, Span(span.end, span.end), (")",))
