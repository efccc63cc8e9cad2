"""Contents of containers by where these are made: what one name puts in, every other name sees.

An alternative that is a container has the *sites* that may have made it: the id of a display, a
constructor or a call; for what comes from outside of the unit, of the parameter; for what an
attribute holds ".name", whatever the object, and "@name@class" for the classes that the object may
be of; for what a global holds "=path:name". Two containers may be one only if they share a site.
What is put in at a site of a class or a global is a cell of the whole program (`Told`).

Sites of attributes and globals that may hold one container are joined. A group of joined sites that
grows beyond `MANY` is one site, ANYWHERE: its containers hold whatever there is, for good.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache

from migrate.analysis.types.kinds import (
    MAX_DEPTH,
    MODULE,
    NOTHING,
    UNKNOWN,
    Atom,
    Kind,
    Site,
    depth,
    element,
    indirect,
    join,
    shallow,
)
from migrate.analysis.types.python_results import pair_values

MODULES = ("torch.nn.Sequential", "torch.nn.ModuleList", "torch.nn.ModuleDict",
           "torch.nn.ParameterList", "torch.nn.ParameterDict")  # fmt: skip
ANY_KEY = "?"
Sites = frozenset[Site]
More = Mapping[int, tuple[Kind, frozenset[str]]]  # by depth: what was put in, under which keys
NO_SITES: Sites = frozenset()
ANYWHERE = "~"  # the site of all containers whose group is too large
EVERYWHERE: frozenset[str] = frozenset((ANYWHERE,))
MANY = 64


def is_container(atom: Atom) -> bool:
    """Return whether something may be put into it; an iterator sees what is put in behind it."""
    return atom.kind in ("list", "dict", "iterator") or atom.name in MODULES


@lru_cache(maxsize=1 << 16)
def is_plain(value: Kind) -> bool:
    """Return whether a value is no container, and holds nothing."""
    return not any(a.items or is_container(a) for a in value)


def sites(value: Kind) -> Sites:
    """Return the sites of the containers that a value may be."""
    found = NO_SITES
    for atom in value:
        if atom.sites:
            found |= atom.sites
    return found


@lru_cache(maxsize=1 << 16)
def all_sites(value: Kind) -> Sites:
    """Return the sites of the containers that a value may be or hold."""
    found = sites(value)
    for atom in value:
        for item in atom.items:
            found |= all_sites(item)
    return found


def _rebuilt(atom: Atom, items: tuple[Kind, ...], keys: tuple[str, ...], at: Sites) -> Atom:
    return Atom(atom.kind, atom.name, items, keys, atom.direct, atom.fixed, at)


def made_at(value: Kind, site: int) -> Kind:
    """Return a value whose containers are new, made at a site; what they hold is not."""
    if is_plain(value) or not any(map(is_container, value)):
        return value
    at: Sites = frozenset((site,))
    return frozenset(
        _rebuilt(a, a.items, a.keys, at) if is_container(a) else a for a in filled(value, site)
    )


def filled(value: Kind, site: int) -> Kind:
    """Return a value in which containers that nothing is known of are made at a site."""
    return value if is_plain(value) else _filled(value, site, 0)


@lru_cache(maxsize=1 << 14)
def _filled(value: Kind, site: int, down: int) -> Kind:
    if is_plain(value):
        return value
    found = []
    for atom in value:
        items = tuple(_filled(i, site, down + 1) for i in atom.items)
        at = atom.sites or (frozenset(((site, down),)) if is_container(atom) else NO_SITES)
        same = at is atom.sites and all(map(_is, items, atom.items))
        found.append(atom if same else _rebuilt(atom, items, atom.keys, at))
    return frozenset(found)


def _is(first: Kind, second: Kind) -> bool:
    return first is second


@lru_cache(maxsize=4096)
def by_kind(value: Kind) -> frozenset[tuple[str, Site]]:
    """Return the sites of containers that a value may be or hold, each with what they are."""
    found = {(atom.name or atom.kind, site) for atom in value for site in atom.sites}
    return frozenset(found).union(*(by_kind(i) for atom in value for i in atom.items))


def received(value: Kind, *site: object, also: frozenset[tuple[str, Site]] = frozenset()) -> Kind:
    """Return a value as another unit sees it: made at a site of that unit, or one of ``also``.

    What an attribute or a global holds keeps the sites that say so.
    """
    return value if is_plain(value) else _received(value, site, also, 0)


@lru_cache(maxsize=1 << 14)
def _received(
    value: Kind, site: tuple[object, ...], also: frozenset[tuple[str, Site]], depth: int
) -> Kind:
    if is_plain(value):
        return value
    own: Sites = frozenset(level(s, depth) for s in site)
    found = []
    for atom in value:
        if atom.kind == "method":  # of an object, whose sites it has
            found.append(atom)
            continue
        items = tuple(_received(i, site, also, depth + 1) for i in atom.items)
        at = NO_SITES
        if is_container(atom):
            at = own | {s for s in atom.sites if isinstance(s, str)}
            kinds = (atom.name or atom.kind, atom.kind if atom.kind != "iterator" else "")
            at |= {s for what, s in also if "" in kinds or what in kinds}
        found.append(_rebuilt(atom, items, atom.keys, at))
    return join(frozenset(found))


def of_attribute(name: str, holder: Kind) -> list[str]:
    """Return the sites of what an attribute of an object holds."""
    classes = {a.name if "::" in a.name else "" for a in holder if a.kind != "None"}
    return [f".{name}", *(f"@{name}@{key}" for key in sorted(classes))]


def is_told(site: Site) -> bool:
    """Return whether the whole program knows what is put in at a site: of a class, or a global."""
    return isinstance(site, str) and (site[0] == "@" or ":" in site)


def of_unknown(site: str) -> str:
    """Return the site of an attribute ".name" of an object whose class is not known."""
    name = site[1:].rstrip("[]")
    return f"@{name}@{site[1 + len(name) :]}"


def also_at(value: Kind, linked: Callable[[Sites], Sites]) -> Kind:
    """Return a value with the sites of attributes and globals that may hold its containers."""
    if not all_sites(value):
        return value
    found = []
    for atom in value:
        outside = frozenset(s for s in linked(atom.sites) if isinstance(s, str))
        items = tuple(also_at(i, linked) for i in atom.items)
        found.append(_rebuilt(atom, items, atom.keys, atom.sites | outside))
    return join(frozenset(found))


def share(passed: Iterable[Kind]) -> bool:
    """Return whether two of these values may be, or hold, one container."""
    seen: set[Site] = set()
    for value in passed:
        sites = () if is_plain(value) else all_sites(value)
        if not seen.isdisjoint(sites):
            return True
        seen.update(sites)
    return False


def level(site: object, depth: int) -> Site:
    """Return the site of the containers in those of a site, some levels down.

    Below the depth to which kinds are distinguished there is one site: an object may hold itself.
    """
    if not isinstance(site, str):
        return site, depth
    base = site.rstrip("[]")
    return base + "[]" * min((len(site) - len(base)) // 2 + depth, MAX_DEPTH)


def anything(value: Kind) -> Kind:
    """Return what containers like those of a value may hold: torch's hold Modules."""
    held = [a for a in value if is_container(a)]
    return MODULE if held and all(a.name in MODULES[:3] for a in held) else UNKNOWN


@lru_cache(1024)
def levels_of(site: Site) -> Sites:
    """Return the sites of what the container of an attribute or a global holds, at all depths."""
    if not isinstance(site, str):
        return NO_SITES
    base = site.rstrip("[]")
    return frozenset(base + "[]" * depth for depth in range(MAX_DEPTH + 1))


def inside(site: str) -> str:
    """Return the site of what the container of an attribute or a global holds."""
    found = level(site, 1)
    assert isinstance(found, str)
    return found


def levels(value: Kind) -> list[Sites]:
    """Return the sites of the containers that a value may be, of what they hold, and so on."""
    found = []
    while value:
        found.append(sites(value))
        value = frozenset(a for atom in value for i in atom.items for a in i)
    return found


def is_given(site: Site) -> bool:
    """Return whether it is the site of an argument."""
    return isinstance(site, tuple) and isinstance(site[0], tuple)


def parameter_of(site: Site) -> tuple[str, int]:
    """Return the parameter of the site of an argument, and the depth inside of it."""
    assert isinstance(site, tuple) and isinstance(site[0], tuple)
    return str(site[0][0]), site[1]


def of_given(value: Kind) -> Kind:
    """Return a value without the sites that mean nothing to the callers of its unit."""
    if not all_sites(value):
        return value
    found = []
    for atom in value:
        at = frozenset(s for s in atom.sites if isinstance(s, str) or is_given(s))
        found.append(_rebuilt(atom, tuple(map(of_given, atom.items)), atom.keys, at))
    return join(frozenset(found))


def brought(value: Kind, node: int, given: Callable[[Site], Sites], depth: int = 0) -> Kind:
    """Return what a callee puts into containers, with the sites of its arguments."""
    if is_plain(value):
        return value
    found = []
    for atom in value:
        at: set[Site] = {(node, depth)} if is_container(atom) else set()
        for site in atom.sites:
            at |= {site} if isinstance(site, str) else given(site)
        items = tuple(brought(i, node, given, depth + 1) for i in atom.items)
        found.append(_rebuilt(atom, items, atom.keys, frozenset(at)))
    return join(frozenset(found))


@lru_cache(maxsize=4096)
def bare(value: Kind) -> Kind:
    """Return a value without the sites that only its unit knows."""
    if not all_sites(value):
        return value
    found = []
    for atom in value:
        at = frozenset(s for s in atom.sites if isinstance(s, str)) if atom.sites else NO_SITES
        found.append(_rebuilt(atom, tuple(map(bare, atom.items)), atom.keys, at))
    return join(frozenset(found))


@lru_cache(maxsize=1 << 15)
def grown(value: Kind, at: Sites, added: Kind, key: str = "") -> Kind:
    """Return a value after something was put into every container that was made at some sites.

    ``key``: that under which a dictionary gets it; "" where none is added.
    """
    if at.isdisjoint(all_sites(value)):
        return value
    found = []
    for atom in value:
        items = tuple(grown(i, at, added, key) for i in atom.items)
        keys = atom.keys
        if not at.isdisjoint(atom.sites):
            items, keys = _with(atom, items, added, key)
        found.append(_rebuilt(atom, items, keys, atom.sites))
    return join(frozenset(found))


def _with(
    atom: Atom, items: tuple[Kind, ...], added: Kind, key: str
) -> tuple[tuple[Kind, ...], tuple[str, ...]]:
    if atom.kind == "iterator":  # of pairs, perhaps
        known = all(added <= i or any(added <= j for a in i for j in a.items) for i in items)
        return (items if known and items else (UNKNOWN,)), atom.keys
    new = not items or items == (NOTHING,)
    if not items and atom.kind != "Module":
        added = added | UNKNOWN  # nothing was known of what it holds
    keys = atom.keys
    if key and atom.kind != "list" and (keys or new):
        keys = tuple(dict.fromkeys((*keys, key)))
    return (shallow(join(*items, indirect(added))),), keys


def with_more(value: Kind, more: More, depth: int = 0) -> Kind:
    """Return a value with what was put into it, and into what it holds, by depth."""
    if not more or is_plain(value):
        return value
    found = []
    for atom in value:
        if atom.kind == "method":
            found.append(atom)
            continue
        items, keys = atom.items, atom.keys
        if depth in more and is_container(atom):
            added, under = more[depth]
            for key in sorted(under) or [""]:
                items, keys = _with(atom, items, added, key)
        items = tuple(with_more(i, more, depth + 1) for i in items)  # what was added as well
        # lists beside what is unknown say no more; they would be nested deeper with each round
        items = tuple(frozenset(map(_bottomless, i)) if i >= UNKNOWN else i for i in items)
        found.append(_rebuilt(atom, items, keys, atom.sites))
    return join(frozenset(found))


def _bottomless(atom: Atom) -> Atom:
    return atom._replace(items=(UNKNOWN,)) if atom.kind in ("list", "dict") else atom


def anything_in(value: Kind, at: Sites) -> Kind:
    """Return a value in which the containers of some sites hold whatever there is."""
    if at.isdisjoint(all_sites(value)):
        return value
    found = []
    for atom in value:
        items = tuple(anything_in(i, at) for i in atom.items)
        own = not at.isdisjoint(atom.sites)
        found.append(_rebuilt(atom, (UNKNOWN,) if own else items, atom.keys, atom.sites))
    return join(frozenset(found))


def shallower(value: Kind) -> Kind:
    """Return what is put into a container; nesting beyond a few levels is forgotten."""
    return value if depth(value) < MAX_DEPTH - 1 else UNKNOWN


def put_in(method: str, args: tuple[Kind, ...], named: Mapping[str, Kind]) -> Kind | None:
    """Return what a method puts into its list, set or dictionary; None for one that puts nothing.

    ``method``: "list.append", "dict.update", "torch.nn.ModuleList.extend".
    """
    owner, _, name = method.rpartition(".")
    if name not in _PUTTING or (not args and not named):
        return None
    dictionary = owner == "dict" or owner.endswith("Dict")
    if dictionary:
        if name == "update":
            return join(*(v for a in args for v in values(a)), *named.values())
        if name == "setdefault":
            return args[1] if len(args) > 1 else NOTHING
        return None
    if name in ("append", "add", "insert"):
        return args[-1] if args else UNKNOWN
    return join(*map(element, args)) if name in ("extend", "update") else None


def puts(method: str) -> bool:
    """Return whether a method puts something into its container."""
    return method.rpartition(".")[2] in _PUTTING


_PUTTING = frozenset(("append", "extend", "insert", "add", "update", "setdefault"))


def values(value: Kind) -> Iterable[Kind]:
    """Yield what a dictionary, or pairs of keys and values, hold."""
    for atom in value:
        if not atom.items:
            yield UNKNOWN
        elif atom.kind == "dict" or atom.name in MODULES:
            yield join(*atom.items)
        else:
            yield pair_values(element(frozenset((atom,))))
