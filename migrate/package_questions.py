"""Answer what a program asks about torch as a package: whether it is installed, and its version.

A library that finds no torch switches itself off. After the conversion the answer is yes, with the
version whose meaning the table has; a package that needs torch itself is not there.
"""

from __future__ import annotations

import ast

from migrate.outcomes import Edit, Outcome
from migrate.scene import Scene

_ANSWERS = {
    "importlib.util.find_spec": "helpers.find_package",
    "importlib.metadata.version": "helpers.package_version",
    "importlib_metadata.version": "helpers.package_version",
}


def asked(scene: Scene, node: ast.Call) -> str:
    """Return the full name of the function that asks, where it may ask about torch; else ""."""
    names = {a.name for a in scene.kind(node.func) if a.kind == "foreign"}
    if len(names) != 1 or not names <= _ANSWERS.keys() or not node.args:
        return ""
    package = node.args[0]
    if isinstance(package, ast.Constant):
        named = str(package.value).partition(".")[0]
        about = named == "torch" or bool(scene.table.needs_torch(named))
    else:  # a parameter, an element of a list: torch may be one of those that the program names
        program = scene.inference.program
        about = program.mentions(b'"torch"') or program.mentions(b"'torch'")
    return names.pop() if about else ""


def decide(scene: Scene, node: ast.AST, name: str) -> Edit:
    """Replace the function by one that knows what became of torch."""
    text, root = scene.spelling.local(_ANSWERS[name])
    note = "torch is there, with the version whose behaviour is reproduced"
    needs = frozenset((root,))
    return Edit(scene.site(name, node), Outcome.HELPER, (text,), needs=needs, note=note)
