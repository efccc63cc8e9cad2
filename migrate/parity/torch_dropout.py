"""In: torch. Out: torch with dropout masks that are a function of shape and probability."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as functional

from migrate.parity.masks import PATH_DROPPING, PROBABILITIES, channel_shape, keep_mask


def share_masks() -> None:
    """Replace the random draws of dropout in torch.nn.functional for this process.

    Recurrent layers draw inside one kernel; their dropout is set to 0 by `silence`.
    """
    functional.dropout = dropout
    functional.dropout1d = _by_channel(2)
    functional.dropout2d = _by_channel(3)
    functional.dropout3d = _by_channel(4)
    functional.scaled_dot_product_attention = attention
    torch.dropout = lambda input, p, train: dropout(input, p, train)


def recurrent_rates(model: torch.nn.Module) -> dict[str, float]:
    """The dropout between the layers of recurrent modules, by path."""
    return {
        path: float(module.dropout) for path, module in model.named_modules()
        if isinstance(module, torch.nn.RNNBase) and module.num_layers > 1
    }  # fmt: skip


def silence(model: torch.nn.Module) -> None:
    """Set the dropout of recurrent layers and of dropped paths to 0 (MindSpore's alike)."""
    for module in model.modules():
        if isinstance(module, torch.nn.RNNBase):
            module.dropout = 0.0
        if type(module).__name__ in PATH_DROPPING:
            for name in PROBABILITIES:
                if isinstance(module.__dict__.get(name), float):
                    module.__dict__[name] = 0.0


def dropout(
    input: torch.Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> torch.Tensor:
    """torch.nn.functional.dropout with the shared mask."""
    if not training or p == 0.0:
        return input
    mask = torch.from_numpy(keep_mask(input.shape, p)).to(input.dtype)
    return input.mul_(mask) if inplace else input * mask


def _by_channel(unbatched: int) -> Any:
    def drop(
        input: torch.Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
    ) -> torch.Tensor:
        if not training or p == 0.0:
            return input
        shape = channel_shape(input.shape, unbatched)
        mask = torch.from_numpy(keep_mask(shape, p)).to(input.dtype)
        return input.mul_(mask) if inplace else input * mask

    return drop


_native_attention = functional.scaled_dot_product_attention


def attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attn_mask: torch.Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> torch.Tensor:
    """Scaled dot product attention; written out where it drops, so that the mask is shared."""
    if dropout_p == 0.0:
        return _native_attention(
            query, key, value, attn_mask, 0.0, is_causal, scale=scale, enable_gqa=enable_gqa
        )
    if enable_gqa:
        groups = query.shape[-3] // key.shape[-3]
        key, value = key.repeat_interleave(groups, -3), value.repeat_interleave(groups, -3)
    size = query.shape[-1]
    scores = query @ key.transpose(-2, -1) * (1 / math.sqrt(size) if scale is None else scale)
    if is_causal:
        attn_mask = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
    if attn_mask is not None:
        is_bool = attn_mask.dtype is torch.bool
        scores = scores.masked_fill(~attn_mask, -math.inf) if is_bool else scores + attn_mask
    return dropout(torch.softmax(scores, -1), dropout_p) @ value
