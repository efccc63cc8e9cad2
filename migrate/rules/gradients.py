"""Write ``torch.autograd.grad(y, x)`` as MindSpore's gradient of a function that computes y from x.

torch differentiates what it recorded; MindSpore differentiates functions. The statements between
that compute ``y`` from ``x`` become a function of their own, where nothing else reads what they
bind and nothing else hands ``x`` on. A gradient with ``create_graph`` is differentiated again, in
both modes; other gradients are constants, as in torch.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from migrate.analysis.scopes import Binding
from migrate.analysis.types.kinds import is_all
from migrate.codegen.substitution import piece
from migrate.mapping.choice import Chosen
from migrate.records.outcomes import Edit, Lines, Outcome, Piece, Refusal, Site, Span
from migrate.rules.registry import by_row
from migrate.rules.repeated import acts, differentiates, is_repeatable, stores
from migrate.rules.torch_sharing import METADATA, shares
from migrate.sites.references import direct_name
from migrate.sites.scene import Scene
from migrate.syntax.trees import is_none, loaded_names, within

_ORDER = ("outputs", "inputs", "grad_outputs", "retain_graph", "create_graph", "only_inputs",
          "allow_unused", "is_grads_batched", "materialize_grads")  # fmt: skip
_NEXT = "write the computation as a function and use mindspore.grad or mindspore.value_and_grad"
_LIKE = tuple(f"torch.{n}_like" for n in ("ones", "zeros", "full", "empty", "rand", "randn"))
_DEVICES = ("cuda", "cpu", "to")
_MARKING = ("requires_grad_", "retain_grad")
_SIMPLE = (ast.Assign, ast.AnnAssign, ast.Return, ast.Expr)


class _Unclear(Exception):
    """Why the computation is no function of its own."""


@dataclass(frozen=True)
class _Computation:
    """The statements that compute ``outputs`` from ``inputs``, and those that stand between.

    ``again``: the statements stay where they are as well, and the function computes once more.
    ``shaped``: statements of the function that ask what it computes for its shape alone, and bind
    what the outputs are multiplied with.
    """

    inputs: tuple[ast.Name, ...]
    outputs: ast.expr
    inside: tuple[ast.stmt, ...]
    between: tuple[ast.stmt, ...]
    again: bool = False
    shaped: tuple[ast.stmt, ...] = ()


@by_row(
    "gradient",
    becomes=(
        (
            "z = x.clone()\ny = torch.sin(z)\nreturn torch.autograd.grad(y, z, "
            "torch.ones_like(y), create_graph=True)[0]",
            "z = ops.deepcopy(x)\ndef y_of(z):\n    y = ops.sin(z)\n    return y\n"
            "return ms.grad(y_of)(z)",
        ),
        (
            "z = torch.sin(y)\nz = torch.autograd.grad(z, y, torch.ones_like(z))[0] + z",
            "z = ops.sin(y)\ndef z_of(y):\n    z = ops.sin(y)\n    return z\n"
            "z = ops.stop_gradient(ms.grad(z_of)(y)) + z",
        ),
    ),
    stays=("def grad(outputs, inputs):\n    return outputs\nreturn grad(x, y)",),
    flagged=(
        "z = x.clone()\nw = torch.sin(z)\nprint(w)\nreturn torch.autograd.grad(w.sum(), z)[0]",
        "return torch.autograd.grad(x, y)[0]",
    ),
)
def gradient(
    scene: Scene, site: Site, call: ast.Call, receiver: ast.expr | None, chosen: Chosen
) -> Edit | Refusal:
    """Make a function of what computes the outputs, and differentiate it."""
    try:
        given = _arguments(call)
        statement = _statement(scene, call)
        found = _computation(scene, statement, given)
        cotangent = _cotangent(scene, given.get("grad_outputs"), found)
        constant = _is_constant(given)
    except _Unclear as why:
        return Refusal(site, "LOP105", str(why), _NEXT)
    return _edit(scene, site, call, statement, found, cotangent, constant, chosen)


# -- what is asked ------------------------------------------------------------------------------


def _arguments(call: ast.Call) -> dict[str, ast.expr]:
    given = dict(zip(_ORDER, call.args, strict=False))
    if any(isinstance(a, ast.Starred) for a in call.args) or any(not k.arg for k in call.keywords):
        raise _Unclear("its arguments are unpacked")
    given |= {k.arg: k.value for k in call.keywords if k.arg}
    for name in ("allow_unused", "is_grads_batched", "materialize_grads"):
        if name in given and getattr(given[name], "value", True) not in (False, None):
            raise _Unclear(f"MindSpore has no {name}")
    if not {"outputs", "inputs"} <= given.keys():
        raise _Unclear("its outputs or inputs are not written")
    return given


def _is_constant(given: dict[str, ast.expr]) -> bool:
    asked = given.get("create_graph", ast.Constant(False))
    if not isinstance(asked, ast.Constant):
        raise _Unclear("whether its gradient is differentiated again is known only when it runs")
    return not asked.value


def _statement(scene: Scene, call: ast.Call) -> ast.stmt:
    statement = scene.statement(call)
    inner = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.IfExp,
             ast.BoolOp)  # fmt: skip
    held = next(scene.around(call, ast.stmt, *inner), None)
    if held is not None and isinstance(scene.holder(call, ast.stmt, *inner), inner):
        raise _Unclear("it stands in a part of an expression that has a scope or order of its own")
    if not isinstance(statement, _SIMPLE):
        raise _Unclear("it stands in the head of a statement")
    return statement


def _one(node: ast.expr) -> ast.expr:
    if isinstance(node, (ast.List, ast.Tuple)):
        if len(node.elts) != 1:
            raise _Unclear("several outputs are differentiated at once")
        return node.elts[0]
    return node


# -- what computes it ---------------------------------------------------------------------------


def _computation(scene: Scene, statement: ast.stmt, given: dict[str, ast.expr]) -> _Computation:
    outputs, asked = _one(given["outputs"]), given["inputs"]
    wanted = asked.elts if isinstance(asked, (ast.List, ast.Tuple)) else [asked]
    inputs = tuple(n for n in wanted if isinstance(n, ast.Name))
    if len(inputs) < len(wanted) or not inputs:
        raise _Unclear("what it differentiates for is no variable")
    block = _block(scene, statement)
    end = block.index(statement)
    start = min(_start(scene, block[:end], name) for name in inputs)
    flow = _Flow(scene, frozenset(n.id for n in inputs))
    for item in block[start:end]:
        flow.meet(item)
    inside = flow.behind(outputs)
    if not inside and not flow.reads(outputs):
        raise _Unclear("nothing in front of it in this block computes its outputs from its inputs")
    first = block.index(inside[0]) if inside else end
    between = tuple(s for s in block[first:end] if s not in inside)
    shaped = _shaped(scene, inside, between, given.get("grad_outputs"))
    alone = tuple(s for s in between if s not in shaped)
    try:
        _check(scene, statement, (*inside, *shaped), alone, given)
    except _Unclear:
        if not inside or not is_repeatable(scene, inside, between):
            raise
        return _Computation(inputs, outputs, inside, (), again=True)
    return _Computation(inputs, outputs, inside, alone, shaped=shaped)


def _shaped(
    scene: Scene, inside: Sequence[ast.stmt], between: Sequence[ast.stmt], asked: ast.expr | None
) -> tuple[ast.stmt, ...]:
    """Return the statements that make ``grad_outputs`` and ask the function's own values for their
    shapes: ``ones = torch.ones(y.shape)``."""
    bound = {name for item in inside for name in stores(item)}
    needed, found = loaded_names(asked) if asked is not None else set(), []
    for item in reversed(between):
        plain = isinstance(item, ast.Assign) and all(map(_is_plain, item.targets))
        names = [n for n in within(item) if isinstance(n, ast.Name) and n.id in bound]
        if plain and stores(item) & needed and names:
            if not all(_is_asked(scene, n) for n in names):
                return ()
            found.append(item)
            needed |= loaded_names(item)
    return tuple(reversed(found))


def _block(scene: Scene, statement: ast.stmt) -> list[ast.stmt]:
    parent = scene.parent(statement)
    for _, value in ast.iter_fields(parent) if parent is not None else ():
        if isinstance(value, list) and statement in value:
            return value
    raise _Unclear("it stands in no block")


def _start(scene: Scene, before: Sequence[ast.stmt], name: ast.Name) -> int:
    """Return the statement from which on a block may compute with an input."""
    only, moved = _binding(scene, name)
    if only is None:
        return _marked(scene, before, name) + 1
    if isinstance(only.place, ast.arg):
        function = scene.function(name)
        body = function.node.body if function is not None else ()
        if not before or not isinstance(body, list) or before[0] not in body:
            raise _Unclear(f"{name.id} comes from outside of this block")
        return 0
    places = [i for i, s in enumerate(before) if any(n is only.place for n in within(s))]
    places += [i for i, s in enumerate(before) if any(id(n) in moved for n in within(s))]
    made = before[places[0]] if places else None
    if not isinstance(made, ast.Assign):
        raise _Unclear(f"{name.id} comes from outside of this block")
    same = set() if _is_made(made.value) else _operands(scene, made.value) - {name.id}
    for item in before[places[0] + 1 :]:
        if others := _operands(scene, item) & same:  # torch's gradient goes through both names
            raise _Unclear(f"{name.id} may be {min(others)}, which line {item.lineno} reads")
    return max(places) + 1


def _marked(scene: Scene, before: Sequence[ast.stmt], name: ast.Name) -> int:
    """Return the place of ``x.requires_grad_()``, from which on a block may compute with x.

    Whatever x was bound to is a tensor that nothing has computed with: all that reads it in front
    of that only makes it.
    """
    reach, wanted = scene.facts.reach(name), name.id
    places = [i for i, s in enumerate(before) if _marked_by(s) == wanted]
    if not places or reach.outside:
        raise _Unclear(f"{wanted} may be one of several values")
    start = places[-1]
    bound = [scene.statement(b.place) for b in reach.bindings if not isinstance(b.place, ast.arg)]
    same: set[str] = set()
    for item in bound:
        if not isinstance(item, ast.Assign) or [type(n) for n in item.targets] != [ast.Name]:
            raise _Unclear(f"{wanted} may be one of several values")
        same |= set() if _is_made(item.value, scene) else _operands(scene, item.value) - {wanted}
    making = {id(n) for s in (*bound, *before[: start + 1]) for n in within(s)}
    function, line = scene.function(name), before[start].lineno
    for node in function.nodes if function is not None else scene.file.nodes:
        if isinstance(node, ast.Name) and node.id == wanted and isinstance(node.ctx, ast.Load):
            marks = _marked_by(scene.statement(node)) == wanted
            if node.lineno < line and id(node) not in making and not marks:
                raise _Unclear(f"line {node.lineno} reads {wanted} in front of that")
    for item in (*before[:start], *before[start + 1 :]):
        early = item in before[:start] and _marked_by(item) != wanted
        if early and wanted in loaded_names(item):
            raise _Unclear(f"line {item.lineno} reads {wanted} in front of that")
        if not early and (others := _operands(scene, item) & same):
            raise _Unclear(f"{wanted} may be {min(others)}, which line {item.lineno} reads")
    return start


def _marked_by(item: ast.stmt) -> str:
    """Return the variable of ``x.requires_grad_()`` or ``x.requires_grad = True``."""
    if isinstance(item, ast.Assign) and len(item.targets) == 1:
        target, value = item.targets[0], item.value
        marks = isinstance(target, ast.Attribute) and target.attr == "requires_grad"
        if marks and isinstance(value, ast.Constant) and value.value is True:
            return getattr(target.value, "id", "")  # type: ignore[attr-defined]
    call = item.value if isinstance(item, ast.Expr) else None
    func = call.func if isinstance(call, ast.Call) and not call.keywords else None
    if not isinstance(func, ast.Attribute) or func.attr != "requires_grad_":
        return ""
    plain = all(isinstance(a, ast.Constant) and a.value is True for a in call.args)  # type: ignore[union-attr]
    return getattr(func.value, "id", "") if plain else ""


def _binding(scene: Scene, name: ast.Name) -> tuple[Binding | None, set[int]]:
    """Return what binds a variable, and the places that only move it: ``x = x.to(device)``."""
    reach = scene.facts.reach(name)
    if reach.only is not None or reach.outside:
        return reach.only, set()
    moved = {id(b.place) for b in reach.bindings if _is_moved(scene, b.place)}
    others = [b for b in reach.bindings if id(b.place) not in moved]
    return (others[0], moved) if len(others) == 1 else (None, set())


def _is_moved(scene: Scene, place: ast.AST) -> bool:
    """Return whether ``x`` is bound in ``x = x.cuda()``: what it is stays, as devices go."""
    item = scene.parent(place)
    value = item.value if isinstance(item, ast.Assign) and len(item.targets) == 1 else None
    func = value.func if isinstance(value, ast.Call) else None
    return (
        isinstance(func, ast.Attribute)
        and func.attr in _DEVICES
        and isinstance(func.value, ast.Name)
        and func.value.id == getattr(place, "id", "")
        and (func.attr != "to" or all(_is_place(scene, a) for a in value.args))  # type: ignore[union-attr]
        and not value.keywords  # type: ignore[union-attr]
    )


def _is_place(scene: Scene, node: ast.expr) -> bool:
    """Return whether an expression is a device, or the name of one."""
    atoms = scene.kind(node)
    return bool(atoms) and all(a.kind == "str" or a.name == "torch.device" for a in atoms)


def _is_made(node: ast.expr, scene: Scene | None = None) -> bool:
    """Return whether an expression surely makes a tensor: ``(a * b).requires_grad_()``.

    With a ``scene`` functions of torch count as well.
    """
    func = node.func if isinstance(node, ast.Call) else None
    if isinstance(func, ast.Attribute) and func.attr in (*_MARKING, "detach"):
        return _is_made(func.value, scene)
    name = direct_name(scene, func) if scene is not None and func is not None else None
    if name is not None and not shares(name) and not name.endswith("_"):
        return True
    return isinstance(node, ast.BinOp) or (isinstance(func, ast.Attribute) and func.attr == "clone")


def _operands(scene: Scene, node: ast.AST) -> set[str]:
    """Return the variables that are read, those that are called or hold a Module that is apart."""
    calls = [n.func for n in within(node) if isinstance(n, ast.Call)]
    called = {id(func) for func in calls}
    called |= {id(n) for f in calls if is_all(scene.kind(f), "Module") for n in within(f)}
    names = (n for n in within(node) if isinstance(n, ast.Name) and id(n) not in called)
    return {n.id for n in names if isinstance(n.ctx, ast.Load)}


class _Flow:
    """Follows what is computed from some variables, statement by statement."""

    def __init__(self, scene: Scene, inputs: frozenset[str]) -> None:
        self.scene, self.inputs, self.tainted = scene, inputs, set(inputs)
        self.steps: list[tuple[ast.stmt, set[str]]] = []

    def meet(self, item: ast.stmt) -> None:
        """Take one more statement. Raises _Unclear where it may hand an input on unseen."""
        bound, touched = stores(item), self.reads(item)
        if bound & self.inputs:
            raise _Unclear(f"line {item.lineno} binds {min(bound & self.inputs)} anew")
        if isinstance(item, ast.Assign) and all(map(_is_plain, item.targets)):
            if touched and any(map(_changes, within(item.value))):
                raise _Unclear(f"line {item.lineno} changes a tensor in place")
            if touched:
                self.steps.append((item, bound))
            self.tainted = self.tainted | bound if touched else self.tainted - bound
        elif touched and not self._marks(item) and not _marked_by(item):
            raise _Unclear(f"line {item.lineno} uses what is computed from it in another way")
        elif bound & self.tainted:
            raise _Unclear(f"line {item.lineno} may bind {min(bound & self.tainted)} anew")

    def reads(self, node: ast.AST) -> bool:
        """Return whether more than the shape or dtype of such a value is read."""
        return any(
            isinstance(n, ast.Name)
            and isinstance(n.ctx, ast.Load)
            and n.id in self.tainted
            and not _is_asked(self.scene, n)
            for n in within(node)
        )

    def _marks(self, item: ast.stmt) -> bool:
        """Return whether a statement is ``x.requires_grad_()`` or ``x.retain_grad()``."""
        if isinstance(item, ast.Expr) and isinstance(item.value, ast.Call):
            func = item.value.func
            return isinstance(func, ast.Attribute) and func.attr in _MARKING
        return False

    def behind(self, outputs: ast.expr) -> tuple[ast.stmt, ...]:
        """Return the steps that a value is made by."""
        needed, found = loaded_names(outputs), []
        for item, bound in reversed(self.steps):
            if bound & needed:
                found.append(item)
                needed |= loaded_names(item)
        return tuple(reversed(found))


def _is_plain(target: ast.expr) -> bool:
    parts = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
    return all(isinstance(p, ast.Name) for p in parts)


def _changes(node: ast.AST) -> bool:
    name = node.func.attr if isinstance(node, ast.Call) and isinstance(
        node.func, ast.Attribute
    ) else ""  # fmt: skip
    return name.endswith("_") and not name.endswith("__") and name not in _MARKING


def _is_asked(scene: Scene, name: ast.Name) -> bool:
    """Return whether only the shape, dtype or device of a value is read: ``ones_like(x)``."""
    around = scene.parent(name)
    if isinstance(around, ast.Call) and around.args[:1] == [name]:
        return direct_name(scene, around.func) in _LIKE
    return isinstance(around, ast.Attribute) and around.attr in METADATA


def _check(
    scene: Scene,
    statement: ast.stmt,
    inside: Sequence[ast.stmt],
    between: Sequence[ast.stmt],
    given: dict[str, ast.expr],
) -> None:
    """Raise _Unclear where others read what the function binds, or bind what it reads."""
    bound = {name for item in inside for name in stores(item)}
    read = {name for item in inside for name in loaded_names(item)}
    own = {id(n) for item in inside for n in within(item)}
    own |= {
        id(n)
        for part in (given["outputs"], given.get("grad_outputs"))
        if part
        for n in within(part)
    }
    if any(differentiates(scene, n) for item in inside for n in within(item)):
        raise _Unclear("what it differentiates is a gradient itself")  # unless computed again
    function = scene.function(statement)
    if function is None and bound and len(scene.neighbours) > 1:
        raise _Unclear("other files may read what this one binds")
    for node in function.nodes if function is not None else scene.file.nodes:
        if isinstance(node, ast.Name) and node.id in bound and isinstance(node.ctx, ast.Load):
            reach = scene.facts.reach(node) if id(node) not in own else None
            if reach is not None and any(id(b.place) in own for b in reach.bindings):
                raise _Unclear(f"line {node.lineno} reads {node.id} as well")
    for item in between:
        if stores(item) & read or not isinstance(item, (ast.Assign, ast.AnnAssign)):
            raise _Unclear(f"line {item.lineno} stands between")
        if any(_asks(scene, n, read) for n in within(item)):
            raise _Unclear(f"line {item.lineno} may read what an object keeps of the computation")
    # what the function computes is computed later than in torch
    inner = {id(n) for n in within(given["outputs"])}
    around = {id(n) for n in scene.around(given["outputs"], ast.stmt)}
    for node in (n for item in (*between, statement) for n in within(item)):
        if isinstance(node, ast.Call) and id(node) not in inner | around and acts(scene, node):
            raise _Unclear(f"line {node.lineno} runs what nobody knows between")


def _asks(scene: Scene, node: ast.AST, names: set[str]) -> bool:
    """Return whether an attribute of an object that the function uses is read: ``net.saved``."""
    if not isinstance(node, ast.Attribute) or node.attr in METADATA:
        return False
    if direct_name(scene, node) is not None or is_all(scene.kind(node), "method"):
        return False
    return isinstance(node.value, ast.Name) and node.value.id in names


def _cotangent(scene: Scene, node: ast.expr | None, found: _Computation) -> ast.expr | None:
    """Return what the outputs are multiplied with; None for ones."""
    if node is None or is_none(node):
        return None
    node = _one(node)
    if _is_ones(scene, node, ast.unparse(found.outputs)):
        return None
    bound = {name for item in found.inside for name in stores(item)}
    held = bound | {n.id for n in found.inputs}
    held -= {name for item in found.shaped for name in stores(item)}
    names = (n for n in within(node) if isinstance(n, ast.Name) and n.id in held)
    if not all(_is_asked(scene, n) for n in names):
        raise _Unclear("what its outputs are multiplied with is computed from its inputs")
    return node


def _is_ones(scene: Scene, node: ast.expr, outputs: str) -> bool:
    """Return whether an expression is ones in the shape of the outputs, on whatever device."""
    if isinstance(node, ast.Constant) and node.value is None:
        return True  # for one number, of which it is one
    if isinstance(node, ast.IfExp):
        return _is_ones(scene, node.body, outputs) and _is_ones(scene, node.orelse, outputs)
    if isinstance(node, ast.Name):
        values = scene.facts.values(node)
        return bool(values) and all(v and _is_ones(scene, v, outputs) for v in values)
    if not isinstance(node, ast.Call):
        return False
    func = node.func
    made = scene.kind(func)
    if len(node.args) == 1 and made and all(a.kind == "ref" and _wraps(a.name) for a in made):
        kept = [k for k in node.keywords if getattr(k.value, "value", None) is not False]
        return not kept and _is_ones(scene, node.args[0], outputs)
    if isinstance(func, ast.Attribute) and func.attr in _DEVICES:
        places = func.attr != "to" or all(_is_place(scene, a) for a in node.args)
        return places and not node.keywords and _is_ones(scene, func.value, outputs)
    given = [*node.args, *(k.value for k in node.keywords if k.arg != "device")]
    if len(given) != 1:
        return False
    shapes = {
        "torch.ones_like": (outputs,),
        "torch.ones": (f"{outputs}.size()", f"{outputs}.shape"),
    }
    shapes["numpy.ones"] = shapes["torch.ones"]
    foreign = [a.name for a in made if a.kind == "foreign"]
    name = foreign[0] if len(foreign) == 1 == len(made) else direct_name(scene, func) or ""
    return ast.unparse(given[0]) in shapes.get(name, ())


def _wraps(name: str) -> bool:
    """Return whether torch gives the numbers of an array as they are: ``FloatTensor(array)``."""
    kept = ("FloatTensor", "DoubleTensor", "Variable", "from_numpy", "Tensor")
    return name.rpartition(".")[2] in kept


# -- the text -----------------------------------------------------------------------------------


def _edit(
    scene: Scene,
    site: Site,
    call: ast.Call,
    statement: ast.stmt,
    found: _Computation,
    cotangent: ast.expr | None,
    constant: bool,
    chosen: Chosen,
) -> Edit | Refusal:
    source, newline = scene.source, scene.source.newline
    name = _name(scene, found.outputs)
    names = ", ".join(n.id for n in found.inputs)
    grad, root = scene.spelling.local("mindspore.grad")
    needs = {root}
    order = f", ({', '.join(map(str, range(len(found.inputs))))})" if len(found.inputs) > 1 else ""
    text = f"{grad}({name}{order})({names})"
    if constant:
        cut = "helpers.without_gradient" if order else "mindspore.ops.stop_gradient"
        stop, other = scene.spelling.local(cut)
        needs.add(other)
        text = f"{stop}({text})"
    gone: ast.expr = call
    subscript = scene.parent(call)
    if isinstance(subscript, ast.Subscript) and subscript.value is call and not order:
        if not isinstance(subscript.slice, ast.Constant) or subscript.slice.value != 0:
            return Refusal(site, "LOP105", "there is one gradient, and another is taken", _NEXT)
        gone = subscript
    elif not order:
        text = f"({text},)"
    moved = () if found.again else (*found.inside, *found.shaped)
    items = [*moved, *found.between, statement]
    items.sort(key=lambda s: s.lineno)
    start, end = source.span(items[0]).start, source.span(statement).end
    parts: list[str | Piece] = []
    for item in found.between:
        parts += [Piece(source.span(item)), newline]
    parts.append(f"def {name}({names}):{newline}")
    shaped = found.shaped if cotangent is not None else ()  # ones are not needed
    for item in sorted((*found.inside, *shaped), key=lambda s: s.lineno):
        parts += ["    ", Piece(source.span(item)), newline]
    result: list[str | Piece] = [piece(source, found.outputs)]
    if cotangent is not None:
        result = ["(", *result, " * ", piece(source, cotangent), ").sum()"]
    parts += ["    return ", *result, newline]
    parts.append(Piece(source.span(statement)))
    taken = Edit(site.at(source.span(gone)), Outcome.CONVERTED, (text,))
    return Lines(
        site.at(Span(start, end)), Outcome.CONVERTED, tuple(p for p in parts if p),
        chosen.row.key, frozenset(needs), chosen.row.note, also=(taken,),
    )  # fmt: skip


def _name(scene: Scene, outputs: ast.expr) -> str:
    stem = f"{outputs.id}_of" if isinstance(outputs, ast.Name) else "computed"
    taken = {n.id for n in scene.file.nodes if isinstance(n, ast.Name)}
    number, name = 2, stem
    while name in taken:
        name, number = f"{stem}_{number}", number + 1
    return name
