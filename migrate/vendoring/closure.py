"""In: what a project uses of packages. Out: the modules of them that this needs, and no others.

Of a module, these are the used names and their dependencies, unless the module itself escapes as an
object, inspects its own names, or is a registry of its modules.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from migrate.syntax.source import Source
from migrate.syntax.trees import children, within
from migrate.vendoring.library import Library, absolute, bound_by
from migrate.vendoring.policy import Policy
from migrate.vendoring.reduced import own_statements

STAR = "*"


@dataclass(frozen=True, order=True)
class Use:
    """A use of a package: ``module`` is the dotted name of an import; ``name`` what it takes from
    it by ``from module import name`` ("" for ``import module``); ``chain``: attributes that are
    read of what the import binds. ``loaded``: the variable is used, not only bound.
    """

    module: str
    name: str = ""
    chain: tuple[str, ...] = ()
    loaded: bool = False


def uses(tree: ast.AST, module: str, is_package: bool, roots: Collection[str]) -> frozenset[Use]:
    """Return what a module imports of the packages ``roots``, and how it uses that.

    A variable counts for all imports that bind it somewhere in the module: an over-approximation.
    """
    found: set[Use] = set()
    variables: dict[str, set[Use]] = {}
    for node in within(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.partition(".")[0] in roots:
                    found.add(Use(alias.name))
                    whole = alias.name if alias.asname else alias.name.partition(".")[0]
                    variables.setdefault(alias.asname or whole, set()).add(Use(whole))
        elif isinstance(node, ast.ImportFrom) and (module or not node.level):
            base = absolute(module, is_package, node)
            if base.partition(".")[0] in roots:
                for alias in node.names:
                    found.add(Use(base, alias.name))
                    own = variables.setdefault(alias.asname or alias.name, set())
                    own.add(Use(base, alias.name))
    if variables:
        for name, chain in chains(tree):
            for use in variables.get(name, ()):
                found.add(Use(use.module, use.name, chain, True))
    return frozenset(found)


def chains(tree: ast.AST) -> list[tuple[str, tuple[str, ...]]]:
    """Every variable that is read, with the attributes that are asked of it: a.b.c()."""
    found: list[tuple[str, tuple[str, ...]]] = []
    pending: list[tuple[ast.AST, tuple[str, ...]]] = [(tree, ())]
    while pending:
        node, after = pending.pop()
        if isinstance(node, ast.Attribute):
            pending.append((node.value, (node.attr, *after)))
            continue
        if isinstance(node, ast.Name):
            if isinstance(node.ctx, ast.Load):
                found.append((node.id, after))
            continue
        pending += [(child, ()) for child in children(node)]
    return found


Wanted = Callable[[str], bool]
_EVERYTHING = ("__dict__", "__all__")
_LOOKING_AROUND = ("globals", "vars", "locals", "exec", "eval")


@dataclass(eq=False)
class Closure:
    """``wanted`` says of a name outside its package whether it is followed. ``modules``: all that
    is needed; ``names``: what is asked of each; those in ``whole`` stay as they are."""

    library: Library
    policies: Mapping[str, Policy]
    wanted: Wanted
    modules: set[str] = field(default_factory=set)
    names: dict[str, set[str]] = field(default_factory=dict)
    whole: set[str] = field(default_factory=set)
    _pending: list[tuple[Use, bool]] = field(default_factory=list)

    def add(self, tree: ast.AST, module: str = "", is_package: bool = False) -> None:
        """Take what a module uses."""
        self._queue(tree, module, is_package)
        while self._pending:
            self._use(*self._pending.pop())

    def asked(self, module: str) -> frozenset[str]:
        """What a module has to bind."""
        return frozenset(self.names.get(module, ())) - {STAR, ""}

    def _queue(self, tree: ast.AST, module: str, is_package: bool) -> None:
        own = module.partition(".")[0]
        found = sorted(uses(tree, module, is_package, self.policies))
        self._pending += [(use, use.module.partition(".")[0] == own) for use in found]

    def _use(self, use: Use, inside: bool) -> None:
        """``inside``: a package uses its own."""
        module, name = use.module, use.name
        if not name:
            if not use.loaded and self._covered(module, inside):
                self._take(module)
        elif name == STAR:
            if self._covered(module, inside):
                self._ask(module, STAR)
            return
        else:
            place = self.library.origin(module, name)
            if place is None or not self._follows(f"{module}.{name}", place, inside):
                return
            bound = place != (f"{module}.{name}", "") or bool(self.library.bindings(module, name))
            self._ask(module, name if bound else "")
            module = place[0]
            self._take(module)
            if place[1]:
                return
        if use.loaded:
            self._chain(module, use.chain, inside)

    def _chain(self, module: str, chain: tuple[str, ...], inside: bool) -> None:
        """``torchvision.models.resnet18``: from module to module, up to what is none."""
        for attribute in chain:
            if attribute in _EVERYTHING:
                break
            place, full = self.library.origin(module, attribute), f"{module}.{attribute}"
            if place is None or not self._follows(full, place, inside):
                return
            self._ask(module, attribute)
            if place[1]:
                return
            module = place[0]
        if self._covered(module, inside):
            self._ask(module, STAR)

    def _covered(self, module: str, inside: bool) -> bool:
        policy = self.policies[module.partition(".")[0]]
        return inside or (policy.covers(module) and self.wanted(module))

    def _follows(self, full: str, place: tuple[str, str], inside: bool) -> bool:
        policy = self.policies.get(place[0].partition(".")[0])
        if policy is None or not policy.converts(place[0]):
            return False
        return inside or self.wanted(full)

    def _take(self, module: str) -> None:
        """A module, and the packages around it."""
        parent = module.rpartition(".")[0]
        if parent:
            self._take(parent)
        if self.library.source(module) is not None:
            self.modules.add(module)

    def _ask(self, module: str, name: str) -> None:
        """Something of a module: "" for the module alone, a star for all of it."""
        self._take(module)
        names = self.names.setdefault(module, set())
        source = self.library.source(module)
        if not name or name in names or source is None:
            return
        names.add(name)
        policy = self.policies[module.partition(".")[0]]
        if registry := policy.whole.get(f"{module}.{name}", ""):
            self._ask(registry, STAR)
        if name != STAR:
            self._follow_name(module, name)
        elif policy.modules:  # what it imports of the rest has to be named anew
            for one in sorted(self.library.exports(module)):
                self._ask(module, one)
        else:
            self.whole.add(module)
            self._queue(source.tree, module, self.library.is_package(module))
            self._hand_on(module, source)

    def _hand_on(self, module: str, source: Source) -> None:
        """Add the subpackages of a package that is used as a whole."""
        for name in sorted({n for node in source.tree.body for n in bound_by(node)}):
            place = self.library.origin(module, name)
            if place is not None and not place[1] and self.library.is_package(place[0]):
                self._ask(place[0], STAR)

    def _follow_name(self, module: str, name: str) -> None:
        """What a name of a module needs: where it is defined, or its statements there."""
        place = self.library.origin(module, name)
        if place is None:
            return
        if place != (module, name):
            if self._follows(f"{module}.{name}", place, True):
                self._ask(*place)
            return
        kept = ast.Module(own_statements(self.library, module, [name]), [])
        self._queue(kept, module, self.library.is_package(module))
        for variable, chain in chains(kept):
            if variable in _LOOKING_AROUND:
                self._ask(module, STAR)
            origin = self.library.origin(module, variable)
            if origin is None or origin == (module, variable):
                continue
            self._ask(module, variable)
            if not origin[1] and self._follows("", origin, True):
                self._chain(origin[0], chain, True)
