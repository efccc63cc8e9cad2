"""In: nothing. Out: models for graph mode, one for each construct: state, numbers, texts, masks."""

# ruff: noqa
# It is the point that they are written so.

import numpy as np
import torch
from torch import nn


class Two(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(6, 6)
        self.b = nn.Linear(6, 6)


class CacheRead(Two):
    def forward(self, x):
        self.hidden = self.a(x)
        return self.b(self.hidden)


class CacheInit(Two):
    def __init__(self):
        super().__init__()
        self.hidden = None

    def forward(self, x):
        self.hidden = self.a(x)
        y = torch.relu(self.hidden)
        return self.b(y) + self.hidden


class CacheWriteOnly(Two):
    def __init__(self):
        super().__init__()
        self.last = None

    def forward(self, x):
        y = self.a(x)
        self.last = y
        return self.b(y)


class CacheOtherMethod(Two):
    def encode(self, x):
        self.hidden = self.a(x)
        return torch.relu(self.hidden)

    def forward(self, x):
        y = self.encode(x)
        return self.b(y) + self.hidden


class AuxLoss(nn.Module):
    def __init__(self):
        super().__init__()
        self.block = AuxBlock()

    def forward(self, x):
        y = self.block(x)
        return y + self.block.aux_loss


class AuxBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(6, 6)
        self.aux_loss = 0.0

    def forward(self, x):
        y = self.a(x)
        self.aux_loss = y.pow(2).mean()
        return y


class ShapeState(Two):
    def forward(self, x):
        self.hw = x.shape
        y = self.a(x).reshape(-1)
        return self.b(y.reshape(self.hw))


class FlagState(Two):
    def forward(self, x):
        self.wide = x.shape[1] > 4
        if self.wide:
            return self.a(x)
        return self.b(x)


class Counter(Two):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        return self.a(x)


class CounterUsed(Two):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        self.calls = self.calls + 1
        return self.a(x) * self.calls


class DictState(Two):
    def __init__(self):
        super().__init__()
        self.cache = {}

    def forward(self, x):
        y = self.a(x)
        self.cache["a"] = y
        return self.b(y)


class ListState(Two):
    def __init__(self):
        super().__init__()
        self.outs = []

    def forward(self, x):
        self.outs = []
        self.outs.append(self.a(x))
        self.outs.append(self.b(x))
        return torch.cat(self.outs, 1)


class LazyMask(Two):
    def __init__(self):
        super().__init__()
        self.mask = None

    def forward(self, x):
        if self.mask is None or self.mask.shape[0] != x.shape[1]:
            self.mask = torch.triu(torch.ones(x.shape[1], x.shape[1]))
        return self.a(x) @ self.mask


class BufferCounter(Two):
    def __init__(self):
        super().__init__()
        self.register_buffer("steps", torch.zeros(1))

    def forward(self, x):
        self.steps += 1
        return self.a(x)


class BufferMean(Two):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(6))

    def forward(self, x):
        y = self.a(x)
        if self.training:
            self.mean = 0.9 * self.mean + 0.1 * y.mean(0).detach()
        return self.b(y)


class NumpySqrt(Two):
    def forward(self, x):
        return self.a(x) / np.sqrt(x.shape[-1])


class NumpyProd(Two):
    def forward(self, x):
        return self.a(x) / np.prod(x.shape[1:])


class NumpyArray(Two):
    def forward(self, x):
        scale = torch.from_numpy(np.linspace(0.0, 1.0, 6).astype("float32"))
        return self.a(x) * scale


class NumpyOrder(Two):
    def forward(self, x):
        order = np.argsort([3, 1, 2, 0, 5, 4])
        return self.a(x)[:, torch.tensor(order)]


class NumpyDetach(Two):
    def forward(self, x):
        top = int(x.detach().numpy().argmax())
        return self.a(x) * (1 + top)


class Item(Two):
    def forward(self, x):
        n = x.abs().max().item()
        return self.a(x) * n


class ItemBranch(Two):
    def forward(self, x):
        if x.sum().item() > -1000:
            return self.a(x)
        return self.b(x)


class ToList(Two):
    def forward(self, x):
        sizes = torch.tensor([2, 4]).tolist()
        p, q = self.a(x).split(sizes, dim=1)
        return torch.cat([q, p], dim=1)


class IntTensor(Two):
    def forward(self, x):
        k = int((x > -1000).sum(1).max())
        return self.a(x)[:, :k]


class FormatSpec(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer_00 = nn.Linear(6, 6)
        self.layer_01 = nn.Linear(6, 6)

    def forward(self, x):
        for i in range(2):
            x = getattr(self, f"layer_{i:02d}")(x)
        return x


class FormatPlain(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer_0 = nn.Linear(6, 6)
        self.layer_1 = nn.Linear(6, 6)

    def forward(self, x):
        for i in range(2):
            x = getattr(self, f"layer_{i}")(x)
        return x


class PercentName(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer_0 = nn.Linear(6, 6)
        self.layer_1 = nn.Linear(6, 6)

    def forward(self, x):
        for i in range(2):
            x = getattr(self, "layer_%d" % i)(x)
        return x


class PercentCompare(Two):
    def __init__(self):
        super().__init__()
        self.kind = "a"
        self.level = 2

    def forward(self, x):
        if "%s-%d" % (self.kind, self.level) == "a-2":
            return self.a(x)
        return self.b(x)


class PercentText(Two):
    def __init__(self):
        super().__init__()
        self.kind = "gate"

    def forward(self, x):
        if "%s" % self.kind == "gate":
            return self.a(x)
        return self.b(x)


class FormatCompare(Two):
    def __init__(self):
        super().__init__()
        self.level = 7

    def forward(self, x):
        if f"k{self.level:03d}" == "k007":
            return self.a(x)
        return self.b(x)


class FormatLength(Two):
    def forward(self, x):
        return self.a(x) * len(f"{x.shape[1]:03d}")


class StartsWith(Two):
    def __init__(self):
        super().__init__()
        self.mode = "gate_b"

    def forward(self, x):
        if self.mode.startswith("gate"):
            return self.a(x) * torch.sigmoid(self.b(x))
        return self.a(x)


class LowerJoin(Two):
    def __init__(self):
        super().__init__()
        self.mode = "Gate"

    def forward(self, x):
        if self.mode.lower() == "gate":
            return self.a(x)
        return self.b(x)


class EndsWithSplit(Two):
    def __init__(self):
        super().__init__()
        self.mode = "a-b"

    def forward(self, x):
        first, _ = self.mode.split("-")
        if first == "a":
            return self.a(x)
        return self.b(x)


class MaskToMask(Two):
    def forward(self, x):
        y = torch.zeros_like(x)
        mask = x > 0
        y[mask] = self.a(x)[mask]
        return y


class MaskScalar(Two):
    def forward(self, x):
        y = self.a(x)
        y[x > 0] = 0.5
        return self.b(y)


class MaskRead(Two):
    def forward(self, x):
        y = self.a(x)
        return y[x > 0].sum() + y


class MaskScaled(Two):
    def forward(self, x):
        y = self.a(x).clone()
        mask = x < 0
        y[mask] *= 2
        return y


class Nonzero(Two):
    def forward(self, x):
        rows = torch.nonzero(x[:, 0] > -1000).squeeze(1)
        return self.a(x)[rows]


class TopKVariable(Two):
    def forward(self, x):
        k = max(1, x.shape[1] // 2)
        return torch.topk(self.a(x), k, dim=1)[0]


class DataBranch(Two):
    def forward(self, x):
        if x.sum() > -1000:
            y = self.a(x)
        else:
            y = self.b(x)
        return y


class DataWhile(Two):
    def forward(self, x):
        y = self.a(x)
        while y.abs().sum() > 1:
            y = y * 0.5
        return y


class BranchNone(Two):
    def maybe(self, x):
        if x.shape[1] > 100:
            return None
        return self.a(x)

    def forward(self, x):
        y = self.maybe(x)
        return self.b(x) if y is None else y


class TypeIs(Two):
    def forward(self, x):
        if type(x) == torch.Tensor:
            return self.a(x)
        return self.b(x)


class IsInstance(Two):
    def forward(self, x):
        if isinstance(x, torch.Tensor):
            return self.a(x)
        return self.b(x)


class ReturnsWeights(Two):
    def forward(self, x):
        return self.a(x) + sum(p.sum() for p in self.b.parameters())


class NamedWeights(Two):
    def forward(self, x):
        penalty = 0.0
        for name, p in self.named_parameters():
            if name.endswith("weight"):
                penalty = penalty + p.pow(2).sum()
        return self.a(x) + penalty


class ChildrenLoop(Two):
    def forward(self, x):
        for layer in self.children():
            x = layer(x)
        return x


class NamedChildren(Two):
    def forward(self, x):
        for name, layer in self.named_children():
            x = layer(x) * (2.0 if name == "a" else 3.0)
        return x


class ModulesItems(nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = nn.ModuleDict({"a": nn.Linear(6, 6), "b": nn.Linear(6, 6)})

    def forward(self, x):
        for name, part in self.parts.items():
            if name != "c":
                x = part(x)
        return x


class AssertText(Two):
    def forward(self, x):
        assert x.dim() == 2, f"wanted two axes, got {x.dim()}"
        return self.a(x)


class RaiseFormat(Two):
    def forward(self, x):
        if x.dim() != 2:
            raise ValueError("got %d axes" % x.dim())
        return self.a(x)


class HookLambda(Two):
    def __init__(self):
        super().__init__()
        self.a.register_forward_hook(lambda module, args, out: out * 2)

    def forward(self, x):
        return self.b(self.a(x))


class LoneStar(Two):
    def forward(self, x):
        *lead, last = x.shape
        return self.a(x.reshape(-1, last)).reshape(*lead, last)
