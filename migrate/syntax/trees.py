"""Walk syntax trees: the nodes below one, the parameters of a function, quoted annotations."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from migrate.syntax.source import Source

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


# what these fields hold has no place of its own, or is no node
_PLAIN = frozenset(
    "id attr ctx op ops asname level type_comment simple is_async conversion".split()
)


# most nodes are of these two, and hold no others
LEAVES = frozenset((ast.Name, ast.Constant))


# by kind of node: the fields that may hold nodes
_HOLDING = {
    kind: tuple(f for f in kind._fields if f not in _PLAIN and kind is not ast.Constant)
    for kind in vars(ast).values()
    if isinstance(kind, type) and issubclass(kind, ast.AST)
}


def _none(node: Any) -> list[ast.AST]:
    return []


def _of_arguments(node: ast.arguments) -> list[ast.AST]:
    found: list[ast.AST | None] = [*node.posonlyargs, *node.args, node.vararg, *node.kwonlyargs]
    found += [*node.kw_defaults, node.kwarg, *node.defaults]
    return [*filter(None, found)]


# most nodes are of a few kinds, whose fields are always there; others are looked through
_BELOW: dict[type[ast.AST], Callable[[Any], list[ast.AST]]] = {
    ast.Name: _none,
    ast.Constant: _none,
    ast.alias: _none,
    ast.Attribute: lambda node: [node.value],
    ast.Call: lambda node: [node.func, *node.args, *node.keywords],
    ast.keyword: lambda node: [node.value],
    ast.Assign: lambda node: [*node.targets, node.value],
    ast.Expr: lambda node: [node.value],
    ast.Starred: lambda node: [node.value],
    ast.Tuple: lambda node: [*node.elts],
    ast.List: lambda node: [*node.elts],
    ast.Subscript: lambda node: [node.value, node.slice],
    ast.BinOp: lambda node: [node.left, node.right],
    ast.BoolOp: lambda node: [*node.values],
    ast.UnaryOp: lambda node: [node.operand],
    ast.Compare: lambda node: [node.left, *node.comparators],
    ast.arg: lambda node: [] if node.annotation is None else [node.annotation],
    ast.Return: lambda node: [] if node.value is None else [node.value],
    ast.AugAssign: lambda node: [node.target, node.value],
    ast.IfExp: lambda node: [node.test, node.body, node.orelse],
    ast.JoinedStr: lambda node: [*node.values],
    ast.FormattedValue: lambda node: [node.value, *filter(None, (node.format_spec,))],
    ast.Slice: lambda node: [*filter(None, (node.lower, node.upper, node.step))],
    ast.Dict: lambda node: [*filter(None, node.keys), *node.values],
    ast.comprehension: lambda node: [node.target, node.iter, *node.ifs],
    ast.ListComp: lambda node: [node.elt, *node.generators],
    ast.GeneratorExp: lambda node: [node.elt, *node.generators],
    ast.Lambda: lambda node: [node.args, node.body],
    ast.arguments: _of_arguments,
}


def children(node: ast.AST) -> list[ast.AST]:
    """The nodes right below a node; contexts and operators, which have no place, are left out."""
    below = _BELOW.get(type(node))
    return below(node) if below is not None else _listed(node)


def _listed(node: ast.AST) -> list[ast.AST]:
    found: list[ast.AST] = []
    for name in _HOLDING[type(node)]:
        value = getattr(node, name, None)
        if isinstance(value, list):
            found += [v for v in value if isinstance(v, ast.AST) and v._fields]
        elif isinstance(value, ast.AST) and value._fields:
            found.append(value)
    return found


def within(node: ast.AST) -> list[ast.AST]:
    """A node and all nodes below it, in the order of ``ast.walk``, without what has no place.

    It takes a third of the time of ``ast.walk``, of whose nodes every third is a context.
    """
    found = [node]
    for one in found:
        if type(one) not in LEAVES:
            found += children(one)
    return found


class ByClass:
    """Some nodes by their class; those of several classes are given in the order of all."""

    def __init__(self, nodes: Iterable[ast.AST]) -> None:
        self._found: dict[type[ast.AST], list[tuple[int, ast.AST]]] = {}
        for place, node in enumerate(nodes):
            self._found.setdefault(type(node), []).append((place, node))

    def of(self, *kinds: type[ast.AST]) -> tuple[ast.AST, ...]:
        """Return the nodes of some classes."""
        return tuple(n for _, n in sorted(p for kind in kinds for p in self._found.get(kind, ())))


def all_names(node: ast.AST) -> set[str]:
    """Return the names of variables that an expression or statement reads, binds or deletes."""
    return {n.id for n in within(node) if isinstance(n, ast.Name)}


def loaded_names(node: ast.AST) -> set[str]:
    """Return the names of variables that an expression or statement reads."""
    return {n.id for n in within(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}


def stored_names(node: ast.AST) -> set[str]:
    """Return the names of variables that an expression or statement binds."""
    return {n.id for n in within(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


def is_none(node: ast.AST | None) -> bool:
    """Return whether an expression is written ``None``."""
    return isinstance(node, ast.Constant) and node.value is None


def targets_of(item: ast.Assign | ast.AnnAssign | ast.AugAssign) -> list[ast.expr]:
    """Return the targets of an assignment."""
    return item.targets if isinstance(item, ast.Assign) else [item.target]


def values_of(node: ast.expr) -> list[ast.expr]:
    """Return the values of a tuple that is written down; of anything else, itself."""
    return node.elts if isinstance(node, ast.Tuple) else [node]


def all_parameters(arguments: ast.arguments) -> list[ast.arg]:
    """Every parameter: by place, by keyword, then *args and **kwargs."""
    found = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    return found + [a for a in (arguments.vararg, arguments.kwarg) if a is not None]


def defaults(arguments: ast.arguments) -> list[tuple[ast.arg, ast.expr]]:
    """Return the parameters that have a default, and their defaults."""
    plain = [*arguments.posonlyargs, *arguments.args]
    pairs = [*zip(plain[len(plain) - len(arguments.defaults) :], arguments.defaults, strict=True)]
    by_name = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    return [*pairs, *((a, d) for a, d in by_name if d is not None)]


def is_super(node: ast.AST) -> bool:
    """``super()`` or ``super(Class, self)``"""
    return isinstance(node, ast.Call) and getattr(node.func, "id", "") == "super"


def dotted(node: ast.AST) -> str:
    """Return ``a.b.c`` for such a chain of attributes of a name; "" for anything else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


def last_name(node: ast.AST | None) -> str:
    """Return ``c`` for ``c`` and for ``x.c``, whatever x is; "" for anything else."""
    return node.attr if isinstance(node, ast.Attribute) else str(getattr(node, "id", ""))


# What an annotation may hold; anything else (a call) stays the string that it is.
_IN_ANNOTATIONS = (ast.Name, ast.Attribute, ast.Subscript, ast.BinOp, ast.BitOr, ast.Tuple,
                   ast.List, ast.Constant, ast.Load)  # fmt: skip


def unquoted(source: Source, node: ast.expr) -> ast.expr:
    """``"torch.Tensor"`` as the expression between the quotes; the quotes are not part of it.

    Edits of the expression leave the quotes where they are, so that it stays a forward reference.
    """
    if isinstance(node, ast.Constant):
        return _expression(source, node) or node
    if isinstance(node, ast.Subscript):
        if last_name(node.value) != "Literal":
            node.slice = unquoted(source, node.slice)
    elif isinstance(node, (ast.Tuple, ast.List)):
        node.elts = [unquoted(source, item) for item in node.elts]
    elif isinstance(node, ast.BinOp):
        node.left, node.right = unquoted(source, node.left), unquoted(source, node.right)
    return node


def _expression(source: Source, node: ast.Constant) -> ast.expr | None:
    """The expression in a string of one line without prefix and escapes."""
    text = node.value
    if not isinstance(text, str) or not text.strip() or node.lineno != node.end_lineno:
        return None
    written = source.text_of(node)
    quotes = next((q for q in ('"""', "'''", '"', "'") if written == f"{q}{text}{q}"), "")
    if not quotes or text != text.strip():
        return None
    try:
        tree = ast.parse(text, mode="eval")
    except (SyntaxError, ValueError):
        return None
    if not all(isinstance(n, _IN_ANNOTATIONS) for n in ast.walk(tree.body)):
        return None
    column = node.col_offset + len(quotes)
    for part in ast.walk(tree.body):
        if isinstance(part, ast.expr):
            part.lineno = part.end_lineno = node.lineno
            part.col_offset += column
            part.end_col_offset = (part.end_col_offset or 0) + column
    return unquoted(source, tree.body)


def unpacked(target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield the targets of an assignment with the values that they get, where those are written."""
    if not isinstance(target, ast.Tuple):
        yield target, value
        return
    if not isinstance(value, ast.Tuple) or len(value.elts) != len(target.elts):
        return
    if not any(isinstance(e, ast.Starred) for e in (*target.elts, *value.elts)):
        for one, held in zip(target.elts, value.elts, strict=True):
            yield from unpacked(one, held)
