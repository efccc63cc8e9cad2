"""In: nothing. Out: hand-written pairs of torch and MindSpore sources, and a record."""

from __future__ import annotations

from pathlib import Path

from migrate.records.result import CellPlace, FileResult, Record

WEIGHTS = {
    "torch.nn.BatchNorm2d": {
        "weight": "gamma", "bias": "beta", "running_mean": "moving_mean",
        "running_var": "moving_variance", "num_batches_tracked": "",
    },
    "torch.nn.LayerNorm": {"weight": "gamma", "bias": "beta"},
    "torch.nn.Embedding": {"weight": "embedding_table"},
}  # fmt: skip
LAYOUTS = {"torch.nn.Conv1d": {"weight": "unsqueeze(2)"}}

LENET = """
import torch
import torch.nn as nn
import torch.nn.functional as F


class LeNet(nn.Module):
    def __init__(self, classes=10):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5, padding=2)
        self.conv2 = nn.Conv2d(6, 16, 5)
        self.pool = nn.MaxPool2d(2)
        self.drop = nn.Dropout(0.25)
        self.fc1 = nn.Linear(16 * 5 * 5, 120)
        self.fc2 = nn.Linear(120, classes)

    def forward(self, x):
        x = self.pool(F.relu(self.conv1(x)))
        x = self.pool(F.relu(self.conv2(x)))
        x = torch.flatten(x, 1)
        x = self.drop(F.relu(self.fc1(x)))
        return self.fc2(x)
"""

LENET_MS = """
from mindspore import nn, ops


class LeNet(nn.Cell):
    def __init__(self, classes=10):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5, pad_mode='pad', padding=2, has_bias=True)
        self.conv2 = nn.Conv2d(6, 16, 5, pad_mode='pad', has_bias=True)
        self.pool = nn.MaxPool2d(2, 2)
        self.drop = nn.Dropout(p=0.25)
        self.fc1 = nn.Dense(16 * 5 * 5, 120)
        self.fc2 = nn.Dense(120, classes)

    def construct(self, x):
        x = self.pool(ops.relu(self.conv1(x)))
        x = self.pool(ops.relu(self.conv2(x)))
        x = x.reshape(x.shape[0], -1)
        x = self.drop(ops.relu(self.fc1(x)))
        return self.fc2(x)
"""

BLOCK = """
import torch.nn as nn
import torch.nn.functional as F


class Block(nn.Module):
    def __init__(self, inside, outside, stride=1):
        super().__init__()
        self.conv1 = nn.Conv2d(inside, outside, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outside)
        self.conv2 = nn.Conv2d(outside, outside, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outside)
        self.shortcut = nn.Sequential()
        if stride != 1 or inside != outside:
            self.shortcut = nn.Sequential(
                nn.Conv2d(inside, outside, 1, stride, bias=False),
                nn.BatchNorm2d(outside),
            )

    def forward(self, x):
        out = F.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        return F.relu(out + self.shortcut(x))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(Block(3, 8), Block(8, 8), Block(8, 16, 2))
        self.head = nn.Linear(16, 5)

    def forward(self, x):
        return self.head(self.layers(x).mean((2, 3)))


def small_net():
    return Net()
"""

BLOCK_MS = """
from mindspore import nn, ops


class Block(nn.Cell):
    def __init__(self, inside, outside, stride=1):
        super().__init__()
        self.conv1 = nn.Conv2d(inside, outside, 3, stride, pad_mode='pad', padding=1)
        self.bn1 = nn.BatchNorm2d(outside)
        self.conv2 = nn.Conv2d(outside, outside, 3, 1, pad_mode='pad', padding=1)
        self.bn2 = nn.BatchNorm2d(outside)
        self.shortcut = nn.SequentialCell()
        if stride != 1 or inside != outside:
            self.shortcut = nn.SequentialCell(
                nn.Conv2d(inside, outside, 1, stride, pad_mode='pad'),
                nn.BatchNorm2d(outside),
            )

    def construct(self, x):
        out = ops.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        return ops.relu(out + self.shortcut(x))


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.layers = nn.SequentialCell(Block(3, 8), Block(8, 8), Block(8, 16, 2))
        self.head = nn.Dense(16, 5)

    def construct(self, x):
        return self.head(self.layers(x).mean((2, 3)))


def small_net():
    return Net()
"""

TAGGER = """
import torch
import torch.nn as nn


class Tagger(nn.Module):
    def __init__(self, words=50, tags=7):
        super().__init__()
        self.embed = nn.Embedding(words, 12)
        self.lstm = nn.LSTM(12, 10, num_layers=2, batch_first=True, bidirectional=True)
        self.norm = nn.LayerNorm(20)
        self.out = nn.Linear(20, tags)

    def forward(self, tokens):
        hidden, _ = self.lstm(self.embed(tokens))
        return torch.tanh(self.out(self.norm(hidden)))
"""

TAGGER_MS = """
from mindspore import nn, ops
from mindspore.common.initializer import Normal


class Tagger(nn.Cell):
    def __init__(self, words=50, tags=7):
        super().__init__()
        self.embed = nn.Embedding(words, 12, embedding_table=Normal(1.0))
        self.lstm = nn.LSTM(12, 10, num_layers=2, batch_first=True, bidirectional=True)
        self.norm = nn.LayerNorm((20,), epsilon=1e-5)
        self.out = nn.Dense(20, tags)

    def construct(self, tokens):
        hidden, _ = self.lstm(self.embed(tokens))
        return ops.tanh(self.out(self.norm(hidden)))
"""


def write_pair(folder: Path, torch: str, mindspore: str, name: str = "net.py") -> Path:
    """Write both sources and their record below a folder; the path of the record."""
    source, output = folder / "torch_code", folder / "ms_code"
    for root, text in ((source, torch), (output, mindspore)):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    cells = (CellPlace(name="Net", line=1, end_line=2, output_line=1, output_end_line=2),)
    record = Record(
        kind="folder", source_root=str(source), weights=WEIGHTS, layouts=LAYOUTS,
        files=(FileResult(source=name, output=name, cells=cells),),
    )  # fmt: skip
    path = output / "torch2ms.json"
    path.write_text(record.model_dump_json(), encoding="utf-8")
    return path
