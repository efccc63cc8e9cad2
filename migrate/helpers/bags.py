"""In: ids in bags, and a table of rows. Out: one row for each bag, as torch's embedding_bag."""

import mindspore as ms
from mindspore import ops


def embedding_bag(
    input, weight, offsets=None, max_norm=None, norm_type=2, scale_grad_by_freq=False,
    mode="mean", sparse=False, per_sample_weights=None, include_last_offset=False,
    padding_idx=None,
):  # fmt: skip
    """torch.nn.functional.embedding_bag: sum, mean or max of the rows of each bag.

    ``input`` is (bags, ids), or all ids in turn with ``offsets``, where each bag begins.
    """
    if max_norm is not None or scale_grad_by_freq:
        raise NotImplementedError("embedding_bag: max_norm and scale_grad_by_freq")
    ids = input.reshape((-1,))
    if ids.size == 0:
        count = input.shape[0] if input.ndim == 2 else offsets.shape[0] - int(include_last_offset)
        return ops.zeros((count, weight.shape[1]), weight.dtype)
    inside = bag_members(input, offsets, include_last_offset)
    if padding_idx is not None:
        inside = ops.logical_and(inside, ids != padding_idx % weight.shape[0])
    rows = ops.gather(weight, ids, 0)
    if mode == "max":
        low = ops.full_like(rows, -float("inf")).unsqueeze(0)
        highest = ops.where(inside.unsqueeze(2), rows.unsqueeze(0), low).amax(1)
        return ops.where(inside.any(1, True), highest, ops.zeros_like(highest))
    share = inside.astype(weight.dtype)
    if per_sample_weights is not None:
        return ops.matmul(share * per_sample_weights.reshape((-1,)), rows)
    total = ops.matmul(share, rows)
    return total if mode == "sum" else total / ops.maximum(share.sum(1, keepdims=True), 1.0)


def bag_members(input, offsets, include_last_offset):
    """(bags, ids): true where an id, counted through all bags, is in the bag."""
    place = ops.arange(input.size).astype(ms.int64)
    if input.ndim == 2:
        bag = place // input.shape[1]
        return bag == ops.arange(input.shape[0]).astype(ms.int64).unsqueeze(1)
    starts = offsets.astype(ms.int64)
    if include_last_offset:
        starts, ends = starts[:-1], starts[1:]
    else:
        ends = ops.cat((starts[1:], ops.full((1,), input.size, dtype=ms.int64)))
    return ops.logical_and(place >= starts.unsqueeze(1), place < ends.unsqueeze(1))
