"""Perturb runs of a torch model, and count what its operators add up.

COARSE says where MindSpore 2.10.0's CPU kernels are coarser than torch's, by benchmarks/kernels.py:
aten operator -> range of its argument, and the relative error (root mean square) in equal parts of
that range; 0 where the kernel is as good as torch's. ABSOLUTE: the error of kernels where it does
not depend on the size of the result.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from itertools import product
from typing import Any, TypeVar

import torch
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

# fmt: off
COARSE: dict[str, tuple[tuple[float, float], tuple[float, ...]]] = {
    "exp": ((-20.0, 20.0), (5.3e-06, 4.8e-06, 4.2e-06, 4e-06, 3.4e-06, 3.3e-06, 2.6e-06, 2.1e-06,
        2e-06, 1.3e-06, 1.3e-06, 7.5e-07, 5.1e-07, 7.3e-07, 1.1e-06, 1.3e-06, 1.8e-06, 2.2e-06,
        2.5e-06, 3.1e-06, 3.3e-06, 3.9e-06, 4.3e-06, 4.6e-06)),
    "log": ((0.001, 50.0), (2.9e-07, 0, 2.2e-07, 2e-07, 2.1e-07, 0, 0, 2.2e-07, 2.5e-07, 2.4e-07,
        2.3e-07, 2.2e-07, 2.2e-07, 2.2e-07, 2.2e-07, 2.6e-07, 2.7e-07, 2.6e-07, 2.6e-07, 2.6e-07,
        2.5e-07, 2.5e-07, 2.5e-07, 2.4e-07)),
    "sigmoid": ((-12.0, 12.0), (2.7e-06, 2.2e-06, 2.2e-06, 1.9e-06, 1.6e-06, 1.5e-06, 1.1e-06,
        1e-06, 7.6e-07, 5.8e-07, 6e-07, 3.6e-07, 2.7e-07, 2.1e-07, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)),
    "tanh": ((-9.0, 9.0), (0, 3.4e-07, 1.5e-06, 6.9e-06, 3.1e-05, 7.1e-05, 2.4e-05, 4.1e-06,
        4.1e-07, 0, 0, 0, 0, 0, 0, 4.1e-07, 4.1e-06, 2.4e-05, 7.1e-05, 3.1e-05, 6.9e-06, 1.5e-06,
        3.4e-07, 0)),
    "erfinv": ((-0.999, 0.999), (0.0022, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        0, 0, 0, 0.0022)),
    "log2": ((0.001, 50.0), (2.9e-07, 0, 2.2e-07, 2.1e-07, 2.2e-07, 0, 0, 2.2e-07, 2.5e-07,
        2.4e-07, 2.4e-07, 2.3e-07, 2.2e-07, 2.2e-07, 2.3e-07, 2.6e-07, 2.7e-07, 2.7e-07, 2.6e-07,
        2.6e-07, 2.6e-07, 2.5e-07, 2.5e-07, 2.5e-07)),
    "log10": ((0.001, 50.0), (3e-07, 2e-07, 2.3e-07, 2.2e-07, 2.3e-07, 2.1e-07, 2e-07, 2.3e-07,
        2.6e-07, 2.5e-07, 2.5e-07, 2.4e-07, 2.3e-07, 2.3e-07, 2.4e-07, 2.7e-07, 2.8e-07, 2.8e-07,
        2.7e-07, 2.7e-07, 2.7e-07, 2.6e-07, 2.6e-07, 2.6e-07)),
    "log_sigmoid_forward": ((-12.0, 12.0), (0, 0, 0, 0, 0, 0, 0, 0, 2.4e-07, 2.5e-07, 4.3e-07,
        5.5e-07, 8.2e-07, 1.7e-06, 2.8e-06, 5.3e-06, 1e-05, 2.3e-05, 5.8e-05, 0.00015, 0.00041,
        0.001, 0.0028, 0.0081)),
    "silu": ((-12.0, 12.0), (2.7e-06, 2.2e-06, 2.2e-06, 1.9e-06, 1.6e-06, 1.5e-06, 1.1e-06, 1e-06,
        7.7e-07, 6e-07, 5.6e-07, 2.9e-07, 2e-07, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)),
    "elu": ((-8.0, 3.0), (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2.5e-07, 0, 6.3e-07, 1.8e-06, 0,
        0, 0, 0, 0, 0, 0)),
    "softplus": ((-12.0, 12.0), (0.0031, 0.0012, 0.00042, 0.00016, 5.7e-05, 2.1e-05, 8e-06,
        3.2e-06, 1.9e-06, 1e-06, 1e-06, 5.7e-07, 4.3e-07, 3.9e-07, 0, 2.2e-07, 0, 0, 0, 0, 0, 0,
        0, 0)),
    "mish": ((-12.0, 12.0), (0.0032, 0.0012, 0.00043, 0.00016, 5.9e-05, 2.2e-05, 8.2e-06, 3.3e-06,
        1.9e-06, 1.1e-06, 9.3e-07, 4.6e-07, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)),
}
ABSOLUTE: dict[str, float] = {
    "_log_softmax": 1.9e-06,
}


Result = TypeVar("Result")
# Operators whose results are rounded; moving numbers about is exact, and so is choosing them.
ROUNDING = (
    "conv", "mm", "addmv", "mv", "dot", "norm", "softmax", "sum", "mean", "var", "std", "add",
    "sub", "mul", "div", "sqrt", "exp", "log", "pow", "sigmoid", "tanh", "gelu", "silu", "erf",
    "sin", "cos", "lerp", "bilinear", "bicubic", "avg_pool", "prod", "lstm", "gru", "rnn",
    "attention", "loss", "elu", "mish", "softplus", "backward",
)  # fmt: skip
RANDOM = (
    "bernoulli", "rand", "randn", "rand_like", "randn_like", "randint", "randint_like", "randperm",
    "normal", "uniform", "exponential", "multinomial", "native_dropout", "poisson", "geometric",
    "cauchy", "log_normal", "random", "rrelu_with_noise", "normal_functional",
)  # fmt: skip
ROUNDED = (torch.float32, torch.float16, torch.bfloat16)
# Uniform on (-2u, 2u): a root mean square of about one unit roundoff u for a step.
WIDE = 2.0
# Gradients jump where ReLU, max and the like change sides, and any rounding may change a side.
# Coarser rounding crosses more such kinks than another implementation would.
ACROSS_KINKS = 16.0
FEW = 16  # numbers whose common error one random draw does not show
MORE_DRAWS = 8


def base_name(operator: Any) -> str:
    """Return ``tanh`` for ``aten.tanh_.default``."""
    name: str = operator.overloadpacket.__name__
    return name[:-1] if name.endswith("_") and not name.startswith("__") else name


class OperatorLog(TorchDispatchMode):  # type: ignore[misc]
    """Rounds at random, and adds up the reduction lengths of the operators that run.

    The results of all that rounds, but in float64, in backward too, are moved by about one unit
    roundoff: what another correct implementation may differ by at each step (Parker, "Monte
    Carlo arithmetic", 1997).
    """

    def __init__(self, seed: int, wide: float = WIDE) -> None:
        super().__init__()
        self.wide = wide
        self.generator = torch.Generator().manual_seed(seed)
        self.reduction = 0.0
        self.names: set[str] = set()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        name = base_name(func)
        self.names.add(name)
        self.reduction += reduction_length(name, args, result)
        if not any(part in name for part in ROUNDING):
            return result
        results = result if isinstance(result, (tuple, list)) else (result,)
        for tensor, returned in zip(results, func._schema.returns, strict=False):
            alias = returned.alias_info
            if isinstance(tensor, torch.Tensor) and (alias is None or alias.is_write):
                self._round(tensor)
        return result

    def _round(self, tensor: torch.Tensor) -> None:
        if tensor.dtype not in ROUNDED or not tensor.numel():
            return
        some = tensor.reshape(-1)[:64]
        if bool((some == some.round()).all()):
            return  # counting in floating point (positions, indices) is exact
        unit = torch.finfo(tensor.dtype).eps / 2
        draw = torch.empty_like(tensor, requires_grad=False)
        tensor.mul_(
            draw.uniform_(1 - unit * self.wide, 1 + unit * self.wide, generator=self.generator)
        )

    @property
    def random(self) -> bool:
        """Return whether an operator drew random numbers."""
        return any(name in RANDOM for name in self.names)

    @property
    def coarse(self) -> bool:
        return any(name in COARSE or name in ABSOLUTE for name in self.names)


def reduction_length(name: str, args: tuple[Any, ...], result: Any) -> float:
    """Return how many terms one element of the result adds up; 1 for an elementwise operator."""
    tensors = [arg for arg in args if isinstance(arg, torch.Tensor)]
    first = result[0] if isinstance(result, (tuple, list)) and result else result
    if not tensors or not isinstance(first, torch.Tensor) or not first.is_floating_point():
        return 0.0
    if name == "convolution_backward" and len(tensors) > 2:
        terms = tensors[0].numel() // max(tensors[0].shape[1], 1)
        return float(terms + math.prod(tensors[2].shape[1:]))
    if name in ("convolution", "mkldnn_convolution"):
        return float(math.prod(tensors[1].shape[1:]))
    if name in ("mm", "bmm", "mv", "dot", "linear", "matmul"):
        return float(tensors[0].shape[-1])
    if name in ("addmm", "baddbmm", "addmv") and len(tensors) > 1:
        return float(tensors[1].shape[-1] + 1)
    if "attention" in name:
        return float(tensors[0].shape[-1] + tensors[1].shape[-2])
    if "norm" in name or "softmax" in name or "loss" in name:
        return _normalised(name, args, tensors[0])
    if "lstm" in name or "rnn" in name or "gru" in name:
        return float(2 * tensors[0].shape[-1] * max(tensors[0].shape[:-1], default=1))
    return float(max(1.0, tensors[0].numel() / max(first.numel(), 1)))


def _normalised(name: str, args: tuple[Any, ...], tensor: torch.Tensor) -> float:
    if "batch_norm" in name and tensor.ndim > 1:
        in_eval = "no_training" in name or (len(args) > 5 and args[5] is False)
        return 1.0 if in_eval else float(tensor.numel() / max(tensor.shape[1], 1))
    if "group_norm" in name and tensor.ndim > 1:
        return float(tensor.numel() / max(tensor.shape[0], 1))
    return float(tensor.shape[-1]) if tensor.ndim else 1.0


class KernelNoise(TorchDispatchMode):  # type: ignore[misc]
    """Makes torch's results as coarse as MindSpore's CPU kernels are, operator by operator.

    ``together``: all numbers of a result are off in the same direction, as those of neighbouring
    arguments are in truth. A sum keeps such errors, a quotient loses them; so both are tried.
    """

    def __init__(self, seed: int, together: bool = False) -> None:
        super().__init__()
        self.generator = torch.Generator().manual_seed(seed)
        self.together = together

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        name = base_name(func)
        if not (name in COARSE or name in ABSOLUTE) or not isinstance(args[0], torch.Tensor):
            return func(*args, **(kwargs or {}))
        size = coarseness(name, args[0])  # before an in-place operator overwrites its input
        result = func(*args, **(kwargs or {}))
        first = result[0] if isinstance(result, (tuple, list)) else result
        if first.is_floating_point() and first.shape == size.shape:
            # up or down by the whole size: a draw near zero would hide the error of a lone number
            shape = (1,) * first.ndim if self.together else first.shape
            draw = torch.randint(0, 2, shape, generator=self.generator) * 2.0 - 1.0
            first.add_((draw * size).to(first.dtype) * first.abs())
            first.add_(draw.to(first.dtype) * ABSOLUTE.get(name, 0.0))
        return result


def draws_for(results: Iterable[torch.Tensor]) -> int:
    """How often to perturb a run at random: an error of few numbers may be small by chance."""
    least = min((t.numel() for t in results if t.numel()), default=FEW)
    return MORE_DRAWS if least < FEW else 1


def coarse_runs(
    log: OperatorLog, seed: int, run: Callable[[], Result], draws: int = 1
) -> list[Result]:
    """Return what a model gives with kernels as coarse as MindSpore's.

    Empty where none of them ran.
    """
    found = []
    for number, together in product(range(draws), (False, True)) if log.coarse else ():
        with KernelNoise(seed + number, together):
            found.append(run())
    return found


def coarseness(name: str, argument: torch.Tensor) -> torch.Tensor:
    """Relative error of MindSpore's kernel at each element of its argument (float32)."""
    if name not in COARSE:
        return torch.zeros(argument.shape)
    (low, high), parts = COARSE[name]
    place = (argument.detach().float() - low) / (high - low) * len(parts)
    index = torch.nan_to_num(place).floor().clamp(0, len(parts) - 1).long()
    return torch.tensor(parts, dtype=torch.float32)[index]


def nudge(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return the tensor with each number moved by half a unit in the last place, up or down."""
    if not tensor.is_floating_point():
        return tensor
    step = torch.finfo(tensor.dtype).eps / 2
    with _disable_current_modes():  # its own operators are no part of the model
        sign = torch.randint(0, 2, tensor.shape, generator=generator).to(tensor.dtype) * 2 - 1
        return tensor + tensor * sign * step


def nudge_model(model: torch.nn.Module, seed: int) -> None:
    """Nudge all weights of a model in place."""
    generator = torch.Generator().manual_seed(seed)
    states: Mapping[str, torch.Tensor] = model.state_dict()
    with torch.no_grad():
        for tensor in {id(t): t for t in states.values()}.values():
            tensor.copy_(nudge(tensor, generator))
