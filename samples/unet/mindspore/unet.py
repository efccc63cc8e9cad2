"""U-Net for segmentation (Ronneberger et al., 2015), padded so that input and output sizes agree."""

from mindspore import nn, ops
from torch_helpers import Sequential, Upsample, pad, softmax_over


class DoubleConv(Sequential):
    """(3x3 convolution -> batch norm -> ReLU) twice."""

    def __init__(self, in_channels, out_channels, mid_channels=None):
        mid_channels = mid_channels or out_channels
        super().__init__(
            nn.Conv2d(in_channels, mid_channels, kernel_size=3, pad_mode='pad', padding=1, has_bias=False),
            nn.BatchNorm2d(mid_channels),
            nn.ReLU(),
            nn.Conv2d(mid_channels, out_channels, kernel_size=3, pad_mode='pad', padding=1, has_bias=False),
            nn.BatchNorm2d(out_channels),
            nn.ReLU(),
        )


class Down(nn.Cell):
    """Halve the size, then convolve."""

    def __init__(self, in_channels, out_channels):
        super().__init__()
        self.block = nn.SequentialCell(nn.MaxPool2d(2, 2), DoubleConv(in_channels, out_channels))

    def construct(self, x):
        return self.block(x)


class Up(nn.Cell):
    """Double the size, append the skip connection, then convolve."""

    def __init__(self, in_channels, out_channels, bilinear=True):
        super().__init__()
        if bilinear:
            # no parameters: the convolution after it does the mixing
            self.up = Upsample(scale_factor=2, mode="bilinear", align_corners=True)
            self.conv = DoubleConv(in_channels, out_channels, in_channels // 2)
        else:
            self.up = nn.Conv2dTranspose(in_channels, in_channels // 2, kernel_size=2, stride=2, pad_mode='pad', has_bias=True)
            self.conv = DoubleConv(in_channels, out_channels)

    def construct(self, x, skip):
        x = self.up(x)
        # odd sizes lose a row or column on the way down; give it back here
        diff_y = skip.shape[2] - x.shape[2]
        diff_x = skip.shape[3] - x.shape[3]
        x = pad(x, [diff_x // 2, diff_x - diff_x // 2, diff_y // 2, diff_y - diff_y // 2])
        return self.conv(ops.cat([skip, x], axis=1))


class UNet(nn.Cell):
    """Args:
        in_channels: channels of the image.
        num_classes: channels of the returned logits, at the size of the image.
        width: channels of the first stage; doubled at each of the four stages below it.
        bilinear: interpolate on the way up, instead of a transposed convolution.
    """

    def __init__(self, in_channels=3, num_classes=2, width=64, bilinear=True):
        super().__init__()
        self.bilinear = bilinear
        factor = 2 if bilinear else 1

        self.stem = DoubleConv(in_channels, width)
        self.down1 = Down(width, width * 2)
        self.down2 = Down(width * 2, width * 4)
        self.down3 = Down(width * 4, width * 8)
        self.down4 = Down(width * 8, width * 16 // factor)
        self.up1 = Up(width * 16, width * 8 // factor, bilinear)
        self.up2 = Up(width * 8, width * 4 // factor, bilinear)
        self.up3 = Up(width * 4, width * 2 // factor, bilinear)
        self.up4 = Up(width * 2, width, bilinear)
        self.head = nn.Conv2d(width, num_classes, kernel_size=1, pad_mode='valid', has_bias=True)

    def construct(self, x):
        x1 = self.stem(x)
        x2 = self.down1(x1)
        x3 = self.down2(x2)
        x4 = self.down3(x3)
        x = self.down4(x4)
        x = self.up1(x, x4)
        x = self.up2(x, x3)
        x = self.up3(x, x2)
        x = self.up4(x, x1)
        return self.head(x)

    def predict(self, x):
        """The class of each pixel, int64, without the channel axis."""
        self.set_train(False)
        return ops.stop_gradient(ops.argmax(self(x), dim=1))


def dice_loss(logits, target, eps=1e-6):
    """1 - Dice coefficient, averaged over batch and classes; target holds class numbers."""
    num_classes = logits.shape[1]
    probs = softmax_over(logits, dim=1)
    one_hot = ops.one_hot(target, num_classes).permute(0, 3, 1, 2).float()
    overlap = (probs * one_hot).sum(axis=(2, 3))
    total = probs.sum(axis=(2, 3)) + one_hot.sum(axis=(2, 3))
    return 1 - ((2 * overlap + eps) / (total + eps)).mean()
