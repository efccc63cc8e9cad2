"""A pre-norm Transformer encoder with its own attention, for classifying token sequences."""

import math
from dataclasses import dataclass

import torch
import torch.nn as nn


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


class SelfAttention(nn.Module):
    """Multi-head scaled dot-product attention."""

    def __init__(self, config: EncoderConfig):
        super().__init__()
        if config.dim % config.heads != 0:
            raise ValueError(f"dim {config.dim} is not a multiple of heads {config.heads}")
        self.heads = config.heads
        self.head_dim = config.dim // config.heads
        self.scale = 1.0 / math.sqrt(self.head_dim)
        self.causal = config.causal
        self.qkv = nn.Linear(config.dim, 3 * config.dim)
        self.proj = nn.Linear(config.dim, config.dim)
        self.attn_drop = nn.Dropout(config.dropout)
        # true where looking is forbidden: not a parameter, but moves with the module
        future = torch.triu(torch.ones(config.max_length, config.max_length), diagonal=1).bool()
        self.register_buffer("future", future, persistent=False)

    def forward(self, x, padding=None):
        B, T, C = x.shape
        qkv = self.qkv(x).view(B, T, 3, self.heads, self.head_dim).permute(2, 0, 3, 1, 4)
        q, k, v = qkv[0], qkv[1], qkv[2]

        scores = q @ k.transpose(-2, -1) * self.scale  # (B, heads, T, T)
        if self.causal:
            scores = scores.masked_fill(self.future[:T, :T], float("-inf"))
        if padding is not None:
            scores = scores.masked_fill(padding[:, None, None, :], -1e9)
        weights = self.attn_drop(scores.softmax(dim=-1))

        out = torch.matmul(weights, v).transpose(1, 2).contiguous().view(B, T, C)
        return self.proj(out)


class FeedForward(nn.Module):
    def __init__(self, config: EncoderConfig):
        super().__init__()
        hidden = int(config.dim * config.mlp_ratio)
        self.net = nn.Sequential(
            nn.Linear(config.dim, hidden),
            nn.GELU(),
            nn.Linear(hidden, config.dim),
            nn.Dropout(config.dropout),
        )

    def forward(self, x):
        return self.net(x)


class EncoderLayer(nn.Module):
    """Norm first: x + attention(norm(x)), then x + feed_forward(norm(x))."""

    def __init__(self, config: EncoderConfig):
        super().__init__()
        self.norm1 = nn.LayerNorm(config.dim, eps=config.layer_norm_eps)
        self.attn = SelfAttention(config)
        self.norm2 = nn.LayerNorm(config.dim, eps=config.layer_norm_eps)
        self.mlp = FeedForward(config)

    def forward(self, x, padding=None):
        x = x + self.attn(self.norm1(x), padding)
        x = x + self.mlp(self.norm2(x))
        return x


class TransformerEncoder(nn.Module):
    def __init__(self, config: EncoderConfig):
        super().__init__()
        self.config = config
        self.token = nn.Embedding(config.vocab_size, config.dim)
        self.position = nn.Parameter(torch.zeros(1, config.max_length, config.dim))
        self.drop = nn.Dropout(config.dropout)
        self.layers = nn.ModuleList([EncoderLayer(config) for _ in range(config.depth)])
        self.norm = nn.LayerNorm(config.dim)
        self.head = nn.Linear(config.dim, config.num_classes, bias=False)

        nn.init.trunc_normal_(self.position, std=0.02)
        self.apply(self._init_weights)

    def _init_weights(self, module):
        if isinstance(module, nn.Linear):
            nn.init.normal_(module.weight, mean=0.0, std=0.02)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
        elif isinstance(module, nn.Embedding):
            nn.init.normal_(module.weight, std=0.02)

    def forward(self, tokens, padding=None):
        """tokens: int64 (B, T); padding: bool (B, T), true at padding -> logits (B, classes)."""
        length = tokens.size(1)
        x = self.token(tokens) + self.position[:, :length]
        x = self.drop(x)
        for layer in self.layers:
            x = layer(x, padding)
        x = self.norm(x)
        if padding is None:
            pooled = x.mean(dim=1)
        else:
            keep = (~padding).unsqueeze(-1).type_as(x)
            pooled = (x * keep).sum(1) / keep.sum(1).clamp(min=1.0)
        return self.head(pooled)
