"""In: a project's sources and what may be followed. Out: the sources that are converted along."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from migrate.mapping.table import Table, is_pattern
from migrate.syntax.source import Source, read
from migrate.vendoring.closure import Closure
from migrate.vendoring.library import Installed, Library, Looked, find, told
from migrate.vendoring.policy import Policy, Wish, answered, is_below, policies
from migrate.vendoring.reduced import reduced

MARK = "_ms"


@dataclass(frozen=True)
class Followed:
    """What is converted along. ``packages``: by name; ``names``: what each is called in the output;
    ``modules``: dotted names with their paths in the conversion; ``origins``: what those paths
    are where they are installed; ``sources``: the text, by path; ``mixed``: modules of which some
    names have rows, and the packages themselves; ``absent``: what would be followed if it were
    installed; ``looked``: what was looked up for all this."""

    policies: Mapping[str, Policy] = field(default_factory=dict)
    packages: Mapping[str, Installed] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    modules: Mapping[str, str] = field(default_factory=dict)
    origins: Mapping[str, str] = field(default_factory=dict)
    sources: Mapping[str, Source] = field(default_factory=dict)
    mixed: frozenset[str] = frozenset()
    absent: Mapping[str, Policy] = field(default_factory=dict)
    looked: Looked = field(default_factory=Looked)

    def wants(self, table: Table, name: str) -> bool:
        """Whether a project's use of a name means what is converted along."""
        return _wants(self.policies, table, name)

    def folder(self, package: str) -> str:
        """Where a package lies in the conversion."""
        return posixpath.dirname(self.modules[package])

    def package_of(self, path: str) -> str:
        """The package that a path of the conversion belongs to; "": it is the project's own."""
        return self.origins.get(path, "").partition("/")[0]


def _wants(known: Mapping[str, Policy], table: Table, name: str) -> bool:
    policy = known.get(name.partition(".")[0])
    if policy is None or not (policy.covers(name) or policy.leads_to(name)):
        return False
    return not answered(table, name)


def follow(
    sources: Mapping[str, Source], table: Table, wish: Wish, home: str = "", root: str = ""
) -> Followed:
    """Find what the sources use of packages that may be followed, and take it from there.

    Args:
        sources: the project's files by path.
        home: the folder of the conversion that the packages are put into.
        root: the name of the package whose folder is the root of the paths, if it is one.
    """
    known = {
        name: policy for name, policy in policies(table, wish).items()
        if any(name.encode() in one.data for one in sources.values())
        and name != root and not _is_own(name, sources)
    }  # fmt: skip
    packages = {name: found for name in known if (found := find(name, wish.paths)) is not None}
    absent = {name: one for name, one in known.items() if name not in packages}
    asked = {name: told(packages.get(name)) for name in known}
    if not packages:
        return Followed(absent=absent, looked=Looked(asked))
    others = {name: one for name, one in policies(table, wish).items() if name != root}
    library = Library(_with_others(packages, others, wish, sources))
    searched = (name for name in others if not _is_own(name, sources))
    asked |= {name: told(library.packages.get(name)) for name in searched}
    every = {name: one for name, one in policies(table, wish).items() if name in library.packages}
    closure = Closure(library, every, lambda name: _wants(every, table, name))
    for path in sorted(sources):
        if any(name.encode() in sources[path].data for name in packages):
            closure.add(sources[path].tree)
    made = _gathered(closure, table, sources, home)
    return replace(made, absent=absent, looked=Looked(asked, library.files()))


def _is_own(name: str, sources: Mapping[str, Source]) -> bool:
    """Whether the project holds the package itself: then nothing of it is taken from elsewhere."""
    ends = (f"{name}/__init__.py", f"{name}.py")
    return any(f"/{path}".endswith(tuple(f"/{end}" for end in ends)) for path in sources)


def _with_others(
    packages: Mapping[str, Installed],
    known: Mapping[str, Policy],
    wish: Wish,
    sources: Mapping[str, Source],
) -> dict[str, Installed]:
    """A package that is followed may use another one: timm uses torchvision."""
    rest = {name for name in known if name not in packages and not _is_own(name, sources)}
    found = {name: place for name in sorted(rest) if (place := find(name, wish.paths)) is not None}
    return {**packages, **found}


def _gathered(closure: Closure, table: Table, sources: Mapping[str, Source], home: str) -> Followed:
    used = sorted({module.partition(".")[0] for module in closure.modules})
    names = {package: _free_name(package, home, sources) for package in used}
    modules: dict[str, str] = {}
    origins: dict[str, str] = {}
    texts: dict[str, Source] = {}
    for module in sorted(closure.modules):
        root, *inner = module.split(".")
        is_package = closure.library.is_package(module)
        tail = [*inner, "__init__.py"] if is_package else [*inner[:-1], f"{inner[-1]}.py"]
        path = posixpath.join(home, names[root], *tail)
        modules[module], origins[path] = path, posixpath.join(root, *tail)
        texts[path] = _source(closure, module, path)
    return Followed(
        {name: closure.policies[name] for name in used},
        {name: closure.library.packages[name] for name in used},
        names, modules, origins, texts, _mixed(modules, table),
    )  # fmt: skip


def _mixed(modules: Mapping[str, str], table: Table) -> frozenset[str]:
    """Modules whose names may also mean something that has a row."""
    roots = {module for module in modules if "." not in module}
    rows = [n for n in table.names if n.partition(".")[0] in roots and not is_pattern(n)]
    above = {n.rsplit(".", depth)[0] for n in rows for depth in range(1, n.count(".") + 1)}
    return frozenset(roots | (above & modules.keys()))


def _free_name(package: str, home: str, sources: Mapping[str, Source]) -> str:
    """Not the installed package's own name: it must neither hide that one nor be taken for it."""
    name = package + MARK
    while any(is_below(path.replace("/", "."), _dotted(home, name)) for path in sources):
        name += "_along"
    return name


def _dotted(home: str, name: str) -> str:
    return posixpath.join(home, name).replace("/", ".")


def _source(closure: Closure, module: str, path: str) -> Source:
    source = closure.library.source(module)
    assert source is not None
    if module in closure.whole:
        return replace(source, path=path)
    policy = closure.policies[module.partition(".")[0]]
    text = reduced(closure.library, policy, module, closure.asked(module))
    return read(path, text.encode("utf-8"))
