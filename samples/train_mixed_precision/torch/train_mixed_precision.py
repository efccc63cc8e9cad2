"""Mixed precision as scripts write it: autocast, a scaler, clipping of the unscaled gradients."""

import numpy as np
import torch
from torch import nn
from torch.amp import GradScaler, autocast


class Residual(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm = nn.GroupNorm(2, channels)

    def forward(self, x):
        return x + torch.relu(self.norm(self.conv(x)))


def build():
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, stride=2, padding=1),
        Residual(8),
        Residual(8),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(8, 4),
    )


def images(steps, seed):
    rng = np.random.RandomState(seed)
    for _ in range(steps):
        labels = rng.randint(0, 4, 8).astype(np.int64)
        x = (rng.randn(8, 3, 8, 8) + labels[:, None, None, None]).astype(np.float32)
        yield torch.from_numpy(x), torch.from_numpy(labels)


def run(model, steps=24):
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    use_amp = device.type == "cuda"
    model = model.to(device)
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3, weight_decay=0.05)
    scaler = GradScaler(device.type, enabled=use_amp)
    losses = []
    for inputs, labels in images(steps, seed=5):
        inputs, labels = inputs.to(device, non_blocking=True), labels.to(device)
        optimizer.zero_grad(set_to_none=True)
        with autocast(device_type=device.type, enabled=use_amp):
            outputs = model(inputs)
            loss = criterion(outputs, labels)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item())
    return losses


if __name__ == "__main__":
    torch.manual_seed(0)
    print(run(build())[-1])
