"""In: nothing. Out: models made of torch's layers, whose ports write the layers out by hand."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class TransformerBlock(nn.Module):
    def __init__(self, dim=24, heads=3):
        super().__init__()
        self.norm1 = nn.LayerNorm(dim)
        self.attn = nn.MultiheadAttention(dim, heads, batch_first=True)
        self.norm2 = nn.LayerNorm(dim)
        self.ff = nn.Sequential(nn.Linear(dim, 48), nn.GELU(), nn.Linear(48, dim))

    def forward(self, x):
        y = self.norm1(x)
        x = x + self.attn(y, y, y, need_weights=False)[0]
        return x + self.ff(self.norm2(x))


class WindowAttention(nn.Module):
    """Attention in a window with relative position bias, as Swin has it."""

    def __init__(self, dim=16, window=(2, 3), heads=2):
        super().__init__()
        self.heads, self.scale = heads, (dim // heads) ** -0.5
        h, w = window
        self.relative_position_bias_table = nn.Parameter(
            torch.randn((2 * h - 1) * (2 * w - 1), heads) * 0.5
        )
        coords = torch.stack(torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij"))
        flat = coords.flatten(1)
        relative = (flat[:, :, None] - flat[:, None, :]).permute(1, 2, 0).contiguous()
        relative[:, :, 0] += h - 1
        relative[:, :, 1] += w - 1
        relative[:, :, 0] *= 2 * w - 1
        self.register_buffer("relative_position_index", relative.sum(-1))
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x):
        B, N, C = x.shape
        qkv = self.qkv(x).reshape(B, N, 3, self.heads, C // self.heads).permute(2, 0, 3, 1, 4)
        q, k, v = qkv.unbind(0)
        attn = (q * self.scale) @ k.transpose(-2, -1)
        bias = self.relative_position_bias_table[self.relative_position_index.view(-1)]
        attn = attn + bias.view(N, N, -1).permute(2, 0, 1).unsqueeze(0)
        return self.proj((attn.softmax(-1) @ v).transpose(1, 2).reshape(B, N, C))


class Perceptron(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(13, 32), nn.Softplus(), nn.Linear(32, 32), nn.Softplus(), nn.Linear(32, 1)
        )

    def forward(self, x):
        return self.net(x).squeeze(-1)


class ChannelsLast(nn.Module):
    """Pictures come as height, width, channel, as a camera gives them."""

    def __init__(self):
        super().__init__()
        self.c1 = nn.Conv2d(3, 8, kernel_size=3, stride=2)
        self.c2 = nn.Conv2d(8, 8, kernel_size=3, padding=1)
        self.head = nn.Linear(8 * 7 * 5, 6)

    def forward(self, frames):
        x = frames.permute(0, 3, 1, 2) / 255.0 - 0.5
        x = F.relu(self.c2(F.relu(self.c1(x))))
        return self.head(x.flatten(1))


class NormedConv(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 6, 3, padding=1, bias=False)
        self.bn = nn.BatchNorm2d(6, momentum=0.2)
        self.conv2 = nn.Conv2d(6, 4, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(4)

    def forward(self, x):
        return F.relu(self.bn2(self.conv2(F.relu(self.bn(self.conv(x))))))


class StandardisedConv(nn.Conv2d):
    def forward(self, x):
        w = self.weight
        std, mean = torch.std_mean(w, dim=(1, 2, 3), keepdim=True, unbiased=False)
        return F.conv2d(x, (w - mean) / (std + 1e-5), self.bias, self.stride, self.padding)


class BitStem(nn.Module):
    """Weight standardisation and group norm, as in Big Transfer."""

    def __init__(self):
        super().__init__()
        self.conv = StandardisedConv(3, 12, 3, stride=1, padding=1)
        self.gn = nn.GroupNorm(4, 12)
        self.pool = nn.MaxPool2d(2)
        self.out = nn.Conv2d(12, 5, 1)

    def forward(self, x):
        return self.out(self.pool(F.relu(self.gn(self.conv(x))))).mean((2, 3))


class TiedAutoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Linear(20, 7)
        self.decoder_bias = nn.Parameter(torch.zeros(20))

    def forward(self, x):
        code = torch.sigmoid(self.encoder(x))
        return F.linear(code, self.encoder.weight.t(), self.decoder_bias), code


class SpaceToDepth(nn.Module):
    def __init__(self):
        super().__init__()
        self.shuffle = nn.PixelUnshuffle(2)
        self.mix = nn.Conv2d(12, 12, 1)
        self.back = nn.PixelShuffle(2)

    def forward(self, x):
        return self.back(torch.tanh(self.mix(self.shuffle(x)))) + x


class Shuffle(nn.Module):
    """A unit of ShuffleNet: two branches, concatenated and shuffled."""

    def __init__(self):
        super().__init__()
        self.branch = nn.Sequential(
            nn.Conv2d(6, 6, 1, bias=False), nn.BatchNorm2d(6), nn.ReLU(inplace=True),
            nn.Conv2d(6, 6, 3, 1, 1, groups=6, bias=False), nn.BatchNorm2d(6),
        )  # fmt: skip

    def forward(self, x):
        left, right = x.chunk(2, dim=1)
        out = torch.cat((left, self.branch(right)), dim=1)
        n, c, h, w = out.size()
        return out.view(n, 2, c // 2, h, w).transpose(1, 2).contiguous().view(n, -1, h, w)
