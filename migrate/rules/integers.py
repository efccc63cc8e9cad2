"""Cast Tensors where MindSpore would take or give another dtype than torch.

Integers and bools become floats before functions whose kernels take floats alone; what is added in
place gets the dtype of the sum, which torch keeps.

What a cast makes of floats is cut off from the gradient, where it may become a float again.

Where nothing tells the dtype of an operand (`migrate/sites/dtypes.py`), the code stays as it is.
Python's int, float and bool are written as the dtypes that torch takes them for.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from migrate.analysis.types.kinds import is_all
from migrate.codegen.substitution import piece
from migrate.records.outcomes import Decision, Edit, Outcome, Piece, Site, Wrap
from migrate.rules.called_from import call_sites
from migrate.rules.data_attribute import records
from migrate.rules.registry import revises, rewrites
from migrate.rules.stopped import is_stopped
from migrate.rules.torch_sharing import METADATA
from migrate.sites.buffer_gradients import carries
from migrate.sites.dtypes import COUNT, INTEGERS, KEEPING, PLACES, SUMS, TRUTHS, Dtypes, Exact
from migrate.sites.scene import DTYPES, Scene
from migrate.syntax.trees import last_name

_FLOATING = frozenset(
    "exp exp2 expm1 log log2 log10 log1p sqrt rsqrt sin cos tan asin acos atan arcsin arccos arctan"
    " sinh cosh asinh acosh atanh tanh sigmoid erf erfc expit".split()
)


@revises(after=("imports.advised",))
def cast(scene: Scene, node: ast.AST, made: Decision) -> Decision:
    """Return the decision for a function of torch, with ``.float()`` behind its operand where
    that surely is a Tensor of integers or bools."""
    if not isinstance(made, Edit):
        return made
    call = scene.parent(node)
    last = last_name(node)
    if last not in _FLOATING or not isinstance(call, ast.Call) or call.func is not node:
        return made
    operand = _operand(scene, call)
    if operand is None or Dtypes(scene).of(operand) not in ("int", "bool", COUNT):
        return made
    source, span = scene.source, scene.source.span(operand)
    parts: list[str | Piece] = []
    for part in made.parts or ():
        held = isinstance(part, Piece) and part.span == span
        parts += [piece(source, operand), ".float()"] if held else [part]
    if made.parts is None and isinstance(node, ast.Attribute) and operand is node.value:
        parts = [piece(source, operand), ".float()", f".{node.attr}"]
    if ".float()" not in parts:
        return made
    site = made.site
    if made.parts is None:
        site = replace(site, span=source.span(node))
    return replace(made, site=site, parts=tuple(parts))


# a gradient goes no further than these, or they take indices and labels
_INDEXED = ("Embedding", "CrossEntropy", "NLL", "cross_entropy", "nll_loss", "embedding", "one_hot",
            "gather", "index_select", "scatter", "take_along_dim", "bincount")  # fmt: skip
_CASTS = frozenset((*INTEGERS, "bool", "to", "type", "type_as"))
_NUMBERS = frozenset(("item", "tolist", "numpy", "detach", "data", "unique", "max", "min"))


@revises(after=("integers.cast",))
def cut(scene: Scene, node: ast.AST, made: Decision) -> Decision:
    """Return the decision, as ``ops.stop_gradient(x.int())`` where that may be a float again.

    No gradient goes through integers in torch; the cast of MindSpore lets it pass.
    """
    if not isinstance(made, Edit):
        return made
    call, function = scene.parent(node), scene.function(node)
    casts = isinstance(node, ast.Attribute) and node.attr in _CASTS
    if not casts or not isinstance(call, ast.Call) or call.func is not node or function is None:
        return made
    assert isinstance(node, ast.Attribute)
    whole, dtypes = scene.source.span(call), Dtypes(scene)
    if (made.parts is not None and made.site.span != whole) or is_stopped(scene, scene.file, call):
        return made
    if not is_all(scene.kind(node.value), "Tensor") or dtypes.of(node.value):
        return made
    if dtypes.of(call) not in ("int", "bool") or not records(scene, function):
        return made
    if not carries(scene, node.value, function.node, frozenset()):
        return made
    if not _is_computed_with(scene, call, dtypes, frozenset()):
        return made
    text, root = scene.spelling.local("mindspore.ops.stop_gradient")
    parts = (f"{text}(", *(made.parts or (Piece(whole),)), ")")
    kept = Outcome.CONVERTED if made.outcome is Outcome.KEPT else made.outcome
    site = replace(made.site, span=whole)
    return replace(made, site=site, outcome=kept, parts=parts, needs=made.needs | {root})


_ADDING = frozenset(("add_", "sub_", "mul_"))
_NARROW = frozenset("uint8 int8 int16 int32 float16 bfloat16".split())


@revises(after=("integers.cut",))
def kept(scene: Scene, node: ast.AST, made: Decision) -> Decision:
    """Return the decision for ``x += y`` or ``x.add_(y)``, with ``y`` cast to the dtype of x where
    MindSpore would give the dtype that both have in common."""
    if not isinstance(made, Edit):
        return made
    call, target = scene.parent(node), getattr(node, "target", None)
    if isinstance(node, ast.AugAssign):
        value = node.value
    elif isinstance(node, ast.Attribute) and node.attr in _ADDING and isinstance(call, ast.Call):
        if call.func is not node or not call.args:
            return made
        target, value = node.value, call.args[0]
    else:
        return made
    if not isinstance(target, ast.Name) or not is_all(scene.kind(value), "Tensor"):
        return made
    exact = Exact(scene)
    old = exact.before(node) if isinstance(node, ast.AugAssign) else exact.of(target)
    new = exact.of(value)
    if old == new or not (new == "float64" or old in _NARROW):
        return made
    span, source = scene.source.span(value), scene.source
    tail = f".astype({target.id}.dtype)"
    if made.parts is None and isinstance(node, ast.AugAssign):
        site, around = replace(made.site, span=span), (piece(source, value), tail)
        return Wrap(site, Outcome.CONVERTED, around, made.row, made.needs, made.note)
    found: list[str | Piece] = []
    for part in made.parts or ():
        held = isinstance(part, Piece) and source.text(part.span) == source.text(span)
        found += [piece(source, value), tail] if held else [part]
    return replace(made, parts=tuple(found)) if found else made


def _is_computed_with(scene: Scene, node: ast.expr, dtypes: Dtypes, seen: frozenset[str]) -> bool:
    """Return whether integers may become floats again, or a part of a sum with floats."""
    parent = scene.parent(node)
    if isinstance(parent, ast.Attribute):
        name, call = parent.attr, scene.parent(parent)
        if name in METADATA or name in _NUMBERS or name in TRUTHS or name in PLACES:
            return False
        kept = name in KEEPING or name in SUMS or name in ("T", "mT")
        if kept and isinstance(call, ast.Call) and call.func is parent:
            return _is_computed_with(scene, call, dtypes, seen)
        return True
    if isinstance(parent, ast.Subscript):
        return parent.value is node and _is_computed_with(scene, parent, dtypes, seen)
    if isinstance(parent, (ast.Compare, ast.Expr, ast.FormattedValue, ast.Slice, ast.Assert)):
        return False
    if isinstance(parent, ast.Tuple) and isinstance(scene.parent(parent), ast.Subscript):
        return False
    if isinstance(parent, (ast.IfExp, ast.NamedExpr, ast.UnaryOp, ast.BoolOp)):
        return _is_computed_with(scene, parent, dtypes, seen)
    if isinstance(parent, ast.BinOp) and dtypes.of(parent) in ("int", "bool"):
        return _is_computed_with(scene, parent, dtypes, seen)
    shown = isinstance(parent, (ast.Tuple, ast.List)) and scene.parent(parent)
    if isinstance(parent, ast.Return) or isinstance(shown, ast.Return):
        function = scene.function(node)
        sites = call_sites(scene, function) if function is not None else []
        return any(
            shown
            or file is not scene.file
            or _is_computed_with(scene, call, dtypes, seen | {function.key if function else ""})
            for file, call, _ in sites
            if function is None or function.key not in seen
        )
    if isinstance(parent, ast.keyword):
        parent = scene.parent(parent)
    if isinstance(parent, ast.Call):
        atoms = scene.kind(parent.func)
        torchs = [a.name for a in atoms if a.name.startswith("torch.")]
        return any(not any(word in name for word in _INDEXED) for name in torchs)
    if isinstance(parent, ast.Assign) and len(parent.targets) == 1:
        target, function = parent.targets[0], scene.function(node)
        if isinstance(target, ast.Name) and function is not None:
            return target.id not in seen and any(
                _is_computed_with(scene, n, dtypes, seen | {target.id})
                for n in function.nodes
                if isinstance(n, ast.Name) and n.id == target.id and isinstance(n.ctx, ast.Load)
                if any(v is parent.value for v in scene.facts.values(n))
            )
    return True


def _operand(scene: Scene, call: ast.Call) -> ast.expr | None:
    """Return what a call of such a function of torch computes from."""
    if any(k.arg not in ("input", "out") for k in call.keywords):
        return None
    refs = [a for a in scene.kind(call.func) if a.kind == "ref"]
    if refs and len(refs) == len(scene.kind(call.func)):
        torchs = all(a.name.startswith(("torch.", "torch.special.")) for a in refs)
        given = [*call.args, *(k.value for k in call.keywords if k.arg == "input")]
        return given[0] if torchs and len(given) == 1 else None
    if not isinstance(call.func, ast.Attribute) or call.args:
        return None
    held = call.func.value
    return held if is_all(scene.kind(held), "Tensor") else None


_POSITIONAL = ("torch.Tensor.to", "torch.Tensor.type")


@rewrites()
def written(scene: Scene) -> Iterator[Edit]:
    """Yield int64 and float64 for ``int`` and ``float`` where torch takes these for a dtype."""
    for name in scene.file.of(ast.Name):
        kind = scene.kind(name)
        builtin = next(iter(kind)).name if len(kind) == 1 else ""
        if name.id not in DTYPES or builtin != name.id or not _is_dtype(scene, name):
            continue
        text, root = scene.spelling.local(DTYPES[name.id])
        span = scene.source.span(name)
        site = Site("dtype", span, name.lineno, name.col_offset + 1)
        yield Edit(site, Outcome.CONVERTED, (text,), needs=frozenset((root,)))


def _is_dtype(scene: Scene, name: ast.Name) -> bool:
    """Return whether a call of torch takes a name for a dtype."""
    parent = scene.parent(name)
    keyword = parent.arg if isinstance(parent, ast.keyword) else ""
    call = scene.parent(parent) if isinstance(parent, ast.keyword) else parent
    if not isinstance(call, ast.Call) or call.func is name:
        return False
    called = [a.name for a in scene.kind(call.func) if a.kind in ("ref", "method")]
    if not called or not all(n.startswith("torch.") for n in called):
        return False
    return keyword == "dtype" or (not keyword and all(n in _POSITIONAL for n in called))
