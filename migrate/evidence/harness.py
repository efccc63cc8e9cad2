"""In: a probe and its differentiated results. Out: the Python file that runs it in MindSpore.

Graph mode compiles real files with fixed arguments only, so calls are written out one by one.
Result and gradient come from one compilation: the sum that is differentiated carries the result.
"""

from __future__ import annotations

from collections.abc import Sequence

from migrate.evidence.sources import Probe

FUNCTION = '''"""In: nothing. Out: one probe: forward, and the total that is differentiated."""
from {module} import {name}


def forward({inputs}):
    return {name}({inputs})


def total({inputs_and_heads}):
    result = {name}({inputs})
    return {total}, result
'''

MODULE = '''"""In: nothing. Out: what one probe needs: build, forward, Total."""
from mindspore import nn
from {module} import {name}


def build():
    return {name}()


def forward(net):
    def run({inputs}):
        return net({inputs})

    return run


class Total(nn.Cell):
    def __init__(self, net):
        super().__init__(auto_prefix=False)
        self.net = net

    def construct(self, {inputs_and_heads}):
        result = self.net({inputs})
        return {total}, result
'''

TOGETHER = '''"""In: functions. Out: them compiled as one graph, which takes all their arguments."""
import mindspore as ms


def compiled({functions}):
    @ms.jit(fullgraph=True)
    def step({arguments}):
        return ({calls},)

    return step
'''


def together_text(counts: Sequence[int]) -> str:
    """The file that compiles functions of so many arguments each.

    A compilation costs more than what it compiles, so the calls of a row share one.
    """
    groups = [[f"a{i}_{j}" for j in range(count)] for i, count in enumerate(counts)]
    return TOGETHER.format(
        functions=", ".join(f"f{i}" for i in range(len(counts))),
        arguments=", ".join(name for group in groups for name in group),
        calls=", ".join(f"f{i}({', '.join(group)})" for i, group in enumerate(groups)),
    )


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
