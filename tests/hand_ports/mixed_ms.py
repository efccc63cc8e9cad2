"""In: nothing. Out: the models of mixed_torch.py in MindSpore; arguments make mistakes."""

import mindspore as ms
from mindspore import Parameter, nn, ops


class Block(nn.Cell):
    def __init__(self, dim, eps, approximate, scaled, group):
        super().__init__()
        self.depthwise = nn.Conv2d(dim, dim, 7, pad_mode="pad", padding=3, group=group,
                                   has_bias=True)  # fmt: skip
        self.layer_norm = nn.LayerNorm((dim,), epsilon=eps)
        self.expand = nn.Dense(dim, 4 * dim)
        self.activation = nn.GELU(approximate=approximate)
        self.project = nn.Dense(4 * dim, dim)
        self.scale = Parameter(0.1 * ops.ones(dim, ms.float32))
        self.scaled = scaled

    def construct(self, x):
        y = ops.transpose(self.depthwise(x), (0, 2, 3, 1))
        y = self.project(self.activation(self.expand(self.layer_norm(y))))
        y = self.scale * y if self.scaled else y
        return x + ops.transpose(y, (0, 3, 1, 2))


class NextNet(nn.Cell):
    def __init__(self, eps=1e-6, approximate=False, scaled=True, stem_mode="valid", group=12):
        super().__init__()
        self.patch = nn.Conv2d(3, 12, 4, 4, pad_mode=stem_mode, has_bias=True)
        self.body = nn.SequentialCell([Block(12, eps, False, scaled, 12),
                                       Block(12, 1e-6, approximate, True, group)])  # fmt: skip
        self.classifier = nn.Dense(12, 5)

    def construct(self, x):
        x = self.body(self.patch(x))
        return self.classifier(ops.mean(x, (2, 3)))


class Temporal(nn.Cell):
    def __init__(self, alpha=0.01, pad=4, momentum=0.9, count=True, first_bias=True):
        super().__init__()
        self.pad1 = nn.Pad(((0, 0), (0, 0), (2, 0)))
        self.pad2 = nn.Pad(((0, 0), (0, 0), (pad, 4 - pad)))
        self.conv1 = nn.Conv1d(4, 8, 3, pad_mode="valid", has_bias=first_bias)
        self.conv2 = nn.Conv1d(8, 8, 3, pad_mode="valid", dilation=2, has_bias=True)
        self.bn = nn.BatchNorm1d(8, momentum=momentum)
        self.act = nn.LeakyReLU(alpha)
        self.pool = nn.AvgPool1d(3, 2, pad_mode="pad", padding=1, count_include_pad=count)
        self.dense = nn.Dense(8, 2)

    def construct(self, x):
        x = self.act(self.conv1(self.pad1(x)))
        x = self.act(self.bn(self.conv2(self.pad2(x))))
        return self.dense(self.pool(x)[:, :, -1])


class SqueezeNet(nn.Cell):
    def __init__(self, pad_mode="pad", act="hswish", gate="hsigmoid", ceil=True, same=False):
        super().__init__()
        padding = 1 if pad_mode == "pad" else 0
        self.conv = nn.Conv2d(3, 8, 3, 2, pad_mode=pad_mode, padding=padding)
        self.bn = nn.BatchNorm2d(8)
        self.act = nn.HSwish() if act == "hswish" else nn.SiLU()
        self.fc1 = nn.Conv2d(8, 2, 1, has_bias=True)
        self.fc2 = nn.Conv2d(2, 8, 1, has_bias=True)
        self.gate = nn.HSigmoid() if gate == "hsigmoid" else nn.Sigmoid()
        if same:
            self.pool = nn.AvgPool2d(2, 2, pad_mode="same")
        else:
            self.pool = nn.AvgPool2d(2, 2, pad_mode="pad", ceil_mode=ceil)
        self.flatten = nn.Flatten()
        self.head = nn.Dense(8 * 16, 4)

    def construct(self, x):
        x = self.act(self.bn(self.conv(x)))
        s = ops.mean(x, (2, 3), True)
        x = x * self.gate(self.fc2(ops.relu(self.fc1(s))))
        return self.head(self.flatten(self.pool(x)))


class VolumeNet(nn.Cell):
    def __init__(self, p=0.25, eps=1e-5, pool_stride=2, channels=True):
        super().__init__()
        self.conv_a = nn.Conv3d(1, 4, 3, pad_mode="pad", padding=1, has_bias=True)
        self.bn_a = nn.BatchNorm3d(4, eps=eps)
        self.down = nn.MaxPool3d(2, pool_stride)
        self.conv_b = nn.Conv3d(4, 8, 3, pad_mode="valid", has_bias=True)
        self.dropout = nn.Dropout3d(p=p) if channels else nn.Dropout(p=p)
        self.dense = nn.Dense(8, 3)

    def construct(self, x):
        x = self.down(ops.relu(self.bn_a(self.conv_a(x))))
        x = self.dropout(ops.relu(self.conv_b(x)))
        return self.dense(ops.mean(x, (2, 3, 4)))


class StyleNet(nn.Cell):
    def __init__(self, ddof=1, groups=2, alpha=1.0, exchanged=False, padding=1, slope=None):
        super().__init__()
        self.encoder = nn.Conv2d(3, 8, 3, pad_mode="pad", padding=1, has_bias=True)
        self.act = nn.PReLU(1, 0.25)
        self.affine = nn.Dense(6, 16)
        self.deconv = nn.Conv2dTranspose(8, 4, 4, 2, pad_mode="pad", padding=padding, has_bias=True)
        self.gn = nn.GroupNorm(groups, 4)
        self.elu = nn.ELU(alpha)
        self.last = nn.Conv2d(4, 3, 3, pad_mode="same", has_bias=True)
        self.ddof, self.exchanged, self.slope = ddof, exchanged, slope

    def construct(self, x, style):
        x = self.encoder(x)
        x = self.act(x) if self.slope is None else ops.leaky_relu(x, self.slope)
        mean = ops.mean(x, (2, 3), True)
        std = ops.sqrt(ops.var(x, (2, 3), self.ddof, True)) + 1e-5
        scale, shift = ops.chunk(self.affine(style).expand_dims(2).expand_dims(3), 2, 1)
        if self.exchanged:
            scale, shift = shift, scale
        x = (x - mean) / std * scale + shift
        return ops.tanh(self.last(self.elu(self.gn(self.deconv(x)))))


def projector():
    return nn.SequentialCell([nn.Dense(10, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dense(16, 8)])


class Byol(nn.Cell):
    def __init__(self, frozen=True, stopped=False, axis=1, factor=2.0, one_net=False):
        super().__init__()
        self.online = projector()
        self.target = projector()
        if frozen:
            for p in self.target.get_parameters():
                p.requires_grad = False
        self.predict = nn.Dense(8, 8)
        self.stopped, self.axis, self.factor, self.one_net = stopped, axis, factor, one_net

    def construct(self, one, two):
        h = self.online(one)
        h = ops.stop_gradient(h) if self.stopped else h
        p = self.predict(h)
        p = p / ops.norm(p, dim=self.axis, keepdim=True)
        z = self.online(two) if self.one_net else self.target(two)
        z = ops.stop_gradient(z / ops.norm(z, dim=1, keepdim=True))
        return 2 - self.factor * (p * z).sum(axis=1)


class LoopRnn(nn.Cell):
    def __init__(self, axis=1, last=False, log=True, hidden=0.0):
        super().__init__()
        self.table = nn.Embedding(20, 8)
        self.cell = nn.GRUCell(8, 8)
        self.attend = nn.Dense(8, 1)
        self.project = nn.Dense(8, 20)
        self.axis, self.last, self.log, self.hidden = axis, last, log, hidden

    def construct(self, tokens):
        x = self.table(tokens)
        h = ops.full((x.shape[0], 8), self.hidden, dtype=ms.float32)
        states = []
        for t in range(x.shape[1]):
            h = self.cell(x[:, t], h)
            states.append(h)
        states = ops.stack(states, 1)
        weight = ops.softmax(self.attend(states), self.axis)
        mixed = states[:, -1] if self.last else (weight * states).sum(axis=1)
        out = self.project(mixed)
        return ops.log_softmax(out, -1) if self.log else ops.softmax(out, -1)
