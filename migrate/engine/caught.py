"""Let what a flag raises through all that would swallow it: handlers, ``suppress``, ``finally``."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace

from migrate.analysis.program import File
from migrate.analysis.types.inference import Inference
from migrate.codegen.substitution import added
from migrate.records.outcomes import Added, Edit, Outcome, Part, Site, Span
from migrate.rules.called_from import callers, running
from migrate.sites.scene import Scene
from migrate.syntax.trees import last_name, within

_UNITS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_LEAVING = (ast.Return, ast.Break, ast.Continue)
_OPEN = ("unknown", "project", "instance")
_KEY = "functions that hold flags"
Try = ast.Try | ast.TryStar


def edits(scene: Scene, stopping: Collection[ast.AST]) -> Iterator[Edit]:
    """Yield what lets a flag through: ``except NotImplementedError: raise`` before handlers.

    ``except Exception: y = x * 0`` around a flagged line would give another number without a word.
    A line is reached from what holds it, and from calls of its function anywhere in the program.
    What an import tries stays: there a handler is the way on without it.

    Args:
        stopping: the nodes that raise where they are reached.
    """
    holders = _swallowing(scene)
    if not holders:
        return
    known: Mapping[str, frozenset[str]] = scene.inference.program.notes.get(_KEY, {})
    elsewhere = {key for path, keys in known.items() if path != scene.file.path for key in keys}
    raising = elsewhere | functions(scene.file, stopping)
    found: dict[int, ast.AST] = {}
    for node in (*stopping, *(_reaching(scene, raising) if raising else ())):
        for holder in _around(scene, node):
            if id(holder) in holders:
                found.setdefault(id(holder), holder)
    for holder in found.values():
        yield from holders[id(holder)]


def functions(file: File, stopping: Iterable[ast.AST]) -> frozenset[str]:
    """Return the functions of a file in which something raises where it is reached."""
    units = (file.function_at(node) for node in stopping)
    return frozenset(unit.key for unit in units if unit is not None)


def again(inference: Inference, raising: Mapping[str, frozenset[str]]) -> list[str]:
    """Return the files whose handlers may swallow a flag of another file.

    Args:
        raising: by file, the functions that hold flags; kept for the conversion of these files.
    """
    inference.program.notes[_KEY] = {path: keys for path, keys in raising.items() if keys}
    files = inference.program.files
    some = any(raising.values())
    return [path for path in raising if some and _may_swallow(files[path])]


def concerns(scene: Scene) -> bool:
    """Return whether a file may swallow a flag of another one, as far as those are known."""
    known = scene.inference.program.notes.get(_KEY, {})
    return bool(known) and _may_swallow(scene.file)


def _may_swallow(file: File) -> bool:
    tries: list[Try] = [*file.of(ast.Try), *file.of(ast.TryStar)]
    suppressing = bool(file.of(ast.With)) and b"suppress" in file.source.data
    return suppressing or any(_catching(n) or _leaves(n.finalbody) for n in tries)


def fails_unseen(scene: Scene, node: ast.AST) -> bool:
    """Return whether a handler takes the AttributeError of a method that a Tensor has not."""
    return any(
        _takes(handler.type, AttributeError)
        for holder in _around(scene, node)
        if isinstance(holder, Try)
        for handler in holder.handlers
    )


# -- what may raise -----------------------------------------------------------------------------


def _reaching(scene: Scene, raising: Collection[str]) -> Iterator[ast.AST]:
    """Yield the calls and reads of a file that surely or possibly run one of some functions."""
    inference, file = scene.inference, scene.file
    keys = callers(inference, raising)
    yield from running(scene, keys)
    special = {name for key in keys if (name := key.rpartition(".")[2]).startswith("__")}
    taken = any(f.key in keys for f in inference.summaries.graph.indirect)
    for call in file.of(ast.Call) if taken else ():
        kind = inference.kind(call.func)
        if not kind or any(a.kind in _OPEN or _has(a.kind, special) for a in kind):
            yield call
    for place in file.of(ast.Yield) if taken else ():
        unit = file.function_at(place)
        if unit is not None and unit.decorated("contextmanager"):
            yield place


def _has(kind: str, special: set[str]) -> bool:
    return kind == "Object" and "__call__" in special


# -- what swallows it ---------------------------------------------------------------------------


def _swallowing(scene: Scene) -> dict[int, list[Edit]]:
    """Return the handlers that continue after an error of any kind, with the edits that re-raise a
    flag.
    """
    found: dict[int, list[Edit]] = {}
    tries: list[Try] = [*scene.file.of(ast.Try), *scene.file.of(ast.TryStar)]
    for node in tries:
        handler = _catching(node)
        made = [_passed_on(scene, node, handler)] if handler is not None else []
        if _leaves(node.finalbody):
            made.append(_raised_again(scene, node))
        if made:
            found[id(node)] = made
    for block in scene.file.of(ast.With):
        made = [e for item in block.items for e in _suppressing(scene, item.context_expr)]
        if made:
            found[id(block)] = made
    return found


def _around(scene: Scene, node: ast.AST) -> Iterator[ast.AST]:
    """Yield the ``try`` and ``with`` statements of the unit around a node whose bodies hold it."""
    holders: list[ast.AST] = []
    inner, outer = node, scene.parent(node)
    while outer is not None and not isinstance(outer, _UNITS):
        tried = isinstance(outer, (ast.Try, ast.TryStar, ast.With)) and inner in outer.body
        if tried or (isinstance(outer, Try) and _dropped(outer, inner)):
            holders.append(outer)
        if isinstance(outer, ast.If) and _is_main(outer.test):
            yield from holders
            return
        inner, outer = outer, scene.parent(outer)
    if isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef)):
        yield from holders


def _dropped(statement: Try, inner: ast.AST) -> bool:
    """Return whether ``finally`` drops what a handler, or what follows the body, raises."""
    return _leaves(statement.finalbody) and inner not in statement.finalbody


def _is_main(test: ast.expr) -> bool:
    return isinstance(test, ast.Compare) and getattr(test.left, "id", "") == "__name__"


def _catching(statement: Try) -> ast.ExceptHandler | None:
    """Return the first handler that catches a NotImplementedError and continues."""
    for handler in statement.handlers:
        if not _takes(handler.type, NotImplementedError):
            continue
        return None if isinstance(handler.body[-1], ast.Raise) else handler
    return None


def _takes(caught: ast.expr | None, error: type[Exception]) -> bool:
    if isinstance(caught, ast.Tuple):
        return any(_takes(one, error) for one in caught.elts)
    if caught is None:
        return True
    known = getattr(builtins, last_name(caught), None)
    return isinstance(known, type) and issubclass(error, known)


def _passed_on(scene: Scene, statement: Try, handler: ast.ExceptHandler) -> Edit:
    source = scene.source
    start, end = (source.offset(handler.lineno, handler.col_offset),
                  source.offset(handler.end_lineno, handler.end_col_offset))  # type: ignore[arg-type]  # fmt: skip
    word = "except*" if isinstance(statement, ast.TryStar) else "except"
    text = f"{word} NotImplementedError:{source.newline}    raise"
    site = Site("except", Span(start, start), handler.lineno, handler.col_offset + 1)
    place = Span(start, end)
    return Added(site, Outcome.FLAGGED, (text,), part=Part.HANDLER, node=place)


def _leaves(block: list[ast.stmt]) -> bool:
    """Return whether a ``finally`` ends in a way that drops the error that is under way."""
    for statement in block:
        if isinstance(statement, ast.Return):
            return True
        loops = isinstance(statement, (ast.For, ast.While, ast.AsyncFor))
        inner = [n for n in within(statement) if isinstance(n, _LEAVING)]
        kinds = (ast.Return,) if loops else _LEAVING
        if not isinstance(statement, _UNITS) and any(isinstance(n, kinds) for n in inner):
            return True
    return False


def _raised_again(scene: Scene, statement: Try) -> Edit:
    """``finally: return y`` raises first what a flag has raised."""
    first = statement.finalbody[0]
    text, root = scene.spelling.local("helpers.raise_flag")
    made = added(scene.source, scene.site("finally", first), first, Part.BEFORE, f"{text}()")
    return replace(made, outcome=Outcome.FLAGGED, needs=frozenset((root,)))


def _suppressing(scene: Scene, manager: ast.expr) -> list[Edit]:
    """``suppress(Exception)`` is ``suppressed(Exception)``, which lets a flag through."""
    if not isinstance(manager, ast.Call):
        return []
    kind = scene.kind(manager.func)
    if not kind or not all(a.kind == "foreign" and a.name == "contextlib.suppress" for a in kind):
        return []
    if not any(_takes(given, NotImplementedError) for given in manager.args):
        return []
    text, root = scene.spelling.local("helpers.suppressed")
    site = scene.site("suppress", manager.func)
    return [Edit(site, Outcome.FLAGGED, (text,), needs=frozenset((root,)))]
