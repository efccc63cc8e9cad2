"""The torch side: the values that a program has to give, and whether they are stable."""

from __future__ import annotations

import contextlib
import signal
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from harness import Numpy, Side, leaves, run
from programs import (
    HEADER,
    Arguments,
    Program,
    filling,
    is_finite,
    main_text,
    numbers_apart,
    weights_of_sum,
)
from torch.utils._python_dispatch import TorchDispatchMode

torch.set_num_threads(1)


def fill(model: Any) -> Any:
    """Give every Parameter numbers that its name decides.

    The count of batches is left out: MindSpore keeps none, by design (docs/weights.md).
    """
    for module in model.modules():
        if getattr(module, "momentum", None) is not None and hasattr(module, "num_batches_tracked"):
            module.num_batches_tracked = None
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(torch.from_numpy(filling(name, parameter.shape)).to(parameter.dtype))
    return model


def install_kit() -> None:
    """Make ``fuzzkit`` importable."""
    kit = types.ModuleType("fuzzkit")
    kit.fill = fill  # type: ignore[attr-defined]
    sys.modules["fuzzkit"] = kit


class Torch(Side):
    def tensor(self, array: np.ndarray) -> Any:
        return torch.from_numpy(array.copy())

    def is_tensor(self, value: Any) -> bool:
        return isinstance(value, torch.Tensor)

    def array(self, tensor: Any) -> np.ndarray:
        tensor = tensor.detach()
        if tensor.dtype == torch.bfloat16:
            tensor = tensor.float()
        return np.array(tensor.resolve_conj().resolve_neg().numpy())

    def dtype_name(self, value: Any) -> str:
        return str(value).removeprefix("torch.") if isinstance(value, torch.dtype) else ""

    def gradients(
        self, call: Callable[..., Any], arguments: Arguments, model: Any, chosen: Any
    ) -> tuple[Any, Any]:
        handed = [self.handed(a) for a in arguments]
        places = [i for i, t in enumerate(handed) if self.is_tensor(t) and t.is_floating_point()]
        inputs = [handed[i].requires_grad_() for i in places]
        given = [t.clone() if i in places else t for i, t in enumerate(handed)]
        total, of = 0.0, []
        for number, (path, tensor) in enumerate(leaves(call(*given), self)):
            if tensor.requires_grad and tensor.is_floating_point():
                factors = torch.from_numpy(weights_of_sum(tensor.numel(), number))
                total = total + (tensor.float().reshape(-1) * factors).sum()
                of.append((path, number, tensor.numel()))
        named = list(model.named_parameters()) if isinstance(model, torch.nn.Module) else []
        named = [(n, p) for n, p in named if p.requires_grad]
        asked = [*inputs, *(p for _, p in named)]
        if not of or not asked:
            raise ValueError("no gradient")
        taken = torch.autograd.grad(total, asked, allow_unused=True)
        labels = [*(f"argument {i}" for i in places), *(n for n, _ in named)]
        pairs = [
            (n, ("tensor", self.array(torch.zeros_like(t) if g is None else g)))
            for n, t, g in zip(labels, asked, taken, strict=True)
        ]
        return ("dict", pairs), (places, of)


@dataclass(frozen=True)
class Oracle:
    """What torch gives for a program."""

    found: Mapping[str, Any]
    chosen: Mapping[str, Any]


SIDE = Torch()


def load(text: str, others: Mapping[str, str], name: str = "main") -> dict[str, Any]:
    """Execute the text of a main file and of its other files."""
    for file, other in others.items():
        module = types.ModuleType(file.removesuffix(".py"))
        sys.modules[module.__name__] = module
        exec(compile(HEADER + other, file, "exec"), module.__dict__)
    main = types.ModuleType(name)
    sys.modules[name] = main
    exec(compile(text, f"{name}.py", "exec"), main.__dict__)
    return main.__dict__


def _loaded(program: Program) -> dict[str, Any]:
    return load(main_text([program]), program.others)


def _nudged(value: Any, random: np.random.RandomState) -> Any:
    if isinstance(value, Numpy):
        return Numpy(_nudged(value.array, random))
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        noise = 1 + 1e-6 * random.standard_normal(value.shape)
        return np.asarray(value * noise, value.dtype)
    if isinstance(value, list):
        return [_nudged(v, random) for v in value]
    if isinstance(value, tuple):
        return tuple(_nudged(v, random) for v in value)
    return value


class TookLong(BaseException):
    """More processor time than a program may take; no ``except Exception`` of a program stops it."""


@contextlib.contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise TookLong where the block takes more processor time."""

    def late(*_: object) -> None:
        raise TookLong

    before = signal.signal(signal.SIGVTALRM, late)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds, 0.2)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def oracle(program: Program) -> tuple[Program, Oracle] | None:
    """The program with the calls that torch can run stably, and their results; None: none."""
    try:
        with limited(4.0):
            return _oracle(program)
    except TookLong:
        return None


class _Watch(TorchDispatchMode):
    """Note a tanh of large numbers: what is computed from it says nothing about a conversion.

    MindSpore 2.10's kernel for CPU, measured against float64: off by 9e-7 at 3, 4e-6 at 3.5, and
    1e-4 at 5, from where on it gives 1, with a gradient of 0.
    """

    saturated = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if str(func).startswith("aten.tanh"):
            self.saturated |= bool(args[0].numel() and args[0].abs().max() > 3.5)
        return func(*args, **(kwargs or {}))


def _oracle(program: Program) -> tuple[Program, Oracle] | None:
    from dataclasses import replace

    kept = []
    for call in program.calls:
        one = replace(program, calls=(call,))
        try:
            found, _ = run(one, _loaded(one), SIDE, {})
            with _Watch() as watch:
                run(one, _loaded(one), SIDE, {}, False)
        except Exception:
            return None
        if watch.saturated:
            continue
        if any(v[0] == "raises" for v in found.values()) or not all(map(is_finite, found.values())):
            continue
        random = np.random.RandomState(7)
        moved = replace(one, calls=(tuple(_nudged(a, random) for a in call),))
        again, _ = run(moved, _loaded(moved), SIDE, {})
        if again.keys() == found.keys() and all(
            not _loosely(found[k], again[k]) for k in found
        ):  # fmt: skip
            kept.append(call)
    if not kept:
        return None
    chosen = replace(program, calls=tuple(kept))
    found, noted = run(chosen, _loaded(chosen), SIDE, {})
    if any(v[0] == "raises" for v in found.values()) or not all(map(is_finite, found.values())):
        return None
    return chosen, Oracle(found, noted)


def _loosely(a: Any, b: Any) -> bool:
    """Whether two runs with hardly different inputs differ: then no comparison says anything."""
    if a[0] != b[0]:
        return True
    if a[0] in ("tensor", "array"):
        if a[1].shape != b[1].shape or a[1].dtype != b[1].dtype:
            return True
        return bool(numbers_apart(a[1], b[1], "", loose=0.5))
    if a[0] == "float":
        return bool(numbers_apart(np.asarray(a[1]), np.asarray(b[1]), "", loose=0.5))
    if a[0] == "dict":
        pairs = list(zip(a[1], b[1], strict=False))
        return len(a[1]) != len(b[1]) or any(k != m or _loosely(x, y) for (k, x), (m, y) in pairs)
    if a[0] in ("list", "tuple"):
        return len(a[1]) != len(b[1]) or any(map(_loosely, a[1], b[1]))
    return bool(a[1] != b[1])
