"""Find Modules of an installed package that can be run: ``find.py PACKAGE FILE N SEED``.

Runs beside torch alone. Up to N classes, drawn by SEED, are built with what their signatures ask
for (small numbers by the names of parameters) and called with tensors of the usual shapes, until
a call gives finite numbers, twice the same. FILE gets one JSON object a line: ``module``,
``name``, ``build``, ``inputs`` and ``kind``, in the words of ``benchmarks/silent``; and, for a
class that could not be tried, ``why``.
"""

from __future__ import annotations

import contextlib
import copy
import importlib
import inspect
import io
import itertools
import json
import os
import pkgutil
import random
import signal
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

SIZES = {
    "depth": 1, "num_layers": 1, "n_layers": 1, "layers": 1, "num_blocks": 1, "heads": 2,
    "num_heads": 2, "n_heads": 2, "nhead": 2, "dim_head": 4, "head_dim": 4, "num_classes": 4,
    "n_classes": 4, "classes": 4, "image_size": 32, "img_size": 32, "patch_size": 8, "kernel": 3,
    "kernel_size": 3, "stride": 1, "padding": 1, "dilation": 1, "groups": 1, "num_tokens": 16,
    "max_seq_len": 16, "seq_len": 16, "vocab_size": 16, "num_embeddings": 16, "window_size": 4,
    "in_channels": 8, "in_chans": 3, "in_features": 8, "bucket_size": 4, "max_len": 16,
}  # fmt: skip
FLOATS = {"dropout": 0.0, "drop": 0.0, "p": 0.0, "eps": 1e-5, "rate": 0.0}
SHAPES = (
    (2, 3, 32, 32), (2, 8), (2, 16, 8), (2, 8, 16), (2, 8, 8, 8), (2, 3, 64, 64), (2, 4, 16),
    (2, 1, 64), (2, 1, 32, 32), (4, 4), (2, 16), (2, 8, 4, 4, 4), (2, 3, 8, 32, 32), (2, 2, 16, 4),
    (2, 1, 1024), (2, 1024), (2, 6, 3), (8,), (2, 3, 128, 128), (1, 16, 16, 8),
)  # fmt: skip
MOST_WEIGHTS, SECONDS = 12_000_000, 20


class Late(Exception):
    """A class took too long."""


def _classes(package: str) -> Iterator[type[nn.Module]]:
    """Yield the Modules that a package defines, each once."""
    top = importlib.import_module(package)
    names = [package]
    if hasattr(top, "__path__"):
        names += [
            m.name for m in pkgutil.walk_packages(top.__path__, package + ".", lambda _: None)
        ]
    seen: set[type] = set()
    for name in names:
        if any(part.startswith(("test", "conftest", "__main__")) for part in name.split(".")):
            continue
        try:
            module = importlib.import_module(name)
        except (Exception, SystemExit):
            continue  # an optional dependency
        for value in list(vars(module).values()):
            own = isinstance(value, type) and value.__module__ == name and value not in seen
            if own and issubclass(value, nn.Module) and value.__name__.isidentifier():
                seen.add(value)
                yield value


def _guess(name: str, annotation: Any) -> Any:
    """Return a small value for a parameter without default; raises LookupError."""
    text = str(annotation)
    if name in SIZES:
        return SIZES[name]
    if name in FLOATS or "float" in text:
        return FLOATS.get(name, 0.1)
    if "bool" in text:
        return False
    if "str" in text or annotation is str or "Callable" in text or "Module" in text:
        raise LookupError(name)
    if any(word in text for word in ("List", "list", "Sequence", "Tuple", "tuple")):
        return (8, 8)
    if any(
        w in name for w in ("fn", "func", "net", "model", "loss", "cfg", "config", "layer_type")
    ):
        raise LookupError(name)
    return 8


def _arguments(cls: type[nn.Module]) -> dict[str, Any]:
    """Return what the constructor asks for."""
    signature = inspect.signature(cls.__init__)
    kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return {
        p.name: _guess(p.name, p.annotation)
        for p in list(signature.parameters.values())[1:]
        if p.default is p.empty and p.kind not in kinds
    }


def _inputs(net: nn.Module) -> Iterator[tuple[str, list[np.ndarray]]]:
    """Yield what a forward may take: its words, and the arrays."""
    signature = inspect.signature(net.forward)
    required = [
        p for p in signature.parameters.values()
        if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]  # fmt: skip
    count = max(1, len(required))
    if count > 3:
        return
    for shape in SHAPES:
        text = ", ".join(f"A{shape} * {1 - 0.25 * i}" if i else f"A{shape}" for i in range(count))
        yield (
            text.replace(",)", ")"),
            [normal(shape) * np.float32(1 - 0.25 * i) for i in range(count)],
        )
    for shape in ((2, 16), (2, 8), (4,)):
        yield f"I(8, {', '.join(map(str, shape))})", [whole(8, shape)]


def normal(shape: tuple[int, ...]) -> np.ndarray:
    seeded = np.random.RandomState(1 + sum(shape))
    return seeded.standard_normal(shape).astype(np.float32)


def whole(high: int, shape: tuple[int, ...]) -> np.ndarray:
    return np.random.RandomState(5).randint(0, high, shape).astype(np.int64)


def _leaves(x: Any) -> list[torch.Tensor]:
    if isinstance(x, torch.Tensor):
        return [x]
    if isinstance(x, dict):
        x = list(x.values())
    return [leaf for part in x for leaf in _leaves(part)] if isinstance(x, (list, tuple)) else []


def _run(net: nn.Module, arrays: list[np.ndarray], seed: int) -> list[torch.Tensor]:
    torch.manual_seed(seed)
    random.seed(seed)
    np.random.seed(seed)
    return _leaves(copy.deepcopy(net)(*(torch.from_numpy(a.copy()) for a in arrays)))


def _is_steady(net: nn.Module, arrays: list[np.ndarray]) -> bool:
    """Return whether inputs that differ in the last bit give nearly the same gradients."""
    found = []
    for factor in (1.0, 1.0 + 2.0**-23):
        given = [torch.from_numpy(a * np.float32(factor)) if a.dtype == np.float32
                 else torch.from_numpy(a) for a in arrays]  # fmt: skip
        asked = [x.requires_grad_() for x in given if x.is_floating_point()]
        asked += [p for p in net.parameters() if p.requires_grad]
        outs = [o for o in _leaves(net(*given)) if o.requires_grad]
        if not outs or not asked:
            return True
        total = sum((o.float() * torch.arange(o.numel()).cos().view_as(o)).sum() for o in outs)
        found.append(torch.autograd.grad(total, asked, allow_unused=True))
    return all(
        a is None or bool((a - b).abs().max() <= 1e-6 + 1e-5 * a.abs().max())
        for a, b in zip(*found, strict=True) if b is not None and (a is None or a.numel())
    )  # fmt: skip


def _same(a: list[torch.Tensor], b: list[torch.Tensor]) -> bool:
    return len(a) == len(b) and all(
        s.shape == t.shape and torch.allclose(s.detach(), t.detach(), equal_nan=True)
        for s, t in zip(a, b, strict=True)
    )


def _tried(cls: type[nn.Module]) -> dict[str, str]:
    """Return how a class is built and called; raises what stands in the way."""
    asked = _arguments(cls)
    torch.manual_seed(0)
    net = cls(**asked)
    torch.manual_seed(1)
    again = dict(cls(**asked).named_buffers())
    if any(not torch.equal(b, again[n]) for n, b in net.named_buffers()):
        raise ValueError("random buffers")
    if sum(p.numel() for p in net.parameters()) > MOST_WEIGHTS:
        raise ValueError("too many weights")
    net.eval()
    first = None
    for text, arrays in _inputs(net):
        try:
            outs = _run(net, arrays, 0)
        except Late:
            raise
        except Exception as error:
            first = first or error
            continue
        if not outs or not all(
            o.numel() and torch.isfinite(o).all() for o in outs if o.is_floating_point()
        ):
            continue
        if not _same(outs, _run(net, arrays, 1)):
            raise ValueError("random output")
        kind = "model[init]"
        net.train()
        try:
            if not _same(_run(net, arrays, 0), _run(net, arrays, 1)):
                kind = "model[init,eval]"
        except Late:
            raise
        except Exception:
            kind = "model[init,eval]"
        try:
            steady = _is_steady(copy.deepcopy(net), arrays)
        except Late:
            raise
        except Exception:
            steady = False
        kind = kind if steady else kind.replace("[", "[nograd,")
        given = ", ".join(f"{k}={v!r}" for k, v in asked.items())
        return {"build": f"{cls.__name__}({given})", "inputs": text, "kind": kind}
    raise ValueError(f"no input fits: {type(first).__name__}: {str(first)[:100]}")


def main() -> None:
    package, path, most, seed = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)

    def late(*_: object) -> None:
        raise Late

    signal.signal(signal.SIGALRM, late)
    done = 0
    with path.open("a", encoding="utf-8") as out, contextlib.redirect_stdout(io.StringIO()):
        found = sorted(_classes(package), key=lambda c: (c.__module__, c.__qualname__))
        random.Random(seed).shuffle(found)
        before = len(path.read_text(encoding="utf-8").splitlines())
        for cls in itertools.islice(found, before, None):
            line = {"module": cls.__module__, "name": cls.__name__}
            signal.alarm(SECONDS)
            try:
                line |= _tried(cls)
                done += 1
            except BaseException as error:
                line["why"] = f"{type(error).__name__}: {str(error)[:160]}"
            signal.alarm(0)
            out.write(json.dumps(line) + "\n")
            out.flush()
            if done >= most:
                break
    os._exit(0)


if __name__ == "__main__":
    main()
