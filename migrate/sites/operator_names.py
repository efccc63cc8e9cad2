"""In: an expression. Out: the name of the Tensor operator in it that MindSpore takes otherwise."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from string import Formatter

from migrate.analysis.types.kinds import ARRAY, holds_no_tensor, is_all, without_none
from migrate.sites.origins import is_complex, is_negative, may_be_complex
from migrate.sites.scene import Scene
from migrate.syntax.trees import all_names, last_name, values_of, within

OPERATORS = "torch.Tensor."
_NUMBERS = frozenset(("Tensor", "int", "float", "bool"))
_SHIFTS = {ast.LShift: "__lshift__", ast.RShift: "__rshift__"}
_ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Div)
_BOOLEAN = frozenset(
    "eq ne lt le gt ge isnan isinf isfinite isposinf isneginf isin isclose logical_and logical_or "
    "logical_not logical_xor bool is_nonzero greater less greater_equal less_equal not_equal all "
    "any signbit isreal".split()
)


def find(scene: Scene, node: ast.AST) -> list[tuple[ast.expr, str]]:
    """What this node has of it: (expression, "torch.Tensor.__invert__")."""
    found: list[tuple[ast.expr, str]] = []
    if isinstance(node, ast.UnaryOp):
        may = isinstance(node.op, ast.Invert) and {"Tensor", "unknown"} & scene.kind_names(
            node.operand
        )
        if may and not is_bool(scene, node.operand) and not _as_mask(scene, node):
            sure = _tensor(scene, node.operand)
            found.append((node, "__invert__" if sure else "__invert__:maybe"))
    elif isinstance(node, ast.BinOp):
        found.append((node, _binary(scene, node)))
    elif isinstance(node, ast.Subscript):
        unknown = scene.kind_names(node.value) <= {"unknown"} and _tensor(scene, node.slice)
        places = values_of(node.slice)
        odd = [one for one in places if _tensor(scene, node.value) and _is_odd_index(scene, one)]
        if not isinstance(node.ctx, ast.Load):  # it takes arrays there
            alone = len(places) == 1 and not _is_of_arrays(scene, node.slice)
            odd = [one for one in odd if not alone or _is_range(scene, one)]
        found += [(one, "__getitem__:place") for one in odd]
        read = isinstance(node.ctx, ast.Load) and (_tensor(scene, node.value) or unknown)
        if read and not odd and _may_count_from_the_end(scene, node):
            found.append((node, "__getitem__:negative"))
    elif isinstance(node, (ast.FormattedValue, ast.Call)):
        text = getattr(getattr(node, "func", None), "value", None)
        sure = isinstance(node, ast.FormattedValue) or isinstance(text, ast.Constant)
        names = [(one, _as_number(scene, one)) for one in _formatted(node)]
        found += [(o, n if sure or not n else "__format__:maybe") for o, n in names]
        found += [(one, "__format__:dict") for one in _formatted_members(scene, node)]
        if isinstance(node, ast.Call) and wide_number(scene, node) is not None:
            found.append((node, "__add__:number"))
        if isinstance(node, ast.Call) and _is_complex_size(scene, node):
            found.append((node, "__abs__"))
        if isinstance(node, ast.Call):
            found += [(one, f"{name}{WORDED}") for one, name in _worded(scene, node)]
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "id" and node.args:
            found.append((node, "__is__" if _is_recast(scene, node.args[0]) else ""))
    elif isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.Is, ast.IsNot)):
        sides = (node.left, node.comparators[0])
        asked = all(_tensor(scene, one) for one in sides)
        recast = asked and any(_is_recast(scene, one) for one in sides)
        found.append((node, "__is__" if recast else ""))
    return [(one, OPERATORS + name) for one, name in found if name]


WORDED = ":worded"  # a method that is named by a text, a class or a function of Python's
_AUGMENTED = frozenset(
    f"__i{name}__"
    for name in "add sub mul truediv floordiv mod pow and or xor lshift rshift matmul".split()
)
_SETTING = _AUGMENTED | {"__setitem__", "__delitem__"}
_WRITING = {f"operator.{name.strip('_')}": name for name in _SETTING}
_WRITING |= {"operator.iconcat": "__iadd__"}


def _worded(scene: Scene, node: ast.Call) -> Iterator[tuple[ast.expr, str]]:
    """Yield what runs a Tensor's method that changes it, and names it by other means than
    ``x.name``: ``operator.iadd(x, y)``, ``getattr(x, "mul_")``, ``type(x).mul_``,
    ``x.__iadd__(y)``.

    So does a function that is handed on: ``reduce(operator.iadd, parts)``.
    """
    func = node.func
    given = [*node.args, *(k.value for k in node.keywords)]
    if name := _writing(scene, func):
        if given and _may_be_tensor(scene, given[0]):
            yield node, name
        return
    handed = [one for one in given if isinstance(one, (ast.Name, ast.Attribute))]
    for one in handed:
        name = _writing(scene, one)
        if name and not all(holds_no_tensor(scene.kind(g)) for g in given if g is not one):
            yield one, name
    named = {a.name for a in scene.kind(func) if a.kind in ("builtin", "foreign")}
    text = node.args[named == {"getattr"}] if len(node.args) > (named == {"getattr"}) else None
    said = text.value if isinstance(text, ast.Constant) else None
    if named == {"operator.methodcaller"} and isinstance(said, str) and is_inplace(scene, said):
        yield node, said
    elif named == {"getattr"} and isinstance(said, str) and is_inplace(scene, said):
        if _may_be_tensor(scene, node.args[0]):
            yield node, said
    elif isinstance(func, ast.Attribute) and func.attr in _SETTING:
        if _may_be_tensor(scene, func.value) or _is_class_of_tensor(scene, func.value):
            yield node, func.attr
    elif isinstance(func, ast.Attribute) and is_inplace(scene, func.attr):
        yield from [(node, func.attr)] if _is_class_of_tensor(scene, func.value) else []


def _writing(scene: Scene, node: ast.expr) -> str:
    """Return the operator in place that a function of Python's runs; "" for others."""
    atoms = scene.kind(node)
    return next((_WRITING[a.name] for a in atoms if a.kind == "foreign" and a.name in _WRITING), "")


def is_inplace(scene: Scene, name: str) -> bool:
    """Return whether only Tensors have such a method, and it changes them."""
    writes = name.endswith("_") and not name.startswith("_") and not name.endswith("__")
    return writes and scene.table.kind(OPERATORS + name) == "method"


def _may_be_tensor(scene: Scene, node: ast.expr) -> bool:
    unknown = scene.mentions(b"torch") and "unknown" in scene.kind_names(node)
    return unknown or "Tensor" in scene.kind_names(node)


def _is_class_of_tensor(scene: Scene, node: ast.expr) -> bool:
    """``torch.Tensor``, ``type(x)``, ``x.__class__``."""
    if isinstance(node, ast.Attribute) and node.attr == "__class__":
        return _may_be_tensor(scene, node.value)
    if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "type" and node.args:
        return _may_be_tensor(scene, node.args[0])
    return any(a.direct and a.name == "torch.Tensor" for a in scene.kind(node))


_RECASTING = frozenset(
    "to float double half bfloat16 long int short bool type type_as flatten".split()
)


def _is_complex_size(scene: Scene, node: ast.Call) -> bool:
    """``abs(z)``: of complex numbers MindSpore's result is complex as well."""
    builtin = isinstance(node.func, ast.Name) and node.func.id == "abs"
    one = builtin and len(node.args) == 1 and _tensor(scene, node.args[0])
    return one and may_be_complex(scene, node.args[0])


def _is_recast(scene: Scene, node: ast.expr) -> bool:
    """Whether torch gives a Tensor itself where it has the dtype or shape that is asked for."""
    if isinstance(node, ast.Name):
        values = (v for v in scene.facts.values(node) if isinstance(v, ast.Call))
        return any(_is_recast(scene, value) for value in values)
    func = node.func if isinstance(node, ast.Call) else None
    cast = (
        isinstance(func, ast.Attribute) and func.attr in _RECASTING and _tensor(scene, func.value)
    )
    return cast and _tensor(scene, node)


def _as_number(scene: Scene, node: ast.expr) -> str:
    """Torch formats the number that a Tensor holds; ``:maybe`` where it may be a plain number."""
    if _tensor(scene, node):
        return "__format__"
    may_be = {a.kind for a in scene.kind(node)}
    return "__format__:maybe" if "Tensor" in may_be and may_be <= _NUMBERS else ""


def _tensor(scene: Scene, node: ast.expr) -> bool:
    return is_all(scene.kind(node), "Tensor")


def _binary(scene: Scene, node: ast.BinOp) -> str:
    shift = _SHIFTS.get(type(node.op), "")
    if shift:
        return shift if _tensor(scene, node.left) else ""
    if _is_complex_and_real(scene, node):
        return "__mul__:complex"
    if isinstance(node.op, _PROMOTING) and wide_number(scene, node) is not None:
        return "__add__:number"
    if isinstance(node.op, ast.Mult) and times(scene, node) is not None:
        return "__mul__:times"
    if not _tensor(scene, node.right):
        return ""
    if isinstance(node.op, ast.MatMult) and _tensor(scene, node.left):
        return "__matmul__"
    atoms = without_none(scene.kind(node.left))
    arrays = [a for a in atoms if a.kind == "instance" and a.name.startswith("numpy.")]
    others = {a.kind for a in atoms if a not in arrays}
    if arrays and others <= {"int", "float", "bool"}:
        return "__rmul__"
    kept = isinstance(node.op, (*_ARITHMETIC, ast.Pow)) and "unknown" in others
    return "__rmul__:maybe" if kept and _holds_numpys(scene, node.left) else ""


def times(scene: Scene, node: ast.BinOp) -> ast.expr | None:
    """Return the Tensor in ``[0] * n``, which says how often a list is repeated."""
    for many, number in ((node.left, node.right), (node.right, node.left)):
        if is_all(scene.kind(many), "list") and _tensor(scene, number):
            return number
    return None


def _holds_numpys(scene: Scene, node: ast.expr, depth: int = 4) -> bool:
    """Whether a number of numpy's is part of the arithmetic that gives a value."""
    if any(a.kind == "instance" and a.name.startswith("numpy.") for a in scene.kind(node)):
        return True
    parts: list[ast.expr | None] = []
    if isinstance(node, ast.BinOp):
        parts = [node.left, node.right]
    elif isinstance(node, ast.UnaryOp):
        parts = [node.operand]
    elif isinstance(node, ast.Name):
        parts = [*scene.facts.values(node)]
    return depth > 0 and any(p is not None and _holds_numpys(scene, p, depth - 1) for p in parts)


_PROMOTING = (ast.Add, ast.Sub, ast.FloorDiv, ast.Mod, ast.Pow)
_WIDE = frozenset(("double", "float64"))
_NARROW = frozenset("short int16 int32 char int8 byte uint8 half float16 bfloat16".split())
_ONE = frozenset("sum mean max min norm prod argmax argmin squeeze all any".split())


_PROMOTED = frozenset(
    "add sub subtract maximum minimum where pow remainder fmod floor_divide".split()
)


def wide_number(scene: Scene, node: ast.BinOp | ast.Call) -> tuple[ast.expr, ast.expr] | None:
    """Return a Tensor of no dimensions in a wider dtype, and the variable that it is beside.

    Torch takes the other's dtype; MindSpore does so for products and quotients alone.
    """
    if isinstance(node, ast.Call):
        held = node.func.value if isinstance(node.func, ast.Attribute) else None
        method = [held] if held is not None and _tensor(scene, held) else []
        sides = [*method, *node.args][-2:]
        if last_name(node.func) not in _PROMOTED or len(sides) < 2:
            return None
    else:
        sides = [node.left, node.right]
    for side, other in (sides, sides[::-1]):
        if isinstance(other, ast.Name) and _tensor(scene, side) and _tensor(scene, other):
            calls = list(_calls_behind(scene, side))
            single = any(_is_single(scene, c) for c in calls) or _is_element(scene, side)
            wide = not _WIDE.isdisjoint(_named(calls))
            if single and (wide or _is_narrow(scene, other)):
                return side, other
    return None


def _is_narrow(scene: Scene, node: ast.expr) -> bool:
    """Return whether a dtype smaller than torch's usual ones is named where a variable is made."""
    calls = list(_calls_behind(scene, node))
    own = any(isinstance(c.func, ast.Attribute) and c.func.attr == "int" for c in calls)
    return own or not _NARROW.isdisjoint(_named(calls))


def _calls_behind(scene: Scene, node: ast.expr) -> Iterator[ast.Call]:
    """Yield the calls of an expression and of what binds the variables in it."""
    values = [v for v in scene.facts.values(node) if v] if isinstance(node, ast.Name) else [node]
    for value in values:
        nodes = list(within(value))
        reads = [n for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)]
        behind = [v for n in reads for v in scene.facts.values(n) if v is not None]
        yield from (n for v in (value, *behind) for n in within(v) if isinstance(n, ast.Call))


def _named(calls: list[ast.Call]) -> set[str]:
    """Return the last names of what is called and passed."""
    return {
        last_name(one)
        for call in calls
        for one in (call.func, *call.args, *(k.value for k in call.keywords))
    }


def _is_single(scene: Scene, call: ast.Call) -> bool:
    """``torch.tensor(2)``, ``x.double().sum()``: one number."""
    if last_name(call.func) == "tensor":
        return bool(call.args) and is_all(scene.kind(call.args[0]), "int", "float", "bool")
    method = isinstance(call.func, ast.Attribute) and _tensor(scene, call.func.value)
    return last_name(call.func) in _ONE and len(call.args) == (0 if method else 1)


def _is_element(scene: Scene, node: ast.expr) -> bool:
    """``x[0, 1]``: perhaps one number."""
    values = scene.facts.values(node) if isinstance(node, ast.Name) else (node,)
    found = (v for v in values if isinstance(v, ast.Subscript))
    return any(
        is_all(scene.kind(i), "int") for v in found for i in getattr(v.slice, "elts", [v.slice])
    )


def _is_complex_and_real(scene: Scene, node: ast.BinOp) -> bool:
    """A complex operand and one that may be real, or a complex number of Python's: no kernel. A
    product of complex Tensors has no gradient."""
    if not isinstance(node.op, _ARITHMETIC) or not scene.inference.program.mentions(b"torch"):
        return False
    sides, other = (node.left, node.right), ("int", "float", "bool")
    if any(is_all(scene.kind(side), *other) for side in sides):
        return False
    held = [is_complex(scene, side) for side in sides]
    product = isinstance(node.op, (ast.Mult, ast.Div)) and all(_tensor(scene, s) for s in sides)
    return any(_tensor(scene, s) for s in sides) and any(held) and (product or not all(held))


def _may_count_from_the_end(scene: Scene, node: ast.Subscript) -> bool:
    """An index that holds negative numbers: the gradient of what it takes would be lost."""
    whole = isinstance(node.slice, ast.List) or _tensor(scene, node.slice)
    named = isinstance(node.value, (ast.Name, ast.Attribute))
    return whole and named and not is_bool(scene, node.slice) and is_negative(scene, node.slice)


def _is_range(scene: Scene, index: ast.expr) -> bool:
    named = isinstance(index, ast.Call) and getattr(index.func, "id", "") == "range"
    return named and any(a.kind == "builtin" for a in scene.kind(index.func))  # type: ignore[attr-defined]


def _is_odd_index(scene: Scene, index: ast.expr) -> bool:
    """A range, an array of numpy's, or a tuple of arrays."""
    if _is_range(scene, index) or _is_of_arrays(scene, index):
        return True
    atoms = scene.kind(index)
    return bool(atoms) and all(a.kind == "instance" and a.name.startswith("numpy.") for a in atoms)


def _is_of_arrays(scene: Scene, index: ast.expr) -> bool:
    """``np.triu_indices(n)``"""
    atoms = scene.kind(index)
    items = [item for a in atoms for item in a.items]
    named = not isinstance(index, ast.Tuple) and is_all(atoms, "tuple")
    return named and bool(items) and all(item == ARRAY for item in items)


def _formatted(node: ast.FormattedValue | ast.Call) -> list[ast.expr]:
    """``f"{x:.3f}"``, ``"{:.3f}".format(x)``."""
    if isinstance(node, ast.FormattedValue):
        return [node.value] if node.format_spec is not None and node.conversion < 0 else []
    callee = node.func
    text = callee.value if isinstance(callee, ast.Attribute) and callee.attr == "format" else None
    if text is not None and not isinstance(text, ast.Constant):  # torch formats one number anyway
        plain = [a for a in node.args if not isinstance(a, ast.Starred)]
        return plain + [k.value for k in node.keywords if k.arg]
    if not isinstance(text, ast.Constant) or not isinstance(text.value, str):
        return []
    try:
        fields = [f for f in Formatter().parse(text.value) if f[1] is not None]
    except ValueError:  # a brace that nothing closes
        return []
    given = {k.arg: k.value for k in node.keywords if k.arg}
    given |= {str(i): a for i, a in enumerate(node.args)}
    nested = any("{" in (spec or "") for _, _, spec, _ in fields)
    if nested or any(isinstance(a, ast.Starred) for a in node.args):
        return []
    counted = iter(range(len(fields)))
    places = [(name or str(next(counted)), spec, how) for _, name, spec, how in fields]
    wanted = dict.fromkeys(name for name, spec, how in places if spec and not how)
    bare = {name for name, spec, how in places if not spec or how}
    return [given[name] for name in wanted if name in given and name not in bare]


def _formatted_members(scene: Scene, node: ast.AST) -> list[ast.expr]:
    """``text.format(**self.__dict__)``: the members of an object may be Tensors."""
    if not isinstance(node, ast.Call) or getattr(node.func, "attr", "") != "format":
        return []
    given = [k.value for k in node.keywords if k.arg is None]
    return [
        one
        for one in given
        if getattr(one, "attr", "") == "__dict__"
        or (isinstance(one, ast.Call) and getattr(one.func, "id", "") == "vars")
        or any(i.kind == "Tensor" for a in scene.kind(one) for k in a.items for i in k)
    ]


def is_bool(scene: Scene, node: ast.expr) -> bool:
    """Whether a Tensor surely holds booleans."""
    if isinstance(node, ast.Compare):
        return True
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert):
        return is_bool(scene, node.operand)
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.BitAnd, ast.BitOr, ast.BitXor)):
        return is_bool(scene, node.left) and is_bool(scene, node.right)
    if isinstance(node, ast.Subscript):
        return is_bool(scene, node.value)
    if isinstance(node, ast.Call):
        return _gives_bool(scene, node)
    return isinstance(node, ast.Name) and _bound_to_bools(scene, node)


def _as_mask(scene: Scene, node: ast.expr) -> bool:
    """Torch takes nothing but booleans there: ``x.masked_fill(~m, 0)``."""
    call = scene.parent(node)
    if not isinstance(call, ast.Call) or not call.args:
        return False
    for atom in scene.kind(call.func):
        space, _, last = atom.name.rpartition(".")
        at = 1 if atom.kind == "ref" else 0
        if not space.startswith("torch") or not last.startswith("masked_"):
            return False
        if len(call.args) <= at or call.args[at] is not node:
            return False
    return True


def _gives_bool(scene: Scene, call: ast.Call) -> bool:
    names = {a.name for a in scene.kind(call.func) if a.kind in ("ref", "method")}
    if names and all(n.startswith("torch.") and n.rpartition(".")[2] in _BOOLEAN for n in names):
        return True
    dtypes = [k.value for k in call.keywords if k.arg == "dtype"]
    return any(a.name == "torch.bool" for d in dtypes for a in scene.kind(d))


def _bound_to_bools(scene: Scene, node: ast.Name) -> bool:
    """Return whether every value that may have been assigned to a name is a bool."""
    values = scene.facts.values(node)
    return bool(values) and all(
        value is not None and node.id not in all_names(value) and is_bool(scene, value)
        for value in values
    )
