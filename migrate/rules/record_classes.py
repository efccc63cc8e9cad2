"""In: a program. Out: the classes whose objects compiled code makes, and could be dicts as well."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from migrate.analysis.program import Class, Function
from migrate.analysis.types.inference import Inference
from migrate.analysis.types.kinds import Kind
from migrate.rules.graph.scope import compiled
from migrate.rules.record_fields import Record, field_of, record_keys
from migrate.syntax.trees import all_parameters, within

# len, iter, list and so on are no questions: torch's code would fail with an object
_ASKS = ("isinstance", "issubclass", "hasattr", "getattr", "setattr", "delattr", "vars", "type",
         "dir", "id")  # fmt: skip
_COPIES = ("copy.copy", "copy.deepcopy")  # graph mode refuses these
_OUTSIDE = ("__init__", "__copy__", "__deepcopy__", "__repr__", "__str__")
_TAKEN = ("kind", "update")  # a parameter of the helper, and a method that its objects get
_MAPPINGS = ("dict", "Mapping", "MutableMapping", "OrderedDict")


def records(inference: Inference) -> dict[str, Record]:
    """Those that no compiled code tells from a dict (or tuple) of their fields."""
    notes = inference.program.notes
    if "records" not in notes:
        functions = list(compiled(inference).values())
        found = dict(_made(inference, functions))
        while True:
            told = _told(inference, functions, found)
            if not told & found.keys():
                break
            found = {k: r for k, r in found.items() if k not in told}
        notes["records"] = found
    known: dict[str, Record] = notes["records"]
    return known


def _made(inference: Inference, functions: list[Function]) -> Iterator[tuple[str, Record]]:
    """The classes of which compiled code makes objects, where their fields are plain to see."""
    for function in functions:
        for node in function.nodes:
            if isinstance(node, ast.Call):
                for atom in inference.kinds.get(id(node.func), ()):
                    owner = inference.program.classes.get(atom.name)
                    if atom.kind == "class" and owner is not None:
                        record = _described(inference, owner, _gets_tensors(inference, node))
                        if record is not None:
                            yield owner.key, record


def _gets_tensors(inference: Inference, node: ast.Call) -> bool:
    """Whether an object is made of Tensors, or of lists of them: of others graph mode makes it."""
    given = [_kind(inference, g) for g in (*node.args, *(k.value for k in node.keywords))]
    inner = [i for kind in given for atom in kind for i in atom.items]
    return any(a.kind == "Tensor" for kind in (*given, *inner) for a in kind)


def _described(inference: Inference, owner: Class, of_tensors: bool) -> Record | None:
    if inference.is_module(owner.key):
        return None
    body = [s for s in owner.node.body if not _is_text(s)]
    names = [getattr(b, "attr", getattr(b, "id", "")) for b in owner.node.bases]
    if owner.node.keywords or any(m.startswith("__") and m not in _OUTSIDE for m in owner.methods):
        return None
    marks = [_mark(d) for d in owner.node.decorator_list]
    declared = [s for s in body if isinstance(s, ast.AnnAssign) and isinstance(s.target, ast.Name)]
    if names == ["NamedTuple"] or (marks == ["dataclass"] and not names):
        if not declared or "__init__" in owner.methods or any(map(_is_no_field, declared)):
            return None
        pairs = [(s.target.id, s.value) for s in declared if isinstance(s.target, ast.Name)]
        return _record(owner, pairs, bool(names))
    init = owner.methods.get("__init__")
    if names or marks or init is None or not of_tensors:
        return None
    return _holder(owner, init)


def _mark(decorator: ast.expr) -> str:
    """``dataclass`` of ``@dataclass`` and ``@dataclass(frozen=True)``."""
    if isinstance(decorator, ast.Call):
        if decorator.args or any(k.arg in (None, "init") for k in decorator.keywords):
            return ""
        decorator = decorator.func
    return getattr(decorator, "attr", getattr(decorator, "id", ""))


def _is_no_field(statement: ast.AnnAssign) -> bool:
    """``count: ClassVar[int] = 0`` and the like, which no call gives."""
    text = ast.unparse(statement.annotation)
    return any(word in text for word in ("ClassVar", "InitVar", "KW_ONLY"))


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _holder(owner: Class, init: Function) -> Record | None:
    """A class whose ``__init__`` keeps each argument under its own name, and does no more."""
    arguments, body = init.node.args, init.node.body
    if arguments.vararg or arguments.kwarg or arguments.kwonlyargs or arguments.posonlyargs:
        return None
    names = [a.arg for a in arguments.args]
    own, given = names[0], names[1:]
    texts = [f"{own}.{name} = {name}" for name in given]
    statements = [s for s in body if not _is_text(s)] if isinstance(body, list) else []
    plain = [
        ast.unparse(ast.Assign([s.target], s.value, lineno=0))
        if isinstance(s, ast.AnnAssign) and s.value is not None
        else ast.unparse(s)
        for s in statements
    ]
    if sorted(plain) != sorted(texts) or not given:
        return None
    values: list[ast.expr | None] = [None] * (len(given) - len(arguments.defaults))
    return _record(owner, list(zip(given, [*values, *arguments.defaults], strict=True)), False)


def _record(owner: Class, pairs: list[tuple[str, ast.expr | None]], named: bool) -> Record | None:
    constant = {n: ast.unparse(v) for n, v in pairs if isinstance(v, ast.Constant)}
    if len({n for n, _ in pairs}) < len(pairs) or not {n for n, _ in pairs}.isdisjoint(_TAKEN):
        return None
    return Record(owner.key, tuple(n for n, _ in pairs), constant, named)


def _told(inference: Inference, functions: list[Function], found: dict[str, Record]) -> set[str]:
    """Those that some code tells apart, or uses in a way that a dict does not have."""
    told: set[str] = set()
    kept = {f.key for f in functions}
    for function in functions:
        for node in function.nodes:
            if isinstance(node, ast.Call):
                told |= _asked(inference, function, node, found)
                told |= _called(inference, node, found)
        told |= _read_of_dict(inference, function, found)
    for function in inference.program.functions.values():
        if function.owner is not None and function.key in kept:
            told |= {function.owner.key} & found.keys()  # a method of an object
        if function.name == "__init__":
            told |= _built(inference, function.nodes)
    for file in inference.program.files.values():
        for statement in file.source.tree.body:
            if not isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
                told |= _built(inference, within(statement))
    return told


def _built(inference: Inference, where: Iterable[ast.AST]) -> set[str]:
    """The classes of objects that are there before the graph: it would take them for objects."""
    calls = [n for n in where if isinstance(n, ast.Call)]
    return {a.name for c in calls for a in _kind(inference, c.func) if a.kind == "class"}


def _read_of_dict(inference: Inference, function: Function, found: dict[str, Record]) -> set[str]:
    """``out.values`` where it is not rewritten: a dict has that as well, and it is never None."""
    told: set[str] = set()
    methods = {id(n.func) for n in function.nodes if isinstance(n, ast.Call)}
    for node in function.nodes:
        if not isinstance(node, ast.Attribute) or not (
            hasattr(dict, node.attr) or hasattr(tuple, node.attr)
        ):
            continue
        kind = _kind(inference, node.value)
        field = field_of(inference, function, node, found)
        if field is None and _may_be_any(kind) and id(node) not in methods:
            told |= {k for k, r in found.items() if node.attr in r.fields}
        elif field is not None and field[1] and isinstance(node.ctx, ast.Load):
            told |= set(record_keys(inference, function, node.value, found))
    return told


def _asked(
    inference: Inference, function: Function, node: ast.Call, found: dict[str, Record]
) -> set[str]:
    """``isinstance(out, Output)``, ``hasattr(out, "logits")``, also of what is not known."""
    name = getattr(node.func, "id", "")
    library = [a for a in _kind(inference, node.func) if a.kind == "foreign"]
    library = [a for a in library if a.name not in _COPIES]
    if asked_class(inference, node, found) or (name not in _ASKS and not library):
        return set()
    told: set[str] = set()
    for part in _handed([*node.args, *(k.value for k in node.keywords)]):
        kind = _kind(inference, part)
        inner = [a for atom in kind for items in atom.items for a in items] if library else []
        told |= {a.name for a in (*kind, *inner) if a.kind in ("Object", "class")} & found.keys()
    if not node.args or not _may_be_any(_kind(inference, node.args[0])):
        return told
    if name in ("hasattr", "getattr") and len(node.args) > (name == "getattr") + 1:
        text = getattr(node.args[1], "value", None)  # getattr of two fails, as it should
        told |= {k for k, r in found.items() if text is None or text in r.fields}
    if name == "isinstance" and len(node.args) > 1:
        asked = {getattr(n, "attr", getattr(n, "id", "")) for n in ast.walk(node.args[1])}
        if not asked.isdisjoint(_MAPPINGS):
            declared = _declared(function, node.args[0])
            told |= {k for k, r in found.items() if not r.named and _admits(declared, k)}
    return told


def _handed(values: list[ast.expr]) -> Iterator[ast.expr]:
    """The values that a call gets, and what stands in displays and comprehensions among them."""
    for value in values:
        yield value
        if isinstance(value, (ast.Tuple, ast.List, ast.Set)):
            yield from _handed(value.elts)
        elif isinstance(value, ast.Dict):
            yield from _handed(value.values)
        elif isinstance(value, (ast.ListComp, ast.SetComp, ast.GeneratorExp)):
            yield from _handed([value.elt])
        elif isinstance(value, (ast.Starred, ast.DictComp)):
            yield from _handed([value.value])


def _may_be_any(kind: Kind) -> bool:
    return not kind or any(a.kind == "unknown" for a in kind)


def _declared(function: Function, node: ast.expr) -> str:
    """What the annotation of a parameter says that it is; "" where there is none."""
    own = [a for a in all_parameters(function.node.args) if a.arg == getattr(node, "id", "")]
    note = own[0].annotation if own and own[0].arg not in function.stores else None
    return ast.unparse(note) if note is not None else ""


def _admits(declared: str, key: str) -> bool:
    """Whether an annotation leaves room for an object of the class."""
    words = set("".join(c if c.isalnum() or c == "_" else " " for c in declared).split())
    name = key.rpartition("::")[2].rpartition(".")[2]
    return not words or bool(words & {name, "Any", "object"})


def asked_class(inference: Inference, node: ast.Call, found: dict[str, Record]) -> str:
    """The record class in ``isinstance(out, Output)``, if the fields of no other one tell it."""
    if getattr(node.func, "id", "") != "isinstance" or len(node.args) != 2:
        return ""
    (atom, *others) = _kind(inference, node.args[1]) or [None]
    if atom is None or others or atom.kind != "class" or atom.name not in found:
        return ""
    record = found[atom.name]
    alike = [r for r in found.values() if set(record.fields) <= set(r.fields)]
    return "" if record.named or len(record.fields) < 2 or len(alike) > 1 else record.key


def _called(inference: Inference, node: ast.Call, found: dict[str, Record]) -> set[str]:
    """Calls that make an object in another way than by its fields."""
    kind = _kind(inference, node.func)
    keys = {a.name for a in kind if a.kind == "class" and a.name in found}
    if not keys:
        return set()
    (record, *others) = [found[k] for k in sorted(keys)]
    spread = any(isinstance(a, ast.Starred) for a in node.args)
    given = {*record.fields[: len(node.args)], *(k.arg or "" for k in node.keywords)}
    twice = len(given) < len(node.args) + len(node.keywords)
    left = set(record.fields) - given - record.defaults.keys()
    fine = len(kind) == 1 and not others and not spread and not twice and not left
    return set() if fine and given <= set(record.fields) else keys


def _kind(inference: Inference, node: ast.AST) -> Kind:
    return inference.kinds.get(id(node), frozenset())
