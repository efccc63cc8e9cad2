"""In: queries, keys, values and weights. Out: torch's multi-head attention as a function."""

from mindspore import ops

from migrate.helpers.attention import additive_mask
from migrate.helpers.softmax import softmax_over


def multi_head_attention_forward(
    query, key, value, embed_dim_to_check, num_heads, in_proj_weight, in_proj_bias, bias_k, bias_v,
    add_zero_attn, dropout_p, out_proj_weight, out_proj_bias, training=True,
    key_padding_mask=None, need_weights=True, attn_mask=None, use_separate_proj_weight=False,
    q_proj_weight=None, k_proj_weight=None, v_proj_weight=None, static_k=None, static_v=None,
    average_attn_weights=True, is_causal=False,
):  # fmt: skip
    """torch.nn.functional.multi_head_attention_forward of (L, N, E) or (L, E): (output, weights).

    Bool masks are true where attention is left out. ``static_k`` and ``static_v`` are refused.
    """
    if static_k is not None or static_v is not None:
        raise NotImplementedError("multi_head_attention_forward: static_k and static_v")
    single = query.ndim == 2
    if single:
        query, key, value = query.unsqueeze(1), key.unsqueeze(1), value.unsqueeze(1)
    weights = (q_proj_weight, k_proj_weight, v_proj_weight)
    if not use_separate_proj_weight:
        weights = ops.chunk(in_proj_weight, 3)
    biases = (None, None, None) if in_proj_bias is None else ops.chunk(in_proj_bias, 3)
    heads = head_rows(ops.dense(query, weights[0], biases[0]), None, False, num_heads)
    keys = head_rows(ops.dense(key, weights[1], biases[1]), bias_k, add_zero_attn, num_heads)
    values = head_rows(ops.dense(value, weights[2], biases[2]), bias_v, add_zero_attn, num_heads)
    scores = ops.matmul(heads * heads.shape[-1] ** -0.5, keys.swapaxes(2, 3))
    scores = masked_scores(scores, key_padding_mask, attn_mask)
    paid = softmax_over(scores, -1)
    if training and dropout_p > 0.0:
        paid = ops.dropout(paid, dropout_p, True)
    mixed = ops.matmul(paid, values).permute((2, 0, 1, 3)).reshape(query.shape)
    output = ops.dense(mixed, out_proj_weight, out_proj_bias)
    output = output.squeeze(1) if single else output
    if not need_weights:
        return output, None
    paid = paid.mean(1) if average_attn_weights else paid
    return output, paid.squeeze(0) if single else paid


def head_rows(x, learned, zero, num_heads):
    """(L, N, E) as (N, heads, L, E / heads); a learned, then a zero row may follow the others."""
    extra = (1, *x.shape[1:])
    if learned is not None:
        x = ops.cat((x, learned.broadcast_to(extra)), 0)
    if zero:
        x = ops.cat((x, ops.zeros(extra, x.dtype)), 0)
    return x.reshape((x.shape[0], x.shape[1], num_heads, -1)).permute((1, 2, 0, 3))


def masked_scores(scores, key_padding_mask, attn_mask):
    """Scores (N, heads, L, S) plus the masks; added rows at the end are never masked."""
    if attn_mask is not None:
        mask = additive_mask(attn_mask, scores.dtype)
        mask = ops.pad(mask, (0, scores.shape[3] - mask.shape[-1]))
        if mask.ndim == 3:
            mask = mask.reshape((-1, scores.shape[1], *mask.shape[1:]))
        scores = scores + mask
    if key_padding_mask is not None:
        mask = additive_mask(key_padding_mask, scores.dtype)
        mask = mask if mask.ndim == 2 else mask.unsqueeze(0)
        mask = ops.pad(mask, (0, scores.shape[3] - mask.shape[-1]))
        scores = scores + mask.unsqueeze(1).unsqueeze(1)
    return scores
