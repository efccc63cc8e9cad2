"""In: nothing. Out: models in torch whose ports divide layers and tensors in another way."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Grouped(nn.Module):
    """Convolutions in groups, as AlexNet has them."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(4, 8, 3, padding=1)
        self.conv2 = nn.Conv2d(8, 6, 3, padding=1, groups=2)
        self.fc = nn.Linear(6, 3)

    def forward(self, x):
        x = F.relu(self.conv2(F.relu(self.conv1(x))))
        return self.fc(x.amax((2, 3)))


class TwoHeads(nn.Module):
    """Classes and boxes from one feature."""

    def __init__(self):
        super().__init__()
        self.body = nn.Linear(10, 16)
        self.classes = nn.Linear(16, 5)
        self.boxes = nn.Linear(16, 4)

    def forward(self, x):
        x = F.relu(self.body(x))
        return {"classes": self.classes(x), "boxes": self.boxes(x).sigmoid()}


class BiLstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(6, 7, batch_first=True, bidirectional=True)
        self.fc = nn.Linear(14, 2)

    def forward(self, x):
        out, _ = self.lstm(x)
        return self.fc(out)


class Deep(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(6, 7, num_layers=2, batch_first=True)

    def forward(self, x):
        out, state = self.gru(x)
        return out, state


class Experts(nn.Module):
    """Layers of one shape in a list, whose port keeps one tensor."""

    def __init__(self, count=3):
        super().__init__()
        self.experts = nn.ModuleList([nn.Linear(6, 5) for _ in range(count)])
        self.gate = nn.Linear(6, count)

    def forward(self, x):
        outs = torch.stack([expert(x) for expert in self.experts], dim=1)
        return (self.gate(x).softmax(-1).unsqueeze(-1) * outs).sum(1)
