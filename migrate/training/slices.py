"""Find the statements that compute the loss of a training step, and what moves around it.

Going back from the loss, a statement belongs to it when it binds a name that is needed and comes
from a Module. What the loss needs but no Module has touched (the batch, the labels) stays where
it is and becomes an input; what uses results of the Module but is not needed moves behind the
step. Where that order could be seen, the step is refused; so it is where code looks through
``self`` (``self.loss = ...``, then ``self("after_loss")``). A generator's images are made once and
used by two steps: where the second updates what made them, it makes them again inside its Cell.
What draws random numbers cannot be made again.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from migrate.analysis.program import Function
from migrate.sites.references import draws
from migrate.syntax.trees import all_parameters, dotted, last_name
from migrate.training import freezing
from migrate.training.between import Between, at_weights
from migrate.training.detached import constant_items, is_constant, is_cut, on_host
from migrate.training.effects import Use, binds, blocks, changed, filled, leaves, reads, uses
from migrate.training.groups import Group, Unclear, models_of
from migrate.training.marks import Act, Mark, View, block_of
from migrate.training.modules import builds_optimizer, gives_weight, kept, models, quiet


def before_update(
    view: View, group: Group, items: list[ast.stmt], nodes: Sequence[ast.AST], own: str
) -> str:
    """Results of an earlier step come in as constants: no weight updated here may be behind."""
    origins: dict[str, set[str]] = {}
    for item in items:
        cut = is_constant(view, item, own) or builds_optimizer(view, item)
        made = quiet(view, item) or _makes_module(view, item, own) or gives_weight(view, item)
        found = set() if made or cut else models(view, [item], own)
        for name in reads([item], own) if not cut else ():
            found |= origins.get(name, set())
        # a branch or loop may bind it, or not
        kept = not isinstance(item, (ast.With, ast.AsyncWith)) and bool(list(blocks(item)))
        for name in binds([item], own):
            origins[name] = found | (origins.get(name, set()) if kept else set())
    updated = {m for o in group.optimizers for m in models_of(view, o)}
    inside = {id(n) for item in nodes for n in ast.walk(item)}
    earlier = {id(n) for item in items for n in ast.walk(item)} - inside
    for use, top in ((u, n) for n in nodes for u in uses(n, own)):
        if use.name not in origins or not _is_from(view, use, earlier):
            continue
        if is_cut(view, use, top):
            continue
        if origins.get(use.name, set()) & updated or (origins.get(use.name) and not updated):
            return f"{use.name} was computed before another update, by weights updated here"
    return ""


def _is_from(view: View, use: Use, earlier: set[int]) -> bool:
    """Return whether a name may have its value, if it is read at all, from some nodes."""
    if not isinstance(use.node, ast.Name):
        return True
    if use.stored:  # ``loss += one`` reads it as well
        return isinstance(view.file.parents.get(id(use.node)), ast.AugAssign)
    reach = view.inference.facts(view.file.path).reach(use.node)
    return reach.outside or any(id(b.place) in earlier for b in reach.bindings)


def made_again(
    view: View,
    group: Group,
    every: Sequence[Mark],
    around: tuple[list[ast.stmt], list[ast.stmt]],
    nodes: Sequence[ast.AST],
    own: str,
) -> tuple[ast.Assign, ...]:
    """The statements ``fake = netG(noise)`` in front that the step can make again; () if not.

    ``around`` are the statements up to the step before, and those from there to the backward.
    """
    items, rest = around
    updated = {m for o in group.optimizers for m in models_of(view, o)}
    needed = reads(nodes, own)
    found: list[ast.Assign] = []
    for item in reversed(items):
        bound = binds([item], own)
        if bound & needed and models(view, [item], own) & updated:
            if not _remakes(item, updated) or not isinstance(item, ast.Assign):
                return ()
            later = [*items[items.index(item) + 1 :], *rest]
            if any(changed(s, own) & (reads([item], own) | bound) for s in later):
                return ()
            found.insert(0, item)
        needed -= bound
    if not found or _draws(view) or _others(view, group, every) & updated:
        return ()
    others = [s for s in items if s not in found]
    return () if before_update(view, group, others, [*found, *nodes], own) else tuple(found)


def _made_of_updated(view: View, group: Group, items: Iterable[ast.stmt], own: str) -> set[str]:
    """Return the variables that statements give what Modules make that a step updates."""
    updated = {m for o in group.optimizers for m in models_of(view, o)}
    found: set[str] = set()
    for item in items:
        found = (
            found | binds([item], own) if _remakes(item, updated) else found - binds([item], own)
        )
    return found


def _remakes(item: ast.stmt, updated: set[str]) -> bool:
    """``name = module(inputs)``."""
    if not isinstance(item, ast.Assign) or len(item.targets) != 1:
        return False
    call = item.value
    named = isinstance(item.targets[0], ast.Name) or bool(dotted(item.targets[0]))
    if not isinstance(call, ast.Call) or call.keywords or not named:
        return False
    nested = any(isinstance(n, (ast.Call, ast.Starred)) for a in call.args for n in ast.walk(a))
    return dotted(call.func) in updated and not nested


def _others(view: View, group: Group, every: Sequence[Mark]) -> set[str]:
    """The Modules that other steps of the function update; those not known are all."""
    own = {id(m.statement) for m in group.marks}
    steps = {m.who for m in every if m.act is Act.STEP and id(m.statement) not in own}
    found = {who: models_of(view, who) for who in steps - set(group.optimizers)}
    unknown = any(not some for some in found.values())
    mine = {m for o in group.optimizers for m in models_of(view, o)}
    return mine if unknown else {m for some in found.values() for m in some}


def _draws(view: View) -> bool:
    """Whether a class that the file may get to know draws random numbers, as dropout does."""
    classes = (c.node for f in view.neighbours for c in f.classes.values())
    return any(draws(n) for c in classes for n in ast.walk(c))


def constants(view: View, group: Group, item: ast.stmt, later: Iterable[ast.AST], own: str) -> bool:
    """Whether the loss sees what a statement computes only as a constant: ``fake.detach()``."""
    updated = {m for o in group.optimizers for m in models_of(view, o)}
    if not updated or models(view, [item], own) & updated:
        return False
    names = binds([item], own)
    found = ((u, n) for n in later for u in uses(n, own) if u.name in names and not u.stored)
    return all(is_cut(view, use, top) for use, top in found)


def looks_through(view: View, item: ast.stmt, own: str, bound: set[str]) -> bool:
    """Whether the object is handed on, or a method of it is called that reads what is bound.

    ``bound`` are the names that the step has bound so far, attributes as ``self.loss``.
    """
    held = {name.partition(".")[2] for name in bound if name.startswith(f"{own}.")}
    if not own or not held:
        return False
    return own in reads([item], own) or any(
        _reads_any(method, held, frozenset(), view) for method in _called(view, item, own)
    )


def _called(view: View, item: ast.AST, own: str) -> Iterator[Function]:
    """The methods of the program that are called on the object; all of one name may be meant."""
    for node in ast.walk(item):
        func = node.func if isinstance(node, ast.Call) else None
        if isinstance(func, ast.Attribute) and getattr(func.value, "id", "") == own:
            for owner in view.inference.program.holders.get(func.attr, ()):
                if func.attr in owner.methods:
                    yield owner.methods[func.attr]


def _reads_any(method: Function, held: set[str], seen: frozenset[str], view: View) -> bool:
    """Whether a method reads one of these attributes, hands itself on, or calls one that does."""
    if method.key in seen or not method.parameters:
        return False
    own = method.parameters[0].arg
    if any(isinstance(n, ast.Attribute) and n.attr in held for n in method.nodes):
        return True
    body = method.node.body
    found = reads(body if isinstance(body, list) else [body], own)
    inner = seen | {method.key}
    return own in found or any(
        _reads_any(other, held, inner, view) for other in _called(view, method.node, own)
    )


NOTHING = "nothing in front of it calls a Module on the way to the loss"
_SUSPENDS = (ast.Yield, ast.YieldFrom, ast.Await, ast.Try)


@dataclass(frozen=True)
class Region:
    """Where a training step stands in its block.

    ``inside`` compute the loss, ``moved`` come behind the step, ``condition`` is the ``if`` that
    holds the backward when the loss is computed in front of it, and what is inside of it may be
    ``inside`` as well. ``captured`` maps a statement
    that moves and a name to the number of the binding that it reads. ``again`` stand in front of
    an earlier step and are made again inside.
    """

    group: Group
    block: list[ast.stmt]
    inside: tuple[ast.stmt, ...]
    moved: tuple[ast.stmt, ...]
    last: int
    losses: tuple[ast.expr, ...]
    condition: ast.If | None = None
    captured: tuple[tuple[ast.stmt, str, ast.stmt], ...] = ()
    again: tuple[ast.Assign, ...] = ()


@dataclass
class Cut:
    """``before`` are the statements in front of the first that computes the loss."""

    inside: list[ast.stmt] = field(default_factory=list)
    moved: list[ast.stmt] = field(default_factory=list)
    stays: list[ast.stmt] = field(default_factory=list)
    before: list[ast.stmt] = field(default_factory=list)


def region(view: View, group: Group, every: Sequence[Mark], own: str) -> Region | Unclear:
    """Return the statements of a training step.

    Some Module computed the loss, or its backward() raises: where none is known to, each call of
    something unknown may be it, if no argument of the function could be what a Module computed.
    """
    found = _region(view, group, every, own)
    if not isinstance(found, Unclear) or found.reason != NOTHING:
        return found
    assumed = _region(replace(view, assuming=True), group, every, own)
    if isinstance(assumed, Region) and _takes_values(view, assumed, own):
        return found
    return assumed


def _takes_values(view: View, region: Region, own: str) -> bool:
    """Return whether the loss is made from arguments: values, not what is called or asked."""
    function = view.file.function_at(region.block[0])
    names = {a.arg for a in all_parameters(function.node.args)} if function is not None else set()
    for use in (u for n in (*region.inside, *region.losses) for u in uses(n, own)):
        around = view.file.parents.get(id(use.node))
        called = isinstance(around, ast.Call) and around.func is use.node
        if use.name in names and not called and not isinstance(around, ast.Attribute):
            return True
    return False


def _region(view: View, group: Group, every: Sequence[Mark], own: str) -> Region | Unclear:
    first, last = group.backwards[0], group.backwards[-1]
    block, container = block_of(view, first.statement)
    if last.statement not in block:
        return Unclear(first, "its backward() calls stand in different blocks")
    losses = tuple(m.loss for m in group.backwards if m.loss is not None)
    index, condition, ahead = block.index(last.statement), None, []
    computing = [*(s for s in block[:index] if not _switched(s)), *losses]
    if (
        isinstance(container, ast.If)
        and block is container.body
        and not models(view, computing, own)
    ):
        condition, ahead = container, block[: block.index(first.statement)]
        if behind(group, every, ahead, len(ahead)):
            return Unclear(first, "another step stands under its condition")
        block, _ = block_of(view, container)
        index = block.index(container)
    start = behind(group, every, block, index)
    early = _made_of_updated(view, group, block[:start], own)
    cut = cut_off(view, group, [*block[start:index], *ahead], losses, own, early)
    if isinstance(cut, str):
        return Unclear(first, cut)
    nodes = [*cut.inside, *losses]
    reason = before_update(view, group, [*block[:start], *cut.before], nodes, own)
    again = (
        made_again(view, group, every, (block[:start], block[start:index]), nodes, own)
        if reason
        else ()
    )
    if reason and not again:
        return Unclear(first, reason)
    if condition is not None and reads([condition.test], own) & binds(cut.inside, own):
        return Unclear(first, "the condition of its update reads what the loss is made from")
    reason = _tail(view, group, own)
    if reason:
        return Unclear(first, reason)
    captured = captured_names(cut, own)
    return Region(
        group, block, tuple(cut.inside), tuple(cut.moved), index, losses, condition, captured, again
    )


# -- the step before ---------------------------------------------------------------------------


def behind(group: Group, every: Sequence[Mark], block: list[ast.stmt], end: int) -> int:
    """Where the block is this step's own: behind the last update of another step."""
    own = {id(m.statement) for m in group.marks}
    others = {id(m.statement) for m in every if id(m.statement) not in own}
    held = [i for i, s in enumerate(block[:end]) if any(id(n) in others for n in ast.walk(s))]
    zeros = {id(m.statement) for m in every if m.act is Act.ZERO}
    held = [i for i in held if not _only_clears(block[i], zeros)]
    return held[-1] + 1 if held else 0


def _only_clears(item: ast.stmt, zeros: set[int]) -> bool:
    """Return whether a statement clears gradients, maybe under a condition, and does no more."""
    inner = [s for b in blocks(item) for s in b] if isinstance(item, ast.If) else []
    return id(item) in zeros or (bool(inner) and all(_only_clears(s, zeros) for s in inner))


# -- cutting ----------------------------------------------------------------------------------


def cut_off(
    view: View,
    group: Group,
    items: list[ast.stmt],
    losses: tuple[ast.expr, ...],
    own: str,
    early: Iterable[str] = (),
) -> Cut | str:
    """Sort the statements in front of a backward; ``early`` are variables that Modules computed.

    What is computed of the Modules for its numbers alone stays in front of the step where it
    fetches them, or where the step cannot have it.
    """
    marks = {id(m.statement) for m in group.marks}
    candidates = [s for s in items if id(s) not in marks]
    touched = touched_by(view, candidates, own, group.by_hand, early)
    alone = constant_items(view, candidates, losses, touched, own)
    if alone and on_host(alone):
        return _cut(view, group, candidates, losses, touched - {id(s) for s in alone}, own)
    found = _cut(view, group, candidates, losses, touched, own)
    if isinstance(found, str) and alone:
        other = _cut(view, group, candidates, losses, touched - {id(s) for s in alone}, own)
        found = found if isinstance(other, str) else other
    return found


def _cut(
    view: View,
    group: Group,
    candidates: list[ast.stmt],
    losses: tuple[ast.expr, ...],
    touched: set[int],
    own: str,
) -> Cut | str:
    touched = {*touched}
    needed = reads(losses, own)
    inside: list[ast.stmt] = []
    put: set[str] = set()  # containers that are filled inside
    left = kept(view)
    for item in reversed(candidates):
        feeding = any(map(left.read_by, (*inside, *losses))) and bool(models(view, [item], own))
        feeding |= bool(filled(item) & needed)
        begins = bool(_displays(item) & put)
        feeding |= bool(changed(item, own) & needed)
        if begins or (feeding and id(item) in touched):
            put = (put - binds([item], own)) | (filled(item) & needed)
            if constants(view, group, item, [*inside, *losses], own):
                touched.discard(id(item))
                continue
            inside.insert(0, item)
            needed |= reads([item], own)
    parts = [n for loss in losses for n in ast.walk(loss)]
    computes = any(isinstance(n, ast.Call | ast.BinOp | ast.UnaryOp) for n in parts)
    if not inside and not (computes and models(view, losses, own)):
        return NOTHING
    after = candidates[candidates.index(inside[0]) :] if inside else []
    if put:
        return f"what a round puts into {min(put)} is there in the next one"
    found = sort_out(view, inside, after, losses, touched, own, group.by_hand)
    if isinstance(found, str):
        return found
    if reason := _written_later(found, own):
        return reason
    found.before = [s for s in candidates if s not in after]
    gone = next((s for s in found.moved if leaves(s)), None)
    if gone is not None:
        return f"line {gone.lineno} may leave before the update, depending on the loss"
    line = left_halfway(found.inside)
    return f"line {line} leaves the computation of the loss" if line else found


def _displays(item: ast.stmt) -> set[str]:
    """Return the variables to which a statement binds containers that are written out in it:
    ``xs = []``, ``xs, total = [], 0``."""
    found: set[str] = set()
    pairs = [(t, item.value) for t in item.targets] if isinstance(item, ast.Assign) else []
    for target, value in pairs:
        if isinstance(target, ast.Tuple | ast.List) and isinstance(value, ast.Tuple | ast.List):
            inner = (*target.elts, *value.elts)
            if not any(isinstance(e, ast.Starred) for e in inner):
                pairs += zip(target.elts, value.elts, strict=False)
        elif isinstance(value, ast.List | ast.Dict | ast.Set) or _is_empty(value):
            found.add(dotted(target))
    return found - {""}


def _is_empty(value: ast.expr) -> bool:
    """Return whether an expression makes a container of nothing: ``deque(maxlen=3)``."""
    plain = isinstance(value, ast.Call) and not value.args
    return plain and last_name(value.func) in _CONTAINERS  # type: ignore[attr-defined]


_CONTAINERS = frozenset("list dict set deque OrderedDict".split())


def left_halfway(items: Iterable[ast.stmt]) -> int:
    """Return the line of what may leave statements before their end, 0 for none; a ``break`` of a
    loop among them does not."""
    odd = (n for s in items for n in ast.walk(s) if leaves(s) or isinstance(n, _SUSPENDS))
    ends = (ast.Return, ast.Break, ast.Continue, *_SUSPENDS)
    return next((n.lineno for n in odd if isinstance(n, ends)), 0)


def touched_by(
    view: View,
    items: list[ast.stmt],
    own: str,
    by_hand: bool = False,
    early: Iterable[str] = (),
) -> set[int]:
    """Return the statements whose results come from a Module, also by what running it kept, or
    from variables that have them ``early``.

    Where gradients stay with the weights, what is cut off stays where it is computed.
    """
    names = set(early)
    found: set[int] = set()
    left, ran = kept(view), False
    for item in items:
        cut = builds_optimizer(view, item) or (by_hand and _cuts_off(item))
        cut |= not ran and gives_weight(view, item)
        from_model = not quiet(view, item) and bool(models(view, [item], own) - _switched(item))
        from_model &= not _makes_module(view, item, own)
        from_model = from_model and not freezing.of(view).only_switches(view, item)
        ran |= from_model
        if cut:
            names -= binds([item], own)
        elif from_model or reads([item], own) & names or (ran and left.read_by(item)):
            found.add(id(item))
            names |= binds([item], own) | filled(item)
        else:
            names -= binds([item], own)
    return found


def _makes_module(view: View, item: ast.stmt, own: str) -> bool:
    """Return whether a statement builds a Module, of no other: it has weights and no result."""
    value = item.value if isinstance(item, ast.Assign) else None
    built = isinstance(value, ast.Call) and view.atoms(value) == {"Module"}
    return built and not models(view, [value], own)  # type: ignore[list-item]


def _cuts_off(item: ast.stmt) -> bool:
    """Return whether a statement is ``x = (...).detach()``."""
    value = item.value if isinstance(item, ast.Assign) else None
    called = value.func if isinstance(value, ast.Call) and not value.args else None
    return isinstance(called, ast.Attribute) and called.attr == "detach"


def _switched(item: ast.stmt) -> set[str]:
    """``model.train()`` touches a Module, but computes nothing."""
    if isinstance(item, ast.Expr) and isinstance(item.value, ast.Call):
        func = item.value.func
        if isinstance(func, ast.Attribute) and func.attr in ("train", "eval", "zero_grad"):
            return {dotted(func.value)}
    return set()


def sort_out(
    view: View,
    inside: list[ast.stmt],
    after: list[ast.stmt],
    losses: tuple[ast.expr, ...],
    touched: set[int],
    own: str,
    by_hand: bool = False,
) -> Cut | str:
    """Which of the statements between belong inside, which move, which stay."""
    found = Cut()
    passed = Between(view, (), own)  # what the next statement that stays comes before
    for item in after:
        before = [*found.inside]
        if item in inside:
            found.inside.append(item)
            continue
        if looks_through(view, item, own, binds([*before, *found.moved], own)):
            return f"line {item.lineno} may read what {own} holds of the loss before its update"
        if freezing.of(view).handles_weights(view, item):
            return f"line {item.lineno} may look at gradients or weights before the update"
        made = binds(found.moved, own).union(*(changed(s, own) for s in before))
        uses_results = reads([item], own) & made
        if uses_results or id(item) in touched:
            if models(view, [item], own):
                return f"line {item.lineno} uses the Module between loss and update"
            if at_weights(view, item, by_hand):
                return f"line {item.lineno} may look at gradients or weights before the update"
            rest = [*(s for s in inside if s.lineno > item.lineno), *losses]
            written = changed(item, own) & binds(before, own)
            if written & reads(rest, own) and id(item) not in touched:
                found.inside.append(item)  # it fills what was made inside: ``label.fill_(0)``
                continue
            if writes_results(item, binds(before, own)) or (
                Between(view, tuple(rest), own).changed_by(item)
            ):
                return f"line {item.lineno} may change what the gradients are computed from"
            found.moved.append(item)
        elif changed(item, own) & (reads(before, own) | binds(before, own)):
            rest = [*(s for s in inside if s.lineno > item.lineno), *losses]
            cleared = isinstance(item, ast.Assign) and isinstance(item.value, ast.Constant)
            held = set() if cleared else binds(before, own)  # ``h = None`` behind is the same
            needed = changed(item, own) & (reads(rest, own) | binds(rest, own) | held)
            (found.inside if needed else found.moved).append(item)
        elif changed(item, own) & reads(found.moved, own):
            return f"line {item.lineno} changes what line {found.moved[0].lineno} reads"
        elif leaves(item) and models(view, before, own):
            return f"line {item.lineno} may leave the round when the Module has computed"
        else:
            nodes = (*found.inside, *found.moved)
            passed = passed if passed.nodes == nodes else Between(view, nodes, own)
            if nodes and passed.changed_by(item):
                return f"line {item.lineno} may change what the loss was computed from"
            found.stays.append(item)
    made = binds(found.inside, own)
    kept = [s for s in found.inside if isinstance(s, ast.With) and filled(s) - made]
    if kept:
        return f"line {kept[0].lineno} keeps results while the loss is computed"
    return found


def _written_later(cut: Cut, own: str) -> str:
    """Return that what moves behind the step would read what the step has changed in place."""
    for item in cut.moved:
        for later in (s for s in cut.inside if s.lineno > item.lineno):
            if reads([item], own) & (changed(later, own) - binds([later], own)):
                return f"line {later.lineno} changes what line {item.lineno} reads"
    return ""


def writes_results(item: ast.stmt, names: set[str]) -> bool:
    """Return whether a statement writes in place through ``.data`` of what the loss is made of."""
    written: list[ast.expr] = []
    for node in ast.walk(item):
        stored = isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load)
        if isinstance(node, ast.AugAssign):
            written.append(node.target)
        elif stored or (isinstance(node, ast.Attribute) and node.attr.endswith("_")):
            written.append(node.value)  # type: ignore[attr-defined]
    return any(
        isinstance(n, ast.Attribute)
        and n.attr == "data"
        and isinstance(n.ctx, ast.Load)
        and dotted(n.value).partition(".")[0] in names
        for place in written
        for n in ast.walk(place)
    )


def _tail(view: View, group: Group, own: str) -> str:
    """What stands between the backward and the update must not look at gradients or weights."""
    if group.by_hand:
        return ""
    marks = {id(m.statement) for m in group.marks}
    block, _ = block_of(view, group.backwards[-1].statement)
    step = group.steps[-1].statement
    if step not in block:
        return ""
    start, stop = block.index(group.backwards[-1].statement), block.index(step)
    for item in block[start:stop]:
        if id(item) in marks:
            continue
        gradient = any(isinstance(n, ast.Attribute) and n.attr == "grad" for n in ast.walk(item))
        handles = freezing.of(view).handles_weights(view, item)
        if gradient or handles or models(view, [item], own) or at_weights(view, item):
            return f"line {item.lineno} looks at gradients or weights before the update"
    return ""


def captured_names(cut: Cut, own: str) -> tuple[tuple[ast.stmt, str, ast.stmt], ...]:
    """(statement that moves, name, the binding it reads) where the name is bound again later."""
    found = []
    for item in cut.moved:
        for name in sorted(reads([item], own)):
            binding = [s for s in cut.inside if name in binds([s], own)]
            earlier = [s for s in binding if s.lineno < item.lineno]
            if earlier and len(earlier) < len(binding):
                found.append((item, name, earlier[-1]))
    return tuple(found)
