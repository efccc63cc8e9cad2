"""In: nothing. Out: the models of serial_torch.py in MindSpore; arguments make mistakes."""

import math

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn, ops
from mindspore.common.initializer import Uniform, initializer


class LSTMStep(nn.Cell):
    def __init__(self, features, hidden, order="ifgo", has_bias=True, one_bias=False):
        super().__init__()
        self.x2h = nn.Dense(features, 4 * hidden, has_bias=has_bias)
        self.h2h = nn.Dense(hidden, 4 * hidden, has_bias=has_bias and not one_bias)
        self.order = order

    def construct(self, x, h, c):
        one, two, three, four = ops.chunk(self.x2h(x) + self.h2h(h), 4, 1)
        if self.order == "ifgo":
            i, f, g, o = one, two, three, four
        else:
            i, g, f, o = one, two, three, four
        c = ops.sigmoid(f) * c + ops.sigmoid(i) * ops.tanh(g)
        return ops.sigmoid(o) * ops.tanh(c), c


class ForecastNet(nn.Cell):
    def __init__(self, order="ifgo", has_bias=True, first=False, one_bias=False):
        super().__init__()
        self.cell = LSTMStep(5, 12, order, has_bias, one_bias)
        self.linear = nn.Dense(12, 2)
        self.first = first

    def construct(self, series):
        h = ops.zeros((series.shape[1], 12), ms.float32)
        c = ops.zeros((series.shape[1], 12), ms.float32)
        for t in range(series.shape[0]):
            h, c = self.cell(series[t], h, c)
        return self.linear(c if self.first else h), h, c


class SpeakerNet(nn.Cell):
    """GRU by the formula; weights of one matrix for each gate."""

    def __init__(self, after=True, eps=1e-12, update=False):
        super().__init__()

        def matrix(n):
            return Parameter(initializer(Uniform(0.25), (16, n)))

        self.w_r, self.w_z, self.w_n = matrix(10), matrix(10), matrix(10)
        self.u_r, self.u_z, self.u_n = matrix(16), matrix(16), matrix(16)
        self.bw_r, self.bw_z, self.bw_n = (Parameter(ops.zeros((16,))) for _ in range(3))
        self.bu_r, self.bu_z, self.bu_n = (Parameter(ops.zeros((16,))) for _ in range(3))
        self.fc = nn.Dense(16, 8)
        self.norm = nn.BatchNorm1d(8)
        self.after, self.eps, self.update = after, eps, update

    def step(self, x, h):
        r = ops.sigmoid(x @ self.w_r.T + self.bw_r + h @ self.u_r.T + self.bu_r)
        z = ops.sigmoid(x @ self.w_z.T + self.bw_z + h @ self.u_z.T + self.bu_z)
        if self.after:
            n = ops.tanh(x @ self.w_n.T + self.bw_n + r * (h @ self.u_n.T + self.bu_n))
        else:
            n = ops.tanh(x @ self.w_n.T + self.bw_n + (r * h) @ self.u_n.T + self.bu_n)
        return z * n + (1 - z) * h if self.update else (1 - z) * n + z * h

    def construct(self, mel):
        h = ops.zeros((mel.shape[0], 16), ms.float32)
        total = ops.zeros((mel.shape[0], 16), ms.float32)
        for t in range(mel.shape[1]):
            h = self.step(mel[:, t], h)
            total = total + h
        e = self.norm(self.fc(total / mel.shape[1]))
        e = e / ops.maximum(ops.norm(e, dim=-1, keepdim=True), Tensor(self.eps, ms.float32))
        return e, h.expand_dims(0)


class StackedNet(nn.Cell):
    def __init__(self, layers=(-2, -1), pool="max"):
        super().__init__()
        self.emb = nn.Embedding(25, 8, embedding_table=Uniform(1.0))
        self.lstm = nn.LSTM(8, 10, num_layers=2, batch_first=True, bidirectional=True)
        self.cls = nn.Dense(40, 3)
        self.layers, self.pool = layers, pool

    def construct(self, tokens):
        x, (h, _) = self.lstm(self.emb(tokens))
        pooled = ops.max(x, axis=1)[0] if self.pool == "max" else ops.mean(x, 1)
        return self.cls(ops.cat((h[self.layers[0]], h[self.layers[1]], pooled), -1))


class MaskedMeanNet(nn.Cell):
    def __init__(self, inclusive=False, by_all=False):
        super().__init__()
        self.table = Parameter(initializer("normal", (30, 12)), name="table")
        self.fc = nn.Dense(12, 4)
        self.inclusive, self.by_all = inclusive, by_all

    def construct(self, ids, lengths):
        at = ops.arange(ids.shape[1]).expand_dims(0)
        end = lengths.expand_dims(1)
        keep = at <= end if self.inclusive else at < end
        x = ops.one_hot(ids, 30, 1.0, 0.0).astype(ms.float32) @ self.table
        x = (x * keep.astype(ms.float32).expand_dims(-1)).sum(1)
        count = ops.maximum(end, 1).astype(ms.float32)
        return self.fc(x / (ids.shape[1] if self.by_all else count))


class BucketAttention(nn.Cell):
    def __init__(self, dim=16, heads=2, buckets=8, distance=20, top=1, sign=1, scaled=False):
        super().__init__()
        self.heads, self.top, self.sign, self.scaled = heads, top, sign, scaled
        self.buckets, self.distance = buckets, distance
        self.qkv = nn.Dense(dim, 3 * dim, has_bias=False)
        self.out = nn.Dense(dim, dim, has_bias=False)
        self.bias = nn.Embedding(buckets, heads)
        self.buckets_of = Tensor(self.bucket(64), ms.int32)

    def bucket(self, n):
        half = self.buckets // 2
        at = np.arange(n)
        position = self.sign * (at[None, :] - at[:, None])
        found = (position > 0) * half
        position = np.abs(position)
        exact = half // 2
        with np.errstate(divide="ignore"):
            large = np.log(position / exact) / math.log(self.distance / exact) * (half - exact)
        large = np.clip(exact + np.where(position, large, 0).astype(np.int32), 0, half - self.top)
        return found + np.where(position < exact, position, large)

    def construct(self, x):
        b, n, d = x.shape
        qkv = self.qkv(x).reshape((b, n, 3, self.heads, d // self.heads))
        q, k, v = ops.unbind(qkv, 2)
        scores = ops.matmul(q.swapaxes(1, 2), k.transpose(0, 2, 3, 1))
        if self.scaled:
            scores = scores / math.sqrt(d // self.heads)
        bias = ops.transpose(self.bias(self.buckets_of[:n, :n]), (2, 0, 1)).expand_dims(0)
        out = ops.matmul(ops.softmax(scores + bias), v.swapaxes(1, 2))
        return self.out(out.swapaxes(1, 2).reshape(b, n, d))


class EncoderNet(nn.Cell):
    def __init__(self, inverted=True, activation="relu", norm_first=False, pool_all=False):
        super().__init__()
        self.word_embedding = nn.Embedding(40, 16)
        self.segment_embedding = nn.Embedding(2, 16)
        self.encoder = nn.TransformerEncoderLayer(
            16, 4, 32, dropout=0.0, activation=activation, batch_first=True, norm_first=norm_first
        )
        self.dense = nn.Dense(16, 16)
        self.tanh = nn.Tanh()
        self.inverted, self.pool_all = inverted, pool_all

    def construct(self, input_ids, token_type_ids=None, attention_mask=None):
        x = self.word_embedding(input_ids)
        if token_type_ids is not None:
            x = x + self.segment_embedding(token_type_ids)
        padded = ops.logical_not(attention_mask) if self.inverted else attention_mask
        hidden = self.encoder(x, src_key_padding_mask=padded)
        weight = attention_mask.astype(ms.float32).expand_dims(-1)
        if self.pool_all:
            return self.tanh(self.dense(hidden.mean(1))), x
        return self.tanh(self.dense((hidden * weight).sum(1) / weight.sum(1))), x


class SinusoidalNet(nn.Cell):
    def __init__(self, vocab=20, dim=16, halves=False, scale=True, p=0.1, always=False):
        super().__init__()
        self.token = nn.Embedding(vocab, dim)
        self.drop = nn.Dropout(p=p)
        self.norm = nn.LayerNorm((dim,), epsilon=1e-5)
        rates = 1.0 / np.power(10000.0, np.arange(0, dim, 2) / dim)
        angles = np.arange(50)[:, None] * rates[None, :]
        both = [np.sin(angles), np.cos(angles)]
        table = np.concatenate(both, 1) if halves else np.stack(both, 2).reshape(50, dim)
        self.table = Tensor(table, ms.float32)
        self.factor = math.sqrt(dim) if scale else 1.0
        self.always, self.p = always, p

    def construct(self, ids):
        x = self.token(ids) * self.factor + self.table[: ids.shape[1]]
        x = ops.dropout(x, self.p, True) if self.always else self.drop(x)
        return self.norm(x)


class PointerNet(nn.Cell):
    def __init__(self, axis=1, of="scores"):
        super().__init__()
        self.w1 = nn.Dense(10, 12, has_bias=False)
        self.w2 = nn.Dense(8, 12)
        self.v = Parameter(initializer("normal", (12,)), name="v")
        self.axis, self.of = axis, of

    def construct(self, memory, query):
        u = ops.tanh(self.w1(memory) + self.w2(query)[:, None])
        scores = (u * self.v).sum(-1)
        best = ops.argmax(scores, 1) if self.of == "scores" else ops.argmin(scores, 1)
        return nn.LogSoftmax(self.axis)(scores), best


class GatedNet(nn.Cell):
    def __init__(self, factor=0.5, exchanged=False, causal=True):
        super().__init__()
        self.inp = nn.Conv1d(1, 6, 1, has_bias=True)
        self.gates = nn.CellList([
            nn.Conv1d(6, 12, 2, dilation=2**i, pad_mode="valid", has_bias=True) for i in range(3)
        ])  # fmt: skip
        self.mixes = nn.CellList([nn.Conv1d(6, 12, 1, has_bias=True) for _ in range(3)])
        self.outp = nn.Conv1d(6, 4, 1, has_bias=True)
        self.factor, self.exchanged, self.causal = factor, exchanged, causal

    def construct(self, x):
        x = self.inp(x)
        total = 0
        for i in range(3):
            pads = (2**i, 0) if self.causal else (0, 2**i)
            both = self.gates[i](ops.pad(x, pads))
            a, b = both[:, :6], both[:, 6:]
            if self.exchanged:
                a, b = b, a
            y = self.mixes[i](ops.tanh(a) * ops.sigmoid(b))
            x = (x + y[:, :6]) * self.factor**0.5
            total = total + y[:, 6:]
        return self.outp(ops.relu(total)).swapaxes(1, 2)
