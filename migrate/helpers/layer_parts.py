"""In: a layer of some class. Out: what torch calls weight, bias, running_* or in_features of it."""

from collections.abc import MutableMapping

import mindspore as ms
from mindspore import nn

from migrate.helpers.late_settings import set_bias
from migrate.helpers.modules import own_tensors

_COUNT = "num_batches_tracked"


def other_names(cell, name):
    """What MindSpore's layers call what torch calls ``name``; other Cells have their
    own names for what they hold. What torch calls forward is construct of any Cell."""
    if name == "forward":
        kind = cell if isinstance(cell, type) else type(cell)
        return ("construct",) if issubclass(kind, nn.Cell) else ()
    if not any(kind.__module__.startswith("mindspore.nn.layer") for kind in type(cell).__mro__):
        return ()
    if name == "weight":
        return ("gamma", "embedding_table")
    names = {"bias": "beta", "running_mean": "moving_mean", "running_var": "moving_variance",
             "in_features": "in_channels", "out_features": "out_channels", "groups": "group",
             "num_embeddings": "vocab_size", "embedding_dim": "embedding_size"}  # fmt: skip
    names[_COUNT] = "moving_mean"  # who has statistics has a count of batches in torch
    return (names[name],) if name in names else ()


def batches_tracked(norm):
    """``norm.num_batches_tracked`` of a norm that has seen no batch yet; MindSpore counts none.

    Raises NotImplementedError when its statistics have moved.
    """
    if hasattr(norm, "num_batches_tracked"):
        return norm.num_batches_tracked
    if (norm.moving_mean != 0).any() or (norm.moving_variance != 1).any():
        raise NotImplementedError("torch2ms API110: nothing counts the batches of this norm")
    return ms.Tensor(0, ms.int64)


def layer_part(cell, name):
    """``cell.weight`` as in torch, of any layer: some Cells call it gamma or embedding_table."""
    for own in other_names(cell, name):
        if hasattr(cell, own) and not hasattr(cell, name):
            return batches_tracked(cell) if name == _COUNT else getattr(cell, own)
    return getattr(cell, name)


def shaped_weight(cell):
    """``cell.weight`` in torch's shape: convolutions over one axis keep an axis more."""
    weight = layer_part(cell, "weight")
    longer = isinstance(cell, (nn.Conv1d, nn.Conv1dTranspose)) and weight.ndim == 4
    return weight.squeeze(2) if longer else weight


def beside_axis(value):
    """What the weight of a convolution over one axis is computed with: it has an axis more here."""
    return value.unsqueeze(-2) if isinstance(value, ms.Tensor) and value.ndim > 1 else value


def give_part(cell, name, value):
    """``cell.weight = value`` as in torch, of any layer: it computes with that from then on."""
    if name == "bias" and hasattr(cell, "has_bias"):
        set_bias(cell, name, value)
        return
    held = getattr(cell, "_params", {})
    others = other_names(cell, name) if name != _COUNT else ()
    names = [own for own in others if name == "forward" or (own in held and name not in held)]
    setattr(cell, (*names, name)[0], value)


def has_part(cell, name):
    """``hasattr(cell, "weight")``, answered as in torch."""
    return hasattr(cell, name) or any(hasattr(cell, own) for own in other_names(cell, name))


def part_of(cell, name, default):
    """``getattr(cell, "weight", default)``, answered as in torch."""
    return layer_part(cell, name) if has_part(cell, name) else default


class OwnParameters(MutableMapping):
    """``module._parameters``: the Parameters that a Cell itself holds, under torch's names.

    What torch has as None, the bias of a layer without one, is found by its name only.
    """

    def __init__(self, cell):
        self.cell = cell

    def held(self):
        return {name: one for name, one, _ in own_tensors(self.cell, False, recurse=False)}

    def __iter__(self):
        return iter(self.held())

    def __len__(self):
        return len(self.held())

    def __getitem__(self, name):
        held = self.held()
        if name not in held and getattr(self.cell, name, self) is None:
            return None
        if (
            name in held
            and isinstance(self.cell, (nn.Conv1d, nn.Conv1dTranspose))
            and name != "bias"
        ):
            raise NotImplementedError("torch2ms API110: the Cell keeps weight in another shape")
        return held[name]

    def __setitem__(self, name, value):
        give_part(self.cell, name, value)

    def __delitem__(self, name):
        names = (*other_names(self.cell, name), name)
        delattr(self.cell, next((own for own in names if own in self.cell._params), name))


def own_parameters(module):
    """``module._parameters`` of a Cell; of what is no Cell, its attribute of that name."""
    return OwnParameters(module) if isinstance(module, nn.Cell) else module._parameters
