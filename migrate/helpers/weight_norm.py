"""In: a Cell with a weight. Out: torch.nn.utils.weight_norm of it, and without it again."""

import mindspore as ms
from mindspore import ops

from migrate.helpers.containers import refuse_in_graph


def norm_except(v, dim):
    """The Euclidean norm over all axes but ``dim``, kept as axes of length 1; None: over all."""
    axes = tuple([i for i in range(v.ndim) if dim is None or i != dim % v.ndim])
    norm = ops.sqrt(ops.square(v).sum(axes, keepdims=True))
    return norm.reshape(()) if dim is None else norm


class WeightNormed:
    """The Cells that weight_norm changes: their weight is computed anew at each use.

    PyNative mode only: a graph would take the weight for a constant, and raises instead.
    """

    @property
    def weight(self):
        refuse_in_graph("weight_norm", "call remove_weight_norm first")
        g, v = self.weight_g, self.weight_v
        return v * (g / norm_except(v, self.weight_norm_dim))


def own_parameter(cell, name, like, value):
    """Registers ``value`` as the Parameter ``name``, beside the Parameter ``like``."""
    prefix = like.name.rpartition(".")[0]
    full = f"{prefix}.{name}" if prefix else name
    cell.insert_param_to_cell(name, ms.Parameter(value, name=full))


def weight_norm(module, name="weight", dim=0):
    """torch.nn.utils.weight_norm: the weight is weight_g * weight_v / |weight_v|; same Cell.

    Raises ValueError for another ``name`` than "weight", and for a Cell without that Parameter.
    """
    old = module._params.get(name)
    if name != "weight" or old is None:
        raise ValueError(f"weight_norm: {type(module).__name__} has no Parameter {name!r} to split")
    weight = old.value()
    delattr(module, name)
    own_parameter(module, "weight_g", old, norm_except(weight, dim))
    own_parameter(module, "weight_v", old, weight)
    module.weight_norm_dim = dim
    kind = type(module)
    module.__class__ = type(kind.__name__, (WeightNormed, kind), {"__module__": kind.__module__})
    return module


def remove_weight_norm(module, name="weight"):
    """torch.nn.utils.remove_weight_norm: the weight becomes a Parameter again; same Cell."""
    if not isinstance(module, WeightNormed):
        raise ValueError(f"weight_norm of {name!r} not found in {type(module).__name__}")
    weight, old = module.weight, module.weight_v
    module.__class__ = type(module).__mro__[2]
    for one in ("weight_g", "weight_v"):
        delattr(module, one)
    own_parameter(module, name, old, weight)
    return module
