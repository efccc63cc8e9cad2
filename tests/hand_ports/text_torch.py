"""In: nothing. Out: models of text and tables in PyTorch, as their authors publish them."""

import math

import torch
import torch.nn.functional as F
from torch import nn


class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(20, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Dropout(0.2),
            nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 3),
        )  # fmt: skip

    def forward(self, x):
        return F.log_softmax(self.layers(x), dim=1)


class BertSelfAttention(nn.Module):
    def __init__(self, hidden, heads):
        super().__init__()
        self.heads, self.size = heads, hidden // heads
        self.query = nn.Linear(hidden, hidden)
        self.key = nn.Linear(hidden, hidden)
        self.value = nn.Linear(hidden, hidden)
        self.dropout = nn.Dropout(0.1)

    def split(self, x):
        return x.view(*x.shape[:2], self.heads, self.size).permute(0, 2, 1, 3)

    def forward(self, x, mask):
        q, k, v = self.split(self.query(x)), self.split(self.key(x)), self.split(self.value(x))
        scores = q @ k.transpose(-1, -2) / math.sqrt(self.size) + mask
        probs = self.dropout(F.softmax(scores, dim=-1))
        return (probs @ v).permute(0, 2, 1, 3).reshape(x.shape)


class BertLayer(nn.Module):
    def __init__(self, hidden, heads, inner):
        super().__init__()
        self.self = BertSelfAttention(hidden, heads)
        self.output = nn.Linear(hidden, hidden)
        self.ln1 = nn.LayerNorm(hidden, eps=1e-12)
        self.inter = nn.Linear(hidden, inner)
        self.out = nn.Linear(inner, hidden)
        self.ln2 = nn.LayerNorm(hidden, eps=1e-12)
        self.dropout = nn.Dropout(0.1)

    def forward(self, x, mask):
        x = self.ln1(x + self.dropout(self.output(self.self(x, mask))))
        return self.ln2(x + self.dropout(self.out(F.gelu(self.inter(x)))))


class Bert(nn.Module):
    def __init__(self, vocab=50, hidden=32, layers=2, heads=4):
        super().__init__()
        self.word = nn.Embedding(vocab, hidden, padding_idx=0)
        self.position = nn.Embedding(32, hidden)
        self.register_buffer("position_ids", torch.arange(32).unsqueeze(0))
        self.ln = nn.LayerNorm(hidden, eps=1e-12)
        self.encoder = nn.ModuleList([BertLayer(hidden, heads, 64) for _ in range(layers)])
        self.pooler = nn.Linear(hidden, hidden)

    def forward(self, ids):
        mask = (ids == 0)[:, None, None, :].float() * -10000.0
        x = self.word(ids) + self.position(self.position_ids[:, : ids.shape[1]])
        x = self.ln(x)
        for layer in self.encoder:
            x = layer(x, mask)
        return {"last": x, "pooled": torch.tanh(self.pooler(x[:, 0]))}


class GPTAttention(nn.Module):
    def __init__(self, dim, heads, length):
        super().__init__()
        self.heads = heads
        self.c_attn = nn.Linear(dim, 3 * dim)
        self.c_proj = nn.Linear(dim, dim)
        mask = torch.tril(torch.ones(length, length)).view(1, 1, length, length)
        self.register_buffer("bias", mask)

    def forward(self, x):
        B, T, C = x.size()
        q, k, v = self.c_attn(x).split(C, dim=2)
        q, k, v = (t.view(B, T, self.heads, C // self.heads).transpose(1, 2) for t in (q, k, v))
        att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        att = att.masked_fill(self.bias[:, :, :T, :T] == 0, float("-inf"))
        y = F.softmax(att, dim=-1) @ v
        return self.c_proj(y.transpose(1, 2).contiguous().view(B, T, C))


class GPTBlock(nn.Module):
    def __init__(self, dim, heads, length):
        super().__init__()
        self.ln_1 = nn.LayerNorm(dim)
        self.attn = GPTAttention(dim, heads, length)
        self.ln_2 = nn.LayerNorm(dim)
        self.mlp = nn.ModuleDict(
            {"c_fc": nn.Linear(dim, 4 * dim), "c_proj": nn.Linear(4 * dim, dim),
             "act": nn.GELU(approximate="tanh")}
        )  # fmt: skip

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        m = self.mlp
        return x + m["c_proj"](m["act"](m["c_fc"](self.ln_2(x))))


class GPT(nn.Module):
    def __init__(self, vocab=40, dim=32, heads=4, length=16):
        super().__init__()
        self.wte = nn.Embedding(vocab, dim)
        self.wpe = nn.Embedding(length, dim)
        self.h = nn.ModuleList([GPTBlock(dim, heads, length) for _ in range(2)])
        self.ln_f = nn.LayerNorm(dim)
        self.lm_head = nn.Linear(dim, vocab, bias=False)
        self.lm_head.weight = self.wte.weight

    def forward(self, idx):
        pos = torch.arange(idx.shape[1])
        x = self.wte(idx) + self.wpe(pos)
        for block in self.h:
            x = block(x)
        return self.lm_head(self.ln_f(x))


class LSTMTagger(nn.Module):
    def __init__(self, vocab=30, emb=16, hidden=24, tags=5, dropout=0.0):
        super().__init__()
        self.word_embeddings = nn.Embedding(vocab, emb)
        self.lstm = nn.LSTM(emb, hidden, 2, batch_first=True, bidirectional=True, dropout=dropout)
        self.hidden2tag = nn.Linear(2 * hidden, tags)

    def forward(self, sentence):
        out, _ = self.lstm(self.word_embeddings(sentence))
        return F.log_softmax(self.hidden2tag(out), dim=-1)


class GRUEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(20, 12)
        self.gru = nn.GRU(12, 16, batch_first=True)
        self.fc = nn.Linear(16, 2)

    def forward(self, x):
        _, h = self.gru(self.embedding(x))
        return self.fc(h[-1])


class DeepFM(nn.Module):
    def __init__(self, fields=6, features=60, k=8):
        super().__init__()
        self.linear = nn.Embedding(features, 1)
        self.bias = nn.Parameter(torch.zeros(1))
        self.embedding = nn.Embedding(features, k)
        self.mlp = nn.Sequential(
            nn.Linear(fields * k, 32), nn.ReLU(), nn.Dropout(0.5),
            nn.Linear(32, 32), nn.ReLU(), nn.Dropout(0.5), nn.Linear(32, 1),
        )  # fmt: skip

    def forward(self, x):
        first = self.linear(x).sum(1) + self.bias
        e = self.embedding(x)
        second = 0.5 * (e.sum(1) ** 2 - (e**2).sum(1)).sum(1, keepdim=True)
        return torch.sigmoid((first + second + self.mlp(e.flatten(1))).squeeze(1))


class TorchAttention(nn.Module):
    def __init__(self, dim=32, heads=4):
        super().__init__()
        self.self_attn = nn.MultiheadAttention(dim, heads, batch_first=True)
        self.norm = nn.LayerNorm(dim)

    def forward(self, x):
        return self.norm(x + self.self_attn(x, x, x, need_weights=False)[0])


class TextCNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(40, 16)
        self.convs = nn.ModuleList([nn.Conv1d(16, 8, k) for k in (3, 4, 5)])
        self.fc = nn.Linear(24, 3)

    def forward(self, x):
        x = self.emb(x).transpose(1, 2)
        x = torch.cat([F.relu(conv(x)).max(dim=2)[0] for conv in self.convs], 1)
        return self.fc(x)


class PositionalMixer(nn.Module):
    """A sinusoidal table, a squeeze of raw matrices, RMS norm and a SwiGLU."""

    def __init__(self, dim=16, length=12):
        super().__init__()
        self.w1 = nn.Linear(dim, dim, bias=False)
        self.w2 = nn.Linear(dim, dim, bias=False)
        self.w3 = nn.Linear(dim, dim, bias=False)
        self.g = nn.Parameter(torch.ones(dim))
        pe = torch.zeros(length, dim)
        pos = torch.arange(length).unsqueeze(1).float()
        div = torch.exp(torch.arange(0, dim, 2).float() * (-math.log(10000.0) / dim))
        pe[:, 0::2], pe[:, 1::2] = torch.sin(pos * div), torch.cos(pos * div)
        self.register_buffer("pe", pe.unsqueeze(0))

    def forward(self, x):
        x = x + self.pe[:, : x.size(1)]
        y = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.g
        return x + self.w2(F.silu(self.w1(y)) * self.w3(y))


class SequenceFirst(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(20, 8)
        self.drop = nn.Dropout(0.4)
        self.enc = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0)
        self.fc = nn.Linear(8, 3)

    def forward(self, x):
        x = self.drop(self.emb(x).transpose(0, 1))
        return self.fc(self.enc(x).mean(0))


class LastState(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(8, 12)
        self.fc = nn.Linear(12, 2)

    def forward(self, x):
        _, (h, _) = self.rnn(x)
        return self.fc(h.squeeze(0))


class MaskedAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q = nn.Linear(8, 8)
        self.k = nn.Linear(8, 8)
        self.v = nn.Linear(8, 8)
        self.act = nn.GELU()
        self.ln = nn.LayerNorm(8)

    def forward(self, x, mask):
        s = self.q(x) @ self.k(x).transpose(1, 2) / 8**0.5
        s = s.masked_fill(mask.unsqueeze(1), -1e9)
        return self.ln(self.act(s.softmax(-1) @ self.v(x)))


class ModuleList(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.ModuleList([nn.Linear(6, 6) for _ in range(2)])
        self.out = nn.Linear(6, 2)

    def forward(self, x):
        for layer in self.hidden:
            x = torch.relu(layer(x))
        x = self.out(x)
        return x, x.argmax(-1)
