"""In: a text that the name of a Module's class is held against. Out: the text for Cells' names.

A Linear is a Dense in MindSpore: ``"Linear" in m.__class__.__name__`` would hold of none, and what
stands below it would be left out in silence.
"""

from __future__ import annotations

import ast
from dataclasses import replace

from migrate.analysis.types import class_texts
from migrate.analysis.types.class_texts import Asked, of_layers
from migrate.records.outcomes import Edit, Outcome, Piece, Refusal
from migrate.rules.targets import class_name
from migrate.sites.forward_names import renamed
from migrate.sites.scene import Scene


def decide(scene: Scene, node: ast.Constant, name: str) -> Edit | Refusal:
    """The same text where it tells the same layers apart, else the Cell's own name."""
    site = scene.site(name, node)
    around: list[ast.AST | None] = [node]
    for _ in range(3):  # a list, a call, a comparison
        around.append(scene.parent(around[-1]) if around[-1] is not None else None)
    asked = [of_layers(n, scene.function(node), scene.table) for n in around if n is not None]
    question = next((a for some in asked for a in some if a.text is node), None)
    if question is None:
        why = f"{node.value!r} is {renamed(scene)[node.value]} in MindSpore, where a class is named"
        return Refusal(site, "API109", why, "test with isinstance", keep=True)
    pairs, text = _pairs(scene, question), str(node.value)
    if _tells(question, text, pairs):
        return Edit(site, Outcome.KEPT, None, name)
    other = dict(pairs).get(text, text)
    if _tells(question, other, pairs):
        return Edit(site, Outcome.CONVERTED, (repr(other),), name)
    if added := _beside(scene, question, around, pairs):
        return Edit(replace(site, span=added[0].span), Outcome.CONVERTED, added, name)
    wrong = ", ".join(f"{a} is {b}" for a, b in sorted(pairs) if a != b)
    why = f"{text!r} tells other classes apart in MindSpore: {wrong}"
    return Refusal(site, "API109", why, "test with isinstance")


def _beside(
    scene: Scene, question: Asked, around: list[ast.AST | None], pairs: tuple[tuple[str, str], ...]
) -> tuple[Piece, str] | tuple[()]:
    """Return the comparison with another beside it, for the Cells that it alone would miss."""
    missed = {b for a, b in pairs if question.meets(a) and not question.meets(b)}
    others = {b for a, b in pairs if not question.meets(a)}
    if missed & others or any(map(question.meets, others)):
        return ()
    for test in (n for n in around if isinstance(n, (ast.Compare, ast.Call))):
        for subject, text, how in class_texts.comparisons(test):
            if text is question.text and how != "is" and isinstance(subject, ast.Name):
                no = class_texts.is_negative(test)
                names = repr(sorted(missed)[0]) if len(missed) == 1 else repr(tuple(sorted(missed)))
                how = ("!=" if no else "==") if len(missed) == 1 else "not in" if no else "in"
                beside = f" {'and' if no else 'or'} {subject.id} {how} {names}"
                return Piece(scene.source.span(test)), beside
    return ()


def _pairs(scene: Scene, question: Asked) -> tuple[tuple[str, str], ...]:
    """The layers that the files spell (else those that are meant), with the names of the Cells.

    Classes of the program keep theirs.
    """
    program = scene.inference.program
    spelled = class_texts.named(scene.table, program)
    meant = {s for s in class_texts.layers(scene.table) if question.meets(s)}
    found = [(c.name, c.name) for c in program.classes.values()]
    for short in spelled if spelled & meant else spelled | meant:
        target = class_name(scene, f"torch.nn.{short}")
        if target is not None and target[1].to:
            found.append((short, target[0].rpartition(".")[2]))
    return tuple(found)


def _tells(question: Asked, text: str, pairs: tuple[tuple[str, str], ...]) -> bool:
    """Whether a text holds of the Cells of the same layers."""
    new = replace(question, text=ast.Constant(text))
    return all(new.meets(cell) == question.meets(layer) for layer, cell in pairs)


def evaluated(scene: Scene, node: ast.AST, name: str) -> Refusal:
    """The line stays: most texts name what the program has itself, or a number."""
    return Refusal(
        scene.site(name, node),
        "API111",
        "its text is not converted: nn.X is MindSpore's there, with other arguments and defaults",
        "look the text up in a dictionary of the classes that are meant",
        keep=True,
    )
