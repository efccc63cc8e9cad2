"""Write a change of a view as an assignment of the variable that is viewed, and of its other views.

``x.t()[0] = v`` changes x in torch. Here the view is taken, changed and put back:
``view = x.t(); view[0] = v; x = view.T``. A name that holds a view (``y = x[1:]``) is put back
after each write to it (``x[1:] = y``) and taken anew after each write to x. Measured in both modes:
values and gradients are those of torch.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace

from migrate.analysis.types.kinds import is_all
from migrate.codegen.substitution import added, joined, piece
from migrate.records.outcomes import Edit, Lines, Outcome, Part, Piece, Site
from migrate.rules.stopped import is_stopped
from migrate.sites.references import direct_name
from migrate.sites.scene import Scene
from migrate.syntax.lines import begins_line, ends_line
from migrate.syntax.trees import is_none, targets_of, unpacked, values_of, within

Parts = tuple["str | Piece", ...]
_SIMPLE = (ast.Constant, ast.Name, ast.UnaryOp, ast.BinOp, ast.Slice, ast.Tuple, ast.expr_context,
           ast.operator, ast.unaryop)  # fmt: skip
_RESHAPED = frozenset("view view_as unsqueeze squeeze unflatten".split())
_PERHAPS = frozenset("reshape flatten ravel contiguous".split())  # views of what is contiguous
_CASTS = {"float": "float32", "double": "float64", "half": "float16", "float32": "float32",
          "float64": "float64", "float16": "float16"}  # fmt: skip
DIAGONAL = "mindspore.ops.diagonal_scatter"
_SWAPPED = frozenset("transpose swapaxes swapdims".split())
_CONTIGUOUS = frozenset("zeros ones empty full eye arange linspace tensor rand randn".split())
_SIZES = frozenset("size dim ndimension numel".split())
_STRIDED = frozenset("t_ transpose_ swapaxes_ swapdims_ as_strided_ resize_ set_ data".split())


@dataclass(frozen=True)
class Step:
    """A view that ``node`` takes of ``inner``: an index, or what gives the shape of it back.

    ``back`` comes behind a new value, ``front`` before it. ``sure``: it is never a copy.
    """

    node: ast.expr
    inner: ast.expr
    index: Parts = ()
    back: Parts = ()
    front: Parts = ()
    sure: bool = True


@dataclass(frozen=True)
class Repair:
    """What follows a write: ``name`` is put back into what it views (``up``), or taken anew."""

    name: str
    view: ast.expr
    up: bool


def is_basic(scene: Scene, index: ast.expr) -> bool:
    """Return whether an index is of numbers, slices, None and the ellipsis: torch gives a view."""
    if isinstance(index, ast.Tuple):
        return all(is_basic(scene, i) for i in index.elts)
    if isinstance(index, ast.Constant):
        return index.value is None or index.value is Ellipsis or type(index.value) is int
    return isinstance(index, ast.Slice) or is_all(scene.kind(index), "int", "None")


def step(scene: Scene, node: ast.expr) -> Step | None:
    """Return the view that an expression takes of a Tensor; None where it may be another thing."""
    if isinstance(node, ast.Subscript):
        if (part := _part(scene, node)) is not None:
            return part
        simple = is_basic(scene, node.slice) and _is_simple(node.slice)
        if not simple or not is_all(scene.kind(node.value), "Tensor"):
            return None
        parts = values_of(node.slice)
        if any(is_none(p) for p in parts):
            return _reshaped(scene, node, node.value) if all(map(_is_whole, parts)) else None
        return Step(node, node.value, index=(scene.source.text_of(node.slice),))
    if isinstance(node, ast.Attribute) and node.attr in ("T", "mT"):
        if not is_all(scene.kind(node.value), "Tensor"):
            return None
        back = ".T" if node.attr == "T" else ".swapaxes(-1, -2)"
        return Step(node, node.value, back=(back,))
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return None
    inner, name = node.func.value, node.func.attr
    if node.keywords or not is_all(scene.kind(inner), "Tensor"):
        return None
    if name == "narrow" and (part := _narrowed(scene, node, inner)) is not None:
        return part
    if not all(map(_is_simple, node.args)):
        return None
    numbers = _numbers(node.args)
    if name in _RESHAPED:
        typed = name == "view" and not all(
            is_all(scene.kind(a), "int", "Size", "tuple", "list") for a in node.args
        )
        return None if typed else _reshaped(scene, node, inner)
    if name in ("expand_as", "type_as") and ast.dump(node.args[0]) == ast.dump(inner):
        return _reshaped(scene, node, inner)
    if name == "diagonal" and len(numbers) == len(node.args):
        text, _ = scene.spelling.local(DIAGONAL)
        more = "".join(f", {number}" for number in numbers)
        front: Parts = (f"{text}(", piece(scene.source, inner), ", ")
        return Step(node, inner, back=(f"{more})",), front=front)
    if name in _CASTS or (name == "to" and len(node.args) == 1):
        return _cast(scene, node, inner, name)
    if name in _PERHAPS and _is_contiguous(scene, inner):
        return _reshaped(scene, node, inner)
    if name == "t" and not node.args:
        return Step(node, inner, back=(".T",))
    if name in _SWAPPED and len(numbers) == len(node.args) == 2:
        return Step(node, inner, back=(f".swapaxes({numbers[0]}, {numbers[1]})",))
    if name == "permute" and numbers:
        order = [n % len(numbers) for n in numbers]
        if sorted(order) != list(range(len(order))):
            return None
        text = ", ".join(str(order.index(i)) for i in range(len(order)))
        return Step(node, inner, back=(f".permute({text})",))
    if name == "select" and len(numbers) == len(node.args) == 2:
        return _indexed(node, inner, numbers[0], str(numbers[1]))
    return None


def _narrowed(scene: Scene, node: ast.Call, inner: ast.expr) -> Step | None:
    """``x.narrow(dim, 1, n)``, by a slice; the axis and the length may be computed from sizes."""
    if len(node.args) != 3 or not all(_is_size(scene, a) for a in node.args):
        return None
    axis, start, length = node.args
    (first,) = _numbers([start]) or (-1,)
    if first < 0:  # counts from the end, where it is not computed
        return None
    if numbers := _numbers([length]):
        span: Parts = (f"{first}:{first + numbers[0]}",)
    else:
        held = piece(scene.source, length)
        held_apart: Parts = ("(", held, ")") if isinstance(length, ast.BinOp) else (held,)
        span = (f"{first}:{first} + ", *held_apart) if first else (":", held)
    if numbers := _numbers([axis]):
        return _indexed(node, inner, numbers[0], *span)
    stop = span[0][span[0].index(":") + 1 :] if isinstance(span[0], str) else ""
    whole = ("(slice(None),) * (", piece(scene.source, axis), " % ", piece(scene.source, inner))
    return Step(node, inner, index=(*whole, f".ndim) + (slice({first}, {stop}", *span[1:], "),)"))


def _is_size(scene: Scene, node: ast.expr) -> bool:
    """Return whether an int is computed from names and sizes: the same as long as these keep."""
    sizes = [n for n in within(node) if isinstance(n, ast.Call) and n.args[1:] == []]
    asks = all(
        isinstance(n.func, ast.Attribute)
        and n.func.attr in _SIZES
        and isinstance(n.func.value, ast.Name)
        and is_all(scene.kind(n.func.value), "Tensor")
        for n in sizes
    )
    others = (n for n in within(node) if n not in sizes and not isinstance(n, ast.Attribute))
    simple = all(isinstance(n, _SIMPLE) for n in others)
    called = {id(n.func) for n in sizes}
    plain = all(id(n) in called for n in within(node) if isinstance(n, ast.Attribute))
    return asks and simple and plain and is_all(scene.kind(node), "int")


def _cast(scene: Scene, node: ast.Call, inner: ast.expr, name: str) -> Step | None:
    """``x.float()`` is x itself where x has that dtype, and a copy where it has not."""
    if name == "to":
        name = (direct_name(scene, node.args[0]) or "").rpartition(".")[2]
    dtype = _CASTS.get(name, "")
    if not dtype or not isinstance(inner, ast.Name):
        return None
    text, _ = scene.spelling.local(f"mindspore.{dtype}")
    return Step(node, inner, back=(f" if {inner.id}.dtype == {text} else {inner.id}",), sure=False)


def _reshaped(scene: Scene, node: ast.expr, inner: ast.expr) -> Step:
    return Step(node, inner, back=(".reshape(", piece(scene.source, inner), ".shape)"))


def _is_whole(index: ast.expr) -> bool:
    """Return whether a part of an index leaves every element where it is."""
    if isinstance(index, ast.Slice):
        return index.lower is index.upper is index.step is None
    return isinstance(index, ast.Constant) and index.value in (None, ...)


def _part(scene: Scene, node: ast.Subscript) -> Step | None:
    """``x.unbind()[0]``, ``x.split(2)[1]``, ``x.chunk(2)[0]``: a slice of x."""
    call, place = node.value, node.slice
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return None
    inner, name, numbers = call.func.value, call.func.attr, _numbers(call.args)
    if name not in ("unbind", "split", "chunk") or not is_all(scene.kind(inner), "Tensor"):
        return None
    at = place.value if isinstance(place, ast.Constant) else None
    if type(at) is not int or call.keywords or len(numbers) != len(call.args):
        return None
    if name == "unbind":
        return _indexed(node, inner, numbers[0] if numbers else 0, str(at))
    if not numbers or len(numbers) > 2:
        return None
    axis = numbers[1] if len(numbers) == 2 else 0
    if name == "split":
        return _indexed(node, inner, axis, f"{at * numbers[0]}:{(at + 1) * numbers[0]}")
    if at:  # the size of a chunk depends on the shape
        return None
    held = piece(scene.source, inner)
    return _indexed(node, inner, axis, ":-(-", held, f".shape[{axis}] // {numbers[0]})")


def _indexed(node: ast.expr, inner: ast.expr, axis: int, *index: str | Piece) -> Step:
    before: Parts = (":, " * axis,) if axis >= 0 else ("..., ",)
    after: Parts = (", :" * (-axis - 1),) if axis < 0 else ()
    return Step(node, inner, index=(*before, *index, *after))


def _numbers(nodes: list[ast.expr]) -> list[int]:
    """Return the numbers that arguments are, written one by one or as one tuple; [] for others."""
    if len(nodes) == 1 and isinstance(nodes[0], (ast.Tuple, ast.List)):
        nodes = nodes[0].elts
    found = []
    for node in nodes:
        try:
            value = ast.literal_eval(node)
        except ValueError:
            return []
        if type(value) is not int:
            return []
        found.append(value)
    return found


def _is_simple(node: ast.expr) -> bool:
    """Return whether an argument gives the same value as long as its names keep theirs."""
    return all(isinstance(n, _SIMPLE) for n in within(node))


def _is_contiguous(scene: Scene, node: ast.expr) -> bool:
    """Return whether a Tensor surely lies in memory as its shape says: made by a factory here."""
    function = scene.function(node)
    if not isinstance(node, ast.Name) or function is None:
        return False
    bound = function.assigned.get(node.id, ())
    stores = [
        n for n in function.nodes
        if isinstance(n, ast.Name) and n.id == node.id and not isinstance(n.ctx, ast.Load)
    ]  # fmt: skip
    if len(bound) != 1 or len(stores) != 1 or node.id in {a.arg for a in function.parameters}:
        return False
    value = bound[0].value
    made = isinstance(value, ast.Call) and direct_name(scene, value.func)
    if not made or not made.startswith("torch.") or made.rpartition(".")[2] not in _CONTIGUOUS:
        return False
    return not any(isinstance(n, ast.Attribute) and n.attr in _STRIDED for n in function.nodes)


def viewed(scene: Scene, expr: ast.expr, sure: bool = False) -> ast.Name | None:
    """Return the variable that an expression is a view of, by views that can be put back.

    ``sure``: none of them may be a copy, and each is cheap to take anew.
    """
    node = expr
    while (found := step(scene, node)) is not None:
        if sure and (found.front or not found.sure):
            return None
        node = found.inner
    if node is expr or not isinstance(node, ast.Name):
        return None
    return node if is_all(scene.kind(node), "Tensor") else None


def base_of(view: ast.expr) -> str:
    """Return the name of the variable that a view is taken of."""
    node = view
    while not isinstance(node, ast.Name):
        assert isinstance(node, (ast.Subscript, ast.Attribute, ast.Call))
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id


def named(scene: Scene, item: ast.Assign | ast.AnnAssign) -> dict[str, ast.expr]:
    """Return the names that an assignment binds to a Tensor with a name, or to a view of one."""
    targets = targets_of(item)
    if item.value is None:
        return {}
    if len(targets) == 1 and isinstance(targets[0], ast.Tuple):
        pairs = [(t, v) for t, v in unpacked(targets[0], item.value) if isinstance(t, ast.Name)]
    else:
        pairs = [(t, item.value) for t in targets if isinstance(t, ast.Name)]
        if len(pairs) != len(targets):
            return {}
    stored = [n.id for t in targets for n in within(t) if isinstance(n, ast.Name)]
    found = {
        t.id: v for t, v in pairs
        if is_all(scene.kind(v), "Tensor")
        and (isinstance(v, ast.Name) or viewed(scene, v, True) is not None)
        and all(n.id not in stored for n in within(v) if isinstance(n, ast.Name))
    }  # fmt: skip
    if found or len(targets) == 1 or len(set(stored)) < len(stored):
        return found
    first = targets[0]
    alike = isinstance(first, ast.Name) and is_all(scene.kind(item.value), "Tensor")
    return {t.id: first for t, _ in pairs[1:]} if alike else {}


def bound(part: ast.AST) -> set[str]:
    """Return the names that a program point may bind or unbind."""
    found: set[str] = set()
    for node in within(part):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            found.add(node.id)
        elif isinstance(node, ast.alias):
            found.add((node.asname or node.name).partition(".")[0])
        else:
            found |= {v for f in ("name", "rest") if isinstance(v := getattr(node, f, None), str)}
    return found


def changed_alone(scene: Scene, expr: ast.expr) -> bool:
    """Return whether a statement on lines of its own does nothing but change what ``expr`` is."""
    node: ast.AST = expr
    parent = scene.parent(node)
    if isinstance(parent, ast.Attribute):
        while isinstance(parent, ast.Attribute) and parent.attr.endswith("_"):
            node = scene.parent(parent) or parent
            parent = scene.parent(node)
        written = isinstance(parent, ast.Expr) and isinstance(node, ast.Call)
    elif isinstance(parent, ast.keyword):  # ``torch.mul(x, 2, out=y[1:])``
        call = scene.parent(parent)
        written = parent.arg == "out" and isinstance(scene.parent(call or parent), ast.Expr)
    elif isinstance(parent, ast.AugAssign):
        written = parent.target is node
    else:
        written = isinstance(parent, ast.Assign) and parent.targets == [node]
    return written and stands_alone(scene, scene.statement(expr))


def is_statement(scene: Scene, by: ast.AST) -> bool:
    """Return whether a write is a statement of its own."""
    parent = by if isinstance(by, ast.stmt) else scene.parent(by)
    whole = isinstance(parent, (ast.AugAssign, ast.Expr)) or (
        isinstance(parent, ast.Assign) and parent.targets == [by]
    )
    return whole and stands_alone(scene, scene.statement(by))


def stands_alone(scene: Scene, statement: ast.stmt) -> bool:
    """Return whether a statement has its lines to itself, where gradients are as around it."""
    alone = begins_line(scene.source, statement) and ends_line(scene.source, statement)
    return alone and not is_stopped(scene, scene.file, statement)


# -- what is written -----------------------------------------------------------------------------


def put(
    scene: Scene, expr: ast.expr, value: Parts, whole: str = "", loose: bool = False
) -> list[Parts]:
    """Return statements that give a view another value.

    ``whole``: the name of the helper that assigns to the object, where the very object changes.
    ``loose``: the value needs parentheses in front of a dot.
    """
    if loose and not getattr(step(scene, expr), "index", ()):
        value = ("(", *value, ")")
    return list(_put(scene, expr, value, whole, _names(scene)))


def _put(
    scene: Scene, expr: ast.expr, value: Parts, whole: str, names: Iterator[str]
) -> Iterator[Parts]:
    if isinstance(expr, ast.Name):
        yield (f"{whole}({expr.id}, ", *value, ")") if whole else (f"{expr.id} = ", *value)
        return
    taken = step(scene, expr)
    assert taken is not None
    if not taken.index:
        yield from _put(scene, taken.inner, (*taken.front, *value, *taken.back), whole, names)
    elif isinstance(taken.inner, ast.Name):
        yield (f"{taken.inner.id}[", *taken.index, "] = ", *value)
    else:
        name, own = next(names), scene.source.span(expr)
        held: Parts = (f"{name}[", *taken.index, "]")
        value = tuple(
            part
            for old in value
            for part in (held if isinstance(old, Piece) and old.span == own else (old,))
        )
        yield (f"{name} = ", piece(scene.source, taken.inner))
        yield (*held, " = ", *value)
        yield from _put(scene, taken.inner, (name,), whole, names)


def _names(scene: Scene) -> Iterator[str]:
    """Yield names for views that the file does not use."""
    taken = scene.file.names | scene.file.loads.keys() | scene.file.stores.keys()
    taken |= {a.arg for a in scene.file.of(ast.arg)}
    tries = ("view", *(f"view_{number}" for number in range(2, 1000)))
    yield from (name for name in tries if name not in taken)


def changed(
    scene: Scene, site: Site, expr: ast.expr, value: Parts, needs: frozenset[str], assigned: bool,
    loose: bool = False,
) -> Edit:  # fmt: skip
    """Return the edit of a statement that gives the view ``expr`` another value."""
    statement = scene.statement(expr)
    text, root = scene.spelling.local("helpers.assign") if assigned else ("", "")
    parts = joined(scene.source, put(scene, expr, value, text, loose))
    place = site.at(scene.source.span(statement))
    outcome = Outcome.HELPER if assigned else Outcome.CONVERTED
    needs |= {root} if root else frozenset()
    for node in ast.walk(expr):  # what is written for these uses names of its own
        name = node.func.attr if isinstance(node, ast.Call) and isinstance(
            node.func, ast.Attribute
        ) else ""  # fmt: skip
        if name == "diagonal" or name == "to" or name in _CASTS:
            used = DIAGONAL if name == "diagonal" else "mindspore.float32"
            needs |= {scene.spelling.local(used)[1]}
    return Lines(place, outcome, parts, site.name, needs)


def repaired(scene: Scene, site: Site, statement: ast.stmt, repairs: tuple[Repair, ...]) -> Edit:
    """Return the edit that brings the other names of a tensor up to date behind a statement."""
    found: list[Parts] = []
    for one in repairs:
        if one.up:
            found += put(scene, one.view, (one.name,))
        elif isinstance(one.view, ast.Name):
            found.append((f"{one.name} = {one.view.id}",))
        else:
            found.append((f"{one.name} = ", piece(scene.source, one.view)))
    parts = joined(scene.source, found)
    behind = added(scene.source, site, statement, Part.BEHIND, *parts)
    return replace(behind, row=site.name)
