"""In: an analysed file. Out: edits by which a step computes again what a list has kept for it.

``policy.log_probs.append(m.log_prob(action))`` in one function, and the sum of the list in the loss
of another: torch goes back through what each call recorded, MindSpore differentiates functions. The
list gets what the values were computed from instead (the state, the action that was drawn), and the
step computes them by a function of the same statements. That is the same as long as no weight
changes in between and nothing in it draws: the list is emptied behind the only update.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from migrate.analysis.program import Function
from migrate.records.outcomes import Edit, Span
from migrate.rules.mode_dependence import Dependence
from migrate.sites.references import draws
from migrate.syntax.lines import above, indent_of, next_line, shares_line
from migrate.syntax.trees import dotted
from migrate.training.detached import is_constant
from migrate.training.effects import binds, changed, free, reads
from migrate.training.lines import edit
from migrate.training.marks import Act, View, marks
from migrate.training.modules import kept, models, run_by_calls

_CUT = frozenset(("sample", "detach", "item", "multinomial", "argmax"))
_DRAWING = frozenset(("sample", "rsample", "multinomial"))
_PLAIN = frozenset("Tensor int float bool".split())


@dataclass(frozen=True)
class _Filled:
    """A list that one statement fills, and the function whose step reads it."""

    name: str
    function: Function
    statement: ast.stmt
    value: ast.expr
    step: Function
    read: tuple[ast.Attribute, ...]


def remade(view: View) -> list[Edit]:
    """Return the edits of a file; [] where no list is known to be read by one step alone."""
    if _depends(view):
        return []
    taken = set(view.file.names) | {n.id for n in view.file.of(ast.Name)}
    taken |= {n.attr for n in view.file.of(ast.Attribute)}
    found: list[Edit] = []
    for held in _lists(view):
        own = _own(held.function)
        cut = _slice(view, held, own)
        if cut is not None:
            found += _edits(view, held, cut, own, taken)
    return found


def _depends(view: View) -> bool:
    """Return whether a Module may compute something else when it is asked again.

    It draws, moves statistics, asks for its mode, keeps something, or reads what others write.
    """
    modes = Dependence(view.inference)
    for file in view.neighbours:
        built = (n for n in file.of(ast.Call) if isinstance(n, ast.Call))
        if any(modes.depends(file, n) for n in built if _is_module(view, n)):
            return True
    left, run = kept(view), run_by_calls(view)
    if left.attributes or left.variables or any(draws(n) for f in run for n in f.nodes):
        return True
    asked = {n.attr for f in run for n in f.nodes if isinstance(n, ast.Attribute)}
    stored = {
        n.attr
        for file in view.neighbours
        for n in file.of(ast.Attribute)
        if not isinstance(n.ctx, ast.Load)
        and getattr(file.function_at(n), "name", "") != "__init__"
    }
    return "training" in asked or bool(asked & stored)


def _is_module(view: View, call: ast.Call) -> bool:
    return any(atom.kind in ("class", "ref") for atom in view.inference.kind(call.func)) and any(
        atom.kind == "Module" for atom in view.inference.kind(call)
    )


def _own(function: Function) -> str:
    return function.parameters[0].arg if function.owner and function.parameters else "-"


# -- lists ---------------------------------------------------------------------------------------


def _lists(view: View) -> Iterator[_Filled]:
    steps = [f for f in view.file.functions.values() if _differentiates(f)]
    for function in view.file.functions.values():
        body = function.node.body
        if not isinstance(body, list) or _decorated(function) or function in steps:
            continue
        for item in body:
            call = item.value if isinstance(item, ast.Expr) else None
            func = call.func if isinstance(call, ast.Call) else None
            if not isinstance(func, ast.Attribute) or func.attr != "append":
                continue
            assert isinstance(call, ast.Call)
            held = func.value
            if len(call.args) != 1 or call.keywords or shares_line(view.file.source, item):
                continue
            if isinstance(held, ast.Attribute) and dotted(held):
                step = next((s for s in steps if _is_step_of(view, s, function, held)), None)
                if step is not None:
                    read = tuple(_read_in(step, held.attr))
                    yield _Filled(dotted(held), function, item, call.args[0], step, read)


def _decorated(function: Function) -> bool:
    return bool(getattr(function.node, "decorator_list", ()))


def _differentiates(function: Function) -> bool:
    return any(isinstance(n, ast.Attribute) and n.attr == "backward" for n in function.nodes)


def _read_in(step: Function, name: str) -> Iterator[ast.Attribute]:
    for node in step.nodes:
        if isinstance(node, ast.Attribute) and node.attr == name:
            yield node


def _is_step_of(view: View, step: Function, function: Function, held: ast.Attribute) -> bool:
    """Return whether a function reads all of a list for the one update, and empties it behind.

    Else the list is only filled, by one statement, and bound to empty lists.
    """
    name, body = dotted(held), step.node.body
    if not isinstance(body, list) or _decorated(step):
        return False
    root = name.partition(".")[0]
    if _own(function) == root or _own(step) == root:
        if function.owner is not step.owner or _own(function) != _own(step):
            return False
    elif root in function.locals | step.locals:
        return False
    acts = marks(view, body)
    updates = [m for m in acts if m.act is Act.STEP]
    backwards = [m for m in acts if m.act is Act.BACKWARD]
    looped = any(isinstance(o, ast.For | ast.While) for m in backwards for o in m.on)
    if len(backwards) != 1 or looped or not updates:
        return False
    last = max(m.statement.lineno for m in updates)
    if any(_updates(View(f, view.inference), f.function_at, step) for f in view.neighbours):
        return False
    emptied = False
    for file in view.neighbours:
        for node in (n for n in file.of(ast.Attribute) if n.attr == held.attr and n is not held):
            inside = file is view.file and file.function_at(node) is step
            if _is_emptied(file.parents, node):
                emptied |= inside and node.lineno > last
                continue
            around = file.parents.get(id(node))
            read = isinstance(node.ctx, ast.Load) and not isinstance(around, ast.Attribute)
            if not inside or not read or dotted(node) != name or node.lineno > last:
                return False
    return emptied


def _updates(view: View, function_at: Callable[[ast.AST], Function | None], step: Function) -> bool:
    """Return whether a file may update weights elsewhere than in the step."""
    for call, _ in view.file.calls.get("step", ()):
        if not isinstance(call.func, ast.Attribute) or function_at(call) is step:
            continue
        receiver = call.func.value
        if view.is_optimizer(receiver) or not (call.args or call.keywords or view.atoms(receiver)):
            return True
    return False


def _is_emptied(parents: dict[int, ast.AST], node: ast.Attribute) -> bool:
    """Return whether a list is bound to an empty one, or loses all that is in it."""
    around = parents.get(id(node))
    if isinstance(around, ast.Subscript):  # ``del policy.rewards[:]``
        whole = isinstance(around.slice, ast.Slice) and ast.unparse(around.slice) == ":"
        return whole and isinstance(around.ctx, ast.Del)
    if isinstance(around, ast.Attribute):
        return around.attr == "clear"
    if isinstance(node.ctx, ast.Load):
        return False
    place = 0
    if isinstance(around, ast.Tuple):
        place, around = around.elts.index(node), parents.get(id(around))
        value = around.value if isinstance(around, ast.Assign) else None
        value = value.elts[place] if isinstance(value, ast.Tuple) else None
    else:
        value = around.value if isinstance(around, ast.Assign | ast.AnnAssign) else None
    return isinstance(value, ast.List) and not value.elts


# -- what a value is computed from ----------------------------------------------------------------


@dataclass(frozen=True)
class _Cut:
    inside: tuple[ast.stmt, ...]
    given: tuple[str, ...]
    copied: frozenset[str]


def _slice(view: View, held: _Filled, own: str) -> _Cut | None:
    """Return the statements that compute a value by Modules, and the variables they start from."""
    function, body = held.function, held.function.node.body
    assert isinstance(body, list)
    front = body[: body.index(held.statement)]
    touched: set[str] = set()
    through: list[ast.stmt] = []
    for item in front:
        found = bool(models(view, [item], own)) or bool(reads([item], own) & touched)
        if found and not _is_cut(item) and not is_constant(view, item, own):
            through.append(item)
            touched |= binds([item], own)
        else:
            touched -= binds([item], own)
    inside: list[ast.stmt] = []
    needed = reads([held.value], own)
    if not needed & touched or _gives_cut(held.value):
        return None
    given: set[str] = set()
    for item in reversed(front):
        bound = binds([item], own)
        if not bound & needed:
            continue
        if item not in through:
            given |= bound & needed
            needed -= bound
            continue
        if not _is_plain(view, item) or bound & given:
            return None
        inside.insert(0, item)
        needed = (needed - bound) | reads([item], own)
    every = [n for s in (*inside, held.value) for n in ast.walk(s)]
    if any(draws(n) or getattr(n, "attr", "") in _DRAWING for n in every):
        return None
    mine = {n.partition(".")[0] for n in needed | given} & (function.locals - {own})
    made = [n for s in inside for n in binds([s], own)]
    if len(made) != len(set(made)) or not (inside or models(view, [held.value], own)):
        return None
    if any(
        not _is_steady(view, n, function, own) for n in needed if n.partition(".")[0] not in mine
    ):
        return None
    for place, item in enumerate(front):  # what is handed on has to be what they have read
        before = [s for s in inside if front.index(s) < place]
        if item not in inside and changed(item, own) & mine & reads(before, own):
            return None
    return _Cut(tuple(inside), tuple(sorted(mine)), frozenset(_copied(view, held, mine)))


def _is_steady(view: View, name: str, function: Function, own: str) -> bool:
    """Return whether what is no variable of the function is bound once: a setting, a Module."""
    root, _, attribute = name.partition(".")
    if root == own:
        stores = function.owner.stores.get(attribute, []) if function.owner is not None else []
        return all(s.name == "__init__" for s in stores)
    nodes = [n for n in view.file.of(ast.Name) if n.id == root and isinstance(n.ctx, ast.Store)]
    outer = [n for n in nodes if view.file.function_at(n) is None]
    declared = any(root in n.names for n in view.file.nodes if isinstance(n, ast.Global))
    return len(outer) <= 1 and not declared and not any(_is_looped(view, n) for n in outer)


def _is_looped(view: View, node: ast.AST) -> bool:
    around = view.file.parents.get(id(node))
    while around is not None and not isinstance(around, ast.For | ast.While):
        around = view.file.parents.get(id(around))
    return around is not None


def _is_cut(item: ast.stmt) -> bool:
    """Return whether no gradient goes through what a statement binds: ``action = m.sample()``."""
    return isinstance(item, ast.Assign) and _gives_cut(item.value)


def _gives_cut(value: ast.expr) -> bool:
    func = value.func if isinstance(value, ast.Call) else None
    return isinstance(func, ast.Attribute) and func.attr in _CUT


def _is_plain(view: View, item: ast.stmt) -> bool:
    """Return whether a statement does nothing but bind variables."""
    if not isinstance(item, ast.Assign) or shares_line(view.file.source, item):
        return False
    targets = [n for t in item.targets for n in ast.walk(t)]
    odd = ast.NamedExpr | ast.Await | ast.Yield | ast.YieldFrom | ast.Lambda
    return all(isinstance(n, ast.Name | ast.Tuple | ast.Store) for n in targets) and not any(
        isinstance(n, odd) for n in ast.walk(item.value)
    )


def _copied(view: View, held: _Filled, names: set[str]) -> Iterator[str]:
    """Yield the variables that may hold memory of others, who may write into it later."""
    for name in names:
        reading = [n for n in held.function.nodes if isinstance(n, ast.Name) and n.id == name]
        if not all(view.atoms(n) and view.atoms(n) <= _PLAIN for n in reading):
            yield name


# -- the edits ------------------------------------------------------------------------------------


def _edits(view: View, held: _Filled, cut: _Cut, own: str, taken: set[str]) -> Iterator[Edit]:
    source, last = view.file.source, held.name.rpartition(".")[2]
    method = own != "-"
    makes, kept_as, made = (free(n, taken) for n in (f"{last}_of", f"kept_{last}", f"all_{last}"))
    inputs = [f"copy.deepcopy({n})" if n in cut.copied else n for n in cut.given]
    yield edit(
        source, source.span(held.value), (f"({', '.join(inputs)}{',' * (len(inputs) == 1)})",)
    )
    indent = indent_of(source, held.function.node)  # type: ignore[arg-type]
    inner = indent_of(source, held.statement)
    given = ", ".join([*([own] if method else []), *cut.given])
    lines = [f"{indent}def {makes}({given}):"]
    lines += [f"{inner}{source.text_of(s)}" for s in cut.inside]
    lines += [f"{inner}return {source.text_of(held.value)}"]
    body = held.function.node.body
    assert isinstance(body, list)
    end = next_line(source, source.span(body[-1]).end)
    gap = "\n" if indent else "\n\n"
    yield edit(source, Span(end, end), (gap + "\n".join(lines) + "\n",))
    first = _statement(view, held.read, held.step)
    place, margin = above(source, first), indent_of(source, first)
    call = f"{own}.{makes}" if method else makes
    text = f"{margin}{kept_as} = list({held.name})\n"
    text += f"{margin}{made} = [{call}(*one) for one in {kept_as}]\n"
    yield edit(source, Span(place, place), (text,))
    for node in held.read:
        if not _is_emptied(view.file.parents, node):
            yield edit(source, source.span(node), (made,))
    if cut.copied and "copy" not in view.file.names:
        yield edit(source, Span(0, 0), ("import copy\n",))


def _statement(view: View, nodes: Sequence[ast.AST], step: Function) -> ast.stmt:
    """Return the first statement of a function's own block that holds one of the nodes."""
    body = step.node.body
    assert isinstance(body, list)
    inside = {id(n) for n in nodes if not _is_emptied(view.file.parents, n)}  # type: ignore[arg-type]
    return next(s for s in body if any(id(n) in inside for n in ast.walk(s)))
