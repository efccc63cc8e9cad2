"""In: a call of torch.save or torch.load. Out: the row it takes, or why it is not converted."""

from __future__ import annotations

import ast
from dataclasses import replace

from migrate.analysis.facts import Facts
from migrate.analysis.program import File
from migrate.analysis.types.inference import Inference
from migrate.analysis.types.kinds import MODULE_STATE, UNKNOWN, Atom, is_all, without_none
from migrate.codegen.substitution import piece
from migrate.mapping.choice import Chosen
from migrate.records.outcomes import Edit, Outcome, Piece, Refusal, Site
from migrate.sites.scene import Scene, once

_SUFFIX = ".ckpt"
_NATIVE = ":checkpoint"
STATE = "torch.nn.Module.state_dict"
_LOADING = "torch.nn.Module.load_state_dict"
_OPTIMIZERS = "torch.optim."
_GRADIENTS = ("torch.autograd.grad", "torch.autograd.backward", "torch.func.")
# expressions whose value may be a state dict; what keeps one, or asks only whether it is there
_HOLDING = (ast.Call, ast.Name, ast.Attribute, ast.Subscript)
_KEEPING = (ast.Expr, ast.Assign, ast.AnnAssign, ast.NamedExpr, ast.Return, ast.Tuple, ast.List,
            ast.Dict, ast.If, ast.IfExp, ast.BoolOp, ast.arguments)  # fmt: skip
_CARRYING = frozenset(("torch.save", "copy.deepcopy", "copy.copy"))


def chosen_for(
    scene: Scene, site: Site, name: str, call: ast.Call, chosen: list[Chosen]
) -> list[Chosen] | Refusal:
    """MindSpore's own functions where file and value are as they take them; else the helpers.

    They add ``.ckpt`` to every other name of a file, and hold a state dict only.
    """
    if name not in ("torch.save", "torch.load"):
        return chosen
    first = chosen[0]
    value, file = first.bound.values.get("obj"), first.bound.values.get("f")
    if name == "torch.save" and isinstance(value, ast.expr) and _is_model(scene, value):
        return Refusal(
            site,
            "CKP112",
            "a whole model is saved as code",
            "save its state_dict(), and build the model before loading",
        )
    state = _gives_state(scene, value) if name == "torch.save" else _is_loaded(scene, call)
    native = next((r for r in scene.table.rows(name) if r.key == name + _NATIVE), None)
    if native is None or not state or not isinstance(file, ast.expr) or not _is_named(file):
        return [one for one in chosen if one.row is not native][:1] or chosen
    return [replace(first, row=native)]


def _is_model(scene: Scene, value: ast.expr) -> bool:
    return bool(scene.module_classes(value)) and is_all(scene.kind(value), "Module")


def _gives_state(scene: Scene, value: object) -> bool:
    """``model.state_dict()`` of a Module."""
    return (
        isinstance(value, ast.Call)
        and isinstance(value.func, ast.Attribute)
        and value.func.attr == "state_dict"
        and not value.args
        and not value.keywords
        and _is_model(scene, value.func.value)
    )


def _is_loaded(scene: Scene, call: ast.Call) -> bool:
    """``model.load_state_dict(torch.load(...))``: the file holds a state dict and nothing else."""
    parent = scene.parent(call)
    return (
        isinstance(parent, ast.Call)
        and isinstance(parent.func, ast.Attribute)
        and parent.func.attr == "load_state_dict"
        and parent.args[:1] == [call]
        and _is_model(scene, parent.func.value)
    )


def _is_named(file: ast.expr) -> bool:
    """Whether the name of a file surely ends as MindSpore wants it."""
    match file:
        case ast.Constant(value=str(text)):
            return text.endswith(_SUFFIX)
        case ast.JoinedStr(values=[*_, last]):
            return _is_named(last)
        case ast.BinOp(op=ast.Add(), right=last):
            return _is_named(last)
        case ast.BinOp(op=ast.Mod(), left=ast.Constant() as text):
            return _is_named(text)
        case ast.Call(func=ast.Attribute(value=ast.Constant() as text, attr="format")):
            return _is_named(text)
        case ast.Call(func=ast.Attribute(attr="join"), args=[_, *_, last]):
            return _is_named(last)
    return False


def values(scene: Scene, site: Site, node: ast.Attribute) -> Edit | None:
    """``net.state_dict().values()`` is ``state_values(net)``: MindSpore has another order."""
    call = scene.parent(node)
    if not isinstance(call, ast.Call) or call.args or call.keywords:
        return None
    taken = scene.parent(call)
    if not isinstance(taken, ast.Attribute) or taken.attr != "values":
        return None
    whole = scene.parent(taken)
    if not isinstance(whole, ast.Call) or whole.func is not taken:
        return None
    text, root = scene.spelling.local("helpers.state_values")
    place = site.at(scene.source.span(whole))
    parts = (f"{text}(", piece(scene.source, node.value), ")")
    return Edit(place, Outcome.HELPER, parts, STATE, frozenset((root,)))


def named(scene: Scene, site: Site, name: str, node: ast.Attribute) -> Edit | None:
    """State dicts have torch's names where the program compares these with names of its own.

    MindSpore names the weights of a BatchNorm otherwise: ``if name in state`` would leave them out.
    Where a program trains, what is loaded goes into the memory that its optimizers know.
    """
    call, meets = scene.parent(node), _meets_names(scene)
    if not isinstance(call, ast.Call) or call.func is not node:
        return None
    if not meets and not (name == _LOADING and _trains(scene)):
        return None
    owner = node.value
    given = [*call.args, *(k.value for k in call.keywords)]
    words = [k.arg for k in call.keywords]
    if name == STATE:
        if given or any(a.kind == "super" for a in scene.kind(owner)):
            return None
        text, root = scene.spelling.local("helpers.state_dict")
    elif name == _LOADING:
        if len(given) not in (1, 2) or not {*words} <= {"state_dict", "strict"}:
            return None
        if any(isinstance(a, ast.Starred) for a in given):
            return None
        text, root = scene.spelling.local("helpers.load_state_dict")
    else:
        return None
    parts: list[str | Piece] = [f"{text}(", piece(scene.source, owner)]
    for value, word in zip(given, [None] * len(call.args) + words, strict=True):
        parts += [f", {word}=" if word else ", ", piece(scene.source, value)]
    place = site.at(scene.source.span(call))
    return Edit(place, Outcome.HELPER, (*parts, ")"), name, frozenset((root,)))


@once
def _trains(scene: Scene) -> bool:
    """Return whether a program has optimizers, steps, or anything that computes gradients."""
    world = scene.inference
    if any("backward" in file.calls for file in world.program.files.values()):
        return True
    atoms = {a for value in set(world.kinds.values()) for a in value}
    return any(a.kind in ("Optimizer", "Step") or _is_of_training(world, a) for a in atoms)


def _is_of_training(world: Inference, atom: Atom) -> bool:
    """Return whether a value is a class of optimizers, their module, or a gradient's function."""
    if atom.kind in ("class", "Object") and "::" in atom.name:
        return any(b.startswith(_OPTIMIZERS) for b in world.torch_bases(atom.name))
    return atom.kind == "ref" and (atom.name + ".").startswith((_OPTIMIZERS, *_GRADIENTS))


@once
def _meets_names(scene: Scene) -> bool:
    """Return whether anything but saving and loading may see the names in a state dict.

    Others may compare them with names of parameters, which are torch's, or with texts.
    """
    world = scene.inference
    for file in world.program.files.values():
        facts = world.facts(file.path)
        for call, _ in file.calls.get("load_state_dict", ()):
            func, given = call.func, [*call.args, *(k.value for k in call.keywords)]
            kinds = {a.kind for a in world.kind(getattr(func, "value", call))}
            if kinds & {"Module", "super", "unknown"} and not (
                given and _is_handed_on(world, facts, given[0])
            ):
                return True
        nodes = (n for kind in _HOLDING for n in file.of(kind))
        if any(_is_state(world, n) and not _hands_on(world, file, n) for n in nodes):
            return True
    return False


def _is_state(world: Inference, node: ast.AST) -> bool:
    """Return whether the value of an expression may be a state dict of a Module."""
    if isinstance(getattr(node, "ctx", None), ast.Store | ast.Del):
        return False
    return any(a.kind == "dict" and a.name == MODULE_STATE for a in world.kind(node))


def _hands_on(world: Inference, file: File, node: ast.AST) -> bool:
    """Return whether what is around an expression keeps its value, or passes it on, unseen."""
    around = file.parents.get(id(node))
    if isinstance(around, ast.keyword):
        node, around = around, file.parents.get(id(around))
    match around:
        case ast.Call(func=func) if func is not node:
            if isinstance(func, ast.Attribute) and func.attr in ("load_state_dict", "append"):
                return True
            return all(_carries(a) for a in world.kind(func) or UNKNOWN)
        case ast.Compare(ops=ops):
            return all(isinstance(op, ast.Is | ast.IsNot) for op in ops)
    return isinstance(around, _KEEPING)


def _carries(callee: Atom) -> bool:
    """Return whether a call passes a value on to the program's own code, or saves or copies it."""
    own = callee.kind in ("function", "class", "method") and "::" in callee.name
    return own or callee.name in _CARRYING


def _is_handed_on(
    world: Inference, facts: Facts, node: ast.expr, seen: frozenset[int] = frozenset()
) -> bool:
    """Return whether a value is a state dict as a Module of the program, or a file, gave it."""
    atoms = without_none(world.kind(node))
    if atoms and all(a.kind == "dict" and a.name == MODULE_STATE for a in atoms):
        return True
    parts: tuple[ast.expr | None, ...] = ()
    match node:
        case ast.Call(func=func):
            return {a.name for a in world.kind(func)} == {"torch.load"}
        case ast.Subscript(value=whole):
            parts = (whole,)
        case ast.IfExp(body=first, orelse=second):
            parts = (first, second)
        case ast.Name() if id(node) not in seen:
            parts = facts.values(node)
        case ast.Name():
            return True
    return bool(parts) and all(
        part is not None and _is_handed_on(world, facts, part, seen | {id(node)}) for part in parts
    )
