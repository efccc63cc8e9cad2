"""Rewrite ``x[i] = v`` where graph mode sets something else, or nothing: Parameters, and masks.

Measured, in graph mode: an element of a Parameter that is set behind an early return, a raise or an
assert of its method is not set at all, and a bound that is data fails in the gradient; where a mask
chooses, values go to whole rows if they happen to be as many, and it raises if they are not.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from migrate.analysis.program import Function
from migrate.analysis.types.kinds import is_all
from migrate.codegen.substitution import joined, piece
from migrate.records.outcomes import Edit, Lines, Outcome, Piece, Site, Wrap
from migrate.rules.called_from import call_sites
from migrate.rules.data_attribute import compiled, is_set_anew, is_target, sets_alone
from migrate.rules.graph import scope
from migrate.rules.graph.scope import Silent
from migrate.rules.registry import rewrites
from migrate.rules.torch_sharing import is_written
from migrate.rules.written import Holder, Target, target_of, written_by
from migrate.sites.buffer_gradients import is_parameter, parameters, registered
from migrate.sites.scene import Scene, once
from migrate.sites.selections import is_found, is_mask, is_selection, may_choose

Parts = tuple["str | Piece", ...]


def set_anew(
    scene: Scene, site: Site, place: ast.Subscript, sign: str, value: Parts, needs: frozenset[str]
) -> Edit | None:
    """Return the edit that sets an element in a way that graph mode keeps; None where it does.

    ``sign`` is "=" or that of an augmented assignment.
    """
    statement, target = scene.statement(place), target_of(scene, place)
    if not compiled(scene, place) or not sets_alone(scene, statement):
        return None
    held = is_set_anew(scene, place)
    if _may_be_mask(scene, place, statement) and (held or target.holder is Holder.ITEM):
        return _chosen(scene, site, place, target, sign, value, needs)
    return _copied(scene, site, place, target, sign, value, needs) if held else None


def _edit(scene: Scene, site: Site, parts: Parts, needs: frozenset[str], line: ast.stmt) -> Edit:
    place = site.at(scene.source.span(line))
    return Lines(place, Outcome.HELPER, parts, site.name, needs)


def _copied(
    scene: Scene, site: Site, place: ast.Subscript, target: Target, sign: str, value: Parts,
    needs: frozenset[str],
) -> Edit:  # fmt: skip
    """``self.bank[i] = v``: a copy gets the element, and the Parameter the copy."""
    assert isinstance(target.expr, ast.Attribute)
    source, statement = scene.source, scene.statement(place)
    inner: ast.expr = place
    index: Parts = ()
    while isinstance(inner, ast.Subscript):
        index, inner = ("[", piece(source, inner.slice), "]", *index), inner.value
    name = _name(scene, target.expr.attr)
    text, root = scene.spelling.local("helpers.assign")
    held = piece(source, target.expr)
    own = source.span(place)
    value = tuple(  # self.bank[i].add(1) is of the copy as well
        part
        for old in value
        for part in ((name, *index) if isinstance(old, Piece) and old.span == own else (old,))
    )
    copied, changed = (f"{name} = ", held, ".copy()"), (name, *index, f" {sign} ", *value)
    parts = joined(source, (copied, changed, (f"{text}(", held, f", {name})")))
    return _edit(scene, site, parts, needs | {root}, statement)


def _name(scene: Scene, attribute: str) -> str:
    """Return a name for the copy that the file does not use."""
    taken = scene.file.names | scene.file.loads.keys() | scene.file.stores.keys()
    taken |= {a.arg for a in scene.file.of(ast.arg)}
    tries = (attribute, f"new_{attribute}", *(f"new_{attribute}_{n}" for n in range(2, 1000)))
    return next(name for name in tries if name not in taken and name.isidentifier())


def _may_be_mask(scene: Scene, place: ast.Subscript, statement: ast.stmt) -> bool:
    """Return whether an index may be a mask, for as many values as it chooses."""
    if isinstance(place.slice, (ast.Tuple, ast.Slice, ast.Constant)):
        return False
    if not isinstance(place.value, (ast.Name, ast.Attribute)) or not may_choose(scene, place.slice):
        return False
    if is_found(scene, place.slice) or (
        isinstance(place.slice, ast.Name) and is_selection(scene, place.slice)
    ):
        return False
    value = statement.value if isinstance(statement, ast.Assign) else None
    return value is None or not is_all(scene.kind(value), "int", "float", "bool")


def _chosen(
    scene: Scene, site: Site, place: ast.Subscript, target: Target, sign: str, value: Parts,
    needs: frozenset[str],
) -> Edit:  # fmt: skip
    """``x[mask] = v`` is ``x = set_where(x, mask, v)``."""
    source, statement = scene.source, scene.statement(place)
    text, root = scene.spelling.local("helpers.set_where")
    held, mask = piece(source, target.expr), piece(source, place.slice)
    if sign != "=":
        tight = piece(source, place.slice)
        read = ".value()[" if target.holder is Holder.PLACE else "["
        value = (held, read, tight, f"] {sign.removesuffix('=')} ", *value)
    made: Parts = (f"{text}(", held, ", ", mask, ", ", *value, ")")
    if target.holder is Holder.ITEM:
        return _edit(scene, site, (held, " = ", *made), needs | {root}, statement)
    assign, helper = scene.spelling.local("helpers.assign")
    parts = (f"{assign}(", held, ", ", *made, ")")
    return _edit(scene, site, parts, needs | {root, helper}, statement)


# -- elements of Parameters that are read -------------------------------------------------------


@rewrites()
def loads(scene: Scene) -> Iterator[Edit]:
    """Yield ``self.bank.value()[i]`` for ``self.bank[i]``, where compiled code assigns the bank.

    Graph mode does not order an index into a Parameter before or after what assigns it: the
    element may be the old one or the new one. It does order ``value()``.
    """
    names = _assigned(scene)
    for node in scene.file.of(ast.Subscript) if names else ():
        if not isinstance(node.ctx, ast.Load) or not compiled(scene, node):
            continue
        if not _holds(scene, node.value, names) or is_target(scene, node):
            continue
        held = piece(scene.source, node.value)
        place = scene.site("torch.Tensor.__getitem__", node).at(held.span)
        yield Wrap(place, Outcome.CONVERTED, (held, ".value()"))


def _holds(scene: Scene, node: ast.expr, names: frozenset[str]) -> bool:
    """Return whether an expression is one of those Parameters, or a variable that holds it."""
    if isinstance(node, ast.Attribute):
        return node.attr in names and is_all(scene.kind(node), "Tensor")
    function = scene.function(node)
    if not isinstance(node, ast.Name) or function is None:
        return False
    bound = [a.value for a in function.assigned.get(node.id, ())]
    if any(isinstance(v, ast.Attribute) and _holds(scene, v, names) for v in bound):
        return True
    return (function.key, node.id) in _handed(scene)


@once
def _assigned(scene: Scene) -> frozenset[str]:
    """Return the names of the Parameters that some compiled code assigns."""
    reached = scope.compiled(scene.inference).values()
    stored = frozenset(name for function in reached for name in _stores(function))
    return stored & (parameters(scene) | registered(scene).keys())


def _stores(function: Function) -> Iterator[str]:
    """Yield the names of attributes that are stored to, or that a method in place is called of."""
    for node in function.of(ast.Attribute, ast.Subscript, ast.Call):
        held: ast.AST | None = None
        if isinstance(node, (ast.Attribute, ast.Subscript)) and not isinstance(node.ctx, ast.Load):
            held = node
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            held = node.func.value if is_written(node.func.attr) else None
        while held is not None and not (isinstance(held, ast.Attribute) and held.attr != "data"):
            inner = held.func if isinstance(held, ast.Call) else held
            held = getattr(inner, "value", None)
        if isinstance(held, ast.Attribute):
            yield held.attr


@once
def _handed(scene: Scene) -> frozenset[tuple[str, str]]:
    """Return the functions, with a parameter, that such a Parameter is passed to."""
    names = _assigned(scene)
    found = set()
    for function in scene.inference.program.functions.values():
        given = [p.arg for p in function.parameters]
        for _, call, _ in call_sites(scene, function) if given else ():
            shift = 1 if function.owner is not None else 0
            pairs = [*zip(given[shift:], call.args, strict=False)]
            pairs += [(k.arg, k.value) for k in call.keywords if k.arg]
            found |= {
                (function.key, name)
                for name, value in pairs
                if isinstance(value, ast.Attribute) and value.attr in names
            }
    return frozenset(found)


# -- what graph mode forgets, or refuses ----------------------------------------------------------


def masked(scene: Scene, compiled_nodes: Iterable[ast.AST]) -> Iterator[Silent]:
    """Yield stores by a mask beside other indices, which graph mode refuses or gets wrong."""
    for node in compiled_nodes:
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
            parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else []
            if any(is_mask(scene, part) or _is_bool(scene, part) for part in parts):
                why = "graph mode does not set what a mask chooses beside other indices"
                step = "write torch.where with the mask in full"
                yield Silent(node, ("GRF617", ast.unparse(node), why, step))


def _is_bool(scene: Scene, part: ast.expr) -> bool:
    """Return whether a parameter is used, or called, as a mask."""
    function = scene.function(part)
    if not isinstance(part, ast.Name) or function is None:
        return False
    given = part.id in {a.arg for a in function.parameters} and "Tensor" in scene.kind_names(part)
    inverted = any(
        isinstance(n, ast.UnaryOp) and isinstance(n.op, ast.Invert) and (
            getattr(n.operand, "id", "") == part.id
        ) for n in function.nodes
    )  # fmt: skip
    return given and (inverted or "mask" in part.id.lower() or part.id.startswith("is_"))


def lost(scene: Scene, compiled_nodes: Iterable[ast.AST]) -> Iterator[Silent]:
    """Yield writes into what a Cell holds and is no Parameter: graph mode forgets them."""
    for node in compiled_nodes:
        expr = written_by(scene, node) if isinstance(node, ast.Call) else None
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
            expr = node if is_all(scene.kind(node.value), "Tensor") else None
        target = target_of(scene, expr) if expr is not None else None
        if target is None or target.holder is not Holder.PLACE:
            continue
        held = target.expr
        if not isinstance(held, ast.Attribute) or is_parameter(scene, held):
            continue
        if is_all(scene.kind(held), "Tensor"):
            why = "graph mode changes Parameters only: it keeps what it was"
            step = "register it as a buffer that is saved"
            yield Silent(node, ("GRF616", ast.unparse(held), why, step))
