"""Decide how a class derived from torch.autograd.Function becomes a Cell, or why it cannot.

``forward`` becomes ``construct``; ``backward`` becomes ``bprop``, which gets the inputs of the
forward, its output and the gradient. What the forward keeps in ``ctx`` is one of the inputs, the
output, or is computed again at the head of bprop by a copy of the statements it needs.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeGuard

from migrate.analysis.program import Class, Function
from migrate.sites.references import draws
from migrate.syntax.trees import FunctionNode, all_names, is_none, last_name, values_of

_QUIET = ("mark_non_differentiable",)
SAVED = ("saved_tensors", "saved_variables")


def own_nodes(function: FunctionNode | ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function, without those of functions inside it."""
    for child in ast.iter_child_nodes(function):
        yield child
        if not isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            yield from own_nodes(child)


def statements(function: ast.FunctionDef) -> list[ast.stmt]:
    """Return the statements of a method of a Function, with those of ``with torch.no_grad():``
    in its place: nothing that such a method computes is recorded anyway."""

    def flat(body: list[ast.stmt]) -> Iterator[ast.stmt]:
        for statement in body:
            if _is_unrecorded(statement):
                yield from flat(statement.body)
            else:
                yield statement

    return list(flat(function.body))


def _is_unrecorded(statement: ast.stmt) -> TypeGuard[ast.With]:
    if not isinstance(statement, ast.With) or len(statement.items) != 1:
        return False
    context = statement.items[0].context_expr
    return isinstance(context, ast.Call) and last_name(context.func) == "no_grad"


def misused(forward: ast.FunctionDef, backward: ast.FunctionDef) -> str:
    """Why some use of ctx is not understood, or ""."""
    name = forward.args.args[0].arg
    allowed = {id(n) for s in statements(forward) for n in _understood(s, name)}
    kept = {stored(s, name) for s in statements(forward)} - {""}
    loads = [n for n in ast.walk(forward) if is_attribute(n, name)]
    allowed |= {id(n.value) for n in loads if isinstance(n.ctx, ast.Load) and n.attr in kept}
    saves = [s for s in statements(forward) if call_on(s, name) == "save_for_backward"]
    stores = [stored(s, name) for s in statements(forward) if stored(s, name)]
    if len(saves) > 1 or len(stores) != len(set(stores)):
        return "ctx gets the same thing twice"
    for node in ast.walk(forward):
        if isinstance(node, ast.Name) and node.id == name and id(node) not in allowed:
            return "forward uses ctx in a way that bprop has no counterpart for"
    known = {*stores, *SAVED, "needs_input_grad"}
    name = backward.args.args[0].arg
    uses = [n for n in ast.walk(backward) if is_attribute(n, name)]
    fine = {id(n.value) for n in uses if isinstance(n.ctx, ast.Load) and n.attr in known}
    needs = {id(n.value) for n in ast.walk(backward) if isinstance(n, ast.Subscript)
             and isinstance(n.slice, ast.Constant)}  # fmt: skip
    if any(n.attr == "needs_input_grad" and id(n) not in needs for n in uses):
        return "backward looks at all of ctx.needs_input_grad"
    for node in ast.walk(backward):
        if isinstance(node, ast.Name) and node.id == name and id(node) not in fine:
            return "backward uses ctx in a way that bprop has no counterpart for"
    if not saves and any(
        isinstance(n, ast.Attribute) and n.attr in SAVED for n in ast.walk(backward)
    ):
        return "backward reads tensors that forward does not save"
    return ""


def is_attribute(node: ast.AST, ctx: str) -> TypeGuard[ast.Attribute]:
    """``ctx.something``."""
    return isinstance(node, ast.Attribute) and getattr(node.value, "id", "") == ctx


def is_read(node: ast.Attribute) -> bool:
    """Whether the attribute is looked at, not assigned to."""
    return isinstance(node.ctx, ast.Load)


def ctx_reads(function: ast.FunctionDef) -> frozenset[str]:
    """The attributes of ctx that a method reads."""
    ctx = function.args.args[0].arg
    found = [n for n in ast.walk(function) if is_attribute(n, ctx)]
    return frozenset(n.attr for n in found if isinstance(n.ctx, ast.Load))


def _understood(statement: ast.stmt, ctx: str) -> Iterator[ast.AST]:
    """The uses of ctx in a statement of forward that are understood."""
    if call_on(statement, ctx) in ("save_for_backward", *_QUIET) or stored(statement, ctx):
        first = next(n for n in ast.walk(statement) if isinstance(n, ast.Name) and n.id == ctx)
        yield first


def call_on(statement: ast.stmt, ctx: str) -> str:
    """The method of ctx that a statement calls, without keywords or stars."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return ""
    plain = not call.keywords and not any(isinstance(a, ast.Starred) for a in call.args)
    on_ctx = isinstance(call.func.value, ast.Name) and call.func.value.id == ctx
    return call.func.attr if plain and on_ctx else ""


def stored(statement: ast.stmt, ctx: str) -> str:
    """The attribute of ctx that ``ctx.attribute = value`` binds."""
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return ""
    target = statement.targets[0]
    if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name):
        return target.attr if target.value.id == ctx else ""
    return ""


def is_unpacking(statement: ast.stmt, backward: ast.FunctionDef, forward: ast.FunctionDef) -> bool:
    """``x, w = ctx.saved_tensors`` after ``ctx.save_for_backward(x, w)``; ``k = ctx.k`` too."""
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return False
    mine, theirs = backward.args.args[0].arg, forward.args.args[0].arg
    target, value = statement.targets[0], statement.value
    saved: list[ast.expr] = next(
        (s.value.args for s in forward.body  # type: ignore[attr-defined]
         if call_on(s, theirs) == "save_for_backward"), [],
    )  # fmt: skip
    names = [getattr(a, "id", "") for a in saved]
    if isinstance(value, ast.Subscript) and isinstance(value.slice, ast.Constant):
        index = value.slice.value
        inside = isinstance(index, int) and -len(names) <= index < len(names)
        names = [names[index]] if inside and isinstance(index, int) else []
        value = value.value
        targets: list[ast.expr] = [target]
    elif isinstance(target, (ast.Tuple, ast.List)):
        targets = target.elts
    else:
        attribute = value.attr if isinstance(value, ast.Attribute) else ""
        named = (s for s in statements(forward) if attribute and stored(s, theirs) == attribute)
        kept = next((s.value for s in named), None)  # type: ignore[attr-defined]
        names = [getattr(kept, "id", "")]
        saved_all = attribute in SAVED
        targets = [] if saved_all or not attribute else [target]
    on_ctx = isinstance(value, ast.Attribute) and getattr(value.value, "id", "") == mine
    return on_ctx and bool(names[0:]) and [getattr(t, "id", "-") for t in targets] == names


def changed(statement: ast.AST) -> set[str]:
    """The names that a statement binds, and those whose tensors it changes."""
    found = set()
    for node in ast.walk(statement):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
    return found | altered(statement)


def altered(statement: ast.AST) -> set[str]:
    """The names whose tensors it changes in place."""
    found = set()
    for node in ast.walk(statement):
        target: ast.AST | None = None
        if isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
            target = node.value
        elif isinstance(node, ast.AugAssign):
            target = node.target
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            in_place = node.func.attr.endswith("_") and not node.func.attr.startswith("_")
            target = node.func.value if in_place else None
        while isinstance(target, (ast.Attribute, ast.Subscript)):
            target = target.value
        if isinstance(target, ast.Name):
            found.add(target.id)
    return found


FUNCTION = ("torch.autograd.Function", "torch.autograd.function.Function")
_OTHER_FORMS = ("setup_context", "vmap", "jvp")
_RANDOM = ("rand", "bernoulli", "normal", "multinomial", "dropout", "uniform", "exponential")


@dataclass(frozen=True)
class Blueprint:
    """``names`` says what the backward's ``ctx.attribute`` is called in bprop; ``saved`` the items
    of ``ctx.saved_tensors`` (an input, the output or a copy), ``bundle`` the name that holds them
    all where one is none of these. ``head`` are the forward's statements that bprop repeats,
    ``read`` the attributes of ctx that forward itself reads, ``held`` the second names of inputs
    whose own name gets another value."""

    forward: ast.FunctionDef
    backward: ast.FunctionDef
    inputs: tuple[str, ...]
    outputs: int
    grads: tuple[str, ...]
    out: str
    bundle: str
    saved: tuple[str, ...]
    names: dict[str, str]
    head: tuple[ast.stmt, ...]
    read: frozenset[str]
    held: dict[str, str]

    @property
    def ctx(self) -> tuple[str, str]:
        """The first parameters of forward and backward."""
        return self.forward.args.args[0].arg, self.backward.args.args[0].arg


def blueprint(owner: Class) -> Blueprint | str:
    """The plan for one class, or the reason why there is none."""
    pair = _methods(owner)
    if isinstance(pair, str):
        return pair
    forward, backward = pair
    why = _signatures(forward, backward) or misused(forward, backward)
    if why:
        return why
    inputs = tuple(a.arg for a in forward.args.args[1:])
    outputs = _outputs(forward)
    grads = tuple(a.arg for a in backward.args.args[1:])
    if isinstance(outputs, str):
        return outputs
    if grads and len(grads) != outputs:
        return f"forward returns {outputs} values, and backward takes {len(grads)} gradients"
    if set(grads) & set(inputs):
        return "an input and a gradient have the same name"
    taken = all_names(backward) | {*inputs, *grads}
    out = next(n for n in ("out", "output", "result", "outcome", "out_") if n not in taken)
    bundle = next(n for n in ("saved", "kept", "saved_values", "saved_") if n not in taken)
    return _kept(_Pair(forward, backward, inputs, outputs, grads, out), bundle)


def _methods(owner: Class) -> tuple[ast.FunctionDef, ast.FunctionDef] | str:
    if len(owner.node.bases) != 1 or owner.node.keywords:
        return "the class has other bases as well"
    other = [n for n in _OTHER_FORMS if n in owner.methods]
    if other:
        return f"it defines {other[0]}"
    found = [owner.methods.get(name) for name in ("forward", "backward")]
    nodes = [f.node for f in found if f is not None and _is_static(f)]
    if len(nodes) != 2 or not all(isinstance(n, ast.FunctionDef) for n in nodes):
        return "forward and backward have to be static methods of the class itself"
    first, second = nodes
    assert isinstance(first, ast.FunctionDef) and isinstance(second, ast.FunctionDef)
    return first, second


def _is_static(function: Function) -> bool:
    return function.decorated("staticmethod")


def _signatures(forward: ast.FunctionDef, backward: ast.FunctionDef) -> str:
    a, b = forward.args, backward.args
    if any(f.body[0].lineno == f.lineno for f in (forward, backward)):
        return "its methods have to begin on lines of their own"
    constant = all(isinstance(d, ast.Constant) for d in a.defaults)
    if a.vararg or a.kwarg or a.kwonlyargs or a.posonlyargs or len(a.args) < 2 or not constant:
        return "bprop needs every input of forward by name"
    if b.kwarg or b.kwonlyargs or b.defaults or b.posonlyargs or not b.args:
        return "backward has to take ctx and the gradients"
    if (len(b.args) == 1) != (b.vararg is not None):
        return "backward has to take ctx and the gradients"
    return ""


def _outputs(forward: ast.FunctionDef) -> int | str:
    """How many values forward returns."""
    sizes = set()
    for node in own_nodes(forward):
        if isinstance(node, ast.Return):
            if node.value is None:
                return "forward returns nothing"
            sizes.add(len(node.value.elts) if isinstance(node.value, ast.Tuple) else 1)
    if len(sizes) != 1 or (1 in sizes and _returned(forward) is None and _has_tuple(forward)):
        return "the number of values that forward returns is not fixed"
    return sizes.pop()


def _has_tuple(forward: ast.FunctionDef) -> bool:
    return any(
        isinstance(n, ast.Return) and isinstance(n.value, ast.Tuple) for n in own_nodes(forward)
    )


def _returned(forward: ast.FunctionDef) -> list[str] | None:
    """The names that every return gives, in order; None when they are no plain names."""
    found: list[list[str]] = []
    for node in own_nodes(forward):
        if isinstance(node, ast.Return) and node.value is not None:
            values = values_of(node.value)
            found.append([getattr(v, "id", "") for v in values])
    return found[0] if found and all(f == found[0] for f in found) and any(found[0]) else None


@dataclass(frozen=True)
class _Pair:
    """Forward and backward, and the names that bprop has for what they deal with."""

    forward: ast.FunctionDef
    backward: ast.FunctionDef
    inputs: tuple[str, ...]
    outputs: int
    grads: tuple[str, ...]
    out: str

    @property
    def ctx(self) -> str:
        return self.forward.args.args[0].arg

    def later(self, statement: ast.stmt) -> set[str]:
        """What forward changes after a statement."""
        body = statements(self.forward)
        return {n for s in body[body.index(statement) + 1 :] for n in changed(s)}


def _kept(pair: _Pair, bundle: str) -> Blueprint | str:
    used = ctx_reads(pair.backward)
    written = _bound_in(pair.backward, pair.forward)
    taken = written | changed(pair.forward) | {*pair.inputs, *pair.grads}
    saved: tuple[str, ...] = ()
    names: dict[str, str] = {}
    wanted: list[ast.stmt] = []
    for statement in statements(pair.forward):
        attribute = stored(statement, pair.ctx)
        if call_on(statement, pair.ctx) == "save_for_backward":
            values = statement.value.args if used & set(SAVED) else []  # type: ignore[attr-defined]
        else:
            values = [statement.value] if attribute in used - {""} else []  # type: ignore[attr-defined]
        found = [_named(pair, v, statement, written) for v in values]
        wanted += [statement] if not all(copied == "" for _, copied in found) else []
        texts = tuple(text for text, _ in found)
        if attribute and texts:
            usual = f"ctx_{attribute}" if attribute in taken else attribute
            names[attribute] = texts[0] or usual
        elif texts:
            saved = texts
    head = _head(pair.forward, wanted, pair.inputs, pair.ctx)
    if isinstance(head, str):
        return head
    why = _unsuited(pair.forward, pair.backward, head, pair.inputs)
    held = _held(pair.backward, head, pair.inputs, written)
    read = ctx_reads(pair.forward)
    return why or Blueprint(
        pair.forward, pair.backward, pair.inputs, pair.outputs, pair.grads, pair.out, bundle,
        saved, names, head, read, held,
    )  # fmt: skip


def _named(pair: _Pair, value: ast.expr, statement: ast.stmt, written: set[str]) -> tuple[str, str]:
    """(the name of a saved value in bprop or "", "copied" when statements must be repeated)."""
    later = pair.later(statement)
    text = _at_hand(pair, value, written, later)
    if text:
        return text, ""
    name = getattr(value, "id", "")
    return (name if name not in written | later else ""), "copied"


def _unsuited(
    forward: ast.FunctionDef,
    backward: ast.FunctionDef,
    head: tuple[ast.stmt, ...],
    inputs: tuple[str, ...],
) -> str:
    """Why the returns of backward, or the copies, cannot stand in bprop as they are; or ""."""
    if head and forward.body[0].col_offset != backward.body[0].col_offset:
        return "forward and backward are indented differently"
    for node in own_nodes(backward):
        if not isinstance(node, ast.Return):
            continue
        if node.value is None or (not isinstance(node.value, ast.Tuple) and len(inputs) > 1):
            return "backward has to return one value for every input of forward"
        values = values_of(node.value)
        if any(isinstance(v, ast.Starred) for v in values) or len(values) < len(inputs):
            return "backward has to return one value for every input of forward"
        if not all(is_none(v) for v in values[len(inputs) :]):
            return "backward returns more gradients than forward has inputs"
    return ""


def _held(
    backward: ast.FunctionDef,
    head: tuple[ast.stmt, ...],
    inputs: tuple[str, ...],
    written: set[str],
) -> dict[str, str]:
    """The inputs whose name has another value where a gradient of their shape is returned, and
    the name under which bprop holds them from the start."""
    rebound = written.union(*(changed(s) for s in head))
    taken = all_names(backward) | {*inputs, *rebound}
    found = {}
    for node in own_nodes(backward):
        if isinstance(node, ast.Return) and node.value is not None:
            values = values_of(node.value)
            for name, value in zip(inputs, values, strict=False):
                if name in rebound and (is_none(value) or isinstance(value, ast.Name)):
                    usual = f"{name.rstrip('_')}_given"
                    found[name] = usual if usual not in taken else f"{usual}_"
    return found


def _bound_in(backward: ast.FunctionDef, forward: ast.FunctionDef) -> set[str]:
    """The names that backward binds, unless to the very value that was saved under that name."""
    same = set()
    for statement in backward.body:
        if is_unpacking(statement, backward, forward):
            same |= {id(n) for n in ast.walk(statement)}
    return {
        n.id
        for n in ast.walk(backward)
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store) and id(n) not in same
    }


def _at_hand(pair: _Pair, value: ast.expr, written: set[str], later: set[str]) -> str:
    """The name under which bprop has the value anyway: an input, the output; "" otherwise."""
    name = getattr(value, "id", "")
    returned = _returned(pair.forward) or []
    if name in pair.inputs and name not in changed(pair.forward) | written:
        return name
    if name and name in returned and name not in later:
        return pair.out if pair.outputs == 1 else f"{pair.out}[{returned.index(name)}]"
    return repr(value.value) if isinstance(value, ast.Constant) else ""


def _head(
    forward: ast.FunctionDef, wanted: list[ast.stmt], inputs: tuple[str, ...], ctx: str
) -> tuple[ast.stmt, ...] | str:
    """The statements of forward that bprop repeats, in order, or why it cannot."""
    chosen = list(wanted)
    needed = {n for s in wanted for n in all_names(s)} - {ctx}
    body = statements(forward)
    last = max((body.index(s) for s in wanted), default=-1)
    for statement in reversed(body[: last + 1]):
        if statement in wanted:
            value = getattr(statement, "value", statement)
            if stored(statement, ctx) and ctx in {getattr(n, "id", "") for n in ast.walk(value)}:
                return "what it saves depends on what it saved before"
            continue
        if not changed(statement) & needed:
            continue
        if altered(statement) & set(inputs):
            return "forward changes an input in place before it saves what depends on it"
        uses = all_names(statement)
        if ctx in uses or any(isinstance(n, ast.Return) for n in ast.walk(statement)):
            return "what it saves is not computed by plain statements"
        chosen.append(statement)
        needed |= uses
    if any(_is_random(s) for s in chosen):
        return "bprop would have to draw the random numbers of forward again; return them instead"
    return tuple(sorted(chosen, key=body.index))


def _is_random(statement: ast.stmt) -> bool:
    """Return whether a statement may draw, by a name of torch, of numpy or of the program."""
    names = [n for n in ast.walk(statement) if isinstance(n, (ast.Attribute, ast.Name))]
    return any(draws(n) or last_name(n).lower().startswith(_RANDOM) for n in names)
