"""In: a class derived from torch.autograd.Function, and ``apply``. Out: a Cell with ``bprop``.

Where bprop has no counterpart for what the methods do (class methods, what inherits from another
Function, a ctx that is handed on), MindSpore's own ``_Function`` takes them as they stand: it has
torch's ctx and ``apply``, in PyNative alone.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from migrate.analysis.program import Class
from migrate.analysis.types.inference import Inference
from migrate.analysis.types.kinds import is_all
from migrate.codegen.substitution import added, inside, piece
from migrate.records.outcomes import Edit, Outcome, Part, Piece, Refusal, Removal, Site, Span, Wrap
from migrate.rules.function_blueprint import (
    FUNCTION,
    SAVED,
    Blueprint,
    blueprint,
    call_on,
    is_attribute,
    is_read,
    is_unpacking,
    own_nodes,
    statements,
    stored,
)
from migrate.rules.registry import decides, rewrites
from migrate.sites.references import APPLY, Form
from migrate.sites.scene import Scene
from migrate.syntax.trees import all_names, is_none, values_of

_ONCE = ("torch.autograd.function.once_differentiable", "torch.amp.custom_fwd",
         "torch.amp.custom_bwd", "torch.cuda.amp.custom_fwd", "torch.cuda.amp.custom_bwd",
         "torch.amp.autocast_mode.custom_fwd", "torch.amp.autocast_mode.custom_bwd")  # fmt: skip
Parts = list["str | Piece"]


def _applies(scene: Scene, node: ast.AST, name: str) -> bool:
    """A base class Function, ``X.apply``, and decorators of the methods of such a class."""
    if name == APPLY:
        return True
    parent = scene.parent(node)
    if name in FUNCTION:
        return isinstance(parent, ast.ClassDef) and node in parent.bases
    holder = scene.parent(parent) if isinstance(parent, ast.Call) else parent
    owner = scene.owner(node)
    is_decorator = name in _ONCE and isinstance(holder, ast.FunctionDef)
    return is_decorator and owner is not None and scene.inference.is_function(owner.key)


@decides(
    Form.NAME, Form.MEMBER, Form.SETTING, Form.UNSURE, names=(APPLY, *FUNCTION, *_ONCE),
    before=("references", "modules", "members", "settings"),
)  # fmt: skip
def decide(scene: Scene, node: ast.Name | ast.Attribute, name: str) -> Edit | Refusal | None:
    """Write nn.Cell for the base class Function, and ``X()(x)`` for ``X.apply(x)``."""
    if not _applies(scene, node, name):
        return None
    site = scene.site(name, node)
    owner = _meant(scene, node) if name == APPLY else scene.owner(node)
    if isinstance(parent := scene.parent(node), ast.ClassDef):
        owner = scene.file.classes[id(parent)]
    if owner is None:
        why = "nothing tells which Function it is"
        return Refusal(site, "LOP302", why, "write a Cell with construct and bprop")
    found = planned(scene.inference, owner)
    if name == APPLY:
        assert isinstance(node, ast.Attribute)
        if isinstance(found, str):
            return Edit(site, Outcome.KEPT, None, FUNCTION[0])
        return _apply(scene, site, node, found)
    if name in FUNCTION:
        kept = "mindspore.common._grad_function._Function"
        target = kept if isinstance(found, str) else "mindspore.nn.Cell"
        text, root = scene.spelling.local(target)
        return Edit(site, Outcome.CONVERTED, (text,), name, frozenset((root,)))
    statement = scene.parent(node)
    whole = statement if isinstance(statement, ast.Call) else node
    return Edit(site.at(scene.source.span(whole)), Outcome.CONVERTED, ())


def planned(inference: Inference, owner: Class) -> Blueprint | str:
    """Return how a Function becomes a Cell, or why it stays a Function.

    Those that derive from each other are all one or all the other.
    """
    graph = inference.summaries.graph
    near = [c for c in graph.family(owner) if inference.is_function(c.key)]
    kin = {c.key: c for one in near for c in (one, *graph.derived(one))}
    plans = [blueprint(c) for c in kin.values()]
    return next((p for p in plans if isinstance(p, str)), blueprint(owner))


def _meant(scene: Scene, node: ast.AST) -> Class | None:
    """The class whose ``apply`` it is."""
    assert isinstance(node, ast.Attribute)
    keys = {a.name for a in scene.kind(node.value)}
    return scene.inference.class_of(keys.pop()) if len(keys) == 1 else None


def _apply(scene: Scene, site: Site, node: ast.Attribute, plan: Blueprint) -> Edit | Refusal:
    receiver, call = piece(scene.source, node.value), scene.parent(node)
    where = site.at(scene.source.span(node))
    made = "()" if any(a.kind == "class" for a in scene.kind(node.value)) else ""
    plain = Edit(where, Outcome.CONVERTED, (receiver, made), FUNCTION[0])
    if not isinstance(call, ast.Call) or call.func is not node:
        return plain
    missing = len(plan.inputs) - len(call.args)
    starred = any(isinstance(a, ast.Starred) for a in call.args)
    if starred or (not missing and not call.keywords):
        return plain
    defaults = plan.forward.args.defaults
    if call.keywords or not 0 < missing <= len(defaults) or not call.args:
        why = f"the Function takes {len(plan.inputs)} arguments, all by position"
        return Refusal(site, "LOP302", why, "give every argument by position")
    given = inside(scene.source, call)
    rest = "".join(f", {ast.unparse(d)}" for d in defaults[-missing:])
    where = site.at(scene.source.span(call))
    return Edit(where, Outcome.CONVERTED, (receiver, f"{made}(", *given, rest, ")"), FUNCTION[0])


@rewrites()
def bodies(scene: Scene) -> Iterator[Edit]:
    """Rewrite forward and backward of a Function as construct and bprop of a Cell."""
    for owner in scene.file.classes.values():
        if scene.inference.is_function(owner.key):
            plan = planned(scene.inference, owner)
            if isinstance(plan, Blueprint):
                for node in (plan.forward, plan.backward):
                    yield from _static(scene, node)
                yield from _construct(scene, plan)
                yield from _bprop(scene, plan)


def _edit(scene: Scene, node: ast.AST, span: Span, *parts: str | Piece, **more: object) -> Edit:
    site = scene.site(FUNCTION[0], node).at(span)
    needs = more.get("needs", frozenset())
    assert isinstance(needs, frozenset)
    return Edit(site, Outcome.CONVERTED, parts, needs=needs)


def _static(scene: Scene, node: ast.FunctionDef) -> Iterator[Edit]:
    for item in node.decorator_list:
        if isinstance(item, ast.Name) and item.id == "staticmethod":
            yield _edit(scene, item, scene.source.span(item))


def _construct(scene: Scene, plan: Blueprint) -> Iterator[Edit]:
    """``forward(ctx, x)`` is ``construct(self, x)``, without what it keeps for later."""
    forward, ctx = plan.forward, plan.ctx[0]
    yield _edit(scene, forward, scene.source.name_span(forward), "construct")
    yield _edit(scene, forward, scene.source.name_span(forward.args.args[0]), "self")
    for statement in statements(forward):
        attribute = stored(statement, ctx)
        if call_on(statement, ctx) or (attribute and attribute not in plan.read):
            assert isinstance(statement, (ast.Expr, ast.Assign))
            yield _gone(scene, statement)
        elif attribute:
            assert isinstance(statement, ast.Assign)
            name = _local(plan, attribute)
            yield _edit(scene, statement, scene.source.span(statement.targets[0]), name)
            for node in ast.walk(forward):
                if is_attribute(node, ctx) and node.attr == attribute and is_read(node):
                    yield _edit(scene, node, scene.source.span(node), name)


def _local(plan: Blueprint, attribute: str) -> str:
    """What ``ctx.attribute`` is called in construct."""
    used = all_names(plan.forward)
    return f"ctx_{attribute}" if attribute in used | set(plan.inputs) else attribute


def _gone(scene: Scene, statement: ast.stmt) -> Removal:
    base = scene.site(FUNCTION[0], statement)
    span = scene.source.span(statement)
    return Removal(base.at(span), Outcome.CONVERTED, ())


def _bprop(scene: Scene, plan: Blueprint) -> Iterator[Edit]:
    """``backward(ctx, g)`` is ``bprop(self, x, out, g)``."""
    backward = plan.backward
    yield _edit(scene, backward, scene.source.name_span(backward), "bprop")
    single = len(plan.grads) == 1
    gradient = plan.grads[0] if single else "gradients"
    parts = ", ".join(("self", *plan.inputs, plan.out, gradient))
    site = scene.site(FUNCTION[0], backward)
    yield added(scene.source, site, backward, Part.PARAMETERS, parts)
    yield from _head(scene, plan)
    for statement in statements(backward):
        saved = is_unpacking(statement, backward, plan.forward) and _is_same(statement, plan)
        if saved:
            yield _gone(scene, statement)
        else:
            yield from _reads(scene, plan, statement)
    for node in own_nodes(backward):
        if isinstance(node, ast.Return) and node.value is not None:
            yield _return(scene, plan, node.value)


def _is_same(statement: ast.stmt, plan: Blueprint) -> bool:
    """The names that it binds are those that bprop has the values under."""
    assert isinstance(statement, ast.Assign)
    target = statement.targets[0]
    return all_names(target) <= {*plan.saved, *plan.names.values()}


def _head(scene: Scene, plan: Blueprint) -> Iterator[Edit]:
    """What bprop binds before the first statement of backward."""
    body = plan.backward.body
    first = body[1] if ast.get_docstring(plan.backward) is not None and len(body) > 1 else body[0]
    lines: list[Parts] = [[f"{second} = {name}"] for name, second in plan.held.items()]
    vararg = plan.backward.args.vararg
    if vararg is not None:
        whole = "gradients" if plan.outputs > 1 else "(gradients,)"
        lines.append([f"{vararg.arg} = {whole}"] if vararg.arg != whole else [])
    elif len(plan.grads) > 1:
        lines.append([f"{', '.join(plan.grads)} = gradients"])
    for statement in plan.head:
        attribute = stored(statement, plan.ctx[0])
        if call_on(statement, plan.ctx[0]):
            lines.append(_saved_tuple(scene, plan, statement))
        elif attribute:
            assert isinstance(statement, ast.Assign)
            name = plan.names[attribute]
            same = isinstance(statement.value, ast.Name) and statement.value.id == name
            lines.append([] if same else [f"{name} = ", piece(scene.source, statement.value)])
        else:
            lines.append([Piece(scene.source.span(statement))])
    for line in lines:
        if line:
            site = scene.site(FUNCTION[0], first)
            yield added(scene.source, site, first, Part.BEFORE, *line)


def _saved_tuple(scene: Scene, plan: Blueprint, statement: ast.stmt) -> Parts:
    if all(plan.saved):
        return []
    parts: Parts = [f"{plan.bundle} = ("]
    for value in statement.value.args:  # type: ignore[attr-defined]
        parts += [piece(scene.source, value), ", "]
    return [*parts[:-1], ",)" if len(plan.saved) == 1 else ")"]


def _reads(scene: Scene, plan: Blueprint, statement: ast.stmt) -> Iterator[Edit]:
    """``ctx.saved_tensors``, ``ctx.attribute`` and ``ctx.needs_input_grad[i]``."""
    for node in ast.walk(statement):
        if not isinstance(node, ast.Attribute) or getattr(node.value, "id", "") != plan.ctx[1]:
            continue
        parent = scene.parent(node)
        if node.attr == "needs_input_grad":
            assert isinstance(parent, ast.Subscript)
            yield _needed(scene, parent)
        elif node.attr not in SAVED:
            yield _edit(scene, node, scene.source.span(node), plan.names[node.attr])
        elif not all(plan.saved):
            yield _edit(scene, node, scene.source.span(node), plan.bundle)
        elif isinstance(parent, ast.Subscript) and isinstance(parent.slice, ast.Constant):
            item = plan.saved[parent.slice.value]  # type: ignore[index]
            yield _edit(scene, node, scene.source.span(parent), item)
        elif len(plan.saved) == 1 and _is_alone(parent):
            assert isinstance(parent, ast.Assign)
            name = parent.targets[0].elts[0]  # type: ignore[attr-defined]
            text = (piece(scene.source, name), f" = {plan.saved[0]}")
            yield _edit(scene, node, scene.source.span(parent), *text)
        else:
            text_of_all = ", ".join(plan.saved) + ("," if len(plan.saved) == 1 else "")
            yield _edit(scene, node, scene.source.span(node), f"({text_of_all})")


def _needed(scene: Scene, node: ast.Subscript) -> Edit:
    """``ctx.needs_input_grad[0]`` is True: bprop gives every gradient."""
    test = scene.parent(node)
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) and len(test.values) == 2:
        other = test.values[0] if test.values[1] is node else test.values[1]
        return _edit(scene, node, scene.source.span(test), piece(scene.source, other))
    return _edit(scene, node, scene.source.span(node), "True")


def _is_alone(parent: ast.AST | None) -> bool:
    """``x, = ctx.saved_tensors``."""
    target = parent.targets[0] if isinstance(parent, ast.Assign) else None
    return isinstance(target, (ast.Tuple, ast.List)) and len(target.elts) == 1


def _return(scene: Scene, plan: Blueprint, value: ast.expr) -> Edit:
    """One value for every input, in a tuple; zeros where torch has None."""
    values = values_of(value)
    parts: Parts = []
    needs: set[str] = set()
    for name, item in zip(plan.inputs, values, strict=False):
        text, root = _gradient(scene, plan.held.get(name, name), item)
        parts += [*text, ", "]
        needs |= root
    parts[-1] = "," if len(plan.inputs) == 1 else ""
    if values == [value] and not is_none(value):  # it has edits of its own
        site = scene.site(FUNCTION[0], value)
        whole = ("(", *parts, ")")
        return Wrap(site, Outcome.CONVERTED, whole, needs=frozenset(needs))
    return _edit(scene, value, scene.source.span(value), "(", *parts, ")", needs=frozenset(needs))


def _gradient(scene: Scene, name: str, item: ast.expr) -> tuple[Parts, set[str]]:
    own = piece(scene.source, item)
    if is_none(item):
        text, root = scene.spelling.local("helpers.no_gradient")
        return [f"{text}({name})"], {root}
    kind = scene.kind(item)
    sure = is_all(kind, "Tensor") and all(a.kind == "Tensor" for a in kind)
    if sure or not isinstance(item, (ast.Name, ast.IfExp, ast.BoolOp)):
        return [own], set()
    text, root = scene.spelling.local("helpers.gradient_or_zeros")
    return [f"{text}(", own, f", {name})"], {root}
