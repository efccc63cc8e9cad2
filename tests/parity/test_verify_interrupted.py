"""In: runs of verify that are killed or interrupted. Out: whole files, one result in the end."""

from __future__ import annotations

import importlib.util
import json
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from migrate.parity.climb import Kept, Page, close_journal, open_journal
from migrate.parity.recorded import Target
from migrate.parity.request import VerifyRequest
from migrate.records.outcomes import Verdict
from migrate.records.result import Record, Rung

WITH_FRAMEWORKS = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("torch", "mindspore")),
    reason="needs torch and MindSpore",
)
NET = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, padding=1)
        self.norm = nn.BatchNorm2d(4)
        self.head = nn.Linear(4, 5)

    def forward(self, x):
        x = torch.relu(self.norm(self.conv(x)))
        return self.head(x.mean((2, 3)))
"""
KILLS = 50
MODEL = Target("Net", "Net()", "net.py", "net.py", Path(), Path())


def page(verdict: Verdict = Verdict.PASS) -> Page:
    rung = Rung(name="forward eval", mode="graph", verdict=verdict)
    return Page(kept=(Kept(rung=rung),))


def asked(tmp_path: Path, **more: object) -> VerifyRequest:
    return VerifyRequest(tmp_path / "r.json", tmp_path, journal=tmp_path / "kept", **more)  # type: ignore[arg-type]


def test_a_page_is_read_back_by_the_same_run_only(tmp_path: Path) -> None:
    source = tmp_path / "net.py"
    source.write_text("x = 1\n")
    request, record = asked(tmp_path), Record()
    journal = open_journal(request, record, (source,), {"torch": "2"})
    journal.write(MODEL.key, page())
    again = open_journal(request, record, (source,), {"torch": "2"})
    assert again.read(MODEL.key) == page()
    assert again.read(replace(MODEL, build="Net(1)").key) == Page()
    assert again.read(replace(MODEL, inputs=("2x3",)).key) == Page()
    spread = open_journal(
        asked(tmp_path, jobs=2, cluster="local:2", builds=("Net()",)), record, (source,),
        {"torch": "2"},
    )  # fmt: skip
    assert spread.read(MODEL.key) == page()
    others = [
        open_journal(asked(tmp_path, k=4.0), record, (source,), {"torch": "2"}),
        open_journal(request, record, (source,), {"torch": "3"}),
        open_journal(request, Record(tool_version="9"), (source,), {"torch": "2"}),
    ]
    source.write_text("x = 2\n")
    others.append(open_journal(request, record, (source,), {"torch": "2"}))
    assert all(other.read(MODEL.key) == Page() for other in others)


def test_a_page_that_cannot_be_read_is_empty(tmp_path: Path) -> None:
    journal = open_journal(asked(tmp_path), Record(), (), {})
    journal.write(MODEL.key, page())
    (file,) = journal.folder.glob("*.json")
    file.write_text(file.read_text()[:-9])
    assert journal.read(MODEL.key) == Page()


def test_nothing_is_kept_without_a_folder_or_after_the_end(tmp_path: Path) -> None:
    nowhere = open_journal(VerifyRequest(tmp_path, tmp_path), Record(), (), {})
    nowhere.write(MODEL.key, page())
    assert nowhere.read(MODEL.key) == Page()
    open_journal(asked(tmp_path), Record(), (), {}).write(MODEL.key, page())
    close_journal(asked(tmp_path))
    assert not (tmp_path / "kept").exists()


def converted(run, tmp_path: Path) -> Path:
    source = tmp_path / "nets"
    source.mkdir()
    (source / "one.py").write_text(NET)
    (source / "two.py").write_text(NET.replace("padding=1", "stride=2"))
    assert run("convert", source, "-o", tmp_path / "out").code == 0
    return tmp_path / "out"


def start(out: Path) -> subprocess.Popen[bytes]:
    """Verify in a process of its own."""
    command = [sys.executable, "-m", "migrate", "verify", str(out), "--input", "4x3x16x16"]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    return subprocess.Popen(
        command, env=environment, cwd=out, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )


def children(process: int) -> list[int]:
    found = []
    for task in Path(f"/proc/{process}/task").glob("*"):
        try:
            found += [int(word) for word in (task / "children").read_text().split()]
        except OSError:
            continue
    return found


def told(file: Path) -> dict:
    """A result without what differs from run to run: the seconds."""
    result = json.loads(file.read_text(encoding="utf-8"))
    for model in result["models"]:
        model.pop("seconds")
        for rung in model["rungs"]:
            rung.pop("seconds")
    return result


def check_files(out: Path) -> None:
    for file in out.rglob("*.json"):
        json.loads(file.read_text(encoding="utf-8"))


@WITH_FRAMEWORKS
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_ctrl_c_leaves_a_partial_result_and_the_next_run_goes_on(run, tmp_path: Path) -> None:
    out = converted(run, tmp_path)
    process = start(out)
    assert process.stdout is not None
    for line in process.stdout:
        if b"forward train, pynative" in line:
            break
    process.send_signal(signal.SIGINT)
    said = process.stdout.read().decode()
    assert process.wait(60) == 130, said
    assert "partial" in said
    partial = json.loads((out / "torch2ms.verify.json").read_text())
    assert partial["partial"] is True
    assert {model["verdict"] for model in partial["models"]} == {"NOT_RUN"}
    (kept,) = out.glob("*.partial/*/*.json")
    assert len(json.loads(kept.read_text())["kept"]) == 2
    assert start(out).wait(600) == 0
    whole = told(out / "torch2ms.verify.json")
    assert whole["partial"] is False and whole["verdict"] == "PASS"
    assert not list(out.glob("*.partial"))


@WITH_FRAMEWORKS
@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_killed_fifty_times_it_ends_with_the_result_of_a_quiet_run(run, tmp_path: Path) -> None:
    out = converted(run, tmp_path)
    assert start(out).wait(600) == 0
    quiet = told(out / "torch2ms.verify.json")
    draw = random.Random(7)
    kills = tools = 0
    while kills < KILLS:
        (out / "torch2ms.verify.json").unlink(missing_ok=True)
        process, began = start(out), time.monotonic()
        while process.poll() is None:
            time.sleep(draw.uniform(0.5, 9.0))
            workers = children(process.pid)
            victim = draw.choice([process.pid, *workers])
            if kills >= KILLS or process.poll() is not None:
                break
            os.kill(victim, signal.SIGKILL)
            kills, tools = kills + 1, tools + (victim == process.pid)
            check_files(out)
        process.wait(600)
        assert time.monotonic() - began < 600
        check_files(out)
        if process.returncode != -signal.SIGKILL:
            assert told(out / "torch2ms.verify.json") == quiet
    assert tools > 5
    process = start(out)
    assert process.wait(600) == 0
    assert told(out / "torch2ms.verify.json") == quiet
    assert not list(out.glob("*.partial")) and not list(out.glob(".torch2ms-*"))
