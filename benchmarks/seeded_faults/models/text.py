"""In: tokens, or features of steps in time. Out: right models of sequences, to be spoilt."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class Attention(nn.Module):
    def __init__(self, width, heads, causal=True):
        super().__init__()
        self.heads, self.causal = heads, causal
        self.q = nn.Linear(width, width)
        self.k = nn.Linear(width, width)
        self.v = nn.Linear(width, width)
        self.out = nn.Linear(width, width)
        self.drop = nn.Dropout(0.1)
        self.register_buffer("mask", torch.tril(torch.ones(32, 32)).bool(), persistent=False)

    def forward(self, x):
        b, n, c = x.shape
        q = self.q(x).view(b, n, self.heads, c // self.heads).transpose(1, 2)
        k = self.k(x).view(b, n, self.heads, c // self.heads).transpose(1, 2)
        v = self.v(x).view(b, n, self.heads, c // self.heads).transpose(1, 2)
        score = q @ k.transpose(-2, -1) / math.sqrt(c // self.heads)
        if self.causal:
            score = score.masked_fill(~self.mask[:n, :n], -1e4)
        weight = self.drop(torch.softmax(score, dim=-1))
        return self.out((weight @ v).transpose(1, 2).reshape(b, n, c))


class Layer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attention = Attention(width, 4)
        self.norm2 = nn.LayerNorm(width)
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Decoder(nn.Module):
    def __init__(self, words=50, width=32):
        super().__init__()
        self.token = nn.Embedding(words, width)
        self.place = nn.Parameter(0.02 * torch.randn(1, 32, width))
        self.layers = nn.ModuleList([Layer(width) for _ in range(2)])
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, words, bias=False)

    def forward(self, tokens):
        x = self.token(tokens) + self.place[:, : tokens.shape[1]]
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(30, 12, padding_idx=0)
        self.drop = nn.Dropout(0.5)
        self.rnn = nn.LSTM(12, 10, num_layers=2, batch_first=True, bidirectional=True)
        self.fc = nn.Linear(20, 7)

    def forward(self, tokens):
        x, _ = self.rnn(self.drop(self.embed(tokens)))
        return F.log_softmax(self.fc(x), dim=-1)


class Forecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(6, 12, batch_first=True)
        self.query = nn.Linear(12, 12)
        self.key = nn.Linear(12, 12)
        self.fc = nn.Linear(24, 3)

    def forward(self, x):
        x = (x - x.mean(dim=1, keepdim=True)) / (x.std(dim=1, keepdim=True) + 1e-4)
        states, last = self.rnn(x)
        score = torch.einsum("bd,bnd->bn", self.query(last[-1]), self.key(states))
        context = torch.bmm(score.softmax(1).unsqueeze(1), states).squeeze(1)
        return self.fc(torch.cat([context, last[-1]], dim=1))


class RMSNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight


class Rotary(nn.Module):
    """Rotary positions, a gated layer and a norm without mean."""

    def __init__(self, width=16):
        super().__init__()
        inverse = 1.0 / 10000 ** (torch.arange(0, width, 2).float() / width)
        self.register_buffer("inverse", inverse)
        self.norm = RMSNorm(width)
        self.qk = nn.Linear(width, 2 * width, bias=False)
        self.gate = nn.Linear(width, 3 * width, bias=False)
        self.up = nn.Linear(width, 3 * width, bias=False)
        self.down = nn.Linear(3 * width, width, bias=False)

    def turn(self, x):
        angle = torch.outer(torch.arange(x.shape[1]).float(), self.inverse)
        cos, sin = angle.cos(), angle.sin()
        one, two = x.chunk(2, dim=-1)
        return torch.cat([one * cos - two * sin, one * sin + two * cos], dim=-1)

    def forward(self, x):
        h = self.norm(x)
        q, k = self.qk(h).chunk(2, dim=-1)
        score = self.turn(q) @ self.turn(k).transpose(1, 2)
        score = torch.where(score > 0, score, 0.1 * score)
        h = F.normalize(score, dim=-1) @ h
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


class Temporal(nn.Module):
    """Convolutions over time with growing dilation, and a layer norm written out."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv1d(4, 8, 3, padding=1)
        self.conv2 = nn.Conv1d(8, 8, 3, padding=4, dilation=4)
        self.norm = nn.BatchNorm1d(8)
        self.pool = nn.MaxPool1d(2)
        self.scale = nn.Parameter(torch.ones(8, 1))
        self.fc = nn.Linear(8, 3)

    def forward(self, x):
        x = torch.relu(self.conv1(x))
        x = self.norm(self.conv2(x)) + x
        mean = x.mean(1, keepdim=True)
        var = x.var(1, unbiased=False, keepdim=True)
        x = (x - mean) / torch.sqrt(var + 1e-5) * self.scale
        x = self.pool(x).cumsum(dim=2)
        return self.fc(x.max(dim=2).values)
