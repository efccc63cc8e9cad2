"""In: a probe and its differentiated results. Out: the Python file that runs it in MindSpore.

Graph mode compiles real files with fixed arguments only, so calls are written out one by one.
Result and gradient come from one compilation: the sum that is differentiated carries the result.
"""

from __future__ import annotations

from collections.abc import Sequence

from migrate.evidence.sources import Probe

FUNCTION = '''"""In: nothing. Out: one probe: forward, total, and both of them compiled."""
import mindspore as ms
from {module} import {name}


def forward({inputs}):
    return {name}({inputs})


def compiled_forward(function):
    @ms.jit(fullgraph=True)
    def step({inputs}):
        return function({inputs})

    return step


def total({inputs_and_heads}):
    result = {name}({inputs})
    return {total}, result


def compiled_gradient(gradient):
    @ms.jit(fullgraph=True)
    def step({inputs_and_heads}):
        return gradient({inputs_and_heads})

    return step
'''

MODULE = '''"""In: nothing. Out: what one probe needs: build, forward, Total, and them compiled."""
import mindspore as ms
from mindspore import nn
from {module} import {name}


def build():
    return {name}()


def forward(net):
    def run({inputs}):
        return net({inputs})

    return run


def compiled_forward(function):
    @ms.jit(fullgraph=True)
    def step({inputs}):
        return function({inputs})

    return step


class Total(nn.Cell):
    def __init__(self, net):
        super().__init__(auto_prefix=False)
        self.net = net

    def construct(self, {inputs_and_heads}):
        result = self.net({inputs})
        return {total}, result


def compiled_gradient(gradient):
    @ms.jit(fullgraph=True)
    def step({inputs_and_heads}):
        return gradient({inputs_and_heads})

    return step
'''


def harness_text(probe: Probe, module: str, heads: Sequence[str]) -> str:
    """``heads``: the places of the differentiated results, like ``[0]['logits']``."""
    inputs = ", ".join(probe.names)
    cotangents = [f"c{number}" for number in range(len(heads))]
    terms = [f"(result{h} * {c}).sum()" for h, c in zip(heads, cotangents, strict=True)]
    return (MODULE if probe.is_module else FUNCTION).format(
        module=module,
        name=probe.name,
        inputs=inputs,
        inputs_and_heads=", ".join([*probe.names, *cotangents]),
        total=" + ".join(terms) or "0",
    )
