"""In: the call of an optimizer. Out: in it the parameters that torch would train, no others.

Torch's optimizers pass over parameters without a gradient; MindSpore's would move frozen ones, and
decay the weights of those that no gradient reaches.
"""

from __future__ import annotations

import ast
from dataclasses import replace

from migrate.outcomes import Edit, Outcome, Piece, Refusal, Site, Span
from migrate.receivers.kinds import is_all
from migrate.rules import untrained
from migrate.scene import Scene

PARAMETERS = "torch.nn.Module.parameters"
FREEZES = (b"requires_grad", b"from_pretrained")


def applies(scene: Scene, node: ast.Attribute, name: str) -> bool:
    """Whether the call of ``parameters`` says what an optimizer trains."""
    call = scene.parent(node)
    if name != PARAMETERS or not isinstance(call, ast.Call) or call.args or call.keywords:
        return False
    around = _optimizer(scene, call)
    if around is None or not _in_every(scene, call):
        return around is not None
    return bool(untrained.members(scene, node.value, around))


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


def decide(scene: Scene, node: ast.Attribute, name: str) -> Edit:
    """The method of the Cell that leaves frozen parameters out."""
    span, site = scene.source.span(node), scene.site(name, node)
    call = scene.parent(node)
    assert isinstance(call, ast.Call)
    around = _optimizer(scene, call)
    left_out = untrained.members(scene, node.value, around) if around is not None else ()
    if left_out:
        helper = "helpers.reached" if _in_every(scene, call) else "helpers.trained"
        text, root = scene.spelling.local(helper)
        place = Site(name, scene.source.span(call), site.line, site.column)
        names = ", ".join(map(repr, left_out))
        parts = (f"{text}(", Piece(scene.source.span(node.value)), f", {names})")
        return Edit(place, Outcome.HELPER, parts, PARAMETERS, frozenset((root,)))
    attribute = Span(span.end - len(node.attr), span.end)
    place = Site(name, attribute, site.line, site.column)
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
    around = []
    chosen = _holds_every(scene, given) or _says_so(scene, given)
    if scene.mentions(*FREEZES) and not chosen:
        around.append("helpers.trainable")
    if _of_several_nets(given):
        around.append("helpers.named_apart")
    for name in around:
        edit = _wrapped(scene, edit, scene.source.span(given), name)
    return edit


def _wrapped(scene: Scene, edit: Edit, span: Span, name: str) -> Edit:
    """The edit with a helper around what stands at a place."""
    text, root = scene.spelling.local(name)
    parts: list[str | Piece] = []
    for part in edit.parts or ():
        own = isinstance(part, Piece) and part.span == span
        parts += [f"{text}(", Piece(span), ")"] if own else [part]
    return replace(edit, parts=tuple(parts), outcome=Outcome.HELPER, needs=edit.needs | {root})


def _of_several_nets(given: ast.expr) -> bool:
    """``chain(A.parameters(), B.parameters())``: the parts of one net have names of their own."""
    loads = [n for n in ast.walk(given) if isinstance(n, ast.Attribute) and n.attr == "parameters"]
    return len({_net(n.value) for n in loads}) > 1


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
        scene.kind_names(n.value) <= {"Module", "None", "unknown"} and applies(scene, n, PARAMETERS)
        for n in loads
    )
