"""Convert settings of the process: attributes of torch itself, and variables that torchrun sets.

Of those variables only reading under the literal name changes; where the program sets one itself,
all of its uses stay.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from migrate.codegen.substitution import piece
from migrate.records.outcomes import Edit, Outcome, Refusal
from migrate.rules.calling import constant_target, removed
from migrate.rules.graph.scope import foreign
from migrate.rules.registry import decides, rewrites
from migrate.sites.late_writes import (
    CHILD,
    CONVOLUTION,
    GONE,
    NORMS,
    REDUCTION,
    as_call,
    decide_child,
    may_be_loss,
    sets_reduction,
)
from migrate.sites.references import Form, direct_name
from migrate.sites.scene import Scene


@decides(Form.SETTING)
def decide(scene: Scene, node: ast.Attribute, name: str) -> Edit | Refusal:
    """Remove settings such as ``torch.backends.cudnn.benchmark``; flag replaced functions."""
    site = scene.site(name, node)
    rows = scene.table.rows(name)
    row = next((row for row in rows if row.flag or constant_target(scene, row)), None)
    if row is None:
        why = "the code puts something of its own in the place of what torch has"
        return Refusal(site, "API112", why, "call your own function or class where it is meant")
    if row.flag:
        return Refusal(site, row.flag, row.reason, row.next_step)
    statement = scene.parent(node)
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        why = "the setting is written together with something else"
        return Refusal(site, "API112", why, "write it as an assignment of its own")
    if _acts(scene, statement.value):
        where = scene.site(name, statement)
        return Edit(where, Outcome.CONVERTED, (piece(scene.source, statement.value),))
    return removed(scene, site, statement, row)


def _acts(scene: Scene, value: ast.expr) -> bool:
    """Whether computing the value may do something besides: then it is still computed."""
    calls = [item for item in ast.walk(value) if isinstance(item, ast.Call)]
    return any(direct_name(scene, call.func) is None for call in calls)


VARIABLES = {"RANK": "RANK_ID", "WORLD_SIZE": "RANK_SIZE", "LOCAL_RANK": "DEVICE_ID"}
_GETTERS = ("os.environ.get", "os.getenv")


@rewrites()
def variables(scene: Scene) -> Iterator[Edit]:
    """Rename the variables of torchrun in ``os.environ`` to those of MindSpore."""
    if not scene.inference.program.mentions(b"torch.distributed"):
        return
    file = scene.file
    for node in (*file.of(ast.Subscript), *file.of(ast.Call), *file.of(ast.Compare)):
        key = _key(scene, node)
        name = VARIABLES.get(key.value) if key is not None and isinstance(key.value, str) else None
        if key is None or name is None or _is_set(scene, key.value):
            continue
        site = scene.site(f"os.environ[{key.value!r}]", key)
        note = "msrun starts the processes, and names its variables so"
        yield Edit(site, Outcome.CONVERTED, (f'"{name}"',), note=note)


def _key(scene: Scene, node: ast.AST) -> ast.Constant | None:
    """The literal name of the variable that an expression reads."""
    found: ast.AST | None = None
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
        found = node.slice if foreign(scene, node.value, "os.environ") else None
    elif isinstance(node, ast.Call) and node.args and foreign(scene, node.func, *_GETTERS):
        found = node.args[0]
    elif isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.In, ast.NotIn)):
        found = node.left if foreign(scene, node.comparators[0], "os.environ") else None
    return found if isinstance(found, ast.Constant) else None


def _is_set(scene: Scene, name: object) -> bool:
    """Whether a file of the program stores under this name."""
    files = scene.inference.program.files.values()
    places = (n for f in files for n in f.of(ast.Subscript))
    stores = (n.slice for n in places if isinstance(n.ctx, ast.Store))
    return any(isinstance(key, ast.Constant) and key.value == name for key in stores)


@decides(Form.LATE, after=("shared_storage.buffer_store",))
def late(scene: Scene, node: ast.AST, name: str) -> Edit | Refusal:
    """Flag a setting that a Cell reads once; a late child, and what has a setter, has a helper."""
    if name in (CHILD, GONE):
        return decide_child(scene, node, name)
    helper = "helpers.set_convolution" if name in CONVOLUTION else ""
    helper = "helpers.set_ceil_mode" if name.endswith(".ceil_mode") else helper
    helper = "helpers.set_bias" if name.endswith(".bias") else helper
    helper = "helpers.set_reduction" if name == REDUCTION else helper
    if name.startswith(NORMS) and name.endswith((".eps", ".momentum")):
        helper = "helpers.set_norm"
    if helper and (made := as_call(scene, node, name, helper)):
        return made
    layer, _, setting = name.removeprefix("torch.nn.").rpartition(".")
    layer = "layer" if layer == "Module" else layer
    return Refusal(
        scene.site(name, node),
        "API114",
        f"a Cell reads {setting} once, when it is built: this changes nothing in MindSpore",
        f"give {setting} to {layer}(...), or put a new {layer} in its place",
    )


@rewrites()
def reductions(scene: Scene) -> Iterator[Edit]:
    """Ask a loss for its ``reduction`` by a helper in a function that sets one of a loss."""
    if not scene.inference.program.mentions(b".reduction = "):
        return
    setting = {
        scene.function(node)
        for node in scene.file.of(ast.Attribute)
        if isinstance(node.ctx, ast.Store) and sets_reduction(scene, node)
    }
    for node in scene.file.of(ast.Attribute) if setting else ():
        asked = node.attr == "reduction" and isinstance(node.ctx, ast.Load)
        if asked and scene.function(node) in setting and may_be_loss(scene, node.value, True):
            local, root = scene.spelling.local("helpers.loss_reduction")
            parts = (f"{local}(", piece(scene.source, node.value), ")")
            yield Edit(scene.site(REDUCTION, node), Outcome.HELPER, parts, "", frozenset({root}))
