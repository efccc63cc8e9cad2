"""In: the region of a training step and its names. Out: the text of its loss Cell and the call.

The Cell is written as a torch Module: the ordinary rules make a Cell of it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from migrate.analysis.types.kinds import ARRAY, UNKNOWN, is_all, may_be_numpys
from migrate.codegen.substitution import piece
from migrate.records.outcomes import Edit, Piece, Span
from migrate.syntax.lines import moved
from migrate.syntax.source import Source
from migrate.syntax.trees import dotted
from migrate.training.effects import binds, reads, uses
from migrate.training.lines import Parts, edit
from migrate.training.marks import View
from migrate.training.slices import Region
from migrate.training.variables import Variables

OWN = "_torch2ms"
_TAKEN = {
    "construct", "forward", "name", "phase", "cells", "parameters", "training", "bprop", "compile",
}  # fmt: skip


@dataclass(frozen=True)
class LossCell:
    """What stands for the loss: ``text`` is the class ("" for nn.WithLossCell), ``build`` the
    expression that makes it, ``inputs`` and ``results`` those of a call, ``renames`` edits of
    names inside the statements that it took over. ``dicts``: results that are the values of a dict,
    with its keys, or both in one tuple where nothing tells the keys; graph mode makes a tuple of a
    dict that leaves it."""

    text: Parts
    build: str
    inputs: tuple[Parts, ...]
    results: tuple[str, ...]
    renames: tuple[Edit, ...]
    dicts: tuple[tuple[str, tuple[str, ...] | None], ...] = ()

    def rebuilt(self, indent: str) -> str:
        """Return the lines behind a call that make dicts of their values again."""
        lines = (
            f"{n} = dict(zip([{', '.join(k)}], {n}))" if k else f"{n} = dict(zip(*{n}))"
            for n, k in self.dicts
        )
        return "".join(f"\n{indent}{line}" for line in lines)


def plain(view: View, region: Region, names: Variables, module: str) -> LossCell | None:
    """``nn.WithLossCell`` where the loss is ``criterion(model(x), y)`` and no more is asked."""
    if names.extra or region.captured or len(region.losses) != 1:
        return None
    found = of_criterion(region)
    if found is None:
        return None
    network, loss, inputs = found
    both = {dotted(network), dotted(loss)}
    if both - set(names.held) or len(both) != 2 or set(names.held) != both:
        return None
    if any(reads([i]) & binds(region.inside) for i in inputs):
        return None
    build = f"{module}.WithLossCell({dotted(network)}, {dotted(loss)})"
    only = region.losses[0]
    results = (only.id if isinstance(only, ast.Name) else "_",)
    spans = tuple((piece(view.file.source, i),) for i in inputs)
    return LossCell((), build, spans, results, ())


def of_criterion(region: Region) -> tuple[ast.expr, ast.expr, tuple[ast.expr, ast.expr]] | None:
    """(model, criterion, (data, label)) of ``criterion(model(data), label)``."""
    bound: dict[str, ast.expr] = {}
    for item in region.inside:
        target = item.targets[0] if isinstance(item, ast.Assign) else None
        if not isinstance(item, ast.Assign) or len(item.targets) != 1:
            return None
        if not isinstance(target, ast.Name) or target.id in bound:
            return None
        bound[target.id] = item.value
    loss = _through(region.losses[0], bound)
    if not isinstance(loss, ast.Call) or len(loss.args) != 2 or loss.keywords:
        return None
    output = _through(loss.args[0], bound)
    if not isinstance(output, ast.Call) or len(output.args) != 1 or output.keywords:
        return None
    if bound or isinstance(output.args[0], ast.Starred) or isinstance(loss.args[1], ast.Starred):
        return None
    return output.func, loss.func, (output.args[0], loss.args[1])


def _through(node: ast.expr, bound: dict[str, ast.expr]) -> ast.expr:
    """What a name was bound to; each binding is used once."""
    return bound.pop(node.id) if isinstance(node, ast.Name) and node.id in bound else node


def written(
    view: View, region: Region, names: Variables, own: str, name: str, base: str
) -> LossCell:
    """A class of its own."""
    source = view.file.source
    # a Module that trains itself is held as well, under a name that is not that of the Cell
    last = ["net" if n == own else n.rpartition(".")[2] for n in names.held]
    members = _spelled([f"self.{n}" for n in last], _TAKEN)
    members = dict(zip(names.held, members.values(), strict=True))
    bound = binds([*region.again, *region.inside], own)
    inputs = _spelled(names.given, bound)
    taken = bound | set(inputs.values())
    local = _spelled(sorted(n for n in bound - set(inputs) if "." in n), taken)
    new = _renamed(members, {**inputs, **local})
    renames = tuple(_renames(view, [*region.inside, *region.losses], new, own))
    renames += tuple(_first_looks(view, region))
    body: list[str | Piece] = [_respelled(view, s, new, own) for s in region.again]
    for item in region.inside:
        body += moved(source, item, " " * 8)
        for _, n, binding in region.captured:
            if binding is item and f" first_{n} = " not in "".join(
                p for p in body if isinstance(p, str)
            ):
                again = any(_changes(s, n) for s in region.inside)  # the very Tensor
                body.append(f"        first_{n} = {n}{'.clone()' if again else ''}\n")
    results = _result_names(region, names)
    dicts: dict[str, tuple[str, ...] | None] = {}
    for result in results[1:]:
        if (keys := _keys(view, region, result)) or _is_dict(view, region, result):
            dicts[result] = keys or None
        elif _may_be_dict(view, region, result):
            body.append(_IN_NO_GRAPH.format(new.get(result, result)))
    returned = []
    for result in results[1:]:
        spelled = new.get(result, result)
        if result in dicts:
            values = f"tuple({spelled}.values())"
            spelled = values if dicts[result] else f"(tuple({spelled}.keys()), {values})"
        returned.append(spelled)
    if _are_numbers(view, region, results[1:]):
        results, returned = (
            (*results, "_"),
            [*returned, f"{base.removesuffix(_MODULE)}.tensor(0.0)"],
        )
    text = (
        *_header(name, base, members, inputs),
        *body,
        *_returned(source, region, returned),
    )
    build = f"{name}({', '.join(names.held)})"
    given = tuple((_given(view, region, n, own),) for n in names.given)
    return LossCell(text, build, given, results, renames, tuple(dicts.items()))


_NO_TENSOR = frozenset("int float bool str None".split())
_MODULE = ".nn.Module"


def _are_numbers(view: View, region: Region, names: Sequence[str]) -> bool:
    """Return whether no result but the loss is a Tensor: MindSpore takes that for one result."""
    stored = [u for s in region.inside for u in uses(s, "-") if u.stored and u.name in names]
    kinds = [{a.kind for a in view.kind(u.node)} for u in stored]
    known = {u.name for u in stored} == {*names} and all(kinds)
    return bool(names) and known and all(k <= _NO_TENSOR for k in kinds)


def _keys(view: View, region: Region, name: str) -> tuple[str, ...]:
    """Return the keys of a result that is a dict display, filled by name, or what a function of
    the program returns, in their order."""
    keys: list[str] = []
    for item in region.inside:
        bound = isinstance(item, ast.Assign) and any(
            _root(part) == name for t in item.targets for part in getattr(t, "elts", [t])
        )
        if not bound and name in binds([item]):
            return ()
        for node in ast.walk(item):  # a method may change it, and so may whom it is handed to
            used = isinstance(node, ast.Attribute) and getattr(node.value, "id", "") == name
            if used and node.attr not in ("values", "items", "keys", "get"):  # type: ignore[attr-defined]
                return ()
        if not bound or not isinstance(item, ast.Assign):
            continue
        target = item.targets[0]
        if isinstance(target, ast.Name) and isinstance(item.value, ast.Dict) and not keys:
            places: list[ast.expr | None] = list(item.value.keys)
        elif isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name) and keys:
            places = [target.slice]
        elif not keys and isinstance(item.value, ast.Call):
            places = list(_returned_keys(view, item.value, target, name))
        else:
            return ()
        if len(item.targets) > 1 or not all(isinstance(k, ast.Constant) for k in places):
            return ()
        plain = isinstance(item.value, ast.Call)
        texts = [_quoted(k) if plain else view.file.source.text_of(k) for k in places if k]
        keys += [t for t in dict.fromkeys(texts) if t not in keys]
    return tuple(keys)


# a graph makes a tuple of a dict that leaves it
_IN_NO_GRAPH = (
    f"        assert {OWN}.is_pynative() or not isinstance({{}}, dict), "
    '"torch2ms GRF615: a graph gives a tuple for a dict"\n'
)
_ASKING = ("items", "keys", "values", "get")
_READING = ("len", "sum", "sorted", "list", "tuple", "dict")
_TELLING = ("print", "str")  # what is no dict alone has a text of its own


def _may_be_dict(view: View, region: Region, name: str) -> bool:
    """Return whether a result may be a dict that others would take for a tuple without a word."""
    stored = [u.node for s in region.inside for u in uses(s, "-") if u.name == name and u.stored]
    kinds = {a.kind for n in stored for a in view.kind(n) or UNKNOWN}
    if "dict" in kinds or "unknown" not in kinds:
        return "dict" in kinds
    inside = {id(n) for s in region.inside for n in ast.walk(s)}
    return any(
        isinstance(user, (ast.For, ast.comprehension))
        or (isinstance(user, ast.Compare) and isinstance(user.ops[-1], (ast.In, ast.NotIn)))
        or (isinstance(user, ast.Call) and getattr(user.func, "id", "") in _READING)
        for node, user in _loads(view, region, name)
        if id(node) not in inside
    )


def _loads(view: View, region: Region, name: str) -> list[tuple[ast.Name, ast.AST | None]]:
    """Return the places that read a name in the function of a step, and what these are part of."""
    function = view.file.function_at(region.inside[0])
    nodes = function.nodes if function is not None else view.file.nodes
    read = [n for n in nodes if isinstance(n, ast.Name) and n.id == name]
    return [(n, view.file.parents.get(id(n))) for n in read if isinstance(n.ctx, ast.Load)]


def _is_dict(view: View, region: Region, name: str) -> bool:
    """Return whether a result can be no other than a dict, of which a copy says as much.

    What others may hold as well is only read behind the step.
    """
    kinds: set[str] = set()
    fresh = True
    for item in region.inside:
        for use in (u for u in uses(item, "-") if u.name == name and u.stored):
            value = item.value if isinstance(item, ast.Assign) else None
            kind = view.kind(use.node)
            if any(a.kind == "dict" and a.name.startswith("collections.") for a in kind):
                return False  # of a class that a dict is not
            kinds |= {a.kind for a in kind} or {"unknown"}
            own = all(a.sites and not any(isinstance(s, str) for s in a.sites) for a in kind)
            made = isinstance(value, ast.Call) and own and bool(kind)
            fresh &= isinstance(value, (ast.Dict, ast.DictComp)) or made
    if kinds - {"dict", "unknown"} or not kinds:
        return False
    read = _loads(view, region, name)
    plain = kinds == {"dict"}
    if not fresh and not all(_only_reads(user, node, plain) for node, user in read):
        return False
    asked = [u.attr for _, u in read if isinstance(u, ast.Attribute)]
    return plain or (bool({*asked} - {"get"}) and {*asked} <= {*_ASKING})


def _only_reads(user: ast.AST | None, node: ast.Name, plain: bool) -> bool:
    """Return whether a name is asked for what its dict holds, and handed to nobody.

    Unless it is known to be ``plain``, its class may print and compare in another way.
    """
    if isinstance(user, ast.Subscript):
        return user.value is node and isinstance(user.ctx, ast.Load)
    if isinstance(user, ast.Call):
        return getattr(user.func, "id", "") in (*_READING, *(_TELLING if plain else ()))
    if isinstance(user, ast.Attribute):
        return user.attr in _ASKING
    if isinstance(user, ast.Compare):
        return plain or all(isinstance(op, (ast.In, ast.NotIn)) for op in user.ops)
    if isinstance(user, ast.FormattedValue):
        return plain
    return isinstance(user, (ast.For, ast.comprehension)) or (
        isinstance(user, ast.keyword) and user.arg is None
    )


def _quoted(key: ast.expr) -> str:
    """Return the text of a constant, which may stand in another file."""
    text = ast.unparse(key)
    return f'"{text[1:-1]}"' if text[:1] == "'" and '"' not in text else text


def _returned_keys(
    view: View, call: ast.Call, target: ast.expr, name: str
) -> Sequence[ast.expr | None]:
    """Return the keys of the dict that a call gives for a name: ``loss, parts = loss_fn(x)``."""
    program, atoms = view.inference.program, view.kind(call.func)
    found = [program.functions.get(a.name) for a in atoms if a.kind in ("function", "method")]
    for atom in atoms:
        if atom.kind == "Module" and "::" in atom.name:
            members = view.inference.member(atom.name, "forward")
            found += [program.functions.get(m.name) for m in members]
    function = found[0] if len(found) == len(atoms) == 1 else None
    own = [n for n in function.nodes if isinstance(n, ast.Return)] if function else []
    value = own[0].value if len(own) == 1 else None
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        if len(target.elts) != len(value.elts):
            return ()
        names = [getattr(e, "id", "") for e in target.elts]
        value = value.elts[names.index(name)] if name in names else None
    elif not isinstance(target, ast.Name):
        return ()
    if isinstance(value, ast.Name) and function is not None:
        bound = [n for n in function.nodes if isinstance(n, ast.Assign)
                 and any(_root(t) == value.id for t in n.targets)]  # fmt: skip
        used = [n for n in function.nodes if isinstance(n, ast.Name) and n.id == value.id]
        value = bound[0].value if len(bound) == 1 and len(used) == 2 else None
    return value.keys if isinstance(value, ast.Dict) else ()


def _root(node: ast.expr) -> str:
    while isinstance(node, (ast.Subscript, ast.Attribute)):
        node = node.value
    return getattr(node, "id", "")


def _given(view: View, region: Region, name: str, own: str) -> str:
    """Return what the Cell gets: a number of numpy's as one of Python's, an index as a Tensor.

    Left of a Tensor the number would compute an array, through which no gradient comes; an array
    is no index of a Tensor.
    """
    nodes = [*region.again, *region.inside, *region.losses]
    seen = [u.node for n in nodes for u in uses(n, own) if u.name == name and not u.stored]
    if any(may_be_numpys(view.kind(n)) for n in seen):
        return f"float({name})"
    indices = [view.file.parents.get(id(n)) for n in seen]
    imported = {a.asname or a.name for n in view.file.of(ast.Import) for a in n.names}
    array = seen and "torch" in imported and all(
        isinstance(i, ast.Subscript) and i.slice is n and is_all(view.kind(n), "instance")
        and view.kind(n) >= ARRAY
        for i, n in zip(indices, seen, strict=True)
    )  # fmt: skip
    return f"torch.as_tensor({name})" if array else name


def _spelled(names: Sequence[str], taken: set[str]) -> dict[str, str]:
    """A member or parameter name for each name: its last part, unless that is taken."""
    found: dict[str, str] = {}
    for name in names:
        short = name.rpartition(".")[2]
        while (short != name and short in taken) or short in found.values():
            short += "_"
        found[name] = short
    return found


def _header(name: str, base: str, members: dict[str, str], inputs: dict[str, str]) -> Parts:
    arguments = ", ".join(["self", *members.values()])
    lines = [
        f"class {name}({base}):",
        f"    def __init__({arguments}):",
        "        super().__init__(auto_prefix=False)",
        *(f"        self.{m} = {m}" for m in members.values()),
        "",
        f"    def forward({', '.join(['self', *inputs.values()])}):",
    ]
    return ("\n".join(lines) + "\n",)


def _result_names(region: Region, names: Variables) -> tuple[str, ...]:
    only = region.losses[0] if len(region.losses) == 1 else None
    first = (dotted(only) if only is not None else "") or "_"
    captured = dict.fromkeys(f"first_{n}" for _, n, _ in region.captured)
    return (first, *dict.fromkeys(names.extra), *captured)


def _returned(source: Source, region: Region, extra: Sequence[str]) -> Parts:
    parts: list[str | Piece] = ["        return "]
    for index, loss in enumerate(region.losses):
        parts += [" + "] if index else []
        parts.append(Piece(source.span(loss), loss, inside=not dotted(loss)))
    return (*parts, "".join(f", {n}" for n in extra), "\n")


def _renamed(members: dict[str, str], local: dict[str, str]) -> dict[str, str]:
    """``model`` becomes ``self.model``; ``self.batch``, an input or result, ``batch``."""
    new = {n: f"self.{m}" for n, m in members.items() if n != f"self.{m}"}
    return new | {n: short for n, short in local.items() if n != short}


def _renames(view: View, items: Sequence[ast.AST], new: dict[str, str], own: str) -> Iterator[Edit]:
    for use in (u for item in items for u in uses(item, own)):
        if use.name in new:
            yield edit(view.file.source, view.file.source.span(use.node), (new[use.name],))


def _changes(item: ast.stmt, name: str) -> bool:
    """Return whether a statement may change the Tensor of a name in place."""
    return any(isinstance(n, ast.AugAssign) and dotted(n.target) == name for n in ast.walk(item))


def _first_looks(view: View, region: Region) -> Iterator[Edit]:
    """What is made again inside leaves moving statistics alone the first time."""
    for item in region.again:
        assert isinstance(item.value, ast.Call)
        source, called = view.file.source, item.value.func
        text = f"{OWN}.without_statistics({source.text_of(called)})"
        yield edit(source, source.span(called), (text,))


def _respelled(view: View, item: ast.stmt, new: dict[str, str], own: str) -> str:
    """A statement's text with other names; where it stands, it keeps its own."""
    source, span = view.file.source, view.file.source.span(item)
    text, position = " " * 8, span.start
    for use in sorted(uses(item, own), key=lambda u: source.span(u.node).start):
        if use.name in new:
            place = source.span(use.node)
            text += source.text(Span(position, place.start)) + new[use.name]
            position = place.end
    return text + source.text(Span(position, span.end)) + "\n"
