"""In: a network. Out: a copy whose weights are averages of what the network's were.

Formulas: the reference page of torch.optim.swa_utils.
"""

import copy

import mindspore as ms
from mindspore import Parameter, Tensor, nn, ops
from mindspore.nn.layer.normalization import _BatchNorm

from migrate.helpers.modes import modes_are_set, switch
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


def update_bn(loader, model, device=None):
    """Reproduces torch.optim.swa_utils.update_bn: statistics become means over all batches.

    Statistics that begin at zero are, after one call, a known share of those of the batch. Raises
    NotImplementedError where a layer is not called once in a pass, so that the share is another.
    """
    norms = [cell for _, cell in model.cells_and_names() if isinstance(cell, _BatchNorm)]
    norms = [cell for cell in norms if cell.moving_mean is not None]
    if len(norms) == 0:
        return
    training = model.training
    switch(model)
    modes_are_set(model)
    means = []
    for count, batch in enumerate(loader):
        inputs = batch[0] if isinstance(batch, (list, tuple)) else batch
        if count == 0:
            check_single_calls(model, inputs, norms)
        found = batch_statistics(model, inputs, norms)
        old = means or found
        means = [mean + (new - mean) / (count + 1) for mean, new in zip(old, found)]
    tensors = [tensor for cell in norms for tensor in (cell.moving_mean, cell.moving_variance)]
    for tensor, mean in zip(tensors, means):
        ops.assign(tensor, mean)
    switch(model, training)
    modes_are_set(model)


def share_of_batch(cell):
    """How far the first batch after a reset moves the statistics of a layer."""
    return 1.0 if getattr(cell, "momentum", 0.0) is None else cell.bn_train.momentum


def run_from(value, model, inputs, norms):
    """Run the model while mean and variance of each of the layers begin at a value."""
    for cell in norms:
        ops.assign(cell.moving_mean, ops.full_like(cell.moving_mean, value))
        ops.assign(cell.moving_variance, ops.full_like(cell.moving_variance, value))
        if getattr(cell, "num_batches_tracked", None) is not None:
            ops.assign(cell.num_batches_tracked, ops.zeros_like(cell.num_batches_tracked))
    model(inputs)


def batch_statistics(model, inputs, norms):
    """Mean and variance that each of the layers sees when the model gets the inputs."""
    run_from(0.0, model, inputs, norms)
    pairs = [(cell.moving_mean, cell.moving_variance, share_of_batch(cell)) for cell in norms]
    return [tensor / share for mean, variance, share in pairs for tensor in (mean, variance)]


def check_single_calls(model, inputs, norms):
    """Raise where a layer's statistics move more than once, or never, in a pass of the model."""
    far = 2.0**20
    run_from(far, model, inputs, norms)
    for cell in norms:
        share = share_of_batch(cell)
        moved = 1 - cell.moving_variance.mean().item() / far
        if abs(moved - share) > share * min(share, 1.001 - share) / 2:
            raise NotImplementedError("torch2ms OPT403: a BatchNorm is not called once in a pass")
