"""In: a call of torch.save or torch.load. Out: the row it takes, or why it is not converted."""

from __future__ import annotations

import ast
from dataclasses import replace

from migrate.analysis.program import File
from migrate.analysis.types.kinds import is_all
from migrate.codegen.substitution import piece
from migrate.mapping.choice import Chosen
from migrate.records.outcomes import Edit, Outcome, Piece, Refusal, Site
from migrate.sites.scene import Scene, once
from migrate.syntax.trees import last_name

_SUFFIX = ".ckpt"
_NATIVE = ":checkpoint"
STATE = "torch.nn.Module.state_dict"
_LOADING = "torch.nn.Module.load_state_dict"
# parts of names that MindSpore has other words for, and methods that ask for such parts
_TORCH_WORDS = ("running_mean", "running_var", "num_batches_tracked", ".weight", ".bias")
_PASSING_ON = frozenset(("zip", "enumerate", "list", "sorted"))
_ASKING = frozenset("endswith startswith split rsplit find count".split())


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
    if isinstance(owner, ast.Call) and last_name(owner.func) == "super":
        return None
    given = [*call.args, *(k.value for k in call.keywords)]
    words = [k.arg for k in call.keywords]
    if name == STATE:
        if given or _goes_on(scene, call):
            return None
        text, root = scene.spelling.local("helpers.state_dict")
    elif name == _LOADING:
        if len(given) not in (1, 2) or not {*words} <= {"state_dict", "strict"}:
            return None
        if any(isinstance(a, ast.Starred) for a in given):
            return None
        if not _trains(scene) and _gives_state(scene, given[0]):
            return None
        text, root = scene.spelling.local("helpers.load_state_dict")
    else:
        return None
    parts: list[str | Piece] = [f"{text}(", piece(scene.source, owner)]
    for value, word in zip(given, [None] * len(call.args) + words, strict=True):
        parts += [f", {word}=" if word else ", ", piece(scene.source, value)]
    place = site.at(scene.source.span(call))
    return Edit(place, Outcome.HELPER, (*parts, ")"), name, frozenset((root,)))


def _goes_on(scene: Scene, call: ast.Call) -> bool:
    """Return whether a state dict is only saved or loaded again, whatever its names are."""
    around = scene.parent(call)
    while isinstance(around, ast.Dict | ast.keyword):
        around = scene.parent(around)
    func = around.func if isinstance(around, ast.Call) else None
    return isinstance(func, ast.Attribute) and func.attr in ("save", "load_state_dict")


@once
def _trains(scene: Scene) -> bool:
    """Return whether a program has something of torch.optim."""
    for file in scene.inference.program.files.values():
        modules = [f"{i.module}." for i in file.imports if isinstance(i, ast.ImportFrom)]
        names = [a.name for i in file.imports for a in i.names]
        if "optim" in ".".join((*modules, *names)).split("."):
            return True
        if any(n.attr == "optim" for n in file.of(ast.Attribute)):
            return True
    return False


@once
def _meets_names(scene: Scene) -> bool:
    """Return whether names of weights, or words of torch's for them, may meet those of states."""
    files = scene.inference.program.files.values()
    if not any("state_dict" in f.calls or "load_state_dict" in f.calls for f in files):
        return False
    return any(_keeps_names(f) or _asks_for_words(f) for f in files)


def _keeps_names(file: File) -> bool:
    """Return whether a name of a weight or buffer is used as a key, or as more than a text."""
    calls = [c for n in ("named_parameters", "named_buffers") for c, _ in file.calls.get(n, ())]
    for call in calls:
        node: ast.AST = call
        around = file.parents.get(id(node))
        while isinstance(around, ast.Call) and last_name(around.func) in _PASSING_ON:
            node, around = around, file.parents.get(id(around))
        if not isinstance(around, ast.For | ast.comprehension) or around.iter is not node:
            return True
        inside = around if isinstance(around, ast.For) else file.parents[id(around)]
        firsts = {
            t.elts[0].id
            for t in ast.walk(around.target)
            if isinstance(t, ast.Tuple) and t.elts and isinstance(t.elts[0], ast.Name)
        }
        uses = [n for n in ast.walk(inside) if isinstance(n, ast.Name) and n.id in firsts]
        if any(isinstance(n.ctx, ast.Load) and not _is_read(file, n) for n in uses):
            return True
    return False


def _is_read(file: File, name: ast.Name) -> bool:
    """Return whether a text is only looked at or printed: ``"bias" in name``."""
    around = file.parents.get(id(name))
    if isinstance(around, ast.Compare):
        return around.left is not name or not isinstance(around.ops[0], ast.In | ast.NotIn)
    if isinstance(around, ast.Attribute):
        return around.attr in _ASKING
    printed = isinstance(around, ast.Call) and isinstance(around.func, ast.Name)
    return isinstance(around, ast.FormattedValue) or (printed and around.func.id == "print")  # type: ignore[union-attr]


def _asks_for_words(file: File) -> bool:
    """Return whether a text is asked for a word that MindSpore's names of states lack."""
    for node in file.of(ast.Constant):
        if not isinstance(node.value, str) or not any(w in node.value for w in _TORCH_WORDS):
            continue
        around = file.parents.get(id(node))
        asked = isinstance(around, ast.Compare | ast.Subscript)
        if isinstance(around, ast.Call) and isinstance(around.func, ast.Attribute):
            asked = around.func.attr in _ASKING | {"replace"}
        if asked and not _is_of_weights(file, node):
            return True
    return False


def _is_of_weights(file: File, node: ast.AST) -> bool:
    """Return whether a loop around a node runs over named weights, whose names are torch's."""
    around = file.parents.get(id(node))
    while around is not None and not isinstance(around, ast.FunctionDef):
        loops = [around] if isinstance(around, ast.For) else getattr(around, "generators", [])
        iters = [n for loop in loops for n in ast.walk(loop.iter)]
        if any(isinstance(n, ast.Attribute) and n.attr.startswith("named_") for n in iters):
            return True
        around = file.parents.get(id(around))
    return False
