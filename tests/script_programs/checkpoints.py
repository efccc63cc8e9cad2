"""In: nothing. Out: what a model gives after saving, loading and resuming, as JSON."""

import argparse
import copy
import io
import json
import os
import tempfile
from collections import OrderedDict

import numpy as np
import torch
import torch.nn as nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(4, 5, bias=False)
        self.bn = nn.BatchNorm1d(5)
        self.fc2 = nn.Linear(5, 1)
        self.register_buffer("scale", torch.ones(1) * 2)

    def forward(self, x):
        return self.fc2(torch.relu(self.bn(self.fc1(x)))) * self.scale


def step(model: Net, optimizer, x, y):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    return loss.item()


def main():
    out = {}
    model = Net()
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.linspace(-1, 1, p.numel()).reshape(p.shape))
    g = np.random.RandomState(0)
    x = torch.from_numpy(g.randn(8, 4).astype(np.float32))
    y = torch.from_numpy(g.randn(8, 1).astype(np.float32))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)
    model.train()
    step(model, optimizer, x, y)
    best = copy.deepcopy(model.state_dict())
    torch.save(model.state_dict(), "model.ckpt")
    torch.save(model.state_dict(), os.path.join("out", "model.pth"))
    args = argparse.Namespace(lr=0.05, name="a")
    torch.save({"epoch": 3, "best": 0.25, "args": args, "model": model.state_dict(),
                "hist": [1, 2.5, (3, None)], "optimizer": optimizer.state_dict(),
                "scheduler": scheduler.state_dict(), "names": {0: "a", 1: "b"},
                "inf": float("inf"), "x": x, "np": np.arange(3), "empty": torch.zeros(0, 3)},
               "full.pt")  # fmt: skip
    for _ in range(3):
        step(model, optimizer, x, y)
        scheduler.step()
    model.eval()
    with torch.no_grad():
        out["after"] = model(x).sum().item()
    model.load_state_dict(best)
    with torch.no_grad():
        out["best"] = model(x).sum().item()
    model.load_state_dict(torch.load("model.ckpt"))
    with torch.no_grad():
        out["ckpt"] = model(x).sum().item()
    state = torch.load("out/model.pth", map_location=torch.device("cpu"), weights_only=True)
    result = model.load_state_dict(state, strict=False)
    out["missing"] = len(result.missing_keys)
    out["keys"] = sum("num_batches_tracked" not in key for key in state)
    new = OrderedDict()
    for k, v in state.items():
        name = k[7:] if k.startswith("module.") else k
        new[name] = v.clone()
    missing, unexpected = model.load_state_dict(new, strict=False)
    out["m2"] = [len(missing), len(unexpected)]
    own = model.state_dict()
    filtered = {k: v for k, v in state.items() if k in own and v.shape == own[k].shape}
    own.update(filtered)
    model.load_state_dict(own)
    state.pop("fc1.weight")
    try:
        model.load_state_dict(state)
        out["raised"] = False
    except RuntimeError:
        out["raised"] = True
    out["total"] = sum(v.numel() for v in model.state_dict().values() if v.dtype == torch.float32)
    with torch.no_grad():
        for name, value in model.state_dict().items():
            if "fc1" in name:
                value.copy_(value * 0.5)
    with torch.no_grad():
        out["half"] = model(x).sum().item()
    full = torch.load("full.pt", map_location="cpu", weights_only=False)
    out["epoch"], out["bestacc"] = full["epoch"], full["best"]
    out["lr"] = full["args"].lr
    out["hist"] = [list(h) if isinstance(h, tuple) else h for h in full["hist"]]
    out["names"] = full["names"][1]
    out["inf"] = full["inf"] > 1e30
    out["x"] = full["x"].sum().item()
    out["np"] = int(full["np"].sum())
    out["empty"] = list(full["empty"].shape)
    model.load_state_dict(full["model"])
    optimizer = torch.optim.Adam(model.parameters(), lr=0.5)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)
    optimizer.load_state_dict(full["optimizer"])
    scheduler.load_state_dict(full["scheduler"])
    model.train()
    out["resumed"] = []
    for _ in range(3):
        out["resumed"].append(step(model, optimizer, x, y))
        scheduler.step()
    out["lrnow"] = optimizer.param_groups[0]["lr"]
    buffer = io.BytesIO()
    torch.save([x, {"y": y}], buffer)
    buffer.seek(0)
    again = torch.load(buffer)
    out["buffer"] = (again[0] + again[1]["y"]).sum().item()
    if os.path.isfile("full.pt"):
        out["file"] = True
    return out


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        os.mkdir("out")
        print(json.dumps(main()))
        os.chdir("/")
