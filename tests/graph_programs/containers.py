"""In: nothing. Out: models for graph mode, one for each construct: containers."""

# ruff: noqa
# It is the point that they are written so.

import functools
import itertools
import operator
from collections import OrderedDict, defaultdict, namedtuple
from dataclasses import dataclass
from typing import NamedTuple, Optional

import torch
from torch import Tensor, nn

Pair = namedtuple("Pair", ["first", "second"])


@dataclass
class Output:
    hidden: Tensor
    logits: Optional[Tensor] = None


class Parts(NamedTuple):
    mean: Tensor
    scale: Tensor


class Two(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(6, 6)
        self.b = nn.Linear(6, 6)


class Layers(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(6, 6) for _ in range(3))


class Reversed(Layers):
    def forward(self, x):
        for layer in reversed(self.layers):
            x = layer(x)
        return x


class ReversedRange(Layers):
    def forward(self, x):
        for i in reversed(range(len(self.layers))):
            x = torch.relu(self.layers[i](x)) + x
        return x


class ReversedEnumerate(Layers):
    def forward(self, x):
        for i, layer in reversed(list(enumerate(self.layers))):
            x = layer(x) * (i + 1)
        return x


class MapLambda(Layers):
    def forward(self, x):
        return sum(map(lambda layer: layer(x), self.layers))


class MapList(Two):
    def forward(self, x):
        p, q = map(self.a, (x, x + 1))
        return p * q


class MapKept(Two):
    def forward(self, x):
        halves = list(map(torch.relu, x.chunk(2, dim=1)))
        return torch.cat(halves[::-1], dim=1) + self.a(x)


class FilterNone(Two):
    def forward(self, x):
        parts = [self.a(x), None, self.b(x)]
        return sum(filter(lambda p: p is not None, parts))


class DictCall(Two):
    def forward(self, x):
        outs = dict(a=self.a(x), b=self.b(x))
        return outs["a"] - outs["b"]


class DictOfZip(Two):
    def forward(self, x):
        outs = dict(zip(("a", "b"), (self.a(x), self.b(x))))
        return outs["a"] * outs["b"]


class DictSetdefault(Two):
    def forward(self, x):
        outs = {"a": self.a(x)}
        outs.setdefault("b", self.b(x))
        return outs["a"] - outs["b"]


class DictPop(Two):
    def forward(self, x):
        outs = {"a": self.a(x), "b": self.b(x)}
        a = outs.pop("a")
        return a + sum(outs.values())


class DictReturn(Two):
    def forward(self, x):
        return {"a": self.a(x), "b": self.b(x)}


class DictMerge(Two):
    def forward(self, x):
        outs = {"a": self.a(x)}
        outs = {**outs, "b": self.b(x)}
        return outs["a"] - outs["b"]


class DictMergeOr(Two):
    def forward(self, x):
        outs = {"a": self.a(x)} | {"b": self.b(x)}
        return outs["a"] - outs["b"]


class DictUpdate(Two):
    def forward(self, x):
        outs = {"a": self.a(x)}
        outs.update(b=self.b(x))
        return outs["a"] - outs["b"]


class DefaultDict(Two):
    def forward(self, x):
        outs = defaultdict(list)
        outs["a"].append(self.a(x))
        outs["a"].append(self.b(x))
        return sum(outs["a"])


class Ordered(Two):
    def forward(self, x):
        outs = OrderedDict()
        outs["a"] = self.a(x)
        outs["b"] = self.b(x)
        return outs


class DataclassInner(Two):
    def encode(self, x):
        return Output(hidden=self.a(x), logits=self.b(x))

    def forward(self, x):
        out = self.encode(x)
        return out.hidden * out.logits


class DataclassReturn(Two):
    def forward(self, x):
        h = self.a(x)
        return Output(hidden=h, logits=self.b(h))


class NamedInner(Two):
    def parts(self, x):
        return Parts(self.a(x), self.b(x))

    def forward(self, x):
        p = self.parts(x)
        return p.mean + p.scale * 2


class NamedUnpacked(Two):
    def forward(self, x):
        mean, scale = Parts(self.a(x), self.b(x))
        return mean * scale


class NamedReturn(Two):
    def forward(self, x):
        return Pair(first=self.a(x), second=self.b(x))


class ListInsert(Two):
    def forward(self, x):
        outs = [self.a(x)]
        outs.insert(0, self.b(x))
        return torch.cat(outs, dim=1)


class ListPop(Two):
    def forward(self, x):
        outs = [self.a(x), self.b(x)]
        last = outs.pop()
        return last - outs[0]


class ListExtendReverse(Two):
    def forward(self, x):
        outs = [self.a(x)]
        outs.extend([self.b(x), x])
        outs.reverse()
        return torch.cat(outs, dim=1)


class UnetSkips(Layers):
    def forward(self, x):
        skips = []
        for layer in self.layers:
            x = torch.relu(layer(x))
            skips.append(x)
        while skips:
            x = x + skips.pop()
        return x


class PopInLoop(Layers):
    def forward(self, x):
        skips = []
        for layer in self.layers:
            skips.append(x)
            x = torch.tanh(layer(x))
        for layer in self.layers:
            x = layer(x) * skips.pop()
        return x


class Reduce(Layers):
    def forward(self, x):
        return functools.reduce(lambda h, layer: layer(h), self.layers, x)


class ReduceOperator(Layers):
    def forward(self, x):
        return functools.reduce(operator.add, [layer(x) for layer in self.layers])


class PartialStored(Two):
    def __init__(self):
        super().__init__()
        self.act = functools.partial(nn.functional.leaky_relu, negative_slope=0.3)

    def forward(self, x):
        return self.b(self.act(self.a(x)))


class Chain(Two):
    def forward(self, x):
        for layer in itertools.chain([self.a], [self.b]):
            x = layer(x)
        return x


class ZipLongest(Layers):
    def forward(self, x):
        for layer, scale in itertools.zip_longest(self.layers, (2.0, 3.0), fillvalue=1.0):
            x = layer(x) * scale
        return x


class Product(Two):
    def forward(self, x):
        for i, j in itertools.product(range(2), range(2)):
            x = x + self.a(x) * (i + j)
        return x


class Combinations(Layers):
    def forward(self, x):
        outs = [layer(x) for layer in self.layers]
        return sum(p * q for p, q in itertools.combinations(outs, 2))


class Islice(Layers):
    def forward(self, x):
        for layer in itertools.islice(self.layers, 2):
            x = layer(x)
        return x


class NextIter(Layers):
    def forward(self, x):
        first = next(iter(self.layers))
        return first(x)


class NextGenerator(Layers):
    def forward(self, x):
        first = next(layer for layer in self.layers if layer.out_features == 6)
        return first(x)


class GeneratorSum(Layers):
    def forward(self, x):
        return sum(layer(x) for layer in self.layers)


class GeneratorKept(Layers):
    def forward(self, x):
        outs = (layer(x) for layer in self.layers)
        return torch.cat(list(outs), dim=1)


class TupleGenerator(Layers):
    def forward(self, x):
        outs = tuple(layer(x) for layer in self.layers)
        return outs[0] + outs[-1]


class StackGenerator(Layers):
    def forward(self, x):
        return torch.cat([torch.relu(layer(x)) for layer in self.layers if layer is not None], 1)


class AnyIs(Two):
    def forward(self, x):
        if any(s == 6 for s in x.shape) and all(s > 0 for s in x.shape):
            return self.a(x)
        return self.b(x)


class PythonList(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(6, 6)
        self.b = nn.Linear(6, 6)
        self.steps = [self.a, self.b]

    def forward(self, x):
        for step in self.steps:
            x = step(x)
        return x


class PythonDict(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(6, 6)
        self.b = nn.Linear(6, 6)
        self.by_name = {"a": self.a, "b": self.b}

    def forward(self, x):
        return self.by_name["a"](x) * self.by_name["b"](x)


class Kwargs(Two):
    def part(self, x, **kwargs):
        scale = kwargs.get("scale", 1.0)
        return self.a(x) * scale

    def forward(self, x, **kwargs):
        return self.part(x, scale=2.0, **kwargs)


class KwargsPop(Two):
    def part(self, x, **kwargs):
        scale = kwargs.pop("scale", 1.0)
        return self.a(x) * scale + self.b(x) * kwargs["shift"]

    def forward(self, x):
        return self.part(x, scale=2.0, shift=3.0)
