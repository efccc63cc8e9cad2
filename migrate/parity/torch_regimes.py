"""Find the pieces of piecewise operators that inputs reach, and inputs for the rest.

ReLU and ReLU6 agree on inputs near one. So the operators of a run are watched: an operator with
edges (the bounds of a clamp, a mask, a stride that does not divide) has pieces between them, and
for each piece that no number falls into, the inputs of the whole model, then those of the module
itself, are changed until one does. What stays without a number is listed.
"""

from __future__ import annotations

import inspect
import itertools
import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import Enum
from pathlib import Path
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

from migrate.parity.exchange import ArrayStore
from migrate.parity.masks import PATH_DROPPING
from migrate.parity.messages import At, Emit, Payload
from migrate.parity.noise import base_name
from migrate.parity.request import Draw
from migrate.parity.torch_forward import drawn, local_entry
from migrate.parity.torch_record import Call, Twins, change, restore, tape, tensors, watched

# Edges of operators without bounds of their own. Another bound may stand where torch has none:
# ReLU6 in place of ReLU.
EDGES: Mapping[str, tuple[float, ...]] = {
    "relu": (0.0, 6.0), "leaky_relu": (0.0,), "elu": (0.0,), "celu": (0.0,), "abs": (0.0,),
    "_prelu_kernel": (0.0,), "hardswish": (-3.0, 3.0), "hardsigmoid": (-3.0, 3.0),
}  # fmt: skip
STRIDED = ("convolution", "max_pool2d_with_indices", "avg_pool2d", "max_pool3d_with_indices",
           "avg_pool3d")  # fmt: skip
SHRINKS = ("hardshrink", "softshrink")
COMPARED = ("gt", "ge", "lt", "le")
LEAST, MOST = 1e-3, 1e4  # an edge beyond these guards against zero or infinity
FACTORS = 1024.0
TRIES = 12  # runs of the whole model, and of each module; what they do not reach is listed


class Kind(Enum):
    """What decides which piece of an operator runs: numbers, a mask, a whole number, or sizes."""

    NUMBERS = 1
    MASK = 2
    CONSTANT = 3
    SIZES = 4


Key = tuple[str, str, int]  # module, operator, which of them in its call


@dataclass
class Pieces:
    """The pieces of one operator, and what has been seen of its argument.

    ``constant`` is the whole number that is compared with.
    """

    edges: tuple[float, ...]
    names: tuple[str, ...]
    kind: Kind
    constant: int = 0
    low: float = math.inf
    high: float = -math.inf
    reached: set[int] = field(default_factory=set)

    @property
    def left(self) -> list[int]:
        return [number for number in range(len(self.names)) if number not in self.reached]

    def see(self, numbers: torch.Tensor) -> None:
        """Note the pieces that some of these numbers lie in."""
        plain = numbers.detach().reshape(-1).double()
        plain = plain[torch.isfinite(plain)]
        if plain.numel():
            self.low = min(self.low, float(plain.min()))
            self.high = max(self.high, float(plain.max()))
            edges = torch.tensor(self.edges, dtype=torch.float64)
            self.reached |= set(torch.bucketize(plain, edges).unique().tolist())


@dataclass(frozen=True)
class Seen:
    """What one call of an operator shows: numbers, the edges between its pieces, their names."""

    numbers: torch.Tensor
    edges: tuple[float, ...] = (0.5,)
    names: tuple[str, ...] = ()
    kind: Kind = Kind.MASK
    constant: int = 0


class PieceLog(TorchDispatchMode):  # type: ignore[misc]
    """Notes which pieces of which operators run; `watched` tells it in which module."""

    def __init__(self) -> None:
        super().__init__()
        self.found: dict[Key, Pieces] = {}
        self.inside: list[tuple[str, Counter[str]]] = [("", Counter())]

    def enter(self, path: str, args: Any, kwargs: Any) -> None:
        self.inside.append((path, Counter()))

    def leave(self, path: str, index: int, result: Any) -> None:
        self.inside.pop()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        name, named = base_name(func), kwargs or {}
        before = None  # an operator in place overwrites what it is given
        if func._schema.is_mutable and args and isinstance(args[0], torch.Tensor):
            before = args[0].detach().clone()
        result = func(*args, **named)
        with _disable_current_modes():
            given = args if before is None else (before, *args[1:])
            seen = seen_of(name, given, named, result)
            if seen is not None:
                self._note(name, seen)
        return result

    def _note(self, name: str, seen: Seen) -> None:
        path, counts = self.inside[-1]
        key = (path, name, counts[name])
        counts[name] += 1
        names = seen.names or _intervals(seen.edges)
        pieces = self.found.setdefault(key, Pieces(seen.edges, names, seen.kind, seen.constant))
        if pieces.edges == seen.edges:
            pieces.see(seen.numbers)


def _intervals(edges: Sequence[float]) -> tuple[str, ...]:
    inner = [f"from {low:g} to {high:g}" for low, high in itertools.pairwise(edges)]
    return (f"below {edges[0]:g}", *inner, f"above {edges[-1]:g}")


def seen_of(name: str, args: Sequence[Any], kwargs: Mapping[str, Any], result: Any) -> Seen | None:
    """Return what a call of an aten operator shows; None for one without pieces."""
    first = args[0] if args else None
    if not isinstance(first, torch.Tensor):
        return None
    if name in ("eq", "ne") and isinstance(args[1], (int, float)):
        kind = Kind.NUMBERS if first.is_floating_point() else Kind.CONSTANT
        names = (f"no number is {args[1]:g}", f"numbers that are {args[1]:g}")
        return Seen(first == args[1], names=names, kind=kind, constant=int(args[1]))
    if name in ("masked_fill", "where") and isinstance(result, torch.Tensor):
        mask = args[1] if name == "masked_fill" else first
        return Seen(mask, names=("a mask that is False", "a mask that is True"))
    if name in ("maximum", "minimum") and first.is_floating_point():
        names = ("its first operand is larger", "its second operand is larger")
        return Seen(args[1] > first, names=names)
    if name == "embedding" and len(args) > 2 and args[2] >= 0:
        names = ("other rows", f"row {args[2]} (padding_idx)")
        return Seen(args[1] == args[2], names=names, kind=Kind.CONSTANT, constant=int(args[2]))
    if name in STRIDED:
        return _rest(name, args)
    edges = _edges(name, args, kwargs) if first.is_floating_point() else ()
    return Seen(first, edges, kind=Kind.NUMBERS) if edges else None


def _edges(name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[float, ...]:
    """Return the edges of an operator on numbers, in order."""
    given = [arg for arg in args[1:] if isinstance(arg, (int, float))]
    if name in EDGES:
        return EDGES[name]
    if name == "hardtanh":
        return tuple(float(one) for one in (given + [-1.0, 1.0][len(given) :]))
    if name in ("clamp", "clamp_min", "clamp_max"):
        bounds = [*args[1:], kwargs.get("min"), kwargs.get("max")]
        edges = tuple(sorted({float(one) for one in bounds if isinstance(one, (int, float))}))
        return EDGES["relu"] if edges == (0.0,) and name != "clamp_max" else edges
    if name == "threshold" or (name in COMPARED and given):
        return (float(given[0]),)
    if name == "softplus":
        beta, threshold = (given + [1.0, 20.0][len(given) :])[:2]
        return (threshold / beta,)
    if name in SHRINKS:
        bound = float(given[0]) if given else 0.5
        return (-bound, bound)
    return ()


def _rest(name: str, args: Sequence[Any]) -> Seen | None:
    """Return whether a stride divides: only where it does not, paddings and ceil_mode differ."""
    if name == "convolution":
        if args[6]:
            return None  # transposed
        kernel, stride, padding = args[1].shape[2:], args[3], args[4]
    else:
        kernel = args[1]
        stride = args[2] if len(args) > 2 and args[2] else kernel
        padding = args[3] if len(args) > 3 else [0]
    sizes = args[0].shape[-len(kernel) :]
    steps = [(size, _at(stride, n), _at(padding, n), kernel[n]) for n, size in enumerate(sizes)]
    rests = [(size + 2 * pad - width) % step for size, step, pad, width in steps if step > 1]
    if not rests:
        return None
    numbers = torch.tensor([float(rest > 0) for rest in rests])
    names = ("sizes that the stride divides", "sizes that leave a rest")
    return Seen(numbers, names=names, kind=Kind.SIZES)


def _at(values: Sequence[int], number: int) -> int:
    return values[number] if number < len(values) else values[0]


def draws_for(pieces: Sequence[Pieces], least: int, most: float = FACTORS) -> list[Draw]:
    """Return changes of inputs that may reach what these operators have left, mildest first.

    Whole numbers below ``least`` are no inputs of this model.
    """
    factors: set[float] = set()
    others: set[Draw] = set()
    for one in pieces:
        for number in one.left:
            if one.kind is Kind.SIZES:
                others |= {Draw(longer=-1), Draw(longer=1)}
            elif one.kind is Kind.CONSTANT:
                others |= {Draw(put=one.constant)} if one.constant >= least else set()
            elif one.kind is Kind.MASK:
                factors |= {-1.0, 4.0}
            else:
                factor = _factor(one, number)
                factors |= {factor, 4 * factor} if factor else set()
    ordered = sorted((f for f in factors if abs(f) <= most and f != 1.0), key=lambda f: (abs(f), f))
    return [*sorted(others, key=repr), *(Draw(factor=factor) for factor in ordered)]


def _factor(pieces: Pieces, number: int) -> float:
    """Return the power of two that brings the argument into a piece, were all of it linear."""
    edges = pieces.edges
    bounds = [edge for edge in edges[max(number - 1, 0) : number + 1] if edge]
    if any(not LEAST <= abs(edge) <= MOST for edge in bounds) or pieces.low > pieces.high:
        return 0.0
    if number == 0:
        wanted = edges[0] - max(abs(edges[0]), 1.0) / 2
    elif number == len(edges):
        wanted = edges[-1] + max(abs(edges[-1]), 1.0) / 2
    else:
        wanted = (edges[number - 1] + edges[number]) / 2
    found = [wanted / end for end in (pieces.low, pieces.high) if end and wanted]
    if not found:
        return 0.25
    best = min(found, key=lambda f: (f < 0, abs(f)))
    size = 2.0 ** math.ceil(math.log2(max(abs(best), 2.0**-10)))
    return math.copysign(size, best)


@dataclass(frozen=True)
class Local:
    """A call of one module by itself on changed inputs."""

    path: str
    draw: Draw
    args: Any
    kwargs: Any


def record_regimes(twins: Twins, folder: Path, dropped: Mapping[str, str], emit: Emit) -> Payload:
    """Write index.json with the calls of modules that reach what the whole model does not.

    It also lists ``draws``, changes of the whole model's inputs that reach more pieces, and
    ``unreached``: the pieces without any number. ``dropped`` are paths that verification silences.
    """
    folder.mkdir(parents=True, exist_ok=True)
    emit(At(""))
    for model in twins.every():
        model.eval()
    known = _watched(twins, twins.plain, *twins.arguments) or {}
    twins.plain.train()
    with_training = _watched(twins, twins.plain, *twins.arguments) or {}
    twins.plain.eval()
    _merge(known, with_training)
    total = sum(len(one.names) for one in known.values())
    draws = list(_whole_draws(twins, known, emit))
    calls = list(_local_draws(twins, known, emit)) if _left(known) else []
    store = ArrayStore(folder)
    entries, texts = [], []
    with torch.no_grad():
        for number, call in enumerate(calls):
            emit(At(call.path, number))
            made = _called(twins, call)
            entries.append(local_entry(twins, replace(made, index=number), number, store))
            texts.append(call.draw.text)
    index = {"calls": entries, "texts": texts, "training": False, "note": "", "counts": {}}
    (folder / "index.json").write_text(json.dumps(index), encoding="utf-8")
    unreached = [*_named(known), *(f"{path}: {why}" for path, why in dropped.items()),
                 *_not_given(twins)]  # fmt: skip
    answer = {"pieces": total, "draws": [asdict(draw) for draw in draws], "unreached": unreached}
    (folder / "found.json").write_text(json.dumps(answer), encoding="utf-8")
    return answer


def _watched(
    twins: Twins, module: torch.nn.Module, args: Any, kwargs: Any
) -> dict[Key, Pieces] | None:
    """Run a module and return its pieces; None where it raises or gives no finite numbers."""
    log = PieceLog()
    restore(twins, twins.plain, "")
    torch.manual_seed(twins.seed)
    try:
        with torch.no_grad(), watched(twins.plain, log.leave, log.enter), log:
            result = module(*change(args, torch.clone), **change(kwargs, torch.clone))
    except Exception:  # user code refuses these inputs
        return None
    finally:
        restore(twins, twins.plain, "")
    floats = [tensor for tensor in tensors(result) if tensor.is_floating_point()]
    return log.found if all(bool(torch.isfinite(one).all()) for one in floats) else None


def _left(known: Mapping[Key, Pieces]) -> list[Key]:
    return [key for key, one in known.items() if one.left]


def _merge(known: dict[Key, Pieces], found: Mapping[Key, Pieces]) -> bool:
    """Add what a run reached; return whether that is more than was known."""
    more = False
    for key, one in found.items():
        held = known.get(key)
        if held is not None and held.edges == one.edges:
            more = more or not one.reached <= held.reached
            held.reached |= one.reached
    return more


def _whole_draws(twins: Twins, known: dict[Key, Pieces], emit: Emit) -> Iterator[Draw]:
    """Yield the changes of the whole model's inputs that reach more, each after the others."""
    for draw in draws_for([known[key] for key in _left(known)], twins.least)[:TRIES]:
        if not _left(known):
            return
        emit(At(""))
        args, kwargs = drawn(twins.arguments, draw)
        found = _watched(twins, twins.plain, args, kwargs)
        if found is not None and _merge(known, found):
            yield draw


def _local_draws(twins: Twins, known: dict[Key, Pieces], emit: Emit) -> Iterator[Local]:
    """Yield calls of modules by themselves that reach more."""
    first = {call.path: call for call in tape(twins).calls if call.index == 0}
    for path in dict.fromkeys(path for path, _, _ in _left(known) if path):
        mine = [key for key in _left(known) if key[0] == path]
        if path not in first:
            continue
        module, call = twins.plain.get_submodule(path), first[path]
        for draw in draws_for([known[key] for key in mine], twins.least, MOST)[:TRIES]:
            emit(At(path, 0))
            args, kwargs = drawn((call.args, call.kwargs), draw)
            found = _watched(twins, module, args, kwargs)
            own = {key: one for key, one in (found or {}).items() if key[0] == path}
            if own and _merge(known, own):
                yield Local(path, draw, args, kwargs)
            if not any(known[key].left for key in mine):
                break


def _called(twins: Twins, local: Local) -> Call:
    restore(twins, twins.plain, local.path)
    torch.manual_seed(twins.seed + 7)
    module = twins.plain.get_submodule(local.path)
    args, kwargs = change((local.args, local.kwargs), torch.clone)
    return Call(local.path, 0, local.args, local.kwargs, module(*args, **kwargs))


def _named(known: Mapping[Key, Pieces]) -> Iterator[str]:
    for (path, operator, _), one in known.items():
        for number in one.left:
            yield f"{path or 'the whole model'}: {operator}, {one.names[number]}"


def _not_given(twins: Twins) -> Iterator[str]:
    """Yield what forward takes and no input gives."""
    args, kwargs = twins.arguments
    parameters = list(inspect.signature(twins.plain.forward).parameters.values())
    for parameter in parameters[len(args) :]:
        if parameter.default is None and parameter.name not in kwargs:
            yield f"the whole model: {parameter.name} is never given"


def dropped_paths(model: torch.nn.Module) -> dict[str, str]:
    """Return the modules that drop whole paths in train mode, which verification silences."""
    return {
        path: f"{type(module).__name__} that drops its path"
        for path, module in model.named_modules() if type(module).__name__ in PATH_DROPPING
    }  # fmt: skip
