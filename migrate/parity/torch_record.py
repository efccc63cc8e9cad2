"""In: one torch model and its inputs. Out: what each of its modules received and gave back.

The plain float32 model is run whole and its calls are kept; a float64 twin gives the references,
a nudged twin and a run with coarse kernels give the errors that are torch's own (tolerance.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from migrate.parity.exchange import Array, ArrayStore, Spec, decode, encode
from migrate.parity.inner_calls import Seen, entry_of
from migrate.parity.inner_calls import watched as watched_calls
from migrate.parity.noise import nudge
from migrate.parity.tolerance import floor, relative_error
from migrate.parity.torch_values import array, change, leaf

CALLS_KEPT = 2
BYTES_KEPT = 3_000_000_000


@dataclass
class Twins:
    """One model three times, with equal weights; ``arguments`` are (args, kwargs) in float32."""

    plain: torch.nn.Module
    double: torch.nn.Module
    nudged: torch.nn.Module
    arguments: tuple[tuple[Any, ...], dict[str, Any]]
    seed: int
    buffers: dict[str, torch.Tensor] = field(default_factory=dict)
    ill: bool | None = None

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
        """A copy of this state of the tensor; the same state is copied once."""
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
