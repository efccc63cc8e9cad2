"""In: an attribute or method of a Tensor, Module or other torch object. Out: its edit.

Only Parameters of MindSpore say whether they are trained. What ``forward`` is given, and what it
computes, has no such mark: a gradient is computed for the Parameters that are named.
"""

from __future__ import annotations

import ast

from migrate.analysis.program import Function
from migrate.analysis.types.inference import Inference
from migrate.analysis.types.kinds import TENSOR, having, is_all
from migrate.analysis.types.recorded import is_plain
from migrate.codegen.substitution import Renderer, inside, piece, shown
from migrate.mapping.choice import NotChosen
from migrate.mapping.table import Row
from migrate.mapping.templates import parse
from migrate.records.outcomes import Edit, Outcome, Part, Piece, Refusal, Removal, Site
from migrate.rules import checkpoints, data_attribute, hooks, inplace
from migrate.rules.buffers import loses_gradient
from migrate.rules.called_from import passed, sites_of
from migrate.rules.calling import decide_call, template_of
from migrate.rules.graph import scope
from migrate.rules.graph.values import earliest
from migrate.rules.registry import decides
from migrate.rules.torch_sharing import is_written
from migrate.sites import unknown_receivers
from migrate.sites.buffer_gradients import BUFFER
from migrate.sites.references import Form, direct_name
from migrate.sites.scene import Scene
from migrate.syntax.trees import all_parameters, dotted


@decides(Form.FIELD)
def field(scene: Scene, node: ast.Attribute, name: str) -> Edit:
    """Write ``[0]`` for a field of a named tuple, as MindSpore returns plain ones."""
    index = name.removeprefix("field ")
    site = scene.site(f"torch.return_types.{node.attr}", node)
    return Edit(site, Outcome.CONVERTED, (piece(scene.source, node.value), f"[{index}]"))


REQUIRES_GRAD = "torch.Tensor.requires_grad"
_CHECKPOINTS = ("torch.utils.checkpoint.checkpoint", "torch.utils.checkpoint.checkpoint_sequential")


def asked_gradient(scene: Scene, site: Site, node: ast.Attribute) -> Edit | Refusal | None:
    """True where it only chooses whether a checkpoint is made, which changes no number."""
    around = scene.parent(node)
    both = (
        around.values if isinstance(around, ast.BoolOp) and isinstance(around.op, ast.And) else []
    )
    if any(isinstance(v, ast.Constant) and v.value is False for v in both):
        return Edit(
            site, Outcome.CONVERTED, ("False",), REQUIRES_GRAD
        )  # so it is, whatever this says
    if not isinstance(node.ctx, ast.Load):
        return None
    if (asserted := _asserted(scene, node)) is not None:
        span = scene.source.span(asserted)
        return Removal(site.at(span), Outcome.CONVERTED, (), REQUIRES_GRAD, note=_ASSERTED)
    if not _is_activation(scene, node.value):
        return None
    if _chooses_checkpoint(scene, node):
        note = "A checkpoint gives the same numbers and gradients: it is always made."
        return Edit(site, Outcome.CONVERTED, ("True",), REQUIRES_GRAD, note=note)
    return Refusal(
        site,
        "LOP105",
        "only a Parameter has it: MindSpore differentiates for what it is asked to",
        "ask for what is meant: self.training, or a setting of the Cell",
        keep=True,
    )


_ASSERTED = (
    "An assertion that a tensor needs a gradient, or none: no Tensor of MindSpore knows that."
)


def _asserted(scene: Scene, node: ast.Attribute) -> ast.Assert | None:
    """Return the assertion that is about nothing else: ``assert not target.requires_grad``."""
    asked = scene.parent(node)
    if isinstance(asked, ast.Compare) and node is asked.left and len(asked.ops) == 1:
        asks = isinstance(asked.ops[0], (ast.Is, ast.Eq))
        told = isinstance(asked.comparators[0], ast.Constant)
        asked = scene.parent(asked) if asks and told else None
    elif isinstance(asked, ast.UnaryOp) and isinstance(asked.op, ast.Not):
        asked = scene.parent(asked)
    plain = isinstance(node.value, ast.Name)
    return asked if plain and isinstance(asked, ast.Assert) and node is not asked.msg else None


def _is_activation(scene: Scene, node: ast.expr) -> bool:
    """Whether a variable is what ``forward`` is given, or what a function computes."""
    function = scene.function(node)
    if not isinstance(node, ast.Name) or function is None:
        return False
    assigned = [n for n in function.nodes if isinstance(n, ast.Assign)]
    given = [a.value for a in assigned for t in a.targets if getattr(t, "id", "") == node.id]
    if not all(_computes(scene, value) for value in given):
        return False
    is_given = any(a.arg == node.id for a in function.parameters[1:])
    return bool(given) or (is_given and function.name == "forward")


def _computes(scene: Scene, node: ast.expr) -> bool:
    """``x + 1``, ``torch.relu(x)``, ``x.view(-1)``: no Parameter, as another call may give one."""
    if not isinstance(node, ast.Call):
        return isinstance(node, (ast.BinOp, ast.UnaryOp))
    made = direct_name(scene, node.func) or ""
    if made or not isinstance(node.func, ast.Attribute):
        return made.startswith("torch.") and not made.endswith("Parameter")
    return node.func.attr != "requires_grad_" and is_all(scene.kind(node.func.value), "Tensor")


def _chooses_checkpoint(scene: Scene, node: ast.AST) -> bool:
    """Whether the test of an ``if`` asks, behind which a checkpoint is made."""
    child, parent = node, scene.parent(node)
    while isinstance(parent, ast.BoolOp) and isinstance(parent.op, ast.And):
        child, parent = parent, scene.parent(parent)
    if not isinstance(parent, (ast.If, ast.IfExp)) or parent.test is not child:
        return False
    body = parent.body if isinstance(parent.body, list) else [parent.body]
    calls = [n for b in body for n in ast.walk(b) if isinstance(n, ast.Call)]
    return len(body) == 1 and any(direct_name(scene, c.func) in _CHECKPOINTS for c in calls)


# what is asked of the device of a Tensor: a Cell runs where the whole program does
_OF_DEVICE = {"torch.device.type": "'cpu'", "torch.device.index": "None"}
_ONE_DEVICE = "MindSpore places whole programs: the device of a tensor is answered as on a CPU."


def _is_device_of_tensor(scene: Scene, node: ast.expr) -> bool:
    """``x.device``, which becomes None and has no attributes, or a variable that holds no other."""
    if isinstance(node, ast.Name):
        values = scene.facts.values(node)
        return bool(values) and all(
            isinstance(v, ast.Attribute) and _is_device_of_tensor(scene, v) for v in values
        )
    of = node.value if isinstance(node, ast.Attribute) and node.attr == "device" else None
    return of is not None and is_all(scene.kind(of), "Tensor")


def _is_told(scene: Scene, node: ast.Attribute) -> bool:
    """Whether a device is shown as a text, or held against ``torch.device("cpu")``."""
    parent = scene.parent(node)
    if isinstance(parent, ast.Call):
        return getattr(parent.func, "id", "") in ("str", "repr") and parent.args == [node]
    if not isinstance(parent, ast.Compare) or len(parent.ops) > 1:
        return False
    return _is_made_device(scene, parent.comparators[0] if parent.left is node else parent.left)


def _is_made_device(scene: Scene, node: ast.expr) -> bool:
    """Whether all that an expression may be are calls of ``torch.device``."""
    values = scene.facts.values(node) if isinstance(node, ast.Name) else (node,)
    return bool(values) and all(isinstance(v, ast.Call) and _makes_device(scene, v) for v in values)


def _makes_device(scene: Scene, call: ast.Call) -> bool:
    return any(a.kind == "ref" and a.name == "torch.device" for a in scene.kind(call.func))


@decides(Form.MEMBER)
def decide(scene: Scene, node: ast.Attribute, name: str) -> Edit | Refusal:
    """Convert a method or attribute of a Tensor, Module or other object of torch by its row."""
    site = scene.site(name, node)
    parent = scene.parent(node)
    if isinstance(parent, ast.Call) and parent.func is node:
        if refused := data_attribute.lent(scene, site, parent, name):
            return refused
        if name == checkpoints.STATE and (ordered := checkpoints.values(scene, site, node)):
            return ordered
        if state := checkpoints.named(scene, site, name, node):
            return state
        if name == BUFFER and len(parent.args) > 1:
            value, function = parent.args[1], scene.function(node)
            built = function is None or function.name == "__init__"
            if not built and data_attribute.keeps_gradient(scene, value):
                return loses_gradient(site, ast.unparse(parent.args[0]), "its value is computed")
        if name == "torch.Tensor.numpy" and (told := _dtype_of_array(scene, site, parent, node)):
            return told
        if inplace.applies(scene, name):
            return inplace.decide(scene, site, name, parent, node.value)
        if flagged := hooks.overwritten(scene.inference, site, parent, name):
            return flagged
        found = decide_call(scene, site, name, parent, node.value)
        if isinstance(found, NotChosen):
            return _passed_on(scene, site, parent, node, found) or _refused(site, found)
        return found
    if not isinstance(node.ctx, ast.Load):
        return _store(scene, site, node, name)
    kept = data_attribute.decide(scene, site, node) if name == data_attribute.KEY else None
    if name == REQUIRES_GRAD:
        kept = asked_gradient(scene, site, node)
    if kept is not None:
        return kept
    return _property(scene, site, node, name)


def _dtype_of_array(scene: Scene, site: Site, call: ast.Call, node: ast.Attribute) -> Edit | None:
    """``x.numpy().dtype`` is asked without the array: no number leaves the device for it."""
    asked = scene.parent(call)
    if not isinstance(asked, ast.Attribute) or asked.attr != "dtype" or call.args or call.keywords:
        return None
    text, root = scene.spelling.local("helpers.array_dtype")
    place, parts = (
        site.at(scene.source.span(asked)),
        (f"{text}(", piece(scene.source, node.value), ")"),
    )
    return Edit(place, Outcome.HELPER, parts, site.name, frozenset((root,)))


def _passed_on(
    scene: Scene, site: Site, call: ast.Call, node: ast.Attribute, why: NotChosen
) -> Edit | None:
    """``x.f(*args)`` where the row's helper takes the receiver and torch's arguments in order."""
    row = why.row
    if why.code != "API103" or row is None or row.flag or not row.signatures:
        return None
    template = parse(template_of(scene, row))
    if not isinstance(template, ast.Call) or template.keywords or not template.args:
        return None
    target = dotted(template.func)
    names = [getattr(a, "id", "") for a in template.args]
    wanted = ["self", *(p.name for p in row.signatures[0].params)]
    named = {k.arg for k in call.keywords if k.arg is not None}
    if not target.startswith("helpers.") or names != wanted or not named <= set(wanted):
        return None
    text, root = scene.spelling.local(target)
    place, given = site.at(scene.source.span(call)), inside(scene.source, call)
    parts = (f"{text}(", piece(scene.source, node.value), ", ", *given, ")")
    return Edit(place, Outcome.HELPER, parts, row.key, frozenset((root,)), row.note)


def _refused(site: Site, why: NotChosen) -> Refusal:
    return Refusal(site, why.code, why.reason, why.next_step)


def _property(scene: Scene, site: Site, node: ast.Attribute, name: str) -> Edit | Refusal:
    rows = scene.table.rows(name)
    if not rows:
        return Refusal(site, "API101", "the table has no row for it", "write it by hand")
    row = rows[0]
    if row.flag:
        return Refusal(site, row.flag, row.reason, row.next_step)
    if name in _OF_DEVICE and _is_device_of_tensor(scene, node.value):
        return Edit(site, Outcome.CONVERTED, (_OF_DEVICE[name],), row.key, note=_ONE_DEVICE)
    if name == "torch.Tensor.device" and _is_told(scene, node):
        text, root = scene.spelling.local("helpers.Device")
        needs, parts = frozenset((root,)), (f'{text}("cpu")',)
        return Edit(site, Outcome.HELPER, parts, row.key, needs, _ONE_DEVICE)
    if scene.table.kind(name) == "method":
        if not inplace.changes(name) and _same_name(scene, row, node.attr):
            return Edit(site, Outcome.KEPT, None, row.key)
        return Refusal(
            site, "API107", "the method is passed on as a value", "wrap it in a function"
        )
    template = template_of(scene, row)
    if name == "torch.device.type" and not _is_made_device(scene, node.value):
        template = "helpers.device_type(self)"
    renderer = Renderer(scene.source, scene.spelling, scene.table, None, node.value)
    rendering = renderer.render(template)
    text = "".join(p if isinstance(p, str) else scene.source.text(p.span) for p in rendering.parts)
    helper = any(n.startswith("helpers.") for n in rendering.needs)
    outcome = Outcome.HELPER if helper else Outcome.CONVERTED
    if text == scene.source.text_of(node):
        outcome = Outcome.KEPT
    return Edit(site, outcome, rendering.parts, row.key, rendering.needs, row.note)


def _same_name(scene: Scene, row: Row, attribute: str) -> bool:
    """Whether the row calls a method of the same name with the same arguments."""
    signature = row.signatures[0] if row.signatures else None
    if signature is None:
        return False
    names = ", ".join(f"*{p.name}" if p.kind == "args" else p.name for p in signature.params)
    return template_of(scene, row) == f"self.{attribute}({names})"


def _store(scene: Scene, site: Site, node: ast.Attribute, name: str) -> Edit | Refusal:
    """An assignment to an attribute of a torch object."""
    if name in ("torch.Tensor.data", "torch.Tensor.grad", "torch.Tensor.requires_grad"):
        return inplace.store(scene, site, node, name)
    if name in _REGISTRIES:
        why = "a Cell keeps what it holds in registries of its own"
        return Refusal(site, "API110", why, "change the entries")
    return Edit(site, Outcome.KEPT, None)


_REGISTRIES = tuple(f"torch.nn.Module.{kind}" for kind in ("_modules", "_parameters", "_buffers"))


@decides(Form.UNSURE)
def unsure(scene: Scene, node: ast.Attribute, name: str) -> Edit | Refusal:
    """Ask for the class of an unknown receiver when the program runs, or flag it."""
    site = scene.site(name, node)
    parent = scene.parent(node)
    kinds = sorted(scene.kind_names(node.value) - {"None"})
    if isinstance(parent, ast.Call) and parent.func is node:
        if form := _by_class(scene, site, node, parent):
            return form
        if name.startswith(unknown_receivers.OF_MODULES):
            return Edit(site, Outcome.KEPT, None)
    elif isinstance(node.ctx, ast.Load) and scene.table.kind(name) != "method":
        held = _property(scene, site, node, name)
        asks = name.startswith(unknown_receivers.OF_MODULES)  # a helper that looks what it is
        if isinstance(held, Edit) and (asks or held.outcome is Outcome.KEPT):
            return held
    return _recorded(scene, site, node) or _unknown(scene, site, node, kinds)


ASKED = (ast.Name, ast.Attribute, ast.Constant, ast.Subscript, ast.UnaryOp, ast.BinOp, ast.Compare,
          ast.Slice, ast.Tuple, ast.expr_context, ast.operator, ast.unaryop, ast.cmpop)  # fmt: skip
_EITHER = "Nothing tells whether its receiver is a Tensor or a Module: the text asks when it runs."
_CLASSES = (("Tensor", "torch.Tensor", "mindspore.Tensor"),
            ("Module", "torch.nn.Module", "mindspore.nn.Cell"))  # fmt: skip


def _by_class(scene: Scene, site: Site, node: ast.Attribute, call: ast.Call) -> Edit | None:
    """``ops.sort(x, 0) if isinstance(x, ms.Tensor) else x.sort(0)``: right for whatever x is.

    None: one of the classes that the receiver may be of has no such form.
    """
    asked = _deciding(scene, node.value)
    known = scene.inference.recorded.at(scene.file.path, node.value) is not None
    forms: list[tuple[Edit, str]] = []
    for kind, owner, target in _CLASSES:
        name = f"{owner}.{node.attr}"
        if not _may_be(scene, node, kind, asked in (None, node.value)) or not scene.table.has(name):
            continue
        if inplace.applies(scene, name) and not scene.table.rows(name):
            return None
        own = scene.site(name, node)
        found = decide_call(scene, own, name, call, node.value)
        if isinstance(found, Edit) and found.outcome is Outcome.KEPT:
            continue
        if type(found) is not Edit or inplace.applies(scene, name):  # no Removal
            return None
        forms.append((found, target))
    if not forms:
        return Edit(site, Outcome.KEPT, None) if scene.table.has(site.name) else None
    if known:
        return None
    kinds = scene.kind_names(node.value) - {"None"}
    if len({shown(scene.source, f.parts or ()) for f, _ in forms}) == 1 and kinds == {
        "Tensor",
        "Module",
    }:
        return forms[0][0]
    return _chosen(scene, call, node, asked, forms)


def _may_be(scene: Scene, node: ast.Attribute, kind: str, alone: bool) -> bool:
    """Return whether the receiver may be of a class of torch that has the method itself.

    ``alone``: no part of it tells; where a part is asked, a method of Tensors gave the receiver.
    """
    kinds = {a.kind for a in having(scene.kind(node.value), node.attr)}
    if kind not in kinds and "unknown" not in kinds:
        return False
    if kind == "Tensor":
        return True
    if not alone or isinstance(node.value, (ast.BinOp, ast.UnaryOp)):
        return False
    owners = scene.inference.program.holders.get(node.attr, ())
    return not any(scene.inference.is_module(c.key) for c in owners)


def _chosen(
    scene: Scene,
    call: ast.Call,
    node: ast.Attribute,
    asked: ast.expr | None,
    forms: list[tuple[Edit, str]],
) -> Edit | None:
    """Return the text that takes the form of the class that the receiver is of.

    A receiver that can be evaluated only once gets a name in the first question; in compiled code,
    in a statement before, if nothing else is evaluated earlier.
    """
    span = scene.source.span(call)
    parent, first = scene.parent(call), forms[0][0]
    if isinstance(parent, ast.Await):
        return None
    once = _named(scene, node) if asked is None else ""
    receiver = scene.source.span(node.value)
    given = piece(scene.source, asked or node.value)
    question: tuple[str | Piece, ...] = (f"{once} := ", given) if once else (given,)
    above: tuple[Edit, ...] = ()
    if asked is None and not once:
        function, statement = scene.function(node), scene.statement(node)
        calls = [n for n in ast.walk(node.value) if isinstance(n, ast.Call)]
        calls = [c for c in calls if c is not node.value]
        chained = any(isinstance(n, ast.Call) for c in calls for n in ast.walk(c.func))
        if chained or isinstance(statement, ast.If) or not earliest(scene, node.value):
            return None  # a chain may take such a statement itself
        if function is None:
            return None  # of a module every name may be read by others
        once = scope.free_local(scene, function, "held")
        above = (scope.part(scene, statement, Part.BEFORE, f"{once} = ", given),)
        question = (once,)
    rest: tuple[str | Piece, ...] = (Piece(span),)
    if once:
        rest = (f"{once}.{node.attr}(", *inside(scene.source, call), ")")
    parts: tuple[str | Piece, ...] = ()
    needs: frozenset[str] = frozenset()
    for place, (edit, target) in enumerate(forms):
        tensor = target == _CLASSES[0][2]
        if (
            edit.parts is None
            or edit.site.span != span
            or (tensor and isinstance(parent, ast.Expr))
        ):
            return None
        if not _unpacks(scene, call) and any(
            s.fields for s in scene.table.signatures(edit.site.name)
        ):
            return None  # MindSpore gives a plain tuple: its fields have no names
        text, root = scene.spelling.local(target)
        needs |= edit.needs | {root}
        if place and shown(scene.source, edit.parts) == shown(scene.source, first.parts or ()):
            parts = (*parts[:-1], f", ({scene.spelling.local(forms[0][1])[0]}, {text})) else ")
            continue
        held = [once if once and p == Piece(receiver) else p for p in edit.parts]
        parts = (*parts, *held, " if isinstance(", *question, f", {text}) else ")
        question = (once,) if once else question
    parts = (*parts, *rest)
    return Edit(
        first.site, first.outcome, parts, first.row, needs, first.note or _EITHER, also=above
    )


def _named(scene: Scene, node: ast.Attribute) -> str:
    """Return a free name for a receiver; "" where a name cannot be bound in an expression."""
    function, around = scene.function(node), scene.parent(node)
    if function is None or data_attribute.compiled(scene, node):
        return ""
    while around is not None and not isinstance(around, ast.stmt):
        if isinstance(around, (ast.comprehension, *_SCOPES)):
            return ""
        around = scene.parent(around)
    call = scene.parent(node)
    inside = [n for n in ast.walk(call) if isinstance(n, ast.Call)] if call is not None else []
    deep = sum(isinstance(n.func, ast.Attribute) for n in inside if n is not call)
    taken = {n.id for n in function.nodes if isinstance(n, ast.Name)}
    names = [n for n in ("it", "held", *(f"held_{i}" for i in range(99))) if n not in taken]
    return next(iter(names[deep:]), "")  # calls inside may need such names as well


_SCOPES = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def _unpacks(scene: Scene, call: ast.Call) -> bool:
    """Return whether the parts of a result are taken by their places."""
    parent, function = scene.parent(call), scene.function(call)
    if isinstance(parent, ast.Assign):
        names = {t.id for t in parent.targets if isinstance(t, ast.Name)}
        asked = any(
            isinstance(n, ast.Attribute) and getattr(n.value, "id", "") in names
            for n in (function.nodes if function is not None else scene.file.nodes)
        )
        plain = all(isinstance(t, (ast.Tuple, ast.List, ast.Name)) for t in parent.targets)
        return plain and not asked
    return isinstance(parent, ast.Subscript) and parent.value is call


def _deciding(scene: Scene, node: ast.expr, depth: int = 3) -> ast.expr | None:
    """Return what is a Tensor where an expression is one, and can be evaluated twice."""
    if isinstance(node, ast.BinOp) and isinstance(node.right, ast.Constant):
        return _deciding(scene, node.left, depth)
    if isinstance(node, ast.Compare) and isinstance(node.comparators[0], ast.Constant):
        plain = len(node.ops) == 1 and not isinstance(
            node.ops[0], (ast.Is, ast.IsNot, ast.In, ast.NotIn)
        )
        return _deciding(scene, node.left, depth) if plain else None
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and depth:
        name = f"torch.Tensor.{node.func.attr}"
        of_tensors = scene.table.has(name) and scene.inference.results.of_call(name) == TENSOR
        if is_written(name) or node.func.attr in scene.inference.program.holders:
            return None
        if not scene.kind_names(node.func.value) <= {"Tensor", "unknown", "None"}:
            return None  # what else it may be may have a method that gives a Tensor
        return _deciding(scene, node.func.value, depth - 1) if of_tensors else None
    return node if all(isinstance(n, ASKED) for n in ast.walk(node)) else None


def _recorded(scene: Scene, site: Site, node: ast.Attribute) -> Edit | Refusal | None:
    """What a run of the torch code showed of the receiver: nothing of torch, or several types."""
    seen = scene.inference.recorded.at(scene.file.path, node.value)
    if seen is None:
        return None
    if is_plain(seen, scene.kind(node.value)):
        return Edit(site, Outcome.KEPT, None)
    shown = f"the receiver {ast.unparse(node.value)} was {seen.text}"
    step, guard = "annotate it, or tell the types apart", _is_method(scene, node)
    return Refusal(site, "API102", shown, step, keep=not guard, guard=guard)


def _is_method(scene: Scene, node: ast.Attribute) -> bool:
    """Whether a Tensor of MindSpore has a method of that name, which may mean something else."""
    return scene.table.mindspore.kind(f"mindspore.Tensor.{node.attr}") == "method"


def _unknown(scene: Scene, site: Site, node: ast.Attribute, kinds: list[str]) -> Refusal:
    unknown = unknown_receivers.binding(scene, node.value)
    seen = ", ".join(k for k in kinds if k != "unknown")
    why = f"nothing tells what {unknown.what} is"
    why = f"{why}: {seen} or something else" if seen else why
    passing = _passing(scene.inference, *unknown.given, frozenset()) if unknown.given else ""
    why = f"{why}; {passing}" if passing else why
    text = ast.unparse(node.value)
    shown = text if len(text) <= 40 else text[:37] + "..."
    guard = _is_method(scene, node)
    reason = f"the receiver {shown} is not known to be a Tensor: {why}"
    step = f"annotate it: {unknown.annotation}"
    return Refusal(site, "API102", reason, step, keep=not guard, guard=guard)


def _passing(inference: Inference, function: Function, name: str, seen: frozenset[str]) -> str:
    """Return the call that first passes something unknown for a parameter; "" where none does."""
    if name not in {p.arg for p in all_parameters(function.node.args)} or function.key in seen:
        return ""
    for file, call, caller in sites_of(inference, function):
        given = passed(function, call, name)
        if given is None or "unknown" not in {a.kind for a in inference.kind(given)}:
            continue
        handed = getattr(given, "id", "")
        further = _passing(inference, caller, handed, seen | {function.key}) if caller else ""
        return further or f"{file.path}:{call.lineno} passes {ast.unparse(given)}"
    return ""
