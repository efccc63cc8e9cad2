"""Decide imported names: which go, which need torch, which are of packages converted along."""

from __future__ import annotations

import ast
from dataclasses import replace

from migrate.analysis.types.kinds import without_none
from migrate.records.outcomes import Decision, Edit, Outcome, Refusal
from migrate.rules.references import value_of
from migrate.rules.registry import decides, revises
from migrate.sites.packages import ANSWERS, followed_name, success
from migrate.sites.references import Form
from migrate.sites.scene import Scene
from migrate.syntax.trees import children, is_none, last_name

_FAILURES = ("ImportError", "ModuleNotFoundError", "Exception", "BaseException")


@decides(Form.IMPORT)
def decide_import(scene: Scene, alias: ast.alias, name: str) -> Edit | Refusal:
    """Replace imports of torch as a whole; flag star imports, and libraries that need torch."""
    site = scene.site(name, alias)
    if alias.name == "*" and name.startswith("torch"):
        return Refusal(
            site,
            "API108",
            "a star import hides which names are torch's",
            "import the names that are used",
        )
    root = name.partition(".")[0]
    if (library := scene.table.library_class(name)) and isinstance(
        scene.parent(alias), ast.ImportFrom
    ):
        module, _, last = library.rpartition(".")
        renamed = f" as {alias.asname}" if alias.asname else ""
        return Edit(site, Outcome.CONVERTED, (f"from {module} import {last}{renamed}",), name)
    if root in scene.inference.roots:
        return _binding(scene, alias, name) or Edit(site, Outcome.CONVERTED, None)
    if _only_along(scene, alias):
        return Edit(site, Outcome.CONVERTED, None)
    why = f"{root if scene.table.needs_torch(root) else name} needs torch"
    if _is_optional(scene, alias):
        note = f"{why}; the file goes its own way without it"
        return Edit(site, Outcome.CONVERTED, (f"raise ModuleNotFoundError({why!r})",), note=note)
    return Refusal(site, "ENV501", why, scene.table.needs_torch(name))


def left_out(scene: Scene) -> set[str]:
    """Return the names of packages that the file goes without: it asks before it reads them."""
    return {
        alias.asname or alias.name.partition(".")[0]
        for node in scene.file.imports
        for alias in node.names
        if scene.table.needs_torch(_full(node, alias)) and _is_optional(scene, alias)
    }


def _full(node: ast.Import | ast.ImportFrom, alias: ast.alias) -> str:
    module = getattr(node, "module", None)
    return f"{module}.{alias.name}" if module else alias.name


def _only_along(scene: Scene, alias: ast.alias) -> bool:
    """``import timm`` of which nothing is used but what is converted along."""
    if not isinstance(scene.parent(alias), ast.Import):
        return False
    bound = alias.asname or alias.name.partition(".")[0]
    used = scene.file.loads.get(bound, [])
    return bool(used) and all(followed_name(scene, node) for node in used)


def _is_optional(scene: Scene, alias: ast.alias) -> bool:
    """Whether the file itself says what it does where the import fails, and that goes on."""
    child: ast.AST = scene.statement(alias)
    parent = scene.parent(child)
    while parent is not None and not isinstance(parent, (ast.FunctionDef, ast.AsyncFunctionDef)):
        if isinstance(parent, ast.Try) and child in parent.body:
            handler = next((h for h in parent.handlers if _catches(h)), None)
            if handler is not None:
                return not _ends(handler)
        child, parent = parent, scene.parent(parent)
    return False


def _catches(handler: ast.ExceptHandler) -> bool:
    types = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(t is None or (isinstance(t, ast.Name) and t.id in _FAILURES) for t in types)


def _ends(node: ast.AST) -> bool:
    """``raise``, ``sys.exit()``: without the library there is no program.

    What a function does that is defined there, in the place of the library's, comes later.
    """
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
        return False
    if isinstance(node, ast.Raise):
        return True
    name = last_name(node.func) if isinstance(node, ast.Call) else ""
    return name in ("exit", "_exit", "quit") or any(map(_ends, children(node)))


def _binding(scene: Scene, alias: ast.alias, name: str) -> Edit | Refusal | None:
    """A name that the file also binds otherwise (``except ImportError: def ...``) needs a value.

    So does one that is compared with None, where nothing stands for it: in torch it is not None.
    """
    bound = alias.asname or alias.name.partition(".")[0]
    if any(alias in _imports(scene, use, name) for use in scene.file.loads.get(bound, ())):
        found = value_of(scene, name, alias)
        if isinstance(found, Refusal):
            return found
    kinds = without_none(scene.inference.module(scene.file.path).variables.get(bound, frozenset()))
    if not kinds or all(a.direct for a in kinds) or not any(a.direct for a in kinds):
        return None
    found = value_of(scene, name, alias)
    if isinstance(found, Refusal) or not found.parts:
        return found
    same = found.parts == (bound,)  # a helper of that name binds it already
    return replace(found, parts=("",) if same else (f"{bound} = ", *found.parts))


def _imports(scene: Scene, use: ast.AST, name: str) -> list[ast.alias]:
    """Return the imports of a name, not of a module, that is compared with None."""
    around = scene.parent(use)
    if not isinstance(around, ast.Compare) or not isinstance(around.ops[0], (ast.Is, ast.IsNot)):
        return []
    none, module = is_none(around.comparators[0]), scene.table.kind(name) == "module"
    if not none or module or not isinstance(use, ast.Name):
        return []
    places = [b.place for b in scene.facts.reach(use).bindings]
    aliases = (p for p in places if isinstance(p, ast.alias))
    return [a for a in aliases if isinstance(scene.parent(a), ast.ImportFrom)]


@decides(Form.FOLLOWED)
def decide_along(scene: Scene, node: ast.AST, name: str) -> Edit:
    """Rename imports of packages that are converted along, and what spells their names.

    The module in ``from torchvision.models import resnet18`` is renamed with its statement.
    """
    site = scene.site(name, node)
    if not isinstance(node, ast.alias):
        root, _, rest = _renamed(scene, name).partition(".")
        text, needed = scene.spelling.local(root)
        return Edit(site, Outcome.CONVERTED, (f"{text}.{rest}" if rest else text,),
                    needs=frozenset({needed}))  # fmt: skip
    if isinstance(scene.parent(node), ast.ImportFrom):
        return Edit(site, Outcome.CONVERTED, None)
    return Edit(site, Outcome.CONVERTED, (_import(scene, node),))


@revises(before=("imports.advised",))
def compared(scene: Scene, node: ast.AST, made: Decision) -> Decision:
    """Keep ``name is not None`` where the import binds the name to what fails on any other use."""
    if not isinstance(made, Refusal):
        return made
    name = made.site.name
    held = any(isinstance(value_of(scene, name, a), Refusal) for a in _imports(scene, node, name))
    return Edit(made.site, Outcome.KEPT, None) if held else made


@revises()
def advised(scene: Scene, node: ast.AST, decision: Decision) -> Decision:
    """Say how to get at the source of a package that could be converted along."""
    absent = scene.inference.program.followed.absent
    if not absent or not isinstance(decision, Refusal) or decision.code != "ENV501":
        return decision
    package = decision.site.name.partition(".")[0]
    if package not in absent or not absent[package].covers(decision.site.name):
        return decision
    step = f"install {package} where torch2ms runs, or give --follow-path DIR: then what is used of"
    return replace(decision, next_step=f"{step} it is converted along; else {decision.next_step}")


def along_name(scene: Scene, name: str) -> str:
    """How an import of this file names a module of a package that is converted along."""
    new = _renamed(scene, name)
    return scene.spelling.along[new.partition(".")[0]] + new


def _renamed(scene: Scene, name: str) -> str:
    root, dot, rest = name.partition(".")
    return scene.inference.program.followed.names[root] + dot + rest


def _import(scene: Scene, alias: ast.alias) -> str:
    """The statement for one name of ``import``; a relative import has to name what it takes."""
    full = along_name(scene, alias.name)
    root, _, rest = alias.name.partition(".")
    bound = alias.asname or root
    lines = []
    if rest and not alias.asname:  # a package that imports itself by its name
        lines.append(_import_as(full, full.rpartition(".")[2] + "_imported"))
        full = along_name(scene, root)
    return "\n".join([*lines, _import_as(full, bound)])


def _import_as(full: str, bound: str) -> str:
    if not full.startswith("."):
        return f"import {full} as {bound}"
    module, _, last = full.rpartition(".")
    dots = full[: len(full) - len(full.lstrip("."))]
    last_text = last if last == bound else f"{last} as {bound}"
    return f"from {module if module.strip('.') else dots} import {last_text}"


@decides(Form.PACKAGE)
def answered(scene: Scene, node: ast.AST, name: str) -> Edit:
    """Replace the function by one that knows what became of torch, an import by its result."""
    if isinstance(node, ast.Call):
        row = scene.table.rows(name)[0]
        text, root = scene.spelling.local(row.ref)
        parts = (f"({success(scene, node).format(text)})",)
        return Edit(scene.site(name, node), Outcome.HELPER, parts, row.key, frozenset((root,)))
    text, root = scene.spelling.local(ANSWERS[name])
    note = "torch is there, with the version whose behaviour is reproduced"
    needs = frozenset((root,))
    return Edit(scene.site(name, node), Outcome.HELPER, (text,), needs=needs, note=note)
