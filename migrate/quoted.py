"""In: an annotation. Out: the same, what stands in quotes in it as expressions."""

from __future__ import annotations

import ast

from migrate.source import Source

# What an annotation may hold; anything else (a call) stays the string that it is.
_PLAIN = (ast.Name, ast.Attribute, ast.Subscript, ast.BinOp, ast.BitOr, ast.Tuple, ast.List,
          ast.Constant, ast.Load)  # fmt: skip


def unquoted(source: Source, node: ast.expr) -> ast.expr:
    """``"torch.Tensor"`` as the expression between the quotes; the quotes are not part of it.

    Edits of the expression leave the quotes where they are, so that it stays a forward reference.
    """
    if isinstance(node, ast.Constant):
        return _expression(source, node) or node
    if isinstance(node, ast.Subscript):
        head = node.value
        name = head.attr if isinstance(head, ast.Attribute) else getattr(head, "id", "")
        if name != "Literal":
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
    if not all(isinstance(n, _PLAIN) for n in ast.walk(tree.body)):
        return None
    column = node.col_offset + len(quotes)
    for part in ast.walk(tree.body):
        if isinstance(part, ast.expr):
            part.lineno = part.end_lineno = node.lineno
            part.col_offset += column
            part.end_col_offset = (part.end_col_offset or 0) + column
    return unquoted(source, tree.body)
