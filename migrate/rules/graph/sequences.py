"""Give dicts, lists, iterators and comprehensions of compiled code a form that graph mode has.

Graph mode unpacks into no dict and joins none with ``|``, takes one loop in a comprehension, has no
iterators, and of ``l.pop(0) if l else None`` makes the list and the item.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import partial

from migrate.analysis.types.inference import Inference
from migrate.analysis.types.kinds import is_all
from migrate.codegen.substitution import piece
from migrate.records.outcomes import Edit, Part, Piece
from migrate.rules.graph import scope, values
from migrate.rules.graph.scope import Checks, Text, builtin, foreign
from migrate.rules.registry import rewrites
from migrate.sites.scene import Scene, once
from migrate.syntax.lines import (
    begins_line,
)
from migrate.syntax.trees import all_names, within

Parts = list[Text]
_CHOICES = ("itertools.combinations", "itertools.permutations",
            "itertools.combinations_with_replacement")  # fmt: skip
_COLLECTED = ("list", "tuple", "zip", "enumerate", "sum", "len")
_COLLECTED_MAP = ("list", "tuple", "zip", "sum", "enumerate", "max", "min")
_PLACES = "ijkmn"
_CHANGES = ("append", "extend", "insert", "pop", "remove", "clear", "reverse", "sort")
_LOOPS = (ast.For, ast.While, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_INDEXED = ("torch.nn.ModuleList", "torch.nn.Sequential")
_FIXED = (ast.Name, ast.Constant, ast.UnaryOp, ast.unaryop, ast.Attribute, ast.expr_context)
_PLAIN = (*_FIXED, ast.Tuple, ast.List)


def _inside(scene: Scene, node: ast.expr) -> Piece:
    return piece(scene.source, node)


# -- dicts --------------------------------------------------------------------------------------


def _spread(scene: Scene, node: ast.Dict) -> Edit | None:
    """``{**one, "b": x}`` is ``joined(one, {"b": x})``."""
    groups: list[Parts] = []
    entries: list[tuple[ast.expr, ast.expr]] = []
    for key, value in zip(node.keys, node.values, strict=True):
        if key is not None:
            entries.append((key, value))
            continue
        groups += [*_entries(scene, node, entries), [_inside(scene, value)]]
        entries = []
    spread = None in node.keys
    return _joined(scene, node, groups + _entries(scene, node, entries)) if spread else None


def _entries(scene: Scene, node: ast.Dict, entries: list[tuple[ast.expr, ast.expr]]) -> list[Parts]:
    """Return one dict of some entries."""
    parts: Parts = []
    for key, value in entries:
        parts += [", ", piece(scene.source, key), ": ", piece(scene.source, value)]
    return [["{", *parts[1:], "}"]] if entries else []


def _of_others(scene: Scene, node: ast.Call) -> Edit | None:
    """``dict(one, b=x)`` and ``dict(**one, b=x)``; named values alone are a plain dict."""
    spread = [k for k in node.keywords if k.arg is None]
    given = node.args[0] if node.args else None
    if not builtin(scene, node.func, "dict"):
        return None
    if len(node.args) > 1 or isinstance(given, ast.Starred):
        return None
    if not spread and (given is None or not is_all(scene.kind(given), "dict")):
        return None
    groups: list[Parts] = [[_inside(scene, a)] for a in node.args]
    named = False
    for keyword in node.keywords:
        value = _inside(scene, keyword.value)
        if keyword.arg is None:
            groups.append([value])
        elif named:
            groups[-1][-1:] = [f', "{keyword.arg}": ', value, "}"]
        else:
            groups.append(['{"' + keyword.arg + '": ', value, "}"])
        named = keyword.arg is not None
    return _joined(scene, node, groups)


def _both(scene: Scene, node: ast.BinOp) -> Edit | None:
    """``one | other`` is ``joined(one, other)``."""
    if not isinstance(node.op, ast.BitOr) or not is_all(scene.kind(node.left), "dict"):
        return None
    return _joined(scene, node, [[_inside(scene, side)] for side in (node.left, node.right)])


def _joined(scene: Scene, node: ast.AST, groups: list[Parts]) -> Edit:
    parts = [part for group in groups for part in (", ", *group)]
    return scope.called(scene, node, "joined", *parts[1:])


def _named(scene: Scene, node: ast.Call) -> Edit | None:
    """``dict(a=t)`` is ``{"a": t}``, ``dict(zip(ks, ts))`` a comprehension."""
    if not builtin(scene, node.func, "dict"):
        return None
    if not node.args and all(k.arg for k in node.keywords):
        return scope.whole(scene, node, *_pairs(scene, node))
    only = node.args[0] if len(node.args) == 1 and not node.keywords else None
    if isinstance(only, ast.Call) and builtin(scene, only.func, "zip") and len(only.args) == 2:
        return _each_pair(scene, node, only)
    return None


def _of_pairs(scene: Scene, node: ast.Call) -> Edit | None:
    """``OrderedDict([("a", x)])`` is ``{key: value for key, value in [("a", x)]}``."""
    ordered = foreign(scene, node.func, "collections.OrderedDict")
    only = node.args[0] if len(node.args) == 1 and not node.keywords else None
    if only is None or not (ordered or builtin(scene, node.func, "dict")):
        return None
    zipped = ordered and isinstance(only, ast.Call) and builtin(scene, only.func, "zip")
    if not zipped and not isinstance(only, (ast.List, ast.Tuple, ast.ListComp)):
        return None
    return None if _asks_for_order(scene.inference) else _each_pair(scene, node, only)


def _each_pair(scene: Scene, node: ast.Call, over: ast.expr) -> Edit:
    return scope.whole(scene, node, "{key: value for key, value in ", _inside(scene, over), "}")


@once
def _asks_for_order(inference: Inference) -> bool:
    """Return whether any file asks for an OrderedDict, or uses what a dict does not have."""
    program = inference.program
    moved = any(
        n.attr == "move_to_end" for f in program.files.values() for n in f.of(ast.Attribute)
    )
    return moved or any(
        isinstance(call.func, ast.Name)
        and any("OrderedDict" in ast.unparse(a) for a in call.args[1:])
        for name in ("isinstance", "issubclass")
        for _, call, _ in program.calls.get(name, ())
    )


def _pairs(scene: Scene, node: ast.Call) -> Parts:
    parts = [p for k in node.keywords for p in (", ", f'"{k.arg}": ', _inside(scene, k.value))]
    return ["{", *parts[1:], "}"]


def _updated(scene: Scene, node: ast.Call) -> Edit | None:
    """``d.update(b=t)`` is ``d.update({"b": t})``."""
    func = node.func
    named = node.keywords and not node.args and all(k.arg for k in node.keywords)
    if not isinstance(func, ast.Attribute) or func.attr != "update" or not named:
        return None
    if not is_all(scene.kind(func.value), "dict"):
        return None
    head = piece(scene.source, func.value)
    return scope.whole(scene, node, head, ".update(", *_pairs(scene, node), ")")


def _set_default(scene: Scene, node: ast.Call) -> Edit | None:
    """``d.setdefault(k, v)``, a statement, is ``if k not in d:`` and ``d[k] = v`` below."""
    func, statement = node.func, scene.parent(node)
    if not isinstance(func, ast.Attribute) or func.attr != "setdefault" or len(node.args) != 2:
        return None
    if not isinstance(statement, ast.Expr) or not is_all(scene.kind(func.value), "dict"):
        return None
    quiet = all(isinstance(n, _PLAIN) for a in (func.value, *node.args) for n in ast.walk(a))
    if node.keywords or not quiet or not begins_line(scene.source, statement):
        return None
    source = scene.source
    held, key = source.text_of(func.value), source.text_of(node.args[0])
    head, value = f"if {key} not in {held}:", _inside(scene, node.args[1])
    return scope.instead(scene, statement, (head,), (f"    {held}[{key}] = ", value))


def _taken_out(scene: Scene, node: ast.Call) -> Edit | None:
    """``kwargs.pop("k", None)`` is ``kwargs.get("k", None)``.

    It has to be ``**kwargs`` of which every key is asked for by name, and this one only here.
    """
    func, function = node.func, scene.function(node)
    if not isinstance(func, ast.Attribute) or func.attr != "pop" or function is None:
        return None
    name = func.value
    if not isinstance(name, ast.Name) or node.keywords or len(node.args) not in (1, 2):
        return None
    if getattr(function.node.args.kwarg, "arg", "") != name.id:
        return None
    around = scene.parent(node)
    while around is not None and around is not function.node:
        if isinstance(around, _LOOPS):
            return None
        around = scene.parent(around)
    uses = [n for n in ast.walk(function.node) if isinstance(n, ast.Name) and n.id == name.id]
    keys, own = [_key(scene, use) for use in uses], _key(scene, name)
    if not own or not all(keys) or keys.count(own) != 1:
        return None
    head, key = piece(scene.source, name), _inside(scene, node.args[0])
    if len(node.args) == 2:
        default = _inside(scene, node.args[1])
        return scope.whole(scene, node, head, ".get(", key, ", ", default, ")")
    return scope.whole(scene, node, head, "[", key, "]")


def _key(scene: Scene, use: ast.Name) -> str:
    """Return the constant key that a use of a dict asks for; "" for any other use."""
    parent = scene.parent(use)
    if isinstance(parent, ast.Subscript) and parent.value is use:
        asked: ast.expr | None = parent.slice if isinstance(parent.ctx, ast.Load) else None
    else:
        call = scene.parent(parent) if isinstance(parent, ast.Attribute) else None
        takes = isinstance(parent, ast.Attribute) and parent.attr in ("pop", "get")
        asked = call.args[0] if takes and isinstance(call, ast.Call) and call.args else None
    return asked.value if isinstance(asked, ast.Constant) and isinstance(asked.value, str) else ""


# -- products -----------------------------------------------------------------------------------


def over_numbers(scene: Scene, node: ast.Call) -> bool:
    """Return whether graph mode takes a call of itertools by itself: it knows the numbers."""
    parent = scene.parent(node)
    gone = isinstance(parent, (ast.For, ast.comprehension)) and parent.iter is node
    if foreign(scene, node.func, "itertools.product"):
        return True
    counted = node.args and isinstance(node.args[0], ast.Call)
    ranged = counted and builtin(scene, node.args[0].func, "range")  # type: ignore[attr-defined]
    return gone and bool(ranged) and foreign(scene, node.func, *_CHOICES)


def _nested(scene: Scene, node: ast.ListComp | ast.GeneratorExp) -> Edit | None:
    """``[f(a, b) for a in x for b in y]`` is ``sum([[f(a, b) for b in y] for a in x], [])``."""
    if len(node.generators) != 2 or any(g.is_async for g in node.generators):
        return None
    generated = isinstance(node, ast.GeneratorExp)
    if generated and not _is_collected(scene, node, _COLLECTED):
        return None
    if not _is_python_sum(scene):
        return None
    outer, inner = (_clause(scene, generator) for generator in node.generators)
    parts = ("sum([[", piece(scene.source, node.elt), *inner, "]", *outer, "], [])")
    # the span of a generator has the parentheses of the call
    return scope.whole(scene, node, *(("(", *parts, ")") if generated else parts))


def _clause(scene: Scene, clause: ast.comprehension) -> Parts:
    """Return ``for x in y if z`` of a comprehension, a space before it."""
    source = scene.source
    parts: Parts = [" for ", piece(source, clause.target), " in ", piece(source, clause.iter)]
    return parts + [part for test in clause.ifs for part in (" if ", piece(source, test))]


def _is_python_sum(scene: Scene) -> bool:
    """Return whether nothing of the file takes the name ``sum``; a method may."""
    return not any(
        scope.bound_name(node) == "sum"
        for node in scene.file.nodes
        if not (isinstance(node, ast.FunctionDef) and scene.owner(node) is not None)
    )


def _is_collected(scene: Scene, node: ast.expr, by: tuple[str, ...]) -> bool:
    """Return whether a list does as well as an iterator: in a loop, or in a call of ``by``."""
    parent = scene.parent(node)
    if isinstance(parent, (ast.For, ast.comprehension)):
        return parent.iter is node
    called = parent.func if isinstance(parent, ast.Call) else None
    return called is not None and any(builtin(scene, called, name) for name in by)


def _chosen(scene: Scene, node: ast.Call) -> Edit | None:
    """``combinations(x, 2)`` is ``[(x[i], x[j]) for i, j in combinations(range(len(x)), 2)]``."""
    if not foreign(scene, node.func, *_CHOICES) or len(node.args) != 2 or node.keywords:
        return None
    items, count = node.args
    if any(a.kind == "dict" for a in scene.kind(items)):
        return None
    size = count.value if isinstance(count, ast.Constant) else 0
    if not isinstance(size, int) or not 2 <= size <= 4:
        return None
    if not _is_collected(scene, node, _COLLECTED):
        return None
    if not all(isinstance(n, (ast.Name, ast.Attribute, ast.expr_context)) for n in ast.walk(items)):
        return None
    taken = all_names(items)
    places = [p for p in _PLACES if p not in taken][:size]
    text = scene.source.text_of(items)
    each = ", ".join(f"{text}[{p}]" for p in places)
    head = f"[({each}) for {', '.join(places)} in "
    tail = f"(range(len({text})), {size})]"
    return scope.whole(scene, node, head, piece(scene.source, node.func), tail)


def _library(scene: Scene, node: ast.Call) -> Edit | None:
    """``chain(a, b)`` in a loop is ``[*a, *b]``, ``islice(layers, n)`` is ``layers[:n]``."""
    parent = scene.parent(node)
    if not isinstance(parent, (ast.For, ast.comprehension)) or parent.iter is not node:
        return None
    if node.keywords or any(isinstance(a, ast.Starred) for a in node.args):
        return None
    if foreign(scene, node.func, "itertools.chain") and node.args:
        parts: Parts = []
        for number, argument in enumerate(node.args):
            parts += [", *" if number else "[*", piece(scene.source, argument)]
        return scope.whole(scene, node, *parts, "]")
    cut = foreign(scene, node.func, "itertools.islice") and len(node.args) == 2
    if not cut or not _is_indexed(scene, node.args[0]):
        return None
    head = piece(scene.source, node.args[0])
    return scope.whole(scene, node, head, "[:", _inside(scene, node.args[1]), "]")


def _is_indexed(scene: Scene, node: ast.expr) -> bool:
    """Return whether an expression is surely a list, a tuple, or a row of layers."""
    classes = scene.module_classes(node)
    return is_all(scene.kind(node), "list", "tuple") or (
        bool(classes) and all(c in _INDEXED for c in classes)
    )


# -- iterators ----------------------------------------------------------------------------------


def _next_of_new(scene: Scene, node: ast.Call) -> Edit | None:
    """``next(iter(layers))`` is ``layers[0]``."""
    inner = node.args[0] if len(node.args) == 1 and not node.keywords else None
    if not builtin(scene, node.func, "next") or not isinstance(inner, ast.Call):
        return None
    if not builtin(scene, inner.func, "iter") or len(inner.args) != 1:
        return None
    if not _is_indexed(scene, inner.args[0]):
        return None
    return scope.whole(scene, node, piece(scene.source, inner.args[0]), "[0]")


def _listed(scene: Scene, node: ast.Call) -> Edit | None:
    """``it = iter(items)`` is ``it = items``, where each use of ``it`` takes the next item."""
    statement = scene.parent(node)
    if not builtin(scene, node.func, "iter") or not isinstance(statement, ast.Assign):
        return None
    target = statement.targets[0]
    if len(statement.targets) != 1 or not isinstance(target, ast.Name):
        return None
    if not _only_steps(scene, node, target.id):
        return None
    if not values.is_sequence(scene, node.args[0]):
        return scope.helped(scene, node.func, "begun")
    return scope.whole(scene, node, _inside(scene, node.args[0]))


def _taken(scene: Scene, node: ast.Call) -> tuple[Edit, ...]:
    """``f(next(it, None))`` is ``it_next, it = next_of(it, None)`` and ``f(it_next)``.

    The next item is asked for in a statement before: in any case, and once.
    """
    name = node.args[0] if node.args else None
    if not builtin(scene, node.func, "next") or not isinstance(name, ast.Name):
        return ()
    quiet = all(isinstance(a, (ast.Constant, ast.Name)) for a in node.args[1:])
    if len(node.args) > 2 or node.keywords or not quiet or not _only_steps(scene, node, name.id):
        return ()
    source, statement, taken = scene.source, scene.statement(node), f"{name.id}_next"
    given = ", ".join(source.text_of(a) for a in node.args)

    def above(helper: str) -> Edit:
        head = f"{taken}, {name.id} = {helper}({given})"
        return scope.part(scene, statement, Part.BEFORE, head)

    return (scope.helping(scene, "next_of", above), scope.whole(scene, node, taken))


def _only_steps(scene: Scene, node: ast.Call, name: str) -> bool:
    """Return whether a local name is for iterators of lists only, each use in a ``next`` that can
    be moved before its statement."""
    function = scene.function(node)
    if function is None or name not in function.locals or f"{name}_next" in scene.file.names:
        return False
    if name in {p.arg for p in function.parameters}:
        return False
    uses = [n for n in ast.walk(function.node) if isinstance(n, ast.Name) and n.id == name]
    made = [_made(scene, function.node, n) for n in uses if isinstance(n.ctx, ast.Store)]
    lists = all(m is not None and values.is_sequence(scene, m) for m in made)
    asked = [_asked(scene, n, lists) for n in uses if not isinstance(n.ctx, ast.Store)]
    return None not in made and all(asked)


def _made(scene: Scene, function: ast.AST, use: ast.Name) -> ast.expr | None:
    """Return the items in ``it = iter(items)``, if nothing changes them meanwhile."""
    parent = scene.parent(use)
    value = parent.value if isinstance(parent, ast.Assign) and parent.targets == [use] else None
    if not isinstance(value, ast.Call) or not builtin(scene, value.func, "iter"):
        return None
    if len(value.args) != 1 or value.keywords or not _has_places(scene, value.args[0]):
        return None
    names = all_names(value.args[0])
    changed = any(
        isinstance(n, ast.Attribute) and n.attr in _CHANGES and getattr(n.value, "id", "") in names
        for n in ast.walk(function)
    )
    return None if changed else value.args[0]


def _has_places(scene: Scene, node: ast.expr) -> bool:
    """Return whether graph mode takes the first item and the others: of lists, tuples, Tensors."""
    other = any(a.kind in ("dict", "set", "Module", "str") for a in scene.kind(node))
    return not other and not isinstance(node, ast.GeneratorExp)


def _asked(scene: Scene, use: ast.Name, lists: bool) -> bool:
    """Return whether the item may be taken before its statement: from lists it may in any case."""
    call = scene.parent(use)
    if not isinstance(call, ast.Call) or not builtin(scene, call.func, "next"):
        return False
    alone = call.args[0] is use and values.first(scene, call, use.id, False)
    return alone and (lists or _nothing_runs_before(scene, call))


def _nothing_runs_before(scene: Scene, call: ast.Call) -> bool:
    """Return whether its statement calls nothing before the item is asked for, but ``next``."""
    child: ast.AST = call
    while not isinstance(child, ast.stmt):
        parent = scene.parent(child)
        assert parent is not None
        for other in values.before(parent, child):
            called = [n for n in ast.walk(other) if isinstance(n, ast.Call)]
            if not all(builtin(scene, n.func, "next") for n in called):
                return False
        child = parent
    return True


def _popped(scene: Scene, node: ast.Assign) -> Edit | None:
    """``x = l.pop(0) if l else None`` in four lines: ``if l:``, ``else:`` and what they do."""
    choice, target = node.value, node.targets[0]
    if not isinstance(choice, ast.IfExp) or len(node.targets) != 1:
        return None
    if not isinstance(target, ast.Name) or not begins_line(scene.source, node):
        return None
    if not any(_is_pop(scene, side) for side in (choice.body, choice.orelse)):
        return None
    test, one, other = (_inside(scene, part) for part in (choice.test, choice.body, choice.orelse))
    first, second = ((f"    {target.id} = ", part) for part in (one, other))
    return scope.instead(scene, node, ("if ", test, ":"), first, ("else:",), second)


def _is_pop(scene: Scene, node: ast.expr) -> bool:
    func = node.func if isinstance(node, ast.Call) else None
    if not isinstance(func, ast.Attribute) or func.attr != "pop":
        return False
    return isinstance(func.value, ast.Name) and not is_all(scene.kind(func.value), "dict")


CHECKS: Checks = {
    ast.ListComp: (_nested,),
    ast.GeneratorExp: (_nested,),
    ast.Assign: (_popped,),
    ast.Dict: scope.unless_told(_spread),
    ast.BinOp: scope.unless_told(_both),
    ast.Call: (
        _chosen,
        _taken,
        _listed,
        *scope.unless_told(_of_others, _of_pairs, _set_default),
        _updated,
        _taken_out,
        _named,
        _next_of_new,
        _library,
    ),
}


# -- map, reversed and copy: in every method of a Module ----------------------------------------


@rewrites()
def forms(scene: Scene) -> Iterator[Edit]:
    """Yield the comprehension for ``map``, ``[::-1]`` for ``reversed``, ``[:]`` for a copy."""
    for node in scene.file.of(ast.Call):
        if node.keywords:
            continue
        if isinstance(node.func, ast.Attribute):
            held = node.func.value
            if node.func.attr == "copy" and not node.args and is_all(scene.kind(held), "list"):
                yield scope.whole(scene, node, piece(scene.source, held), "[:]")
            continue
        owner = scene.owner(node) if isinstance(node.func, ast.Name) else None
        if owner is None or not scene.is_module_class(owner):
            continue
        if builtin(scene, node.func, "map") and len(node.args) == 2 and _goes(scene, node):
            yield from _map(scene, node)
        elif builtin(scene, node.func, "reversed") and len(node.args) == 1:
            yield from _reversed(scene, node)


def _map(scene: Scene, node: ast.Call) -> Iterator[Edit]:
    """``map(lambda t: f(t), items)`` is ``[f(t) for t in items]``, ``map(f, items)`` likewise.

    Graph mode's own map would take the pairs of ``((a, b), (c, d))`` apart.
    """
    function, items = node.args
    over = piece(scene.source, items)
    name = next(n for n in ("item", "each", "one_item") if n not in scene.file.names)
    made = partial(scope.whole, scene, node)
    if isinstance(function, ast.Name):
        called = piece(scene.source, function)
        yield made("[", called, f"({name}) for {name} in ", over, "]")
    elif isinstance(function, ast.Call):
        given = _given(scene, function, name)
        if given:
            yield made("[", *given, f" for {name} in ", over, "]")
    elif isinstance(function, ast.Lambda):
        a = function.args
        if len(a.args) == 1 and len(within(a)) == 2:  # one parameter, nothing else
            body = piece(scene.source, function.body)
            yield made("[", body, f" for {a.args[0].arg} in ", over, "]")


def _given(scene: Scene, function: ast.Call, name: str) -> Parts:
    """``partial(f, dim=1)`` of an item is ``f(item, dim=1)``."""
    if not foreign(scene, function.func, "functools.partial") or not function.args:
        return []
    called, *given = function.args
    fixed = [*given, *(k.value for k in function.keywords)]
    if not all(isinstance(n, _FIXED) for f in fixed for n in ast.walk(f)):
        return []  # it would be evaluated for every item
    parts: Parts = [piece(scene.source, called), "("]
    for argument in given:
        parts += [_inside(scene, argument), ", "]
    parts.append(name)
    for keyword in function.keywords:
        named = f", {keyword.arg}=" if keyword.arg else ", **"
        parts += [named, _inside(scene, keyword.value)]
    return [*parts, ")"]


def _goes(scene: Scene, node: ast.Call) -> bool:
    """Return whether a list does: it is unpacked, gone through or collected."""
    parent = scene.parent(node)
    if isinstance(parent, ast.Assign):
        return all(isinstance(t, (ast.Tuple, ast.List)) for t in parent.targets)
    if isinstance(parent, (ast.For, ast.comprehension)):
        return parent.iter is node
    if isinstance(parent, ast.Call) and isinstance(parent.func, ast.Name):
        return parent.func.id in _COLLECTED_MAP
    return isinstance(parent, ast.Starred)


def _reversed(scene: Scene, node: ast.Call) -> Iterator[Edit]:
    """``reversed(self.layers)`` is ``self.layers[::-1]``."""
    items = node.args[0]
    counted = isinstance(items, ast.Call) and getattr(items.func, "id", "") == "range"
    known = counted or is_all(scene.kind(items), "Module", "list", "tuple")
    if known and _goes(scene, node):
        yield scope.whole(scene, node, piece(scene.source, items), "[::-1]")
