"""In: images. Out: right models of vision, to be converted and then spoilt."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class ConvNet(nn.Module):
    def __init__(self, classes=10):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 8, 5, stride=2, padding=2)
        self.norm1 = nn.BatchNorm2d(8)
        self.act1 = nn.LeakyReLU(0.1)
        self.pool1 = nn.MaxPool2d(3, stride=2, padding=1)
        self.conv2 = nn.Conv2d(8, 12, 3, padding=2, dilation=2)
        self.norm2 = nn.BatchNorm2d(12, eps=1e-3)
        self.act2 = nn.ELU(0.5)
        self.pool2 = nn.AvgPool2d(3, stride=2, padding=1)
        self.drop = nn.Dropout(0.3)
        self.head = nn.Linear(12 * 4 * 4, classes)

    def forward(self, x):
        x = self.pool1(self.act1(self.norm1(self.conv1(x))))
        x = self.pool2(self.act2(self.norm2(self.conv2(x))))
        x = self.drop(torch.flatten(x, 1))
        return self.head(x)


class Block(nn.Module):
    def __init__(self, inside, outside, stride=1):
        super().__init__()
        self.conv1 = nn.Conv2d(inside, outside, 3, stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(outside)
        self.conv2 = nn.Conv2d(outside, outside, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(outside, momentum=0.05)
        self.relu = nn.ReLU(inplace=True)
        self.shortcut = None
        if stride != 1 or inside != outside:
            self.shortcut = nn.Sequential(
                nn.Conv2d(inside, outside, 1, stride, bias=False),
                nn.BatchNorm2d(outside),
            )

    def forward(self, x):
        identity = x if self.shortcut is None else self.shortcut(x)
        out = self.relu(self.norm1(self.conv1(x)))
        out = self.norm2(self.conv2(out))
        out += identity
        return self.relu(out)


class ResNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(8)
        self.pool = nn.MaxPool2d(3, 2, ceil_mode=True)
        self.layers = nn.Sequential(Block(8, 8), Block(8, 16, 2), Block(16, 16))
        self.average = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(16, 5)

    def forward(self, x):
        x = self.pool(F.relu(self.norm(self.stem(x))))
        return self.fc(self.average(self.layers(x)).flatten(1))


class Down(nn.Module):
    def __init__(self, inside, outside):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(inside, outside, 3, padding=1),
            nn.GroupNorm(4, outside),
            nn.SiLU(),
            nn.Conv2d(outside, outside, 3, padding=1),
            nn.InstanceNorm2d(outside, affine=True),
            nn.ReLU(),
        )

    def forward(self, x):
        return self.body(x)


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down1 = Down(2, 8)
        self.down2 = Down(8, 16)
        self.down3 = Down(16, 16)
        self.up = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=False)
        self.grow = nn.ConvTranspose2d(16, 8, 3, stride=2, padding=1, output_padding=1)
        self.join2 = Down(32, 16)
        self.join1 = Down(16, 8)
        self.out = nn.Conv2d(8, 3, 1)

    def forward(self, x):
        one = self.down1(x)
        two = self.down2(F.max_pool2d(one, 2))
        three = self.down3(F.avg_pool2d(two, 2))
        x = self.join2(torch.cat([two, self.up(three)], dim=1))
        x = self.join1(torch.cat([one, self.grow(x)], dim=1))
        return F.softmax(self.out(x), dim=1)


class Squeeze(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.fc1 = nn.Linear(channels, channels // 4)
        self.fc2 = nn.Linear(channels // 4, channels)

    def forward(self, x):
        s = F.adaptive_avg_pool2d(x, 1).flatten(1)
        s = F.hardsigmoid(self.fc2(F.relu(self.fc1(s))))
        return x * s[:, :, None, None]


class MobileNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, stride=2, padding=1)
        self.deep = nn.Conv2d(8, 8, 3, padding=1, groups=8, bias=False)
        self.norm = nn.BatchNorm2d(8)
        self.act = nn.ReLU6()
        self.se = Squeeze(8)
        self.point = nn.Conv2d(8, 16, 1)
        self.swish = nn.Hardswish()
        self.drop = nn.Dropout2d(0.2)
        self.head = nn.Linear(16, 4)

    def forward(self, x):
        x = F.pad(self.stem(x), (0, 1, 1, 0))
        x = self.se(self.act(3.0 * self.norm(self.deep(x))))
        x = self.drop(self.swish(self.point(x)))
        return self.head(x.mean(dim=(2, 3)))


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(24, 32), nn.Softplus(), nn.Linear(32, 16))
        self.mean = nn.Linear(16, 8)
        self.spread = nn.Linear(16, 8)
        self.decode = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 24), nn.Sigmoid())

    def forward(self, x):
        h = F.leaky_relu(self.encode(x))
        mean, spread = self.mean(h), self.spread(h).clamp(-4.0, 4.0)
        z = mean + torch.exp(0.5 * spread) * torch.sigmoid(mean)
        kl = -0.5 * torch.sum(1 + spread - mean.pow(2) - spread.exp(), dim=1)
        return self.decode(z), kl.mean()


class ConvNeXt(nn.Module):
    def __init__(self, width=12):
        super().__init__()
        self.stem = nn.Conv2d(3, width, 4, stride=4)
        self.deep = nn.Conv2d(width, width, 7, padding=3, groups=width)
        self.norm = nn.LayerNorm(width, eps=1e-6)
        self.grow = nn.Linear(width, 4 * width)
        self.act = nn.GELU()
        self.shrink = nn.Linear(4 * width, width)
        self.gamma = nn.Parameter(0.1 * torch.ones(width))
        self.head = nn.Linear(width, 6)

    def forward(self, x):
        x = self.stem(x)
        y = self.norm(self.deep(x).permute(0, 2, 3, 1))
        y = self.gamma * self.shrink(self.act(self.grow(y)))
        x = x + y.permute(0, 3, 1, 2)
        return self.head(x.mean([-2, -1]))


class Upscaler(nn.Module):
    """Enlarges images: shuffled pixels beside an interpolated image."""

    def __init__(self):
        super().__init__()
        self.features = nn.Conv2d(3, 12, 3, padding=1)
        self.act = nn.PReLU()
        self.shuffle = nn.PixelShuffle(2)
        self.pad = nn.ReflectionPad2d(1)
        self.smooth = nn.Conv2d(3, 3, 3, bias=False)

    def forward(self, x):
        y = self.shuffle(self.act(self.features(x)))
        large = F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=True)
        near = F.interpolate(x, scale_factor=2, mode="nearest")
        return torch.tanh(self.smooth(self.pad(y)) + 0.5 * large + near.roll(1, dims=3))
