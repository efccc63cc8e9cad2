"""In: a function. Out: which of its writes are missed by somebody who reads the tensor later.

The statements are walked in order with all that the names may hold (``storage``). Branches are
joined, loops run until nothing changes. ``docs/inplace.md`` says why nothing slips through.
"""

from __future__ import annotations

import ast
from dataclasses import replace

from migrate.program import File, Function
from migrate.receivers.kinds import is_all
from migrate.rules.alias_calls import Summary
from migrate.rules.alias_flow import Flow
from migrate.rules.alias_values import Findings
from migrate.rules.called_from import in_forward, is_for_effect
from migrate.rules.storage import (
    ELEMENTS,
    MAYBE,
    VIEW,
    Intricate,
    Ref,
    Refs,
    Region,
    made_as,
    root,
)
from migrate.rules.written import target_of
from migrate.scene import Scene
from migrate.syntax import all_parameters

DEEPEST = 12  # calls inside calls that are followed


def findings(scene: Scene, function: Function | None) -> Findings:
    """What a walk of a function (or of the module's own statements) finds; kept for later."""
    notes = scene.inference.program.notes.setdefault("aliases", {})
    key = id(function) if function is not None else scene.file.path
    if key not in notes:
        notes[key] = None  # while it is walked
        try:
            notes[key] = _Walk(scene, function).all()
        except Intricate:
            notes[key] = Findings(intricate=True)
    found = notes[key]
    return found if isinstance(found, Findings) else Findings()


def scene_of(scene: Scene, file: File) -> Scene:
    """The same analysis, for another file of the program."""
    return scene if file is scene.file else replace(scene, file=file, _memo={})


def summary(scene: Scene, function: Function) -> Summary:
    """What callers of a function must know; of one that is being walked only what it gets."""
    notes = scene.inference.program.notes.setdefault("aliases", {})
    names = [p.arg for p in all_parameters(function.node.args)]
    deep = sum(found is None for found in notes.values()) > DEEPEST
    if notes.get(id(function), True) is None or (deep and id(function) not in notes):
        return Summary(dict.fromkeys(names, MAYBE))
    file = scene.inference.program.files[function.path]
    found = findings(scene_of(scene, file), function)
    if found.intricate:
        return Summary(dict.fromkeys(names, MAYBE))
    shares: dict[str, int] = {}
    fields: dict[str, int] = {}
    own = owner_parameter(function)
    for ref in found.returned:
        top = root(ref.region)
        for name, how in found.given.get(top[1] if len(top) > 1 else 0, {}).items():  # type: ignore[call-overload]
            shares[name] = how
        if top == ("param", own):
            name = _field(ref.region)
            fields[name] = min(max(ref.how, VIEW), fields.get(name, MAYBE))
        elif top[0] == "param":
            name, how = str(top[1]), ref.how if ref.region == top else max(ref.how, VIEW)
            shares[name] = min(how, shares.get(name, MAYBE))
    writes: dict[str, int] = {}
    for given in found.given.values():
        for name, how in given.items():
            if name != own:
                writes[name] = max(how, writes.get(name, 0))
    assigns = changes_object(scene, function)
    return Summary(shares, writes, fields, found.tied, assigns)


def _field(region: Region) -> str:
    """The attribute of ``self`` that a region comes from."""
    name = ""
    while region[0] in ("field", "item"):
        if region[0] == "field":
            name = str(region[2])
        region = region[1]  # type: ignore[assignment]
    return name


def owner_parameter(function: Function) -> str:
    """``self``, or what a method calls it."""
    if function.owner is None or function.decorated("staticmethod") or not function.parameters:
        return ""
    return function.parameters[0].arg


def changes_object(scene: Scene, function: Function) -> bool:
    """A function that is called for what it does to its arguments, and never by a forward.

    Its variable is not bound anew: the very object of the caller gets the new value.
    """
    if isinstance(function.node, ast.Lambda):
        return False
    gives = any(
        (isinstance(n, ast.Return) and n.value is not None) or isinstance(n, ast.Yield)
        for n in ast.walk(function.node)
    )
    for_effect = not gives or is_for_effect(scene, function)
    return for_effect and (not gives or not in_forward(scene, function))


class _Walk(Flow):
    """Walks one function."""

    def __init__(self, scene: Scene, function: Function | None) -> None:
        super().__init__(scene, lambda f: summary(scene, f))
        self.function = function
        owner = function.owner if function is not None else None
        bases = scene.inference.torch_bases(owner.key) if owner is not None else ()
        self.apart = "torch2ms.OptimizerWithStep" in bases

    def all(self) -> Findings:
        if self.function is None:
            self.run(self.scene.source.tree.body)
            return self.found
        node = self.function.node
        for parameter in all_parameters(node.args):
            self.state.names[parameter.arg] = frozenset((Ref(("param", parameter.arg)),))
        if isinstance(node, ast.Lambda):
            self.found.returned = self.state.reach(self.value(node.body))
        else:
            self.run(node.body)
        if not self.dead:
            self._leave()
        return self.found

    def _leave(self) -> None:
        """Whoever holds it after the function reads it some day."""
        self.read("what holds it after the function", self.state.escaping())

    # -- assignments ----------------------------------------------------------------------------

    def _Assign(self, item: ast.Assign) -> None:
        one = item.targets[0] if len(item.targets) == 1 else None
        value = item.value
        if (
            isinstance(one, ast.Tuple) and isinstance(value, ast.Tuple)
            and len(one.elts) == len(value.elts)
            and not any(isinstance(e, ast.Starred) for e in (*one.elts, *value.elts))
        ):  # fmt: skip
            for target, refs in zip(one.elts, [self.value(v) for v in value.elts], strict=True):
                self._store(target, refs)
            return
        refs = self.value(value)
        for target in item.targets:
            whole = isinstance(target, (ast.Tuple, ast.List)) and self._tensor(value)
            self._store(target, made_as(refs, VIEW) if whole else refs)

    def _AnnAssign(self, item: ast.AnnAssign) -> None:
        if item.value is not None:
            self._store(item.target, self.value(item.value))

    def _store(self, target: ast.expr, refs: Refs) -> None:
        if isinstance(target, ast.Subscript) and self._tensor(target.value):
            self._set_item(target, target)
        elif isinstance(target, ast.Attribute) and target.attr == "data":
            if isinstance(target.value, (ast.Name, ast.Attribute)):
                self.bind(target.value, refs)
        else:
            self.bind(target, refs)

    def _set_item(self, by: ast.AST, place: ast.Subscript) -> None:
        """``y[i] = v`` changes ``y``."""
        mark = len(self.flight)
        target = target_of(self.scene, place)
        refs = self.target_refs(target)
        self.value(place.slice)
        del self.flight[mark:]
        self.flight.clear()
        self.write(by, place, refs, "item")

    def _AugAssign(self, item: ast.AugAssign) -> None:
        added = self.value(item.value)
        target = item.target
        if isinstance(target, ast.Subscript) and self._tensor(target.value):
            self._set_item(item, target)
            return
        refs = self.target_refs(target_of(self.scene, target))
        if not self.scene.kind_names(target) & {"Tensor"} and not is_all(
            self.scene.kind(item), "Tensor"
        ):
            if "list" in self.scene.kind_names(target):
                self.state.put(refs, ELEMENTS, self.elements(added))
            return
        self.flight.clear()
        if isinstance(target, ast.Attribute) and target.attr != "data":
            self.note_given(item, frozenset(r for r in refs if r.region[0] == "param"))
            self.state.write(refs, id(item))
            new = frozenset((self.state.make(id(item)),))
            self.state.put(self.holders(target.value), target.attr, new, anew=True)
            return
        self.write(item, target, refs, "bound")

    def _Return(self, item: ast.Return) -> None:
        if item.value is not None:
            refs = self.value(item.value)
            self.found.returned |= self.state.reach(refs)
            self.found.tied |= self._is_tied(item.value, refs)
        self._leave()
        self.dead = True

    def _is_tied(self, node: ast.expr, refs: Refs) -> bool:
        """Whether two parts of what is given back may share storage."""
        if not isinstance(node, (ast.Tuple, ast.List)):
            return not self._tensor(node) and any(r.region[0] != "param" for r in refs)
        parts = [{r.region for r in self.state.reach(self.value(e))} for e in node.elts
                 if not isinstance(e, ast.Starred)]  # fmt: skip
        return sum(map(len, parts)) != len(set().union(*parts))

    def _Raise(self, item: ast.Raise) -> None:
        self._parts(item)
        self.dead = True

    def _Import(self, item: ast.Import | ast.ImportFrom) -> None:
        return

    _ImportFrom = _Import

    def _Delete(self, item: ast.Delete) -> None:
        for target in item.targets:
            if isinstance(target, ast.Name):
                self.state.names.pop(target.id, None)
