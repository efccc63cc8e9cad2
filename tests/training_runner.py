"""In: a folder of programs, a framework, a mode. Out: their losses and weights, in a folder.

Each program has ``build()`` and ``run(model)``; the weights of torch's models go into those of
MindSpore before they run.
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np


def with_torch(name: str, results: Path) -> tuple[Any, dict[str, Any]]:
    import torch

    torch.manual_seed(0)
    program = importlib.import_module(name)
    model = program.build()
    # without the second name of a weight that two layers share
    held = dict(model.named_parameters()) | dict(model.named_buffers())
    kept = {k: v for k, v in model.state_dict().items() if k in held and not k.endswith(COUNT)}
    np.savez(results / f"{name}.start.npz", **{k: v.numpy() for k, v in kept.items()})
    found = program.run(model)
    return found, {k: model.state_dict()[k].numpy() for k in kept}


def with_mindspore(name: str, results: Path) -> tuple[Any, dict[str, Any]]:
    import mindspore as ms

    program = importlib.import_module(name)
    model = program.build()
    weights = {p.name: p for p in model.get_parameters()}
    start = np.load(results / f"{name}.start.npz")
    named = {key: own_name(key, weights) for key in start.files}
    for key, own in named.items():
        weights[own].set_data(ms.Tensor(start[key]))
    found = program.run(model)
    return found, {key: weights[own].asnumpy() for key, own in named.items()}


COUNT = "num_batches_tracked"
OTHER_WORDS = {
    "running_mean": ("moving_mean",),
    "running_var": ("moving_variance",),
    "weight": ("gamma", "embedding_table"),
    "bias": ("beta",),
}


def own_name(key: str, weights: dict[str, Any]) -> str:
    """The name that MindSpore's own layers give to one of torch's weights."""
    stem, _, word = key.rpartition(".")
    names = [key, *(f"{stem}.{other}" for other in OTHER_WORDS.get(word, ()))]
    (found,) = [name for name in names if name in weights]
    return found


def main(folder: str, framework: str, mode: str, results: str) -> None:
    sys.path.insert(0, folder)
    if framework == "mindspore":
        import mindspore as ms

        ms.set_context(mode=ms.GRAPH_MODE if mode == "graph" else ms.PYNATIVE_MODE)
        if mode == "graph":
            ms.set_context(jit_syntax_level=ms.STRICT)
    run = with_torch if framework == "torch" else with_mindspore
    for path in sorted(Path(folder).glob("*.py")):
        if path.stem == "torch_helpers":
            continue
        found, weights = run(path.stem, Path(results))
        end = {k: v.tolist() for k, v in weights.items()}
        text = json.dumps({"found": found, "end": end}, default=float)
        (Path(results) / f"{path.stem}.{framework}.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
