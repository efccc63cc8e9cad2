"""In: configurations. Out: models that builders make of them, in torch; ported in built_ms.py."""

from dataclasses import dataclass, field

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class Config:
    width: int = 8
    strides: list = field(default_factory=lambda: [1, 2])
    act: str = "silu"
    eps: float = 1e-3
    classes: int = 6


ACTS = {"silu": nn.SiLU, "relu": nn.ReLU, "elu": nn.ELU}


class ConvNormAct(nn.Sequential):
    def __init__(self, cin, cout, k, s, cfg, groups=1, act=True):
        layers = [nn.Conv2d(cin, cout, k, s, k // 2, groups=groups, bias=False),
                  nn.BatchNorm2d(cout, eps=cfg.eps, momentum=0.01)]  # fmt: skip
        super().__init__(*layers, *([ACTS[cfg.act]()] if act else []))


class MBConv(nn.Module):
    def __init__(self, c, stride, cfg):
        super().__init__()
        self.expand = ConvNormAct(c, 2 * c, 1, 1, cfg)
        self.dw = ConvNormAct(2 * c, 2 * c, 3, stride, cfg, groups=2 * c)
        self.se = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(2 * c, 4, 1), nn.SiLU(),
                                nn.Conv2d(4, 2 * c, 1), nn.Sigmoid())  # fmt: skip
        self.project = ConvNormAct(2 * c, c, 1, 1, cfg, act=False)
        self.skip = stride == 1

    def forward(self, x):
        y = self.dw(self.expand(x))
        y = self.project(y * self.se(y))
        return x + y if self.skip else y


class EfficientNet(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.stem = ConvNormAct(3, cfg.width, 3, 2, cfg)
        self.blocks = nn.Sequential(*[MBConv(cfg.width, s, cfg) for s in cfg.strides])
        self.classifier = nn.Linear(cfg.width, cfg.classes)

    def forward(self, x):
        return self.classifier(self.blocks(self.stem(x)).mean((2, 3)))


def efficientnet(**changes):
    return EfficientNet(Config(**changes))


def half_mlp():
    """A net in half precision."""
    net = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.LayerNorm(32), nn.Linear(32, 4))
    return net.half()


class Quantizer(nn.Module):
    """The codebook of a VQ-VAE with a straight-through gradient."""

    def __init__(self, codes=12, dim=6, beta=0.25):
        super().__init__()
        self.encode = nn.Linear(10, dim)
        self.codebook = nn.Embedding(codes, dim)
        self.decode = nn.Linear(dim, 10)
        self.beta = beta

    def forward(self, x):
        z = self.encode(x)
        e = self.codebook.weight
        distance = (z**2).sum(1, keepdim=True) + (e**2).sum(1) - 2 * z @ e.t()
        index = torch.argmin(distance, dim=1)
        q = self.codebook(index)
        loss = F.mse_loss(q, z.detach()) + self.beta * F.mse_loss(z, q.detach())
        q = z + (q - z).detach()
        return self.decode(q), loss, index


class Mixture(nn.Module):
    """A gate chooses two of four experts; their weights are softmaxed again."""

    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(8, 4, bias=False)
        self.w_in = nn.Parameter(torch.randn(4, 8, 12) * 0.3)
        self.w_out = nn.Parameter(torch.randn(4, 12, 8) * 0.3)

    def forward(self, x):
        values, chosen = self.gate(x).topk(2, dim=-1)
        weights = torch.zeros(x.shape[0], 4).scatter(1, chosen, values.softmax(-1))
        hidden = F.relu(torch.einsum("bd,edh->beh", x, self.w_in)) ** 2
        return torch.einsum("beh,ehd,be->bd", hidden, self.w_out, weights)


class Pyramid(nn.Module):
    """Features of three sizes; a list out."""

    def __init__(self, cs=(6, 8), out=5):
        super().__init__()
        self.down = nn.ModuleList([nn.Conv2d(3, cs[0], 3, 2, 1), nn.Conv2d(cs[0], cs[1], 3, 2, 1)])
        self.lateral = nn.ModuleList([nn.Conv2d(c, out, 1) for c in cs])
        self.smooth = nn.ModuleList([nn.Conv2d(out, out, 3, padding=1) for _ in cs])

    def forward(self, x):
        one = F.leaky_relu(self.down[0](x), 0.1)
        two = F.leaky_relu(self.down[1](one), 0.1)
        top = self.lateral[1](two)
        mid = self.lateral[0](one) + F.interpolate(top, scale_factor=2, mode="nearest")
        return [self.smooth[0](mid), self.smooth[1](top), F.avg_pool2d(top, 3, 2, 1)]


class Generator(nn.Module):
    def __init__(self, z=6):
        super().__init__()
        self.main = nn.Sequential(
            nn.ConvTranspose2d(z, 8, 4, 1, 0, bias=False), nn.InstanceNorm2d(8, affine=True),
            nn.LeakyReLU(0.2), nn.ConvTranspose2d(8, 3, 3, 2, 1, output_padding=1), nn.Tanh(),
        )  # fmt: skip

    def forward(self, z):
        return self.main(z)


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 4, 2, 1)
        self.out = nn.Linear(8 * 4 * 4, 1)

    def forward(self, x):
        return self.out(F.leaky_relu(self.conv(x), 0.2).view(x.size(0), -1)).view(-1)


class NeuralField(nn.Module):
    """Fourier features of coordinates, then sines."""

    def __init__(self):
        super().__init__()
        self.register_buffer("freqs", 2.0 ** torch.arange(4))
        self.layers = nn.ModuleList([nn.Linear(18, 24), nn.Linear(24 + 18, 24)])
        self.rgb = nn.Linear(24, 3)
        self.density = nn.Linear(24, 1)

    def forward(self, xy):
        angles = (xy[..., None] * self.freqs).flatten(-2)
        enc = torch.cat([xy, angles.sin(), angles.cos()], -1)
        h = torch.sin(self.layers[0](enc))
        h = torch.sin(self.layers[1](torch.cat([h, enc], -1)))
        return torch.sigmoid(self.rgb(h)), F.softplus(self.density(h), beta=2)
