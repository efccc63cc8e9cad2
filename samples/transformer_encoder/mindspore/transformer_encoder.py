"""A pre-norm Transformer encoder with its own attention, for classifying token sequences."""

import math
from dataclasses import dataclass

import mindspore as ms
from mindspore import nn, ops
from mindspore.common import initializer
from torch_helpers import bitwise_not, matmul, normal_, register_buffer, softmax_over, trunc_normal_, zeros_


@dataclass
class EncoderConfig:
    vocab_size: int = 1000
    max_length: int = 128
    dim: int = 256
    depth: int = 4
    heads: int = 8
    mlp_ratio: float = 4.0
    dropout: float = 0.1
    num_classes: int = 2
    layer_norm_eps: float = 1e-12
    causal: bool = False


class SelfAttention(nn.Cell):
    """Multi-head scaled dot-product attention."""

    def __init__(self, config: EncoderConfig):
        super().__init__()
        if config.dim % config.heads != 0:
            raise ValueError(f"dim {config.dim} is not a multiple of heads {config.heads}")
        self.heads = config.heads
        self.head_dim = config.dim // config.heads
        self.scale = 1.0 / math.sqrt(self.head_dim)
        self.causal = config.causal
        self.qkv = nn.Dense(config.dim, 3 * config.dim)
        self.proj = nn.Dense(config.dim, config.dim)
        self.attn_drop = nn.Dropout(p=config.dropout)
        # true where looking is forbidden: not a parameter, but moves with the module
        future = ops.triu(ops.ones((config.max_length, config.max_length)), diagonal=1).bool()
        register_buffer(self, "future", future, persistent=False)

    def construct(self, x, padding=None):
        B, T, C = x.shape
        qkv = self.qkv(x).view(B, T, 3, self.heads, self.head_dim).permute(2, 0, 3, 1, 4)
        q, k, v = qkv[0], qkv[1], qkv[2]

        scores = matmul(q, k.swapaxes(-2, -1)) * self.scale  # (B, heads, T, T)
        if self.causal:
            scores = scores.masked_fill(self.future[:T, :T], float("-inf"))
        if padding is not None:
            scores = scores.masked_fill(padding[:, None, None, :], -1e9)
        weights = self.attn_drop(softmax_over(scores, dim=-1))

        out = matmul(weights, v).swapaxes(1, 2).view(B, T, C)
        return self.proj(out)


class FeedForward(nn.Cell):
    def __init__(self, config: EncoderConfig):
        super().__init__()
        hidden = int(config.dim * config.mlp_ratio)
        self.net = nn.SequentialCell(
            nn.Dense(config.dim, hidden),
            nn.GELU(approximate=False),
            nn.Dense(hidden, config.dim),
            nn.Dropout(p=config.dropout),
        )

    def construct(self, x):
        return self.net(x)


class EncoderLayer(nn.Cell):
    """Norm first: x + attention(norm(x)), then x + feed_forward(norm(x))."""

    def __init__(self, config: EncoderConfig):
        super().__init__()
        self.norm1 = nn.LayerNorm((config.dim,), epsilon=config.layer_norm_eps)
        self.attn = SelfAttention(config)
        self.norm2 = nn.LayerNorm((config.dim,), epsilon=config.layer_norm_eps)
        self.mlp = FeedForward(config)

    def construct(self, x, padding=None):
        x = x + self.attn(self.norm1(x), padding)
        x = x + self.mlp(self.norm2(x))
        return x


class TransformerEncoder(nn.Cell):
    def __init__(self, config: EncoderConfig):
        super().__init__()
        self.config = config
        self.token = nn.Embedding(config.vocab_size, config.dim, embedding_table=initializer.Normal(1.0))
        self.position = ms.Parameter(ops.zeros((1, config.max_length, config.dim)))
        self.drop = nn.Dropout(p=config.dropout)
        self.layers = nn.CellList([EncoderLayer(config) for _ in range(config.depth)])
        self.norm = nn.LayerNorm((config.dim,), epsilon=1e-05)
        self.head = nn.Dense(config.dim, config.num_classes, has_bias=False)

        trunc_normal_(self.position, std=0.02)
        self.apply(self._init_weights)

    def _init_weights(self, module):
        if isinstance(module, nn.Dense):
            normal_(module.weight, mean=0.0, std=0.02)
            if module.bias is not None:
                zeros_(module.bias)
        elif isinstance(module, nn.Embedding):
            normal_(module.embedding_table, std=0.02)

    def construct(self, tokens, padding=None):
        """tokens: int64 (B, T); padding: bool (B, T), true at padding -> logits (B, classes)."""
        length = tokens.shape[1]
        x = self.token(tokens) + self.position[:, :length]
        x = self.drop(x)
        for layer in self.layers:
            x = layer(x, padding)
        x = self.norm(x)
        if padding is None:
            pooled = x.mean(axis=1)
        else:
            keep = bitwise_not(padding).unsqueeze(-1).astype(x.dtype)
            pooled = (x * keep).sum(1) / keep.sum(1).clamp(min=1.0)
        return self.head(pooled)
