"""Convert what goes by names of types: ``x.type()`` and the texts of dtypes.

``a.type() != b.type()``, ``a.type() == "torch.FloatTensor"`` and ``a.type(b.type())``: torch's
names of tensor types are dtypes here. A name that goes elsewhere is flagged.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from migrate.analysis.program import Function
from migrate.analysis.types.kinds import having, is_all
from migrate.codegen.substitution import piece
from migrate.mapping.choice import Chosen
from migrate.records.outcomes import Edit, Outcome, Refusal, Site, Wrap
from migrate.rules.called_from import call_sites, functions_of, passed, scene_of
from migrate.rules.registry import by_row, rewrites
from migrate.sites.references import direct_name
from migrate.sites.scene import Scene

NAME = "torch.Tensor.type"
_TENSOR = "torch.Tensor"
_DTYPES = {
    "torch.FloatTensor": "float32", "torch.DoubleTensor": "float64", "torch.HalfTensor": "float16",
    "torch.LongTensor": "int64", "torch.IntTensor": "int32", "torch.ShortTensor": "int16",
    "torch.CharTensor": "int8", "torch.ByteTensor": "uint8", "torch.BoolTensor": "bool_",
    "torch.BFloat16Tensor": "bfloat16",
}  # fmt: skip
_NO_CUDA = "No Tensor is on a CUDA device here; code that asks for it takes its CPU way."


@by_row("type_name")
def type_name(
    scene: Scene, site: Site, call: ast.Call, receiver: ast.expr | None, chosen: Chosen
) -> Edit | Refusal:
    """Decide about one call of ``type``, without an argument or with a name."""
    row, around = chosen.row, scene.parent(call)
    assert receiver is not None
    whole = Site(site.name, scene.source.span(call), site.line, site.column)
    held = piece(scene.source, receiver)
    if call.args or call.keywords:
        wanted = call.args[0] if len(call.args) == 1 and not call.keywords else None
        if wanted is not None and _is_type_name(scene, wanted, frozenset()):
            parts = (held, ".astype(", piece(scene.source, wanted), ")")
            return Edit(whole, Outcome.CONVERTED, parts, row.key)
    elif _is_for_type(scene, around, call):
        return Edit(whole, Outcome.CONVERTED, (held, ".dtype"), row.key)
    elif isinstance(around, ast.Compare) and (other := _other_side(around, call)) is not None:
        if _asks(scene, other):
            return Edit(whole, Outcome.CONVERTED, (held, ".dtype"), row.key)
        name = str(getattr(other, "value", ""))
        if name.startswith("torch.cuda.") and isinstance(receiver, (ast.Name, ast.Attribute)):
            place = Site(site.name, scene.source.span(around), site.line, site.column)
            answer = "False" if isinstance(around.ops[0], ast.Eq) else "True"
            return Edit(place, Outcome.CONVERTED, (answer,), row.key, note=_NO_CUDA)
        dtype = _DTYPES.get(name)
        if dtype and call is around.left:
            text, root = scene.spelling.local(f"mindspore.{dtype}")
            sign = " == " if isinstance(around.ops[0], ast.Eq) else " != "
            place = Site(site.name, scene.source.span(around), site.line, site.column)
            same = (held, ".dtype", sign, text)
            return Edit(place, Outcome.CONVERTED, same, row.key, frozenset((root,)))
    reason = "names of tensor types ('torch.FloatTensor') do not exist in MindSpore"
    return Refusal(site, "DTY107", reason, "use dtypes: x.astype(mindspore.float32), x.dtype")


def _asks(scene: Scene, node: ast.expr) -> bool:
    """Whether it is ``x.type()`` of a Tensor."""
    if not isinstance(node, ast.Call) or node.args or node.keywords:
        return False
    return _is_type(scene, node.func)


def _is_for_type(scene: Scene, around: ast.AST | None, call: ast.Call) -> bool:
    """Whether the name of a type is what another Tensor is cast to, now or under a name."""
    if isinstance(around, ast.Call):
        return _takes(scene, around, call)
    return isinstance(around, ast.Assign) and _names_types(scene, around)


def _is_type_name(scene: Scene, node: ast.expr, seen: frozenset[str]) -> bool:
    """Whether an expression surely is what ``x.type()`` gave, also in the caller."""
    if not isinstance(node, ast.Name):
        return _asks(scene, node)
    values = scene.facts.values(node)
    if values and None not in values:
        return all(v is not None and _is_type_name(scene, v, seen) for v in values)
    function = scene.function(node)
    if function is None or function.stores.get(node.id) or function.key in seen:
        return False
    given = [
        (scene_of(scene, file), passed(function, call, node.id))
        for file, call, _ in call_sites(scene, function)
    ]
    inner = seen | {function.key}
    return bool(given) and all(v is not None and _is_type_name(s, v, inner) for s, v in given)


def _names_types(scene: Scene, item: ast.Assign) -> bool:
    """Whether a variable takes a name of a type, and is used for nothing but types."""
    target, function = item.targets[0], scene.function(item)
    if len(item.targets) != 1 or not isinstance(target, ast.Name) or function is None:
        return False
    alone = len(function.stores.get(target.id, ())) == 1
    return alone and _is_for_types(scene, function, target.id, frozenset())


def _is_for_types(scene: Scene, function: Function, name: str, seen: frozenset[str]) -> bool:
    """Whether all that reads a variable are ``y.type(name)``, in functions it is passed to, too."""
    if function.key in seen:
        return True
    there = scene_of(scene, scene.inference.program.files[function.path])
    names = (n for n in ast.walk(function.node) if isinstance(n, ast.Name) and n.id == name)
    for use in [n for n in names if isinstance(n.ctx, ast.Load)]:
        call = there.parent(use)
        if not isinstance(call, ast.Call) or use not in call.args:
            return False
        if call.args == [use] and not call.keywords and _is_type(there, call.func):
            continue
        callees = [f for a in there.kind(call.func) for f in functions_of(scene.inference, a)]
        inner = [(f, p.arg) for f in callees for p in f.parameters if passed(f, call, p.arg) is use]
        if not inner or len(inner) < len(callees) or any(f.stores.get(p) for f, p in inner):
            return False
        if not all(_is_for_types(scene, f, p, seen | {function.key}) for f, p in inner):
            return False
    return True


def _takes(scene: Scene, around: ast.Call, name: ast.Call) -> bool:
    """Whether a name is the argument of ``y.type(...)``."""
    alone = around.args == [name] and not around.keywords
    return alone and _is_type(scene, around.func)


def _is_type(scene: Scene, func: ast.expr) -> bool:
    """Whether it is the method of what is a Tensor, if it is known at all."""
    if not isinstance(func, ast.Attribute) or func.attr != "type":
        return False
    kinds = {atom.kind for atom in having(scene.kind(func.value), "type")}
    return "Tensor" in kinds and kinds <= {"Tensor", "unknown"}


def _other_side(around: ast.Compare, call: ast.Call) -> ast.expr | None:
    if len(around.ops) != 1 or not isinstance(around.ops[0], (ast.Eq, ast.NotEq)):
        return None
    return around.comparators[0] if around.left is call else around.left


# -- classes of Tensors of one dtype --------------------------------------------------------------


def instances(scene: Scene, site: Site, name: str, node: ast.expr) -> Edit | None:
    """Return what ``isinstance(x, torch.LongTensor)`` asks for: a Tensor of that dtype."""
    dtype = _DTYPES.get(name.replace("torch.cuda.", "torch."))
    if dtype is None:
        return None
    call = scene.parent(node)
    place = scene.site(site.name, call) if isinstance(call, ast.Call) else site
    if name.startswith("torch.cuda."):
        answer = "()" if place is site else "False"
        return Edit(place, Outcome.CONVERTED, (answer,), name, note=_NO_CUDA)
    text, root = scene.spelling.local(f"mindspore.{dtype}")
    if isinstance(call, ast.Call) and isinstance(asked := call.args[0], (ast.Name, ast.Attribute)):
        held, (tensor, other) = piece(scene.source, asked), scene.spelling.local("mindspore.Tensor")
        tests = ("(", held, f", {tensor}) and ", held, ".dtype == ", text)
        parts = (piece(scene.source, call.func), *tests)
        return Edit(place, Outcome.CONVERTED, parts, name, frozenset((root, other)))
    made, helper = scene.spelling.local("helpers.TensorOf")
    return Edit(site, Outcome.HELPER, (f"{made}({text})",), name, frozenset((root, helper)))


# -- texts of dtypes -----------------------------------------------------------------------------

_SHOWING = frozenset(
    "print debug info warning warn error exception critical log write pprint".split()
)


@rewrites()
def texts(scene: Scene) -> Iterator[Edit]:
    """Yield ``dtype_text(x.dtype)`` for ``str(x.dtype)`` and its kin, whose text a program uses.

    MindSpore's is "Float32". Where it is only shown it stays.
    """
    made = ((node, part) for node, value in _made_texts(scene) for part in _shown_parts(value))
    for node, value in made:
        if _may_be_dtype(scene, value) and not _is_shown(scene, node):
            text, root = scene.spelling.local("helpers.dtype_text")
            site = scene.site("torch.dtype.__str__", value)
            parts = (f"{text}(", piece(scene.source, value), ")")
            yield Wrap(site, Outcome.HELPER, parts, site.name, frozenset((root,)))


def _made_texts(scene: Scene) -> Iterator[tuple[ast.AST, ast.expr]]:
    """Yield what makes a text of a value, and the value."""
    for call in scene.file.of(ast.Call):
        func = call.func
        formats = isinstance(func, ast.Attribute) and func.attr == "format"
        if formats and isinstance(func, ast.Attribute) and is_all(scene.kind(func.value), "str"):
            yield from ((call, arg) for arg in (*call.args, *(k.value for k in call.keywords)))
        elif isinstance(func, ast.Name) and func.id in ("str", "repr", "format") and call.args:
            yield call, call.args[0]
    yield from ((n, n.value) for n in scene.file.of(ast.FormattedValue))
    for item in scene.file.of(ast.BinOp):
        if isinstance(item.op, ast.Mod) and is_all(scene.kind(item.left), "str"):
            given = item.right.elts if isinstance(item.right, ast.Tuple) else [item.right]
            yield from ((item, value) for value in given)


def _shown_parts(value: ast.expr) -> Iterator[ast.expr]:
    """Yield a value, or those that a list or tuple written there holds."""
    for part in value.elts if isinstance(value, (ast.List, ast.Tuple)) else ():
        yield from _shown_parts(part)
    if not isinstance(value, (ast.List, ast.Tuple)):
        yield value


def _may_be_dtype(scene: Scene, value: ast.expr) -> bool:
    names = scene.kind_names(value)
    called = getattr(value, "attr", getattr(value, "id", "")).endswith("dtype")
    return "dtype" in names or (called and "unknown" in (names or {"unknown"}))


def _is_shown(scene: Scene, node: ast.AST) -> bool:
    """Return whether a text goes into a message, which nothing reads."""
    current: ast.AST | None = scene.parent(node)
    below = node
    while current is not None and not isinstance(current, ast.stmt):
        if isinstance(current, ast.Call):
            name = getattr(current.func, "attr", getattr(current.func, "id", ""))
            if name in _SHOWING or name.endswith(("Error", "Warning", "Exception")):
                return True
        if isinstance(current, (ast.Compare, ast.Subscript, ast.Dict)):
            return False
        below = current
        current = scene.parent(current)
    return isinstance(current, ast.Raise) or (isinstance(current, ast.Assert) and (
        current.msg is below
    ))  # fmt: skip


@rewrites()
def sizes(scene: Scene) -> Iterator[Edit]:
    """Write ``made(*x.shape)`` where a variable holds one of torch's old tensor classes.

    That takes a torch.Size for a shape and a tuple for data, and here a shape is a tuple.
    """
    for call in scene.file.of(ast.Call):
        if len(call.args) != 1 or not is_all(scene.kind(call.args[0]), "Size"):
            continue
        made = scene.kind(call.func)
        old = bool(made) and all(a.kind == "ref" and a.name in (*_DTYPES, _TENSOR) for a in made)
        if old and not call.keywords and direct_name(scene, call.func) is None:
            source = scene.source
            parts = (piece(source, call.func), "(*", piece(source, call.args[0]), ")")
            yield Wrap(scene.site("torch.Tensor", call), Outcome.CONVERTED, parts)
