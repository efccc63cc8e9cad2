"""In: queries, keys and values. Out: scaled dot product attention as torch defines it."""

import mindspore as ms
from mindspore import ops

from migrate.helpers.softmax import softmax_over


def scaled_dot_product_attention(
    query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, *, scale=None,
    enable_gqa=False,
):  # fmt: skip
    """torch.nn.functional.scaled_dot_product_attention on (..., length, width) tensors.

    A bool mask is true where attention is allowed; a query that may attend to nothing gives 0.
    """
    if enable_gqa:
        key = ops.repeat_interleave(key, query.shape[-3] // key.shape[-3], -3)
        value = ops.repeat_interleave(value, query.shape[-3] // value.shape[-3], -3)
    if scale is None:
        scale = query.shape[-1] ** -0.5
    scores = ops.matmul(query * scale, key.swapaxes(-2, -1))
    lowest = -65504.0 if scores.dtype == ms.float16 else -3.4028234663852886e38
    if is_causal:
        allowed = ops.tril(ops.ones((query.shape[-2], key.shape[-2]), ms.bool_))
        scores = ops.where(allowed, scores, ops.full_like(scores, lowest))
    if attn_mask is not None and attn_mask.dtype == ms.bool_:
        allowed = ops.logical_and(attn_mask, ops.ones_like(scores, dtype=ms.bool_))
        scores = ops.where(allowed, scores, ops.full_like(scores, lowest))
        weights = softmax_over(scores, -1) * allowed.astype(scores.dtype)
    elif attn_mask is not None:
        weights = softmax_over(scores + attn_mask, -1)
    else:
        weights = softmax_over(scores, -1)
    if dropout_p > 0.0:
        weights = ops.dropout(weights, dropout_p, True)
    return ops.matmul(weights, value)
