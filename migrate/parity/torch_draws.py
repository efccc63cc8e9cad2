"""Make the random draws of torch a function of shape and probability, the same in MindSpore."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as functional

from migrate.parity.masks import PATH_DROPPING, PROBABILITIES, channel_shape, draw, keep_mask


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
    """Return the dropout between the layers of recurrent modules, by path."""
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
    """Do as torch.nn.functional.dropout does, with the shared mask."""
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


class Draws:
    """Replaces torch's draws; outside of a forward (weights, for one) they are as ever."""

    def __init__(self) -> None:
        self.depth = 0
        self.shared = False
        self.randn, self.rand, self.normal = torch.randn, torch.rand, torch.normal
        self.fill = torch.Tensor.normal_

    def share(self) -> None:
        """Replace the functions for this process, once, and count how deep a forward is running."""
        if self.shared:
            return
        self.shared = True
        plain = torch.nn.Module.__call__

        def called(module: Any, *args: Any, **kwargs: Any) -> Any:
            self.depth += 1
            try:
                return plain(module, *args, **kwargs)
            finally:
                self.depth -= 1

        torch.nn.Module.__call__ = called
        torch.randn_like = self._alike("normal", torch.randn_like)
        torch.rand_like = self._alike("uniform", torch.rand_like)
        torch.randn = self._sized("normal", self.randn)
        torch.rand = self._sized("uniform", self.rand)
        torch.normal = self._normal
        torch.Tensor.normal_ = lambda tensor, *args, **options: self._fill(tensor, *args, **options)

    def _alike(self, kind: str, native: Any) -> Any:
        def shared(input: torch.Tensor, **options: Any) -> torch.Tensor:
            return _like(kind, input) if self.depth else native(input, **options)

        return shared

    def _sized(self, kind: str, native: Any) -> Any:
        def shared(*size: Any, **options: Any) -> torch.Tensor:
            if options.get("generator") is not None or not self.depth:
                return native(*size, **options)
            shape = size[0] if size and isinstance(size[0], (tuple, list)) else size
            shape = options.get("size", shape)
            dtype = options.get("dtype") or torch.get_default_dtype()
            return torch.from_numpy(draw(kind, shape)).to(dtype)

        return shared

    def _normal(self, mean: Any, std: Any = 1.0, *size: Any, **options: Any) -> torch.Tensor:
        held = [value for value in (mean, std) if isinstance(value, torch.Tensor)]
        if size or options or not self.depth or not held:
            return self.normal(mean, std, *size, **options)
        shape = torch.broadcast_shapes(*(value.shape for value in held))
        return mean + std * torch.from_numpy(draw("normal", shape)).to(held[0].dtype)

    def _fill(self, tensor: Any, mean: float = 0.0, std: float = 1.0, **options: Any) -> Any:
        if options.get("generator") is not None or not self.depth:
            return self.fill(tensor, mean, std, **options)
        return tensor.copy_(_like("normal", tensor) * std + mean)


def _like(kind: str, tensor: torch.Tensor) -> torch.Tensor:
    return torch.from_numpy(draw(kind, tuple(tensor.shape))).to(tensor.dtype)
