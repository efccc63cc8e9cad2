"""In: a torch model, a loss and an optimizer. Out: losses and moved weights of a few steps.

What a weight moves by is kept, not the weight: a step is small beside it, and a weight that stays
where it is shows. References and torch's own errors come from the same twins as everywhere.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from migrate.parity.exchange import ArrayStore, Spec
from migrate.parity.messages import Payload
from migrate.parity.noise import ACROSS_KINKS, OperatorLog, coarse_runs
from migrate.parity.torch_gradients import differentiable, heads_of, ill_conditioned, places_of
from migrate.parity.torch_record import (
    Twins,
    annotate,
    change,
    describe,
    errors_of,
    head_cotangent,
    in_float64,
    nudger,
    restore,
    rms,
    widen,
)
from migrate.parity.weights import key_of, moment_of

SHARE = 0.01  # what the first step moves the weights by, relative to their size
UNIT = 2.0**-24
SQUARES = frozenset({"exp_avg_sq", "max_exp_avg_sq", "square_avg", "acc_delta", "sum"})
Moves = dict[str, torch.Tensor]
Tensors = Callable[[torch.Tensor], torch.Tensor]


@dataclass(frozen=True)
class Task:
    """What is trained: expressions of the user ("" for the default), targets, and the rate."""

    names: Mapping[str, Any]
    loss: str
    optimizer: str
    targets: tuple[torch.Tensor, ...]
    steps: int
    rate: float = 0.0

    def loss_of(self, result: Any, change_tensor: Tensors) -> torch.Tensor:
        """Return the user's loss, or the sum of the results times fixed random cotangents."""
        if self.loss:
            found: torch.Tensor = eval(self.loss, dict(self.names))(
                result, *change(self.targets, change_tensor)
            )
            return found
        heads = differentiable(result)
        parts = [(h * head_cotangent(h, number)).sum() for number, h in enumerate(heads)]
        return torch.stack(parts).sum()

    def optimizer_of(self, model: torch.nn.Module) -> Any:
        params = [p for p in model.parameters() if p.requires_grad]
        if self.optimizer:
            return eval(self.optimizer, {**self.names, "torch": torch, "params": params})
        return torch.optim.SGD(params, self.rate, momentum=0.9)


@dataclass
class Steps:
    """One run: the loss of every step, and what the weights moved by after one and after all.

    ``state`` is what the optimizer keeps of each weight after the first step, ``kept`` after all;
    ``coefficients`` are the relative errors that float32 leaves in its factors, by moment.
    """

    losses: list[torch.Tensor] = field(default_factory=list)
    first: Moves = field(default_factory=dict)
    state: Moves = field(default_factory=dict)
    kept: Moves = field(default_factory=dict)
    coefficients: Mapping[str, float] = field(default_factory=dict)
    last: Moves = field(default_factory=dict)
    reductions: list[float] = field(default_factory=list)


def record_training(twins: Twins, task: Task, folder: Path) -> Payload:
    """Write index.json and arrays: what the whole model gives when it is trained."""
    folder.mkdir(parents=True, exist_ok=True)
    store = ArrayStore(folder)
    training = not ill_conditioned(twins)
    for model in twins.every():
        model.train(training)
    args, kwargs = twins.arguments
    index: Spec = {"training": training, "steps": task.steps, "why": "", "targets": []}
    index["args"], index["kwargs"] = describe(args, store), describe(kwargs, store)
    try:
        result = twins.plain(*change(args, torch.clone), **change(kwargs, torch.clone))
        if not task.loss and not differentiable(result):
            raise RuntimeError("no result has a gradient")
        index["heads"], index["cotangents"] = _heads(task, result, store)
        index |= places_of(result)
        rate = task.rate or _rate(twins, task)
        known = Task(task.names, task.loss, task.optimizer, task.targets, task.steps, rate)
        index["rate"] = rate
        index |= _compared(twins, known, store)
    except (RuntimeError, TypeError, ValueError, NameError, AttributeError) as problem:
        index["why"] = f"torch cannot train this: {type(problem).__name__}: {problem}"[:300]
    finally:
        for model in twins.every():
            restore(twins, model, "")
    (folder / "index.json").write_text(json.dumps(index), encoding="utf-8")
    return {}


def _heads(task: Task, result: Any, store: ArrayStore) -> tuple[list[str], list[Spec]]:
    """The places that count in the loss, and the tensors that are handed over beside the inputs."""
    if task.loss:
        return [""] * len(task.targets), [_label(target, store) for target in task.targets]
    heads = differentiable(result)
    return heads_of(result), [describe(head_cotangent(h, n), store) for n, h in enumerate(heads)]


def _label(target: torch.Tensor, store: ArrayStore) -> Spec:
    return {**describe(target, store), "label": target.dtype is torch.int64}


def _rate(twins: Twins, task: Task) -> float:
    """The learning rate with which the first step moves the weights by a hundredth of their size.

    A power of two: both sides have exactly the same number.
    """
    trial = Task(task.names, task.loss, "", task.targets, 1, 2.0**-40)
    moved = _train(twins, twins.double, trial, widen).first
    size = sum(float(p.detach().double().norm()) ** 2 for p in twins.plain.parameters())
    step = sum(float(move.norm()) ** 2 for move in moved.values()) ** 0.5 * 2.0**40
    if not step:
        raise ValueError("no weight has a gradient")
    return float(2.0 ** round(torch.log2(torch.tensor(SHARE * size**0.5 / step)).item()))


def _train(
    twins: Twins, model: torch.nn.Module, task: Task, change_tensor: Tensors,
    log: OperatorLog | None = None,
) -> Steps:  # fmt: skip
    """Train one twin and bring it back to where it was."""
    start = {name: p.detach().clone() for name, p in model.named_parameters()}
    restore(twins, model, "")
    torch.manual_seed(twins.seed)
    found, args, kwargs = Steps(), *twins.arguments
    optimizer = task.optimizer_of(model)
    try:
        for number in range(task.steps):
            optimizer.zero_grad()
            with torch.enable_grad():
                result = model(*change(args, change_tensor), **change(kwargs, change_tensor))
                loss = task.loss_of(result, change_tensor)
                loss.backward()
            optimizer.step()
            found.losses.append(loss.detach())
            found.reductions.append(log.reduction if log else 0.0)
            found.last = {
                name: p.detach().double() - start[name].double()
                for name, p in model.named_parameters() if p.requires_grad
            }  # fmt: skip
            if number == 0:
                found.first, found.state = found.last, _state_of(optimizer, model)
                found.coefficients = _coefficients(optimizer)
        found.kept = _state_of(optimizer, model)
    finally:
        with torch.no_grad():
            for name, p in model.named_parameters():
                p.copy_(start[name])
                p.grad = None
    return found


def _state_of(optimizer: Any, model: torch.nn.Module) -> Moves:
    """What an optimizer keeps of each weight, in its shape: ``{"conv.weight.exp_avg": ...}``."""
    return {
        key_of(moment, name): kept.detach().clone()
        for name, p in model.named_parameters()
        for moment, kept in getattr(optimizer, "state", {}).get(p, {}).items()
        if isinstance(kept, torch.Tensor) and kept.shape == p.shape and p.dim()
    }


def _coefficients(optimizer: Any) -> dict[str, float]:
    """Return what rounding a decay to float32 does to the factor 1 - decay of a moving average.

    MindSpore's kernels subtract in float32: 1 - 0.999 is off by 1.3e-5 of its size.
    """
    group: Mapping[str, Any] = next(iter(getattr(optimizer, "param_groups", ())), {})
    first, second = group.get("betas", (0.0, 0.0))
    mean = group.get("alpha", group.get("rho", 0.0))
    decays = {"exp_avg": first, "exp_avg_sq": second, "max_exp_avg_sq": second}
    decays |= dict.fromkeys(("square_avg", "grad_avg", "acc_delta"), mean)
    return {moment: UNIT / (1 - decay) for moment, decay in decays.items() if 0 < decay < 1}


def _compared(twins: Twins, task: Task, store: ArrayStore) -> Spec:
    """References and own errors of losses and moves, by name."""
    plain = _train(twins, twins.plain, task, torch.clone)
    with in_float64():
        wide = _train(twins, twins.double, task, widen)
    log = OperatorLog(twins.seed, ACROSS_KINKS)
    with log:
        nudged = _train(twins, twins.nudged, task, nudger(twins.seed), log)
    coarse = coarse_runs(log, twins.seed, lambda: _train(twins, twins.plain, task, torch.clone))
    runs = _Runs(twins, store, log.random, (plain, nudged), wide, coarse)
    return {
        "losses": [_loss(runs, number) for number in range(task.steps)],
        "first": _moves(runs, "first", nudged.reductions[0]),
        "last": _moves(runs, "last", nudged.reductions[-1]),
        "state": _states(runs, "state", nudged.reductions[0]),
        "kept": _states(runs, "kept", nudged.reductions[-1]),
    }  # fmt: skip


@dataclass(frozen=True)
class _Runs:
    twins: Twins
    store: ArrayStore
    random: bool
    own: Sequence[Steps]
    wide: Steps
    coarse: Sequence[Steps]


def _loss(runs: _Runs, number: int) -> Spec:
    wide = runs.wide.losses[number]
    own, rough = ([[run.losses[number]] for run in some] for some in (runs.own, runs.coarse))
    found = errors_of([wide], own, rough, runs.own[1].reductions[number], runs.random)
    spec = annotate(runs.own[0].losses[number], found, runs.store)
    return {**spec, "plain": float(runs.own[0].losses[number]), "wide": float(wide)}


def _states(runs: _Runs, which: str, reduction: float) -> dict[str, Spec]:
    """The state of the optimizer: a moment is measured against its like, in other weights."""
    moments = dict.fromkeys(moment_of(key)[1] for key in getattr(runs.wide, which))
    found: dict[str, Spec] = {}
    for moment in moments:
        found |= _moves(runs, which, reduction, moment)
    return found


def _moves(runs: _Runs, which: str, reduction: float, moment: str = "") -> dict[str, Spec]:
    wide: Moves = getattr(runs.wide, which)
    wide = {key: one for key, one in wide.items() if not moment or moment_of(key)[1] == moment}
    weights = {} if moment else dict(runs.twins.plain.named_parameters())
    sizes = {name: rms(move) for name, move in wide.items()}
    largest = max(sizes.values(), default=0.0)
    moves: dict[str, Spec] = {}
    for name, move in wide.items():
        own, rough = (
            [[getattr(run, which)[name]] for run in some] for some in (runs.own, runs.coarse)
        )
        found = errors_of([move], own, rough, reduction, runs.random)
        spec = annotate(move.float(), found, runs.store)
        if moment in SQUARES:
            spec["floor"] *= 2  # a square is relatively off by twice as much
        spec["floor"] += runs.wide.coefficients.get(moment, 0.0)
        if name in weights:
            spec["floor"] += UNIT * rms(weights[name]) / (sizes[name] or 1.0)
        if sizes[name] <= (1e-12 if moment in SQUARES else 1e-6) * largest:
            spec |= {"zero": True, "scale": largest / (sizes[name] or 1.0)}
        moves[name] = spec
    return moves
