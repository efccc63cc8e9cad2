"""Scripts are run whole on both sides: what they print, their losses and their weights agree."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

from migrate.parity.script import agrees, compare_lines, numbers_of, placed
from migrate.parity.script_run import TEXT, Journal, Numbers, Said

NEEDS_BOTH = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("torch", "mindspore")),
    reason="needs torch and MindSpore",
)

NET = """\
import torch.nn as nn


class Net(nn.Module):
    def __init__(self, sizes, classes):
        super().__init__()
        norm = nn.BatchNorm1d(16)
        self.body = nn.Sequential(nn.Linear(sizes, 16), norm, nn.ReLU(), nn.Dropout(0.2))
        self.head = nn.Linear(16, classes)
        for m in self.modules():
            if isinstance(m, nn.Linear):
                nn.init.xavier_uniform_(m.weight)

    def forward(self, x):
        return self.head(self.body(x))
"""
MAIN = """\
import argparse
import logging
import time

import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

from net import Net

log = logging.getLogger(__name__)


def train(model, loader, optimizer, epoch):
    model.train()
    start = time.time()
    for i, (x, y) in enumerate(loader):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        if i % 2 == 0:
            print(f"epoch {epoch} step {i} loss {loss.item():.4f}")
    log.warning("epoch %d took %.2f s", epoch, time.time() - start)


def test(model, loader):
    model.eval()
    right = 0
    with torch.no_grad():
        for x, y in loader:
            right += (model(x).argmax(1) == y).sum().item()
    print("accuracy", right, "of", len(loader.dataset))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    args = parser.parse_args()
    torch.manual_seed(1)
    x = torch.randn(64, 8)
    y = (x[:, 0] + 0.3 * torch.randn(64) > 0).long()
    loader = DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True, num_workers=2)
    model = Net(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for epoch in range(args.epochs):
        train(model, loader, optimizer, epoch)
        test(model, loader)
    torch.save(model.state_dict(), "model.pt")


if __name__ == "__main__":
    main()
"""


def said(*texts: str) -> list[Said]:
    return [Said(TEXT, f"main.py:{n}", text) for n, text in enumerate(texts, 1)]


def test_numbers_of_a_line_know_what_the_text_rounds_away() -> None:
    found = numbers_of("epoch 3 loss 0.1250 lr 1e-3 net2 inf")
    assert found == [(3.0, 0.0), (0.125, 0.5e-4), (1e-3, 0.5e-3), (float("inf"), 0.0)]


@pytest.mark.parametrize(
    ("mine", "torch", "others", "half", "wanted"),
    [
        (0.5001, 0.5, [0.5], 0.5e-4, True),
        (0.5004, 0.5, [0.5], 0.5e-4, False),
        (0.5004, 0.5, [0.5001], 0.5e-4, True),  # torch's own runs differ
        (0.7, 0.5, [0.5, 0.6], 0.5e-4, None),  # and leave it open
        (93.0, 94.0, [94.0], 0.0, False),
        (93.0, 94.0, [94.0, 91.0], 0.0, None),
        (float("nan"), 1.0, [1.0], 0.0, False),
        (float("nan"), float("nan"), [1.0], 0.0, True),
    ],
)
def test_a_number_is_judged_by_how_far_torch_repeats_it(
    mine: float, torch: float, others: list[float], half: float, wanted: bool | None
) -> None:
    assert agrees(mine, torch, others, half, 3.0) is wanted


def test_lines_are_compared_one_by_one_and_the_first_difference_is_named() -> None:
    torch = said("loss 0.5000", "took 1.25 s", "loss 0.2500")
    again = said("loss 0.5000", "took 9.75 s", "loss 0.2500")
    same = compare_lines(said("loss 0.5000", "took 3.1 s", "loss 0.2500"), torch, [again], 3.0)
    assert (same.numbers, same.vague, same.first) == (2, 1, None)
    wrong = compare_lines(said("loss 0.5000", "took 3.1 s", "loss 0.2600"), torch, [again], 3.0)
    assert wrong.first is not None
    assert (wrong.first.torch, wrong.first.what) == ("main.py:3", "'loss 0.2600' for 'loss 0.2500'")
    for lines, what in (
        (said("loss 0.5000"), "it says no more"),
        (said("loss 0.5000", "took 1 s", "loss 0.25", "loss 1.0"), "it says more"),
        (said("loss"), "'loss' for 'loss 0.5000'"),
    ):
        found = compare_lines(lines, torch, [again], 3.0).first
        assert found is not None
        assert what in found.what


def test_draws_of_a_size_are_the_same_whatever_is_drawn_in_between() -> None:
    one, other = Numbers(), Numbers()
    first = [one.draw("normal", (2, 3)), one.order(5), one.draw("normal", (6,))]
    again = [other.draw("normal", (3, 2)), other.draw("normal", (6,)), other.order(5)]
    assert first[0].reshape(-1).tolist() == again[0].reshape(-1).tolist()
    assert first[2].tolist() == again[1].tolist() != first[0].reshape(-1).tolist()
    assert sorted(first[1].tolist()) == list(range(5))
    assert first[1].tolist() == again[2].tolist()
    still = Numbers(still=lambda: True)
    assert still.draw("uniform", (4,)).tolist() == still.draw("uniform", (4,)).tolist()


@NEEDS_BOTH
def test_a_backward_with_a_gradient_notes_what_a_step_differentiates(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import torch

    from migrate.parity import torch_script

    monkeypatch.setattr(torch.Tensor, "backward", torch.Tensor.backward)
    monkeypatch.setattr(torch.amp.GradScaler, "scale", torch.amp.GradScaler.scale)
    journal = Journal("", lambda at: None)
    torch_script._note_losses(journal)
    x = torch.tensor([1.5, -2.0, 0.25], requires_grad=True)
    x.sum().backward()
    x.sum().backward(torch.tensor(-2.0))
    (x * 3).backward(gradient=torch.tensor([1.0, 0.5, 2.0]))
    assert [one.value for one in journal.said] == [-0.25, 0.5, 4.5 - 3.0 + 1.5]
    assert x.grad is not None
    assert x.grad.tolist() == [1 - 2 + 3, 1 - 2 + 1.5, 1 - 2 + 6]


def test_a_script_runs_in_a_copy_and_large_files_are_linked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, output = tmp_path / "source", tmp_path / "output"
    for folder, text in ((source, "torch"), (output, "mindspore")):
        (folder / "data").mkdir(parents=True)
        (folder / "main.py").write_text(text)
    (source / ".git").mkdir()
    (source / ".git" / "config").write_text("")
    (source / "data" / "table.csv").write_text("1,2")
    (source / "data" / "big.bin").write_bytes(bytes(100))
    monkeypatch.setattr("migrate.parity.script.LARGE", 50)
    run = placed([source], tmp_path / "run", lambda path: path.suffix == ".py")
    run = placed([output], run, lambda path: False)
    assert sorted(p.relative_to(run).as_posix() for p in run.rglob("*") if p.is_file()) == [
        "data/big.bin", "data/table.csv", "main.py",
    ]  # fmt: skip
    assert (run / "main.py").read_text() == "mindspore"
    assert (run / "data" / "big.bin").is_symlink()
    (run / "data" / "table.csv").write_text("changed")
    assert (source / "data" / "table.csv").read_text() == "1,2"


def torch2ms(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "migrate", *arguments], cwd=folder, capture_output=True, text=True,
        timeout=900,
    )  # fmt: skip


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("scripts")
    (folder / "src").mkdir()
    (folder / "src" / "net.py").write_text(NET)
    (folder / "src" / "main.py").write_text(MAIN)
    assert torch2ms("convert", "src", "-o", "out", folder=folder).returncode == 0
    return folder


def result(folder: Path) -> dict[str, dict[str, object]]:
    found = json.loads((folder / "out" / "torch2ms.verify.json").read_text(encoding="utf-8"))
    (model,) = found["models"]
    return {f"{rung['name']} {rung['mode']}": rung for rung in model["rungs"]} | {"": model}


@pytest.mark.slow
@NEEDS_BOTH
@pytest.mark.timeout(900)
def test_a_training_script_is_right_in_both_modes(project: Path) -> None:
    done = torch2ms("verify", "out", "--script", "main.py --epochs 2", folder=project)
    found = result(project)
    assert done.returncode == 0, done.stdout + done.stderr
    assert found[""]["verdict"] == "PASS"
    for mode in ("pynative", "graph"):
        assert [found[f"{name} {mode}"]["elements"] for name in ("losses", "printed")] == [8, 16]
        assert found[f"trained weights {mode}"]["checks"] == 8
    assert not (project / "src" / "model.pt").exists()
    assert not list((project / "out").glob("model.*"))


@pytest.mark.slow
@NEEDS_BOTH
@pytest.mark.timeout(900)
def test_the_first_step_and_line_that_differ_are_named(project: Path) -> None:
    output = project / "out" / "main.py"
    right = output.read_text(encoding="utf-8")
    assert right.count("momentum=0.9") == 1
    try:
        output.write_text(right.replace("momentum=0.9", "momentum=0.8"), encoding="utf-8")
        done = torch2ms(
            "verify", "out", "--script", "main.py", "--mode", "pynative", folder=project
        )
    finally:
        output.write_text(right, encoding="utf-8")
    found = result(project)[""]
    assert done.returncode == 1
    assert found["verdict"] == "DIVERGED"
    assert "the first step that differs is step 3 (main.py:20 -> " in str(found["detail"])
    assert "'epoch 0 step 2 loss" in str(found["detail"])


@NEEDS_BOTH
def test_what_is_no_script_of_the_conversion_is_said(project: Path) -> None:
    done = torch2ms("verify", "out", "--script", "train.py", folder=project)
    assert done.returncode == 2
    assert "one of main.py, net.py" in done.stderr
