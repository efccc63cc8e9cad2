"""In: a row and its case. Out: its first calls with one more argument each: what nobody wrote.

A template that drops an argument, or sends it to the wrong place, shows as soon as that argument
has another value than its default. Torch is the oracle: what it refuses tells nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from migrate.facts import Param, Signature
from migrate.row import POLICY_DROP, POLICY_REFUSE, Case, Row

# Arguments that decide nothing here, and those that torch itself gave up.
LEFT_OUT = POLICY_DROP | POLICY_REFUSE | {"size_average", "reduce", "_stacklevel"}
BASES = 2
TEXTS: dict[str, tuple[str, ...]] = {
    "mean": ("'sum'", "'none'"),
    "zeros": ("'reflect'",),
    "constant": ("'reflect'",),
    "none": ("'tanh'",),
    "nearest": ("'bilinear'",),
    "linear": ("'lower'",),
    "tanh": ("'relu'",),
}
NAMED: dict[str, tuple[str, ...]] = {
    "norm": ("'ortho'",),
    "rounding_mode": ("'floor'", "'trunc'"),
    "indexing": ("'xy'",),
    "side": ("'right'",),
    "dim": ("0", "-1"),
    "dtype": ("torch.float64",),
    "stride": ("1",),
    "min": ("0.25",),
    "max": ("0.25",),
    "correction": ("0",),
    "unbiased": ("False",),
    "n": ("4",),
}
TYPED: dict[str, tuple[str, ...]] = {
    "bool": ("True",),
    "int": ("2",),
    "float": ("0.5",),
    "Scalar": ("0.5",),
}


def generated_calls(row: Row, case: Case) -> tuple[tuple[str, str], ...]:
    """(what was added, the call) for each optional argument that the first calls do not give.

    An argument counts as open even where another call of the case gives it: written calls are
    often such that it makes no difference there.
    """
    if case.source or not row.signatures:
        return ()
    found: dict[str, str] = {}
    for text in case.calls[:BASES]:
        for added, call in _with_one_more(row, text):
            if call not in case.calls:
                found.setdefault(call, added)
    return tuple((added, call) for call, added in found.items())


def _with_one_more(row: Row, text: str) -> Iterator[tuple[str, str]]:
    tree = ast.parse(text, mode="eval")
    found = _call_of(row, tree)
    if found is None or any(isinstance(one, ast.Starred) for one in found.args):
        return
    given = {word.arg for word in found.keywords}
    for param in _optional(row.signatures[0], found.args, given):
        for value in alternatives(param):
            found.keywords.append(ast.keyword(param.name, ast.parse(value, mode="eval").body))
            yield f"{param.name}={value}", ast.unparse(tree)
            found.keywords.pop()


def _call_of(row: Row, tree: ast.AST) -> ast.Call | None:
    """The only call of the row's name; None where there are several or none."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    method = row.name.rpartition(".")[2] if row.name.startswith("torch.Tensor.") else ""
    hits = [
        call
        for call in calls
        if ast.unparse(call.func) == row.name
        or (method and isinstance(call.func, ast.Attribute) and call.func.attr == method)
    ]
    return hits[0] if len(hits) == 1 else None


def _optional(
    signature: Signature, positional: Sequence[ast.expr], given: set[str | None]
) -> Iterator[Param]:
    for number, param in enumerate(signature.params):
        left_out = param.name in LEFT_OUT or param.name in given
        if param.default is None or param.kind not in ("any", "kw") or left_out:
            continue
        if param.kind == "kw" or number >= len(positional):
            yield param


def alternatives(param: Param) -> tuple[str, ...]:
    """Other values than the default, as source text; none where nothing sensible is known."""
    try:
        default = ast.literal_eval(param.default or "")
    except (ValueError, SyntaxError):
        return ()
    if isinstance(default, bool):
        return (str(not default),)
    if isinstance(default, int):
        return ("0" if default else "1",) if "dim" in param.name else (str(default + 1),)
    if isinstance(default, float):
        return (str(default / 2 + 0.125 if abs(default) < 1 else default + 0.5),)
    if isinstance(default, str):
        return TEXTS.get(default, ())
    if isinstance(default, tuple):
        return NAMED["dim"] if param.name == "dim" else ()
    return NAMED.get(param.name) or TYPED.get(param.type, ())
