"""In: torch.nn.MultiheadAttention's arguments. Out: an attention Cell with torch's weights."""

import mindspore as ms
from mindspore import nn, ops
from mindspore.common.initializer import XavierNormal, XavierUniform, initializer

from migrate.helpers.layers import Linear
from migrate.helpers.softmax import softmax_over


def additive_mask(mask, dtype):
    """A mask to add to scores: True becomes minus infinity; numbers stay."""
    if mask.dtype == ms.bool_:
        return ops.zeros(mask.shape, dtype).masked_fill(mask, float("-inf"))
    return mask.astype(dtype)


class MultiheadAttention(nn.Cell):
    """Reproduces torch.nn.MultiheadAttention: (output, weights), weights None on request.

    Inputs are (L, N, E), (N, L, E) with ``batch_first``, or (L, E). Masks are bool (True is
    left out) or numbers to add: ``key_padding_mask`` (N, S), ``attn_mask`` (L, S) or
    (N * heads, L, S).
    """

    def __init__(
        self,
        embed_dim,
        num_heads,
        dropout=0.0,
        bias=True,
        add_bias_kv=False,
        add_zero_attn=False,
        kdim=None,
        vdim=None,
        batch_first=False,
        device=None,
        dtype=None,
    ):
        super().__init__()
        dtype = dtype or ms.float32
        self.embed_dim, self.num_heads, self.dropout = embed_dim, num_heads, dropout
        self.head_dim, self.batch_first = embed_dim // num_heads, batch_first
        self.add_zero_attn = add_zero_attn
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self._qkv_same_embed_dim = self.kdim == embed_dim and self.vdim == embed_dim
        if self._qkv_same_embed_dim:
            self.in_proj_weight = self._weight((3 * embed_dim, embed_dim), dtype)
        else:
            self.q_proj_weight = self._weight((embed_dim, embed_dim), dtype)
            self.k_proj_weight = self._weight((embed_dim, self.kdim), dtype)
            self.v_proj_weight = self._weight((embed_dim, self.vdim), dtype)
        self.in_proj_bias, self.bias_k, self.bias_v = None, None, None
        if bias:
            self.in_proj_bias = ms.Parameter(ops.zeros(3 * embed_dim, dtype))
        self.out_proj = Linear(embed_dim, embed_dim, bias, dtype=dtype)
        if bias:
            self.out_proj.bias.set_data(ops.zeros(embed_dim, dtype))
        if add_bias_kv:
            self.bias_k = ms.Parameter(initializer(XavierNormal(), (1, 1, embed_dim), dtype))
            self.bias_v = ms.Parameter(initializer(XavierNormal(), (1, 1, embed_dim), dtype))

    def _reset_parameters(self):
        """Draw the weights anew, but that of the last projection; as in torch biases become 0."""
        for name, weight in self.parameters_and_names(expand=False):
            kind = XavierNormal() if name in ("bias_k", "bias_v") else XavierUniform()
            kind = "zeros" if name == "in_proj_bias" else kind
            weight.set_data(initializer(kind, weight.shape, weight.dtype))
        if self.in_proj_bias is not None:
            last = self.out_proj.bias
            last.set_data(ops.zeros_like(last))

    def _weight(self, shape, dtype):
        return ms.Parameter(initializer(XavierUniform(), shape, dtype))

    def _projected(self, query, key, value):
        """Query, key and value (N, L, E), each by its own weight and bias."""
        if self._qkv_same_embed_dim:
            weights = ops.chunk(self.in_proj_weight, 3)
        else:
            weights = (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)
        query = ops.matmul(query, weights[0].swapaxes(0, 1))
        key = ops.matmul(key, weights[1].swapaxes(0, 1))
        value = ops.matmul(value, weights[2].swapaxes(0, 1))
        if self.in_proj_bias is None:
            return query, key, value
        biases = ops.chunk(self.in_proj_bias, 3)
        return query + biases[0], key + biases[1], value + biases[2]

    def _heads(self, x):
        """(N, L, E) as (N, heads, L, head_dim)."""
        return x.reshape((*x.shape[:2], self.num_heads, self.head_dim)).swapaxes(1, 2)

    def _with_extras(self, key, value):
        """Key and value with the learned position, then the zero position, where asked for."""
        count = (key.shape[0], 1, 1)
        if self.bias_k is not None:
            key = ops.cat((key, self.bias_k.tile(count)), 1)
            value = ops.cat((value, self.bias_v.tile(count)), 1)
        if self.add_zero_attn:
            zero = ops.zeros((key.shape[0], 1, self.embed_dim), key.dtype)
            key, value = ops.cat((key, zero), 1), ops.cat((value, zero), 1)
        return key, value

    def _masked(self, scores, key_padding_mask, attn_mask):
        """Scores (N, heads, L, S) plus the masks; added positions at the end are never masked."""
        if attn_mask is not None:
            mask = additive_mask(attn_mask, scores.dtype)
            mask = ops.pad(mask, (0, scores.shape[3] - mask.shape[-1]))
            if mask.ndim == 3:
                mask = mask.reshape((-1, self.num_heads, *mask.shape[1:]))
            scores = scores + mask
        if key_padding_mask is not None:
            mask = additive_mask(key_padding_mask, scores.dtype)
            mask = mask if mask.ndim == 2 else mask.expand_dims(0)
            mask = ops.pad(mask, (0, scores.shape[3] - mask.shape[-1]))
            scores = scores + mask.expand_dims(1).expand_dims(1)
        return scores

    def construct(
        self,
        query,
        key,
        value,
        key_padding_mask=None,
        need_weights=True,
        attn_mask=None,
        average_attn_weights=True,
        is_causal=False,
    ):
        single = query.ndim == 2
        if single:
            query, key, value = query.expand_dims(0), key.expand_dims(0), value.expand_dims(0)
        elif not self.batch_first:
            query, key, value = query.swapaxes(0, 1), key.swapaxes(0, 1), value.swapaxes(0, 1)
        query, key, value = self._projected(query, key, value)
        key, value = self._with_extras(key, value)
        scores = ops.matmul(
            self._heads(query) * self.head_dim**-0.5, self._heads(key).swapaxes(2, 3)
        )
        weights = softmax_over(self._masked(scores, key_padding_mask, attn_mask), -1)
        if self.dropout > 0 and self.training:
            weights = ops.dropout(weights, p=self.dropout, training=True)
        out = ops.matmul(weights, self._heads(value)).swapaxes(1, 2)
        out = self.out_proj(out.reshape(query.shape))
        if single:
            out, weights = out.squeeze(0), weights.squeeze(0)
        elif not self.batch_first:
            out = out.swapaxes(0, 1)
        if not need_weights:
            return out, None
        return out, weights.mean(-3) if average_attn_weights else weights
