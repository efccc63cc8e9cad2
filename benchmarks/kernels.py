"""In: both frameworks, installed. Out: how coarse MindSpore's CPU kernels are (noise.py).

Run by hand when MindSpore changes (``python benchmarks/kernels.py > noise.py``); it prints
the file noise.py. Each kernel is evaluated on float32 points of a range and compared with torch
in float64, in equal parts of the range. A part is coarse when the error exceeds three times what
torch itself makes in float32 and 2e-7; errors are root mean squares relative to the part's values.
"""

from __future__ import annotations

import importlib
import os
import sys
import textwrap
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from migrate.parity.exchange import Array

Function = Callable[[Any], Any]
POINTS = 24 * 9000
PARTS = 24
ATEN = {
    "softmax": "_softmax",
    "log_sigmoid": "log_sigmoid_forward",
}  # fmt: skip
HEAD = '''"""In: nothing. Out: where MindSpore {version}'s CPU kernels are coarser than torch's.

By benchmarks/kernels.py: aten operator -> range of its argument, and the relative error (root mean
square) in equal parts of that range; 0 where the kernel is as good as torch's. ABSOLUTE: the error
of kernels where it does not depend on the size of the result.
"""

# fmt: off
COARSE: dict[str, tuple[tuple[float, float], tuple[float, ...]]] = {{'''
RANGES = {
    "exp": (-20.0, 20.0), "expm1": (-5.0, 5.0), "log": (1e-3, 50.0), "log1p": (-0.9, 50.0),
    "sigmoid": (-12.0, 12.0), "tanh": (-9.0, 9.0), "erf": (-5.0, 5.0), "erfinv": (-0.999, 0.999),
    "gelu": (-6.0, 6.0), "gelu_tanh": (-6.0, 6.0), "silu": (-12.0, 12.0), "elu": (-8.0, 3.0),
    "softplus": (-12.0, 12.0), "mish": (-12.0, 12.0), "log_sigmoid": (-12.0, 12.0),
    "sin": (-20.0, 20.0), "cos": (-20.0, 20.0), "tan": (-1.4, 1.4), "atan": (-20.0, 20.0),
    "sqrt": (1e-3, 100.0), "rsqrt": (1e-3, 100.0), "pow": (1e-2, 20.0), "sinh": (-5.0, 5.0),
    "cosh": (-5.0, 5.0), "asin": (-0.99, 0.99), "acos": (-0.99, 0.99), "reciprocal": (0.1, 9.0),
    "softmax": (-12.0, 12.0), "hardswish": (-5.0, 5.0),
    "selu": (-8.0, 3.0), "celu": (-8.0, 3.0), "lgamma": (0.1, 20.0), "erfc": (-4.0, 4.0),
    "exp2": (-10.0, 10.0), "log2": (1e-3, 50.0), "log10": (1e-3, 50.0),
}  # fmt: skip


def torch_functions() -> Mapping[str, Function]:
    """The reference for each name of RANGES."""
    torch: Any = importlib.import_module("torch")
    functional = torch.nn.functional
    special: dict[str, Function] = {
        "gelu": functional.gelu,
        "gelu_tanh": lambda x: functional.gelu(x, approximate="tanh"),
        "log_sigmoid": functional.logsigmoid,
        "pow": lambda x: torch.pow(x, 2.3),
        "softmax": lambda x: torch.softmax(x.reshape(-1, 9), -1).reshape(-1),
    }
    for name in ("silu", "elu", "softplus", "mish", "hardswish", "selu", "celu"):
        special[name] = getattr(functional, name)
    plain = {name: getattr(torch, name) for name in RANGES if name not in special}
    return {**plain, **special}


def mindspore_functions() -> Mapping[str, Function]:
    """MindSpore's portable spelling of each name of RANGES."""
    ms: Any = importlib.import_module("mindspore")
    ops = ms.ops
    special: dict[str, Function] = {
        "gelu": lambda x: ops.gelu(x, "none"),
        "gelu_tanh": lambda x: ops.gelu(x, "tanh"),
        "log_sigmoid": ops.logsigmoid,
        "pow": lambda x: ops.pow(x, 2.3),
        "softmax": lambda x: ops.softmax(x.reshape(-1, 9), -1).reshape(-1),
        "softplus": ops.softplus,
        "exp2": lambda x: ops.pow(2.0, x),
    }
    plain = {name: getattr(ops, name) for name in RANGES if name not in special}
    return {**plain, **special}


def measure(name: str, torch_function: Function, ms_function: Function) -> tuple[float, ...]:
    """Relative error of MindSpore's kernel in each part of the range; 0 where it is fine."""
    torch: Any = importlib.import_module("torch")
    ms: Any = importlib.import_module("mindspore")
    points = np.linspace(*RANGES[name], POINTS).astype(np.float32)
    with torch.no_grad():
        reference = torch_function(torch.from_numpy(points).double()).numpy()
        own = torch_function(torch.from_numpy(points)).double().numpy()
    theirs = ms_function(ms.Tensor(points)).asnumpy().astype(np.float64)
    errors = _by_part(theirs - reference, reference)
    owns = _by_part(own - reference, reference)
    return tuple(
        float(f"{error:.1e}") if error > max(3 * mine, 2e-7) else 0.0
        for error, mine in zip(errors, owns, strict=True)
    )


def _by_part(error: Array, reference: Array) -> list[float]:
    pairs = zip(np.array_split(error, PARTS), np.array_split(reference, PARTS), strict=True)
    return [float(np.linalg.norm(e) / max(float(np.linalg.norm(r)), 1e-30)) for e, r in pairs]


def main() -> None:
    """Print noise.py; what could not be measured goes to stderr."""
    os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX2")
    ms: Any = importlib.import_module("mindspore")
    ms.set_context(pynative_synchronize=True)
    theirs = mindspore_functions()
    print(HEAD.format(version=ms.__version__))
    for name, torch_function in torch_functions().items():
        try:
            parts = measure(name, torch_function, theirs[name])
        except Exception as error:  # a missing kernel is a finding, not the end
            print(f"{name}: {type(error).__name__} {str(error)[:80]}", file=sys.stderr)
            continue
        if any(parts):
            values = ", ".join(f"{part:g}" for part in parts)
            entry = f'"{ATEN.get(name, name)}": ({RANGES[name]}, ({values})),'
            print(textwrap.fill(entry, 98, initial_indent="    ", subsequent_indent="        "))
    print("}")
    print("ABSOLUTE: dict[str, float] = {")
    print(f'    "_log_softmax": {log_softmax_error():.1e},')
    print("}")


def log_softmax_error() -> float:
    """Root mean square of the absolute error on normal numbers, nine in a row.

    The logarithm of the sum is off by the same in all numbers of a row, however small they are.
    """
    torch: Any = importlib.import_module("torch")
    ms: Any = importlib.import_module("mindspore")
    points = np.random.RandomState(0).standard_normal((POINTS // 9, 9)).astype(np.float32)
    reference = torch.log_softmax(torch.from_numpy(points).double(), -1).numpy()
    error = ms.ops.log_softmax(ms.Tensor(points), -1).asnumpy().astype(np.float64) - reference
    return float(np.sqrt(np.mean(error**2)))


if __name__ == "__main__":
    main()
