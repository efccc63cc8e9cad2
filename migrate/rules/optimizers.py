"""Give an optimizer the parameters that torch would train, no others.

Torch's optimizers pass over parameters without a gradient; MindSpore's would move frozen ones, and
decay the weights of those that no gradient reaches. A member counts as untrained only where that
is certain: nothing in the program reads it, or everything that does lies under no_grad.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from migrate.analysis.program import Class, File
from migrate.analysis.types.kinds import is_all, without_none
from migrate.codegen.substitution import piece
from migrate.records.outcomes import Edit, Outcome, Piece, Refusal, Site, Span
from migrate.rules.registry import decides, rewrites
from migrate.rules.stopped import is_stopped, outwards
from migrate.sites.module_members import RENAMED, family
from migrate.sites.references import Form, direct_name
from migrate.sites.scene import Scene
from migrate.syntax.trees import dotted

# what reaches members without their names
_BLIND = (b"children(", b"_modules", b"get_submodule", b"get_parameter", b"__dict__", b"vars(")
_NUMBERS = frozenset({"item", "tolist", "detach", "numpy", "data", "shape"})
_DECAYING = ("torch.optim.AdamW", "torch.optim.Muon")
SCHEDULES = "torch.optim.lr_scheduler."
_JOINING = (f"{SCHEDULES}SequentialLR", f"{SCHEDULES}ChainedScheduler")


def untrained_members(scene: Scene, model: ast.expr, call: ast.Call) -> tuple[str, ...]:
    """The names of untrained members, where the optimizer of the call decays weights."""
    if not _decays(scene, call) or scene.mentions(*_BLIND):
        return ()
    found = {n for o in _classes(scene, model) for n in _held(scene, o) if _untrained(scene, o, n)}
    return tuple(sorted(found))


def _classes(scene: Scene, model: ast.expr) -> list[Class]:
    """The class of a Module; where nothing tells, every Module class of the program may be it.

    That is safe: a name counts only where one class alone has it, and what lacks it loses nothing.
    """
    atoms = [a for a in without_none(scene.kind(model)) if a.kind != "unknown"]
    names = {a.name for a in atoms} or {""}  # it has parameters()
    if len(names) != 1 or any(a.kind != "Module" for a in atoms):
        return []
    name = names.pop()
    files = scene.neighbours
    every = [o for f in files for o in f.classes.values() if _is_plain(scene, o)]
    near = [o for o in every if o.path == scene.file.path]
    known = [o for o in every if o.key == name]
    return known or (near or every if name in ("", "torch.nn.Module") else [])


def _is_plain(scene: Scene, owner: Class) -> bool:
    """Derived from torch's Module alone."""
    bases = [a for base in scene.inference.bases(owner.key) for a in base]
    return bool(bases) and all(a.kind == "ref" and a.name == "torch.nn.Module" for a in bases)


def _decays(scene: Scene, call: ast.Call) -> bool:
    given = next((k.value for k in call.keywords if k.arg == "weight_decay"), None)
    if given is None:
        built = {atom.name for atom in scene.kind(call.func)}
        spread = any(k.arg is None for k in call.keywords)
        return spread or not built.isdisjoint(_DECAYING) or len(call.args) > 2
    return not (isinstance(given, ast.Constant) and not given.value)


def _held(scene: Scene, owner: Class) -> Iterator[str]:
    """The members that hold parameters: Modules and nn.Parameters that __init__ assigns."""
    for node in ast.walk(owner.methods["__init__"].node) if "__init__" in owner.methods else ():
        if (name := _registered(node)) and name not in RENAMED:
            yield name
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            target, value = node.targets[0], node.value
            if not isinstance(target, ast.Attribute) or not isinstance(target.value, ast.Name):
                continue
            parameter = isinstance(value, ast.Call) and (
                direct_name(scene, value.func) == "torch.nn.Parameter"
            )
            if target.attr not in RENAMED and (parameter or is_all(scene.kind(value), "Module")):
                yield target.attr


def _registered(node: ast.AST) -> str:
    """The name of ``self.register_parameter("w", nn.Parameter(...))``; "" for other calls."""
    if not isinstance(node, ast.Call) or getattr(node.func, "attr", "") != "register_parameter":
        return ""
    if len(node.args) != 2 or not isinstance(node.args[1], ast.Call):
        return ""
    name = node.args[0]
    return name.value if isinstance(name, ast.Constant) and isinstance(name.value, str) else ""


def _untrained(scene: Scene, owner: Class, name: str) -> bool:
    stored = 0
    for file in scene.neighbours:
        for node in file.nodes:
            if isinstance(node, ast.Constant) and node.value == name:
                call = file.parents.get(id(node))
                if not isinstance(call, ast.Call) or _registered(call) != name:
                    return False
                stored += not (
                    isinstance(call.func, ast.Attribute)
                    and _of_another(scene, owner, call.func.value)
                )
            if isinstance(node, ast.Attribute) and node.attr == name:
                if _of_another(scene, owner, node.value):
                    continue
                stored += isinstance(node.ctx, ast.Store)
                if isinstance(node.ctx, ast.Load) and not (
                    _only_looked_at(file, node) or _stopped(scene, file, owner, node)
                ):
                    return False
    return stored == 1


def _of_another(scene: Scene, owner: Class, holder: ast.expr) -> bool:
    """Return whether an object is surely of a class that has nothing to do with ``owner``."""
    names = {a.name for a in without_none(scene.inference.kind(holder))}
    if not names or not all("::" in name for name in names):
        return False
    above = {one.key for one in family(scene, owner.key)}
    return all(
        above.isdisjoint(one.key for one in family(scene, name))
        and scene.inference.class_of(name) is not None
        for name in names
    )


def _only_looked_at(file: File, node: ast.expr) -> bool:
    """``model.head.weight.sum().item()``: what comes out carries no gradient."""
    current: ast.AST | None = node
    while isinstance(current, (ast.Attribute, ast.Call, ast.Subscript)):
        if isinstance(current, ast.Attribute) and current.attr in _NUMBERS:
            return True
        child, current = current, file.parents.get(id(current))
        if isinstance(current, ast.Call) and current.func is not child:
            return False
        if isinstance(current, ast.Subscript) and current.value is not child:
            return False
    return False


def _stopped(scene: Scene, file: File, owner: Class, node: ast.Attribute) -> bool:
    """Whether the member is called under no_grad, in a method of its own class."""
    call = file.parents.get(id(node))
    called = isinstance(call, ast.Call) and call.func is node
    return called and is_stopped(scene, file, node) and owner.node in outwards(file, node)


PARAMETERS = "torch.nn.Module.parameters"
FREEZES = (b"requires_grad", b"from_pretrained")


def _applies(scene: Scene, node: ast.Attribute, name: str) -> bool:
    """Whether the call of ``parameters`` says what an optimizer trains."""
    call = scene.parent(node)
    if name != PARAMETERS or not isinstance(call, ast.Call) or call.args or call.keywords:
        return False
    around = _optimizer(scene, call)
    if around is None or not _in_every(scene, call):
        return around is not None
    return bool(untrained_members(scene, node.value, around))


def _in_every(scene: Scene, node: ast.AST) -> bool:
    """Whether the optimizer around an expression holds frozen weights as well."""
    around: ast.AST | None = scene.parent(node)
    while isinstance(around, (ast.expr, ast.keyword, ast.comprehension)):
        if _holds_every(scene, around):
            return True
        around = scene.parent(around)
    return False


def _optimizer(scene: Scene, node: ast.AST) -> ast.Call | None:
    """The call of an optimizer that an expression is a part of."""
    around: ast.AST | None = scene.parent(node)
    while isinstance(around, (ast.expr, ast.keyword, ast.comprehension)):
        if isinstance(around, ast.Call) and is_all(scene.kind(around), "Optimizer"):
            return around
        around = scene.parent(around)
    return None


def _holds_every(scene: Scene, node: ast.AST) -> bool:
    """Whether an optimizer gets frozen weights as well, as its step leaves them out itself."""
    if not isinstance(node, ast.Call):
        return False
    return any(a.name == "torch2ms.every_weight" for a in scene.kind(node.func))


@decides(Form.MEMBER, names=(PARAMETERS,), before=("modules.decide",))
def decide(scene: Scene, node: ast.Attribute, name: str) -> Edit | None:
    """Give an optimizer the parameters that torch would train, without frozen ones."""
    if not _applies(scene, node, name):
        return None
    site = scene.site(name, node)
    call = scene.parent(node)
    assert isinstance(call, ast.Call)
    around = _optimizer(scene, call)
    left_out = untrained_members(scene, node.value, around) if around is not None else ()
    if left_out:
        helper = "helpers.reached" if _in_every(scene, call) else "helpers.trained"
        text, root = scene.spelling.local(helper)
        place = Site(name, scene.source.span(call), site.line, site.column)
        names = ", ".join(map(repr, left_out))
        parts = (f"{text}(", piece(scene.source, node.value), f", {names})")
        return Edit(place, Outcome.HELPER, parts, PARAMETERS, frozenset((root,)))
    place = site.at(scene.source.name_span(node))
    return Edit(place, Outcome.CONVERTED, ("trainable_params",), PARAMETERS)


def too_fine(scene: Scene, site: Site, call: ast.Call) -> Refusal | None:
    """Return the flag of an SGD in a program that makes a Module of float64: there is no kernel."""
    if not any(a.name == "torch.optim.SGD" for a in scene.kind(call.func)):
        return None
    kinds = scene.inference.kinds
    sites = [c for n in ("double", "to") for _, c, _ in scene.inference.program.calls.get(n, ())]
    for other in sites:
        func, given = other.func, [*other.args, *(k.value for k in other.keywords)]
        double = [a.name for g in given for a in kinds.get(id(g), ())]
        named = getattr(func, "attr", "") == "double" or "torch.float64" in double
        held = kinds.get(id(func.value), ()) if isinstance(func, ast.Attribute) else ()
        if named and any(a.kind == "Module" for a in held):
            why = "MindSpore's SGD has float32 and float16, and the program makes Modules float64"
            return Refusal(site, "DTY108", why, "train in float32, or with Adam")
    return None


def unfrozen(scene: Scene, call: ast.Call, edit: Edit) -> Edit:
    """``SGD(params)`` where the program freezes some: ``SGD(trainable(params))``.

    Weights of several nets get names of their own, as an optimizer of MindSpore asks for.
    """
    given = _parameters(call) if _builds(scene, call) else None
    if given is None or edit.parts is None:
        return edit
    named = [
        (n.value, left)
        for n in ast.walk(given)
        if isinstance(n, ast.Attribute) and n.attr == "named_parameters"
        if (left := untrained_members(scene, n.value, call))
    ]
    if len(named) == 1 and isinstance(given, (ast.ListComp, ast.GeneratorExp)):
        (net, left), span = named[0], scene.source.span(given)
        text, root = scene.spelling.local("helpers.but_for")
        names = "".join(f", {name!r}" for name in left)
        listed = ("(", Piece(span), ")") if isinstance(given, ast.GeneratorExp) else (Piece(span),)
        own = (f"{text}(", *listed, ", ")
        edit = _around(edit, span, (*own, piece(scene.source, net), names, ")"), root)
    around = []
    chosen = _holds_every(scene, given) or _says_so(scene, given)
    if scene.mentions(*FREEZES) and not chosen:
        around.append("helpers.trainable")
    if _of_several_nets(scene, given):
        around.append("helpers.named_apart")
    for name in around:
        edit = _wrapped(scene, edit, scene.source.span(given), name)
    return edit


def _wrapped(scene: Scene, edit: Edit, span: Span, name: str) -> Edit:
    """The edit with a helper around what stands at a place."""
    text, root = scene.spelling.local(name)
    return _around(edit, span, (f"{text}(", Piece(span), ")"), root)


def _around(edit: Edit, span: Span, new: tuple[str | Piece, ...], root: str) -> Edit:
    """The edit with other text in the place of one part."""
    parts: list[str | Piece] = []
    for part in edit.parts or ():
        own = isinstance(part, Piece) and part.span == span
        parts += new if own else [part]
    return replace(edit, parts=tuple(parts), outcome=Outcome.HELPER, needs=edit.needs | {root})


def _of_several_nets(scene: Scene, given: ast.expr) -> bool:
    """``chain(A.parameters(), B.parameters())``, also by a variable that these are put into.

    The parts of one net have names of their own.
    """
    nets: set[str] = set()
    todo, seen = [given], set[str]()
    while todo:
        for node in ast.walk(todo.pop()):
            if isinstance(node, ast.Attribute) and node.attr == "parameters":
                nets.add(_net(node.value))
            name = dotted(node) if isinstance(node, (ast.Name, ast.Attribute)) else ""
            if name and name not in seen:
                seen.add(name)
                todo += _put_into(scene, name)
    return len(nets) > 1


def _put_into(scene: Scene, name: str) -> Iterator[ast.expr]:
    """Yield what a file binds to a variable or attribute, adds to it, or puts into it."""
    for item in scene.file.of(ast.Assign):
        if name in map(dotted, item.targets):
            yield item.value
    for added in scene.file.of(ast.AugAssign):
        if name == dotted(added.target):
            yield added.value
    for method in ("append", "extend"):
        for call, _ in scene.file.calls.get(method, ()):
            if isinstance(call.func, ast.Attribute) and dotted(call.func.value) == name:
                yield from call.args


def _net(node: ast.expr) -> str:
    """``netG`` of ``netG.head``, ``self.netG`` of ``self.netG.head``."""
    words = ast.unparse(node).split(".")
    return ".".join(words[:2] if words[0] == "self" else words[:1])


def _builds(scene: Scene, node: ast.Call) -> bool:
    """Whether the call builds one of torch's optimizers."""
    refs = {a.name for a in scene.kind(node.func) if a.kind == "ref"}
    rows = bool(refs) and all(scene.table.rows(n) and not scene.table.rows(n)[0].flag for n in refs)
    return rows and is_all(scene.kind(node), "Optimizer")


def _parameters(node: ast.Call) -> ast.expr | None:
    named = next((k.value for k in node.keywords if k.arg == "params"), None)
    first = node.args[0] if node.args else named
    return None if isinstance(first, ast.Starred) else first


def _says_so(scene: Scene, given: ast.expr) -> bool:
    """``model.parameters()`` itself, which becomes trainable_params(), or a choice by the flag."""
    inside = [n for n in ast.walk(given) if isinstance(n, ast.Attribute)]
    if any(n.attr == "requires_grad" for n in inside):
        return True
    if not isinstance(given, (ast.Call, ast.List)):
        return False
    loads = [n for n in ast.walk(given) if isinstance(n, ast.Attribute) and n.attr == "parameters"]
    groups = given.elts if isinstance(given, ast.List) else [given]
    return len(loads) == len(groups) and all(
        scene.kind_names(n.value) <= {"Module", "None", "unknown"}
        and _applies(scene, n, PARAMETERS)
        for n in loads
    )


def remembering(scene: Scene, call: ast.Call, edit: Edit) -> Edit:
    """Have a schedule keep the rates of its own last step, where something else sets rates too.

    MindSpore's ``get_last_lr()`` gives the rates that the optimizer has by now.
    """
    whole = edit.parts is not None and edit.site.span == scene.source.span(call)
    if not whole or not _makes_schedule(scene, call):
        return edit
    asked = scene.mentions(b"get_last_lr", b"_last_lr")
    if not asked or _is_joined(scene.file, call) or not _has_other_setter(scene, call):
        return edit
    text, root = scene.spelling.local("helpers.with_rates_kept")
    parts = (f"{text}(", *(edit.parts or ()), ")")
    return replace(edit, parts=parts, outcome=Outcome.HELPER, needs=edit.needs | {root})


def _has_other_setter(scene: Scene, call: ast.Call) -> bool:
    """Return whether rates of a schedule's optimizer may be set by another one, or by hand."""
    for file in scene.inference.program.joined(scene.file.path):
        for node in file.of(ast.Subscript):
            stored = isinstance(node.ctx, ast.Store)
            if stored and getattr(node.slice, "value", None) == "lr":
                return True
        for other in file.of(ast.Call):
            if other is call or not _makes_schedule(scene, other):
                continue
            if not _is_joined(file, other) and not _is_apart(scene, file, call, other):
                return True
    return False


def _makes_schedule(scene: Scene, call: ast.Call) -> bool:
    names = [a.name for a in scene.inference.kinds.get(id(call.func), ()) if a.kind == "ref"]
    return any(n.startswith(SCHEDULES) and n.count(".") == SCHEDULES.count(".") for n in names)


def _is_joined(file: File, call: ast.Call) -> bool:
    """Return whether a schedule is a part of another one, and is asked for no rate itself."""
    around, names = file.parents.get(id(call)), set[str]()
    if isinstance(around, ast.Assign):
        names = {dotted(target) for target in around.targets}
    for joining in (c for n in _JOINING for c, _ in file.calls.get(n.rpartition(".")[2], ())):
        parts = [
            n for a in (*joining.args, *(k.value for k in joining.keywords)) for n in ast.walk(a)
        ]
        if call in parts:
            return True
        if any(isinstance(n, ast.Name | ast.Attribute) and dotted(n) in names for n in parts):
            asked = (c.func for c, _ in file.calls.get("get_last_lr", ()))
            return not any(isinstance(f, ast.Attribute) and dotted(f.value) in names for f in asked)
    return False


def _is_apart(scene: Scene, file: File, call: ast.Call, other: ast.Call) -> bool:
    """Return whether two schedules are never made in one run, or for optimizers of two names."""
    if file.path != scene.file.path:
        return False
    first, second = (dotted(c.args[0]) if c.args else "" for c in (call, other))
    if first and second and first != second:
        return file.function_at(call) is file.function_at(other)
    branches = _branches(file, call)
    return any(
        node in branches and branches[node] != arm for node, arm in _branches(file, other).items()
    )


def _branches(file: File, node: ast.AST) -> dict[ast.If, bool]:
    """Return the conditions above a node, and on which side of each it stands."""
    found: dict[ast.If, bool] = {}
    around = file.parents.get(id(node))
    while around is not None:
        if isinstance(around, ast.If):
            found[around] = node in around.body
        node, around = around, file.parents.get(id(around))
    return found


@rewrites()
def kept(scene: Scene) -> Iterator[Edit]:
    """Yield ``object.__setattr__(self, "optimizer", ...)`` for what a Module is given so.

    MindSpore's optimizers are Cells: as a child of a Cell one puts its name in front of the names
    of the weights that it trains, and its moments and rates are weights of the Cell. In torch an
    attribute that holds an optimizer is nothing but that.
    """
    for item in scene.file.of(ast.Assign):
        target = item.targets[0] if len(item.targets) == 1 else None
        if not isinstance(target, ast.Attribute) or not dotted(target.value):
            continue
        held = {a.kind for a in scene.kind(target.value)}
        if held == {"Module"} and "Optimizer" in {a.kind for a in scene.kind(item.value)}:
            owner, value = piece(scene.source, target.value), piece(scene.source, item.value)
            text = ("object.__setattr__(", owner, f', "{target.attr}", ', value, ")")
            yield Edit(scene.site("optimizer of a Module", item), Outcome.CONVERTED, text)
