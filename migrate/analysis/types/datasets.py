"""In: the kinds of the arguments of a dataset or loader. Out: the kind of its items and batches.

Formula of a batch: torch.utils.data.default_collate stacks tensors, arrays and numbers into
Tensors, recurses into dicts and tuples, and leaves strings in a list.
"""

from __future__ import annotations

from collections.abc import Mapping

from migrate.analysis.types.kinds import (
    INT,
    STR,
    TENSOR,
    UNKNOWN,
    Atom,
    Kind,
    fixed_tuple,
    join,
    sequence,
    without_none,
)
from migrate.analysis.types.world import World

SPACE = "torch.utils.data."
IMAGES = "torchvision.datasets."


def made(name: str, given: Mapping[str, Kind], args: tuple[Kind, ...], world: World) -> Kind | None:
    """Return the instance that a class or function of torch.utils.data makes; None for other names.

    An item of a torchvision data set is a pair: an image, or the result of its transform, and a
    class label. ``given`` are the keyword arguments; ``items`` of the result is the kind of an item
    or batch.
    """
    short = name.removeprefix(SPACE)
    if name.startswith(IMAGES) and world.table.keys(name):
        label = UNKNOWN if "target_transform" in given or len(args) > 2 else INT
        return _holding(name, fixed_tuple((UNKNOWN, label)))
    if not name.startswith(SPACE):
        return None
    if short == "TensorDataset":
        return _holding(name, fixed_tuple(tuple(TENSOR for _ in args)))
    dataset = args[0] if args else given.get("dataset", UNKNOWN)
    if short in ("Subset", "random_split"):
        part = _holding(f"{SPACE}Subset", item(dataset, world))
        return sequence("list", part) if short == "random_split" else part
    if short == "ConcatDataset":
        parts = [item(i, world) for a in dataset for i in a.items]
        return _holding(name, join(*parts) or UNKNOWN)
    if short != "DataLoader":
        return None
    collate = args[6] if len(args) > 6 else given.get("collate_fn", UNKNOWN)
    functions = [world.function_of(a.name) for a in collate if a.kind == "function"]
    if any(functions):
        return _holding(name, join(*(world.returns(f) for f in functions if f)))
    if "collate_fn" in given:
        return _holding(name, UNKNOWN)
    one = item(dataset, world)
    return _holding(name, _BATCH if without_none(one) <= UNKNOWN else collated(one))


# of an unknown data set: a Tensor or several, texts, or a dictionary of these
_BATCH = join(TENSOR, sequence("list", join(TENSOR, UNKNOWN)), UNKNOWN)


def _holding(name: str, item: Kind) -> Kind:
    return frozenset((Atom("torch", name, (item,)),))


def item(dataset: Kind, world: World) -> Kind:
    """Return the kind of an item of a dataset, by index or iteration."""
    found: list[Kind] = []
    for atom in without_none(dataset):
        if atom.kind == "torch" and atom.items:
            found.append(atom.items[0])
        elif atom.kind in ("list", "tuple") and atom.items:
            found.append(join(*atom.items))
        elif "::" in atom.name:
            method = world.member(atom.name, "__getitem__")
            functions = [world.function_of(a.name) for a in method if a.kind == "method"]
            found += [world.returns(f) for f in functions if f]
    return join(*found) if found else UNKNOWN


def collated(one: Kind) -> Kind:
    """What a batch of such items is: anything but a string becomes (part of) a Tensor."""
    found: list[Kind] = []
    for atom in without_none(one):
        if atom.kind == "str":
            found.append(sequence("list", STR))
        elif atom.kind in ("tuple", "list") and atom.fixed:
            found.append(fixed_tuple(tuple(collated(i) for i in atom.items)))
        elif atom.kind == "dict":
            items = tuple(collated(i) for i in atom.items)
            found.append(frozenset((Atom("dict", atom.name, items, atom.keys),)))
        else:
            found.append(TENSOR)
    return join(*found) if found else UNKNOWN
