"""In: a torch model and its inputs. Out: gradients for a fixed random cotangent, with references.

Train mode, or eval mode where train mode is ill-conditioned. The gradient of ``sum(result *
cotangent)`` for every parameter that requires one and every floating input; results without a
gradient path count as zero.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from migrate.parity.exchange import ArrayStore, Spec, encode, leaves
from migrate.parity.messages import At, Emit
from migrate.parity.noise import ACROSS_KINKS, OperatorLog, coarse_runs
from migrate.parity.request import PLAIN, Draw
from migrate.parity.torch_forward import drawn
from migrate.parity.torch_record import (
    Twins,
    annotate,
    change,
    describe,
    error,
    errors_of,
    head_cotangent,
    in_float64,
    nudger,
    restore,
    rms,
    same,
    tape,
    tensors,
    widen,
)
from migrate.records.outcomes import Why

ILL = 0.01


@dataclass(frozen=True)
class Case:
    """What is differentiated: the module at ``path`` called on these arguments."""

    path: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


Gradients = dict[str, torch.Tensor]


def record_gradients(
    twins: Twins, folder: Path, local: bool, emit: Emit, draw: Draw = PLAIN
) -> dict[str, Any]:
    """Write index.json and arrays: the whole model, or (``local``) each module by itself."""
    folder.mkdir(parents=True, exist_ok=True)
    store = ArrayStore(folder)
    twins = replace(twins, arguments=drawn(twins.arguments, draw))
    for model in twins.every():
        model.train()
    if not local and ill_conditioned(twins):
        for model in twins.every():
            model.eval()
    cases = [Case("", *twins.arguments)]
    if local:
        first = [call for call in tape(twins).calls if call.index == 0 and _alone(twins, call.path)]
        cases = [Case(call.path, call.args, call.kwargs) for call in first]
    entries = []
    for order, case in enumerate(cases):
        emit(At(case.path, 0))
        entries.append(_entry(twins, case, order, store))
    (folder / "index.json").write_text(json.dumps({"cases": entries}), encoding="utf-8")
    return {"cases": len(entries)}


def _entry(twins: Twins, case: Case, order: int, store: ArrayStore) -> Spec:
    entry: Spec = {"path": case.path, "call": 0, "order": order, "why": ""}
    entry["training"] = twins.plain.training
    entry["args"], entry["kwargs"] = describe(case.args, store), describe(case.kwargs, store)
    try:
        result, plain = _gradients(twins, twins.plain, case, torch.clone)
    except (RuntimeError, TypeError, ValueError) as problem:
        return {**entry, "why": f"torch cannot differentiate this: {problem}"[:300]}
    if not plain:
        return {**entry, "why": Why.NO_GRADIENT.value, "free": True}
    again = _gradients(twins, twins.plain, case, torch.clone, seed=1)[1]
    random = not same(list(plain.values()), list(again.values()))
    wide, nudged, coarse, log = _references(twins, case, plain)
    random = random or log.random
    entry["heads"] = heads_of(result)
    entry |= places_of(result)
    entry["cotangents"] = [
        describe(head_cotangent(tensor, number), store)
        for number, tensor in enumerate(differentiable(result))
    ]
    entry["wanted"] = {}
    norms = {name: rms(wide[name]) for name in plain}
    largest = max(norms.values())
    for name, value in plain.items():
        own, rough = ([[run[name]] for run in runs] for runs in ((plain, *nudged), coarse))
        found = errors_of([wide[name]], own, rough, log.reduction, random)
        entry["wanted"][name] = annotate(value, found, store)
        if norms[name] <= 1e-6 * largest:  # as of a bias before a norm: nothing but rounding
            entry["wanted"][name]["zero"] = True
            entry["wanted"][name]["scale"] = largest / (norms[name] or 1.0)
    return entry


def _alone(twins: Twins, path: str) -> bool:
    """Return whether a module is differentiated by itself: chains only pass on what is in them."""
    return type(twins.plain.get_submodule(path)) is not torch.nn.Sequential


def ill_conditioned(twins: Twins) -> bool:
    """Return whether torch's own float32 gradients in train mode are mostly rounding errors.

    So it is with batch norms over a handful of values; then the gradients of eval mode count.
    """
    case = Case("", *twins.arguments)
    if twins.ill is None:
        try:
            plain = _gradients(twins, twins.plain, case, torch.clone)[1]
            with in_float64():
                wide = _gradients(twins, twins.double, case, widen)[1]
        except (RuntimeError, TypeError, ValueError):
            return False
        errors = sorted(error(value, wide[name]) for name, value in plain.items())
        twins.ill = bool(errors and errors[len(errors) // 2] > ILL)
    return twins.ill


def _references(
    twins: Twins, case: Case, plain: Gradients
) -> tuple[Gradients, list[Gradients], list[Gradients], OperatorLog]:
    log = OperatorLog(twins.seed)
    try:
        with in_float64():
            wide = _gradients(twins, twins.double, case, widen)[1]
    except (RuntimeError, TypeError, ValueError):
        wide = {name: widen(tensor) for name, tensor in plain.items()}
    nudged = []
    for mode in (log, OperatorLog(twins.seed, ACROSS_KINKS)):
        with mode:
            nudged.append(_gradients(twins, twins.nudged, case, nudger(twins.seed))[1])
    coarse = coarse_runs(
        log, twins.seed, lambda: _gradients(twins, twins.plain, case, torch.clone)[1]
    )
    return wide, nudged, coarse, log


def heads_of(result: Any) -> list[str]:
    """Places of the differentiable tensors in the result, like ``[0]['logits']``."""

    def tensor(item: Any) -> Spec | None:
        if not isinstance(item, torch.Tensor):
            return None
        return {"t": "head" if item.is_floating_point() and item.requires_grad else "rest"}

    return [place for place, leaf in leaves(encode(result, tensor)) if leaf["t"] == "head"]


def places_of(result: Any) -> Spec:
    """Return how many tensors come out, and which of them are differentiable, by their order."""
    found = tensors(result)
    heads = [n for n, one in enumerate(found) if one.is_floating_point() and one.requires_grad]
    return {"results": len(found), "head_numbers": heads}


def differentiable(result: Any) -> list[torch.Tensor]:
    return [t for t in tensors(result) if t.is_floating_point() and t.requires_grad]


def _gradients(
    twins: Twins, root: torch.nn.Module, case: Case, change_tensor: Callable[[Any], Any],
    seed: int = 0,
) -> tuple[Any, Gradients]:  # fmt: skip
    """Result and gradients by name: ``weight``, ``0.bias``, and ``input[2]`` for tensors."""
    restore(twins, root, case.path)
    torch.manual_seed(twins.seed + seed)
    module = root.get_submodule(case.path)
    inputs: list[torch.Tensor] = []

    def prepare(tensor: torch.Tensor) -> torch.Tensor:
        fresh: torch.Tensor = change_tensor(tensor).detach()
        inputs.append(fresh.requires_grad_(fresh.is_floating_point()))
        return fresh.clone() if fresh.is_floating_point() else fresh

    args, kwargs = change(case.args, prepare), change(case.kwargs, prepare)
    with torch.enable_grad():
        result = module(*args, **kwargs)
        heads = differentiable(result)
        targets = {name: p for name, p in module.named_parameters() if p.requires_grad}
        floating = {f"input[{i}]": t for i, t in enumerate(inputs) if t.is_floating_point()}
        targets.update(floating)
        if not heads or not targets:
            return result, {}
        starts = [head_cotangent(head, number) for number, head in enumerate(heads)]
        found = torch.autograd.grad(heads, list(targets.values()), starts, allow_unused=True)
    pairs = zip(targets.items(), found, strict=False)
    return result, {
        name: torch.zeros_like(target) if gradient is None else gradient.detach()
        for (name, target), gradient in pairs
    }
