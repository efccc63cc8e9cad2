"""In: a Cell with a weight, and what computes it. Out: the same Cell, whose weight is computed.

The Parameters have torch's names: parametrizations.weight.original, original0 and original1.
"""

import mindspore as ms
from mindspore import nn

from migrate.helpers.containers import refuse_in_graph
from migrate.helpers.weight_norm import derived, has_extra_axis, norm_except


class ParametrizationList(nn.SequentialCell):
    """Reproduces torch.nn.utils.parametrize.ParametrizationList for one or two originals.

    Convolutions of one axis have an axis more in MindSpore; what computes the weight sees torch's.
    """

    def __init__(self, parts, originals, extra_axis):
        super().__init__(*parts)
        self.extra_axis, self.pair = extra_axis, len(originals) == 2
        for index, value in enumerate(originals):
            name = f"original{index}" if self.pair else "original"
            self.insert_param_to_cell(name, ms.Parameter(value, name=name))

    def construct(self):
        rest = self.cell_list
        if self.pair:
            value, rest = rest[0](self.original0, self.original1), rest[1:]
        else:
            value = self.original
        for part in rest:
            value = part(value)
        return value.expand_dims(2) if self.extra_axis else value


class Parametrized:
    """The Cells that register_parametrization changes: a weight is computed at each use."""

    def computed_weight(self):
        return self.parametrizations.weight()


def computed_by(name):
    """The property that computes the tensor ``name``; graph mode would take it for a constant."""

    def computed(cell):
        refuse_in_graph(f"the parametrization of {name}", "call remove_parametrizations first")
        return cell.parametrizations.name_cells()[name]()

    return property(computed)


def register_parametrization(module, tensor_name, parametrization, *, unsafe=False):
    """torch.nn.utils.parametrize.register_parametrization; same Cell, other class.

    Raises ValueError where torch does, and for more than two originals.
    """
    if is_parametrized(module, tensor_name):
        held = module.parametrizations.name_cells()[tensor_name]
        if hasattr(parametrization, "right_inverse"):
            raise ValueError("a right_inverse after another parametrization is not reproduced")
        held.append(parametrization)
        return module
    old = module._params.get(tensor_name)
    if old is None:
        raise ValueError(f"Module {type(module).__name__} has no parameter {tensor_name!r}")
    extra_axis = tensor_name == "weight" and has_extra_axis(module)
    value = old.value().squeeze(2) if extra_axis else old.value()
    if hasattr(parametrization, "right_inverse"):
        value = parametrization.right_inverse(value)
    originals = tuple(value) if isinstance(value, (tuple, list)) else (value,)
    if len(originals) > 2:
        raise ValueError("more than two originals of a parametrization are not reproduced")
    prefix = old.name.rpartition(".")[0]
    delattr(module, tensor_name)
    if not is_parametrized(module):
        derived(module, Parametrized)
        module.insert_child_to_cell("parametrizations", nn.Cell())
    setattr(type(module), tensor_name, computed_by(tensor_name))
    held = ParametrizationList((parametrization,), originals, extra_axis)
    path = f"parametrizations.{tensor_name}."
    held.update_parameters_name(f"{prefix}.{path}" if prefix else path)
    module.parametrizations.insert_child_to_cell(tensor_name, held)
    return module


def remove_parametrizations(module, tensor_name, leave_parametrized=True):
    """torch.nn.utils.parametrize.remove_parametrizations: the weight is a Parameter again."""
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {type(module).__name__} has no parametrization on {tensor_name}")
    held = module.parametrizations.name_cells()[tensor_name]
    if held.pair and not leave_parametrized:
        raise ValueError("leave_parametrized=False: the weight has two originals")
    like = held.original0 if held.pair else held.original
    value = held() if leave_parametrized else like.value()
    if held.extra_axis and not leave_parametrized:
        value = value.expand_dims(2)
    path = like.name.rpartition(f"parametrizations.{tensor_name}.")[0]
    delattr(type(module), tensor_name)
    delattr(module.parametrizations, tensor_name)
    if not module.parametrizations.name_cells():
        delattr(module, "parametrizations")
        module.__class__ = type(module).__bases__[-1]
    module.insert_param_to_cell(tensor_name, ms.Parameter(value, name=f"{path}{tensor_name}"))
    return module


def is_parametrized(module, tensor_name=None):
    """torch.nn.utils.parametrize.is_parametrized."""
    if not isinstance(module, Parametrized):
        return False
    return tensor_name is None or tensor_name in module.parametrizations.name_cells()


class WeightNorm(nn.Cell):
    """What computes the weight of torch.nn.utils.parametrizations.weight_norm."""

    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def construct(self, g, v):
        return v * (g / norm_except(v, self.dim))

    def right_inverse(self, weight):
        return norm_except(weight, self.dim), weight


def parametrized_weight_norm(module, name="weight", dim=0):
    """torch.nn.utils.parametrizations.weight_norm: original0 * original1 / |original1|."""
    return register_parametrization(module, name, WeightNorm(dim))
