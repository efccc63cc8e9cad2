"""In: a Cell. Out: torch's DataParallel and DistributedDataParallel around it, as Cells."""

from contextlib import nullcontext

import mindspore as ms
from mindspore import communication, nn, ops

from migrate.helpers.processes import value_of_rank


class DataParallel(nn.Cell):
    """Reproduces torch.nn.DataParallel on one device: the Cell itself, at the path ``module``."""

    def __init__(self, module, device_ids=None, output_device=None, dim=0):
        super().__init__()
        self.module, self.dim = module, dim

    def construct(self, *inputs, **kwargs):
        return self.module(*inputs, **kwargs)


def data_parallel(module, inputs, module_kwargs=None):
    """Reproduces torch.nn.parallel.data_parallel on one device: the call of the Cell."""
    given = inputs if isinstance(inputs, tuple) else (inputs,)
    return module(*given, **(module_kwargs or {}))


def broadcast_to_devices(target_gpus, *inputs):
    """torch.nn.parallel's Broadcast on one device: all inputs for each of the devices in turn."""
    return tuple(inputs) * len(target_gpus)


def reduce_add_coalesced(num_inputs, *grads):
    """torch.nn.parallel's ReduceAddCoalesced: sums over the devices, of which each gives a run of
    ``num_inputs`` tensors."""
    sums = grads[:num_inputs]
    for i in range(num_inputs, len(grads), num_inputs):
        sums = [one + more for one, more in zip(sums, grads[i : i + num_inputs])]
    return tuple(sums)


class DistributedDataParallel(nn.Cell):
    """Reproduces torch.nn.parallel.DistributedDataParallel: the Cell at the path ``module``.

    Weights and buffers begin as those of rank 0, and the buffers are rank 0's before each call.
    Train steps built after this average their gradients over all processes; msrun starts them.
    """

    def __init__(
        self,
        module,
        device_ids=None,
        output_device=None,
        dim=0,
        broadcast_buffers=None,
        init_sync=True,
    ):
        super().__init__()
        self.module, self.dim = module, dim
        ms.set_auto_parallel_context(
            parallel_mode=ms.ParallelMode.DATA_PARALLEL, gradients_mean=True
        )
        alone = communication.get_group_size() == 1
        parameters = list(module.get_parameters())
        for parameter in parameters if init_sync and not alone else []:
            ops.assign(parameter, value_of_rank(parameter.value(), 0))
        sent = [] if alone or broadcast_buffers is False else parameters
        self.buffers_of_rank_0 = tuple(p for p in sent if not p.requires_grad)

    def construct(self, *inputs, **kwargs):
        for buffer in self.buffers_of_rank_0:
            ops.assign(buffer, value_of_rank(buffer.value(), 0))
        return self.module(*inputs, **kwargs)

    def no_sync(self):
        """Gradients may be averaged at each of several backward passes: their sum is the same."""
        return nullcontext()
