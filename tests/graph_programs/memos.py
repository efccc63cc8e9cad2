"""In: nothing. Out: models for graph mode that keep on self what they computed, in many ways."""

# ruff: noqa
# It is the point that they are written so.

from typing import Dict, Optional

import torch
from torch import nn


class Two(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(6, 6)
        self.b = nn.Linear(6, 6)


class MemoByDevice(Two):
    cache: Dict[str, torch.Tensor]

    def __init__(self):
        super().__init__()
        self.biases = nn.Parameter(torch.zeros(2, 6))
        self.register_buffer("order", torch.tensor([1, 0, 3, 2, 5, 4]), persistent=False)
        self.cache = {}

    @torch.no_grad()
    def train(self, mode=True):
        super().train(mode)
        if self.cache:
            self.cache = {}

    def get_biases(self, device: torch.device) -> torch.Tensor:
        key = str(device)
        if key not in self.cache:
            self.cache[key] = self.biases[:, self.order]
        return self.cache[key]

    def forward(self, x):
        y = self.a(x)
        return y + self.get_biases(x.device)


class MemoByLength(Two):
    def __init__(self):
        super().__init__()
        self.cache = {}

    def forward(self, x):
        n = x.shape[1]
        if n not in self.cache:
            self.cache[n] = torch.tril(torch.ones(n, n))
        return self.a(x) @ self.cache[n]


class MemoOfNothing(Two):
    def __init__(self):
        super().__init__()
        self.width = 6
        self._scale = None

    def forward(self, x):
        if self._scale is None:
            self._scale = torch.arange(self.width).float()
        return self.a(x) * self._scale


class MemoRotary(Two):
    def __init__(self):
        super().__init__()
        self.register_buffer("inv_freq", 1.0 / (10 ** (torch.arange(6).float() / 6)))
        self.seq_len_cached = None
        self.cos_cached: Optional[torch.Tensor] = None
        self.sin_cached: Optional[torch.Tensor] = None

    def table(self, x):
        seq_len = x.shape[0]
        if seq_len != self.seq_len_cached or self.cos_cached.device != x.device:
            self.seq_len_cached = seq_len
            t = torch.arange(self.seq_len_cached, device=x.device).type_as(self.inv_freq)
            freqs = t[:, None] * self.inv_freq[None, :]
            self.cos_cached = freqs.cos()
            self.sin_cached = freqs.sin()
        return self.cos_cached, self.sin_cached

    def forward(self, x):
        cos, sin = self.table(x)
        return self.a(x) * cos + self.b(x) * sin


class MemoOfInput(Two):
    """Flagged: what the first input gave stays."""

    def __init__(self):
        super().__init__()
        self.first = None

    def forward(self, x):
        if self.first is None:
            self.first = x * 2
        return self.a(x) + self.first


class MemoOfAnotherLength(Two):
    """Flagged: the value depends on what the key does not tell."""

    def __init__(self):
        super().__init__()
        self.cache = {}

    def forward(self, x):
        n, m = x.shape
        if m not in self.cache:
            self.cache[m] = torch.ones(m) * n
        return self.a(x) * self.cache[m]


class MemoPrefix(Two):
    """Flagged: a longer one may begin in another way."""

    def __init__(self):
        super().__init__()
        self.longest = 0

    def forward(self, x):
        n = x.shape[1]
        if n > self.longest:
            self.longest = n
            self.mask = torch.arange(n).flip(0).float()
        return self.a(x) * self.mask[:n]


class MemoOfLayer(Two):
    """Flagged: a layer may drop out or count."""

    def __init__(self):
        super().__init__()
        self.register_buffer("grid", torch.ones(1, 6))
        self.made = None

    def forward(self, x):
        if self.made is None:
            self.made = self.b(self.grid)
        return self.a(x) + self.made.detach()


class MemoReadElsewhere(Two):
    """Flagged: another method reads what was kept."""

    def __init__(self):
        super().__init__()
        self.scale = None

    def last_scale(self):
        return self.scale

    def forward(self, x):
        if self.scale is None:
            self.scale = torch.arange(6).float()
        return self.a(x) * self.scale


class KeptForTheEye(Two):
    def __init__(self):
        super().__init__()
        self.attention = None

    def forward(self, x):
        y = self.a(x)
        self.attention = y.detach().clone()
        self.before = x
        return self.b(y)


class KeptCounter(Two):
    """Flagged: what counts is read by itself."""

    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        return self.a(x)


class KeptAndRead(Two):
    """Flagged: somebody asks for it."""

    def forward(self, x):
        y = self.a(x)
        self.last = y
        return self.b(y)

    def loss(self):
        return self.last.mean()


class Pyramid(nn.Module):
    def __init__(self, levels=2):
        super().__init__()
        self.levels = levels
        self.a = nn.Linear(6, 6)
        self.pyramid = [torch.tensor(0)]

    def build(self, x):
        x = self.a(x)
        self.pyramid = [x]
        for _ in range(self.levels - 1):
            x = x * 0.5
            self.pyramid.append(x)  # the next level

    def look(self, at, scale=1.0):
        found = []
        for level in self.pyramid:
            found.append(level * at * scale)
        return torch.cat(found, dim=-1)

    def forward(self, x):
        self.build(x)
        return self.look(x)


class PassedOnce(nn.Module):
    def __init__(self):
        super().__init__()
        self.block = PassedPyramid()
        self.b = nn.Linear(12, 6)

    def forward(self, x):
        y = torch.tanh(x)
        self.block.build_levels(x)
        for step in range(2):
            y = self.b(self.block.look_up(y, scale=step + 1.0))
        return y


class PassedPyramid(nn.Module):
    def __init__(self, levels=2):
        super().__init__()
        self.levels = levels
        self.a = nn.Linear(6, 6)
        self.maps = [torch.tensor(0)]

    def build_levels(self, x):
        x = self.a(x)
        self.maps = [x]
        for _ in range(self.levels - 1):
            x = x * 0.5
            self.maps.append(x)  # the next level

    def look_up(self, at, scale=1.0):
        found = []
        for level in self.maps:
            found.append(level * at * scale)
        return torch.cat(found, dim=-1)

    def forward(self, x):
        return self.a(x)


class PassedToForward(Two):
    def encode(self, x):
        self.hidden = self.a(x)
        return torch.relu(self.hidden)

    def forward(self, x):
        y = self.encode(x)
        return self.b(y) + self.hidden


class PassedTooLate(Two):
    """Flagged: the first pass reads what was there before."""

    def __init__(self):
        super().__init__()
        self.state = torch.ones(6)

    def update(self, x):
        self.state = self.a(x).mean(0)

    def forward(self, x):
        y = self.b(x) * self.state.detach()
        self.update(x)
        return y


class PassedSometimes(Two):
    """Flagged: only one way binds it."""

    def __init__(self):
        super().__init__()
        self.extra = torch.zeros(6)

    def prepare(self, x):
        self.extra = self.a(x)

    def forward(self, x):
        if x.shape[0] > 1:
            self.prepare(x)
        return self.b(x) + self.extra


class PassedByTwo(Two):
    """Flagged: two methods ask for it, each for its own."""

    def encode(self, x):
        self.code = self.a(x)

    def twice(self, x):
        self.encode(x)
        return self.code * 2

    def forward(self, x):
        y = self.twice(x)
        self.encode(y)
        return self.b(self.code)
