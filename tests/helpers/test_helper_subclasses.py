"""In: classes derived from helpers. Out: that they compile: super() in a base never ends there."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

if importlib.util.find_spec("mindspore") is None:
    pytest.skip("needs MindSpore", allow_module_level=True)

SCRIPT = """
import mindspore as ms
import numpy as np

from migrate.helpers.convolution import Conv3d
from migrate.helpers.layers import Dropout, Embedding
from migrate.helpers.norm import BatchNorm2d
from migrate.helpers.transposed import ConvTranspose3d


class Simple(Conv3d):
    pass


class Upward(ConvTranspose3d):
    pass


class Table(Embedding):
    pass


class Dropped(Dropout):
    pass


class Checked(BatchNorm2d):
    def construct(self, x):
        self._check_input_dim(x)
        return BatchNorm2d.construct(self, x)


ms.set_context(mode=ms.GRAPH_MODE, jit_syntax_level=ms.STRICT)
x = ms.Tensor(np.random.RandomState(0).randn(1, 2, 3, 4, 3).astype(np.float32))
cases = [(Simple(2, 3, 2), Conv3d, x), (Upward(2, 3, 2), ConvTranspose3d, x)]
cases += [(Dropped(0.3), Dropout, x), (Table(5, 3, padding_idx=0), Embedding, ms.Tensor([[1, 0]]))]
image = ms.Tensor(np.random.RandomState(1).randn(2, 3, 4, 4).astype(np.float32))
cases += [(Checked(3), BatchNorm2d, image)]
for net, base, given in cases:
    net.set_train(False)
    compiled = net(given).asnumpy()
    ms.set_context(mode=ms.PYNATIVE_MODE)
    np.testing.assert_allclose(compiled, base.construct(net, given).asnumpy(), atol=1e-6)
    ms.set_context(mode=ms.GRAPH_MODE)
ms.set_context(mode=ms.PYNATIVE_MODE)
try:
    Checked(3)(x)
except ValueError:
    pass
else:
    raise AssertionError("five axes are one too many")
"""


def test_they_compile_and_give_what_the_helper_gives(tmp_path: Path) -> None:
    script = tmp_path / "subclasses.py"
    script.write_text(SCRIPT, encoding="utf-8")
    run = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr[-2000:]
