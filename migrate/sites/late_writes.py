"""Judge an attribute that is written late: a child of a chain of Cells, a setting of a layer."""

from __future__ import annotations

import ast

from migrate.analysis.types.kinds import CONTEXT, Atom, Kind, without_none
from migrate.codegen.substitution import piece
from migrate.records.outcomes import Edit, Outcome, Piece, Refusal
from migrate.sites.buffer_gradients import BUFFER, registered, stores_buffer
from migrate.sites.module_members import family
from migrate.sites.scene import Scene
from migrate.syntax.trees import all_names, is_none, last_name, targets_of

CHILD = "torch.nn.Sequential.__setattr__"
GONE = "torch.nn.Sequential.__delattr__"
_HELPERS = {CHILD: "helpers.set_child", GONE: "helpers.delete_child"}
_CALLS = {("setattr", 3): CHILD, ("delattr", 2): GONE}
_SEQUENTIAL = "torch.nn.Sequential"


def late_child(scene: Scene, node: ast.Attribute | ast.Call) -> str:
    """CHILD for ``model.features.conv0 = nn.Conv2d(...)`` and ``setattr(model, name, layer)``,
    GONE for ``del model.features.pool``, where the owner may be a SequentialCell.

    That one calls the list of Cells it was built with: what is put under a name later on is
    never called, without a word. Who derives from Sequential has a base that looks after this,
    so ``self`` itself is none.
    """
    if isinstance(node, ast.Attribute):
        owner, name = node.value, GONE if isinstance(node.ctx, ast.Del) else CHILD
        value = _assigned(scene, node) if name == CHILD else None
    else:
        name = _CALLS.get((getattr(node.func, "id", ""), len(node.args)), "")
        if not name or node.keywords:
            return ""
        owner, value = node.args[0], node.args[2] if name == CHILD else None
    if isinstance(owner, ast.Name) and (owner.id == "self" or scene.kind(owner) == CONTEXT):
        return ""
    return name if _concerns(scene, owner, value, name, node) else ""


def registered_child(scene: Scene, node: ast.Attribute) -> str:
    """CHILD for ``model._modules[name] = layer``, GONE for ``del model._modules[name]``."""
    item = scene.parent(node)
    if node.attr != "_modules" or not isinstance(item, ast.Subscript) or item.value is not node:
        return ""
    atoms = without_none(scene.kind(node.value))
    if isinstance(item.ctx, ast.Load) or any(a.kind not in ("Module", "unknown") for a in atoms):
        return ""
    return GONE if isinstance(item.ctx, ast.Del) else CHILD


def _concerns(
    scene: Scene, owner: ast.expr, value: ast.expr | None, name: str, node: ast.AST
) -> bool:
    """Whether the owner may be a chain and the value a Cell; one of both has to be seen."""
    chain, surely = _chain(scene.kind(owner))
    if name == GONE:
        return surely
    given = frozenset() if value is None else without_none(scene.kind(value))
    if any(atom.kind == "Module" for atom in given):
        return chain
    made = isinstance(node, ast.Call) or isinstance(value, ast.Call)
    return surely and made and any(atom.kind == "unknown" for atom in given)


def _chain(kind: Kind) -> tuple[bool, bool]:
    """Whether it may be a Sequential, and whether it is seen to be one, or some Module."""
    atoms = without_none(kind)
    seen = any(a.kind == "Module" and a.name in ("", "torch.nn.Module", _SEQUENTIAL) for a in atoms)
    return seen or not atoms or any(a.kind == "unknown" for a in atoms), seen


def _assigned(scene: Scene, node: ast.Attribute) -> ast.expr | None:
    """What the name gets; its own part of ``a.x, a.y = one, other``."""
    statement = scene.statement(node)
    if not isinstance(statement, (ast.Assign, ast.AnnAssign)):
        return None
    targets, value = scene.parent(node), statement.value
    if isinstance(targets, ast.Tuple) and isinstance(value, ast.Tuple):
        return dict(zip(targets.elts, value.elts, strict=False)).get(node)
    return value


def decide_child(scene: Scene, node: ast.AST, name: str) -> Edit | Refusal:
    """The helper's call; a statement that does more than this one thing is flagged."""
    return as_call(scene, node, name, _HELPERS[name]) or Refusal(
        scene.site(name, node),
        "API114",
        "a SequentialCell calls the Cells it was built with: this one is not among them",
        "give this name a statement of its own",
    )


def as_call(scene: Scene, node: ast.AST, name: str, helper: str) -> Edit | None:
    """``owner.name = value`` and ``setattr(owner, "name", value)`` as a call of a helper; None for
    a statement that does more."""
    local, root = scene.spelling.local(helper)
    needs = frozenset({root})
    if isinstance(node, ast.Call):
        return Edit(scene.site(name, node.func), Outcome.HELPER, (local,), "", needs)
    assert isinstance(node, ast.Attribute)
    statement, item = scene.statement(node), scene.parent(node)
    entry = isinstance(item, ast.Subscript) and not isinstance(item.ctx, ast.Load)
    alone = [item if entry else node] == getattr(statement, "targets", None)
    if not alone or not isinstance(statement, (ast.Assign, ast.Delete)):
        return None
    site = scene.site(name, statement)
    held = piece(scene.source, node.value)
    child: str | Piece = f'"{node.attr}"'
    if isinstance(item, ast.Subscript) and entry:
        child = piece(scene.source, item.slice)
    head: tuple[str | Piece, ...] = (f"{local}(", held, ", ", child)
    if isinstance(statement, ast.Delete):
        return Edit(site, Outcome.HELPER, (*head, ")"), "", needs)
    value = piece(scene.source, statement.value)
    return Edit(site, Outcome.HELPER, (*head, ", ", value, ")"), "", needs)


# What torch's layers say of themselves and do not go by, what is data, what changes no number.
_FREE = frozenset(
    """
in_channels out_channels in_features out_features num_features num_embeddings embedding_dim
weight bias inplace device dtype training
""".split()
)

# What nobody but a layer is likely to call so, where its class is not known.
_LAYERS_ONLY = frozenset(
    """
stride padding dilation groups kernel_size output_padding padding_mode ceil_mode count_include_pad
momentum eps track_running_stats negative_slope align_corners
""".split()
)
NORMS = tuple(f"torch.nn.{kind}" for kind in ("BatchNorm", "GroupNorm", "LayerNorm", "Module"))
REDUCTION = "torch.nn.Module.reduction"
_ANY = "", "torch.nn.Module"
_WEIGHTED = "torch.nn.Linear", "torch.nn.Conv"
CONVOLUTION = frozenset(
    f"torch.nn.Conv{axes}d.{name}"
    for axes in (1, 2, 3)
    for name in ("stride", "padding", "dilation")
)


def late_setting(scene: Scene, node: ast.Attribute | ast.Call) -> str:
    """The torch name of what ``bn.momentum = 0.03`` and ``setattr(bn, "momentum", 0.03)`` set,
    or the name for a child that a chain gets or loses late; "" for all else.

    A layer of torch goes by it from then on. A Cell has read it when it was built, and some call
    something else by that name: momentum weighs the old value there.
    """
    if isinstance(node, ast.Attribute):
        held, attribute = node.value, node.attr
        if stores_buffer(scene, node):
            return BUFFER
    elif getattr(node.func, "id", "") == "setattr" and len(node.args) == 3:
        held, attribute = node.args[0], str(getattr(node.args[1], "value", ""))
        if attribute in registered(scene):
            return BUFFER
    else:
        return late_child(scene, node)
    if attribute == "bias":
        return _bias(scene, node, held)
    if sets_reduction(scene, node):
        return REDUCTION
    names = {_setting(scene, atom, attribute) for atom in without_none(scene.kind(held))} - {""}
    if names and isinstance(node, ast.Attribute) and _as_built(scene, node):
        return ""
    if len(names) > 1:  # the helper is for these alone
        names -= CONVOLUTION
    return min(names, default="") or late_child(scene, node)


def sets_reduction(scene: Scene, node: ast.Attribute | ast.Call) -> bool:
    """Whether ``loss.reduction = "none"`` may be told to a loss of torch, or surely is."""
    if not isinstance(node, ast.Attribute) or node.attr != "reduction":
        return False
    value = _assigned(scene, node)
    plain = isinstance(value, ast.Constant) and value.value in ("none", "mean", "sum")
    return may_be_loss(scene, node.value, plain)


def may_be_loss(scene: Scene, held: ast.expr, unknown: bool) -> bool:
    """Whether something may be a loss of torch; ``unknown``: what nobody knows may be one, too."""
    return any(
        unknown
        if atom.kind == "unknown" or (atom.kind == "Module" and atom.name in _ANY)
        else atom.kind == "Module" and atom.name.startswith("torch.nn.") and "Loss" in atom.name
        for atom in without_none(scene.kind(held))
    )


def _bias(scene: Scene, node: ast.Attribute | ast.Call, held: ast.expr) -> str:
    """Return ``torch.nn.Conv2d.bias`` for ``conv.bias = None``: a Cell goes on adding it.

    The same for a bias that a layer gets which may have been built without one: a Cell leaves it.
    """
    value = _assigned(scene, node) if isinstance(node, ast.Attribute) else node.args[2]
    layers = scene.module_classes(held)
    weighted = bool(layers) and all(n.startswith(_WEIGHTED) for n in layers)
    if isinstance(value, ast.Constant) and value.value is None:
        return f"{layers[0]}.bias" if weighted else ""
    if value is None or _built_with_bias(scene, held):
        return ""
    return f"{layers[0]}.bias" if weighted else ""


def _built_with_bias(scene: Scene, held: ast.expr) -> bool:
    """Return whether a variable or attribute is bound to layers that have a bias alone."""
    unit: ast.AST | None = scene.file.holder(held, ast.ClassDef)
    if isinstance(held, ast.Name):
        function = scene.function(held)
        unit = function.node if function is not None else scene.source.tree
    nodes = ast.walk(unit) if unit is not None else ()
    bound = [n for n in nodes if isinstance(n, (ast.Assign, ast.AnnAssign))]
    text = ast.unparse(held)
    values = [n.value for n in bound if text in map(ast.unparse, targets_of(n))]
    return bool(values) and all(_has_bias(scene, value) for value in values)


def _has_bias(scene: Scene, value: ast.expr | None) -> bool:
    """Return whether an expression builds a layer of torch, and leaves its bias as it is."""
    if not isinstance(value, ast.Call):
        return False
    told = any(k.arg is None for k in value.keywords) or any(
        isinstance(a, ast.Starred) for a in value.args
    )
    given = [k.value for k in value.keywords if k.arg == "bias"]
    layers = scene.module_classes(value)
    for one in (one for name in layers for one in scene.table.signatures(name)):
        names = [param.name for param in one.params]
        if "bias" not in names:
            return False
        place = names.index("bias")
        given += value.args[place : place + 1]
    plain = all(isinstance(g, ast.Constant) and g.value is True for g in given)
    return bool(layers) and plain and not told


def _setting(scene: Scene, atom: Atom, attribute: str) -> str:
    if atom.kind != "Module" or attribute in _FREE:
        return ""
    if atom.name in ("", "torch.nn.Module"):
        own = attribute not in _LAYERS_ONLY or attribute in scene.inference.program.holders
        return "" if own else f"torch.nn.Module.{attribute}"
    layers: tuple[str, ...] = (atom.name,)
    if "::" in atom.name:
        layers = () if _computes(scene, atom.name) else scene.inference.torch_bases(atom.name)
    for layer in layers:
        signatures = scene.table.signatures(layer) if layer.startswith("torch.nn.") else ()
        if any(param.name == attribute for one in signatures for param in one.params):
            derived = "::" in atom.name and _reads_when_run(scene, layer, attribute)
            return "" if derived else f"{layer}.{attribute}"
    return ""


def _reads_when_run(scene: Scene, layer: str, attribute: str) -> bool:
    """Return whether the helper that classes are derived from goes by an attribute when it runs,
    and by nothing else that was made of it."""
    ref = next((row.ref for row in scene.table.rows(layer) if row.ref), "")
    helper = scene.table.helpers.definition(ref.removeprefix("helpers."))
    methods = [m for m in getattr(helper, "body", ()) if isinstance(m, ast.FunctionDef)]
    running = [n for m in methods if m.name != "__init__" for n in ast.walk(m)]
    read = {n.attr for n in running if isinstance(n, ast.Attribute) and _is_self(n.value)}
    if attribute not in read or any(isinstance(n, ast.Name) and n.id == "super" for n in running):
        return False
    built = [n for m in methods if m.name == "__init__" for n in ast.walk(m)]
    stored, made = _made_of(built, attribute)
    above = [n for n in built if isinstance(n, ast.Call) and last_name(n.func) == "__init__"]
    if any(made & all_names(call) for call in above):
        made = made | (read - stored.keys())  # what the class above may have made of it
    return attribute in stored and not (read & made) - {attribute}


def _made_of(built: list[ast.AST], name: str) -> tuple[dict[str, ast.expr], set[str]]:
    """Return what a constructor stores, and the variables and attributes that it makes of an
    argument, the argument included; a default for another argument is as in torch."""
    stores = [(t, n.value) for n in built if isinstance(n, ast.Assign) for t in n.targets]
    pairs = [pair for target, value in stores for pair in _pairs(target, value)]
    stored = {t.attr: v for t, v in pairs if isinstance(t, ast.Attribute)}
    made, before = {name}, set[str]()
    while made != before:
        before = set(made)
        for target, value in pairs:
            test = value.test if isinstance(value, ast.IfExp) else None
            default = isinstance(test, ast.Compare) and is_none(test.comparators[0])
            if made & all_names(value) and not default:
                attribute = isinstance(target, ast.Attribute)
                made |= {target.attr} if attribute else all_names(target)  # type: ignore[attr-defined]
    return stored, made


def _is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "self"


def _pairs(target: ast.expr, value: ast.expr) -> list[tuple[ast.expr, ast.expr]]:
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        return list(zip(target.elts, value.elts, strict=False))
    return [(target, value)]


def _computes(scene: Scene, key: str) -> bool:
    """Whether a class of the project has a ``forward`` of its own that leaves its base's alone:
    what it writes on itself then means what that says."""
    known: dict[str, bool] = scene.inference.program.notes.setdefault("computes", {})
    if key not in known:
        own = [c.methods["forward"] for c in family(scene, key) if "forward" in c.methods]
        nodes = (n for method in own for n in method.of(ast.Attribute))
        known[key] = bool(own) and not any(getattr(n, "attr", "") == "forward" for n in nodes)
    return known[key]


def _as_built(scene: Scene, node: ast.Attribute) -> bool:
    """``self.stride = stride`` where ``super().__init__(..., stride)`` gets the same."""
    statement, function = scene.statement(node), scene.function(node)
    name = getattr(getattr(statement, "value", None), "id", None)
    if function is None or name is None:
        return False
    calls = (c for c in function.nodes if isinstance(c, ast.Call))
    builds = [c for c in calls if getattr(c.func, "attr", "") == "__init__"]
    named = ((k.arg, k.value) for c in builds for k in c.keywords)
    given = [*named, *((node.attr, a) for c in builds for a in c.args if name == node.attr)]
    return any(a == node.attr and getattr(value, "id", None) == name for a, value in given)
