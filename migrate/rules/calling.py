"""Decide calls of torch functions, classes and methods, and names as values, by their rows.

Collectives of torch.distributed change the very tensor that they are given. What is computed of
another tensor (``x.detach()``, ``x[0]``) has its memory in torch and is a copy in MindSpore, so
that the other would not change: those are refused.
"""

from __future__ import annotations

import ast
from dataclasses import replace

from migrate.analysis.types.kinds import Kind, is_all
from migrate.codegen import layout
from migrate.codegen.substitution import Renderer, Rendering, shown, without_parentheses
from migrate.mapping.calls import BoundCall, numbers, taken_as
from migrate.mapping.choice import (
    COMPLEX,
    MIXED,
    NUMBERS,
    SELECTION,
    WHOLE,
    ZERO,
    Chosen,
    NotChosen,
    choose,
)
from migrate.mapping.table import POLICY_DROP, Row, Table
from migrate.mapping.templates import is_closed, parse
from migrate.records.outcomes import Edit, Outcome, Refusal, Removal, Site
from migrate.rules import checkpoints, optimizers, registry
from migrate.rules.registry import claimed
from migrate.sites.dtypes import may_differ
from migrate.sites.module_members import EVAL, RESET, TRAIN, bases_choose, has_own_modes
from migrate.sites.origins import is_made_whole, may_be_complex
from migrate.sites.scene import Scene
from migrate.sites.selections import is_mask, is_selection
from migrate.syntax.trees import dotted, is_super


def class_name(scene: Scene, name: str) -> tuple[str, Row] | None:
    """The MindSpore class (or constant) that a torch name stands for as a type.

    Where rows differ that is MindSpore's own: a helper derives from it, and so is one of them.
    """
    found = []
    for row in scene.table.rows(name):
        template = template_of(scene, row)
        node = parse(template) if template else None
        target = dotted(node.func if isinstance(node, ast.Call) else node) if node else ""
        target = target if target and is_closed(target) else ""
        if target or row.ref:
            found.append((target or row.ref, row))
    return min(found, key=lambda one: one[0].startswith("helpers."), default=None)


def constant_target(scene: Scene, row: Row) -> str:
    """The target of a constant (a dtype, a number): no call and no argument in it."""
    template = template_of(scene, row)
    if not template or isinstance(parse(template), ast.Call) or not is_closed(template):
        return ""
    return template


def _is_type(scene: Scene, row: Row) -> bool:
    """Return whether a row gives a class itself, for ``isinstance``, whatever the arguments are."""
    target = constant_target(scene, row)
    return bool(target) and scene.table.target_is_class(target)


def same_signature(table: Table, row: Row) -> str:
    """The target when a template only renames and the target takes torch's very arguments."""
    if not row.to or row.only or row.rule:
        return ""
    node = parse(row.to)
    if not isinstance(node, ast.Call):
        return ""
    target = dotted(node.func)
    theirs = table.target_signature(target) if target else None
    passed = [*node.args, *(k.value for k in node.keywords)]
    if theirs is None or not row.signatures or not all(isinstance(a, ast.Name) for a in passed):
        return ""
    mine = [p for p in row.signatures[0].params if p.name not in ("out", "generator")]
    pairs = list(zip(mine, theirs.params, strict=False))
    same = all(a.name == b.name and a.default == b.default for a, b in pairs)
    fits = len(mine) <= len(theirs.params) and same
    extra = all(p.default is not None for p in theirs.params[len(mine) :])
    return target if fits and extra and not (POLICY_DROP & {p.name for p in mine}) else ""


def decide_call(
    scene: Scene, site: Site, name: str, call: ast.Call, receiver: ast.expr | None
) -> Edit | Refusal | NotChosen:
    """The edit of a call; NotChosen when no row admits it (the caller may know another way)."""
    chosen = choose(
        scene.table, name, call.args, call.keywords, scene.kind_names, scene.target,
        lambda row, bound: _selects(scene, row, bound, call, receiver),
    )  # fmt: skip
    if isinstance(chosen, NotChosen):
        return chosen
    type_only = next((c.row for c in chosen if _is_type(scene, c.row)), None)
    if type_only is not None:
        why = "the class is known as a type here, not as what its constructor builds"
        return NotChosen("API104", why, "build the class that is meant", type_only.ref, type_only)
    chosen = _of_tensors(scene, name, _cycled(scene, name, chosen), call)
    chosen = _moded(scene, name, chosen, receiver)
    saved = checkpoints.chosen_for(scene, site, name, call, chosen)
    if isinstance(saved, Refusal):
        return saved
    chosen = saved
    if chosen[0].row.rule:
        rule = registry.ours().named(chosen[0].row.rule)
        return claimed(rule.run(scene, site, call, receiver, chosen[0]), rule)  # type: ignore[no-any-return]
    chosen = [c for c in chosen if not c.row.rule]  # like a flag, a rule counts if it comes first
    if shared := refusal(scene, site, call):
        return shared
    edits = [edit_of(scene, site, call, receiver, c) for c in chosen]
    forms = {shown(scene.source, e.parts) for e in edits if e.parts is not None}
    if len(forms) > 1:
        kinds = ", ".join(sorted({c.row.key for c in chosen}))
        return Refusal(
            site,
            "API104",
            f"the argument types do not tell which is meant: {kinds}",
            "annotate the arguments",
            keep=receiver is None,  # a helper with torch's arguments may decide it
        )
    edit = optimizers.remembering(scene, call, optimizers.unfrozen(scene, call, edits[0]))
    return optimizers.too_fine(scene, site, call) or edit


def decide_method(scene: Scene, site: Site, name: str, call: ast.Call) -> Edit | None:
    """The edit of a method that is called by its class, with its receiver as first argument."""
    receiver, *rest = call.args
    func = ast.copy_location(ast.Attribute(receiver, name.rpartition(".")[2], ast.Load()), call)
    method = ast.copy_location(ast.Call(func, rest, call.keywords), call)
    found = decide_other(scene, site, name, method, receiver)
    return found if isinstance(found, Edit) else None


def decide_other(
    scene: Scene, site: Site, name: str, call: ast.Call, receiver: ast.expr | None
) -> Edit | NotChosen | None:
    """The edit of a call that the source does not have as it is, in place of the one it has.

    None: several rows may be meant, or a rule decides, which looks at the source.
    """
    chosen = choose(
        scene.table, name, call.args, call.keywords, scene.kind_names, scene.target,
        lambda row, bound: _selects(scene, row, bound, call, receiver),
    )  # fmt: skip
    if isinstance(chosen, NotChosen):
        return chosen
    renderings = [render(scene, call, receiver, c) for c in chosen if not c.row.rule]
    if chosen[0].row.rule or len({shown(scene.source, r.parts) for r in renderings}) != 1:
        return None
    row, rendering = chosen[0].row, renderings[0]
    helped = any(n.startswith("helpers.") for n in rendering.needs)
    outcome = Outcome.HELPER if helped else Outcome.CONVERTED
    place = site.at(scene.source.span(call))
    return Edit(place, outcome, rendering.parts, row.key, rendering.needs, row.note)


def _selects(
    scene: Scene, row: Row, bound: BoundCall, call: ast.Call, receiver: ast.expr | None
) -> bool:
    """Whether what the row wants to be a selection, numbers or complex may be that; to be made
    whole, is."""
    if WHOLE in row.when.values() and not is_made_whole(scene, call):
        return False
    for name, wanted in row.when.items():
        operand = receiver if name == "self" else bound.values.get(name)
        if wanted == SELECTION:
            if not isinstance(operand, ast.expr) or not is_selection(scene, operand):
                return False
        elif wanted == NUMBERS:
            if isinstance(operand, ast.expr) and _is_truth(scene, operand):
                return False
        elif wanted == COMPLEX:
            if not isinstance(operand, ast.expr) or not may_be_complex(scene, operand):
                return False
        elif wanted == MIXED:
            if not isinstance(operand, ast.expr) or not may_differ(scene, operand):
                return False
        elif wanted == ZERO and not _may_be_zero(scene, operand):
            return False
    return True


def _may_be_zero(scene: Scene, value: object, depth: int = 3) -> bool:
    """Return whether a number, or one of several, is the literal 0 or comes of a difference."""
    many = value if isinstance(value, tuple) else getattr(value, "elts", None)
    if many is None and isinstance(value, ast.BinOp):
        if isinstance(value.op, (ast.Sub, ast.Mod)):
            return True
        many = (value.left, value.right)
    elif isinstance(value, ast.Name) and depth:
        many, depth = scene.facts.values(value), depth - 1
    elif isinstance(value, ast.Attribute) and depth:
        many, depth = _stored(scene, value), depth - 1
    if many is not None:
        return any(_may_be_zero(scene, one, depth) for one in many)
    return isinstance(value, ast.Constant) and type(value.value) is int and value.value == 0


def _stored(scene: Scene, node: ast.Attribute) -> tuple[ast.expr, ...]:
    """Return what a file assigns to an attribute of that name."""
    statements = (scene.parent(n) for n in scene.file.of(ast.Attribute) if n.attr == node.attr)
    return tuple(s.value for s in statements if isinstance(s, ast.Assign) and s.value is not node)


# methods whose result holds what the receiver holds
_MOVING = frozenset(
    "all any clone contiguous cpu detach expand flatten flip narrow permute repeat reshape roll"
    " select squeeze t transpose unsqueeze view".split()
)


def _is_truth(scene: Scene, node: ast.expr) -> bool:
    """Whether a Tensor surely holds truth values."""
    while True:
        if is_mask(scene, node):
            return True
        func = node.func if isinstance(node, ast.Call) else None
        if isinstance(node, ast.Subscript):
            node = node.value
        elif isinstance(func, ast.Attribute) and func.attr in _MOVING:
            node = func.value
        else:
            return False


def _cycled(scene: Scene, name: str, chosen: list[Chosen]) -> list[Chosen]:
    """Where a schedule of the program changes momenta: optimizers that read them at every step."""
    rows = {row.key: row for row in scene.table.rows(name)}
    other = rows.get(f"{name}:cycled")
    if other is None or not scene.mentions(b"OneCycleLR", b"CyclicLR"):
        return chosen
    return [replace(one, row=other) if one.row.key == name else one for one in chosen]


def _of_tensors(scene: Scene, name: str, chosen: list[Chosen], call: ast.Call) -> list[Chosen]:
    """Where a list may hold Tensors: torch takes each for its one number, whatever its shape.

    It takes any sequence for a list, also a deque.
    """
    rows = {row.key: row for row in scene.table.rows(name)}
    other = rows.get("torch.tensor:complex")
    given = call.args[0] if call.args else None
    if other is None or given is None:
        return chosen
    sequence = any(atom.name == "collections.deque" for atom in scene.kind(given))
    if not sequence and not _may_hold_tensors(scene.kind(given)):
        return chosen
    return [replace(one, row=other) if one.row.key == name else one for one in chosen]


def _may_hold_tensors(kind: Kind, depth: int = 3) -> bool:
    parts = [i for a in kind if a.kind in ("list", "tuple") for i in a.items]
    held = any(a.kind == "Tensor" for part in parts for a in part)
    return held or (depth > 0 and any(_may_hold_tensors(part, depth - 1) for part in parts))


def _moded(
    scene: Scene, name: str, chosen: list[Chosen], receiver: ast.expr | None
) -> list[Chosen]:
    """Where a Module of the program has its own ``train(mode)``: a switch that asks it.

    ``super().reset_parameters()`` means torch's own, never the one it stands in.
    """
    if name == RESET and receiver is not None and is_super(receiver):
        rows = {row.key: row for row in scene.table.rows(name)}
        return [replace(one, row=rows[f"{name}:of_torch"]) for one in chosen]
    if name not in (TRAIN, EVAL) or receiver is None or not has_own_modes(scene):
        return chosen
    rows = {row.key: row for row in scene.table.rows(name)}
    wanted = f"{name}:own"
    if name == TRAIN and is_super(receiver):
        atoms = scene.kind(receiver)
        if any(bases_choose(scene, atom.name) for atom in atoms):
            return chosen
        wanted = f"{name}:below"
    return [replace(one, row=rows[wanted]) for one in chosen]


def template_of(scene: Scene, row: Row) -> str:
    return row.mint if scene.target == "mint" and row.mint else row.to


def edit_of(
    scene: Scene, site: Site, call: ast.Call, receiver: ast.expr | None, chosen: Chosen
) -> Edit:
    """Render the row's template for the call."""
    rendering = render(scene, call, receiver, chosen)
    parts = layout.call(scene.source, call, rendering)
    text = shown(scene.source, parts)
    outcome = Outcome.CONVERTED
    if any(n.startswith("helpers.") for n in rendering.needs):
        outcome = Outcome.HELPER
    elif text == without_parentheses(scene.source.text_of(call)):
        outcome = Outcome.KEPT
    statement = scene.parent(call)
    if text == "None" and isinstance(statement, ast.Expr):
        return removed(scene, site, statement, chosen.row)
    site = site.at(scene.source.span(call))
    return Edit(site, outcome, parts, chosen.row.key, rendering.needs, chosen.row.note)


def render(scene: Scene, call: ast.Call, receiver: ast.expr | None, chosen: Chosen) -> Rendering:
    renderer = Renderer(scene.source, scene.spelling, scene.table, chosen.bound, receiver)
    renderer.keyword_names = {id(k.value): k.arg for k in call.keywords if k.arg}
    renderer.numbers = frozenset(map(id, numbers(chosen.bound, scene.kind_names)))
    taken = taken_as(chosen.bound, scene.kind_names)
    renderer.taken_as = {id(value): kind for value, kind in taken}
    listed = (chosen.bound.values.get(p.name) for p in chosen.bound.signature.params
              if p.type == "int[]" or p.name.startswith("split_size"))  # fmt: skip
    renderer.counted = frozenset(id(v) for v in listed if _holds_tensors(scene, v))
    return renderer.render(template_of(scene, chosen.row))


def _holds_tensors(scene: Scene, value: object) -> bool:
    """Return whether an argument surely is a list that holds Tensors alone."""
    kinds = scene.kind(value) if isinstance(value, ast.expr) else ()
    items = [item for a in kinds for item in a.items]
    lists = all(a.kind in ("list", "tuple") and a.items for a in kinds)
    return bool(items) and lists and all(is_all(item, "Tensor") for item in items)


def removed(scene: Scene, site: Site, statement: ast.stmt, row: Row) -> Edit:
    """A call or setting without effect goes with its statement."""
    where = site.at(scene.source.span(statement))
    return Removal(where, Outcome.CONVERTED, (), row.key, note=row.note)


_WRITERS = frozenset(f"torch.distributed.{name}" for name in ("all_reduce", "broadcast", "reduce"))
_SHARING = frozenset(
    "data detach expand expand_as flatten narrow permute ravel reshape select squeeze t transpose "
    "unsqueeze unbind view view_as".split()
)


def refusal(scene: Scene, site: Site, call: ast.Call) -> Refusal | None:
    """A Refusal where the tensor is no variable, or one that may share another's memory."""
    if site.name not in _WRITERS:
        return None
    given = [*call.args, *(k.value for k in call.keywords if k.arg == "tensor")]
    target = given[0] if given else None
    if isinstance(target, ast.Name) and not _is_part(scene, target):
        values = scene.facts.values(target, parts=True)
        if not any(_shares(v) for v in values if v is not None):  # a parameter is the caller's own
            return None
    return Refusal(
        site,
        "INP202",
        "the tensor may share memory with another, which would not change",
        "bind a clone() to a name, and give that name",
    )


def _is_part(scene: Scene, name: ast.Name) -> bool:
    """Return whether a loop over a Tensor may bind a name, to a part of it."""
    loops = [scene.parent(b.place) for b in scene.facts.reach(name).bindings]
    return any(
        isinstance(n, ast.For | ast.comprehension)
        and any(a.kind == "Tensor" for a in scene.kind(n.iter))
        for n in loops
    )


def _shares(value: ast.expr) -> bool:
    """Whether a value may be (part of) another tensor: a name, a part, or a view of one."""
    if isinstance(value, ast.Call):
        return isinstance(value.func, ast.Attribute) and value.func.attr in _SHARING
    return isinstance(value, (ast.Name, ast.Attribute, ast.Subscript, ast.Tuple))
