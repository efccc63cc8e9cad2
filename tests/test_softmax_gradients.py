"""In: softmax over one element, differentiated first. Out: later gradients stay right.

MindSpore's own kernel spoils them in PyNative, once in a process: each program has its own.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys

import pytest

from migrate.workspace.project import convert_text

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(importlib.util.find_spec("mindspore") is None, reason="needs MindSpore"),
]
FORMS = {
    "function": "torch.softmax(x, dim=-1)",
    "functional": "F.softmax(x, dim=-1)",
    "method": "x.softmax(-1)",
    "module": "nn.Softmax(dim=-1)(x)",
}
PROGRAM = """
import torch
import torch.nn as nn
import torch.nn.functional as F

def f(x: torch.Tensor, w: torch.Tensor):
    return ({form} * w).sum()
"""
RUN = """
import numpy as np, mindspore as ms
ms.set_context(pynative_synchronize=True)
gradient = ms.grad(f)
rng = np.random.default_rng(0)
for size in (1, 5):
    x, w = (rng.standard_normal((2, 3, size)).astype(np.float32) for _ in "xw")
    share = np.exp(x) / np.exp(x).sum(-1, keepdims=True)
    wanted = share * (w - (w * share).sum(-1, keepdims=True))
    found = gradient(ms.Tensor(x), ms.Tensor(w)).asnumpy()
    assert found.shape == wanted.shape
    assert np.abs(found - wanted).max() < 1e-6, (size, found, wanted)
"""


@pytest.mark.parametrize("form", FORMS)
def test_one_element_first_spoils_nothing(form: str) -> None:
    made = convert_text(PROGRAM.format(form=FORMS[form])).text
    done = subprocess.run(
        [sys.executable, "-c", made + RUN], capture_output=True, text=True, timeout=200,
        env=os.environ | {"ONEDNN_MAX_CPU_ISA": "AVX2"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
