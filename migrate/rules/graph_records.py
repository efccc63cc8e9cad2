"""In: classes of tuples and texts that compiled code asks for. Out: such as it tells apart.

Graph mode takes an object of a class that derives from tuple, int, str, list or dict for a plain
one: ``isinstance(feature, Feature)`` is False there, without a word. Objects of other classes keep
theirs, so a namedtuple becomes a class with the same fields that is no tuple.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from migrate.outcomes import Edit, Outcome, Piece
from migrate.receivers.inference import Inference
from migrate.receivers.kinds import Atom
from migrate.rules.graph_scope import Rewriting, builtin, compiled
from migrate.scene import Scene

NOTE = "no tuple any more: graph mode would take it for a plain one, and isinstance for False"
_PLAIN = ("tuple", "int", "float", "str", "bytes", "list", "dict")
_LIBRARY = ("collections.OrderedDict", "collections.UserDict", "enum.IntEnum", "enum.StrEnum",
            "enum.IntFlag", "typing.NamedTuple")  # fmt: skip
_NAMED = "collections.namedtuple"


def rewrites(scene: Scene) -> Iterator[Rewriting]:
    """``class Feature(namedtuple(...))`` is ``class Feature(named_fields(...))``."""
    changed = _changed(scene.inference)
    if not changed:
        return
    for key in sorted(changed):
        owner = scene.inference.program.classes[key]
        call = owner.node.bases[0]
        if owner.path == scene.file.path and isinstance(call, ast.Call):
            yield Rewriting(call.func, (_edit(scene, call.func, "named_fields"),), NOTE, _NAMED)
    for node in scene.file.of(ast.Call):
        if builtin(scene, node.func, "isinstance"):
            named = _tuple_asked(scene, node, changed)
            if named is not None:
                yield Rewriting(named, (_wider(scene, node, named),))


def asks(scene: Scene, node: ast.AST) -> str:
    """The class that compiled code asks for, and never finds in graph mode; "" for none."""
    if not isinstance(node, (ast.Call, ast.Compare)):
        return ""
    changed = _changed(scene.inference)
    for atom in _classes_asked(scene.inference, node):
        if atom.name not in changed and is_plain(scene.inference, atom.name):
            return scene.inference.program.classes[atom.name].name
    return ""


def is_plain(inference: Inference, key: str) -> bool:
    """Whether the objects of a class of the project are tuples, numbers, texts, lists or dicts."""
    owner = inference.program.classes.get(key)
    if owner is None:
        return False
    for node, kind in zip(owner.node.bases, inference.bases(key), strict=True):
        if isinstance(node, ast.Name) and node.id in _PLAIN and _is(kind, "builtin"):
            return True
        if _named_tuple(inference, node) or any(_is(kind, "foreign", n) for n in _LIBRARY):
            return True
        if any(a.kind == "class" and a.name != key and is_plain(inference, a.name) for a in kind):
            return True
    return False


def _is(kind: frozenset[Atom], what: str, name: str = "") -> bool:
    return any(a.kind == what and name in ("", a.name) for a in kind)


def _named_tuple(inference: Inference, node: ast.expr) -> bool:
    if not isinstance(node, ast.Call):
        return False
    return _is(inference.kinds.get(id(node.func), frozenset()), "foreign", _NAMED)


def _changed(inference: Inference) -> frozenset[str]:
    """The namedtuples that compiled code asks for and makes none of."""
    notes = inference.program.notes
    if "changed records" not in notes:
        asked: set[str] = set()
        made: set[str] = set()
        for function in compiled(inference).values():
            for node in function.nodes:
                if isinstance(node, (ast.Call, ast.Compare)):
                    asked |= {a.name for a in _classes_asked(inference, node)}
                if isinstance(node, ast.Call):
                    made |= {a.name for a in inference.kinds.get(id(node.func), frozenset())}
        notes["changed records"] = frozenset(
            key for key in asked - made if _derives_directly(inference, key)
        )
    changed: frozenset[str] = notes["changed records"]
    return changed


def _derives_directly(inference: Inference, key: str) -> bool:
    owner = inference.program.classes.get(key)
    bases = owner.node.bases if owner is not None else []
    return len(bases) == 1 and _named_tuple(inference, bases[0])


def _classes_asked(inference: Inference, node: ast.Call | ast.Compare) -> list[Atom]:
    """The classes in ``isinstance(x, (A, B))`` and ``type(x) is A``."""
    if isinstance(node, ast.Compare):
        left = node.left
        typed = isinstance(left, ast.Call) and getattr(left.func, "id", "") == "type"
        found = list(node.comparators) if typed else []
    elif getattr(node.func, "id", "") in ("isinstance", "issubclass") and len(node.args) == 2:
        found = [node.args[1]]
    else:
        return []
    atoms: list[Atom] = []
    while found:
        asked = found.pop()
        found += asked.elts if isinstance(asked, ast.Tuple) else []
        kind = inference.kinds.get(id(asked), frozenset())
        atoms += [*kind, *(a for k in kind for item in k.items for a in item)]
    return [a for a in atoms if a.kind == "class"]


def _tuple_asked(scene: Scene, node: ast.Call, changed: frozenset[str]) -> ast.expr | None:
    """The ``tuple`` in ``isinstance(x, (list, tuple))``, where x may be one of the records."""
    if len(node.args) != 2:
        return None
    value, asked = node.args
    if not any(a.kind == "unknown" or a.name in changed for a in scene.kind(value)):
        return None
    names = asked.elts if isinstance(asked, ast.Tuple) else [asked]
    return next((n for n in names if builtin(scene, n, "tuple")), None)


def _wider(scene: Scene, node: ast.Call, named: ast.expr) -> Edit:
    """``isinstance(x, tuple)`` is ``isinstance(x, (tuple, NamedFields))``."""
    alone = named is node.args[1]
    text, root = scene.spelling.local("helpers.NamedFields")
    own = Piece(scene.source.span(named))
    parts = ("(" if alone else "", own, f", {text}", ")" if alone else "")
    needs = frozenset((root,))
    return Edit(scene.site("graph form", named), Outcome.HELPER, parts, needs=needs)


def _edit(scene: Scene, node: ast.expr, helper: str) -> Edit:
    text, root = scene.spelling.local(f"helpers.{helper}")
    needs = frozenset((root,))
    return Edit(scene.site(_NAMED, node), Outcome.HELPER, (text,), needs=needs)
