"""In: nothing. Out: the vision models in MindSpore, by hand; arguments make the usual mistakes."""

import mindspore as ms
import mindspore.common.initializer as init
from mindspore import Parameter, Tensor, nn, ops


class LeNet5(nn.Cell):
    def __init__(self, num_class=10, num_channel=1, pad_mode="pad", bias=True):
        super().__init__()
        padding = 2 if pad_mode == "pad" else 0
        self.conv1 = nn.Conv2d(num_channel, 6, 5, pad_mode=pad_mode, padding=padding, has_bias=True)
        self.conv2 = nn.Conv2d(6, 16, 5, pad_mode="valid", has_bias=True)
        self.fc1 = nn.Dense(16 * 5 * 5, 120)
        self.fc2 = nn.Dense(120, 84, has_bias=bias)
        self.fc3 = nn.Dense(84, num_class)
        self.relu = nn.ReLU()
        self.max_pool2d = nn.MaxPool2d(kernel_size=2, stride=2)
        self.flatten = nn.Flatten()

    def construct(self, x):
        x = self.max_pool2d(self.relu(self.conv1(x)))
        x = self.max_pool2d(self.relu(self.conv2(x)))
        x = self.flatten(x)
        x = self.relu(self.fc1(x))
        x = self.relu(self.fc2(x))
        return self.fc3(x)


class LeNetSequential(nn.Cell):
    """All layers in one chain, so that not one name is that of the original."""

    def __init__(self, last_pool=2):
        super().__init__()
        self.net = nn.SequentialCell([
            nn.Conv2d(1, 6, 5, pad_mode="same", has_bias=True), nn.ReLU(), nn.MaxPool2d(2, 2),
            nn.Conv2d(6, 16, 5, pad_mode="valid", has_bias=True), nn.ReLU(),
            nn.MaxPool2d(last_pool, 2), nn.Flatten(),
            nn.Dense(400, 120), nn.ReLU(), nn.Dense(120, 84), nn.ReLU(), nn.Dense(84, 10),
        ])  # fmt: skip

    def construct(self, x):
        return self.net(x)


def conv3x3(cin, cout, stride=1):
    return nn.Conv2d(cin, cout, 3, stride=stride, padding=1, pad_mode="pad")


class ResidualBlock(nn.Cell):
    def __init__(self, in_channel, out_channel, stride=1, act=True, momentum=0.9):
        super().__init__()
        self.conv1 = conv3x3(in_channel, out_channel, stride)
        self.bn1 = nn.BatchNorm2d(out_channel, momentum=momentum)
        self.conv2 = conv3x3(out_channel, out_channel)
        self.bn2 = nn.BatchNorm2d(out_channel)
        self.relu = nn.ReLU()
        self.act = act
        self.down_sample_layer = None
        if stride != 1 or in_channel != out_channel:
            self.down_sample_layer = nn.SequentialCell(
                [nn.Conv2d(in_channel, out_channel, 1, stride), nn.BatchNorm2d(out_channel)]
            )

    def construct(self, x):
        identity = x
        if self.down_sample_layer is not None:
            identity = self.down_sample_layer(x)
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out)) + identity
        return self.relu(out) if self.act else out


class ResNetPort(nn.Cell):
    def __init__(self, pool="pad", eps=1e-5, momentum=0.9, act=True):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, 7, 2, pad_mode="pad", padding=3)
        self.bn1 = nn.BatchNorm2d(16, eps=eps, momentum=0.9)
        self.relu = nn.ReLU()
        if pool == "pad":
            self.maxpool = nn.MaxPool2d(3, 2, pad_mode="pad", padding=1)
        else:
            self.maxpool = nn.MaxPool2d(kernel_size=3, stride=2, pad_mode="same")
        self.layer1 = nn.SequentialCell([ResidualBlock(16, 16), ResidualBlock(16, 16, act=act)])
        self.layer2 = nn.SequentialCell(
            [ResidualBlock(16, 32, 2, momentum=momentum), ResidualBlock(32, 32)]
        )
        self.mean = ops.ReduceMean(keep_dims=True)
        self.flatten = nn.Flatten()
        self.end_point = nn.Dense(32, 10)

    def construct(self, x):
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer2(self.layer1(x))
        x = self.mean(x, (2, 3))
        return self.end_point(self.flatten(x))


class Vgg(nn.Cell):
    """num_classes and the flags that people get wrong."""

    def __init__(self, ceil_mode=True, keep=0.3, frozen=False, freeze_wrong=False):
        super().__init__()
        layers = [nn.Conv2d(3, 8, 3, pad_mode="pad", padding=1, has_bias=True), nn.ReLU()]
        layers += (
            [nn.MaxPool2d(3, 2, ceil_mode=True, pad_mode="pad")]
            if ceil_mode
            else [nn.MaxPool2d(3, 2, pad_mode="same")]
        )
        layers += [nn.Conv2d(8, 16, 3, pad_mode="same", has_bias=True), nn.ReLU(),
                   nn.MaxPool2d(2, 2)]  # fmt: skip
        self.layers = nn.SequentialCell(layers)
        self.flatten = ops.Flatten()
        self.fc1 = nn.Dense(16 * 8 * 8, 64)
        self.dropout = nn.Dropout(p=keep)
        self.fc2 = nn.Dense(64, 10)
        self.relu = ops.ReLU()
        if frozen:
            for p in self.layers[3 if freeze_wrong else 0].get_parameters():
                p.requires_grad = False

    def construct(self, x):
        x = self.flatten(self.layers(x))
        x = self.dropout(self.relu(self.fc1(x)))
        return self.fc2(x)


class ConvBNReLU(nn.Cell):
    def __init__(self, cin, cout, kernel, stride, group=1):
        super().__init__()
        padding = (kernel - 1) // 2
        self.conv = nn.Conv2d(cin, cout, kernel, stride, pad_mode="pad", padding=padding,
                              group=group)  # fmt: skip
        self.bn = nn.BatchNorm2d(cout)
        self.act = nn.ReLU6()

    def construct(self, x):
        return self.act(self.bn(self.conv(x)))


class InvertedResidualPort(nn.Cell):
    def __init__(self, inp, oup, stride, expand, relu_last=False):
        super().__init__()
        hidden = inp * expand
        self.use_res = stride == 1 and inp == oup
        layers = [
            ConvBNReLU(inp, hidden, 1, 1), ConvBNReLU(hidden, hidden, 3, stride, hidden),
            nn.Conv2d(hidden, oup, 1), nn.BatchNorm2d(oup),
        ]  # fmt: skip
        if relu_last:
            layers.append(nn.ReLU6())
        self.layers = nn.SequentialCell(layers)

    def construct(self, x):
        out = self.layers(x)
        return out + x if self.use_res else out


class MobileNetPort(nn.Cell):
    def __init__(self, stem_act="hswish", relu_last=False):
        super().__init__()
        self.stem_conv = nn.Conv2d(3, 8, 3, 2, pad_mode="pad", padding=1)
        self.stem_bn = nn.BatchNorm2d(8)
        self.stem_act = nn.HSwish() if stem_act == "hswish" else nn.SiLU()
        self.features = nn.SequentialCell(
            InvertedResidualPort(8, 8, 1, 2),
            InvertedResidualPort(8, 16, 2, 2, relu_last),
            InvertedResidualPort(16, 16, 1, 2),
        )
        self.classifier = nn.Dense(16, 5)

    def construct(self, x):
        x = self.stem_act(self.stem_bn(self.stem_conv(x)))
        x = self.features(x)
        return self.classifier(ops.mean(x, (2, 3)))


class DoubleConvPort(nn.SequentialCell):
    def __init__(self, cin, cout, eps=1e-5):
        super().__init__(
            nn.Conv2d(cin, cout, 3, pad_mode="same", has_bias=True), nn.BatchNorm2d(cout, eps=eps),
            nn.ReLU(),
            nn.Conv2d(cout, cout, 3, pad_mode="same", has_bias=True), nn.BatchNorm2d(cout),
            nn.ReLU(),
        )  # fmt: skip


class UNetPort(nn.Cell):
    def __init__(self, align=True, swapped=False, eps=1e-5):
        super().__init__()
        self.c1 = DoubleConvPort(1, 8)
        self.c2 = DoubleConvPort(8, 16)
        self.c3 = DoubleConvPort(16, 16, eps=eps)
        self.c4 = DoubleConvPort(32, 8)
        self.upconv = nn.Conv2dTranspose(8, 8, 2, stride=2, pad_mode="valid", has_bias=True)
        self.c5 = DoubleConvPort(16, 8)
        self.out = nn.Conv2d(8, 2, 1, has_bias=True)
        self.maxpool = nn.MaxPool2d(2, 2)
        self.align = align
        self.swapped = swapped

    def construct(self, x):
        x1 = self.c1(x)
        x2 = self.c2(self.maxpool(x1))
        x3 = self.c3(self.maxpool(x2))
        size = (x3.shape[2] * 2, x3.shape[3] * 2)
        up = ops.interpolate(x3, size=size, mode="bilinear", align_corners=self.align)
        y = self.c4(ops.concat((up, x2) if self.swapped else (x2, up), axis=1))
        y = self.c5(ops.concat((x1, self.upconv(y)), 1))
        return self.out(y)


class GeneratorPort(nn.Cell):
    def __init__(self, nz=16, ngf=8, momentum=0.9, out="tanh"):
        super().__init__()
        self.generator = nn.SequentialCell()
        self.generator.append(nn.Conv2dTranspose(nz, ngf * 2, 4, 1, "valid"))
        self.generator.append(nn.BatchNorm2d(ngf * 2, momentum=momentum))
        self.generator.append(nn.ReLU())
        self.generator.append(nn.Conv2dTranspose(ngf * 2, ngf, 4, 2, "pad", 1))
        self.generator.append(nn.BatchNorm2d(ngf))
        self.generator.append(nn.ReLU())
        self.generator.append(nn.Conv2dTranspose(ngf, 3, 4, 2, "pad", 1))
        self.generator.append(nn.Tanh() if out == "tanh" else nn.Sigmoid())

    def construct(self, z):
        return self.generator(z)


class VAEPort(nn.Cell):
    def __init__(self, half=0.5):
        super().__init__()
        self.encoder = nn.SequentialCell(nn.Dense(64, 32), nn.ReLU())
        self.mu = nn.Dense(32, 8)
        self.log_var = nn.Dense(32, 8)
        self.decoder = nn.SequentialCell(nn.Dense(8, 32), nn.ReLU(), nn.Dense(32, 64), nn.Sigmoid())
        self.half = half

    def construct(self, x):
        h = self.encoder(x.reshape(-1, 64))
        mu, log_var = self.mu(h), self.log_var(h)
        std = ops.exp(self.half * log_var)
        z = mu + ops.standard_normal(std.shape) * std
        return self.decoder(z), mu, log_var


class SiameseNet(nn.Cell):
    def __init__(self, slope=0.1, groups=2, eps=1e-6):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 4, 3, pad_mode="valid", has_bias=True)
        self.conv2 = nn.Conv2d(4, 8, 3, pad_mode="valid", has_bias=True)
        self.gn = nn.GroupNorm(groups, 8)
        self.act = nn.LeakyReLU(slope)
        self.pool = nn.AvgPool2d(2, 2)
        self.gap = nn.AdaptiveAvgPool2d(2)
        self.fc = nn.Dense(32, 16)
        self.eps = eps

    def branch(self, x):
        x = self.pool(self.act(self.conv1(x)))
        x = self.gap(self.act(self.gn(self.conv2(x))))
        x = self.fc(x.reshape(x.shape[0], -1))
        return x / ops.maximum(ops.norm(x, dim=1, keepdim=True), Tensor(1e-12, ms.float32))

    def construct(self, a, b):
        u, v = self.branch(a), self.branch(b)
        return ops.sqrt(ops.sum((u - v + self.eps) ** 2, 1)), u, v


class Attention(nn.Cell):
    def __init__(self, dim, num_heads, scale=None):
        super().__init__()
        self.num_heads = num_heads
        self.scale = scale or (dim // num_heads) ** -0.5
        self.q = nn.Dense(dim, dim)
        self.k = nn.Dense(dim, dim)
        self.v = nn.Dense(dim, dim)
        self.out = nn.Dense(dim, dim)
        self.drop = nn.Dropout(p=0.1)
        self.softmax = nn.Softmax(axis=-1)

    def heads(self, x):
        b, n, c = x.shape
        return x.reshape(b, n, self.num_heads, c // self.num_heads).transpose(0, 2, 1, 3)

    def construct(self, x):
        b, n, c = x.shape
        q, k, v = self.heads(self.q(x)), self.heads(self.k(x)), self.heads(self.v(x))
        attn = self.softmax(ops.matmul(q, k.swapaxes(-1, -2)) * self.scale)
        x = ops.matmul(self.drop(attn), v).transpose(0, 2, 1, 3).reshape(b, n, c)
        return self.out(x)


class FeedForward(nn.Cell):
    def __init__(self, dim, hidden, approximate):
        super().__init__()
        self.dense1 = nn.Dense(dim, hidden)
        self.activation = nn.GELU(approximate=approximate)
        self.dense2 = nn.Dense(hidden, dim)

    def construct(self, x):
        return self.dense2(self.activation(self.dense1(x)))


class TransformerEncoder(nn.Cell):
    def __init__(self, dim, num_heads, eps, approximate, scale):
        super().__init__()
        self.layer_norm1 = nn.LayerNorm((dim,), epsilon=eps)
        self.attention = Attention(dim, num_heads, scale)
        self.layer_norm2 = nn.LayerNorm((dim,), epsilon=eps)
        self.feedforward = FeedForward(dim, 4 * dim, approximate)

    def construct(self, x):
        x = x + self.attention(self.layer_norm1(x))
        return x + self.feedforward(self.layer_norm2(x))


class VisionTransformer(nn.Cell):
    def __init__(self, dim=32, eps=1e-6, approximate=False, scale=None, frozen_pos=False):
        super().__init__()
        self.patch_embedding = nn.Conv2d(3, dim, 8, 8, pad_mode="valid", has_bias=True)
        self.cls_token = Parameter(init.initializer(init.Normal(0.02), (1, 1, dim)))
        self.pos_embedding = Parameter(
            init.initializer(init.Normal(0.02), (1, 17, dim)), requires_grad=not frozen_pos
        )
        self.transformer = nn.SequentialCell(
            [TransformerEncoder(dim, 4, eps, approximate, scale) for _ in range(2)]
        )
        self.norm = nn.LayerNorm((dim,), epsilon=1e-6)
        self.dense = nn.Dense(dim, 10)

    def construct(self, x):
        x = self.patch_embedding(x)
        b, c, h, w = x.shape
        x = x.reshape(b, c, h * w).transpose(0, 2, 1)
        cls_token = ops.tile(self.cls_token, (b, 1, 1))
        x = ops.concat((cls_token, x), axis=1) + self.pos_embedding
        x = self.norm(self.transformer(x))
        return self.dense(x[:, 0])
