"""In: nothing. Out: models of sequences in torch, ported by hand in serial_ms.py."""

import math
from collections import OrderedDict, namedtuple

import torch
import torch.nn as nn
import torch.nn.functional as F

Output = namedtuple("Output", ["logits", "state"])


class Forecast(nn.Module):
    """An LSTM over (time, batch, feature); gives the last value and its state."""

    def __init__(self, features=5, hidden=12):
        super().__init__()
        self.rnn = nn.LSTM(features, hidden)
        self.head = nn.Linear(hidden, 2)

    def forward(self, series):
        out, (h, c) = self.rnn(series)
        return self.head(out[-1]), (h.squeeze(0), c.squeeze(0))


class Speaker(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(10, 16, num_layers=1, batch_first=True)
        self.embed = nn.Sequential(OrderedDict(fc=nn.Linear(16, 8), bn=nn.BatchNorm1d(8)))

    def forward(self, mel):
        seq, h = self.gru(mel)
        return Output(F.normalize(self.embed(seq.mean(1)), p=2, dim=-1), h)


class Stacked(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(25, 8)
        self.lstm = nn.LSTM(8, 10, num_layers=2, batch_first=True, bidirectional=True)
        self.cls = nn.Linear(40, 3)

    def forward(self, tokens):
        x, (h, _) = self.lstm(self.emb(tokens))
        return self.cls(torch.cat([h[-2], h[-1], x.max(dim=1).values], dim=-1))


class MaskedMean(nn.Module):
    """Sentences of different lengths: what lies behind the end does not count."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(30, 12)
        self.fc = nn.Linear(12, 4)

    def forward(self, ids, lengths):
        keep = torch.arange(ids.shape[1])[None, :] < lengths[:, None]
        x = self.table(ids) * keep.unsqueeze(-1)
        return self.fc(x.sum(1) / lengths.clamp(min=1).unsqueeze(1))


class RelativeAttention(nn.Module):
    """Self-attention with the buckets of T5."""

    def __init__(self, dim=16, heads=2, buckets=8, distance=20):
        super().__init__()
        self.heads, self.buckets, self.distance = heads, buckets, distance
        self.q = nn.Linear(dim, dim, bias=False)
        self.k = nn.Linear(dim, dim, bias=False)
        self.v = nn.Linear(dim, dim, bias=False)
        self.o = nn.Linear(dim, dim, bias=False)
        self.relative_attention_bias = nn.Embedding(buckets, heads)

    def bucket(self, position):
        half = self.buckets // 2
        found = (position > 0).long() * half
        position = position.abs()
        exact = half // 2
        large = (
            exact
            + (
                torch.log(position.float() / exact)
                / math.log(self.distance / exact)
                * (half - exact)
            ).long()
        )
        large = torch.min(large, torch.full_like(large, half - 1))
        return found + torch.where(position < exact, position, large)

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = (
            f(x).view(b, n, self.heads, -1).transpose(1, 2) for f in (self.q, self.k, self.v)
        )
        at = torch.arange(n)
        bias = self.relative_attention_bias(self.bucket(at[None, :] - at[:, None]))
        scores = q @ k.transpose(3, 2) + bias.permute(2, 0, 1).unsqueeze(0)
        out = F.softmax(scores.float(), dim=-1).type_as(scores) @ v
        return self.o(out.transpose(1, 2).contiguous().view(b, n, d))


class Encoder(nn.Module):
    """Keywords in, a dictionary out, as in the libraries of language models."""

    def __init__(self):
        super().__init__()
        self.embeddings = nn.ModuleDict(
            {"word": nn.Embedding(40, 16), "segment": nn.Embedding(2, 16)}
        )
        self.layer = nn.TransformerEncoderLayer(16, 4, 32, dropout=0.0, batch_first=True)
        self.pooler = nn.Linear(16, 16)

    def forward(self, input_ids, attention_mask=None, token_type_ids=None):
        x = self.embeddings["word"](input_ids)
        if token_type_ids is not None:
            x = x + self.embeddings["segment"](token_type_ids)
        hidden = self.layer(x, src_key_padding_mask=~attention_mask)
        weight = attention_mask.unsqueeze(-1).float()
        pooled = (hidden * weight).sum(1) / weight.sum(1)
        return {"pooler_output": torch.tanh(self.pooler(pooled)), "embedding": x}


class Sinusoidal(nn.Module):
    def __init__(self, vocab=20, dim=16):
        super().__init__()
        self.dim = dim
        self.embed = nn.Embedding(vocab, dim)
        self.dropout = nn.Dropout(0.1)
        self.ln = nn.LayerNorm(dim)
        pe = torch.zeros(50, dim)
        position = torch.arange(50).unsqueeze(1)
        div = torch.exp(torch.arange(0, dim, 2) * (-math.log(10000.0) / dim))
        pe[:, 0::2], pe[:, 1::2] = torch.sin(position * div), torch.cos(position * div)
        self.register_buffer("pe", pe)

    def forward(self, ids):
        x = self.embed(ids) * math.sqrt(self.dim) + self.pe[: ids.size(1)]
        return self.ln(self.dropout(x))


class Pointer(nn.Module):
    """Additive attention; answers the scores, and where the largest is."""

    def __init__(self):
        super().__init__()
        self.query = nn.Linear(8, 12)
        self.memory = nn.Linear(10, 12, bias=False)
        self.v = nn.Linear(12, 1, bias=False)

    def forward(self, memory, query):
        scores = self.v(torch.tanh(self.memory(memory) + self.query(query).unsqueeze(1)))
        scores = scores.squeeze(-1)
        return F.log_softmax(scores, dim=1), scores.argmax(dim=1)


class Gated(nn.Module):
    """Gated convolutions over time (WaveNet), with residual and skip."""

    def __init__(self, channels=6):
        super().__init__()
        self.start = nn.Conv1d(1, channels, 1)
        self.filters = nn.ModuleList([nn.Conv1d(channels, 2 * channels, 2, dilation=2**i)
                                      for i in range(3)])  # fmt: skip
        self.outs = nn.ModuleList([nn.Conv1d(channels, 2 * channels, 1) for _ in range(3)])
        self.end = nn.Conv1d(channels, 4, 1)

    def forward(self, x):
        x = self.start(x)
        skips = 0
        for i, (conv, out) in enumerate(zip(self.filters, self.outs, strict=True)):
            a, b = conv(F.pad(x, (2**i, 0))).chunk(2, dim=1)
            residual, skip = out(torch.tanh(a) * torch.sigmoid(b)).chunk(2, dim=1)
            x = (x + residual) * math.sqrt(0.5)
            skips = skips + skip
        return self.end(F.relu(skips)).transpose(1, 2)
