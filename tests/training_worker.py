"""In: a framework, a mode, a folder of loops. Out: the losses of each as JSON, on one seed's data.

Weights and batches are drawn by numpy from fixed seeds, so that both frameworks see the same.
"""

import importlib
import json
import sys
from pathlib import Path

import numpy as np

STEPS = 24


def batches():
    rng = np.random.RandomState(3)
    x = rng.randn(STEPS, 6, 4).astype(np.float32)
    return [(b, np.sin(b.sum(1, keepdims=True)).astype(np.float32)) for b in x]


def weights(named):
    """Values for (name, shape) pairs, in order."""
    rng = np.random.RandomState(5)
    return [rng.randn(*shape).astype(np.float32) * 0.5 for _, shape in named]


def on_torch(module):
    import torch

    net = module.build()
    drawn = weights([(n, tuple(p.shape)) for n, p in net.named_parameters()])
    with torch.no_grad():
        for parameter, value in zip(net.parameters(), drawn, strict=True):
            parameter.copy_(torch.from_numpy(value))
    return module.run(net, [(torch.from_numpy(x), torch.from_numpy(y)) for x, y in batches()])


def on_mindspore(module):
    import mindspore as ms

    net = module.build()
    parameters = list(net.get_parameters())
    drawn = weights([(p.name, p.shape) for p in parameters])
    for parameter, value in zip(parameters, drawn, strict=True):
        parameter.set_data(ms.Tensor(value))
    return module.run(net, [(ms.Tensor(x), ms.Tensor(y)) for x, y in batches()])


def main(framework, mode, folder):
    sys.path.insert(0, folder)
    if framework == "mindspore":
        import mindspore as ms

        if mode == "graph":
            ms.set_context(mode=ms.GRAPH_MODE, jit_syntax_level=ms.STRICT)
    found = {}
    for path in sorted(Path(folder).glob("*.py")):
        module = importlib.import_module(path.stem)
        run = on_torch if framework == "torch" else on_mindspore
        try:
            found[path.stem] = [float(value) for value in run(module)]
        except Exception as error:
            found[path.stem] = f"{type(error).__name__}: {error}"[:400]
    print("RESULT" + json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
