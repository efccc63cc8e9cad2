from mindspore import nn, ops


class SmallNet(nn.Cell):
    """The network that the notebook trains."""

    def __init__(self, classes=4):
        super().__init__()
        self.conv = nn.Conv2d(1, 6, 3, pad_mode='valid', has_bias=True)
        self.norm = nn.BatchNorm2d(6)
        self.head = nn.Dense(6 * 5 * 5, classes)

    def construct(self, x):
        x = ops.max_pool2d(ops.relu(self.norm(self.conv(x))), 2)
        return self.head(x.flatten(start_dim=1))
