"""Find what the region of a step holds, is given, gives back, and changes between rounds.

What changes from step to step is an input of the Cell, what stays is held by it: Modules, losses,
functions, settings. What functions called from the loop change counts as well, and what can be
neither held nor given is refused. Names of the file's top level need neither, except in scripts,
where Modules are such names too.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from migrate.analysis.program import Function, method_of
from migrate.syntax.trees import dotted
from migrate.training import computed, freezing
from migrate.training.effects import Use, binds, blocks, reads, uses
from migrate.training.groups import Unclear
from migrate.training.marks import View
from migrate.training.modules import models, removed
from migrate.training.slices import Region


def results(view: View, region: Region, function: Function | None, own: str) -> tuple[str, ...]:
    """What the region binds and something outside of it, or its next round, reads.

    The loss itself apart. Attributes of self may be read anywhere.
    """
    bound: list[str] = []
    for item in region.inside:
        bound += [u.name for u in uses(item, own) if u.stored and u.name not in bound]
        bound += sorted((binds([item], own) | _written_into(view, item)) - set(bound))
    only = region.losses[0] if len(region.losses) == 1 else None
    loss = dotted(only) if only is not None else ""
    top = function.node if function is not None else view.file.source.tree
    skipped = {id(n) for s in region.inside for n in ast.walk(s)}
    skipped |= {id(n) for m in region.group.marks for n in ast.walk(m.statement)}
    read = {
        u.name
        for u in uses_below(top, own)
        if not u.stored and id(u.node) not in skipped and _reached(view, u, region, own)
    }
    free = _free(view, region, function, own)
    read |= {n for n in free if _comes_round(view, n, region, function, own)}
    return tuple(n for n in bound if (n in read or "." in n) and n != loss)


def _comes_round(
    view: View, name: str, region: Region, function: Function | None, own: str
) -> bool:
    """Return whether the region may read in its next round what a name has behind it."""
    if function is not None and name in function.globals:
        return True
    facts = view.inference.facts(view.file.path)
    behind = region.group.backwards[-1].statement
    every = (u for n in (*region.inside, *region.losses) for u in uses(n, own) if u.name == name)
    return any(facts.carries(name, behind, u.node) for u in every)


def _written_into(view: View, item: ast.stmt) -> set[str]:
    """Return the variables whose Tensors a statement changes in place: ``label.fill_(0)``."""
    calls = (n.func for n in ast.walk(item) if isinstance(n, ast.Call))
    methods = (f for f in calls if isinstance(f, ast.Attribute) and f.attr.endswith("_"))
    return {
        f.value.id
        for f in methods
        if isinstance(f.value, ast.Name)
        and not f.attr.endswith("__")
        and f.attr != "requires_grad_"
        and view.atoms(f.value) <= {"Tensor"}
    }


def uses_below(top: ast.AST, own: str) -> Iterator[Use]:
    for block in blocks(top):
        for item in block:
            yield from uses(item, own)


def _reached(view: View, use: Use, region: Region, own: str) -> bool:
    """Return whether a read may see what the region bound."""
    facts = view.inference.facts(view.file.path)
    return any(
        use.name in _written_into(view, item)  # the same Tensor as in front of it
        or (use.name in binds([item], own) and facts.carries(use.name, item, use.node))
        for item in region.inside
    )


def by_calls(view: View, name: str, function: Function | None, own: str) -> bool:
    """Whether functions change a name that is not theirs: ``self.weight``, a global."""
    if not name.startswith(own + "."):
        nodes = (n for n in view.file.nodes if isinstance(n, (ast.Global, ast.Nonlocal)))
        return any(name in n.names for n in nodes)
    method = method_of(function)
    if method is None or method.owner is None:
        return False
    storing = method.owner.stores.get(name.removeprefix(own + "."), [])
    return any(s.name != "__init__" for s in storing)


def attribute(loop: ast.stmt | None, nodes: Iterable[ast.AST], made: Collection[str] = ()) -> str:
    """An attribute of an object that the loop writes and the loss reads: ``config.weight``."""
    if loop is None:
        return ""
    chains = (n for n in ast.walk(loop) if isinstance(n, ast.Attribute))
    stored = {dotted(n) for n in chains if isinstance(n.ctx, ast.Store)} - {""}
    read = {dotted(n) for item in nodes for n in ast.walk(item) if isinstance(n, ast.Attribute)}
    return next(iter(sorted((stored & read) - {*made})), "")


def drawn(view: View, nodes: Iterable[ast.AST]) -> int:
    """The line where numpy or ``random`` draws inside of the loss; 0 for none.

    A compiled Cell would draw once and for all.
    """
    for call in (n for item in nodes for n in ast.walk(item) if isinstance(n, ast.Call)):
        seen = [call.func, *([call.func.value] if isinstance(call.func, ast.Attribute) else [])]
        names = {a.name for n in seen for a in view.kind(n) if a.kind in ("foreign", "instance")}
        if any(n.startswith(("numpy.random", "random.")) or n == "random" for n in names):
            return call.lineno
        if isinstance(call.func, ast.Attribute) and _draws(view, dotted(call.func.value)):
            return call.lineno
    return 0


def _draws(view: View, name: str) -> bool:
    """Whether a name is bound to a generator of numpy's or of ``random``."""
    for node in view.file.nodes:
        if isinstance(node, ast.Assign) and name and name in {dotted(t) for t in node.targets}:
            made = dotted(node.value.func) if isinstance(node.value, ast.Call) else ""
            if made.startswith(("np.random.", "numpy.random.", "random.")):
                return True
    return False


_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_CALLABLE = {"Module", "function", "class", "partial", "method", "callable", "Object", "ref"}
_BATCH = {"Tensor", "list", "tuple", "dict"}


@dataclass(frozen=True)
class Variables:
    """The names of a region, each once, in the order of their first use.

    ``held`` become members of the loss Cell, ``given`` its inputs, ``extra`` further results.
    ``loop`` is the outermost loop in front of which the Cell can be built (None: no loop). ``late``
    are held and bound between the statements of the step: it is built behind them.
    """

    held: tuple[str, ...]
    given: tuple[str, ...]
    extra: tuple[str, ...]
    loop: ast.stmt | None
    late: tuple[str, ...] = ()


def variables(
    view: View, region: Region, function: Function | None, own: str
) -> Variables | Unclear:
    """Sort the names that a region reads without binding them."""
    nodes = [*region.again, *region.inside, *region.losses]
    free = _free(view, region, function, own)
    fixed = {n for n in free if _is_fixed(view, n, nodes, own)}
    loops = _loops(view, region)
    optimizers = {*region.group.optimizers, region.group.scaler} - {""}
    needed = fixed | optimizers
    bound = function.locals if function is not None else set()
    roots = {r for n in needed if (r := n.partition(".")[0]) in bound}
    loop = _outermost(view, region, loops, (fixed, optimizers, roots), own)
    changing = changed_in(loop, own) if loop is not None else _bound_between(region, own)
    late = (fixed | ({region.group.scaler} - {""})) & changing
    cleared = any(z.on[-1:] == (loops[0],) for z in region.group.zeros) if loops else True
    if loop is None and not (cleared or region.group.fused or region.group.by_hand):
        name = sorted(fixed & changed_in(loops[0], own) | {*optimizers})[0]
        return Unclear(region.group.backwards[0], f"gradients add up, and the loop binds {name}")
    alone = loop is None and region.condition is None and not region.group.apart
    if late and not (alone and all(_is_bound_once(view, region, n, own) for n in late)):
        name = sorted(late)[0]
        return Unclear(region.group.backwards[0], f"{name} is bound anew before every step")
    reason = _fleeting(view, region, nodes, loop, function, binds(region.inside, own) - {*free})
    if reason:
        return Unclear(region.group.backwards[0], reason)
    if lost := computed.outside(view, region.group, nodes, free, function, own):
        why = f"{lost} is computed by a Module outside of the step, out of reach of the gradient"
        return Unclear(region.group.backwards[0], why)
    local, rebound = function is not None, binds(region.inside, own)
    rebound = rebound.union(*(_written_into(view, item) for item in region.inside))
    held, given = [], []
    for name in free:
        varies = name in changing or by_calls(view, name, function, own)
        known = _is_global(name, function) and (local or not _is_data(view, name))
        if known and (name in fixed or not varies):
            continue
        varies = varies or name in rebound or _is_batch(view, name, nodes, own)
        if name in fixed or not varies:
            held.append(name)
        else:
            given.append(name)
    extra = results(view, region, function, own)
    return Variables(tuple(held), tuple(given), extra, loop, tuple(late))


def takes_numbers(view: View, region: Region, names: Variables, own: str) -> bool:
    """Return whether an input of the loss Cell is known to be, or to hold, more than Tensors."""
    nodes = [*region.again, *region.inside, *region.losses]
    every = (u for n in nodes for u in uses(n, own) if u.name in names.given and not u.stored)
    return any({a.kind for a in view.kind(u.node)} - {"Tensor", "unknown"} for u in every)


def _is_bound_once(view: View, region: Region, name: str, own: str) -> bool:
    """``criterion = nn.MSELoss()`` in front of the step, and nowhere else in its function."""
    here = [s for s in region.block[: region.last] if name in binds([s], own)]
    node: ast.AST = region.block[0]
    while not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Module)):
        node = view.file.parents[id(node)]
    everywhere = [u for u in uses_below(node, own) if u.stored and u.name == name]
    plain = len(here) == 1 and isinstance(here[0], ast.Assign) and here[0] not in region.moved
    return plain and len(everywhere) == 1


def _bound_between(region: Region, own: str) -> set[str]:
    """What the block binds behind the place where, without a loop, the step is built."""
    gone = {id(m.statement) for m in region.group.marks} | {id(s) for s in region.inside}
    first = next((i for i, s in enumerate(region.block) if id(s) in gone), region.last)
    return binds([s for s in region.block[first : region.last] if id(s) not in gone], own)


def _fleeting(
    view: View,
    region: Region,
    nodes: list[ast.AST],
    loop: ast.stmt | None,
    function: Function | None,
    made: Collection[str],
) -> str:
    """Why a Cell that is built once would miss a change; what the step itself makes is none."""
    name = attribute(loop, nodes, made)
    if name:
        return f"{name} changes from step to step; bind it to a variable of its own in the loop"
    line = drawn(view, nodes)
    if line:
        return f"line {line} draws random numbers in a branch of the loss; draw them in front of it"
    known = freezing.of(view)
    if region.group.by_hand:
        run = (*region.inside, *region.moved)
        line = next((s.lineno for s in run if known.switches_below(view, s)), 0)
    else:
        line = known.line(view, region.group, function)
    return f"line {line} changes which weights train while they do" if line else ""


def _free(view: View, region: Region, function: Function | None, own: str) -> list[str]:
    """What the region reads before it binds it, in the order of the text."""
    found: list[str] = []
    outside = _bound_outside(view, region, function, own)
    _read_first(view, [*region.again, *region.inside, *region.losses], set(), found, outside, own)
    return list(dict.fromkeys(found))


def _read_first(
    view: View,
    items: Sequence[ast.stmt | ast.expr],
    bound: set[str],
    found: list[str],
    outside: set[str],
    own: str,
) -> None:
    """Go through statements, those of with-blocks, loops and branches as well.

    What only one branch binds counts as bound where nothing outside of the region binds it.
    """
    for item in items:
        if isinstance(item, ast.If):
            _read_first(view, [item.test], bound, found, outside, own)
            ends = [set(bound), set(bound)]
            for block, end in zip((item.body, item.orelse), ends, strict=True):
                _read_first(view, block, end, found, outside, own)
            bound |= (ends[0] & ends[1]) | ((ends[0] | ends[1]) - outside)
        elif isinstance(item, ast.With):
            contexts = [i.context_expr for i in item.items if not removed(view, i.context_expr)]
            _read_first(view, contexts, bound, found, outside, own)
            _read_first(view, item.body, bound, found, outside, own)
        elif isinstance(item, (ast.For, ast.AsyncFor)):
            _read_first(view, [item.iter, item.target], bound, found, outside, own)
            _read_first(view, [*item.body, *item.orelse], bound, found, outside, own)
        else:
            read = [u.name for u in uses(item, own) if not u.stored]
            read += sorted(reads([item], own) - set(read))
            found += [n for n in read if n not in bound]
            bound |= binds([item], own)


def _bound_outside(view: View, region: Region, function: Function | None, own: str) -> set[str]:
    """The names that the function binds somewhere else than in the region; attributes of self."""
    top = function.node if function is not None else view.file.source.tree
    inside = {id(n) for s in region.inside for n in ast.walk(s)}
    found = {u.name for u in uses_below(top, own) if u.stored and id(u.node) not in inside}
    found |= {u.name for s in region.inside for u in uses(s, own) if u.name.startswith(f"{own}.")}
    return found | {p.arg for p in function.parameters} if function is not None else found


def _is_fixed(view: View, name: str, nodes: list[ast.AST], own: str) -> bool:
    """A Module, a loss, a function: what a Cell holds rather than takes."""
    if name in models(view, nodes, own):
        return True
    for use in (u for n in nodes for u in uses(n, own)):
        if use.name != name:
            continue
        if view.atoms(use.node) & _CALLABLE and not view.atoms(use.node) & _BATCH:
            return True
        parent = view.file.parents.get(id(use.node))
        if isinstance(parent, ast.Call) and parent.func is use.node:
            return True
    return False


def _is_global(name: str, function: Function | None) -> bool:
    """Whether a class at the top level of the file sees the name as well."""
    if "." in name:
        return False
    return function is None or not any(name in outer.locals for outer in function.outwards)


def _is_data(view: View, name: str) -> bool:
    """In a script: a variable, neither an import nor a definition nor a builtin."""
    bound = {
        n.id for n in view.file.nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
    }
    return name in bound


def _is_batch(view: View, name: str, nodes: list[ast.AST], own: str) -> bool:
    """Tensors are inputs; so is what is not known, unless it is used as settings are."""
    seen = [u.node for n in nodes for u in uses(n, own) if u.name == name]
    atoms = {a for n in seen for a in view.atoms(n)}
    around = [view.file.parents.get(id(n)) for n in seen]
    settings = all(isinstance(p, (ast.Attribute, ast.For)) for p in around)
    return bool(atoms & _BATCH) or not (atoms or settings)


def _loops(view: View, region: Region) -> list[ast.stmt]:
    """The loops of the function around a region, innermost first."""
    found: list[ast.stmt] = []
    node: ast.AST = region.block[0]
    while True:
        node = view.file.parents[id(node)]
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Module, ast.Lambda)):
            return found
        if isinstance(node, _LOOPS):
            found.append(node)


def _outermost(
    view: View,
    region: Region,
    loops: list[ast.stmt],
    names: tuple[set[str], set[str], set[str]],
    own: str,
) -> ast.stmt | None:
    """The outermost loop in front of which all is there of which the Cell is built.

    ``names`` are what it holds, the optimizers, and what of these has to be bound first where a
    condition stands around the step: ``if use_amp: scaler = GradScaler()``. What is written into
    an optimizer (``param_groups[0]["lr"] = lr``) leaves it the same object.
    """
    held, optimizers, roots = names
    facts, on = view.inference.facts(view.file.path), region.group.backwards[0].on
    found: ast.stmt | None = None
    for loop in loops:
        rebound = {u.name for u in uses(loop, own) if u.stored}
        if held & changed_in(loop, own) or optimizers & rebound:
            break
        inner = on[on.index(loop) :] if loop in on else ()
        conditional = any(isinstance(around, ast.If) for around in inner)
        if conditional and not all(facts.is_bound(n, loop) for n in roots):
            break
        found = loop
    return found


def changed_in(loop: ast.stmt, own: str) -> set[str]:
    """What a loop binds, its own variable included."""
    return binds([loop], own)
