"""In: an annotation whose names were evaluated. Out: the kind that it promises."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from migrate.analysis.types.kinds import (
    BOOL,
    DEVICE,
    DTYPE,
    FLOAT,
    INT,
    KEYED,
    MODULE,
    NONE,
    SIZE,
    STR,
    TENSOR,
    UNKNOWN,
    Atom,
    Kind,
    fixed_tuple,
    is_all,
    join,
    kind,
    sequence,
)
from migrate.syntax.trees import values_of

_TORCH = {
    "torch.Tensor": TENSOR,
    "torch.nn.Parameter": TENSOR,
    "torch.FloatTensor": TENSOR,
    "torch.LongTensor": TENSOR,
    "torch.BoolTensor": TENSOR,
    "torch.IntTensor": TENSOR,
    "torch.Size": SIZE,
    "torch.dtype": DTYPE,
    "torch.device": DEVICE,
    "torch.nn.Module": MODULE,
}
_BUILTINS = {"int": INT, "float": FLOAT, "str": STR, "bool": BOOL, "bytes": UNKNOWN}
_LISTS = ("list", "List", "Sequence", "Iterable", "Iterator", "Collection", "MutableSequence",
          "Generator", "set", "Set", "FrozenSet")  # fmt: skip


def annotated(node: ast.expr | None, kinds: Mapping[int, Kind]) -> Kind:
    """The kind of values with this annotation; unknown where it says nothing of use."""
    if node is None:
        return UNKNOWN
    if isinstance(node, ast.Constant):
        return _constant(node.value)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return join(annotated(node.left, kinds), annotated(node.right, kinds))
    if isinstance(node, ast.Subscript):
        return _generic(node, kinds)
    return _plain(node, kinds)


def is_generic(value: Kind) -> bool:
    """Return whether a name can be subscripted to a type: ``Tuple``, ``list``."""
    return bool(value) and all(
        (a.kind == "foreign" and a.name.startswith(("typing.", "typing_extensions.")))
        or (a.kind == "builtin" and a.name in ("tuple", "list", "dict", "set", "type"))
        for a in value
    )


def _constant(value: object) -> Kind:
    if value is None:
        return NONE
    if isinstance(value, str):
        last = value.rpartition(".")[2].strip()
        return TENSOR if last == "Tensor" else UNKNOWN
    return UNKNOWN


def _plain(node: ast.expr, kinds: Mapping[int, Kind]) -> Kind:
    found = []
    for atom in kinds.get(id(node), UNKNOWN):
        if atom.kind == "ref":
            short = atom.name.partition("torch.nn.")[2]
            module = kind("Module", atom.name) if short and "." not in short else UNKNOWN
            found.append(_TORCH.get(atom.name, module))
        elif atom.kind == "builtin":
            found.append(
                _BUILTINS.get(
                    atom.name,
                    kind(atom.name) if atom.name in ("list", "dict", "tuple") else UNKNOWN,
                )
            )
        elif atom.kind == "class":
            found.append(kind("annotated", atom.name))
        elif atom.kind == "alias":
            found.extend(atom.items)
        elif atom.kind == "foreign" and atom.name.startswith("numpy."):
            found.append(kind("instance", atom.name))
        else:
            found.append(UNKNOWN)
    return join(*found) or UNKNOWN


def _generic(node: ast.Subscript, kinds: Mapping[int, Kind]) -> Kind:
    head = (
        node.value.attr if isinstance(node.value, ast.Attribute) else getattr(node.value, "id", "")
    )
    inner = values_of(node.slice)
    if head in ("Optional", "Final", "Annotated", "ClassVar"):
        return join(annotated(inner[0], kinds), NONE if head == "Optional" else frozenset())
    if head == "Union":
        return join(*(annotated(part, kinds) for part in inner))
    if head in ("Tuple", "tuple"):
        if any(isinstance(part, ast.Constant) and part.value is ... for part in inner):
            return sequence("tuple", annotated(inner[0], kinds))
        return fixed_tuple(tuple(annotated(part, kinds) for part in inner))
    if head in _LISTS:
        return sequence("list", annotated(inner[0], kinds))
    if head in ("Dict", "dict", "Mapping", "MutableMapping", "OrderedDict"):
        keyed = len(inner) > 1 and not is_all(annotated(inner[0], kinds), "str")
        return frozenset((Atom("dict", KEYED if keyed else "", (annotated(inner[-1], kinds),)),))
    if head in ("Type", "type"):
        return _class_value(annotated(inner[0], kinds))
    if head == "Callable" and len(inner) > 1:
        result = annotated(inner[-1], kinds)
        return frozenset((Atom("callable", items=(result,)),)) if result != UNKNOWN else UNKNOWN
    if head == "Literal":
        return join(*(_literal(part) for part in inner))
    return UNKNOWN


def _literal(part: ast.expr) -> Kind:
    value = part.value if isinstance(part, ast.Constant) else None
    return STR if isinstance(value, str) else BOOL if isinstance(value, bool) else INT


def _class_value(instance: Kind) -> Kind:
    """Return the kind of ``Type[nn.Module]``: a callable whose result is an instance."""
    return frozenset((Atom("callable", items=(instance,)),))
