"""Write what one line cannot say: statements that belong together, and whole programs."""

from __future__ import annotations

import importlib
import random
import re
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from programs import Program
from writer import Misfit

if TYPE_CHECKING:
    from statements import Body, Lines

_toml = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
_CHOICE = re.compile(r"<<(.*?)>>", re.DOTALL)


@cache
def scenes() -> dict[str, list[dict[str, Any]]]:
    text = Path(__file__).with_name("scenes.toml").read_text(encoding="utf-8")
    found: dict[str, list[dict[str, Any]]] = _toml.loads(text)
    return found


def drawn(draws: random.Random, text: str) -> str:
    """Return the text with one alternative at each choice, its lines indented like the first."""

    def chosen(match: re.Match[str]) -> str:
        line = text[text.rfind("\n", 0, match.start()) + 1 : match.start()]
        indent = line[: len(line) - len(line.lstrip())]
        return draws.choice(match.group(1).split("||")).replace("\\n", "\n" + indent)

    return "\n".join(line.rstrip() for line in _CHOICE.sub(chosen, text).strip("\n").split("\n"))


def scene(body: Body, depth: int) -> Lines:
    """Statements of one scene; its definitions precede the function."""
    writer, draws = body.w, body.draws
    made = draws.choice(scenes()["statements"])
    names = {name: writer.fresh() for name in "ABC"}
    for name in "DE":
        names[name] = f"{writer.fresh('k')}_{writer.tag}"
    before = drawn(draws, made.get("before", "")).split("\n")
    before = [writer.filled(line, **names) for line in before] if any(before) else []
    lines = writer.filled(drawn(draws, made["text"]), **names).split("\n")
    if before and not writer.executed(before):
        raise Misfit
    if not writer.executed(lines, made.get("grad", False)):
        raise Misfit
    if before:
        body.before += ["", "", *before]
    for name in "ABC":
        if names[name] in writer.values:
            writer.bind(names[name])
            body.show(names[name])
    writer.features.add(f"scene {made['name']}")
    return lines


def scene_program(draws: random.Random, number: int) -> Program:
    """A whole program of one scene."""
    from generate import array

    made = draws.choice(scenes()["programs"])
    tag = str(number)
    text, entry = (t.replace("{N}", tag) for t in (drawn(draws, made["text"]), made["entry"]))
    arrays: tuple[np.ndarray, ...] = tuple(
        array(draws, tuple(map(int, shape.split("x")))) for shape in made["inputs"]
    )
    lines = text.split("\n")
    imports = "".join(f"{line}\n" for line in lines if line.startswith("import "))
    text = "\n".join(line for line in lines if not line.startswith("import ")).strip("\n") + "\n"
    return Program(f"p{tag}", made["kind"], text, entry, (arrays,), imports=imports,
                   features=frozenset({f"scene {made['name']}"}),
                   gradient=made.get("gradient", True))  # fmt: skip
