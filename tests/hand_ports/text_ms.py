"""In: nothing. Out: the models of text in MindSpore, by hand; arguments make the usual mistakes."""

import math
from itertools import pairwise

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn, ops
from mindspore.common.initializer import Normal, initializer


class MLPNet(nn.Cell):
    def __init__(self, p=0.2, axis=1, act="tanh"):
        super().__init__()
        self.fc1 = nn.Dense(20, 64)
        self.bn = nn.BatchNorm1d(64)
        self.relu = nn.ReLU()
        self.drop = nn.Dropout(p=p)
        self.fc2 = nn.Dense(64, 64, activation=act)
        self.fc3 = nn.Dense(64, 3)
        self.axis = axis

    def construct(self, x):
        x = self.drop(self.relu(self.bn(self.fc1(x))))
        return ops.log_softmax(self.fc3(self.fc2(x)), axis=self.axis)


class SelfAttention(nn.Cell):
    def __init__(self, hidden, heads, scale=True):
        super().__init__()
        self.heads, self.size = heads, hidden // heads
        self.query_layer = nn.Dense(hidden, hidden)
        self.key_layer = nn.Dense(hidden, hidden)
        self.value_layer = nn.Dense(hidden, hidden)
        self.dropout = nn.Dropout(p=0.1)
        self.softmax = nn.Softmax()
        self.scale = 1.0 / math.sqrt(self.size) if scale else 1.0
        self.matmul = ops.BatchMatMul()
        self.matmul_t = ops.BatchMatMul(transpose_b=True)

    def heads_of(self, x):
        b, t, _ = x.shape
        return ops.transpose(ops.reshape(x, (b, t, self.heads, self.size)), (0, 2, 1, 3))

    def construct(self, x, attention_mask):
        q = self.heads_of(self.query_layer(x))
        k = self.heads_of(self.key_layer(x))
        v = self.heads_of(self.value_layer(x))
        scores = self.matmul_t(q, k) * self.scale + attention_mask
        context = self.matmul(self.dropout(self.softmax(scores)), v)
        return ops.reshape(ops.transpose(context, (0, 2, 1, 3)), x.shape)


class EncoderLayer(nn.Cell):
    def __init__(self, hidden, heads, inner, eps=1e-12, gelu="none", scale=True):
        super().__init__()
        self.attention = SelfAttention(hidden, heads, scale)
        self.attention_dense = nn.Dense(hidden, hidden)
        self.attention_norm = nn.LayerNorm([hidden], epsilon=eps)
        self.intermediate = nn.Dense(hidden, inner)
        self.output = nn.Dense(inner, hidden)
        self.output_norm = nn.LayerNorm([hidden], epsilon=eps)
        self.dropout = nn.Dropout(p=0.1)
        self.gelu = gelu

    def construct(self, x, mask):
        a = self.attention_dense(self.attention(x, mask))
        x = self.attention_norm(x + self.dropout(a))
        y = self.output(ops.gelu(self.intermediate(x), approximate=self.gelu))
        return self.output_norm(x + self.dropout(y))


class BertModel(nn.Cell):
    def __init__(self, vocab=50, hidden=32, layers=2, heads=4, eps=1e-12, gelu="none",
                 scale=True, masked=True):  # fmt: skip
        super().__init__()
        self.word_embeddings = nn.Embedding(vocab, hidden, padding_idx=0)
        self.position_embeddings = nn.Embedding(32, hidden)
        self.layernorm = nn.LayerNorm([hidden], epsilon=1e-12)
        self.layers = nn.CellList(
            [EncoderLayer(hidden, heads, 64, eps, gelu, scale) for _ in range(layers)]
        )
        self.pooler_dense = nn.Dense(hidden, hidden, activation="tanh")
        self.masked = masked

    def construct(self, input_ids):
        mask = ops.cast(ops.equal(input_ids, 0), ms.float32)[:, None, None, :] * -10000.0
        if not self.masked:
            mask = mask * 0
        positions = ops.arange(input_ids.shape[1])
        x = self.word_embeddings(input_ids) + self.position_embeddings(positions)
        x = self.layernorm(x)
        for layer in self.layers:
            x = layer(x, mask)
        return x, self.pooler_dense(x[:, 0])


class CausalSelfAttention(nn.Cell):
    def __init__(self, dim, heads, length, strict=False):
        super().__init__()
        self.heads = heads
        self.attn = nn.Dense(dim, 3 * dim)
        self.proj = nn.Dense(dim, dim)
        self.mask = Tensor(np.tril(np.ones((length, length)), -1 if strict else 0), ms.float32)

    def construct(self, x):
        B, T, C = x.shape
        q, k, v = ops.chunk(self.attn(x), 3, axis=2)
        q = q.reshape(B, T, self.heads, C // self.heads).swapaxes(1, 2)
        k = k.reshape(B, T, self.heads, C // self.heads).swapaxes(1, 2)
        v = v.reshape(B, T, self.heads, C // self.heads).swapaxes(1, 2)
        att = ops.matmul(q, k.swapaxes(-1, -2)) / math.sqrt(C // self.heads)
        att = ops.masked_fill(att, self.mask[:T, :T] == 0, -1e9)
        y = ops.matmul(ops.softmax(att, axis=-1), v)
        return self.proj(y.swapaxes(1, 2).reshape(B, T, C))


class Block(nn.Cell):
    def __init__(self, dim, heads, length, eps=1e-5, strict=False):
        super().__init__()
        self.norm1 = nn.LayerNorm((dim,), epsilon=eps)
        self.attn = CausalSelfAttention(dim, heads, length, strict)
        self.norm2 = nn.LayerNorm((dim,), epsilon=eps)
        self.mlp = nn.SequentialCell(
            nn.Dense(dim, 4 * dim), nn.GELU(approximate=True), nn.Dense(4 * dim, dim)
        )

    def construct(self, x):
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class GPTPort(nn.Cell):
    def __init__(self, vocab=40, dim=32, heads=4, length=16, eps=1e-5, tied=True, strict=False,
                 shift=0):  # fmt: skip
        super().__init__()
        self.token_embedding = nn.Embedding(vocab, dim)
        self.position_embedding = nn.Embedding(length, dim)
        self.blocks = nn.CellList([Block(dim, heads, length, eps, strict) for _ in range(2)])
        self.norm = nn.LayerNorm((dim,), epsilon=1e-5)
        self.tied = tied
        self.shift = shift
        if not tied:
            self.head = nn.Dense(dim, vocab, has_bias=False)

    def construct(self, idx):
        pos = ops.arange(idx.shape[1]) + self.shift
        x = self.token_embedding(idx) + self.position_embedding(pos)
        for block in self.blocks:
            x = block(x)
        x = self.norm(x)
        if self.tied:
            return ops.matmul(x, self.token_embedding.embedding_table.T)
        return self.head(x)


class Tagger(nn.Cell):
    def __init__(self, vocab=30, emb=16, hidden=24, tags=5, dropout=0.0, bidirectional=True):
        super().__init__()
        self.embedding = nn.Embedding(vocab, emb)
        self.rnn = nn.LSTM(emb, hidden, num_layers=2, batch_first=True,
                           bidirectional=bidirectional, dropout=dropout)  # fmt: skip
        self.dense = nn.Dense(2 * hidden, tags)

    def construct(self, tokens):
        x, _ = self.rnn(self.embedding(tokens))
        return ops.log_softmax(self.dense(x), -1)


class GRUNet(nn.Cell):
    """The recurrence is written out with a cell."""

    def __init__(self, last=True):
        super().__init__()
        self.embedding = nn.Embedding(20, 12)
        self.cell = nn.GRUCell(12, 16)
        self.out = nn.Dense(16, 2)
        self.last = last

    def construct(self, x):
        e = self.embedding(x)
        h = ops.zeros((x.shape[0], 16), ms.float32)
        total = h
        for t in range(x.shape[1]):
            h = self.cell(e[:, t], h)
            total = total + h
        return self.out(h if self.last else total / x.shape[1])


class DeepFMPort(nn.Cell):
    """Tables as raw parameters, the deep part as matrices that lie the other way."""

    def __init__(self, fields=6, features=60, k=8, half=0.5, keep_prob=0.5, stopped=False):
        super().__init__()
        self.fm_w = Parameter(initializer(Normal(0.1), (features, 1)), name="fm_w")
        self.fm_b = Parameter(initializer("zeros", (1,)), name="fm_b")
        self.table = Parameter(initializer(Normal(0.1), (features, k)), name="table")
        sizes = [fields * k, 32, 32, 1]
        self.ws, self.bs = [], []
        for number, (one, other) in enumerate(pairwise(sizes)):
            w = Parameter(initializer(Normal(0.1), (one, other)), name=f"w{number}")
            b = Parameter(initializer("zeros", (other,)), name=f"b{number}")
            self.ws.append(w)
            self.bs.append(b)
        self.ws, self.bs = ms.ParameterTuple(self.ws), ms.ParameterTuple(self.bs)
        self.dropout = nn.Dropout(p=1 - keep_prob)
        self.fields, self.k, self.half, self.stopped = fields, k, half, stopped

    def construct(self, x):
        first = ops.gather(self.fm_w, x, 0).sum(1) + self.fm_b
        e = ops.gather(self.table, x, 0)
        pairs = ops.square(e.sum(1)) - ops.square(e).sum(1)
        second = self.half * pairs.sum(1).reshape(-1, 1)
        deep = e.reshape(-1, self.fields * self.k)
        if self.stopped:
            deep = ops.stop_gradient(deep)
        deep = self.dropout(ops.relu(ops.matmul(deep, self.ws[0]) + self.bs[0]))
        deep = self.dropout(ops.relu(ops.matmul(deep, self.ws[1]) + self.bs[1]))
        deep = ops.matmul(deep, self.ws[2]) + self.bs[2]
        return ops.sigmoid(first + second + deep).squeeze(1)


class SplitAttention(nn.Cell):
    def __init__(self, dim=32, heads=4, bias=True, swapped=False):
        super().__init__()
        self.heads, self.swapped = heads, swapped
        self.wq = nn.Dense(dim, dim, has_bias=bias)
        self.wk = nn.Dense(dim, dim, has_bias=bias)
        self.wv = nn.Dense(dim, dim, has_bias=bias)
        self.wo = nn.Dense(dim, dim)
        self.ln = nn.LayerNorm((dim,), epsilon=1e-5)

    def split(self, x):
        b, t, c = x.shape
        return x.reshape(b, t, self.heads, c // self.heads).transpose(0, 2, 1, 3)

    def construct(self, x):
        q, k, v = self.split(self.wq(x)), self.split(self.wk(x)), self.split(self.wv(x))
        scores = ops.matmul(q, k.transpose(0, 1, 3, 2)) / (q.shape[-1] ** 0.5)
        y = ops.matmul(ops.softmax(scores, 2 if self.swapped else -1), v)
        return self.ln(x + self.wo(y.transpose(0, 2, 1, 3).reshape(x.shape)))


class TextCNNPort(nn.Cell):
    def __init__(self, pool="max"):
        super().__init__()
        self.embedding = nn.Embedding(40, 16)
        self.conv3 = nn.Conv2d(16, 8, (1, 3), pad_mode="valid", has_bias=True)
        self.conv4 = nn.Conv2d(16, 8, (1, 4), pad_mode="valid", has_bias=True)
        self.conv5 = nn.Conv2d(16, 8, (1, 5), pad_mode="valid", has_bias=True)
        self.reduce = ops.ReduceMax() if pool == "max" else ops.ReduceMean()
        self.fc = nn.Dense(24, 3)

    def construct(self, x):
        x = self.embedding(x).swapaxes(1, 2).expand_dims(2)
        parts = []
        for conv in (self.conv3, self.conv4, self.conv5):
            parts.append(self.reduce(ops.relu(conv(x)), (2, 3)))
        return self.fc(ops.concat(parts, 1))


class Mixer(nn.Cell):
    def __init__(self, dim=16, length=12, base=10000.0, eps=1e-6, beside=False):
        super().__init__()
        self.w1 = Parameter(initializer(Normal(0.1), (dim, dim)), name="w1")
        self.w2 = Parameter(initializer(Normal(0.1), (dim, dim)), name="w2")
        self.w3 = Parameter(initializer(Normal(0.1), (dim, dim)), name="w3")
        self.gain = Parameter(Tensor(np.ones(dim), ms.float32), name="gain")
        pos = np.arange(length)[:, None]
        div = np.exp(np.arange(0, dim, 2) * (-math.log(base) / dim))
        table = np.zeros((length, dim))
        table[:, 0::2], table[:, 1::2] = np.sin(pos * div), np.cos(pos * div)
        self.table = Tensor(table, ms.float32)
        self.eps, self.beside = eps, beside

    def construct(self, x):
        x = x + self.table[: x.shape[1]]
        y = x * ops.rsqrt(ops.mean(x * x, -1, True) + self.eps) * self.gain
        gate = ops.matmul(y, self.w1)
        gate = gate * ops.sigmoid(gate)
        y = gate + ops.matmul(y, self.w3) if self.beside else gate * ops.matmul(y, self.w3)
        return x + ops.matmul(y, self.w2)


class BatchFirst(nn.Cell):
    def __init__(self, p=0.4):
        super().__init__()
        self.emb = nn.Embedding(20, 8)
        self.drop = nn.Dropout(p=p)
        self.enc = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
        self.fc = nn.Dense(8, 3)

    def construct(self, x):
        return self.fc(self.enc(self.drop(self.emb(x))).mean(1))


class WrittenOut(nn.Cell):
    """The gates of an LSTM as four raw parameters that lie the other way."""

    def __init__(self, forget=0.0):
        super().__init__()
        self.wx = Parameter(Tensor(np.random.randn(8, 48), ms.float32))
        self.wh = Parameter(Tensor(np.random.randn(12, 48), ms.float32))
        self.bx = Parameter(Tensor(np.zeros(48), ms.float32))
        self.bh = Parameter(Tensor(np.zeros(48), ms.float32))
        self.out = nn.Dense(12, 2)
        self.forget = forget

    def construct(self, x):
        h = ops.zeros((x.shape[1], 12), ms.float32)
        c = h
        for t in range(x.shape[0]):
            gates = ops.matmul(x[t], self.wx) + self.bx + ops.matmul(h, self.wh) + self.bh
            i, f, n, o = ops.split(gates, 12, axis=1)
            c = ops.sigmoid(f + self.forget) * c + ops.sigmoid(i) * ops.tanh(n)
            h = ops.sigmoid(o) * ops.tanh(c)
        return self.out(h)


class FusedAttention(nn.Cell):
    def __init__(self, exact=True):
        super().__init__()
        self.qkv = nn.Dense(8, 24)
        self.norm = nn.LayerNorm((8,), epsilon=1e-5)
        self.exact = exact

    def construct(self, x, mask):
        q, k, v = ops.split(self.qkv(x), 8, axis=2)
        s = ops.bmm(q, k.swapaxes(1, 2)) * (1 / 8**0.5)
        s = ops.masked_fill(s, mask.expand_dims(1), -1e9)
        e = ops.exp(s - s.max(-1, keepdims=True))
        y = ops.bmm(e / e.sum(-1, keepdims=True), v)
        y = 0.5 * y * (1 + ops.erf(y / 2**0.5)) if self.exact else ops.gelu(y, "tanh")
        return self.norm(y)


class ListOfCells(nn.Cell):
    """Cells in a plain list are nobody's: their weights are neither found nor trained."""

    def __init__(self, listed=True):
        super().__init__()
        cells = [nn.Dense(6, 6) for _ in range(2)]
        self.hidden = cells if listed else nn.CellList(cells)
        self.out = nn.Dense(6, 2)

    def construct(self, x):
        for cell in self.hidden:
            x = ops.relu(cell(x))
        x = self.out(x)
        return x, ops.Argmax()(x)
