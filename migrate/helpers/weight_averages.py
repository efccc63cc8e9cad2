"""In: a network. Out: a copy whose weights are averages of what the network's were.

Formulas: the reference page of torch.optim.swa_utils.
"""

import copy

import mindspore as ms
from mindspore import Parameter, Tensor, nn, ops

from migrate.helpers.modules import own_tensors


def get_ema_avg_fn(decay=0.999):
    """Reproduces torch.optim.swa_utils.get_ema_avg_fn: an exponential average of one tensor."""
    return lambda averaged, current, count: decay * averaged + (1 - decay) * current


def get_swa_avg_fn():
    """Reproduces torch.optim.swa_utils.get_swa_avg_fn: the mean of all values of one tensor."""
    return lambda averaged, current, count: averaged + (current - averaged) / (count + 1)


def for_lists(average):
    """A function that changes a list of averages, from one that gives a new average."""

    def update(averages, values, count):
        for averaged, current in zip(averages, values):
            ops.assign(averaged, average(averaged, current, count))

    return update


def get_ema_multi_avg_fn(decay=0.999):
    """Reproduces torch.optim.swa_utils.get_ema_multi_avg_fn: exponential averages in place."""
    return for_lists(get_ema_avg_fn(decay))


def get_swa_multi_avg_fn():
    """Reproduces torch.optim.swa_utils.get_swa_multi_avg_fn: means in place."""
    return for_lists(get_swa_avg_fn())


class AveragedModel(nn.Cell):
    """Reproduces torch.optim.swa_utils.AveragedModel: ``module`` holds the averages."""

    def __init__(self, model, device=None, avg_fn=None, multi_avg_fn=None, use_buffers=False):
        super().__init__()
        self.module = copy.deepcopy(model)
        self.n_averaged = Parameter(Tensor(0, ms.int64), "n_averaged", requires_grad=False)
        self.update_all = multi_avg_fn or for_lists(avg_fn or get_swa_avg_fn())
        self.use_buffers = use_buffers

    def construct(self, *args, **kwargs):
        return self.module(*args, **kwargs)

    def update_parameters(self, model):
        """Take the present weights of the model into the averages."""
        kinds = (False, True) if self.use_buffers else (False,)
        averages = [t for kind in kinds for _, t, _ in own_tensors(self.module, kind)]
        values = [t for kind in kinds for _, t, _ in own_tensors(model, kind)]
        if self.n_averaged.item() == 0:
            for averaged, current in zip(averages, values):
                ops.assign(averaged, current)
        else:
            self.update_all(averages, values, self.n_averaged.item())
        if not self.use_buffers:
            buffers = zip(own_tensors(self.module, True), own_tensors(model, True))
            for (_, kept, _), (_, current, _) in buffers:
                ops.assign(kept, current)
        ops.assign_add(self.n_averaged, Tensor(1, ms.int64))
