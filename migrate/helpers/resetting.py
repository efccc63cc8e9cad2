"""In: a Cell that stands for a layer of torch. Out: the same with new weights, as torch draws them.

MindSpore's Cells have no reset_parameters; torch's layers call theirs when they are built.
"""

import math
from functools import partial

from migrate.helpers.init import constant_, normal_, ones_, uniform_, zeros_


class ResetWhenBuilt:
    """Goes before a layer of torch in the bases of a class with a reset_parameters of its own.

    As torch's constructors do, it calls that when the layer's own weights are there.
    """

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.reset_parameters()


def is_torch_layer(cell):
    """Whether a Cell stands for a layer of torch that has reset_parameters."""
    known = ("Dense", "_Conv", "_BatchNorm", "InstanceNorm", "LayerNorm", "GroupNorm", "RMSNorm",
             "Embedding", "EmbeddingBag", "_RNNBase", "GateCell", "Bilinear", "PReLU")  # fmt: skip
    return any(kind.__name__ in known for kind in type(cell).__mro__)


def has_reset(module):
    """hasattr(module, "reset_parameters"), answered as in torch."""
    return hasattr(module, "reset_parameters") or is_torch_layer(module)


def reset_of(module, default):
    """getattr(module, "reset_parameters", default), answered as in torch."""
    return partial(reset_cell, module) if has_reset(module) else default


def reset_cell(module):
    """module.reset_parameters(): the class's own, or that of torch's layer."""
    if hasattr(module, "reset_parameters"):
        return module.reset_parameters()
    return redraw(module)


def redraw(layer):
    """The reset_parameters of torch's own layers, told by the names of their Parameters.

    Weights with several axes and the biases beside them: U(-k, k), k = 1 / sqrt(fan_in);
    recurrent layers: k = 1 / sqrt(hidden_size); norms: ones and zeros; Embedding: N(0, 1).
    Raises AttributeError, as torch does, for a Cell that is no such layer.
    """
    if not is_torch_layer(layer):
        raise AttributeError(f"{type(layer).__name__} has no reset_parameters")
    kinds = [kind.__name__ for kind in type(layer).__mro__]
    held = dict(layer.parameters_and_names())
    reset_running_stats(layer)
    if "PReLU" in kinds:
        constant_(layer.weight, layer.init)
    elif "Embedding" in kinds or "EmbeddingBag" in kinds:
        table = normal_(held.get("embedding_table", held.get("weight")))
        if getattr(layer, "padding_idx", None) is not None:
            table[layer.padding_idx] = 0
    elif "_RNNBase" in kinds or "GateCell" in kinds:
        (*_, hidden_size) = next(
            p for name, p in held.items() if name.startswith("weight_hh")
        ).shape
        bound = 1 / math.sqrt(hidden_size)
        for weight in held.values():
            uniform_(weight, -bound, bound)
    elif "gamma" in held or "RMSNorm" in kinds:
        ones_(held.get("gamma", held.get("weight")))
        if "beta" in held:
            zeros_(held["beta"])
    elif "weight" in held:
        shape = held["weight"].shape
        bound = 1 / math.sqrt(shape[1] if "Bilinear" in kinds else math.prod(shape[1:]))
        for name in ("weight", "bias"):  # a subclass may hold more
            if name in held:
                uniform_(held[name], -bound, bound)


def reset_running_stats(layer):
    """reset_running_stats() of torch's norms: mean 0, variance 1."""
    for name, held in layer.parameters_and_names():
        if name in ("moving_mean", "num_batches_tracked"):
            zeros_(held)
        elif name == "moving_variance":
            ones_(held)
