"""Make a Module class a Cell: construct, its parameter ``self``, names that every Cell uses too."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from migrate.analysis.types.kinds import without_none
from migrate.codegen.substitution import added
from migrate.records.outcomes import Edit, Outcome, Part, Refusal, Site, Span
from migrate.rules.registry import decides, rewrites
from migrate.sites.buffer_gradients import parameters, registered
from migrate.sites.module_members import TRAIN, family
from migrate.sites.references import Form
from migrate.sites.scene import Scene
from migrate.syntax.lines import begins_line
from migrate.syntax.trees import all_names, is_super


@decides(Form.FORWARD)
def forward(scene: Scene, node: ast.AST, name: str) -> Edit | Refusal:
    """Rename ``forward`` of a Module, and what binds that name, to ``construct``."""
    base, new = scene.site("torch.nn.Module.forward", node), "construct"
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        span = scene.source.name_span(node)
    else:
        span = scene.source.span(node)
        new = f'"{new}"' if isinstance(node, ast.Constant) else new
    line = scene.source.line_of(span.start)
    site = Site(base.name, span, line, span.start - scene.source.line_start(line) + 1)
    return Edit(site, Outcome.CONVERTED, (new,), "torch.nn.Module.forward")


@rewrites()
def first_parameters(scene: Scene) -> Iterator[Edit]:
    """Rename the first parameter of methods to ``self``, which graph mode wants."""
    for owner in scene.file.classes.values():
        if not scene.is_module_class(owner):
            continue
        for method in owner.methods.values():
            if method.decorated("staticmethod", "classmethod") or not method.parameters:
                continue
            first = method.parameters[0]
            if first.arg != "self" and "self" not in all_names(method.node):
                yield from _rename(scene, method.node, first)


@rewrites()
def delegates(scene: Scene) -> Iterator[Edit]:
    """Let ``__getattr__`` find what it reads itself: ``if name in ("net",): return super()...``.

    A Cell asks for members before the constructor binds any; ``getattr(self.net, name)`` without a
    ``net`` would ask for it for ever.
    """
    for owner in scene.file.classes.values():
        method = owner.methods.get("__getattr__")
        if method is None or not scene.is_module_class(owner) or len(method.parameters) != 2:
            continue
        own, name = (p.arg for p in method.parameters)
        above = [n for n in method.of(ast.Attribute) if n.attr == "__getattr__"  # type: ignore[attr-defined]
                 and is_super(n.value)]  # type: ignore[attr-defined]  # fmt: skip
        read = {n.attr for n in method.of(ast.Attribute)  # type: ignore[attr-defined]
                if getattr(n.value, "id", "") == own}  # type: ignore[attr-defined]  # fmt: skip
        read -= {*owner.methods, *(m for m in read if m.startswith("__"))}
        body = method.node.body
        if not above or not read or not isinstance(body, list):
            continue
        first = body[1] if len(body) > 1 and ast.get_docstring(method.node) else body[0]  # type: ignore[arg-type]
        if not begins_line(scene.source, first):
            continue
        members = ", ".join(f'"{m}"' for m in sorted(read))
        asked, given = f"if {name} in ({members},):", f"return super().__getattr__({name})"
        text = f"{asked}{scene.source.newline}    {given}"
        site = scene.site("__getattr__", first)
        yield added(scene.source, site, first, Part.BEFORE, text)


def _rename(scene: Scene, node: ast.AST, first: ast.arg) -> Iterator[Edit]:
    yield _text_edit(scene, first, scene.source.name_span(first))
    for inner in ast.walk(node):
        if isinstance(inner, ast.Name) and inner.id == first.arg:
            yield _text_edit(scene, inner, scene.source.span(inner))


def _text_edit(scene: Scene, node: ast.AST, span: Span) -> Edit:
    site = scene.site("self", node)
    return Edit(Site("self", span, site.line, site.column), Outcome.CONVERTED, ("self",))


NOTE = "renamed: mindspore.nn.Cell uses this name itself"


@decides(Form.OWN)
def own_name(scene: Scene, node: ast.AST, name: str) -> Edit | Refusal:
    """Rename members that Cell has itself; flag a child, whose name is that of its weights."""
    own = name.rpartition(".")[2]
    site = scene.site(name, node)
    if _is_child(scene, node, own):
        if isinstance(getattr(node, "ctx", None), ast.Store):
            why = f"Cell has a member {own} of its own, and a child's name is that of its weights"
            return Refusal(site, "API113", why, "give the child another name", keep=True)
        return Edit(site, Outcome.KEPT, None)
    if name == TRAIN:
        place = Site(name, scene.source.name_span(node), site.line, site.column)
        return Edit(place, Outcome.CONVERTED, ("set_train",), name)
    span = scene.source.name_span(node)
    place = Site(name, span, site.line, site.column)
    return Edit(place, Outcome.CONVERTED, (free_name(scene, own),), note=NOTE)


def free_name(scene: Scene, name: str) -> str:
    """The name with as many underscores as make it nobody's."""
    classes = scene.inference.program.classes.values()
    name += "_"
    while any(name in c.methods or name in c.stores for c in classes):
        name += "_"
    return name


def _is_child(scene: Scene, node: ast.AST, name: str) -> bool:
    """An attribute that holds a Module or a weight: its name is part of the names of weights."""
    if not isinstance(node, ast.Attribute):
        return False
    for atom in without_none(scene.kind(node.value)):
        if atom.kind == "Module" and "::" in atom.name:
            held = {a.kind for a in scene.inference.member(atom.name, name)}
            if "Module" in held or ("Tensor" in held and _may_be_weight(scene, atom.name, name)):
                return True
    return False


def _may_be_weight(scene: Scene, key: str, name: str) -> bool:
    """Return whether a Tensor that objects of a class have is a Parameter or a saved buffer.

    What is stored after the construction alone, and nowhere made a Parameter, is a plain Tensor.
    """
    if name in parameters(scene) or name in registered(scene):
        return True
    methods = {id(m): m for c in family(scene, key) for m in c.stores.get(name, ())}
    built = [m for m in methods.values() if m.name == "__init__"]
    stored = [t for m in built for t in scene.inference.index.stores(m) if t.attr == name]
    values = [getattr(scene.statement(t), "value", None) for t in stored]
    plain = (v is not None and scene.kind_names(v) <= _PLAIN for v in values)
    return not methods or not all(plain)


_PLAIN = frozenset(("None", "int", "float", "bool", "str"))
