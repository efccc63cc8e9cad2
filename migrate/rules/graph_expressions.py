"""In: compiled expressions that graph mode refuses or gets wrong. Out: the same value otherwise."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from migrate.outcomes import Edit, Outcome, Piece
from migrate.program import Class
from migrate.receivers.kinds import is_all
from migrate.rules import graph_scope
from migrate.rules.graph_scope import Rewriting, builtin, foreign
from migrate.scene import Scene
from migrate.templates import piece

_LOOPS = (ast.For, ast.While, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_UNIT = ("random.random", "numpy.random.rand", "numpy.random.random", "numpy.random.random_sample")
_BETWEEN = ("random.uniform", "numpy.random.uniform")
_INDEXED = ("torch.nn.ModuleList", "torch.nn.Sequential")


def rewrites(scene: Scene) -> Iterator[Rewriting]:
    """``dict(a=t)``, ``m in {1, 2}``, ``n ** -1``, ``f"{i:02d}"``, ``next(iter(layers))``..."""
    for node in graph_scope.nodes(scene, ast.Set, ast.JoinedStr, ast.BinOp, ast.Call):
        made: Edit | None = None
        if isinstance(node, ast.Set):
            made = _set(scene, node)
        elif isinstance(node, ast.JoinedStr):
            made = _format(scene, node)
        elif isinstance(node, ast.BinOp):
            made = _power(scene, node)
        elif isinstance(node, ast.Compare) and len(node.ops) == 1:
            made = _held(scene, node) or _same(scene, node)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            made = _method(scene, node, node.func) or _library(scene, node)
            made = made or random_drawn(scene, node)
        elif isinstance(node, ast.Call):
            made = _dict(scene, node) or _next(scene, node) or _library(scene, node)
            made = made or _rounded(scene, node) or random_drawn(scene, node)
        if made is not None:
            yield Rewriting(node, (made,))


def _power(scene: Scene, node: ast.BinOp) -> Edit | None:
    """``n ** -1`` is ``n ** -1.0``: of integers graph mode computes an integer, 0."""
    power = node.right.operand if isinstance(node.right, ast.UnaryOp) else None
    negative = isinstance(node.right, ast.UnaryOp) and isinstance(node.right.op, ast.USub)
    if not isinstance(node.op, ast.Pow) or not negative or not isinstance(power, ast.Constant):
        return None
    if type(power.value) is not int or is_all(scene.kind(node.left), "Tensor", "float"):
        return None
    return graph_scope.edit(scene, power, scene.source.span(power), f"{power.value}.0")


def _held(scene: Scene, node: ast.Compare) -> Edit | None:
    """``3 in ids`` is ``bool((ids == 3).any())``: graph mode looks into no Tensor."""
    inside = node.comparators[0]
    if not isinstance(node.ops[0], (ast.In, ast.NotIn)) or not is_all(scene.kind(inside), "Tensor"):
        return None
    absent = "not " if isinstance(node.ops[0], ast.NotIn) else ""
    opens, closes = ("(", ")") if absent and scene.is_tight(node) else ("", "")
    source = scene.source
    left, right = piece(source, inside, True), piece(source, node.left, True)
    return _whole(scene, node, f"{opens}{absent}bool((", left, " == ", right, f").any()){closes}")


def _same(scene: Scene, node: ast.Compare) -> Edit | None:
    """``mode is Mode.FAST`` is ``mode == Mode.FAST``: graph mode has ``is`` for None and bools."""
    other = node.comparators[0]
    owner = other.value if isinstance(other, ast.Attribute) else None
    keys = {a.name for a in scene.kind(owner)} if owner is not None else set()
    if not isinstance(node.ops[0], (ast.Is, ast.IsNot)) or not keys:
        return None
    classes = [scene.inference.program.classes.get(key) for key in keys]
    if not all(c is not None and "__eq__" not in c.methods and _is_enum(scene, c) for c in classes):
        return None
    sign = " == " if isinstance(node.ops[0], ast.Is) else " != "
    left, right = (piece(scene.source, n, True) for n in (node.left, other))
    return _whole(scene, node, left, sign, right)


def _is_enum(scene: Scene, owner: Class) -> bool:
    names = ("enum.Enum", "enum.IntEnum", "enum.StrEnum", "enum.Flag")
    return any(foreign(scene, base, *names) for base in owner.node.bases)


def random_drawn(scene: Scene, node: ast.Call) -> Edit | None:
    """``random.random() < p`` is ``random_number(random.random) < p``, a draw at each call."""
    unit = foreign(scene, node.func, *_UNIT) and not node.args
    bounds = foreign(scene, node.func, *_BETWEEN) and len(node.args) == 2
    if node.keywords or not (unit or bounds) or graph_scope.only_tells(scene, node):
        return None
    text, root = scene.spelling.local("helpers.random_number")
    parts: list[str | Piece] = [f"{text}(", _inside(scene, node.func)]
    for argument in node.args:
        parts += [", ", _inside(scene, argument)]
    made = _whole(scene, node, *parts, ")")
    return replace(made, outcome=Outcome.HELPER, needs=frozenset((root,)))


def _rounded(scene: Scene, node: ast.Call) -> Edit | None:
    """``round(n / 4)`` is ``int(round(n / 4))``: graph mode gives a float."""
    if not builtin(scene, node.func, "round") or len(node.args) != 1 or node.keywords:
        return None
    held = scene.parent(node)
    if isinstance(held, ast.Call) and builtin(scene, held.func, "int"):
        return None
    if not is_all(scene.kind(node.args[0]), "int", "float"):
        return None
    return _whole(scene, node, "int(round(", _inside(scene, node.args[0]), "))")


def _set(scene: Scene, node: ast.Set) -> Edit | None:
    """``mode in {"a", "b"}`` is ``mode in ("a", "b")``."""
    parent = scene.parent(node)
    looked = isinstance(parent, ast.Compare) and all(
        isinstance(o, (ast.In, ast.NotIn)) for o in parent.ops
    )
    looked = looked and node is not getattr(parent, "left", None)
    if not looked or not all(isinstance(e, ast.Constant) for e in node.elts):
        return None
    span = scene.source.span(node)
    text = scene.source.data[span.start + 1 : span.end - 1].decode()
    if len(node.elts) == 1 and "#" in text:
        return None  # a comma would be a part of the comment
    comma = "," if len(node.elts) == 1 and not text.rstrip().endswith(",") else ""
    return graph_scope.edit(scene, node, span, f"({text}{comma})")


def _format(scene: Scene, node: ast.JoinedStr) -> Edit | None:
    """``f"k{i:03d}"`` is ``"k{:03d}".format(i)``: graph mode ignores what follows the colon."""
    values = [v for v in node.values if isinstance(v, ast.FormattedValue)]
    if not any(v.format_spec for v in values) or graph_scope.only_tells(scene, node):
        return None
    parts: list[str] = []
    for value in node.values:
        if isinstance(value, ast.Constant):
            parts.append(str(value.value).replace("{", "{{").replace("}", "}}"))
            continue
        assert isinstance(value, ast.FormattedValue)
        spec = value.format_spec
        texts = spec.values if isinstance(spec, ast.JoinedStr) else []
        if value.conversion != -1 or not all(isinstance(t, ast.Constant) for t in texts):
            return None
        given = "".join(str(t.value) for t in texts if isinstance(t, ast.Constant))
        parts.append("{:" + given + "}" if given else "{}")
    if not all(_plain(scene, n) for v in values for n in ast.walk(v.value)):
        return None
    text = repr("".join(parts))
    quoted = text if '"' in text else f'"{text[1:-1]}"'
    # places inside an f-string are not to be trusted before Python 3.12, its tree is
    given = ", ".join(ast.unparse(v.value) for v in values)
    return graph_scope.edit(scene, node, scene.source.span(node), f"{quoted}.format({given})")


def _plain(scene: Scene, node: ast.AST) -> bool:
    """Variables, members, numbers and operators: nothing in them is going to change."""
    if isinstance(node, ast.Name):
        return not any(a.kind in ("ref", "foreign", "project") for a in scene.kind(node))
    if isinstance(node, ast.Attribute):
        owner, known = scene.owner(node), graph_scope.compiled(scene.inference)
        own = owner is not None and getattr(node.value, "id", "") == "self"
        stores = owner.stores.get(node.attr, ()) if owner is not None else ()
        return own and not any(f.key in known for f in stores)
    return isinstance(node, (ast.Constant, ast.BinOp, ast.operator, ast.expr_context))


def _method(scene: Scene, node: ast.Call, func: ast.Attribute) -> Edit | None:
    """``s.startswith("a")`` is ``s[:1] == "a"``; ``d.update(b=t)`` is ``d.update({"b": t})``."""
    if func.attr in ("startswith", "endswith"):
        return _edge(scene, node, func)
    named = node.keywords and not node.args and all(k.arg for k in node.keywords)
    if func.attr == "update" and named and is_all(scene.kind(func.value), "dict"):
        head = piece(scene.source, func.value, True)
        return _whole(scene, node, head, ".update(", *_pairs(scene, node), ")")
    if func.attr == "pop" and _popped_once(scene, node, func):
        head, key = piece(scene.source, func.value, True), _inside(scene, node.args[0])
        if len(node.args) == 2:
            return _whole(scene, node, head, ".get(", key, ", ", _inside(scene, node.args[1]), ")")
        return _whole(scene, node, head, "[", key, "]")
    return None


def _edge(scene: Scene, node: ast.Call, func: ast.Attribute) -> Edit | None:
    if len(node.args) != 1 or node.keywords or not is_all(scene.kind(func.value), "str"):
        return None
    given = node.args[0]
    if not isinstance(given, ast.Constant) or not isinstance(given.value, str) or not given.value:
        return None
    size = len(given.value)
    cut = f"[:{size}]" if func.attr == "startswith" else f"[-{size}:]"
    opens, closes = ("(", ")") if graph_scope.taken_hold(scene, node) else ("", "")
    head = piece(scene.source, func.value, True)
    return _whole(scene, node, opens, head, f"{cut} == ", _inside(scene, given), closes)


def _popped_once(scene: Scene, node: ast.Call, func: ast.Attribute) -> bool:
    """``**kwargs`` of which every key is asked for by name, and this one only here."""
    function, name = scene.function(node), func.value
    if function is None or not isinstance(name, ast.Name) or node.keywords or not node.args:
        return False
    if getattr(function.node.args.kwarg, "arg", "") != name.id or len(node.args) > 2:
        return False
    if _repeated(scene, node, function.node):
        return False
    keys = []
    for use in ast.walk(function.node):
        if isinstance(use, ast.Name) and use.id == name.id:
            keys.append(_key(scene, use))
    own = _key(scene, name)
    return bool(own) and all(keys) and keys.count(own) == 1


def _repeated(scene: Scene, node: ast.AST, function: ast.AST) -> bool:
    """Whether one call of the function may come by more than once."""
    around = scene.parent(node)
    while around is not None and around is not function:
        if isinstance(around, _LOOPS):
            return True
        around = scene.parent(around)
    return False


def _key(scene: Scene, use: ast.Name) -> str:
    """The constant key that a use of a dict asks for; "" for any other use."""
    parent = scene.parent(use)
    if isinstance(parent, ast.Subscript) and parent.value is use:
        asked: ast.expr | None = parent.slice if isinstance(parent.ctx, ast.Load) else None
    else:
        call = scene.parent(parent) if isinstance(parent, ast.Attribute) else None
        takes = isinstance(parent, ast.Attribute) and parent.attr in ("pop", "get")
        asked = call.args[0] if takes and isinstance(call, ast.Call) and call.args else None
    return asked.value if isinstance(asked, ast.Constant) and isinstance(asked.value, str) else ""


def _dict(scene: Scene, node: ast.Call) -> Edit | None:
    """``dict(a=t)`` is ``{"a": t}``, ``dict(zip(ks, ts))`` a comprehension."""
    if not builtin(scene, node.func, "dict"):
        return None
    if not node.args and all(k.arg for k in node.keywords):
        return _whole(scene, node, *_pairs(scene, node))
    only = node.args[0] if len(node.args) == 1 and not node.keywords else None
    if isinstance(only, ast.Call) and builtin(scene, only.func, "zip") and len(only.args) == 2:
        return _whole(scene, node, "{key: value for key, value in ", _inside(scene, only), "}")
    return None


def _pairs(scene: Scene, node: ast.Call) -> list[str | Piece]:
    parts: list[str | Piece] = ["{"]
    for number, keyword in enumerate(node.keywords):
        parts += [", " if number else "", f'"{keyword.arg}": ', _inside(scene, keyword.value)]
    return [*parts, "}"]


def _next(scene: Scene, node: ast.Call) -> Edit | None:
    """``next(iter(layers))`` is ``layers[0]``."""
    inner = node.args[0] if len(node.args) == 1 and not node.keywords else None
    if not builtin(scene, node.func, "next") or not isinstance(inner, ast.Call):
        return None
    if not builtin(scene, inner.func, "iter") or len(inner.args) != 1:
        return None
    if not _is_sequence(scene, inner.args[0]):
        return None
    return _whole(scene, node, piece(scene.source, inner.args[0], True), "[0]")


def _is_sequence(scene: Scene, node: ast.expr) -> bool:
    classes = scene.module_classes(node)
    return is_all(scene.kind(node), "list", "tuple") or (
        bool(classes) and all(c in _INDEXED for c in classes)
    )


def _library(scene: Scene, node: ast.Call) -> Edit | None:
    """``chain(a, b)`` in a loop is ``[*a, *b]``, ``islice(layers, n)`` is ``layers[:n]``."""
    parent = scene.parent(node)
    if not isinstance(parent, (ast.For, ast.comprehension)) or parent.iter is not node:
        return None
    if node.keywords or any(isinstance(a, ast.Starred) for a in node.args):
        return None
    if foreign(scene, node.func, "itertools.chain") and node.args:
        parts: list[str | Piece] = []
        for number, argument in enumerate(node.args):
            parts += [", *" if number else "[*", piece(scene.source, argument, True)]
        return _whole(scene, node, *parts, "]")
    cut = foreign(scene, node.func, "itertools.islice") and len(node.args) == 2
    if not cut or not _is_sequence(scene, node.args[0]):
        return None
    head = piece(scene.source, node.args[0], True)
    return _whole(scene, node, head, "[:", _inside(scene, node.args[1]), "]")


def _inside(scene: Scene, node: ast.expr) -> Piece:
    return piece(scene.source, node, False)


def _whole(scene: Scene, node: ast.AST, *parts: str | Piece) -> Edit:
    return graph_scope.edit(scene, node, scene.source.span(node), *parts)
