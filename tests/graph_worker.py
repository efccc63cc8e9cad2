"""In: torch, pynative or graph; a file of models; names of models. Out: a line of JSON for each.

A line has the values of two calls, the loss and its gradient for every weight, or the error. The
weights and inputs are the same numbers on all three sides; graph is graph mode in STRICT.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np


def inputs() -> list[np.ndarray]:
    numbers = np.random.default_rng(7)
    return [numbers.standard_normal((2, 6)).astype(np.float32) for _ in range(2)]


def values(shape: tuple[int, ...], seed: int) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-0.5, 0.5, shape).astype(np.float32)


def cotangent(size: int) -> np.ndarray:
    return np.cos(np.arange(size)).astype(np.float32)


def leaves(out: Any) -> list[Any]:
    """The tensors of a result, whatever holds them."""
    if isinstance(out, dict):
        return [leaf for value in out.values() for leaf in leaves(value)]
    if isinstance(out, (list, tuple)):
        return [leaf for value in out for leaf in leaves(value)]
    if hasattr(out, "__dataclass_fields__"):
        return [leaf for name in out.__dataclass_fields__ for leaf in leaves(getattr(out, name))]
    return [] if out is None else [out]


def load(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.parent))
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def torch_side(model: Any) -> dict[str, Any]:
    import torch

    for seed, (_, p) in enumerate(sorted(model.named_parameters())):
        p.data = torch.from_numpy(values(tuple(p.shape), seed))
    outs = [[t.detach().numpy() for t in leaves(model(torch.from_numpy(x)))] for x in inputs()]
    found = leaves(model(torch.from_numpy(inputs()[0])))
    loss = sum((t.reshape(-1) * torch.from_numpy(cotangent(t.numel()))).sum() for t in found)
    loss.backward()
    grads = [torch.zeros_like(p) if p.grad is None else p.grad for _, p in
             sorted(model.named_parameters())]  # fmt: skip
    return {"outs": outs, "loss": float(loss), "grads": [g.numpy() for g in grads]}


def mindspore_side(model: Any, graph: bool) -> dict[str, Any]:
    import mindspore as ms

    weights = ms.ParameterTuple(sorted(model.trainable_params(), key=lambda p: p.name))
    for seed, p in enumerate(weights):
        p.set_data(ms.Tensor(values(tuple(p.shape), seed)))
    model.set_train()
    outs = [[t.asnumpy() for t in leaves(model(ms.Tensor(x)))] for x in inputs()]
    sizes = [ms.Tensor(cotangent(t.size)) for t in outs[0]]

    def loss(x: Any) -> Any:
        out = model(x)
        total = 0.0
        if isinstance(out, dict):
            found = list(out.values())
        elif isinstance(out, (list, tuple)):
            found = out
        else:
            found = [out]
        for i in range(len(sizes)):
            total = total + (found[i].reshape(-1) * sizes[i]).sum()
        return total

    def plain(x: Any) -> Any:
        found = leaves(model(x))
        return sum((t.reshape(-1) * s).sum() for t, s in zip(found, sizes, strict=True))

    both = ms.value_and_grad(loss if graph else plain, None, weights)

    @ms.jit(fullgraph=True)
    def step(x: Any) -> Any:
        return both(x)

    value, grads = (step if graph else both)(ms.Tensor(inputs()[0]))
    return {"outs": outs, "loss": float(value), "grads": [g.asnumpy() for g in grads]}


def main(side: str, path: Path, names: list[str]) -> None:
    if side != "torch":
        import mindspore as ms

        ms.set_context(pynative_synchronize=True)
        if side == "graph":
            ms.set_context(mode=ms.GRAPH_MODE, jit_syntax_level=ms.STRICT)
    module = load(path)
    for name in names:
        print(json.dumps({"start": name}), flush=True)
        try:
            model = getattr(module, name)()
            made = torch_side(model) if side == "torch" else mindspore_side(model, side == "graph")
        except Exception as error:  # the frameworks raise anything
            text = str(error) or type(error).__name__
            made = {"error": f"{type(error).__name__}: {text}"}
        print(json.dumps({"name": name, **made}, default=lambda a: a.tolist()), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3:])
