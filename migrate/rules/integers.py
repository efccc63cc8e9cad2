"""Cast Tensors where MindSpore would take or give another dtype than torch.

Integers and bools become floats before functions whose kernels take floats alone; what is added in
place gets the dtype of the sum, which torch keeps.

What a cast makes of floats is cut off from the gradient, where it may become a float again.

Kinds carry no dtype. It is found here from what makes a Tensor, along the bindings that reach a
use; where any of them does not tell, the code stays as it is. Python's int, float and bool are
written as the dtypes that torch takes them for.
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
from migrate.sites.scene import DTYPES, Scene
from migrate.syntax.trees import last_name

_FLOATING = frozenset(
    "exp exp2 expm1 log log2 log10 log1p sqrt rsqrt sin cos tan asin acos atan arcsin arccos arctan"
    " sinh cosh asinh acosh atanh tanh sigmoid erf erfc expit".split()
)
_INTEGERS = frozenset("long int int8 int16 int32 int64 short uint8 byte".split())
_FLOATS = frozenset("float double half bfloat16 float16 float32 float64".split())
# the result has the dtype of the first operand
_KEEPING = frozenset(
    "view reshape permute transpose t flatten unflatten squeeze unsqueeze expand expand_as repeat"
    " contiguous clone detach abs neg negative clamp flip roll index_select gather take tile"
    " masked_fill movedim swapaxes narrow select repeat_interleave broadcast_to cpu"
    " cuda triu tril diagonal view_as reshape_as zeros_like ones_like empty_like new_zeros"
    " new_ones".split()
)
_SUMS = frozenset(("sum", "prod", "cumsum", "cumprod"))
_LARGEST = frozenset(("max", "min", "amax", "amin"))  # without an axis: max and min give pairs
_PLACES = frozenset(("argmax", "argmin", "argsort", "nonzero", "bincount", "randint", "randperm"))
_TRUTHS = frozenset("eq ne lt le gt ge isnan isinf isfinite logical_not any all isin".split())
_JOINING = (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod)
# ``torch.arange(n)`` where nothing tells the bound: int64, or float32, which a cast leaves as it is
_COUNT = "count"
_ORDER = ("bool", "int", _COUNT, "float")


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
    if operand is None or Dtypes(scene).of(operand) not in ("int", "bool", _COUNT):
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
_CASTS = frozenset((*_INTEGERS, "bool", "to", "type", "type_as"))
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
_WIDTHS = {"long": "int64", "int": "int32", "short": "int16", "byte": "uint8", "float": "float32",
           "double": "float64", "half": "float16"}  # fmt: skip
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
        if name in METADATA or name in _NUMBERS or name in _TRUTHS or name in _PLACES:
            return False
        kept = name in _KEEPING or name in _SUMS or name in ("T", "mT")
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


class Dtypes:
    """Tell int, bool and float Tensors and numbers of one file apart; "" is unknown.

    The default dtype is float32: setting another is flagged.
    """

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self._known: dict[int, str] = {}

    def of(self, node: ast.expr) -> str:
        """Return the sort of the elements of a Tensor, or of a number."""
        if id(node) not in self._known:
            self._known[id(node)] = ""  # under way: a loop settles nothing
            self._known[id(node)] = self._of(node)
        return self._known[id(node)]

    def _of(self, node: ast.expr) -> str:
        if isinstance(node, ast.Constant):
            kind = type(node.value).__name__
            return kind if kind in _ORDER else ""
        if isinstance(node, (ast.List, ast.Tuple)):
            return _joined([self.of(e) for e in node.elts])
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            reach = self.scene.facts.reach(node)
            values = self.scene.facts.values(node)
            if reach.outside or not values or len(values) != len(reach.bindings):
                return self._number(node)
            sorts = {self.of(v) if v is not None else "" for v in values}
            return (sorts.pop() if len(sorts) == 1 else "") or self._number(node)
        if isinstance(node, ast.BinOp):
            both = _joined([self.of(node.left), self.of(node.right)])
            if isinstance(node.op, ast.Div):
                return "float" if both else ""
            return max(both, "int", key=_ORDER.index) if both in _ORDER and isinstance(
                node.op, _JOINING
            ) else ""  # fmt: skip
        if isinstance(node, ast.UnaryOp):
            return "bool" if isinstance(node.op, ast.Not) else self.of(node.operand)
        if isinstance(node, ast.Compare):
            return "bool" if is_all(self.scene.kind(node), "Tensor") else ""
        if isinstance(node, ast.IfExp):
            sorts = {self.of(node.body), self.of(node.orelse)}
            return sorts.pop() if len(sorts) == 1 else ""
        if isinstance(node, ast.Subscript):
            held = is_all(self.scene.kind(node.value), "Tensor")
            return self.of(node.value) if held else self._number(node)
        if isinstance(node, ast.Attribute):
            same = node.attr in ("T", "mT", "data") and is_all(
                self.scene.kind(node.value), "Tensor"
            )
            return self.of(node.value) if same else self._number(node)
        return self._called(node) if isinstance(node, ast.Call) else ""

    def _number(self, node: ast.expr) -> str:
        """Return the sort of a number of Python's."""
        kinds = self.scene.kind(node)
        return next((s for s in _ORDER if is_all(kinds, s)), "")

    def _called(self, call: ast.Call) -> str:
        named = {k.arg: k.value for k in call.keywords if k.arg}
        if len(named) < len(call.keywords) or any(isinstance(a, ast.Starred) for a in call.args):
            return ""
        if "dtype" in named:
            return self._named(named["dtype"])
        kinds = self.scene.kind(call.func)
        refs = {a.name for a in kinds if a.kind == "ref"}
        if len(refs) == len(kinds) == 1:
            return self._made(refs.pop(), list(call.args), named)
        if isinstance(call.func, ast.Attribute) and is_all(
            self.scene.kind(call.func.value), "Tensor"
        ):
            return self._method(call.func, call.args)
        return self._number(call)

    def _made(self, name: str, given: list[ast.expr], named: dict[str, ast.expr]) -> str:
        """Return the sort of what a function of torch gives."""
        own, _, last = name.rpartition(".")
        if own != "torch":
            return ""
        if last == "arange":
            bounds = [*given, *(v for k, v in named.items() if k in ("start", "end", "step"))]
            return _joined([self.of(g) or _COUNT for g in bounds])
        if last in ("tensor", "as_tensor"):
            return self.of(given[0]) if given and not self._is_array(given[0]) else ""
        if last == "full":
            return self.of(given[1]) if len(given) > 1 else ""
        if last in ("zeros", "ones", "empty", "rand", "randn", "linspace", "eye"):
            return "float"
        if last in ("cat", "stack", "concat"):
            return self.of(given[0]) if given else ""
        return self._kept(last, given)

    def _is_array(self, node: ast.expr) -> bool:
        return not is_all(self.scene.kind(node), "int", "float", "bool", "list", "tuple", "Tensor")

    def _method(self, func: ast.Attribute, given: list[ast.expr]) -> str:
        name = func.attr
        if name in _INTEGERS:
            return "int"
        if name in _FLOATS or name == "bool":
            return "bool" if name == "bool" else "float"
        if name in ("to", "type", "type_as"):
            only = given[0] if len(given) == 1 else None
            if only is None:
                return ""
            if is_all(self.scene.kind(only), "device"):
                return self.of(func.value)
            return self.of(only) if is_all(self.scene.kind(only), "Tensor") else self._named(only)
        return self._kept(name, [func.value, *given])

    def _kept(self, name: str, given: list[ast.expr]) -> str:
        if name in _PLACES:
            return "int"
        if name in _TRUTHS:
            return "bool"
        sort = self.of(given[0]) if given else ""
        if name in _SUMS:
            return "int" if sort == "bool" else sort
        if name in _KEEPING or (name in _LARGEST and len(given) == 1):
            return sort
        return ""

    def _named(self, node: ast.expr) -> str:
        """Return the sort of a dtype that is written: ``torch.long``."""
        names = {a.name.rpartition(".")[2] for a in self.scene.kind(node) if a.kind == "ref"}
        if not names and isinstance(node, ast.Attribute) and node.attr in _INTEGERS | _FLOATS:
            names = {node.attr} if is_all(self.scene.kind(node), "dtype") else set()
        if names and names <= _INTEGERS:
            return "int"
        return "bool" if names == {"bool"} else "float" if names and names <= _FLOATS else ""


class Exact(Dtypes):
    """Tell the very dtypes of Tensors; numbers of Python's have none."""

    def before(self, node: ast.AugAssign) -> str:
        """Return the dtype that a variable has before something is added to it."""
        assert isinstance(node.target, ast.Name)
        reach = self.scene.facts.reach_before(node.target.id, node)
        values = [self.scene.facts._value(b.place, False) for b in reach.bindings]
        found = {self.of(v) if v is not None else "" for v in values}
        return found.pop() if len(found) == 1 and not reach.outside and values else ""

    def _of(self, node: ast.expr) -> str:
        if isinstance(node, ast.BinOp):
            sides = (node.left, node.right)
            tensors = [s for s in sides if not is_all(self.scene.kind(s), "int", "float", "bool")]
            found = {self.of(s) for s in tensors}
            alone = len(found) == 1 and isinstance(node.op, (ast.Add, ast.Sub, ast.Mult))
            only = found.pop() if alone else ""
            real = any(is_all(self.scene.kind(s), "float") for s in sides)
            return only if only.startswith("float") or not real else ""
        if isinstance(node, (ast.Constant, ast.List, ast.Tuple)):
            return ""
        return super()._of(node)

    def _number(self, node: ast.expr) -> str:
        return ""

    def _made(self, name: str, given: list[ast.expr], named: dict[str, ast.expr]) -> str:
        sort = Dtypes(self.scene)._made(name, given, named)
        if name in ("torch.cat", "torch.stack", "torch.concat"):
            return ""
        return {"int": "int64", "float": "float32", "bool": "bool"}.get(sort, "")

    def _method(self, func: ast.Attribute, given: list[ast.expr]) -> str:
        name = func.attr
        return _WIDTHS.get(name, name if name in _FLOATS else "") or super()._method(func, given)

    def _kept(self, name: str, given: list[ast.expr]) -> str:
        sort = super()._kept(name, given)
        return {"int": "int64"}.get(sort, sort) if name in _PLACES | _SUMS else sort

    def _named(self, node: ast.expr) -> str:
        names = {a.name.rpartition(".")[2] for a in self.scene.kind(node) if a.kind == "ref"}
        name = names.pop() if len(names) == 1 else getattr(node, "attr", "")
        return _WIDTHS.get(name, name) if name in _INTEGERS | _FLOATS | {"bool"} else ""


def _joined(sorts: list[str]) -> str:
    """Return the sort of what several make together; "" where one of them is unknown."""
    return max(sorts, key=_ORDER.index) if sorts and "" not in sorts else ""


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
