"""Write signatures of Python objects, trees and docstrings in the form that is read again.

The text is the same on every run: no memory address, no path, no object without a name.
"""

from __future__ import annotations

import ast
import inspect
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import typing_extensions

from migrate.mapping.signatures import parameters


def parse_def(stated: str) -> ast.FunctionDef | None:
    """``Tensor.max(dim, keepdim=False) -> tuple(Tensor)`` as a tree; None: it is not Python.

    Docstrings write ``tuple(Tensor)`` for ``tuple[Tensor]`` and ``2^63-1`` for a large number;
    a result that cannot be read is left out, the parameters are kept.
    """
    rest = stated.partition("(")[2]
    arguments, _, result = rest.rpartition("->") if "->" in rest else (rest, "", "")
    arguments = arguments.strip().removesuffix(":").rstrip()
    returns = (
        result.strip().removesuffix(":").replace("tuple(", "tuple[").replace("Tuple(", "tuple[")
    )
    if returns.startswith("tuple[") and returns.endswith(")"):
        returns = returns[:-1] + "]"
    for text in (f"def f({arguments} -> {returns}: pass", f"def f({arguments}: pass"):
        try:
            node = ast.parse(text).body[0]
        except SyntaxError:
            continue
        if isinstance(node, ast.FunctionDef):
            return node
    return None


PLAIN = {
    "Tensor": "Tensor",
    "TensorBase": "Tensor",
    "Parameter": "Tensor",
    "int": "int",
    "_int": "int",
    "SymInt": "int",
    "bool": "bool",
    "_bool": "bool",
    "float": "float",
    "_float": "float",
    "str": "str",
    "Number": "Scalar",
    "number": "Scalar",
    "dtype": "dtype",
    "_dtype": "dtype",
    "DType": "dtype",
    "Module": "Module",
    "Cell": "Module",
    "None": "None",
    "Optimizer": "Optimizer",
    "Generator": "Generator",
    "Size": "Size",
}
LISTS = {"list", "List", "Sequence", "Iterable", "_size"}


@dataclass(frozen=True)
class Piece:
    """One parameter as text. ``kind`` as in ``migrate.mapping.signatures.Param``; "": unknown."""

    name: str
    kind: str
    type: str = ""
    default: str | None = None


def render(pieces: Iterable[Piece], result: str = "") -> str:
    """``(a: Tensor, /, b: int = 1, *, c: bool = False) -> Tensor``."""
    parts: list[str] = []
    previous = ""
    for piece in pieces:
        if previous == "pos" and piece.kind != "pos":
            parts.append("/")
        if piece.kind == "kw" and previous not in ("kw", "args"):
            parts.append("*")
        star = {"args": "*", "kwargs": "**"}.get(piece.kind, "")
        text = star + piece.name + (f": {piece.type}" if piece.type else "")
        if piece.default is not None:
            text += f" = {piece.default}" if piece.type else f"={piece.default}"
        parts.append(text)
        previous = piece.kind
    if previous == "pos":
        parts.append("/")
    return f"({', '.join(parts)})" + (f" -> {result}" if result else "")


def simple_type(annotation: object) -> str:
    """An annotation in the notation of the facts; "" for everything that has no name there."""
    if annotation is inspect.Parameter.empty:
        return ""
    if annotation is None or annotation is type(None):
        return ""  # torch's BroadcastingList2[int] evaluates to None
    text = annotation if isinstance(annotation, str) else _annotation_text(annotation)
    try:
        return _simple(ast.parse(text.strip(), mode="eval").body)
    except SyntaxError:
        return ""


def _annotation_text(annotation: object) -> str:
    return annotation.__name__ if isinstance(annotation, type) else str(annotation)


def _simple(node: ast.expr) -> str:
    if isinstance(node, ast.Constant):
        return "None" if node.value is None else simple_type(str(node.value))
    if isinstance(node, ast.Name | ast.Attribute):
        last = node.id if isinstance(node, ast.Name) else node.attr
        return "list[int]" if last == "_size" else PLAIN.get(last, "")
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return _union([_simple(node.left), _simple(node.right)])
    if not isinstance(node, ast.Subscript):
        return ""
    inner = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    head = node.value.id if isinstance(node.value, ast.Name) else getattr(node.value, "attr", "")
    if head == "Optional":
        return _union([_simple(inner[0]), "None"])
    if head == "Union":
        return _union([_simple(part) for part in inner])
    if head in LISTS or head.startswith("BroadcastingList"):
        item = _simple(inner[0])
        return f"list[{item}]" if item and "|" not in item else ""
    if head in ("tuple", "Tuple"):
        return _tuple(inner)
    return ""


def _tuple(inner: list[ast.expr]) -> str:
    parts = ["..." if ast.unparse(part) in ("...", "Ellipsis") else _simple(part) for part in inner]
    return f"tuple[{', '.join(parts)}]" if all(parts) else ""


def _union(sides: list[str]) -> str:
    parts = [part for side in sides for part in (side.split(" | ") if side else [""])]
    known = [part for part in dict.fromkeys(parts) if part != "None"]
    if len(known) != 1 or not known[0]:
        return ""
    return f"{known[0]} | None" if "None" in parts else known[0]


def default_source(value: Any) -> str:
    """The Python source of a default value; ``...`` for an object that has no literal."""
    if isinstance(value, float) and not math.isfinite(value):
        return f"float('{value}')"
    if value is None or type(value) in (bool, int, float, str, complex, bytes):
        return repr(value)
    if type(value) in (tuple, list):
        inner = ", ".join(default_source(item) for item in value)
        if isinstance(value, list):
            return f"[{inner}]"
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    if type(value) is dict and not value:
        return "{}"
    name = getattr(value, "__qualname__", "")
    if callable(value) and name and "<" not in name:
        return f"{value.__module__}.{name}"
    text = str(value)
    return text if text.startswith("torch.") and text.replace(".", "").isidentifier() else "..."


KINDS = {
    inspect.Parameter.POSITIONAL_ONLY: "pos",
    inspect.Parameter.POSITIONAL_OR_KEYWORD: "any",
    inspect.Parameter.VAR_POSITIONAL: "args",
    inspect.Parameter.KEYWORD_ONLY: "kw",
    inspect.Parameter.VAR_KEYWORD: "kwargs",
}


def from_callable(
    function: Callable[..., Any], method: bool = False, default: Callable[[Any], str] | None = None
) -> dict[str, str]:
    """Overload label -> text of a Python function, by inspect; {} when it has no signature.

    Written overloads count only where the function itself says no more than (*args, **kwargs).
    """
    if isinstance(function, type(object.__init__)):
        return {}
    try:
        plain = inspect.signature(function)
    except (TypeError, ValueError):
        return {}
    found = [plain]
    own = list(plain.parameters.values())[1 if method else 0 :]
    if own and all(part.kind in (part.VAR_POSITIONAL, part.VAR_KEYWORD) for part in own):
        written = typing_extensions.get_overloads(function)
        told = [inspect.signature(one) for one in written]
        found = [one for one in told if not _tells_nothing(one, method)] or found
    texts = [_from_signature(one, method, default or default_source) for one in found]
    return {("" if i == 0 else f"overload{i}"): text for i, text in enumerate(texts)}


def _tells_nothing(signature: inspect.Signature, method: bool) -> bool:
    parts = list(signature.parameters.values())[1 if method else 0 :]
    return len(parts) > 1 and all(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parts)


def _from_signature(
    signature: inspect.Signature, method: bool, default: Callable[[Any], str]
) -> str:
    pieces = [
        Piece(
            part.name,
            KINDS[part.kind],
            simple_type(part.annotation),
            None if part.default is part.empty else default(part.default),
        )
        for part in signature.parameters.values()
    ]
    returns = signature.return_annotation
    result = "None" if returns is None else simple_type(returns)
    return render(pieces[1:] if method else pieces, result)


def from_def(function: ast.FunctionDef, method: bool = False) -> str:
    """The text of a ``def`` in a stub or source file."""
    pieces = [_piece(*parameter) for parameter in parameters(function.args, method)]
    returns = function.returns
    return render(pieces, simple_type(ast.unparse(returns)) if returns is not None else "")


def _piece(argument: ast.arg, kind: str, default: ast.expr | None) -> Piece:
    annotation = "" if argument.annotation is None else ast.unparse(argument.annotation)
    source = None if default is None else ast.unparse(default)
    return Piece(argument.arg, kind, simple_type(annotation) if annotation else "", source)
