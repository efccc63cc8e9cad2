"""In: calls of Python's own functions in compiled code. Out: such as take Tensors in graph mode.

Graph mode calls ``callable``, ``type``, ``functools.reduce`` and ``dict`` for constants only. What
stands for them asks with ``isinstance``, goes through a loop, or is a comprehension.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from migrate.outcomes import Edit, Outcome, Piece, Span
from migrate.program import Function
from migrate.receivers.kinds import is_all
from migrate.rules import graph_products, graph_records, graph_scope
from migrate.rules.graph_scope import Rewriting, begins_line, builtin, foreign
from migrate.scene import Scene
from migrate.templates import piece

_ASKED = ("tuple", "list", "dict", "str")  # a bool is an int, and numpy's float64 a float
_DERIVED = ("OrderedDict", "defaultdict", "Counter", "namedtuple", "UserDict", "UserList")
_LAYERS = ("torch.nn.ModuleList", "torch.nn.Sequential")
_FIXED = ("function", "method", "class", "Module", "ref")
_MAPS = ("OrderedDict", "dict")
_PLAIN = (ast.Name, ast.Attribute, ast.Constant, ast.Tuple, ast.List, ast.UnaryOp, ast.unaryop,
          ast.expr_context)  # fmt: skip


def rewrites(scene: Scene) -> Iterator[Rewriting]:
    """``callable(d)``, ``reduce(f, xs)``, ``type(x) in (tuple, list)``, ``d.setdefault(k, v)``."""
    for node in graph_scope.nodes(scene, ast.Compare, ast.Call):
        made: tuple[Edit, ...] = ()
        if isinstance(node, ast.Compare):
            made = _type_asked(scene, node)
        elif isinstance(node, ast.Call):
            made = _callable(scene, node) or _reduce(scene, node) or _pairs(scene, node)
            made = made or _set_default(scene, node) or _stored_partial(scene, node)
            made = made or _partial(scene, node) or _of_math(scene, node)
        if made and not graph_scope.only_tells(scene, node):
            yield Rewriting(node, made)
    inside = {id(n) for n in graph_scope.nodes(scene)}
    for call, function in scene.file.calls.get("partial", ()):
        if id(call) not in inside and _is_listed(scene, call, function):
            yield Rewriting(call, (helped(scene, call.func, "bound"),))


def helped(scene: Scene, node: ast.expr, helper: str) -> Edit:
    """The name of a function, replaced by that of a helper."""
    text, root = scene.spelling.local(f"helpers.{helper}")
    made = graph_scope.edit(scene, node, scene.source.span(node), text)
    return replace(made, outcome=Outcome.HELPER, needs=frozenset((root,)))


def _callable(scene: Scene, node: ast.Call) -> tuple[Edit, ...]:
    """``callable(d)`` is ``is_callable(d)``, unless ``d`` is surely a function."""
    function = foreign(scene, node.func, "inspect.isfunction")
    if not function and not builtin(scene, node.func, "callable"):
        return ()
    if len(node.args) != 1 or node.keywords or is_all(scene.kind(node.args[0]), *_FIXED):
        return ()
    return (helped(scene, node.func, "is_function" if function else "is_callable"),)


def _reduce(scene: Scene, node: ast.Call) -> tuple[Edit, ...]:
    """``reduce(f, xs, x)`` is ``reduced(f, xs, x)``, a loop."""
    if not foreign(scene, node.func, "functools.reduce") or node.keywords:
        return ()
    if len(node.args) not in (2, 3) or graph_products.over_numbers(scene, node):
        return ()
    layers = scene.module_classes(node.args[1])
    rows = len(node.args) == 3 and bool(layers) and all(c in _LAYERS for c in layers)
    if not rows and not is_sequence(scene, node.args[1]):
        return ()  # an iterator has no places, and a part of layers is not theirs
    if is_all(scene.kind(node.args[0]), "foreign"):
        return ()  # operator.add is not compiled
    return (helped(scene, node.func, "reduced"),)


def is_sequence(scene: Scene, node: ast.expr) -> bool:
    """Whether an expression is surely a list or a tuple."""
    if isinstance(node, (ast.List, ast.Tuple, ast.ListComp)):
        return True
    return is_all(scene.kind(node), "list", "tuple")


def _pairs(scene: Scene, node: ast.Call) -> tuple[Edit, ...]:
    """``OrderedDict([("a", x)])`` is ``{key: value for key, value in [("a", x)]}``."""
    ordered = foreign(scene, node.func, "collections.OrderedDict")
    if not ordered and not builtin(scene, node.func, "dict"):
        return ()
    only = node.args[0] if len(node.args) == 1 and not node.keywords else None
    if only is None or _asks_for_order(scene):
        return ()
    zipped = isinstance(only, ast.Call) and builtin(scene, only.func, "zip")
    if zipped and not ordered:
        return ()  # graph_expressions has it
    if not zipped and not isinstance(only, (ast.List, ast.Tuple, ast.ListComp)):
        return ()
    inside = piece(scene.source, only, False)
    whole = scene.source.span(node)
    return (graph_scope.edit(scene, node, whole, "{key: value for key, value in ", inside, "}"),)


def _asks_for_order(scene: Scene) -> bool:
    """Whether any file asks for an OrderedDict, or uses what a dict does not have."""
    notes = scene.inference.program.notes
    if "asks for order" not in notes:
        calls = scene.inference.program.calls
        files = scene.inference.program.files.values()
        moved = any(n.attr == "move_to_end" for file in files for n in file.of(ast.Attribute))
        notes["asks for order"] = moved or any(
            isinstance(call.func, ast.Name)
            and any("OrderedDict" in ast.unparse(a) for a in call.args[1:])
            for name in ("isinstance", "issubclass")
            for _, call, _ in calls.get(name, ())
        )
    asks: bool = notes["asks for order"]
    return asks


def _type_asked(scene: Scene, node: ast.Compare) -> tuple[Edit, ...]:
    """``type(x) not in (tuple, list)`` is ``not isinstance(x, (tuple, list))``.

    They differ for classes that derive from one of them: then it stays.
    """
    left, operator, right = node.left, node.ops[0], node.comparators[0]
    asked = right.elts if isinstance(right, (ast.Tuple, ast.List)) else [right]
    several = isinstance(operator, (ast.In, ast.NotIn))
    if len(node.ops) != 1 or several != isinstance(right, (ast.Tuple, ast.List)) or not asked:
        return ()
    if not isinstance(left, ast.Call) or not builtin(scene, left.func, "type"):
        return ()
    if len(left.args) != 1 or not all(any(builtin(scene, a, n) for n in _ASKED) for a in asked):
        return ()
    if _derives(scene):
        return ()
    turned = isinstance(operator, (ast.NotIn, ast.NotEq, ast.IsNot))
    if not turned and not isinstance(operator, (ast.In, ast.Eq, ast.Is)):
        return ()
    names = ", ".join(scene.source.text_of(a) for a in asked)
    classes = f"({names})" if len(asked) > 1 else names
    tight = turned and scene.is_tight(node)
    head, tail = ("(not ", ")") if tight else ("not " if turned else "", "")
    value = piece(scene.source, left.args[0], False)
    parts = (f"{head}isinstance(", value, f", {classes}){tail}")
    return (graph_scope.edit(scene, node, scene.source.span(node), *parts),)


def _derives(scene: Scene) -> bool:
    """Whether the program has tuples, lists, dicts or texts of other classes."""
    program = scene.inference.program
    if "derives" not in program.notes:
        program.notes["derives"] = any(
            graph_records.is_plain(scene.inference, key) for key in program.classes
        ) or any(
            getattr(node, "name", getattr(node, "attr", "")) in _DERIVED
            for file in program.files.values()
            for node in (*file.of(ast.alias), *file.of(ast.Attribute))
        )
    derives: bool = program.notes["derives"]
    return derives


def _set_default(scene: Scene, node: ast.Call) -> tuple[Edit, ...]:
    """``d.setdefault(k, v)``, a statement, is ``if k not in d:`` and ``d[k] = v`` below."""
    func, statement = node.func, scene.parent(node)
    if not isinstance(func, ast.Attribute) or func.attr != "setdefault" or len(node.args) != 2:
        return ()
    if not isinstance(statement, ast.Expr) or not is_all(scene.kind(func.value), "dict"):
        return ()
    quiet = all(isinstance(n, _PLAIN) for a in (func.value, *node.args) for n in ast.walk(a))
    if node.keywords or not quiet or not begins_line(scene, statement):
        return ()
    source = scene.source
    start = source.span(statement).start
    indent = Piece(Span(source.line_start(statement.lineno), start))
    held, key = source.text_of(func.value), source.text_of(node.args[0])
    step = "\t" if source.data[start - 1 : start] == b"\t" else "    "
    value = piece(source, node.args[1], False)
    head = f"if {key} not in {held}:{source.newline}"
    parts = (head, indent, f"{step}{held}[{key}] = ", value)
    return (graph_scope.edit(scene, node, source.span(node), *parts),)


def _partial(scene: Scene, node: ast.Call) -> tuple[Edit, ...]:
    """``partial(f, k=1)`` is ``bound(f, k=1)``: of two partials graph mode takes one's keywords."""
    held = scene.parent(node)
    if not foreign(scene, node.func, "functools.partial") or not node.keywords:
        return ()
    if isinstance(held, ast.Call) and builtin(scene, held.func, "map"):
        return ()  # graph_forms has it
    return (helped(scene, node.func, "bound"),)


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
    program = scene.inference.program
    looked = any(n.attr in ("func", "keywords") for f in program.files.values()
                 for n in f.of(ast.Attribute))  # fmt: skip
    return not looked and is_all(scene.kind(node.args[0]), "function", "ref", "method", "Module")


def _stored_partial(scene: Scene, node: ast.Call) -> tuple[Edit, ...]:
    """``self.act(x)`` is ``called(self.act, x)``, where a partial may be kept."""
    func, data = node.func, scene.source.data
    if not isinstance(func, ast.Attribute):
        return ()
    if not any(a.kind == "partial" for a in scene.kind(func)):
        return ()
    text, root = scene.spelling.local("helpers.called")
    start, end = scene.source.span(func).start, scene.source.span(func).end
    between = len(data[end:]) - len(data[end:].lstrip())
    if data[end + between : end + between + 1] != b"(":
        return ()
    comma = ", " if node.args or node.keywords else ""
    inside = Piece(scene.source.span(func))
    made = graph_scope.edit(scene, node, Span(start, end + between + 1), f"{text}(", inside, comma)
    return (replace(made, outcome=Outcome.HELPER, needs=frozenset((root,))),)


def _of_math(scene: Scene, node: ast.Call) -> tuple[Edit, ...]:
    """``sqrt(x.shape[-1])``, imported by its name, is ``math.sqrt(...)``.

    Graph mode takes ``math.sqrt`` for a function of its own. One that is bound to a name of its own
    is Python's, which it runs for constants only: a call with a Tensor anywhere in it is refused.
    """
    names = {a.name for a in scene.kind(node.func) if a.kind == "foreign"}
    if not isinstance(node.func, ast.Name) or len(names) != 1 or len(scene.kind(node.func)) != 1:
        return ()
    module, _, function = names.pop().partition(".")
    if module != "math" or not any(_holds_tensor(scene, given) for given in node.args):
        return ()
    text, root = scene.spelling.local(f"math.{function}")
    made = graph_scope.edit(scene, node, scene.source.span(node.func), text)
    return (replace(made, needs=frozenset((root,))),)


def _holds_tensor(scene: Scene, given: ast.expr) -> bool:
    """Return whether a variable in it may be a Tensor."""
    names = [n for n in ast.walk(given) if isinstance(n, ast.Name)]
    kinds = [a.kind for n in names for a in scene.kind(n)]
    return any(kind in ("Tensor", "unknown") for kind in kinds)
