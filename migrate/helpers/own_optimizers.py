"""In: parameters and defaults. Out: the base of optimizers that have a ``step`` of their own."""

from collections import defaultdict

from mindspore import nn
from mindspore.experimental.optim.optimizer import Optimizer

from migrate.helpers.kept_gradients import clear_gradients
from migrate.helpers.parameter_groups import param_groups


class OptimizerWithStep(Optimizer):
    """Reproduces torch.optim.Optimizer for classes whose ``step`` reads kept gradients.

    Schedules of MindSpore set its rates; ``state`` is torch's, a dictionary for each weight.
    """

    def __new__(cls, *args, **kwargs):
        """Make it a Cell at once: a class that wraps another optimizer may call no constructor."""
        made = super().__new__(cls)
        nn.Cell.__init__(made)
        return made

    def __init__(self, params, defaults):
        super().__init__(params, {"lr": 0.0, **defaults})

    def zero_grad(self, set_to_none=True):
        """Clear the gradients of its weights."""
        clear_gradients(self, set_to_none)

    def step(self, closure=None):
        """One update; classes write it."""
        raise NotImplementedError

    def state_dict(self):
        """torch's own: the state by the number of the weight, and the groups."""
        numbers = {weight: number for number, weight in enumerate(self.parameters)}
        groups = [
            {**group, "params": [numbers[weight] for weight in group["params"]]}
            for group in param_groups(self)
        ]
        state = {numbers.get(key, key): value for key, value in self.state.items()}
        return {"state": state, "param_groups": groups}

    def load_state_dict(self, state_dict):
        """Take over what ``state_dict`` gave."""
        weights = dict(enumerate(self.parameters))
        self.state = defaultdict(dict)
        for key, value in state_dict["state"].items():
            self.state[weights.get(key, key)] = value
        for group, saved in zip(param_groups(self), state_dict["param_groups"]):
            group.update({key: value for key, value in saved.items() if key != "params"})

    def __setstate__(self, state):
        vars(self).update(state)
