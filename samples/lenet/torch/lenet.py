"""LeNet-5 for 28x28 grey images, after LeCun et al. (1998)."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class LeNet(nn.Module):
    """Two convolutions with pooling, then three fully connected layers.

    Args:
        num_classes: size of the last layer.
    """

    def __init__(self, num_classes: int = 10):
        super().__init__()
        # 28x28 -> 28x28 -> 14x14
        self.conv1 = nn.Conv2d(1, 6, kernel_size=5, padding=2)
        # 14x14 -> 10x10 -> 5x5
        self.conv2 = nn.Conv2d(6, 16, 5)
        self.fc1 = nn.Linear(16 * 5 * 5, 120)
        self.fc2 = nn.Linear(120, 84)
        self.fc3 = nn.Linear(84, num_classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        x = torch.flatten(x, 1)  # keep the batch
        x = F.relu(self.fc1(x))
        x = F.relu(self.fc2(x))
        return self.fc3(x)


def count_parameters(model: nn.Module) -> int:
    """How many numbers the optimizer would change."""
    return sum(p.numel() for p in model.parameters() if p.requires_grad)


if __name__ == "__main__":
    torch.manual_seed(0)
    net = LeNet()
    net.eval()
    images = torch.randn(4, 1, 28, 28)
    with torch.no_grad():
        logits = net(images)
    print("parameters:", count_parameters(net))
    print("logits:", tuple(logits.shape), "prediction:", logits.argmax(dim=1).tolist())
