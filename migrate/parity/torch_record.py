"""Record what each module of a torch model receives and gives back.

The plain float32 model is run whole and its calls are kept; a float64 twin gives the references,
a nudged twin and a run with coarse kernels give the errors that are torch's own (compare.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from migrate.parity.compare import floor, relative_error
from migrate.parity.exchange import Array, ArrayStore, Spec, decode, encode
from migrate.parity.inner_calls import Seen, entry_of
from migrate.parity.inner_calls import watched as watched_calls
from migrate.parity.noise import nudge

# Inputs are drawn with seeds from 0: a cotangent of the same numbers would lie along the input,
# where what is normed has no gradient at all.
APART = 10_000


def change(value: Any, tensor: Callable[[torch.Tensor], Any]) -> Any:
    """Return the same nested value with every tensor replaced; objects of other kinds stay."""
    if isinstance(value, torch.Tensor):
        return tensor(value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(change(item, tensor) for item in value))
    if isinstance(value, torch.Size):
        return value
    if isinstance(value, (tuple, list)):
        return type(value)(change(item, tensor) for item in value)
    if type(value) in (dict, Mapping) or type(value).__name__ == "OrderedDict":
        return type(value)((key, change(item, tensor)) for key, item in value.items())
    return value


def tensors(value: Any) -> list[torch.Tensor]:
    """Return all tensors of a nested value in the order of its description."""
    found: list[torch.Tensor] = []

    def keep(item: Any) -> Spec | None:
        if isinstance(item, torch.Tensor):
            found.append(item)
            return {"t": "value", "v": None}
        return None

    encode(value, keep)
    return found


def widen(tensor: torch.Tensor) -> torch.Tensor:
    """Return the float64 (complex128) twin of a floating tensor, and a copy of any other."""
    if tensor.is_complex():
        return tensor.detach().to(torch.complex128)
    if tensor.is_floating_point():
        return tensor.detach().to(torch.float64)
    return tensor.detach().clone()


def array(tensor: torch.Tensor) -> Array:
    """Return the numbers as numpy; bfloat16 as float32."""
    plain = tensor.detach().cpu().resolve_conj().resolve_neg()
    if plain.dtype is torch.bfloat16:
        plain = plain.float()
    result: Array = plain.contiguous().numpy()
    return result.reshape(tuple(plain.shape))


def dtype_name(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def leaf(tensor: torch.Tensor, key: str) -> Spec:
    return {"t": "tensor", "key": key, "dtype": dtype_name(tensor), "shape": list(tensor.shape)}


def describe(value: Any, store: ArrayStore) -> Spec:
    """Description of a nested value with its arrays written to the store."""

    def tensor(item: Any) -> Spec | None:
        if isinstance(item, torch.dtype):
            return {"t": "dtype", "name": str(item).removeprefix("torch.")}
        if isinstance(item, torch.device):
            return {"t": "value", "v": None}
        if not isinstance(item, torch.Tensor):
            return None
        if item.is_sparse or item.is_quantized:
            return {"t": "opaque", "why": "a sparse or quantised tensor"}
        return leaf(item, store.put(array(item)))

    return encode(value, tensor)


def head_cotangent(head: torch.Tensor, number: int) -> torch.Tensor:
    """Return the cotangent of a model's ``number``-th result."""
    return cotangent(head, APART + number)


def cotangent(tensor: torch.Tensor, seed: int) -> torch.Tensor:
    """Fixed normal numbers of the tensor's shape, float32."""
    draw = np.random.RandomState(seed).standard_normal(tuple(tensor.shape))
    return torch.from_numpy(np.asarray(draw, np.float32)).to(tensor.dtype)


CALLS_KEPT = 2
BYTES_KEPT = 3_000_000_000


@dataclass
class Twins:
    """One model three times, with equal weights; ``arguments`` are (args, kwargs) in float32.

    ``least`` is the least whole number that the inputs may hold, as they are described.
    """

    plain: torch.nn.Module
    double: torch.nn.Module
    nudged: torch.nn.Module
    arguments: tuple[tuple[Any, ...], dict[str, Any]]
    seed: int
    buffers: dict[str, torch.Tensor] = field(default_factory=dict)
    ill: bool | None = None
    least: int = 0

    def every(self) -> tuple[torch.nn.Module, ...]:
        return self.plain, self.double, self.nudged


@dataclass(frozen=True)
class Call:
    """One call of one module: nested values as they were before and after it."""

    path: str
    index: int
    args: Any
    kwargs: Any
    result: Any


@dataclass
class Tape:
    """Calls in the order in which they ended (children before parents)."""

    calls: list[Call] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    kept: dict[tuple[int, int], tuple[torch.Tensor, torch.Tensor]] = field(default_factory=dict)
    size: int = 0

    def copy(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return a copy of this state of the tensor; the same state is copied once."""
        state = (id(tensor), tensor._version)
        if state not in self.kept:
            self.size += tensor.numel() * tensor.element_size()
            self.kept[state] = (tensor, tensor.detach().clone())
        return self.kept[state][1]


OnEnd = Callable[[str, int, Any], None]


@contextmanager
def watched(
    model: torch.nn.Module, on_end: OnEnd, on_start: Callable[[str, Any, Any], None] | None = None
) -> Iterator[None]:
    """Call ``on_start(path, args, kwargs)`` and ``on_end(path, index, result)`` for modules."""
    counts: dict[str, int] = {}
    handles = []

    def attach(path: str, module: torch.nn.Module) -> None:
        def before(_: Any, args: Any, kwargs: Any) -> None:
            if on_start is not None:
                on_start(path, args, kwargs)

        def after(_: Any, args: Any, kwargs: Any, result: Any) -> None:
            index = counts.get(path, 0)
            counts[path] = index + 1
            on_end(path, index, result)

        handles.append(module.register_forward_pre_hook(before, with_kwargs=True))
        handles.append(module.register_forward_hook(after, with_kwargs=True))

    for path, module in model.named_modules():
        attach(path, module)
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def run(model: torch.nn.Module, twins: Twins, change_tensor: Callable[[Any], Any]) -> Any:
    """Call a whole twin on changed inputs, from the initial buffers, with the fixed seed."""
    restore(twins, model, "")
    torch.manual_seed(twins.seed)
    args, kwargs = twins.arguments
    return model(*change(args, change_tensor), **change(kwargs, change_tensor))


def restore(twins: Twins, root: torch.nn.Module, path: str) -> None:
    """Bring the buffers at and below ``path`` back to where they were before any run."""
    module = root.get_submodule(path)
    prefix = f"{path}." if path else ""
    with torch.no_grad():
        for name, buffer in module.named_buffers():
            before = twins.buffers.get(prefix + name)
            if before is not None and before.shape == buffer.shape:
                buffer.copy_(before)


def tape(twins: Twins) -> Tape:
    """Run the plain model and keep what its modules received and returned."""
    result = Tape()
    open_calls: list[tuple[str, Any, Any]] = []

    def start(path: str, args: Any, kwargs: Any) -> None:
        wanted = result.counts.get(path, 0) < CALLS_KEPT and result.size < BYTES_KEPT
        copies = change((args, kwargs), result.copy) if wanted else (None, None)
        open_calls.append((path, *copies))

    def end(path: str, index: int, value: Any) -> None:
        name, args, kwargs = open_calls.pop()
        while name != path:  # a call that was left by an exception has no end
            name, args, kwargs = open_calls.pop()
        result.counts[path] = index + 1
        if args is not None:
            result.calls.append(Call(path, index, args, kwargs, change(value, result.copy)))

    with torch.no_grad(), watched(twins.plain, end, start):
        run(twins.plain, twins, torch.clone)
    result.kept.clear()
    return result


def inner_calls(twins: Twins, root: Path, request: Spec) -> Spec:
    """Run one module on its recorded input: the result of every call in its code."""
    entry, training = entry_of(request)
    store = ArrayStore(Path(request["folder"]))
    seen = Seen(ArrayStore(Path(request["into"])), _arrays)

    def tensor(spec: Spec) -> torch.Tensor:
        found = torch.from_numpy(store.get(spec["key"]))
        return found.to(getattr(torch, spec["dtype"]))

    def value(name: str) -> Any:
        return decode(entry[name], tensor, lambda dtype: getattr(torch, dtype))

    module = twins.plain.get_submodule(request["path"])
    twins.plain.train(training)
    restore(twins, twins.plain, "")
    torch.manual_seed(twins.seed)
    with torch.no_grad(), watched_calls(root, type(module), seen.observe):
        module(*value("args"), **value("kwargs"))
    return {"rows": seen.rows}


def _arrays(value: Any) -> list[Array]:
    items = value if isinstance(value, (tuple, list)) else (value,)
    return [array(item).copy() for item in items if isinstance(item, torch.Tensor)]


def nudger(seed: int) -> Callable[[torch.Tensor], torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return lambda tensor: nudge(tensor.detach().clone(), generator)


@contextmanager
def in_float64() -> Iterator[None]:
    """Factories in forward make float64, as the twin needs."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


@dataclass(frozen=True)
class Errors:
    """References and torch's own errors of one result, one entry for each tensor in it."""

    references: list[torch.Tensor]
    own: list[float]
    coarse: list[float]
    reduction: float
    random: bool = False


def errors_of(
    references: Sequence[torch.Tensor], own: Sequence[Sequence[torch.Tensor]],
    coarse: Sequence[Sequence[torch.Tensor]], reduction: float, random: bool,
) -> Errors:  # fmt: skip
    """Return the largest errors of torch's own runs, and of those with coarse kernels."""

    def worst(runs: Sequence[Sequence[torch.Tensor]]) -> list[float]:
        return [
            max((error(run[n], reference) for run in runs), default=0.0)
            for n, reference in enumerate(references)
        ]

    return Errors(list(references), worst(own), worst(coarse), reduction, random)


def rms(tensor: torch.Tensor) -> float:
    """Return the root mean square."""
    return float(tensor.detach().double().norm() / max(tensor.numel(), 1) ** 0.5)


def same(one: Sequence[torch.Tensor], other: Sequence[torch.Tensor]) -> bool:
    """Return whether two runs gave the same numbers; NaN is like NaN."""
    return len(one) == len(other) and all(
        a.shape == b.shape and torch.equal(torch.nan_to_num(a), torch.nan_to_num(b))
        for a, b in zip(one, other, strict=False)
    )


def annotate(value: Any, errors: Errors, store: ArrayStore) -> Spec:
    """Describe a float32 result with the float64 reference in place of its numbers."""
    remaining = iter(zip(errors.references, errors.own, errors.coarse, strict=False))

    def tensor(item: Any) -> Spec | None:
        if not isinstance(item, torch.Tensor):
            return None
        reference, own, coarse = next(remaining)
        exact = not (item.is_floating_point() or item.is_complex())
        source = item if exact or reference.shape != item.shape else reference
        place = leaf(item, store.put(array(source)))
        least = floor(place["dtype"], errors.reduction)
        return {**place, "own": own, "coarse": coarse, "floor": least, "random": errors.random}

    return encode(value, tensor)


def error(tensor: torch.Tensor, reference: torch.Tensor) -> float:
    """Relative error of one tensor; 0 for whole numbers, 1 where shapes differ."""
    if not (reference.is_floating_point() or reference.is_complex()):
        return 0.0
    if tensor.shape != reference.shape:
        return 1.0
    return relative_error(array(tensor), array(reference))
