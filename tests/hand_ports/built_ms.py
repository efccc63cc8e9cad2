"""In: configurations. Out: the models of built_torch.py in MindSpore; arguments make mistakes."""

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, mint, nn, ops
from mindspore.common.initializer import Normal, initializer


def conv_bn(cin, cout, kernel, stride=1, group=1, act=None, eps=1e-3, momentum=0.99, mode="pad"):
    padding = kernel // 2 if mode == "pad" else 0
    cells = [
        nn.Conv2d(cin, cout, kernel, stride, pad_mode=mode, padding=padding, group=group),
        nn.BatchNorm2d(cout, eps=eps, momentum=momentum),
    ]
    return nn.SequentialCell(cells + ([nn.get_activation(act)] if act else []))


class InvertedBottleneck(nn.Cell):
    def __init__(self, channels, stride, cfg, index):
        super().__init__()
        act, eps, mode = cfg["act"], cfg["eps"], cfg["mode"]
        late = cfg["momentum"] if index else 0.99
        wide = 2 * channels
        self.pw = conv_bn(channels, wide, 1, act=act, eps=eps)
        self.dw = conv_bn(wide, wide, 3, stride, wide, act, eps, late, mode)
        self.reduce = nn.Dense(wide, 4)
        self.restore = nn.Dense(4, wide)
        self.pwl = conv_bn(wide, channels, 1, eps=eps)
        self.shortcut = stride == 1
        self.squeeze_act = cfg["squeeze_act"]

    def construct(self, x):
        y = self.dw(self.pw(x))
        s = self.reduce(y.mean((2, 3)))
        s = ops.silu(s) if self.squeeze_act == "silu" else ops.relu(s)
        s = ops.sigmoid(self.restore(s))
        y = self.pwl(y * s.reshape(y.shape[0], -1, 1, 1))
        return y + x if self.shortcut else y


class EfficientNetMs(nn.Cell):
    def __init__(self, cfg):
        super().__init__()
        width = cfg["width"]
        self.stem = conv_bn(3, width, 3, 2, act=cfg["act"], eps=cfg["eps"])
        self.features = nn.CellList(
            [InvertedBottleneck(width, s, cfg, i) for i, s in enumerate(cfg["strides"])]
        )
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.head = nn.Dense(width, cfg["classes"])

    def construct(self, x):
        x = self.stem(x)
        for block in self.features:
            x = block(x)
        return self.head(self.pool(x).reshape(x.shape[0], -1))


def create_model(name="efficientnet", **kwargs):
    cfg = {"width": 8, "strides": (1, 2), "act": "silu", "eps": 1e-3, "classes": 6, "mode": "pad",
           "momentum": 0.99, "squeeze_act": "silu"}  # fmt: skip
    return {"efficientnet": EfficientNetMs}[name]({**cfg, **kwargs})


class HalfMLP(nn.Cell):
    def __init__(self, act="relu", eps=1e-5):
        super().__init__()
        self.fc1 = nn.Dense(16, 32, activation=act, dtype=ms.float16)
        self.ln = nn.LayerNorm((32,), epsilon=eps, dtype=ms.float16)
        self.fc2 = nn.Dense(32, 4, dtype=ms.float16)

    def construct(self, x):
        return self.fc2(self.ln(self.fc1(x)))


class VectorQuantizer(nn.Cell):
    def __init__(self, detached=True, through=True, beta=0.25, axis=1):
        super().__init__()
        self.encoder = nn.Dense(10, 6)
        self.codes = Parameter(initializer(Normal(1.0), (12, 6)), name="codes")
        self.decoder = nn.Dense(6, 10)
        self.detached, self.through, self.beta, self.axis = detached, through, beta, axis

    def construct(self, x):
        z = self.encoder(x)
        gaps = ops.square(z.expand_dims(1) - self.codes.expand_dims(0)).sum(-1)
        index = ops.argmin(gaps, axis=self.axis)
        q = self.codes[index]
        target = ops.stop_gradient(z) if self.detached else z
        loss = ops.mse_loss(q, target) + self.beta * ops.mse_loss(z, ops.stop_gradient(q))
        q = z + ops.stop_gradient(q - z) if self.through else q
        return self.decoder(q), loss, index.astype(ms.int32)


class MintMixture(nn.Cell):
    """With the interfaces of mint, which follow torch."""

    def __init__(self, again=True, squared=True):
        super().__init__()
        self.router = Parameter(initializer("normal", (8, 4)), name="router")
        self.up = Parameter(initializer("normal", (4, 8, 12)), name="up")
        self.down = Parameter(initializer("normal", (4, 12, 8)), name="down")
        self.again, self.squared = again, squared

    def construct(self, x):
        scores = mint.matmul(x, self.router)
        values, chosen = ops.topk(scores, 2)
        if self.again:
            values = mint.nn.functional.softmax(values, dim=-1)
        else:
            values = ops.gather_elements(mint.nn.functional.softmax(scores, dim=-1), 1, chosen)
        weights = mint.sum(ops.one_hot(chosen, 4, 1.0, 0.0) * values.expand_dims(-1), 1)
        hidden = mint.nn.functional.relu(mint.matmul(x, self.up))
        hidden = mint.mul(hidden, hidden) if self.squared else hidden
        out = mint.matmul(hidden, self.down)
        return mint.sum(out * mint.permute(weights, (1, 0)).expand_dims(-1), 0)


class FPN(nn.Cell):
    def __init__(self, slope=0.1, repeat=True, include=True, smooth_all=True):
        super().__init__()
        self.c1 = nn.Conv2d(3, 6, 3, 2, "pad", 1, has_bias=True)
        self.c2 = nn.Conv2d(6, 8, 3, 2, "pad", 1, has_bias=True)
        self.lat1 = nn.Conv2d(6, 5, 1, has_bias=True)
        self.lat2 = nn.Conv2d(8, 5, 1, has_bias=True)
        self.out1 = nn.Conv2d(5, 5, 3, has_bias=True)
        self.out2 = nn.Conv2d(5, 5, 3, has_bias=True)
        self.act = nn.LeakyReLU(slope)
        self.pool = nn.AvgPool2d(3, 2, "pad", 1, count_include_pad=include)
        self.repeat = repeat

    def up(self, x):
        if self.repeat:
            return ops.repeat_interleave(ops.repeat_interleave(x, 2, 2), 2, 3)
        return ops.tile(x, (1, 1, 2, 2))

    def construct(self, x):
        one = self.act(self.c1(x))
        two = self.act(self.c2(one))
        top = self.lat2(two)
        mid = self.lat1(one) + self.up(top)
        return self.out1(mid), self.out2(top), self.pool(top)


class GeneratorNet(nn.Cell):
    def __init__(self, slope=0.2, eps=1e-5, cropped=True):
        super().__init__()
        self.deconv1 = nn.Conv2dTranspose(6, 8, 4, 1, pad_mode="valid")
        self.gamma = Parameter(ops.ones((8,)), name="gamma")
        self.beta = Parameter(ops.zeros((8,)), name="beta")
        if cropped:
            self.deconv2 = nn.Conv2dTranspose(8, 3, 3, 2, pad_mode="valid", has_bias=True)
        else:  # output_padding is not torch's
            self.deconv2 = nn.Conv2dTranspose(8, 3, 3, 2, "pad", 1, output_padding=1, has_bias=True)
        self.slope, self.eps, self.start = slope, eps, 1 if cropped else 0

    def construct(self, z):
        x = self.deconv1(z)
        x = (x - x.mean((2, 3), True)) / ops.sqrt(x.var((2, 3), 0, True) + self.eps)
        x = x * self.gamma.reshape(1, 8, 1, 1) + self.beta.reshape(1, 8, 1, 1)
        x = self.deconv2(ops.leaky_relu(x, self.slope))
        return ops.tanh(x[:, :, self.start :, self.start :])


class Critic(nn.Cell):
    def __init__(self, hwc=False, sigmoid=False):
        super().__init__()
        self.layer = nn.Conv2d(3, 8, 4, 2, pad_mode="pad", padding=1, has_bias=True)
        self.score = nn.Dense(128, 1)
        self.hwc, self.sigmoid = hwc, sigmoid

    def construct(self, image):
        x = ops.leaky_relu(self.layer(image), 0.2)
        x = x.permute(0, 2, 3, 1) if self.hwc else x
        score = self.score(x.view(image.shape[0], -1)).squeeze(-1)
        return ops.sigmoid(score) if self.sigmoid else score


class Field(nn.Cell):
    def __init__(self, first="h", beta=2.0, base=2.0):
        super().__init__()
        self.powers = Tensor(base ** np.arange(4), ms.float32)
        self.fc0 = nn.Dense(18, 24)
        self.fc1 = nn.Dense(42, 24)
        self.color = nn.Dense(24, 3, activation="sigmoid")
        self.sigma = nn.Dense(24, 1)
        self.first, self.beta = first, beta

    def construct(self, xy):
        angles = (xy.expand_dims(-1) * self.powers).reshape(xy.shape[0], 8)
        enc = ops.concat((xy, ops.sin(angles), ops.cos(angles)), -1)
        h = ops.sin(self.fc0(enc))
        both = (h, enc) if self.first == "h" else (enc, h)
        h = ops.sin(self.fc1(ops.concat(both, -1)))
        return self.color(h), ops.log1p(ops.exp(self.beta * self.sigma(h))) / self.beta
