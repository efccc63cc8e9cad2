"""Propose what a flagged place may become: what was chosen before, rows, functions of one name.

A candidate is a draft for a person: nothing here is proved, and each says where it comes from.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from migrate.mapping.calls import BoundCall, bind
from migrate.mapping.row import Row
from migrate.mapping.table import Table
from migrate.records.choices import Asked, Choice, Form

_SPACES = ("mindspore.ops", "mindspore.mint", "mindspore.nn", "mindspore.mint.nn")


@dataclass(frozen=True)
class Candidate:
    """What may be chosen, and where it comes from."""

    form: Form
    becomes: str
    source: str


def candidates(asked: Asked, rows: Table, earlier: Sequence[Choice]) -> tuple[Candidate, ...]:
    """Return drafts for a place, those that a person has made before first; each text once."""
    found = [
        *_chosen(asked, earlier),
        *_receivers(asked),
        *(_of_rows(asked, rows) if "expression" in asked.forms else ()),
        *(_of_one_name(asked, rows) if "expression" in asked.forms else ()),
    ]
    if "statement" in asked.forms and asked.key.statement == " ".join(asked.expression.split()):
        found.append(Candidate("statement", "pass", "takes the call away"))
    if "keep" in asked.forms:
        found.append(Candidate("keep", "", "the text as it stands"))
    return tuple({(one.form, one.becomes): one for one in reversed(found)}.values())[::-1]


def _chosen(asked: Asked, earlier: Sequence[Choice]) -> Iterator[Candidate]:
    """What was chosen for the same name, with the arguments of this place."""
    for choice in reversed(earlier):
        if choice.name != asked.key.name or choice.form not in asked.forms:
            continue
        if choice.form == "expression":
            text = adapted(choice.was, choice.becomes, asked.expression)
        elif choice.form == "statement":
            text = choice.becomes if choice.statement == asked.key.statement else ""
        else:
            text = choice.becomes
        if text or choice.form == "keep":
            where = f"{choice.file}: {choice.within}" if choice.within else choice.file
            yield Candidate(choice.form, text, f"chosen before in {where}")


def adapted(was: str, becomes: str, now: str) -> str:
    """Return what a call becomes if an alike one became something; "" where that is not clear."""
    if was == now:
        return becomes
    try:
        old, new = (ast.parse(text, mode="eval").body for text in (was, now))
        made = ast.parse(becomes, mode="eval").body
    except (SyntaxError, ValueError):
        return ""
    first, second = _arguments(old), _arguments(new)
    if not first or set(first) != set(second):
        return ""
    instead = {ast.dump(first[key]): second[key] for key in first}
    changed = {text for key, text in ((k, ast.dump(first[k])) for k in first)
               if ast.dump(second[key]) != text}  # fmt: skip
    put = _Put(instead)
    result = put.visit(made)
    return ast.unparse(result) if changed <= put.done else ""


def _arguments(node: ast.expr) -> dict[str, ast.expr]:
    """Return the receiver and the arguments of a call by place or name."""
    if not isinstance(node, ast.Call) or any(isinstance(a, ast.Starred) for a in node.args):
        return {}
    found: dict[str, ast.expr] = {str(n): value for n, value in enumerate(node.args)}
    found |= {keyword.arg or "**": keyword.value for keyword in node.keywords}
    if isinstance(node.func, ast.Attribute):
        found["self"] = node.func.value
    return found


class _Put(ast.NodeTransformer):
    """Puts the new arguments for the old ones, and knows which were found."""

    def __init__(self, instead: dict[str, ast.expr]) -> None:
        self.instead = instead
        self.done: set[str] = set()

    def visit(self, node: ast.AST) -> ast.AST:
        text = ast.dump(node) if isinstance(node, ast.expr) else ""
        if text in self.instead:
            self.done.add(text)
            return self.instead[text]
        return super().generic_visit(node)


def _receivers(asked: Asked) -> Iterator[Candidate]:
    if "receiver" in asked.forms:
        yield Candidate("receiver", "Tensor", f"{asked.receiver} is a Tensor: it converts as one")
        yield Candidate("receiver", "plain", f"{asked.receiver} is nothing of torch: it stays")


def _call(asked: Asked) -> ast.Call | None:
    try:
        node = ast.parse(asked.expression, mode="eval").body
    except (SyntaxError, ValueError):
        return None
    return node if isinstance(node, ast.Call) else None


def _of_rows(asked: Asked, rows: Table) -> Iterator[Candidate]:
    """The templates of rows of this name, though their conditions are not known to hold."""
    call = _call(asked)
    for row in rows.rows(asked.key.name) if call is not None else ():
        text = _filled(row, call) if row.to and "*" not in row.key else ""
        if text:
            yield Candidate("expression", text, f"the row {row.key}, if its conditions hold")


def _filled(row: Row, call: ast.Call | None) -> str:
    if call is None:
        return ""
    for signature in row.signatures:
        bound = bind(call.args, call.keywords, signature)
        if not isinstance(bound, BoundCall):
            continue
        values = {k: v for k, v in bound.values.items() if isinstance(v, ast.expr)}
        if isinstance(call.func, ast.Attribute) and row.kind == "method":
            values["self"] = call.func.value
        defaults = {p.name: p.default for p in signature.params if p.default is not None}
        template = ast.parse(row.to, mode="eval").body
        if not isinstance(template, ast.Call):
            return ""
        template.keywords = [
            k for k in template.keywords
            if not (isinstance(k.value, ast.Name) and k.value.id in defaults
                    and k.value.id not in values)
        ]  # fmt: skip
        return ast.unparse(_Named(values, defaults).visit(template))
    return ""


class _Named(ast.NodeTransformer):
    """Puts arguments for the names of a template, defaults for those that are not given."""

    def __init__(self, values: dict[str, ast.expr], defaults: dict[str, str]) -> None:
        self.values, self.defaults = values, defaults

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id in self.values:
            return self.values[node.id]
        default = self.defaults.get(node.id)
        return ast.parse(default, mode="eval").body if default is not None else node


def _of_one_name(asked: Asked, rows: Table) -> Iterator[Candidate]:
    """What MindSpore has under the same last name."""
    call = _call(asked)
    last = asked.key.name.rpartition(".")[2]
    if call is None or not last.isidentifier():
        return
    given = [ast.unparse(a) for a in call.args]
    given += [f"{k.arg}={ast.unparse(k.value)}" if k.arg else f"**{ast.unparse(k.value)}"
              for k in call.keywords]  # fmt: skip
    if asked.key.name.startswith("torch.Tensor.") and isinstance(call.func, ast.Attribute):
        given.insert(0, ast.unparse(call.func.value))
    for space in _SPACES:
        full = f"{space}.{last}"
        if rows.mindspore.kind(full):
            text = f"{full}({', '.join(given)})"
            yield Candidate("expression", text, "of the same name: compare the signatures")
