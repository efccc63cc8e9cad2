"""In: the native_functions.yaml that ships with torchgen. Out: signatures of torch's builtins.

Names, order and defaults are those of the Python argument parser: the first tensor of a function
is called ``input``, creation functions take dtype, layout, device, pin_memory and requires_grad.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from keyword import iskeyword
from pathlib import Path
from typing import Any

from migrate.evidence.signature_text import Piece, render

TYPES = {
    "SymInt": "int",
    "ScalarType": "dtype",
    "Layout": "layout",
    "Device": "device",
    "MemoryFormat": "memory_format",
}
CREATION = (
    Piece("dtype", "kw", "dtype | None", "None"),
    Piece("layout", "kw", "layout", "torch.strided"),
    Piece("device", "kw", "device | None", "None"),
    Piece("pin_memory", "kw", "bool", "False"),
    Piece("requires_grad", "kw", "bool", "False"),
)


@dataclass(frozen=True)
class Native:
    """One overload: ``label`` is its name in the yaml file, ``space`` its Python module."""

    name: str
    label: str
    space: str
    function: bool
    method: bool
    pieces: tuple[Piece, ...]
    result: str


def read_natives() -> tuple[Native, ...]:
    """All overloads that Python code can reach, ``out=`` folded into its functional form."""
    generator = importlib.import_module("torchgen.gen")
    schema_kind = importlib.import_module("torchgen.model").SchemaKind
    folder = Path(str(generator.__file__)).parent / "packaged" / "ATen" / "native"
    parsed = generator.parse_native_yaml(
        str(folder / "native_functions.yaml"), str(folder / "tags.yaml")
    )
    with_out = {
        str(one.func.signature())
        for one in parsed.native_functions
        if one.func.kind() == schema_kind.out and "generated" not in one.tags
    }
    found = [
        _native(one, str(one.func.signature()) in with_out)
        for one in parsed.native_functions
        if one.func.kind() != schema_kind.out and "Dimname" not in str(one.func)
    ]
    return tuple(found)


def _native(one: Any, has_out: bool) -> Native:
    arguments = one.func.arguments
    variants = {variant.name for variant in one.variants}
    function = "function" in variants
    positional = [_native_piece(a, "any", function) for a in arguments.flat_positional]
    keywords = [_native_piece(a, "kw", function) for a in arguments.pre_tensor_options_kwarg_only]
    if has_out and function:
        keywords.append(Piece("out", "kw", "Tensor | None", "None"))
    options = list(CREATION) if arguments.tensor_options is not None else []
    if options and str(arguments.tensor_options.dtype.default) == "long":
        options[0] = replace(options[0], default="torch.int64")
    keywords += options
    keywords += [_native_piece(a, "kw", function) for a in arguments.post_tensor_options_kwarg_only]
    return Native(
        name=str(one.func.name.name),
        label=one.func.name.overload_name,
        space=one.python_module or "",
        function=function,
        method="method" in variants,
        pieces=(*_variadic(positional, function), *keywords),
        result=_result(one.func.returns),
    )


def _variadic(pieces: list[Piece], function: bool) -> list[Piece]:
    """A lone list of ints may be given as separate arguments: ``zeros(2, 3)``, ``x.view(2, 3)``."""
    own = [piece for piece in pieces if piece.name != "self"]
    if function and any(piece.name == "input" for piece in pieces):
        return pieces
    if len(own) == 1 and own[0].type == "list[int]" and own[0].default is None:
        return [*(p for p in pieces if p.name == "self"), replace(own[0], kind="args", type="int")]
    if own and len(own) == 2 and own[0].type == "list[int]" and own[1].name == "implicit":
        return [replace(own[0], kind="args", type="int"), replace(own[1], kind="kw")]
    return pieces


def _native_piece(argument: Any, kind: str, function: bool) -> Piece:
    text = str(argument.type)
    optional = text.endswith("?")
    text = text.removesuffix("?")
    text, bracket, _ = text.partition("[")
    text = text.removesuffix("?")
    text = TYPES.get(text, text)
    text = f"list[{text}]" if bracket else text
    name = "input" if argument.name == "self" and function else argument.name
    default = None if argument.default is None else _default(str(argument.default))
    if iskeyword(name):
        name, kind = f"{name}_", "pos"  # nobody can write it as a keyword
    return Piece(name, kind, f"{text} | None" if optional else text, default)


def _default(text: str) -> str:
    if text.startswith("["):
        inner = text[1:-1]
        return f"({inner},)" if inner and "," not in inner else f"({inner})"
    named = {
        "Mean": "'mean'",
        "long": "torch.int64",
        "contiguous_format": "torch.contiguous_format",
        "none": "'none'",
    }
    return named.get(text, text)


def _result(returns: Iterable[Any]) -> str:
    parts = []
    for one in returns:
        text, bracket, _ = str(one.type).partition("[")
        text = TYPES.get(text.removesuffix("?"), text)
        parts.append((one.name, f"tuple[{text}, ...]" if bracket else text))
    if len(parts) < 2:
        return parts[0][1] if parts else "None"
    if all(name for name, _ in parts):
        return "namedtuple(" + ", ".join(f"{name}={text}" for name, text in parts) + ")"
    return "tuple[" + ", ".join(text for _, text in parts) + "]"


def texts(natives: Iterable[Native], method: bool) -> dict[str, str]:
    """Overload label -> text; a method's are without its receiver."""
    chosen = [one for one in natives if (one.method if method else one.function)]
    chosen = _join_optional(_without_scalar_twins(_without_generator_twins(chosen)))
    result: dict[str, str] = {}
    for one in chosen:
        pieces = [
            piece for piece in one.pieces if not (method and piece.name in ("self", "input", "out"))
        ]
        result[one.label] = render(_as_method(pieces) if method else pieces, one.result)
    return result


def _as_method(pieces: list[Piece]) -> list[Piece]:
    positional = [piece for piece in pieces if piece.kind == "any"]
    if len(positional) == 1 and positional[0].type == "list[int]" and not positional[0].default:
        return [replace(p, kind="args", type="int") if p is positional[0] else p for p in pieces]
    if [p.name for p in positional[1:]] == ["implicit"]:
        return [replace(positional[0], kind="args", type="int"), replace(positional[1], kind="kw")]
    if any(piece.kind == "args" for piece in pieces):
        return [replace(p, kind="kw") if p.kind == "any" else p for p in pieces]
    return pieces


def _without_scalar_twins(natives: list[Native]) -> list[Native]:
    """``add(x, 2)`` goes to ``add.Tensor``; the Scalar form, alpha by position, is hidden."""
    labels = {one.label: one for one in natives}
    tensor, scalar = labels.get("Tensor"), labels.get("Scalar")
    if tensor is None or scalar is None:
        return natives
    positional = {piece.name for piece in scalar.pieces if piece.kind == "any"}
    keywords = {piece.name for piece in tensor.pieces if piece.kind == "kw"}
    same = {p.name for p in tensor.pieces} == {p.name for p in scalar.pieces}
    hidden = bool(positional & keywords) or (same and tensor.name in ("mul", "div", "true_divide"))
    if not hidden:
        return natives
    pieces = [replace(p, type="Tensor | Scalar") if p.name == "other" else p for p in tensor.pieces]
    widened = replace(tensor, pieces=tuple(pieces))
    return [widened if one is tensor else one for one in natives if one is not scalar]


def _without_generator_twins(natives: list[Native]) -> list[Native]:
    """``f`` and ``f.generator`` are one signature in Python, with ``generator=None``."""
    twins = {one.label: one for one in natives if any(p.name == "generator" for p in one.pieces)}
    result = []
    for one in natives:
        twin = twins.get(f"{one.label}_generator" if one.label else "generator")
        if one.label in twins and any(_same_but_generator(one, other) for other in natives):
            continue
        if twin is not None and _same_but_generator(twin, one):
            pieces = [
                replace(p, default="None") if p.name == "generator" else p for p in twin.pieces
            ]
            one = replace(one, pieces=tuple(pieces))
        result.append(one)
    return result


def _same_but_generator(twin: Native, one: Native) -> bool:
    rest = tuple(piece for piece in twin.pieces if piece.name != "generator")
    return twin is not one and rest == one.pieces


def _join_optional(natives: list[Native]) -> list[Native]:
    """``sum(input)`` and ``sum(input, dim: optional, keepdim)`` are one signature: dim=None.

    Only where the longer one admits None for what the shorter one lacks.
    """
    plain = next((one for one in natives if not one.label), None)
    if plain is None:
        return natives
    positional = [piece for piece in plain.pieces if piece.kind != "kw"]
    keywords = {piece.name for piece in plain.pieces if piece.kind == "kw"}
    for other in natives:
        extra = [piece for piece in other.pieces if piece not in plain.pieces]
        required = [piece for piece in extra if piece.default is None]
        starts_alike = list(other.pieces[: len(positional)]) == positional
        if other is plain or not starts_alike or not required:
            continue
        if keywords - {piece.name for piece in other.pieces}:
            continue
        if all(piece.type.endswith("| None") for piece in required):
            pieces = [replace(p, default="None") if p in required else p for p in other.pieces]
            joined = replace(plain, pieces=tuple(pieces))
            return [joined if one is plain else one for one in natives if one is not other]
    return natives


def by_name(natives: Iterable[Native]) -> Mapping[tuple[str, str], tuple[Native, ...]]:
    """(Python module, function name) -> its overloads in the order of the file."""
    found: dict[tuple[str, str], list[Native]] = {}
    for one in natives:
        found.setdefault((one.space, one.name), []).append(one)
    return {key: tuple(some) for key, some in found.items()}
