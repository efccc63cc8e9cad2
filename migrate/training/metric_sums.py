"""Find what the rounds of an evaluation loop sum up, from what, and what it measures.

The sums must begin with plain values right in front of the loop and change nowhere but in it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from migrate.syntax.lines import shares_line
from migrate.syntax.source import Source
from migrate.syntax.trees import dotted
from migrate.training.effects import binds, reads, uses
from migrate.training.metric_loops import (
    EvalRounds,
    begins_anew,
    binding,
    changed,
    local_names,
    names_of_the_file,
    read_later,
)

# (part of a variable's name, what it measures); the first that fits says it.
_WORDS = (
    ("top5", "Top5Accuracy"),
    ("top_5", "Top5Accuracy"),
    ("acc5", "Top5Accuracy"),
    ("correct5", "Top5Accuracy"),
    ("loss", "Loss"),
    ("acc", "Accuracy"),
    ("correct", "Accuracy"),
    ("right", "Accuracy"),
    ("hits", "Accuracy"),
    ("conf", "ConfusionMatrix"),
    ("matrix", "ConfusionMatrix"),
    ("iou", "MeanIoU"),
    ("inter", "MeanIoU"),
    ("union", "MeanIoU"),
    ("dice", "Dice"),
    ("psnr", "Psnr"),
    ("rmse", "SquaredError"),
    ("mse", "SquaredError"),
    ("mae", "AbsoluteError"),
    ("error", "Error"),
    ("pred", "Predictions"),
    ("score", "Score"),
)


def measures(sums: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """What is measured, each once. A sum has its own name first, then what is added to it.

    The first name where no word is known.
    """
    found = [next((w for w in map(_word, names) if w), "") for names in sums]
    known = tuple(dict.fromkeys(said for said in found if said))
    return known or ("".join(part.title() for part in sums[0][0].split("_")),)


def _word(name: str) -> str:
    return next((said for part, said in _WORDS if part in name.lower()), "")


def class_name(words: Sequence[str]) -> str:
    """``LossAndAccuracy``."""
    return "And".join(("".join(words[:-1]), words[-1])) if len(words) > 1 else words[0]


def key_of(words: Sequence[str]) -> str:
    """``loss_and_accuracy``: the name under which Model.eval gives it."""
    text = class_name(words).replace("IoU", "Iou")
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in text).lstrip("_")


@dataclass(frozen=True)
class Measured:
    """``begins`` binds ``sums`` in front of the loop, ``ends`` computes with them behind it.

    ``results`` are what is read after that (none where ``ends`` returns), ``received`` what the
    rounds read of the Cell's results and of the batch, ``held`` what they read of the function.
    """

    rounds: EvalRounds
    begins: tuple[ast.Assign, ...]
    ends: tuple[ast.stmt, ...]
    sums: tuple[str, ...]
    results: tuple[str, ...]
    received: tuple[str, ...]
    held: tuple[str, ...]


def measured(source: Source, rounds: EvalRounds) -> Measured | str:
    """The sums of an evaluation loop, or why it stays a loop."""
    received = _received(rounds)
    why = _alien(rounds, received) or _leftover(source, rounds)
    if why:
        return why
    sums = _sums(source, rounds)
    if {*sums} & _declared(_top(source, rounds)):
        return "a sum belongs to another function"
    begins: dict[ast.Assign, None] = {}
    for name in sums:
        start = binding(rounds.around, name, rounds.own)
        if start is None:
            return f"{name} does not begin with a plain value in front of it"
        begins[start] = None
    first = sorted(begins, key=lambda s: s.lineno)
    if binds(first, rounds.own) - {*sums}:
        return "what it sums up is bound together with something else"
    ends = _ends(source, rounds, set(sums))
    order = [n for s in first for n in _in_order(s)]
    results = _results(source, rounds, order, ends)
    if any(shares_line(source, s) for s in (*first, *ends)):
        return "several statements stand on one line"
    if not results and not (ends and isinstance(ends[-1], ast.Return)):
        return "nothing that it sums up is read behind it"
    held = _held(rounds, [*first, *rounds.body, *ends], {*sums, *received})
    wrong = _unheld(source, rounds, first, held)
    if wrong:
        return wrong
    return Measured(
        rounds, tuple(first), ends, tuple(dict.fromkeys(order)), results, received, held
    )


def _in_order(item: ast.Assign) -> list[str]:
    return [n.id for t in item.targets for n in ast.walk(t) if isinstance(n, ast.Name)]


def _received(rounds: EvalRounds) -> tuple[str, ...]:
    """What the rounds read of the Cell's results, then of the batch."""
    read = {u.name for s in rounds.body for u in uses(s, rounds.own)}
    return tuple(
        n for n in dict.fromkeys((*rounds.targets, *rounds.columns)) if n in read and n != "_"
    )


def _alien(rounds: EvalRounds, received: Sequence[str]) -> str:
    """Why what a round reads or writes cannot go through a Cell and a Metric."""
    for node in (n for s in rounds.body for n in ast.walk(s)):
        if isinstance(node, ast.JoinedStr):
            return "a round writes text"
        if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
            return f"it writes to {ast.unparse(node)}"
        if isinstance(node, ast.Call) and dotted(node.func).partition(".")[0] == rounds.own:
            return f"it calls {ast.unparse(node.func)}"
    given = {*rounds.given, *rounds.targets}
    for name in received:
        if name not in given and not _is_computed_with(rounds.body, name):
            return f"{name} may be no Tensor"
    return ""


def _is_computed_with(body: Sequence[ast.stmt], name: str) -> bool:
    """Whether something is done with the name that only a Tensor can do."""
    parts: list[ast.AST] = []
    for node in (n for s in body for n in ast.walk(s)):
        if isinstance(node, ast.Attribute):
            parts.append(node.value)
        elif isinstance(node, ast.Compare):
            parts += [node.left, *node.comparators]
        elif isinstance(node, ast.BinOp):
            parts += [node.left, node.right]
    return any(isinstance(p, ast.Name) and p.id == name for p in parts)


def _top(source: Source, rounds: EvalRounds) -> ast.AST:
    return rounds.scope or source.tree


def _declared(top: ast.AST) -> set[str]:
    wide = (n for n in ast.walk(top) if isinstance(n, (ast.Global, ast.Nonlocal)))
    return {name for item in wide for name in item.names}


def _leftover(source: Source, rounds: EvalRounds) -> str:
    """What of the last round is read behind the loop."""
    names = [*rounds.targets, *rounds.columns, rounds.index]
    for name in dict.fromkeys(n for n in names if n and n != "_"):
        if read_later(_top(source, rounds), rounds.around, name):
            return f"{name} of the last round is read behind it"
    return ""


def _sums(source: Source, rounds: EvalRounds) -> list[str]:
    """The names that rounds change for the next round, or for what stands behind the loop."""
    named = {*rounds.targets, *rounds.columns}
    names = sorted({n for s in rounds.body for n in changed(s, rounds.own)} - named)
    top = _top(source, rounds)
    return [
        n for n in names if read_later(top, rounds.around, n) or not begins_anew(rounds.body, n)
    ]


def _ends(source: Source, rounds: EvalRounds, sums: set[str]) -> tuple[ast.stmt, ...]:
    """The statements right behind the loop that compute with the sums and nothing else."""
    block, item, owner = rounds.around[0]
    behind = block[block.index(item) + 1 :]
    if not behind and isinstance(owner, ast.With):
        block, item, _ = rounds.around[1]
        behind = block[block.index(item) + 1 :]
    wide = names_of_the_file(source.tree) - local_names(rounds.scope)
    known, found = set(sums), []
    for item in behind:
        returns = isinstance(item, ast.Return)
        simple = isinstance(item, ast.Assign) and all(map(_is_name, item.targets))
        simple = simple and not binds([item], rounds.own) & sums
        value = item.value if isinstance(item, (ast.Return, ast.Assign)) else None
        names = reads([value], rounds.own) if value is not None else set()
        fits = (returns or simple) and bool(names & known) and not names - known - wide
        if not fits or any(isinstance(n, ast.JoinedStr) for n in ast.walk(item)):
            break
        found.append(item)
        known |= binds([item], rounds.own)
    return tuple(found) if rounds.scope is not None else ()


def _is_name(target: ast.expr) -> bool:
    if isinstance(target, (ast.Tuple, ast.List)):
        return all(map(_is_name, target.elts))
    return isinstance(target, ast.Name)


def _results(
    source: Source, rounds: EvalRounds, sums: Sequence[str], ends: Sequence[ast.stmt]
) -> tuple[str, ...]:
    """What is read of the sums, and of what was computed with them, behind all that."""
    if ends and isinstance(ends[-1], ast.Return):
        return ()
    around = rounds.around
    if ends and ends[0] not in around[0][0]:
        around = around[1:]
    around = ((around[0][0], ends[-1], around[0][2]), *around[1:]) if ends else around
    names = [*sums, *(n for s in ends if isinstance(s, ast.Assign) for n in _in_order(s))]
    top = _top(source, rounds)
    return tuple(n for n in dict.fromkeys(names) if read_later(top, around, n))


def _held(rounds: EvalRounds, items: Iterable[ast.stmt], known: set[str]) -> tuple[str, ...]:
    """What the function binds, and a Metric reads."""
    every = list(items)
    local = local_names(rounds.scope) | {n for n in reads(every, rounds.own) if "." in n}
    bound = binds(every, rounds.own)
    return tuple(sorted((reads(every, rounds.own) & local) - known - bound))


def _unheld(
    source: Source, rounds: EvalRounds, begins: Sequence[ast.stmt], held: Sequence[str]
) -> str:
    """Why a Metric cannot be given what it reads when it is made."""
    if rounds.own and rounds.own in held:
        return f"a round reads {rounds.own}"
    items = [*begins, *rounds.body]
    local, wide = local_names(rounds.scope), names_of_the_file(source.tree)
    unknown = reads(items, rounds.own) - local - wide - binds(items, rounds.own)
    unknown -= {*rounds.columns, *rounds.targets, *held}
    if unknown:
        return f"{min(unknown)} is bound elsewhere"
    first = min((s.lineno for s in begins), default=rounds.loop.lineno)
    last = rounds.loop.end_lineno or rounds.loop.lineno
    for node in ast.walk(_top(source, rounds)):
        if not isinstance(node, (ast.Name, ast.Attribute)) or isinstance(node.ctx, ast.Load):
            continue
        if first <= node.lineno <= last and dotted(node) in held:
            return f"{dotted(node)} changes"
    return ""
