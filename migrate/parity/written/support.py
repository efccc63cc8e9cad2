"""In: fixtures of one model and its MindSpore code. Out: assertions, one for a Cell, rung and mode.

Runs in the process of pytest. What it changes in MindSpore (mode, dropout masks that torch's side
had as well) is undone when the model is closed.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import mindspore as ms
import pytest
from mindspore import nn

from migrate.parity import importing
from migrate.parity.cells import Net, held_at, load, open_net, tensors
from migrate.parity.compare import Measure, merge
from migrate.parity.importing import Tree
from migrate.parity.messages import Event, Ran
from migrate.parity.ms_draws import share_masks, silence
from migrate.parity.ms_gradients import gradients
from migrate.parity.ms_training import train
from migrate.parity.replay import replay, set_mode
from migrate.records.outcomes import Verdict

FINE = (Verdict.PASS, Verdict.KERNEL, Verdict.NONDET)
FORWARD = {"forward eval": "eval", "forward train": "train"}
Found = list[tuple[str, str, Measure]]


@dataclass
class Model:
    """The MindSpore model with torch's weights in it; ``asked`` is model.json of the fixtures."""

    net: Net
    names: dict[str, Any]
    asked: dict[str, Any]
    fixtures: Path
    scratch: Path
    failed: list[dict[str, Any]]
    known: dict[tuple[str, str], Found] = field(default_factory=dict)

    def check_parameters(self) -> None:
        """Assert that every tensor of torch has its partner, and that no weight is left over."""
        wrong = [f"torch {text}" for text in self.asked["missing"]]
        wrong += [f"torch {row['key']}: {row['why']}" for row in self.failed]
        held = [part["place"] for parts in self.net.parts.values() for part in parts]
        paired = {id(held_at(self.net, place)) for place in held}
        wrong += [
            f"MindSpore {row['place']}: torch has no such tensor"
            for row in tensors(self.net) if row["trained"] and row["same"] not in paired
        ]  # fmt: skip
        assert not wrong, "\n".join(wrong)

    def check(self, rung: str, path: str, mode: str) -> None:
        """Assert that a Cell is right on a rung; ``path`` is the one of its torch partner."""
        measure = merge(self._measures(rung, path, mode))
        cell = self.asked["paths"][path] or "the whole model"
        said = f"{cell} ({rung}, {mode}): {measure.verdict.value}: {measure.detail}"
        if measure.verdict not in FINE:
            raise AssertionError(said)
        if not measure.elements:
            raise AssertionError(f"{said}: no number was compared")

    def _measures(self, rung: str, path: str, mode: str) -> list[Measure]:
        if rung in FORWARD:
            return self._forward(FORWARD[rung], path, mode)
        kind = "gradients" if rung == "gradients" else "training"
        if (kind, mode) not in self.known:
            self.known[kind, mode] = self._whole(kind, mode)
        return [m for on, owner, m in self.known[kind, mode] if (on, owner) == (rung, path)]

    def _request(self, folder: str, mode: str) -> dict[str, Any]:
        return {
            "folder": str(self.fixtures / folder), "mode": mode, "done": [],
            "paths": self.asked["paths"], "strictness": self.asked["strictness"],
            "scratch": str(self.scratch),
        }  # fmt: skip

    def _forward(self, folder: str, path: str, mode: str) -> list[Measure]:
        """Feed one Cell what its torch partner received."""
        alone = {path: self.asked["paths"][path]}
        request = {**self._request(folder, mode), "paths": alone}
        seen: list[Event] = []
        replay(self.net, {**request, "whole": False, "root_only": False}, seen.append)
        return [event.measure for event in seen if isinstance(event, Ran)]

    def _whole(self, kind: str, mode: str) -> Found:
        """Differentiate or train the whole model once: (rung, owner of the tensor, measure)."""
        request = self._request(kind, mode)
        seen: list[Event] = []
        if kind == "gradients":
            gradients(self.net, request, seen.append)
        else:
            given = {name: self.asked[name] for name in ("loss", "optimizer")}
            train(self.net, self.names, {**request, **given}, seen.append)
        answers = [event for event in seen if isinstance(event, Ran)]
        return [(one.rung or kind, _owner(one.name), one.measure) for one in answers]


def _owner(name: str) -> str:
    """Return the path of the Cell that a tensor belongs to; inputs are the whole model's."""
    return "" if name.startswith("input[") else name.rpartition(".")[0]


@contextmanager
def opened(fixtures: Path, code: Path) -> Iterator[Model]:
    """Build the model from ``code`` (a folder) and give it torch's weights."""
    asked = json.loads((fixtures / "model.json").read_text(encoding="utf-8"))
    mode = ms.get_context("mode")
    ms.set_context(pynative_synchronize=True, jit_syntax_level=ms.STRICT)
    with (
        _masks_shared(),
        tempfile.TemporaryDirectory() as scratch,
        _imported(code, asked) as module,
    ):
        set_mode("pynative")
        ms.set_seed(asked["seed"])
        root = eval(asked["build"], vars(module))  # the expression that was verified
        silence(root)
        net = open_net(root, code.resolve())
        failed = load(net, asked["pairs"], fixtures / "weights")["failed"]
        try:
            yield Model(net, vars(module), asked, fixtures, Path(scratch), failed)
        finally:
            ms.set_context(mode=mode)


@contextmanager
def _masks_shared() -> Iterator[None]:
    """Dropout masks as torch's side had them, until the model is closed."""
    names = ("dropout", "dropout1d", "dropout2d", "dropout3d")
    cells = (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d)
    ours = [m for n, m in list(sys.modules.items()) if n.partition(".")[0] == "mindspore"]
    before = [(m, name, vars(m)[name]) for m in ours for name in names if name in vars(m)]
    before += [(cell, "construct", cell.construct) for cell in cells]
    share_masks()
    try:
        yield
    finally:
        for owner, name, value in before:
            setattr(owner, name, value)


@contextmanager
def _imported(code: Path, asked: dict[str, Any]) -> Iterator[ModuleType]:
    """The module of the model, forgotten in the end.

    The tests may lie in its folder; then they are imported from there as well, and stay.
    """
    here, path = Path(__file__).parents[1], list(sys.path)
    kept = {
        name: module for name, module in sys.modules.items()
        if Path(getattr(module, "__file__", None) or "/").is_relative_to(here)
    }  # fmt: skip
    try:
        module, _ = importing.load_anyhow(Tree(code.resolve(), asked["package"]), asked["file"])
        sys.modules.update(kept)
        sys.path += [folder for folder in path if folder not in sys.path]
        yield module
    finally:
        importing.forget(code.resolve())
        sys.modules.update(kept)
        sys.path[:] = path


def check_torch(fixtures: Path, code: Path) -> None:
    """Assert that torch gives what is recorded; skipped where torch or the code is not at hand.

    In a process of its own: the frameworks bring the same libraries in other versions.
    """
    if importlib.util.find_spec("torch") is None:
        pytest.skip("torch is not installed here")
    if not code.exists():
        pytest.skip(f"{code} is not here")
    top = str(Path(__file__).parents[len(__name__.split(".")) - 1])
    search = os.pathsep.join([top, *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-m", f"{__package__}.torch_check", str(fixtures), str(code)],
        env={**os.environ, "PYTHONPATH": search}, capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, (done.stdout + done.stderr)[-2000:]
