"""In: a row's template. Out: what is wrong with it: arguments, targets, target arguments."""

from __future__ import annotations

import ast
import builtins
import difflib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from migrate.row import Row
from migrate.table import Signature, Table

ROOTS = frozenset({"mindspore", "helpers"})


@dataclass(frozen=True)
class Finding:
    """What is wrong, why it matters, what to do."""

    what: str
    why: str
    next_step: str


def torch_arguments(row: Row) -> tuple[str, ...]:
    """The names of all arguments of the signatures that the row answers for, in order."""
    names = [param.name for one in row.signatures if not says_nothing(one) for param in one.params]
    return tuple(dict.fromkeys(names))


def says_nothing(signature: Signature) -> bool:
    """Whether the facts know no more than ``(*args, **kwargs)``."""
    return [param.kind for param in signature.params] == ["args", "kwargs"]


def argument_uses(template: str, arguments: tuple[str, ...]) -> Counter[str]:
    """How often each torch argument (and ``self``) stands in a template; empty if not Python."""
    try:
        tree = ast.parse(template.strip(), mode="eval")
    except SyntaxError:
        return Counter()
    wanted = {*arguments, "self"}
    named = (node.id for node in ast.walk(tree) if isinstance(node, ast.Name))
    return Counter(name for name in named if name in wanted)


def lint_template(table: Table, row: Row, part: str, template: str) -> Iterator[Finding]:
    """Problems of one template of a row."""
    try:
        tree = ast.parse(template.strip(), mode="eval").body
    except SyntaxError as error:
        yield Finding(f"{part} is not one Python expression", str(error.msg), "correct it")
        return
    arguments = torch_arguments(row)
    for name, count in sorted(argument_uses(template, arguments).items()):
        if count > 1:
            why = "its expression would be evaluated more than once"
            yield Finding(f"{part} uses {name} {count} times", why, "use a helper function")
    yield from _free_names(tree, arguments, part)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute | ast.Name):
            yield from _target_exists(table, node, part)
        if isinstance(node, ast.Call):
            yield from _call(table, row, node, part)


def _free_names(tree: ast.expr, arguments: tuple[str, ...], part: str) -> Iterator[Finding]:
    bound = {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    bound |= {
        node.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    known = {*arguments, *ROOTS, *bound, "self", *dir(builtins)}
    free = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} - known
    for name in sorted(free):
        near = difflib.get_close_matches(name, [*arguments, *ROOTS], n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"arguments: {', '.join(arguments)}"
        yield Finding(f"{part} uses {name!r}", "it is no argument of the torch name", hint)


def dotted(node: ast.expr) -> str:
    """``mindspore.nn.Conv2d`` for a chain of names; "" for anything else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    return ".".join([node.id, *reversed(parts)])


def _target_exists(table: Table, node: ast.expr, part: str) -> Iterator[Finding]:
    name = dotted(node)
    root, _, rest = name.partition(".")
    if root == "helpers" and rest and "." not in rest and rest not in table.helpers.paths:
        near = difflib.get_close_matches(rest, table.helpers.paths, n=1)
        hint = f"did you mean helpers.{near[0]}?" if near else "write it in migrate/helpers/"
        yield Finding(f"{part} uses {name}", "there is no such helper", hint)
    if root == "mindspore" and rest and not _is_known(table, name):
        near = difflib.get_close_matches(name, table.mindspore.names, n=1, cutoff=0.8)
        hint = f"did you mean {near[0]}?" if near else "see mappings/facts for what there is"
        yield Finding(f"{part} uses {name}", "MindSpore has no such name", hint)


def _is_known(table: Table, name: str) -> bool:
    if table.mindspore.kind(name):
        return True
    return any(known.startswith(name + ".") for known in table.mindspore.names)


def _call(table: Table, row: Row, node: ast.Call, part: str) -> Iterator[Finding]:
    name = dotted(node.func)
    root = name.partition(".")[0]
    if root == "self" and name.count(".") == 1 and row.name.startswith("torch.Tensor."):
        name = f"mindspore.Tensor.{name.rpartition('.')[2]}"
        if not table.mindspore.kind(name):
            yield Finding(
                f"{part} calls {name}", "Tensor has no such method", "use ops or a helper"
            )
            return
    elif root not in ROOTS:
        return
    signatures = table.target_signatures(name)
    reasons = [_misfit(node, signature) for signature in signatures]
    if signatures and all(reasons):
        takes = "; ".join(", ".join(p.name for p in one.params) for one in signatures)
        yield Finding(f"{part} calls {name} with {reasons[0]}", f"it takes ({takes})", "correct it")


def _misfit(node: ast.Call, signature: Signature) -> str:
    """Why the call does not fit the signature; "" when it does."""
    slots = [param for param in signature.params if param.kind in ("pos", "any")]
    kinds = {param.kind for param in signature.params}
    starred = any(isinstance(value, ast.Starred) for value in node.args)
    if len(node.args) > len(slots) and "args" not in kinds and not starred:
        return f"{len(node.args)} positional arguments"
    named = {param.name for param in signature.params if param.kind in ("any", "kw")}
    given = [keyword.arg for keyword in node.keywords if keyword.arg is not None]
    unknown = [name for name in given if name not in named]
    if unknown and "kwargs" not in kinds:
        return f"an argument {unknown[0]!r}"
    taken = {param.name for param in slots[: len(node.args)]} & set(given)
    if taken:
        return f"{sorted(taken)[0]!r} given twice"
    if starred or any(keyword.arg is None for keyword in node.keywords):
        return ""
    filled = {param.name for param in slots[: len(node.args)]} | set(given)
    required = [
        param.name
        for param in signature.params
        if param.default is None and param.kind not in ("args", "kwargs")
    ]
    lacking = [name for name in required if name not in filled]
    return f"no {lacking[0]!r}" if lacking else ""
