"""In: torch. Out: torch whose normal and uniform draws in forward are a function of the size.

As with dropout (masks.py): both frameworks then compute on the same numbers, so that what follows
a draw (the sampling of a variational model) is compared and not only its shape.
"""

from __future__ import annotations

from typing import Any

import torch

from migrate.parity.masks import draw


class Draws:
    """Replaces torch's draws; outside of a forward (weights, for one) they are as ever."""

    def __init__(self) -> None:
        self.depth = 0
        self.randn, self.rand, self.normal = torch.randn, torch.rand, torch.normal
        self.fill = torch.Tensor.normal_

    def share(self) -> None:
        """Replace the functions for this process, and know whether a forward is running."""
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
