"""In: ids in bags, and a table of rows. Out: one row for each bag, as torch's embedding_bag."""

import mindspore as ms
from mindspore import nn, ops
from mindspore.common.initializer import Normal, initializer


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
    count = input.shape[0] if input.ndim == 2 else offsets.shape[0] - int(include_last_offset)
    if ids.size == 0:
        return ops.zeros((count, weight.shape[1]), weight.dtype)
    bags, kept = bag_numbers(input, offsets, include_last_offset)
    if padding_idx is not None:
        kept = ops.logical_and(kept, ids != padding_idx % weight.shape[0])
    rows = ops.gather(weight, ids, 0)
    if mode == "max":
        inside = ops.logical_and(kept, bags == ops.arange(count).astype(ms.int32).unsqueeze(1))
        low = ops.full_like(rows, -float("inf"))
        highest = ops.where(inside.unsqueeze(2), rows.unsqueeze(0), low.unsqueeze(0)).amax(1)
        return ops.where(inside.any(1, True), highest, ops.zeros_like(highest))
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.reshape((-1, 1))
    rows = ops.where(kept.unsqueeze(1), rows, ops.zeros_like(rows))
    total = ops.unsorted_segment_sum(rows, bags, count)
    if mode == "sum":
        return total
    sizes = ops.unsorted_segment_sum(kept.astype(rows.dtype), bags, count)
    return total / ops.maximum(sizes, 1.0).unsqueeze(1)


def bag_numbers(input, offsets, include_last_offset):
    """The int32 number of the bag of each id, counted through all, and whether it is in one."""
    place = ops.arange(input.size).astype(ms.int32)
    if input.ndim == 2:
        return place // input.shape[1], ops.ones_like(place, dtype=ms.bool_)
    starts = offsets.astype(ms.int32)
    kept = ops.ones_like(place, dtype=ms.bool_)
    if include_last_offset:
        kept, starts = place < starts[-1], starts[:-1]
    begun = (place >= starts.unsqueeze(1)).astype(ms.int32).sum(0)
    return ops.maximum(begun - 1, 0).astype(ms.int32), kept


class EmbeddingBag(nn.Cell):
    """Reproduces torch.nn.EmbeddingBag: ids of shape (N, L), or in turn with offsets.

    Raises ValueError for max_norm and scale_grad_by_freq.
    """

    def __init__(
        self,
        num_embeddings,
        embedding_dim,
        max_norm=None,
        norm_type=2.0,
        scale_grad_by_freq=False,
        mode="mean",
        sparse=False,
        _weight=None,
        include_last_offset=False,
        padding_idx=None,
        device=None,
        dtype=None,
    ):
        super().__init__()
        if max_norm is not None or scale_grad_by_freq:
            raise ValueError("EmbeddingBag: max_norm and scale_grad_by_freq are not reproduced")
        self.num_embeddings, self.embedding_dim, self.mode = num_embeddings, embedding_dim, mode
        self.include_last_offset, self.padding_idx = include_last_offset, padding_idx
        table = initializer(Normal(1.0), (num_embeddings, embedding_dim), dtype or ms.float32)
        if padding_idx is not None and _weight is None:
            kept = ops.arange(num_embeddings) != padding_idx % num_embeddings
            table = table.init_data() * kept.astype(table.dtype).unsqueeze(1)
        self.weight = ms.Parameter(table if _weight is None else _weight)

    def construct(self, input, offsets=None, per_sample_weights=None):
        return embedding_bag(
            input, self.weight, offsets, mode=self.mode, per_sample_weights=per_sample_weights,
            include_last_offset=self.include_last_offset, padding_idx=self.padding_idx,
        )  # fmt: skip
