"""In: nothing. Out: models for graph mode: records with fields that are written."""

# ruff: noqa
# It is the point that they are written so.

from copy import copy
from dataclasses import dataclass
from functools import partial
from typing import List, Optional

import torch
from torch import Tensor, nn


@dataclass
class Step:
    hidden: Tensor = None
    scores: Optional[Tensor] = None

    def __copy__(self):
        return Step(self.hidden, self.scores)


@dataclass
class Trace:
    steps: Optional[List[Step]] = None
    last: Tensor = None
    logits: Optional[Tensor] = None


@dataclass
class Late:
    value: Tensor = None
    other: Optional[Tensor] = None


class TracedLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(6, 6)

    def inner(self, x):
        step = Step(hidden=x)
        return self.a(x), step

    def forward(self, x):
        y, step = self.inner(x)
        step.scores = torch.tanh(y)
        if y.shape[0] > 100:
            step.hidden = None
        return y * step.scores, step


class Written(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([TracedLayer() for _ in range(2)])
        self.head = nn.Linear(6, 3)

    def run(self, x, given=None):
        steps = []
        for layer in self.layers:
            x, step = layer(x)
            steps.append(step)
        if isinstance(given, Trace):
            x = x * 3
        trace = Trace(steps=steps, last=x)
        return x, trace

    def forward(self, x):
        y, trace = self.run(x)
        trace.logits = self.head(y)
        z, more = self.run(y, trace)
        more.logits = trace.logits * 2
        return z, trace.logits, more.logits, trace.last + more.last


class HandedOn(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(6, 6)

    def made(self, x):
        return Late(value=x)

    def forward(self, x):
        kept = []
        late = self.made(x)
        kept.append(late)
        late.other = self.a(x)
        return kept[0].value if kept[0].other is None else kept[0].other


@dataclass
class Seen:
    numbers: Tensor = None
    letter: Optional[str] = None
    extra: Optional[Tensor] = None

    def __copy__(self):
        return Seen(self.numbers, self.letter, self.extra)


@dataclass
class All:
    seen: Optional[List[Seen]] = None
    length: int = 0


class SeenLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(6, 6)

    def forward(self, x, full=False):
        y = self.a(x)
        if not full:
            return y
        return y, Seen(numbers=torch.tanh(y))


class SeenThrough(nn.Module):
    """What a partial, a nested function and a comprehension give is a record; a loop writes none."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([SeenLayer() for _ in range(2)])

    def run(self, x, late=False):
        found, last, prev = [], None, None
        for layer, letter in zip(self.layers, ("a", "b")):
            block = partial(layer, full=True)
            if last is not None:
                prev = last.numbers
            out, seen = block(x)
            seen.letter = letter
            seen.extra = out if prev is None else out * prev
            found.append(seen)
            last = seen
            x = x + out
        if late:
            for one in found:
                one.extra = None
        return x, All(seen=found, length=len(found))

    def forward(self, x):
        def inner(y, **kwargs):
            return self.run(y, **kwargs)

        y, every = inner(x)
        total = sum([s.numbers for s in every.seen])
        first, second = every.seen[0], every.seen[1]
        if first.letter == "a":
            total = total * every.length
        return y, total + second.extra
