"""Know what decorators of a function do; drop those of torch that leave it as it is."""

from __future__ import annotations

import ast

from migrate.analysis.program import Function
from migrate.analysis.types.inference import Inference
from migrate.analysis.types.kinds import ordered
from migrate.mapping.table import Row
from migrate.records.outcomes import Edit, Outcome, Refusal, Site
from migrate.rules.leaking import switched_function
from migrate.sites.scene import Scene, once
from migrate.syntax.trees import is_super, within

_WRAPS = "functools.wraps"
# these leave what the function computes as it is, or are refused by the compiler
_HARMLESS = ("typing.", "typing_extensions.", "abc.", "functools.lru_cache", "functools.cache",
             _WRAPS, "contextlib.contextmanager", "dataclasses.")  # fmt: skip
_PYTHON = frozenset(("staticmethod", "classmethod", "property"))
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def leaves(inference: Inference, item: ast.expr) -> bool:
    """Return whether a decorator is Python's, torch's (which has rules of its own) or harmless."""
    target = item.func if isinstance(item, ast.Call) else item
    if isinstance(target, ast.Attribute) and target.attr in ("setter", "getter", "deleter"):
        return True
    kind = inference.kind(target)
    if not kind:
        return isinstance(target, ast.Name) and target.id in _PYTHON
    return all(
        atom.kind == "ref"
        or (atom.kind == "builtin" and getattr(target, "id", "") in _PYTHON)
        or (atom.kind == "foreign" and atom.name.startswith(_HARMLESS))
        for atom in kind
    )


def is_wraps(inference: Inference, item: ast.expr) -> bool:
    target = item.func if isinstance(item, ast.Call) else item
    kind = inference.kind(target)
    return bool(kind) and all(a.kind == "foreign" and a.name == _WRAPS for a in kind)


def wrappers_of(
    inference: Inference, function: Function, item: ast.expr
) -> list[tuple[Function, str]] | None:
    """Return what a decorator of the project puts around a function; None if that is not known."""
    made = isinstance(item, ast.Call)
    target = item.func if isinstance(item, ast.Call) else item
    kind = ordered(inference.kind(target))
    if len(kind) != 1 or kind[0].kind != "function":
        return None
    decorator = inference.program.functions.get(kind[0].name)
    found = _returned(inference, decorator) if decorator is not None else None
    if found is None or decorator is None:
        return None
    if made:
        inner = [f for f in found if f is not None]
        if len(inner) != 1 or len(found) != 1:
            return None
        decorator, found = inner[0], _returned(inference, inner[0])
        if found is None:
            return None
    if not decorator.parameters:
        return None
    argument = decorator.parameters[0].arg
    wrappers = [f for f in found if f is not None]
    for wrapper in wrappers:
        assert isinstance(wrapper.node, DEFINITIONS)
        if not all(is_wraps(inference, d) for d in wrapper.node.decorator_list):
            return None
    bound = function.owner is not None and not function.decorated("staticmethod", "classmethod")
    blind = [w for w in wrappers if not w.parameters]
    if bound and any(not _hands_all_on(w, argument) for w in blind):
        return None
    uses_super = any(is_super(n) and not n.args for n in function.nodes)  # type: ignore[attr-defined]
    return None if wrappers and uses_super else [(w, argument) for w in wrappers]


def _returned(inference: Inference, function: Function) -> list[Function | None] | None:
    """Return the inner functions that a function returns, None for its own argument."""
    if not isinstance(function.node, DEFINITIONS) or not function.parameters:
        return None
    inner = {f.name: f for f in _inner(inference).get(function.key, ())}
    found: list[Function | None] = []
    for node in function.nodes:
        if not isinstance(node, ast.Return) or _within_inner(function, node):
            continue
        if not isinstance(node.value, ast.Name):
            return None
        name = node.value.id
        if name in inner and name not in function.stores:
            found.append(inner[name])
        elif name == function.parameters[0].arg and name not in function.stores:
            found.append(None)
        else:
            return None
    return found or None


def _within_inner(function: Function, node: ast.AST) -> bool:
    inside = (n for n in function.nodes if isinstance(n, (*DEFINITIONS, ast.Lambda)))
    return any(n is not function.node and any(m is node for m in within(n)) for n in inside)


@once
def _inner(inference: Inference) -> dict[str, list[Function]]:
    found: dict[str, list[Function]] = {}
    for function in inference.program.functions.values():
        if function.parent is not None and function.owner is None:
            found.setdefault(function.parent.key, []).append(function)
    return found


def around(inference: Inference, function: Function) -> list[Function]:
    """Return the wrappers that decorators of the project put around a compiled function."""
    if not isinstance(function.node, DEFINITIONS):
        return []
    found = [wrappers_of(inference, function, d) or [] for d in function.node.decorator_list]
    return [wrapper for some in found for wrapper, _ in some]


def _hands_all_on(wrapper: Function, argument: str) -> bool:
    """Return whether ``*args`` is used in nothing but calls ``fn(*args, ...)``."""
    rest = wrapper.node.args.vararg
    if rest is None or any(a.arg == "self" for a in wrapper.node.args.kwonlyargs):
        return False
    calls = [n for n in wrapper.nodes if isinstance(n, ast.Call)
             and getattr(n.func, "id", "") == argument and n.args
             and isinstance(n.args[0], ast.Starred)
             and getattr(n.args[0].value, "id", "") == rest.arg]  # fmt: skip
    uses = [n for n in wrapper.nodes if isinstance(n, ast.Name) and n.id == rest.arg]
    named = any(isinstance(n, ast.Name) and n.id == "self" for n in wrapper.nodes)
    return len(uses) == len(calls) and not named


PASSES_ON = "helpers.script"
# contexts that decorate with and without parentheses
BARE = ("torch.no_grad", "torch.inference_mode", "torch.enable_grad",
        "torch.autograd.no_grad", "torch.autograd.inference_mode",
        "torch.autograd.enable_grad")  # fmt: skip


def decide(scene: Scene, site: Site, node: ast.expr, name: str) -> Edit | Refusal | None:
    """``@torch.jit.script``, ``@torch.compile(...)`` go; None where the place is no decorator."""
    if not is_decorator(scene, node):
        return None
    bare = name in BARE and not isinstance(node, ast.Call)
    if bare and (kept := switched_function(scene, site, node, name)) is not None:
        return kept
    row = next((row for row in scene.table.rows(name) if bare or _returns_it(row)), None)
    return dropped(scene, site, node, row) if row is not None else None


def is_decorator(scene: Scene, node: ast.AST) -> bool:
    parent = scene.parent(node)
    return node in getattr(parent, "decorator_list", ())


def _returns_it(row: Row) -> bool:
    """The row says that the target is the first argument itself."""
    first = row.signatures[0].params[:1] if row.signatures else ()
    return row.ref == PASSES_ON or any(row.to == p.name for p in first)


def dropped(scene: Scene, site: Site, node: ast.expr, row: Row) -> Edit:
    """The decorator is gone."""
    place = site.at(scene.source.span(node))
    return Edit(place, Outcome.CONVERTED, (), row.key, note=row.note)
