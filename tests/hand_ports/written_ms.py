"""In: nothing. Out: ports that write layers out by hand; arguments make the usual mistakes."""

import mindspore as ms
import mindspore.numpy as mnp
import numpy as np
from mindspore import Parameter, Tensor, nn, ops
from mindspore.common.initializer import HeUniform, Normal, XavierUniform, initializer


class LayerNorm(nn.Cell):
    def __init__(self, dim, ddof=0, inside=True):
        super().__init__()
        self.weight = Parameter(ops.ones((dim,), ms.float32), name="weight")
        self.bias = Parameter(ops.zeros((dim,), ms.float32), name="bias")
        self.ddof, self.inside = ddof, inside

    def construct(self, x):
        mean = x.mean(axis=-1, keep_dims=True)
        var = ops.var(x, -1, self.ddof, True)
        scale = ops.sqrt(var + 1e-5) if self.inside else ops.sqrt(var) + 1e-5
        return (x - mean) / scale * self.weight + self.bias


class Block(nn.Cell):
    def __init__(self, dim=24, heads=3, ddof=0, inside=True, order="3hd", scaled=True, swap=False):
        super().__init__()
        self.heads, self.order, self.swap = heads, order, swap
        self.ln_attn = LayerNorm(dim, ddof, inside)
        self.ln_mlp = LayerNorm(dim)
        self.to_qkv = nn.Dense(dim, dim * 3)
        self.to_out = nn.Dense(dim, dim)
        self.mlp = nn.SequentialCell(nn.Dense(dim, 48), nn.GELU(False), nn.Dense(48, dim))
        self.scale = (dim // heads) ** -0.5 if scaled else 1.0

    def attend(self, x):
        b, n, c = x.shape
        qkv = self.to_qkv(x)
        if self.order == "3hd":
            qkv = qkv.reshape(b, n, 3, self.heads, c // self.heads).transpose(2, 0, 3, 1, 4)
        else:
            qkv = qkv.reshape(b, n, self.heads, 3, c // self.heads).transpose(3, 0, 2, 1, 4)
        q, k, v = qkv[0], qkv[1], qkv[2]
        weights = ops.softmax(ops.matmul(q, k.transpose(0, 1, 3, 2)) * self.scale, axis=-1)
        return self.to_out(ops.matmul(weights, v).transpose(0, 2, 1, 3).reshape(b, n, c))

    def construct(self, x):
        y = self.ln_attn(x)
        x = (y if self.swap else x) + self.attend(y)
        return x + self.mlp(self.ln_mlp(x))


class WindowAttn(nn.Cell):
    def __init__(self, dim=16, window=(2, 3), heads=2, exchanged=False, axis=-1):
        super().__init__()
        self.heads, self.axis = heads, axis
        h, w = window
        self.bias_table = Parameter(
            initializer(Normal(0.02), ((2 * h - 1) * (2 * w - 1), heads)), name="bias_table"
        )
        rows, cols = np.meshgrid(np.arange(h), np.arange(w), indexing="ij")
        rows, cols = rows.reshape(-1), cols.reshape(-1)
        one, two = rows[:, None] - rows[None] + h - 1, cols[:, None] - cols[None] + w - 1
        index = two * (2 * h - 1) + one if exchanged else one * (2 * w - 1) + two
        self.index = Tensor(index.reshape(-1), ms.int32)
        self.q = nn.Dense(dim, dim)
        self.k = nn.Dense(dim, dim)
        self.v = nn.Dense(dim, dim)
        self.proj = nn.Dense(dim, dim)

    def split(self, x):
        b, n, c = x.shape
        return ops.transpose(ops.reshape(x, (b, n, self.heads, c // self.heads)), (0, 2, 1, 3))

    def construct(self, x):
        b, n, c = x.shape
        q, k, v = self.split(self.q(x)), self.split(self.k(x)), self.split(self.v(x))
        scores = ops.bmm(q, ops.swapaxes(k, -1, -2)) / ((c // self.heads) ** 0.5)
        bias = ops.gather(self.bias_table, self.index, 0).reshape(n, n, self.heads)
        scores = ops.softmax(scores + bias.transpose(2, 0, 1).expand_dims(0), self.axis)
        return self.proj(ops.bmm(scores, v).swapaxes(1, 2).reshape(b, n, c))


class Regressor(nn.Cell):
    """Weights as matrices of (in, out) and nothing but operations."""

    def __init__(self, last_act=True, sizes=(13, 32, 32, 1)):
        super().__init__()
        self.w0 = Parameter(initializer(XavierUniform(), (sizes[0], sizes[1])), name="w0")
        self.b0 = Parameter(initializer("zeros", (sizes[1],)), name="b0")
        self.w1 = Parameter(initializer(XavierUniform(), (sizes[1], sizes[2])), name="w1")
        self.b1 = Parameter(initializer("zeros", (sizes[2],)), name="b1")
        self.w2 = Parameter(initializer(XavierUniform(), (sizes[2], sizes[3])), name="w2")
        self.b2 = Parameter(initializer("zeros", (sizes[3],)), name="b2")
        self.last_act = last_act

    def construct(self, x):
        h = ops.softplus(ops.matmul(x, self.w0) + self.b0)
        h = ops.matmul(h, self.w1) + self.b1
        h = ops.softplus(h) if self.last_act else h
        return ops.squeeze(ops.matmul(h, self.w2) + self.b2, -1)


class Camera(nn.Cell):
    def __init__(self, axes=(0, 3, 1, 2), flat="chw", pad_mode="valid"):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 8, 3, stride=2, pad_mode=pad_mode, has_bias=True,
                               weight_init=HeUniform())  # fmt: skip
        self.conv2 = nn.Conv2d(8, 8, 3, pad_mode="same", has_bias=True, weight_init=HeUniform())
        self.fc = nn.Dense(8 * 7 * 5, 6)
        self.axes, self.flat = axes, flat

    def construct(self, images):
        x = ops.transpose(images, self.axes) / 255.0 - 0.5
        x = ops.relu(self.conv2(ops.relu(self.conv1(x))))
        if self.flat != "chw":
            x = x.transpose(0, 2, 3, 1)
        return self.fc(x.reshape(x.shape[0], -1))


class BatchNorm(nn.Cell):
    def __init__(self, channels, momentum=0.1, unbiased=True):
        super().__init__()
        self.gamma = Parameter(ops.ones((1, channels, 1, 1)), name="gamma")
        self.beta = Parameter(ops.zeros((1, channels, 1, 1)), name="beta")
        self.moving_mean = Parameter(ops.zeros((1, channels, 1, 1)), name="mean",
                                     requires_grad=False)  # fmt: skip
        self.moving_var = Parameter(ops.ones((1, channels, 1, 1)), name="variance",
                                    requires_grad=False)  # fmt: skip
        self.momentum, self.unbiased = momentum, unbiased

    def construct(self, x):
        mean, var = self.moving_mean, self.moving_var
        if self.training:
            mean = x.mean((0, 2, 3), keep_dims=True)
            var = ((x - mean) ** 2).mean((0, 2, 3), keep_dims=True)
            count = x.shape[0] * x.shape[2] * x.shape[3]
            factor = count / (count - 1) if self.unbiased else 1.0
            kept = 1 - self.momentum
            ops.assign(self.moving_mean, kept * self.moving_mean + self.momentum * mean)
            ops.assign(self.moving_var, kept * self.moving_var + self.momentum * var * factor)
        return (x - mean) * ops.rsqrt(var + 1e-5) * self.gamma + self.beta


class OwnNorms(nn.Cell):
    def __init__(self, momentum=0.2, unbiased=True):
        super().__init__()
        self.first = nn.Conv2d(3, 6, 3)
        self.norm_a = BatchNorm(6, momentum)
        self.second = nn.Conv2d(6, 4, 3)
        self.norm_b = BatchNorm(4, 0.1, unbiased)
        self.relu = nn.ReLU()

    def construct(self, x):
        x = self.relu(self.norm_a(self.first(x)))
        return self.relu(self.norm_b(self.second(x)))


class BitStemPort(nn.Cell):
    def __init__(self, ddof=0, interleaved=False):
        super().__init__()
        self.weight = Parameter(initializer(HeUniform(), (12, 3, 3, 3)), name="kernel")
        self.bias = Parameter(initializer("zeros", (12,)), name="bias")
        self.scale = Parameter(initializer("ones", (12,)), name="scale")
        self.shift = Parameter(initializer("zeros", (12,)), name="shift")
        self.head = nn.Conv2d(12, 5, 1, has_bias=True)
        self.ddof, self.interleaved = ddof, interleaved

    def norm(self, x):
        n, c, h, w = x.shape
        if self.interleaved:
            y = x.reshape(n, c // 4, 4, h, w).swapaxes(1, 2).reshape(n, 4, -1)
        else:
            y = x.reshape(n, 4, -1)
        y = (y - y.mean(-1, True)) / ops.sqrt(y.var(-1, 0, True) + 1e-5)
        if self.interleaved:
            y = y.reshape(n, 4, c // 4, h, w).swapaxes(1, 2)
        y = y.reshape(n, c, h, w)
        return y * self.scale.reshape(1, -1, 1, 1) + self.shift.reshape(1, -1, 1, 1)

    def construct(self, x):
        w = self.weight
        w = (w - w.mean((1, 2, 3), True)) / (ops.sqrt(w.var((1, 2, 3), self.ddof, True)) + 1e-5)
        x = ops.conv2d(x, w, self.bias, 1, "pad", 1)
        x = ops.max_pool2d(ops.relu(self.norm(x)), 2, 2)
        return self.head(x).mean((2, 3))


class Autoencoder(nn.Cell):
    def __init__(self, tied=True, biased=True):
        super().__init__()
        self.enc_weight = Parameter(initializer(Normal(0.1), (7, 20)), name="enc_weight")
        self.enc_bias = Parameter(initializer("zeros", (7,)), name="enc_bias")
        self.dec_bias = Parameter(initializer("zeros", (20,)), name="dec_bias")
        self.tied, self.biased = tied, biased
        if not tied:
            self.dec_weight = Parameter(initializer(Normal(0.1), (7, 20)), name="dec_weight")

    def construct(self, x):
        code = ops.sigmoid(ops.matmul(x, self.enc_weight.T) + self.enc_bias)
        weight = self.enc_weight if self.tied else self.dec_weight
        return ops.matmul(code, weight) + self.dec_bias, code


class DepthToSpace(nn.Cell):
    def __init__(self, tensorflow=False):
        super().__init__()
        self.mix = nn.Dense(12, 12)
        self.tensorflow = tensorflow

    def construct(self, x):
        b, c, h, w = x.shape
        y = x.reshape(b, c, h // 2, 2, w // 2, 2).transpose(0, 2, 4, 1, 3, 5)
        y = ops.tanh(self.mix(y.reshape(b, h // 2, w // 2, c * 4)))
        if self.tensorflow:
            y = y.reshape(b, h // 2, w // 2, 2, 2, c).transpose(0, 5, 1, 3, 2, 4)
        else:
            y = y.reshape(b, h // 2, w // 2, c, 2, 2).transpose(0, 3, 1, 4, 2, 5)
        return y.reshape(b, c, h, w) + x


class ShuffleUnit(nn.Cell):
    def __init__(self, groups=2, use_mnp=True, momentum=0.9):
        super().__init__()
        self.pw = nn.Conv2d(6, 6, 1, has_bias=False)
        self.bn1 = nn.BatchNorm2d(6, momentum=momentum)
        self.dw = nn.Conv2d(6, 6, 3, pad_mode="pad", padding=1, group=6)
        self.bn2 = nn.BatchNorm2d(6)
        self.groups = groups

    def construct(self, x):
        left, right = mnp.split(x, 2, axis=1)
        right = self.bn2(self.dw(ops.relu(self.bn1(self.pw(right)))))
        out = mnp.concatenate((left, right), axis=1)
        n, c, h, w = out.shape
        out = out.reshape(n, self.groups, c // self.groups, h, w)
        return mnp.swapaxes(out, 1, 2).reshape(n, c, h, w)
