"""In: descriptions of a Cell's inputs and results. Out: source text of a Cell to differentiate.

Graph mode compiles real files only, and a result's structure is fixed, so the sum of
``result * cotangent`` is written out leaf by leaf.
"""

from __future__ import annotations

from collections.abc import Sequence

from migrate.parity.exchange import Spec

TEMPLATE = '''"""Written for one verification; the Cell sums its results times fixed cotangents."""
import mindspore as ms
from mindspore import nn


class Probe(nn.Cell):
    def __init__(self, net, loss=None):
        super().__init__(auto_prefix=False)
        self.net = net
        self.loss = loss

    def construct(self, {names}):
        result = self.net({call})
        return {total}


def compiled(gradient):
    @ms.jit(fullgraph=True)
    def step({names}):
        return gradient({names})
    return step
'''


def probe_source(
    args: Spec, kwargs: Spec, heads: Sequence[str], loss: bool = False
) -> tuple[str, list[Spec]]:
    """Source of the probe, and the tensors it takes before the cotangents, in order.

    ``heads`` are the places of the differentiated results, like ``[0]['logits']``. With ``loss``
    they name the targets instead: these take the place of the cotangents.
    """
    inputs: list[Spec] = []
    call = [expression(item, inputs) for item in args["items"]]
    call += [f"{name}={expression(item, inputs)}"
             for name, item in zip(kwargs["keys"], kwargs["items"], strict=False)]  # fmt: skip
    names = [f"x{i}" for i in range(len(inputs))] + [f"c{i}" for i in range(len(heads))]
    total = " + ".join(f"(result{head} * c{i}).sum()" for i, head in enumerate(heads))
    if loss:
        total = f"self.loss({', '.join(['result', *names[len(inputs) :]])})"
    text = TEMPLATE.format(names=", ".join(names), call=", ".join(call), total=total)
    return text, inputs


def expression(spec: Spec, inputs: list[Spec]) -> str:
    kind = spec["t"]
    if kind == "tensor":
        inputs.append(spec)
        return f"x{len(inputs) - 1}"
    if kind == "dtype":
        return f"ms.{spec['name']}"
    if kind == "value":
        return repr(spec["v"])
    if kind == "opaque":
        raise ValueError(f"{spec['why']} cannot be handed to MindSpore")
    items = [expression(item, inputs) for item in spec["items"]]
    if kind == "dict":
        pairs = zip(spec["keys"], items, strict=False)
        return "{" + ", ".join(f"{key!r}: {item}" for key, item in pairs) + "}"
    if kind == "list":
        return f"[{', '.join(items)}]"
    return f"({', '.join(items)},)" if items else "()"
