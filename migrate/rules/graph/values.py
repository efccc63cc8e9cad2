"""Give expressions of Python a form of the same value that graph mode compiles.

Graph mode calls ``callable``, ``all``, ``reduce`` and their like for constants only, ignores the
formats of texts, computes ``n ** -1`` as an integer, has no ``:=`` and no sets.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from migrate.analysis.program import Class, Function
from migrate.analysis.types.inference import Inference
from migrate.analysis.types.kinds import is_all
from migrate.codegen.substitution import piece
from migrate.records.outcomes import Edit, Part, Piece
from migrate.rules.graph import objects, scope
from migrate.rules.graph.scope import Checks, Rewriting, Text, builtin, foreign
from migrate.sites.scene import Scene, once
from migrate.syntax.lines import begins_line
from migrate.syntax.trees import all_names

_UNIT = ("random.random", "numpy.random.rand", "numpy.random.random", "numpy.random.random_sample")
_BETWEEN = ("random.uniform", "numpy.random.uniform")
_ASKED = ("tuple", "list", "dict", "str")  # a bool is an int, and numpy's float64 a float
_DERIVED = ("OrderedDict", "defaultdict", "Counter", "namedtuple", "UserDict", "UserList")
_LAYERS = ("torch.nn.ModuleList", "torch.nn.Sequential")
_FIXED = ("function", "method", "class", "Module", "ref")
# graph mode has upper, lower and format of texts
_OF_TEXTS = frozenset(
    "capitalize casefold center count endswith expandtabs find index isalnum isalpha isascii"
    " isdecimal isdigit isidentifier islower isnumeric isprintable isspace istitle isupper join"
    " ljust lstrip partition removeprefix removesuffix replace rfind rindex rjust rpartition rsplit"
    " rstrip split splitlines startswith strip swapcase title translate zfill".split()
)
_LATE = (ast.NamedExpr, ast.Await, ast.Yield)
_STATEMENTS = (ast.If, ast.Assign, ast.AugAssign, ast.Return, ast.Expr)
_QUIET = (ast.Name, ast.Constant, ast.Attribute, ast.Tuple, ast.List, ast.expr_context)
_LATER = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.IfExp)


def partials(scene: Scene) -> Iterator[Rewriting]:
    """Yield those that a Module keeps in a list or dict: ``bound(f, k=1)`` in any code."""
    inside = {id(n) for n in scope.nodes(scene)}
    for call, function in scene.file.calls.get("partial", ()):
        if id(call) not in inside and _is_listed(scene, call, function):
            yield Rewriting(call, (scope.helped(scene, call.func, "bound"),))


# -- operators and texts ------------------------------------------------------------------------


def _power(scene: Scene, node: ast.BinOp) -> Edit | None:
    """``n ** -1`` is ``n ** -1.0``: of integers graph mode computes an integer, 0."""
    power = node.right.operand if isinstance(node.right, ast.UnaryOp) else None
    negative = isinstance(node.right, ast.UnaryOp) and isinstance(node.right.op, ast.USub)
    if not isinstance(node.op, ast.Pow) or not negative or not isinstance(power, ast.Constant):
        return None
    if type(power.value) is not int or is_all(scene.kind(node.left), "Tensor", "float"):
        return None
    return scope.whole(scene, power, f"{power.value}.0")


def _different(scene: Scene, node: ast.BinOp) -> Edit | None:
    """``a ^ b`` of bools is ``a != b``: graph mode has no other; a helper looks at the unknown."""
    sides = (node.left, node.right)
    bools = [is_all(scene.kind(side), "bool") for side in sides]
    if not isinstance(node.op, ast.BitXor) or not any(bools):
        return None
    if not all(bools):
        open_to = all({"bool", "unknown"} & scene.kind_names(side) for side in sides)
        made = scope.called(scene, node, "exclusive_or", node.left, ", ", node.right)
        return made if open_to else None
    left, right = (piece(scene.source, side) for side in sides)
    return scope.whole(scene, node, left, " != ", right)


def _held(scene: Scene, node: ast.Compare) -> Edit | None:
    """``3 in ids`` is ``bool((ids == 3).any())``: graph mode looks into no Tensor."""
    inside = node.comparators[0]
    if not isinstance(node.ops[0], (ast.In, ast.NotIn)) or not is_all(scene.kind(inside), "Tensor"):
        return None
    if "str" in scene.kind_names(node.left):
        return None  # torch looks for no text in a Tensor: it is something else
    absent = "not " if isinstance(node.ops[0], ast.NotIn) else ""
    left, right = piece(scene.source, inside), piece(scene.source, node.left)
    head, tail = f"{absent}bool((", ").any())"
    return scope.whole(scene, node, head, left, " == ", right, tail) if len(node.ops) == 1 else None


def _same(scene: Scene, node: ast.Compare) -> Edit | None:
    """``mode is Mode.FAST`` is ``mode == Mode.FAST``: graph mode has ``is`` for None and bools."""
    other = node.comparators[0]
    owner = other.value if isinstance(other, ast.Attribute) else None
    keys = {a.name for a in scene.kind(owner)} if owner is not None else set()
    if not isinstance(node.ops[0], (ast.Is, ast.IsNot)) or not keys or len(node.ops) != 1:
        return None
    classes = [scene.inference.program.classes.get(key) for key in keys]
    if not all(c is not None and "__eq__" not in c.methods and _is_enum(scene, c) for c in classes):
        return None
    sign = " == " if isinstance(node.ops[0], ast.Is) else " != "
    left, right = (piece(scene.source, n) for n in (node.left, other))
    return scope.whole(scene, node, left, sign, right)


def _is_enum(scene: Scene, owner: Class) -> bool:
    names = ("enum.Enum", "enum.IntEnum", "enum.StrEnum", "enum.Flag")
    return any(foreign(scene, base, *names) for base in owner.node.bases)


def _set(scene: Scene, node: ast.Set) -> Edit | None:
    """``mode in {"a", "b"}`` is ``mode in ("a", "b")``."""
    parent = scene.parent(node)
    looked = isinstance(parent, ast.Compare) and all(
        isinstance(o, (ast.In, ast.NotIn)) for o in parent.ops
    )
    looked = looked and node is not getattr(parent, "left", None)
    if not looked or not all(isinstance(e, ast.Constant) for e in node.elts):
        return None
    text = scene.source.text_of(node)[1:-1]
    if len(node.elts) == 1 and "#" in text:
        return None  # a comma would be a part of the comment
    comma = "," if len(node.elts) == 1 and not text.rstrip().endswith(",") else ""
    return scope.whole(scene, node, f"({text}{comma})")


def _format(scene: Scene, node: ast.JoinedStr) -> Edit | None:
    """``f"k{i:03d}"`` is ``"k{:03d}".format(i)``: graph mode ignores what follows the colon."""
    values = [v for v in node.values if isinstance(v, ast.FormattedValue)]
    if not any(v.format_spec for v in values) or scope.only_tells(scene, node):
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
    return scope.whole(scene, node, f"{quoted}.format({given})")


def _plain(scene: Scene, node: ast.AST) -> bool:
    """Return whether nothing in it is going to change: variables, members, numbers, operators."""
    if isinstance(node, ast.Name):
        return not any(a.kind in ("ref", "foreign", "project") for a in scene.kind(node))
    if isinstance(node, ast.Attribute):
        owner, known = scene.owner(node), scope.compiled(scene.inference)
        own = owner is not None and getattr(node.value, "id", "") == "self"
        stores = owner.stores.get(node.attr, ()) if owner is not None else ()
        return own and not any(f.key in known for f in stores)
    return isinstance(node, (ast.Constant, ast.BinOp, ast.operator, ast.expr_context))


def _edge(scene: Scene, node: ast.Call) -> Edit | None:
    """``s.startswith("a")`` is ``s[:1] == "a"``."""
    func = node.func
    if not isinstance(func, ast.Attribute) or func.attr not in ("startswith", "endswith"):
        return None
    if len(node.args) != 1 or node.keywords or not is_all(scene.kind(func.value), "str"):
        return None
    given = node.args[0]
    if not isinstance(given, ast.Constant) or not isinstance(given.value, str) or not given.value:
        return None
    size = len(given.value)
    cut = f"[:{size}]" if func.attr == "startswith" else f"[-{size}:]"
    head, text = piece(scene.source, func.value), piece(scene.source, given)
    return scope.whole(scene, node, head, f"{cut} == ", text)


def _text_method(scene: Scene, node: ast.Call) -> Edit | None:
    """``spec.split(",")`` is ``of_text(spec, "split", ",")``: a function that Python computes."""
    func = node.func
    if not isinstance(func, ast.Attribute) or func.attr not in _OF_TEXTS or node.keywords:
        return None
    if not is_all(scene.kind(func.value), "str") and not _only_of_texts(scene, node, func):
        return None
    if any(isinstance(a, ast.Starred) for a in node.args):
        return None
    if not scope.is_sure(scene.inference, node):
        return None
    head = (func.value, f', "{func.attr}"')
    return scope.called(scene, node, "of_text", *head, *scope.listed(node.args))


def _only_of_texts(scene: Scene, node: ast.Call, func: ast.Attribute) -> bool:
    """Return whether only a text has such a method with such arguments."""
    if not is_all(scene.kind(func.value), "unknown"):
        return False
    if any(func.attr in owner.methods for owner in scene.inference.program.classes.values()):
        return False
    others = f"torch.Tensor.{func.attr}" in scene.table.torch.names
    others = others or any(hasattr(kind, func.attr) for kind in (list, dict, set))
    texts = [a for a in node.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
    return not others or (bool(texts) and func.attr in ("split", "index", "count"))


def _text_length(scene: Scene, node: ast.Call) -> Edit | None:
    """``len(name)`` of a text is ``of_text(name, "__len__")``."""
    known = builtin(scene, node.func, "len") and len(node.args) == 1
    if not known or not is_all(scene.kind(node.args[0]), "str"):
        return None
    return scope.called(scene, node, "of_text", node.args[0], ', "__len__"')


def _by_key(scene: Scene, node: ast.Call) -> Edit | None:
    """``max(xs, key=f)`` is ``greatest(xs, f)``, of several values as of a tuple."""
    least = builtin(scene, node.func, "min")
    if not least and not builtin(scene, node.func, "max"):
        return None
    if [k.arg for k in node.keywords] != ["key"] or not node.args:
        return None
    several = len(node.args) > 1
    if any(isinstance(a, ast.Starred) for a in node.args):
        return None
    if not several and not is_sequence(scene, node.args[0]):
        return None
    values = scope.listed(node.args)[1:]
    given = ("(", *values, ")") if several else tuple(values)
    helper = "least" if least else "greatest"
    return scope.called(scene, node, helper, *given, ", ", node.keywords[0].value)


def _arranged(scene: Scene, node: ast.Call) -> Edit | None:
    """``sorted(tensors, key=f)`` is ``arranged(tensors, key=f)``: by sizes, that are known."""
    if not builtin(scene, node.func, "sorted") or len(node.args) != 1:
        return None
    keyed = any(k.arg == "key" for k in node.keywords) and all(k.arg for k in node.keywords)
    if not keyed or not is_sequence(scene, node.args[0]):
        return None
    items = {a.kind for k in scene.kind(node.args[0]) for item in k.items for a in item}
    return scope.helped(scene, node.func, "arranged") if "Tensor" in items else None


def _type_asked(scene: Scene, node: ast.Compare) -> Edit | None:
    """``type(x) not in (tuple, list)`` is ``not isinstance(x, (tuple, list))``.

    They differ for classes that derive from one of them: then it stays.
    """
    left, operator, right = node.left, node.ops[0], node.comparators[0]
    asked = right.elts if isinstance(right, (ast.Tuple, ast.List)) else [right]
    several = isinstance(operator, (ast.In, ast.NotIn))
    if len(node.ops) != 1 or several != isinstance(right, (ast.Tuple, ast.List)) or not asked:
        return None
    if not isinstance(left, ast.Call) or not builtin(scene, left.func, "type"):
        return None
    if len(left.args) != 1 or not all(any(builtin(scene, a, n) for n in _ASKED) for a in asked):
        return None
    turned = isinstance(operator, (ast.NotIn, ast.NotEq, ast.IsNot))
    if _derives(scene.inference) or (
        not turned and not isinstance(operator, (ast.In, ast.Eq, ast.Is))
    ):
        return None
    names = ", ".join(scene.source.text_of(a) for a in asked)
    classes = f"({names})" if len(asked) > 1 else names
    head = "not " if turned else ""
    value = piece(scene.source, left.args[0])
    return scope.whole(scene, node, f"{head}isinstance(", value, f", {classes})")


@once
def _derives(inference: Inference) -> bool:
    """Return whether the program has tuples, lists, dicts or texts of other classes."""
    program = inference.program
    return any(objects.is_plain(inference, key) for key in program.classes) or any(
        getattr(node, "name", getattr(node, "attr", "")) in _DERIVED
        for file in program.files.values()
        for node in (*file.of(ast.alias), *file.of(ast.Attribute))
    )


# -- calls of functions -------------------------------------------------------------------------


def random_drawn(scene: Scene, node: ast.Call) -> Edit | None:
    """``random.random() < p`` is ``random_number(random.random) < p``, a draw at each call."""
    unit = foreign(scene, node.func, *_UNIT) and not node.args
    bounds = foreign(scene, node.func, *_BETWEEN) and len(node.args) == 2
    if node.keywords or not (unit or bounds) or scope.only_tells(scene, node):
        return None
    return scope.called(scene, node, "random_number", node.func, *scope.listed(node.args))


def _rounded(scene: Scene, node: ast.Call) -> Edit | None:
    """``round(n / 4)`` is ``int(round(n / 4))``: graph mode gives a float."""
    if not builtin(scene, node.func, "round") or len(node.args) != 1 or node.keywords:
        return None
    held = scene.parent(node)
    if isinstance(held, ast.Call) and builtin(scene, held.func, "int"):
        return None
    if not is_all(scene.kind(node.args[0]), "int", "float"):
        return None
    return scope.whole(scene, node, "int(round(", piece(scene.source, node.args[0]), "))")


def _counted(scene: Scene, node: ast.Call) -> Edit | None:
    """``all(f(d) for d in sizes)`` is ``len([d for d in sizes if not f(d)]) == 0``."""
    every = builtin(scene, node.func, "all")
    if not every and not builtin(scene, node.func, "any"):
        return None
    over = node.args[0] if len(node.args) == 1 and not node.keywords else None
    if not isinstance(over, (ast.GeneratorExp, ast.ListComp)) or len(over.generators) > 1:
        return None
    loop, test = over.generators[0], over.elt
    names = [n for n in ast.walk(loop.target) if isinstance(n, ast.Name)]
    if loop.is_async or not names or any(isinstance(n, _LATE) for n in ast.walk(over)):
        return None
    if any(a.kind == "Tensor" for a in scene.kind(test)):
        return None  # its truth is not known while the graph is compiled
    over_each = (piece(scene.source, loop.target), " in ", piece(scene.source, loop.iter))
    kept = [part for n in loop.ifs for part in (" if ", piece(scene.source, n))]
    asked = (f" if {'not ' if every else ''}", piece(scene.source, test))
    parts = (f"len([{names[0].id} for ", *over_each, *kept, *asked,
             f"]) {'== 0' if every else '> 0'}")  # fmt: skip
    return scope.whole(scene, node, *parts)


def of_tensors(scene: Scene, node: ast.Call) -> bool:
    """Return whether it is ``all`` or ``any`` of what is computed, which has no other form."""
    known = builtin(scene, node.func, "all") or builtin(scene, node.func, "any")
    made = (ast.GeneratorExp, ast.ListComp, ast.List, ast.Tuple)
    function = scene.function(node)
    if not known or function is None or not isinstance(node.args[0], made):
        return False
    fixed = {a.arg for a in function.parameters[:1] if function.owner is not None}
    names = all_names(node.args[0])
    return bool(names & function.locals - fixed)


def _callable(scene: Scene, node: ast.Call) -> Edit | None:
    """``callable(d)`` is ``is_callable(d)``, unless ``d`` is surely a function."""
    function = foreign(scene, node.func, "inspect.isfunction")
    if not function and not builtin(scene, node.func, "callable"):
        return None
    if len(node.args) != 1 or node.keywords or is_all(scene.kind(node.args[0]), *_FIXED):
        return None
    return scope.helped(scene, node.func, "is_function" if function else "is_callable")


def _reduce(scene: Scene, node: ast.Call) -> Edit | None:
    """``reduce(f, xs, x)`` is ``reduced(f, xs, x)``, a loop."""
    if not foreign(scene, node.func, "functools.reduce") or node.keywords:
        return None
    if len(node.args) not in (2, 3):
        return None
    layers = scene.module_classes(node.args[1])
    rows = len(node.args) == 3 and bool(layers) and all(c in _LAYERS for c in layers)
    if not rows and not is_sequence(scene, node.args[1]):
        return None  # an iterator has no places, and a part of layers is not theirs
    if is_all(scene.kind(node.args[0]), "foreign"):
        return None  # operator.add is not compiled
    return scope.helped(scene, node.func, "reduced")


def is_sequence(scene: Scene, node: ast.expr) -> bool:
    """Return whether an expression is surely a list or a tuple."""
    if isinstance(node, (ast.List, ast.Tuple, ast.ListComp)):
        return True
    return is_all(scene.kind(node), "list", "tuple")


def _partial(scene: Scene, node: ast.Call) -> Edit | None:
    """``partial(f, k=1)`` is ``bound(f, k=1)``: of two partials graph mode takes one's keywords."""
    held = scene.parent(node)
    if not foreign(scene, node.func, "functools.partial") or not node.keywords:
        return None
    if isinstance(held, ast.Call) and builtin(scene, held.func, "map"):
        return None  # it becomes a comprehension
    return scope.helped(scene, node.func, "bound")


def _is_listed(scene: Scene, node: ast.Call, function: Function | None) -> bool:
    """Return whether a Module keeps a partial of a function in a list or dict.

    Graph mode calls no partial there. Nobody looks at what it is made of.
    """
    if not foreign(scene, node.func, "functools.partial") or not node.args:
        return False
    owner = function.owner if function is not None else None
    held = scene.parent(node)
    if owner is None or not scene.is_module_class(owner):
        return False
    if not isinstance(held, (ast.List, ast.Tuple, ast.Dict, ast.ListComp, ast.DictComp)):
        return False
    looked = any(n.attr in ("func", "keywords") for f in scene.inference.program.files.values()
                 for n in f.of(ast.Attribute))  # fmt: skip
    return not looked and is_all(scene.kind(node.args[0]), "function", "ref", "method", "Module")


def _stored_partial(scene: Scene, node: ast.Call) -> Edit | None:
    """``self.act(x)`` is ``called(self.act, x)``, where a partial may be kept."""
    func = node.func
    if not isinstance(func, ast.Attribute) or all(a.kind != "partial" for a in scene.kind(func)):
        return None
    held = Piece(scene.source.span(func), func, inside=True)
    first = scope.part(scene, node, Part.FIRST, held)
    return replace(scope.helped(scene, func, "called"), also=(first,))


def _of_math(scene: Scene, node: ast.Call) -> Edit | None:
    """``sqrt(x.shape[-1])``, imported by its name, is ``math.sqrt(...)``.

    Graph mode takes ``math.sqrt`` for a function of its own. One that is bound to a name of its own
    is Python's, which it runs for constants only: a call with a Tensor anywhere in it is refused.
    """
    names = {a.name for a in scene.kind(node.func) if a.kind == "foreign"}
    if not isinstance(node.func, ast.Name) or len(names) != 1 or len(scene.kind(node.func)) != 1:
        return None
    module, _, function = names.pop().partition(".")
    inside = [n for a in node.args for n in ast.walk(a) if isinstance(n, ast.Name)]
    if module != "math" or not any(
        a.kind in ("Tensor", "unknown") for n in inside for a in scene.kind(n)
    ):
        return None
    text, root = scene.spelling.local(f"math.{function}")
    made = scope.edit(scene, node, scene.source.span(node.func), text)
    return replace(made, needs=frozenset((root,)))


# -- statements before: := and pop() ------------------------------------------------------------


def _assigned(scene: Scene, node: ast.NamedExpr) -> tuple[Edit, ...]:
    """``if (n := f(x)) > 1:`` is ``n = f(x)`` and ``if n > 1:``."""
    again = any(isinstance(n, ast.NamedExpr) for n in ast.walk(node.value))
    if again or not first(scene, node, node.target.id, True):
        return ()
    return _hoisted(scene, node, node.value, node.target.id)


def _popped(scene: Scene, node: ast.Call) -> tuple[Edit, ...]:
    """``f(skips.pop())`` takes a statement more: graph mode has pop as a statement alone."""
    func = node.func
    if not isinstance(func, ast.Attribute) or func.attr != "pop" or node.keywords:
        return ()
    function = scene.function(node)
    if not isinstance(func.value, ast.Name) or not is_all(scene.kind(func.value), "list"):
        return ()
    if isinstance(scene.parent(node), (ast.Assign, ast.Expr)) or function is None:
        return ()
    name = func.value.id
    if name not in function.locals - {p.arg for p in function.parameters} or not all(
        isinstance(a, (ast.Constant, ast.UnaryOp)) for a in node.args
    ):
        return ()
    if not first(scene, node, name, False):
        return ()
    at = node.args[0] if node.args else None
    wish = f"{name}_{'first' if isinstance(at, ast.Constant) and at.value == 0 else 'last'}"
    free = next(n for n in (wish, f"{wish}_", f"{wish}__") if n not in scene.file.names)
    return _hoisted(scene, node, node, free)


def first(scene: Scene, node: ast.expr, name: str, strict: bool) -> bool:
    """Return whether it may be evaluated before everything else in its statement.

    It must be evaluated in any case and once; nothing before it may read or bind the name, and,
    where ``strict``, nothing before it may do more than read variables.
    """
    child: ast.AST = node
    parent = scene.parent(node)
    while parent is not None and not isinstance(child, ast.stmt):
        if isinstance(parent, _LATER) or (_conditional(parent, child)):
            return False
        for other in before(parent, child):
            if name in all_names(other):
                return False
            if strict and not all(isinstance(n, _QUIET) for n in ast.walk(other)):
                return False
        child, parent = parent, scene.parent(parent)
    if not isinstance(child, _STATEMENTS):
        return False
    again = [n for n in ast.walk(child) if isinstance(n, ast.Name) and n.id == name]
    return begins_line(scene.source, child) and (strict or len(again) == 1)


def earliest(scene: Scene, node: ast.expr) -> bool:
    """Return whether a statement before its own may evaluate it as well."""
    return first(scene, node, "", True)


def _conditional(parent: ast.AST, child: ast.AST) -> bool:
    """Return whether the parent evaluates the child under a condition only."""
    if isinstance(parent, ast.BoolOp):
        return parent.values[0] is not child
    if isinstance(parent, ast.Compare):
        return any(c is child for c in parent.comparators[1:])
    return isinstance(parent, ast.If) and parent.test is not child


def before(parent: ast.AST, child: ast.AST) -> list[ast.AST]:
    """Return what the parent evaluates before the child."""
    if isinstance(parent, ast.Assign):
        return []
    if isinstance(parent, ast.Dict):
        return [n for n in (*parent.keys, *parent.values) if n is not None and n is not child]
    found = []
    for node in ast.iter_child_nodes(parent):
        if node is child:
            break
        if not isinstance(node, (ast.operator, ast.cmpop, ast.boolop, ast.unaryop)):
            found.append(node)
    return found


def _hoisted(scene: Scene, node: ast.expr, value: ast.expr, name: str) -> tuple[Edit, ...]:
    statement, source = scene.statement(node), scene.source
    inside: Text = piece(source, value)
    if value is node:  # the place of a pop is taken by its name
        inside = source.text_of(node)
    if isinstance(scene.parent(node), ast.Expr):
        return (scope.whole(scene, statement, f"{name} = ", inside),)
    above = scope.part(scene, statement, Part.BEFORE, f"{name} = ", inside)
    return (above, scope.whole(scene, node, name))


_CALLS = (_callable, _reduce, _stored_partial, _partial, _of_math)
CHECKS: Checks = {
    ast.Set: (_set,),
    ast.JoinedStr: (_format,),
    ast.BinOp: (_different, _power),
    ast.Compare: (*scope.unless_told(_type_asked), _held, _same),
    ast.NamedExpr: (_assigned,),
    ast.Call: (
        _counted,
        *scope.unless_told(*_CALLS),
        _edge,
        *scope.unless_told(_text_method, _text_length),
        _by_key,
        _arranged,
        _rounded,
        random_drawn,
        _popped,
    ),
}
