"""Make graph mode compile anew where host code sets the mode of a Cell inside another.

A graph is compiled once for each mode of the Cell that is called, with the modes that the Cells
inside have then: ``net.bn.eval()`` changes nothing afterwards, without a word. Where the whole is
known, ``modes_are_set(whole)`` compares its modes with those that were seen; elsewhere
``compile_anew()`` throws all graphs away.
"""

from __future__ import annotations

import ast
from collections.abc import Container, Iterator

from migrate.outcomes import Edit
from migrate.program import File, Function
from migrate.receivers.inference import Inference
from migrate.rules import graph_anew, graph_scope
from migrate.rules.graph_memo import constructing
from migrate.scene import Scene
from migrate.syntax import all_parameters, within

_SETTERS = frozenset(("train", "eval"))
_PARTS = frozenset(("modules", "children", "named_modules", "named_children", "values", "items"))
_DEPTH = 4  # callers of callers: beyond that it is not known what a parameter is
Switch = tuple[ast.AST, ast.expr]  # the call or store, and the Module whose mode it sets


def edits(scene: Scene) -> Iterator[Edit]:
    """Yield what stands behind the statements that set modes, in programs that set those of parts.

    Nothing is added where no call of a Module can have come before.
    """
    if not _sets_parts(scene.inference):
        return
    apart = {id(n) for f in graph_scope.compiled_here(scene) for n in f.nodes}
    apart |= constructing(scene)
    done: set[tuple[int, str]] = set()
    switches = list(_switches(scene.inference, scene.file))
    setting = {id(node) for node, _ in switches}
    for node, held in switches:
        if id(node) in apart or not graph_anew.called_before(scene, node, held):
            continue
        whole = _whole(scene.inference, scene.file, held)
        text = ast.unparse(whole) if whole is not None else ""
        statement = scene.statement(node) if whole is None else _last(scene, node, setting)
        if (id(statement), text) in done or _ends(statement):
            continue
        done.add((id(statement), text))
        yield graph_anew.behind(scene, statement, whole)


def _ends(statement: ast.stmt) -> bool:
    """Return whether nothing behind a statement is run."""
    return isinstance(statement, ast.Return)


def _sets_parts(inference: Inference) -> bool:
    """Return whether host code of the program sets the mode of a Module inside another."""
    notes = inference.program.notes
    if "modes of parts" not in notes:
        notes["modes of parts"] = any(
            _is_part(inference, file, held)
            for file in inference.program.files.values()
            for _, held in _switches(inference, file)
        )
    return bool(notes["modes of parts"])


def _switches(inference: Inference, file: File) -> Iterator[Switch]:
    """Yield ``m.train()``, ``m.eval()`` and ``m.training = ...`` of what may be a Module."""
    for name in _SETTERS:
        for call, _ in file.calls.get(name, ()):
            method, count = call.func, len(call.args) + len(call.keywords)
            if not isinstance(method, ast.Attribute) or count > 1:
                continue
            if _may_be_module(inference, method.value, name == "eval"):
                yield call, method.value
    for node in file.of(ast.Attribute):
        stored = node.attr == "training" and isinstance(node.ctx, ast.Store)
        if stored and _may_be_module(inference, node.value, True):
            yield node, node.value


def _may_be_module(inference: Inference, node: ast.expr, unknown: bool) -> bool:
    kinds = {a.kind for a in inference.kinds.get(id(node), ())}
    return "Module" in kinds or (unknown and "unknown" in kinds)


def _is_module(inference: Inference, node: ast.AST) -> bool:
    kind = inference.kinds.get(id(node), ())
    return bool(kind) and all(a.kind in ("Module", "None") for a in kind)


def _whole(inference: Inference, file: File, node: ast.expr, depth: int = 0) -> ast.expr | None:
    """Return the Module that an expression is a part of, as far as it shows; None: not known.

    ``net.body[0]`` is a part of ``net``, and so is what a loop over ``net.modules()`` gives.
    """
    while True:
        chain = [node]
        while isinstance(chain[-1], (ast.Attribute, ast.Subscript)):
            chain.append(chain[-1].value)
        base = chain[-1]
        if not isinstance(base, ast.Name):
            return node if _builds(inference, base) else None
        whole = next((one for one in reversed(chain) if _is_module(inference, one)), node)
        if whole is not base:
            return whole
        over = _iterated(inference, file, base)
        if over is None:
            return None if _is_given_part(inference, file, base, depth) else base
        node = over


def _builds(inference: Inference, node: ast.expr) -> bool:
    """Return whether an expression makes a new object: ``Net().eval()``."""
    kind = inference.kinds.get(id(node.func), ()) if isinstance(node, ast.Call) else ()
    return bool(kind) and all(a.kind in ("class", "ref", "foreign") for a in kind)


def _iterated(inference: Inference, file: File, name: ast.Name) -> ast.expr | None:
    """Return the Module over whose parts the loop goes that binds a name, if that is what does."""
    reach = inference.facts(file.path).reach(name)
    loops = set()
    for binding in reach.bindings:
        around: ast.AST | None = file.parents.get(id(binding.place))
        while isinstance(around, (ast.Tuple, ast.List)):
            around = file.parents.get(id(around))
        loops.add(around)
    loop = loops.pop() if len(loops) == 1 else None
    if not isinstance(loop, (ast.For, ast.comprehension)):
        return None
    over = loop.iter
    if isinstance(over, ast.Call) and isinstance(over.func, ast.Name) and len(over.args) == 1:
        over = over.args[0]  # list(...), enumerate(...), reversed(...)
    if isinstance(over, ast.Call) and isinstance(over.func, ast.Attribute):
        return over.func.value if over.func.attr in _PARTS and not over.args else None
    return over if _is_module(inference, over) else None


def _is_part(inference: Inference, file: File, node: ast.expr, depth: int = 0) -> bool:
    whole = _whole(inference, file, node, depth)
    return whole is None or ast.dump(whole) != ast.dump(node)


def _is_given_part(inference: Inference, file: File, name: ast.Name, depth: int) -> bool:
    """Return whether a name is a parameter that a caller gives a part of a Module, or may."""
    facts = inference.facts(file.path)
    places = [b.place for b in facts.reach(name).bindings]
    if not any(isinstance(place, ast.arg) for place in places):
        return False
    function, given = file.function_at(name), [""]
    while function is not None:
        given = [a.arg for a in all_parameters(function.node.args)]
        if name.id in given:
            break
        function = function.parent
    if function is None or depth > _DEPTH or function.name == "<lambda>":
        return True
    if function.owner is not None and name.id == given[0] and function.name in _SETTERS:
        return False  # what is switched as a whole is asked by what it is in
    at = given.index(name.id) - (function.owner is not None)
    calls = inference.program.calls.get(function.name, ())
    if not calls:
        return _is_passed(inference, function)
    for other, call, _ in calls:
        value: ast.expr | None = next((k.value for k in call.keywords if k.arg == name.id), None)
        if at < 0:
            value = call.func.value if isinstance(call.func, ast.Attribute) else None
        elif value is None and at < len(call.args):
            value = call.args[at]
        if value is None:
            continue
        if not isinstance(value, ast.Name):
            if not isinstance(value, ast.Call) and _is_part(inference, other, value, depth + 1):
                return True
        elif _is_part(inference, other, value, depth + 1) or _is_given_part(
            inference, other, value, depth + 1
        ):
            return True
    return _is_passed(inference, function)


def _is_passed(inference: Inference, function: Function) -> bool:
    """Return whether a function is handed on as a value: ``net.apply(f)``."""
    for file in inference.program.files.values():
        for name in file.loads.get(function.name, ()):
            parent = file.parents.get(id(name))
            if not (isinstance(parent, ast.Call) and parent.func is name):
                return True
    return False


def _last(scene: Scene, node: ast.AST, setting: Container[int]) -> ast.stmt:
    """Return the last of the statements that set modes before anything can run.

    ``net.train()`` and the loop behind it that sets some parts back are one setting of modes.
    ``setting``: the ids of the nodes that set one.
    """
    statement = scene.statement(node)
    parent = scene.parent(statement)
    while isinstance(parent, (ast.For, ast.If, ast.With)) and not _runs(scene, parent):
        statement, parent = parent, scene.parent(parent)
    for following in graph_scope.statements_after(scene, statement):
        if _runs(scene, following) or not any(id(n) in setting for n in within(following)):
            break
        statement = following
    return statement


def _runs(scene: Scene, statement: ast.stmt) -> bool:
    """Return whether a statement may call a Module."""
    unit: ast.AST | None = statement
    while unit is not None and not isinstance(unit, (ast.FunctionDef, ast.AsyncFunctionDef)):
        unit = scene.parent(unit)
    inside = {id(n) for n in within(statement)}
    calls = graph_anew.running(scene, unit or scene.source.tree, "")
    return any(id(call) in inside for call in calls)
