"""Find the classes whose objects compiled code makes and could be dicts as well, and their fields.

An attribute of what may be a dict in graph mode is an error there and never another number: it
costs the place a flag, and the class keeps its form. Graph mode binds the variable anew where
``out["logits"] = y`` is written: another name for the same record keeps what it had. So a variable
must have got its record from a call; a record that is passed on before it is written is flagged.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial

from migrate.analysis.program import Class, Function
from migrate.analysis.types.inference import Inference
from migrate.analysis.types.kinds import Atom, Kind, ordered
from migrate.rules.graph.scope import compiled
from migrate.sites.scene import once
from migrate.syntax.trees import all_parameters, last_name, within

_PYTHON: dict[str, type] = {"list": list, "tuple": tuple, "dict": dict, "str": str, "int": int,
                            "float": float, "bool": bool, "None": type(None)}  # fmt: skip
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_NOTHING = ("unknown", "None")
_TORCH = ("torch.Tensor", "torch.nn.Module", "torch.Size")
_WRITTEN = "graph mode binds a variable anew, and who holds the record otherwise keeps the old one"
_OTHER = "graph mode has the dict of its fields, and it may be something else"


@dataclass(frozen=True)
class Record:
    """The fields of a class in their order, and the texts of their defaults."""

    key: str
    fields: tuple[str, ...]
    defaults: dict[str, str] = field(default_factory=dict)
    named: bool = False


Field = tuple[Record, str]


def field_of(
    inference: Inference, function: Function, node: ast.Attribute, known: dict[str, Record]
) -> Field | None:
    """The record, and "" or why the attribute is not rewritten; None where there is no record."""
    keys = record_keys(inference, function, node.value, known)
    found = [known[key] for key in keys]
    if not found:
        return None
    kind = inference.kind(node.value)
    others = [a for a in kind if a.kind != "Object" or a.name not in known]
    may_be = partial(_may_be, inference, function, node, known)
    if not _alike(found, node.attr) or any(map(may_be, others)):
        return found[0], _OTHER
    if isinstance(node.ctx, ast.Load):
        return found[0], ""
    own = not found[0].named and is_own(inference, function, node)
    return found[0], "" if own else _WRITTEN


def record_keys(
    inference: Inference, function: Function, node: ast.AST, known: dict[str, Record]
) -> list[str]:
    """Return the records that an expression may be.

    An unknown variable is one if no other class of the project has all attributes that the function
    uses of it.
    """
    kind = inference.kind(node)
    keys = [a.name for a in ordered(kind) if a.kind == "Object" and a.name in known]
    if keys or not isinstance(node, ast.Name) or not all(a.kind in _NOTHING for a in kind):
        return keys
    name = _variables(inference, function).get(id(node), node.id)
    return eliminated(inference, function, known).get(name, [])


def _alike(found: list[Record], name: str) -> bool:
    """Whether one spelling reads the field of each: a name, or the same place of a tuple."""
    if any(name not in r.fields for r in found) or len({r.named for r in found}) > 1:
        return False
    return not found[0].named or len({r.fields.index(name) for r in found}) == 1


def _may_be(
    inference: Inference,
    function: Function,
    node: ast.Attribute,
    known: dict[str, Record],
    atom: Atom,
) -> bool:
    """Return whether another class has all attributes that the function uses of the variable."""
    asked = asked_of(inference, function, node)
    if atom.kind in _PYTHON:
        return all(hasattr(_PYTHON[atom.kind], a) for a in asked)
    if atom.kind == "Tensor":
        return all(f"torch.Tensor.{a}" in inference.table.torch.names for a in asked)
    if atom.kind != "unknown":
        return True
    records = set(record_keys(inference, function, node.value, known))
    return any(asked <= names for k, names in members(inference).items() if k not in records)


def asked_of(inference: Inference, function: Function, node: ast.Attribute) -> set[str]:
    """Return the attributes that the function uses of the variable of this attribute."""
    name = _variables(inference, function).get(id(node.value), "")
    return _asked_of(inference, function).get(name, {node.attr})


def eliminated(
    inference: Inference, function: Function, known: dict[str, Record]
) -> dict[str, list[str]]:
    """Return the record of the variable if no other class has the attributes that are used."""
    notes = inference.program.notes.setdefault("eliminated records", {})
    place = (function.key, tuple(known))
    if place not in notes:
        asked = _asked_of(inference, function).items()
        keys = {name: _only(inference, attributes, known) for name, attributes in asked}
        notes[place] = {name: [key] for name, key in keys.items() if key}
    found: dict[str, list[str]] = notes[place]
    return found


def _only(inference: Inference, asked: set[str], known: dict[str, Record]) -> str:
    fits = [r for r in known.values() if asked and asked <= set(r.fields)]
    if len(fits) != 1 or fits[0].named:
        return ""
    others = (n for k, n in members(inference).items() if k != fits[0].key)
    library = inference.table.torch.names
    torchs = (all(f"{owner}.{a}" in library for a in asked) for owner in _TORCH)
    pythons = (all(hasattr(t, a) for a in asked) for t in _PYTHON.values())
    return "" if any(asked <= n for n in others) or any((*torchs, *pythons)) else fits[0].key


def _variables(inference: Inference, function: Function) -> dict[int, str]:
    """The variable by the place of its name; what a comprehension binds is one of its own."""
    notes = inference.program.notes.setdefault("variables", {})
    if function.key not in notes:
        names = [n for n in function.nodes if isinstance(n, ast.Name)]
        notes[function.key] = found = {id(n): n.id for n in names}
        for number, node in enumerate(n for n in function.nodes if isinstance(n, _COMPREHENSIONS)):
            inside = [n for n in ast.walk(node) if isinstance(n, ast.Name)]
            bound = {n.id for n in inside if isinstance(n.ctx, ast.Store)}
            found |= {id(n): f"{n.id} {number}" for n in inside if n.id in bound}
    known: dict[int, str] = notes[function.key]
    return known


def _asked_of(inference: Inference, function: Function) -> dict[str, set[str]]:
    """Return the attributes read and written of each variable, and of those it is passed to."""
    notes = inference.program.notes.setdefault("asked of variables", {})
    if function.key not in notes:
        names, asked = _variables(inference, function), dict[str, set[str]]()
        for node in function.nodes:
            if isinstance(node, ast.Attribute) and id(node.value) in names:
                asked.setdefault(names[id(node.value)], set()).add(node.attr)
        for one in (a for several in function.assigned.values() for a in several):
            if isinstance(one.value, ast.Name):
                parts = [names[id(n)] for n in (one.value, *one.targets) if id(n) in names]
                ends = [asked.setdefault(name, set()) for name in parts]
                both = set().union(*ends)
                asked |= {n: both for n, own in asked.items() if any(own is e for e in ends)}
        notes[function.key] = asked
    found: dict[str, set[str]] = notes[function.key]
    return found


@once
def members(inference: Inference) -> dict[str, frozenset[str]]:
    """What the objects of each class of the program have, by the class."""
    return {k: _names(inference, c, ()) for k, c in inference.program.classes.items()}


def _names(inference: Inference, owner: Class, seen: tuple[str, ...]) -> frozenset[str]:
    names = {*owner.methods, *owner.stores}
    for statement in owner.node.body:
        targets = getattr(statement, "targets", [getattr(statement, "target", None)])
        names |= {t.id for t in targets if isinstance(t, ast.Name)}
    for kind in inference.bases(owner.key):
        for atom in kind:
            base = inference.program.classes.get(atom.name)
            if base is not None and base.key not in seen:
                names |= _names(inference, base, (*seen, owner.key))
    return frozenset(names)


_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_THROUGH = (ast.Tuple, ast.keyword, ast.BoolOp, ast.IfExp)
_HELD = (ast.Attribute, ast.Subscript)
_ASKING = (ast.Attribute, ast.Compare, ast.UnaryOp, ast.If, ast.IfExp, ast.While, ast.Assert)


def is_own(inference: Inference, function: Function, node: ast.Attribute) -> bool:
    """``out.logits = y`` of a variable that holds nothing but what calls gave it."""
    name = node.value
    if not isinstance(name, ast.Name) or name.id not in function.locals:
        return False
    if name.id in {p.arg for p in function.parameters}:
        return False
    bound = [n for n in ast.walk(function.node) if _binds(n, name.id)]
    plain = [s for s in ast.walk(function.node) if isinstance(s, ast.Assign)]
    given = [s for s in plain if any(t is b for b in bound for t in _flat(s.targets))]
    found = {id(t) for s in given for t in _flat(s.targets)}
    written = any(t is node for s in plain for t in s.targets)
    inner = [n for n in ast.walk(function.node) if isinstance(n, _FUNCTIONS)]
    closed = any(part is node for n in inner if n is not function.node for part in ast.walk(n))
    known = any(a.kind == "Object" for a in inference.kind(name))
    made = all(_is_made(inference, s, known) for s in given)
    return written and not closed and made and all(id(b) in found for b in bound)


def handed_on(
    inference: Inference, function: Function, is_record: Callable[[ast.AST], bool]
) -> Iterator[ast.expr]:
    """Return where a record escapes that is written below, in the same loop, or by callers."""
    for part in _returned(function):
        held = isinstance(part, _HELD)
        if held and is_record(part):
            yield part
    writes = [n for n in function.nodes if _stores(n) and is_record(n.value)]  # type: ignore[attr-defined]
    names = {n.value.id for n in writes if isinstance(n.value, ast.Name)}  # type: ignore[attr-defined]
    given = {p.arg for p in function.parameters}
    returned = {n.id for n in _returned(function) if isinstance(n, ast.Name)}
    for node, parent in _leaving(inference, function):
        if not is_record(node):
            continue
        if isinstance(parent, ast.Return):
            if node.id in given:
                yield node
        elif (
            node.id in returned
            or node.id in given
            or (node.id in names and _before(inference, function, node, writes))
        ):
            yield node


def _binds(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name and not isinstance(node.ctx, ast.Load)


def _flat(targets: list[ast.expr]) -> list[ast.expr]:
    found: list[ast.expr] = []
    for target in targets:
        found += _flat(target.elts) if isinstance(target, (ast.Tuple, ast.List)) else [target]
    return found


def _is_made(inference: Inference, statement: ast.Assign, known: bool) -> bool:
    """Return whether the result of a function is a new object or None, never an alias."""
    value = statement.value
    if len(statement.targets) != 1 or not isinstance(value, (ast.Call, ast.Constant)):
        return False
    if isinstance(value, ast.Constant) or (known and _is_known(inference, value)):
        return True
    return all(_gives_new(inference, value.func, atom) for atom in inference.kind(value.func))


def _gives_new(inference: Inference, func: ast.expr, atom: Atom) -> bool:
    """A class does, and what is called without being known, if it takes nothing out of a list or
    dict; of a function of the project it is looked at what it returns."""
    program = inference.program
    if atom.kind in ("class", "partial"):
        return True
    if atom.kind == "unknown":
        name = getattr(func, "attr", "")
        return not any(hasattr(t, name) for t in (list, dict, set, tuple))
    owner = program.classes.get(atom.name) if atom.kind == "Module" else None
    target = owner.methods.get("forward") if owner else program.functions.get(atom.name)
    if atom.kind not in ("Module", "function", "method") or (atom.kind != "Module" and not target):
        return False
    given = {p.arg for p in target.parameters} if target else set()
    held = [p for p in (_returned(target) if target else ()) if isinstance(p, _HELD)
            or getattr(p, "id", "") in given]  # fmt: skip
    return not any(a.kind == "unknown" for p in held for a in inference.kind(p))


def _stores(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)


def _returned(function: Function) -> Iterator[ast.expr]:
    for node in function.nodes:
        if isinstance(node, ast.Return) and node.value is not None:
            yield from _flat([node.value])


def _leaving(inference: Inference, function: Function) -> Iterator[tuple[ast.Name, ast.AST]]:
    """The uses of a variable that take the record itself: no field of it, no test, and no call
    whose function is looked at for itself."""
    parents = {id(c): n for n in ast.walk(function.node) for c in ast.iter_child_nodes(n)}
    for node in function.nodes:
        if not isinstance(node, ast.Name) or not isinstance(node.ctx, ast.Load):
            continue
        child: ast.AST = node
        parent = parents.get(id(node), function.node)
        while isinstance(parent, _THROUGH) and getattr(parent, "test", None) is not child:
            child, parent = parent, parents[id(parent)]
        known = isinstance(parent, ast.Call) and _is_known(inference, parent)
        if not known and not isinstance(parent, _ASKING):
            yield node, parent


def _is_known(inference: Inference, call: ast.Call) -> bool:
    kind = inference.kind(call.func)
    return bool(kind) and all(
        a.kind == "Module" or (a.kind in ("function", "method") and a.name in
                               inference.program.functions)
        for a in kind
    )  # fmt: skip


def _before(
    inference: Inference, function: Function, node: ast.Name, writes: list[ast.AST]
) -> bool:
    """Return whether the record may be written after it escaped."""
    facts = inference.facts(function.path)
    own = [w for w in writes if getattr(w.value, "id", "") == node.id]  # type: ignore[attr-defined]
    return any(facts.carries(node.id, node, w) for w in own)


# len, iter, list and so on are no questions: torch's code would fail with an object
_ASKS = ("isinstance", "issubclass", "hasattr", "getattr", "setattr", "delattr", "vars", "type",
         "dir", "id")  # fmt: skip
_COPIES = ("copy.copy", "copy.deepcopy")  # graph mode refuses these
_OUTSIDE = ("__init__", "__copy__", "__deepcopy__", "__repr__", "__str__")
_TAKEN = ("kind", "update")  # a parameter of the helper, and a method that its objects get
_MAPPINGS = ("dict", "Mapping", "MutableMapping", "OrderedDict")


@once
def records(inference: Inference) -> dict[str, Record]:
    """Return the records that no compiled code can tell from a dict (or tuple) of their fields."""
    functions = list(compiled(inference).values())
    found = dict(_made(inference, functions))
    while (told := _told(inference, functions, found)) & found.keys():
        found = {k: r for k, r in found.items() if k not in told}
    return found


def _made(inference: Inference, functions: list[Function]) -> Iterator[tuple[str, Record]]:
    """The classes of which compiled code makes objects, where their fields are plain to see."""
    for function in functions:
        for node in function.nodes:
            if isinstance(node, ast.Call):
                for atom in inference.kind(node.func):
                    owner = inference.program.classes.get(atom.name)
                    if atom.kind == "class" and owner is not None:
                        record = _described(inference, owner, _gets_tensors(inference, node))
                        if record is not None:
                            yield owner.key, record


def _gets_tensors(inference: Inference, node: ast.Call) -> bool:
    """Whether an object is made of Tensors, or of lists of them: of others graph mode makes it."""
    given = [inference.kind(g) for g in (*node.args, *(k.value for k in node.keywords))]
    inner = [i for kind in given for atom in kind for i in atom.items]
    return any(a.kind == "Tensor" for kind in (*given, *inner) for a in kind)


def _described(inference: Inference, owner: Class, of_tensors: bool) -> Record | None:
    if inference.is_module(owner.key):
        return None
    body = [s for s in owner.node.body if not _is_text(s)]
    names = [last_name(b) for b in owner.node.bases]
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
    return last_name(decorator)


def _is_no_field(statement: ast.AnnAssign) -> bool:
    """Return whether it is ``count: ClassVar[int] = 0`` and the like, no parameter of the class."""
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
    """Return the records that some code can tell apart, or uses as no dict can be used."""
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
    return {a.name for c in calls for a in inference.kind(c.func) if a.kind == "class"}


def _read_of_dict(inference: Inference, function: Function, found: dict[str, Record]) -> set[str]:
    """``out.values`` where it is not rewritten: a dict has that as well, and it is never None."""
    told: set[str] = set()
    methods = {id(n.func) for n in function.nodes if isinstance(n, ast.Call)}
    for node in function.nodes:
        if not isinstance(node, ast.Attribute) or not (
            hasattr(dict, node.attr) or hasattr(tuple, node.attr)
        ):
            continue
        kind = inference.kind(node.value)
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
    library = [a for a in inference.kind(node.func) if a.kind == "foreign"]
    library = [a for a in library if a.name not in _COPIES]
    if asked_class(inference, node, found) or (name not in _ASKS and not library):
        return set()
    told: set[str] = set()
    for part in _handed([*node.args, *(k.value for k in node.keywords)]):
        kind = inference.kind(part)
        inner = [a for atom in kind for items in atom.items for a in items] if library else []
        told |= {a.name for a in (*kind, *inner) if a.kind in ("Object", "class")} & found.keys()
    if not node.args or not _may_be_any(inference.kind(node.args[0])):
        return told
    if name in ("hasattr", "getattr") and len(node.args) > (name == "getattr") + 1:
        text = getattr(node.args[1], "value", None)  # getattr of two fails, as it should
        told |= {k for k, r in found.items() if text is None or text in r.fields}
    if name == "isinstance" and len(node.args) > 1:
        asked = {last_name(n) for n in ast.walk(node.args[1])}
        if not asked.isdisjoint(_MAPPINGS):
            declared = _declared(function, node.args[0])
            told |= {k for k, r in found.items() if not r.named and _admits(declared, k)}
    return told


def _handed(values: list[ast.expr]) -> Iterator[ast.expr]:
    """Yield the arguments of a call, and the elements of displays and comprehensions in them."""
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
    """Return the record class in ``isinstance(out, Output)``, if no other has its fields."""
    if getattr(node.func, "id", "") != "isinstance" or len(node.args) != 2:
        return ""
    (atom, *others) = inference.kind(node.args[1]) or [None]
    if atom is None or others or atom.kind != "class" or atom.name not in found:
        return ""
    record = found[atom.name]
    alike = [r for r in found.values() if set(record.fields) <= set(r.fields)]
    return "" if record.named or len(record.fields) < 2 or len(alike) > 1 else record.key


def _called(inference: Inference, node: ast.Call, found: dict[str, Record]) -> set[str]:
    """Calls that make an object in another way than by its fields."""
    kind = inference.kind(node.func)
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
