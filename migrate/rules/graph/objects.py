"""Make of objects that compiled code makes, asks for or returns what graph mode has: dicts, tuples.

PyNative keeps the object, graph mode has the dict of its fields: ``record(Output, logits=x)``. An
object of a class that derives from tuple, int, str, list or dict is a plain one there, so
``isinstance(feature, Feature)`` is False. A dict leaves a graph as the tuple of its values, None at
the end is left out. Where code could tell the difference, what makes the object is flagged.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from migrate.analysis.facts import Facts
from migrate.analysis.program import Function
from migrate.analysis.types.inference import Inference
from migrate.analysis.types.kinds import Atom, Kind, is_all
from migrate.codegen.substitution import piece
from migrate.records.outcomes import Edit, Outcome, Part, Wrap
from migrate.rules import record_classes
from migrate.rules.graph import scope
from migrate.rules.graph.scope import Rewriting, Silent, Text, builtin, compiled
from migrate.rules.record_classes import Record, asked_class, field_of, record_keys, records
from migrate.sites.scene import Scene, once

NOTE = "graph mode makes no objects: there it is the dict of its fields, PyNative makes the object"
_STORED = ("Tensor", "list", "tuple", "dict", "int", "float", "bool", "Size")
NAMED = "graph mode makes no objects: there it is a plain tuple, PyNative makes the NamedTuple"


def rewrites(scene: Scene) -> Iterator[Rewriting]:
    """The classes, the calls that make their objects, and the fields that are read."""
    known = records(scene.inference)
    for record in known.values():
        owner = scene.inference.program.classes[record.key]
        if owner.path == scene.file.path and not record.named:
            yield Rewriting(owner.node, (_subscripted(scene, owner.node),))
    yield from scope.checked(scene, {ast.Call: (_made, _named, _asked)})
    for node, record, why in _fields_of(scene):
        if not why:
            yield _updated(scene, node) or Rewriting(node, (_read(scene, node, record),))


def _fields_of(scene: Scene) -> Iterator[tuple[ast.Attribute, Record, str]]:
    """The attributes of what may be a record in compiled code, and why one is not rewritten."""
    known = records(scene.inference)
    for node in scope.nodes(scene, ast.Attribute) if known else ():
        if isinstance(node, ast.Attribute):
            function = scene.function(node)
            found = function and field_of(scene.inference, function, node, known)
            if found:
                yield node, *found


def _subscripted(scene: Scene, node: ast.ClassDef) -> Edit:
    """``class Output:`` is ``class Output(Subscripted):``."""
    made = partial(scope.part, scene, node, Part.BASE)
    return scope.helping(scene, "Subscripted", made)


def _made(scene: Scene, node: ast.Call) -> Rewriting | None:
    """``Output(x, h=y)`` is ``record(Output, logits=x, h=y)``."""
    atoms = [a for a in scene.kind(node.func) if a.kind == "class"]
    record = records(scene.inference).get(atoms[0].name) if atoms else None
    if record is None:
        return None
    given = dict(zip(record.fields, node.args, strict=False))
    given |= {k.arg: k.value for k in node.keywords if k.arg}
    parts: list[Text | ast.expr] = [node.func]
    for field in record.fields:
        value = given.get(field, record.defaults.get(field, ""))
        parts += [", " if record.named else f", {field}=", value]
    helper = "named_record" if record.named else "record"
    label = scene.inference.program.classes[record.key].name
    edit = scope.called(scene, node, helper, *parts)
    return Rewriting(node, (edit,), NAMED if record.named else NOTE, label)


def _named(scene: Scene, node: ast.Call) -> Rewriting | None:
    """``Outputs(x, y)`` of ``Outputs = namedtuple("Outputs", "x y")`` is a tuple in graph mode."""
    fields = _fields(scene, node, node.func.id) if isinstance(node.func, ast.Name) else ()
    given = dict(zip(fields, node.args, strict=False))
    given |= {k.arg: k.value for k in node.keywords if k.arg}
    spread = any(isinstance(a, ast.Starred) for a in node.args)
    if not fields or spread or set(given) != set(fields):
        return None
    if len(node.args) + len(node.keywords) != len(fields):
        return None
    values = scope.listed(given[field] for field in fields)
    edit = scope.called(scene, node, "named_record", node.func, *values)
    return Rewriting(node, (edit,), NAMED, ast.unparse(node.func))


def _asked(scene: Scene, node: ast.Call) -> Edit | None:
    """``isinstance(out, Output)`` is ``is_record(out, Output, "logits", "hidden")``."""
    known = records(scene.inference)
    record = known.get(asked_class(scene.inference, node, known))
    if record is None:
        return None
    fields = scope.listed(f'"{name}"' for name in record.fields)
    return scope.called(scene, node, "is_record", node.args[0], ", ", node.args[1], *fields)


def _updated(scene: Scene, node: ast.Attribute) -> Rewriting | None:
    """``out.name = None`` is ``out.update({"name": None})``: graph mode stores no texts and no None
    by an index."""
    statement = scene.parent(node)
    if not isinstance(statement, ast.Assign) or statement.targets != [node]:
        return None
    handed = isinstance(statement.value, (ast.Name, ast.Constant, ast.Attribute, ast.Subscript))
    if not handed and is_all(scene.kind(statement.value), *_STORED):
        return None
    source = scene.source
    holder, value = piece(source, node.value), piece(source, statement.value)
    parts = (holder, f'.update({{"{node.attr}": ', value, "})")
    return Rewriting(node, (scope.edit(scene, statement, source.span(statement), *parts),))


def handed_on(scene: Scene) -> list[ast.expr]:
    """Where a record goes before it is written: who has it then does not see that in graph mode."""
    inference, known = scene.inference, records(scene.inference)
    written = _written(inference)

    def is_record(function: Function, node: ast.AST) -> bool:
        return not written.isdisjoint(record_keys(inference, function, node, known))

    functions = scope.compiled(inference).values() if written else ()
    here = [f for f in functions if f.path == scene.file.path]
    return [n for f in here for n in record_classes.handed_on(inference, f, partial(is_record, f))]


def flags(scene: Scene) -> Iterator[Silent]:
    """Records that graph mode gets wrong or refuses, with what is said of them."""
    for held in handed_on(scene):
        why = "it is written later on, and who holds it does not see that in graph mode"
        found = ("GRF609", ast.unparse(held), why, "write its fields before it is put anywhere")
        yield Silent(held, found)
    for field, _, why in _fields_of(scene):
        if why:
            found = ("GRF603", ast.unparse(field), why, "write and read it where it is made")
            yield Silent(field, found)


@once
def _written(inference: Inference) -> set[str]:
    """Return the classes of records of which compiled code writes a field."""
    known = records(inference)
    return {
        field[0].key
        for function in (scope.compiled(inference).values() if known else ())
        for node in function.nodes
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
        for field in [field_of(inference, function, node, known)]
        if field is not None
    }


def _fields(scene: Scene, node: ast.Call, name: str) -> tuple[str, ...]:
    """The fields of the namedtuple that is all that a function, or the file, binds to a name."""
    function = scene.function(node)
    own = function if function is not None and name in function.locals else None
    # another function may have one as well
    bound = (own or scene.file).stores.get(name, [])
    if len(bound) != 1:
        return ()
    statement = scene.parent(bound[0])
    call = statement.value if isinstance(statement, ast.Assign) else None
    if not isinstance(call, ast.Call) or len(call.args) != 2 or call.keywords:
        return ()
    if not scope.foreign(scene, call.func, "collections.namedtuple"):
        return ()
    if any(isinstance(n, ast.arg) and n.arg == name for n in (own or scene.file).nodes):
        return ()
    try:
        fields = ast.literal_eval(call.args[1])
    except ValueError:
        return ()
    return tuple(fields.replace(",", " ").split()) if isinstance(fields, str) else tuple(fields)


def _read(scene: Scene, node: ast.Attribute, record: Record) -> Edit:
    """``out.logits`` is ``out["logits"]``, ``pair.left`` is ``pair[0]``."""
    place = str(record.fields.index(node.attr)) if record.named else f'"{node.attr}"'
    value = piece(scene.source, node.value)
    return scope.edit(scene, node, scene.source.span(node), value, f"[{place}]")


# -- classes of tuples and texts ------------------------------------------------------------


APART = "no tuple any more: graph mode would take it for a plain one, and isinstance for False"
_PLAIN = ("tuple", "int", "float", "str", "bytes", "list", "dict")
_LIBRARY = ("collections.OrderedDict", "collections.UserDict", "enum.IntEnum", "enum.StrEnum",
            "enum.IntFlag", "typing.NamedTuple")  # fmt: skip
_NAMED = "collections.namedtuple"


def renamed(scene: Scene) -> Iterator[Rewriting]:
    """``class Feature(namedtuple(...))`` is ``class Feature(named_fields(...))``."""
    changed = _changed(scene.inference)
    if not changed:
        return
    for key in sorted(changed):
        owner = scene.inference.program.classes[key]
        call = owner.node.bases[0]
        if owner.path == scene.file.path and isinstance(call, ast.Call):
            yield Rewriting(call.func, (_renamed(scene, call.func),), APART, _NAMED)
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
    return _is(inference.kind(node.func), "foreign", _NAMED)


@once
def _changed(inference: Inference) -> frozenset[str]:
    """Return the namedtuples that compiled code asks for and makes none of."""
    asked: set[str] = set()
    made: set[str] = set()
    for function in compiled(inference).values():
        for node in function.of(ast.Call, ast.Compare):
            asked |= {a.name for a in _classes_asked(inference, node)}
            if isinstance(node, ast.Call):
                made |= {a.name for a in inference.kind(node.func)}
    return frozenset(key for key in asked - made if _derives_directly(inference, key))


def _derives_directly(inference: Inference, key: str) -> bool:
    owner = inference.program.classes.get(key)
    bases = owner.node.bases if owner is not None else []
    return len(bases) == 1 and _named_tuple(inference, bases[0])


def _classes_asked(inference: Inference, node: ast.AST) -> list[Atom]:
    """The classes in ``isinstance(x, (A, B))`` and ``type(x) is A``."""
    if isinstance(node, ast.Compare):
        left = node.left
        typed = isinstance(left, ast.Call) and getattr(left.func, "id", "") == "type"
        found = list(node.comparators) if typed else []
    elif (
        isinstance(node, ast.Call)
        and getattr(node.func, "id", "") in ("isinstance", "issubclass")
        and len(node.args) == 2
    ):
        found = [node.args[1]]
    else:
        return []
    atoms: list[Atom] = []
    while found:
        asked = found.pop()
        found += asked.elts if isinstance(asked, ast.Tuple) else []
        kind = inference.kind(asked)
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
    own = piece(scene.source, named)

    def made(text: str) -> Edit:
        return scope.whole(scene, named, "(" if alone else "", own, f", {text}", ")" * alone)

    return scope.helping(scene, "NamedFields", made)


def _renamed(scene: Scene, node: ast.expr) -> Edit:
    made = scope.helped(scene, node, "named_fields")
    return replace(made, site=scene.site(_NAMED, node))


def results(scene: Scene) -> Iterator[Rewriting]:
    """Yield the calls of Modules whose result is another one when it leaves a graph."""
    inside = {id(n) for f in scope.compiled_here(scene) for n in f.nodes}
    for node in scene.file.of(ast.Call):
        used = not isinstance(scene.parent(node), (ast.Expr, ast.Await))
        if id(node) in inside or not used or not _is_module(scene, node):
            continue
        kind = scene.kind(node)
        items = _items(kind)
        if kind and all(atom.kind == "dict" for atom in kind):
            yield _wrapped(scene, node, "with_keys", _keys(scene, node))
        elif any(a.kind == "dict" for item in items for a in item):
            yield _wrapped(scene, node, "with_form", _written_form(scene, node))
        elif any(a.kind == "None" for item in items for a in item):
            inner = any(a.kind == "None" for item in items[:-1] for a in item)
            yield _wrapped(scene, node, "with_none", f"{len(items)}{', False' if inner else ''}")


def _is_module(scene: Scene, node: ast.Call) -> bool:
    kind = scene.kind(node.func)
    return bool(kind) and all(a.kind == "Module" and "::" in a.name for a in kind)


def _items(kind: Kind) -> list[Kind]:
    """Return the kinds of the items of a tuple or list of one length."""
    lengths = {len(a.items) if a.kind in ("tuple", "list") and a.fixed else 0 for a in kind}
    if len(lengths) != 1:
        return []
    return [frozenset(k for a in kind for k in a.items[i]) for i in range(lengths.pop())]


def _written_form(scene: Scene, node: ast.Call) -> str:
    """Return the form of what a Module returns: ``(..., {"aux": ...})``; None: not written."""
    found = set()
    for function in _forwards(scene, node):
        facts = scene.inference.facts(function.path) if function is not None else None
        for place in function.of(ast.Return) if function is not None and facts else (node,):
            value = getattr(place, "value", None)
            found.add(_form(scene.inference, facts, value) if value is not None and facts else "")
    return found.pop() if len(found) == 1 and "" not in found else "None"


def _form(inference: Inference, facts: Facts, value: ast.expr) -> str:
    """Return the form of an expression; "" where a dict or None in it is not written out."""
    if isinstance(value, ast.Name):
        values = facts.values(value)
        if len(values) == 1 and isinstance(values[0], ast.Dict):
            value = values[0]
    if isinstance(value, ast.Dict):
        texts = [isinstance(k, ast.Constant) and isinstance(k.value, str) for k in value.keys]
        inner = [_form(inference, facts, v) for v in value.values]
        pairs = zip(value.keys, inner, strict=True)
        plain = all(texts) and all(inner)
        return f"{{{', '.join(f'{k.value!r}: {f}' for k, f in pairs)}}}" if plain else ""  # type: ignore[union-attr]
    if isinstance(value, (ast.Tuple, ast.List)):
        inner = [_form(inference, facts, v) for v in value.elts]
        opens, closes = "()" if isinstance(value, ast.Tuple) else "[]"
        comma = "," if len(inner) == 1 and opens == "(" else ""
        return f"{opens}{', '.join(inner)}{comma}{closes}" if all(inner) else ""
    kind = inference.kind(value)
    items = [a for k in kind for item in k.items for a in item]
    return "" if any(a.kind in ("None", "dict") for a in (*kind, *items)) else "..."


def _forwards(scene: Scene, node: ast.Call) -> list[Function | None]:
    return [
        scene.inference.program.functions.get(member.name)
        for atom in scene.kind(node.func)
        for member in scene.inference.member(atom.name, "forward")
    ]


def _keys(scene: Scene, node: ast.Call) -> str:
    """Return the keys of the dict that a Module returns, or None where they are not written."""
    found = set()
    for function in _forwards(scene, node):
        found |= _returned(scene, function) if function is not None else {""}
    return found.pop() if len(found) == 1 and "" not in found else "None"


def _returned(scene: Scene, function: Function) -> set[str]:
    """Return the keys of each dict that a function returns; "" for one that is no plain display."""
    found = set()
    for node in function.nodes:
        if not isinstance(node, ast.Return):
            continue
        value = node.value
        if not isinstance(value, ast.Dict) or not value.keys:
            return {""}
        if not all(isinstance(k, ast.Constant) for k in value.keys):
            return {""}
        kinds = (scene.inference.kind(v) for v in value.values)
        if any(a.kind in ("None", "dict") for kind in kinds for a in kind):
            return {""}
        found.add(f"[{', '.join(repr(k.value) for k in value.keys)}]")  # type: ignore[union-attr]
    return found


def _wrapped(scene: Scene, node: ast.Call, helper: str, given: str) -> Rewriting:
    def around(text: str) -> Edit:
        parts = (f"{text}(", piece(scene.source, node), f", {given})")
        return Wrap(scene.site("graph form", node), Outcome.CONVERTED, parts)

    return Rewriting(node, (scope.helping(scene, helper, around),))
