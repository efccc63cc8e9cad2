"""In: mappings/facts/*.json and helper sources. Out: signatures of torch, MindSpore, helpers.

A facts file is ``{"format", "framework", "release", "names": {name: entry}, "aliases": {name:
name}}``, an entry ``[kind, source, {overload: text}]``, followed by the bases for a class. The text
of a signature is written as in a Python stub without the name:
``(input: Tensor, dim: list[int] | None = None, *, out: Tensor | None = None) -> Tensor``; a named
tuple is ``-> namedtuple(values=Tensor, indices=Tensor)``.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from migrate.syntax.trees import defaults, is_none

FORMAT = 1
# Other keywords that torch's C functions accept (its numpy compatibility); a test executes each.
NUMPY_KEYWORDS = {
    "axis": "dim",
    "keepdims": "keepdim",
    "x": "input",
    "a": "input",
    "x1": "input",
    "x2": "other",
}


class SignatureError(ValueError):
    """A facts file or signature that cannot be read; the message says where, what, why, next."""


@dataclass(frozen=True)
class Param:
    """One parameter. ``kind``: pos, any, kw, args, kwargs; ``default`` is source, None: required.

    ``type``: Tensor, int, float, bool, str, Scalar, int[], Tensor[], dtype, ... or "" (unknown);
    ``optional``: None is admitted as well.
    """

    name: str
    kind: str
    default: str | None
    type: str
    optional: bool = False


@dataclass(frozen=True)
class Signature:
    """One overload ("" is the plain one); ``fields`` names the parts of a named-tuple result."""

    params: tuple[Param, ...]
    result: str
    overload: str
    fields: tuple[str, ...] = ()

    def param(self, name: str) -> Param | None:
        """The parameter of that name; None: there is none."""
        return next((param for param in self.params if param.name == name), None)


def parse_signature(text: str, overload: str = "") -> Signature:
    """Return ``name(a, b=1) -> Tensor``, with or without the name, as a Signature.

    Raises:
        SignatureError: it cannot be read.
    """
    _, bracket, rest = text.partition("(")
    rest = rest.replace("from: float", "from_: float").replace("from: int", "from_: int")
    try:
        function = ast.parse(f"def f{bracket}{rest}: pass").body[0]
    except SyntaxError as error:
        raise SignatureError(f"signature {text!r} is not Python: {error.msg}") from error
    if not isinstance(function, ast.FunctionDef):
        raise SignatureError(f"signature {text!r} is not a function signature")
    return replace(signature_of(function), overload=overload)


def signature_of(function: ast.FunctionDef, method: bool = False) -> Signature:
    """The Signature of a ``def`` (without its first parameter for a ``method``)."""
    params = [_param(*parameter) for parameter in parameters(function.args, method)]
    result, fields = _result(function.returns)
    return Signature(tuple(params), result, "", fields)


def parameters(
    given: ast.arguments, method: bool = False
) -> list[tuple[ast.arg, str, ast.expr | None]]:
    """Return each parameter in order with its kind (see `Param`) and its default."""
    values = {argument.arg: value for argument, value in defaults(given)}
    found = [*((a, "pos") for a in given.posonlyargs), *((a, "any") for a in given.args)]
    found = found[1:] if method else found
    found += [(given.vararg, "args")] if given.vararg else []
    found += [(a, "kw") for a in given.kwonlyargs]
    found += [(given.kwarg, "kwargs")] if given.kwarg else []
    return [(argument, kind, values.get(argument.arg)) for argument, kind in found]


def _param(argument: ast.arg, kind: str, default: ast.expr | None) -> Param:
    name, optional = type_name(argument.annotation)
    source = None if default is None else ast.unparse(default)
    return Param(argument.arg, kind, source, name, optional or source == "None")


def _result(node: ast.expr | None) -> tuple[str, tuple[str, ...]]:
    if isinstance(node, ast.Call) and ast.unparse(node.func) == "namedtuple":
        fields = tuple(keyword.arg or "" for keyword in node.keywords)
        types = ", ".join(type_name(keyword.value)[0] for keyword in node.keywords)
        return f"tuple[{types}]", fields
    name, _ = type_name(node)
    return ("None" if is_none(node) else name), ()


def type_name(node: ast.expr | None) -> tuple[str, bool]:
    """An annotation as (type, None admitted): ``list[int] | None`` is ``("int[]", True)``."""
    if node is None or is_none(node):
        return "", node is not None
    if isinstance(node, ast.Constant):
        return str(node.value), False
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        sides = [node.left, node.right]
        left = [s for s in sides if not is_none(s)]
        return (type_name(left[0])[0] if len(left) == 1 else ""), len(left) < len(sides)
    if isinstance(node, ast.Subscript) and ast.unparse(node.value) == "list":
        return type_name(node.slice)[0] + "[]", False
    return ast.unparse(node), False


@dataclass(frozen=True)
class Framework:
    """The generated facts of one framework; the file is read when first needed."""

    path: Path

    @cached_property
    def _content(self) -> Mapping[str, Any]:
        if not self.path.is_file():
            return {"names": {}, "aliases": {}, "release": ""}
        content = json.loads(self.path.read_text(encoding="utf-8"))
        if content.get("format") != FORMAT:
            raise SignatureError(
                f"{self.path}: format {content.get('format')!r} where {FORMAT} is understood; "
                "write the facts again with: torch2ms table facts"
            )
        return dict(content)

    @cached_property
    def names(self) -> Mapping[str, list[Any]]:
        """Every public name -> [kind, source of the fact, {overload: signature text}]."""
        return dict(self._content["names"])

    @cached_property
    def _members(self) -> Mapping[str, list[str]]:
        found: dict[str, list[str]] = {}
        for name in self.names:
            owner, _, last = name.rpartition(".")
            found.setdefault(owner, []).append(last)
        return found

    def members(self, owner: str) -> list[str]:
        """The names that are known right below a module or class."""
        return self._members.get(owner, [])

    @property
    def release(self) -> str:
        """The version of the framework, "" when there are no facts."""
        return str(self._content["release"])

    def canonical(self, name: str) -> str:
        """The documented name of the same object; the name itself when no other is known."""
        return str(self._content["aliases"].get(name, name))

    def kind(self, name: str) -> str:
        """function, class, method, property, constant, module; "" when there is no such name."""
        entry = self.names.get(self.canonical(name))
        return str(entry[0]) if entry else ""

    def bases(self, name: str) -> tuple[str, ...]:
        """The bases of a class, nearest first, under their public names; () for anything else."""
        entry = self.names.get(self.canonical(name), [])
        return tuple(self.canonical(base) for base in (entry[3] if len(entry) > 3 else ()))

    @cached_property
    def _places(self) -> dict[str, Mapping[str, tuple[int, ...]]]:
        return {}

    @cached_property
    def _parsed(self) -> dict[str, tuple[Signature, ...]]:
        return {}

    def places(self, name: str) -> Mapping[str, tuple[int, ...]]:
        """The places of the parameters that may be passed by place, over all overloads."""
        if name not in self._places:
            found: dict[str, tuple[int, ...]] = {}
            for signature in self.signatures(name):
                for index, param in enumerate(signature.params):
                    if param.kind == "any":
                        found[param.name] = (*found.get(param.name, ()), index)
            self._places[name] = found
        return self._places[name]

    def signatures(self, name: str) -> tuple[Signature, ...]:
        """All overloads, the plain one first; () when the name is unknown or is not called."""
        name = self.canonical(name)
        if name not in self._parsed:
            entry = self.names.get(name)
            texts = entry[2] if entry else {}
            parsed = [parse_signature(text, label) for label, text in texts.items()]
            self._parsed[name] = tuple(sorted(parsed, key=lambda one: one.overload != ""))
        return self._parsed[name]


@dataclass(frozen=True)
class HelperFiles:
    """The top-level definitions of ``migrate/helpers`` and their signatures, read by ast."""

    folder: Path

    @cached_property
    def paths(self) -> Mapping[str, Path]:
        """Name of a helper -> the file that defines it. Raises SignatureError on a double name."""
        found: dict[str, Path] = {}
        for path in sorted(self.folder.glob("*.py")):
            for line in path.read_text(encoding="utf-8").splitlines():
                if not line.startswith(("def ", "class ")):
                    continue
                name = line.split(" ", 1)[1].partition("(")[0].partition(":")[0].strip()
                if name in found and not name.startswith("_"):
                    raise SignatureError(
                        f"{path}: helper {name} is also defined in {found[name].name}; "
                        "one of the two needs another name"
                    )
                found.setdefault(name, path)
        return found

    @cached_property
    def _trees(self) -> dict[Path, ast.Module]:
        return {}

    def definition(self, name: str) -> ast.FunctionDef | ast.ClassDef | None:
        """The syntax tree of a helper; None: no such helper."""
        path = self.paths.get(name)
        if path is None:
            return None
        if path not in self._trees:
            self._trees[path] = ast.parse(path.read_text(encoding="utf-8"))
        for node in self._trees[path].body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name:
                return node
        return None

    def bases(self, name: str) -> tuple[str, ...]:
        """The bases of a helper class as written; () for a function or an unknown name."""
        node = self.definition(name)
        if not isinstance(node, ast.ClassDef):
            return ()
        return tuple(ast.unparse(base) for base in node.bases)

    def signature(self, name: str, member: str = "__init__") -> Signature | None:
        """A function's own signature, or that of a class's ``member``; None: it has none itself."""
        node = self.definition(name)
        if isinstance(node, ast.FunctionDef):
            return signature_of(node)
        if node is None:
            return None
        for part in node.body:
            if isinstance(part, ast.FunctionDef) and part.name == member:
                return signature_of(part, method=True)
        return None
