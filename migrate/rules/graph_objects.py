"""In: objects that compiled code makes of Tensors. Out: ``record(Output, logits=x)``, a dict there.

Graph mode makes no objects, but it has dicts and tuples. PyNative goes on making the object: its
class learns ``out["logits"]``. A NamedTuple is a tuple in graph mode: ``pair.left`` is ``pair[0]``.
Where code could tell the difference (``hasattr``, a method, a field that is written in a way that
graph mode does not have), the class stays as it is, and where it is made is flagged.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from migrate.outcomes import Edit, Outcome, Piece, Span
from migrate.program import Function
from migrate.receivers.inference import Inference
from migrate.receivers.kinds import is_all
from migrate.rules import graph_scope, record_writes
from migrate.rules.graph_scope import Rewriting
from migrate.rules.record_classes import asked_class, records
from migrate.rules.record_fields import Record, field_of, record_keys
from migrate.scene import Scene
from migrate.templates import piece

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
    for node in graph_scope.nodes(scene, ast.Call):
        if isinstance(node, ast.Call):
            made = _made(scene, node, known) or _named(scene, node) or _asked(scene, node, known)
            if made is not None:
                yield made
    for node, record, why in _fields_of(scene):
        if not why:
            yield _updated(scene, node) or Rewriting(node, (_read(scene, node, record),))


def _fields_of(scene: Scene) -> Iterator[tuple[ast.Attribute, Record, str]]:
    """The attributes of what may be a record in compiled code, and why one is not rewritten."""
    known = records(scene.inference)
    for node in graph_scope.nodes(scene, ast.Attribute) if known else ():
        if isinstance(node, ast.Attribute):
            function = scene.function(node)
            found = function and field_of(scene.inference, function, node, known)
            if found:
                yield node, *found


def left(scene: Scene) -> list[tuple[ast.Attribute, str]]:
    """The fields that stay attributes, which graph mode refuses, and why."""
    return [(node, why) for node, _, why in _fields_of(scene) if why]


def _subscripted(scene: Scene, node: ast.ClassDef) -> Edit:
    """``class Output:`` is ``class Output(Subscripted):``."""
    source = scene.source
    text, root = scene.spelling.local("helpers.Subscripted")
    start = source.span(node).start
    after = source.data.index(node.name.encode(), source.data.index(b"class", _header(scene, node)))
    end = after + len(node.name.encode())
    assert start <= end
    closes = source.data[end:].lstrip()[:1] == b"("  # ``class Output():``
    stop = source.data.index(b")", end) + 1 if closes else end
    edit = graph_scope.edit(scene, node, Span(end, stop), f"({text})")
    return replace(edit, outcome=Outcome.HELPER, needs=frozenset((root,)))


def _header(scene: Scene, node: ast.ClassDef) -> int:
    """Where the line with ``class`` begins, below the decorators."""
    return scene.source.line_start(node.lineno)


def _made(scene: Scene, node: ast.Call, known: dict[str, Record]) -> Rewriting | None:
    """``Output(x, h=y)`` is ``record(Output, logits=x, h=y)``."""
    atoms = [a for a in scene.kind(node.func) if a.kind == "class"]
    record = known.get(atoms[0].name) if atoms else None
    if record is None:
        return None
    name = "named_record" if record.named else "record"
    text, root = scene.spelling.local(f"helpers.{name}")
    parts: list[str | Piece] = [f"{text}(", Piece(scene.source.span(node.func))]
    given = dict(zip(record.fields, node.args, strict=False))
    given |= {k.arg: k.value for k in node.keywords if k.arg}
    for field in record.fields:
        value: str | Piece = record.defaults.get(field, "")
        if field in given:
            value = piece(scene.source, given[field], False)
        parts += [", " if record.named else f", {field}=", value]
    edit = graph_scope.edit(scene, node, scene.source.span(node), *parts, ")")
    edit = replace(edit, outcome=Outcome.HELPER, needs=frozenset((root,)))
    label = scene.inference.program.classes[record.key].name
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
    text, root = scene.spelling.local("helpers.named_record")
    parts: list[str | Piece] = [f"{text}(", Piece(scene.source.span(node.func))]
    for field in fields:
        parts += [", ", piece(scene.source, given[field], False)]
    edit = graph_scope.edit(scene, node, scene.source.span(node), *parts, ")")
    edit = replace(edit, outcome=Outcome.HELPER, needs=frozenset((root,)))
    return Rewriting(node, (edit,), NAMED, ast.unparse(node.func))


def _asked(scene: Scene, node: ast.Call, known: dict[str, Record]) -> Rewriting | None:
    """``isinstance(out, Output)`` is ``is_record(out, Output, "logits", "hidden")``."""
    record = known.get(asked_class(scene.inference, node, known))
    if record is None:
        return None
    text, root = scene.spelling.local("helpers.is_record")
    source = scene.source
    value, kind = (piece(source, a, False) for a in node.args)
    fields = "".join(f', "{name}"' for name in record.fields)
    made = graph_scope.edit(
        scene, node, source.span(node), f"{text}(", value, ", ", kind, fields, ")"
    )
    return Rewriting(node, (replace(made, outcome=Outcome.HELPER, needs=frozenset((root,))),))


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
    holder, value = piece(source, node.value, True), piece(source, statement.value, False)
    parts = (holder, f'.update({{"{node.attr}": ', value, "})")
    return Rewriting(node, (graph_scope.edit(scene, statement, source.span(statement), *parts),))


def handed_on(scene: Scene) -> list[ast.expr]:
    """Where a record goes before it is written: who has it then does not see that in graph mode."""
    inference, known = scene.inference, records(scene.inference)
    written = _written(inference)

    def is_record(function: Function, node: ast.AST) -> bool:
        return not written.isdisjoint(record_keys(inference, function, node, known))

    functions = graph_scope.compiled(inference).values() if written else ()
    here = [f for f in functions if f.path == scene.file.path]
    return [n for f in here for n in record_writes.handed_on(inference, f, partial(is_record, f))]


def flags(scene: Scene) -> Iterator[tuple[ast.AST, tuple[str, str, str, str]]]:
    """Records that graph mode gets wrong or refuses, with what is said of them."""
    for held in handed_on(scene):
        why = "it is written later on, and who holds it does not see that in graph mode"
        yield held, ("GRF609", ast.unparse(held), why, "write its fields before it is put anywhere")
    for field, why in left(scene):
        yield field, ("GRF603", ast.unparse(field), why, "write and read it where it is made")


def _written(inference: Inference) -> set[str]:
    """The classes of records of which compiled code writes a field; found once for a program."""
    notes = inference.program.notes
    if "written records" not in notes:
        known = records(inference)
        notes["written records"] = {
            field[0].key
            for function in (graph_scope.compiled(inference).values() if known else ())
            for node in function.nodes
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
            for field in [field_of(inference, function, node, known)]
            if field is not None
        }
    found: set[str] = notes["written records"]
    return found


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
    if not graph_scope.foreign(scene, call.func, "collections.namedtuple"):
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
    value = piece(scene.source, node.value, True)
    return graph_scope.edit(scene, node, scene.source.span(node), value, f"[{place}]")
