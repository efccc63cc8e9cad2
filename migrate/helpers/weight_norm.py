"""In: a Cell with a weight. Out: torch.nn.utils.weight_norm of it, and without it again."""

import mindspore as ms
from mindspore import nn, ops

from migrate.helpers.containers import refuse_in_graph


def norm_except(v, dim):
    """The Euclidean norm over all axes but ``dim``, kept as axes of length 1.

    None and -1, as in torch: over all axes.
    """
    whole = dim is None or dim == -1
    axes = tuple([i for i in range(v.ndim) if whole or i != dim % v.ndim])
    norm = ops.sqrt(ops.square(v).sum(axes, keepdims=True))
    return norm.reshape(()) if whole else norm


def has_extra_axis(module):
    """Whether a weight has an axis that torch's has not: that of a convolution over one axis."""
    return isinstance(module, (nn.Conv1d, nn.Conv1dTranspose))


class ComputedWeight:
    """A Cell whose weight is computed at each use, by its computed_weight().

    Graph mode takes an attribute for a constant, so code that reads the weight raises there.
    """

    @property
    def weight(self):
        refuse_in_graph("a weight that is computed", "remove the norm or parametrization first")
        return self.computed_weight()


class ComputedDense(ComputedWeight):
    """nn.Dense with a weight that is computed, for both modes."""

    def construct(self, x):
        return ops.dense(x, self.computed_weight(), self.bias)


class ComputedConv(ComputedWeight):
    """nn.Conv1d and nn.Conv2d with a weight that is computed, for both modes."""

    def construct(self, x):
        weight = self.computed_weight()
        out = self.conv2d(x if x.ndim == 4 else x.expand_dims(2), weight)
        out = self.bias_add(out, self.bias) if self.has_bias else out
        return out if x.ndim == 4 else out.squeeze(2)


def computed_kind(module):
    """The class that goes before the Cell's own; with a construct where that is MindSpore's."""
    if type(module).construct is nn.Dense.construct and module.activation is None:
        return ComputedDense
    native = (nn.Conv1d.construct, nn.Conv2d.construct)
    return ComputedConv if type(module).construct in native else ComputedWeight


def derived(module, first):
    """Gives the Cell a class of the same name in which ``first`` goes before its own."""
    kind = type(module)
    module.__class__ = type(
        kind.__name__, (first, computed_kind(module), kind), {"__module__": kind.__module__}
    )


class WeightNormed:
    """The Cells that weight_norm changes: the weight is weight_g * weight_v / |weight_v|."""

    def computed_weight(self):
        g, v = self.weight_g, self.weight_v
        weight = v * (g / norm_except(v, self.weight_norm_dim))
        return weight.expand_dims(2) if self.weight_norm_extra_axis else weight


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
    module.weight_norm_dim, module.weight_norm_extra_axis = dim, has_extra_axis(module)
    weight = old.value().squeeze(2) if module.weight_norm_extra_axis else old.value()
    delattr(module, name)
    own_parameter(module, "weight_g", old, norm_except(weight, dim))
    own_parameter(module, "weight_v", old, weight)
    derived(module, WeightNormed)
    return module


def remove_weight_norm(module, name="weight"):
    """torch.nn.utils.remove_weight_norm: the weight becomes a Parameter again; same Cell."""
    if not isinstance(module, WeightNormed):
        raise ValueError(f"weight_norm of {name!r} not found in {type(module).__name__}")
    weight, old = module.computed_weight(), module.weight_v
    module.__class__ = type(module).__bases__[-1]
    for one in ("weight_g", "weight_v"):
        delattr(module, one)
    own_parameter(module, name, old, weight)
    return module
