"""LeNet-5 for 28x28 grey images, after LeCun et al. (1998)."""

import mindspore as ms
from mindspore import nn, ops
from torch_helpers import parameters


class LeNet(nn.Cell):
    """Two convolutions with pooling, then three fully connected layers.

    Args:
        num_classes: size of the last layer.
    """

    def __init__(self, num_classes: int = 10):
        super().__init__()
        # 28x28 -> 28x28 -> 14x14
        self.conv1 = nn.Conv2d(1, 6, kernel_size=5, pad_mode='pad', padding=2, has_bias=True)
        # 14x14 -> 10x10 -> 5x5
        self.conv2 = nn.Conv2d(6, 16, 5, pad_mode='valid', has_bias=True)
        self.fc1 = nn.Dense(16 * 5 * 5, 120)
        self.fc2 = nn.Dense(120, 84)
        self.fc3 = nn.Dense(84, num_classes)

    def construct(self, x: ms.Tensor) -> ms.Tensor:
        x = ops.max_pool2d(ops.relu(self.conv1(x)), 2)
        x = ops.max_pool2d(ops.relu(self.conv2(x)), 2)
        x = ops.flatten(x, start_dim=1)  # keep the batch
        x = ops.relu(self.fc1(x))
        x = ops.relu(self.fc2(x))
        return self.fc3(x)


def count_parameters(model: nn.Cell) -> int:
    """How many numbers the optimizer would change."""
    return sum(p.numel() for p in parameters(model) if p.requires_grad)


if __name__ == "__main__":
    ms.set_seed(0)
    net = LeNet()
    net.set_train(False)
    images = ops.randn(4, 1, 28, 28)
    logits = net(images)
    print("parameters:", count_parameters(net))
    print("logits:", tuple(logits.shape), "prediction:", ops.argmax(logits, dim=1).tolist())
