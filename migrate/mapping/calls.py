"""In: the arguments of a call and a torch signature. Out: which argument goes where, or why not."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from migrate.mapping.table import Param, Signature

# numpy's spellings that torch accepts besides its own
_ALIASES = {"axis": "dim", "keepdims": "keepdim", "x": "input", "x1": "input", "x2": "other"}
NO, MAYBE, YES = 0, 1, 2
SPREAD = "arguments are passed with *"
Values = dict[str, ast.expr | tuple[ast.expr, ...]]


@dataclass(frozen=True)
class BoundCall:
    """The arguments of one call by torch parameter name.

    ``values`` holds an expression, or a tuple of them for a variadic parameter; ``order`` the
    names in the order they were written; ``keywords`` those that were given by keyword; ``spread``
    those that one ``*args`` at the end stands for: it is the value of each of them.
    """

    signature: Signature
    values: Mapping[str, ast.expr | tuple[ast.expr, ...]]
    order: tuple[str, ...]
    keywords: frozenset[str]
    spread: tuple[str, ...] = ()

    def given(self, name: str) -> bool:
        return name in self.values


@dataclass(frozen=True)
class Unbound:
    """A call that does not fit a signature; ``dynamic`` when only running it would tell.

    ``of_kinds``: its arguments do, but not their kinds.
    """

    reason: str
    dynamic: bool = False
    of_kinds: bool = False


def bind(
    args: Sequence[ast.expr], keywords: Sequence[ast.keyword], signature: Signature
) -> BoundCall | Unbound:
    """Assign the arguments as Python would."""
    values = _by_place(args, signature)
    if isinstance(values, Unbound):
        return values
    by_name = {p.name: p for p in signature.params if p.kind in ("any", "kw")}
    why = _by_keyword(keywords, signature, by_name, values)
    if why is not None:
        return why
    for param in signature.params:
        required = param.default is None and param.kind not in ("args", "kwargs")
        if required and param.name not in values:
            return Unbound(f"argument {param.name!r} is missing")
    named = {_spelled(k.arg, by_name) or "" for k in keywords if k.arg}
    spread = tuple(name for name, value in values.items() if isinstance(value, ast.Starred))
    return BoundCall(signature, values, tuple(values), frozenset(named), spread)


def _by_place(args: Sequence[ast.expr], signature: Signature) -> Values | Unbound:
    """The values of the positional arguments."""
    values: Values = {}
    slots = [p for p in signature.params if p.kind in ("pos", "any")]
    rest = next((p for p in signature.params if p.kind == "args"), None)
    for index, arg in enumerate(args):
        if index < len(slots) and not (isinstance(arg, ast.Starred)):
            values[slots[index].name] = arg
            continue
        left = slots[index:]
        if rest is None and isinstance(arg, ast.Starred):
            if arg is not args[-1] or not left:
                return Unbound(SPREAD, dynamic=True)
            values |= {p.name: arg for p in left}  # as many as torch wants, or it fails
            break
        if rest is None:
            return Unbound(f"more than {len(slots)} positional arguments")
        values[rest.name] = tuple(args[index:])
        break
    return values


def _by_keyword(
    keywords: Sequence[ast.keyword],
    signature: Signature,
    by_name: Mapping[str, Param],
    values: Values,
) -> Unbound | None:
    """Adds the keyword arguments to ``values``, or says why one does not fit."""
    spread = next((p for p in signature.params if p.kind == "kwargs"), None)
    # torch takes ``x.permute(1, 0)``, ``x.permute((1, 0))`` and ``x.permute(dims=(1, 0))``
    listed = {p.name for p in signature.params if p.kind == "args" and p.type == "int[]"}
    extra: list[ast.expr] = []
    for item in keywords:
        if item.arg in listed and item.arg not in values:
            values[item.arg] = (item.value,)
            continue
        if item.arg is None:
            if spread is None:
                return Unbound("arguments are passed with **", dynamic=True)
            extra.append(item.value)
            continue
        name = _spelled(item.arg, by_name)
        if name is None:
            if spread is None:
                return Unbound(f"there is no argument {item.arg!r}")
            extra.append(item.value)
            continue
        if name in values:
            unsure = isinstance(values[name], ast.Starred)  # it may hold less
            return Unbound(f"argument {name!r} is given twice", dynamic=unsure)
        values[name] = item.value
    if spread is not None and extra:
        values[spread.name] = tuple(extra)
    return None


def _spelled(keyword: str, by_name: Mapping[str, Param]) -> str | None:
    if keyword in by_name:
        return keyword
    other = _ALIASES.get(keyword)
    return other if other in by_name else None


def fits(param: Param, kinds: frozenset[str]) -> int:
    """Whether a value of these kinds (atom names) can be meant by the parameter."""
    if not kinds or kinds & {"unknown", "instance", "foreign", "torch", "method", "partial"}:
        return MAYBE
    rest = kinds - {"None", "holding None"}
    if not rest:
        if param.type == "bool":  # torch's classes ask for its truth
            return MAYBE
        return YES if param.optional or param.default == "None" else NO
    allowed = _ALLOWED.get(param.type)
    if allowed is None:
        allowed = _SEQUENCES if param.type.endswith("[]") else None
    if allowed is None:
        return MAYBE
    if rest <= allowed:
        return YES
    return MAYBE if rest & allowed else NO


_SEQUENCES = frozenset({"list", "tuple", "Size", "int", "iterator", "Tensor", "Module"})
_ALLOWED = {
    "Tensor": frozenset({"Tensor"}),
    "int": frozenset({"int", "bool"}),
    "float": frozenset({"float", "int", "bool"}),
    "Scalar": frozenset({"float", "int", "bool"}),
    "number": frozenset({"float", "int", "bool"}),
    "Number": frozenset({"float", "int", "bool"}),
    "bool": frozenset({"bool", "int"}),
    "str": frozenset({"str"}),
    "dtype": frozenset({"dtype"}),
    "device": frozenset({"device", "str", "int", "None"}),
    "int[]": frozenset({"list", "tuple", "Size", "int", "iterator"}),
    "Size": frozenset({"list", "tuple", "Size"}),
    "Tensor[]": frozenset({"list", "tuple", "iterator", "Tensor"}),
}


def choose(
    args: Sequence[ast.expr],
    keywords: Sequence[ast.keyword],
    signatures: Iterable[Signature],
    kinds_of: Callable[[ast.expr], frozenset[str]],
    counting: bool = False,
) -> tuple[list[BoundCall], Unbound]:
    """The bindings that the argument kinds do not exclude, surest first, and a reason for none.

    ``counting``: a Tensor passes for an int, as one of a single integer does.
    """
    found: list[tuple[int, BoundCall]] = []
    why = Unbound("it has no known signature")
    for signature in signatures:
        bound = bind(args, keywords, signature)
        if isinstance(bound, Unbound):
            if not why.dynamic:
                why = bound
            continue
        given = [p for p in signature.params if bound.given(p.name)]
        marks = [_mark(bound, p, kinds_of) for p in given]
        if counting and NO in marks:
            pairs = zip(given, marks, strict=True)
            marks = [MAYBE if m == NO and _counts(bound, p, kinds_of) else m for p, m in pairs]
        if NO in marks:
            # a Tensor of one number passes for that number, so this may work all the same
            why = why if why.dynamic else Unbound("an argument has another type", of_kinds=True)
            continue
        found.append((YES if all(m == YES for m in marks) else MAYBE, bound))
    sure = [b for mark, b in found if mark == YES]
    return (sure or [b for _, b in found]), why


def _counts(bound: BoundCall, param: Param, kinds_of: Callable[[ast.expr], frozenset[str]]) -> bool:
    """Return whether what is given for an int, or for each of several, may be a number."""
    values = bound.values[param.name]
    items = values if isinstance(values, tuple) else (values,)
    several = param.type == "int[]" and param.kind == "args"
    return (several or param.type == "int") and all(kinds_of(v) <= _NUMBERS for v in items)


def numbers(bound: BoundCall, kinds_of: Callable[[ast.expr], frozenset[str]]) -> Iterator[ast.expr]:
    """Yield the arguments, and elements of displays, that are Tensors where torch wants ints."""
    for param in bound.signature.params:
        values = bound.values.get(param.name, ())
        items: Iterable[ast.expr] = values if isinstance(values, tuple) else (values,)
        if param.type == "int[]" and not isinstance(values, tuple):
            items = values.elts if isinstance(values, (ast.Tuple, ast.List)) else ()
        elif param.type not in ("int", "int[]") or param.kind == "kwargs":
            continue
        yield from (v for v in items if "Tensor" in kinds_of(v) and kinds_of(v) <= _COUNTED)


def taken_as(
    bound: BoundCall, kinds_of: Callable[[ast.expr], frozenset[str]]
) -> Iterator[tuple[ast.expr, str]]:
    """Yield the arguments that torch takes for a bool or a float, and which of the two: None or a
    number where it asks for their truth, an int for the epsilon of a layer."""
    params = [p for p in bound.signature.params if p.type == "bool" or p.name == "eps"]
    for param, value in [(p, bound.values.get(p.name)) for p in params]:
        kinds = kinds_of(value) if isinstance(value, ast.expr) else frozenset()
        asked = param.type == "bool" and kinds & {"None", "holding None", "int"}
        if isinstance(value, ast.expr) and (asked or (param.type == "float" and "int" in kinds)):
            yield value, param.type


_COUNTED = frozenset({"Tensor", "int", "bool"})  # what may be None is no Tensor that is seen
_NUMBERS = _COUNTED | {"None"}


def _mark(bound: BoundCall, param: Param, kinds_of: Callable[[ast.expr], frozenset[str]]) -> int:
    value = bound.values[param.name]
    if isinstance(value, tuple):
        if param.kind == "kwargs":
            return YES
        marks = [_fits(param, v, kinds_of) for v in value]
        return min(marks, default=YES)
    return _fits(param, value, kinds_of)


def _fits(param: Param, value: ast.expr, kinds_of: Callable[[ast.expr], frozenset[str]]) -> int:
    """Whether an argument fits; what is only seen as None may be another where it runs, and
    so may a size that is None or taken for a Tensor."""
    if isinstance(value, ast.Starred):
        return MAYBE
    kinds = kinds_of(value)
    mark = fits(param, kinds)
    unseen = kinds == {"None"} and not isinstance(value, ast.Constant)
    number = param.type == "int[]" and param.kind == "args" and kinds == {"Tensor", "None"}
    return MAYBE if mark == NO and (unseen or number) else mark
