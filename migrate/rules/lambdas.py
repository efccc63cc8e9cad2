"""In: a lambda that a Cell is going to call. Out: a function with a name, before the statement.

Graph mode reads the line that a lambda stands on and parses it by itself, so it compiles only one
that is assigned directly. A function of the same text compiles everywhere.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from migrate.analysis.passing import arguments
from migrate.analysis.types.kinds import is_all, ordered
from migrate.codegen.substitution import piece
from migrate.records.outcomes import Edit, Outcome, Piece, Span
from migrate.rules.called_from import functions_of
from migrate.rules.graph.scope import compiled
from migrate.rules.registry import rewrites
from migrate.sites.references import direct_name
from migrate.sites.scene import Scene
from migrate.syntax.lines import (
    above,
    begins_line,
    blank_lines,
    indent_of,
    opens_block,
)
from migrate.syntax.trees import all_names, defaults, last_name, stored_names

_CARRIERS = (ast.keyword, ast.List, ast.Tuple, ast.Dict, ast.IfExp, ast.Starred)
_SCOPES = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_UNMOVABLE = (ast.NamedExpr, ast.Yield, ast.YieldFrom, ast.Await)
_HOOKS = ("register_forward_hook", "register_forward_pre_hook", "register_full_backward_hook")


@rewrites()
def named(scene: Scene) -> Iterator[Edit]:
    """Yield functions for lambdas that are kept and call torch."""
    taken = set(scene.file.names)
    found: dict[int, list[tuple[ast.Lambda, str]]] = {}
    for node in scene.file.of(ast.Lambda):
        wish = _wish(scene, node)
        if wish and _is_movable(scene, node):
            numbered = (f"{wish}_{n}" for n in range(2, 99))
            name = wish if wish not in taken else next(n for n in numbered if n not in taken)
            taken.add(name)
            found.setdefault(scene.statement(node).lineno, []).append((node, name))
            yield _edit(scene, node, scene.source.span(node), (name,))
    for some in found.values():
        yield _definitions(scene, some)


def is_named(scene: Scene, node: ast.Lambda) -> bool:
    """Return whether a lambda becomes a function, or is assigned alone, as graph mode wants it."""
    parent = scene.parent(node)
    alone = isinstance(parent, ast.Assign) and parent.value is node and len(parent.targets) == 1
    return alone or (bool(_wish(scene, node)) and _is_movable(scene, node))


def _wish(scene: Scene, node: ast.Lambda) -> str:
    """The name it should have; "" where it stays: nothing tells that a Cell gets it."""
    child: ast.AST = node
    parent = scene.parent(node)
    keyword = ""
    while isinstance(parent, _CARRIERS):
        keyword = parent.arg or keyword if isinstance(parent, ast.keyword) else keyword
        child, parent = parent, scene.parent(parent)
    if isinstance(parent, ast.Call) and parent.func is not child:
        return _argument_name(scene, parent, child, keyword) or _passed_name(
            scene, parent, child, keyword, node
        )
    if isinstance(parent, ast.Assign) and child is not node and parent.value is child:
        return _stored_name(scene, parent, node) or _called_name(scene, parent, node)
    if isinstance(parent, ast.Assign) and parent.value is node and len(parent.targets) > 1:
        return _stored_name(scene, parent, node)
    return ""


def _called_name(scene: Scene, statement: ast.Assign, node: ast.Lambda) -> str:
    """After the variable or key that holds it, where compiled code calls it: ``acts_lin``."""
    function = scene.file.functions.get(id(node))
    target = statement.targets[0]
    if function is None or not isinstance(target, ast.Name) or len(statement.targets) > 1:
        return ""
    if function.key not in compiled(scene.inference):
        return ""
    held, key = scene.parent(node), ""
    if isinstance(held, ast.Dict) and node in held.values:
        known = held.keys[held.values.index(node)]
        key = str(known.value) if isinstance(known, ast.Constant) else ""
    name = f"{target.id.lower()}_{key if key.isidentifier() else 'fn'}"
    return name.lstrip("_")


def _argument_name(scene: Scene, call: ast.Call, child: ast.AST, keyword: str) -> str:
    """After the class that is called and its parameter: ``residual_fn``."""
    func = call.func
    if isinstance(func, ast.Attribute) and func.attr in _HOOKS:
        return "hook" if is_all(scene.kind(func.value), "Module") else ""
    if not is_all(scene.kind(call), "Module"):
        return ""
    name = last_name(func)
    for atom in scene.kind(func):
        owner = scene.inference.class_of(atom.name) if atom.kind == "class" else None
        method = owner.methods.get("__init__") if owner else None
        places = [p.arg for p in method.parameters[1:]] if method else []
        if not keyword and child in call.args and call.args.index(child) < len(places):
            keyword = places[call.args.index(child)]
    return f"{_snake(name)}_{keyword or 'function'}".strip("_")


def _passed_name(
    scene: Scene, call: ast.Call, child: ast.AST, keyword: str, node: ast.Lambda
) -> str:
    """After the parameter of the program's function that compiled code passes it to: ``message``.

    Beside such a lambda the compiler fails, or drops calls that are made for their effect.
    """
    around = scene.function(call)
    if around is None or around.key not in compiled(scene.inference):
        return ""
    for atom in ordered(scene.kind(call.func)):
        for function in functions_of(scene.inference, atom):
            for name, value in arguments(function, call, atom.kind != "function"):
                if value is child or (keyword and name == keyword):
                    return name if name not in all_names(node) else f"{name}_of"
    return ""


def _stored_name(scene: Scene, statement: ast.Assign, node: ast.Lambda) -> str:
    """What a Module keeps in ``self.name``, or a table of the file whose lambdas use torch."""
    owner, target = scene.owner(node), statement.targets[0]
    function = scene.function(node)
    if isinstance(target, ast.Attribute) and owner is not None and scene.is_module_class(owner):
        return f"{_snake(owner.name)}_{target.attr}"
    if function is None and owner is None and isinstance(target, ast.Name):
        uses = any(direct_name(scene, n) for n in ast.walk(node.body))
        return f"{target.id.lower()}_function" if uses else ""
    return ""


def _snake(name: str) -> str:
    """``PreNormResidual`` is ``pre_norm_residual``, ``MLP`` is ``mlp``."""
    pairs = zip(" " + name, name, strict=False)
    text = "".join(f"_{b}" if b.isupper() and (a.islower() or a.isdigit()) else b for a, b in pairs)
    return text.lower().strip("_")


def _is_movable(scene: Scene, node: ast.Lambda) -> bool:
    """Whether its text means the same before the statement, and something can stand there."""
    parts = list(ast.walk(node))
    if any(isinstance(n, _UNMOVABLE) for n in parts):
        return False
    defaults = [*node.args.defaults, *(d for d in node.args.kw_defaults if d is not None)]
    if not all(isinstance(d, (ast.Constant, ast.Name)) for d in defaults):
        return False
    used = {n.id for n in parts if isinstance(n, ast.Name)}
    statement = scene.statement(node)
    current = scene.parent(node)
    while current is not None and current is not statement:
        if isinstance(current, ast.Lambda):
            return False
        if isinstance(current, _SCOPES) and used & stored_names(current):
            return False
        current = scene.parent(current)
    return _has_room(scene, statement)


def _has_room(scene: Scene, statement: ast.stmt) -> bool:
    """The statement begins a line, in a body that is no class's."""
    defines = isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
    in_class = isinstance(scene.parent(statement), ast.ClassDef)
    return begins_line(scene.source, statement) and not defines and not in_class


def _definitions(scene: Scene, some: list[tuple[ast.Lambda, str]]) -> Edit:
    """The functions of one statement, with the blank lines that a person would leave."""
    source, statement = scene.source, scene.statement(some[0][0])
    start, indent = above(source, statement), indent_of(source, statement)
    wanted = 1 if scene.function(statement) else 2
    blank = blank_lines(source, start)
    opens = opens_block(source, start) and wanted == 1
    end = source.newline
    parts: list[str | Piece] = [end * max(0, wanted - blank) if blank >= 0 and not opens else ""]
    for node, name in some:
        given = _parameters(scene, node.args)
        body = piece(source, node.body)
        parts += [f"{indent}def {name}(", *given, f"):{end}{indent}    return ", body]
        parts.append(end * (wanted + 1))
    return _edit(scene, some[0][0], Span(start, start), tuple(parts))


def _parameters(scene: Scene, args: ast.arguments) -> list[str | Piece]:
    """Return the parameters of a lambda, with their defaults as pieces of the source."""
    given = {id(a): d for a, d in defaults(args)}
    first, last = [*args.posonlyargs, *args.args], args.kwonlyargs
    named = [(a, "") for a in first]
    if args.vararg is not None:
        named.append((args.vararg, "*"))
    named += [(a, "") for a in last]
    if args.kwarg is not None:
        named.append((args.kwarg, "**"))
    parts: list[str | Piece] = []
    for place, (one, star) in enumerate(named):
        bare = last and one is last[0] and args.vararg is None
        slash = args.posonlyargs and place == len(args.posonlyargs)
        parts.append(
            f"{', ' * bool(place)}{'/, ' * bool(slash)}{'*, ' * bool(bare)}{star}{one.arg}"
        )
        if id(one) in given:
            parts += ["=", piece(scene.source, given[id(one)])]
    return [*parts, ", /"] if len(named) == len(args.posonlyargs) > 0 else parts


def _edit(scene: Scene, node: ast.Lambda, span: Span, parts: tuple[str | Piece, ...]) -> Edit:
    return Edit(scene.site("lambda", node).at(span), Outcome.CONVERTED, parts)
