"""In: a torch model. Out: input descriptions worth trying, from what its first layers admit."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Iterator
from typing import Any

import torch

SIZE_NAMES = ("img_size", "image_size", "input_size", "resolution")
TEXT_NAMES = ("token", "ids", "idx", "index", "indices", "label", "target", "word", "src", "tgt")
MOST = 60


def proposals(model: torch.nn.Module) -> Iterator[tuple[str, ...]]:
    """Descriptions of all required inputs, most plausible first, at most MOST of them."""
    names = required(model)
    if not names:
        yield ()
        return
    firsts = list(dict.fromkeys(itertools.chain.from_iterable(_layers(model))))
    firsts += ["4x3x32x32", "2x3x64x64", "2x3x224x224", "2x8x16", "2x16", "4x1x28x28"]
    tried = 0
    for first in dict.fromkeys(firsts):
        rests = [_alternatives(name, first) for name in names[1:]]
        for rest in itertools.islice(itertools.product(*rests), 12):
            yield (first, *rest)
            tried += 1
            if tried >= MOST:
                return


def required(model: torch.nn.Module) -> list[str]:
    """Names of forward's parameters that must be given."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = inspect.signature(model.forward).parameters.values()
    names = [p.name for p in parameters if p.kind in kinds and p.default is p.empty]
    if names or not any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return names
    return ["x"]


def _alternatives(name: str, first: str) -> list[str]:
    """What another required argument may be, given the first input."""
    rows = first.split(":")[0].split("x")[0]
    if "mask" in name:
        return ["py:None", first]
    if name in ("t", "time", "timestep", "timesteps", "step"):
        return [f"{rows}:int64<100", rows, first]
    if any(part in name.lower() for part in TEXT_NAMES):
        return [first, f"{rows}:int64<2", f"{rows}x8:int64<2"]
    return [first, "py:None", rows]


def _layers(model: torch.nn.Module) -> Iterator[list[str]]:
    sizes = [s for s in _declared_sizes(model) if 8 <= s <= 1024]
    seen = 0
    for module in model.modules():
        found = _admitted(module, sizes)
        if found:
            seen += 1
            yield found
        if seen >= 4:
            return


def _declared_sizes(model: torch.nn.Module) -> list[int]:
    found: list[int] = []
    for module in itertools.islice(model.modules(), 40):
        for name in SIZE_NAMES:
            value: Any = module.__dict__.get(name)
            value = value[-1] if isinstance(value, (tuple, list)) and value else value
            if isinstance(value, int) and not isinstance(value, bool) and value not in found:
                found.append(value)
    return found


def _admitted(module: torch.nn.Module, sizes: list[int]) -> list[str]:
    nn = torch.nn
    if isinstance(module, nn.ConvTranspose2d):  # a generator's seed, or a decoder's features
        return [f"4x{module.in_channels}x{s}x{s}" for s in (1, 4, 8, 16, 32)]
    if isinstance(module, nn.Conv2d):
        planes = [(2 if s > 32 else 4, s) for s in (*sizes, 32, 64, 224, 28, 128, 256, 299)]
        return [f"{n}x{module.in_channels}x{s}x{s}" for n, s in planes]
    if isinstance(module, (nn.Conv1d, nn.ConvTranspose1d)):
        return [f"4x{module.in_channels}x{length}" for length in (*sizes, 64, 256, 1024, 4096)]
    if isinstance(module, (nn.Conv3d, nn.ConvTranspose3d)):
        places = ("8x32x32", "16x16x16", "16x112x112", "32x32x32", "4x8x8")
        return [f"2x{module.in_channels}x{place}" for place in places]
    if isinstance(module, (nn.Embedding, nn.EmbeddingBag)):
        high = module.num_embeddings
        return [f"2x{n}:int64<{high}" for n in (16, 8, 64)] + [f"4:int64<{high}"]
    if isinstance(module, nn.Linear):
        return _vectors(module.in_features)
    if isinstance(module, (nn.RNNBase, nn.RNNCellBase)):
        return _vectors(module.input_size)[::-1]
    if isinstance(module, (nn.BatchNorm2d, nn.InstanceNorm2d)):
        return [f"4x{module.num_features}x{s}x{s}" for s in (8, 32)]
    if isinstance(module, nn.LayerNorm):
        return _vectors(module.normalized_shape[-1])
    return []


def _vectors(features: int) -> list[str]:
    found = [f"4x{features}", f"2x8x{features}"]
    for channels in (1, 3):
        side = round((features / channels) ** 0.5)
        if side > 3 and side * side * channels == features:
            found.append(f"4x{channels}x{side}x{side}")
    return found
