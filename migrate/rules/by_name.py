"""In: the rule that a row names. Out: its function."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping

from migrate.mapping.choice import Chosen
from migrate.records.outcomes import Edit, Refusal, Site
from migrate.rules import autograd, compiled_operators, type_names
from migrate.sites.scene import Scene

Rule = Callable[[Scene, Site, ast.Call, "ast.expr | None", Chosen], "Edit | Refusal"]
RULES: Mapping[str, Rule] = {
    "autocast": autograd.autocast,
    "load_library": compiled_operators.load_library,
    "no_grad": autograd.no_grad,
    "registration": compiled_operators.registration,
    "type_name": type_names.type_name,
}


def run(
    name: str, scene: Scene, site: Site, call: ast.Call, receiver: ast.expr | None, chosen: Chosen
) -> Edit | Refusal:
    """Let the rule decide."""
    return RULES[name](scene, site, call, receiver, chosen)
