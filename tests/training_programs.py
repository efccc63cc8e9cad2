"""In: a side and folders. Out: what the training programs in them compute, as JSON.

``python training_programs.py write FOLDER`` writes them in torch's words; ``torch`` runs them as
they stand, ``pynative`` and ``graph`` run what the converter made of them.
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

NET = """import numpy as np
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 6{bias})
        self.last = nn.Linear(6, 2{bias})

    def forward(self, x):
        return self.last(torch.tanh(self.first(x)))


def build():
    rng = np.random.RandomState(1)
    net = Net()
    with torch.no_grad():
        for p in net.parameters():
            p.copy_(torch.from_numpy(rng.randn(*p.shape).astype(np.float32) * 0.5))
    return net


def batches(count):
    rng = np.random.RandomState(2)
    return [
        (
            torch.from_numpy(rng.randn(5, 4).astype(np.float32)),
            torch.from_numpy(rng.randn(5, 2).astype(np.float32)),
        )
        for _ in range(count)
    ]


def run():
    net = build()
    criterion = nn.MSELoss()
    losses, others = [], []
{setup}
    for i, (x, y) in enumerate(batches({count})):
{body}
        losses.append(loss.item())
{after}
    others += [net.first.weight.sum().item(), net.last.weight.sum().item()]
    return losses + [float(o) for o in others]
"""
PLAIN = """optimizer.zero_grad()
loss = criterion(net(x), y)
loss.backward()
optimizer.step()"""
CLIPPED = PLAIN.replace("optimizer.step", "nn.utils.{clip}\noptimizer.step")
RATE = """others.append(optimizer.param_groups[0]["lr"])
schedule.step({argument})
others.append(schedule.get_last_lr()[0])"""
S = "torch.optim.lr_scheduler."
OPTIMIZERS = {
    "asgd": "ASGD(net.parameters(), lr=0.1, t0=4, weight_decay=0.1)",
    "adadelta": "Adadelta(net.parameters(), lr=0.5, weight_decay=0.1)",
    "adafactor": "Adafactor(net.parameters(), lr=0.1, weight_decay=0.1)",
    "adafactor_maximize": "Adafactor(net.parameters(), d=1.5, maximize=True)",
    "adagrad": "Adagrad(net.parameters(), lr=0.1, lr_decay=0.1, weight_decay=0.1)",
    "adam": "Adam(net.parameters(), lr=0.05, eps=1e-3, weight_decay=0.1, amsgrad=True)",
    "adamw": "AdamW(net.parameters(), lr=0.05, weight_decay=0.1)",
    "adamax": "Adamax(net.parameters(), lr=0.05, weight_decay=0.1)",
    "muon": "Muon(net.parameters(), lr=0.02, weight_decay=0.1)",
    "muon_rms": "Muon(net.parameters(), adjust_lr_fn='match_rms_adamw', nesterov=False)",
    "nadam": "NAdam(net.parameters(), lr=0.05, weight_decay=0.1)",
    "nadam_decoupled": "NAdam(net.parameters(), lr=0.05, weight_decay=0.1, "
    "decoupled_weight_decay=True, maximize=True)",
    "radam": "RAdam(net.parameters(), lr=0.05, weight_decay=0.1)",
    "radam_decoupled": "RAdam(net.parameters(), lr=0.05, weight_decay=0.1, "
    "decoupled_weight_decay=True, maximize=True)",
    "rmsprop": "RMSprop(net.parameters(), lr=0.01, momentum=0.5, centered=True)",
    "rprop": "Rprop(net.parameters(), lr=0.01)",
    "sgd": "SGD(net.parameters(), lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01)",
    "sgd_groups": "SGD([{'params': net.first.parameters(), 'lr': 0.01}, "
    "{'params': net.last.parameters(), 'weight_decay': 0.1}], lr=0.1, momentum=0.9)",
}
SCHEDULES = {
    "step": S + "StepLR(optimizer, 3)",
    "multi_step": S + "MultiStepLR(optimizer, [2, 9], gamma=0.5)",
    "exponential": S + "ExponentialLR(optimizer, 0.9)",
    "constant": S + "ConstantLR(optimizer, total_iters=7)",
    "linear": S + "LinearLR(optimizer, total_iters=7)",
    "polynomial": S + "PolynomialLR(optimizer, total_iters=15, power=2.0)",
    "cosine": S + "CosineAnnealingLR(optimizer, T_max=8)",
    "restarts": S + "CosineAnnealingWarmRestarts(optimizer, T_0=3, T_mult=2)",
    "lambda": S + "LambdaLR(optimizer, lambda e: [1.0, 0.5, 0.1][e % 3])",
    "multiplicative": S + "MultiplicativeLR(optimizer, lambda e: 0.95)",
    "cyclic": S + "CyclicLR(optimizer, 0.01, 0.1, step_size_up=4, mode='triangular2')",
    "one_cycle": S + "OneCycleLR(optimizer, 0.1, total_steps=22)",
    "sequential": f"{S}SequentialLR(optimizer, [{S}LinearLR(optimizer, 0.1, total_iters=5), "
    f"{S}CosineAnnealingLR(optimizer, 15)], milestones=[5])",
    "chained": f"{S}ChainedScheduler([{S}ConstantLR(optimizer, 0.1, 4), "
    f"{S}ExponentialLR(optimizer, 0.9)])",
    "swalr": "torch.optim.swa_utils.SWALR(optimizer, 0.01, anneal_epochs=6)",
    "plateau": S + "ReduceLROnPlateau(optimizer, patience=1, cooldown=1, factor=0.5)",
}
SCALED = """optimizer.zero_grad()
loss = criterion(net(x), y * (1e38 if i in (3, 9) else 1.0))
scaler.scale(loss).backward()
scaler.unscale_(optimizer)
nn.utils.clip_grad_norm_(net.parameters(), 0.5)
scaler.step(optimizer)
scaler.update()
others.append(scaler.get_scale())
loss = torch.zeros(1)"""
ACCUMULATED = """loss = criterion(net(x), y) / 2
loss.backward()
if (i + 1) % 2 == 0:
    optimizer.step()
    optimizer.zero_grad()"""
JOINT = """first.zero_grad()
last.zero_grad()
loss = criterion(net(x), y)
loss.backward()
first.step()
last.step()"""
GROUPS = """for group in optimizer.param_groups:
    group["lr"] = 0.1 * 0.9**i
    if i > 5:
        group["lr"] *= 0.5"""
BAG = """optimizer.zero_grad()
loss = (table(torch.tensor([i % 5, 3])) ** 2).sum()
loss.backward()
optimizer.step()
others.append(table.weight.sum().item())"""
SGD = "optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)"


def indented(text: str, depth: int) -> str:
    return "\n".join(" " * depth + line for line in text.split("\n")) if text else ""


def program(setup: str, body: str, after: str = "", bias: str = "", count: int = 20) -> str:
    return NET.format(
        setup=indented(setup, 4),
        body=indented(body, 8),
        after=indented(after, 8),
        bias=bias,
        count=count,
    )


def programs() -> dict[str, str]:
    """Every program by the name of its file."""
    found = {
        name: program(
            f"optimizer = torch.optim.{call}", PLAIN, bias=", bias=False" * name.startswith("muon")
        )
        for name, call in OPTIMIZERS.items()
    }
    for name, call in SCHEDULES.items():
        argument = "loss.item()" if name == "plateau" else ""
        after = RATE.format(argument=argument)
        found[f"rate_{name}"] = program(f"{SGD}\nschedule = {call}", PLAIN, after)
    cycle = "schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=22)"
    for name in ("Adam", "AdamW"):
        setup = f"optimizer = torch.optim.{name}(net.parameters(), weight_decay=0.1)\n{cycle}"
        found[f"cycled_{name.lower()}"] = program(setup, PLAIN, RATE.format(argument=""))
    found["groups_written"] = program(SGD, PLAIN, GROUPS)
    found["clip_norm"] = program(
        SGD, CLIPPED.format(clip="clip_grad_norm_(net.parameters(), 0.3, norm_type=1)")
    )
    found["clip_value"] = program(
        SGD, CLIPPED.format(clip="clip_grad_value_(net.parameters(), 0.05)")
    )
    found["accumulated"] = program(f"{SGD}\noptimizer.zero_grad()", ACCUMULATED, count=40)
    both = "first = torch.optim.Adam(net.first.parameters(), lr=0.05)\n"
    both += "last = torch.optim.SGD(net.last.parameters(), lr=0.1, momentum=0.9)"
    found["joint"] = program(both, JOINT)
    scaler = 'scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=3)'
    found["scaled"] = program(f"{SGD}\n{scaler}", SCALED)
    table = "table = nn.Embedding(5, 3, sparse=True)\nwith torch.no_grad():\n"
    table += "    table.weight.copy_(torch.arange(15.0).reshape(5, 3) * 0.1)\n"
    table += "optimizer = torch.optim.SparseAdam(table.parameters(), lr=0.05)"
    found["sparse_adam"] = program(table, BAG)
    return found


def write(folder: Path) -> None:
    for name, text in programs().items():
        (folder / f"{name}.py").write_text(text, encoding="utf-8")


def results(folder: Path, side: str) -> dict[str, object]:
    """What each program returns; the text of its error where it raises one."""
    if side != "torch":
        import mindspore as ms

        if side == "graph":
            ms.set_context(mode=ms.GRAPH_MODE, jit_syntax_level=ms.STRICT)
        else:
            ms.set_context(mode=ms.PYNATIVE_MODE, pynative_synchronize=True)
    sys.path.insert(0, str(folder))
    found: dict[str, object] = {}
    for name in programs():
        try:
            found[name] = importlib.import_module(name).run()
        except Exception as error:
            found[name] = f"{type(error).__name__}: {error}"[-2000:]
    return found


if __name__ == "__main__":
    if sys.argv[1] == "write":
        write(Path(sys.argv[2]))
    else:
        Path(sys.argv[3]).write_text(
            json.dumps(results(Path(sys.argv[2]), sys.argv[1])), encoding="utf-8"
        )
