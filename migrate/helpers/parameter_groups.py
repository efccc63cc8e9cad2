"""In: an optimizer of mindspore.experimental.optim. Out: its groups and state as torch has them.

MindSpore keeps learning rates in Parameters; torch's code reads and writes Python numbers.
"""

import mindspore as ms
from mindspore import Parameter, Tensor, ops
from mindspore.experimental.optim.optimizer import Optimizer

from migrate.helpers.modules import parameters


def number(value):
    """A setting as a Python number: the shortest that is this float32; others stay."""
    if not isinstance(value, Tensor):
        return value
    return float(str(value.value())) if value.dtype == ms.float32 else value.item()


COMPILED = ("betas", "momentum", "weight_decay", "dampening", "eps", "nesterov", "maximize")


class ParameterGroup(dict):
    """A group of an optimizer: rates are read as Python numbers, and written where they count."""

    def __init__(self, group):
        super().__init__({key: number(value) for key, value in group.items() if key != "params"})
        super().__setitem__("params", group["params"])
        self.group = group

    def __getitem__(self, key):
        return number(self.group[key])

    def get(self, key, default=None):
        return self[key] if key in self.group else default

    def __setitem__(self, key, value):
        value = number(value)
        super().__setitem__(key, value)
        kept = self.group.get(key)
        value = float(value) if type(kept) is float and type(value) is int else value
        if isinstance(kept, Parameter):
            ops.assign(kept, Tensor(value, kept.dtype))
        elif key not in COMPILED or kept == value or ms.get_context("mode") != ms.GRAPH_MODE:
            self.group[key] = value
        else:
            raise NotImplementedError(f"{key} is compiled into the train step; build a new one")

    def setdefault(self, key, default=None):
        if key not in self.group:
            self[key] = default
        return self[key]

    def update(self, *args, **settings):
        for key, value in dict(*args, **settings).items():
            self[key] = value


def param_groups(optimizer):
    """Reproduces ``param_groups`` of torch.optim.Optimizer; other objects keep their own."""
    if not isinstance(optimizer, Optimizer):
        return optimizer.param_groups
    return [ParameterGroup(group) for group in optimizer.param_groups]


def numbers(values):
    """Rates as Python numbers."""
    return [number(value) for value in values]


def state_of(optimizer):
    """The Parameters that an optimizer keeps besides the weights and rates, by name."""
    weights = {id(weight) for weight in optimizer.parameters}
    held = list(optimizer.get_parameters())
    for value in vars(optimizer).values():  # NAdam keeps some in a plain list
        held += [one for one in value if isinstance(one, Parameter)] if type(value) is list else []
    rates = {id(rate) for rate in optimizer.lrs}
    return {one.name: one for one in held if id(one) not in weights and id(one) not in rates}


def optimizer_state(optimizer):
    """Reproduces ``state_dict()`` of torch.optim.Optimizer; states have MindSpore's names."""
    groups, start = [], 0
    for group in param_groups(optimizer):
        end = start + len(group["params"])
        groups.append({**group, "params": list(range(start, end))})
        start = end
    state = {name: one.value().copy() for name, one in state_of(optimizer).items()}
    return {"state": state, "param_groups": groups}


def load_optimizer_state(optimizer, state_dict):
    """Reproduces ``load_state_dict()`` for what ``optimizer_state`` gave."""
    kept = state_of(optimizer)
    missing = sorted(set(kept) ^ set(state_dict["state"]))
    if missing:
        raise ValueError(f"the state is of another optimizer: {missing}")
    for name, value in state_dict["state"].items():
        ops.assign(kept[name], value.astype(kept[name].dtype))
    for group, saved in zip(param_groups(optimizer), state_dict["param_groups"]):
        group.update({key: value for key, value in saved.items() if key != "params"})


class EveryWeight(list):
    """Parameters, or groups of them, for an optimizer whose weights are frozen and freed later."""

    with_frozen = True


def trainable(params):
    """Of parameters, or groups of them, those that require a gradient: what torch would train."""
    if hasattr(params, "with_frozen"):
        return params
    if isinstance(params, Parameter):
        return [params] if params.requires_grad else []
    if isinstance(params, dict):
        return {**params, "params": trainable(params["params"])}
    kept = [trainable(one) if isinstance(one, dict) else one for one in params]
    return [one for one in kept if isinstance(one, dict) or one.requires_grad]


def named_apart(params):
    """Parameters of several nets, or groups of them; a weight whose name is taken gets a number.

    Nets of one class have the same names, and an optimizer of MindSpore takes each name once.
    """
    groups, taken = params if hasattr(params, "with_frozen") else list(params), {}
    for index, group in enumerate(groups):
        if isinstance(group, dict) and not isinstance(group["params"], Parameter):
            groups[index] = {**group, "params": list(group["params"])}
    for group in groups:
        held = group["params"] if isinstance(group, dict) else group
        for parameter in [held] if isinstance(held, Parameter) else held:
            name, number = parameter.name, 1
            while taken.setdefault(name, parameter) is not parameter:
                name, number = f"{number}.{parameter.name}", number + 1
            parameter.name = name
    return groups


def apart_from(cell, names):
    """The ids of the parameters of the named members of a Cell."""
    members = [getattr(cell, name) for name in names if hasattr(cell, name)]
    return {
        id(p) for m in members for p in ([m] if isinstance(m, Parameter) else m.get_parameters())
    }


def trained(cell, *names):
    """The trainable parameters of a Cell but for those of the named members.

    No gradient reaches these: torch leaves them alone, weight decay would move them here.
    """
    apart = apart_from(cell, names)
    return [p for p in cell.trainable_params() if id(p) not in apart]


def but_for(parameters, cell, *names):
    """Parameters but for those of the named members of a Cell, which no gradient reaches."""
    apart = apart_from(cell, names)
    return [p for p in parameters if id(p) not in apart]


def reached(cell, *names):
    """The parameters of a Cell, frozen or not, but for those of the named members.

    No gradient reaches these.
    """
    apart = apart_from(cell, names)
    return [p for p in parameters(cell) if id(p) not in apart]
