"""Run a torch script with shared draws, and keep its models as they begin and as they end."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as functional

from migrate.parity.masks import channel_shape
from migrate.parity.messages import Emit, Payload
from migrate.parity.script_run import LOSS, Journal, Numbers, Roots, keep_states, run
from migrate.parity.torch_model import named, write_weights

# As far as MindSpore's kernels on CPU are off in a step (benchmarks/kernels.py): 16 units in the
# last place. One unit, as torch's own rounding is, calls every longer run wrong.
NUDGE = 16 * 2.0**-24
# Arguments of a DataLoader by position, behind num_workers.
_BEHIND_WORKERS = ("collate_fn", "pin_memory", "drop_last")


@dataclass
class Seen:
    """The models of a run, in the order in which they were built.

    ``nudge``: unless it is 0, their weights are moved by NUDGE of themselves, up or down as it
    says, before their first use.
    """

    folder: Path
    nudge: int
    models: list[Payload] = field(default_factory=list)
    live: dict[int, Any] = field(default_factory=dict)
    owned: set[int] = field(default_factory=set)
    used: set[int] = field(default_factory=set)

    def built(self, model: torch.nn.Module) -> None:
        fresh = [p for p in model.parameters() if id(p) not in self.owned]
        if not fresh:
            return
        self.owned.update(map(id, model.parameters()))
        number = len(self.models)
        where = self.folder / f"model{number}"
        self.live[number] = model
        self.models.append({
            "class": type(model).__name__,
            "classes": {
                path: [f"{c.__module__}.{c.__qualname__}" for c in type(m).__mro__[:-2]]
                for path, m in model.named_modules()
            },
            "built": {"folder": str(where), "tensors": write_weights(model, {}, where)},
        })  # fmt: skip
        keep_states(where / "states")

    def first(self, model: torch.nn.Module) -> None:
        """Keep the weights of the models that a first call reaches, where they have changed."""
        inside = {id(p) for p in model.parameters()}
        for number, root in self.live.items():
            if number in self.used or not any(id(p) in inside for p in root.parameters()):
                continue
            self.used.add(number)
            where = self.folder / f"used{number}"
            self.models[number]["used"] = {
                "folder": str(where), "tensors": write_weights(root, {}, where)
            }  # fmt: skip
            if self.nudge:
                _nudge(root, self.nudge)

    def trained(self) -> None:
        for number, root in self.live.items():
            where = self.folder / f"trained{number}"
            self.models[number]["trained"] = {
                "folder": str(where), "tensors": write_weights(root, {}, where)
            }  # fmt: skip


def _nudge(model: torch.nn.Module, seed: int) -> None:
    """Move every weight by NUDGE of itself, up or down by chance."""
    source = np.random.RandomState(seed)
    with torch.no_grad():
        for _, tensor, kind in named(model):
            if kind == "parameter" and tensor.is_floating_point():
                moves = NUDGE * (2 * source.randint(0, 2, tuple(tensor.shape)) - 1)
                tensor.add_(tensor * torch.as_tensor(moves, dtype=tensor.dtype))


def run_script(request: Payload, emit: Emit) -> Payload:
    """Run ``line`` below ``root``; answers what it said and its models."""
    root = Path(request["root"])
    journal = Journal(f"{root}/", emit)
    seen = Seen(Path(request["folder"]), request["nudge"])
    seen.folder.mkdir(parents=True, exist_ok=True)
    roots = Roots(torch.nn.Module, seen.built, seen.first)
    roots.watch()
    numbers = Numbers(request["counted"])
    _seed(request["seed"])
    share(numbers, roots)
    _note_losses(journal)
    answer = run(root, request["line"], request["seed"], journal)
    seen.trained()
    return {**answer, "models": seen.models, "draws": bool(numbers.asked)}


def _seed(seed: int) -> None:
    """Seed torch, and have `torch.manual_seed` seed numpy's generator as MindSpore's does."""
    plain = torch.manual_seed

    def numpys(seed: int) -> None:
        np.random.seed(int(seed) % 2**32)

    def both(seed: int) -> torch.Generator:
        numpys(seed)
        return plain(seed)

    plain(seed)
    torch.manual_seed = torch.random.manual_seed = both
    # converted, these are the one seed that MindSpore has
    torch.cuda.manual_seed = torch.cuda.manual_seed_all = numpys


def _note_losses(journal: Journal) -> None:
    """Note what every `backward` starts from; of a scaled loss what was scaled.

    With a gradient it is the sum of the products, which is what a converted step differentiates.
    """
    plain, scale = torch.Tensor.backward, torch.amp.GradScaler.scale

    def backward(tensor: Any, gradient: Any = None, *args: Any, **kwargs: Any) -> None:
        if gradient is not None:
            journal.note(LOSS, value=float((tensor * gradient).detach().sum()))
        elif tensor.numel() == 1:
            journal.note(LOSS, value=vars(tensor).get("_torch2ms_loss", float(tensor.detach())))
        plain(tensor, gradient, *args, **kwargs)

    def scaled(scaler: Any, outputs: Any) -> Any:
        found = scale(scaler, outputs)
        if isinstance(outputs, torch.Tensor) and outputs.numel() == 1 and found is not outputs:
            found._torch2ms_loss = float(outputs.detach())
        return found

    torch.Tensor.backward = backward
    torch.amp.GradScaler.scale = scaled


def share(numbers: Numbers, roots: Roots) -> None:
    """Replace what draws in torch, for this process: what the converted program draws too.

    Starting weights (constructors, `torch.nn.init`) and draws with a generator stay torch's.
    """

    def native(options: Any) -> bool:
        initialises = sys._getframe(2).f_globals.get("__name__") == "torch.nn.init"
        return roots.is_building or initialises or options.get("generator") is not None

    def drawn(kind: str, shape: Any, options: Any, default: Any = None) -> torch.Tensor:
        dtype = options.get("dtype") or default or torch.get_default_dtype()
        made = torch.from_numpy(numbers.draw(kind, shape)).to(dtype)
        return made.requires_grad_() if options.get("requires_grad") else made

    def sized(kind: str, plain: Any) -> Any:
        def call(*size: Any, **options: Any) -> torch.Tensor:
            if native(options):
                return plain(*size, **options)
            shape = options.get("size", size)
            if len(shape) == 1 and isinstance(shape[0], (tuple, list)):
                shape = shape[0]
            return drawn(kind, shape, options)

        return call

    def alike(kind: str, plain: Any) -> Any:
        def call(input: torch.Tensor, **options: Any) -> torch.Tensor:
            if native(options):
                return plain(input, **options)
            return drawn(kind, input.shape, options, input.dtype)

        return call

    def filled(kind: str, plain: Any, scaled: Any) -> Any:
        def call(tensor: torch.Tensor, *args: Any, **options: Any) -> torch.Tensor:
            if native(options):
                return plain(tensor, *args, **options)
            made = torch.from_numpy(numbers.draw(kind, tensor.shape))
            with torch.no_grad():
                return tensor.copy_(scaled(made, *args, **options))

        return call

    _replace_functions(numbers, native, sized, alike)
    Tensor: Any = torch.Tensor
    Tensor.normal_ = filled("normal", Tensor.normal_, lambda x, mean=0.0, std=1.0: x * std + mean)
    Tensor.uniform_ = filled(
        "uniform", Tensor.uniform_, lambda x, start=0.0, end=1.0, **_: _between(x, start, end, _)
    )
    Tensor.bernoulli_ = filled("uniform", Tensor.bernoulli_, lambda x, p=0.5: (x < p).float())
    Tensor.exponential_ = filled(
        "uniform", Tensor.exponential_,
        lambda x, lambd=1.0: -torch.log((1.0 - x).clamp(min=1e-38)) / lambd,
    )  # fmt: skip
    _share_dropout(numbers)
    _share_orders()


def _between(x: torch.Tensor, start: float, end: float, names: Any) -> torch.Tensor:
    low, high = names.get("from", names.get("a", start)), names.get("to", names.get("b", end))
    return x * (high - low) + low


def _replace_functions(numbers: Numbers, native: Any, sized: Any, alike: Any) -> None:
    t: Any = torch
    randint, randint_like, randperm = t.randint, t.randint_like, t.randperm
    normal, bernoulli, random_ = t.normal, t.bernoulli, t.Tensor.random_
    t.randn, t.rand = sized("normal", t.randn), sized("uniform", t.rand)
    t.randn_like, t.rand_like = alike("normal", t.randn_like), alike("uniform", t.rand_like)

    def whole(*args: Any, **options: Any) -> torch.Tensor:
        if native(options):
            return randint(*args, **options)
        names = [n for n in ("low", "high", "size") if n not in options]
        given = dict(zip(names if len(args) == len(names) else names[1:], args, strict=False))
        given = {"low": 0, **given, **options}
        made = numbers.whole(int(given["low"]), int(given["high"]), given["size"])
        return torch.from_numpy(made).to(options.get("dtype") or torch.int64)

    def whole_like(input: torch.Tensor, *bounds: int, **options: Any) -> torch.Tensor:
        if native(options):
            return randint_like(input, *bounds, **options)
        high = options["high"] if "high" in options else bounds[-1]
        low = options.get("low", bounds[0] if len(bounds) == 2 else 0)
        made = numbers.whole(low, high, input.shape)
        return torch.from_numpy(made).to(options.get("dtype") or input.dtype)

    def order(n: int, **options: Any) -> torch.Tensor:
        if native(options):
            return randperm(n, **options)
        return torch.from_numpy(numbers.order(n)).to(options.get("dtype") or torch.int64)

    def around(mean: Any, std: Any = 1.0, size: Any = None, **options: Any) -> torch.Tensor:
        if native(options):
            return normal(mean, std, *([] if size is None else [size]), **options)
        held = [value for value in (mean, std) if isinstance(value, torch.Tensor)]
        shape = torch.broadcast_shapes(*(value.shape for value in held)) if held else size
        return mean + std * torch.from_numpy(numbers.draw("normal", shape))

    def chance(input: torch.Tensor, **options: Any) -> torch.Tensor:
        if native(options):
            return bernoulli(input, **options)
        return (torch.from_numpy(numbers.draw("uniform", input.shape)) < input).to(input.dtype)

    def filled(tensor: torch.Tensor, *bounds: int, **options: Any) -> torch.Tensor:
        if native(options) or len(bounds) != 2:
            return random_(tensor, *bounds, **options)
        return tensor.copy_(torch.from_numpy(numbers.whole(*bounds, tensor.shape)))

    t.randint, t.randint_like, t.randperm, t.normal, t.bernoulli = (
        whole,
        whole_like,
        order,
        around,
        chance,
    )
    t.Tensor.random_ = filled
    _share_choices(numbers, native)


def _share_choices(numbers: Numbers, native: Any) -> None:
    """Have `torch.multinomial`, and Categorical by it, take the largest with Gumbel noise."""
    t: Any = torch
    plain = t.multinomial

    def chosen(
        input: torch.Tensor, num_samples: int, replacement: bool = False, **options: Any
    ) -> torch.Tensor:
        if native(options):
            return plain(input, num_samples, replacement, **options)
        several = replacement and num_samples > 1
        shape = (num_samples, *input.shape) if several else tuple(input.shape)
        noise = torch.from_numpy(numbers.draw("uniform", shape)).clamp(1e-20, 1 - 6e-8)
        keys = torch.log(input.detach()) - torch.log(-torch.log(noise))
        return keys.argmax(-1).movedim(0, -1) if several else keys.topk(num_samples)[1]

    t.multinomial = chosen


def _share_dropout(numbers: Numbers) -> None:
    def dropping(unbatched: int) -> Any:
        def drop(
            input: torch.Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
        ) -> torch.Tensor:
            if not training or p == 0.0:
                return input
            shape = channel_shape(input.shape, unbatched) if unbatched else input.shape
            mask = torch.from_numpy(numbers.mask(shape, p)).to(input.dtype)
            return input.mul_(mask) if inplace else input * mask

        return drop

    f: Any = functional
    f.dropout, f.dropout1d, f.dropout2d, f.dropout3d = map(dropping, (0, 2, 3, 4))
    torch.dropout = lambda input, p, train: f.dropout(input, p, train)


def _share_orders() -> None:
    """Draw orders of data with numpy's generator, as converted samplers do.

    Those with a generator of the program stay torch's, which converted ones reproduce.
    """
    import torch.utils.data as data

    plain_order = data.RandomSampler.__iter__
    plain_subset = data.SubsetRandomSampler.__iter__
    plain_split = data.random_split

    def order(sampler: Any) -> Any:
        if sampler.generator is not None:
            yield from plain_order(sampler)
            return
        size = len(sampler.data_source)
        at_once = 4096 if sampler.replacement else size
        for start in range(0, sampler.num_samples, at_once):
            count = min(at_once, sampler.num_samples - start)
            if sampler.replacement:
                yield from np.random.randint(0, size, count).tolist()
            else:
                yield from np.random.permutation(size)[:count].tolist()

    def subset(sampler: Any) -> Any:
        if sampler.generator is not None:
            return plain_subset(sampler)
        return iter([sampler.indices[i] for i in np.random.permutation(len(sampler.indices))])

    def split(dataset: Any, lengths: Any, generator: Any = None) -> list[Any]:
        if generator is not None:
            return list(plain_split(dataset, lengths, generator))
        if all(0 < length < 1 for length in lengths) and abs(sum(lengths) - 1) < 1e-6:
            sizes = [int(len(dataset) * length) for length in lengths]
            for i in range(len(dataset) - sum(sizes)):
                sizes[i % len(sizes)] += 1
            lengths = sizes
        if sum(lengths) != len(dataset):
            raise ValueError("the lengths do not add up to the length of the dataset")
        found = np.random.permutation(len(dataset)).tolist()
        ends = np.cumsum(lengths).tolist()
        return [data.Subset(dataset, found[e - n : e]) for e, n in zip(ends, lengths, strict=True)]

    plain = data.DataLoader.__init__

    def alone(loader: Any, *args: Any, **options: Any) -> None:
        """Load in this process: what workers draw belongs to no generator of the program."""
        options.update(num_workers=0, prefetch_factor=None, persistent_workers=False)
        options.update(multiprocessing_context=None, timeout=0)
        plain(loader, *args[:5], **dict(zip(_BEHIND_WORKERS, args[6:], strict=False)), **options)

    data.DataLoader.__init__ = alone
    data.RandomSampler.__iter__ = order
    data.SubsetRandomSampler.__iter__ = subset
    data.random_split = data.dataset.random_split = split
