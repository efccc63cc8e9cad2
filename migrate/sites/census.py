"""Count the places of a file that may be torch's, by names and scopes alone.

The inference takes no part in it: what it does not understand, or has never looked at, is counted
all the same. What became of each place is found afterwards, and the sum has to be the number of
places.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass

from migrate.analysis.facts import Facts
from migrate.analysis.program import File
from migrate.mapping.table import Table
from migrate.records.outcomes import Site
from migrate.records.result import OpenPlace
from migrate.sites.scene import Scene
from migrate.syntax.source import Source

_OWNERS = (
    "torch.Tensor",
    "torch.nn.Module",
    "torch.optim.Optimizer",
    "torch.optim.lr_scheduler.LRScheduler",
)
# the class of torch whose attributes a value of such a kind has; "": any may be meant
_CLASS_OF = {
    "unknown": "",
    "torch": "",
    "ref": "",
    "Tensor": "torch.Tensor",
    "Module": "torch.nn.Module",
    "super": "torch.nn.Module",
    "Optimizer": "torch.optim.Optimizer",
}


@dataclass(frozen=True)
class Place:
    """A name of torch, or an attribute that torch's objects have.

    ``chain``: the nodes of the dotted name, innermost first; of an attribute, itself alone.
    """

    name: str
    chain: tuple[ast.Name | ast.Attribute, ...]


@dataclass(frozen=True)
class Census:
    """What became of the places of a file.

    ``settled``: those with an outcome of their own. ``others``: attributes of what is surely none
    of torch's objects, by kind. ``open``: attributes of which nobody knows whose they are.
    """

    places: int
    settled: int
    others: Counter[str]
    open: tuple[Place, ...]

    @property
    def counts(self) -> dict[str, int]:
        """The fields of the ledger that the census gives."""
        return {
            "places": self.places,
            "others": sum(self.others.values()),
            "open": len(self.open),
        }

    def left_open(self, source: Source) -> tuple[OpenPlace, ...]:
        """Return where the places are that nobody can assign, in the order of the text."""
        sites = sorted((source.site(p.name, p.chain[-1]) for p in self.open), key=_place)
        return tuple(OpenPlace(name=s.name, line=s.line, column=s.column) for s in sites)


def _place(site: Site) -> tuple[int, int]:
    return site.line, site.column


def members(table: Table) -> frozenset[str]:
    """Return the attributes of torch's Tensors, Modules, optimizers and schedules."""
    found = {name for owner in _OWNERS for name in table.torch.members(owner)}
    return frozenset(name for name in found if not name.startswith("__"))


def places(file: File, facts: Facts, names: Collection[str]) -> list[Place]:
    """Return the places of a file: names of torch, then attributes.

    ``names`` are the attributes of torch's objects.
    """
    spelled = _torch_names(file)
    chains: dict[int, Place] = {}
    for spelling in sorted(spelled & file.loads.keys()):
        for node in file.loads[spelling]:
            if not _means_torch(facts, node):
                continue
            chain = _chain(file, node)
            name = ".".join([node.id, *(part.attr for part in chain[1:])])  # type: ignore[union-attr]
            chains |= dict.fromkeys(map(id, chain), Place(name, chain))
    found = {id(place): place for place in chains.values()}
    for name in names & file.attributes.keys():
        for read in file.attributes[name]:
            if id(read) not in chains:
                found[id(read)] = Place(name, (read,))
    return list(found.values())


def _torch_names(file: File) -> frozenset[str]:
    """Return the names that some import of torch binds, wherever it stands."""
    return frozenset(
        (alias.asname or alias.name).partition(".")[0]
        for node in file.imports
        for alias in node.names
        if _of_torch(node, alias)
    )


def _of_torch(node: ast.Import | ast.ImportFrom, alias: ast.alias) -> bool:
    origin = alias.name if isinstance(node, ast.Import) else node.module or ""
    return not getattr(node, "level", 0) and origin.partition(".")[0] == "torch"


def _means_torch(facts: Facts, node: ast.Name) -> bool:
    """Return whether imports of torch are all that may have bound a name."""
    bound = facts.reach(node).bindings
    return bool(bound) and all(
        isinstance(b.place, ast.alias)
        and isinstance(around := facts.parents.get(id(b.place)), ast.Import | ast.ImportFrom)
        and _of_torch(around, b.place)
        for b in bound
    )


def _chain(file: File, node: ast.Name) -> tuple[ast.Name | ast.Attribute, ...]:
    found: list[ast.Name | ast.Attribute] = [node]
    parent = file.parents.get(id(node))
    while isinstance(parent, ast.Attribute):
        found.append(parent)
        parent = file.parents.get(id(parent))
    return tuple(found)


def taken(scene: Scene, settled: Collection[int]) -> Census:
    """Count the places of a scene's file.

    ``settled`` are the ids of the nodes that have an outcome.
    """
    found = places(scene.file, scene.facts, members(scene.table))
    others: Counter[str] = Counter()
    open_: list[Place] = []
    done = 0
    for place in found:
        if any(id(node) in settled for node in place.chain):
            done += 1
            continue
        node = place.chain[-1]
        what = _other(scene, node) if isinstance(node, ast.Attribute) else ""
        if what:
            others[what] += 1
        else:
            open_.append(place)
    return Census(len(found), done, others, tuple(open_))


def _other(scene: Scene, node: ast.Attribute) -> str:
    """Return of what an attribute surely is, if of none of torch's; "" if it may be torch's."""
    kind = scene.kind(node.value)
    for atom in kind:
        owner = _CLASS_OF.get(atom.kind)
        if owner is not None and (not owner or scene.table.kind(f"{owner}.{node.attr}")):
            return ""
    return " or ".join(sorted({atom.kind for atom in kind}))
