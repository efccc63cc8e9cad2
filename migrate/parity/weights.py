"""Name MindSpore's tensors for torch's, by the classes of the modules and the record's maps.

Pure: no framework is imported. `verify` pairs live models with it, and converting a checkpoint
uses the pairs that a verification proved. What an optimizer keeps of a weight MindSpore names
``<prefix>.<name of the weight>``; PREFIXES are those of nn, experimental.optim and the helpers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

Maps = Mapping[str, Mapping[str, str]]


@dataclass(frozen=True)
class Names:
    """The record's maps: torch class -> {torch name: MindSpore name} and {name: shape change}."""

    weights: Maps
    layouts: Maps


@dataclass(frozen=True)
class Partner:
    """Where a torch tensor goes. ``name`` is empty when it needs no partner (``needed`` False)."""

    name: str
    layout: str = ""
    needed: bool = True


@dataclass(frozen=True)
class Held:
    """One tensor of the Cell: its ``place`` ("bn1.gamma"), Parameter name, identity and traits."""

    place: str
    name: str = ""
    same: int = 0
    trained: bool = False
    parameter: bool = True


@dataclass(frozen=True)
class Pair:
    """A torch tensor with the place of its partner; ``place`` is empty when it needs none."""

    key: str
    place: str
    layout: str = ""


@dataclass(frozen=True)
class Pairing:
    """All torch tensors, each exactly once in ``pairs`` or in ``missing`` (with the reason)."""

    pairs: tuple[Pair, ...]
    missing: tuple[tuple[str, str], ...]
    extra: tuple[Held, ...]

    @property
    def total(self) -> int:
        return len(self.pairs) + len(self.missing)


def public_names(classes: Sequence[str]) -> tuple[str, ...]:
    """Return names under which the classes of an MRO may stand in the table, nearest first.

    ``torch.nn.modules.conv.Conv2d`` also stands there as ``torch.nn.Conv2d``.
    """
    found: list[str] = []
    for name in classes:
        found.append(name)
        parts = name.split(".")
        if name.startswith("torch.nn.modules."):
            found.append(f"torch.nn.{parts[-1]}")
        elif len(parts) > 2:
            found += [".".join([*parts[:end], parts[-1]]) for end in range(len(parts) - 2, 0, -1)]
    return tuple(dict.fromkeys(found))


def _map_of(classes: Sequence[str], maps: Maps) -> Mapping[str, str]:
    return next((maps[name] for name in public_names(classes) if name in maps), {})


def partner(key: str, classes: Mapping[str, Sequence[str]], names: Names) -> Partner:
    """MindSpore's name for one torch tensor.

    ``classes`` gives the MRO (full class names) of the module at each path. An outer module's map
    may name a tensor of a child (``linear1.weight``) or a child (``linear1``); it goes before the
    child's own map.
    """
    path, _, tensor = key.rpartition(".")
    own = _map_of(classes.get(path, ()), names.weights)
    renamed = own.get(tensor, tensor)
    layout = _map_of(classes.get(path, ()), names.layouts).get(tensor, "")
    for outer, inner in _ancestors(key):
        renames = _map_of(classes.get(outer, ()), names.weights)
        if inner in renames and outer != path:
            shape = _map_of(classes.get(outer, ()), names.layouts).get(inner, layout)
            return Partner(_join(outer, renames[inner]), shape, renames[inner] != "")
    if not renamed:
        return Partner("", needed=False)
    return Partner(_join(cell_path(path, classes, names), renamed), layout)


def cell_path(path: str, classes: Mapping[str, Sequence[str]], names: Names) -> str:
    """Return the Cell's path for a module's path: the same but for children that a map renames."""
    steps: list[str] = []
    torch_steps: list[str] = []
    for step in path.split(".") if path else []:
        renames = _map_of(classes.get(".".join(torch_steps), ()), names.weights)
        steps.append(renames.get(step) or step)
        torch_steps.append(step)
    return ".".join(steps)


def _ancestors(key: str) -> Iterator[tuple[str, str]]:
    parts = key.split(".")
    for cut in range(len(parts)):
        yield ".".join(parts[:cut]), ".".join(parts[cut:])


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _with_aliases(
    tied: Mapping[str, str], classes: Mapping[str, Sequence[str]]
) -> Mapping[str, Sequence[str]]:
    """The classes with those of a shared module's further paths, which torch lists once only."""
    found = dict(classes)
    for key, other in tied.items():
        (path, _, tensor), (first, _, same) = key.rpartition("."), other.rpartition(".")
        while other and tensor == same and path not in found and first in found:
            found[path] = found[first]
            (path, _, tensor), (first, _, same) = path.rpartition("."), first.rpartition(".")
    return found


def pair_all(
    tied: Mapping[str, str],
    classes: Mapping[str, Sequence[str]],
    held: Sequence[Held],
    names: Names,
) -> Pairing:
    """Find every torch tensor's partner among the tensors of a Cell.

    ``tied`` maps each torch tensor's key to the key it shares memory with ("" for none). A tensor
    that shares memory in torch must share it in MindSpore too, or training drifts apart.
    """
    classes = _with_aliases(tied, classes)
    by_place = {item.place: item for item in held}
    by_name = {item.name: item for item in held if item.name}
    found: dict[str, Held] = {}
    pairs: list[Pair] = []
    missing: list[tuple[str, str]] = []
    for key, other in tied.items():
        wanted = partner(key, classes, names)
        if not wanted.needed:
            pairs.append(Pair(key, ""))
            continue
        match = by_place.get(wanted.name) or by_name.get(wanted.name)
        if match is None:
            missing.append((key, f"the Cell has no {wanted.name}"))
            continue
        if other in found and found[other].same != match.same:
            missing.append((key, f"shares memory with {other} in torch, not in MindSpore"))
            continue
        found[key] = match
        pairs.append(Pair(key, match.place, wanted.layout))
    used = {item.same for item in found.values()}
    extra = tuple(item for item in held if item.parameter and item.same not in used)
    return Pairing(tuple(pairs), tuple(missing), extra)


PREFIXES: Mapping[str, tuple[str, ...]] = {
    "momentum_buffer": ("accum", "moments", "moment"),
    "exp_avg": ("moment1", "adam_m"),
    "exp_avg_sq": ("moment2", "adam_v"),
    "square_avg": ("mean_square", "accum"),
    "grad_avg": ("mean_grad",),
    "acc_delta": ("accum_update",),
    "sum": ("accum",),
}


def key_of(moment: str, weight: str) -> str:
    """Return how the state of a weight is named between both sides: the weight first, as a path."""
    return f"{weight}.{moment}"


def moment_of(key: str) -> tuple[str, str]:
    """Return ``(weight, moment)`` of a key."""
    weight, _, moment = key.rpartition(".")
    return weight, moment


def found_under(moment: str, weight: str, names: Iterable[str]) -> str:
    """Return the name among ``names`` under which MindSpore keeps it; empty if none is known."""
    held = frozenset(names)
    prefixes = (moment, *PREFIXES.get(moment, ()))
    return next((name for p in prefixes if (name := f"{p}.{weight}") in held), "")
