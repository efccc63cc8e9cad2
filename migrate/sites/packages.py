"""Know imports of packages converted along, and answer what a program asks about torch as one.

A library that finds no torch switches itself off. After the conversion the answer is yes, with the
version whose meaning the table has; a package that needs torch itself is not there.
"""

from __future__ import annotations

import ast

from migrate.analysis.types.kinds import without_none
from migrate.analysis.types.outside import followed_kind
from migrate.mapping.names import root_of
from migrate.sites.scene import Scene
from migrate.syntax.trees import last_name


def follows(scene: Scene, node: ast.Import | ast.ImportFrom, alias: ast.alias) -> bool:
    """Whether an import takes something from a package that is converted along.

    ``import a.b`` binds a, of which more than b may be used: its uses are looked at.
    """
    followed = scene.inference.program.followed
    name = alias.name if isinstance(node, ast.Import) else node.module or ""
    root = root_of(name)
    if root not in followed.names:
        return False
    if followed.package_of(scene.file.path) == root:
        whole = not followed.policies[root].modules
        return name in followed.modules and (whole or followed.policies[root].converts(name))
    if isinstance(node, ast.Import):
        return bool(alias.asname) and followed_kind(name, scene.inference) is not None
    if alias.name == "*":
        return name in followed.modules and name not in followed.mixed
    return followed_kind(f"{name}.{alias.name}", scene.inference) is not None


def followed_name(scene: Scene, node: ast.Name | ast.Attribute) -> str:
    """The package in ``timm.create_model``, where that is converted along; "" for all else."""
    parent = scene.parent(node) if scene.inference.program.followed.names else None
    if not isinstance(parent, ast.Attribute):
        return ""
    atoms = without_none(scene.kind(node))
    spelt = all(a.direct if a.kind == "ref" else a.kind == "foreign" for a in atoms)
    name = next(iter(atoms)).name if len(atoms) == 1 and spelt else ""
    full = f"{name}.{parent.attr}"
    return name if name and followed_kind(full, scene.inference) is not None else ""


ANSWERS = {
    "importlib.util.find_spec": "helpers.find_package",
    "importlib.metadata.version": "helpers.package_version",
    "importlib_metadata.version": "helpers.package_version",
}


def asked(scene: Scene, node: ast.Call) -> str:
    """Return the full name of the function that asks, where it may ask about torch; else ""."""
    atoms = scene.kind(node.func)
    names = {a.name for a in atoms if a.kind == "foreign" and a.name in ANSWERS}
    # a backport under the name of the module: both answer alike
    if not names or len(names) != len(atoms) or len({ANSWERS[n] for n in names}) > 1:
        return ""
    if not node.args:
        return ""
    package = node.args[0]
    if isinstance(package, ast.Constant):
        named = str(package.value).partition(".")[0]
        about = named == "torch" or bool(scene.table.needs_torch(named))
    else:  # a parameter, an element of a list: torch may be one of those that the program names
        program = scene.inference.program
        about = program.mentions(b'"torch"') or program.mentions(b"'torch'")
    return min(names) if about else ""


def imported(scene: Scene, node: ast.Call) -> str:
    """Return what of torch a function of the program imports by texts; "" for all other calls."""
    texts = [n.value for n in (*node.args, *(k.value for k in node.keywords))
             if isinstance(n, ast.Constant) and isinstance(n.value, str)]  # fmt: skip
    count = len(node.args) + len(node.keywords)
    if len(texts) != 2 or count != 2:
        return ""
    name = ".".join(texts)
    rows = scene.table.rows(name)
    return name if rows and rows[0].ref.startswith("helpers.") and success(scene, node) else ""


def success(scene: Scene, call: ast.Call) -> str:
    """Return what a function gives that imports its first argument and takes what the second
    names from it, where that succeeds: the text of the results, with {} for what was imported."""
    atoms = list(without_none(scene.kind(call.func)))
    function = scene.inference.function_of(atoms[0].name) if len(atoms) == 1 else None
    if function is None or isinstance(function.node, ast.Lambda):
        return ""
    taken = [call.keywords[0].arg] if call.keywords else [a.arg for a in function.parameters[1:2]]
    first, held = [a.arg for a in function.parameters[:1]], set()
    for bound in [n for n in function.nodes if isinstance(n, ast.Assign)]:
        target, value = bound.targets[0], bound.value
        if not isinstance(value, ast.Call) or not isinstance(target, ast.Name):
            continue
        named = [getattr(a, "id", None) for a in value.args]
        called = last_name(value.func)
        got = called == "getattr" and named[1:] == taken and named[0] in held
        if got or (called == "import_module" and named == first):
            held.add(target.id)
    shapes = set()
    for given in [n.value for n in function.nodes if isinstance(n, ast.Return)]:
        parts = given.elts if isinstance(given, ast.Tuple) else [given] if given else []
        if parts and getattr(parts[0], "id", None) in held:
            shapes.add(", ".join(["{}", *map(ast.unparse, parts[1:])]))
            if not all(isinstance(p, ast.Constant) for p in parts[1:]):
                return ""
    return shapes.pop() if len(shapes) == 1 else ""
