"""In: tensors of several processes that msrun started. Out: torch.distributed's collectives.

They use AllGather, the one that MindSpore has on a CPU for all these dtypes and operations.
"""

import mindspore as ms
from mindspore import communication, ops
from mindspore.communication import GlobalComm


def over_processes(tensor):
    """The tensors of all processes, one behind the other along a new first axis."""
    if tensor.dtype == ms.float64:
        raise TypeError("float64 is not sent between processes; cast it to float32")
    sent = tensor
    if tensor.dtype not in (ms.float32, ms.float16, ms.int32, ms.int64):
        sent = tensor.astype(ms.float32 if tensor.dtype == ms.bfloat16 else ms.int32)
    return ops.AllGather()(sent.reshape((1, *sent.shape))).astype(tensor.dtype)


def value_of_rank(tensor, rank):
    """The tensor that one of the processes has."""
    return over_processes(tensor)[rank].copy()  # a part of a tensor cannot be assigned from


def reduced_over_processes(tensor, op):
    """The tensors of all processes put together by an operation of torch.distributed.ReduceOp."""
    every = over_processes(tensor)
    if op == "avg":
        return every.sum(0) / every.shape[0]
    by_name = {"sum": every.sum, "max": every.amax, "min": every.amin, "prod": every.prod}
    return by_name[op](0).astype(tensor.dtype)


def all_reduce(tensor, op="sum"):
    """Reproduces torch.distributed.all_reduce: the tensor itself changes, in every process."""
    tensor.copy_(reduced_over_processes(tensor, op))


def reduce_to(tensor, dst, op="sum"):
    """Reproduces torch.distributed.reduce: the tensor itself changes, in process ``dst``."""
    found = reduced_over_processes(tensor, op)
    if communication.get_rank() == dst:
        tensor.copy_(found)


def broadcast_from(tensor, src):
    """Reproduces torch.distributed.broadcast: the tensor becomes that of process ``src``."""
    tensor.copy_(value_of_rank(tensor, src))


def all_gather(tensor_list, tensor):
    """Reproduces torch.distributed.all_gather: each tensor of the list is filled."""
    for rank, place in enumerate(tensor_list):
        place.copy_(value_of_rank(tensor, rank))


def process_barrier():
    """Reproduces torch.distributed.barrier: goes on when all processes have come so far."""
    ops.AllGather()(ms.Tensor([0.0], ms.float32)).asnumpy()


def is_initialized():
    """Reproduces torch.distributed.is_initialized."""
    return GlobalComm.INITED
